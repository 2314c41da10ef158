"""How a compiled step goes, and why it stops."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from stiction.contact.problem.arrays import Array
from stiction.kernels.compile import leaf
from stiction.kernels.packing import number


class Stop(IntEnum):
    """Why `run` returned."""

    DONE = 0
    NOT_FINITE = 1
    """State, controls or applied forces hold what is no number."""
    ARENA = 2
    """MuJoCo's arena was full: contacts or rows were dropped."""
    ROOM = 3
    """More blocks or entries than the workspace has room for."""
    MASS = 4
    """The inertia, with its derivatives, is not positive definite."""
    UNSOLVED = 5
    """The compiled solve did not pass its certificate, or was not asked for; blocks, mass and
    free velocity are those of the step."""
    DIVERGED = 6
    """The step would leave a state that is not a number, or speeds beyond all use."""
    ERROR = 7
    """MuJoCo gave up, or a callback raised an exception."""
    EDITED = 8
    """The user's model was written to since it was taken over."""
    MEMORY = 9
    """More blocks than there is room to keep for the simulation's next call (`simulate/batch`)."""


class Config(NamedTuple):
    """How to step, fixed for a call; kernels read it from an array of its entries."""

    law: np.int64
    """A `Law`, or -1 where another solver is to answer every step."""
    facets: np.int64
    rigid: bool
    derivatives: bool
    """Whether smooth forces depend on velocity, so that qDeriv is needed."""
    adhesion: bool
    sensors: bool
    energy: bool
    warm: bool
    viscosity: float
    tolerance: float
    touch: float
    """Gap that counts as none [m]."""
    near: float
    """The same of contacts, where the law asks what touches [m]."""
    once: bool
    """Whether only the nearest of contacts in one point has friction."""
    slack: float
    """Overlap that is left alone [m]."""
    shallow: float
    """Overlap that one step pushes out whole [m]."""
    deep: float
    """Overlap in which there is no friction, over the radius of the smaller geom."""
    budget: np.int64
    """Ticks that a step's solve may take before no further attempt is begun."""
    bounce: float
    """Closing speed above which contacts bounce [m/s]; infinite where none does."""
    servos: bool
    """Whether clamps may take the damping of servos away (`bridge/servos.py`)."""
    rough: float
    """Gap that counts as none, of contacts of meshes [m]."""
    bends: bool
    """Whether what the paths of a step part by is taken back at position level (`bridge/arcs.py`):
    by Coulomb's law, and where nothing bounces. Other laws act on what is at zero distance even
    where it does not press."""

    def as_array(self) -> Array:
        """(entries,) for `read_config`."""
        return np.array([float(entry) for entry in self])


@leaf
def read_config(address):
    """The `Config` whose array is there."""
    return Config(
        np.int64(number(address)),
        np.int64(number(address + 8)),
        number(address + 16) != 0.0,
        number(address + 24) != 0.0,
        number(address + 32) != 0.0,
        number(address + 40) != 0.0,
        number(address + 48) != 0.0,
        number(address + 56) != 0.0,
        number(address + 64),
        number(address + 72),
        number(address + 80),
        number(address + 88),
        number(address + 96) != 0.0,
        number(address + 104),
        number(address + 112),
        number(address + 120),
        np.int64(number(address + 128)),
        number(address + 136),
        number(address + 144) != 0.0,
        number(address + 152),
        number(address + 160) != 0.0,
    )
