"""How contacts are drawn: colours of the modes, arrows of force, cones of friction.

A cone's axis is as long as the arrow of the normal force, so that the tip of the force's arrow lies
on the cone's base: inside the rim where the contact sticks, on it where it slides.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from stiction.contact.problem.modes import Mode
from stiction.record.contacts import Contacts

Array = NDArray[np.float64]

COLOURS = {Mode.STICK: (0, 170, 90), Mode.SLIDE: (225, 0, 150), Mode.SEPARATE: (130, 130, 130)}
"""Of the modes, red, green, blue; told apart with any colour vision."""

REACH = 0.25
"""Length of the longest arrow over the extent of the scene."""

FADE = 0.5
"""Time in which a past force ceases to shorten the arrows of the present [s]."""

_NONE = np.zeros((0, 4))


def colours(contacts: Contacts) -> NDArray[np.uint8]:
    """(n, 3) of the contacts' modes."""
    table = np.zeros((len(Mode), 3), np.uint8)
    for mode, colour in COLOURS.items():
        table[mode] = colour
    return table[contacts.mode]


def arrows(contacts: Contacts, scale: float) -> Array:
    """(n, 2, 3) from the contact to the tip of its force; scale [m/N]."""
    force = np.einsum("ni,nij->nj", contacts.force, contacts.frame)
    return np.stack([contacts.position, contacts.position + scale * force], axis=1)


@dataclass(frozen=True, eq=False)
class Cones:
    """k cones, apex at the contact, as transforms of the unit cone of `unit_cone`."""

    position: Array
    """(k, 3) [m]."""
    quaternion: Array
    """(k, 4) w first."""
    size: Array
    """(k, 3)."""
    row: NDArray[np.int64]
    """(k,) of the contact that each belongs to."""


def cones(contacts: Contacts, scale: float) -> Cones:
    """Friction cones of the pressed contacts that have friction; scale [m/N]."""
    rough = contacts.pressed & (contacts.friction > 0.0).all(axis=1)
    row = np.flatnonzero(rough)
    normal, first = contacts.frame[row, 0], contacts.frame[row, 1]
    turn = np.stack([first, np.cross(normal, first), normal], axis=2)
    quaternion = np.roll(Rotation.from_matrix(turn).as_quat(), 1, axis=1) if len(row) else _NONE
    height = scale * contacts.force[row, 0]
    sides = contacts.friction[row] * height[:, None]
    return Cones(contacts.position[row], quaternion, np.column_stack([sides, height]), row)


def unit_cone(sections: int = 24) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """Vertices and triangles of a cone without a base: apex 0, rim of radius 1 at z = 1."""
    angle = np.linspace(0.0, 2.0 * np.pi, sections, endpoint=False)
    rim = np.column_stack([np.cos(angle), np.sin(angle), np.ones(sections)])
    vertices = np.vstack([np.zeros((1, 3)), rim]).astype(np.float32)
    k = np.arange(sections)
    faces = np.column_stack([np.zeros_like(k), 1 + k, 1 + (k + 1) % sections])
    return vertices, faces.astype(np.uint32)


class Ruler:
    """Metres of arrow for a newton: the largest force of the last moments is `REACH` long."""

    def __init__(self, extent: float) -> None:
        self._longest = REACH * extent
        self.peak = 0.0
        """Force of the longest arrow [N]."""

    def scale(self, sides: list[Contacts], elapsed: float) -> float:
        """Scale [m/N] for these contacts, `elapsed` [s] after the last ones."""
        largest = max(float(np.linalg.norm(c.force, axis=1).max(initial=0)) for c in sides)
        self.peak = max(largest, self.peak * exp(-elapsed / FADE))
        return self._longest / self.peak if self.peak > 0.0 else 0.0
