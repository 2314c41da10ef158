"""How far the paths of two bodies that turn alike part within a step, beside their velocities.

A step moves each body along its own path: a link of an arm on an arc, a free body straight on while
it turns. Of two points with the same velocity, whose accelerations on these paths are a_1 and a_2,
the paths part by h^2 (a_2 - a_1) / 2 in a step h. On one side of what a gripper on a turning arm
holds a gap opens in every step, on the other an overlap, and along the faces it creeps, by that
much. All of it is taken back at position level. Closed at velocity level, each contact at a speed
of its own, contacts between the same faces would contradict each other: what is held would slip by
picometres, and a step take twenty times as many factorizations. So a gap of that size counts as
none.

It does where the bodies turn alike, as what is held does. What stands on a floor, tumbles in a heap
or rolls off another body closes its gaps by its velocity, and touches elsewhere after the step.

With S_j v_j the motion that joint j gives to all that it moves, in the world's directions, the
motions of a body and of its acceleration, joints moving steadily, are

    V = sum of S_j v_j        A = sum of (S_i v_i) x (S_j v_j), i before j

The acceleration of a point of it is that of A there, and w x its velocity, which is the same of
two points that touch on bodies that turn alike.
"""

from __future__ import annotations

import mujoco
import numpy as np

from stiction.bridge.bodies import body_of_geom, centre_of_tree, smaller_radius
from stiction.bridge.layout import entry, numbers, offset, pointer
from stiction.kernels.compile import leaf
from stiction.kernels.triples import dot, minus, velocity_at

_DOF_ADR, _DOF_NUM, _PARENT, _DOF_JOINT, _JOINT_TYPE = (
    offset("mjModel", name)
    for name in ("body_dofadr", "body_dofnum", "body_parentid", "dof_jntid", "jnt_type")
)
_CDOF = offset("mjData", "cdof")

BALL, FREE = int(mujoco.mjtJoint.mjJNT_BALL), int(mujoco.mjtJoint.mjJNT_FREE)

TURN_ALIKE = 0.1
"""Difference of two angular velocities, over both, up to which the bodies turn alike."""

LEAST_TURN = 1e-7
"""Difference of their turns in a step up to which they do as well: that of bodies that do not turn
[rad]."""

SETTLING = 16.0
"""Way of the smaller geom's rim by that difference in a step, over what the paths part by there, up
to which they do as well. A foot that lands on micrometres turns by as much when it closes them, and
would never have stood on its four points: robots that sway, stand up or fall took twice the
factorizations and more. What tumbles turns by 2 / (w h) times as much, 100 at 10 rad/s and 2 ms."""

SETTLING_TURN = 0.5 / SETTLING
"""Difference of their turns in a step up to which that holds [rad]: what rolls by more would count
by its own turning, and a ball that rolls at 30 rad/s would leave its way in steps of 10 ms."""

ON_TOP = 1.5
"""Gap that counts as none, over what paths part by: accelerations are those that the step begins
with, and what contact changes in it comes on top."""


@leaf
def join_alike(m, one, other):
    """Whether contacts of two pairs of geoms, which begin the arrays, are between the same two
    bodies."""
    a, b = body_of_geom(m, one[0]), body_of_geom(m, one[1])
    c, d = body_of_geom(m, other[0]), body_of_geom(m, other[1])
    return (a == c and b == d) or (a == d and b == c)


@leaf
def _move(m, d, body, at, v):
    """(w, a): turning rate of a body at joint speeds v (nv,), and what A, see above, is at the
    point at (3,)."""
    w0, w1, w2, u0, u1, u2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    b0, b1, b2, a0, a1, a2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    cdof, node = pointer(d + _CDOF), body
    while node > 0:
        first = entry(m + _DOF_ADR, node)
        j = first + entry(m + _DOF_NUM, node) - 1
        while j >= first:
            kind = entry(m + _JOINT_TYPE, entry(m + _DOF_JOINT, j))
            # The three turns of one joint are one.
            x0, x1, x2, y0, y1, y2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for _ in range(3 if kind in (BALL, FREE) else 1):
                axis, rate = numbers(cdof + 48 * j, 6), v[j]
                x0, x1, x2 = x0 + rate * axis[0], x1 + rate * axis[1], x2 + rate * axis[2]
                y0, y1, y2 = y0 + rate * axis[3], y1 + rate * axis[4], y2 + rate * axis[5]
                j -= 1
            b0, b1, b2 = b0 + x1 * w2 - x2 * w1, b1 + x2 * w0 - x0 * w2, b2 + x0 * w1 - x1 * w0
            a0 += x1 * u2 - x2 * u1 + y1 * w2 - y2 * w1
            a1 += x2 * u0 - x0 * u2 + y2 * w0 - y0 * w2
            a2 += x0 * u1 - x1 * u0 + y0 * w1 - y1 * w0
            w0, w1, w2, u0, u1, u2 = w0 + x0, w1 + x1, w2 + x2, u0 + y0, u1 + y1, u2 + y2
        node = entry(m + _PARENT, node)
    arm = minus(at, centre_of_tree(m, d, body))
    return (w0, w1, w2), velocity_at((a0, a1, a2), (b0, b1, b2), arm)


@leaf
def parting(m, d, first, second, at, v, dt):
    """(whether the bodies of two geoms turn alike, a_2 - a_1 at the point at (3,) [m/s^2]), at
    joint speeds v (nv,)."""
    w, a = _move(m, d, body_of_geom(m, first), at, v)
    z, c = _move(m, d, body_of_geom(m, second), at, v)
    turn = minus(z, w)
    apart = dot(turn, turn)
    total = w[0] * w[0] + w[1] * w[1] + w[2] * w[2] + z[0] * z[0] + z[1] * z[1] + z[2] * z[2]
    alike = apart < TURN_ALIKE * TURN_ALIKE * total or apart * dt * dt < LEAST_TURN * LEAST_TURN
    across = minus(c, a)
    most = SETTLING * 0.5 * dt / smaller_radius(m, first, second)
    settles = apart < most * most * dot(across, across)
    settles = settles and apart * dt * dt < SETTLING_TURN * SETTLING_TURN
    return alike or settles, across


@leaf
def departure(m, d, first, second, at, v, dt):
    """Gap of two geoms at (3,) that the paths of a step leave, if their bodies turn alike [m]; else
    0. v (nv,): joint speeds."""
    alike, a = parting(m, d, first, second, at, v, dt)
    if not alike:
        return 0.0
    return ON_TOP * 0.5 * dt * dt * np.sqrt(dot(a, a))
