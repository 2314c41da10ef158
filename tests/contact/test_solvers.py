"""The solvers of a scaled problem, all called alike, by name."""

import numpy as np
import pytest

from stiction.contact.models.model import conclude, from_attempt
from stiction.contact.problem.scaled import ScaledImpulses, ScaledProblem
from stiction.contact.solvers.attempt import Attempt, Options
from stiction.contact.solvers.table import SOLVERS
from stiction.reproduce import families

ON_THE_CIRCLE = [name for name in SOLVERS if name not in ("newton", "polygon")]
ON_A_POLYGON = ["reduced", "structural", "standard", "search", "polygon"]
CONVEX = ("lagrangian", "polygon")


def problems():
    rng = np.random.default_rng(3)
    yield families.peg(8, rng).problem()
    yield families.stack(2, None, rng).problem()


def solved(name, problem, options, start=None):
    scaled = ScaledProblem(problem)
    attempt = SOLVERS[name](scaled, start, options)
    assert isinstance(attempt, Attempt)
    assert isinstance(attempt.impulses, ScaledImpulses)
    assert attempt.steps >= 0
    law = "convex" if name in CONVEX else "coulomb"
    found = from_attempt(scaled, attempt, name)
    return conclude(problem, law, found, 0.0, options.facets or None), attempt


@pytest.mark.parametrize("name", ON_THE_CIRCLE)
def test_a_solver_solves_on_the_circular_cone(name):
    for problem in problems():
        solution, attempt = solved(name, problem, Options())
        assert solution.status == "solved", (solution.certificate, attempt.code)


@pytest.mark.parametrize("name", ON_A_POLYGON)
def test_a_solver_solves_on_a_polygon(name):
    for problem in problems():
        solution, attempt = solved(name, problem, Options(facets=8))
        assert solution.status == "solved", (solution.certificate, attempt.code)


def test_newtons_method_goes_on_from_another_solvers_attempt():
    for problem in problems():
        _, first = solved("reduced", problem, Options())
        before = first.impulses.theta.copy()
        solution, attempt = solved("newton", problem, Options(), first.impulses)
        assert solution.status == "solved"
        assert attempt.steps == 0
        assert np.array_equal(before, first.impulses.theta), "the start was overwritten"
