"""What a contact model tells who runs it: its compiled form, its law where contacts last."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, StrEnum, auto
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.arrays import Arrays
from stiction.contact.solvers.drumwright.columns import Answer
from stiction.contact.solvers.drumwright.viscous import solve_loads

Array = NDArray[np.float64]


class StepSolver(StrEnum):
    """The compiled solvers of a time step; a member is the name of its last rung."""

    INTERIOR_POINT = "interior point"
    """Newton's method in velocities from the last step's impulses, and where that does not do an
    interior point, island by island (`solvers/islands/solve.py`)."""
    DRIVING = "driving"
    """Baraff's algorithm (`solvers/baraff`), from the last step's impulses or from nothing."""

    @property
    def rungs(self) -> tuple[str, ...]:
        """The ways that it goes, in the order in which they are tried."""
        return ("proximal", self.value) if self is StepSolver.INTERIOR_POINT else (self.value,)


class Compiled(NamedTuple):
    """The form in which compiled time steps know a contact model."""

    law: Law
    facets: int = 0
    """Corners of the friction polygon; 0 for the circular cone."""
    solver: StepSolver = StepSolver.INTERIOR_POINT


class Kind(Enum):
    """How friction is treated where contacts last, at the level of accelerations."""

    SMOOTH = auto()
    """A force known from the velocity, or none."""
    HOLD = auto()
    """Contacts do not slide, as if they were joints."""
    DRY = auto()
    """Static and dynamic friction, by Baraff's algorithm."""


class SustainedLaw(NamedTuple):
    """The contact model at the level of accelerations."""

    kind: Kind
    solve: Callable[[Arrays], tuple[Array, Answer]] = solve_loads
    """Accelerations and forces without dry friction."""
    viscosity: float = 0.0
    """[N s/m]."""
    static: Array | None = None
    """Coefficients of friction in the place of the problem's."""
    dynamic: Array | None = None
