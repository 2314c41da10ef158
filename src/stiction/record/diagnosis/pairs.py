"""What the samples of a run show: every pair of bodies that pressed, every free body that was
touched, every actuator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.modes import Mode
from stiction.record.diagnosis.support import Hold, hold_of
from stiction.simulate.report import Contact

Array = NDArray[np.float64]

BRIEFLY_SLIDING = 0.05
"""Share of its samples below which sliding is a matter of coming to rest."""
TINY = 1e-300
"""In the place of a load of nothing [N]."""
HOLDING_SLIP = 1e-6
"""Slip below which a contact at the edge of its cone counts as holding [m/s]: a micrometre in a
second is what the tolerance of a step allows."""
AT_THE_END = 1e-3
"""Part of its range within which an actuator's force is at its end."""

Key = tuple[tuple[str, str], int, float]
"""Names of two bodies, condim, mu."""


@dataclass
class Pair:
    """Contacts of two bodies with the same condim and friction, over the samples at which they
    pressed."""

    bodies: tuple[str, str]
    condim: int
    friction: float
    samples: int = 0
    sliding: int = 0
    """Samples at which one of their contacts slid."""
    number: list[int] = field(default_factory=list)
    """Contacts that pressed."""
    normal: list[float] = field(default_factory=list)
    """Force [N]."""
    tangential: list[float] = field(default_factory=list)
    """Force [N]."""
    margin: list[float] = field(default_factory=list)
    """mu f_n - |f_t| of the contact that has least of it [N]."""
    slip: list[float] = field(default_factory=list)
    """Fastest sliding [m/s]."""
    drift: list[Array] = field(default_factory=list)
    """(3,) sliding in the world, the mean of the contacts by their load [m/s]."""
    depth: list[float] = field(default_factory=list)
    """Deepest overlap [m]."""
    needed: float = float("nan")
    """mu that would hold; NaN where nothing slides."""
    needed_force: float = float("nan")
    """Friction that would hold [N]."""

    @property
    def key(self) -> Key:
        """What the pair is found by."""
        return self.bodies, self.condim, self.friction

    @property
    def slides(self) -> bool:
        """Whether it slid for more than a moment."""
        return self.sliding > BRIEFLY_SLIDING * self.samples

    @property
    def use(self) -> float:
        """|f_t| / (mu f_n), median; 0 without friction."""
        limit = self.friction * float(np.median(self.normal))
        return float(np.median(self.tangential)) / limit if limit > 0.0 else 0.0

    @property
    def creep(self) -> float:
        """Speed of steady sliding over the second half of its samples [m/s]: what goes to and fro
        is no creep, and cancels."""
        return float(np.linalg.norm(np.mean(self.drift[len(self.drift) // 2 :], axis=0)))

    def add(self, group: list[Contact], data: mujoco.MjData) -> None:
        """Takes in the contacts of one sample."""
        frames = data.contact.frame[[contact.index for contact in group]].reshape(-1, 3, 3)
        self.samples += 1
        slides = [contact.slip for contact in group if contact.mode == Mode.SLIDE]
        self.sliding += any(float(np.hypot(*slip)) > HOLDING_SLIP for slip in slides)
        normal, tangential = resultant(group, frames)
        self.number.append(len(group))
        self.normal.append(normal)
        self.tangential.append(tangential)
        self.margin.append(min(contact.margin for contact in group))
        self.slip.append(max(float(np.hypot(*contact.slip)) for contact in group))
        load = np.array([contact.force[0] for contact in group])
        slip = np.array([contact.slip for contact in group])
        self.drift.append(
            np.einsum("k,ki,kij->j", load / max(load.sum(), TINY), slip, frames[:, 1:])
        )
        self.depth.append(max(0.0, -min(contact.gap for contact in group)))


class Seen:
    """What the samples of a run showed."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        self.pairs: dict[Key, Pair] = {}
        self.geoms: set[int] = set()
        self.holds: dict[int, list[Hold]] = {}
        """How each free body was held, at the samples at which it was touched."""
        self.samples = 0
        self.at_limit = np.zeros(model.nu, int)
        """(nu,) samples at which each actuator pushed with all that its forcerange allows."""

    def look(self, data: mujoco.MjData, contacts: Sequence[Contact]) -> None:
        """Takes in one sample."""
        pressed = [
            contact
            for contact in contacts
            if contact.mode != Mode.SEPARATE and not _pushed_apart(contact, data)
        ]
        groups: dict[Key, list[Contact]] = {}
        for contact in pressed:
            condim, mu = int(data.contact.dim[contact.index]), float(contact.friction[0])
            groups.setdefault((contact.bodies, condim, mu), []).append(contact)
            self.geoms.update(int(geom) for geom in data.contact.geom[contact.index])
        for key, group in groups.items():
            self.pairs.setdefault(key, Pair(*key)).add(group, data)
        for body in self._free_bodies(pressed, data):
            self.holds.setdefault(body, []).append(hold_of(self.model, data, body, pressed))
        self.samples += 1
        low, high = self.model.actuator_forcerange.T
        force, room = data.actuator_force, AT_THE_END * (high - low)
        ended = (force <= low + room) | (force >= high - room)
        self.at_limit += self.model.actuator_forcelimited.astype(bool) & ended

    def _free_bodies(self, pressed: list[Contact], data: mujoco.MjData) -> set[int]:
        """Single bodies with a free joint among those that press."""
        model = self.model
        bodies: set[int] = set()
        for contact in pressed:
            bodies.update(int(model.geom_bodyid[g]) for g in data.contact.geom[contact.index])
        return {
            body
            for body in bodies
            if model.body_dofnum[body] == 6
            and model.body_parentid[body] == 0
            and not (model.body_parentid == body).any()
        }


def resultant(group: list[Contact], frames: Array) -> tuple[float, float]:
    """Normal and tangential force of contacts together [N]; frames (k, 3, 3)."""
    forces = np.array([contact.force for contact in group])
    total = np.einsum("kij,ki->j", frames, forces)
    pushes = np.einsum("kj,k->j", frames[:, 0], forces[:, 0])
    push = float(np.linalg.norm(pushes))
    if push == 0.0:
        return 0.0, float(np.linalg.norm(total))
    direction = pushes / push
    along = float(total @ direction)
    return along, float(np.linalg.norm(total - along * direction))


def _pushed_apart(contact: Contact, data: mujoco.MjData) -> bool:
    """Whether its geoms are so deep within each other that it has no friction, where the model
    gives it some: then what it does says nothing about friction."""
    given = float(data.contact.friction[contact.index, 0])
    frictional = int(data.contact.dim[contact.index]) > 1
    return contact.gap < 0.0 and contact.friction[0] == 0.0 and frictional and given > 0.0
