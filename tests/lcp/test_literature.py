"""Every method on every problem of the literature: one table says how each ends."""

import numpy as np
import pytest
from siconos import lcp_files, read_lcp

import stiction.lcp as lcp
from stiction.errors import InvalidInput

EXPONENTIAL = np.eye(40) + 2 * np.tril(np.ones((40, 40)), -1)

PROBLEMS = {
    "empty": (np.zeros((0, 0)), [], [[]]),
    "1x1": ([[-9.8]], [1.0], [[0.0], [1 / 9.8]]),
    "1x1 infeasible": ([[-1.0]], [-1.0], []),
    "CPS 4.4.16": ([[1, -1], [-1, 1]], [1, -1], [[0, 1]]),
    "CPS 4.1.14": ([[1, 1], [1, 1]], [-1, -1], None),
    "CPS 4.4.7": ([[0, -1, 2], [2, 0, -2], [-1, 1, 0]], [-3, 6, -1], [[0, 1, 3]]),
    "Murty 2.9": ([[-1, 0, -3], [1, -2, -5], [-2, -1, -2]], [-3, -2, -1], []),
    "Kostreva 1": ([[1, 2, 0], [0, 1, 2], [2, 0, 1]], [-1, -1, -1], [[1 / 3] * 3]),
    "Murty exponential 40": (EXPONENTIAL, -np.ones(40), [np.eye(40)[0]]),
}

# What is not "solved", and why. "cannot" is an InvalidInput that names methods that can.
# - dantzig takes symmetric PSD matrices only;
# - principal needs nonzero principal minors: CPS 4.4.7 and the bimatrix game of 4.4.23 have a
#   zero diagonal; on matrices that are no P-matrices it may go round until its limit;
# - the bimatrix game's matrix is not copositive-plus: every Lemke path from z = 0 is a ray,
#   though solutions exist. auto finds one by trying all bases;
# - problems without a solution end in a ray; auto turns it into a proof.
TABLE = {
    ("1x1", "dantzig"): "cannot",
    ("1x1 infeasible", "dantzig"): "cannot",
    ("1x1 infeasible", "lemke"): "ray",
    ("1x1 infeasible", "lexicographic"): "ray",
    ("1x1 infeasible", "search"): "ray",
    ("1x1 infeasible", "principal"): "pivot limit",
    ("1x1 infeasible", "auto"): "infeasible",
    ("CPS 4.4.7", "dantzig"): "cannot",
    ("CPS 4.4.7", "principal"): "singular",
    ("Murty 2.9", "dantzig"): "cannot",
    ("Murty 2.9", "lemke"): "ray",
    ("Murty 2.9", "lexicographic"): "ray",
    ("Murty 2.9", "search"): "ray",
    ("Murty 2.9", "principal"): "pivot limit",
    ("Murty 2.9", "auto"): "infeasible",
    ("Kostreva 1", "dantzig"): "cannot",
    ("Murty exponential 40", "dantzig"): "cannot",
    ("lcp_CPS_2", "dantzig"): "cannot",
    ("lcp_CPS_2", "principal"): "singular",
    ("lcp_CPS_3", "lemke"): "ray",
    ("lcp_CPS_3", "lexicographic"): "ray",
    ("lcp_CPS_3", "search"): "ray",
    ("lcp_CPS_3", "principal"): "singular",
    ("lcp_CPS_3", "dantzig"): "cannot",
    ("lcp_CPS_4", "dantzig"): "cannot",
    ("lcp_CPS_4", "principal"): "singular",
    ("lcp_exp_murty", "dantzig"): "cannot",
    ("lcp_inf_sol_perturbed", "dantzig"): "cannot",
    ("lcp_inf_sol_perturbed", "principal"): "singular",
}


def outcome(M, q, method):
    """The status as a word; a solved problem is checked by hand, not by its own residual."""
    try:
        result = lcp.solve(M, q, method)
    except InvalidInput:
        return "cannot", None
    if result.status == "solved":
        w = np.asarray(M, float) @ result.z + np.asarray(q, float)
        assert np.abs(np.minimum(result.z, w)).max(initial=0.0) <= 1e-9
    if result.status == "ray":
        assert result.ray is not None or method == "search"
    return result.status, result.z


@pytest.mark.parametrize("method", lcp.METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_literature_problem_ends_as_the_table_says(name, method):
    M, q, solutions = PROBLEMS[name]
    status, z = outcome(M, q, method)
    assert status == TABLE.get((name, method), "solved")
    if status == "solved" and solutions is not None:
        assert any(np.allclose(z, s, atol=1e-12) for s in solutions)


@pytest.mark.parametrize("method", lcp.METHODS)
@lcp_files
def test_siconos_problem_ends_as_the_table_says(path, method):
    status, _ = outcome(*read_lcp(path), method)
    assert status == TABLE.get((path.stem, method), "solved")


def test_auto_records_every_rung_it_climbed():
    game = [[0, 0, 10, 20], [0, 0, 30, 15], [10, 20, 0, 0], [30, 15, 0, 0]]
    result = lcp.solve(game, -np.ones(4))
    assert result.status == "solved"
    assert result.method == "enumeration"
    assert [r.method for r in result.rungs][:3] == ["lemke", "principal", "lexicographic"]
    assert all(r.status != "solved" for r in result.rungs[:-1])
    assert result.pivots == sum(r.pivots for r in result.rungs)


def test_murtys_problem_is_exponential_for_his_covering_vector_and_not_for_ours():
    murtys = []
    for n in (6, 8, 10):
        M = np.eye(n) + 2 * np.tril(np.ones((n, n)), -1)
        result = lcp.solve(M, -np.ones(n), "lemke", cover=0.5 ** np.arange(n), max_pivots=5000)
        assert result.status == "solved"
        murtys.append(result.pivots)
        assert lcp.solve(M, -np.ones(n), "lemke").pivots <= 2 * n
    assert murtys == [2**6, 2**8, 2**10]


def test_ray_is_a_ray_of_the_augmented_problem():
    M, q = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -1.0])
    result = lcp.solve(M, q, "lemke")
    assert result.status == "ray"
    direction, artificial = result.ray[:-1], result.ray[-1]
    assert (direction >= 0).all()
    assert np.abs(result.ray).max() > 0
    assert (M @ direction + 2 * artificial >= -1e-12).all()
