import numpy as np

from stiction.kernels import six
from stiction.kernels.compile import kernel


@kernel
def _add_product(C, A, B):
    six.add_product(C, 2, A, 1, 12, B, 3, 20)


@kernel
def _add_rows(C, A, B):
    for k in range(6):
        six.add_three(C, 2 + 6 * k, B, A[1 + k], 3, A[13 + k], 23, A[25 + k], 43)


def test_a_product_of_three_rows_is_what_its_rows_add_up_to_one_by_one():
    rng = np.random.default_rng(0)
    A, B, C = rng.normal(size=40), rng.normal(size=60), rng.normal(size=45)
    by_rows, whole = C.copy(), C.copy()
    _add_rows(by_rows, A, B)
    _add_product(whole, A, B)
    assert np.array_equal(whole, by_rows)
    left = np.array([A[1 + 12 * r : 7 + 12 * r] for r in range(3)])
    right = np.array([B[3 + 20 * r : 9 + 20 * r] for r in range(3)])
    expected = C.copy()
    expected[2:38] += (left.T @ right).ravel()
    np.testing.assert_allclose(whole, expected, rtol=1e-14, atol=1e-14)


@kernel
def _dot_of_sizes(A, B):
    return six.dot_of_sizes(A, 1, B, 2)


def test_a_product_of_sizes_leaves_signs_out():
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=8), rng.uniform(0.0, 1.0, size=9)
    np.testing.assert_allclose(_dot_of_sizes(A, B), np.abs(A[1:7]) @ B[2:8], rtol=1e-15)
