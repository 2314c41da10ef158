"""Coulomb friction: `Coulomb()`, the exact cone; `Coulomb(facets=d)`, a friction polygon.

The exact cone: pivoting finds the modes, Newton's method finds the circle. Lloyd's reduced
method solves the problem with four facets, Newton's method starts there; if it does not
converge the facets of each unit are turned so that one points along phi - s, what the law
would project, then doubled as well, and both are repeated.

The ladder, climbed island by island until a certificate passes:

    warm start   Newton's method from the given solution's impulses and modes
    reduced      as above, or the solver that was asked for
    interior     an interior point on sparse blocks, from nothing (of a polygon: at the end; of
     point       `MANY` bodies and contacts: before `reduced`); not where it has no place for a
                 row (`islands/arrays.py`)
    search       Yamane & Nakamura: frictionless first, then the pivot search (and Newton)
    standard     Lemke on the assembled matrix, with its own ladder and a vanishing
                 regularization (and Newton)
    conic        exact cone only: a conic solver in a fixed point on the slip; not where a
                 contact has torsional or rolling friction, which it does not know

The first two are one compiled call that grades its own answer (`exact_cone.solve_arrays`), unless
the problem has no mass or another solver is to come first.

Torsional and rolling friction are box rows with a contact: |f_b| <= box_limit + box_friction f_n
against B v+. Each has its own interval; sliding, spinning and rolling share the normal impulse
and nothing else, and no polygon takes the place of an interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar, Literal

import numpy as np

from stiction.contact.certificate.certificate import LawName, from_table
from stiction.contact.certificate.laws import Law
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import Compiled
from stiction.contact.models.ladder import LadderModel
from stiction.contact.models.model import ContactModel, Impulses, from_attempt, grade_status
from stiction.contact.problem.cones import Cones
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.problem.scaled import ScaledProblem
from stiction.contact.solvers.attempt import Options
from stiction.contact.solvers.coulomb.exact_cone import solve_arrays
from stiction.contact.solvers.islands.arrays import takes
from stiction.contact.solvers.table import SOLVERS as TABLE
from stiction.errors import InvalidInput, is_count, is_one_of
from stiction.status import Status

Solver = Literal["reduced", "structural", "standard", "search"]

SOLVERS: tuple[Solver, ...] = ("reduced", "structural", "standard", "search")

MANY = 64
"""Contacts, and degrees of freedom, of an island beyond which the dense matrices of a pivoting
method cost more than many factorizations of the sparse ones that the interior point has."""

HOPELESS = -1e-9
"""Scaled free velocity of a contact that nothing can move below which its bound is out of reach."""


@dataclass(frozen=True)
class Coulomb(LadderModel):
    """Coulomb's law with the coefficients of the problem.

    facets: None for the circular cone; d >= 3 for a polygon whose corners lie on the circle.
    solver: which way the LCP of the polygon, or of those that stand for the cone, is solved first:
        "reduced" and "structural" (Lloyd), "standard" (Lemke on the assembled matrix), "search"
        (Yamane & Nakamura). All solve the same problem; the others follow where one fails.

    Torsional and rolling friction are box rows with a contact (`ContactProblem.box_contact`); their
    limits are intervals, whatever the facets.
    """

    facets: int | None = None
    solver: Solver = "reduced"
    name: ClassVar[str] = "coulomb"
    law: ClassVar[LawName] = "coulomb"
    solvers: ClassVar[tuple[str, ...]] = SOLVERS

    def __post_init__(self) -> None:
        if self.facets is not None and not is_count(self.facets, 3):
            raise InvalidInput("facets", f"is {self.facets!r}: a polygon has 3 or more, or None")
        if not is_one_of(self.solver, SOLVERS):
            raise InvalidInput("solver", f"is {self.solver!r}: one of {', '.join(SOLVERS)}")

    @classmethod
    def from_number(cls, number: float | None) -> Coulomb:
        """The exact cone, or a polygon with that many facets."""
        if number is None:
            return cls()
        if number != int(number):
            raise InvalidInput("contact", f"{number:g} is no whole number of facets")
        return cls(int(number))

    def with_solver(self, solver: str) -> ContactModel:
        """The same law, another solver first."""
        if solver not in SOLVERS:
            return super().with_solver(solver)
        return replace(self, solver=solver)

    @property
    def notation(self) -> str:
        """Its name on the command line."""
        return self.name if self.facets is None else f"{self.name}:{self.facets}"

    @property
    def compiled(self) -> Compiled | None:
        """By the solver that compiled steps have, unless another was asked for."""
        if self.solver != "reduced":
            return None
        return Compiled(Law.COULOMB, facets=self.facets or 0)

    def attempts(
        self, problem: ContactProblem, start: ContactSolution | None
    ) -> Iterator[Impulses | ContactSolution]:
        """The rungs of the module's head, each run when asked for, pivoting first."""
        return self._rungs(problem, start, False)

    def _ordered(
        self, problem: ContactProblem, start: ContactSolution | None
    ) -> Iterator[Impulses | ContactSolution]:
        many = min(problem.nc, problem.nv) > MANY and takes(problem)
        return self._rungs(
            problem, start, many and self.facets is None and self.solver == "reduced"
        )

    def _rungs(
        self, problem: ContactProblem, start: ContactSolution | None, sparse_first: bool
    ) -> Iterator[Impulses | ContactSolution]:
        options = Options(self.facets or 0)
        ways = [*SOLVERS, "interior point"]
        if self.facets is None:
            ways = ["reduced", "interior point", "search", "standard"]
        order = [way for way in ways if way != self.solver]
        if sparse_first:
            order.remove("interior point")
            scaled = ScaledProblem(problem)
            yield from_attempt(
                scaled, TABLE["interior point"](scaled, None, options), "interior point"
            )
        if problem.delassus is None and self.solver == "reduced":
            first: Impulses | ContactSolution = self._first_rungs(problem, start)
            yield first
            scaled = ScaledProblem(problem)
        else:
            scaled = ScaledProblem(problem)
            if start is not None:
                guess = scaled.scale(start.normal, start.tangent, start.box)
                yield from_attempt(scaled, TABLE["newton"](scaled, guess, options), "warm start")
            attempt = TABLE[self.solver](scaled, None, options)
            first = from_attempt(scaled, attempt, self.solver)
            yield first
        if first.status is Status.RAY and first.rungs[-1] == "reduced" and _hopeless(scaled.cones):
            return
        for name in order:
            if name == "interior point" and not takes(problem):
                continue
            yield from_attempt(scaled, TABLE[name](scaled, None, options), name)
        if self.facets is None and not (scaled.cones.flat & (scaled.cones.parent >= 0)).any():
            yield from_attempt(scaled, TABLE["conic"](scaled, None, options), "conic")

    def _first_rungs(
        self, problem: ContactProblem, start: ContactSolution | None
    ) -> ContactSolution:
        """Warm start and `reduced` in one compiled call, graded."""
        began = perf_counter()
        guess = problem.no_guess if start is None else (start.normal, start.tangent, start.box)
        outcome = solve_arrays(
            problem.arrays,
            problem.dt,
            self.facets or 0,
            *problem.factor,
            problem.kernel_free,
            start is not None,
            guess,
        )
        rungs = ("reduced",) if start is None else ("warm start", "reduced")
        certificate = from_table(Law.COULOMB, outcome.table)
        return ContactSolution(
            outcome.velocity,
            outcome.normal,
            outcome.tangent,
            outcome.joint,
            outcome.box,
            outcome.modes,
            grade_status(certificate, Status.from_code(outcome.code)),
            outcome.pivots,
            rungs if outcome.rounds else ("warm start",),
            certificate,
            perf_counter() - began,
        )


def _hopeless(cones: Cones) -> bool:
    """Whether a bound asks for motion that no impulse can give: a zero row below its bound."""
    zero = np.abs(cones.normal).max(axis=1, initial=0.0) == 0.0
    return bool((cones.free_normal[zero] < HOPELESS).any())
