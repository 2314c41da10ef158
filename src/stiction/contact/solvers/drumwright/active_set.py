"""The active set of Drumwright's rows: an orthonormal basis and the factor that goes with it.

With unit rows n_i and the change of velocity u that they bring about (`pivoting.py`),

    N_active = L Q,   L lower triangular, Q orthonormal (k, r),   u = Q' y,   L y = -c_active,

so that L is the Cholesky factor of N_active N_active'. Entering projects the row on Q (O(k r));
what remains of it is the rank test. Leaving rotates L, Q and y. Then L' z = y.

Rows are stored as columns, `cols` (r, n): every pass is then a sum of r long vectors, which
processors do four at a time without changing the order of any sum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array
from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.kernels.dense import dot

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


OPEN, ACTIVE, HIGH, LOW = 0, 1, 2, 3
"""State of a row in a warm start: z at rest (0), w = 0, z at its upper or lower bound."""


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
def project(basis: Array, work: Array, k: int, cols: Array, i: int) -> float:
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
def enter(
    index: Indices, lower: Array, basis: Array, work: Array, k: int,
    i: int, length: float, c: float, u: Array,
) -> int:  # fmt: skip
    """Makes row i active, after `project`; u is changed so that its w, c + n_i . u, vanishes.
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
def leave(
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
def refine(
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
        linear.forward(lower, k, work[HALF])
        for s in range(k):
            work[Y, s] += work[HALF, s]
            work[Z, s] = work[Y, s]
            for a in range(r):
                u[a] += work[HALF, s] * basis[s, a]
        linear.backward(lower, k, work[Z])
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
        linear.backward(lower, k, work[HALF])
        for s in range(k):
            work[Z, s] += work[HALF, s]
