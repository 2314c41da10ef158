"""What `stiction.lcp.solve` takes, refuses, and promises beside the answer."""

from concurrent.futures import ThreadPoolExecutor

import lcp_problems
import numpy as np
import pytest

import stiction.lcp as lcp
from stiction.errors import InvalidInput
from stiction.lcp import ladder
from stiction.status import Status

M2, Q2 = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-5.0, -6.0])

BAD = {
    "not square": (dict(M=np.zeros((2, 3)), q=Q2), "M (shape (2, 3)): must be (2, 2)"),
    "not a matrix": (dict(M=[1.0, 2.0], q=Q2), "M (shape (2,)): must be a square matrix"),
    "q too long": (dict(M=M2, q=[1.0, 2.0, 3.0]), "must be (3, 3), as q has 3 entries"),
    "nan": (dict(M=[[1.0, np.nan], [0.0, 1.0]], q=Q2), "M[0, 1] (shape (2, 2)): is nan"),
    "infinity": (dict(M=M2, q=[1.0, -np.inf]), "q[1] (shape (2,)): is -inf"),
    "words": (dict(M=[["a"]], q=[1.0]), "M (shape (1, 1)): must hold real numbers"),
    "numbers as words": (dict(M=[["1"]], q=[1.0]), "M (shape (1, 1)): must hold real numbers"),
    "complex": (dict(M=[[1j]], q=[1.0]), "M (shape (1, 1)): must hold real numbers, not complex"),
    "ragged": (dict(M=[[1.0, 2.0], [1.0]], q=Q2), "M: is not a regular array"),
    "masked": (dict(M=np.ma.array(M2, mask=[[0, 1], [0, 0]]), q=Q2), "M: has masked entries"),
    "objects": (dict(M=[[None]], q=[1.0]), "M (shape (1, 1)): must hold real numbers"),
    "dates": (dict(M=M2, q=np.zeros(2, "M8[s]")), "q (shape (2,)): must hold real numbers"),
    "nothing": (dict(M=None, q=Q2), "M (shape ()): must hold real numbers"),
    "words for bounds": (dict(M=M2, q=Q2, lo="low"), "lo (shape ()): must hold real numbers"),
    "ragged bounds": (dict(M=M2, q=Q2, hi=[[1.0], [1.0, 2.0]]), "hi: is not a regular array"),
    "complex bounds": (dict(M=M2, q=Q2, lo=[1j, 0]), "lo (shape (2,)): must hold real numbers"),
    "free ragged": (dict(M=M2, q=Q2, free=[[0], [0, 1]]), "free: is not a regular array"),
    "free words": (dict(M=M2, q=Q2, free=["a"]), "free (shape (1,)): must hold real numbers"),
    "start words": (dict(M=M2, q=Q2, start="warm"), "start (shape ()): must hold real numbers"),
    "cover words": (dict(M=M2, q=Q2, cover=["a", "b"]), "cover (shape (2,)): must hold real"),
    "limit words": (dict(M=M2, q=Q2, max_pivots="many"), "max_pivots: is 'many', must be a whole"),
    "half a pivot": (dict(M=M2, q=Q2, max_pivots=1.5), "max_pivots: is 1.5, must be a whole"),
    "tie words": (dict(M=M2, q=Q2, tie="x"), "tie (shape ()): must hold real numbers"),
    "nan tie": (dict(M=M2, q=Q2, tie=np.nan), "tie: is nan, must be a number"),
    "list of epsilon": (dict(M=M2, q=Q2, epsilon=[1.0]), "epsilon: is [1.0], must be a number"),
    "no e_max": (dict(M=M2, q=Q2, e_max=None), "e_max (shape ()): must hold real numbers"),
    "method of the wrong type": (dict(M=M2, q=Q2, method=["lemke"]), "method: unknown"),
    "lo above hi": (dict(M=M2, q=Q2, lo=[0.0, 2.0], hi=1.0), "lo[1]: 2 with hi = 1"),
    "nan bound": (dict(M=M2, q=Q2, hi=[np.nan, 1.0]), "hi[0] (shape (2,)): is nan"),
    "long bound": (dict(M=M2, q=Q2, hi=[1.0, 1.0, 1.0]), "hi (shape (3,)): must be (2,)"),
    "free outside": (dict(M=M2, q=Q2, free=[2]), "free: names row 2; rows are 0 to 1"),
    "start mask": (dict(M=M2, q=Q2, start=[True]), "start (shape (1,)): a mask must be (2,)"),
    "start floats": (dict(M=M2, q=Q2, start=[0.5, 0.5]), "start: is of float64"),
    "unknown": (dict(M=M2, q=Q2, method="lemkee"), "did you mean 'lemke'?"),
    "asymmetric": (
        dict(M=[[1.0, 2.0], [0.0, 1.0]], q=Q2, method="dantzig"),
        "entries [1, 0] and [0, 1] are 0 and 2, but method 'dantzig'",
    ),
    "negative diagonal": (
        dict(M=-np.eye(2), q=Q2, method="dantzig"),
        "diagonal entry 0 is -1, but method 'dantzig'",
    ),
    "cover": (dict(M=M2, q=Q2, cover=[1.0, 0.0]), "cover (shape (2,)): must have 2 entries"),
    "limit": (dict(M=M2, q=Q2, max_pivots=-1), "max_pivots: is -1"),
}


@pytest.mark.parametrize("name", BAD)
def test_malformed_input_raises_and_names_what_is_wrong(name):
    arguments, words = BAD[name]
    with pytest.raises(InvalidInput) as refusal:
        lcp.solve(**arguments)
    assert words in str(refusal.value)


@pytest.mark.parametrize("method", lcp.METHODS)
@pytest.mark.parametrize(
    "convert",
    [
        lambda a: a.astype(np.float32),
        lambda a: a.astype(int),
        lambda a: a.tolist(),
        np.asfortranarray,
        lambda a: np.repeat(np.repeat(a, 2, 0), 2, -1)[::2, ::2] if a.ndim == 2 else a,
    ],
    ids=["float32", "int", "list", "fortran", "strided"],
)
def test_any_array_of_reals_is_taken(method, convert):
    result = lcp.solve(convert(M2), convert(Q2), method)
    assert np.allclose(result.z, [4 / 3, 7 / 3])


@pytest.mark.parametrize("method", lcp.METHODS)
def test_inputs_are_read_only_and_stay_as_they_are(method):
    M, q = M2.copy(), Q2.copy()
    M.flags.writeable = q.flags.writeable = False
    first = lcp.solve(M, q, method)
    lcp.solve(M, q, method, lo=0.0, hi=[1.0, 9.0], start=first)
    assert np.array_equal(M, M2)
    assert np.array_equal(q, Q2)


@pytest.mark.parametrize("method", lcp.METHODS)
def test_warm_start_from_the_answer_takes_no_pivots(method):
    rng = np.random.default_rng(0)
    M, q = lcp_problems.positive_definite(rng, 10)
    cold = lcp.solve(M, q, method)
    for start in (cold, cold.active, np.flatnonzero(cold.active)):
        warm = lcp.solve(M, q, method, start=start)
        assert warm.status == "solved"
        assert warm.pivots == 0
        assert np.allclose(warm.z, cold.z, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", [m for m in lcp.METHODS if m != "dantzig"])
def test_wrong_or_singular_warm_start_does_no_harm(method):
    rng = np.random.default_rng(1)
    M, q = lcp_problems.p_matrix(rng, 8)
    for _ in range(20):
        result = lcp.solve(M, q, method, start=rng.random(8) < 0.5)
        assert result.status == "solved"
    singular = lcp.solve(np.ones((3, 3)), -np.ones(3), method, start=[0, 1, 2])
    assert singular.status == "solved"


def test_pivot_limit_is_kept_and_told():
    rng = np.random.default_rng(2)
    M, q = lcp_problems.positive_definite(rng, 10)
    for method in ("lemke", "lexicographic", "principal", "dantzig"):
        result = lcp.solve(M, -np.abs(q), method, max_pivots=1)
        assert result.status is Status.PIVOT_LIMIT
        assert result.status.advice


@pytest.mark.parametrize("family", lcp_problems.CONTACT_TYPE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("method", ["auto", "lemke", "lexicographic", "search"])
def test_units_do_not_matter(family, method):
    rng = np.random.default_rng(4)
    for _ in range(20):
        M, q = family(rng, 8)
        plain = lcp.solve(M, q, method)
        for size in (1e-8, 1e-4, 1e4, 1e8):
            for load in (1e-8, 1.0, 1e8):
                scaled = lcp.solve(size * M, load * q, method)
                assert scaled.status == plain.status == "solved"
                assert np.allclose(scaled.z * size / load, plain.z, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("family", lcp_problems.CONTACT_TYPE, ids=lambda f: f.__name__)
def test_rows_and_columns_may_have_units_of_their_own(family):
    rng = np.random.default_rng(5)
    unique = family in (lcp_problems.positive_definite, lcp_problems.p_matrix)
    for _ in range(20):
        M, q = family(rng, 8)
        plain = lcp.solve(M, q)
        rows, cols = 10 ** rng.uniform(-3, 3, (2, len(q)))
        scaled = lcp.solve(rows[:, None] * M * cols, rows * q)
        assert scaled.status == plain.status == "solved"
        if unique:
            assert np.allclose(scaled.z * cols, plain.z, rtol=1e-6, atol=1e-9)


def test_same_input_gives_the_same_bits_from_many_threads():
    rng = np.random.default_rng(6)
    problems = [lcp_problems.contact(rng, 10) for _ in range(50)]
    problems += [lcp_problems.low_rank(rng, 10) for _ in range(50)]

    def bits(problem):
        return [lcp.solve(*problem, m).z.tobytes() for m in ("auto", "lemke", "search")]

    alone = [bits(p) for p in problems]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(bits, problems)) == alone


def test_status_comes_from_the_residual_and_not_from_the_method():
    M = np.array([[1.0, -1.0], [-1.0, 1.0]])  # q outside the range: no solution
    result = lcp.solve(M, np.array([-1.0, -1.0]))
    assert result.status == "infeasible"
    assert result.residual > 1e-3
    assert np.allclose(M @ result.z + [-1.0, -1.0], result.w)


def test_rows_that_are_all_free_get_a_status():
    assert lcp.solve([[0.0]], [1.0], free=[0]).status == "infeasible"
    assert lcp.solve([[0.0]], [0.0], free=[0]).status == "solved"
    solved = lcp.solve(M2, Q2, free=[0, 1])
    assert solved.status == "solved"
    assert np.allclose(solved.z, [4 / 3, 7 / 3])


def test_bounds_that_leave_no_answer_are_proved_infeasible():
    # w_0 = z_0 - z_1 - 5 >= 0 asks for z_0 >= 5; w_1 = 0 for z_0 = z_1.
    M, q = np.array([[1.0, -1.0], [1.0, -1.0]]), np.array([-5.0, 0.0])
    result = lcp.solve(M, q, free=[1])
    assert result.status == "infeasible"
    assert result.proof[0] > 0
    assert result.proof @ q < 0
    assert np.allclose(M.T @ result.proof, 0, atol=1e-12)


def test_a_feasible_problem_without_a_solution_is_not_called_infeasible():
    M = np.array([[2.0, 1.0, 1.0], [0.0, 0.0, 2.0], [-1.0, 2.0, 1.0]])
    q = np.array([-2.0, -1.0, 2.0])
    assert (M @ np.ones(3) + q > 0).all()
    assert lcp.solve(M, q).status == "error"


def test_the_proof_of_infeasibility_is_a_rung_of_its_own():
    M, q = np.array([[1.0, -1.0], [1.0, -1.0]]), np.array([-5.0, 0.0])
    result = lcp.solve(M, q, free=[1], method="auto")
    names = [rung.method for rung in result.rungs]
    assert names[-1] == "feasibility"
    assert names.count("feasibility") == 1
    assert [rung.status for rung in result.rungs].count("infeasible") == 1


def test_rungs_are_listed_as_they_were_tried(monkeypatch):
    tried = []
    inner = ladder._pivot

    def watched(M, q, method, *rest):
        tried.append(method if not rest[2:] else "covering")
        return inner(M, q, method, *rest)

    monkeypatch.setattr(ladder, "_pivot", watched)
    M = np.array([[2.0, 1.0, 1.0], [0.0, 0.0, 2.0], [-1.0, 2.0, 1.0]])
    names = [rung.method for rung in lcp.solve(M, np.array([-2.0, -1.0, 2.0])).rungs]
    assert names[:11] == tried[:11]
    assert names[11:] == ["regularized", "enumeration"]


def test_a_limit_beyond_all_pivots_is_no_error():
    assert lcp.solve(M2, Q2, "lemke", max_pivots=10**30).status == "solved"
