"""How momentum and the speeds of rows change with positions, by way of contacts: all columns.

With S_j the motion about a pair's point that degree of freedom j gives to what it moves, R_r, V and
(T, F) as in `maps.py`,

    momentum_j = s_j S_j . (T, F)        s_j = 1 if j moves the second body alone, -1 if the first
    dmomentum_j / dq_k = s_j ((S_k x S_j) . (T, F) if k comes before j, + S_j . d(T, F))
    dspeed_r / dq_k    = dR_r . V + R_r . s_k S_k x (V_k' - V_k)

V_k' the velocity of the body that k moves, V_k that of what k is fixed to. The momentum of what
touches nothing that moves is added up by bodies instead (`loads.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from stiction.bridge.layout import integers, numbers, offset, pointer
from stiction.bridge.rows import Key, Place
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Blocks, Head, Kind
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.bodies import Motion, Tree
from stiction.simulate.derivatives.loads import Load, add_load, carry_load, clear_load
from stiction.simulate.derivatives.maps import Maps, pair_end
from stiction.simulate.derivatives.meetings import (
    Meeting,
    change_bends,
    change_velocities,
    find_sides,
    forget_sides,
    grips_any,
)
from stiction.simulate.derivatives.motions import cross_force, six_dot

_XIPOS, _XFRC = offset("mjData", "xipos"), offset("mjData", "xfrc_applied")
_COM = offset("mjData", "subtree_com")
_MASS, _GRAVCOMP = offset("mjModel", "body_mass"), offset("mjModel", "body_gravcomp")
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
    push_w: Array  # (nv, nv) of the overlap's correction, columns padded
    speed_w: Array  # (n, 3, nv) of the first rows, at the correction
    act_a: Array  # (na, na) activations after the step, by activations
    act_u: Array  # (na, nu)


@lean_leaf
def _loaded_body(tree: Tree, alone, first, second):
    """The one of two bodies that moves, or -1 where both do, or neither, or it is seen to elsewhere
    (alone, (nv,): not 0)."""
    if (tree.last[first] >= 0) == (tree.last[second] >= 0):
        return -1
    moving = first if tree.last[first] >= 0 else second
    return -1 if alone[tree.last[moving]] != 0 else moving


@lean
def load_bodies(
    m, d, tree: Tree, alone, count, key, place, needed, scale, corrected, maps: Maps, load: Load,
    load_w: Load,
):  # fmt: skip
    """Loads, over the scale, of all bodies that touch what never moves, and those of the
    correction, whose scale is -1."""
    body = integers(pointer(m + _GEOM_BODY), pointer(m + _NGEOM))
    com = numbers(pointer(d + _COM), 3 * tree.root.shape[0])
    clear_load(load)
    clear_load(load_w)
    begin = 0
    while begin < count:
        end = pair_end(key, begin, count)
        if key[begin, Key.INDEX] >= 0 and needed[begin] == 1:
            first, second = body[key[begin, 0]], body[key[begin, 1]]
            i = _loaded_body(tree, alone, first, second)
            if i >= 0:
                which, c = (1 if i == second else 0), 3 * tree.root[i]
                x, y = place[begin, Place.X] - com[c], place[begin, Place.Y] - com[c + 1]
                z, side = place[begin, Place.Z] - com[c + 2], 2.0 * which - 1.0
                total = maps.total[begin]
                add_load(i, x, y, z, side / scale, total, 0, maps.wrench[begin, which], load)
                if corrected:
                    add_load(i, x, y, z, -side, total, 1, maps.wrench_w[begin, which], load_w)
        begin = end
    carry_load(tree.parent, load)
    carry_load(tree.parent, load_w)


@lean
def _add_momentum(tree: Tree, count, wrench, row, meeting: Meeting, out):
    """out[j, k] += the change of momentum by a torque and a force wrench[row], whose own changes
    are meeting.wrench. (S_k x S_j) . (T, F) is -S_j . S_k x* (T, F)."""
    side, dofs, motion, six = meeting.side, meeting.dofs, meeting.motion, meeting.six
    change = meeting.wrench
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


@lean
def _carry_wrench(count, wrench, meeting: Meeting):
    """meeting.wrench := the changes of a wrench, by its map (2, 6, 6), with each degree of
    freedom."""
    for e in range(count):
        k = meeting.dofs[e]
        by = wrench[1 if meeting.side[k] > 0 else 0]
        for c in range(6):
            meeting.wrench[k, c] = six_dot(by, c, meeting.motion, k)


@lean
def _fill_pair(
    d, tree: Tree, b: Blocks, begin, end, first, second, place, ahead: Motion, apart: Motion,
    corrected, gripped, half, used, loaded, maps: Maps, meeting: Meeting, out: Slopes,
):  # fmt: skip
    """The slopes of one pair's contacts, from their maps; loaded: whether momentum is added up by
    bodies."""
    point, motion, rate = place[begin, Place.X : Place.X + 3], meeting.motion, meeting.rate
    count = find_sides(d, tree, first, second, point, meeting)
    change_velocities(d, tree, first, second, count, point, ahead, meeting)
    for i in range(begin, end):
        speeds, row = out.speed[i], maps.row[i]
        for e in range(count):
            k = meeting.dofs[e]
            which = 1 if meeting.side[k] > 0 else 0
            by = maps.speed[i, which]
            out.gap[i, k] = six_dot(maps.gap[i], which, motion, k)
            for r in range(b.head[i, Head.ROWS]):
                if used[i, r] == 1:
                    speeds[r, k] = six_dot(by, r, motion, k) + six_dot(row, r, rate, k)
    if not loaded:
        _carry_wrench(count, maps.wrench[begin], meeting)
        _add_momentum(tree, count, maps.total[begin], 0, meeting, out.push_q)
    if corrected:
        change_velocities(d, tree, first, second, count, point, apart, meeting)
        if grips_any(gripped, begin, end):
            change_bends(d, tree, first, second, count, point, half, ahead, meeting)
        for i in range(begin, end):
            parting = meeting.bend if gripped[i] == 1 else rate
            for r in range(3 if gripped[i] == 1 else 1):
                for e in range(count):
                    k = meeting.dofs[e]
                    by = maps.speed_w[i, 1 if meeting.side[k] > 0 else 0]
                    out.speed_w[i, r, k] = six_dot(by, r, motion, k)
                    out.speed_w[i, r, k] += six_dot(maps.row[i], r, parting, k)
        if not loaded:
            _carry_wrench(count, maps.wrench_w[begin], meeting)
            _add_momentum(tree, count, maps.total[begin], 1, meeting, out.push_w)
    forget_sides(tree, first, second, meeting)


@lean
def differentiate_rows(
    m, d, tree: Tree, b: Blocks, count, key, place, ahead: Motion, apart: Motion, corrected,
    gripped, half, used, needed, alone, maps: Maps, meeting: Meeting, out: Slopes,
):  # fmt: skip
    """Adds to `out` what the rows of all blocks change with positions, by their maps, but for
    `load_bodies`; used (n, ROWS): 1 for rows whose speeds matter; needed (n,): for contacts; the
    rest as for `map_contacts`.

    Limits and dry friction have rows of constant numbers, and a limit's gap changes as its row."""
    body = integers(pointer(m + _GEOM_BODY), pointer(m + _NGEOM))
    begin = 0
    while begin < count:
        end = pair_end(key, begin, count)
        if key[begin, Key.INDEX] >= 0:
            first, second = body[key[begin, 0]], body[key[begin, 1]]
            if needed[begin] == 1:
                _fill_pair(
                    d, tree, b, begin, end, first, second, place, ahead, apart, corrected, gripped,
                    half, used,
                    _loaded_body(tree, alone, first, second) >= 0, maps, meeting, out,
                )  # fmt: skip
        elif b.head[begin, Head.KIND] == Kind.CONTACT:
            c0, a0 = b.head[begin, Head.COLUMN], b.head[begin, Head.VALUE]
            for c in range(b.head[begin, Head.WIDTH]):
                out.gap[begin, b.column[c0 + c]] = b.value[a0 + c]
        begin = end


@lean
def add_fixed_force(tree: Tree, count, meeting: Meeting, out):
    """Adds what a torque and a force meeting.six[1], of the world's directions, at a point that
    moves with a body, change with positions; the sides of that body and the world are found."""
    six = meeting.six
    for e in range(count):
        k = meeting.dofs[e]
        for c in range(3):
            p, q = (c + 1) % 3, (c + 2) % 3
            moved = meeting.motion[k]
            meeting.wrench[k, c] = moved[3 + p] * six[1, 3 + q] - moved[3 + q] * six[1, 3 + p]
            meeting.wrench[k, 3 + c] = 0.0
    _add_momentum(tree, count, six, 1, meeting, out)


@lean
def differentiate_applied(m, d, tree: Tree, alone, dt, meeting: Meeting, out: Slopes):
    """Adds what forces that users apply to bodies change with positions, and what of gravity is
    compensated: they act at the centre of mass, in the world's directions. alone (nv,): not 0 for
    bodies that are seen to elsewhere."""
    nbody = tree.parent.shape[0]
    applied = numbers(pointer(d + _XFRC), 6 * nbody)
    place = numbers(pointer(d + _XIPOS), 3 * nbody)
    mass, lifted = numbers(pointer(m + _MASS), nbody), numbers(pointer(m + _GRAVCOMP), nbody)
    six = meeting.six
    for i in range(1, nbody):
        total = 0.0
        for c in range(3):  # a force first, then a torque
            six[1, 3 + c], six[1, c] = dt * applied[6 * i + c], dt * applied[6 * i + 3 + c]
            six[1, 3 + c] += dt * tree.base[3 + c] * mass[i] * lifted[i]
            total += abs(six[1, c]) + abs(six[1, 3 + c])
        if total == 0.0 or (tree.last[i] >= 0 and alone[tree.last[i]] != 0):
            continue
        count = find_sides(d, tree, 0, i, place[3 * i : 3 * i + 3], meeting)
        add_fixed_force(tree, count, meeting, out.push_q)
        forget_sides(tree, 0, i, meeting)
