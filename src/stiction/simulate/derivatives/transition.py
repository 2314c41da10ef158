"""J.A and J.B in one compiled call, where everything about a step has a derivative in closed form
or of its own: bodies (`bodies.py`, `spinning.py`), contacts (`geometry.py`, `contacts.py`), springs
and actuators (`smooth.py`), the law of contact (`contact/derivatives/held_rows.py`).

The step has been taken, and its data still has its kinematics and contacts; the state has been put
back to where it began. What the overlap's problem wrote over the blocks is made anew.
"""

from __future__ import annotations

import numpy as np

from stiction.bridge.guard import caught, leave
from stiction.bridge.layout import number, numbers, offset, pointer
from stiction.bridge.rows import Place
from stiction.contact.derivatives.held_rows import (
    Held,
    Size,
    Solved,
    add_row,
    factor_inertia,
    fill_mass,
    fill_rows,
    multiply,
    solve_held,
)
from stiction.contact.problem.blocks import ROWS, Blocks, Head
from stiction.contact.solvers.workspace import unpack_problem
from stiction.kernels.compile import kernel, lean
from stiction.simulate.derivatives.bodies import (
    differentiate_forces,
    spread_acceleration,
    spread_velocity,
)
from stiction.simulate.derivatives.contacts import (
    Slopes,
    differentiate_applied,
    differentiate_rows,
)
from stiction.simulate.derivatives.geometry import differentiate_contacts
from stiction.simulate.derivatives.manifold import turn_step
from stiction.simulate.derivatives.memory import Working, unpack_transition
from stiction.simulate.derivatives.reading import drop_spanned, read_step
from stiction.simulate.derivatives.smooth import (
    differentiate_actuators,
    differentiate_springs,
)
from stiction.simulate.derivatives.spinning import differentiate_spins
from stiction.simulate.time_stepping.config import Stop, read_config
from stiction.simulate.time_stepping.loop import Slot, slot
from stiction.simulate.time_stepping.workspace import Count, Step, unpack_step
from stiction.terrain.meetings import unpack_ground

_TIMESTEP, _QVEL = offset("mjModel", "opt", "timestep"), offset("mjData", "qvel")


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
        for k in range(nv):
            w.right[j, nv + k] = out.push_v[j, k]
        for k in range(na):
            w.right[j, 2 * nv + k] = out.push_a[j, k]
        for k in range(nu):
            w.right[j, 2 * nv + na + k] = out.push_u[j, k]
    multiply(s.by_push, nv, w.right, w.rate.shape[1], w.rate)
    _multiply_taken(s, taken, w.wanted, nv, w.rate)
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
    multiply(s.by_push, nv, out.push_w, nv, w.moved)
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
def _differentiate(session, d, ground, own, table, law, facets, length, A, B):
    m, address = slot(session, Slot.MODEL), slot(session, Slot.WORK)
    config = read_config(slot(session, Slot.CONFIG))
    _, _, _, _, _, geometry, _, out, h, s, w = unpack_transition(own)
    b, _, _, _ = unpack_problem(address)
    _, step = unpack_step(address)
    dt = number(m + _TIMESTEP)
    lifted = read_step(m, d, config, law, facets, address, own)
    if lifted < 0 or not _find_slopes(m, d, ground, table, length, address, own):
        return np.int64(Stop.UNSOLVED)
    if h.size[Size.SLOPED] == 0:
        drop_spanned(h, step, geometry, w)
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
