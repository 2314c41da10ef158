"""How far the paths of two bodies that turn alike part within a step, beside their velocities.

A point of a body that turns at w while it moves at v is h^2 |w x v| / 2 off a straight line after a
step h. A gripper on a turning arm runs on an arc, and what it holds straight on: on one side of it
a gap opens in every step, on the other an overlap, of that size. The overlap is taken back, and the
gap closed with it, at position level. Closed at velocity level, each contact at a speed of its own,
contacts between the same faces would contradict each other: what is held would slip by picometres,
and a step take twenty times as many factorizations. So a gap of that size counts as none.

It does where the bodies turn alike, as what is held does. What stands on a floor, tumbles in a heap
or rolls off another body closes its gaps by its velocity.
"""

from __future__ import annotations

import numpy as np

from stiction.bridge.layout import integers, numbers, offset, pointer
from stiction.kernels.compile import leaf

_BODY, _ROOT = offset("mjModel", "geom_bodyid"), offset("mjModel", "body_rootid")
_CVEL, _COM = offset("mjData", "cvel"), offset("mjData", "subtree_com")

TURN_ALIKE = 0.1
"""Difference of two angular velocities, over both, up to which the bodies turn alike."""


@leaf
def _turn_times_speed(m, d, body, at):
    """|w x v| of the body and its point at (3,) [m/s^2]."""
    root = integers(pointer(m + _ROOT) + 4 * body, 1)[0]
    moves = numbers(pointer(d + _CVEL) + 48 * body, 6)
    com = numbers(pointer(d + _COM) + 24 * root, 3)
    w0, w1, w2 = moves[0], moves[1], moves[2]
    r0, r1, r2 = at[0] - com[0], at[1] - com[1], at[2] - com[2]
    v0, v1, v2 = (
        moves[3] + w1 * r2 - w2 * r1,
        moves[4] + w2 * r0 - w0 * r2,
        moves[5] + w0 * r1 - w1 * r0,
    )
    a0, a1, a2 = w1 * v2 - w2 * v1, w2 * v0 - w0 * v2, w0 * v1 - w1 * v0
    return np.sqrt(a0 * a0 + a1 * a1 + a2 * a2)


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
    """How far the points at (3,) of two geoms' bodies leave their straight lines within a step,
    together, if these turn alike [m]; else 0."""
    one = integers(pointer(m + _BODY) + 4 * first, 1)[0]
    other = integers(pointer(m + _BODY) + 4 * second, 1)[0]
    if not _turn_alike(d, one, other):
        return 0.0
    bends = _turn_times_speed(m, d, one, at) + _turn_times_speed(m, d, other, at)
    return 0.5 * dt * dt * bends
