import numpy as np
import pytest

from stiction.kernels.skyline import close_skyline, factor_skyline, lay_out, solve_skyline


def packed(A, first):
    row = np.zeros(len(A), np.int64)
    values = np.zeros(lay_out(first, row))
    for j in range(len(A)):
        values[row[j] + first[j] : row[j] + j + 1] = A[j, first[j] : j + 1]
    return values, row


@pytest.mark.parametrize("seed", range(4))
def test_a_skyline_is_factored_and_solved_within_its_own_entries(seed):
    rng = np.random.default_rng(seed)
    n = 25
    first = np.array([int(rng.integers(0, j + 1)) for j in range(n)])
    close_skyline(first)
    kept = np.arange(n) >= first[:, None]
    L = np.where(np.tril(kept), rng.normal(size=(n, n)), 0.0)
    A = np.tril(L) + np.tril(L, -1).T + 3.0 * n * np.eye(n)
    values, row = packed(A, first)
    assert factor_skyline(values, row, first) == -1
    x = rng.normal(size=n)
    y = A @ x
    solve_skyline(values, row, first, y)
    np.testing.assert_allclose(y, x, atol=1e-12)


def test_the_row_without_a_positive_pivot_is_named():
    A = np.diag([1.0, 2.0, -1.0, 4.0])
    first = np.arange(4)
    values, row = packed(A, first)
    assert factor_skyline(values, row, first) == 2
