"""The bodies of a MuJoCo model as other engines take them: for `frontier_peers.py`.

Every body but the world has one joint to the world, free or sliding, and its frame's axes are its
principal ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

PLANE, BOX, SPHERE, CAPSULE, CYLINDER = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{kind}"))
    for kind in ("PLANE", "BOX", "SPHERE", "CAPSULE", "CYLINDER")
)


@dataclass(frozen=True)
class Shape:
    """A geom in the axes of its body, from the body's centre of mass."""

    kind: int
    size: np.ndarray
    """As MuJoCo has it: half lengths, or radius and half length [m]."""
    place: np.ndarray
    turn: np.ndarray
    """(3, 3)"""
    friction: float


@dataclass(frozen=True)
class Drive:
    """Of a slide joint: force + stiffness (place - x) + damping (speed - v)."""

    force: float
    stiffness: float
    damping: float
    place: float
    speed: float

    @property
    def servo(self):
        """Whether it is more than a constant force."""
        return self.damping > 0.0

    @property
    def most(self):
        """Force that it holds with at the start [N], and no more in an engine with limits."""
        return self.force + self.stiffness * self.place + self.damping * self.speed

    @property
    def closing(self):
        """Speed that it has without a load at the start [m/s]."""
        return self.most / self.damping


@dataclass(frozen=True)
class Body:
    """A body of the model in the axes of its frame, at its centre of mass."""

    name: str
    mass: float
    inertia: np.ndarray
    """(3,) about the axes of the frame [kg m^2]"""
    center: np.ndarray
    """Of mass, in the frame [m]."""
    place: np.ndarray
    """Of the centre of mass at the start, in the world [m]."""
    turn: np.ndarray
    """(3, 3) at the start"""
    shapes: list[Shape]
    axis: np.ndarray | None
    """Of the slide joint, in the world; None for a free body."""
    drive: Drive | None
    """Along the axis."""
    qpos: int
    """Where its joint begins in `qpos`."""
    velocity: np.ndarray
    """(6,) linear and angular at the start, in the world, of a free body."""


def matrix(quaternion):
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, np.asarray(quaternion, dtype=float))
    return turn.reshape(3, 3)


def quaternion(turn):
    found = np.zeros(4)
    mujoco.mju_mat2Quat(found, np.ascontiguousarray(turn, dtype=float).ravel())
    return found


def shapes_of(model, body, center):
    return [
        Shape(
            int(model.geom_type[g]),
            model.geom_size[g].copy(),
            model.geom_pos[g] - center,
            matrix(model.geom_quat[g]),
            float(model.geom_friction[g, 0]),
        )
        for g in range(model.ngeom)
        if model.geom_bodyid[g] == body and (model.geom_contype[g] or model.geom_conaffinity[g])
    ]


def bodies_of(model, data):
    """Every body but the world: each has one joint to the world, free or sliding."""
    bodies = []
    for b in range(1, model.nbody):
        joint = int(model.body_jntadr[b])
        dof = int(model.jnt_dofadr[joint])
        principal, center = matrix(model.body_iquat[b]), model.body_ipos[b].copy()
        inertia = principal @ np.diag(model.body_inertia[b]) @ principal.T
        if np.abs(inertia - np.diag(np.diag(inertia))).max() > 1e-12 * inertia.max():
            raise ValueError(f"the axes of {model.body(b).name} are not its principal ones")
        free = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
        turn = data.xmat[b].reshape(3, 3).copy()
        velocity = np.zeros(6)
        if free:
            spin = turn @ data.qvel[dof + 3 : dof + 6]
            velocity[:3] = data.qvel[dof : dof + 3] + np.cross(spin, turn @ center)
            velocity[3:] = spin
        bodies.append(
            Body(
                name=model.body(b).name,
                mass=float(model.body_mass[b]),
                inertia=np.diag(inertia).copy(),
                center=center,
                place=data.xipos[b].copy(),
                turn=turn,
                shapes=shapes_of(model, b, center),
                axis=None if free else data.xaxis[joint].copy(),
                drive=None if free else drive_of(model, data, joint),
                qpos=int(model.jnt_qposadr[joint]),
                velocity=velocity,
            )
        )
    return bodies


def drive_of(model, data, joint):
    """What acts on a slide joint: its damping, and one actuator."""
    (actuator,) = np.flatnonzero(model.actuator_trnid[:, 0] == joint)
    command, bias = float(data.ctrl[actuator]), model.actuator_biasprm[actuator]
    stiffness, rate = -float(bias[1]), -float(bias[2])
    damping = rate + float(model.dof_damping[model.jnt_dofadr[joint]])
    if stiffness > 0.0:
        return Drive(0.0, stiffness, damping, command, 0.0)
    if rate > 0.0:
        return Drive(0.0, 0.0, damping, 0.0, command)
    return Drive(command, 0.0, damping, 0.0, 0.0)
