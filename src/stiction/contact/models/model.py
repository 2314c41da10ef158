"""What all contact models share: a description, islands apart, one certificate.

A model describes itself (its name, its law, its compiled form, what it does in lasting contact and
at an impact) and solves one island; this file splits, puts together and grades. Adding one is a
class here and a line in `registry.py`. A model that climbs a ladder of ways is a `LadderModel`
(`ladder.py`).
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.certificate import Certificate, LawName, certify
from stiction.contact.certificate.contradiction import is_contradictory
from stiction.contact.certificate.modes import contact_modes
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import Compiled, Kind, StepSolver, SustainedLaw
from stiction.contact.problem.islands import Island
from stiction.contact.problem.problem import ContactProblem, is_small
from stiction.contact.problem.scaled import ScaledProblem
from stiction.contact.solvers.attempt import Attempt
from stiction.contact.solvers.islands.arrays import TIED, solve_by_blocks, takes
from stiction.errors import InvalidInput, unknown
from stiction.status import Status

Array = NDArray[np.float64]


class Impulses(NamedTuple):
    """What a model found for one island, before grading; shapes as in `ContactSolution`."""

    normal: Array
    tangent: Array
    joint: Array
    box: Array
    status: Status
    pivots: int
    rungs: tuple[str, ...]


class ContactModel:
    """Base of the contact models. A subclass sets `law` and defines `solve_island`; the rest of its
    description has defaults, those of dry friction that is solved from Python."""

    name: ClassVar[str] = ""
    """On the command line; empty for a model that is not registered."""
    law: ClassVar[LawName]
    """By which its answers are graded."""
    acts_nearby: ClassVar[bool] = False
    """Whether friction acts on what touches, pressed or not: a foot that stands leaves the ground a
    little in each step, and what would fall back within a step then counts as touching."""
    solvers: ClassVar[tuple[str, ...]] = ()
    """Those that a user can choose from."""
    facets: int | None = None
    """Corners of the friction polygon; None for the circular cone."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @classmethod
    def from_number(cls, number: float | None) -> Self:
        """The model for the number that follows its name on the command line; None without one."""
        if number is not None:
            raise InvalidInput("contact", f"{cls.name} takes no number: '{cls.name}:{number:g}'")
        return cls()

    def with_solver(self, solver: str) -> ContactModel:
        """The same model by that one of its `solvers`."""
        if not self.solvers:
            reason = f"{self.notation} has no solvers to choose from"
            raise InvalidInput("solver", reason)
        raise InvalidInput("solver", unknown(solver, self.solvers))

    @property
    def notation(self) -> str:
        """Its name on the command line with its number, if it has one; else its repr."""
        return self.name or repr(self)

    def check_simulated(self) -> None:
        """Raises InvalidInput if the model needs more than a MuJoCo model holds."""

    @property
    def compiled(self) -> Compiled | None:
        """The form in which compiled time steps solve it; None: `solve` is called in each step."""
        return None

    @property
    def sustained(self) -> SustainedLaw:
        """What it does where contacts last, for `EventDriven`."""
        return SustainedLaw(Kind.DRY)

    @property
    def at_impact(self) -> ContactModel:
        """The model that solves impacts, for `EventDriven`."""
        return self

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """Velocity and impulses of the problem under this model, certified.

        start: the solution of an earlier, similar problem; its active set is tried first.
        """
        began = perf_counter()
        check_start(problem, start)
        if problem.is_sparse:
            found = self._solve_sparse(problem, start)
            solution = conclude(problem, self.law, found, began, self.facets)
        elif problem.island_count <= 1:
            solution = self._solve_whole(problem, start, began)
        else:
            found = self._solve_apart(problem, problem.islands(), start)
            solution = conclude(problem, self.law, found, began, self.facets)
        return replace(solution, problem=problem, law=self.law, facets=self.facets)

    def solve_to(
        self, problem: ContactProblem, enough: float, rungs: int | None = None
    ) -> ContactSolution:
        """As `solve`, but content with a certificate of `enough`, and with that many of the ways
        that the model has, where there is more than one."""
        return self.solve(problem)

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of an island: a problem that does not fall into independent parts."""
        raise NotImplementedError

    def _solve_whole(
        self, problem: ContactProblem, start: ContactSolution | None, began: float
    ) -> ContactSolution:
        return conclude(problem, self.law, self.solve_island(problem, start), began, self.facets)

    def _solve_sparse(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """A problem with sparse arrays: a small one by the model's own ways; a large one by blocks,
        and by these ways the small islands that blocks leave unsolved, or have no place for."""
        if problem.is_small:
            return as_impulses(ContactModel.solve(self, problem.dense(), start))
        form = self.compiled
        if form is not None and form.solver is not StepSolver.INTERIOR_POINT:
            form = None
        if form is None or not takes(problem, form.law):
            islands = problem.islands()
            for island in islands:
                self._check_size(problem, island, form)
            return self._solve_apart(problem, islands, start)
        guess = None if start is None else (start.normal, start.tangent, start.joint, start.box)
        answer = solve_by_blocks(problem, form.law, form.facets, guess)
        status = Status.from_code(answer.code)
        found = Impulses(*answer[:4], status, answer.steps, (StepSolver.INTERIOR_POINT.value,))
        if not answer.unsolved.any():
            return found
        nc, nj = problem.nc, problem.nj
        contacts, joints, boxes = np.split(answer.unsolved, (nc, nc + nj))
        left = [
            island
            for island in problem.islands()
            if (
                contacts[island.contacts].any()
                or joints[island.joints].any()
                or boxes[island.boxes].any()
            )
            and is_small(len(island.dofs), island_rows(problem, island))
        ]
        return self._solve_apart(problem, left, start, found) if left else found

    def _check_size(self, problem: ContactProblem, island: Island, form: Compiled | None) -> None:
        """Raises InvalidInput for an island that is too large for what needs dense arrays."""
        rows = island_rows(problem, island)
        if is_small(len(island.dofs), rows):
            return
        what = f"{len(island.dofs)} degrees of freedom and {rows} rows that belong together"
        if form is None or problem.delassus is not None:
            others = "" if problem.delassus is not None else ", NoSlip(), Viscous()"
            reason = (
                f"has {what}: {self!r} needs dense arrays of them; solve `problem.dense()` if they "
                f"fit into memory, or take one of Coulomb(), Frictionless(){others}"
            )
            raise InvalidInput("problem", reason)
        reason = (
            f"gives rows a box_limit of their own, or more than {TIED} to a contact, among {what}; "
            "only dense arrays have a place for them; solve `problem.dense()` if they fit into "
            "memory, or part these rows"
        )
        raise InvalidInput("box_contact", reason)

    def _solve_apart(
        self,
        problem: ContactProblem,
        islands: list[Island],
        start: ContactSolution | None,
        before: Impulses | None = None,
    ) -> Impulses:
        """Island by island; before: what is known of the others."""
        status, pivots = Status.SOLVED, 0
        rungs: tuple[str, ...] = ()
        if before is None:
            normal, tangent = np.zeros(problem.nc), np.zeros((problem.nc, 2))
            joint, box = np.zeros(problem.nj), np.zeros(problem.nb)
        else:
            normal, tangent, joint, box, status, pivots, rungs = before
        for island in islands:
            part = None if start is None else start.restricted(island)
            found = self.solve_island(problem.restricted(island).dense(), part)
            normal[island.contacts], tangent[island.contacts] = found.normal, found.tangent
            joint[island.joints], box[island.boxes] = found.joint, found.box
            pivots += found.pivots
            if len(found.rungs) > len(rungs):
                rungs = found.rungs
            if found.status is not Status.SOLVED:
                status = found.status
        return Impulses(normal, tangent, joint, box, status, pivots, rungs)


def as_impulses(solution: ContactSolution) -> Impulses:
    """What a solution says of its impulses, to be graded again."""
    return Impulses(
        solution.normal,
        solution.tangent,
        solution.joint,
        solution.box,
        solution.status,
        solution.pivots,
        solution.rungs,
    )


def island_rows(problem: ContactProblem, island: Island) -> int:
    """Rows of an island."""
    rows = problem.dimension * len(island.contacts) + len(island.joints) + len(island.boxes)
    return rows


def check_start(problem: ContactProblem, start: ContactSolution | None) -> None:
    """Raises InvalidInput if the problem is none, or `start` is of one with other rows."""
    if not isinstance(problem, ContactProblem):
        raise InvalidInput("problem", f"is {problem!r}: a ContactProblem")
    if start is None:
        return
    if not isinstance(start, ContactSolution):
        raise InvalidInput("start", f"is {start!r}: the ContactSolution of an earlier solve")
    have = (len(start.normal), len(start.joint), len(start.box))
    need = (problem.nc, problem.nj, problem.nb)
    if have != need:
        raise InvalidInput(
            "start", f"has (contacts, joints, boxes) = {have}, the problem has {need}"
        )


def from_attempt(problem: ScaledProblem, attempt: Attempt, rung: str) -> Impulses:
    """What a model hands on, of what a solver of the scaled problem found."""
    status = Status.from_code(attempt.code)
    return Impulses(*problem.unscale(attempt.impulses), status, attempt.steps, (rung,))


def conclude(
    problem: ContactProblem,
    law: LawName,
    found: Impulses,
    began: float,
    facets: int | None = None,
) -> ContactSolution:
    """Grades impulses, reads off velocity and modes, and looks for the reason of a failure."""
    return explain(problem, law, grade(problem, law, found, began, facets))


def grade(
    problem: ContactProblem,
    law: LawName,
    found: Impulses,
    began: float,
    facets: int | None = None,
) -> ContactSolution:
    """Impulses with their certificate, velocity and modes."""
    velocity = problem.velocity_from(found.normal, found.tangent, found.joint, found.box)
    certificate = certify(
        problem,
        velocity,
        found.normal,
        found.tangent,
        found.joint,
        found.box,
        law=law,
        facets=facets,
    )
    return ContactSolution(
        velocity,
        found.normal,
        found.tangent,
        found.joint,
        found.box,
        contact_modes(problem, velocity, found.normal),
        grade_status(certificate, found.status),
        found.pivots,
        found.rungs,
        certificate,
        perf_counter() - began,
    )


def explain(problem: ContactProblem, law: LawName, solution: ContactSolution) -> ContactSolution:
    """The solution, INFEASIBLE where it failed because rows are proved to contradict each other."""
    status = solution.status
    if status is Status.SOLVED:
        return solution
    if is_contradictory(problem, law):
        status = Status.INFEASIBLE
    elif status is Status.INFEASIBLE:  # a solver's word, without a proof that holds
        status = Status.ERROR
    return replace(solution, status=status)


def grade_status(certificate: Certificate, word: Status) -> Status:
    """SOLVED if the certificate passes, whatever the solver says; else its word, or ERROR."""
    if certificate.passed:
        return Status.SOLVED
    return Status.ERROR if word is Status.SOLVED else word
