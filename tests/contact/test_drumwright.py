"""Frictionless, no-slip and viscous contact: closed forms, the papers' families, joints."""

import numpy as np
import pytest
from point_mass import point

from stiction import lcp
from stiction.contact import ContactProblem
from stiction.contact.models.frictionless import Frictionless
from stiction.contact.models.no_slip import NoSlip
from stiction.contact.models.viscous import Viscous
from stiction.contact.solvers.drumwright import pivoting as kernels
from stiction.errors import InvalidInput
from stiction.reproduce.contact_lcps import frictionless as frictionless_lcp
from stiction.reproduce.families import (
    SINGLE_BODIES,
    STACKS,
    grasp,
    peg,
    scaled,
    single_body,
    stack,
)
from stiction.status import Status

G = 9.81
MODELS = [Frictionless(), NoSlip(), Viscous(0.1)]
FAMILIES = {
    **{f"peg {n}": lambda rng, n=n: peg(n, rng) for n in (8, 16, 32, 64)},
    **{kind: lambda rng, kind=kind: single_body(kind, rng) for kind in SINGLE_BODIES},
    **{f"stack {b}/{n}": lambda rng, b=b, n=n: stack(b, n, rng) for b, n in STACKS},
    **{f"grasp {n}": lambda rng, n=n: grasp(n, rng) for n in (1, 2, 4)},
}


def name(model):
    return type(model).__name__


def energy(problem, velocity):
    return 0.5 * velocity @ problem.mass @ velocity


# --- Closed forms ---------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=name)
@pytest.mark.parametrize("at", [(0.0, 0.0), (0.3, -0.2), (0.5, 0.4), (0.4, 0.1)])
def test_a_four_legged_table_carries_its_weight_and_moments(model, at):
    legs = np.array([[x, y, -1.0] for x in (-0.5, 0.5) for y in (-0.4, 0.4)])
    axes = np.eye(3)[[2, 0, 1]]
    rows = np.stack([np.concatenate([np.tile(a, (4, 1)), np.cross(legs, a)], axis=1) for a in axes])
    weight = 7.0 * G
    force = np.array([0.0, 0.0, -weight, -weight * at[1], weight * at[0], 0.0])
    problem = ContactProblem(
        mass=np.diag([7.0, 7.0, 7.0, 1.0, 1.5, 2.0]),
        velocity=np.zeros(6),
        force=force,
        dt=0.01,
        normal=rows[0],
        tangent=rows[1:].transpose(1, 0, 2),
        friction=0.5,
    )
    solution = model.solve(problem)
    assert solution.status is Status.SOLVED
    press = solution.normal / problem.dt
    assert (press >= 0.0).all()
    assert press.sum() == pytest.approx(weight, rel=1e-12)
    assert press @ legs[:, 0] == pytest.approx(weight * at[0], abs=1e-10)
    assert press @ legs[:, 1] == pytest.approx(weight * at[1], abs=1e-10)
    assert np.abs(solution.velocity).max() < 1e-14


@pytest.mark.parametrize("model", MODELS, ids=name)
@pytest.mark.parametrize("ratio", [1e3, 1e4, 1e5, 1e6])
def test_a_kilogram_carries_a_thousand_tons(model, ratio):
    mass = np.array([1.0, ratio])
    problem = point(
        [[1.0, 0.0], [-1.0, 1.0]], np.zeros(2), mass=np.diag(mass), force=-G * mass, dt=1e-3
    )
    solution = model.solve(problem)
    assert solution.status is Status.SOLVED
    expected = np.array([G * mass.sum(), G * ratio]) * problem.dt
    np.testing.assert_allclose(solution.normal, expected, rtol=1e-9)
    assert np.abs(solution.velocity).max() < 1e-9 * G * problem.dt * ratio / 1e3


def test_lynch_and_masons_rod_opens_and_does_not_slip():
    delassus = [[1.6, -1.2], [-1.2, 3.4]]
    problem = ContactProblem.from_delassus(delassus, [-0.1, 1.0], friction=np.inf, dimension=2)
    solution = NoSlip().solve(problem)
    assert solution.status is Status.SOLVED
    assert solution.normal[0] == 0.0
    assert solution.tangent[0, 0] == pytest.approx(-0.294118, abs=5e-7)
    np.testing.assert_allclose(solution.velocity, [0.252941, 0.0], atol=5e-7)


def test_painleves_rod_comes_to_rest_without_slip():
    mass = np.diag([1.0, 1.0, 1.0 / 3.0])
    # Contact space W = [[1.6, -1.2], [-1.2, 3.4]]: the centre is at (1, 2) / sqrt(5) off the tip.
    reach = np.array([1.0, 2.0]) / np.sqrt(5.0)
    normal = np.array([[0.0, 1.0, -reach[0]]])
    tangent = np.array([[[1.0, 0.0, reach[1]], [0.0, 0.0, 0.0]]])
    problem = point(normal, [0.0, -1.0, 0.0], tangent=tangent, mass=mass)
    solution = NoSlip().solve(problem)
    rows = np.concatenate([normal, tangent[0, :1]])
    delassus = rows @ np.linalg.inv(mass) @ rows.T
    np.testing.assert_allclose(delassus, [[1.6, -1.2], [-1.2, 3.4]])
    expected = np.linalg.solve(delassus, [1.0, 0.0])
    assert [solution.normal[0], solution.tangent[0, 0]] == pytest.approx(expected)
    assert solution.status is Status.SOLVED


def test_a_rocking_block_keeps_the_known_share_of_its_spin():
    width, height = 1.0, 2.0
    inertia = (width**2 + height**2) / 12
    spin = 1.0
    # It turns about the left corner, and the right one strikes: both touch from then on.
    arms = np.array([[-width / 2, -height / 2], [width / 2, -height / 2]])
    normal = np.array([[0.0, 1.0, arm[0]] for arm in arms])
    tangent = np.array([[[1.0, 0.0, -arm[1]], [0.0, 0.0, 0.0]] for arm in arms])
    before = spin * np.array([arms[0, 1], -arms[0, 0], 1.0]) * -1.0
    problem = point(normal, before, tangent=tangent, mass=np.diag([1.0, 1.0, inertia]))
    # The left corner may leave: no-slip holds tangents at both, normals only where pressed.
    solution = NoSlip().solve(problem)
    assert solution.status is Status.SOLVED
    ratio = solution.velocity[2] / before[2]
    assert ratio == pytest.approx(1 - 1.5 * np.sin(np.arctan(width / height)) ** 2)


def test_viscous_drag_is_taken_at_the_end_of_the_step():
    tangent = np.array([[[1.0, 0.0], [0.0, 0.0]]])
    problem = point([[0.0, 1.0]], [2.0, -1.0], tangent=tangent, viscosity=300.0)
    solution = Viscous().solve(problem)
    assert solution.velocity == pytest.approx([2.0 / (1 + 0.01 * 300.0), 0.0])
    assert solution.tangent[0, 0] == pytest.approx(-0.01 * 300.0 * solution.velocity[0])
    assert solution.certificate.passed


def test_the_coefficient_of_the_model_stands_before_that_of_the_problem():
    tangent = np.array([[[1.0, 0.0], [0.0, 0.0]]])
    problem = point([[0.0, 1.0]], [2.0, -1.0], tangent=tangent, viscosity=300.0)
    solution = Viscous(100.0).solve(problem)
    assert solution.velocity == pytest.approx([1.0, 0.0])
    assert solution.status is Status.SOLVED
    assert problem.viscosity[0] == 300.0
    with pytest.raises(InvalidInput, match="coefficient"):
        Viscous(-1.0)


@pytest.mark.parametrize("family", ["peg 16", "stack 4/16", "grasp 2"])
def test_viscous_contact_by_lemke_has_the_same_velocity(family):
    arrays = FAMILIES[family](np.random.default_rng(3))
    problem = arrays.problem()
    first, second = (Viscous(0.1, solver=solver).solve(problem) for solver in ("ppm", "lemke"))
    assert first.certificate.passed
    assert second.certificate.passed
    assert second.rungs == ("lemke",)
    size = np.abs(first.velocity).max()
    np.testing.assert_allclose(first.velocity, second.velocity, rtol=0.0, atol=1e-7 * size)


def test_an_unknown_solver_of_viscous_contact_is_refused():
    with pytest.raises(InvalidInput, match="'simplex'"):
        Viscous(0.1, solver="simplex")


def test_viscosity_without_end_is_no_slip():
    arrays = single_body("face on surface", np.random.default_rng(3))
    held = NoSlip().solve(arrays.problem())
    dragged = Viscous(1e7).solve(arrays.problem())
    assert dragged.status is Status.SOLVED
    np.testing.assert_allclose(dragged.velocity, held.velocity, atol=1e-4)


def test_contacts_ahead_have_no_tangential_impulse_yet():
    tangent = np.array([[[1.0, 0.0], [0.0, 0.0]]])
    for model in (NoSlip(), Viscous(50.0)):
        ahead = point([[0.0, 1.0]], [2.0, -1.0], tangent=tangent, bound=-0.25)
        solution = model.solve(ahead)
        assert solution.velocity == pytest.approx([2.0, -0.25])
        assert not solution.tangent.any()
        assert solution.status is Status.SOLVED


def test_a_contact_without_friction_slides_freely_in_no_slip():
    tangent = np.array([[[1.0, 0.0], [0.0, 0.0]]])
    problem = point([[0.0, 1.0]], [2.0, -1.0], tangent=tangent, friction=0.0)
    assert NoSlip().solve(problem).velocity == pytest.approx([2.0, 0.0])


# --- Accelerations --------------------------------------------------------------------


def test_a_sliding_block_is_slowed_in_proportion_to_its_speed():
    a, press, joints, pivots = Viscous(0.5).accelerations(
        mass=2.0 * np.eye(2),
        velocity=[3.0, 0.0],
        force=[0.0, -2.0 * G],
        normal=[[0.0, 1.0]],
        tangent=[[[1.0, 0.0], [0.0, 0.0]]],
    )
    assert a == pytest.approx([-0.5 * 3.0 / 2.0, 0.0])
    assert press == pytest.approx([2.0 * G])
    assert joints.shape == (0,)
    assert pivots == 1


def test_a_bead_on_a_ring_feels_the_turning_of_its_joint():
    v = np.array([0.0, 2.0])  # at (1, 0) on the unit circle: J = (1, 0), Jdot = v
    for rate in ([v], v @ v * np.ones(1)):
        a, _, joint, _ = Viscous().accelerations(
            np.eye(2), v, np.zeros(2), np.zeros((0, 2)), np.zeros((0, 2, 2)),
            joint=[[1.0, 0.0]], joint_rate=rate,
        )  # fmt: skip
        assert a == pytest.approx([-4.0, 0.0])
        assert joint == pytest.approx([-4.0])


@pytest.mark.parametrize("seed", range(5))
def test_accelerations_obey_newton_and_complementarity(seed):
    rng = np.random.default_rng(seed)
    arrays = stack(3, 12, rng)
    nv, nc = len(arrays.velocity), len(arrays.normal)
    v, rate, joint = rng.standard_normal(nv), rng.standard_normal(nc), rng.standard_normal((2, nv))
    joint = np.concatenate([joint, joint[:1]])
    mu = rng.uniform(0.0, 1.0, nc)
    a, press, pull, _ = Viscous().accelerations(
        arrays.mass, v, arrays.force, arrays.normal, arrays.tangent, mu, rate, joint
    )
    drag = np.einsum("ikj,i,ik->j", arrays.tangent, mu, arrays.tangent @ v)
    total = arrays.force - drag + arrays.normal.T @ press + joint.T @ pull
    np.testing.assert_allclose(arrays.mass @ a, total, atol=1e-9)
    gap = arrays.normal @ a + rate
    assert gap.min() > -1e-9
    assert press.min() >= 0.0
    assert np.abs(press * gap).max() < 1e-8
    assert np.abs(joint @ a).max() < 1e-10


def test_accelerations_that_cannot_be_are_not_a_number():
    a, press, _, _ = Viscous().accelerations(
        np.eye(1), [0.0], [0.0], [[1.0], [-1.0]], np.zeros((2, 2, 1)), 0.0, [-1.0, -1.0]
    )
    assert np.isnan(a).all()
    assert np.isnan(press).all()


# --- The papers' families -------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=name)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_problem_of_every_family_is_certified(model, family):
    rng = np.random.default_rng(20)
    for _ in range(20):
        arrays = FAMILIES[family](rng)
        solution = model.solve(arrays.problem())
        assert solution.status is Status.SOLVED
        assert solution.certificate.worst <= 1e-8
        before, after = (
            energy(arrays.problem(), v) for v in (arrays.problem().free_velocity, solution.velocity)
        )
        assert after <= before * (1 + 1e-12)


@pytest.mark.parametrize("model", MODELS, ids=name)
@pytest.mark.parametrize(("momentum", "mass"), [(1e-8, 1.0), (1e-4, 1.0), (1e4, 1.0), (1.0, 1e-6)])
def test_units_do_not_matter(model, momentum, mass):
    rng = np.random.default_rng(1)
    for make in FAMILIES.values():
        arrays = make(rng)
        solution = model.solve(scaled(arrays, momentum, mass).problem())
        assert solution.status is Status.SOLVED
        if not isinstance(model, Viscous):  # its coefficient has units of its own
            same = model.solve(arrays.problem())
            speed = np.abs(arrays.problem().free_velocity).max() * momentum / mass
            difference = solution.velocity - same.velocity * momentum / mass
            assert np.abs(difference).max() <= 1e-10 * speed


def test_frictionless_velocities_are_those_of_the_assembled_problem():
    rng = np.random.default_rng(2)
    for make in FAMILIES.values():
        problem = make(rng).problem()
        z = lcp.solve(*frictionless_lcp(problem)).z
        expected = problem.velocity_from(z)
        solution = Frictionless().solve(problem)
        scale = np.abs(problem.free_velocity).max()
        np.testing.assert_allclose(solution.velocity, expected, atol=1e-9 * scale)


def test_the_grasp_takes_as_few_pivots_as_drumwrights():
    rng = np.random.default_rng(0)
    problems = [grasp(2).problem(), *(grasp(2, rng).problem() for _ in range(30))]
    pivots = [NoSlip().solve(problem).pivots for problem in problems]
    assert np.mean(pivots) <= 5.5
    assert max(pivots) <= 7
    held = NoSlip().solve(problems[0])
    assert np.abs(held.velocity).max() < 1e-13


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_kinetic_energy_never_rises_at_an_impact(model):
    rng = np.random.default_rng(4)
    for make in FAMILIES.values():
        arrays = make(rng)
        problem = ContactProblem(
            mass=arrays.mass,
            velocity=rng.standard_normal(len(arrays.velocity)),
            force=np.zeros(len(arrays.velocity)),
            dt=arrays.dt,
            normal=arrays.normal,
            tangent=arrays.tangent,
            friction=arrays.friction,
        )
        solution = model.solve(problem)
        assert solution.status is Status.SOLVED
        limit = energy(problem, problem.velocity) * (1 + 1e-12)
        assert energy(problem, solution.velocity) <= limit


# --- Joints, boxes, warm starts -------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=name)
@pytest.mark.parametrize("seed", range(10))
def test_joints_that_depend_on_each_other_hold(model, seed):
    rng = np.random.default_rng(seed)
    arrays = stack(3, 12, rng)
    nv = len(arrays.velocity)
    joint = rng.standard_normal((4, nv))
    joint[3] = joint[0] - 2.0 * joint[1]
    target = joint @ rng.standard_normal(nv) * 0.01 if isinstance(model, Frictionless) else 0.0
    problem = arrays.problem(
        joint=joint,
        joint_target=target,
    )
    solution = model.solve(problem)
    assert solution.status is Status.SOLVED
    assert solution.certificate.joint < 1e-12


def test_joints_that_contradict_each_other_are_infeasible():
    problem = ContactProblem(
        mass=np.eye(2), velocity=np.zeros(2), force=np.zeros(2), dt=0.1,
        joint=[[1.0, 1.0], [2.0, 2.0]], joint_target=[1.0, 3.0],
    )  # fmt: skip
    assert Frictionless().solve(problem).status is Status.INFEASIBLE


@pytest.mark.parametrize("model", MODELS, ids=name)
@pytest.mark.parametrize(
    ("limit", "speed", "impulse"), [(0.3, 0.7, -0.3), (2.0, 0.0, -1.0), (np.inf, 0.0, -1.0)]
)
def test_dry_friction_of_a_joint_stops_it_or_acts_at_its_limit(model, limit, speed, impulse):
    problem = ContactProblem(
        mass=np.eye(1), velocity=[1.0], force=[0.0], dt=0.1, box=[[1.0]], box_limit=limit
    )
    solution = model.solve(problem)
    assert solution.status is Status.SOLVED
    assert solution.velocity == pytest.approx([speed])
    assert solution.box == pytest.approx([impulse])


@pytest.mark.parametrize("model", [Frictionless(), NoSlip(), Viscous()], ids=name)
def test_random_problems_of_every_kind_of_row_are_certified(model):
    rng = np.random.default_rng(9)
    driven = 0
    for _ in range(300):
        nv, nc, nj, nb = (
            int(rng.integers(low, high)) for low, high in ((1, 9), (0, 13), (0, 4), (0, 3))
        )
        small = rng.random() < 0.6

        def rows(*shape, small=small):
            wide = rng.standard_normal(shape)
            return rng.integers(-1, 2, shape).astype(float) if small else wide

        normal = rows(nc, nv)
        if nc > 3:
            normal[0], normal[2] = -normal[1], normal[3]
        problem = ContactProblem(
            mass=np.diag(10.0 ** rng.uniform(-2, 2, nv)),
            velocity=rows(nv),
            force=rows(nv),
            dt=0.1,
            normal=normal,
            tangent=rows(nc, 2, nv),
            friction=rng.choice([0.0, 0.5, np.inf], nc),
            viscosity=rng.choice([0.0, 1e-3, 1.0, 1e3], nc),
            bound=-rng.random(nc) * rng.integers(0, 2, nc),
            joint=rows(nj, nv),
            box=rows(nb, nv),
            box_limit=rng.choice([0.0, 0.1, 1.0, 10.0, np.inf], nb),
        )
        solution = model.solve(problem)
        assert solution.status is Status.SOLVED
        assert solution.certificate.worst <= 1e-8
        driven += "drive" in solution.rungs
        again = model.solve(problem, start=solution)
        assert again.status is Status.SOLVED
        scale = max(1.0, np.abs(problem.free_velocity).max())
        np.testing.assert_allclose(again.velocity, solution.velocity, atol=1e-8 * scale)
    assert driven


@pytest.mark.parametrize("model", MODELS, ids=name)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_warm_start_on_the_unchanged_problem_takes_no_pivot(model, family):
    problem = FAMILIES[family](np.random.default_rng(10)).problem()
    first = model.solve(problem)
    again = model.solve(problem, start=first)
    assert again.pivots == 0
    assert again.status is Status.SOLVED
    scale = np.abs(problem.free_velocity).max()
    np.testing.assert_allclose(again.velocity, first.velocity, atol=1e-12 * scale)


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_a_warm_start_from_another_load_changes_nothing(model):
    rng = np.random.default_rng(11)
    for make in FAMILIES.values():
        other, problem = make(rng).problem(), make(rng).problem()
        warm = model.solve(problem, start=model.solve(other))
        cold = model.solve(problem)
        assert warm.status is Status.SOLVED
        scale = np.abs(problem.free_velocity).max()
        np.testing.assert_allclose(warm.velocity, cold.velocity, atol=1e-11 * scale)


# --- The kernels ----------------------------------------------------------------------


def random_rows(rng, r, n):
    """Unit columns of few distinct directions, and bounds that a known u obeys."""
    cols = rng.integers(-1, 2, (r, n)).astype(float)
    lengths = np.linalg.norm(cols, axis=0)
    cols /= np.where(lengths > 0.0, lengths, 1.0)
    inside = rng.standard_normal(r)
    return cols, np.maximum(rng.integers(-1, 2, n) * 0.5, -cols.T @ inside)


@pytest.mark.parametrize("seed", range(100))
def test_the_drive_alone_finds_what_pivoting_finds(seed):
    rng = np.random.default_rng(seed)
    r, n = int(rng.integers(1, 6)), int(rng.integers(1, 20))
    cols, c = random_rows(rng, r, n)
    z, u = np.empty(n), np.empty(r)
    code, _, _ = kernels.solve_rows(cols, c, 0, np.empty(0), np.empty(0, np.int8), z, u)
    index, lower = np.empty(r + 1, np.int64), np.empty((r + 1, r + 1))
    basis, work = np.empty((r + 1, r)), np.empty((6, r + 1))
    z_driven, u_driven, w = np.zeros(n), np.zeros(r), np.empty(n)
    lo, hi = np.zeros(n), np.full(n, np.inf)
    driven, _ = kernels.drive(
        index, lower, basis, work, 0, cols, c, lo, hi, z_driven, u_driven, w, 1000
    )
    assert Status.from_code(code) is Status.from_code(driven) is Status.SOLVED
    np.testing.assert_allclose(u, u_driven, atol=1e-10)
    for impulses, change in ((z, u), (z_driven, u_driven)):
        assert impulses.min() >= 0.0
        np.testing.assert_allclose(cols @ impulses, change, atol=1e-12)
        assert (cols.T @ change + c).min() > -1e-12
        assert np.abs(impulses * (cols.T @ change + c)).max() < 1e-12
