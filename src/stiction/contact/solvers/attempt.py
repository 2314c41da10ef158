"""What all solvers of a scaled contact problem share: start and options in, an `Attempt` out.

So one ladder, one benchmark and one test serve them all (`table.py` has them by name). A solver
does not grade itself: its code says how it ended, and the certificate what that is worth.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from stiction.contact.problem.scaled import ScaledImpulses, ScaledProblem
from stiction.status import Code


class Options(NamedTuple):
    """What a solver may be told."""

    facets: int = 0
    """Corners of the friction polygon; 0 for the circular cone."""


class Attempt(NamedTuple):
    """What a solver found, and how it ended."""

    impulses: ScaledImpulses
    code: Code
    steps: int
    """Pivots, or iterations of a method that does not pivot."""


class Solver(Protocol):
    """A way to solve a scaled problem; start is an earlier answer, which not all make use of."""

    def __call__(
        self, problem: ScaledProblem, start: ScaledImpulses | None, options: Options
    ) -> Attempt:
        """The attempt."""
