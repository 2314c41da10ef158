"""What no contact resists, from geometry: for a free body with the rows of the contacts that carry
it (normal; tangents from condim 3; spin from 4; rolling from 6) as a matrix over its six motions,
the motions in the null space."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.record.diagnosis.finding import Finding
from stiction.record.motion import body_name
from stiction.simulate.report import Contact

Array = NDArray[np.float64]

RESISTED = 1e-4
"""Singular value over the largest below which no contact resists a motion: contact points that
collision finds twice differ by less."""
CARRIES = 0.02
"""Share of the body's most loaded contact from which a contact carries the body: the friction of
one that bears less resists next to nothing."""
TURNS = 1e-3
"""Rate of turning that counts as turning [rad/s]."""


class Hold(NamedTuple):
    """How a free body was held at one sample."""

    free: int
    """Axes that it can turn about."""
    axis: Array
    """(3,) one of them; zeros if there is none."""
    rate: float
    """At which it turned about them [rad/s]."""
    points: int
    """That pressed."""
    carrying: int
    """Those of them that carry it."""


def hold_of(model: mujoco.MjModel, data: mujoco.MjData, body: int, pressed: list[Contact]) -> Hold:
    """How the body is held by those of the contacts that are its own."""
    own = [
        contact
        for contact in pressed
        if body in model.geom_bodyid[data.contact.geom[contact.index]]
    ]
    most = max(float(contact.force[0]) for contact in own)
    carrying = [contact.index for contact in own if contact.force[0] >= CARRIES * most]
    geoms = np.flatnonzero(model.geom_bodyid == body)
    size = float(model.geom_rbound[geoms].max(initial=0.0)) or 1.0
    axes = free_axes(data, carrying, data.xipos[body], size)
    velocity = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 0)
    rate = float(np.linalg.norm(axes @ velocity[:3])) if len(axes) else 0.0
    axis = axes[0] if len(axes) else np.zeros(3)
    return Hold(len(axes), axis, rate, len(own), len(carrying))


def free_axes(data: mujoco.MjData, contacts: list[int], centre: Array, size: float) -> Array:
    """(k, 3) orthonormal axes about which a body can turn without moving any of its contacts
    against their rows; `size` [m] makes turning comparable with moving."""
    rows = []
    for index in contacts:
        frame = data.contact.frame[index].reshape(3, 3)
        arm = (data.contact.pos[index] - centre) / size
        condim = int(data.contact.dim[index])
        for direction in frame[: 1 if condim == 1 else 3]:
            rows.append(np.concatenate([direction, np.cross(arm, direction)]))
        turns = {4: frame[:1], 6: frame}.get(condim, frame[:0])
        rows += [np.concatenate([np.zeros(3), direction]) for direction in turns]
    if not rows:
        return np.eye(3)
    _, values, vectors = np.linalg.svd(np.array(rows))
    rank = int((values > RESISTED * values[0]).sum())
    turns = vectors[rank:, 3:]
    if not len(turns):
        return np.zeros((0, 3))
    _, values, axes = np.linalg.svd(turns)
    return np.asarray(axes[: len(values)][values > 1e-2])


def find_turning(model: mujoco.MjModel, holds: dict[int, list[Hold]]) -> list[Finding]:
    """Bodies that can turn although they are held."""
    findings = []
    for body, looks in holds.items():
        often = [look for look in looks if look.free > 0]
        if 2 * len(often) > len(looks):
            rate = float(np.median([look.rate for look in often]))
            findings.append(_free_to_turn(body_name(model, body), often[-1], rate))
    return findings


def _free_to_turn(body: str, hold: Hold, rate: float) -> Finding:
    axis = hold.axis
    about = {
        1: f"the axis ({axis[0]:.2f}, {axis[1]:.2f}, {axis[2]:.2f}), the line of its contacts",
        2: "two axes",
        3: "any axis",
    }[hold.free]
    turning = rate > TURNS
    does = f"it turns at {np.degrees(rate):.3g} deg/s" if turning else "it does not turn here"
    number = "one point" if hold.carrying == 1 else f"{hold.carrying} points"
    if hold.carrying < hold.points:
        number += f" (of the {hold.points} that touch, the others bear next to nothing)"
    return Finding(
        "free to turn",
        body,
        f"carried at {number}, where nothing resists turning about {about}: {does}. However hard "
        "the grip, points without torsional or rolling friction bear no torque there.",
        "condim 4 (torsional friction, the second number of `friction`, a length in m) or 6 "
        "(rolling too) on the geom; or geoms with flat faces, which touch at more points; keep "
        "multiccd enabled",
        cause=turning,
    )
