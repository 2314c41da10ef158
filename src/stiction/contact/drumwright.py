"""Drumwright's two algorithms: normals by principal pivoting, independent rows by projection.

In coordinates of unit mass, with unit rows n_i and the change of velocity u they bring about,

    min 1/2 |u|^2   over   n_i . u + c_i >= 0
    w = N N' z + c,   0 <= z  _|_  w >= 0,   u = N' z

(Drumwright's section V; N N' is his N M^-1 N', c his q.) The matrix of order n is never formed:
at most r rows of N (n, r) are independent, hence active, and one pass over all rows costs n r.

Algorithm 1 (`pivot`), a modified Principal Pivoting Method I: of the current active set, the row
with the most negative w enters and the one with the most negative z leaves, in one pass. Each
pivot keeps true: w vanishes on the active rows, z on the others, and the active rows are

    N_active = L Q,   L lower triangular, Q orthonormal (k, r),   u = Q' y,   L y = -c_active,

so that L is the Cholesky factor of N_active N_active'. Entering projects the row on Q (O(k r));
what remains of it is the rank test. Leaving rotates L, Q and y. Then L' z = y.

Algorithm 1 can go round. `drive` cannot: it starts from a set with z >= 0 and drives one violated
row after the other, as Baraff and Dantzig do, in the order of Goldfarb and Idnani. z_d grows
until w_d is zero or z of an active row is; that row is dropped and z_d grows on. The dual
objective -1/2 |N'z|^2 - c.z strictly rises from one active set to the next, so that none comes
back. It takes bounds as well: rows lo <= z <= hi with w >= 0 at lo, w <= 0 at hi, w = 0 between.

How it can fail: INFEASIBLE (z_d grows for ever: no u obeys the bounds; a proof, by Farkas' lemma,
up to `SLACK`), PIVOT_LIMIT (rounding only).

Algorithm 2 (`eliminate`) picks independent rows of the joints, then of the tangents, and takes
their span out of all other rows.

Where this departs from the paper: L comes from projecting rows and not from the matrix N N', whose
condition is the square of theirs: mass ratios of 10^6 leave 10^-3 of a row, and 10^-6 of its
pivot. The guard against cycling, tolerances relative to the load, and a last solve with one
refinement are ours. In Algorithm 2 the row with the largest remainder is picked first, not the
next one: a row that is independent by rounding alone is then never preferred to a true one.

Rows are stored as columns, `cols` (r, n): every pass is then a sum of r long vectors, which
processors do four at a time without changing the order of any sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.arrays import Array
from stiction.kernels import cholesky
from stiction.kernels.compile import kernel
from stiction.status import Code

Indices = NDArray[np.int64]
States = NDArray[np.int8]

INDEPENDENT = 1e-9
"""Remainder of a unit row, after projection, above which it is independent. What is left of a
dependent row is 1e-15; taking a row with less for dependent errs by that much of the speeds,
which is within the certificate's 1e-8."""

ROUND = 1e-15
"""Rounding of one sum, relative to its terms: a w or z below zero by less is zero."""

SLACK = 1e-9
"""Violation, relative to the load, of a dependent row that no z can cure, up to which it is taken
for rounding of the rows themselves; beyond it the bounds contradict each other."""

OPEN, ACTIVE, HIGH, LOW = 0, 1, 2, 3
"""State of a row in a warm start: z at rest (0), w = 0, z at its upper or lower bound."""

PIVOTED, DRIVEN, WARM = 0, 1, 2
"""What answered: Algorithm 1, the drive, or the warm start as it was."""

BLOCK = 256
"""Columns eliminated together: r of them stay in the first cache."""


class Factor(NamedTuple):
    """Active rows = L basis; the first k (kept by the caller) are in use."""

    index: Indices  # (r+1,) row of each slot
    L: Array  # (r+1, r+1)
    basis: Array  # (r+1, r) orthonormal rows
    y: Array  # (r+1,) u = basis' y
    z: Array  # (r+1,) impulses by slot
    half: Array  # (r+1,) last candidate's part along the basis
    part: Array  # (r+1,) work
    rest: Array  # (r,) and what remains of it


@kernel
def new_factor(r: int) -> Factor:
    """An empty active set for rows of r entries."""
    return Factor(
        np.empty(r + 1, np.int64),
        np.empty((r + 1, r + 1)),
        np.empty((r + 1, r)),
        np.empty(r + 1),
        np.empty(r + 1),
        np.empty(r + 1),
        np.empty(r + 1),
        np.empty(r),
    )


@kernel
def dot(a: Array, b: Array) -> float:
    """a . b, in four partial sums: one alone waits for each addition to finish."""
    n = a.shape[0]
    s0 = s1 = s2 = s3 = 0.0
    for q in range(n // 4):
        j = 4 * q
        s0 += a[j] * b[j]
        s1 += a[j + 1] * b[j + 1]
        s2 += a[j + 2] * b[j + 2]
        s3 += a[j + 3] * b[j + 3]
    for j in range(n - n % 4, n):
        s0 += a[j] * b[j]
    return (s0 + s1) + (s2 + s3)


@kernel
def add(y: Array, factor: float, x: Array) -> None:
    """y += factor x."""
    for i in range(y.shape[0]):
        y[i] += factor * x[i]


@kernel
def scan(cols: Array, c: Array, u: Array, w: Array) -> None:
    """w = c + cols' u, two columns of u at a time: w is then read half as often."""
    n = c.shape[0]
    for i in range(n):
        w[i] = c[i]
    pending = -1
    for a in range(u.shape[0]):
        if u[a] == 0.0:
            continue
        if pending < 0:
            pending = a
            continue
        x, first, y, second = u[pending], cols[pending], u[a], cols[a]
        for i in range(n):
            w[i] += x * first[i] + y * second[i]
        pending = -1
    if pending >= 0:
        add(w, u[pending], cols[pending])


@kernel
def least(values: Array, size: int) -> int:
    """Index of the least of the first `size` values, or -1."""
    best = -1
    value = np.inf
    for i in range(size):
        if values[i] < value:
            value = values[i]
            best = i
    return best


@kernel
def _split(f: Factor, k: int, cols: Array, i: int) -> float:
    """Fills `half` and `rest` of row i; returns the length of the rest.

    All parts are taken at once, which leaves rounding of the row in the rest; where that is
    little, a second projection takes it out. Indices rather than slices: half the time.
    """
    r = cols.shape[0]
    basis, half, part, rest = f.basis, f.half, f.part, f.rest
    for a in range(r):
        rest[a] = cols[a, i]
    for s in range(k):
        half[s] = 0.0
    size = 1.0
    for _ in range(2):
        before = size
        for s in range(k):
            even = odd = 0.0
            for a in range(r // 2):
                even += basis[s, 2 * a] * rest[2 * a]
                odd += basis[s, 2 * a + 1] * rest[2 * a + 1]
            if r % 2 == 1:
                even += basis[s, r - 1] * rest[r - 1]
            part[s] = even + odd
        for s in range(k):
            along = part[s]
            half[s] += along
            for a in range(r):
                rest[a] -= along * basis[s, a]
        size = dot(rest, rest)
        if size > 0.01 * before:
            break
    return np.sqrt(size) if k < r else 0.0


@kernel
def _enter(f: Factor, k: int, i: int, length: float, free: float, u: Array) -> int:
    """Makes row i active, after `_split`; its w, `free` + n_i . u before, becomes zero by u.
    Returns the new k."""
    row = f.L[k]
    value = -free
    for s in range(k):
        row[s] = f.half[s]
        value -= f.half[s] * f.y[s]
    row[k] = length
    inverse = 1.0 / length
    value *= inverse
    last = f.basis[k]
    for a in range(u.shape[0]):
        last[a] = f.rest[a] * inverse
        u[a] += value * last[a]
    f.y[k] = value
    f.index[k] = i
    return k + 1


@kernel
def _leave(f: Factor, k: int, slot: int, u: Array) -> int:
    """Takes a slot out, with Givens rotations, and its share out of u; returns the new k."""
    L, basis, y = f.L, f.basis, f.y
    for s in range(slot, k - 1):
        f.index[s] = f.index[s + 1]
        for j in range(s + 2):
            L[s, j] = L[s + 1, j]
    for s in range(slot, k - 1):
        length = np.hypot(L[s, s], L[s, s + 1])
        cosine, sine = L[s, s] / length, L[s, s + 1] / length
        L[s, s] = length
        for t in range(s + 1, k - 1):
            p, q = L[t, s], L[t, s + 1]
            L[t, s] = cosine * p + sine * q
            L[t, s + 1] = cosine * q - sine * p
        p, q = y[s], y[s + 1]
        y[s] = cosine * p + sine * q
        y[s + 1] = cosine * q - sine * p
        for a in range(u.shape[0]):
            p, q = basis[s, a], basis[s + 1, a]
            basis[s, a] = cosine * p + sine * q
            basis[s + 1, a] = cosine * q - sine * p
    add(u, -y[k - 1], basis[k - 1])
    return k - 1


@kernel
def _impulses(f: Factor, k: int) -> float:
    """Fills z of the active set; returns the rounding to expect in z and w."""
    for s in range(k):
        f.z[s] = f.y[s]
    cholesky.backward(f.L, k, f.z)
    total = 1.0
    for s in range(k):
        total += abs(f.z[s])
    return ROUND * total


@kernel
def pivot(
    cols: Array, c: Array, f: Factor, k: int, u: Array, w: Array, limit: int
) -> tuple[bool, int, int]:
    """Algorithm 1 from the active set of f, k, u: (done, k, pivots), with w and f.z filled.

    Not done after `limit` pivots, or when the row that has to enter is dependent and nothing
    leaves: the same pass would follow for ever.
    """
    pivots = 0
    while True:
        touch = _impulses(f, k)
        j = least(f.z, k)
        scan(cols, c, u, w)
        i = least(w, c.shape[0])
        leaves = j >= 0 and f.z[j] < -touch
        enters = i >= 0 and w[i] < -touch
        if not (leaves or enters):
            return True, k, pivots
        if pivots >= limit:
            return False, k, pivots
        if leaves:
            k = _leave(f, k, j, u)
            pivots += 1
        if enters:
            length = _split(f, k, cols, i)
            if length > INDEPENDENT:
                k = _enter(f, k, i, length, c[i], u)
                pivots += 1
            elif not leaves:
                return False, k, pivots


@kernel
def _solve_active(cols: Array, f: Factor, k: int, w: Array, u: Array) -> None:
    """Corrects u so that w (n,), its own, vanishes on the active rows, and solves for f.z anew;
    both from the rows themselves, because rotations leave 1e-15 in L and basis."""
    r = u.shape[0]
    for s in range(k):
        f.half[s] = -w[f.index[s]]
    cholesky.forward(f.L, k, f.half)
    for s in range(k):
        f.y[s] += f.half[s]
        f.z[s] = f.y[s]
        add(u, f.half[s], f.basis[s])
    cholesky.backward(f.L, k, f.z)
    goal = f.rest  # what the impulses still miss of the part of u along the basis
    goal[:] = 0.0
    for s in range(k):
        add(goal, f.y[s], f.basis[s])
    for s in range(k):
        i = f.index[s]
        for a in range(r):
            goal[a] -= f.z[s] * cols[a, i]
    for s in range(k):
        f.half[s] = dot(f.basis[s], goal)
    cholesky.backward(f.L, k, f.half)
    for s in range(k):
        f.z[s] += f.half[s]


@kernel
def _settle(
    cols: Array, c: Array, f: Factor, k: int, z: Array, active: States, u: Array, w: Array
) -> None:
    """u, w and the active z of the active set, the other z being as they are."""
    u[:] = 0.0
    for i in range(z.shape[0]):
        if z[i] != 0.0 and active[i] != ACTIVE:
            for a in range(u.shape[0]):
                u[a] += z[i] * cols[a, i]
    for s in range(k):
        f.y[s] = 0.0
    for _ in range(2):
        scan(cols, c, u, w)
        _solve_active(cols, f, k, w, u)
    for s in range(k):
        z[f.index[s]] = f.z[s]


@kernel
def _worst_row(
    w: Array, z: Array, lo: Array, hi: Array, active: States, ignored: States, touch: float
) -> int:
    """The row at rest whose condition fails most, or -1; alike to rounding, the first."""
    worst = touch
    found = -1
    for i in range(w.shape[0]):
        size = abs(w[i])
        if size > worst and active[i] != ACTIVE and ignored[i] == 0:
            if z[i] < hi[i] if w[i] < 0.0 else z[i] > lo[i]:
                worst = size * (1.0 + 1e-9)
                found = i
    return found


@kernel
def _drop_outside(
    cols: Array, c: Array, lo: Array, hi: Array, f: Factor, k: int, z: Array, active: States,
    u: Array, w: Array,
) -> int:  # fmt: skip
    """Lets active rows go, the one furthest outside its bounds first, until none is; new k."""
    while True:
        _settle(cols, c, f, k, z, active, u, w)
        worst = 0.0
        slot = -1
        for s in range(k):
            i = f.index[s]
            out = max(lo[i] - z[i], z[i] - hi[i])
            if out > worst:
                worst = out
                slot = s
        if slot < 0:
            return k
        i = f.index[slot]
        z[i] = lo[i] if z[i] < lo[i] else hi[i]
        active[i] = OPEN
        k = _leave(f, k, slot, u)


@kernel
def _longest_step(
    f: Factor, k: int, z: Array, lo: Array, hi: Array, dz: Array, own: float
) -> tuple[float, int]:
    """(step, slot): how far the driven row can go, at most `own`, and the slot whose bound ends
    it, or -1. On a tie the driven row wins: it then is independent of all that stay."""
    step = own
    found = -1
    for s in range(k):
        i = f.index[s]
        if dz[s] < -ROUND and z[i] - lo[i] < step * -dz[s]:
            step = max(z[i] - lo[i], 0.0) / -dz[s]
            found = s
        elif dz[s] > ROUND and hi[i] - z[i] < step * dz[s]:
            step = max(hi[i] - z[i], 0.0) / dz[s]
            found = s
    return step, found


@kernel
def _drive_row(
    d: int, sign: float, cols: Array, c: Array, lo: Array, hi: Array, f: Factor, k: int, z: Array,
    active: States, dz: Array, u: Array,
) -> tuple[bool, int, int]:  # fmt: skip
    """Moves z_d along `sign` until w_d is zero or z_d at its bound: (possible, k, pivots)."""
    r = u.shape[0]
    pivots = 0
    while True:
        length = _split(f, k, cols, d)
        free = length > INDEPENDENT
        for s in range(k):
            dz[s] = -sign * f.half[s]
        cholesky.backward(f.L, k, dz)
        w = c[d]
        for a in range(r):
            w += cols[a, d] * u[a]
        arrives = max(-sign * w, 0.0) / (length * length) if free else np.inf
        bound = hi[d] - z[d] if sign > 0.0 else z[d] - lo[d]
        step, slot = _longest_step(f, k, z, lo, hi, dz, min(arrives, bound))
        if step == np.inf:
            return False, k, pivots
        z[d] += sign * step
        for s in range(k):
            z[f.index[s]] += step * dz[s]
        if free:
            add(u, sign * step, f.rest)
        pivots += 1
        if slot >= 0:
            i = f.index[slot]
            z[i] = lo[i] if dz[slot] < 0.0 else hi[i]
            active[i] = OPEN
            unused = np.empty(r)  # u already is what it will be: the row's z is at its bound
            k = _leave(f, k, slot, unused)
        elif bound <= arrives:
            z[d] = hi[d] if sign > 0.0 else lo[d]
            return True, k, pivots
        else:
            k = _enter(f, k, d, length, 0.0, np.empty(r))
            active[d] = ACTIVE
            return True, k, pivots


@kernel
def drive(
    cols: Array, c: Array, lo: Array, hi: Array, f: Factor, k: int, z: Array, active: States,
    u: Array, w: Array, limit: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Dual active-set method from the active set of f: (code, k, pivots); z, u filled.

    z (n,) holds where inactive rows rest, `active` (n,) which rows f holds. See the head.
    """
    ignored = np.zeros(c.shape[0], np.int8)
    dz = np.empty(u.shape[0] + 1)
    k = _drop_outside(cols, c, lo, hi, f, k, z, active, u, w)
    pivots = 0
    while True:
        scan(cols, c, u, w)
        total = 1.0
        for i in range(z.shape[0]):
            total += abs(z[i])
        d = _worst_row(w, z, lo, hi, active, ignored, ROUND * total)
        if d < 0:
            return Code.SOLVED, k, pivots
        if pivots >= limit:
            return Code.PIVOT_LIMIT, k, pivots
        sign = 1.0 if w[d] < 0.0 else -1.0
        possible, k, steps = _drive_row(d, sign, cols, c, lo, hi, f, k, z, active, dz, u)
        pivots += steps
        if not possible:
            if abs(w[d]) > SLACK:
                return Code.INFEASIBLE, k, pivots
            ignored[d] = 1
        k = _drop_outside(cols, c, lo, hi, f, k, z, active, u, w)


@kernel
def _warm(
    cols: Array, c: Array, state: States, hi: Array, f: Factor, u: Array, z: Array
) -> int:
    """Fills f with the rows whose state is ACTIVE, as far as independent (`state` then says
    which), and z where a row rests at a bound; returns k."""
    k = 0
    for i in range(state.shape[0]):
        if state[i] == ACTIVE:
            length = _split(f, k, cols, i)
            if length > INDEPENDENT:
                k = _enter(f, k, i, length, c[i], u)
            else:
                state[i] = OPEN
        elif state[i] == HIGH or state[i] == LOW:
            z[i] = hi[i] if state[i] == HIGH else -hi[i]
            state[i] = OPEN
    return k


@kernel
def solve_rows(
    cols: Array, c: Array, limits: Array, state: States, z: Array, u: Array
) -> tuple[int, int, int]:
    """(code, pivots, what answered); fills z (n,) and u (r,).

    cols (r, n) unit or zero rows as columns; c (n,) of the order of one. The last len(limits)
    rows are bounded, |z| <= limit; all others have z >= 0. `state` (n,) holds a warm start
    (overwritten), or has no entries.
    """
    r, n = cols.shape
    f = new_factor(r)
    w = np.empty(n)
    boxes = limits.shape[0]
    z[:] = 0.0
    u[:] = 0.0
    k = 0
    warm = state.shape[0] == n and n > 0
    hi = np.empty(0)
    if boxes > 0:
        hi = np.full(n, np.inf)
        hi[n - boxes :] = limits
    if warm:
        k = _warm(cols, c, state, hi, f, u, z)
    pivots = 0
    if boxes == 0:
        done, k, pivots = pivot(cols, c, f, k, u, w, 3 * r + 8)
        if done:
            _solve_active(cols, f, k, w, u)
            for s in range(k):
                z[f.index[s]] = max(f.z[s], 0.0)
            return Code.SOLVED, pivots, WARM if warm and pivots == 0 else PIVOTED
        hi = np.full(n, np.inf)
    lo = np.zeros(n)
    for i in range(n - boxes, n):
        lo[i] = -hi[i]
    active = np.zeros(n, np.int8)
    for s in range(k):
        active[f.index[s]] = ACTIVE
    code, k, steps = drive(cols, c, lo, hi, f, k, z, active, u, w, 20 * (n + r) + 100)
    for i in range(n):
        z[i] = min(max(z[i], lo[i]), hi[i])
    return code, pivots + steps, WARM if warm and pivots + steps == 0 else DRIVEN


@kernel
def remainders(cols: Array, first: int, last: int, squares: Array) -> None:
    """squares[first:last] = squared lengths of those columns."""
    out = squares[first:last]
    out[:] = 0.0
    for a in range(cols.shape[0]):
        col = cols[a, first:last]
        for i in range(last - first):
            out[i] += col[i] * col[i]


@kernel
def eliminate(
    cols: Array, free: Array, first: int, last: int, basis: Array, size: int, y: Array,
    along: Array, picked: Indices, squares: Array,
) -> int:  # fmt: skip
    """Algorithm 2 on the columns first .. last - 1: picks independent ones, asks each for zero
    velocity, and takes their span out of all columns from `first` on. Returns the new size.

    basis (r, r) orthonormal rows, the first `size` given; y (r,): basis' y is the change of
    velocity that does it; along (r, m): part of each column along each basis row; picked (r,):
    column that gave it; free (m,): velocity along each column, kept up to date. Columns before
    `last` are of unit length or zero; squares (m,) is work.
    """
    r, m = cols.shape
    remainders(cols, first, last, squares)
    trust = 0.0
    fresh = True
    while size < r:
        p = first
        for i in range(first + 1, last):
            if squares[i] > squares[p]:
                p = i
        if p >= last:
            break
        # Lengths are kept by subtraction, which leaves rounding of what they were: measured
        # anew before that matters.
        if squares[p] <= trust and not fresh:
            remainders(cols, first, last, squares)
            fresh = True
            continue
        if not squares[p] > INDEPENDENT * INDEPENDENT:
            break
        if fresh:
            trust = 1e-6 * squares[p]
        fresh = False
        q = basis[size]
        for a in range(r):
            q[a] = cols[a, p]
        for k in range(size):
            add(q, -dot(basis[k], q), basis[k])
        length = np.sqrt(dot(q, q))
        for a in range(r):
            q[a] /= length
        _take_out(cols, q, first, along[size])
        y[size] = -free[p] / along[size, p]
        picked[size] = p
        share = along[size]
        for i in range(first, m):
            free[i] += y[size] * share[i]
        for i in range(first, last):
            squares[i] -= share[i] * share[i]
        squares[p] = 0.0
        size += 1
    return size


@kernel
def _take_out(cols: Array, q: Array, first: int, share: Array) -> None:
    """share = cols' q and cols -= q share', for the columns from `first` on."""
    m = cols.shape[1]
    for start in range(first, m, BLOCK):
        end = min(start + BLOCK, m)
        part = share[start:end]
        part[:] = 0.0
        for a in range(q.shape[0]):
            if q[a] != 0.0:
                add(part, q[a], cols[a, start:end])
        for a in range(q.shape[0]):
            if q[a] != 0.0:
                add(cols[a, start:end], -q[a], part)
