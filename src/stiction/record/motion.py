"""What follows from the states alone: where bodies went, how fast, the energy.

Computed from a `Trajectory` afterwards, so that every stepper, MuJoCo's own included, is measured
by the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.errors import InvalidInput, is_one_of, unknown
from stiction.record.trajectory import Trajectory

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Motion:
    """Of k watched bodies at n samples."""

    bodies: tuple[str, ...]
    displacement: Array
    """(n, k, 3) of the centre of mass since the first sample [m]."""
    turned: Array
    """(n, k) angle since the first sample [rad]."""
    speed: Array
    """(n, k) of the centre of mass [m/s]."""
    down: Array
    """(3,) where gravity points; zeros where there is none."""
    potential: Array
    """(n,) gravity and springs [J]."""
    kinetic: Array
    """(n,) [J]."""

    def sink(self) -> float:
        """How far the body that sank most is below its start at the end [m]."""
        return float((self.displacement[-1] @ self.down).max()) if self.bodies else 0.0

    def net_speed(self, time: Array) -> float:
        """Way from the middle of the run to its end over the time, of the body that went furthest
        [m/s]: creep of what should stay, travel of what walks or falls."""
        middle = middle_of(time)
        passed = time[-1] - time[middle]
        if passed <= 0.0 or not self.bodies:
            return 0.0
        moved = np.linalg.norm(self.displacement[-1] - self.displacement[middle], axis=1)
        return float(moved.max() / passed)


def middle_of(time: Array) -> int:
    """The first sample of the run's second half."""
    return int(np.searchsorted(time, 0.5 * (time[0] + time[-1])))


def motion(trajectory: Trajectory, bodies: tuple[str, ...] | list[str]) -> Motion:
    """Motion of the bodies, by name (`body_name`), over the trajectory."""
    model = trajectory.model()
    data = mujoco.MjData(model)
    ids = [body_id(model, name) for name in bodies]
    n, k = len(trajectory), len(ids)
    place, angle, speed = np.zeros((n, k, 3)), np.zeros((n, k)), np.zeros((n, k))
    first, relative, velocity = np.zeros((k, 4)), np.zeros(4), np.zeros(6)
    energy = np.zeros((n, 2))
    for sample in range(n):
        trajectory.put(data, sample)
        for stage in _STAGES:
            stage(model, data)
        energy[sample] = data.energy
        place[sample] = data.xipos[ids]
        if sample == 0:
            first = data.xquat[ids].copy()
            first[:, 1:] *= -1.0
        for column, body in enumerate(ids):
            mujoco.mju_mulQuat(relative, data.xquat[body], first[column])
            angle[sample, column] = 2.0 * np.arctan2(np.linalg.norm(relative[1:]), abs(relative[0]))
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 0)
            speed[sample, column] = np.linalg.norm(velocity[3:])
    strength = float(np.linalg.norm(model.opt.gravity))
    down = model.opt.gravity / strength if strength > 0.0 else np.zeros(3)
    moved = place - place[:1]
    return Motion(tuple(bodies), moved, angle, speed, down, energy[:, 0], energy[:, 1])


_STAGES = (
    mujoco.mj_kinematics,
    mujoco.mj_comPos,
    mujoco.mj_tendon,
    mujoco.mj_makeM,
    mujoco.mj_comVel,
    mujoco.mj_energyPos,
    mujoco.mj_energyVel,
)
"""What positions, velocities and energy need of MuJoCo's pipeline: no collisions."""


def body_name(model: mujoco.MjModel, body: int) -> str:
    """The body's name, or `body 3` where it has none."""
    return model.body(body).name or f"body {body}"


def body_id(model: mujoco.MjModel, name: str) -> int:
    """The number of the body that `body_name` calls so."""
    number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)
    return number if number >= 0 else int(name.removeprefix("body "))


def check_watch(model: mujoco.MjModel, watch: tuple[str, ...]) -> None:
    """Raises InvalidInput for a body that is not there."""
    known = [body_name(model, body) for body in range(model.nbody)]
    if isinstance(watch, str) or not isinstance(watch, Sequence):
        raise InvalidInput("watch", f"is {watch!r}: a tuple of bodies' names")
    for name in watch:
        if not is_one_of(name, known):
            raise InvalidInput("watch", unknown(str(name), known))


def bodies_to_watch(model: mujoco.MjModel, touched: set[str]) -> tuple[str, ...]:
    """Free bodies among those that touched something; failing that, all of those that can move;
    failing that, all free bodies."""
    kind = mujoco.mjtJoint.mjJNT_FREE
    free = {int(body) for body in model.jnt_bodyid[model.jnt_type == kind]}
    met = {body_id(model, name) for name in touched}
    moving = {body for body in met if model.body_weldid[body] > 0}
    chosen = (moving & free) or moving or free
    return tuple(body_name(model, body) for body in sorted(chosen))
