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

gives all the rest: speeds and wrenches are sums of the lines of six that tell how p, the normal
and, where it does not follow from that, the first tangent change. Contacts that bear nothing, and
whose speeds nobody asks for, have gaps alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.bridge.layout import integers, offset, pointer
from stiction.bridge.rows import Key, Place
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import ROWS, Blocks, Head
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.packing import packed
from stiction.kernels.six import add_three, put_three
from stiction.simulate.derivatives.bodies import Motion, Tree
from stiction.simulate.derivatives.curvature import CHANGES, GAP, NORMAL, POINT, TANGENT
from stiction.simulate.derivatives.geometry import Geometry
from stiction.simulate.derivatives.meetings import (
    Meeting,
    grips_any,
    relative_bend,
    relative_velocity,
)

_GEOM_BODY, _NGEOM = offset("mjModel", "geom_bodyid"), offset("mjModel", "ngeom")


@packed
class Maps(NamedTuple):
    """Contacts to first order in the motions of their two bodies, the first's (0) and the second's
    (1), about the pair's point, that of its first contact. n blocks; what belongs to a pair stands
    where its first block does."""

    row: Array  # (n, ROWS, 6) R, torque and force of a unit impulse
    speed: Array  # (n, 2, ROWS, 6) dR . V by motions
    speed_w: Array  # (n, 2, 3, 6) the same of the first rows, at the correction
    gap: Array  # (n, 2, 6)
    total: Array  # (n, 2, 6) wrench of the pair, and that of the correction
    wrench: Array  # (n, 2, 6, 6) its change: column c for motion c
    wrench_w: Array  # (n, 2, 6, 6)


def allocate_maps(n: int) -> Maps:
    """Room for n blocks."""
    return Maps(
        np.zeros((n, ROWS, 6)), np.zeros((n, 2, ROWS, 6)), np.zeros((n, 2, 3, 6)),
        np.zeros((n, 2, 6)), np.zeros((n, 2, 6)), np.zeros((n, 2, 6, 6)), np.zeros((n, 2, 6, 6)),
    )  # fmt: skip


@lean
def _turn_axes(axes, follows, out):
    """out (2, 3, 3, 3) := what the axes change by, [:, r, c, k] for component c of axis r by
    component k of the normal's change (0) and of the first tangent's (1), which has none of its own
    where tangents follow from the normal."""
    e = 1 if abs(axes[0, 1]) < 0.5 else 2
    along = axes[0, e]
    size = np.sqrt(1.0 - along * along)
    for c in range(3):
        for k in range(3):
            out[0, 0, c, k] = out[1, 1, c, k] = 1.0 if c == k else 0.0
            out[1, 0, c, k] = out[0, 1, c, k] = 0.0
    if follows:
        for k in range(3):
            for c in range(3):
                x = along if c == k else 0.0
                out[0, 1, c, k] = -(x + (axes[0, c] if k == e else 0.0)) / size
            total = 0.0
            for c in range(3):
                total += axes[1, c] * out[0, 1, c, k]
            for c in range(3):
                out[0, 1, c, k] -= axes[1, c] * total
                out[1, 1, c, k] = 0.0
    for which in range(2):  # the second tangent is normal x tangent
        for k in range(3):
            for c in range(3):
                p, q = (c + 1) % 3, (c + 2) % 3
                x = out[which, 0, p, k] * axes[1, q] - out[which, 0, q, k] * axes[1, p]
                y = axes[0, p] * out[which, 1, q, k] - axes[0, q] * out[which, 1, p, k]
                out[which, 2, c, k] = x + y


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
def _sum_axes(b: Blocks, i, second, roll, f, meeting: Meeting):
    """meeting.force, meeting.torque (2, 3, 3) := what the force of a contact and the torque of its
    turns, sums of f_r n_r, change by with its normal and its first tangent."""
    turn, force, torque = meeting.turn, meeting.force, meeting.torque
    for which in range(2):
        for c in range(3):
            for k in range(3):
                force[which, c, k] = torque[which, c, k] = 0.0
    for r in range(b.head[i, Head.ROWS]):
        x = f[i, r] * (second if r == 2 else roll if r == 5 else 1.0)
        out = force if r < 3 else torque
        if x != 0.0:
            for which in range(2):
                for c in range(3):
                    for k in range(3):
                        out[which, c, k] += x * turn[which, r % 3, c, k]


@lean
def _add_wrench(change, at, led, fx, fy, fz, force, torque, away, out, to):
    """out[to:to+36] += the changes, six lines of six, of a force (fx, fy, fz) that acts `away` (3,)
    from the pair's point, and of a torque. change: lines of how a contact changes, the first of
    them at entry `at`; force, torque (2, 3, 3): by its normal and its tangent; led: whether that
    has changes of its own."""
    n, t, p = at + 6 * NORMAL, at + 6 * TANGENT, at + 6 * POINT
    for which in range(2 if led else 1):
        a = t if which == 1 else n
        for c in range(3):
            u, v = (c + 1) % 3, (c + 2) % 3
            x, y, z = force[which, c, 0], force[which, c, 1], force[which, c, 2]
            add_three(out, to + 18 + 6 * c, change, x, a, y, a + 6, z, a + 12)
            x = torque[which, c, 0] + away[u] * force[which, v, 0] - away[v] * force[which, u, 0]
            y = torque[which, c, 1] + away[u] * force[which, v, 1] - away[v] * force[which, u, 1]
            z = torque[which, c, 2] + away[u] * force[which, v, 2] - away[v] * force[which, u, 2]
            add_three(out, to + 6 * c, change, x, a, y, a + 6, z, a + 12)
    add_three(out, to, change, 0.0, p, fz, p + 6, -fy, p + 12)  # dp x F
    add_three(out, to + 6, change, -fz, p, 0.0, p + 6, fx, p + 12)
    add_three(out, to + 12, change, fy, p, -fx, p + 6, 0.0, p + 12)


@lean
def _put_speed(change, at, led, r, scale, axes, meeting: Meeting, velocity, out, to):
    """out[to:to+6] := the changes of a row's speed: of dn . (velocity at the contact) and of
    n . (turn x dp), or of dn . turn for turns. velocity: line of meeting.six, about the pair's
    point; the rest as for `_add_wrench`."""
    six, away, turn = meeting.six, meeting.three[0], meeting.turn
    wx, wy, wz = six[velocity, 0], six[velocity, 1], six[velocity, 2]
    vx, vy, vz = wx, wy, wz
    if r < 3:
        vx = six[velocity, 3] + wy * away[2] - wz * away[1]
        vy = six[velocity, 4] + wz * away[0] - wx * away[2]
        vz = six[velocity, 5] + wx * away[1] - wy * away[0]
    vx, vy, vz = scale * vx, scale * vy, scale * vz
    nx, ny, nz = scale * axes[r % 3, 0], scale * axes[r % 3, 1], scale * axes[r % 3, 2]
    p = at + 6 * POINT
    x, y, z = ny * wz - nz * wy, nz * wx - nx * wz, nx * wy - ny * wx
    if r > 2:
        x = y = z = 0.0
    put_three(out, to, change, x, p, y, p + 6, z, p + 12)
    for which in range(2 if led else 1):
        a, k = at + 6 * (TANGENT if which == 1 else NORMAL), r % 3
        x = vx * turn[which, k, 0, 0] + vy * turn[which, k, 1, 0] + vz * turn[which, k, 2, 0]
        y = vx * turn[which, k, 0, 1] + vy * turn[which, k, 1, 1] + vz * turn[which, k, 2, 1]
        z = vx * turn[which, k, 0, 2] + vy * turn[which, k, 1, 2] + vz * turn[which, k, 2, 2]
        add_three(out, to, change, x, a, y, a + 6, z, a + 12)


@lean
def _lift_axes(second, pushed, i, grips, meeting: Meeting):
    """meeting.lift := the same of the force of the correction, impulses pushed[i]."""
    turn, lift = meeting.turn, meeting.lift
    for which in range(2):
        for c in range(3):
            for k in range(3):
                lift[which, c, k] = 0.0
    for r in range(3 if grips else 1):
        x = pushed[i, r] * (second if r == 2 else 1.0)
        for which in range(2):
            for c in range(3):
                for k in range(3):
                    lift[which, c, k] += x * turn[which, r, c, k]


@lean
def _map_motion(
    b: Blocks, i, begin, which, second, roll, pushed, grips, used, g: Geometry, corrected,
    meeting: Meeting, maps: Maps,
):  # fmt: skip
    """What one body's motions add to the maps of a contact that matters, and of its pair; pushed
    (n, 3): impulses of the correction; grips: whether that has tangents."""
    change, axes, led = g.change, g.frame[i], g.follows[i] == 0.0
    at, away = 6 * CHANGES * (2 * i + which), meeting.three[0]
    to, bears = 36 * (2 * begin + which), meeting.three[1]
    _add_wrench(
        change, at, led, bears[0], bears[1], bears[2], meeting.force, meeting.torque, away,
        maps.wrench, to,
    )  # fmt: skip
    for r in range(b.head[i, Head.ROWS]):
        if used[i, r] == 1:
            scale = second if r == 2 else roll if r == 5 else 1.0
            line = 6 * (ROWS * (2 * i + which) + r)
            _put_speed(change, at, led, r, scale, axes, meeting, 3, maps.speed, line)
    if corrected:
        x, y, z = 0.0, 0.0, 0.0
        for r in range(3 if grips else 1):
            scale = second if r == 2 else 1.0
            push = scale * pushed[i, r]
            x, y, z = x + push * axes[r, 0], y + push * axes[r, 1], z + push * axes[r, 2]
            line = 6 * (3 * (2 * i + which) + r)
            velocity = 5 if grips else 4
            _put_speed(
                change, at, led and grips, r, scale, axes, meeting, velocity, maps.speed_w, line
            )
        _add_wrench(
            change, at, led and grips, x, y, z, meeting.lift, meeting.none, away, maps.wrench_w, to
        )


@lean
def _map_contact(
    b: Blocks, i, begin, moves, place, f, pushed, gripped, used, g: Geometry, corrected,
    meeting: Meeting, maps: Maps,
):  # fmt: skip
    """Fills the maps of one contact, and adds its part to those of its pair. moves (2,): whether
    anything moves the first body, and the second."""
    rows, second, roll = b.head[i, Head.ROWS], place[i, Place.RATIO], place[i, Place.ROLL_RATIO]
    away, force, total = meeting.three[0], meeting.three[1], maps.total[begin]
    for c in range(3):
        away[c] = place[i, Place.X + c] - place[begin, Place.X + c]
        force[c] = 0.0
    matters, grips = pushed[i, 0] != 0.0, gripped[i] == 1
    for r in range(rows):
        scale = second if r == 2 else roll if r == 5 else 1.0
        matters = matters or f[i, r] != 0.0 or used[i, r] == 1
        _lay_row(g.frame[i], r, scale, away, maps.row[i])
        for c in range(6):
            total[0, c] += f[i, r] * maps.row[i, r, c]
        if r < 3:
            for c in range(3):
                force[c] += f[i, r] * scale * g.frame[i, r, c]
    for r in range(3 if grips else 1):
        for c in range(6):
            total[1, c] += pushed[i, r] * maps.row[i, r, c]
    if matters:
        _turn_axes(g.frame[i], g.follows[i] > 0.0, meeting.turn)
        _sum_axes(b, i, second, roll, f, meeting)
        if corrected:
            _lift_axes(second, pushed, i, grips, meeting)
    for which in range(2):
        if not moves[which]:
            continue
        for axis in range(6):
            maps.gap[i, which, axis] = g.change[i, which, GAP, axis]
        if matters:
            _map_motion(
                b, i, begin, which, second, roll, pushed, grips, used, g, corrected, meeting, maps
            )


@lean
def _map_pair(
    d, tree: Tree, b: Blocks, begin, end, first, second, place, f, pushed, gripped, half, used,
    g: Geometry, ahead: Motion, apart: Motion, corrected, meeting: Meeting, maps: Maps,
):  # fmt: skip
    """Fills the maps of the contacts from `begin` to `end`, of one pair of geoms of two bodies."""
    point = place[begin, Place.X : Place.X + 3]
    relative_velocity(d, tree, first, second, point, ahead, meeting.six, 3, 7)
    if corrected:
        relative_velocity(d, tree, first, second, point, apart, meeting.six, 4, 7)
        if grips_any(gripped, begin, end):
            for c in range(6):
                meeting.six[5, c] = meeting.six[4, c]
            relative_bend(d, tree, first, second, point, half, ahead, meeting.six, 5, 7)
    for which in range(2):
        for c in range(6):
            maps.total[begin, which, c] = 0.0
            for axis in range(6):
                maps.wrench[begin, which, c, axis] = maps.wrench_w[begin, which, c, axis] = 0.0
    moves = (tree.last[first] >= 0, tree.last[second] >= 0)
    for i in range(begin, end):
        _map_contact(
            b, i, begin, moves, place, f, pushed, gripped, used, g, corrected, meeting, maps
        )


@lean_leaf
def pair_end(key, begin, count):
    """Where the blocks of the pair of geoms end that begins there; the next block, if it is none of
    geoms."""
    end = begin + 1
    if key[begin, Key.INDEX] >= 0:
        while end < count and key[end, 0] == key[begin, 0] and key[end, 1] == key[begin, 1]:
            end += 1
    return end


@lean
def map_contacts(
    m, d, tree: Tree, b: Blocks, count, key, place, f, pushed, gripped, half, used, needed,
    g: Geometry, ahead: Motion, apart: Motion, corrected, meeting: Meeting, maps: Maps,
):  # fmt: skip
    """Fills the maps of all contacts of geoms that are needed (n,). f (n, ROWS): impulses; pushed
    (n, 3): those of the correction; gripped (n,): 1 where it has tangents; half: half the
    step; used (n, ROWS): 1 for rows whose speeds matter; ahead, apart: velocities of the bodies at
    v+, and accelerations where any is gripped, and at the correction; corrected: whether there is
    one."""
    body = integers(pointer(m + _GEOM_BODY), pointer(m + _NGEOM))
    begin = 0
    while begin < count:
        end = pair_end(key, begin, count)
        if key[begin, Key.INDEX] >= 0 and needed[begin] == 1:
            _map_pair(
                d, tree, b, begin, end, body[key[begin, 0]], body[key[begin, 1]], place, f, pushed,
                gripped, half, used, g, ahead, apart, corrected, meeting, maps,
            )  # fmt: skip
        begin = end
