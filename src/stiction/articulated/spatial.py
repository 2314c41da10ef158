"""Algebra of 6 x 6 blocks. A row of the result is kept in six scalars until it is whole: with
stores in between, the compiler must fear that they change the factors, and nothing is vectorized
(40 ns a product instead of 60)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import leaf

Array = NDArray[np.float64]


@leaf
def product(a: Array, b: Array, out: Array) -> None:
    """out := a b"""
    for p in range(6):
        s0, s1, s2, s3, s4, s5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for c in range(6):
            t = a[p, c]
            s0 += t * b[c, 0]
            s1 += t * b[c, 1]
            s2 += t * b[c, 2]
            s3 += t * b[c, 3]
            s4 += t * b[c, 4]
            s5 += t * b[c, 5]
        out[p, 0], out[p, 1], out[p, 2] = s0, s1, s2
        out[p, 3], out[p, 4], out[p, 5] = s3, s4, s5


@leaf
def transposed_product(a: Array, b: Array, out: Array) -> None:
    """out := a' b"""
    for p in range(6):
        s0, s1, s2, s3, s4, s5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for c in range(6):
            t = a[c, p]
            s0 += t * b[c, 0]
            s1 += t * b[c, 1]
            s2 += t * b[c, 2]
            s3 += t * b[c, 3]
            s4 += t * b[c, 4]
            s5 += t * b[c, 5]
        out[p, 0], out[p, 1], out[p, 2] = s0, s1, s2
        out[p, 3], out[p, 4], out[p, 5] = s3, s4, s5


@leaf
def subtract_product(a: Array, b: Array, out: Array) -> None:
    """out -= a b"""
    for p in range(6):
        s0, s1, s2 = out[p, 0], out[p, 1], out[p, 2]
        s3, s4, s5 = out[p, 3], out[p, 4], out[p, 5]
        for c in range(6):
            t = a[p, c]
            s0 -= t * b[c, 0]
            s1 -= t * b[c, 1]
            s2 -= t * b[c, 2]
            s3 -= t * b[c, 3]
            s4 -= t * b[c, 4]
            s5 -= t * b[c, 5]
        out[p, 0], out[p, 1], out[p, 2] = s0, s1, s2
        out[p, 3], out[p, 4], out[p, 5] = s3, s4, s5


@leaf
def copy(a: Array, out: Array) -> None:
    """out := a"""
    for p in range(6):
        for q in range(6):
            out[p, q] = a[p, q]


@leaf
def clear(out: Array) -> None:
    """out := 0"""
    for p in range(6):
        for q in range(6):
            out[p, q] = 0.0


@leaf
def transpose(a: Array, out: Array) -> None:
    """out := a'"""
    for p in range(6):
        for q in range(6):
            out[p, q] = a[q, p]


@leaf
def shift_rows(block: Array, r: Array, sign: float) -> None:
    """block := block X': its rows, motions, at a point farther by sign r."""
    r0, r1, r2 = sign * r[0], sign * r[1], sign * r[2]
    for p in range(6):
        w0, w1, w2 = block[p, 0], block[p, 1], block[p, 2]
        block[p, 3] += w1 * r2 - w2 * r1
        block[p, 4] += w2 * r0 - w0 * r2
        block[p, 5] += w0 * r1 - w1 * r0


@leaf
def shift_columns(block: Array, r: Array, sign: float) -> None:
    """block := X block: its columns, motions, at a point farther by sign r."""
    r0, r1, r2 = sign * r[0], sign * r[1], sign * r[2]
    for p in range(6):
        w0, w1, w2 = block[0, p], block[1, p], block[2, p]
        block[3, p] += w1 * r2 - w2 * r1
        block[4, p] += w2 * r0 - w0 * r2
        block[5, p] += w0 * r1 - w1 * r0
