"""How momentum and the speeds of rows change with positions, by way of contacts.

A contact of the bodies A and B, at the point p with the axes n_r, bears the force F and the torque
T on B, and their opposite on A. With S_j the motion about p that degree of freedom j gives to what
it moves, V the velocity of B less that of A there (both at the velocity that the step ends with),

    momentum_j = s_j S_j . (T, F)        s_j = 1 if j moves B alone, -1 if A alone
    speed_r    = n_r . V(p)

What moves both moves the contact along, and changes neither. Else, with dp and dn by `geometry.py`,

    dmomentum_j / dq_k = s_j ((S_k x S_j) . (T, F) if k comes before j
                              + S_j . (sum f_r dn_r + dp x F, sum f_r dn_r))
    dspeed_r / dq_k    = dn_r . V + n_r . (W x dp + s_k S_k x (V_k' - V_k))

W the turn of V, V_k' the velocity of the body that k moves, V_k that of what k is fixed to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.bridge.layout import integers, numbers, offset, pointer
from stiction.bridge.rows import Key, Place
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Blocks, Head, Kind
from stiction.kernels.compile import kernel, lean, lean_leaf
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.bodies import (
    Motion,
    Tree,
    cross_force,
    cross_motion,
    six_dot,
)
from stiction.simulate.derivatives.geometry import GAP, NORMAL, POINT, TANGENT, Geometry

Indices = NDArray[np.int64]

_CDOF, _COM = offset("mjData", "cdof"), offset("mjData", "subtree_com")
_XIPOS, _XFRC = offset("mjData", "xipos"), offset("mjData", "xfrc_applied")
_GEOM_BODY, _NGEOM = offset("mjModel", "geom_bodyid"), offset("mjModel", "ngeom")


@packed
class Slopes(NamedTuple):
    """Changes of a step's problem at its own answer; see `differences.py` for what is read. Rows j,
    columns k."""

    push_q: Array  # (nv, nv) of momentum, by positions
    push_v: Array  # (nv, nv) by velocities
    push_a: Array  # (nv, na) by activations
    push_u: Array  # (nv, nu) by controls
    speed: Array  # (n, ROWS, nv) of rows, by positions
    gap: Array  # (n, nv)
    push_w: Array  # (nv, nv) of the overlap's correction
    speed_w: Array  # (n, nv)
    act_a: Array  # (na, na) activations after the step, by activations
    act_u: Array  # (na, nu)


@packed
class Meeting(NamedTuple):
    """What one contact is worked out in."""

    side: Indices  # (nv,) 1 where a degree of freedom moves B alone, -1 where A
    dofs: Indices  # (nv,) those of them, descending on each side
    motion: Array  # (nv, 6) S about the contact
    wrench: Array  # (2, nv, 6) change of (T, F), and of that of the correction
    rate: Array  # (2, nv, 6) change of the relative velocity, at v+ and at the correction
    axes: Array  # (3, 3) change of the axes
    three: Array  # (2, 3) of a contact
    six: Array  # (10, 6)


def allocate_meeting(nv: int) -> Meeting:
    """Room for a model."""
    none = np.zeros(nv, np.int64)
    return Meeting(
        none, none.copy(), np.zeros((nv, 6)), np.zeros((2, nv, 6)), np.zeros((2, nv, 6)),
        np.zeros((3, 3)), np.zeros((2, 3)),
        np.zeros((10, 6)),
    )  # fmt: skip


@lean_leaf
def _about(source, j, x, y, z, out, k):
    """out[k] := the motion source[j] about a point that is (x, y, z) farther."""
    a, b, c = source[j, 0], source[j, 1], source[j, 2]
    u, v, w = source[j, 3], source[j, 4], source[j, 5]
    out[k, 0], out[k, 1], out[k, 2] = a, b, c
    out[k, 3], out[k, 4], out[k, 5] = u + b * z - c * y, v + c * x - a * z, w + a * y - b * x


@kernel
def _find_sides(d, tree: Tree, first, second, point, meeting: Meeting):
    """Fills sides, degrees of freedom and motions of a contact between two bodies; how many."""
    side, dofs = meeting.side, meeting.dofs
    nv = side.shape[0]
    cdof = numbers(pointer(d + _CDOF), 6 * nv).reshape((nv, 6))
    com = numbers(pointer(d + _COM), 3 * tree.root.shape[0])
    for which in range(2):
        j = tree.last[second if which == 0 else first]
        while j >= 0:
            side[j] += 1 - 2 * which
            j = tree.before[j]
    count = 0
    for which in range(2):
        body = second if which == 0 else first
        c = 3 * tree.root[body]
        x, y, z = point[0] - com[c], point[1] - com[c + 1], point[2] - com[c + 2]
        j = tree.last[body]
        while j >= 0:
            if side[j] == 1 - 2 * which:
                dofs[count] = j
                _about(cdof, j, x, y, z, meeting.motion, j)
                count += 1
            j = tree.before[j]
    return count


@lean
def _forget_sides(tree: Tree, first, second, meeting: Meeting):
    for which in range(2):
        j = tree.last[second if which == 0 else first]
        while j >= 0:
            meeting.side[j] = 0
            j = tree.before[j]


@lean
def _add_momentum(tree: Tree, count, wrench, row, which, meeting: Meeting, out):
    """out[j, k] += the change of momentum by a torque and a force wrench[row], whose own changes
    are meeting.wrench[which]. (S_k x S_j) . (T, F) is -S_j . S_k x* (T, F)."""
    side, dofs, motion, six = meeting.side, meeting.dofs, meeting.motion, meeting.six
    change = meeting.wrench[which]
    for e in range(count):
        k = dofs[e]
        for c in range(6):
            six[0, c] = -change[k, c]
        cross_force(motion, k, wrench, row, six, 0)
        for a in range(count):
            j = dofs[a]
            before = k < j or (tree.lead[k] == tree.lead[j] and k != j)
            if before and side[k] == side[j]:
                out[j, k] -= side[j] * six_dot(motion, j, six, 0)
            else:
                out[j, k] += side[j] * six_dot(motion, j, change, k)


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
def _add_cross(x, force, row, out, k):
    """out[k], the torque of it += x (3,) times the force of force[row]."""
    u, v, w = force[row, 3], force[row, 4], force[row, 5]
    out[k, 0] += x[1] * w - x[2] * v
    out[k, 1] += x[2] * u - x[0] * w
    out[k, 2] += x[0] * v - x[1] * u


@lean
def _move_contact(g: Geometry, i, motion, k, side, change, point):
    """change (3, 3), point (3,) := how axes and point of block i change with degree of freedom k;
    returns the change of its gap."""
    by = g.change[i, 1 if side > 0 else 0]
    for c in range(3):
        point[c] = six_dot(by, POINT + c, motion, k)
        change[0, c] = six_dot(by, NORMAL + c, motion, k)
        change[1, c] = six_dot(by, TANGENT + c, motion, k)
    _turn_tangent(g.frame[i], g.follows[i] > 0.0, change)
    return six_dot(by, GAP, motion, k)


@lean_leaf
def _speed_change(axes, change, rate, at, by, k, moved, away, n, turns):
    """Change of the speed along axis n, or of the turn about it if `turns`. rate[at]: the relative
    velocity, by[k]: its own change, both about the group's point; moved (3,): the contact's change,
    away (3,): where it is from that point."""
    x, y, z = rate[at, 0], rate[at, 1], rate[at, 2]
    a, b, c = by[k, 0], by[k, 1], by[k, 2]
    if turns:
        return (
            change[n, 0] * x + change[n, 1] * y + change[n, 2] * z
            + axes[n, 0] * a + axes[n, 1] * b + axes[n, 2] * c
        )  # fmt: skip
    u = rate[at, 3] + y * away[2] - z * away[1]
    v = rate[at, 4] + z * away[0] - x * away[2]
    w = rate[at, 5] + x * away[1] - y * away[0]
    p = by[k, 3] + b * away[2] - c * away[1] + y * moved[2] - z * moved[1]
    q = by[k, 4] + c * away[0] - a * away[2] + z * moved[0] - x * moved[2]
    r = by[k, 5] + a * away[1] - b * away[0] + x * moved[1] - y * moved[0]
    return (
        change[n, 0] * u + change[n, 1] * v + change[n, 2] * w
        + axes[n, 0] * p + axes[n, 1] * q + axes[n, 2] * r
    )  # fmt: skip


@kernel
def _relative_velocity(d, tree: Tree, first, second, point, motion: Motion, six, to, spare):
    """six[to] := velocity of the second body less that of the first, about the point."""
    com = numbers(pointer(d + _COM), 3 * tree.root.shape[0])
    for c in range(6):
        six[to, c] = 0.0
    for which in range(2):
        body = second if which == 0 else first
        at = 3 * tree.root[body]
        _about(
            motion.velocity, body, point[0] - com[at], point[1] - com[at + 1],
            point[2] - com[at + 2], six, spare,
        )  # fmt: skip
        for c in range(6):
            six[to, c] += (1 - 2 * which) * six[spare, c]


@kernel
def _change_velocities(d, tree: Tree, first, second, count, point, motion: Motion, meeting, out):
    """out[k] (6,) := the relative velocity's change with each degree of freedom k of a meeting."""
    six = meeting.six
    com = numbers(pointer(d + _COM), 3 * tree.root.shape[0])
    for e in range(count):
        k = meeting.dofs[e]
        side = meeting.side[k]
        body = second if side > 0 else first
        at = 3 * tree.root[body]
        for c in range(6):
            six[6, c] = motion.velocity[body, c] - motion.start[k, c]
            out[k, c] = 0.0
        _about(six, 6, point[0] - com[at], point[1] - com[at + 1], point[2] - com[at + 2], six, 7)
        cross_motion(meeting.motion, k, six, 7, 1.0 * side, out, k)


@lean
def _add_wrench(axes, f, i, rows, second, roll, away, six, to):
    """six[to] += torque and force of the impulses f[i] along axes (3, 3), about the point that the
    contact is `away` (3,) from."""
    for r in range(rows):
        scale = f[i, r] * (second if r == 2 else roll if r == 5 else 1.0)
        if r < 3:
            x, y, z = scale * axes[r, 0], scale * axes[r, 1], scale * axes[r, 2]
            six[to, 0] += away[1] * z - away[2] * y
            six[to, 1] += away[2] * x - away[0] * z
            six[to, 2] += away[0] * y - away[1] * x
            six[to, 3] += x
            six[to, 4] += y
            six[to, 5] += z
        else:
            for c in range(3):
                six[to, c] += scale * axes[r - 3, c]


@lean
def _differentiate_contact(
    b: Blocks, i, begin, count, place, f, pushed, g: Geometry, corrected, meeting: Meeting,
    out: Slopes,
):  # fmt: skip
    """One contact of a group that began with another, whose point all is about: its rows' and its
    gap's changes into `out`, its wrenches' into the meeting."""
    axes, six, away, moved = g.frame[i], meeting.six, meeting.three[0], meeting.three[1]
    rows, second, roll = b.head[i, Head.ROWS], place[i, Place.RATIO], place[i, Place.ROLL_RATIO]
    wrench, change, speeds = meeting.wrench, meeting.axes, out.speed[i]
    for c in range(3):
        away[c] = place[i, Place.X + c] - place[begin, Place.X + c]
        six[0, c], six[0, 3 + c] = 0.0, 0.0
        six[8, c], six[8, 3 + c] = 0.0, pushed[i] * axes[0, c]
    _add_wrench(axes, f, i, rows, second, roll, away, six, 0)
    for c in range(6):  # of the group
        six[1, c] += six[0, c]
    six[2, 3] += six[8, 3]
    six[2, 4] += six[8, 4]
    six[2, 5] += six[8, 5]
    six[2, 0] += away[1] * six[8, 5] - away[2] * six[8, 4]
    six[2, 1] += away[2] * six[8, 3] - away[0] * six[8, 5]
    six[2, 2] += away[0] * six[8, 4] - away[1] * six[8, 3]
    for e in range(count):
        k = meeting.dofs[e]
        gap = _move_contact(g, i, meeting.motion, k, meeting.side[k], change, moved)
        out.gap[i, k] = gap
        own = wrench[0]
        _add_wrench(change, f, i, rows, second, roll, away, own, k)
        _add_cross(moved, six, 0, own, k)
        for r in range(rows):
            n, turns = (r, False) if r < 3 else (r - 3, True)
            found = _speed_change(
                axes, change, six, 3, meeting.rate[0], k, moved, away, n, turns
            )  # fmt: skip
            speeds[r, k] = found * (second if r == 2 else roll if r == 5 else 1.0)
        if corrected:
            x = pushed[i]
            own = wrench[1]
            u, v, w = x * change[0, 0], x * change[0, 1], x * change[0, 2]
            own[k, 0] += away[1] * w - away[2] * v
            own[k, 1] += away[2] * u - away[0] * w
            own[k, 2] += away[0] * v - away[1] * u
            own[k, 3] += u
            own[k, 4] += v
            own[k, 5] += w
            _add_cross(moved, six, 8, own, k)
            out.speed_w[i, k] = _speed_change(
                axes, change, six, 4, meeting.rate[1], k, moved, away, 0, False
            )  # fmt: skip


@kernel
def _differentiate_group(
    d, tree: Tree, b: Blocks, begin, end, first, second, place, f, pushed, g: Geometry,
    ahead: Motion, apart: Motion, corrected, meeting: Meeting, out: Slopes,
):  # fmt: skip
    """The contacts from `begin` to `end` of one pair of geoms, of the given bodies; corrected:
    whether there is a correction of overlap."""
    point, six = place[begin, Place.X : Place.X + 3], meeting.six
    count = _find_sides(d, tree, first, second, point, meeting)
    _relative_velocity(d, tree, first, second, point, ahead, six, 3, 7)
    _change_velocities(d, tree, first, second, count, point, ahead, meeting, meeting.rate[0])
    if corrected:
        _relative_velocity(d, tree, first, second, point, apart, six, 4, 7)
        _change_velocities(d, tree, first, second, count, point, apart, meeting, meeting.rate[1])
    for c in range(6):  # row 1: the wrench, row 2: that of the correction
        six[1, c] = six[2, c] = 0.0
        for e in range(count):
            meeting.wrench[0, meeting.dofs[e], c] = meeting.wrench[1, meeting.dofs[e], c] = 0.0
    for i in range(begin, end):
        _differentiate_contact(
            b, i, begin, count, place, f, pushed, g, corrected, meeting, out
        )  # fmt: skip
    _add_momentum(tree, count, six, 1, 0, meeting, out.push_q)
    if corrected:
        _add_momentum(tree, count, six, 2, 1, meeting, out.push_w)
    _forget_sides(tree, first, second, meeting)


@kernel
def differentiate_rows(
    m, d, tree: Tree, b: Blocks, count, key, place, f, pushed, g: Geometry, ahead: Motion,
    apart: Motion, corrected, meeting: Meeting, out: Slopes,
):  # fmt: skip
    """Adds to `out` what the rows of all blocks change with positions. f (n, ROWS): impulses;
    pushed (n,): those of the correction; ahead, apart: velocities of the bodies at v+ and at the
    correction.

    Limits and dry friction have rows of constant numbers, and a limit's gap changes as its row."""
    body = integers(pointer(m + _GEOM_BODY), pointer(m + _NGEOM))
    begin = 0
    while begin < count:
        i, end = begin, begin + 1
        if key[i, Key.INDEX] >= 0:
            while end < count and key[end, 0] == key[i, 0] and key[end, 1] == key[i, 1]:
                end += 1
            _differentiate_group(
                d, tree, b, begin, end, body[key[i, 0]], body[key[i, 1]], place, f, pushed, g,
                ahead, apart, corrected, meeting, out,
            )  # fmt: skip
        elif b.head[i, Head.KIND] == Kind.CONTACT:
            c0, a0 = b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
            for c in range(b.head[i, Head.WIDTH]):
                out.gap[i, b.column[c0 + c]] = b.value[a0 + c]
        begin = end


@kernel
def differentiate_applied(d, tree: Tree, alone, dt, meeting: Meeting, out: Slopes):
    """Adds what forces that users apply to bodies change with positions: they act at the centre of
    mass, in the world's directions. alone (nv,): not 0 for bodies that are seen to elsewhere."""
    nbody = tree.parent.shape[0]
    applied = numbers(pointer(d + _XFRC), 6 * nbody)
    place = numbers(pointer(d + _XIPOS), 3 * nbody)
    six = meeting.six
    for i in range(1, nbody):
        total = 0.0
        for c in range(3):  # a force first, then a torque
            six[1, 3 + c], six[1, c] = dt * applied[6 * i + c], dt * applied[6 * i + 3 + c]
            total += abs(six[1, c]) + abs(six[1, 3 + c])
        if total == 0.0 or (tree.last[i] >= 0 and alone[tree.last[i]] != 0):
            continue
        count = _find_sides(d, tree, 0, i, place[3 * i : 3 * i + 3], meeting)
        for e in range(count):
            k = meeting.dofs[e]
            for c in range(3):
                p, q = (c + 1) % 3, (c + 2) % 3
                moved = meeting.motion[k]
                meeting.wrench[0, k, c] = (
                    moved[3 + p] * six[1, 3 + q] - moved[3 + q] * six[1, 3 + p]
                )
                meeting.wrench[0, k, 3 + c] = 0.0
        _add_momentum(tree, count, six, 1, 0, meeting, out.push_q)
        _forget_sides(tree, 0, i, meeting)
