"""Coulomb friction, exact cone and polygons: closed forms, families, pathologies, invariances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from random_contacts import random_rows
from siconos import friction_files, read_friction

from stiction.contact import Certificate, ContactProblem, Mode, certify
from stiction.contact.models.coulomb import SOLVERS, Coulomb
from stiction.errors import InvalidInput
from stiction.reproduce import families

G = 9.81


def point_mass(mu, load, mass=1.0, dt=0.01, velocity=(0.0, 0.0, 0.0), **rest):
    """A particle on a floor (z up) under a force `load` (3,) beside its weight."""
    force = np.add(load, [0.0, 0.0, -mass * G])
    return ContactProblem(
        mass=mass * np.eye(3),
        velocity=np.array(velocity, float),
        force=force,
        dt=dt,
        normal=[[0.0, 0.0, 1.0]],
        tangent=[[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]],
        friction=mu,
        **rest,
    )


def box(points, mass=1.0, inertia=0.1, mu=0.5, dt=0.01, velocity=None, force=None, copies=1):
    """A free body (linear, angular) on a floor at contact points (k, 3) about its centre."""
    rows_n, rows_t = [], []
    for p in np.repeat(np.asarray(points, float), copies, axis=0):
        for d, store in (
            ([0, 0, 1], rows_n),
            ([1, 0, 0], rows_t),
            ([0, 1, 0], rows_t),
        ):
            store.append(np.concatenate([d, np.cross(p, d)]))
    k = len(rows_n)
    weight = np.array([0, 0, -mass * G, 0, 0, 0.0])
    return ContactProblem(
        mass=np.diag([mass] * 3 + [inertia] * 3),
        velocity=np.zeros(6) if velocity is None else np.asarray(velocity, float),
        force=weight if force is None else weight + force,
        dt=dt,
        normal=rows_n,
        tangent=np.reshape(rows_t, (k, 2, 6)),
        friction=mu,
    )


FEET = [(x, y, -0.5) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]


@pytest.mark.parametrize("angle", np.arange(0, 6.3, 0.37))
@pytest.mark.parametrize(("ratio", "mode"), [(0.99, Mode.STICK), (1.01, Mode.SLIDE)])
def test_particle_slides_just_beyond_the_cone_in_every_direction(angle, ratio, mode):
    mu = 0.6
    pull = ratio * mu * G * np.array([np.cos(angle), np.sin(angle), 0.0])
    solution = Coulomb().solve(point_mass(mu, pull))
    assert solution.status == "solved"
    assert solution.modes[0] == mode
    assert_allclose(solution.normal, 0.01 * G, rtol=1e-12)
    if mode is Mode.STICK:
        assert_allclose(solution.velocity, 0.0, atol=1e-15)
        assert_allclose(solution.tangent[0], -0.01 * pull[:2], rtol=1e-10, atol=1e-15)
    else:
        along = 0.01 * (ratio - 1) * mu * G
        assert_allclose(np.hypot(*solution.velocity[:2]), along, rtol=1e-8)


@pytest.mark.parametrize("angle", np.arange(0, 6.3, 0.31))
def test_sliding_is_slowed_against_the_velocity_alike_in_every_direction(angle):
    v = 3.0 * np.array([np.cos(angle), np.sin(angle), 0.0])
    solution = Coulomb().solve(point_mass(0.5, (0, 0, 0), velocity=v))
    assert_allclose(solution.velocity, v * (1 - 0.5 * G * 0.01 / 3.0), rtol=0, atol=1e-14)
    polygon = Coulomb(facets=8).solve(point_mass(0.5, (0, 0, 0), velocity=v))
    drop = np.linalg.norm(v) - np.linalg.norm(polygon.velocity)
    assert 0.5 * G * 0.01 * np.cos(np.pi / 8) - 1e-4 <= drop <= 0.5 * G * 0.01 + 1e-12


def test_painleve_rod_and_infinite_friction_have_their_known_answers():
    W = np.zeros((3, 3))
    W[:2, :2] = [[1.6, -1.2], [-1.2, 3.4]]
    W[2, 2] = 1.0
    # Sliding at the velocity level: an impulse stops the rod.
    free = np.array([-9.81 * 0.01, -1.0, 0.0])
    stuck = Coulomb().solve(ContactProblem.from_delassus(W, free, friction=1.4))
    assert stuck.status == "solved"
    assert_allclose([stuck.normal[0], stuck.tangent[0, 0]], [0.383385, 0.42943], atol=5e-7)
    assert_allclose(stuck.velocity, 0.0, atol=1e-12)
    # Lynch & Mason: the limit of large friction slips.
    limit = Coulomb().solve(
        ContactProblem.from_delassus(W, np.array([-0.1, 1.0, 0.0]), friction=np.inf)
    )
    assert limit.status == "solved"
    assert_allclose([limit.normal[0], limit.tangent[0, 0]], [0.0, -1 / 12], atol=1e-7)
    assert_allclose(limit.velocity[1], 0.716667, atol=1e-6)


@pytest.mark.parametrize("ratio", [1e3, 1e6])
def test_light_block_under_a_heavy_one_carries_it(ratio):
    light, heavy, dt = 1.0, ratio, 0.01
    one = np.eye(2)
    problem = ContactProblem(
        mass=np.diag([light, heavy]),
        velocity=np.zeros(2),
        force=-G * np.array([light, heavy]),
        dt=dt,
        normal=[one[0], one[1] - one[0]],
        tangent=np.zeros((2, 2, 2)),
        friction=0.5,
    )
    solution = Coulomb().solve(problem)
    expected = dt * G * np.array([light + heavy, heavy])
    assert_allclose(solution.normal, expected, rtol=1e-9)
    assert_allclose(solution.velocity, 0.0, atol=1e-12)


def test_four_legs_share_an_off_centre_weight():
    x, y = 0.2, -0.1
    pull = np.array([0, 0, -50.0, *np.cross((x, y, 0), (0, 0, -50.0))])
    solution = Coulomb().solve(box(FEET, force=pull))
    assert solution.status == "solved"
    assert (solution.normal >= 0).all()
    legs = np.array(FEET)
    total = 0.01 * (50 + G)
    assert_allclose(solution.normal.sum(), total, rtol=1e-10)
    assert_allclose(solution.normal @ legs[:, :2], 0.01 * 50 * np.array([x, y]), atol=1e-12)


FAMILIES = [
    *[("peg", n) for n in (8, 16, 32)],
    *[("single", kind) for kind in families.SINGLE_BODIES],
    *[("stack", shape) for shape in families.STACKS],
    ("grasp", 2),
    ("grasp", 4),
]


def family(name, shape, rng):
    if name == "peg":
        return families.peg(shape, rng)
    if name == "single":
        return families.single_body(shape, rng)
    if name == "stack":
        return families.stack(*shape, rng)
    return families.grasp(shape, rng)


def worst_of(model, name, shape, count, units=((1.0, 1.0),)):
    rng = np.random.default_rng(7)
    worst = 0.0
    for _ in range(count):
        arrays = family(name, shape, rng)
        for momentum, mass in units:
            solution = model.solve(families.scaled(arrays, momentum, mass).problem())
            worst = max(worst, solution.certificate.worst)
    return worst


UNITS = ((1.0, 1.0), (1e-8, 1.0), (1e4, 1.0), (1.0, 1e-6), (1e-8, 1e-6))


@pytest.mark.parametrize(("name", "shape"), FAMILIES)
@pytest.mark.parametrize("facets", [None, 8])
def test_every_wrench_on_every_family_is_solved_in_any_units(name, shape, facets):
    assert worst_of(Coulomb(facets), name, shape, 6, UNITS) <= 1e-8


@pytest.mark.long
@pytest.mark.parametrize(("name", "shape"), FAMILIES)
@pytest.mark.parametrize("facets", [None, 8])
def test_two_hundred_wrenches_on_every_family_are_solved_in_any_units(name, shape, facets):
    assert worst_of(Coulomb(facets), name, shape, 200, UNITS) <= 1e-8


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("name", "shape"), FAMILIES[::4])
def test_the_four_solvers_of_the_polygon_agree_in_residual(solver, name, shape):
    model = Coulomb(4 if solver == "search" else 8, solver)
    rng = np.random.default_rng(3)
    for _ in range(3):
        solution = model.solve(family(name, shape, rng).problem())
        assert solution.status == "solved"
        assert solution.rungs == (solver,)


def test_random_rows_are_solved_on_polygons_and_but_for_a_few_on_the_cone():
    rng = np.random.default_rng(17)
    missed = 0
    for _ in range(300):
        problem = random_rows(rng)
        assert Coulomb(8).solve(problem).status == "solved"
        exact = Coulomb().solve(problem)
        answer = (exact.velocity, exact.normal, exact.tangent, exact.joint, exact.box)
        passed = certify(problem, *answer).passed
        assert passed == (exact.status == "solved")
        missed += not passed
    # Where impulses are hundreds of times the load, Newton's method may not converge.
    assert missed <= 6


@friction_files
def test_siconos_problem_is_solved_on_the_exact_cone(path):
    data = read_friction(path)
    problem = ContactProblem.from_delassus(
        data.W, data.q, friction=data.mu, dimension=data.dimension
    )
    solution = Coulomb().solve(problem)
    assert solution.status == "solved"
    assert solution.certificate.worst <= 1e-8


def test_warm_start_repeats_the_answer_without_pivots():
    rng = np.random.default_rng(5)
    for name, shape in FAMILIES[::3]:
        problem = family(name, shape, rng).problem()
        for model in (Coulomb(), Coulomb(8)):
            cold = model.solve(problem)
            warm = model.solve(problem, cold)
            assert warm.rungs == ("warm start",)
            assert warm.pivots == 0
            scale = np.abs(problem.free_velocity).max()
            assert_allclose(warm.velocity, cold.velocity, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("copies", [2, 100])
def test_duplicated_contacts_change_nothing(copies):
    push = np.array([3.0, 2.0, 0, 0, 0, 0.4])
    one = Coulomb().solve(box(FEET, force=push))
    many = Coulomb().solve(box(FEET, force=push, copies=copies))
    assert many.status == "solved"
    assert_allclose(many.velocity, one.velocity, atol=1e-10)


def test_thousand_contacts_on_one_body_are_solved():
    rng = np.random.default_rng(2)
    feet = np.column_stack([rng.uniform(-0.5, 0.5, (1000, 2)), np.full(1000, -0.5)])
    solution = Coulomb().solve(box(feet, velocity=[0.3, 0.1, -1.0, 0.5, -0.2, 0.7]))
    assert solution.status == "solved"


def test_clamped_body_holds_still():
    rows = [[0, 0, 1.0], [0, 0, -1.0]]
    tangents = [[[1.0, 0, 0], [0, 1.0, 0]]] * 2
    problem = ContactProblem(
        mass=np.eye(3),
        velocity=np.zeros(3),
        force=[0.0, 0.0, -G],
        dt=0.01,
        normal=rows,
        tangent=tangents,
        friction=0.5,
    )
    solution = Coulomb().solve(problem)
    assert solution.status == "solved"
    assert_allclose(solution.velocity, 0.0, atol=1e-14)


def test_no_load_and_everything_separating_need_no_impulse():
    still = Coulomb().solve(box(FEET, force=np.array([0, 0, G, 0, 0, 0.0])))
    rising = Coulomb().solve(box(FEET, velocity=[0, 0, 5.0, 0, 0, 0]))
    for solution in (still, rising):
        assert solution.status == "solved"
        assert_allclose(solution.normal, 0.0)
        assert (solution.modes == Mode.SEPARATE).all()


def test_permuted_contacts_and_a_turned_world_give_the_same_motion():
    rng = np.random.default_rng(9)
    arrays = families.stack(3, 16, rng)
    plain = Coulomb().solve(arrays.problem())
    order = rng.permutation(16)
    angle = rng.uniform(0, 6, 16)
    c, s = np.cos(angle), np.sin(angle)
    spin = np.stack([np.stack([c, -s], 1), np.stack([s, c], 1)], 1)
    mixed = arrays.problem(
        bound=0.0,
        normal=arrays.normal[order],
        tangent=np.einsum("iab,ibv->iav", spin, arrays.tangent)[order],
        friction=arrays.friction[order],
    )
    other = Coulomb().solve(mixed)
    for solution in (plain, other):
        assert solution.status == "solved"
    assert_allclose(other.velocity, plain.velocity, atol=1e-7)


def test_joints_redundant_or_not_hold_and_box_rows_stick_and_slip():
    mass = np.diag([1.0, 2.0, 3.0])
    problem = dict(
        mass=mass,
        velocity=[1.0, 0.0, -1.0],
        dt=0.01,
        normal=[[0, 0, 1.0]],
        tangent=[[[1.0, 0, 0], [0, 1.0, 0]]],
        friction=0.4,
        joint=[[1.0, -1.0, 0], [2.0, -2.0, 0]],
    )
    for force, box_limit in (([5.0, 0, -9.0], 0.01), ([5.0, 0, -9.0], 10.0)):
        solution = Coulomb().solve(
            ContactProblem(**problem, force=force, box=[[0, 1.0, 0]], box_limit=box_limit)
        )
        assert solution.status == "solved"
        assert_allclose(solution.velocity[0], solution.velocity[1], atol=1e-12)
    assert abs(solution.velocity[1]) < 1e-12
    assert isinstance(solution.certificate, Certificate)


def test_islands_are_solved_apart_and_put_together():
    rng = np.random.default_rng(11)
    a, b = families.peg(8, rng), families.stack(2, 8, rng)
    n, m = len(a.velocity), len(b.velocity)

    def block(x, y):
        top = np.concatenate([x, np.zeros((*x.shape[:-1], m))], axis=-1)
        return np.concatenate([top, np.concatenate([np.zeros((*y.shape[:-1], n)), y], axis=-1)])

    both = ContactProblem(
        mass=block(a.mass, b.mass),
        velocity=np.concatenate([a.velocity, b.velocity]),
        force=np.concatenate([a.force * a.dt / b.dt, b.force]),
        dt=b.dt,
        normal=block(a.normal, b.normal),
        tangent=block(a.tangent, b.tangent),
        friction=np.concatenate([a.friction, b.friction]),
        bound=np.concatenate([a.bound, b.bound]),
    )
    assert both.island_count == 2
    solution = Coulomb().solve(both)
    assert solution.status == "solved"
    assert_allclose(solution.velocity[:n], Coulomb().solve(a.problem()).velocity, atol=1e-8)


def test_energy_never_rises_and_friction_never_pushes():
    rng = np.random.default_rng(13)
    for name, shape in FAMILIES[::2]:
        problem = family(name, shape, rng).problem()
        solution = Coulomb().solve(problem)
        v, free = solution.velocity, problem.free_velocity
        assert v @ problem.mass @ v <= free @ problem.mass @ free * (1 + 1e-12)
        slip = problem.contact_velocity(v).tangent
        power = (solution.tangent * slip).sum(axis=1)
        assert (power <= 1e-12 * np.abs(problem.scales.contact) ** 2 + 1e-12).all()


def test_contradictory_bounds_are_a_status_and_not_a_number():
    problem = ContactProblem(
        mass=np.eye(1),
        velocity=[0.0],
        force=[0.0],
        dt=0.01,
        normal=[[1.0], [-1.0]],
        tangent=np.zeros((2, 2, 1)),
        friction=0.5,
        bound=[1.0, 1.0],
    )
    assert Coulomb().solve(problem).status != "solved"


def test_bad_options_and_starts_are_refused_by_name():
    with pytest.raises(InvalidInput, match="facets: is 2"):
        Coulomb(2)
    with pytest.raises(InvalidInput, match="solver: is 'fast'"):
        Coulomb(4, "fast")
    one = Coulomb().solve(point_mass(0.5, (0, 0, 0)))
    with pytest.raises(InvalidInput, match="start"):
        Coulomb().solve(box(FEET), one)
