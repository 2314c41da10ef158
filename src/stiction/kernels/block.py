"""Dense blocks of a sparse matrix: products, factors, and what is divided by them.

A block is that of a body, six rows, of a body in the plane, three, or of a tree of bodies and
joints, as many rows as that has. It is eliminated from the last row to the first. A tree's leaves
go before their ancestors then, and branches do not fill each other: where no contact is between two
of them, their multipliers stay zero and are left out.

    factors     block = P U L, rows exchanged by P; U with ones on its diagonal, L with pivots.
                Above the diagonal U is kept, below it L, on it the pivots' inverses.
"""

from __future__ import annotations

import numpy as np

from stiction.kernels import runs, six, three
from stiction.kernels.compile import lean, lean_leaf

BODY = 6
"""Rows of a free body's block, the commonest: products of such are unrolled."""

PLANAR = 3
"""Rows of the block of a body in the plane, likewise, of a particle, and of a contact in contact
space."""

ABREAST = 4
"""Rows that are eliminated together."""

SHORT = 12
"""Numbers of a run that are summed one by one in less time than by vectors."""


@lean
def _take_rows(C, c, A, a, k, B, b, m):
    """C[c:c+m] -= A[a:a+k] B (k, m); four rows of B, or one, whose factors are zero are left
    out."""
    whole = k - k % ABREAST
    for j in range(0, whole, ABREAST):
        at = a + j
        if A[at] != 0.0 or A[at + 1] != 0.0 or A[at + 2] != 0.0 or A[at + 3] != 0.0:
            runs.take_four(C, c, A, at, 1, B, b + j * m, m, m)
    for j in range(whole, k):
        if A[a + j] != 0.0:
            runs.take_scaled(C, c, A[a + j], B, b + j * m, m)


@lean_leaf
def take_product(C, c, A, a, B, b, n, k, m):
    """C (n, m) -= A (n, k) B (k, m), each from its own first entry on."""
    if n == BODY and k == BODY and m == BODY:
        six.take_product(C, c, A, a, B, b)
    elif n == PLANAR and k == PLANAR and m == PLANAR:
        three.take_product(C, c, A, a, B, b)
    else:
        _take_other_product(C, c, A, a, B, b, n, k, m)


@lean
def _take_other_product(C, c, A, a, B, b, n, k, m):
    """The same of blocks that are not of bodies."""
    for i in range(n):
        _take_rows(C, c + i * m, A, a + i * k, k, B, b, m)


@lean_leaf
def less_dot(total, A, a, r, w, n):
    """total - A[a:a+n] . r[w:w+n]."""
    if n > SHORT:
        return total - runs.dot(A, a, r, w, n)
    for j in range(n):
        total -= A[a + j] * r[w + j]
    return total


@lean_leaf
def _exchange(A, x, y, n):
    """A[x:x+n] and A[y:y+n] change places."""
    for j in range(n):
        kept = A[x + j]
        A[x + j] = A[y + j]
        A[y + j] = kept


@lean
def factor_block(A, o, n, pivot, w):
    """Factors a block (n, n) in place; the sign of its determinant, 0 if singular."""
    sign = 1.0
    end = n
    while end > 0:
        begin = max(end - ABREAST, 0)
        for k in range(end - 1, begin - 1, -1):
            best, most = k, abs(A[o + n * k + k])
            for i in range(k - 1, -1, -1):
                if abs(A[o + n * i + k]) > most:
                    best, most = i, abs(A[o + n * i + k])
            pivot[w + k] = best
            if not (most > 0.0 and most < np.inf):
                return 0.0
            row = o + n * k
            if best != k:
                sign = -sign
                _exchange(A, row, o + n * best, n)
            if A[row + k] < 0.0:
                sign = -sign
            inverse = 1.0 / A[row + k]
            A[row + k] = inverse
            for i in range(k):
                at = o + n * i
                if A[at + k] != 0.0:
                    factor = A[at + k] * inverse
                    A[at + k] = factor
                    for j in range(begin, k):
                        A[at + j] -= factor * A[row + j]
        if begin > 0:
            for k in range(end - 2, begin - 1, -1):
                for p in range(end - 1, k, -1):
                    if A[o + n * k + p] != 0.0:
                        runs.take_scaled(A, o + n * k, A[o + n * k + p], A, o + n * p, begin)
            for i in range(begin):
                at = o + n * i + begin
                if A[at] != 0.0 or A[at + 1] != 0.0 or A[at + 2] != 0.0 or A[at + 3] != 0.0:
                    runs.take_four(A, o + n * i, A, at, 1, A, o + n * begin, n, begin)
        end = begin
    return sign


@lean
def factor_symmetric_block(A, o, n, pivot, w):
    """The same of a symmetric positive definite block, from its lower part: no exchanges; 0 where a
    pivot is not positive."""
    end = n
    while end > 0:
        begin = max(end - ABREAST, 0)
        for k in range(end - 1, begin - 1, -1):
            pivot[w + k] = k
            row = o + n * k
            if not (A[row + k] > 0.0 and A[row + k] < np.inf):
                return 0.0
            inverse = 1.0 / A[row + k]
            A[row + k] = inverse
            for i in range(k):
                A[o + n * i + k] = A[row + i] * inverse
            for i in range(begin, k):
                if A[row + i] != 0.0:
                    runs.take_scaled(A, o + n * i, A[o + n * i + k], A, row, i + 1)
        for i in range(begin):
            at = o + n * i + begin
            if A[at] != 0.0 or A[at + 1] != 0.0 or A[at + 2] != 0.0 or A[at + 3] != 0.0:
                runs.take_four(A, o + n * i, A, at, 1, A, o + n * begin, n, i + 1)
        end = begin
    return 1.0


@lean
def _divide_six(A, o, n, B, b):
    """B (n, 6) := (U L)^-1 B, with whole rows of B at a time."""
    for i in range(n - 2, -1, -1):
        for k in range(i + 1, n):
            six.take_scaled(B, b + BODY * i, A[o + n * i + k], B, b + BODY * k)
    for i in range(n):
        for k in range(i):
            six.take_scaled(B, b + BODY * i, A[o + n * i + k], B, b + BODY * k)
        inverse = A[o + n * i + i]
        for j in range(BODY):
            B[b + BODY * i + j] *= inverse


@lean_leaf
def divide_block(A, o, n, pivot, w, B, b, m):
    """B (n, m) := A^-1 B of the factored block A."""
    if n == BODY and m == BODY:
        for k in range(BODY - 1, -1, -1):
            if pivot[w + k] != k:
                _exchange(B, b + BODY * k, b + BODY * pivot[w + k], BODY)
        six.divide(A, o, B, b)
    elif n == PLANAR and m == PLANAR:
        for k in range(PLANAR - 1, -1, -1):
            if pivot[w + k] != k:
                _exchange(B, b + PLANAR * k, b + PLANAR * pivot[w + k], PLANAR)
        three.divide(A, o, B, b)
    else:
        _divide_other_block(A, o, n, pivot, w, B, b, m)


@lean
def _divide_other_block(A, o, n, pivot, w, B, b, m):
    """The same of blocks of which not both are of bodies, or both of bodies in the plane."""
    for k in range(n - 1, -1, -1):
        if pivot[w + k] != k:
            _exchange(B, b + m * k, b + m * pivot[w + k], m)
    if m == BODY:
        _divide_six(A, o, n, B, b)
        return
    for i in range(n - 2, -1, -1):
        below = n - 1 - i
        _take_rows(B, b + m * i, A, o + n * i + i + 1, below, B, b + m * (i + 1), m)
    for i in range(n):
        _take_rows(B, b + m * i, A, o + n * i, i, B, b, m)
        inverse = A[o + n * i + i]
        for j in range(m):
            B[b + m * i + j] *= inverse


@lean
def divide_vector(A, o, n, pivot, w, r):
    """r (n,), from entry w on, := A^-1 r of the factored block A."""
    for k in range(n - 1, -1, -1):
        other = pivot[w + k]
        if other != k:
            kept = r[w + k]
            r[w + k] = r[w + other]
            r[w + other] = kept
    if n == BODY:
        six.divide_vector(A, o, r, w)
        return
    for i in range(n - 2, -1, -1):
        r[w + i] = less_dot(r[w + i], A, o + n * i + i + 1, r, w + i + 1, n - 1 - i)
    for i in range(n):
        r[w + i] = less_dot(r[w + i], A, o + n * i, r, w, i) * A[o + n * i + i]


@lean
def inverse_form(A, o, n, r, w):
    """r' A^-1 r of a block factored as symmetric, at half the cost of a solution, of r (n,) from
    entry w on; r becomes what `finish_form` needs."""
    total = 0.0
    for k in range(n - 1, -1, -1):
        y = r[w + k]
        if y != 0.0:
            inverse = A[o + n * k + k]
            total += y * y * inverse
            r[w + k] = y * inverse
            runs.take_scaled(r, w, r[w + k], A, o + n * k, k)
    return total


@lean
def finish_form(A, o, n, r, w):
    """r (n,), from entry w on, := A^-1 of what `inverse_form` was given."""
    for i in range(1, n):
        r[w + i] += A[o + n * i + i] * less_dot(0.0, A, o + n * i, r, w, i)
