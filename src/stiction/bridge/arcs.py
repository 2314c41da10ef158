"""How far the paths of a step leave the straight lines along which its gaps are reckoned.

A point of a body that turns at w while it moves at v is h^2 |w x v| / 2 off that line after a step
h. A gripper on a turning arm runs on an arc, and what it holds straight on: on one side of it a gap
opens in every step, on the other an overlap, of that size. The overlap is taken back, which closes
the gap. Closed at velocity level as well, each contact at a speed of its own, contacts between the
same faces would contradict each other: what is held would slip by picometres, and a step take
twenty times as many factorizations. So a gap of that size counts as none. What rolls, stands, or
flies without turning leaves none: v is that of the point in contact.
"""

from __future__ import annotations

import numpy as np

from stiction.bridge.layout import integers, numbers, offset, pointer
from stiction.kernels.compile import leaf

_BODY, _ROOT = offset("mjModel", "geom_bodyid"), offset("mjModel", "body_rootid")
_CVEL, _COM = offset("mjData", "cvel"), offset("mjData", "subtree_com")


@leaf
def _turn_times_speed(m, d, geom, at):
    """|w x v| of the geom's body and its point at (3,) [m/s^2]."""
    body = integers(pointer(m + _BODY) + 4 * geom, 1)[0]
    root = integers(pointer(m + _ROOT) + 4 * body, 1)[0]
    moves = numbers(pointer(d + _CVEL) + 48 * body, 6)
    com = numbers(pointer(d + _COM) + 24 * root, 3)
    w0, w1, w2 = moves[0], moves[1], moves[2]
    if w0 == 0.0 and w1 == 0.0 and w2 == 0.0:
        return 0.0
    r0, r1, r2 = at[0] - com[0], at[1] - com[1], at[2] - com[2]
    v0, v1, v2 = (
        moves[3] + w1 * r2 - w2 * r1,
        moves[4] + w2 * r0 - w0 * r2,
        moves[5] + w0 * r1 - w1 * r0,
    )
    a0, a1, a2 = w1 * v2 - w2 * v1, w2 * v0 - w0 * v2, w0 * v1 - w1 * v0
    return np.sqrt(a0 * a0 + a1 * a1 + a2 * a2)


@leaf
def departure(m, d, first, second, at, dt):
    """How far two geoms' points at (3,) leave their straight lines within a step, together [m]."""
    bends = _turn_times_speed(m, d, first, at) + _turn_times_speed(m, d, second, at)
    return 0.5 * dt * dt * bends
