"""Inner products. In four partial sums: one alone waits for each addition to finish.

Rows may be named by array and index instead of being sliced: in a loop, a slice costs two
atomic reference counts, more than a short product.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import leaf

Array = NDArray[np.float64]


@leaf
def dot(a: Array, b: Array) -> float:
    """a . b"""
    n = a.shape[0]
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for c in range(0, n - 3, 4):
        s0 += a[c] * b[c]
        s1 += a[c + 1] * b[c + 1]
        s2 += a[c + 2] * b[c + 2]
        s3 += a[c + 3] * b[c + 3]
    for c in range(n - n % 4, n):
        s0 += a[c] * b[c]
    return (s0 + s1) + (s2 + s3)


@leaf
def row_dot(rows: Array, i: int, b: Array) -> float:
    """rows[i] . b"""
    n = b.shape[0]
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for c in range(0, n - 3, 4):
        s0 += rows[i, c] * b[c]
        s1 += rows[i, c + 1] * b[c + 1]
        s2 += rows[i, c + 2] * b[c + 2]
        s3 += rows[i, c + 3] * b[c + 3]
    for c in range(n - n % 4, n):
        s0 += rows[i, c] * b[c]
    return (s0 + s1) + (s2 + s3)


@leaf
def rows_dot(a: Array, i: int, b: Array, j: int, n: int) -> float:
    """a[i] . b[j] over their first n entries."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for c in range(0, n - 3, 4):
        s0 += a[i, c] * b[j, c]
        s1 += a[i, c + 1] * b[j, c + 1]
        s2 += a[i, c + 2] * b[j, c + 2]
        s3 += a[i, c + 3] * b[j, c + 3]
    for c in range(n - n % 4, n):
        s0 += a[i, c] * b[j, c]
    return (s0 + s1) + (s2 + s3)
