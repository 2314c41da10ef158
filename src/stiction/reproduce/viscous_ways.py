"""Forces of lasting contacts with viscous friction, by modified PPM and by Lemke's method.

`BothWays` is `Viscous` with modified PPM (Drumwright's Algorithm 1): where the event-driven stepper
asks for forces of lasting contacts it passes that answer on, and times both ways on the same
arrays, in turns. Lemke's method gets the assembled LCP, z the normal forces:

    w = N M^-1 N' z + N M^-1 f - b

What it takes to go from the arrays to an acceleration is counted on both sides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction import lcp
from stiction.contact import Viscous
from stiction.contact.problem.arrays import Arrays
from stiction.contact.solvers.drumwright.columns import Answer
from stiction.reproduce.result import COMPILING, clock
from stiction.status import Status

Array = NDArray[np.float64]


class BothWays(Viscous):
    """Viscous friction, with the times of both ways, and how far their accelerations are apart."""

    def __init__(self, coefficient: float) -> None:
        super().__init__(coefficient)
        self.ppm: list[float] = []
        self.lemke: list[float] = []
        self.solves: list[float] = []
        """Of Lemke's method alone, its matrix given."""
        self.apart = 0.0
        """Largest difference of accelerations, relative to those without contact."""
        self.failures = 0
        """Of Lemke's method."""

    @property
    def overhead(self) -> float:
        """Time that the second way took, steps with compilation in them left out [s]."""
        return sum(took for took in self.lemke if took < COMPILING)

    def solve_loads(self, loads: Arrays) -> tuple[Array, Answer]:
        """As `Viscous` does."""
        began = clock()
        acceleration, answer = super().solve_loads(loads)
        middle = clock()
        if len(loads.normal):
            other, free, solve = self._by_lemke(loads)
            self.lemke.append(clock() - middle)
            self.ppm.append(middle - began)
            self.solves.append(solve)
            apart = float(np.abs(acceleration - other).max()) / float(np.abs(free).max())
            self.apart = max(self.apart, apart)
        return acceleration, answer

    def _by_lemke(self, arrays: Arrays) -> tuple[Array, Array, float]:
        """Accelerations (nv,) with and without contact, and the time of the solve alone [s]."""
        columns = np.concatenate([arrays.normal, arrays.force[None]]).T
        inverse = np.linalg.solve(arrays.mass, columns)  # M^-1 N', M^-1 f
        along = arrays.normal @ inverse
        began = clock()
        result = lcp.solve(along[:, :-1], along[:, -1] - arrays.bound, "lemke")
        solve = clock() - began
        self.failures += result.status is not Status.SOLVED
        free = inverse[:, -1]
        return free + inverse[:, :-1] @ result.z, free, solve
