"""Problems given by SciPy's sparse arrays: the same problem, the same answers, no dense array."""

import pickle
import tracemalloc

import numpy as np
import pytest
from clutter import FILES, read_clutter
from random_problem import NB, NC, NJ, NV, arguments
from scipy import sparse

from stiction.contact import (
    Baraff,
    ContactProblem,
    Coulomb,
    DrumwrightShell,
    Frictionless,
    NoSlip,
    Viscous,
    certify,
)
from stiction.contact.models.single_solver import by_solver
from stiction.errors import InvalidInput
from stiction.reproduce.heaps import Discs, kapla

MATRICES = ("mass", "normal", "tangent", "joint", "box")
FORMATS = [
    sparse.csr_array,
    sparse.csc_array,
    sparse.coo_array,
    sparse.lil_array,
    sparse.dok_array,
    sparse.csr_matrix,
]


def sparsified(given, make=sparse.csr_array, names=MATRICES):
    """The arguments of a problem with these matrices sparse."""
    changed = dict(given)
    for name in names:
        if given.get(name) is not None:
            matrix = np.asarray(given[name])
            changed[name] = make(matrix.reshape(-1, matrix.shape[-1]))
    return changed


def of_problem(problem):
    """The sparse arguments of a problem with dense arrays."""
    return sparsified({**problem.arrays._asdict(), "dt": problem.dt})


def heap(columns=15, rows=25, steps=0):
    """A problem of discs that is too large to be taken for a small one."""
    discs = Discs(columns, rows)
    for _ in range(steps):
        discs.step(Coulomb())
    return discs.problem()


def random_impulses(problem, seed=0):
    rng = np.random.default_rng(seed)
    shapes = [problem.nc, (problem.nc, 2), problem.nj, problem.nb]
    return [rng.normal(size=shape) for shape in shapes]


def assert_same(one, other):
    """Two certificates, to rounding."""
    assert one.where == other.where
    np.testing.assert_allclose(one.scaled, other.scaled, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("make", FORMATS)
def test_every_sparse_format_gives_the_problem_that_dense_arrays_give(make):
    dense, given = ContactProblem(**arguments()), sparsified(arguments(), make)
    problem = ContactProblem(**given)
    assert problem.is_sparse
    assert not dense.is_sparse
    assert (problem.nv, problem.nc, problem.nj, problem.nb) == (NV, NC, NJ, NB)
    impulses = random_impulses(problem)
    velocity = dense.velocity_from(*impulses)
    np.testing.assert_allclose(problem.velocity_from(*impulses), velocity, rtol=1e-12)
    np.testing.assert_allclose(problem.free_velocity, dense.free_velocity, rtol=1e-12)
    for ours, theirs in zip(
        problem.contact_velocity(velocity), dense.contact_velocity(velocity), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    velocity += np.random.default_rng(1).normal(size=NV)
    for law in ("coulomb", "frictionless", "no-slip", "viscous", "convex"):
        graded = [certify(each, velocity, *impulses, law=law) for each in (problem, dense)]
        assert_same(*graded)


def test_one_sparse_matrix_makes_all_of_them_sparse_and_dense_gives_them_back():
    problem = ContactProblem(**sparsified(arguments(), names=("normal",)))
    for name in MATRICES:
        kept = getattr(problem, name)
        assert isinstance(kept, sparse.csr_array)
        expected = np.asarray(arguments()[name]).reshape(-1, NV)
        np.testing.assert_array_equal(kept.toarray(), expected)
    back = problem.dense()
    assert not back.is_sparse
    for name in MATRICES:
        np.testing.assert_array_equal(getattr(back, name), arguments()[name])
    assert back.dense() is back
    assert "sparse" in repr(problem)


def test_what_is_given_is_copied_and_what_is_shown_is_read_only():
    given = sparsified(arguments())
    problem = ContactProblem(**given)
    before = problem.normal.toarray()
    given["normal"].data[:] = 7.0
    np.testing.assert_array_equal(problem.normal.toarray(), before)
    with pytest.raises(ValueError, match="read-only"):
        problem.normal.data[0] = 1.0


BAD = [
    ("mass", sparse.csr_array(np.eye(NV)[:5])),
    ("normal", sparse.csr_array((NC, 5))),
    ("tangent", sparse.csr_array((NC, NV))),
    ("tangent", sparse.csr_array((2 * NC, 5))),
    ("joint", sparse.csr_array((NJ, 7))),
    ("box", sparse.csr_array((NB, 7))),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_sparse_array_of_a_wrong_shape_is_named_with_what_it_should_be(name, value):
    with pytest.raises(InvalidInput, match="must") as caught:
        ContactProblem(**{**sparsified(arguments()), name: value})
    assert caught.value.name == name
    assert caught.value.shape == value.shape


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_entry_that_is_not_finite_is_named_with_its_index(name, value):
    given = sparsified(arguments())
    given[name][1, 2] = value
    with pytest.raises(InvalidInput, match="finite") as caught:
        ContactProblem(**given)
    assert caught.value.name == name
    assert caught.value.index == (1, 2)


def test_a_sparse_mass_must_be_symmetric_and_positive_definite():
    given = sparsified(arguments())
    lopsided = given["mass"].toarray()
    lopsided[0, 3] += 1.0
    with pytest.raises(InvalidInput, match="symmetric") as caught:
        ContactProblem(**{**given, "mass": sparse.csr_array(lopsided)})
    assert caught.value.index in ((0, 3), (3, 0))
    coupled = np.eye(NV)
    coupled[1, 4] = coupled[4, 1] = 1.0
    with pytest.raises(InvalidInput, match="not positive definite"):
        ContactProblem(**{**given, "mass": sparse.csr_array(coupled)})
    massless = np.eye(NV)
    massless[2, 2] = 0.0
    with pytest.raises(InvalidInput, match="positive inertia") as caught:
        ContactProblem(**{**given, "mass": sparse.csr_array(massless)})
    assert caught.value.index == (2, 2)


def test_complex_entries_are_refused():
    given = sparsified(arguments())
    with pytest.raises(InvalidInput, match="real"):
        ContactProblem(**{**given, "normal": given["normal"].astype(complex)})


def test_islands_are_those_of_the_dense_problem():
    path = next(path for path in FILES if path.stem.startswith("box27"))
    dense, _ = read_clutter(path)
    problem = ContactProblem(**of_problem(dense))
    assert problem.island_count == dense.island_count
    for ours, theirs in zip(problem.islands(), dense.islands(), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
        part, whole = problem.restricted(ours), dense.restricted(theirs)
        assert part.is_sparse
        np.testing.assert_array_equal(part.dense().mass, whole.mass)
        np.testing.assert_array_equal(part.dense().tangent, whole.tangent)


def test_rows_of_zeros_and_rows_tied_to_them_are_islands_as_in_the_dense_problem():
    given = arguments()
    given["normal"][2] = given["tangent"][2] = given["box"][0] = 0.0
    ours = ContactProblem(**sparsified(given)).islands()
    theirs = ContactProblem(**given).islands()
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_pickles_copies_and_files_hold_the_sparse_arrays(tmp_path):
    problem = heap(5, 4)
    for again in (
        pickle.loads(pickle.dumps(problem)),
        ContactProblem.load(problem.save(tmp_path / "discs.npz")),
    ):
        assert again.is_sparse
        for name in ("mass", "normal", "tangent"):
            one, other = getattr(again, name), getattr(problem, name)
            assert one.shape == other.shape
            np.testing.assert_array_equal(one.toarray(), other.toarray())
        np.testing.assert_array_equal(again.bound, problem.bound)
        assert again.dt == problem.dt


def test_a_file_whose_sparse_arrays_are_damaged_is_refused_with_the_array(tmp_path):
    path = heap(5, 4).save(tmp_path / "discs.npz")
    with np.load(path) as found:
        content = dict(found)
    content["normal.indices"] = content["normal.indices"] + 1000
    np.savez(path, **content)
    with pytest.raises(InvalidInput, match="normal"):
        ContactProblem.load(path)
    del content["mass.shape"]
    np.savez(path, **content)
    with pytest.raises(InvalidInput, match="mass"):
        ContactProblem.load(path)


@pytest.mark.parametrize(
    "model",
    [
        Coulomb(),
        Coulomb(facets=8),
        Coulomb(solver="search"),
        Frictionless(),
        NoSlip(),
        Viscous(0.1),
        Baraff(),
        Baraff(static=0.3),
        DrumwrightShell(),
        by_solver("interior point"),
    ],
    ids=repr,
)
def test_every_model_answers_a_small_sparse_problem_as_it_does_the_dense_one(model):
    problem = heap(4, 3)
    assert problem.is_small
    ours, theirs = model.solve(problem), model.solve(problem.dense())
    assert ours.status.name == "SOLVED"
    assert ours.problem.is_sparse
    np.testing.assert_allclose(ours.velocity, theirs.velocity, atol=1e-12)
    np.testing.assert_allclose(ours.normal, theirs.normal, atol=1e-12)
    graded = certify(
        ours.problem, ours.velocity, ours.normal, ours.tangent, law=ours.law, facets=ours.facets
    )
    assert_same(ours.certificate, graded)


@pytest.mark.parametrize("model", [Coulomb(), Coulomb(facets=8), NoSlip(), Viscous(0.1)], ids=repr)
def test_models_with_a_sparse_way_solve_what_is_large(model):
    problem = heap(steps=2)
    assert not problem.is_small
    solution = model.solve(problem)
    assert solution.certificate.passed, str(solution.certificate)
    assert solution.rungs == ("interior point",)
    again = model.solve(problem, solution)
    assert again.certificate.passed


def test_without_friction_a_large_problem_has_the_velocity_that_pivoting_finds():
    problem = heap(15, 23)
    assert not problem.is_small
    solution = Frictionless().solve(problem)
    assert solution.certificate.passed
    expected = Frictionless().solve(problem.dense())
    np.testing.assert_allclose(solution.velocity, expected.velocity, atol=1e-9)


@pytest.mark.parametrize(
    "model", [Baraff(), DrumwrightShell(), Coulomb(solver="search"), Viscous(0.1, solver="lemke")],
    ids=repr,
)  # fmt: skip
def test_models_without_a_sparse_way_say_what_to_do_with_a_large_problem(model):
    with pytest.raises(InvalidInput, match=r"dense\(\)") as caught:
        model.solve(heap())
    assert caught.value.name == "problem"


def test_box_rows_that_blocks_have_no_place_for_are_named_in_a_large_problem():
    given = Discs(15, 25).arrays()
    turn = sparse.csr_array(np.eye(1, given["mass"].shape[0], 2))
    tied = {"box": turn, "box_limit": 1e-3, "box_contact": 0, "box_friction": 1e-3}
    with pytest.raises(InvalidInput, match=r"dense\(\)") as caught:
        Coulomb().solve(ContactProblem(**given, **tied))
    assert caught.value.name == "box_contact"


def test_joints_boxes_and_rolling_friction_are_solved_in_a_large_sparse_problem():
    given = Discs(15, 25).arrays()
    nv, nc = given["mass"].shape[0], given["normal"].shape[0]
    without = Coulomb().solve(ContactProblem(**given))
    turning = 2 + 3 * int(np.abs(without.velocity[2::3]).argmax())
    pressed = int((without.normal * np.hypot(*without.tangent.T)).argmax())
    rolling = 2 + 3 * (int(given["normal"].tocsr()[[pressed]].indices[0]) // 3)
    rows = sparse.lil_array((3, nv))
    rows[0, 0], rows[0, 3] = 1.0, -1.0  # two discs move sideways together
    rows[1, turning] = 1.0  # dry friction against the turning of the fastest
    rows[2, rolling] = 1.0  # and rolling friction at a contact that is pressed
    problem = ContactProblem(
        **given,
        joint=rows[[0]],
        box=rows[[1, 2]],
        box_limit=[1e-4, 0.0],
        box_contact=[-1, pressed],
        box_friction=[0.0, 1e-3],
    )
    assert pressed < nc
    solution = Coulomb().solve(problem)
    assert solution.certificate.passed, str(solution.certificate)
    assert solution.rungs[-1] == "interior point"
    assert solution.velocity[0] == pytest.approx(solution.velocity[3], abs=1e-9)
    assert abs(solution.box[0]) == pytest.approx(1e-4, rel=1e-9)
    assert abs(solution.box[1]) > 1e-6 * solution.normal[pressed]


def test_the_order_of_degrees_of_freedom_does_not_matter_to_a_sparse_problem():
    path = next(path for path in FILES if path.stem.startswith("box27"))
    dense, _ = read_clutter(path)
    given = of_problem(dense)
    mixed = np.random.default_rng(0).permutation(dense.nv)
    turned = {name: given[name][:, mixed] for name in MATRICES}
    turned["mass"] = turned["mass"][mixed]
    problem = ContactProblem(
        **{**given, **turned, "velocity": dense.velocity[mixed], "force": dense.force[mixed]}
    )
    impulses = random_impulses(problem)
    velocity = dense.velocity_from(*impulses)
    np.testing.assert_allclose(problem.velocity_from(*impulses), velocity[mixed], rtol=1e-9)
    ours = certify(problem, velocity[mixed], *impulses)
    theirs = certify(dense, velocity, *impulses)
    np.testing.assert_allclose(ours.scaled, theirs.scaled, rtol=1e-7)
    assert Coulomb().solve(problem).certificate.passed


def test_a_problem_whose_dense_arrays_would_not_fit_into_memory_is_solved_in_little():
    """20,000 discs: their dense mass alone would take 29 GB."""
    tracemalloc.start()
    try:
        problem = Discs(200, 100).problem()
        assert problem.nv == 60_000
        impulses = np.zeros(problem.nc)
        problem.velocity_from(impulses)
        certificate = certify(problem, problem.free_velocity, impulses)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert certificate.penetration > 0.0
    assert peak < 300e6


def test_memory_grows_in_proportion_to_the_problem():
    def peak(rows):
        tracemalloc.start()
        try:
            problem = Discs(20, rows).problem()
            Frictionless().solve(problem)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(20)
    assert peak(80) < 6.0 * peak(20)


def test_derivatives_of_a_small_sparse_problem_are_those_of_the_dense_one():
    problem = heap(4, 3)
    model = Frictionless()
    ours = model.solve(problem).derivatives().matrix("force")
    theirs = model.solve(problem.dense()).derivatives().matrix("force")
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_derivatives_of_a_large_sparse_problem_are_refused_by_name():
    solution = Frictionless().solve(heap())
    with pytest.raises(InvalidInput, match="derivatives need dense") as caught:
        solution.derivatives()
    assert caught.value.name == "problem"


def test_a_sparse_problem_has_no_whitened_view_and_says_where_it_is():
    with pytest.raises(AttributeError, match=r"dense\(\)"):
        _ = heap(4, 3).whitened


def contact_space(problem, dimension=2):
    """(W, q, bound) of a problem with a diagonal mass, sparse."""
    normal, tangent = problem.normal, problem.tangent
    order = np.arange(problem.nc)
    across = [problem.nc + 2 * order, problem.nc + 2 * order + 1]
    each = np.column_stack([order, *across])[:, :dimension].ravel()
    rows = sparse.csr_array(sparse.vstack([normal, tangent]))[each]
    inverse = sparse.diags_array(1.0 / problem.mass.diagonal())
    return rows @ inverse @ rows.T, rows @ problem.free_velocity


def test_a_sparse_contact_space_matrix_has_the_certificate_of_the_dense_one():
    problem = heap(5, 4)
    W, q = contact_space(problem)
    options = {"friction": problem.friction, "bound": problem.bound, "dimension": 2}
    ours = ContactProblem.from_delassus(W, q, **options)
    theirs = ContactProblem.from_delassus(W.toarray(), q, **options)
    assert ours.is_sparse
    assert isinstance(ours.delassus, sparse.csr_array)
    impulses = random_impulses(ours)
    velocity = theirs.velocity_from(*impulses)
    np.testing.assert_allclose(ours.velocity_from(*impulses), velocity, rtol=1e-12)
    velocity += np.random.default_rng(1).normal(size=len(velocity))
    assert_same(certify(ours, velocity, *impulses), certify(theirs, velocity, *impulses))
    for one, other in zip(ours.islands(), theirs.islands(), strict=True):
        np.testing.assert_array_equal(one.contacts, other.contacts)
    solution = Coulomb().solve(ours)
    assert solution.certificate.passed
    again = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(again.delassus.toarray(), ours.delassus.toarray())
    assert again.dimension == 2


@pytest.mark.parametrize("model", [Coulomb(), Coulomb(facets=8), Frictionless()], ids=repr)
def test_a_large_sparse_contact_space_matrix_is_solved_as_it_is(model):
    problem = heap(20, 20, steps=2)
    W, q = contact_space(problem)
    given = ContactProblem.from_delassus(
        W, q, friction=problem.friction, bound=problem.bound, dimension=2
    )
    assert not given.is_small
    solution = model.solve(given)
    assert solution.certificate.passed, str(solution.certificate)
    assert solution.rungs == ("interior point",)
    # Of the bodies themselves the same impulses are an answer, too.
    velocity = problem.velocity_from(solution.normal, solution.tangent)
    graded = certify(
        problem, velocity, solution.normal, solution.tangent, law=model.law, facets=model.facets
    )
    assert graded.worst <= 1e-7


def test_a_tower_of_planks_is_solved_from_its_singular_contact_space_matrix():
    problem = ContactProblem(**kapla(24))
    W, q = contact_space(problem, 3)
    given = ContactProblem.from_delassus(W, q, friction=problem.friction)
    assert not given.is_small
    assert Coulomb().solve(given).certificate.passed


@pytest.mark.parametrize("model", [NoSlip(), Viscous(0.1), Baraff()], ids=repr)
def test_models_that_need_more_than_a_large_contact_space_matrix_say_what_to_do(model):
    problem = heap(20, 20)
    W, q = contact_space(problem)
    given = ContactProblem.from_delassus(W, q, friction=0.4, dimension=2)
    with pytest.raises(InvalidInput, match=r"dense\(\)") as caught:
        model.solve(given)
    assert caught.value.name == "problem"


def test_a_sparse_contact_space_matrix_is_checked_like_a_dense_one():
    W = sparse.csr_array(np.diag([1.0, 1.0, 1.0, 2.0, 1.0, 1.0]))
    q = np.zeros(6)
    with pytest.raises(InvalidInput, match="shape"):
        ContactProblem.from_delassus(W[:5], q, friction=0.5)
    lopsided = W.toarray()
    lopsided[0, 3] = 0.5
    with pytest.raises(InvalidInput, match="symmetric") as caught:
        ContactProblem.from_delassus(sparse.csr_array(lopsided), q, friction=0.5)
    assert caught.value.name == "delassus"
    indefinite = W.toarray()
    indefinite[0, 1] = indefinite[1, 0] = 2.0
    with pytest.raises(InvalidInput, match="not positive semidefinite"):
        ContactProblem.from_delassus(sparse.csr_array(indefinite), q, friction=0.5)
    with pytest.raises(InvalidInput, match="not negative"):
        ContactProblem.from_delassus(-W, q, friction=0.5)


def test_a_kapla_tower_of_568_contacts_is_solved_and_its_feet_bear_it():
    problem = ContactProblem(**kapla(36))
    assert problem.nc == 568
    solution = Coulomb().solve(problem)
    assert solution.certificate.passed, str(solution.certificate)
    gained = problem.mass @ (solution.velocity - problem.velocity) - problem.dt * problem.force
    assert solution.normal[:8].sum() == pytest.approx(gained[2::6].sum(), rel=1e-6)


def test_seven_thousand_contacts_of_discs_are_solved_in_few_factorizations():
    discs = Discs(50, 48)
    for _ in range(2):
        solution = discs.step(Coulomb())
        assert solution.problem.nc > 7000
        assert solution.certificate.passed, str(solution.certificate)
        assert solution.pivots <= 60


def test_degrees_of_freedom_that_the_same_contacts_touch_are_one_node():
    problem = heap(5, 4)
    sizes = np.diff(problem.sparse.nodes.start)
    assert (sizes == 3).all()
    assert len(sizes) == 20


def test_what_nothing_touches_is_no_part_of_a_common_node():
    given = arguments()
    given["mass"] = np.eye(NV)
    for name in ("normal", "tangent", "joint", "box"):
        given[name][..., 2:] = 0.0
    problem = ContactProblem(**sparsified(given))
    assert np.diff(problem.sparse.nodes.start).max() == 2
    assert len(problem.sparse.nodes.start) == 1 + 1 + 4
