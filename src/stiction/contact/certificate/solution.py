"""`ContactSolution`: what every contact model returns, graded."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.certificate import Certificate
from stiction.contact.certificate.modes import Mode
from stiction.contact.problem.islands import Island
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

    @property
    def active(self) -> NDArray[np.bool_]:
        """(nc,) whether a contact presses."""
        return self.modes != Mode.SEPARATE

    def restricted(self, island: Island) -> ContactSolution:
        """The part of the solution that belongs to one island, as a warm start for it."""
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
