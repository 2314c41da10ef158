"""Least kinetic energy over the friction cone: the entry points, and how far an answer is from it.

In coordinates of unit mass the dual is to move the free velocity as little as possible into
N v+ - b >= mu |T v+|: for the circle by an augmented Lagrangian (`lagrangian.py`), for facets by
pivoting (`polygon.py`).
"""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.problem.scaled import ScaledImpulses, ScaledProblem
from stiction.contact.solvers.attempt import Attempt, Options
from stiction.contact.solvers.shell.lagrangian import solve_circle
from stiction.contact.solvers.shell.polygon import solve_polygon
from stiction.status import Code

PROOF = 8
"""Facets of the polygon within the circle that shows where bounds contradict each other."""


def solve_by_lagrangian(
    problem: ScaledProblem, start: ScaledImpulses | None, options: Options
) -> Attempt:
    """Over the circular cone."""
    cones = problem.cones
    before = (np.empty(0), np.empty((0, 2))) if start is None else start
    theta, phi, code, steps = solve_circle(cones, *before)
    # Impulses without end, or too slow? Pivoting ends, and where a polygon within the circle
    # finds a contradiction, it is one.
    if code != Code.SOLVED and solve_polygon(cones, PROOF)[2] == Code.INFEASIBLE:
        code = Code.INFEASIBLE
    return Attempt(ScaledImpulses(theta, phi), Code(code), int(steps))


def solve_on_polygon(
    problem: ScaledProblem, start: ScaledImpulses | None, options: Options
) -> Attempt:
    """Over the cone of a polygon with `options.facets` sides."""
    theta, phi, code, steps = solve_polygon(problem.cones, options.facets)
    return Attempt(ScaledImpulses(theta, phi), Code(code), int(steps))


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
