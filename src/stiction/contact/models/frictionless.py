"""`Frictionless`: contacts that only push, by Drumwright's algorithm (`solvers/drumwright`).

How it can fail: INFEASIBLE, where bounds or joints contradict each other; impulses are then not a
number.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import Compiled, Kind, SustainedLaw
from stiction.contact.models.model import ContactModel, Impulses
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.drumwright.active_set import States
from stiction.contact.solvers.drumwright.columns import Answer, solve_whitened, warm_states
from stiction.contact.solvers.drumwright.pivoting import DRIVEN, WARM
from stiction.contact.solvers.drumwright.viscous import solve_loads
from stiction.status import Status


class Frictionless(ContactModel):
    """Contacts that only push: min 1/2 |v+ - v_free|^2 in the metric of the mass, over
    N v+ >= b and J v+ = c, with dry friction of joints. Torsional and rolling friction belong to
    Coulomb's law: a box row has its `box_limit` here, and nothing of `box_friction`. Unique in v+;
    with redundant contacts not in the impulses, of which at most nv are then positive."""

    name: ClassVar[str] = "frictionless"
    law = "frictionless"

    @property
    def compiled(self) -> Compiled:
        """By the solver that compiled steps have."""
        return Compiled(Law.FRICTIONLESS)

    @property
    def sustained(self) -> SustainedLaw:
        """Nothing along the tangents."""
        return SustainedLaw(Kind.SMOOTH, solve_loads)

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of an island."""
        slides = np.zeros(problem.nc, np.int8)
        state = start_states(problem, slides, start)
        answer = solve_whitened(problem.whitened, slides, problem.arrays.box_limit, state)
        return from_answer(problem, answer, np.zeros((problem.nc, 2)))


def start_states(
    problem: ContactProblem, sticking: States, start: ContactSolution | None
) -> States:
    """The warm start that a solution gives for this problem; empty without one."""
    if start is None:
        return np.empty(0, np.int8)
    limits = problem.arrays.box_limit
    return warm_states(start.normal, start.tangent, start.joint, start.box, limits, sticking)


def from_answer(problem: ContactProblem, answer: Answer, tangent: Array) -> Impulses:
    """What a model hands on, of what Drumwright's algorithm found."""
    rungs: tuple[str, ...] = ("pivoting",)
    if answer.answered == WARM:
        rungs = ("warm start",)
    elif answer.answered == DRIVEN:
        rungs = ("drive",) if problem.nb else ("pivoting", "drive")
    box = answer.box if len(answer.box) == problem.nb else np.zeros(problem.nb)
    status = Status.from_code(answer.code)
    joint = answer.equal[: problem.nj]
    return Impulses(answer.normal, tangent, joint, box, status, answer.pivots, rungs)
