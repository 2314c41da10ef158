"""The linear system that held rows leave, compiled: solved for all columns at once, for one column,
and for one gradient.

The system is that of `system.py`:

    A dv - G' df = push        A: the mass, and what follows the velocity (curves)
    E dv         = speed       E: the held rows; G: E, and what follows their impulses (slopes)

With A = L L' (L an upper triangle: of a tree of bodies, whose leaves go first, L and L^-1 are as
sparse as the tree), unit rows E L^-T = C V (V orthonormal, by Gram-Schmidt with the largest
remainder first, until what remains is rounding: C is a lower triangle for the rows that were taken,
and the others depend on them), X^+ the left inverse of a matrix of full rank,

    Z  = ((G L^-T) V')^+ (G L^-T)
    dv = A^-1 push + (Z L^-1)' (C^-1 speed - (V L^-1) push)

Speeds are asked of the rows that were taken; where the step's velocity is unique, the others have
theirs then, too. Impulses are the least that do it. Without slopes Z is V. Columns at once take
dv = P push + Q speed, with P and Q made once. Matrices with nv columns have as many more, of zeros,
as vector instructions want (`kernels/panel.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.derivatives.system import DEPENDENT_DIRECTION
from stiction.contact.problem.arrays import Array
from stiction.kernels.compile import lean
from stiction.kernels.dense import rows_dot
from stiction.kernels.packing import packed
from stiction.kernels.panel import add_product, add_scaled, clear, dot, padded, put_scaled
from stiction.kernels.vectors import LANES

Indices = NDArray[np.int64]

SHORTENED = 1e-2
"""Square of what remains of a unit row, below which it is made orthogonal once more."""


@packed
class Solved(NamedTuple):
    """The system, solved; at most `cap` rows."""

    inertia: Array  # (nv, nv) A
    factor: Array  # (nv, nv) L'
    root: Array  # (nv, nv) L^-1
    turned: Array  # (nv, nv) its transpose
    inverse: Array  # (nv, nv) A^-1
    rows: Array  # (cap, nv) what is left of E L^-T
    other: Array  # (cap, nv) what V takes of each row, then G L^-T
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
    begin: Indices  # (nv,) where rows of L' and of L^-T begin, down to a multiple of LANES


def allocate_solved(nv: int, cap: int) -> Solved:
    """Room for so many rows."""
    square, tall = (nv, padded(nv)), (cap, padded(nv))
    return Solved(
        np.zeros(square), np.zeros(square), np.zeros(square), np.zeros(square), np.zeros(square),
        np.zeros(tall), np.zeros(tall), np.zeros(cap), np.zeros(square), np.zeros(nv, np.int64),
        np.zeros(square), np.zeros((nv, cap)), np.zeros(square), np.zeros(square),
        np.zeros(square), np.zeros(square), np.zeros(square), np.zeros((2, nv)),
        np.zeros(nv, np.int64),
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
    spare[0]: what is left of each row; other: what V took of each."""
    nv, wide = s.inertia.shape[0], s.inertia.shape[1]
    rows, basis, left, other = s.rows, s.basis, s.spare, s.other
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
        length = dot(rows, which * wide, rows, which * wide, wide)
        if not length > 0.25 * best:
            left[0, which] = length
            continue
        at = size * wide
        if length < SHORTENED:  # what little remains holds rounding of the rest
            for p in range(size):
                along = dot(basis, p * wide, rows, which * wide, wide)
                other[which, p] += along
                add_scaled(rows, which * wide, -along, basis, p * wide, wide)
            length = dot(rows, which * wide, rows, which * wide, wide)
        length = np.sqrt(length)
        put_scaled(basis, at, 1.0 / length, rows, which * wide, wide)
        for p in range(size):
            s.share[p, size] = other[which, p]
        s.taken[size], s.share[size, size], left[0, which] = which, length, 0.0
        for i in range(m):
            if left[0, i] > DEPENDENT_DIRECTION * DEPENDENT_DIRECTION:
                along = dot(basis, at, rows, i * wide, wide)
                left[0, i] -= along * along
                other[i, size] = along
                add_scaled(rows, i * wide, -along, basis, at, wide)
        size += 1
    return size


@lean
def factor_inertia(s: Solved):
    """Factors s.inertia, and fills L^-1 and its transpose; whether it is positive definite. Right
    of its diagonal, L' has numbers without meaning."""
    nv, wide = s.inertia.shape[0], s.inertia.shape[1]
    factor, turned, root, begin = s.factor, s.turned, s.root, s.begin
    clear(nv, turned)
    clear(nv, root)
    for j in range(nv):
        put_scaled(factor, j * wide, 1.0, s.inertia, j * wide, wide)
        first = 0
        while first < j and factor[j, first] == 0.0:
            first += 1
        begin[j] = first - first % LANES
    for j in range(nv - 1, -1, -1):
        if not factor[j, j] > 0.0:
            return False
        scale, first = 1.0 / np.sqrt(factor[j, j]), begin[j]
        for c in range(first, j + 1):
            factor[j, c] *= scale
        for i in range(first, j):
            along = -factor[j, i]
            if along != 0.0:
                begin[i] = min(begin[i], first)
                count = i - i % LANES + LANES - first
                add_scaled(factor, i * wide + first, along, factor, j * wide + first, count)
    for j in range(nv):
        scale, first = 1.0 / factor[j, j], begin[j]
        for i in range(first, j):
            along = -scale * factor[j, i]
            if along != 0.0:
                at = begin[i]
                begin[j] = min(begin[j], at)
                count = i - i % LANES + LANES - at
                add_scaled(turned, j * wide + at, along, turned, i * wide + at, count)
        turned[j, j] = scale
        for c in range(begin[j], j + 1):
            root[c, j] = turned[j, c]
    return True


@lean
def _divide(m, rows, s: Solved, out):
    """out[:m] := rows[:m] L^-T; a contact has few numbers in its rows."""
    nv, wide = s.inertia.shape[0], s.inertia.shape[1]
    clear(m, out)
    for i in range(m):
        for j in range(nv):
            if rows[i, j] != 0.0:
                at = s.begin[j]
                count = j - j % LANES + LANES - at
                add_scaled(out, i * wide + at, rows[i, j], s.turned, j * wide + at, count)


@lean
def _take_slopes(m, k, along, s: Solved):
    """push := Z L^-1; whether there is one."""
    nv, wide = s.inertia.shape[0], s.inertia.shape[1]
    _divide(m, along, s, s.other)
    for i in range(m):
        put_scaled(s.other, i * wide, 1.0 / s.length[i], s.other, i * wide, wide)
        for q in range(k):
            s.spare[q, i] = dot(s.basis, q * wide, s.other, i * wide, wide)
    if not _left_inverse(m, k, s.spare, s.triangle):
        return False
    clear(k, s.basis)  # Z, in the place of V, which is not read again
    add_product(1.0, k, m, wide, s.spare, 0, s.spare.shape[1], 1, s.other, s.basis)
    clear(k, s.push)
    add_product(1.0, k, nv, wide, s.basis, 0, wide, 1, s.root, s.push)
    return True


@lean
def choose_rows(m, held, s: Solved):
    """V and C of the m first rows of E (cap, nv), A being factored; how many rows were taken."""
    wide = s.inertia.shape[1]
    _divide(m, held, s, s.rows)
    for i in range(m):
        size = dot(s.rows, i * wide, s.rows, i * wide, wide)
        s.length[i] = np.sqrt(size) if size > 0.0 else 1.0
        put_scaled(s.rows, i * wide, 1.0 / s.length[i], s.rows, i * wide, wide)
    return _find_basis(m, s)


@lean
def hold_rows(m, held, along, sloped, s: Solved):
    """Prepares s for the m first rows of E and G (cap, nv), A being factored; how many rows were
    taken, or -1 if there is no one answer. sloped: whether G is not E."""
    nv, wide = s.inertia.shape[0], s.inertia.shape[1]
    k = choose_rows(m, held, s)
    clear(k, s.pull)
    add_product(1.0, k, nv, wide, s.basis, 0, wide, 1, s.root, s.pull)
    if sloped:
        return k if _take_slopes(m, k, along, s) else -1
    for q in range(k):
        put_scaled(s.push, q * wide, 1.0, s.pull, q * wide, wide)
    return k


@lean
def fill_inverse(s: Solved):
    """A^-1 = L^-T L^-1; row c of L^-1 begins with its column c."""
    nv, wide = s.inertia.shape[0], s.inertia.shape[1]
    clear(nv, s.inverse)
    for j in range(nv):
        for c in range(s.begin[j], j + 1):
            along, begin = s.turned[j, c], c - c % LANES
            if along != 0.0:
                add_scaled(
                    s.inverse, j * wide + begin, along, s.root, c * wide + begin, wide - begin
                )


@lean
def fill_by_push(k, s: Solved):
    """Fills P, k rows having been taken, and the inverse being filled."""
    nv, wide = s.inertia.shape[0], s.inertia.shape[1]
    for j in range(nv):
        put_scaled(s.by_push, j * wide, 1.0, s.inverse, j * wide, wide)
    add_product(-1.0, nv, k, wide, s.push, 0, 1, wide, s.pull, s.by_push)


@lean
def fill_by_speed(k, s: Solved):
    """Q' = C^-T (Z L^-1), from its last row to its first: C is a lower triangle."""
    wide = s.inertia.shape[1]
    for q in range(k - 1, -1, -1):
        put_scaled(s.by_speed, q * wide, 1.0, s.push, q * wide, wide)
        for p in range(q + 1, k):
            share = s.length[s.taken[p]] * s.share[q, p]
            add_scaled(s.by_speed, q * wide, -share, s.by_speed, p * wide, wide)
        size = s.share[q, q] * s.length[s.taken[q]]
        put_scaled(s.by_speed, q * wide, 1.0 / size, s.by_speed, q * wide, wide)


@lean
def _times_inverse(x, s: Solved, out):
    """out (nv,) := A^-1 x."""
    nv, part = s.inertia.shape[0], s.part[1]
    for c in range(nv):
        part[c] = 0.0
    for j in range(nv):
        for c in range(j + 1):
            part[c] += s.turned[j, c] * x[j]
    for j in range(nv):
        total = 0.0
        for c in range(j + 1):
            total += s.turned[j, c] * part[c]
        out[j] = total


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
def add_pushed(s: Solved, push, columns, out):
    """out[:, :columns] += P push[:, :columns]; columns is a multiple of `panel.LANES`."""
    nv, wide = s.inertia.shape[0], s.inertia.shape[1]
    add_product(1.0, nv, nv, columns, s.by_push, 0, wide, 1, push, out)


@lean
def add_wanted(k, s: Solved, speed, columns, out):
    """out[:, :columns] += Q speed[:k, :columns], of the rows that were taken, in their order."""
    nv, wide = s.inertia.shape[0], s.inertia.shape[1]
    add_product(1.0, nv, k, columns, s.by_speed, 0, 1, wide, speed, out)
