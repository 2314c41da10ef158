"""Coulomb's law on a scaled problem: Newton's method, and four ways to solve the polygon's LCP.

    newton       from the start's impulses and modes
    reduced      Lloyd 5.3
    structural   Lloyd 5.1
    standard     Lemke on the assembled matrix, with the ladder of `stiction.lcp` and its vanishing
                 regularization
    search       Yamane & Nakamura: frictionless first, then the pivot search

With facets these solve the same LCP. On the circular cone (facets = 0) `reduced` turns and doubles
facets until Newton's method converges (`exact_cone.py`); the others solve once with four facets
and let Newton's method finish.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction import lcp
from stiction.contact.problem.cones import Cones
from stiction.contact.problem.scaled import ScaledImpulses, ScaledProblem
from stiction.contact.solvers.attempt import Attempt, Options
from stiction.contact.solvers.coulomb.exact_cone import (
    CONVERGED,
    NEWTON_STEPS,
    SEED,
    pivot_limit,
    solve_exact,
)
from stiction.contact.solvers.coulomb.lloyd import facet_directions, follow_contact_path
from stiction.contact.solvers.coulomb.newton import newton
from stiction.contact.solvers.coulomb.polyhedral import assemble, scaled_impulses
from stiction.status import Code, Status

Array = NDArray[np.float64]


def solve_newton(problem: ScaledProblem, start: ScaledImpulses | None, options: Options) -> Attempt:
    """Newton's method on the law itself, from the start or from no impulse."""
    return _polish(problem, start or problem.zeros(), options.facets, 0)


def solve_reduced(
    problem: ScaledProblem, start: ScaledImpulses | None, options: Options
) -> Attempt:
    """Lloyd's reduced method; on the circular cone with Newton's method and facets that turn."""
    if options.facets:
        return _follow_path(problem, options.facets, reduced=True)
    found = problem.zeros()
    limit = pivot_limit(len(found.theta), len(found.phi))
    code, pivots, _, _ = solve_exact(problem.cones, *found, False, limit)
    return Attempt(found, Code(code), int(pivots))


def solve_structural(
    problem: ScaledProblem, start: ScaledImpulses | None, options: Options
) -> Attempt:
    """Lloyd's structural method."""
    return _finish(problem, _follow_path(problem, options.facets or SEED, reduced=False), options)


def solve_standard(
    problem: ScaledProblem, start: ScaledImpulses | None, options: Options
) -> Attempt:
    """Lemke's method on the assembled matrix."""
    contacts, matrix, free, spread = _assembled(problem.cones, options)
    result = lcp.solve(matrix, free, "auto")
    found = ScaledImpulses(*scaled_impulses(result.z, contacts, spread))
    return _finish(problem, Attempt(found, result.status.code, result.pivots), options)


def solve_search(problem: ScaledProblem, start: ScaledImpulses | None, options: Options) -> Attempt:
    """Yamane & Nakamura's search on the assembled matrix."""
    contacts, matrix, free, spread = _assembled(problem.cones, options)
    # Their IV-C: the contacts that press without friction are the first guess.
    normals = lcp.solve(matrix[:contacts, :contacts], free[:contacts], "auto")
    active = np.zeros(len(free), np.bool_)
    active[:contacts] = normals.active
    result = lcp.solve(matrix, free, "search", start=active)
    pivots = normals.pivots + result.pivots
    if result.status is not Status.SOLVED:
        result = lcp.solve(matrix, free, "search")
        pivots += result.pivots
    found = ScaledImpulses(*scaled_impulses(result.z, contacts, spread))
    return _finish(problem, Attempt(found, result.status.code, pivots), options)


def _follow_path(problem: ScaledProblem, facets: int, *, reduced: bool) -> Attempt:
    cones, found = problem.cones, problem.zeros()
    spread = facet_directions(cones.flat, facets, np.zeros(len(found.phi)))
    limit = pivot_limit(len(found.theta), len(found.phi))
    code, pivots = follow_contact_path(cones, spread, reduced, limit, *found)
    return Attempt(found, Code(code), int(pivots))


def _assembled(cones: Cones, options: Options) -> tuple[int, Array, Array, Array]:
    """(contacts, matrix, vector, facet directions) of the LCP."""
    spread = facet_directions(cones.flat, options.facets or SEED, np.zeros(len(cones.mu)))
    return len(cones.normal), *assemble(cones, spread), spread


def _finish(problem: ScaledProblem, attempt: Attempt, options: Options) -> Attempt:
    """A polygon's answer as it is; on the circular cone what Newton's method makes of it."""
    if options.facets:
        return attempt
    return _polish(problem, attempt.impulses, 0, attempt.steps)


def _polish(problem: ScaledProblem, start: ScaledImpulses, facets: int, steps: int) -> Attempt:
    theta, phi = start.theta.copy(), start.phi.copy()
    residual, _ = newton(problem.cones, theta, phi, NEWTON_STEPS, np.zeros(len(phi)), facets, 1.0)
    code = Code.SOLVED if residual <= CONVERGED else Code.ERROR
    return Attempt(ScaledImpulses(theta, phi), code, steps)
