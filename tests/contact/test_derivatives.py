"""Derivatives of solved contact problems, against central differences of the solve itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from stiction import (
    Baraff,
    ContactProblem,
    Coulomb,
    DrumwrightShell,
    Frictionless,
    InvalidInput,
    NoSlip,
    Viscous,
)
from stiction.contact.problem.modes import Mode

EPS = 1e-6
MODELS = [Coulomb(), Coulomb(facets=6), Frictionless(), NoSlip(), Viscous(), Baraff()]
G = 9.81


def arguments(rng, nv=9, nc=5, tied=True):
    """A problem that sticks, slides and separates, with a joint, dry joints, spin and rolling."""
    root = rng.normal(size=(nv, nv))
    given = {
        "mass": root @ root.T / nv + 0.5 * np.eye(nv),
        "velocity": rng.normal(size=nv),
        "force": 10 * rng.normal(size=nv),
        "dt": 0.01,
        "normal": rng.normal(size=(nc, nv)),
        "tangent": rng.normal(size=(nc, 2, nv)),
        "friction": rng.choice([0.2, 0.5, 1.0], nc),
        "viscosity": 50 * rng.random(nc),
        "bound": np.where(rng.random(nc) < 0.3, -rng.random(nc), 0.1 * rng.random(nc)),
        "joint": rng.normal(size=(1, nv)),
        "joint_target": 0.1 * rng.normal(size=1),
        "box": rng.normal(size=(3, nv)),
        "box_limit": 10 ** rng.uniform(-2, 0.5, 3),
    }
    if tied:
        given |= {"box_contact": [-1, 0, 1], "box_friction": np.array([0.0, 0.2, 0.5])}
        given["box_limit"] = given["box_limit"] * [1, 0.02, 0.02]
    return given


def draw(model, rng, **options):
    """(arguments, solution) whose modes are firm."""
    while True:
        given = arguments(rng, **options)
        solution = model.solve(ContactProblem(**given))
        if solution.certificate.worst < 1e-12 and solution.derivatives().margin > 1e-3:
            return given, solution


def difference(model, given, change, eps=EPS):
    """Central difference of velocity and impulses along a change of the arguments."""
    ends = []
    for sign in (1.0, -1.0):
        moved = {k: v + sign * eps * np.asarray(change.get(k, 0.0)) for k, v in given.items()
                 if k not in ("box_contact", "dt")}  # fmt: skip
        kept = {k: given[k] for k in ("box_contact", "dt") if k in given}
        s = model.solve(ContactProblem(**moved, **kept))
        ends.append([s.velocity, s.normal, s.tangent, s.joint, s.box])
    return [(a - b) / (2 * eps) for a, b in zip(*ends, strict=True)]


def random_change(rng, given, names):
    change = {name: rng.normal(size=np.shape(given[name])) for name in names}
    if "mass" in change:
        change["mass"] = change["mass"] + change["mass"].T
    return change


NAMES = ["mass", "velocity", "force", "normal", "tangent", "friction", "viscosity", "bound"]
NAMES += ["joint", "joint_target", "box", "box_limit"]


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("seed", range(6))
def test_changes_of_every_array_carry_forward_as_differences_have_them(model, seed):
    rng = np.random.default_rng(seed)
    given, solution = draw(model, rng, tied=isinstance(model, Coulomb))
    for names in ([name] for name in [*NAMES, "box_friction"] if name in given):
        change = random_change(rng, given, names)
        if names == ["bound"] and isinstance(model, (NoSlip, Viscous)):
            change["bound"] = np.where(given["bound"] == 0.0, 0.0, change["bound"])
        elif names == ["box_friction"]:
            change["box_friction"][0] = 0.0
        found = solution.derivatives().jvp(**change)
        for have, want in zip(found, difference(model, given, change), strict=True):
            size = max(1.0, np.abs(want).max(initial=0.0))
            assert_allclose(have / size, want / size, atol=1e-6, err_msg=names[0])


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_gradients_are_the_transpose_of_what_goes_forward(model):
    rng = np.random.default_rng(7)
    _, solution = draw(model, rng, tied=isinstance(model, Coulomb))
    slopes = solution.derivatives()
    cotangent = [rng.normal(size=part.shape) for part in slopes.answer]
    gradient = slopes.vjp(*cotangent)
    assert set(gradient) == set(slopes.names)
    for name in slopes.names:
        if name == "free_velocity":
            change = {name: rng.normal(size=9)}
        else:
            change = {name: rng.normal(size=np.shape(getattr(solution.problem, name)))}
        forward = slopes.jvp(**change)
        there = sum(np.vdot(a, b) for a, b in zip(cotangent, forward, strict=True))
        assert there == pytest.approx(np.vdot(gradient[name], change[name]), rel=1e-9, abs=1e-12)


def test_matrices_hold_the_velocity_for_each_entry():
    rng = np.random.default_rng(3)
    _, solution = draw(Coulomb(), rng)
    slopes = solution.derivatives()
    for name in ("free_velocity", "friction", "bound", "normal", "box_limit"):
        matrix = slopes.matrix(name)
        change = rng.normal(size=matrix.shape[1:])
        forward = slopes.jvp(**{name: change}).velocity
        assert_allclose(np.tensordot(matrix, change, change.ndim), forward, atol=1e-10)


@pytest.mark.parametrize("dimension", [2, 3])
def test_problems_in_contact_space_have_derivatives_too(dimension):
    rng, eps = np.random.default_rng(5), 1e-6
    n = 3 * dimension
    root = rng.normal(size=(n, n))
    W, q, mu, b = root @ root.T, rng.normal(size=n) - 1.0, np.full(3, 0.4), rng.normal(size=3)

    def solve(W, q, mu, b):
        return Coulomb().solve(
            ContactProblem.from_delassus(W, q, friction=mu, bound=b, dimension=dimension)
        )

    slopes = solve(W, q, mu, b).derivatives()
    assert slopes.margin > 1e-3
    dW, dq, dmu, db = (
        rng.normal(size=(n, n)),
        rng.normal(size=n),
        rng.normal(size=3),
        rng.normal(size=3),
    )
    dW += dW.T
    ends = [solve(W + s * dW, q + s * dq, mu + s * dmu, b + s * db) for s in (eps, -eps)]
    found = slopes.jvp(delassus=dW, free_velocity=dq, friction=dmu, bound=db)
    for have, name in zip(found[:3], ("velocity", "normal", "tangent"), strict=True):
        want = (getattr(ends[0], name) - getattr(ends[1], name)) / (2 * eps)
        assert_allclose(have, want, atol=1e-6 * max(1.0, np.abs(want).max()))
    v, f = rng.normal(size=n), rng.normal(size=3)
    gradient = slopes.vjp(velocity=v, normal=f)
    changes = {"delassus": dW, "free_velocity": dq, "friction": dmu, "bound": db}
    back = sum(np.vdot(gradient[name], change) for name, change in changes.items())
    assert back == pytest.approx(v @ found.velocity + f @ found.normal)


def box_on_ground(velocity=(0, 0, 0, 0, 0, 0), push=(0, 0, 0), mu=0.5, corners=4):
    """A box that lies on its face: 3 corners rows for six degrees of freedom."""
    mass, half, dt = 2.0, np.array([0.2, 0.1, 0.05]), 0.01
    axes = np.eye(3)
    feet = [np.array([x, y, -1.0]) * half for x in (-1, 1) for y in (-1, 1)]
    feet = (feet * (corners // 4 + 1))[:corners]
    row = lambda d, r: np.concatenate([d, np.cross(r, d)])  # noqa: E731
    return {
        "mass": np.diag([mass] * 3 + [0.01, 0.03, 0.04]),
        "velocity": np.array(velocity, float),
        "force": np.array([push[0], push[1], push[2] - mass * G, 0, 0, 0]),
        "dt": dt,
        "normal": np.array([row(axes[2], r) for r in feet]),
        "tangent": np.array([[row(axes[k], r) for k in (0, 1)] for r in feet]),
        "friction": np.full(corners, mu),
        "bound": np.zeros(corners),
    }


@pytest.mark.parametrize("corners", [4, 8, 12])
@pytest.mark.parametrize("sliding", [False, True])
def test_redundant_contacts_do_not_spoil_the_derivative_of_the_velocity(corners, sliding):
    speed = (1.0, 0.3, 0, 0, 0, 0) if sliding else (0,) * 6
    given = box_on_ground(speed, push=(3.0, 1.0, 0.0), corners=corners)
    solution = Coulomb().solve(ContactProblem(**given))
    wanted = Mode.SLIDE if sliding else Mode.STICK
    assert (solution.modes[solution.normal > 0.0] == wanted).all()
    slopes = solution.derivatives()
    for change in (
        {"force": np.array([1.0, 0.5, -2.0, 0, 0, 0])},
        {"velocity": np.array([0.2, -0.1, 0, 0, 0, 0])},
        {"friction": np.ones(corners)},
        {"bound": np.full(corners, 0.1)},
        {"mass": np.diag([1.0, 1, 1, 0, 0, 0])},
    ):
        want = difference(Coulomb(), given, change, eps=1e-5)[0]
        assert_allclose(slopes.jvp(**change).velocity, want, atol=1e-8)


def test_a_sliding_block_slows_by_what_closed_form_says():
    given = box_on_ground((1.0, 0, 0, 0, 0, 0))
    slopes = Coulomb().solve(ContactProblem(**given)).derivatives()
    # v+ = v - mu g h along the slip; across it the direction turns
    along, across = slopes.matrix("velocity")[0, 0], slopes.matrix("velocity")[1, 1]
    slip = 1.0 - 0.5 * G * 0.01
    assert along == pytest.approx(1.0)
    assert across == pytest.approx(slip / 1.0)
    assert slopes.matrix("friction").sum(axis=1)[0] == pytest.approx(-G * 0.01)


def test_a_solution_without_its_problem_or_without_a_law_says_so():
    given = box_on_ground()
    shell = DrumwrightShell().solve(ContactProblem(**given))
    with pytest.raises(InvalidInput, match="convex"):
        shell.derivatives()
    slopes = Coulomb().solve(ContactProblem(**given)).derivatives()
    with pytest.raises(InvalidInput, match="frction"):
        slopes.jvp(frction=np.ones(4))
    with pytest.raises(InvalidInput, match="shape"):
        slopes.jvp(friction=np.ones(3))
    with pytest.raises(InvalidInput, match="velocity"):
        slopes.vjp(velocity=np.ones(3))


@pytest.mark.parametrize("free", [-1.0, -0.1, 0.0, 0.1, 1.0])
@pytest.mark.parametrize("smoothing", [1e-6, 1e-2])
def test_smoothed_contact_of_one_mass_follows_the_central_path(free, smoothing):
    problem = ContactProblem(
        mass=[[2.0]], velocity=[free], force=[0.0], dt=0.01, normal=[[1.0]], bound=[-0.3]
    )
    found = Frictionless().solve(problem).derivatives(smoothing).matrix("velocity")[0, 0]
    # y - x = (v_free - b) / scale and x y = smoothing: y grows with v_free by y / (x + y)
    ahead = (free + 0.3) / problem.scales.contact[0] if free else np.inf
    if np.isfinite(ahead):
        root = np.sqrt(0.25 * ahead**2 + smoothing)
        assert found == pytest.approx((root + 0.5 * ahead) / (2.0 * root))


@pytest.mark.parametrize("model", [Coulomb(), Frictionless(), NoSlip(), Viscous()], ids=repr)
def test_a_little_smoothing_changes_little(model):
    rng = np.random.default_rng(11)
    given, solution = draw(model, rng, tied=isinstance(model, Coulomb))
    for name in ("velocity", "bound", "normal"):
        exact = solution.derivatives().matrix(name)
        smooth = solution.derivatives(smoothing=1e-14).matrix(name)
        assert_allclose(smooth, exact, atol=1e-4 * max(1.0, np.abs(exact).max()))
    slopes = solution.derivatives(smoothing=1e-2)
    change = random_change(rng, given, ["velocity", "normal", "friction", "bound"])
    cotangent = rng.normal(size=9)
    there = cotangent @ slopes.jvp(**change).velocity
    gradient = slopes.vjp(velocity=cotangent)
    back = sum(np.vdot(gradient[name], value) for name, value in change.items())
    assert there == pytest.approx(back)


def test_smoothed_a_contact_ahead_is_felt():
    given = box_on_ground((0.5, 0, -0.1, 0, 0, 0))
    given["bound"] = np.full(4, -0.5)  # it does not reach the ground within the step
    solution = Coulomb().solve(ContactProblem(**given))
    assert not solution.active.any()
    for smoothing, felt in ((0.0, False), (1e-2, True)):
        slopes = solution.derivatives(smoothing)
        assert (np.abs(slopes.matrix("bound")[2]).max() > 1e-3) == felt
        assert (np.abs(slopes.matrix("friction")[0]).max() > 1e-6) == felt


def test_smoothed_infinite_friction_holds_what_is_pressed_and_nothing_ahead():
    given = box_on_ground((0.5, 0, -0.1, 0, 0, 0))
    given["friction"] = np.full(4, np.inf)
    for bound, left in ((0.0, 0.0), (-5.0, 1.0)):
        given["bound"] = np.full(4, bound)
        solution = Coulomb().solve(ContactProblem(**given))
        along = solution.derivatives(1e-6).matrix("velocity")[0, 0]
        assert along == pytest.approx(solution.derivatives().matrix("velocity")[0, 0], abs=1e-3)
        if left:
            assert along == pytest.approx(left)


def test_smoothed_a_polygons_contact_ahead_pulls_nowhere():
    given = box_on_ground((0.5, 0, -0.1, 0, 0, 0))
    given["bound"] = np.full(4, -0.5)
    solution = Coulomb(facets=8).solve(ContactProblem(**given))
    assert not solution.active.any()
    assert np.abs(solution.derivatives(1e-2).matrix("bound")[:2]).max() < 1e-12


@pytest.mark.parametrize("model", [Coulomb(), Frictionless(), NoSlip(), Viscous()], ids=repr)
def test_problems_with_sparse_arrays_have_the_derivatives_of_their_solutions(model):
    rng = np.random.default_rng(3)
    given, _ = draw(model, rng, tied=isinstance(model, Coulomb))
    full = {name: given[name] for name in given}
    full["tangent"] = given["tangent"].reshape(-1, 9)
    names = ("mass", "normal", "tangent", "joint", "box")
    problem = ContactProblem(**full | {name: sparse.csr_array(full[name]) for name in names})
    assert problem.is_sparse
    slopes = model.solve(problem).derivatives()
    for name in NAMES:
        change = random_change(rng, given, [name])
        if name == "bound" and isinstance(model, (NoSlip, Viscous)):
            change["bound"] = np.where(given["bound"] == 0.0, 0.0, change["bound"])
        want = difference(model, given, change)
        for have, there in zip(slopes.jvp(**change), want, strict=True):
            size = max(1.0, np.abs(there).max(initial=0.0))
            assert_allclose(have / size, there / size, atol=1e-6, err_msg=name)
    gradient = slopes.vjp(rng.normal(size=9))
    assert {name: np.shape(gradient[name]) for name in NAMES} == {
        name: np.shape(given[name]) for name in NAMES
    }
