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
from stiction.kernels.compile import kernel

BALL, FREE = int(mujoco.mjtJoint.mjJNT_BALL), int(mujoco.mjtJoint.mjJNT_FREE)

SERIES_ANGLE = 1e-4
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
    both = np.zeros((2, 3, 3))
    for dof in dofs:
        part = slice(dof, dof + 3)
        turn_step(dt * velocity[part], both)
        out[part] = both[0] @ place[part] + both[1] @ (dt * rate[part])
    return out


@kernel
def turn_step(rotation: Array, out: Array) -> None:
    """out (2, 3, 3) := exp(-r) and Jr(r) of a rotation vector r, the first three of `rotation`."""
    x, y, z = rotation[0], rotation[1], rotation[2]
    square = x * x + y * y + z * z
    angle = np.sqrt(square)
    if angle < SERIES_ANGLE:
        first, second, third = 1.0 - square / 6.0, 0.5 - square / 24.0, 1.0 / 6.0 - square / 120.0
    else:
        first, second = np.sin(angle) / angle, (1.0 - np.cos(angle)) / square
        third = (1.0 - first) / square
    for i in range(3):
        for j in range(3):
            # the cross product's square is r r' - |r|^2
            twice = rotation[i] * rotation[j] - (square if i == j else 0.0)
            out[0, i, j], out[1, i, j] = second * twice, third * twice
        out[0, i, i] += 1.0
        out[1, i, i] += 1.0
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        for k in range(2):
            size = first if k == 0 else second
            out[k, b, a] -= size * rotation[i]
            out[k, a, b] += size * rotation[i]
