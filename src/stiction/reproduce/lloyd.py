"""What Lloyd's three experiments share: four ways to one contact problem, timed and graded.

    standard    Lemke's method on the assembled matrix, `stiction.lcp` (assembly not counted)
    structural  his section 5: the same path, every pivot by systems of the bodies' size
    reduced     his section 5.3: friction of a contact only once it presses
    exact       ours: reduced with four facets, then Newton's method on the circular cone
    tableau     Lemke's method by the textbook, in numpy: for its growth, not for its time

All but the exact one solve the same LCP with eight facets. Clocks run from the scaled problem to
the impulses; problems and matrices are made before. What came out is graded from the problem's
own arrays, and a failure of one way is counted as such: no way helps another out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stiction import lcp
from stiction.contact.certificate.certificate import certify
from stiction.contact.problem.cones import Cones, build_cones, to_impulses
from stiction.contact.solvers.coulomb.exact_cone import solve_exact
from stiction.contact.solvers.coulomb.lloyd import facet_directions, follow_contact_path
from stiction.contact.solvers.coulomb.polyhedral import assemble, scaled_impulses
from stiction.reproduce import textbook
from stiction.reproduce.families import ContactArrays
from stiction.reproduce.result import clock

Array = NDArray[np.float64]
Answer = tuple[Array, Array, int]  # theta, phi, pivots

FACETS = 8
WAYS = ("standard", "structural", "reduced", "exact")
"""Ours, none of which may fail."""
TABLEAU = "tableau"
TIE = 1e-9
"""Ratios that far apart are a tie to the tableau's lexicographic rule; without one it fails."""


@dataclass
class Measured:
    """One way on all wrenches of one configuration."""

    seconds: list[float] = field(default_factory=list)
    """Least time of several calls, per wrench [s]."""
    pivots: list[int] = field(default_factory=list)
    solved: int = 0
    worst: float = 0.0
    """Largest violation in a certificate of the solved ones."""

    @property
    def mean(self) -> float:
        """Mean time over wrenches [ms], as Lloyd averages."""
        return 1e3 * float(np.mean(self.seconds))


def time_ways(
    make: Callable[[np.random.Generator], ContactArrays],
    seeds: Sequence[int],
    repeats: int,
    ways: Sequence[str] = WAYS,
) -> dict[str, Measured]:
    """Times and grades of each way on the problems that `make` gives for `seeds`."""
    measured = {way: Measured() for way in ways}
    for seed in seeds:
        problem = make(np.random.default_rng(seed)).problem()
        cones, joints = build_cones(problem.whitened, problem.arrays)
        turn = np.zeros(len(cones.parent))
        spread = facet_directions(cones.flat, FACETS, turn)
        assembled = {"standard", TABLEAU} & set(ways)
        matrix, free = assemble(cones, spread) if assembled else (turn, turn)
        calls: dict[str, Callable[[], Answer]] = {
            "standard": partial(_standard, matrix, free, cones, spread),
            "structural": partial(_path, cones, spread, False),
            "reduced": partial(_path, cones, spread, True),
            "exact": partial(_exact, cones),
            TABLEAU: partial(_tableau, matrix, free, cones, spread),
        }
        for way, record in measured.items():
            best = np.inf
            for _ in range(repeats):
                began = clock()
                theta, phi, pivots = calls[way]()
                best = min(best, clock() - began)
            found = to_impulses(problem.whitened, cones, joints, theta, phi)
            grade = certify(
                problem,
                problem.velocity_from(*found),
                *found,
                law="coulomb",
                facets=None if way == "exact" else FACETS,
            )
            record.seconds.append(best)
            record.pivots.append(pivots)
            if grade.passed:
                record.solved += 1
                record.worst = max(record.worst, grade.worst)
    return measured


def failures(measured: dict[str, Measured], ways: Sequence[str]) -> int:
    """How many wrenches these ways did not solve."""
    return sum(len(measured[way].seconds) - measured[way].solved for way in ways)


def warm_up(make: Callable[[np.random.Generator], ContactArrays]) -> None:
    """Compiles what is not compiled yet."""
    time_ways(make, [0], 1)


def _standard(matrix: Array, free: Array, cones: Cones, spread: Array) -> Answer:
    result = lcp.solve(matrix, free, "lemke")
    theta, phi = scaled_impulses(result.z, cones.normal.shape[0], spread)
    return theta, phi, result.pivots


def _tableau(matrix: Array, free: Array, cones: Cones, spread: Array) -> Answer:
    z, _, pivots = textbook.lemke(matrix, free, TIE)
    theta, phi = scaled_impulses(z, cones.normal.shape[0], spread)
    return theta, phi, pivots


def _path(cones: Cones, spread: Array, reduced: bool) -> Answer:
    theta, phi = _blank(cones)
    _, pivots = follow_contact_path(cones, spread, reduced, _limit(cones), theta, phi)
    return theta, phi, int(pivots)


def _exact(cones: Cones) -> Answer:
    theta, phi = _blank(cones)
    _, pivots, _, _ = solve_exact(cones, theta, phi, False, _limit(cones))
    return theta, phi, int(pivots)


def _blank(cones: Cones) -> tuple[Array, Array]:
    return np.zeros(len(cones.normal)), np.zeros((len(cones.parent), 2))


def _limit(cones: Cones) -> int:
    return 100 + 20 * (len(cones.normal) + len(cones.parent))
