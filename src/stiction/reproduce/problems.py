"""Contact problems of a running simulation: recorded, changed, written as LCPs.

`Recorder` wraps a contact model and shows every problem that the simulator hands it. `HighGain`
prescribes joint motions (Yamane V-A), `Repeated` gives every contact several times (Drumwright's
footnote 3), `Lcp` solves by any LCP solver. All are contact models: the simulator takes its
Python path for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact import ContactModel, ContactProblem, ContactSolution
from stiction.contact.certificate.certificate import LawName
from stiction.contact.models.description import SustainedLaw
from stiction.contact.models.model import Impulses
from stiction.reproduce.contact_lcps import directions
from stiction.reproduce.result import clock
from stiction.status import Status

Array = NDArray[np.float64]
LcpSolver = Callable[[Array, Array], tuple[Array, Status, int]]
"""z, status and pivots for M and q."""


class Around(ContactModel):
    """Another contact model with something done before or after; described as that one is, but for
    its compiled form: simulators call it in each step."""

    def __init__(self, inner: ContactModel) -> None:
        self.inner, self.facets = inner, inner.facets
        self.law: LawName = inner.law  # type: ignore[misc]
        self.acts_nearby: bool = inner.acts_nearby  # type: ignore[misc]

    @property
    def sustained(self) -> SustainedLaw:
        """The inner model's."""
        return self.inner.sustained


class Recorder(Around):
    """Another contact model; `watch` sees every problem, what was found and in what time [s]."""

    def __init__(
        self,
        inner: ContactModel,
        watch: Callable[[ContactProblem, ContactSolution, float], None],
    ) -> None:
        super().__init__(inner)
        self._watch = watch

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """What the inner model finds."""
        began = clock()
        solution = self.inner.solve(problem, start)
        self._watch(problem, solution, clock() - began)
        return solution


class HighGain(ContactModel):
    """Another contact model on a robot whose joints follow `motion` exactly.

    Joint velocities after the step are prescribed: those that take the joints to `motion` at its
    end. The free joint of the root, dofs 0 to 5, is all that is left to move.
    """

    law: ClassVar[LawName] = "coulomb"

    def __init__(
        self, inner: ContactModel, data: mujoco.MjData, motion: Callable[[float], Array]
    ) -> None:
        self.inner, self.facets = inner, inner.facets
        self._data, self._motion = data, motion

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """Impulses of contacts alone, and the velocity that they and the prescription give."""
        data = self._data
        later = self._motion(data.time + problem.dt)
        joints = problem.nv - 6
        held = changed(
            problem,
            joint=np.eye(problem.nv)[6:],
            joint_target=(later - data.qpos[7 : 7 + joints]) / problem.dt,
        )
        # The simulator knows of no joint rows here; what they bear is in the velocity.
        return replace(self.inner.solve(held), joint=np.zeros(0))


class Repeated(Around):
    """Another contact model on a problem in which each contact stands `times` times."""

    def __init__(self, inner: ContactModel, times: int) -> None:
        super().__init__(inner)
        self.times = times

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """The sums of the impulses that the inner model finds."""
        found = self.inner.solve_island(repeated(problem, self.times), None)
        normal = found.normal.reshape(problem.nc, self.times).sum(axis=1)
        tangent = found.tangent.reshape(problem.nc, self.times, 2).sum(axis=1)
        return found._replace(normal=normal, tangent=tangent)


class Lcp(ContactModel):
    """Coulomb friction with a polygon, by any solver of the assembled LCP.

    Its answer is taken as it is: what it is worth, the certificate says. `seconds` has the time
    of each solve, assembly of the matrix not counted.
    """

    law: ClassVar[LawName] = "coulomb"

    def __init__(self, facets: int, solver: LcpSolver) -> None:
        self.facets, self._solver = facets, solver
        self.seconds: list[float] = []

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of the LCP's answer; none where it is not finite."""
        matrix, free = contact_lcp(problem, int(self.facets or 4))
        began = clock()
        z, status, pivots = self._solver(matrix, free)
        self.seconds.append(clock() - began)
        if not np.isfinite(z).all():
            z = np.zeros_like(z)
        normal, tangent = impulses_of(z, problem.nc, int(self.facets or 4))
        none = np.zeros(0)
        return Impulses(normal, tangent, none, none, status, pivots, ("lcp",))


def changed(problem: ContactProblem, **changes: Any) -> ContactProblem:
    """The problem with other arrays in the place of some of its own."""
    arrays: dict[str, Any] = problem.arrays._asdict()
    return ContactProblem(**{**arrays, "dt": problem.dt, **changes})


def repeated(problem: ContactProblem, times: int) -> ContactProblem:
    """The problem with each contact `times` times, one beside the other."""
    rows = {
        name: np.repeat(getattr(problem.arrays, name), times, axis=0)
        for name in ("normal", "tangent", "friction", "viscosity", "bound")
    }
    return changed(problem, **rows)


def contact_lcp(
    problem: ContactProblem, facets: int, *, forces: bool = False
) -> tuple[Array, Array]:
    """M (n, n) and q (n,) of Stewart and Trinkle's LCP in physical units, joints eliminated.

    n = nc (facets + 2), in the order of `contact.polyhedral`: normals [N s], friction contact by
    contact [N s], sliding speeds [m/s]. With `forces` impulses are forces times dt, as Yamane has
    them, and the unknowns are in newtons.
    """
    nc, nv = problem.nc, problem.nv
    along = directions(facets) @ problem.tangent  # (nc, facets, nv)
    rows = np.concatenate([problem.normal, along.reshape(-1, nv)])
    inverse = np.linalg.solve(problem.mass, np.concatenate([rows, problem.joint]).T)  # M^-1 rows'
    free = problem.free_velocity
    gram, drift = rows @ inverse[:, : len(rows)], rows @ free
    if problem.nj:
        held = inverse[:, len(rows) :]
        cross = rows @ held
        own = problem.joint @ held
        gram -= cross @ np.linalg.solve(own, cross.T)
        drift -= cross @ np.linalg.solve(own, problem.joint @ free - problem.joint_target)
    drift[:nc] -= problem.bound
    moving = len(rows)
    matrix = np.zeros((moving + nc, moving + nc))
    matrix[:moving, :moving] = gram * (problem.dt if forces else 1.0)
    sums = np.repeat(np.eye(nc), facets, axis=0)
    matrix[nc:moving, moving:] = sums
    matrix[moving:, nc:moving] = -sums.T
    matrix[moving:, :nc] = np.diag(problem.friction)
    return matrix, np.concatenate([drift, np.zeros(nc)])


def impulses_of(z: Array, contacts: int, facets: int) -> tuple[Array, Array]:
    """Normal (nc,) and tangent (nc, 2) parts of a solution of `contact_lcp`."""
    along = z[contacts : contacts * (facets + 1)].reshape(contacts, facets)
    return z[:contacts].copy(), along @ directions(facets)
