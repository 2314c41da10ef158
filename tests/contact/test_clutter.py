"""Single steps of piles of bodies, by the interior point and by `Coulomb()`."""

import numpy as np
import pytest
from clutter import FILES, clutter_files, read_clutter

from stiction.contact import Coulomb, certify
from stiction.contact.problem.scaled import ScaledProblem
from stiction.contact.solvers.attempt import Options
from stiction.contact.solvers.islands.arrays import solve_interior_point, takes

SMALL = [path for path in FILES if path.stem.startswith("box8")]


def solved(problem):
    """(certificate, attempt) of the interior point alone."""
    scaled = ScaledProblem(problem)
    attempt = solve_interior_point(scaled, None, Options())
    impulses = scaled.unscale(attempt.impulses)
    return certify(problem, problem.velocity_from(*impulses), *impulses), attempt


@clutter_files
def test_the_interior_point_solves_every_step_of_a_pile(path):
    problem, _ = read_clutter(path)
    certificate, _ = solved(problem)
    assert certificate.worst <= 1e-8


@pytest.mark.parametrize("path", SMALL[:3], ids=lambda path: path.stem)
def test_small_piles_are_solved_on_a_polygon(path):
    problem, _ = read_clutter(path)
    assert Coulomb(facets=8).solve(problem).certificate.passed


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_small_piles_are_solved_on_the_exact_cone(path):
    problem, _ = read_clutter(path)
    assert Coulomb().solve(problem).certificate.passed


def test_a_walking_quadruped_is_solved_by_the_ladder_of_the_exact_cone():
    """Four contacts with box rows that depend on them, which the conic rung does not know."""
    (path,) = [path for path in FILES if path.stem.startswith("walking")]
    problem, _ = read_clutter(path)
    assert Coulomb().solve(problem).certificate.passed


def test_the_order_of_degrees_of_freedom_does_not_matter():
    problem, _ = read_clutter(SMALL[0])
    order = np.random.default_rng(0).permutation(problem.nv)
    other = type(problem)(
        mass=problem.mass[np.ix_(order, order)],
        velocity=problem.velocity[order],
        force=problem.force[order],
        dt=problem.dt,
        normal=problem.normal[:, order],
        tangent=problem.tangent[:, :, order],
        friction=problem.friction,
        bound=problem.bound,
    )
    here, there = (Coulomb().solve(each).velocity for each in (problem, other))
    certificate, attempt = solved(other)
    assert certificate.worst <= 1e-8
    assert attempt.steps < 60
    assert there == pytest.approx(here[order], abs=1e-7)


def test_rows_that_blocks_have_no_place_for_are_left_to_others():
    problem, _ = read_clutter(SMALL[0])
    both = type(problem)(
        mass=np.eye(3),
        velocity=np.zeros(3),
        force=[0.0, 0.0, -1.0],
        dt=0.1,
        normal=[[0, 0, 1]],
        tangent=[[[1, 0, 0], [0, 1, 0]]],
        friction=0.5,
        box=[[1, 0, 0]],
        box_limit=[0.1],
        box_contact=[0],
        box_friction=[0.1],
    )
    assert takes(problem)
    assert not takes(both)
    assert Coulomb().solve(both).certificate.passed
