"""A dual active-set method on Drumwright's rows, which cannot go round (`pivoting.py`).

It starts from a set with z >= 0 and drives one violated row after the other, as Baraff and Dantzig
do, in the order of Goldfarb and Idnani. z_d grows until w_d is zero or z of an active row is; that
row is dropped and z_d grows on. The dual objective -1/2 |N'z|^2 - c.z strictly rises from one
active set to the next, so that none comes back. It takes bounds as well: rows lo <= z <= hi with
w >= 0 at lo, w <= 0 at hi, w = 0 between.

How it can fail: INFEASIBLE (z_d grows for ever: no u obeys all rows; a proof, by Farkas' lemma,
up to `CONTRADICTION`), PIVOT_LIMIT (rounding only).
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.arrays import Array
from stiction.contact.solvers.drumwright.active_set import (
    ACTIVE,
    ERROR,
    HALF,
    OPEN,
    REST,
    ROUND,
    ROUNDING_MARGIN,
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
from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.status import Code

CONTRADICTION = 1e-9
"""Violation, relative to the load, of a dependent row that no z can cure, up to which it is taken
for rounding of the rows themselves; beyond it the bounds contradict each other."""


@kernel
def _solve_active(
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
        refine(index, lower, basis, work, k, cols, w, u)
    for s in range(k):
        z[index[s]] = work[Z, s]


@kernel
def _drop_outside(
    index: Indices, lower: Array, basis: Array, work: Array, k: int,
    cols: Array, c: Array, lo: Array, hi: Array, z: Array, active: States, u: Array, w: Array,
) -> int:  # fmt: skip
    """Solves, and lets active rows go, the one furthest outside its bounds first, until none is;
    returns the new k."""
    while True:
        _solve_active(index, lower, basis, work, k, cols, c, z, active, u, w)
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
        k = leave(index, lower, basis, work, k, slot, u)


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
        length = project(basis, work, k, cols, d)
        free = length > 0.0
        for s in range(k):
            dz[s] = -sign * work[HALF, s]
        linear.backward(lower, k, dz)
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
            # u is what it will be already, so the share that `leave` takes is not its own.
            k = leave(index, lower, basis, work, k, slot, spare)
        elif bound <= arrives:
            z[d] = hi[d] if sign > 0.0 else lo[d]
            return True, k, pivots
        else:
            k = enter(index, lower, basis, work, k, d, length, c[d], spare)
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
            if abs(w[d]) > CONTRADICTION:
                return Code.INFEASIBLE, pivots
            ignored[d] = 1
