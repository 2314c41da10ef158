"""What all contact models share: islands apart, one certificate, a status decided by it.

A model states its tangential law and solves one island; this file splits, puts together and
grades. A solve may climb a ladder of ways; each is a rung, recorded by name, and only an answer
that its certificate passes is called solved.
"""

from __future__ import annotations

from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.certificate import Certificate, LawName, certify
from stiction.contact.certificate.contradiction import is_contradictory
from stiction.contact.models.solution import STILL, ContactSolution, Mode
from stiction.contact.problem.islands import Island
from stiction.contact.problem.problem import ContactProblem
from stiction.errors import InvalidInput
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
    """Base of the contact models. A subclass sets `law` and defines `solve_island`."""

    law: ClassVar[LawName]
    facets: int | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """Velocity and impulses of the problem under this model, certified.

        start: the solution of an earlier, similar problem; its active set is tried first.
        """
        began = perf_counter()
        check_start(problem, start)
        islands = problem.islands()
        if len(islands) <= 1:
            found = self.solve_island(problem, start)
        else:
            found = self._solve_apart(problem, islands, start)
        return conclude(problem, self.law, found, began, self.facets)

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of a problem whose rows all hang together."""
        raise NotImplementedError

    def _solve_apart(
        self, problem: ContactProblem, islands: list[Island], start: ContactSolution | None
    ) -> Impulses:
        normal, tangent = np.zeros(problem.nc), np.zeros((problem.nc, 2))
        joint, box = np.zeros(problem.nj), np.zeros(problem.nb)
        status, pivots = Status.SOLVED, 0
        rungs: tuple[str, ...] = ()
        for island in islands:
            part = None if start is None else start.restricted(island)
            found = self.solve_island(problem.restricted(island), part)
            normal[island.contacts], tangent[island.contacts] = found.normal, found.tangent
            joint[island.joints], box[island.boxes] = found.joint, found.box
            pivots += found.pivots
            if len(found.rungs) > len(rungs):
                rungs = found.rungs
            if found.status is not Status.SOLVED:
                status = found.status
        return Impulses(normal, tangent, joint, box, status, pivots, rungs)


def check_start(problem: ContactProblem, start: ContactSolution | None) -> None:
    """Raises InvalidInput if `start` is of a problem with other rows."""
    if start is None:
        return
    have = (len(start.normal), len(start.joint), len(start.box))
    need = (problem.nc, problem.nj, problem.nb)
    if have != need:
        raise InvalidInput(
            "start", f"has (contacts, joints, boxes) = {have}, the problem has {need}"
        )


def refuse_tied_rows(problem: ContactProblem, model: str) -> None:
    """Raises InvalidInput if a box row's limit grows with a normal impulse: `model` has no
    torsional or rolling friction."""
    tied = np.flatnonzero((problem.box_contact >= 0) & (problem.box_friction > 0.0))
    if tied.size:
        row = int(tied[0])
        reason = (
            f"is {problem.box_contact[row]}: {model} has no torsional or rolling friction; "
            "use Coulomb, or leave box_friction out"
        )
        raise InvalidInput("box_contact", reason, problem.box_contact.shape, (row,))


def conclude(
    problem: ContactProblem,
    law: LawName,
    found: Impulses,
    began: float,
    facets: int | None = None,
) -> ContactSolution:
    """Grades impulses and reads off velocity and modes."""
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
    status = grade_status(certificate, found.status)
    if status is not Status.SOLVED and is_contradictory(problem, law):
        status = Status.INFEASIBLE
    elif status is Status.INFEASIBLE:  # a solver's word, without a proof that holds
        status = Status.ERROR
    return ContactSolution(
        velocity,
        found.normal,
        found.tangent,
        found.joint,
        found.box,
        contact_modes(problem, velocity, found.normal),
        status,
        found.pivots,
        found.rungs,
        certificate,
        perf_counter() - began,
    )


def grade_status(certificate: Certificate, word: Status) -> Status:
    """SOLVED if the certificate passes, whatever the solver says; else its word, or ERROR."""
    if certificate.passed:
        return Status.SOLVED
    return Status.ERROR if word is Status.SOLVED else word


def contact_modes(problem: ContactProblem, velocity: Array, normal: Array) -> NDArray[np.int8]:
    """(nc,) `Mode` of each contact."""
    slip = np.hypot(*problem.contact_velocity(velocity).tangent.T)
    moving = (slip > STILL * problem.scales.contact) & (problem.friction > 0.0)
    modes = np.where(moving, Mode.SLIDE, Mode.STICK)
    return np.where(normal > 0.0, modes, Mode.SEPARATE).astype(np.int8)
