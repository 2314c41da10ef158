"""Drumwright and Shell's convex impact model: least kinetic energy over the friction cone.

    minimize 1/2 v+' M v+ - b' f_n    over impulses |f_t| <= mu f_n, |f_b| <= limit
    M v+ = M v + h f + N' f_n + T' f_t + J' f_j + B' f_b,   J v+ = c

For contacts that touch (b = 0) this is the kinetic energy itself, and doing nothing is
allowed: it never rises. Friction takes out as much energy as it can, and contacts obey

    N v+ - b >= mu |T v+|,   f_n (N v+ - b - mu |T v+|) = 0,   f_t against T v+

so that N v+ >= b needs no constraint of its own. It is convex, always solvable if the bounds do
not contradict each other, and not Coulomb's law: a contact that slides lifts off at mu |T v+|,
since normal impulse and slip are not told apart by energy. (Drumwright and Shell 2010;
Drumwright compares his no-slip model with it.)

Solved by the methods of `solvers/shell`.

How it can fail: INFEASIBLE (bounds that contradict each other), ERROR (optimality, recomputed
from the problem, beyond tolerance), PIVOT_LIMIT.

Where this departs from them: `- b' f_n` in the objective. By energy alone a contact ahead of
touching (b < 0) would brake bodies in mid-air, since every impulse in its cone that slows them
down is welcome.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from stiction.contact.certificate.certificate import LawName
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.model import ContactModel, Impulses, from_attempt
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.problem.scaled import ScaledProblem
from stiction.contact.problem.validation import refuse_tied_rows
from stiction.contact.solvers.attempt import Options
from stiction.contact.solvers.shell.solve import optimality_gap
from stiction.contact.solvers.table import SOLVERS
from stiction.errors import InvalidInput, is_count
from stiction.status import Status
from stiction.tolerances import RESIDUAL


@dataclass(frozen=True)
class DrumwrightShell(ContactModel):
    """The impulses that leave the least kinetic energy.

    facets: sides of the friction polygon, corners at the angles 2 pi j / facets from the first
    tangent; None for the circular cone.
    """

    name: ClassVar[str] = "drumwright-shell"
    law: ClassVar[LawName] = "convex"

    facets: int | None = None

    def __post_init__(self) -> None:
        """Checks the options."""
        if self.facets is not None and not is_count(self.facets, 2):
            raise InvalidInput("facets", f"is {self.facets!r}: a polygon needs 3 or more, a line 2")

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """Velocity and impulses of least kinetic energy.

        The certificate grades what any convex impact law obeys; SOLVED asks, beyond it, that
        `optimality_gap` is within tolerance. Torsional and rolling friction (`box_friction`) is
        refused.
        """
        refuse_tied_rows(problem.box_contact, problem.box_friction, "DrumwrightShell")
        solution = super().solve(problem, start)
        if solution.status is Status.SOLVED:
            gap = optimality_gap(problem, solution, self.facets)
            if not gap <= RESIDUAL:
                return replace(solution, status=Status.ERROR)
        return solution

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of an island."""
        scaled = ScaledProblem(problem)
        before = None if start is None else scaled.scale(start.normal, start.tangent, start.box)
        way = "lagrangian" if self.facets is None else "polygon"
        attempt = SOLVERS[way](scaled, before, Options(int(self.facets or 0)))
        return from_attempt(scaled, attempt, way)
