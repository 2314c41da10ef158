"""No status is false, in whatever units: `solved` holds row by row, `infeasible` has its proof.

Every problem is solved as it is and with rows and columns in other units, each its own, 10^-8 to
10^8. A problem's truth is known from how it was made; the answers are checked here, not by the
solver's own measure.
"""

from collections import Counter

import lcp_problems
import numpy as np
import pytest

import stiction.lcp as lcp


def bimatrix(rng, n):
    """A game: two parts that meet only in each other's rows, so that units can drift apart."""
    a = max(1, n // 2)
    M = np.zeros((n + 1, n + 1))
    M[:a, a:] = rng.uniform(0.3, 0.9, (a, n + 1 - a))
    M[a:, :a] = rng.uniform(0.3, 0.9, (n + 1 - a, a))
    return M, -np.ones(n + 1)


def general(rng, n):
    """No structure but a solution, z and w complementary."""
    M = rng.normal(size=(n, n))
    active = rng.random(n) < 0.5
    z, w = np.where(active, rng.random(n), 0.0), np.where(active, 0.0, rng.random(n))
    return M, w - M @ z


def copositive(rng, n):
    """Nonnegative entries on a positive diagonal: strictly copositive, always solvable."""
    M = rng.random((n, n)) * (rng.random((n, n)) < 0.6)
    np.fill_diagonal(M, rng.uniform(0.1, 1.0, n))
    return M, rng.normal(size=n)


def contradictory(rng, n):
    """No z >= 0 has M z + q >= 0: y >= 0 with M'y <= 0 and q'y < 0 is built in."""
    y = np.where(rng.random(n) < 0.7, rng.random(n), 0.0)
    y[rng.integers(n)] = 1.0
    M = rng.normal(size=(n, n))
    wanted = -np.where(rng.random(n) < 0.5, rng.random(n), 0.0)
    M += np.outer(y, wanted - M.T @ y) / (y @ y)
    q = rng.normal(size=n)
    return M, q + y * (-rng.uniform(0.1, 1.0) - q @ y) / (y @ y)


def opposed(rng, n):
    """Redundant contacts that contradict each other: positive semidefinite, q out of range."""
    A = rng.normal(size=(n + 1, max(1, n // 2)))
    A[-1] = -A[0]
    q = A @ rng.normal(size=A.shape[1])
    q[[0, -1]] -= abs(q[0]) + 0.5
    return A @ A.T, q


SOLVABLE = (
    lcp_problems.positive_definite,
    lcp_problems.low_rank,
    lcp_problems.contact,
    lcp_problems.p_matrix,
    copositive,
    bimatrix,
    general,
)
INFEASIBLE = (contradictory, opposed)


def assert_solved(M, q, z):
    """The laws, row by row, each by its own terms, in extended precision."""
    M, q, z = (a.astype(np.longdouble) for a in (M, q, z))
    w = M @ z + q
    size = np.abs(q) + 1e-3 * np.abs(M) @ z
    assert (z >= 0).all()
    assert (w >= -1e-7 * size).all(), (w / size).min()
    loose = (z > 0) & (w > 1e-7 * size)
    assert (np.abs(M[:, loose]) * z[loose] <= 1e-7 * size[:, None]).all()


def assert_proof(M, q, y):
    """Farkas: y >= 0 and M'y <= 0 to rounding, entry by entry, and q'y < 0."""
    M, q, y = (a.astype(np.longdouble) for a in (M, q, y))
    assert (y >= 0).all()
    assert (M.T @ y <= 1e-12 * np.abs(M.T) @ y).all()
    assert q @ y < 0


def survey(family, truth, seed, count):
    """Statuses of `count` problems and of their twins in other units; none may be false."""
    rng = np.random.default_rng(seed)
    seen = Counter()
    for _ in range(count):
        M, q = family(rng, int(rng.integers(2, 9)))
        sign = 1 if rng.random() < 0.7 else -1  # symmetric, or z in the inverse of its row's units
        units = 10.0 ** rng.uniform(-8, 8, len(q))
        for rows in (np.ones(len(q)), units):
            scaled, load = rows[:, None] * M * rows**sign, rows * q
            result = lcp.solve(scaled, load)
            seen[str(result.status)] += 1
            assert result.status in (truth, "error"), (family.__name__, M, q, units)
            if result.status == "solved":
                assert_solved(scaled, load, result.z)
            elif result.status == "infeasible":
                assert_proof(scaled, load, result.proof)
    return seen


@pytest.mark.parametrize("family", SOLVABLE + INFEASIBLE, ids=lambda f: f.__name__)
def test_no_status_is_false_in_any_units(family):
    truth = "solved" if family in SOLVABLE else "infeasible"
    seen = survey(family, truth, seed=7, count=150)
    assert seen["error"] <= 3, seen


def test_no_answer_is_so_large_that_its_rounding_hides_a_contradiction():
    rng = np.random.default_rng(8)
    for _ in range(12_568):  # of this one, Dantzig's method finds z = 10^16
        M, q = opposed(rng, int(rng.integers(2, 9)))
        rng.random(), rng.uniform(-8, 8, len(q))
    result = lcp.solve(M, q)
    assert result.z.max() > 1e15
    assert result.status == "infeasible"
    assert_proof(M, q, result.proof)
    # Beside another problem, which is solved, too.
    both, load = np.eye(len(q) + 1), np.append(q, -1.0)
    both[:-1, :-1] = M
    assert lcp.solve(both, load).status == "infeasible"


@pytest.mark.long
@pytest.mark.parametrize("family", SOLVABLE + INFEASIBLE, ids=lambda f: f.__name__)
def test_no_status_is_false_in_any_units_a_hundred_thousand_times(family):
    truth = "solved" if family in SOLVABLE else "infeasible"
    seen = survey(family, truth, seed=8, count=50_000)
    print(family.__name__, dict(seen))
    assert seen["error"] <= 0.01 * seen.total(), seen
