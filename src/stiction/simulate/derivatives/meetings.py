"""What moves two bodies against each other: the degrees of freedom between them, and what these do
to their velocities.

What moves both bodies moves a contact between them along, and changes nothing about it.

Paths that bend part by h A / 2 over a step, as a velocity (`bridge/arcs.py`), A the motion of the
second body's acceleration less that of the first, joints moving steadily. With S_k, p_k, c_k, v_k
as in `bodies.py`, V and A of the body that k moves, A_k of what k is fixed to,

    dA / dq_k = S_k x (A - A_k) + p_k x (V - v_k)        dA / dv_k = c_k - V x S_k
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.bridge.layout import numbers, offset, pointer, table
from stiction.contact.problem.arrays import Array
from stiction.kernels import six
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.packing import packed
from stiction.kernels.triples import minus, three_of, velocity_at
from stiction.simulate.derivatives.bodies import Motion, Tree
from stiction.simulate.derivatives.motions import cross_motion

Indices = NDArray[np.int64]

_CDOF, _COM = offset("mjData", "cdof"), offset("mjData", "subtree_com")


@packed
class Meeting(NamedTuple):
    """What one pair of geoms is worked out in."""

    side: Indices  # (nv,) 1 where a degree of freedom moves B alone, -1 where A
    dofs: Indices  # (nv,) those of them, descending on each side
    motion: Array  # (nv, 6) S about the pair's point
    wrench: Array  # (nv, 6) change of (T, F)
    rate: Array  # (nv, 6) change of the relative velocity
    bend: Array  # (nv, 6) the same with what paths part by, over the step
    turn: Array  # (2, 3, 3, 3) this and the next two: see `maps.py`
    force: Array  # (2, 3, 3)
    torque: Array  # (2, 3, 3)
    lift: Array  # (2, 3, 3) the force of a correction
    none: Array  # (2, 3, 3)
    three: Array  # (2, 3) where a contact is from the pair's point, and its force
    joined: Array  # (3, 3) impulses of an equality, in a step and at its correction; a point of it
    six: Array  # (10, 6)


def allocate_meeting(nv: int) -> Meeting:
    """Room for a model."""
    none = np.zeros(nv, np.int64)
    return Meeting(
        none, none.copy(), np.zeros((nv, 6)), np.zeros((nv, 6)), np.zeros((nv, 6)),
        np.zeros((nv, 6)), np.zeros((2, 3, 3, 3)), np.zeros((2, 3, 3)), np.zeros((2, 3, 3)),
        np.zeros((2, 3, 3)), np.zeros((2, 3, 3)), np.zeros((2, 3)), np.zeros((3, 3)),
        np.zeros((10, 6)),
    )  # fmt: skip


@lean_leaf
def arm_of(d, tree: Tree, body, point):
    """From the centre of mass of a body's tree, about which its motion is told, to a point."""
    return minus(point, numbers(pointer(d + _COM) + 24 * tree.root[body], 3))


@lean_leaf
def about(source, j, arm, out, k):
    """out[k] := the motion source[j] about a point that is `arm` farther."""
    w = three_of(source, j, 0)
    out[k, 0], out[k, 1], out[k, 2] = w
    out[k, 3], out[k, 4], out[k, 5] = velocity_at(three_of(source, j, 3), w, arm)


@lean
def find_sides(d, tree: Tree, first, second, point, meeting: Meeting):
    """Fills sides, degrees of freedom and motions of a contact between two bodies; how many."""
    side, dofs = meeting.side, meeting.dofs
    nv = side.shape[0]
    cdof = table(pointer(d + _CDOF), nv, 6)
    for which in range(2):
        j = tree.last[second if which == 0 else first]
        while j >= 0:
            side[j] += 1 - 2 * which
            j = tree.before[j]
    count = 0
    for which in range(2):
        body = second if which == 0 else first
        arm = arm_of(d, tree, body, point)
        j = tree.last[body]
        while j >= 0:
            if side[j] == 1 - 2 * which:
                dofs[count] = j
                about(cdof, j, arm, meeting.motion, j)
                count += 1
            j = tree.before[j]
    return count


@lean
def forget_sides(tree: Tree, first, second, meeting: Meeting):
    """Clears the sides, for the next meeting."""
    for which in range(2):
        j = tree.last[second if which == 0 else first]
        while j >= 0:
            meeting.side[j] = 0
            j = tree.before[j]


@lean
def relative_velocity(d, tree: Tree, first, second, point, motion: Motion, six, to, spare):
    """six[to] := velocity of the second body less that of the first, about the point."""
    for c in range(6):
        six[to, c] = 0.0
    for which in range(2):
        body = second if which == 0 else first
        about(motion.velocity, body, arm_of(d, tree, body, point), six, spare)
        for c in range(6):
            six[to, c] += (1 - 2 * which) * six[spare, c]


@lean
def change_velocities(d, tree: Tree, first, second, count, point, motion: Motion, meeting: Meeting):
    """meeting.rate := the relative velocity's change with each degree of freedom of a meeting."""
    speed, out = meeting.six, meeting.rate
    for e in range(count):
        k = meeting.dofs[e]
        side = meeting.side[k]
        body = second if side > 0 else first
        six.put(speed, 36, motion.velocity, 6 * body)
        six.take_scaled(speed, 36, 1.0, motion.start, 6 * k)
        for c in range(6):
            out[k, c] = 0.0
        about(speed, 6, arm_of(d, tree, body, point), speed, 7)
        cross_motion(meeting.motion, k, speed, 7, 1.0 * side, out, k)


@lean_leaf
def grips_any(gripped, begin, end):
    """Whether any of the blocks from `begin` to `end` is marked."""
    found = False
    for i in range(begin, end):
        found = found or gripped[i] == 1
    return found


@lean
def relative_bend(d, tree: Tree, first, second, point, half, motion: Motion, six, to, spare):
    """six[to] += half, h / 2, times A about the point; accelerations of the motion are spread."""
    for which in range(2):
        body = second if which == 0 else first
        about(motion.acceleration, body, arm_of(d, tree, body, point), six, spare)
        for c in range(6):
            six[to, c] += (1 - 2 * which) * half * six[spare, c]


@lean
def change_bends(
    d, tree: Tree, first, second, count, point, half, motion: Motion, meeting: Meeting
):  # fmt: skip
    """meeting.bend := meeting.rate and half, h / 2, times dA / dq_k, of each degree of freedom of a
    meeting."""
    work, out = meeting.six, meeting.bend
    nv = meeting.side.shape[0]
    cdof = table(pointer(d + _CDOF), nv, 6)
    for e in range(count):
        k = meeting.dofs[e]
        side = meeting.side[k]
        body = second if side > 0 else first
        six.put(work, 30, motion.acceleration, 6 * body)
        six.take_scaled(work, 30, 1.0, motion.push, 6 * k)
        six.put(work, 36, motion.velocity, 6 * body)
        six.take_scaled(work, 36, 1.0, motion.start, 6 * k)
        for c in range(6):
            work[7, c] = 0.0
        cross_motion(cdof, k, work, 5, half * side, work, 7)
        cross_motion(motion.six[k], 0, work, 6, half * side, work, 7)
        about(work, 7, arm_of(d, tree, body, point), work, 6)
        for c in range(6):
            out[k, c] = meeting.rate[k, c] + work[6, c]


@lean
def bend_by_speed(
    d, tree: Tree, first, second, count, point, half, motion: Motion, meeting: Meeting
):  # fmt: skip
    """meeting.bend := half, h / 2, times dA / dv_k, of each degree of freedom of a meeting."""
    work, out = meeting.six, meeting.bend
    nv = meeting.side.shape[0]
    cdof = table(pointer(d + _CDOF), nv, 6)
    for e in range(count):
        k = meeting.dofs[e]
        side = meeting.side[k]
        body = second if side > 0 else first
        six.put(work, 36, motion.start, 6 * k)
        six.take_scaled(work, 36, -1.0, motion.end, 6 * k)
        six.take_scaled(work, 36, 1.0, motion.velocity, 6 * body)
        for c in range(6):
            work[7, c] = 0.0
        cross_motion(work, 6, cdof, k, half * side, work, 7)
        about(work, 7, arm_of(d, tree, body, point), out, k)
