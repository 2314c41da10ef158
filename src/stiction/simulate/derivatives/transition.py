"""J.A and J.B in one compiled call, where everything about a step has a derivative in closed form
or of its own: bodies (`bodies.py`, `spinning.py`), contacts (`geometry.py`, `contacts.py`), springs
and actuators (`smooth.py`), the law of contact (`contact/derivatives/held_rows.py`).

The step has been taken, and its data still has its kinematics and contacts; the state has been put
back to where it began. What the overlap's problem wrote over the blocks is made anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.guard import caught, leave
from stiction.bridge.layout import integer, number, numbers, offset, pointer
from stiction.bridge.rows import Key, Place, merge_gaps
from stiction.contact.derivatives.held_rows import (
    Held,
    Size,
    Solved,
    add_row,
    allocate_held,
    allocate_solved,
    factor_inertia,
    fill_mass,
    fill_rows,
    read_held,
    solve_held,
)
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind, row_velocities
from stiction.contact.problem.graph import Graph
from stiction.contact.problem.graph import Size as Part
from stiction.contact.problem.scales import spread
from stiction.contact.solvers.workspace import unpack_newton, unpack_problem
from stiction.kernels.compile import kernel, lean
from stiction.kernels.packing import pack, packed, unpacker
from stiction.simulate.derivatives.bodies import (
    allocate_motion,
    differentiate_forces,
    read_tree,
    spread_acceleration,
    spread_velocity,
)
from stiction.simulate.derivatives.contacts import (
    Slopes,
    allocate_meeting,
    differentiate_applied,
    differentiate_rows,
)
from stiction.simulate.derivatives.geometry import (
    allocate_geometry,
    differentiate_contacts,
)
from stiction.simulate.derivatives.manifold import quaternion_dofs, turn_step
from stiction.simulate.derivatives.smooth import (
    differentiate_actuators,
    differentiate_springs,
    read_springs,
)
from stiction.simulate.derivatives.spinning import allocate_spin, differentiate_spins
from stiction.simulate.time_stepping.config import Config, Stop, read_config
from stiction.simulate.time_stepping.finish import CAUTIOUS
from stiction.simulate.time_stepping.loop import Slot, slot
from stiction.simulate.time_stepping.workspace import Count, Record, Step, unpack_step
from stiction.terrain.meetings import unpack_ground
from stiction.tolerances import RESIDUAL

Indices = NDArray[np.int64]

_TIMESTEP, _QVEL = offset("mjModel", "opt", "timestep"), offset("mjData", "qvel")
_NE, _NEFC, _LOSS = (offset("mjData", name) for name in ("ne", "nefc", "efc_frictionloss"))

ALIKE = 1e-5
"""Difference of two gaps, over their size, up to which neither is the nearer one for changes that
matter: each is then taken for itself."""


@packed
class Working(NamedTuple):
    """What is read of a step, and worked out; n blocks, m rows, c columns."""

    f: Array  # (n, ROWS) impulses
    u: Array  # (n, ROWS) speeds less bounds
    pushed: Array  # (n,) impulses of the correction
    pressed: Indices  # (n,) 1 where a contact holds its normal
    source: Indices  # (n,) the block whose gap a bound is, or -1
    share: Array  # (n,) of the gap that the correction takes back
    deepest: Indices  # (n,) the block that this share depends on, or -1
    lifted: Indices  # (n,) blocks that the correction holds
    normal: Array  # (n, nv) their rows
    sigma: Array  # (nv,) speeds of the problem
    passed: Array  # (n, ROWS)
    correction: Array  # (nv,) w
    acceleration: Array  # (nv,)
    zero: Array  # (nv,)
    none: Indices  # (0,)
    alone: Indices  # (nv,) 1 for free bodies of their own
    turns: Indices  # (k,) first degree of freedom of each quaternion
    rotation: Array  # (2, 3, 3)
    rate: Array  # (nv, c) of v+
    moved: Array  # (nv, c) of w
    wanted: Array  # (m, c)
    right: Array  # (nv, c)


class Transition:
    """The memory that a model's derivatives are worked out in, for so many blocks."""

    def __init__(self, model: mujoco.MjModel, free: Indices, blocks: int) -> None:
        m, n, nv, na, nu = model, blocks, model.nv, model.na, model.nu
        self.blocks = blocks
        columns, rows = 2 * nv + na + nu, ROWS * n
        alone = np.zeros(nv, np.int64)
        for dof, _ in free:
            alone[dof : dof + 6] = 1
        self._tuples: Any = (
            read_tree(m),
            allocate_motion(m.nbody, nv),
            allocate_motion(m.nbody, nv),
            read_springs(m),
            allocate_spin(),
            allocate_geometry(n),
            allocate_meeting(nv),
            Slopes(
                np.zeros((nv, nv)), np.zeros((nv, nv)), np.zeros((nv, na)), np.zeros((nv, nu)),
                np.zeros((n, ROWS, nv)), np.zeros((n, nv)), np.zeros((nv, nv)), np.zeros((n, nv)),
                np.zeros((na, na)), np.zeros((na, nu)),
            ),
            allocate_held(nv, rows),
            allocate_solved(nv, rows),
            Working(
                np.zeros((n, ROWS)), np.zeros((n, ROWS)), np.zeros(n), np.zeros(n, np.int64),
                np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int64),
                np.zeros((n, nv)), np.zeros(nv), np.zeros((n, ROWS)), np.zeros(nv), np.zeros(nv),
                np.zeros(nv), np.zeros(0, np.int64), alone, quaternion_dofs(m),
                np.zeros((2, 3, 3)), np.zeros((nv, columns)), np.zeros((nv, columns)),
                np.zeros((rows, columns)), np.zeros((nv, columns)),
            ),
        )  # fmt: skip
        self._packed = pack(*self._tuples)
        self.address = int(self._packed.ctypes.data)

    @property
    def slopes(self) -> Slopes:
        """What was worked out last."""
        found: Slopes = self._tuples[7]
        return found


_example = Transition(mujoco.MjModel.from_xml_string("<mujoco/>"), np.zeros((0, 2), np.int64), 1)
unpack_transition = unpacker(*_example._tuples)


@kernel
def _restore(m, d, config: Config, b: Blocks, count, step: Step):
    """Gives blocks the bounds and limits of the step, which its overlap's problem wrote over."""
    dt, nefc = number(m + _TIMESTEP), integer(d + _NEFC)
    loss = numbers(pointer(d + _LOSS), nefc)
    begin = count
    for i in range(count):
        gap, of_geoms = step.place[i, Place.GAP], step.key[i, Key.INDEX] >= 0
        b.data[i, Datum.BOUND] = 0.0
        if b.head[i, Head.KIND] == Kind.BOX:
            b.data[i, Datum.LIMIT] = dt * loss[step.key[i, Key.ROW]]
        elif gap > (config.near if of_geoms else config.touch):
            b.data[i, Datum.BOUND] = -gap / dt
        if of_geoms and begin == count:
            begin = i
    merge_gaps(m, b, begin, count, step.key)


@lean
def _find_sources(dt, b: Blocks, count, step: Step, w: Working):
    """Which gap each bound is: contacts of one pair that are all but equally far have the nearest
    one's (`bridge.rows.merge_gaps`)."""
    key, place = step.key, step.place
    for i in range(count):
        bound = b.data[i, Datum.BOUND]
        w.source[i] = i if bound < 0.0 and b.head[i, Head.KIND] == Kind.CONTACT else -1
        if w.source[i] < 0 or not -place[i, Place.GAP] / dt < bound * (1.0 + ALIKE):
            continue
        best = np.inf
        for k in range(count):
            if key[k, 0] == key[i, 0] and key[k, 1] == key[i, 1]:
                apart = abs(-place[k, Place.GAP] / dt - bound)
                if apart < best:
                    best = apart
                    w.source[i] = k


@lean
def _choose_lifted(config: Config, dt, b: Blocks, g: Graph, step: Step, speed, w: Working):
    """Which blocks the overlap's correction holds, and their share of the gap; how many. speed (n,
    ROWS): along rows, at v+ and the correction. As `StepLinearization._correct`."""
    count = 0
    if config.slack == np.inf:
        return count
    for island in range(g.size[Part.ISLANDS]):
        deep, which, fastest = 0.0, -1, 0.0
        for at in range(g.members[island], g.members[island + 1]):
            i = g.member[at]
            if b.head[i, Head.KIND] == Kind.CONTACT:
                fastest = max(fastest, abs(speed[i, 0]))
                if -step.place[i, Place.GAP] > deep:
                    deep, which = -step.place[i, Place.GAP], i
        share = 1.0 if deep <= config.shallow else max(CAUTIOUS, config.shallow / deep)
        for at in range(g.members[island], g.members[island + 1]):
            i = g.member[at]
            gap = step.place[i, Place.GAP]
            if b.head[i, Head.KIND] != Kind.CONTACT:
                continue
            holds = w.pressed[i] == 1 and gap <= config.touch
            w.share[i], w.deepest[i] = 1.0, -1
            if deep > config.slack:
                if gap <= 0.0:
                    w.share[i] = share
                    w.deepest[i] = which if CAUTIOUS < share < 1.0 else -1
                off = abs(speed[i, 0] + w.share[i] * gap / dt)
                holds = w.pushed[i] > 0.0 or (w.pressed[i] == 1 and off <= RESIDUAL * fastest)
            if holds:
                w.lifted[count] = i
                count += 1
    return count


@lean
def _clear(count, out: Slopes):
    """Zero everywhere, for so many blocks."""
    nv = out.push_q.shape[0]
    for j in range(nv):
        for k in range(nv):
            out.push_q[j, k] = out.push_w[j, k] = 0.0
        for k in range(out.push_a.shape[1]):
            out.push_a[j, k] = 0.0
        for k in range(out.push_u.shape[1]):
            out.push_u[j, k] = 0.0
    for i in range(count):
        for k in range(nv):
            out.gap[i, k] = out.speed_w[i, k] = 0.0
            for r in range(ROWS):
                out.speed[i, r, k] = 0.0
    for i in range(out.act_a.shape[0]):
        for k in range(out.act_a.shape[1]):
            out.act_a[i, k] = 0.0
        for k in range(out.act_u.shape[1]):
            out.act_u[i, k] = 0.0


@kernel
def _find_slopes(m, d, ground, table, length, address, own):
    """Fills `Slopes`, see the head of `differences.py` for what it holds; whether it could."""
    tree, ahead, apart, springs, spin, geometry, meeting, out, _, _, w = unpack_transition(own)
    b, _, _, _ = unpack_problem(address)
    _, step = unpack_step(address)
    count, nv = step.counts[Count.BLOCKS], w.sigma.shape[0]
    dt = number(m + _TIMESTEP)
    v = numbers(pointer(d + _QVEL), nv)
    _clear(count, out)
    fill_mass(b, out.push_v)
    corrected = False
    for j in range(nv):
        w.acceleration[j] = (step.v_plus[j] - v[j]) / dt
        corrected = corrected or w.correction[j] != 0.0
    spread_velocity(d, tree, v, ahead)
    spread_acceleration(d, tree, v, w.acceleration, 1.0, ahead)
    differentiate_forces(d, tree, ahead, -dt, out.push_q, out.push_v, True)
    differentiate_springs(m, d, dt, springs, out)
    differentiate_actuators(m, d, dt, springs, w.none, out)
    differentiate_spins(m, d, dt, tree, b, step.free, v, step.v_plus, spin, out)
    differentiate_applied(d, tree, w.alone, dt, meeting, out)
    if corrected:
        spread_velocity(d, tree, w.zero, apart)
        spread_acceleration(d, tree, w.zero, w.correction, 0.0, apart)
        differentiate_forces(d, tree, apart, -1.0, out.push_w, out.push_w, False)
        spread_velocity(d, tree, w.correction, apart)
    if count == 0:
        return True
    spread_velocity(d, tree, step.v_plus, ahead)
    if not differentiate_contacts(
        table, m, d, ground, count, step.key, step.place, length, geometry
    ):
        return False
    differentiate_rows(
        m, d, tree, b, count, step.key, step.place, w.f, w.pushed, geometry, ahead, apart,
        corrected, meeting, out,
    )  # fmt: skip
    return True


@lean
def _ask(dt, b: Blocks, out: Slopes, h: Held, w: Working):
    """Fills w.right with the push and w.wanted with the speeds of held rows that positions ask for;
    (nv, nv) and (m, nv)."""
    nv = w.sigma.shape[0]
    for j in range(nv):
        for k in range(nv):
            w.right[j, k] = out.push_q[j, k]
    for c in range(h.size[Size.CURVED]):
        i, x, y, curve = h.curved[c], h.across[c, 0], h.across[c, 1], h.across[c, 2]
        width, c0, a0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
        for e in range(width):
            along = curve * (x * b.value[a0 + width + e] + y * b.value[a0 + 2 * width + e])
            j = b.column[c0 + e]
            for k in range(nv):
                w.right[j, k] -= along * (x * out.speed[i, 1, k] + y * out.speed[i, 2, k])
    for a in range(h.size[Size.HELD]):
        i, r = h.block[a, 0], h.block[a, 1]
        if r == 1:
            x, y = h.direction[a, 0], h.direction[a, 1]
            for k in range(nv):
                w.wanted[a, k] = -x * out.speed[i, 1, k] - y * out.speed[i, 2, k]
            continue
        source = w.source[i] if r == 0 else -1
        for k in range(nv):
            w.wanted[a, k] = -out.speed[i, r, k]
            if source >= 0:
                w.wanted[a, k] -= out.gap[source, k] / dt


@lean
def _multiply(a, b, first, n, scale, out, to):
    """out[:, to : to + n] += scale a b[:, first : first + n]."""
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            x = scale * a[i, j]
            if x != 0.0:
                for k in range(n):
                    out[i, to + k] += x * b[j, first + k]


@lean
def _multiply_taken(s: Solved, taken, b, n, out):
    """out[:, :n] += Q b[:, :n], of the rows that were taken."""
    for i in range(s.by_speed.shape[0]):
        for j in range(taken):
            x, at = s.by_speed[i, j], s.taken[j]
            for k in range(n):
                out[i, k] += x * b[at, k]


@lean
def _solve_velocity(dt, b: Blocks, out: Slopes, h: Held, s: Solved, w: Working):
    """w.rate := changes of v+, all columns; whether there is one answer."""
    nv, na, nu = out.push_q.shape[0], out.push_a.shape[1], out.push_u.shape[1]
    fill_mass(b, s.inertia)
    fill_rows(b, h, s.inertia, s.other)
    if not factor_inertia(s):
        return False
    taken = solve_held(h.size[Size.HELD], h.held, h.along, h.size[Size.SLOPED] == 1, s)
    if taken < 0:
        return False
    _ask(dt, b, out, h, w)
    for j in range(nv):
        for k in range(w.rate.shape[1]):
            w.rate[j, k] = 0.0
    _multiply(s.by_push, w.right, 0, nv, 1.0, w.rate, 0)
    _multiply_taken(s, taken, w.wanted, nv, w.rate)
    _multiply(s.by_push, out.push_v, 0, nv, 1.0, w.rate, nv)
    _multiply(s.by_push, out.push_a, 0, na, 1.0, w.rate, 2 * nv)
    _multiply(s.by_push, out.push_u, 0, nu, 1.0, w.rate, 2 * nv + na)
    return True


@lean
def _solve_correction(
    dt, lifted, b: Blocks, out: Slopes, step: Step, h: Held, s: Solved, w: Working
):
    """w.moved := changes of the correction, all columns; whether there is one answer. lifted: how
    many blocks it holds."""
    nv, columns = out.push_q.shape[0], w.rate.shape[1]
    for j in range(nv):
        for k in range(columns):
            w.moved[j, k] = 0.0
    if lifted == 0:
        return True
    if h.size[Size.CURVED] > 0:  # else the mass is what has been factored
        fill_mass(b, s.inertia)
        if not factor_inertia(s):
            return False
    for a in range(lifted):
        for j in range(nv):
            w.normal[a, j] = 0.0
        add_row(b, w.lifted[a], 0, 1.0, w.normal, a)
    taken = solve_held(lifted, w.normal, w.normal, False, s)
    for at in range(taken):
        a = s.taken[at]
        i = w.lifted[a]
        for k in range(columns):
            w.wanted[a, k] = 0.0
        c0, a0 = b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
        for c in range(b.head[i, Head.WIDTH]):
            j, x = b.column[c0 + c], b.value[a0 + c]
            for k in range(columns):
                w.wanted[a, k] -= x * w.rate[j, k]
        deepest, part = w.deepest[i], 0.0
        if deepest >= 0:
            part = w.share[i] * step.place[i, Place.GAP] / step.place[deepest, Place.GAP] / dt
        for k in range(nv):
            w.wanted[a, k] -= w.share[i] * out.gap[i, k] / dt + out.speed[i, 0, k]
            w.wanted[a, k] -= out.speed_w[i, k]
            if deepest >= 0:
                w.wanted[a, k] += part * out.gap[deepest, k]
    _multiply(s.by_push, out.push_w, 0, nv, 1.0, w.moved, 0)
    _multiply_taken(s, taken, w.wanted, columns, w.moved)
    return True


@kernel
def _write(dt, step: Step, out: Slopes, w: Working, A, B):
    """A and B from the changes of v+ and of the correction."""
    nv, n, nu = out.push_q.shape[0], A.shape[0], B.shape[1]
    na = n - 2 * nv
    for j in range(nv):
        for k in range(n + nu):
            w.right[j, k] = dt * (w.rate[j, k] + w.moved[j, k])
    for at in range(w.turns.shape[0]):
        j = w.turns[at]
        speed = w.acceleration  # what comes after the accelerations' last use
        for c in range(3):
            speed[c] = dt * (step.v_plus[j + c] + w.correction[j + c])
        turn_step(speed, w.rotation)
        for k in range(n + nu):
            x, y, z = w.right[j, k], w.right[j + 1, k], w.right[j + 2, k]
            for c in range(3):
                right = w.rotation[1]
                w.right[j + c, k] = right[c, 0] * x + right[c, 1] * y + right[c, 2] * z
        for c in range(3):
            for k in range(3):
                w.right[j + c, j + k] += w.rotation[0, c, k] - (1.0 if c == k else 0.0)
    for j in range(nv):
        for k in range(n):
            A[j, k] = w.right[j, k] + (1.0 if j == k else 0.0)
            A[nv + j, k] = w.rate[j, k]
        for k in range(nu):
            B[j, k], B[nv + j, k] = w.right[j, n + k], w.rate[j, n + k]
    for i in range(na):
        for k in range(n):
            A[2 * nv + i, k] = out.act_a[i, k - 2 * nv] if k >= 2 * nv else 0.0
        for k in range(nu):
            B[2 * nv + i, k] = out.act_u[i, k]


@kernel
def _read_step(m, d, config: Config, law, facets, address, own):
    """Reads impulses, speeds and modes of the step; how many blocks its correction holds, or -1
    where it has rows that are not differentiated here."""
    _, _, _, _, _, _, _, _, h, _, w = unpack_transition(own)
    b, g, _, _ = unpack_problem(address)
    _, newton = unpack_newton(address)
    grading, step = unpack_step(address)
    count, dt = step.counts[Count.BLOCKS], number(m + _TIMESTEP)
    if integer(d + _NE) > 0:
        return -1
    for j in range(w.sigma.shape[0]):
        w.correction[j] = newton.v[j] - step.v_plus[j]
        w.sigma[j] = grading.own[j]
    for i in range(count):
        w.pushed[i], w.pressed[i] = step.record[i, Record.CORRECTION], 0
        for r in range(ROWS):
            w.f[i, r] = step.record[i, Record.FORCE + r]
            w.u[i, r] = 0.0
    _restore(m, d, config, b, count, step)
    spread(b, count, grading.inverse, w.passed, w.sigma)
    row_velocities(b, count, step.v_plus, w.u)
    if not read_held(b, count, law, facets, w.u, w.f, newton.weight, w.sigma, h):
        return -1
    for a in range(h.size[Size.HELD]):
        if h.block[a, 1] == 0:
            w.pressed[h.block[a, 0]] = 1
    _find_sources(dt, b, count, step, w)
    for i in range(count):
        b.data[i, Datum.BOUND] = 0.0
    row_velocities(b, count, newton.v, w.u)
    return _choose_lifted(config, dt, b, g, step, w.u, w)


@kernel
def _differentiate(session, d, ground, own, table, law, facets, length, A, B):
    m, address = slot(session, Slot.MODEL), slot(session, Slot.WORK)
    config = read_config(slot(session, Slot.CONFIG))
    _, _, _, _, _, _, _, out, h, s, w = unpack_transition(own)
    b, _, _, _ = unpack_problem(address)
    _, step = unpack_step(address)
    dt = number(m + _TIMESTEP)
    lifted = _read_step(m, d, config, law, facets, address, own)
    if lifted < 0 or not _find_slopes(m, d, ground, table, length, address, own):
        return np.int64(Stop.UNSOLVED)
    solved = _solve_velocity(dt, b, out, h, s, w)
    if not (solved and _solve_correction(dt, lifted, b, out, step, h, s, w)):
        return np.int64(Stop.UNSOLVED)
    _write(dt, step, out, w, A, B)
    return np.int64(Stop.DONE)


@kernel
def differentiate_step(session, d, own, table, law, facets, length, A, B):
    """Fills A (2 nv + na, 2 nv + na) and B (2 nv + na, nu) of the step that the session has taken
    with the data at d, whose state is as it was before; why it stopped, UNSOLVED where another way
    must be taken. own: `Transition.address`; table: `narrow_phase.TABLE`; law: its place in
    `LAWS`; length: the size of what moves [m]."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Stop.ERROR)
    stop = _differentiate(session, d, None, own, table, law, facets, length, A, B)
    leave(slot(session, Slot.FRAME))
    return stop


@kernel
def differentiate_step_on_ground(session, d, own, table, law, facets, length, A, B):
    """The same where there is a height field."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Stop.ERROR)
    terrain, hulls, level = unpack_ground(slot(session, Slot.GROUND))
    ground = (terrain, hulls, level.tolerance[0])
    stop = _differentiate(session, d, ground, own, table, law, facets, length, A, B)
    leave(slot(session, Slot.FRAME))
    return stop
