"""The pull of a mouse: a damped spring between a point of a body and where the mouse is.

MuJoCo's own perturbation force (`mjv_applyPerturbForce`), whose stiffness is per kilogram of what
the body weighs at that point: heavy and light bodies follow alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.errors import InvalidInput

Array = NDArray[np.float64]

PULL = 20.0
"""Accelerations of gravity with which a body is pulled at a distance of the scene's extent."""

BOUND = 0.3
"""Largest angular frequency of the spring times the time step: there an explicit one is stable."""


@dataclass
class Spring:
    """One visitor's pull."""

    body: int
    grip: Array
    """(3,) point of the body, in its own frame [m]."""
    target: Array
    """(3,) where it is pulled to, in the world [m]."""
    mass: float
    """What the body weighed against a force at the grip when it was taken, joints included [kg]."""

    def held(self, data: mujoco.MjData) -> Array:
        """(3,) the grip in the world [m]."""
        return data.xpos[self.body] + data.xmat[self.body].reshape(3, 3) @ self.grip


def grab(model: mujoco.MjModel, data: mujoco.MjData, body: int, point: Array) -> Spring:
    """A spring at a point of the body, given in the world [m]; InvalidInput if it cannot move."""
    if not (0 < body < model.nbody) or model.body_weldid[body] == 0:
        raise InvalidInput("body", f"{body} cannot be pulled: it does not move")
    if not np.isfinite(point).all():
        raise InvalidInput("point", f"is {point}: three numbers [m]")
    grip = data.xmat[body].reshape(3, 3).T @ (point - data.xpos[body])
    return Spring(body, grip, np.array(point, float), _mass_at(model, data, body, point))


def pull(
    model: mujoco.MjModel, data: mujoco.MjData, springs: Iterable[Spring], strength: float
) -> None:
    """Writes the springs' forces into `xfrc_applied`, for the next step. `strength` 1 is usual."""
    model.vis.map.stiffness = _stiffness(model, strength)
    total = np.zeros_like(data.xfrc_applied)
    perturb = mujoco.MjvPerturb()
    perturb.active = int(mujoco.mjtPertBit.mjPERT_TRANSLATE)
    for spring in springs:
        perturb.select = spring.body
        perturb.localpos[:], perturb.refselpos[:] = spring.grip, spring.target
        perturb.localmass = spring.mass
        mujoco.mjv_applyPerturbForce(model, data, perturb)
        total[spring.body] += data.xfrc_applied[spring.body]
    data.xfrc_applied[:] = total


def _stiffness(model: mujoco.MjModel, strength: float) -> float:
    """Per kilogram [1/s^2]."""
    gravity = float(np.linalg.norm(model.opt.gravity)) or 9.81
    wanted = strength * PULL * gravity / model.stat.extent
    return min(wanted, (BOUND / model.opt.timestep) ** 2)


def _mass_at(model: mujoco.MjModel, data: mujoco.MjData, body: int, point: Array) -> float:
    """Mean over the directions of a force at the point [kg]."""
    jacobian = np.zeros((3, model.nv))
    mujoco.mj_jac(model, data, jacobian, None, point, body)
    response = np.zeros_like(jacobian)
    mujoco.mj_solveM(model, data, response, jacobian)
    ease = float(np.sum(jacobian * response)) / 3.0
    return 1.0 / ease if ease > 0.0 else 0.0
