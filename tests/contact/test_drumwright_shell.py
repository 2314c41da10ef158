from dataclasses import replace

import numpy as np
import pytest

from stiction import lcp
from stiction.contact.certificate.certificate import certify
from stiction.contact.models.drumwright_shell import DrumwrightShell
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.shell.solve import optimality_gap
from stiction.errors import InvalidInput
from stiction.reproduce.contact_lcps import stewart_trinkle, unpack
from stiction.reproduce.families import SINGLE_BODIES, STACKS, grasp, peg, single_body, stack
from stiction.status import Status

G = 9.81


def energy(problem, velocity):
    return 0.5 * velocity @ problem.mass @ velocity


def families(count):
    for kind in SINGLE_BODIES:
        yield from (single_body(kind, np.random.default_rng(s)) for s in range(count))
    for size in STACKS:
        yield from (stack(*size, np.random.default_rng(s)) for s in range(count))
    for contacts in (8, 32):
        yield from (peg(contacts, np.random.default_rng(s)) for s in range(count))
    for mu in (0.2, 1.0):
        yield from (grasp(2, np.random.default_rng(s), mu=mu) for s in range(count))


def block(velocity, mu=0.5, m=2.0, **extra):
    return ContactProblem(
        mass=m * np.eye(3),
        velocity=velocity,
        force=np.zeros(3),
        dt=0.01,
        normal=[[0, 0, 1]],
        tangent=[[[1, 0, 0], [0, 1, 0]]],
        friction=mu,
        **extra,
    )


@pytest.mark.parametrize("facets", [None, 4, 8])
def test_all_families_are_solved_and_energy_never_rises(facets):
    model = DrumwrightShell(facets)
    for arrays in families(20 if facets is None else 5):
        problem = arrays.problem()
        solution = model.solve(problem)
        assert solution.status is Status.SOLVED, arrays.name
        assert solution.certificate.passed
        assert optimality_gap(problem, solution, facets) < 1e-8
        before = energy(problem, problem.free_velocity)
        assert energy(problem, solution.velocity) <= before * (1 + 1e-12)


def test_no_other_feasible_impulse_leaves_less_energy():
    rng = np.random.default_rng(0)
    model = DrumwrightShell()
    for arrays in families(2):
        problem = arrays.problem()
        solution = model.solve(problem)
        least = energy(problem, solution.velocity)
        slack = 1e-9 * energy(problem, problem.free_velocity)
        others = []
        # Coulomb's impulses lie in the same cone (in a polygon within it).
        result = lcp.solve(*stewart_trinkle(problem, 6))
        if result.status is Status.SOLVED:
            others.append(unpack(result.z, problem.nc, 6))
        for size in (1e-4, 1e-2, 1.0):
            normal = np.abs(solution.normal + size * rng.standard_normal(problem.nc))
            turned = solution.tangent + size * rng.standard_normal((problem.nc, 2))
            edge = problem.friction * normal
            length = np.maximum(np.hypot(*turned.T), 1e-300)
            others.append((normal, turned * np.minimum(1.0, edge / length)[:, None]))
        for normal, tangent in others:
            velocity = problem.velocity_from(normal, tangent)
            assert energy(problem, velocity) >= least - slack, arrays.name


@pytest.mark.parametrize("heading", np.linspace(0.0, 6.0, 5))
def test_a_block_that_hits_the_floor_aslant_has_its_closed_form(heading):
    # The nearest velocity with v_n >= mu |v_t|: the energy model's slip lifts off.
    mu, fall, slide = 0.5, 1.0, 4.0
    along = np.array([np.cos(heading), np.sin(heading)])
    problem = block([*(slide * along), -fall], mu)
    solution = DrumwrightShell().solve(problem)
    impulse = 2.0 * (fall + mu * slide) / (1.0 + mu**2)
    assert solution.status is Status.SOLVED
    assert solution.normal == pytest.approx([impulse])
    assert solution.tangent[0] == pytest.approx(-mu * impulse * along)
    assert solution.velocity[2] == pytest.approx(mu * np.hypot(*solution.velocity[:2]))


def test_a_slow_block_sticks():
    solution = DrumwrightShell().solve(block([0.1, -0.2, -1.0]))
    assert solution.status is Status.SOLVED
    assert np.abs(solution.velocity).max() < 1e-11
    assert solution.normal == pytest.approx([2.0])


def test_a_block_ahead_of_the_floor_is_not_braked_in_mid_air():
    problem = block([3.0, 0.0, -1.0], mu=0.1, bound=-2.0)
    solution = DrumwrightShell().solve(problem)
    assert solution.status is Status.SOLVED
    assert solution.velocity == pytest.approx([3.0, 0.0, -1.0])


def test_joints_hold_and_dry_friction_has_its_limit():
    problem = block(
        [0.5, 0.3, -1.0], mu=0.0, joint=[[1, 0, 0], [2, 0, 0]], box=[[0, 1, 0]], box_limit=0.1
    )
    for model in (DrumwrightShell(), DrumwrightShell(6)):
        solution = model.solve(problem)
        assert solution.status is Status.SOLVED
        assert solution.velocity == pytest.approx([0.0, 0.25, 0.0], abs=1e-11)
        assert solution.box == pytest.approx([-0.1])
    held = DrumwrightShell().solve(block([0.4, 0.3, -1.0], box=[[0, 1, 0]], box_limit=5.0))
    assert held.velocity == pytest.approx(np.zeros(3), abs=1e-10)


def test_many_facets_come_near_the_circle():
    arrays = stack(2, 12, np.random.default_rng(3))
    problem = arrays.problem()
    circle = energy(problem, DrumwrightShell().solve(problem).velocity)
    gaps = [energy(problem, DrumwrightShell(d).solve(problem).velocity) - circle for d in (4, 64)]
    assert gaps[0] >= gaps[1] >= -1e-12
    assert gaps[1] < 0.01 * circle + 1e-12


@pytest.mark.parametrize("copies", [3, 100])
def test_contacts_given_many_times_change_nothing(copies):
    arrays = single_body("block in corner", np.random.default_rng(4))
    once = DrumwrightShell().solve(arrays.problem())
    many = arrays.problem(
        bound=0.0,
        normal=np.tile(arrays.normal, (copies, 1)),
        tangent=np.tile(arrays.tangent, (copies, 1, 1)),
        friction=np.tile(arrays.friction, copies),
    )
    solution = DrumwrightShell().solve(many)
    assert solution.status is Status.SOLVED
    assert solution.velocity == pytest.approx(once.velocity, abs=1e-8)


def test_a_warm_start_gives_the_same_answer():
    arrays = grasp(2, np.random.default_rng(1))
    first = DrumwrightShell().solve(arrays.problem())
    again = DrumwrightShell().solve(arrays.problem(), first)
    assert again.status is Status.SOLVED
    assert again.velocity == pytest.approx(first.velocity, abs=1e-9)


@pytest.mark.parametrize("facets", [None, 8])
def test_bounds_that_contradict_each_other_are_told(facets):
    problem = ContactProblem(
        mass=np.eye(1),
        velocity=[0.0],
        force=[0.0],
        dt=0.01,
        normal=[[1.0], [-1.0]],
        bound=1.0,
    )
    assert DrumwrightShell(facets).solve(problem).status is Status.INFEASIBLE


def test_the_gap_tells_an_answer_that_wastes_friction():
    problem = block([4.0, 0.0, -1.0])
    solution = DrumwrightShell().solve(problem)
    velocity = problem.velocity_from([2.0], [[0.0, 0.0]])  # frictionless, and in the cone
    wasteful = replace(
        solution, velocity=velocity, normal=np.array([2.0]), tangent=np.zeros((1, 2))
    )
    assert certify(problem, velocity, [2.0], [[0.0, 0.0]], law="convex").passed
    assert optimality_gap(problem, wasteful) > 0.1


def test_facets_that_are_no_polygon_are_refused():
    with pytest.raises(InvalidInput, match="facets"):
        DrumwrightShell(1)
