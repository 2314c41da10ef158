"""Frictionless, no-slip and viscous contact where rows repeat, vanish or contradict each other."""

import numpy as np
import pytest
from point_mass import point

from stiction.contact import ContactProblem
from stiction.contact.models.frictionless import Frictionless
from stiction.contact.models.no_slip import NoSlip
from stiction.contact.models.viscous import Viscous
from stiction.reproduce.families import (
    grasp,
    peg,
    scaled,
    single_body,
)
from stiction.status import Status

G = 9.81
MODELS = [Frictionless(), NoSlip(), Viscous(0.1)]


def name(model):
    return type(model).__name__


def repeated(arrays, times):
    """The problem with every contact given `times` over."""
    return arrays.problem(
        normal=np.tile(arrays.normal, (times, 1)),
        tangent=np.tile(arrays.tangent, (times, 1, 1)),
        friction=np.tile(arrays.friction, times),
        bound=np.tile(arrays.bound, times),
    )


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_contacts_given_a_hundred_times_change_nothing(model):
    arrays = single_body("block in corner", np.random.default_rng(5))
    model = Viscous(0.0) if isinstance(model, Viscous) else model  # drag would add up
    many, once = model.solve(repeated(arrays, 100)), model.solve(arrays.problem())
    assert many.status is Status.SOLVED
    np.testing.assert_allclose(many.velocity, once.velocity, atol=1e-12)
    assert (many.normal > 0.0).sum() <= 6


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_a_clamped_body_stays(model):
    rows = [[1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]]
    tangent = np.tile([[0.0, 1.0], [0.0, 0.0]], (4, 1, 1))
    for speed in (1.0, -1.0, 1e-17, 0.0):
        solution = model.solve(point(rows, [speed, 1.0], tangent=tangent))
        assert solution.status is Status.SOLVED
        assert abs(solution.velocity[0]) < 1e-15


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_from_rest_without_force_nothing_moves(model):
    arrays = grasp(2)
    problem = scaled(arrays, momentum=0.0).problem()
    solution = model.solve(problem)
    assert solution.status is Status.SOLVED
    assert not solution.velocity.any()
    assert not solution.normal.any()


@pytest.mark.parametrize("model", [Frictionless(), Viscous(0.0)], ids=name)
def test_what_separates_is_left_alone(model):
    arrays = single_body("face on surface", np.random.default_rng(6))
    problem = point(arrays.normal, [0, 0, 1.0, 0, 0, 0], tangent=arrays.tangent, mass=arrays.mass)
    solution = model.solve(problem)
    assert solution.status is Status.SOLVED
    assert solution.pivots == 0
    np.testing.assert_array_equal(solution.velocity, problem.velocity)


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_a_thousand_contacts_on_one_body(model):
    solution = model.solve(peg(1000, np.random.default_rng(7)).problem())
    assert solution.status is Status.SOLVED
    assert (solution.normal > 0.0).sum() <= 6


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_no_contacts_at_all(model):
    problem = ContactProblem(mass=np.eye(2), velocity=[1.0, 2.0], force=np.zeros(2), dt=0.1)
    solution = model.solve(problem)
    assert solution.status is Status.SOLVED
    np.testing.assert_array_equal(solution.velocity, [1.0, 2.0])


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_rows_of_zeros_hold_or_contradict(model):
    held = model.solve(point([[0.0, 0.0], [1.0, 0.0]], [-1.0, 1.0]))
    assert held.status is Status.SOLVED
    broken = model.solve(point([[0.0, 0.0], [1.0, 0.0]], [-1.0, 1.0], bound=[0.5, 0.0]))
    assert broken.status is Status.INFEASIBLE


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_dependent_rows_with_different_bounds_keep_the_tightest(model):
    rows = [[1.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 0.0]]
    solution = model.solve(point(rows, [-1.0, 1.0], bound=[0.1, 0.3, 0.8, -5.0]))
    assert solution.status is Status.SOLVED
    assert solution.velocity == pytest.approx([0.4, 1.0])


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_bounds_that_contradict_each_other_are_a_status_and_not_a_number(model):
    solution = model.solve(point([[1.0, 0.0], [-1.0, 0.0]], [0.0, 1.0], bound=[0.1, 0.1]))
    assert solution.status is Status.INFEASIBLE
    assert np.isnan(solution.normal).all()
    assert not solution.certificate.passed


def feet_on_facets(seed, tilt):
    """A body on two feet, each on two facets whose normals differ by about `tilt`."""
    rng = np.random.default_rng(seed)
    normal, tangent = [], []
    for _ in range(2):
        place = rng.normal(0.0, 0.2, 3)
        for _ in range(2):
            up = np.array([*(tilt * rng.normal(size=2)), 1.0])
            up /= np.linalg.norm(up)
            first = np.cross(up, [0.3, 1.0, 0.1])
            first /= np.linalg.norm(first)
            along = np.array([up, first, np.cross(up, first)])
            rows = np.hstack([along, np.cross(place, along)])
            normal.append(rows[0])
            tangent.append(rows[1:])
    return ContactProblem(
        mass=np.diag([2.0, 2.0, 2.0, 0.02, 0.03, 0.04]),
        velocity=rng.normal(0.0, 1.0, 6) * [1, 1, 1, 3, 3, 3],
        force=[0.0, 0.0, -20.0, 0.0, 0.0, 0.0],
        dt=1e-3,
        normal=normal,
        tangent=tangent,
        friction=100.0,
    )


@pytest.mark.parametrize("tilt", [1e-4, 1e-7, 1e-8, 1e-9])
def test_feet_on_facets_that_are_nearly_in_one_plane_hold(tilt):
    found = [NoSlip().solve(feet_on_facets(seed, tilt)) for seed in range(40)]
    assert all(solution.certificate.passed for solution in found)
    again = [solution for solution in found if "orthonormal" in solution.rungs]
    assert (len(again) > 0) == (tilt <= 1e-8)


def test_no_slip_cannot_be_pushed_out_of_a_hole():
    arrays = peg(16, np.random.default_rng(8))
    assert NoSlip().solve(scaled(arrays).problem()).status is Status.SOLVED
    pushed = arrays.problem(
        bound=0.1,
    )
    assert NoSlip().solve(pushed).status is Status.INFEASIBLE
