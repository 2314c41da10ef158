"""Drumwright's two algorithms on one active set: normals by principal pivoting, and independent
rows of what must hold.

In coordinates of unit mass, with unit rows n_i and the change of velocity u they bring about,

    min 1/2 |u|^2   over   n_i . u + c_i >= 0   (and = 0 for the rows of joints and tangents)
    w = N N' z + c,   0 <= z  _|_  w >= 0       (and w = 0, z free),   u = N' z

(Drumwright's sections V and VI; N N' is his N M^-1 N', c his q.) The matrix of order n is never
formed: at most r rows of N (n, r) are independent, hence active, and one pass over all rows costs
n r. Each pivot keeps true: w vanishes on the active rows, z on the others, and

    N_active = L Q,   L lower triangular, Q orthonormal (k, r),   u = Q' y,   L y = -c_active,

so that L is the Cholesky factor of N_active N_active'. Entering projects the row on Q (O(k r));
what remains of it is the rank test. Leaving rotates L, Q and y. Then L' z = y.

Algorithm 1 (`pivot`), a modified Principal Pivoting Method I: the row with the most negative w
enters and the one with the most negative z leaves, in one pass.

Algorithm 2 picks independent rows of joints and tangents by appending to the same factor. Here a
row is picked when it is violated, the worst first, and then stays: those that hold by
themselves, most of them where contacts are redundant, are never looked at again. Passes of
Algorithm 1 go on where all of these rows hold.

Algorithm 1 can go round. `drive` cannot: it starts from a set with z >= 0 and drives one violated
row after the other, as Baraff and Dantzig do, in the order of Goldfarb and Idnani. z_d grows
until w_d is zero or z of an active row is; that row is dropped and z_d grows on. The dual
objective -1/2 |N'z|^2 - c.z strictly rises from one active set to the next, so that none comes
back. It takes bounds as well: rows lo <= z <= hi with w >= 0 at lo, w <= 0 at hi, w = 0 between.

How it can fail: INFEASIBLE (z_d grows for ever: no u obeys all rows; a proof, by Farkas' lemma,
up to `SLACK`), PIVOT_LIMIT (rounding only).

Where this departs from the paper: L comes from projecting rows and not from the matrix N N', whose
condition is the square of theirs (a mass ratio of 10^6 leaves 10^-3 of a row, and 10^-6 of its
pivot); rows of joints and tangents are picked as above, not all of them in advance; the row
that leaves does so before the other enters, which may depend on it. The guard against cycling,
tolerances relative to the load, and a last solve from the rows themselves are ours.

Rows are stored as columns, `cols` (r, n): every pass is then a sum of r long vectors, which
processors do four at a time without changing the order of any sum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array
from stiction.kernels import cholesky
from stiction.kernels.compile import kernel
from stiction.kernels.dense import dot
from stiction.status import Code

Indices = NDArray[np.int64]
States = NDArray[np.int8]

INDEPENDENT = 1e-9
"""Remainder of a unit row, after projection, above which it is independent. Taking a row with
less for dependent errs by that much of the speeds, which is within the certificate's 1e-8."""

ROUNDING_MARGIN = 10.0
"""Times its own possible error that a remainder must exceed as well. A dependent row leaves 1e-15,
but more where the basis is what little remained of other rows: 1e-9 after two that left 1e-3."""

ROUND = 1e-15
"""Rounding of one sum, relative to its terms: a w or z below zero by less is zero."""

SLACK = 1e-9
"""Violation, relative to the load, of a dependent row that no z can cure, up to which it is taken
for rounding of the rows themselves; beyond it the bounds contradict each other."""

OPEN, ACTIVE, HIGH, LOW = 0, 1, 2, 3
"""State of a row in a warm start: z at rest (0), w = 0, z at its upper or lower bound."""

PIVOTED, DRIVEN, WARM = 0, 1, 2
"""What answered: Algorithm 1, the drive, or the warm start as it was."""


Y, Z, HALF, PART, REST, ERROR = 0, 1, 2, 3, 4, 5
"""Rows of `work` (6, r+1): coordinates of u, u = basis' y; impulses by slot; of the last candidate
its part along the basis, the same of one projection, and what remains of it; and how far each
basis row may be off, because it was what little remained of its row."""

# The active set is four arrays, of which k slots are in use: `index` (r+1,) row of each slot,
# `lower` (r+1, r+1), L above, `basis` (r+1, r), `work` (6, r+1). They are passed one by one and
# indexed in place: a tuple of arrays, or a slice, counts references atomically, and these kernels
# run for 100 ns. Loops over all rows start at zero: others are not vectorized.


@kernel
def scan(cols: Array, c: Array, u: Array, w: Array) -> None:
    """w = c + cols' u, two entries of u at a time: w is then read half as often."""
    n = c.shape[0]
    for i in range(n):
        w[i] = c[i]
    r = u.shape[0]
    for q in range(r // 2):
        a = 2 * q
        x, y = u[a], u[a + 1]
        for i in range(n):
            w[i] += x * cols[a, i] + y * cols[a + 1, i]
    for a in range(r - r % 2, r):
        x = u[a]
        for i in range(n):
            w[i] += x * cols[a, i]


@kernel
def _take_out(basis: Array, work: Array, k: int, r: int) -> float:
    """Moves the part of REST along the basis into HALF; returns the square of what is left. All
    parts are taken at once, so what is left is exact to rounding of what was there."""
    for s in range(k):
        even = odd = 0.0
        for q in range(r // 2):
            even += basis[s, 2 * q] * work[REST, 2 * q]
            odd += basis[s, 2 * q + 1] * work[REST, 2 * q + 1]
        for a in range(r - r % 2, r):
            even += basis[s, a] * work[REST, a]
        work[PART, s] = even + odd
    for s in range(k):
        along = work[PART, s]
        work[HALF, s] += along
        for a in range(r):
            work[REST, a] -= along * basis[s, a]
    even = odd = 0.0
    for q in range(r // 2):
        even += work[REST, 2 * q] * work[REST, 2 * q]
        odd += work[REST, 2 * q + 1] * work[REST, 2 * q + 1]
    for a in range(r - r % 2, r):
        even += work[REST, a] * work[REST, a]
    return even + odd


@kernel
def _project(basis: Array, work: Array, k: int, cols: Array, i: int) -> float:
    """Fills HALF and REST of row i; returns the length of the rest, 0 if the row is dependent.
    ERROR in slot k is what the rest may be off by."""
    r = cols.shape[0]
    for a in range(r):
        work[REST, a] = cols[a, i]
    for s in range(k):
        work[HALF, s] = 0.0
    size = _take_out(basis, work, k, r)
    if size < 0.01:  # little is left, and rounding of the whole row in it: once more
        size = _take_out(basis, work, k, r)
    error = ROUND
    for s in range(k):
        error += abs(work[HALF, s]) * work[ERROR, s]
    work[ERROR, k] = error
    length = np.sqrt(size)
    return length if k < r and length > max(INDEPENDENT, ROUNDING_MARGIN * error) else 0.0


@kernel
def _enter(
    index: Indices, lower: Array, basis: Array, work: Array, k: int,
    i: int, length: float, c: float, u: Array,
) -> int:  # fmt: skip
    """Makes row i active, after `_project`; u is changed so that its w, c + n_i . u, vanishes.
    Returns the new k."""
    value = -c
    for s in range(k):
        lower[k, s] = work[HALF, s]
        value -= work[HALF, s] * work[Y, s]
    lower[k, k] = length
    value /= length
    for a in range(u.shape[0]):
        basis[k, a] = work[REST, a] / length
        u[a] += value * basis[k, a]
    work[Y, k] = value
    work[ERROR, k] /= length
    index[k] = i
    return k + 1


@kernel
def _leave(
    index: Indices, lower: Array, basis: Array, work: Array, k: int, slot: int, u: Array
) -> int:
    """Takes a slot out, with Givens rotations, and its share out of u; returns the new k."""
    r = u.shape[0]
    for s in range(slot, k - 1):
        index[s] = index[s + 1]
        for j in range(s + 2):
            lower[s, j] = lower[s + 1, j]
    for s in range(slot, k - 1):
        length = np.hypot(lower[s, s], lower[s, s + 1])
        cosine, sine = lower[s, s] / length, lower[s, s + 1] / length
        lower[s, s] = length
        for t in range(s + 1, k - 1):
            p, q = lower[t, s], lower[t, s + 1]
            lower[t, s] = cosine * p + sine * q
            lower[t, s + 1] = cosine * q - sine * p
        p, q = work[Y, s], work[Y, s + 1]
        work[Y, s] = cosine * p + sine * q
        work[Y, s + 1] = cosine * q - sine * p
        p, q = work[ERROR, s], work[ERROR, s + 1]
        work[ERROR, s] = abs(cosine) * p + abs(sine) * q
        work[ERROR, s + 1] = abs(cosine) * q + abs(sine) * p
        for a in range(r):
            p, q = basis[s, a], basis[s + 1, a]
            basis[s, a] = cosine * p + sine * q
            basis[s + 1, a] = cosine * q - sine * p
    for a in range(r):
        u[a] -= work[Y, k - 1] * basis[k - 1, a]
    return k - 1


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
        length = _project(basis, work, k, cols, i)
        if length == 0.0:
            return k, i
        k = _enter(index, lower, basis, work, k, i, length, c[i], u)
        # A contact's other tangent comes along: it mostly has to enter too, and a pass is
        # saved. Tangents come last and in pairs.
        i += 1 if (equal - i) % 2 == 0 else -1
        if i >= 0 and abs(w[i]) > touch:
            length = _project(basis, work, k, cols, i)
            if length > 0.0:
                k = _enter(index, lower, basis, work, k, i, length, c[i], u)


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
            k = _leave(index, lower, basis, work, k, j, u)
            pivots += 1
        if i >= 0:
            length = _project(basis, work, k, cols, i)
            if length > 0.0:
                k = _enter(index, lower, basis, work, k, i, length, c[i], u)
                pivots += 1
            elif not leaves:
                return False, k, pivots


@kernel
def _refine(
    index: Indices, lower: Array, basis: Array, work: Array, k: int, cols: Array, w: Array, u: Array
) -> None:
    """One refinement of the active set's solution, from the rows themselves: of u, Y and Z so
    that w (n,) of this u vanishes, and of Z so that u's part along the basis is N'z. Rotations
    leave some 1e-15 in L and basis; what shows no more than rounding is left as it is.
    """
    r = u.shape[0]
    worst = 0.0
    total = 1.0
    for s in range(k):
        work[HALF, s] = -w[index[s]]
        worst = max(worst, abs(work[HALF, s]))
        total += abs(work[Z, s])
    if worst > ROUND:
        cholesky.forward(lower, k, work[HALF])
        for s in range(k):
            work[Y, s] += work[HALF, s]
            work[Z, s] = work[Y, s]
            for a in range(r):
                u[a] += work[HALF, s] * basis[s, a]
        cholesky.backward(lower, k, work[Z])
    worst = 0.0
    for a in range(r):
        work[REST, a] = 0.0
    for s in range(k):
        i = index[s]
        for a in range(r):
            work[REST, a] += work[Y, s] * basis[s, a] - work[Z, s] * cols[a, i]
    for a in range(r):
        worst = max(worst, abs(work[REST, a]))
    if worst > ROUND * total:
        for s in range(k):
            work[HALF, s] = dot(basis[s], work[REST, :r])
        cholesky.backward(lower, k, work[HALF])
        for s in range(k):
            work[Z, s] += work[HALF, s]


@kernel
def _settle(
    index: Indices, lower: Array, basis: Array, work: Array, k: int,
    cols: Array, c: Array, z: Array, active: States, u: Array, w: Array,
) -> None:  # fmt: skip
    """u, w and the active z of the active set, the other z being as they are."""
    u[:] = 0.0
    for i in range(z.shape[0]):
        if z[i] != 0.0 and active[i] != ACTIVE:
            for a in range(u.shape[0]):
                u[a] += z[i] * cols[a, i]
    for s in range(k):
        work[Y, s] = 0.0
        work[Z, s] = 0.0
    for _ in range(2):
        scan(cols, c, u, w)
        _refine(index, lower, basis, work, k, cols, w, u)
    for s in range(k):
        z[index[s]] = work[Z, s]


@kernel
def _drop_outside(
    index: Indices, lower: Array, basis: Array, work: Array, k: int,
    cols: Array, c: Array, lo: Array, hi: Array, z: Array, active: States, u: Array, w: Array,
) -> int:  # fmt: skip
    """Settles, and lets active rows go, the one furthest outside its bounds first, until none is;
    returns the new k."""
    while True:
        _settle(index, lower, basis, work, k, cols, c, z, active, u, w)
        worst = 0.0
        slot = -1
        for s in range(k):
            i = index[s]
            out = max(lo[i] - z[i], z[i] - hi[i])
            if out > worst:
                worst = out
                slot = s
        if slot < 0:
            return k
        i = index[slot]
        z[i] = lo[i] if z[i] < lo[i] else hi[i]
        active[i] = OPEN
        k = _leave(index, lower, basis, work, k, slot, u)


@kernel
def _worst_at_rest(
    w: Array, z: Array, lo: Array, hi: Array, active: States, ignored: States, touch: float
) -> int:
    """The row at rest whose condition fails most, or -1; alike to rounding, the first."""
    worst = touch
    found = -1
    for i in range(w.shape[0]):
        size = abs(w[i])
        if size > worst and active[i] != ACTIVE and ignored[i] == 0:
            movable = z[i] < hi[i] if w[i] < 0.0 else z[i] > lo[i]
            if movable:
                worst = size * (1.0 + 1e-9)
                found = i
    return found


@kernel
def _longest_step(
    index: Indices, k: int, z: Array, lo: Array, hi: Array, dz: Array, own: float
) -> tuple[float, int]:
    """(step, slot): how far the driven row can go, at most `own`, and the slot whose bound ends
    it, or -1. On a tie the driven row wins: it then is independent of all that stay."""
    step = own
    found = -1
    for s in range(k):
        i = index[s]
        if dz[s] < -ROUND and z[i] - lo[i] < step * -dz[s]:
            step = max(z[i] - lo[i], 0.0) / -dz[s]
            found = s
        elif dz[s] > ROUND and hi[i] - z[i] < step * dz[s]:
            step = max(hi[i] - z[i], 0.0) / dz[s]
            found = s
    return step, found


@kernel
def _drive_row(
    index: Indices, lower: Array, basis: Array, work: Array, k: int, d: int, sign: float,
    cols: Array, c: Array, lo: Array, hi: Array, z: Array, active: States, u: Array, dz: Array,
) -> tuple[bool, int, int]:  # fmt: skip
    """Moves z_d along `sign` until w_d is zero or z_d at its bound: (possible, k, pivots). Not
    possible where nothing ends the move, or where d is dependent and w_d its rounding only."""
    r = u.shape[0]
    scale = 1.0
    for a in range(r):
        scale = max(scale, abs(u[a]))
    spare = np.empty(r)
    pivots = 0
    while True:
        length = _project(basis, work, k, cols, d)
        free = length > 0.0
        for s in range(k):
            dz[s] = -sign * work[HALF, s]
        cholesky.backward(lower, k, dz)
        w = c[d]
        for a in range(r):
            w += cols[a, d] * u[a]
        if not free and abs(w) <= ROUNDING_MARGIN * work[ERROR, k] * scale:
            return False, k, pivots
        arrives = max(-sign * w, 0.0) / (length * length) if free else np.inf
        bound = hi[d] - z[d] if sign > 0.0 else z[d] - lo[d]
        step, slot = _longest_step(index, k, z, lo, hi, dz, min(arrives, bound))
        if step == np.inf:
            return False, k, pivots
        z[d] += sign * step
        for s in range(k):
            z[index[s]] += step * dz[s]
        if free:
            for a in range(r):
                u[a] += sign * step * work[REST, a]
        pivots += 1
        if slot >= 0:
            i = index[slot]
            z[i] = lo[i] if dz[slot] < 0.0 else hi[i]
            active[i] = OPEN
            # u is what it will be already, so the share that `_leave` takes is not its own.
            k = _leave(index, lower, basis, work, k, slot, spare)
        elif bound <= arrives:
            z[d] = hi[d] if sign > 0.0 else lo[d]
            return True, k, pivots
        else:
            k = _enter(index, lower, basis, work, k, d, length, c[d], spare)
            active[d] = ACTIVE
            return True, k, pivots


@kernel
def drive(
    index: Indices, lower: Array, basis: Array, work: Array, k: int,
    cols: Array, c: Array, lo: Array, hi: Array, z: Array, u: Array, w: Array, limit: int,
) -> tuple[int, int]:  # fmt: skip
    """Dual active-set method from the active set given: (code, pivots); z, u and w filled.

    z (n,) holds where inactive rows rest; lo, hi (n,) its bounds. See the head.
    """
    n = c.shape[0]
    active = np.zeros(n, np.int8)
    ignored = np.zeros(n, np.int8)
    dz = np.empty(u.shape[0] + 1)
    for s in range(k):
        active[index[s]] = ACTIVE
    pivots = 0
    while True:
        k = _drop_outside(index, lower, basis, work, k, cols, c, lo, hi, z, active, u, w)
        scan(cols, c, u, w)
        total = 1.0
        for i in range(n):
            total += abs(z[i])
        d = _worst_at_rest(w, z, lo, hi, active, ignored, ROUND * total)
        if d < 0:
            return Code.SOLVED, pivots
        if pivots >= limit:
            return Code.PIVOT_LIMIT, pivots
        sign = 1.0 if w[d] < 0.0 else -1.0
        possible, k, steps = _drive_row(
            index, lower, basis, work, k, d, sign, cols, c, lo, hi, z, active, u, dz
        )
        pivots += steps
        if not possible:
            if abs(w[d]) > SLACK:
                return Code.INFEASIBLE, pivots
            ignored[d] = 1


@kernel
def _warm(
    index: Indices, lower: Array, basis: Array, work: Array,
    cols: Array, c: Array, state: States, u: Array,
) -> int:  # fmt: skip
    """Makes the rows whose state is ACTIVE active, as far as independent; returns k."""
    k = 0
    for i in range(state.shape[0]):
        if state[i] == ACTIVE:
            length = _project(basis, work, k, cols, i)
            if length > 0.0:
                k = _enter(index, lower, basis, work, k, i, length, c[i], u)
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
            _refine(index, lower, basis, work, k, cols, w, u)
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
