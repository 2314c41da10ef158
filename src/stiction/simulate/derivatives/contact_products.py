"""One change of positions taken forward through contacts, or one gradient taken back.

Forward, contacts are moved by their maps (`maps.py`). Back, of a pair of geoms, with y the gradient
by momentum, Y the relative velocity that joint speeds y would make, l_r the gradient by the speed
of row r,

    y . dmomentum / dq_k = (T, F) . s_k S_k x (Y_k' - Y_k) + Y . d(T, F)
    l . dspeed / dq_k    = sum of l_r R_r . s_k S_k x (V_k' - V_k) + l_r dR_r . V

so that a gradient by the motion of each body, six numbers, is all that its degrees of freedom read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.bridge.layout import integers, offset, pointer
from stiction.bridge.rows import Key, Place
from stiction.contact.derivatives.held_rows import Held, Size
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import ROWS, Blocks, Head, Kind
from stiction.kernels.compile import lean
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.bodies import Motion, Tree
from stiction.simulate.derivatives.maps import Maps, pair_end
from stiction.simulate.derivatives.meetings import (
    Meeting,
    change_bends,
    change_velocities,
    find_sides,
    forget_sides,
    grips_any,
    relative_velocity,
)
from stiction.simulate.derivatives.motions import cross_motion, six_dot

_GEOM_BODY, _NGEOM = offset("mjModel", "geom_bodyid"), offset("mjModel", "ngeom")


@packed
class Change(NamedTuple):
    """Changes of a step's problem and of its answer, or gradients by them; n blocks, m rows."""

    place: Array  # (nv,) of positions before the step
    push: Array  # (nv,)
    push_w: Array  # (nv,)
    speed: Array  # (n, ROWS)
    gap: Array  # (n,)
    speed_w: Array  # (n, 3)
    wanted: Array  # (m,) speeds that held rows are asked for
    rate: Array  # (nv,) of v+
    moved: Array  # (nv,) of the correction


def allocate_change(nv: int, n: int) -> Change:
    """Room for n blocks."""
    return Change(
        np.zeros(nv), np.zeros(nv), np.zeros(nv), np.zeros((n, ROWS)), np.zeros(n),
        np.zeros((n, 3)), np.zeros(ROWS * n), np.zeros(nv), np.zeros(nv),
    )  # fmt: skip


@lean
def _add_push(tree: Tree, count, wrench, total, row, x, meeting: Meeting, out):
    """out (nv,) += the change of momentum by the wrench total[row], whose map is `wrench` (2, 6,
    6), where positions change by x (nv,); six[0] and six[1]: by how much the bodies move."""
    six, dofs, side, motion = meeting.six, meeting.dofs, meeting.side, meeting.motion
    for c in range(6):
        six[5, c] = six_dot(wrench[0], c, six, 0) + six_dot(wrench[1], c, six, 1)
        six[6, c] = 0.0
    for e in range(count - 1, -1, -1):  # from the root: six[6] is how far j is carried along
        j = dofs[e]
        if e < count - 1 and side[dofs[e + 1]] != side[j]:
            for c in range(6):
                six[6, c] = 0.0
        if tree.lead[j] == j:
            for k in range(j, tree.tail[j] + 1):
                for c in range(6):
                    six[6, c] += motion[k, c] * x[k]
        for c in range(6):
            six[8, c] = 0.0
        cross_motion(six, 6, motion, j, 1.0, six, 8)
        out[j] += side[j] * (six_dot(motion, j, six, 5) + six_dot(six, 8, total, row))


@lean
def _push_pair(
    d, tree: Tree, b: Blocks, begin, end, first, second, place, ahead: Motion, apart: Motion,
    corrected, gripped, half, maps: Maps, meeting: Meeting, out: Change,
):  # fmt: skip
    """Takes out.place forward through one pair's contacts."""
    point, x = place[begin, Place.X : Place.X + 3], out.place
    six, motion, rate = meeting.six, meeting.motion, meeting.rate
    count = find_sides(d, tree, first, second, point, meeting)
    for turn in range(2 if corrected else 1):
        change_velocities(
            d, tree, first, second, count, point, ahead if turn == 0 else apart, meeting
        )
        grips = turn == 1 and grips_any(gripped, begin, end)
        if grips:
            change_bends(d, tree, first, second, count, point, half, ahead, meeting)
        for c in range(6):
            six[0, c] = six[1, c] = six[2, c] = six[3, c] = 0.0
        for e in range(count):
            k = meeting.dofs[e]
            which = 1 if meeting.side[k] > 0 else 0
            for c in range(6):
                six[which, c] += motion[k, c] * x[k]
                six[2, c] += rate[k, c] * x[k]
                if grips:
                    six[3, c] += meeting.bend[k, c] * x[k]
        for i in range(begin, end):
            if turn == 1:
                for r in range(3 if gripped[i] == 1 else 1):
                    out.speed_w[i, r] = six_dot(maps.row[i], r, six, 3 if gripped[i] == 1 else 2)
                    for which in range(2):
                        out.speed_w[i, r] += six_dot(maps.speed_w[i, which], r, six, which)
                continue
            out.gap[i] = six_dot(maps.gap[i], 0, six, 0) + six_dot(maps.gap[i], 1, six, 1)
            for r in range(b.head[i, Head.ROWS]):
                out.speed[i, r] = six_dot(maps.row[i], r, six, 2)
                for which in range(2):
                    out.speed[i, r] += six_dot(maps.speed[i, which], r, six, which)
        if turn == 0:
            _add_push(
                tree, count, maps.wrench[begin], maps.total[begin], 0, x, meeting, out.push
            )  # fmt: skip
        else:
            _add_push(
                tree, count, maps.wrench_w[begin], maps.total[begin], 1, x, meeting, out.push_w
            )  # fmt: skip
    forget_sides(tree, first, second, meeting)


@lean
def _gather(b: Blocks, begin, end, corrected, gripped, maps: Maps, g: Change, six):
    """From the gradients by rows, gaps and momentum of one pair: six[2], six[5] and six[4], the
    wrenches that its rows make at v+, at the correction and where that grips; six[8] and six[9],
    the gradients by the motions of its bodies. six[0] and six[1]: relative velocities at g.push
    and g.push_w."""
    for c in range(6):
        six[2, c] = six[4, c] = six[5, c] = 0.0
        for which in range(2):
            total = 0.0
            for r in range(6):
                total += maps.wrench[begin, which, r, c] * six[0, r]
                if corrected:
                    total += maps.wrench_w[begin, which, r, c] * six[1, r]
            six[8 + which, c] = total
    for i in range(begin, end):
        for c in range(6):
            for which in range(2):
                six[8 + which, c] += g.gap[i] * maps.gap[i, which, c]
            for r in range(3 if gripped[i] == 1 else int(corrected)):
                six[4 if gripped[i] == 1 else 5, c] += g.speed_w[i, r] * maps.row[i, r, c]
                for which in range(2):
                    six[8 + which, c] += g.speed_w[i, r] * maps.speed_w[i, which, r, c]
        for r in range(b.head[i, Head.ROWS]):
            weight = g.speed[i, r]
            if weight != 0.0:
                for c in range(6):
                    six[2, c] += weight * maps.row[i, r, c]
                    for which in range(2):
                        six[8 + which, c] += weight * maps.speed[i, which, r, c]


@lean
def _add_rates(count, wrench, row, meeting: Meeting, out):
    """out (nv,) += wrench[row] along the changes of the relative velocity."""
    for e in range(count):
        k = meeting.dofs[e]
        out[k] += six_dot(wrench, row, meeting.rate, k)


@lean
def _pull_pair(
    d, tree: Tree, b: Blocks, begin, end, first, second, place, ahead: Motion, apart: Motion,
    back: Motion, back_w: Motion, corrected, gripped, half, maps: Maps, meeting: Meeting, g: Change,
):  # fmt: skip
    """Adds to g.place the gradient that comes through one pair's contacts. back, back_w: velocities
    of the bodies at joint speeds g.push and g.push_w."""
    point, six = place[begin, Place.X : Place.X + 3], meeting.six
    count = find_sides(d, tree, first, second, point, meeting)
    relative_velocity(d, tree, first, second, point, back, six, 0, 7)
    if corrected:
        relative_velocity(d, tree, first, second, point, back_w, six, 1, 7)
    _gather(b, begin, end, corrected, gripped, maps, g, six)
    for e in range(count):
        k = meeting.dofs[e]
        g.place[k] += six_dot(six, 9 if meeting.side[k] > 0 else 8, meeting.motion, k)
    change_velocities(d, tree, first, second, count, point, back, meeting)
    _add_rates(count, maps.total[begin], 0, meeting, g.place)
    change_velocities(d, tree, first, second, count, point, ahead, meeting)
    _add_rates(count, six, 2, meeting, g.place)
    if corrected:
        change_velocities(d, tree, first, second, count, point, back_w, meeting)
        _add_rates(count, maps.total[begin], 1, meeting, g.place)
        change_velocities(d, tree, first, second, count, point, apart, meeting)
        _add_rates(count, six, 5, meeting, g.place)
        if grips_any(gripped, begin, end):
            change_bends(d, tree, first, second, count, point, half, ahead, meeting)
            for e in range(count):
                k = meeting.dofs[e]
                g.place[k] += six_dot(six, 4, meeting.bend, k)
    forget_sides(tree, first, second, meeting)


@lean
def push_contacts(
    m, d, tree: Tree, b: Blocks, count, key, place, ahead: Motion, apart: Motion, corrected,
    gripped, half, needed, maps: Maps, meeting: Meeting, out: Change,
):  # fmt: skip
    """Takes out.place forward: adds to out.push and out.push_w, fills speeds and gaps of contacts
    that are needed (n,)."""
    body = integers(pointer(m + _GEOM_BODY), pointer(m + _NGEOM))
    for i in range(count):
        out.gap[i] = 0.0
        for r in range(3):
            out.speed_w[i, r] = 0.0
        for r in range(ROWS):
            out.speed[i, r] = 0.0
    begin = 0
    while begin < count:
        end = pair_end(key, begin, count)
        if key[begin, Key.INDEX] >= 0:
            if needed[begin] == 1:
                _push_pair(
                    d, tree, b, begin, end, body[key[begin, 0]], body[key[begin, 1]], place, ahead,
                    apart, corrected, gripped, half, maps, meeting, out,
                )  # fmt: skip
        elif b.head[begin, Head.KIND] == Kind.CONTACT:  # of a limit
            c0, a0 = b.head[begin, Head.COLUMN], b.head[begin, Head.VALUE]
            for c in range(b.head[begin, Head.WIDTH]):
                out.gap[begin] += b.value[a0 + c] * out.place[b.column[c0 + c]]
        begin = end


@lean
def pull_contacts(
    m, d, tree: Tree, b: Blocks, count, key, place, ahead: Motion, apart: Motion, back: Motion,
    back_w: Motion, corrected, gripped, half, needed, maps: Maps, meeting: Meeting, g: Change,
):  # fmt: skip
    """The transpose: adds to g.place."""
    body = integers(pointer(m + _GEOM_BODY), pointer(m + _NGEOM))
    begin = 0
    while begin < count:
        end = pair_end(key, begin, count)
        if key[begin, Key.INDEX] >= 0:
            if needed[begin] == 1:
                _pull_pair(
                    d, tree, b, begin, end, body[key[begin, 0]], body[key[begin, 1]], place, ahead,
                    apart, back, back_w, corrected, gripped, half, maps, meeting, g,
                )  # fmt: skip
        elif b.head[begin, Head.KIND] == Kind.CONTACT:
            c0, a0 = b.head[begin, Head.COLUMN], b.head[begin, Head.VALUE]
            for c in range(b.head[begin, Head.WIDTH]):
                g.place[b.column[c0 + c]] += b.value[a0 + c] * g.gap[begin]
        begin = end


@lean
def push_rows(dt, b: Blocks, h: Held, source, c: Change):
    """From speeds and gaps: adds to c.push what curves make of them, fills c.wanted."""
    for k in range(h.size[Size.CURVED]):
        i, x, y, curve = h.curved[k], h.across[k, 0], h.across[k, 1], h.across[k, 2]
        width, c0, a0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
        slip = curve * (x * c.speed[i, 1] + y * c.speed[i, 2])
        for e in range(width):
            along = x * b.value[a0 + width + e] + y * b.value[a0 + 2 * width + e]
            c.push[b.column[c0 + e]] -= slip * along
    for a in range(h.size[Size.HELD]):
        i, r = h.block[a, 0], h.block[a, 1]
        if r == 1:
            c.wanted[a] = -h.direction[a, 0] * c.speed[i, 1] - h.direction[a, 1] * c.speed[i, 2]
            continue
        c.wanted[a] = -c.speed[i, r]
        if r == 0 and source[i] >= 0:
            c.wanted[a] -= c.gap[source[i]] / dt


@lean
def pull_rows(dt, b: Blocks, h: Held, source, g: Change):
    """The transpose: from g.push and g.wanted, adds to g.speed and g.gap."""
    for k in range(h.size[Size.CURVED]):
        i, x, y, curve = h.curved[k], h.across[k, 0], h.across[k, 1], h.across[k, 2]
        width, c0, a0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
        slip = 0.0
        for e in range(width):
            along = x * b.value[a0 + width + e] + y * b.value[a0 + 2 * width + e]
            slip += curve * along * g.push[b.column[c0 + e]]
        g.speed[i, 1] -= x * slip
        g.speed[i, 2] -= y * slip
    for a in range(h.size[Size.HELD]):
        i, r = h.block[a, 0], h.block[a, 1]
        if r == 1:
            g.speed[i, 1] -= h.direction[a, 0] * g.wanted[a]
            g.speed[i, 2] -= h.direction[a, 1] * g.wanted[a]
            continue
        g.speed[i, r] -= g.wanted[a]
        if r == 0 and source[i] >= 0:
            g.gap[source[i]] -= g.wanted[a] / dt
