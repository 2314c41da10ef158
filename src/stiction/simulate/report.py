"""What a step tells: its contacts, its certificate, its cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.names import body_of, name_of
from stiction.bridge.rows import Key, Place
from stiction.contact.certificate import Certificate
from stiction.contact.solution import Mode

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Contact:
    """One contact of the last step. Forces act on the second geom, in the contact's frame."""

    index: int
    """Its number in `data.contact`."""
    geoms: tuple[str, str]
    bodies: tuple[str, str]
    mode: Mode
    """STICK, SLIDE or SEPARATE; of NO impulse always SEPARATE."""
    force: Array
    """(3,) along normal, tangent 1, tangent 2 [N]."""
    torque: Array
    """(3,) of torsional and rolling friction about the same axes [N m]; zero below condim 4."""
    gap: float
    """Distance before the step [m]; negative where the geoms overlapped."""
    friction: float
    """Coefficient of sliding friction."""
    slip: float
    """Sliding speed after the step [m/s]."""
    position: Array
    """(3,) in the world [m]."""

    @property
    def margin(self) -> float:
        """How much more friction the contact could bear, mu f_n - |f_t| [N]."""
        return float(self.friction * self.force[0] - np.hypot(self.force[1], self.force[2]))


@dataclass(frozen=True)
class Report:
    """The last of the steps that a call took."""

    model: mujoco.MjModel = field(repr=False)
    time: float
    """Of the simulation, after the step [s]."""
    certificate: Certificate
    """Largest violation of every law; upper bounds, see `contact/block_grading.py`."""
    pivots: int
    """Iterations of Newton's method; pivots where a pivoting solver answered."""
    rungs: tuple[str, ...]
    """Names of the ways tried, in order; the last one answered."""
    energy: float
    """What contact did to the kinetic energy, against the motion without it [J]; never positive
    but for rounding."""
    overlap: float
    """Deepest overlap of a contact or limit before the step [m, rad]; zero if none."""
    frictionless: bool
    """Whether friction was left out because no solver answered (`on_failure`)."""
    seconds: dict[str, float]
    """Time of the call by stage [s]."""
    _key: NDArray[np.int64] = field(repr=False)
    _place: Array = field(repr=False)
    _force: Array = field(repr=False)
    _slip: Array = field(repr=False)
    _mode: NDArray[np.int8] = field(repr=False)
    _friction: Array = field(repr=False)

    @property
    def rung(self) -> str:
        """The way that answered."""
        return self.rungs[-1]

    @cached_property
    def contacts(self) -> tuple[Contact, ...]:
        """Contacts within reach of the step, those at a distance included."""
        found = []
        for i in np.flatnonzero(self._key[:, Key.INDEX] >= 0):
            geoms = [int(g) for g in self._key[i, :2]]
            found.append(
                Contact(
                    int(self._key[i, Key.INDEX]),
                    (name_of(self.model, "geom", geoms[0]), name_of(self.model, "geom", geoms[1])),
                    (body_of(self.model, geoms[0]), body_of(self.model, geoms[1])),
                    Mode(int(self._mode[i])),
                    self._force[i, :3].copy(),
                    self._force[i, 3:].copy(),
                    float(self._place[i, Place.GAP]),
                    float(self._friction[i]),
                    float(self._slip[i]),
                    self._place[i, Place.X : Place.Z + 1].copy(),
                )
            )
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Over all steps since the simulator was made, or since `Simulator.reset_statistics`."""

    steps: int
    worst: float
    """Largest violation in any certificate."""
    contacts: float
    """Mean number of contacts, limits and dry joints within reach."""
    most_contacts: int
    pivots: float
    """Mean per step."""
    most_pivots: int
    warm: float
    """Share of steps for which the last step's impulses were enough of a start."""
    rungs: dict[str, int]
    """How many steps each way answered."""
    pushed_out: int
    """Steps that took overlap back."""
    overlap: float
    """Deepest overlap met [m, rad]."""
    energy: float
    """Most kinetic energy that contact added in a step [J]; rounding."""
    seconds: dict[str, float]
    """Time by stage [s]."""
