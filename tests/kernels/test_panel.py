"""Rows in vector instructions, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from stiction.kernels.compile import kernel
from stiction.kernels.panel import add_product, add_scaled, dot, padded, put_scaled

RNG = np.random.default_rng(3)


@kernel
def _product(sign, rows, inner, columns, A, transposed, B, C):
    down, across = (1, A.shape[1]) if transposed else (A.shape[1], 1)
    add_product(sign, rows, inner, columns, A, 0, down, across, B, C)


@pytest.mark.parametrize("rows", range(1, 10))
@pytest.mark.parametrize("columns", [4, 8, 12, 20])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_is_added_whatever_is_left_over_of_its_rows(rows, columns, transposed):
    inner = 7
    A = RNG.normal(size=(inner, rows) if transposed else (rows, inner))
    B, C = RNG.normal(size=(inner, columns)), RNG.normal(size=(rows + 1, columns))
    want = C.copy()
    want[:rows] -= (A.T if transposed else A) @ B
    _product(-1.0, rows, inner, columns, A, transposed, B, C)
    np.testing.assert_allclose(C, want, rtol=1e-13, atol=1e-13)


@kernel
def _rows(x, A, out):
    n = A.shape[1]
    put_scaled(out, 0, x, A, n, n)
    add_scaled(out, 0, 2.0, A, 0, n)
    put_scaled(out, n, x, out, 0, n)
    return dot(A, 0, A, n, n)


@pytest.mark.parametrize("length", [1, 4, 18])
def test_rows_are_scaled_added_and_multiplied(length):
    A = np.zeros((2, padded(length)))
    A[:, :length] = RNG.normal(size=(2, length))
    out = np.full_like(A, np.nan)
    assert _rows(0.5, A, out) == pytest.approx(A[0] @ A[1])
    want = 0.5 * A[1] + 2.0 * A[0]
    np.testing.assert_allclose(out, [want, 0.5 * want], rtol=1e-14, atol=1e-15)
