"""Coulomb friction: `Coulomb()`, the exact cone; `Coulomb(facets=d)`, a friction polygon.

The exact cone: pivoting finds the modes, Newton's method finds the circle. Lloyd's reduced
method solves the problem with four facets, Newton's method starts there; if it does not
converge the facets of each unit are turned so that one points along phi - s, what the law
would project, then doubled as well, and both are repeated.

The ladder, climbed until a certificate passes (`rungs` of the solution names the last ones):

    warm start   Newton's method from the given solution's impulses and modes
    reduced      as above (of a polygon: the solver that was asked for)
    search       Yamane & Nakamura: frictionless first, then the pivot search (and Newton)
    standard     Lemke on the assembled matrix, with its own ladder and a vanishing
                 regularization (and Newton)
    conic        exact cone only: a conic solver in a fixed point on the slip; not where a
                 contact has torsional or rolling friction, which it does not know

Torsional and rolling friction are box rows with a contact: |f_b| <= box_limit + box_friction f_n
against B v+. Each has its own interval; sliding, spinning and rolling share the normal impulse
and nothing else, and no polygon takes the place of an interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stiction import lcp
from stiction.contact.certificate.certificate import LawName, certify, from_table
from stiction.contact.certificate.grading import Law
from stiction.contact.models.model import ContactModel, Impulses, check_start
from stiction.contact.models.solution import ContactSolution
from stiction.contact.problem.cones import Cones, build_cones, from_impulses, to_impulses
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.exact_cone import CONVERGED, SEED, STEPS, solve_arrays, solve_exact
from stiction.contact.solvers.lloyd import facet_directions, follow_contact_path
from stiction.contact.solvers.newton import newton
from stiction.contact.solvers.polyhedral import assemble, scaled_impulses
from stiction.errors import InvalidInput
from stiction.status import Code, Status

Array = NDArray[np.float64]
Attempt = tuple[Array, Array, int, int]
"""Of one rung: theta (n,), phi (u, 2), the code it ended with, its pivots."""

Solver = Literal["reduced", "structural", "standard", "search"]

SOLVERS: tuple[Solver, ...] = ("reduced", "structural", "standard", "search")


@dataclass(frozen=True)
class Coulomb(ContactModel):
    """Coulomb's law with the coefficients of the problem.

    facets: None for the circular cone; d >= 3 for a polygon whose corners lie on the circle.
    solver: which way the polygon's LCP is solved first: "reduced" and "structural" (Lloyd),
        "standard" (Lemke on the assembled matrix), "search" (Yamane & Nakamura). All solve the
        same problem; the others follow as rungs where one fails.

    Torsional and rolling friction are box rows with a contact (`ContactProblem.box_contact`); their
    limits are intervals, whatever the facets.
    """

    facets: int | None = None
    solver: Solver = "reduced"
    law: ClassVar[LawName] = "coulomb"

    def __post_init__(self) -> None:
        if self.facets is not None and (self.facets != int(self.facets) or self.facets < 3):
            raise InvalidInput("facets", f"is {self.facets}: a polygon has 3 or more, or None")
        if self.solver not in SOLVERS:
            raise InvalidInput("solver", f"is {self.solver!r}: one of {', '.join(SOLVERS)}")

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """Velocity and impulses of the problem under Coulomb's law, certified.

        start: the solution of an earlier, similar problem; its modes are tried first.
        """
        began = perf_counter()
        check_start(problem, start)
        if problem.delassus is None and (self.facets is None or self.solver == "reduced"):
            solution = self._solve_compiled(problem, start, began)
            if solution is not None:
                return solution
        return super().solve(problem, start)

    def _solve_compiled(
        self, problem: ContactProblem, start: ContactSolution | None, began: float
    ) -> ContactSolution | None:
        """The first rungs in one call, for problems of one island; None where they do not do."""
        if problem.island_count > 1:
            return None
        guess = problem.no_guess if start is None else (start.normal, start.tangent, start.box)
        outcome = solve_arrays(
            problem.arrays,
            problem.dt,
            self.facets or 0,
            problem.whitened,
            problem.scales,
            *problem.factor,
            start is not None,
            guess,
        )
        certificate = from_table(Law.COULOMB, outcome.table)
        if not certificate.passed:
            return None
        rungs = ("reduced",) if start is None else ("warm start", "reduced")
        return ContactSolution(
            outcome.velocity,
            outcome.normal,
            outcome.tangent,
            outcome.joint,
            outcome.box,
            outcome.modes,
            Status.SOLVED,
            outcome.pivots,
            rungs if outcome.rounds else ("warm start",),
            certificate,
            perf_counter() - began,
        )

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Climbs the ladder on one island; see the module's head."""
        whitened = problem.whitened
        cones, joints = build_cones(whitened, problem.arrays)
        pivots = 0
        rungs: list[str] = []
        best: Impulses | None = None
        for name, (theta, phi, code, more) in self._ladder(problem, cones, start):
            pivots += more
            rungs.append(name)
            normal, tangent, joint, box = to_impulses(whitened, cones, joints, theta, phi)
            status = Status.from_code(code)
            best = Impulses(normal, tangent, joint, box, status, pivots, tuple(rungs))
            if code == Code.SOLVED and self._passes(problem, best):
                break
            if code == Code.RAY and name == "reduced" and _hopeless(cones):
                break
        assert best is not None
        return best

    def _passes(self, problem: ContactProblem, found: Impulses) -> bool:
        velocity = problem.velocity_from(*found[:4])
        return certify(problem, velocity, *found[:4], law=self.law, facets=self.facets).passed

    def _ladder(
        self, problem: ContactProblem, cones: Cones, start: ContactSolution | None
    ) -> Iterator[tuple[str, Attempt]]:
        """The rungs, each run when asked for: its name and what came of it."""
        limit = 100 + 20 * (len(cones.normal) + len(cones.parent))
        facets = self.facets or 0
        if start is not None:
            guess = (start.normal, start.tangent, start.box)
            yield "warm start", _warm(cones, guess, facets)
        if self.facets is None:
            yield "reduced", _exact(cones, limit)
            order: tuple[Solver, ...] = ("search", "standard")
        else:
            order = (self.solver, *[s for s in SOLVERS if s != self.solver])
        for solver in order:
            yield solver, _polygon(cones, facets, solver, limit)
        if self.facets is None and not (cones.flat & (cones.parent >= 0)).any():
            yield "conic", _conic(problem, cones)


def _hopeless(cones: Cones) -> bool:
    """Whether a bound asks for motion that no impulse can give: a zero row below its bound."""
    zero = np.abs(cones.normal).max(axis=1, initial=0.0) == 0.0
    return bool((cones.free_normal[zero] < -1e-9).any())


def _warm(cones: Cones, guess: tuple[Array, Array, Array], facets: int) -> Attempt:
    theta, phi = from_impulses(cones, *guess)
    turn = np.zeros(len(phi))
    residual, _ = newton(cones, theta, phi, STEPS, turn, facets, 1.0)
    return theta, phi, Code.SOLVED if residual <= CONVERGED else Code.ERROR, 0


def _blank(cones: Cones) -> tuple[Array, Array]:
    return np.zeros(len(cones.normal)), np.zeros((len(cones.parent), 2))


def _exact(cones: Cones, limit: int) -> Attempt:
    theta, phi = _blank(cones)
    code, pivots, _, _ = solve_exact(cones, theta, phi, False, limit)
    return theta, phi, code, pivots


def _polygon(cones: Cones, facets: int, solver: Solver, limit: int) -> Attempt:
    """The LCP with `facets` corners by one of the solvers; with 0, four corners and Newton."""
    theta, phi = _blank(cones)
    turn = np.zeros(len(phi))
    spread = facet_directions(cones.flat, facets or SEED, turn)
    if solver in ("reduced", "structural"):
        code, pivots = follow_contact_path(cones, spread, solver == "reduced", limit, theta, phi)
    else:
        theta, phi, code, pivots = _assembled(cones, spread, solver)
    if facets == 0:
        residual, _ = newton(cones, theta, phi, STEPS, turn, 0, 1.0)
        code = Code.SOLVED if residual <= CONVERGED else Code.ERROR
    return theta, phi, code, pivots


def _assembled(cones: Cones, spread: Array, solver: Solver) -> Attempt:
    """`standard` and `search`, through `stiction.lcp`."""
    contacts = len(cones.normal)
    matrix, free = assemble(cones, spread)
    if solver == "standard":
        result = lcp.solve(matrix, free, "auto")
        pivots = result.pivots
    else:
        # Yamane IV-C: the contacts that press without friction are the first guess.
        normals = lcp.solve(matrix[:contacts, :contacts], free[:contacts], "auto")
        start = np.zeros(len(free), np.bool_)
        start[:contacts] = normals.active
        result = lcp.solve(matrix, free, "search", start=start)
        pivots = normals.pivots + result.pivots
        if result.status != "solved":
            result = lcp.solve(matrix, free, "search")
            pivots += result.pivots
    theta, phi = scaled_impulses(result.z, contacts, spread)
    return theta, phi, int(result.status.code), pivots


def _conic(problem: ContactProblem, cones: Cones) -> Attempt:
    from stiction.contact.solvers.conic.solve import solve_conic

    normal, tangent, _, box, iterations, _ = solve_conic(problem)
    theta, phi = from_impulses(cones, normal, tangent, box)
    return theta, phi, Code.SOLVED, int(iterations)
