"""Contacts of a step as arrays, for drawing; and those of MuJoCo's own steps in the same form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.names import body_of, name_of
from stiction.contact.problem.modes import Mode
from stiction.simulate.report import Contact

Array = NDArray[np.float64]

CREEP = 1e-6
"""Speed above which a contact of MuJoCo's counts as sliding [m/s]: it has no modes of its own."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """n contacts. Forces act on the second geom, or on the first where only that one can move."""

    position: Array
    """(n, 3) in the world [m]."""
    frame: Array
    """(n, 3, 3) rows: normal, tangents, in the world; the normal points to what is pushed."""
    force: Array
    """(n, 3) in the frame [N]."""
    friction: Array
    """(n, 2) coefficients along the tangents."""
    slip: Array
    """(n,) sliding speed [m/s]."""
    mode: NDArray[np.int64]
    """(n,) `Mode`."""

    @property
    def pressed(self) -> NDArray[np.bool_]:
        """(n,) whether the contact bears force."""
        return self.mode != Mode.SEPARATE

    @property
    def fastest(self) -> float:
        """Largest slip of a pressed contact [m/s]; 0 where nothing is pressed."""
        return float(self.slip[self.pressed].max(initial=0.0))

    def count(self, mode: Mode) -> int:
        """How many are in that mode."""
        return int((self.mode == mode).sum())


def none() -> Contacts:
    """No contacts."""
    return Contacts(
        np.zeros((0, 3)), np.zeros((0, 3, 3)), np.zeros((0, 3)), np.zeros((0, 2)), np.zeros(0),
        np.zeros(0, np.int64),
    )  # fmt: skip


def as_arrays(listed: Sequence[Contact], model: mujoco.MjModel, data: mujoco.MjData) -> Contacts:
    """Contacts of a step, ours or MuJoCo's, for drawing; data as that step left it."""
    if not listed:
        return none()
    index = np.array([contact.index for contact in listed])
    return Contacts(
        np.array([contact.position for contact in listed]),
        _frames(model, data, index),
        np.array([contact.force for contact in listed]),
        np.array([contact.friction for contact in listed]),
        np.linalg.norm([contact.slip for contact in listed], axis=1),
        np.array([contact.mode for contact in listed], np.int64),
    )


def mujoco_contacts(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[Contact, ...]:
    """Contacts of the last `mj_step` or `mj_forward`, at the state that it started from."""
    index = np.flatnonzero(data.contact.efc_address[: data.ncon] >= 0)
    if not len(index):
        return ()
    position, geoms = data.contact.pos[index], data.contact.geom[index]
    first, second = model.geom_bodyid[geoms].T
    velocity = _velocity(model, data, second, position) - _velocity(model, data, first, position)
    frame = data.contact.frame[index].reshape(-1, 3, 3)
    slip = np.einsum("nij,nj->ni", frame[:, 1:], velocity)
    return tuple(
        _from_mujoco(model, data, int(contact), slip[row]) for row, contact in enumerate(index)
    )


def _from_mujoco(model: mujoco.MjModel, data: mujoco.MjData, index: int, slip: Array) -> Contact:
    wrench = np.zeros(6)
    mujoco.mj_contactForce(model, data, index, wrench)
    contact = data.contact[index]
    mode = Mode.SLIDE if np.hypot(*slip) > CREEP else Mode.STICK
    geoms = int(contact.geom[0]), int(contact.geom[1])
    return Contact(
        index,
        (name_of(model, "geom", geoms[0]), name_of(model, "geom", geoms[1])),
        (body_of(model, geoms[0]), body_of(model, geoms[1])),
        mode if wrench[0] > 0.0 else Mode.SEPARATE,
        wrench[:3],
        wrench[3:],
        float(contact.dist),
        contact.friction[:2].copy() if contact.dim > 1 else np.zeros(2),
        slip,
        contact.pos.copy(),
    )


def _frames(model: mujoco.MjModel, data: mujoco.MjData, index: NDArray[np.int64]) -> Array:
    frame = data.contact.frame[index].reshape(-1, 3, 3).copy()
    fixed = model.body_weldid[model.geom_bodyid[data.contact.geom[index, 1]]] == 0
    frame[fixed] *= -1.0
    return frame


def _velocity(
    model: mujoco.MjModel, data: mujoco.MjData, body: NDArray[np.int64], point: Array
) -> Array:
    """(n, 3) of the bodies' material at the points [m/s]."""
    spin, linear = data.cvel[body, :3], data.cvel[body, 3:]
    return linear + np.cross(spin, point - data.subtree_com[model.body_rootid[body]])
