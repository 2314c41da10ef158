import numpy as np
import pytest

from stiction.kernels import block
from stiction.kernels.compile import kernel

SIZES = [1, 2, 3, 4, 5, 6, 7, 9, 13, 18, 27, 45, 76]


@kernel
def _factor(A, n, pivot, symmetric):
    """Inside of a matrix that is larger, from entry 7 on."""
    if symmetric:
        return block.factor_symmetric_block(A, 7, n, pivot, 2)
    return block.factor_block(A, 7, n, pivot, 2)


@kernel
def _divide_vector(A, n, pivot, r):
    block.divide_vector(A, 7, n, pivot, 2, r)


@kernel
def _divide_block(A, n, pivot, B, m):
    block.divide_block(A, 7, n, pivot, 2, B, 3, m)


@kernel
def _form(A, n, r):
    form = block.inverse_form(A, 7, n, r, 2)
    block.finish_form(A, 7, n, r, 2)
    return form


@kernel
def _take_product(C, A, B, n, k, m):
    block.take_product(C, 1, A, 2, B, 3, n, k, m)


def within(array, before, after=5):
    """The numbers of an array, others before and after them."""
    return np.concatenate([np.full(before, 7.0), array.ravel(), np.full(after, 7.0)])


def definite(rng, n):
    half = rng.normal(size=(n, n))
    return half @ half.T + n * np.eye(n)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("n", SIZES)
def test_vectors_and_blocks_are_divided_by_what_was_factored(n, symmetric):
    rng = np.random.default_rng(n)
    A = definite(rng, n) if symmetric else rng.normal(size=(n, n))
    factors, pivot = within(A, 7), np.zeros(n + 2, np.int64)
    if symmetric:
        factors[7 : 7 + n * n].reshape(n, n)[np.triu_indices(n, 1)] = np.nan  # is not read
    assert _factor(factors, n, pivot, symmetric) == np.linalg.slogdet(A)[0]
    np.testing.assert_array_equal(factors[[*range(7), *range(-5, 0)]], 7.0)
    x = rng.normal(size=n)
    r = within(A @ x, 2)
    _divide_vector(factors, n, pivot, r)
    scale = 1e-14 * n * np.linalg.cond(A)
    np.testing.assert_allclose(r, within(x, 2), atol=scale)
    for m in (1, 3, 6, 11):
        X = rng.normal(size=(n, m))
        B = within(A @ X, 3)
        _divide_block(factors, n, pivot, B, m)
        np.testing.assert_allclose(B, within(X, 3), atol=scale)


@pytest.mark.parametrize("n", SIZES)
def test_the_form_of_an_inverse_leaves_what_the_solution_is_finished_from(n):
    rng = np.random.default_rng(n)
    A, r = definite(rng, n), rng.normal(size=n)
    factors = within(A, 7)
    assert _factor(factors, n, np.zeros(n + 2, np.int64), True) == 1.0
    x, y = np.linalg.solve(A, r), within(r, 2)
    assert _form(factors, n, y) == pytest.approx(r @ x, rel=1e-12)
    np.testing.assert_allclose(y, within(x, 2), atol=1e-12)


@pytest.mark.parametrize("sizes", [(6, 6, 6), (3, 3, 3), (6, 27, 6), (5, 7, 6), (18, 6, 9)])
def test_a_product_of_blocks_is_taken_off(sizes):
    n, k, m = sizes
    rng = np.random.default_rng(n)
    A, B, C = rng.normal(size=(n, k)), rng.normal(size=(k, m)), rng.normal(size=(n, m))
    A[:, : k // 2] = 0.0
    out = within(C, 1)
    _take_product(out, within(A, 2), within(B, 3), n, k, m)
    np.testing.assert_allclose(out, within(C - A @ B, 1), atol=1e-13)


@pytest.mark.parametrize("symmetric", [True, False])
def test_branches_of_a_tree_do_not_fill_each_other(symmetric):
    root, legs = 6, 4
    n = root + 3 * legs
    rng = np.random.default_rng(1)
    A = definite(rng, n)
    branch = np.repeat(np.arange(legs), 3)
    apart = np.zeros((n, n), bool)
    apart[root:, root:] = branch[:, None] != branch[None, :]
    A[apart] = 0.0
    factors = within(A, 7)
    assert _factor(factors, n, np.zeros(n + 2, np.int64), symmetric) == 1.0
    np.testing.assert_array_equal(factors[7:-5].reshape(n, n)[apart], 0.0)


@pytest.mark.parametrize("symmetric", [True, False])
def test_what_is_singular_is_told(symmetric):
    A = np.ones((9, 9))
    assert _factor(within(A, 7), 9, np.zeros(11, np.int64), symmetric) == 0.0


def test_a_body_s_block_is_divided_as_its_columns_are_to_the_bit():
    rng = np.random.default_rng(3)
    factors, pivot = within(rng.normal(size=(6, 6)), 7), np.zeros(8, np.int64)
    _factor(factors, 6, pivot, False)
    X = rng.normal(size=(6, 6))
    B = within(X, 3)
    _divide_block(factors, 6, pivot, B, 6)
    for k in range(6):
        r = within(X[:, k], 2)
        _divide_vector(factors, 6, pivot, r)
        np.testing.assert_array_equal(B[3:39].reshape(6, 6)[:, k], r[2:8])
