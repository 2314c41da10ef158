"""Coulomb friction: `Coulomb()`, the exact cone; `Coulomb(facets=d)`, a friction polygon.

The exact cone: pivoting finds the modes, Newton's method finds the circle. Lloyd's reduced
method solves the problem with four facets, Newton's method starts there; if it does not
converge the facets of each unit are turned so that one points along phi - s, what the law
would project, and both are repeated.

The ladder, climbed until a certificate passes (`rungs` of the solution names the last ones):

    warm start   Newton's method from the given solution's impulses and modes
    reduced      as above (of a polygon: the solver that was asked for)
    search       Yamane & Nakamura: frictionless first, then the pivot search (and Newton)
    standard     Lemke on the assembled matrix, with its own ladder and a vanishing
                 regularization (and Newton)
    conic        exact cone only: a conic solver in a fixed point on the slip
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stiction import lcp
from stiction.contact.certificate import LawName, certify
from stiction.contact.cones import Cones, build_cones, from_impulses, to_impulses
from stiction.contact.lloyd import facet_directions, follow_contact_path
from stiction.contact.model import ContactModel, Impulses
from stiction.contact.newton import newton, velocities
from stiction.contact.polyhedral import assemble, scaled_impulses
from stiction.contact.problem import ContactProblem
from stiction.contact.solution import ContactSolution
from stiction.errors import InvalidInput
from stiction.kernels.compile import kernel
from stiction.status import Code, Status

Array = NDArray[np.float64]
Solver = Literal["reduced", "structural", "standard", "search"]

SOLVERS: tuple[Solver, ...] = ("reduced", "structural", "standard", "search")

SEED = 4
"""Facets from which Newton's method starts: enough for the modes, fewest for the pivots."""

ROUNDS = 6
"""Rounds of turning the facets; in Lloyd's families one is enough for 97 of 100."""

STEPS = 60
"""Newton steps per round, over all candidate sets."""

CONVERGED = 1e-11
"""Residual of the scaled laws that is left to the certificate to judge."""


@kernel
def solve_exact(p: Cones, theta, phi, warm, limit):
    """(code, pivots, steps, rounds): theta (n,), phi (u, 2) on the exact cone.

    warm: theta and phi come with a guess, and Newton's method is tried from there first;
    rounds = 0 says that it was enough.
    """
    units = p.parent.shape[0]
    turn = np.zeros(units)
    taken = 0
    pivots = 0
    if warm:
        residual, taken = newton(p, theta, phi, STEPS, turn, 0)
        if residual <= CONVERGED:
            return Code.SOLVED, 0, taken, 0
    v = np.empty(p.normal.shape[1])
    nu = np.empty(p.normal.shape[0])
    slip = np.empty((units, 2))
    for attempt in range(ROUNDS):
        directions = facet_directions(p.flat, SEED, turn)
        code, more = follow_contact_path(p, directions, True, limit, theta, phi)
        pivots += more
        if code != Code.SOLVED:
            return code, pivots, taken, attempt + 1
        residual, steps = newton(p, theta, phi, STEPS, turn, 0)
        taken += steps
        if residual <= CONVERGED:
            return Code.SOLVED, pivots, taken, attempt + 1
        velocities(p, theta, phi, v, nu, slip)
        for u in range(units):
            turn[u] = np.arctan2(phi[u, 1] - slip[u, 1], phi[u, 0] - slip[u, 0])
    return Code.ERROR, pivots, taken, ROUNDS


@dataclass(frozen=True)
class Coulomb(ContactModel):
    """Coulomb's law with the coefficients of the problem.

    facets: None for the circular cone; d >= 3 for a polygon whose corners lie on the circle.
    solver: which way the polygon's LCP is solved first: "reduced" and "structural" (Lloyd),
        "standard" (Lemke on the assembled matrix), "search" (Yamane & Nakamura). All solve the
        same problem; the others follow as rungs where one fails.
    """

    facets: int | None = None
    solver: Solver = "reduced"
    law: ClassVar[LawName] = "coulomb"

    def __post_init__(self) -> None:
        if self.facets is not None and (self.facets != int(self.facets) or self.facets < 3):
            raise InvalidInput("facets", f"is {self.facets}: a polygon has 3 or more, or None")
        if self.solver not in SOLVERS:
            raise InvalidInput("solver", f"is {self.solver!r}: one of {', '.join(SOLVERS)}")

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Climbs the ladder on one island; see the module's head."""
        whitened = problem.whitened
        arrays = problem.arrays
        cones, joints = build_cones(whitened, arrays.friction, arrays.box_limit)
        pivots = 0
        rungs: list[str] = []
        best: Impulses | None = None
        for name, attempt in self._ladder(problem, cones, start):
            theta, phi, code, more = attempt()
            pivots += more
            rungs.append(name)
            found = to_impulses(whitened, cones, joints, arrays.box_limit, theta, phi)
            status = Status.from_code(code)
            best = Impulses(*found, status, pivots, tuple(rungs))
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
    ) -> list[tuple[str, Callable[[], tuple[Array, Array, int, int]]]]:
        """The rungs, as names and what runs them; each returns (theta, phi, code, pivots)."""
        limit = 100 + 20 * (len(cones.normal) + len(cones.parent))
        facets = self.facets or 0
        rungs: list[tuple[str, Callable[[], tuple[Array, Array, int, int]]]] = []
        if start is not None:
            guess = (start.normal, start.tangent, start.box)
            rungs.append(("warm start", lambda: _warm(problem, cones, guess, facets)))
        if self.facets is None:
            rungs.append(("reduced", lambda: _exact(cones, limit)))
            order: tuple[Solver, ...] = ("search", "standard")
        else:
            order = (self.solver, *[s for s in SOLVERS if s != self.solver])
        for solver in order:
            rungs.append((solver, lambda solver=solver: _polygon(cones, facets, solver, limit)))
        if self.facets is None:
            rungs.append(("conic", lambda: _conic(problem, cones)))
        return rungs


def _hopeless(cones: Cones) -> bool:
    """Whether a bound asks for motion that no impulse can give: a zero row below its bound."""
    zero = np.abs(cones.normal).max(axis=1, initial=0.0) == 0.0
    return bool((cones.free_normal[zero] < -1e-9).any())


def _warm(
    problem: ContactProblem, cones: Cones, guess: tuple[Array, Array, Array], facets: int
) -> tuple[Array, Array, int, int]:
    theta, phi = from_impulses(cones, problem.arrays.box_limit, *guess)
    turn = np.zeros(len(phi))
    residual, _ = newton(cones, theta, phi, STEPS, turn, facets)
    return theta, phi, Code.SOLVED if residual <= CONVERGED else Code.ERROR, 0


def _blank(cones: Cones) -> tuple[Array, Array]:
    return np.zeros(len(cones.normal)), np.zeros((len(cones.parent), 2))


def _exact(cones: Cones, limit: int) -> tuple[Array, Array, int, int]:
    theta, phi = _blank(cones)
    code, pivots, _, _ = solve_exact(cones, theta, phi, False, limit)
    return theta, phi, code, pivots


def _polygon(
    cones: Cones, facets: int, solver: Solver, limit: int
) -> tuple[Array, Array, int, int]:
    """The LCP with `facets` corners by one of the solvers; with 0, four corners and Newton."""
    theta, phi = _blank(cones)
    turn = np.zeros(len(phi))
    spread = facet_directions(cones.flat, facets or SEED, turn)
    if solver in ("reduced", "structural"):
        code, pivots = follow_contact_path(
            cones, spread, solver == "reduced", limit, theta, phi
        )
    else:
        theta, phi, code, pivots = _assembled(cones, spread, solver)
    if facets == 0:
        residual, _ = newton(cones, theta, phi, STEPS, turn, 0)
        code = Code.SOLVED if residual <= CONVERGED else Code.ERROR
    return theta, phi, code, pivots


def _assembled(cones: Cones, spread: Array, solver: Solver) -> tuple[Array, Array, int, int]:
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
    theta, phi = scaled_impulses(result.z, contacts, spread)
    return theta, phi, int(result.status.code), pivots


def _conic(problem: ContactProblem, cones: Cones) -> tuple[Array, Array, int, int]:
    from stiction.contact.conic import solve_conic

    found: Any = solve_conic(problem)
    normal, tangent, _, box = found[:4]
    theta, phi = from_impulses(cones, problem.arrays.box_limit, normal, tangent, box)
    return theta, phi, Code.SOLVED, int(found[4])
