"""Factors of a symmetric matrix kept as a skyline, eliminated from the last row to the first.

Row k of the lower part is kept from column first[k] to the diagonal: entry (k, j) is A[row[k] + j],
so that rows lie one after the other without what is left of the skyline. Eliminating the last row
first means: leaves of a kinematic tree before their ancestors, and then a branch never fills
another one; bodies that nothing couples stay apart. All loops run along rows (`runs.py`).
A = U D U', kept as rows of D U'.
"""

from __future__ import annotations

from stiction.kernels import runs
from stiction.kernels.block import less_dot
from stiction.kernels.compile import kernel


@kernel
def close_skyline(first):
    """Widens `first` (n,) to what elimination fills."""
    for k in range(first.shape[0] - 1, -1, -1):
        for i in range(first[k] + 1, k):
            first[i] = min(first[i], first[k])


@kernel
def lay_out(first, row):
    """row (n,) := where the rows of a skyline lie, one after the other; the entries they take."""
    total = 0
    for k in range(first.shape[0]):
        row[k] = total - first[k]
        total += k + 1 - first[k]
    return total


@kernel
def factor_skyline(A, row, first):
    """Factors A in place; returns -1, or the row without a positive pivot.

    The diagonal is left with the pivots' inverses: a division costs as much as ten products.
    """
    for k in range(first.shape[0] - 1, -1, -1):
        at = row[k]
        pivot = A[at + k]
        if not pivot > 0.0:
            return k
        inverse = 1.0 / pivot
        A[at + k] = inverse
        for i in range(first[k], k):
            factor = A[at + i] * inverse
            if factor != 0.0:
                to = row[i]
                far = first[k]
                runs.take_scaled(A, to + far, factor, A, at + far, i + 1 - far)
    return -1


@kernel
def solve_skyline(A, row, first, y):
    """y := A^-1 y, of the factored A."""
    for k in range(y.shape[0] - 1, -1, -1):
        if y[k] != 0.0:
            at = row[k]
            share = y[k] * A[at + k]
            runs.take_scaled(y, first[k], share, A, at + first[k], k - first[k])
    for k in range(y.shape[0]):
        at, far = row[k], first[k]
        y[k] = less_dot(y[k], A, at + far, y, far, k - far) * A[at + k]
