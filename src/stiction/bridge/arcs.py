"""How far the paths of two bodies that turn alike part within a step, beside their velocities.

A step moves each body along its own path: a link of an arm on an arc, a free body straight on while
it turns. Of two points with the same velocity, whose accelerations on these paths are a_1 and a_2,
the paths part by h^2 |a_2 - a_1| / 2 in a step h. On one side of what a gripper on a turning arm
holds a gap opens in every step, on the other an overlap, of that size. The overlap is taken back,
and the gap closed with it, at position level. Closed at velocity level, each contact at a speed of
its own, contacts between the same faces would contradict each other: what is held would slip by
picometres, and a step take twenty times as many factorizations. So a gap of that size counts as
none.

It does where the bodies turn alike, as what is held does. What stands on a floor, tumbles in a heap
or rolls off another body closes its gaps by its velocity.
"""

from __future__ import annotations

import numpy as np

from stiction.bridge.layout import integers, numbers, offset, pointer
from stiction.kernels.compile import leaf

_BODY, _ROOT, _DOF_ADR, _DOF_NUM, _PARENT = (
    offset("mjModel", name)
    for name in ("geom_bodyid", "body_rootid", "body_dofadr", "body_dofnum", "body_parentid")
)
_CVEL, _COM, _CDOF_DOT, _QVEL = (
    offset("mjData", name) for name in ("cvel", "subtree_com", "cdof_dot", "qvel")
)

TURN_ALIKE = 0.1
"""Difference of two angular velocities, over both, up to which the bodies turn alike."""

ON_TOP = 1.5
"""Gap that counts as none, over what paths part by: accelerations are those that the step begins
with, and what contact changes in it comes on top."""


@leaf
def _acceleration(m, d, body, at):
    """Acceleration of the body's point at (3,) along its path, joints moving steadily [m/s^2]."""
    root = integers(pointer(m + _ROOT) + 4 * body, 1)[0]
    com = numbers(pointer(d + _COM) + 24 * root, 3)
    x, y, z = at[0] - com[0], at[1] - com[1], at[2] - com[2]
    w = numbers(pointer(d + _CVEL) + 48 * body, 6)
    u = w[3] + w[1] * z - w[2] * y
    v = w[4] + w[2] * x - w[0] * z
    s = w[5] + w[0] * y - w[1] * x
    a, b, c = w[1] * s - w[2] * v, w[2] * u - w[0] * s, w[0] * v - w[1] * u
    node = body
    while node > 0:
        first = integers(pointer(m + _DOF_ADR) + 4 * node, 1)[0]
        for j in range(first, first + integers(pointer(m + _DOF_NUM) + 4 * node, 1)[0]):
            rate = numbers(pointer(d + _QVEL) + 8 * j, 1)[0]
            bend = numbers(pointer(d + _CDOF_DOT) + 48 * j, 6)
            a += rate * (bend[3] + bend[1] * z - bend[2] * y)
            b += rate * (bend[4] + bend[2] * x - bend[0] * z)
            c += rate * (bend[5] + bend[0] * y - bend[1] * x)
        node = integers(pointer(m + _PARENT) + 4 * node, 1)[0]
    return a, b, c


@leaf
def _turn_alike(d, first, second):
    """Whether two bodies turn, and alike."""
    one = numbers(pointer(d + _CVEL) + 48 * first, 3)
    other = numbers(pointer(d + _CVEL) + 48 * second, 3)
    apart, total = 0.0, 0.0
    for k in range(3):
        apart += (other[k] - one[k]) ** 2
        total += one[k] * one[k] + other[k] * other[k]
    return apart < TURN_ALIKE * TURN_ALIKE * total


@leaf
def departure(m, d, first, second, at, dt):
    """Gap of two geoms at (3,) that the paths of a step leave, if their bodies turn alike [m]; else
    0."""
    one = integers(pointer(m + _BODY) + 4 * first, 1)[0]
    other = integers(pointer(m + _BODY) + 4 * second, 1)[0]
    if not _turn_alike(d, one, other):
        return 0.0
    a0, a1, a2 = _acceleration(m, d, one, at)
    b0, b1, b2 = _acceleration(m, d, other, at)
    return ON_TOP * 0.5 * dt * dt * np.sqrt((b0 - a0) ** 2 + (b1 - a1) ** 2 + (b2 - a2) ** 2)
