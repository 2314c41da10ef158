"""Contacts of geoms to first order: what their rows, gaps and wrenches change by as one of their
two bodies moves.

About the point of a pair's first contact, a contact that is `away` from it and has the axis n_r has
the row R_r, and with V the velocity of the second body less that of the first there, (T, F) the
torque and the force on the second body,

    R_r     = (away x n_r, n_r)        (n_r, 0) for turns
    speed_r = R_r . V                  (T, F) = sum of f_r R_r

As a body moves, by six coordinates whatever its joints are, `geometry.py` tells how the contact's
point p and its axes change, and

    dR_r = (away x dn_r + dp x n_r, dn_r)

gives all the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.bridge.layout import integers, offset, pointer
from stiction.bridge.rows import Key, Place
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import ROWS, Blocks, Head
from stiction.kernels.compile import kernel, lean, lean_leaf
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.bodies import Motion, Tree, six_dot
from stiction.simulate.derivatives.curvature import GAP, NORMAL, POINT, TANGENT
from stiction.simulate.derivatives.geometry import Geometry
from stiction.simulate.derivatives.meetings import Meeting, relative_velocity

_GEOM_BODY, _NGEOM = offset("mjModel", "geom_bodyid"), offset("mjModel", "ngeom")


@packed
class Maps(NamedTuple):
    """Contacts to first order in the motions of their two bodies, the first's (0) and the second's
    (1), about the pair's point, that of its first contact. n blocks; what belongs to a pair stands
    where its first block does."""

    row: Array  # (n, ROWS, 6) R, torque and force of a unit impulse
    speed: Array  # (n, 2, ROWS, 6) dR . V by motions
    speed_w: Array  # (n, 2, 6) the same of the first row, at the correction
    gap: Array  # (n, 2, 6)
    total: Array  # (n, 2, 6) wrench of the pair, and that of the correction
    wrench: Array  # (n, 2, 6, 6) its change: column c for motion c
    wrench_w: Array  # (n, 2, 6, 6)


def allocate_maps(n: int) -> Maps:
    """Room for n blocks."""
    return Maps(
        np.zeros((n, ROWS, 6)), np.zeros((n, 2, ROWS, 6)), np.zeros((n, 2, 6)),
        np.zeros((n, 2, 6)), np.zeros((n, 2, 6)), np.zeros((n, 2, 6, 6)), np.zeros((n, 2, 6, 6)),
    )  # fmt: skip


@lean_leaf
def _turn_tangent(axes, follows, change):
    """Rows 1 and 2 of change (3, 3), the axes' changes, from row 0, and from row 1 unless tangents
    follow from the normal alone."""
    if follows:
        e = 1 if abs(axes[0, 1]) < 0.5 else 2
        along = axes[0, e]
        size = np.sqrt(1.0 - along * along)
        total = 0.0
        for c in range(3):
            x = -change[0, c] * along - axes[0, c] * change[0, e]
            change[1, c] = x / size
            total += axes[1, c] * x / size
        for c in range(3):
            change[1, c] -= axes[1, c] * total
    n0, n1, n2, t0, t1, t2 = axes[0, 0], axes[0, 1], axes[0, 2], axes[1, 0], axes[1, 1], axes[1, 2]
    x0, x1, x2, y0, y1, y2 = (
        change[0, 0], change[0, 1], change[0, 2], change[1, 0], change[1, 1], change[1, 2]
    )  # fmt: skip
    change[2, 0] = x1 * t2 - x2 * t1 + n1 * y2 - n2 * y1
    change[2, 1] = x2 * t0 - x0 * t2 + n2 * y0 - n0 * y2
    change[2, 2] = x0 * t1 - x1 * t0 + n0 * y1 - n1 * y0


@lean_leaf
def _lay_row(axes, r, scale, away, out):
    """out[r] := torque and force of a unit impulse along row r, about the point that the contact is
    `away` (3,) from; rows 3 to 5 are turns about the axes."""
    if r > 2:
        for c in range(3):
            out[r, c], out[r, 3 + c] = scale * axes[r - 3, c], 0.0
        return
    x, y, z = scale * axes[r, 0], scale * axes[r, 1], scale * axes[r, 2]
    out[r, 0] = away[1] * z - away[2] * y
    out[r, 1] = away[2] * x - away[0] * z
    out[r, 2] = away[0] * y - away[1] * x
    out[r, 3], out[r, 4], out[r, 5] = x, y, z


@lean
def _change_rows(g: Geometry, i, which, axis, rows, second, roll, meeting: Meeting):
    """meeting.rows := dR of block i as its first or second body moves along an axis; away is
    meeting.three[0]."""
    by, axes, change, out = g.change[i, which], g.frame[i], meeting.axes, meeting.rows
    away, moved = meeting.three[0], meeting.three[1]
    for c in range(3):
        moved[c] = by[POINT + c, axis]
        change[0, c], change[1, c] = by[NORMAL + c, axis], by[TANGENT + c, axis]
    _turn_tangent(axes, g.follows[i] > 0.0, change)
    for r in range(rows):
        scale = second if r == 2 else roll if r == 5 else 1.0
        _lay_row(change, r, scale, away, out)
        if r < 3:
            x, y, z = scale * axes[r, 0], scale * axes[r, 1], scale * axes[r, 2]
            out[r, 0] += moved[1] * z - moved[2] * y
            out[r, 1] += moved[2] * x - moved[0] * z
            out[r, 2] += moved[0] * y - moved[1] * x


@lean
def _map_contact(
    b: Blocks, i, begin, moves, place, f, pushed, used, g: Geometry, corrected, meeting: Meeting,
    maps: Maps,
):  # fmt: skip
    """Fills the maps of one contact, and adds its part to those of its pair. moves (2,): whether
    anything moves the first body, and the second."""
    rows, second, roll = b.head[i, Head.ROWS], place[i, Place.RATIO], place[i, Place.ROLL_RATIO]
    away, six, change = meeting.three[0], meeting.six, meeting.rows
    total, wrench, wrench_w = maps.total[begin], maps.wrench[begin], maps.wrench_w[begin]
    for c in range(3):
        away[c] = place[i, Place.X + c] - place[begin, Place.X + c]
    for r in range(rows):
        _lay_row(
            g.frame[i], r, second if r == 2 else roll if r == 5 else 1.0, away, maps.row[i]
        )  # fmt: skip
        for c in range(6):
            total[0, c] += f[i, r] * maps.row[i, r, c]
    for c in range(6):
        total[1, c] += pushed[i] * maps.row[i, 0, c]
    for which in range(2):
        if not moves[which]:
            continue
        for axis in range(6):
            _change_rows(g, i, which, axis, rows, second, roll, meeting)
            maps.gap[i, which, axis] = g.change[i, which, GAP, axis]
            for r in range(rows):
                if used[i, r] == 1:
                    maps.speed[i, which, r, axis] = six_dot(change, r, six, 3)
                for c in range(6):
                    wrench[which, c, axis] += f[i, r] * change[r, c]
            if corrected:
                maps.speed_w[i, which, axis] = six_dot(change, 0, six, 4)
                for c in range(6):
                    wrench_w[which, c, axis] += pushed[i] * change[0, c]


@kernel
def _map_pair(
    d, tree: Tree, b: Blocks, begin, end, first, second, place, f, pushed, used, g: Geometry,
    ahead: Motion, apart: Motion, corrected, meeting: Meeting, maps: Maps,
):  # fmt: skip
    """Fills the maps of the contacts from `begin` to `end`, of one pair of geoms of two bodies."""
    point = place[begin, Place.X : Place.X + 3]
    relative_velocity(d, tree, first, second, point, ahead, meeting.six, 3, 7)
    if corrected:
        relative_velocity(d, tree, first, second, point, apart, meeting.six, 4, 7)
    for which in range(2):
        for c in range(6):
            maps.total[begin, which, c] = 0.0
            for axis in range(6):
                maps.wrench[begin, which, c, axis] = maps.wrench_w[begin, which, c, axis] = 0.0
    moves = (tree.last[first] >= 0, tree.last[second] >= 0)
    for i in range(begin, end):
        _map_contact(b, i, begin, moves, place, f, pushed, used, g, corrected, meeting, maps)


@lean_leaf
def pair_end(key, begin, count):
    """Where the blocks of the pair of geoms end that begins there; the next block, if it is none of
    geoms."""
    end = begin + 1
    if key[begin, Key.INDEX] >= 0:
        while end < count and key[end, 0] == key[begin, 0] and key[end, 1] == key[begin, 1]:
            end += 1
    return end


@kernel
def map_contacts(
    m, d, tree: Tree, b: Blocks, count, key, place, f, pushed, used, g: Geometry, ahead: Motion,
    apart: Motion, corrected, meeting: Meeting, maps: Maps,
):  # fmt: skip
    """Fills the maps of all contacts of geoms. f (n, ROWS): impulses; pushed (n,): those of the
    correction; used (n, ROWS): 1 for rows whose speeds matter; ahead, apart: velocities of the
    bodies at v+ and at the correction; corrected: whether there is one."""
    body = integers(pointer(m + _GEOM_BODY), pointer(m + _NGEOM))
    begin = 0
    while begin < count:
        end = pair_end(key, begin, count)
        if key[begin, Key.INDEX] >= 0:
            _map_pair(
                d, tree, b, begin, end, body[key[begin, 0]], body[key[begin, 1]], place, f, pushed,
                used, g, ahead, apart, corrected, meeting, maps,
            )  # fmt: skip
        begin = end
