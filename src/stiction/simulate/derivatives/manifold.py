"""Positions live on a manifold: derivatives of their integration, in tangent spaces.

A change of position is nv numbers, as `mj_differentiatePos` has it: of a quaternion, a rotation in
the body's frame. With rot = h w, a quaternion's step is q+ = q exp(rot), and

    change+ = exp(-rot) change + Jr(rot) h dw,     Jr the right Jacobian of exp

Other coordinates add up.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array

BALL, FREE = int(mujoco.mjtJoint.mjJNT_BALL), int(mujoco.mjtJoint.mjJNT_FREE)

SMALL = 1e-4
"""Angle below which a series stands for the quotients, whose differences lose digits [rad]."""


def quaternion_dofs(model: mujoco.MjModel) -> NDArray[np.int64]:
    """First degree of freedom of each quaternion."""
    found = []
    for kind, dof in zip(model.jnt_type, model.jnt_dofadr, strict=True):
        if kind in (BALL, FREE):
            found.append(int(dof) + (3 if kind == FREE else 0))
    return np.array(found, np.int64)


def integrate(
    dofs: NDArray[np.int64], dt: float, velocity: Array, place: Array, rate: Array
) -> Array:
    """(nv, k) change of the position after a step at `velocity` (nv,), for changes `place` of the
    position before and `rate` of the velocity (nv, k)."""
    out = place + dt * rate
    for dof in dofs:
        part = slice(dof, dof + 3)
        turned, right = _exponential(dt * velocity[part])
        out[part] = turned @ place[part] + right @ (dt * rate[part])
    return out


def _exponential(rotation: Array) -> tuple[Array, Array]:
    """(exp(-r), Jr(r)) of a rotation vector r."""
    x, y, z = rotation
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    square = float(rotation @ rotation)
    angle = np.sqrt(square)
    if angle < SMALL:
        first, second, third = 1.0 - square / 6.0, 0.5 - square / 24.0, 1.0 / 6.0 - square / 120.0
    else:
        first, second = np.sin(angle) / angle, (1.0 - np.cos(angle)) / square
        third = (1.0 - first) / square
    twice = cross @ cross
    return np.eye(3) - first * cross + second * twice, np.eye(3) - second * cross + third * twice
