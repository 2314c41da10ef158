"""The linear system of held rows some of which give way, compiled: solved for all columns at once,
for one column, and for one gradient.

    A dv - G' df          = push        A: the mass, and what follows the velocity (curves)
    E dv + C df           = speed       E: rows that give way, by C; G: E, and what follows their
                                        impulses (slopes)
    H dv                  = hard        H: rows that do not, which nothing follows

Rows that give way are as many as smoothed contacts have, and go into the inertia; of the others
those are taken that do not depend on each other (`held_system.py`), and H is theirs:

    [A + G' C^-1 E   -H'] [dv    ]   [push + G' C^-1 speed]
    [H                0 ] [impulse] = [hard                ]

It is factored by Gauss, the largest entry of a column first; coordinates are divided by the root of
their inertia, rows of H by their length, so that units do not matter. C may not be too small: of A,
C^-1 leaves as many digits as C has, over inverse inertias. A column that has no entry left ends it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.derivatives.held_rows import Held, Size
from stiction.contact.derivatives.held_system import Solved, choose_rows, factor_inertia
from stiction.contact.derivatives.system import DEPENDENT_RESPONSE
from stiction.contact.problem.arrays import Array
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.packing import packed
from stiction.kernels.panel import add_scaled, padded
from stiction.kernels.vectors import LANES

Indices = NDArray[np.int64]


@packed
class Softened(NamedTuple):
    """The system, factored; n = nv + the hard rows that were taken."""

    factor: Array  # (2 nv, 2 nv) both triangles; padded, and a vector more
    pivot: Indices  # (2 nv,) the row that each one was exchanged with
    scale: Array  # (nv,) one over the root of each inertia
    right: Array  # (2 nv, c) columns at once; padded
    column: Array  # (2 nv,) one column


def allocate_softened(nv: int, columns: int) -> Softened:
    """Room for so many columns."""
    n = 2 * nv
    return Softened(
        np.zeros((n, padded(n) + LANES)), np.zeros(n, np.int64), np.zeros(nv),
        np.zeros((n, padded(columns))), np.zeros(n),
    )  # fmt: skip


@lean_leaf
def gives_way(h: Held):
    """Whether any held row does."""
    return h.size[Size.HELD] > h.size[Size.HARD]


@lean
def _fill(k, h: Held, s: Solved, z: Softened):
    """The matrix, k hard rows having been taken."""
    nv, matrix, scale = z.scale.shape[0], z.factor, z.scale
    wide, n = matrix.shape[1], nv + k
    for j in range(n):
        for c in range(wide):
            matrix[j, c] = 0.0
    for j in range(nv):
        scale[j] = 1.0 / np.sqrt(s.inertia[j, j])
        for c in range(nv):
            matrix[j, c] = s.inertia[j, c]
    long, count = h.held.shape[1], padded(nv)
    for a in range(h.size[Size.HARD], h.size[Size.HELD]):
        for j in range(nv):
            along = h.along[a, j]
            if along != 0.0:
                add_scaled(matrix, j * wide, along / h.soft[a], h.held, a * long, count)
    for j in range(nv):
        for c in range(nv):
            matrix[j, c] *= scale[j] * scale[c]
    for q in range(k):
        a = s.taken[q]
        for c in range(nv):
            entry = h.held[a, c] * scale[c] / s.length[a]
            matrix[nv + q, c], matrix[c, nv + q] = entry, -entry


@lean
def _factor(n, z: Softened):
    """L and U of the rows exchanged, in the place of the matrix; whether there is one answer."""
    matrix, wide = z.factor, z.factor.shape[1]
    for c in range(n):
        best, largest = c, abs(matrix[c, c])
        for i in range(c + 1, n):
            if abs(matrix[i, c]) > largest:
                best, largest = i, abs(matrix[i, c])
        if not largest > DEPENDENT_RESPONSE:
            return False
        z.pivot[c] = best
        if best != c:
            for j in range(n):
                matrix[c, j], matrix[best, j] = matrix[best, j], matrix[c, j]
        inverse, count = 1.0 / matrix[c, c], padded(n - c - 1)
        for i in range(c + 1, n):
            if matrix[i, c] != 0.0:
                matrix[i, c] *= inverse
                add_scaled(
                    matrix, i * wide + c + 1, -matrix[i, c], matrix, c * wide + c + 1, count
                )  # fmt: skip
    return True


@lean
def hold_softly(h: Held, s: Solved, z: Softened):
    """Prepares z for the rows of E and G, the inertia being filled; how many hard rows were taken,
    or -1 if there is no one answer."""
    k, hard = 0, h.size[Size.HARD]
    if hard > 0:
        if not factor_inertia(s):
            return -1
        k = choose_rows(hard, h.held, s)
    _fill(k, h, s, z)
    return k if _factor(s.inertia.shape[0] + k, z) else -1


@lean
def solve_columns(n, columns, z: Softened):
    """z.right[:n, :columns] := the answer to it; columns is a multiple of `LANES`."""
    matrix, right, wide = z.factor, z.right, z.right.shape[1]
    for c in range(n):
        best = z.pivot[c]
        if best != c:
            for k in range(columns):
                right[c, k], right[best, k] = right[best, k], right[c, k]
    for c in range(n):
        for i in range(c + 1, n):
            if matrix[i, c] != 0.0:
                add_scaled(right, i * wide, -matrix[i, c], right, c * wide, columns)
    for c in range(n - 1, -1, -1):
        inverse = 1.0 / matrix[c, c]
        for k in range(columns):
            right[c, k] *= inverse
        for i in range(c):
            if matrix[i, c] != 0.0:
                add_scaled(right, i * wide, -matrix[i, c], right, c * wide, columns)


@lean
def solve_softly(k, h: Held, s: Solved, z: Softened, push, speed, out):
    """out (nv,) := dv for push (nv,) and the speeds (m,) asked of all held rows, k hard ones having
    been taken."""
    nv, x, matrix, scale = out.shape[0], z.column, z.factor, z.scale
    n = nv + k
    for j in range(nv):
        x[j] = push[j]
    for a in range(h.size[Size.HARD], h.size[Size.HELD]):
        asked = speed[a] / h.soft[a]
        for j in range(nv):
            x[j] += asked * h.along[a, j]
    for j in range(nv):
        x[j] *= scale[j]
    for q in range(k):
        x[nv + q] = speed[s.taken[q]] / s.length[s.taken[q]]
    for c in range(n):
        x[c], x[z.pivot[c]] = x[z.pivot[c]], x[c]
    for i in range(n):
        for c in range(i):
            x[i] -= matrix[i, c] * x[c]
    for i in range(n - 1, -1, -1):
        for c in range(i + 1, n):
            x[i] -= matrix[i, c] * x[c]
        x[i] /= matrix[i, i]
    for j in range(nv):
        out[j] = scale[j] * x[j]


@lean
def solve_softly_back(k, h: Held, s: Solved, z: Softened, gradient, push, speed):
    """The transpose: gradients by push (nv,) and by the speeds of all held rows, from that by dv
    (nv,)."""
    nv, x, matrix, scale = push.shape[0], z.column, z.factor, z.scale
    n = nv + k
    for j in range(nv):
        x[j] = scale[j] * gradient[j]
    for q in range(k):
        x[nv + q] = 0.0
    for i in range(n):
        x[i] /= matrix[i, i]
        for c in range(i + 1, n):
            x[c] -= matrix[i, c] * x[i]
    for i in range(n - 1, -1, -1):
        for c in range(i):
            x[c] -= matrix[i, c] * x[i]
    for c in range(n - 1, -1, -1):
        x[c], x[z.pivot[c]] = x[z.pivot[c]], x[c]
    for j in range(nv):
        push[j] = scale[j] * x[j]
    for a in range(h.size[Size.HELD]):
        speed[a] = 0.0
    for q in range(k):
        speed[s.taken[q]] = x[nv + q] / s.length[s.taken[q]]
    for a in range(h.size[Size.HARD], h.size[Size.HELD]):
        total = 0.0
        for j in range(nv):
            total += h.along[a, j] * push[j]
        speed[a] = total / h.soft[a]
