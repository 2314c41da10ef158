"""`ContactSolution`: what every contact model returns, graded."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.certificate import Certificate, LawName
from stiction.contact.derivatives.derivatives import ContactDerivatives
from stiction.contact.derivatives.modes import Answer
from stiction.contact.problem.islands import Island
from stiction.contact.problem.modes import Mode
from stiction.contact.problem.problem import ContactProblem
from stiction.errors import InvalidInput
from stiction.status import Status

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class ContactSolution:
    """Velocity after the step, the impulses that lead to it, and their certificate."""

    velocity: Array
    """(nv,) v+ [m/s, rad/s]; of a Delassus problem u (dimension nc,) [m/s]."""
    normal: Array
    """(nc,) normal impulses [N s]."""
    tangent: Array
    """(nc, 2) tangential impulses [N s]."""
    joint: Array
    """(nj,) joint impulses [N s, N m s]."""
    box: Array
    """(nb,) impulses of dry joint friction [N s, N m s]."""
    modes: NDArray[np.int8]
    """(nc,) `Mode` of each contact."""
    status: Status
    """How the solve ended; decided by the certificate."""
    pivots: int
    """Exchanges of active and inactive rows, over all rungs."""
    rungs: tuple[str, ...]
    """Names of the ways tried, in order, but for the one that answered, which is the last."""
    certificate: Certificate
    """Violation of every law, from the problem's own arrays."""
    seconds: float
    """Time the solve took [s]."""
    problem: ContactProblem | None = None
    """What it solves; None for one that was not found by a model's `solve`."""
    law: LawName = "coulomb"
    """The tangential law that it obeys."""
    facets: int | None = None
    """Corners of the friction polygon; None for the circular cone."""

    @property
    def active(self) -> NDArray[np.bool_]:
        """(nc,) whether a contact presses."""
        return self.modes != Mode.SEPARATE

    def derivatives(self, smoothing: float = 0.0) -> ContactDerivatives:
        """How velocity and impulses change with the problem, at the modes of this solution.

        smoothing: contacts change their mode gradually, as where an interior point stops at this
        product of normal impulse and parting speed, both over the problem's scales; 1e-3, say
        (`contact/derivatives/modes.py`).

        Raises InvalidInput where the solve did not succeed, or the law has no derivatives here. Of
        a small problem with sparse arrays they are those of its `dense()`, and have the shapes of
        its arrays; a large one is refused.
        """
        if self.problem is None:
            raise InvalidInput("solution", "does not know its problem: take one from `solve`")
        if self.status is not Status.SOLVED:
            raise InvalidInput("solution", f"has the status {self.status.name}: not solved")
        problem = self.problem
        if problem.is_sparse:
            if not problem.is_small:
                reason = (
                    f"has {problem.nv} degrees of freedom in sparse arrays: derivatives need dense "
                    "ones; solve `problem.dense()` if they fit into memory"
                )
                raise InvalidInput("problem", reason)
            problem = problem.dense()
        answer = Answer(self.velocity, self.normal, self.tangent, self.joint, self.box)
        return ContactDerivatives(problem, self.law, self.facets or 0, answer, smoothing)

    def restricted(self, island: Island) -> ContactSolution:
        """The part of the solution that belongs to one island, as a warm start for it."""
        if not isinstance(island, Island):
            raise InvalidInput("island", f"is {island!r}: one of the problem's `islands()`")
        contacts = island.contacts
        velocity = self.velocity[island.dofs]
        return replace(
            self,
            velocity=velocity,
            normal=self.normal[contacts],
            tangent=self.tangent[contacts],
            joint=self.joint[island.joints],
            box=self.box[island.boxes],
            modes=self.modes[contacts],
        )
