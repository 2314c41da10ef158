"""Drumwright's two algorithms on one active set: normals by principal pivoting, and independent
rows of what must hold.

In coordinates of unit mass, with unit rows n_i and the change of velocity u they bring about,

    min 1/2 |u|^2   over   n_i . u + c_i >= 0   (and = 0 for the rows of joints and tangents)
    w = N N' z + c,   0 <= z  _|_  w >= 0       (and w = 0, z free),   u = N' z

(Drumwright's sections V and VI; N N' is his N M^-1 N', c his q.) The matrix of order n is never
formed: at most r rows of N (n, r) are independent, hence active, and one pass over all rows costs
n r. Each pivot keeps true: w vanishes on the active rows and z on the others (`active_set.py`).

Algorithm 1 (`pivot`), a modified Principal Pivoting Method I: the row with the most negative w
enters and the one with the most negative z leaves, in one pass.

Algorithm 2 picks independent rows of joints and tangents by appending to the same factor. Here a
row is picked when it is violated, the worst first, and then stays: those that hold by
themselves, most of them where contacts are redundant, are never looked at again. Passes of
Algorithm 1 go on where all of these rows hold.

Algorithm 1 can go round; the dual active-set method that follows it (`driving.py`) cannot.

How it can fail: INFEASIBLE (with a proof), PIVOT_LIMIT (rounding only).

Where this departs from the paper: L comes from projecting rows and not from the matrix N N', whose
condition is the square of theirs (a mass ratio of 10^6 leaves 10^-3 of a row, and 10^-6 of its
pivot); rows of joints and tangents are picked as above, not all of them in advance; the row
that leaves does so before the other enters, which may depend on it. The guard against cycling,
tolerances relative to the load, and a last solve from the rows themselves are ours.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.arrays import Array
from stiction.contact.solvers.drumwright.active_set import (
    ACTIVE,
    HIGH,
    LOW,
    ROUND,
    Indices,
    States,
    Y,
    Z,
    enter,
    leave,
    project,
    refine,
    scan,
)
from stiction.contact.solvers.drumwright.driving import drive
from stiction.kernels.compile import kernel
from stiction.status import Code

PIVOTED, DRIVEN, WARM = 0, 1, 2
"""What answered: Algorithm 1, the drive, or the warm start as it was."""


@kernel
def _impulses(index: Indices, lower: Array, work: Array, k: int, equal: int) -> tuple[int, float]:
    """Fills Z of the active set; returns the slot that has the least of those that may leave, or
    -1, and the rounding to expect in z and w."""
    for s in range(k):
        work[Z, s] = work[Y, s]
    slot = -1
    least = np.inf
    total = 1.0
    for s in range(k - 1, -1, -1):
        z = work[Z, s] / lower[s, s]
        work[Z, s] = z
        for t in range(s):
            work[Z, t] -= lower[s, t] * z
        total += abs(z)
        if z < least and index[s] >= equal:
            least = z
            slot = s
    return slot, ROUND * total


@kernel
def _worst_equal(w: Array, last: int, touch: float) -> int:
    """Row before `last` with the largest |w|, or -1 if none is beyond `touch`."""
    found = -1
    worst = touch
    for i in range(last):
        if abs(w[i]) > worst:
            worst = abs(w[i])
            found = i
    return found


@kernel
def _most_negative(w: Array, first: int, touch: float) -> int:
    """Row from `first` on with the most negative w, or -1 if none is beyond `touch`."""
    found = -1
    worst = -touch
    for i in range(first, w.shape[0]):
        if w[i] < worst:
            worst = w[i]
            found = i
    return found


@kernel
def _hold(
    index: Indices, lower: Array, basis: Array, work: Array, k: int,
    cols: Array, c: Array, equal: int, u: Array, w: Array,
) -> tuple[int, int]:  # fmt: skip
    """Algorithm 2: enters rows of the first `equal` until all hold, or the worst is dependent.
    Returns the new k and the latter, or -1; w is filled."""
    while True:
        scan(cols, c, u, w)
        touch = ROUND
        for s in range(k):
            touch += ROUND * abs(work[Y, s])
        i = _worst_equal(w, equal, touch)
        if i < 0:
            return k, i
        length = project(basis, work, k, cols, i)
        if length == 0.0:
            return k, i
        k = enter(index, lower, basis, work, k, i, length, c[i], u)
        # A contact's other tangent comes along: it mostly has to enter too, and a pass is
        # saved. Tangents come last and in pairs.
        i += 1 if (equal - i) % 2 == 0 else -1
        if i >= 0 and abs(w[i]) > touch:
            length = project(basis, work, k, cols, i)
            if length > 0.0:
                k = enter(index, lower, basis, work, k, i, length, c[i], u)


@kernel
def pivot(
    index: Indices, lower: Array, basis: Array, work: Array, k: int,
    cols: Array, c: Array, equal: int, u: Array, w: Array, limit: int,
) -> tuple[bool, int, int]:  # fmt: skip
    """Algorithms 2 and 1 from the active set given: (done, k, pivots), with u, w and Z filled.

    The first `equal` rows are those that must hold. Pivots count exchanges of the others. Not
    done after `limit` of them, or when the row that has to enter is dependent and nothing
    leaves: the same pass would follow for ever.
    """
    pivots = 0
    while True:
        stuck = -1
        if equal > 0:
            k, stuck = _hold(index, lower, basis, work, k, cols, c, equal, u, w)
        else:
            scan(cols, c, u, w)
        j, touch = _impulses(index, lower, work, k, equal)
        if stuck >= 0 and abs(w[stuck]) > touch:
            return False, k, pivots
        i = _most_negative(w, equal, touch)
        leaves = j >= 0 and work[Z, j] < -touch
        if not leaves and i < 0:
            return True, k, pivots
        if pivots >= limit:
            return False, k, pivots
        if leaves:
            k = leave(index, lower, basis, work, k, j, u)
            pivots += 1
        if i >= 0:
            length = project(basis, work, k, cols, i)
            if length > 0.0:
                k = enter(index, lower, basis, work, k, i, length, c[i], u)
                pivots += 1
            elif not leaves:
                return False, k, pivots


@kernel
def _warm(
    index: Indices, lower: Array, basis: Array, work: Array,
    cols: Array, c: Array, state: States, u: Array,
) -> int:  # fmt: skip
    """Makes the rows whose state is ACTIVE active, as far as independent; returns k."""
    k = 0
    for i in range(state.shape[0]):
        if state[i] == ACTIVE:
            length = project(basis, work, k, cols, i)
            if length > 0.0:
                k = enter(index, lower, basis, work, k, i, length, c[i], u)
    return k


@kernel
def solve_rows(
    cols: Array, c: Array, equal: int, limits: Array, state: States, z: Array, u: Array
) -> tuple[int, int, int]:
    """(code, pivots, what answered); fills z (n,) and u (r,).

    cols (r, n) unit or zero rows as columns; c (n,) of the order of one. The first `equal` rows
    must hold, the last len(limits) are bounded, |z| <= limit; those between have z >= 0. `state`
    (n,) holds a warm start, or has no entries.
    """
    r, n = cols.shape
    index = np.empty(r + 1, np.int64)
    lower, basis, work = np.empty((r + 1, r + 1)), np.empty((r + 1, r)), np.empty((6, r + 1))
    w = np.empty(n)
    for i in range(n):
        z[i] = 0.0
    for a in range(r):
        u[a] = 0.0
    warm = state.shape[0] == n and n > 0
    k = _warm(index, lower, basis, work, cols, c, state, u) if warm else 0
    pivots = 0
    if limits.shape[0] == 0:
        done, k, pivots = pivot(index, lower, basis, work, k, cols, c, equal, u, w, 3 * r + 8)
        if done:
            refine(index, lower, basis, work, k, cols, w, u)
            for s in range(k):
                i = index[s]
                z[i] = work[Z, s] if i < equal else max(work[Z, s], 0.0)
            return Code.SOLVED, pivots, WARM if warm and pivots == 0 else PIVOTED
    lo, hi = np.zeros(n), np.full(n, np.inf)
    lo[:equal] = -np.inf
    for i in range(n - limits.shape[0], n):
        hi[i] = limits[i - n + limits.shape[0]]
        lo[i] = -hi[i]
        if warm and (state[i] == HIGH or state[i] == LOW):
            z[i] = hi[i] if state[i] == HIGH else lo[i]
    limit = 20 * (n + r) + 100
    code, steps = drive(index, lower, basis, work, k, cols, c, lo, hi, z, u, w, limit)
    for i in range(n):
        z[i] = min(max(z[i], lo[i]), hi[i])
    return code, pivots + steps, WARM if warm and pivots + steps == 0 else DRIVEN
