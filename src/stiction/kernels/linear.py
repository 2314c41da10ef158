"""Dense linear algebra for small systems: elimination, Cholesky factors, orthogonal bases, sets.

Own loops rather than LAPACK: a threaded BLAS wakes its workers for a few hundred flops, and on
a busy machine waits milliseconds for them where the work is two microseconds. All work in place
and return plain numbers.

    solve_dense                        any square matrix, by elimination with row exchanges
    factorize, divide, undivide, solve A = L L' kept as U = L', whose rows end at `last`: with many
                                       bodies A is block diagonal, and loops that skip zeros do no
                                       more than that asks for
    forward, backward, append, delete  a Cholesky factor L that follows a changing set of rows, in
                                       O(k^2) each; the leading k x k block of L is in use
    project_out, orthonormal_rows      Gram-Schmidt
    root, merge                        sets that grow together (union-find)

Other factors are elsewhere because what they factorize is stored otherwise:

    sparse.py                blocks by nodes of a graph, in the order of least degree: heaps, nearly
                             empty, symmetric or not
    skyline.py               rows of a lower triangle end to end, the last eliminated first: the
                             inertia of kinematic trees, whose branches then do not fill each other
    pivoting.py              the inverse of an LCP's basis, updated by a row and a column per pivot
    articulated/assemble.py  6 x 6 at each joint, the largest pivot first: rows of a loop may depend
                             on others, and are then left out
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel, lean
from stiction.kernels.dense import dot, row_dot

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


# Elimination


@lean
def solve_dense(A: Array, B: Array, m: int, least: float) -> bool:
    """B[:m] := A[:m, :m]^-1 B[:m] for all columns of B, A overwritten; False if a pivot does not
    exceed `least`, and B is then of no use."""
    columns = B.shape[1]
    for k in range(m):
        best = k
        for i in range(k + 1, m):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if not abs(A[best, k]) > least:
            return False
        if best != k:
            for j in range(k, m):
                A[k, j], A[best, j] = A[best, j], A[k, j]
            for c in range(columns):
                B[k, c], B[best, c] = B[best, c], B[k, c]
        for i in range(k + 1, m):
            factor = A[i, k] / A[k, k]
            if factor != 0.0:
                for j in range(k + 1, m):
                    A[i, j] -= factor * A[k, j]
                for c in range(columns):
                    B[i, c] -= factor * B[k, c]
    for k in range(m - 1, -1, -1):
        for c in range(columns):
            total = B[k, c]
            for j in range(k + 1, m):
                total -= A[k, j] * B[j, c]
            B[k, c] = total / A[k, k]
    return True


# Cholesky factors: of a whole matrix


@lean
def factorize(matrix: Array, upper: Array, last: Indices, least: float) -> int:
    """Fills `upper` (n, n) and `last` (n,), the last nonzero of each of its rows; returns -1, or
    the row that has no pivot.

    A pivot must exceed `least` of its diagonal entry, what rounding alone would leave.
    """
    n = matrix.shape[0]
    for j in range(n):
        row = upper[j]
        last[j] = j
        for k in range(n):
            row[k] = matrix[j, k] if k >= j else 0.0
            if row[k] != 0.0:
                last[j] = k
        for i in range(j):
            factor = upper[i, j]
            if factor != 0.0:
                above = upper[i]
                for k in range(j, last[i] + 1):
                    row[k] -= factor * above[k]
                last[j] = max(last[j], last[i])
        if not row[j] > least * matrix[j, j]:
            return j
        pivot = np.sqrt(row[j])
        for k in range(j, last[j] + 1):
            row[k] /= pivot
    return -1


@lean
def divide(upper: Array, last: Indices, y: Array) -> None:
    """y := L^-1 y."""
    for j in range(y.shape[0]):
        if y[j] != 0.0:
            row = upper[j]
            value = y[j] / row[j]
            y[j] = value
            for k in range(j + 1, last[j] + 1):
                y[k] -= value * row[k]


@lean
def undivide(upper: Array, last: Indices, y: Array) -> None:
    """y := L'^-1 y."""
    for j in range(y.shape[0] - 1, -1, -1):
        row = upper[j]
        total = y[j]
        for k in range(j + 1, last[j] + 1):
            total -= row[k] * y[k]
        y[j] = total / row[j]


@lean
def solve(upper: Array, last: Indices, y: Array) -> None:
    """y := A^-1 y."""
    divide(upper, last, y)
    undivide(upper, last, y)


# Cholesky factors: of rows that come and go


@lean
def forward(L: Array, k: int, y: Array) -> None:
    """y := L^-1 y."""
    for i in range(k):
        row = L[i]
        total = y[i]
        for j in range(i):
            total -= row[j] * y[j]
        y[i] = total / row[i]


@lean
def backward(L: Array, k: int, y: Array) -> None:
    """y := L'^-1 y."""
    for i in range(k - 1, -1, -1):
        row = L[i]
        value = y[i] / row[i]
        y[i] = value
        for j in range(i):
            y[j] -= row[j] * value


@lean
def append(L: Array, k: int, y: Array, pivot: float) -> None:
    """Adds the row (y, sqrt(pivot)): y = L^-1 a for the new column a, pivot > 0 its Schur
    complement."""
    row = L[k]
    for j in range(k):
        row[j] = y[j]
    row[k] = np.sqrt(pivot)


@lean
def delete(L: Array, k: int, slot: int) -> None:
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


# Gram-Schmidt


@lean
def project_out(basis: Array, size: int, row: Array) -> float:
    """Takes the span of the first `size` rows of the orthonormal `basis` out of `row`; returns the
    length of what remains. Where that is little it holds rounding of the row: call it twice."""
    for k in range(size):
        along = row_dot(basis, k, row)
        if along != 0.0:
            for a in range(row.shape[0]):
                row[a] -= along * basis[k, a]
    return np.sqrt(dot(row, row))


@kernel
def orthonormal_rows(rows: Array, basis: Array, kept: NDArray[np.bool_], dependent: float) -> int:
    """Fills `basis` (r, r) with an orthonormal basis of the span of `rows` (m, r) and `kept` (m,)
    with which rows added to it; returns its size. A row adds to it if more than `dependent` of its
    length remains. Drumwright's Algorithm 2: one candidate after the other, O(r^2) each; projecting
    twice stands for the appended Cholesky row."""
    size = 0
    r = rows.shape[1]
    work = np.empty(r)
    for i in range(rows.shape[0]):
        kept[i] = False
        if size == r:
            continue
        for a in range(r):
            work[a] = rows[i, a]
        length = np.sqrt(dot(work, work))
        project_out(basis, size, work)
        rest = project_out(basis, size, work)
        if rest > dependent * length:
            for a in range(r):
                basis[size, a] = work[a] / rest
            size += 1
            kept[i] = True
    return size


# Sets


@kernel
def root(parent: Indices, i: int) -> int:
    """Representative of the set of i; shortens the way to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel
def merge(parent: Indices, i: int, j: int) -> None:
    """Joins the sets of i and j. The smaller index is the root: labels do not depend on the
    order in which sets are joined."""
    a = root(parent, i)
    b = root(parent, j)
    parent[max(a, b)] = min(a, b)
