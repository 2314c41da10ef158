"""`Baraff`: contact forces with static and dynamic friction (SIGGRAPH 1994, sections 5 and 6).

His algorithm drives one force after the other until its condition holds (`solvers/baraff`).
`Baraff.forces` is his sustained contact, at the acceleration level; `Baraff.solve` his "first-order
world", where force and velocity are related and friction is static only: the contact problem of
all other models here, under Coulomb's law.

How it can fail: RAY (no finite force exists; comes with the direction of an impulse), CYCLE (rounds
ran out), PIVOT_LIMIT, SINGULAR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiction.contact.certificate.certificate import LawName
from stiction.contact.certificate.laws import Law
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import Compiled, Kind, StepSolver, SustainedLaw
from stiction.contact.models.model import ContactModel, Impulses, from_attempt
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.problem.scaled import ScaledProblem
from stiction.contact.problem.validation import nonnegative, per_row, real, refuse_tied_rows
from stiction.contact.solvers.attempt import Options
from stiction.contact.solvers.baraff.solve import (
    BaraffResult,
    slip_directions,
    solve_accelerations,
)
from stiction.contact.solvers.table import SOLVERS

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Baraff(ContactModel):
    """Static and dynamic friction by driving one force after the other.

    static, dynamic: coefficients of friction, per contact or one for all, that take the place
    of the problem's. `solve` knows static friction only.
    """

    name: ClassVar[str] = "baraff"
    law: ClassVar[LawName] = "coulomb"

    static: ArrayLike | None = None
    dynamic: ArrayLike | None = None

    @property
    def compiled(self) -> Compiled | None:
        """By his algorithm, unless the coefficients are not the problem's own."""
        if self.static is not None:
            return None
        return Compiled(Law.COULOMB, solver=StepSolver.DRIVING)

    @property
    def sustained(self) -> SustainedLaw:
        """Static and dynamic friction, each with its coefficient."""
        static = None if self.static is None else np.asarray(self.static, np.float64)
        dynamic = None if self.dynamic is None else np.asarray(self.dynamic, np.float64)
        return SustainedLaw(Kind.DRY, static=static, dynamic=dynamic)

    def forces(
        self,
        mass: ArrayLike,
        velocity: ArrayLike,
        force: ArrayLike,
        normal: ArrayLike,
        tangent: ArrayLike | None = None,
        friction: ArrayLike | None = None,
        normal_rate: ArrayLike | None = None,
        tangent_rate: ArrayLike | None = None,
        joint: ArrayLike | None = None,
        joint_rate: ArrayLike | None = None,
        *,
        sliding: ArrayLike | None = None,
    ) -> BaraffResult:
        """Contact forces and accelerations while contacts last (N v = 0 is taken for granted).

        mass (nv, nv), velocity (nv,), force (nv,), normal (nc, nv), tangent (nc, 2, nv),
        friction (nc,), joint (nj, nv): as for `ContactProblem`; a planar problem has zeros for
        its second tangents. normal_rate (nc,), tangent_rate (nc, 2), joint_rate (nj,): (d/dt of
        the rows) v [m/s^2], zero by default. sliding (nc,) bool: which contacts slide, by
        default those with a tangential speed beyond rounding.
        """
        speed = real("velocity", velocity, (-1,))
        rows = real("normal", normal, (-1, len(speed)))
        nc = len(rows)
        mu = _coefficient("friction", 0.0 if friction is None else friction, nc)
        tangents = np.zeros((nc, 2, len(speed)))
        if tangent is not None:
            tangents = real("tangent", tangent, (nc, 2, len(speed)))
        direction, slides = slip_directions(tangents, speed, sliding)
        static = mu if self.static is None else _coefficient("static", self.static, nc)
        dynamic = mu if self.dynamic is None else _coefficient("dynamic", self.dynamic, nc)
        nj = 0 if joint is None else len(real("joint", joint, (-1, len(speed))))
        problem = ContactProblem(
            mass=mass,
            velocity=np.zeros(len(speed)),
            force=force,
            dt=1.0,
            normal=rows,
            tangent=tangents,
            friction=np.where(slides, dynamic, static),
            bound=-per_row("normal_rate", normal_rate, nc, 0.0),
            joint=joint,
            joint_target=-per_row("joint_rate", joint_rate, nj, 0.0),
        )
        drift = np.zeros((nc, 2))
        if tangent_rate is not None:
            drift = real("tangent_rate", tangent_rate, (nc, 2))
        return solve_accelerations(problem, drift, slides, direction)

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """Impulses and v+ of a contact problem under Coulomb's law, certified.

        start: the solution of an earlier, similar problem; its sets are tried first. With
        `static` given, the certificate is that of the problem with that friction. Torsional and
        rolling friction (`box_friction`) is refused.
        """
        refuse_tied_rows(problem.box_contact, problem.box_friction, "Baraff")
        if self.static is not None:
            problem = _with_friction(problem, self.static)
        return super().solve(problem, start)

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of an island."""
        scaled = ScaledProblem(problem)
        before = None if start is None else scaled.scale(start.normal, start.tangent, start.box)
        return from_attempt(scaled, SOLVERS["driving"](scaled, before, Options()), "driving")


def _coefficient(name: str, value: ArrayLike, nc: int) -> Array:
    return nonnegative(name, value, nc, "a coefficient of friction lies in [0, inf]", infinite=True)


def _with_friction(problem: ContactProblem, friction: ArrayLike) -> ContactProblem:
    """The problem with another coefficient of friction."""
    mu = _coefficient("static", friction, problem.nc)
    if problem.delassus is not None:
        return ContactProblem.from_delassus(
            problem.delassus,
            problem.velocity,
            friction=mu,
            bound=problem.bound,
            viscosity=problem.viscosity,
            dt=problem.dt,
            dimension=problem.dimension,
        )
    arguments: dict[str, Any] = problem.arrays._asdict()
    if problem.sparse is not None:
        arguments |= problem.sparse.matrices._asdict()
    return ContactProblem(**{**arguments, "friction": mu, "dt": problem.dt})
