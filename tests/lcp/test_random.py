"""Random problems against exhaustive enumeration: nothing wrong is called solved, nothing
solvable is missed."""

import lcp_problems
import numpy as np
import pytest
from scipy.optimize import linprog

import stiction.lcp as lcp

METHODS = [m for m in lcp.METHODS if m != "dantzig"]
CONTACT_METHODS = {  # methods that must solve every problem of the class
    "positive_definite": METHODS,
    "low_rank": ["auto", "lemke", "lexicographic", "search"],
    "contact": ["auto", "lemke", "lexicographic", "search"],
    "p_matrix": METHODS,
    "integer": ["auto", "lemke", "lexicographic", "search"],
}


def violation(M, q, z):
    """Worst violation of the three laws, relative to the data: no part of the solver's own."""
    w = M @ z + q
    scale = np.abs(q).max() + 1e-300
    return max(-z.min() * np.abs(M).max(), -w.min(), np.minimum(z, w).max()) / scale


def has_solution(M, q):
    """Whether any complementary cone holds a solution, by 2^n linear programs at most."""
    n = len(q)
    if linprog(np.zeros(n), A_ub=-M, b_ub=q).status == 2:
        return False
    for mask in range(1 << n):
        on = (mask >> np.arange(n) & 1).astype(bool)
        cone = linprog(
            np.zeros(n),
            A_ub=-M[~on] if (~on).any() else None,
            b_ub=q[~on] if (~on).any() else None,
            A_eq=M[on] if on.any() else None,
            b_eq=-q[on] if on.any() else None,
            bounds=[(0, None) if a else (0, 0) for a in on],
        )
        if cone.status == 0:
            return True
    return False


def check(family, seed, count):
    rng = np.random.default_rng(seed)
    unsolved = 0
    for _ in range(count):
        M, q = family(rng, int(rng.integers(1, 11)))
        symmetric = np.array_equal(M, M.T) and M.diagonal().min() >= 0
        for method in ["dantzig", *METHODS] if symmetric else METHODS:
            result = lcp.solve(M, q, method)
            if result.status == "solved":
                assert violation(M, q, result.z) <= 1e-7, (family.__name__, method, M, q)
                continue
            assert method not in CONTACT_METHODS.get(family.__name__, ()), (method, M, q)
            if method == "auto":
                unsolved += 1
                assert not has_solution(M, q), (M, q, result)
    return unsolved


@pytest.mark.parametrize("family", lcp_problems.ALL, ids=lambda f: f.__name__)
def test_answers_agree_with_enumeration(family):
    small = 40 if family is lcp_problems.integer_any else 400
    check(family, seed=1, count=small)


@pytest.mark.long
@pytest.mark.parametrize("family", lcp_problems.ALL, ids=lambda f: f.__name__)
def test_a_hundred_thousand_answers_agree_with_enumeration(family):
    check(family, seed=2, count=200 if family is lcp_problems.integer_any else 17_000)


@pytest.mark.parametrize("method", lcp.METHODS)
@pytest.mark.parametrize("seed", range(5))
def test_bounded_problem_satisfies_the_laws_of_its_bounds(method, seed):
    rng = np.random.default_rng(seed)
    n = 9
    A = rng.normal(size=(n, n))
    M, q = A @ A.T, 3 * rng.normal(size=n)
    lo, hi = -rng.random(n), rng.random(n)
    lo[:2], hi[1:4] = -np.inf, np.inf
    result = lcp.solve(M, q, method, lo=lo, hi=hi, free=[5])
    lo[5], hi[5] = -np.inf, np.inf
    assert result.status == "solved"
    w = M @ result.z + q
    assert np.abs(result.z - np.clip(result.z - w, lo, hi)).max() < 1e-10
    again = lcp.solve(M, q, method, lo=lo, hi=hi, start=result)
    assert np.allclose(again.z, result.z, atol=1e-10)


@pytest.mark.parametrize("method", ["auto", "dantzig", "lemke"])
def test_redundant_free_rows_are_solved(method):
    rng = np.random.default_rng(3)
    J = rng.normal(size=(3, 8))
    rows = np.vstack([J, J[0] + J[1], rng.normal(size=(4, 8))])
    M, q = rows @ rows.T, rows @ rng.normal(size=8)
    result = lcp.solve(M, q, method, free=[0, 1, 2, 3])
    assert result.status == "solved"
    assert np.abs((M @ result.z + q)[:4]).max() < 1e-10
