"""How equalities of joints and of points change with positions: rigid ones the speeds that they ask
for, soft ones their impulse.

With r the error of a row, J = dr/dq, and MuJoCo's numbers of a soft one, its impulse is

    f  = -D (J v+ - (1 - h B) J v + h K I r)        D = I / (1 - I) / A
    df = -D (dJ (v+ - (1 - h B) v) + h K (I dr + r dI)) + f dI / (I (1 - I))

The impedance I is a function of r, or of the length of all errors of a point; K, B and A are
constant. Momentum changes by J' df + dJ' f. At the correction w of overlap, the impulse is -D J w.

Two joints have a polynomial between them. Of two points, MuJoCo adds h dJ/dt v: with the
acceleration (v+ - v) / h of the step, what is in brackets is h (a + B v) of one point less that of
the other, and h K I r. As degree of freedom k moves, with s = S_k at the point, v_k and a_k the
velocity and the acceleration of what k is fixed to, and p_k = v_k x S_k, all about the point,

    dV = S_k x (V - v_k)
    dA = S_k x (A - a_k) + p_k x (V - v_k)
    dv = dV + turn(V) x s                           the straight part, here and below
    da = dA + turn(A) x s + turn(dV) x v + turn(V) x dv

and with its speed, where v_k' is the velocity after k,

    da = p_k + S_k x (V - v_k') + turn(S_k) x v + turn(V) x s
"""

from __future__ import annotations

import mujoco
import numpy as np

from stiction.bridge.layout import integer, number, numbers, offset, pointer, table
from stiction.bridge.rows import Key, Place
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind
from stiction.kernels.compile import lean, lean_leaf
from stiction.simulate.derivatives.bodies import Motion, Tree
from stiction.simulate.derivatives.contact_products import Change
from stiction.simulate.derivatives.contacts import Slopes, add_fixed_force
from stiction.simulate.derivatives.meetings import (
    Meeting,
    about,
    arm_of,
    change_velocities,
    find_sides,
    forget_sides,
    relative_velocity,
)
from stiction.simulate.derivatives.memory import Working
from stiction.simulate.derivatives.motions import cross_motion
from stiction.simulate.derivatives.step_system import is_corrected
from stiction.simulate.time_stepping.workspace import Step

_NE, _NEFC, _KBIP, _XPOS, _XMAT, _SITE, _QPOS, _QVEL = (
    offset("mjData", name)
    for name in (
        "ne", "nefc", "efc_KBIP", "xpos", "xmat", "site_xpos", "qpos", "qvel",
    )
)  # fmt: skip
_TYPE, _OBJECT, _FIRST, _SECOND, _DATA = (
    offset("mjModel", f"eq_{name}") for name in ("type", "objtype", "obj1id", "obj2id", "data")
)
_TIMESTEP = offset("mjModel", "opt", "timestep")
_SITE_BODY, _QPOS0 = offset("mjModel", "site_bodyid"), offset("mjModel", "qpos0")
_QPOS_OF, _DOF_OF = offset("mjModel", "jnt_qposadr"), offset("mjModel", "jnt_dofadr")
_POINT, _JOINT = int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_JOINT)
_OF_SITES = int(mujoco.mjtObj.mjOBJ_SITE)
_NUMBERS = int(mujoco.mjNEQDATA)


@lean_leaf
def _equality(key, i):
    """The equality that row i belongs to."""
    return key[i, Key.SECOND] // 8


@lean_leaf
def _end_of(key, begin, count):
    """Where the rows of the equality end that begins there."""
    end = begin + 1
    while end < count and _equality(key, end) == _equality(key, begin):
        end += 1
    return end


@lean
def are_known(m, d, step: Step):
    """Whether all equalities are of joints or of points, and no mocap body leads any."""
    begin, count = 0, integer(d + _NE)
    kinds = pointer(m + _TYPE)
    while begin < count:
        end = _end_of(step.key, begin, count)
        kind = integer(kinds + 4 * _equality(step.key, begin))
        for i in range(begin, end):
            if step.place[i, Place.LED] > 0.0:
                return False
        if not (kind == _JOINT or (kind == _POINT and end - begin == 3)):
            return False
        begin = end
    return True


@lean
def _bend_joints(m, d, which, i, keep, loads, step: Step, w: Working, out: Slopes):
    """What the polynomial's curve does. loads: impulses of the rows, in the step and at the
    correction; keep: 1 - h B, or 0 where they are rigid."""
    nv = w.sigma.shape[0]
    second = integer(pointer(m + _SECOND) + 4 * which)
    if second < 0:
        return
    at, j = integer(pointer(m + _QPOS_OF) + 4 * second), integer(pointer(m + _DOF_OF) + 4 * second)
    qpos, start = numbers(pointer(d + _QPOS), at + 1), numbers(pointer(m + _QPOS0), at + 1)
    factor = numbers(pointer(m + _DATA) + 8 * _NUMBERS * which, _NUMBERS)
    far, v = qpos[at] - start[at], numbers(pointer(d + _QVEL), nv)
    curve = -(2.0 * factor[2] + far * (6.0 * factor[3] + 12.0 * factor[4] * far))
    out.speed[i, 0, j] = curve * (step.v_plus[j] - keep * v[j])
    out.speed_w[i, 0, j] = curve * w.correction[j]
    out.push_q[j, j] += curve * loads[0, 0]
    out.push_w[j, j] += curve * loads[1, 0]


@lean
def _find_point(m, d, which, side, point):
    """point (3,) := where that equality holds its first body (0) or its second one; the body."""
    body = np.int64(integer(pointer(m + (_FIRST if side == 0 else _SECOND)) + 4 * which))
    if integer(pointer(m + _OBJECT) + 4 * which) == _OF_SITES:
        place = numbers(pointer(d + _SITE) + 24 * body, 3)
        for c in range(3):
            point[c] = place[c]
        return np.int64(integer(pointer(m + _SITE_BODY) + 4 * body))
    given = numbers(pointer(m + _DATA) + 8 * _NUMBERS * which + 24 * side, 3)
    place = numbers(pointer(d + _XPOS) + 24 * body, 3)
    turn = numbers(pointer(d + _XMAT) + 72 * body, 9)
    for c in range(3):
        point[c] = place[c]
        for k in range(3):
            point[c] += turn[3 * c + k] * given[k]
    return body


@lean_leaf
def _cross(table, a, other, b, c):
    """Component c of the product of a turn, the first three of table[a], and three straight
    numbers, the last of other[b]."""
    p, q = (c + 1) % 3, (c + 2) % 3
    return table[a, p] * other[b, 3 + q] - table[a, q] * other[b, 3 + p]


@lean
def _bend_point(d, tree: Tree, body, count, point, motion: Motion, sign, meeting: Meeting, out):
    """out (3, nv) += sign times the changes of the velocity of a body's point."""
    six, rate = meeting.six, meeting.rate
    relative_velocity(d, tree, 0, body, point, motion, six, 3, 7)
    change_velocities(d, tree, 0, body, count, point, motion, meeting)
    for e in range(count):
        k = meeting.dofs[e]
        for c in range(3):
            out[c, k] += sign * (rate[k, 3 + c] + _cross(six, 3, meeting.motion, k, c))


@lean
def _accelerate_point(
    d, tree: Tree, body, count, point, dt, rate, sign, now: Motion, meeting: Meeting, by_place,
    by_speed,
):  # fmt: skip
    """by_place, by_speed (3, nv) += sign dt times the changes of a + rate v and of a, acceleration
    and velocity of a body's point, by positions and by speeds."""
    six, motion = meeting.six, meeting.motion
    arm = arm_of(d, tree, body, point)
    about(now.velocity, body, arm, six, 3)
    about(now.acceleration, body, arm, six, 4)
    for e in range(count):
        k = meeting.dofs[e]
        about(now.start, k, arm, six, 5)
        about(now.push, k, arm, six, 6)
        about(now.end, k, arm, six, 8)
        for c in range(6):
            six[7, c] = six[9, c] = six[0, c] = 0.0
        cross_motion(six, 5, motion, k, 1.0, six, 7)  # p_k
        for c in range(6):
            six[5, c], six[6, c] = six[3, c] - six[5, c], six[4, c] - six[6, c]
            six[8, c], six[1, c] = six[3, c] - six[8, c], six[7, c]
        cross_motion(motion, k, six, 5, 1.0, six, 9)  # dV
        cross_motion(motion, k, six, 6, 1.0, six, 0)  # dA
        cross_motion(six, 7, six, 5, 1.0, six, 0)
        cross_motion(motion, k, six, 8, 1.0, six, 1)
        for c in range(3):
            six[2, c] = six[3, c]  # the turn of V, and dv
            six[2, 3 + c] = six[9, 3 + c] + _cross(six, 3, motion, k, c)
        for c in range(3):
            change = six[0, 3 + c] + _cross(six, 4, motion, k, c)
            change += _cross(six, 9, six, 3, c) + _cross(six, 2, six, 2, c)
            by_place[c, k] += sign * dt * (change + rate * six[2, 3 + c])
            change = six[1, 3 + c] + _cross(motion, k, six, 3, c) + _cross(six, 3, motion, k, c)
            by_speed[c, k] += sign * dt * change


@lean
def _bend_points(
    m, d, tree: Tree, which, begin, soft, rate, loads, ahead: Motion, apart: Motion, now: Motion,
    corrected, meeting: Meeting, out: Slopes,
):  # fmt: skip
    """The same of two points, whose three rows begin there; rate: B. Of soft ones, what speeds
    change is left as the second line of their own."""
    point, six, dt = meeting.joined[2], meeting.six, number(m + _TIMESTEP)
    speed, speed_w = out.speed[begin : begin + 3, 0], out.speed_w[begin : begin + 3, 0]
    by_speed = out.speed[begin : begin + 3, 1]
    for side in range(2):
        body, sign = _find_point(m, d, which, side, point), 1.0 - 2.0 * side
        count = find_sides(d, tree, 0, body, point, meeting)
        if soft:
            _accelerate_point(
                d, tree, body, count, point, dt, rate, sign, now, meeting, speed, by_speed
            )
        else:
            _bend_point(d, tree, body, count, point, ahead, sign, meeting, speed)
        if corrected:
            _bend_point(d, tree, body, count, point, apart, sign, meeting, speed_w)
        for turn in range(2 if corrected else 1):
            for c in range(3):
                six[1, c], six[1, 3 + c] = 0.0, sign * loads[turn, c]
            add_fixed_force(tree, count, meeting, out.push_q if turn == 0 else out.push_w)
        forget_sides(tree, 0, body, meeting)


@lean
def _push_softly(d, dt, b: Blocks, begin, end, loads, step: Step, out: Slopes):
    """Turns the changes of the speeds of an equality's rows into those of their impulses, and adds
    what these push."""
    nv, place = out.push_q.shape[0], step.place
    kbip = table(pointer(d + _KBIP), integer(d + _NEFC), 4)
    length = 0.0
    for i in range(begin, end):
        length += place[i, Place.GAP] * place[i, Place.GAP]
    length = np.sqrt(length)
    for i in range(begin, end):
        e, error, drag = step.key[i, Key.ROW], place[i, Place.GAP], b.data[i, Datum.DRAG]
        stiffness, rate, impedance, slope = kbip[e, 0], kbip[e, 1], kbip[e, 2], kbip[e, 3]
        share = slope / (impedance * (1.0 - impedance))
        for k in range(nv):
            farther = out.gap[i, k]
            if end - begin > 1:
                farther = 0.0
                for q in range(begin, end):
                    if length > 0.0:
                        farther += place[q, Place.GAP] / length * out.gap[q, k]
            asked = dt * stiffness * (impedance * out.gap[i, k] + error * slope * farther)
            out.speed[i, 0, k] = -drag * (out.speed[i, 0, k] + asked)
            out.speed[i, 0, k] += loads[0, i - begin] * share * farther
            out.speed_w[i, 0, k] = (
                -drag * out.speed_w[i, 0, k] + loads[1, i - begin] * share * farther
            )
        c0, a0, width = b.head[i, Head.COLUMN], b.head[i, Head.VALUE], b.head[i, Head.WIDTH]
        for a in range(width):
            j, x = b.column[c0 + a], b.value[a0 + a]
            for k in range(nv):
                out.push_q[j, k] += x * out.speed[i, 0, k]
                out.push_w[j, k] += x * out.speed_w[i, 0, k]
                kept = (1.0 - dt * rate) * out.gap[i, k] - out.speed[i, 1, k]
                out.push_v[j, k] += x * drag * kept
    for i in range(begin, end):
        for k in range(nv):
            out.speed[i, 0, k] = out.speed[i, 1, k] = out.speed_w[i, 0, k] = 0.0


@lean
def differentiate_equalities(
    m, d, tree: Tree, b: Blocks, step: Step, ahead: Motion, apart: Motion, now: Motion, w: Working,
    meeting: Meeting, out: Slopes,
):  # fmt: skip
    """Adds what all equalities do: speeds and gaps of rigid ones, what soft ones push. ahead,
    apart, now: motions of the bodies at v+, at the correction, if there is one, and at v, with
    accelerations."""
    nv, dt, loads = w.sigma.shape[0], number(m + _TIMESTEP), meeting.joined
    begin, count, corrected = 0, integer(d + _NE), is_corrected(w)
    while begin < count:
        end, which = _end_of(step.key, begin, count), _equality(step.key, begin)
        soft, row = b.head[begin, Head.KIND] == Kind.SOFT, step.key[begin, Key.ROW]
        rate = table(pointer(d + _KBIP), integer(d + _NEFC), 4)[row, 1]
        for i in range(begin, end):
            for k in range(nv):
                out.speed[i, 0, k] = out.speed[i, 1, k] = out.speed_w[i, 0, k] = out.gap[i, k] = 0.0
            speed = 0.0
            c0, a0 = b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
            for c in range(b.head[i, Head.WIDTH]):
                out.gap[i, b.column[c0 + c]] = b.value[a0 + c]
                speed += b.value[a0 + c] * w.correction[b.column[c0 + c]]
            loads[0, i - begin] = w.f[i, 0]
            loads[1, i - begin] = -b.data[i, Datum.DRAG] * speed if soft else w.pushed[i, 0]
        if end - begin == 1:
            keep = 1.0 - dt * rate if soft else 0.0
            _bend_joints(m, d, which, begin, keep, loads, step, w, out)
        else:
            _bend_points(
                m, d, tree, which, begin, soft, rate, loads, ahead, apart, now, corrected, meeting,
                out,
            )  # fmt: skip
        if soft:
            _push_softly(d, dt, b, begin, end, loads, step, out)
        begin = end


@lean
def push_equalities(d, slopes: Slopes, out: Change):
    """Takes out.place forward: fills speeds and gaps of equalities."""
    nv = out.place.shape[0]
    for i in range(integer(d + _NE)):
        for k in range(nv):
            out.gap[i] += slopes.gap[i, k] * out.place[k]
            out.speed[i, 0] += slopes.speed[i, 0, k] * out.place[k]
            out.speed_w[i, 0] += slopes.speed_w[i, 0, k] * out.place[k]


@lean
def pull_equalities(d, slopes: Slopes, g: Change):
    """The transpose: adds to g.place."""
    nv = g.place.shape[0]
    for i in range(integer(d + _NE)):
        for k in range(nv):
            g.place[k] += slopes.gap[i, k] * g.gap[i] + slopes.speed[i, 0, k] * g.speed[i, 0]
            g.place[k] += slopes.speed_w[i, 0, k] * g.speed_w[i, 0]
