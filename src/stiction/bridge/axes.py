"""The axes of long trees of joints, by the motions of their floating root: what `kernels/tree.py`
needs to know of a tree beside its mass."""

from __future__ import annotations

import mujoco

from stiction.bridge.layout import integers, numbers, offset, pointer, table
from stiction.kernels.compile import kernel
from stiction.kernels.tree import AXIS, LONG_TREE
from stiction.kernels.triples import minus, three_of, velocity_at

_BODY, _JOINT = offset("mjModel", "dof_bodyid"), offset("mjModel", "dof_jntid")
_TYPE = offset("mjModel", "jnt_type")
_XPOS, _XMAT = offset("mjData", "xpos"), offset("mjData", "xmat")
_COM, _CDOF = offset("mjData", "subtree_com"), offset("mjData", "cdof")

_FREE = int(mujoco.mjtJoint.mjJNT_FREE)


@kernel
def read_axes(m, d, start, axis):
    """axis (nv, 6) := of each degree of freedom of a long tree on a free joint, the velocity that
    it gives to the root's origin, in the world's frame, and its angular velocity, in the root's own
    frame, as the joint has them; start: first degree of freedom of each tree, and nv."""
    nv = axis.shape[0]
    if nv == 0:
        return
    body, joint = integers(pointer(m + _BODY), nv), integers(pointer(m + _JOINT), nv)
    cdof = table(pointer(d + _CDOF), nv, AXIS)
    for node in range(start.shape[0] - 1):
        base, end = start[node], start[node + 1]
        if end - base < LONG_TREE:
            continue
        root, first = body[base], joint[base]
        if integers(pointer(m + _TYPE), first + 1)[first] != _FREE:
            continue
        x = numbers(pointer(d + _XPOS) + 24 * root, 3)
        com = numbers(pointer(d + _COM) + 24 * root, 3)
        turn = numbers(pointer(d + _XMAT) + 72 * root, 9)
        arm = minus(x, com)
        for j in range(base, base + AXIS):
            for k in range(AXIS):
                axis[j, k] = 1.0 if k == j - base else 0.0
        for j in range(base + AXIS, end):
            w = three_of(cdof, j, 0)
            axis[j, 0], axis[j, 1], axis[j, 2] = velocity_at(three_of(cdof, j, 3), w, arm)
            for k in range(3):
                axis[j, 3 + k] = turn[k] * w[0] + turn[3 + k] * w[1] + turn[6 + k] * w[2]
