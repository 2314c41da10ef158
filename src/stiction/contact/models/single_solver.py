"""`by_solver`: one solver of `contact/solvers/table.py` in the place of a model's ladder.

To see what a method does by itself; what it fails at, no other rung takes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stiction.contact.certificate.certificate import LawName
from stiction.contact.certificate.laws import Law
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import Compiled, StepSolver
from stiction.contact.models.drumwright_shell import DrumwrightShell
from stiction.contact.models.model import ContactModel, Impulses, from_attempt
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.problem.scaled import ScaledProblem
from stiction.contact.solvers.attempt import Options
from stiction.contact.solvers.table import SOLVERS
from stiction.errors import InvalidInput, unknown

ON_THE_CIRCLE = ("conic", "driving", "lagrangian")
"""Solvers that know no polygon."""


@dataclass(frozen=True)
class SingleSolver(ContactModel):
    """Coulomb's law by the solver of that name alone."""

    solver: str
    facets: int | None = None
    law: ClassVar[LawName] = "coulomb"

    @property
    def compiled(self) -> Compiled | None:
        """By the solver that compiled steps have, where that is the one."""
        if self.solver != StepSolver.INTERIOR_POINT.value:
            return None
        return Compiled(Law.COULOMB, facets=self.facets or 0)

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of an island."""
        scaled = ScaledProblem(problem)
        before = None if start is None else scaled.scale(start.normal, start.tangent, start.box)
        attempt = SOLVERS[self.solver](scaled, before, Options(self.facets or 0))
        return from_attempt(scaled, attempt, self.solver)


def by_solver(solver: str, facets: int | None = None) -> ContactModel:
    """The model that solves by that solver alone, on the circular cone or on a polygon.

    `lagrangian` and `polygon` find least kinetic energy over the cone (`DrumwrightShell`), the
    others solve Coulomb's law.
    """
    if solver not in SOLVERS:
        raise InvalidInput("solver", unknown(solver, SOLVERS))
    if facets is not None and facets < 3:
        raise InvalidInput("facets", f"is {facets}: a polygon has 3 or more")
    if facets is not None and solver in ON_THE_CIRCLE:
        raise InvalidInput("solver", f"{solver} solves on the circular cone: leave facets out")
    if facets is None and solver == "polygon":
        raise InvalidInput("solver", "polygon needs facets")
    if solver in ("lagrangian", "polygon"):
        return DrumwrightShell(facets)
    return SingleSolver(solver, facets)
