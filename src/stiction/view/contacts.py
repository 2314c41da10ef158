"""Contacts as arrays for drawing, from a step of the simulator or from MuJoCo's own."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.modes import Mode
from stiction.simulate.report import Report

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


def from_report(report: Report, model: mujoco.MjModel, data: mujoco.MjData) -> Contacts:
    """Contacts of the step that the report tells of; data as that step left it."""
    listed = report.contacts
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


def from_mujoco(model: mujoco.MjModel, data: mujoco.MjData) -> Contacts:
    """Contacts of the last `mj_step` or `mj_forward`, at the state that it started from."""
    index = np.flatnonzero(data.contact.efc_address[: data.ncon] >= 0)
    if not len(index):
        return none()
    frame = _frames(model, data, index)
    force, wrench = np.zeros((len(index), 3)), np.zeros(6)
    for row, contact in enumerate(index):
        mujoco.mj_contactForce(model, data, int(contact), wrench)
        force[row] = wrench[:3]
    position = data.contact.pos[index]
    first, second = model.geom_bodyid[data.contact.geom[index]].T
    velocity = _velocity(model, data, second, position) - _velocity(model, data, first, position)
    slip = np.linalg.norm(np.einsum("nij,nj->ni", frame[:, 1:], velocity), axis=1)
    mode = np.where(slip > CREEP, Mode.SLIDE, Mode.STICK)
    mode = np.where(force[:, 0] > 0.0, mode, Mode.SEPARATE)
    return Contacts(position, frame, force, data.contact.friction[index, :2], slip, mode)


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
