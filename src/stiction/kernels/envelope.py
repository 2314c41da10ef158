"""Factors of a square matrix within its envelope, eliminated from the last row to the first.

Row k of the lower part is kept from column first[k] to the diagonal. Eliminating the last row
first means: leaves of a kinematic tree before their ancestors, and then a branch never fills
another one; bodies that do not touch stay apart. All loops run along rows, whose sums side by
side the compiler turns into vector instructions.

    symmetric     lower part only:  A = U D U',  kept as rows of D U'
    any           both parts, no pivoting: for matrices close to a symmetric positive one
"""

from __future__ import annotations

from stiction.kernels.compile import kernel


@kernel
def close_envelope(first):
    """Widens `first` (n,) to what elimination fills."""
    for k in range(first.shape[0] - 1, -1, -1):
        for i in range(first[k] + 1, k):
            first[i] = min(first[i], first[k])


@kernel
def factor_symmetric(A, first):
    """Factors A (n, n) in its lower part; returns -1, or the row without a positive pivot.

    The diagonal is left with the pivots' inverses: a division costs as much as ten products.
    """
    for k in range(A.shape[0] - 1, -1, -1):
        pivot = A[k, k]
        if not pivot > 0.0:
            return k
        inverse = 1.0 / pivot
        A[k, k] = inverse
        for i in range(first[k], k):
            factor = A[k, i] * inverse
            if factor != 0.0:
                for j in range(first[k], i + 1):
                    A[i, j] -= factor * A[k, j]
    return -1


@kernel
def solve_symmetric(A, first, y):
    """y := A^-1 y, of the factored A."""
    for k in range(y.shape[0] - 1, -1, -1):
        if y[k] != 0.0:
            share = y[k] * A[k, k]
            for i in range(first[k], k):
                y[i] -= share * A[k, i]
    for k in range(y.shape[0]):
        total = y[k]
        for i in range(first[k], k):
            total -= A[k, i] * y[i]
        y[k] = total * A[k, k]


@kernel
def factor_any(A, first):
    """Factors A (n, n), both parts, from first[k] on; returns -1, or the row without a pivot.
    The diagonal is left with the pivots' inverses."""
    for k in range(A.shape[0] - 1, -1, -1):
        pivot = A[k, k]
        if not abs(pivot) > 0.0:
            return k
        inverse = 1.0 / pivot
        A[k, k] = inverse
        for i in range(first[k], k):
            factor = A[i, k] * inverse
            A[i, k] = factor
            if factor != 0.0:
                for j in range(first[k], k):
                    A[i, j] -= factor * A[k, j]
    return -1


@kernel
def solve_any(A, first, y):
    """y := A^-1 y, of A factored by `factor_any`."""
    n = y.shape[0]
    for k in range(n - 1, -1, -1):
        value = y[k]
        if value != 0.0:
            for i in range(first[k], k):
                y[i] -= value * A[i, k]
    for k in range(n):
        total = y[k]
        for i in range(first[k], k):
            total -= A[k, i] * y[i]
        y[k] = total * A[k, k]
