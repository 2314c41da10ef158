"""The linear system that held rows leave, compiled: solved for all columns at once, for one column,
and for one gradient.

The system is that of `system.py`:

    A dv - G' df = push        A: the mass, and what follows the velocity (curves)
    E dv         = speed       E: the held rows; G: E, and what follows their impulses (slopes)

With A = L L', unit rows E L^-T = C V (V orthonormal, by Gram-Schmidt with the largest remainder
first, until what remains is rounding: C is a lower triangle for the rows that were taken, and the
others depend on them), X^+ the left inverse of a matrix of full rank,

    Z  = ((G L^-T) V')^+ (G L^-T)
    dv = A^-1 push + (Z L^-1)' (C^-1 speed - (V L^-1) push)

Speeds are asked of the rows that were taken; where the step's velocity is unique, the others have
theirs then, too. Impulses are the least that do it. Without slopes Z is V. Columns at once take
dv = P push + Q speed, with P and Q made once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.derivatives.system import DEPENDENT_DIRECTION
from stiction.contact.problem.arrays import Array
from stiction.kernels.compile import lean
from stiction.kernels.dense import rows_dot
from stiction.kernels.linear import factorize
from stiction.kernels.packing import packed

Indices = NDArray[np.int64]


@packed
class Solved(NamedTuple):
    """The system, solved; at most `cap` rows."""

    inertia: Array  # (nv, nv) A
    upper: Array  # (nv, nv) L'
    last: Indices  # (nv,)
    lower: Array  # (nv, nv) L^-1
    raised: Array  # (nv, nv) its transpose
    rows: Array  # (cap, nv) what is left of E L^-T
    other: Array  # (cap, nv) G L^-T
    length: Array  # (cap,)
    basis: Array  # (nv, nv) V
    taken: Indices  # (nv,) the rows that V was made of
    share: Array  # (nv, nv) C'
    spare: Array  # (nv, cap) V (G L^-T)', then the left inverse of its transpose
    triangle: Array  # (nv, nv)
    pull: Array  # (nv, nv) V L^-1
    push: Array  # (nv, nv) Z L^-1
    by_push: Array  # (nv, nv) P
    by_speed: Array  # (nv, nv) Q', by the rows that were taken
    part: Array  # (2, nv)


def allocate_solved(nv: int, cap: int) -> Solved:
    """Room for so many rows."""
    square, tall = (nv, nv), (cap, nv)
    return Solved(
        np.zeros(square), np.zeros(square), np.zeros(nv, np.int64), np.zeros(square),
        np.zeros(square), np.zeros(tall), np.zeros(tall), np.zeros(cap), np.zeros(square),
        np.zeros(nv, np.int64), np.zeros(square), np.zeros((nv, cap)), np.zeros(square),
        np.zeros(square), np.zeros(square), np.zeros(square), np.zeros(square), np.zeros((2, nv)),
    )  # fmt: skip


@lean
def _left_inverse(m, k, matrix, triangle):
    """matrix (k, m) := the left inverse of its transpose C (m, k), as T^-1 Q' of C = Q T; False if
    the columns depend on each other. triangle (k, k): T."""
    for q in range(k):
        for p in range(q + 1):
            triangle[p, q] = 0.0
        whole = rows_dot(matrix, q, matrix, q, m)
        for _ in range(2):  # what little remains holds rounding of the rest: once more
            for p in range(q):
                along = rows_dot(matrix, p, matrix, q, m)
                triangle[p, q] += along
                for c in range(m):
                    matrix[q, c] -= along * matrix[p, c]
        size = rows_dot(matrix, q, matrix, q, m)
        if not size > (DEPENDENT_DIRECTION * DEPENDENT_DIRECTION) * whole:
            return False
        size = np.sqrt(size)
        triangle[q, q] = size
        for c in range(m):
            matrix[q, c] /= size
    for q in range(k - 1, -1, -1):
        for p in range(q + 1, k):
            along = triangle[q, p]
            for c in range(m):
                matrix[q, c] -= along * matrix[p, c]
        for c in range(m):
            matrix[q, c] /= triangle[q, q]
    return True


@lean
def _find_basis(m, s: Solved):
    """V of the unit rows s.rows, which are overwritten, with C of those that were taken; how many.
    spare[0]: what is left of each row."""
    nv, rows, basis, left = s.inertia.shape[0], s.rows, s.basis, s.spare
    for i in range(m):
        left[0, i] = 1.0
    size = 0
    while size < min(m, nv):
        best, which = DEPENDENT_DIRECTION * DEPENDENT_DIRECTION, -1
        for i in range(m):
            if left[0, i] > best:
                best, which = left[0, i], i
        if which < 0:
            break
        # What is left was reckoned, by differences: the row itself tells.
        length = rows_dot(rows, which, rows, which, nv)
        if not length > 0.25 * best:
            left[0, which] = length
            continue
        for j in range(nv):
            basis[size, j] = rows[which, j]
        for p in range(size):
            along = rows_dot(basis, p, basis, size, nv)
            for j in range(nv):
                basis[size, j] -= along * basis[p, j]
        length = np.sqrt(rows_dot(basis, size, basis, size, nv))
        for j in range(nv):
            basis[size, j] /= length
        s.taken[size], left[0, which] = which, 0.0
        for i in range(m):
            if left[0, i] > DEPENDENT_DIRECTION * DEPENDENT_DIRECTION:
                along = rows_dot(basis, size, rows, i, nv)
                left[0, i] -= along * along
                for j in range(nv):
                    rows[i, j] -= along * basis[size, j]
        size += 1
    return size


@lean
def _order_taken(k, held, s: Solved):
    """share[p, q] := C[q, p] of the rows that were taken, for p <= q: V along the unit rows."""
    nv = s.inertia.shape[0]
    for q in range(k):
        i = s.taken[q]
        for j in range(nv):
            s.rows[i, j] = held[i, j] / s.length[i]
        # A unit row is held / length divided by L; V L^-1 takes it as it is given.
        for p in range(q + 1):
            s.share[p, q] = rows_dot(s.pull, p, s.rows, i, nv)


@lean
def factor_inertia(s: Solved):
    """Factors s.inertia, and fills L^-1; whether it is positive definite."""
    nv, out = s.inertia.shape[0], s.lower
    if factorize(s.inertia, s.upper, s.last, 0.0) >= 0:
        return False
    # Row by row: what remains of a unit row is subtracted as a whole, not entry by entry.
    for j in range(nv):
        for c in range(nv):
            out[j, c] = 0.0
        out[j, j] = 1.0
    for j in range(nv):
        pivot = s.upper[j, j]
        for c in range(j + 1):
            out[j, c] /= pivot
        for i in range(j + 1, s.last[j] + 1):
            factor = s.upper[j, i]
            if factor != 0.0:
                for c in range(j + 1):
                    out[i, c] -= factor * out[j, c]
    for j in range(nv):
        for c in range(nv):
            s.raised[c, j] = out[j, c]
    return True


@lean
def _times_triangle(a, i, triangle, lower, out):
    """out[i] := a[i] times the triangle (nv, nv), `lower` or upper: L^-T divides rows of contacts,
    which have few entries, and no division waits for another."""
    nv = triangle.shape[0]
    for c in range(nv):
        out[i, c] = 0.0
    for j in range(nv):
        x = a[i, j]
        if x != 0.0:
            for c in range(0 if lower else j, j + 1 if lower else nv):
                out[i, c] += x * triangle[j, c]


@lean
def _take_slopes(m, k, along, s: Solved):
    """push := Z L^-1; whether there is one."""
    nv = s.inertia.shape[0]
    for i in range(m):
        _times_triangle(along, i, s.raised, False, s.other)
        for j in range(nv):
            s.other[i, j] /= s.length[i]
        for q in range(k):
            s.spare[q, i] = rows_dot(s.basis, q, s.other, i, nv)
    if not _left_inverse(m, k, s.spare, s.triangle):
        return False
    for q in range(k):  # Z, in the place of V, which is not read again
        for j in range(nv):
            s.basis[q, j] = 0.0
        for i in range(m):
            share = s.spare[q, i]
            for j in range(nv):
                s.basis[q, j] += share * s.other[i, j]
        _times_triangle(s.basis, q, s.lower, True, s.push)
    return True


@lean
def hold_rows(m, held, along, sloped, s: Solved):
    """Prepares s for the m first rows of E and G (cap, nv), A being factored; how many rows were
    taken, or -1 if there is no one answer. sloped: whether G is not E."""
    nv = s.inertia.shape[0]
    for i in range(m):
        _times_triangle(held, i, s.raised, False, s.rows)
        size = rows_dot(s.rows, i, s.rows, i, nv)
        s.length[i] = np.sqrt(size) if size > 0.0 else 1.0
        for j in range(nv):
            s.rows[i, j] /= s.length[i]
    k = _find_basis(m, s)
    for q in range(k):
        _times_triangle(s.basis, q, s.lower, True, s.pull)
        for j in range(nv):
            s.push[q, j] = s.pull[q, j]
    _order_taken(k, held, s)
    if sloped and not _take_slopes(m, k, along, s):
        return -1
    return k


@lean
def fill_products(k, s: Solved):
    """Fills P and Q, k rows having been taken."""
    nv = s.inertia.shape[0]
    for j in range(nv):
        for c in range(nv):
            s.by_push[j, c] = 0.0
    for i in range(nv):  # A^-1 = L^-T L^-1
        for j in range(i + 1):
            x = s.lower[i, j]
            if x != 0.0:
                for c in range(i + 1):
                    s.by_push[j, c] += x * s.lower[i, c]
    for j in range(nv):
        for q in range(k):
            share = s.push[q, j]
            for c in range(nv):
                s.by_push[j, c] -= share * s.pull[q, c]
    # Q' = C^-T (Z L^-1), from its last row to its first: C is a lower triangle.
    for q in range(k - 1, -1, -1):
        for j in range(nv):
            s.by_speed[q, j] = s.push[q, j]
        for p in range(q + 1, k):
            share = s.length[s.taken[p]] * s.share[q, p]
            for j in range(nv):
                s.by_speed[q, j] -= share * s.by_speed[p, j]
        size = s.share[q, q] * s.length[s.taken[q]]
        for j in range(nv):
            s.by_speed[q, j] /= size


@lean
def _times_inverse(x, s: Solved, out):
    """out (nv,) := A^-1 x."""
    nv = s.inertia.shape[0]
    for c in range(nv):
        out[c] = 0.0
    for j in range(nv):
        total = 0.0
        for c in range(j + 1):
            total += s.lower[j, c] * x[c]
        for c in range(j + 1):
            out[c] += total * s.lower[j, c]


@lean
def solve_forward(k, s: Solved, push, speed, out):
    """out (nv,) := dv for push (nv,) and the speeds (m,) asked of all held rows."""
    nv, part = s.inertia.shape[0], s.part[0]
    _times_inverse(push, s, out)
    for q in range(k):  # C^-1 speed
        i = s.taken[q]
        total = speed[i] / s.length[i]
        for p in range(q):
            total -= s.share[p, q] * part[p]
        part[q] = total / s.share[q, q]
    for q in range(k):
        along = part[q]
        for j in range(nv):
            along -= s.pull[q, j] * push[j]
        for j in range(nv):
            out[j] += along * s.push[q, j]


@lean
def solve_back(m, k, s: Solved, gradient, push, speed):
    """The transpose: gradients by push (nv,) and by the speeds of all m held rows, from that by dv
    (nv,)."""
    nv, part = s.inertia.shape[0], s.part[0]
    _times_inverse(gradient, s, push)
    for q in range(k):
        along = 0.0
        for j in range(nv):
            along += s.push[q, j] * gradient[j]
        part[q] = along
        for j in range(nv):
            push[j] -= along * s.pull[q, j]
    for i in range(m):
        speed[i] = 0.0
    for q in range(k - 1, -1, -1):  # C^-T
        total = part[q]
        for p in range(q + 1, k):
            total -= s.share[q, p] * part[p]
        part[q] = total / s.share[q, q]
        speed[s.taken[q]] = part[q] / s.length[s.taken[q]]


@lean
def multiply(a, n, b, columns, out):
    """out[:, :columns] := a[:, :n] b[:n, :columns]; four rows of b at a time, so that a row of
    `out` is read and written a quarter as often."""
    whole = n - n % 4
    for i in range(a.shape[0]):
        for c in range(columns):
            out[i, c] = 0.0
        for j in range(0, whole, 4):
            w, x, y, z = a[i, j], a[i, j + 1], a[i, j + 2], a[i, j + 3]
            for c in range(columns):
                out[i, c] += (w * b[j, c] + x * b[j + 1, c]) + (y * b[j + 2, c] + z * b[j + 3, c])
        for j in range(whole, n):
            w = a[i, j]
            for c in range(columns):
                out[i, c] += w * b[j, c]


@lean
def multiply_taken(k, s: Solved, b, columns, out):
    """out[:, :columns] += Q b[:, :columns], of the rows that were taken."""
    for i in range(s.by_speed.shape[1]):
        for q in range(k):
            x, at = s.by_speed[q, i], s.taken[q]
            for c in range(columns):
                out[i, c] += x * b[at, c]
