"""Disassembly: the joins of assemble.py backwards, from the whole to joint accelerations.

Wrenches on a part's handles give the wrench f that its join transmits, f gives the wrenches on the
parts that it was made of, and the motion u of the two against each other is S (joint
accelerations). Nothing acts on the whole from outside, so every part's wrenches are known when its
turn comes. The symbols are those of assemble.py and links.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.articulated.assemble import Parts
from stiction.articulated.links import Bodies, Joints
from stiction.articulated.order import GROUND, Order
from stiction.kernels.compile import kernel

Array = NDArray[np.float64]

NEARLY_DEPENDENT = 1e-5
"""A joint axis within this of the span of those before it, relative to its length, takes its
acceleration from its armature, not from the motion: one loses five digits, the other none."""


@kernel
def disassemble(joints: Joints, order: Order, parts: Parts, n: int, bodies: Bodies) -> Array:
    """(nv,) joint accelerations of n links, all of them assembled with no handles in the end."""
    joins = order.join.shape[0]
    qacc = np.zeros(bodies.armature.shape[0])
    push = np.zeros((order.handle.shape[0], 6))  # wrenches on each part's handles, from outside
    caused, f, u = np.empty(6), np.empty(6), np.empty(6)
    for k in range(joins - 1, -1, -1):
        e, arm = order.join[k, 0], joints.arm[order.join[k, 0]]
        for p in range(6):
            caused[p] = 0.0
        for i in range(order.first[n + k], order.first[n + k + 1]):
            G, at = parts.coupling[i], order.first[order.handle[i, 1]] + order.handle[i, 2]
            for p in range(6):
                push[at, p] += push[i, p]
                for q in range(6):
                    caused[q] += G[q, p] * push[i, p]
        for p in range(6):
            f[p] = parts.wrench[k, p]
            for q in range(6):
                f[p] -= parts.stiffness[k, p, q] * caused[q]
        for p in range(6):
            u[p] = parts.closing[k, p] + caused[p]
            for q in range(6):
                u[p] += parts.relative[k, p, q] * f[q]
        for side in range(2):
            part = order.join[k, 1 + side]
            if part != GROUND:
                to = push[order.first[part] + order.join[k, 3 + side]]
                sign, r = 1.0 if side == 1 else -1.0, arm[side]
                for p in range(6):
                    to[p] += sign * f[p]
                to[0] += sign * (r[1] * f[5] - r[2] * f[4])
                to[1] += sign * (r[2] * f[3] - r[0] * f[5])
                to[2] += sign * (r[0] * f[4] - r[1] * f[3])
        if e < n:
            _joint_accelerations(joints, e, u, f, bodies.armature, bodies.qfrc_smooth, qacc)
    return qacc


@kernel
def _joint_accelerations(
    joints: Joints, e: int, u: Array, f: Array, armature: Array, force: Array, qacc: Array
) -> None:
    """Writes the accelerations of joint e: R qacc = Q'u, or qacc = A^-1 (tau - S'f)."""
    Q, R, dof = joints.basis[e], joints.triangle[e], joints.dof[e]
    d = 0
    while d < 6 and dof[d] >= 0:
        d += 1
    for j in range(d - 1, -1, -1):
        square = 0.0
        for i in range(j + 1):
            square += R[i, j] * R[i, j]
        total = 0.0
        if armature[dof[j]] == 0.0 or abs(R[j, j]) > NEARLY_DEPENDENT * np.sqrt(square):
            for p in range(6):
                total += Q[p, j] * u[p]
            for c in range(j + 1, d):
                total -= R[j, c] * qacc[dof[c]]
            qacc[dof[j]] = total / R[j, j]
        else:
            for p in range(6):
                for i in range(j + 1):
                    total += f[p] * Q[p, i] * R[i, j]
            qacc[dof[j]] = (force[dof[j]] - total) / armature[dof[j]]
