"""A Cholesky factor that follows a changing set of rows: append and delete in O(k^2).

L (cap, cap) is lower triangular, row by row; the leading k x k block is in use. Every function
works in place and returns plain numbers: nothing is allocated.
"""

from __future__ import annotations

import numpy as np

from stiction.kernels.compile import kernel


@kernel
def forward(L, k, y):
    """y := L^-1 y."""
    for i in range(k):
        row = L[i]
        total = y[i]
        for j in range(i):
            total -= row[j] * y[j]
        y[i] = total / row[i]


@kernel
def backward(L, k, y):
    """y := L'^-1 y."""
    for i in range(k - 1, -1, -1):
        row = L[i]
        value = y[i] / row[i]
        y[i] = value
        for j in range(i):
            y[j] -= row[j] * value


@kernel
def append(L, k, y, pivot):
    """Adds the row (y, sqrt(pivot)): y = L^-1 a for the new column a, pivot > 0 its Schur
    complement."""
    row = L[k]
    for j in range(k):
        row[j] = y[j]
    row[k] = np.sqrt(pivot)


@kernel
def delete(L, k, slot):
    """Removes row and column `slot`; Givens rotations restore the triangle."""
    for i in range(slot, k - 1):
        above = L[i]
        below = L[i + 1]
        for j in range(i + 2):
            above[j] = below[j]
    for i in range(slot, k - 1):
        a = L[i, i]
        b = L[i, i + 1]
        r = np.hypot(a, b)
        c = a / r
        s = b / r
        L[i, i] = r
        for t in range(i + 1, k - 1):
            p = L[t, i]
            q = L[t, i + 1]
            L[t, i] = c * p + s * q
            L[t, i + 1] = c * q - s * p
