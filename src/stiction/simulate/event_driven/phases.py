"""What the event-driven stepper passes around: states, phases, and where trajectories lead."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.certificate import Certificate
from stiction.simulate.event_driven.distances import Snapshot
from stiction.simulate.event_driven.sustained import Forces, Loads

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


class State(NamedTuple):
    """What is integrated."""

    qpos: Array
    qvel: Array
    act: Array


class Phase(NamedTuple):
    """A state between events, and how its contacts are treated until the next one."""

    state: State
    seen: Snapshot
    speed: Array  # (nc,) N v
    bound: Array  # (nc,) closing speeds; -inf where held
    touching: Indices
    held: Indices  # (nh,) contacts
    sliding: Mask  # (nh,)
    direction: Array  # (nh, 2) of their slip
    pace: Array  # (nh,) its speed
    steady: Mask  # (nh,) slips that keep their direction throughout a step
    turning: Array  # (nf,) sign of the speed of dry joints that move
    spinning: Array  # (ns,) the same of torsional and rolling motion at held contacts
    damping: Array  # (nv, nv) what is taken implicitly, or (0, 0): `stiffness.py`

    @property
    def elapsed(self) -> float:
        """A phase starts at zero."""
        return 0.0


class Held(NamedTuple):
    """The forces at the start of a phase, and what they carry."""

    forces: Forces
    loads: Loads
    certificate: Certificate


class Grip(NamedTuple):
    """What the contacts that a motion respects did in it."""

    press: Array  # (n,) force or impulse along the normal
    firm: float
    """Parting speed [m/s] up to which what pressed is still held."""
    slip: Array  # (n,) slip [m/s] up to which each sticks


class Moved(NamedTuple):
    """A state on the trajectory of a phase."""

    elapsed: float
    state: State
    seen: Snapshot
    speed: Array  # (nc,)
    bound: Array  # (nc,) -inf for what the motion respects
    place: Indices  # where the contacts that it respects are in the snapshot, or -1


Path = Callable[[float], Moved]
"""A trajectory: the state by the time since its start [s]."""


class Impasse(Exception):
    """No finite force at a state, or an event that cannot be located."""
