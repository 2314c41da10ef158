"""Torsional and rolling friction: bounded rows whose limits grow with a normal impulse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from random_contacts import random_rows

from stiction.contact import ContactProblem, Mode
from stiction.contact.models.baraff import Baraff
from stiction.contact.models.coulomb import SOLVERS, Coulomb
from stiction.contact.models.drumwright_shell import DrumwrightShell
from stiction.contact.models.frictionless import Frictionless
from stiction.contact.models.no_slip import NoSlip
from stiction.contact.models.viscous import Viscous
from stiction.contact.problem.scaled import ScaledProblem
from stiction.contact.solvers.attempt import Options
from stiction.contact.solvers.table import SOLVERS as TABLE
from stiction.errors import InvalidInput

G = 9.81
MASS, RADIUS, DT = 2.0, 0.1, 0.01
INERTIA = 0.4 * MASS * RADIUS**2
X, Y, Z = np.eye(3)

WAYS = [(None, "reduced"), *((facets, solver) for facets in (4, 8) for solver in SOLVERS)]
"""Facets and the solver that comes first."""


def turning(axis):
    """A row (6,) for the angular velocity of a free body about `axis`."""
    return np.concatenate([np.zeros(3), axis])


def ball(force=(0, 0, 0), torque=(0, 0, 0), velocity=None, spin=None, roll=None, mu=0.8, **rest):
    """A ball on a plane (z up) under force and torque beside its weight; spin and roll are the
    ratios [m] of torsional and of rolling friction, None for none."""
    rows = [turning(Z)] * (spin is not None) + [turning(X), turning(Y)] * (roll is not None)
    ratios = [spin] * (spin is not None) + [roll, roll] * (roll is not None)
    foot = -RADIUS * Z
    return ContactProblem(
        mass=np.diag([MASS] * 3 + [INERTIA] * 3),
        velocity=np.zeros(6) if velocity is None else velocity,
        force=np.concatenate([np.add(force, -MASS * G * Z), torque]),
        dt=DT,
        normal=[np.concatenate([Z, np.cross(foot, Z)])],
        tangent=[[np.concatenate([d, np.cross(foot, d)]) for d in (X, Y)]],
        friction=mu,
        box=rows,
        box_contact=np.zeros(len(rows), int),
        box_friction=ratios,
        **rest,
    )


@pytest.mark.parametrize(("facets", "solver"), WAYS)
@pytest.mark.parametrize("ratio", [0.99, 1.01])
@pytest.mark.parametrize("mu", [0.0, 0.8])
def test_pressed_disc_starts_to_spin_just_beyond_its_torsional_friction(facets, solver, ratio, mu):
    pressed, reach = 30.0, 0.02
    edge = reach * (pressed + MASS * G)
    problem = ball(-pressed * Z, ratio * edge * Z, spin=reach, mu=mu)
    solution = Coulomb(facets, solver).solve(problem)
    assert solution.status == "solved"
    assert_allclose(solution.normal, DT * (pressed + MASS * G), rtol=1e-12)
    rate = max(0.0, ratio - 1.0) * edge * DT / INERTIA
    assert_allclose(solution.velocity, rate * turning(Z), rtol=1e-9, atol=1e-13)
    assert_allclose(solution.box, -min(ratio, 1.0) * edge * DT, rtol=1e-9)


@pytest.mark.parametrize(("facets", "solver"), WAYS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_spinning_ball_is_slowed_by_its_torsional_friction_and_stops(facets, solver, sign):
    drop = 0.02 * MASS * G * DT / INERTIA
    model = Coulomb(facets, solver)
    for rate, left in ((5.0, 5.0 - drop), (0.99 * drop, 0.0), (1.01 * drop, 0.01 * drop)):
        solution = model.solve(ball(velocity=sign * rate * turning(Z), spin=0.02))
        assert solution.status == "solved"
        assert_allclose(solution.velocity, sign * left * turning(Z), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("facets", "solver"), WAYS)
@pytest.mark.parametrize("ratio", [0.99, 1.01])
def test_ball_on_an_incline_rolls_just_beyond_its_rolling_friction(facets, solver, ratio):
    reach = 0.02
    slope = np.arctan(ratio * reach / RADIUS)
    down = MASS * G * np.array([np.sin(slope), 0.0, 1.0 - np.cos(slope)])
    solution = Coulomb(facets, solver).solve(ball(down, roll=reach))
    assert solution.status == "solved"
    torque = MASS * G * (RADIUS * np.sin(slope) - reach * np.cos(slope))
    rate = max(0.0, torque) * DT / (INERTIA + MASS * RADIUS**2)
    assert_allclose(solution.velocity, [RADIUS * rate, 0, 0, 0, rate, 0], rtol=1e-9, atol=1e-13)
    assert solution.modes[0] == Mode.STICK


def test_sliding_spinning_and_rolling_are_each_held_at_their_own_limit():
    velocity = np.array([3.0, 0.0, 0.0, 40.0, -50.0, 30.0])
    solution = Coulomb().solve(ball(velocity=velocity, spin=0.02, roll=0.01, mu=0.3))
    weight = MASS * G * DT
    assert solution.status == "solved"
    assert solution.modes[0] == Mode.SLIDE
    assert_allclose(np.hypot(*solution.tangent[0]), 0.3 * weight, rtol=1e-10)
    assert_allclose(solution.box, weight * np.array([-0.02, -0.01, 0.01]), rtol=1e-10)


@pytest.mark.parametrize(("facets", "solver"), WAYS)
def test_a_row_keeps_its_own_limit_where_its_contact_opens(facets, solver):
    spin, limit = 30.0, 1e-3
    for rise, normal in ((1.0, 0.0), (0.0, MASS * G * DT)):
        velocity = np.array([0, 0, rise, 0, 0, spin])
        solution = Coulomb(facets, solver).solve(
            ball(velocity=velocity, spin=0.02, box_limit=limit)
        )
        assert solution.status == "solved"
        assert_allclose(solution.normal, normal, rtol=1e-12)
        assert_allclose(solution.box, -limit - 0.02 * normal, rtol=1e-10)
    held = Coulomb(facets, solver).solve(
        ball(velocity=[0, 0, 1.0, 0, 0, 0.01], spin=0.02, box_limit=1)
    )
    assert_allclose(held.velocity[5], 0.0, atol=1e-14)


def tumbling(rng):
    """Arrays of bodies that touch the floor and each other at random points, contacts with none
    to three rows of torsional and rolling friction, some of them with a limit of their own."""
    bodies = int(rng.integers(1, 4))
    nv, nc = 6 * bodies, bodies * int(rng.integers(1, 5))
    mass, size = np.zeros((nv, nv)), 10 ** rng.uniform(-1, 1, bodies)
    for b, m in enumerate(size):
        root = rng.normal(size=(3, 3))
        mass[6 * b : 6 * b + 3, 6 * b : 6 * b + 3] = m * np.eye(3)
        mass[6 * b + 3 : 6 * b + 6, 6 * b + 3 : 6 * b + 6] = 0.01 * m * (root @ root.T + np.eye(3))
    rows, box, contact = np.zeros((nc, 3, nv)), [], []
    for i in range(nc):
        frame = np.linalg.qr(rng.normal(size=(3, 3)))[0].T
        one, other = int(rng.integers(bodies)), int(rng.integers(-1, bodies))
        if other in (-1, one):
            frame[0] *= np.copysign(1.0, frame[0, 2])
        spins = np.zeros((3, nv))
        for body, sign in ((one, 1.0), (other, -1.0)):
            if body >= 0 and not (body == one and sign < 0):
                point = 0.1 * rng.normal(size=3)
                rows[i, :, 6 * body : 6 * body + 3] = sign * frame
                rows[i, :, 6 * body + 3 : 6 * body + 6] = sign * np.cross(point, frame)
                spins[:, 6 * body + 3 : 6 * body + 6] = sign * frame
        count = int(rng.integers(4))
        box.extend(spins[:count])
        contact.extend([i] * count)
    box.append(rng.normal(size=nv))
    contact.append(-1)
    order = rng.permutation(len(box))
    tied = np.array(contact)[order] >= 0
    own = ~tied | (rng.random(len(box)) < 0.3)
    gravity = np.zeros(nv)
    gravity[2::6] = -G * size
    return {
        "mass": mass,
        "velocity": rng.normal(size=nv) * (rng.random() < 0.7),
        "force": gravity + rng.normal(size=nv) * np.tile([3, 3, 3, 0.3, 0.3, 0.3], bodies),
        "dt": DT,
        "normal": rows[:, 0],
        "tangent": rows[:, 1:],
        "friction": rng.choice([0.0, 0.2, 0.6, 1.0], nc),
        "bound": -np.abs(rng.normal(size=nc)) * (rng.random(nc) < 0.2),
        "box": np.array(box)[order],
        "box_limit": np.where(own, 10 ** rng.uniform(-5, -2, len(box)), 0.0),
        "box_contact": np.array(contact)[order],
        "box_friction": np.where(tied, 10 ** rng.uniform(-3, -1, len(box)), 0.0),
    }


@pytest.mark.parametrize(("facets", "solver"), WAYS)
def test_random_bodies_with_several_rows_per_contact_are_solved(facets, solver):
    rng = np.random.default_rng(4)
    model = Coulomb(facets, solver)
    for _ in range(30):
        solution = model.solve(ContactProblem(**tumbling(rng)))
        assert solution.certificate.worst <= 1e-8
        assert solution.rungs == (solver,)


def test_random_rows_are_solved_on_polygons_and_but_for_a_few_on_the_cone():
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(300):
        given = random_rows(rng)
        nb = int(rng.integers(1, 2 * given.nc + 2))
        contact = rng.integers(-1, given.nc, nb)
        own = (contact < 0) | (rng.random(nb) < 0.3)
        bounded = {
            "dt": given.dt,
            "box": rng.normal(size=(nb, given.nv)),
            "box_limit": np.where(own, 10 ** rng.uniform(-4, 1, nb), 0.0),
            "box_contact": contact,
            "box_friction": np.where(contact < 0, 0.0, 10 ** rng.uniform(-2, 0, nb)),
        }
        problem = ContactProblem(**(given.arrays._asdict() | bounded))
        assert Coulomb(8).solve(problem).status == "solved"
        missed += Coulomb().solve(problem).status != "solved"
    assert missed <= 3  # the last rung, conic, does not know these rows


def test_warm_starts_repeat_the_answer():
    rng = np.random.default_rng(5)
    for _ in range(30):
        problem = ContactProblem(**tumbling(rng))
        for model in (Coulomb(), Coulomb(8)):
            cold = model.solve(problem)
            warm = model.solve(problem, cold)
            assert set(warm.rungs) <= {"warm start"}
            assert_allclose(warm.velocity, cold.velocity, atol=1e-9)


def in_units(arrays, kilogram, metre, second):
    """The same in units of which the old ones are so many; dofs are three lengths, three angles."""
    size = np.tile([metre] * 3 + [1.0] * 3, len(arrays["mass"]) // 6)
    impulse = kilogram * metre / second
    return {
        **arrays,
        "mass": arrays["mass"] * kilogram * metre**2 / np.outer(size, size),
        "velocity": arrays["velocity"] * size / second,
        "force": arrays["force"] * impulse * metre / second / size,
        "dt": arrays["dt"] * second,
        "normal": arrays["normal"] * metre / size,
        "tangent": arrays["tangent"] * metre / size,
        "bound": arrays["bound"] * metre / second,
        "box": arrays["box"] / size,
        "box_limit": arrays["box_limit"] * impulse * metre,
        "box_friction": arrays["box_friction"] * metre,
    }


@pytest.mark.parametrize("facets", [None, 4, 8])
@pytest.mark.parametrize("units", [(1e-6, 1, 1), (1, 1e3, 1), (1, 1, 1e3), (1e3, 1e-3, 1e-2)])
def test_units_do_not_matter(facets, units):
    rng = np.random.default_rng(6)
    for _ in range(10):
        arrays = tumbling(rng)
        arrays["box"][arrays["box_contact"] < 0] = 0.0  # a random row of lengths and angles
        assert Coulomb(facets).solve(ContactProblem(**in_units(arrays, *units))).status == "solved"
    given = ball(velocity=[3.0, 0, 0, 40.0, -50.0, 30.0], spin=0.02, roll=0.01)
    plain = Coulomb(facets).solve(given)
    scaled = in_units(given.arrays._asdict() | {"dt": DT}, *units)
    other = Coulomb(facets).solve(ContactProblem(**scaled))
    size = np.array([units[1]] * 3 + [1.0] * 3)
    assert_allclose(other.velocity * units[2] / size, plain.velocity, rtol=1e-9, atol=1e-12)


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(7)
    for _ in range(10):
        arrays = tumbling(rng)
        contacts = rng.permutation(len(arrays["normal"]))
        boxes = rng.permutation(len(arrays["box"]))
        mixed = dict(arrays)
        for name in ("normal", "tangent", "friction", "bound"):
            mixed[name] = arrays[name][contacts]
        for name in ("box", "box_limit", "box_contact", "box_friction"):
            mixed[name] = arrays[name][boxes]
        moved = np.append(np.argsort(contacts), -1)  # its last is for rows without a contact
        mixed["box_contact"] = moved[mixed["box_contact"]]
        one = Coulomb().solve(ContactProblem(**arrays))
        other = Coulomb().solve(ContactProblem(**mixed))
        assert one.status == other.status == "solved"
        assert_allclose(other.velocity, one.velocity, atol=1e-7)


def test_balls_apart_are_islands_with_their_own_rows():
    fast, slow = 5.0 * turning(Z), 0.1 * turning(X)
    balls = [ball(velocity=v, spin=s, roll=0.01) for v, s in ((fast, 0.02), (slow, 0.005))]
    alone = [Coulomb().solve(b) for b in balls]
    a, b = (problem.arrays for problem in balls)

    def block(x, y):
        none = np.zeros((*x.shape[:-1], 6))
        return np.concatenate(
            [np.concatenate([x, none], axis=-1), np.concatenate([none, y], axis=-1)]
        )

    both = ContactProblem(
        mass=block(a.mass, b.mass),
        velocity=np.concatenate([a.velocity, b.velocity]),
        force=np.concatenate([a.force, b.force]),
        dt=DT,
        normal=block(a.normal, b.normal),
        tangent=block(a.tangent, b.tangent),
        friction=0.8,
        box=block(a.box, b.box)[[3, 0, 4, 1, 5, 2]],
        box_contact=[1, 0, 1, 0, 1, 0],
        box_friction=np.concatenate([a.box_friction, b.box_friction])[[3, 0, 4, 1, 5, 2]],
    )
    assert both.island_count == 2
    solution = Coulomb().solve(both)
    assert solution.status == "solved"
    assert_allclose(solution.velocity, np.concatenate([s.velocity for s in alone]), atol=1e-13)
    assert_allclose(solution.box[[1, 3, 5, 0, 2, 4]], np.concatenate([s.box for s in alone]))


@pytest.mark.parametrize("model", [Frictionless(), NoSlip(), Viscous(3.0)])
def test_models_without_coulombs_law_leave_these_rows_their_own_limits(model):
    velocity = np.array([1.0, 0, 0, 0, 0, 5.0])
    free = model.solve(ball(velocity=velocity, spin=0.02))
    assert free.status == "solved"
    assert free.box.tolist() == [0.0]
    limited = model.solve(ball(velocity=velocity, spin=0.02, box_limit=1e-3))
    assert limited.status == "solved"
    assert_allclose(limited.box, -1e-3, rtol=1e-12)
    rng = np.random.default_rng(8)
    for _ in range(10):
        assert model.solve(ContactProblem(**tumbling(rng))).status == "solved"


def test_solvers_that_do_not_know_these_rows_refuse_them_by_name():
    problem = ball(spin=0.02)
    for name, solve in (
        ("Baraff", Baraff().solve),
        ("DrumwrightShell", DrumwrightShell().solve),
        ("conic", lambda posed: TABLE["conic"](ScaledProblem(posed), None, Options())),
    ):
        with pytest.raises(InvalidInput, match=rf"box_contact\[0\].*{name}") as caught:
            solve(problem)
        assert caught.value.name == "box_contact"
    for model in (Baraff(), DrumwrightShell()):
        assert model.solve(ball(spin=0.0, box_limit=0.1)).status == "solved"


def test_friction_about_an_axis_never_drives():
    rng = np.random.default_rng(9)
    for _ in range(20):
        problem = ContactProblem(**tumbling(rng))
        solution = Coulomb().solve(problem)
        v, free = solution.velocity, problem.free_velocity
        assert v @ problem.mass @ v <= free @ problem.mass @ free * (1 + 1e-12)
        assert (solution.box * problem.contact_velocity(v).box <= 1e-12).all()
