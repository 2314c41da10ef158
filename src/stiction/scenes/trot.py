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
from typing import NamedTuple

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
_DAMPED = 1e-6 * np.eye(3)
# Which entries of the feet's Jacobians (4, 3, nv) belong to the joints of the own leg.
_OWN_ROWS, _ROWS = np.arange(4)[:, None, None], np.arange(3)[:, None]
_OWN_JOINTS = 6 + 3 * _OWN_ROWS + np.arange(3)


class Trot:
    """Controller of the quadruped; remembers where each swinging foot left the ground."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self._own = mujoco.MjData(model)
        self._feet = [model.geom(f"{name}_foot").id for name in LEGS]
        self._ground = ground(model)
        self._damping = model.dof_damping.copy()
        self._left = np.zeros((4, 3))
        self._swinging = [False] * 4
        self._mass = np.zeros((model.nv, model.nv))
        self._bias = np.zeros(model.nv)
        self._jacobians = np.zeros((4, 3, model.nv))

    def __call__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Write the torques of the twelve motors [N m]."""
        self._look(model, data)
        phases = [_phase(data.time, leg) for leg in range(4)]
        trunk = self._trunk_acceleration()
        wanted = np.concatenate([trunk, self._leg_accelerations(trunk, phases).ravel()])
        self._swinging = [phase is not None for phase in phases]
        standing = [leg for leg in range(4) if phases[leg] is None]
        needed = self._mass @ wanted + self._bias
        rows = self._jacobians[standing].reshape(-1, len(needed))
        needed -= self._foot_forces(rows[:, :6], needed[:6]).ravel() @ rows
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
        self._bias += self._damping * own.qvel
        for leg, foot in enumerate(self._feet):
            mujoco.mj_jacGeom(model, own, self._jacobians[leg], None, foot)

    def _trunk_acceleration(self) -> Array:
        """Of the free joint: linear in world axes [m/s^2], angular in the trunk's [rad/s^2]."""
        own = self._own
        feet = own.geom_xpos[self._feet].tolist()
        below = sum(self._ground.height(x, y) for x, y, _ in feet) / 4
        place, velocity = own.qpos[:3], own.qvel[:6]
        course = (place[0], 0.0, below + STANCE + FOOT)  # x: speed alone counts
        linear = _COURSE * (course - place) + _COURSE_RATE * (
            (_speed(own.time), 0.0, 0.0) - velocity[:3]
        )
        lean = np.zeros(3)
        mujoco.mju_quat2Vel(lean, own.qpos[3:7], 1.0)
        return np.concatenate([linear, -_LEAN * lean - _LEAN_RATE * velocity[3:]])

    def _leg_accelerations(self, trunk: Array, phases: list[float | None]) -> Array:
        """(4, 3) of the joints [rad/s^2]: a standing foot stays where it is while the trunk
        accelerates, a swinging one follows its path."""
        qvel, jacobians = self._own.qvel, self._jacobians
        to_trunk, to_joints = jacobians[:, :, :6], jacobians[_OWN_ROWS, _ROWS, _OWN_JOINTS]
        foot = -to_trunk @ trunk - _FOOT_RATE * (jacobians @ qvel)
        angles: list[tuple[int, tuple[float, float, float]]] = []
        axes = np.zeros(9)
        mujoco.mju_quat2Mat(axes, self._own.qpos[3:7])
        for leg, phase in enumerate(phases):
            if phase is not None:
                place, velocity = self._swing(leg, phase, axes.reshape(3, 3))
                angles.append((leg, joints_for(place, _SIDES[leg])))
                foot[leg] = velocity - to_trunk[leg] @ qvel[:6]
        out = _solve(to_joints, foot)
        for leg, wanted in angles:
            joints = slice(3 * leg, 3 * leg + 3)
            error = wanted - self._own.qpos[7:][joints]
            out[leg] = _JOINT * error + _JOINT_RATE * (out[leg] - qvel[6:][joints])
        return out

    def _swing(self, leg: int, phase: float, axes: Array) -> tuple[Array, Array]:
        """Of a foot at `phase` (0 to 1) of its swing: place from its hip in the trunk's axes [m],
        velocity in the world's [m/s]."""
        own = self._own
        if not self._swinging[leg]:
            self._left[leg] = own.geom_xpos[self._feet[leg]]
        trunk = own.qpos[:3]
        target = self._foothold(leg, trunk + axes @ _HIPS[leg], phase)
        place, velocity = _path(self._left[leg], target, phase)
        return (place - trunk) @ axes - _HIPS[leg], velocity

    def _foothold(self, leg: int, hip: Array, phase: float) -> Array:
        """Where the centre of the foot should land (3,) [m]."""
        vx, vy = self._own.qvel[:2].tolist()
        ahead = (1.0 - phase) * SWING * PERIOD + 0.5 * (1.0 - SWING) * PERIOD
        x = float(hip[0]) + ahead * vx + 0.05 * (vx - _speed(self._own.time))
        y = float(hip[1]) + ahead * vy + 0.05 * vy
        y += _SIDES[leg] * OFFSET - 0.1 * float(self._own.qpos[1])
        return np.array([x, y, self._ground.height(x, y) + FOOT])

    def _foot_forces(self, rows: Array, needed: Array) -> Array:
        """(feet, 3) forces of the ground [N] that come closest to the wrench `needed` (6,)."""
        weighted = rows * _WEIGHT
        normal = weighted @ rows.T
        normal.ravel()[:: len(rows) + 1] += _SMALL
        forces = np.linalg.solve(normal, weighted @ needed).reshape(-1, 3)
        forces[:, 2] = np.clip(forces[:, 2], 0.0, _MOST)
        along = np.hypot(forces[:, 0], forces[:, 1])
        forces[:, :2] *= np.minimum(1.0, _GRIP * forces[:, 2] / np.maximum(along, 1e-9))[:, None]
        return forces


class Ground(NamedTuple):
    """A terrain map, or a plane where it has no heights."""

    origin: tuple[float, float, float]
    """Of its geom [m]."""
    reach: float
    """Half its length along x [m]."""
    width: float
    """Half its length along y [m]."""
    scale: float
    """Height of what the map calls one [m]."""
    heights: list[list[float]]
    """Rows along x, one after another along y."""

    def height(self, x: float, y: float) -> float:
        """At a place [m]: bilinear in the map's cells, 0 for a plane."""
        if not self.heights:
            return 0.0
        columns, rows = len(self.heights[0]), len(self.heights)
        column = (x - self.origin[0] + self.reach) / (2 * self.reach) * (columns - 1)
        row = (y - self.origin[1] + self.width) / (2 * self.width) * (rows - 1)
        column, row = min(max(column, 0.0), columns - 1.001), min(max(row, 0.0), rows - 1.001)
        i, j = int(row), int(column)
        v, u = row - i, column - j
        near, far = self.heights[i], self.heights[i + 1]
        low = (1 - u) * near[j] + u * near[j + 1]
        high = (1 - u) * far[j] + u * far[j + 1]
        return self.origin[2] + self.scale * ((1 - v) * low + v * high)


def ground(model: mujoco.MjModel) -> Ground:
    """What the geom `ground` is, as numbers of Python: a controller looks them up in each step."""
    x, y, z = model.geom("ground").pos.tolist()
    if model.nhfield == 0:
        return Ground((x, y, z), 0.0, 0.0, 0.0, [])
    reach, width, scale, _ = model.hfield_size[0].tolist()
    rows, columns = int(model.hfield_nrow[0]), int(model.hfield_ncol[0])
    heights = model.hfield_data[: rows * columns].reshape(rows, columns).astype(np.float64)
    return Ground((x, y, z), reach, width, scale, heights.tolist())


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


def _solve(jacobians: Array, velocities: Array) -> Array:
    """(legs, 3) joint rates for the feet's velocities, damped where a leg is stretched."""
    turned = np.swapaxes(jacobians, 1, 2)
    damped = jacobians @ turned + _DAMPED
    return (turned @ np.linalg.solve(damped, velocities[:, :, None]))[:, :, 0]
