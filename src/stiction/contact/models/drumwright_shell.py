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

In coordinates of unit mass its dual is to move the free velocity as little as possible into
N v+ - b >= mu |T v+|: for the circle by an augmented Lagrangian (`shell_lagrangian.py`), for
facets by a dual active-set method (`shell_cuts.py`).

How it can fail: INFEASIBLE (bounds that contradict each other), ERROR (optimality, recomputed
from the problem, beyond tolerance), PIVOT_LIMIT.

Where this departs from them: `- b' f_n` in the objective. By energy alone a contact ahead of
touching (b < 0) would brake bodies in mid-air, since every impulse in its cone that slows them
down is welcome.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.certificate import LawName
from stiction.contact.models.model import ContactModel, Impulses, refuse_tied_rows
from stiction.contact.models.solution import ContactSolution
from stiction.contact.problem.cones import build_cones, from_impulses, to_impulses
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.shell.cuts import solve_cuts
from stiction.contact.solvers.shell.lagrangian import solve_circle
from stiction.errors import InvalidInput
from stiction.status import Code, Status
from stiction.tolerances import RESIDUAL

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DrumwrightShell(ContactModel):
    """The impulses that leave the least kinetic energy.

    facets: sides of the friction polygon, corners at the angles 2 pi j / facets from the first
    tangent; None for the circular cone.
    """

    law: ClassVar[LawName] = "convex"

    facets: int | None = None

    def __post_init__(self) -> None:
        """Checks the options."""
        if self.facets is not None and (self.facets != int(self.facets) or self.facets < 2):
            raise InvalidInput("facets", f"is {self.facets}: a polygon needs 3 or more, a line 2")

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """Velocity and impulses of least kinetic energy.

        The certificate grades what any convex impact law obeys; SOLVED asks, beyond it, that
        `optimality_gap` is within tolerance. Torsional and rolling friction (`box_friction`) is
        refused.
        """
        refuse_tied_rows(problem, "DrumwrightShell")
        solution = super().solve(problem, start)
        if solution.status is Status.SOLVED:
            gap = optimality_gap(problem, solution, self.facets)
            if not gap <= RESIDUAL:
                return replace(solution, status=Status.ERROR)
        return solution

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of a problem whose rows all hang together."""
        cones, joints = build_cones(problem.whitened, problem.arrays)
        before = np.empty(0), np.empty((0, 2))
        if start is not None:
            before = from_impulses(cones, start.normal, start.tangent, start.box)
        limit = 500 + 100 * (len(cones.normal) + len(cones.mu))
        rungs: tuple[str, ...] = ("cuts",)
        if self.facets is None:
            theta, phi, code, steps = solve_circle(cones, *before)
            rungs = ("lagrangian",)
            # Impulses without end, or too slow? The cone's facets are cut finitely often, and
            # where a polygon within the circle finds a contradiction, it is one.
            if code != Code.SOLVED and solve_cuts(cones, 8, limit)[2] == Code.INFEASIBLE:
                code = Code.INFEASIBLE
        else:
            theta, phi, code, steps = solve_cuts(cones, int(self.facets), limit)
        normal, tangent, joint, box = to_impulses(problem.whitened, cones, joints, theta, phi)
        return Impulses(normal, tangent, joint, box, Status.from_code(code), steps, rungs)


def optimality_gap(
    problem: ContactProblem, solution: ContactSolution, facets: int | None = None
) -> float:
    """How far impulses are from least kinetic energy, scaled: largest of what is missing to
    N v+ - b >= mu |T v+|, of the energy lost by a contact in spite of it (the geometric mean of
    impulse and velocity, as energy is of second order), and of the same for dry friction.

    Computed from the problem's arrays. With the law's other half, the cone, which the
    certificate grades, it is zero at the optimum and nowhere else.
    """
    velocity = problem.contact_velocity(solution.velocity)
    scales, mu = problem.scales, problem.friction
    slip = _support(velocity.tangent, facets)
    parting = velocity.normal - problem.bound
    endless = np.isinf(mu)
    finite = np.where(endless, 0.0, mu)
    weight = np.hypot(1.0, finite)
    size = np.where(scales.contact > 0.0, scales.contact, 1.0)
    value = (parting - finite * slip) / (weight * size)
    value = np.where(endless, np.minimum(value, -slip / size), value)
    power = solution.normal * parting + (solution.tangent * velocity.tangent).sum(axis=1)
    energy = np.abs(power) * scales.inverse_normal / size**2
    # Rounding of one factor leaves 1e-16: its root would be 1e-8. The smaller of the two factors
    # of the product is what counts, as in the certificate.
    push = np.hypot(solution.normal, np.hypot(*solution.tangent.T)) * scales.inverse_normal / size
    lost = np.divide(energy, push, out=np.zeros_like(energy), where=push > 0.0)
    gaps = [np.maximum(-value, np.minimum(lost, push))]
    edge = np.where(scales.box > 0.0, scales.box, 1.0)
    x = solution.box * scales.inverse_box / edge
    limit = problem.box_limit * scales.inverse_box / edge
    gaps.append(np.abs(x - np.clip(x - velocity.box / edge, -limit, limit)))
    worst = max(float(gap.max(initial=0.0)) for gap in gaps)
    return worst if np.isfinite(solution.velocity).all() else np.inf


def _support(slip: Array, facets: int | None) -> Array:
    """(nc,) largest power of friction of unit strength against `slip` (nc, 2)."""
    if facets is None:
        return np.hypot(slip[:, 0], slip[:, 1])
    angle = 2.0 * np.pi * np.arange(facets) / facets
    corners = np.stack([np.cos(angle), np.sin(angle)])
    return np.max(-slip @ corners, axis=1, initial=-np.inf)
