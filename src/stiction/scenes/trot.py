"""A trotting gait: foot trajectories, inverse kinematics and inverse dynamics.

Diagonal legs swing together. Before each step, from the state:

1. The trunk's acceleration is chosen to bring it back to its course: constant speed along x,
   level, at a fixed height above the ground below it.
2. A swinging foot follows a smooth path to its next foothold, which is where its hip will be
   half a stance after landing (Raibert), on the terrain map. Inverse kinematics gives the
   joint angles, and their error the leg's acceleration.
3. Inverse dynamics: of `M a + c = tau + J' f` the trunk's six rows ask for forces f at the
   feet that stand (least squares, then cut back into a friction cone); the other rows give
   the motors' torques tau.
"""

from math import cos, pi, sin

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.scenes.legs import FOOT, HIP_X, HIP_Y, LEGS, OFFSET, STANCE, joints_for

Array = NDArray[np.float64]

SPEED = 0.3
"""Forward [m/s]."""
PERIOD = 0.5
"""One swing and one stance of each leg [s]."""
SWING = 0.4
"""Part of the period that a foot is in the air: below a half, so that two always stand."""
WAIT = 0.2
"""On four feet before the first step [s]."""

_LIFT = 0.06  # m, of a swinging foot above the straight line between footholds
_GRIP = 0.5  # friction that the planned forces rely on; the ground should have more
_MOST = 250.0  # N, the largest planned normal force: 1.8 times the robot's weight
_PHASE = (0.0, 0.5, 0.5, 0.0)  # of the legs, in periods
# Gains [1/s^2, 1/s]: of the trunk's place and lean, and of a swinging leg's joints. The
# trunk's height is held more firmly than its way along the ground.
_COURSE, _COURSE_RATE = np.array([10.0, 20.0, 100.0]), np.array([8.0, 10.0, 20.0])
_LEAN, _LEAN_RATE = np.array([200.0, 200.0, 60.0]), np.array([25.0, 25.0, 15.0])
_JOINT, _JOINT_RATE = 1600.0, 80.0
_FOOT_RATE = 10.0  # 1/s, at which a standing foot's speed is taken out
# The trunk's lean matters more to the balance than where it is.
_WEIGHT = np.array([1.0, 1.0, 2.0, 20.0, 20.0, 10.0])
_SMALL = 1e-4  # of the forces themselves: picks the least ones where feet are redundant

_HIPS = np.array([(end * HIP_X, side * HIP_Y, 0.0) for end, side in LEGS.values()])
_SIDES = tuple(side for _, side in LEGS.values())


class Trot:
    """Controller of the quadruped; remembers where each swinging foot left the ground."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self._own = mujoco.MjData(model)
        self._feet = [model.geom(f"{name}_foot").id for name in LEGS]
        self._left = np.zeros((4, 3))
        self._swinging = [False] * 4
        self._mass = np.zeros((model.nv, model.nv))
        self._bias = np.zeros(model.nv)
        self._jacobians = np.zeros((4, 3, model.nv))

    def __call__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Write the torques of the twelve motors [N m]."""
        self._look(model, data)
        phases = [_phase(data.time, leg) for leg in range(4)]
        standing = [leg for leg in range(4) if phases[leg] is None]
        trunk = self._trunk_acceleration(model)
        wanted = np.concatenate([trunk, np.zeros(12)])
        for leg in range(4):
            phase = phases[leg]
            joints = slice(6 + 3 * leg, 9 + 3 * leg)
            if phase is None:
                wanted[joints] = self._standing_leg(leg, trunk)
            else:
                wanted[joints] = self._swinging_leg(model, leg, phase)
            self._swinging[leg] = phase is not None
        needed = self._mass @ wanted + self._bias
        for leg, force in zip(standing, self._foot_forces(standing, needed[:6]), strict=True):
            needed -= self._jacobians[leg].T @ force
        data.ctrl[:] = needed[6:]

    def _look(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Inertia, bias forces (joint damping with them) and foot Jacobians of this state."""
        own = self._own
        own.time, own.qpos[:], own.qvel[:] = data.time, data.qpos, data.qvel
        mujoco.mj_kinematics(model, own)
        mujoco.mj_comPos(model, own)
        mujoco.mj_makeM(model, own)
        mujoco.mj_comVel(model, own)
        mujoco.mj_fullM(model, own, self._mass)
        mujoco.mj_rne(model, own, 0, self._bias)
        self._bias += model.dof_damping * own.qvel
        for leg, foot in enumerate(self._feet):
            mujoco.mj_jacGeom(model, own, self._jacobians[leg], None, foot)

    def _trunk_acceleration(self, model: mujoco.MjModel) -> Array:
        """Of the free joint: linear in world axes [m/s^2], angular in the trunk's [rad/s^2]."""
        own = self._own
        feet = own.geom_xpos[self._feet]
        ground = np.mean([ground_height(model, x, y) for x, y, _ in feet])
        speed = _speed(own.time)
        course = np.array([own.qpos[0], 0.0, ground + STANCE + FOOT])  # x: speed alone counts
        linear = _COURSE * (course - own.qpos[:3]) + _COURSE_RATE * (
            np.array([speed, 0.0, 0.0]) - own.qvel[:3]
        )
        lean = np.zeros(3)
        mujoco.mju_quat2Vel(lean, own.qpos[3:7], 1.0)
        return np.concatenate([linear, -_LEAN * lean - _LEAN_RATE * own.qvel[3:6]])

    def _standing_leg(self, leg: int, trunk: Array) -> Array:
        """Joint accelerations that keep the foot where it is while the trunk accelerates."""
        jacobian = self._jacobians[leg]
        joints = slice(6 + 3 * leg, 9 + 3 * leg)
        foot = -jacobian[:, :6] @ trunk - _FOOT_RATE * (jacobian @ self._own.qvel)
        return _solve(jacobian[:, joints], foot)

    def _swinging_leg(self, model: mujoco.MjModel, leg: int, phase: float) -> Array:
        """Joint accelerations toward the foot's path at `phase` (0 to 1) of its swing."""
        own = self._own
        if not self._swinging[leg]:
            self._left[leg] = own.geom_xpos[self._feet[leg]]
        trunk = own.qpos[:3]
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, own.qpos[3:7])
        axes = turn.reshape(3, 3)
        target = self._foothold(model, leg, trunk + axes @ _HIPS[leg], phase)
        place, velocity = _path(self._left[leg], target, phase)

        jacobian = self._jacobians[leg]
        joints = slice(6 + 3 * leg, 9 + 3 * leg)
        angles = joints_for(axes.T @ (place - trunk) - _HIPS[leg], _SIDES[leg])
        rates = _solve(jacobian[:, joints], velocity - jacobian[:, :6] @ own.qvel[:6])
        error = np.array(angles) - own.qpos[7 + 3 * leg : 10 + 3 * leg]
        return _JOINT * error + _JOINT_RATE * (rates - own.qvel[joints])

    def _foothold(self, model: mujoco.MjModel, leg: int, hip: Array, phase: float) -> Array:
        """Where the centre of the foot should land (3,) [m]."""
        velocity = self._own.qvel[:2]
        ahead = (1.0 - phase) * SWING * PERIOD + 0.5 * (1.0 - SWING) * PERIOD
        excess = velocity - np.array([_speed(self._own.time), 0.0])
        x, y = hip[:2] + ahead * velocity + 0.05 * excess
        y += _SIDES[leg] * OFFSET - 0.1 * self._own.qpos[1]
        return np.array([x, y, ground_height(model, x, y) + FOOT])

    def _foot_forces(self, standing: list[int], needed: Array) -> Array:
        """(feet, 3) forces of the ground [N] that come closest to the wrench `needed` (6,)."""
        rows = np.concatenate([self._jacobians[leg][:, :6] for leg in standing])
        weighted = rows * _WEIGHT
        normal = weighted @ rows.T + _SMALL * np.eye(len(rows))
        forces = np.linalg.solve(normal, weighted @ needed).reshape(-1, 3)
        forces[:, 2] = np.clip(forces[:, 2], 0.0, _MOST)
        along = np.hypot(forces[:, 0], forces[:, 1])
        forces[:, :2] *= np.minimum(1.0, _GRIP * forces[:, 2] / np.maximum(along, 1e-9))[:, None]
        return forces


def ground_height(model: mujoco.MjModel, x: float, y: float) -> float:
    """Height [m] of the geom `ground` at a place: bilinear in the map's cells, 0 for a plane."""
    if model.nhfield == 0:
        return 0.0
    origin = model.geom("ground").pos
    reach, width, scale, _ = model.hfield_size[0]
    rows, columns = int(model.hfield_nrow[0]), int(model.hfield_ncol[0])
    column = np.clip((x - origin[0] + reach) / (2 * reach) * (columns - 1), 0, columns - 1.001)
    row = np.clip((y - origin[1] + width) / (2 * width) * (rows - 1), 0, rows - 1.001)
    i, j = int(row), int(column)
    v, u = row - i, column - j
    heights = model.hfield_data.reshape(rows, columns)
    low = (1 - u) * heights[i, j] + u * heights[i, j + 1]
    high = (1 - u) * heights[i + 1, j] + u * heights[i + 1, j + 1]
    return float(origin[2] + scale * ((1 - v) * low + v * high))


def _speed(time: float) -> float:
    """Forward speed asked for [m/s]: up to full speed within a second."""
    return SPEED * min(max(time - WAIT, 0.0), 1.0)


def _phase(time: float, leg: int) -> float | None:
    """How far a leg is in its swing, 0 to 1, or None when it stands."""
    if time < WAIT:
        return None
    part = ((time - WAIT) / PERIOD + _PHASE[leg]) % 1.0
    return part / SWING if part < SWING else None


def _path(start: Array, end: Array, phase: float) -> tuple[Array, Array]:
    """Place [m] and velocity [m/s] of a swinging foot: at rest at both ends."""
    way = phase - sin(2 * pi * phase) / (2 * pi)
    rate = (1 - cos(2 * pi * phase)) / (SWING * PERIOD)
    place = start + way * (end - start)
    velocity = rate * (end - start)
    place[2] += _LIFT * (1 - cos(2 * pi * phase)) / 2
    velocity[2] += _LIFT * pi * sin(2 * pi * phase) / (SWING * PERIOD)
    return place, velocity


def _solve(jacobian: Array, velocity: Array) -> Array:
    """Joint rates for a foot's velocity, damped where the leg is stretched."""
    damped = jacobian @ jacobian.T + 1e-6 * np.eye(3)
    return jacobian.T @ np.linalg.solve(damped, velocity)
