"""The second half of a step: forces as MuJoCo leaves them, overlap taken back, the state moved."""

from __future__ import annotations

import numpy as np

from stiction.bridge import library as mj
from stiction.bridge.ahead import settle_marks
from stiction.bridge.forces import exclude_idle, show_limits, write_forces
from stiction.bridge.layout import number, numbers, offset, pointer
from stiction.bridge.mocap import ELSEWHERE
from stiction.bridge.rows import Place
from stiction.contact.certificate.grading import GradingWorkspace
from stiction.contact.certificate.modes import read_modes
from stiction.contact.problem.blocks import (
    ROWS,
    Blocks,
    Datum,
    Head,
    Kind,
    add_impulses,
    row_velocities,
)
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.blocks.workspace import NewtonWorkspace, Outcome, Request
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix
from stiction.simulate.time_stepping.config import Config
from stiction.simulate.time_stepping.grip import (
    PARTING,
    closes,
    grip_island,
    is_gripped_anywhere,
    is_thrown,
    let_go,
)
from stiction.simulate.time_stepping.jammed import part_jammed
from stiction.simulate.time_stepping.led import loosen
from stiction.simulate.time_stepping.pose import count_soft_rows
from stiction.simulate.time_stepping.workspace import Count, Figure, Record, Step, Total

_TIMESTEP = offset("mjModel", "opt", "timestep")
_QPOS, _QVEL, _QACC, _CONSTRAINT = (
    offset("mjData", name) for name in ("qpos", "qvel", "qacc", "qfrc_constraint")
)

MORE_DIGITS, MOST_DIGITS = 5, 11
"""Digits of what is as far off as the slack, and at most."""

JAMMED = 0.1
"""Residual of the overlap's problem above which it has no answer: no motion takes all of the
overlap back."""

JAM_LOOKS = 8
"""Steps of which one asks whether the overlap of a jammed island can be taken back by now. What has
no answer costs the solvers all that they may try."""

MOST_TURN = 0.2
"""Farthest that taking overlap back moves a joint in a step, if the overlap itself is not deeper
[rad, m]."""


@lean
def remember(b: Blocks, step: Step, count, f, u, request: Request):
    """Keeps what the next step's guess and the report need."""
    key, place, record = step.key, step.place, step.record
    for i in range(count):
        for k in range(3):
            record[i, Record.FIRST + k] = key[i, k]
        for k in range(6):  # gap, ratios, position
            record[i, Record.GAP + k] = place[i, k]
        for r in range(ROWS):
            record[i, Record.FORCE + r] = f[i, r]
        slides = b.head[i, Head.ROWS] > 2
        record[i, Record.SLIP] = u[i, 1] if slides else 0.0
        record[i, Record.SLIP + 1] = u[i, 2] if slides else 0.0
        record[i, Record.FRICTION] = b.data[i, Datum.SLIDE]
        record[i, Record.BUILT] = request.built[i]
        record[i, Record.INPUTS] = request.inputs[i]
        for r in range(3):
            record[i, Record.CORRECTION + r] = 0.0
        record[i, Record.JAMMED] = record[i, Record.GRIPPED] = 0.0
    step.counts[Count.OLD] = count


@lean
def write_step(
    m, d, config: Config, b: Blocks, newton: NewtonWorkspace, grading: GradingWorkspace,
    request: Request, step: Step,
):  # fmt: skip
    """Writes forces and sensors of the solved step; newton.u holds the speeds of its velocity."""
    count = step.counts[Count.BLOCKS]
    nv = b.first.shape[0]
    dt = number(m + _TIMESTEP)
    qvel, qacc = numbers(pointer(d + _QVEL), nv), numbers(pointer(d + _QACC), nv)
    impulse, constraint = grading.work[0], numbers(pointer(d + _CONSTRAINT), nv)
    for j in range(nv):
        step.v_plus[j] = newton.v[j]
        qacc[j] = (newton.v[j] - qvel[j]) / dt
        impulse[j] = 0.0
    soft = count_soft_rows(b, count)  # which are part of the free motion
    add_impulses(b, soft, count, newton.f, impulse)
    energy = 0.0
    for j in range(nv):
        energy += 0.5 * impulse[j] * (step.v_plus[j] + request.v_free[j])
    step.figure[Figure.ENERGY] = energy
    add_impulses(b, 0, soft, newton.f, impulse)
    if config.bounce < np.inf:
        add_impulses(b, 0, count, step.impact, impulse)
        for i in range(count):
            for r in range(ROWS):
                newton.f[i, r] += step.impact[i, r]
    for j in range(nv):
        constraint[j] = impulse[j] / dt
    write_forces(m, d, b, count, newton.f, step.key, step.place)
    remember(b, step, count, newton.f, newton.u, request)
    read_modes(b, count, newton.u, newton.f, grading.own, step.record[:, Record.MODE])
    exclude_idle(d, count, newton.f, step.key, step.place, config.touch)
    if step.counts[Count.LEFT_OUT] > 0:
        settle_marks(d)
    if config.sensors:
        mj.sensor_acc(m, d)
        show_limits(d)


@lean_leaf
def is_open(i, step: Step):
    """Whether contact i presses across a gap that this step's paths have left."""
    return step.place[i, Place.BENT] == 1.0 and step.record[i, Record.FORCE] > 0.0


@lean
def _depth(b: Blocks, g: Graph, k, step: Step):
    """(how far positions of island k are off, how deep an overlap is) at the most [m, rad]: errors
    of rigid equalities that nothing leads count as overlap, and gaps of what `is_open` as off."""
    off, deepest = 0.0, 0.0
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        gap, kind = step.place[i, Place.GAP], b.head[i, Head.KIND]
        if kind == Kind.CONTACT:
            deepest = max(deepest, -gap)
            if is_open(i, step):
                off = max(off, gap)
        elif kind == Kind.HOLD and step.place[i, Place.LED] == 0.0:
            deepest = max(deepest, abs(gap))
    return max(off, deepest), deepest


@lean_leaf
def _lag(i, dt, b: Blocks, newton: NewtonWorkspace, step: Step):
    """Error that v+ leaves of block i, which a mocap body leads [m, rad]."""
    return step.place[i, Place.GAP] + dt * (newton.u[i, 0] + b.data[i, Datum.BOUND])


@lean
def _steps_jammed(g: Graph, k, step: Step):
    """Steps in a row before this one that the overlap of island k was not taken back whole; 0 if
    any block of it was not there."""
    begin, end = g.members[k], g.members[k + 1]
    streak = step.jammed[g.member[begin]] if begin < end else 0.0
    for at in range(begin, end):
        streak = min(streak, step.jammed[g.member[at]])
    return np.int64(streak)


@lean
def _measure_overlap(
    m, d, config: Config, b: Blocks, g: Graph, s: BlockMatrix, newton: NewtonWorkspace, step: Step
):  # fmt: skip
    """(how far positions are off, how deep an overlap is) at the most [m, rad], over all islands;
    marks what is gripped."""
    dt, farthest, deepest = number(m + _TIMESTEP), 0.0, 0.0
    for k in range(g.size[Size.ISLANDS]):
        off, deep = _depth(b, g, k, step)
        off = max(off, grip_island(m, d, config, b, g, s, k, newton, step, deep))
        farthest, deepest = max(farthest, off), max(deepest, deep)
    for i in range(step.counts[Count.LED_ROWS]):
        if step.place[i, Place.LED] > 0.0:
            lag = _lag(i, dt, b, newton, step)
            deepest = max(deepest, step.place[i, Place.LED] * abs(lag))
    return max(farthest, deepest), deepest


@lean_leaf
def _bound_led(i, dt, config: Config, b: Blocks, newton: NewtonWorkspace, step: Step):
    """Speed that takes back what a row lags behind the mocap body that leads it, as far as a step
    does; lets the row give way."""
    lag, rim = _lag(i, dt, b, newton, step), step.place[i, Place.LED]
    if rim * abs(lag) > ELSEWHERE * config.shallow:
        lag = np.sign(lag) * config.shallow / rim
    loosen(b, i, newton.weight)
    return -lag / dt


@lean_leaf
def _pose_gripped(i, bound, speed, config: Config, b: Blocks, step: Step):
    """Bound of contact i, which is gripped, and whose gap after a step at the normal `speed` asks
    for `bound`: what its paths part by comes off its tangents as well, which give way."""
    if not closes(i, step, config.near):
        bound = -speed - step.kept[i, PARTING]
    b.head[i, Head.ROWS] = 3
    b.data[i, Datum.DRAG] = step.record[i, Record.GRIPPED]
    b.data[i, Datum.SURFACE] = step.kept[i, PARTING + 1]
    b.data[i, Datum.SURFACE_2] = step.kept[i, PARTING + 2]
    step.counts[Count.GRIPPED] += 1
    return bound


@lean
def pose_overlap(
    m, d, config: Config, b: Blocks, g: Graph, s: BlockMatrix, newton: NewtonWorkspace,
    request: Request, step: Step,
):  # fmt: skip
    """Turns the blocks into the problem that takes overlap back at position level, if there is
    any, and closes the gaps of what `is_open`; returns how far positions are off, or zero.

    The same blocks without friction, their first rows alone, at rest, with the bounds that the
    gaps leave after v+, whose speeds newton.u holds: their solution, added to v+ for the positions
    alone, moves bodies apart without adding to their energy. Islands without overlap have nothing
    to solve, and neither have those that are known to be jammed: `step.kept` has their bounds. What
    mocap bodies lead gives way to contact (`led.py`).
    """
    dt = number(m + _TIMESTEP)
    farthest, deepest = _measure_overlap(m, d, config, b, g, s, newton, step)
    step.counts[Count.PROJECTED] = step.counts[Count.GRIPPED] = 0
    step.figure[Figure.GAP] = -deepest
    for j in range(newton.v.shape[0]):
        newton.v[j] = 0.0
    if not farthest > config.slack:
        return 0.0
    for k in range(g.size[Size.ISLANDS]):
        far, deep = _depth(b, g, k, step)
        off = far > config.slack or is_gripped_anywhere(g, k, step)
        share = 1.0 if deep <= config.shallow else config.shallow / deep
        known = _steps_jammed(g, k, step) % JAM_LOOKS != 0
        for at in range(g.members[k], g.members[k + 1]):
            i = g.member[at]
            speed, gap = newton.u[i, 0] + b.data[i, Datum.BOUND], step.place[i, Place.GAP]
            kind, bound = b.head[i, Head.KIND], 0.0
            b.head[i, Head.ROWS] = 1
            if kind == Kind.BOX:
                b.data[i, Datum.LIMIT] = 0.0
            elif step.place[i, Place.LED] > 0.0:
                bound = _bound_led(i, dt, config, b, newton, step)
            elif off and kind == Kind.HOLD:
                bound = -share * gap / dt - speed
            elif kind == Kind.CONTACT:
                bound = -(gap if gap > 0.0 else share * gap) / dt - speed - step.kept[i, PARTING]
                gripped = step.record[i, Record.GRIPPED] > 0.0
                if gripped or is_open(i, step):
                    b.head[i, Head.KIND] = Kind.HOLD
                elif not off:
                    bound = min(bound, 0.0)
                if gripped:
                    bound = _pose_gripped(i, bound, speed, config, b, step)
            step.kept[i, Datum.BOUND] = bound
            asks = b.head[i, Head.KIND] == Kind.HOLD or bound > 0.0
            b.data[i, Datum.BOUND] = 0.0 if known and asks else bound
            for r in range(1, ROWS):
                request.guess[i, r] = 0.0
            request.guess[i, 0] = step.correction[i]
            request.built[i] = request.inputs[i] = 0.0
    for j in range(newton.v.shape[0]):
        b.velocity[j] = 0.0
        b.push[j] = 0.0
        request.v_free[j] = 0.0
    return farthest


@lean_leaf
def digits_of(farthest, slack):
    """Digits of the correction that are wanted where positions are so far off: to what rounding
    leaves of them, a hundred-thousandth of the slack."""
    digits = np.int64(np.ceil(np.log10(farthest / slack))) + MORE_DIGITS
    return min(MOST_DIGITS, max(MORE_DIGITS + 1, digits))


@lean
def _goes_too_far(b: Blocks, g: Graph, s: BlockMatrix, k, newton: NewtonWorkspace, dt, farthest):
    """Whether the correction newton.v, with newton.u its speeds over bounds, moves a contact or
    limit of island k farther than positions are off, or any joint out of all proportion: where
    normals all but contradict each other, a turn about them would undo the overlap, if it were
    straight."""
    far = max(4.0 * farthest, MOST_TURN)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        if b.head[i, Head.KIND] == Kind.CONTACT:
            asked = abs(b.data[i, Datum.BOUND]) * dt
            moved = abs(newton.u[i, 0] + b.data[i, Datum.BOUND]) * dt
            if not moved <= 4.0 * (farthest + asked):
                return True
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            if not abs(newton.v[j]) * dt <= far:
                return True
    return False


@lean
def check_overlap(
    m, b: Blocks, g: Graph, s: BlockMatrix, newton: NewtonWorkspace, request: Request, step: Step,
    slack, farthest, address,
):  # fmt: skip
    """Keeps the correction newton.v where it was solved for and does not go too far. Bodies that
    are jammed, of which not all can be pushed out, are parted as far as they can be
    (`jammed.py`). address: of the workspace that all these are of."""
    count = step.counts[Count.BLOCKS]
    dt = number(m + _TIMESTEP)
    row_velocities(b, count, newton.v, newton.u)
    for k in range(g.size[Size.ISLANDS]):
        streak = _steps_jammed(g, k, step)
        # Past the deadline the path was left, or not begun: its residual does not tell.
        jammed = request.outcome[k, Outcome.RESIDUAL] > JAMMED
        jammed = jammed and ticks() <= step.counts[Count.DEADLINE]
        jammed = jammed or streak % JAM_LOOKS != 0
        jammed = jammed or is_thrown(b, g, s, k, newton.v, step, slack)
        if jammed or _goes_too_far(b, g, s, k, newton, dt, farthest):
            let_go(b, g, k)
            for at in range(g.members[k], g.members[k + 1]):
                i = g.member[at]
                b.data[i, Datum.BOUND] = step.kept[i, Datum.BOUND]
                step.record[i, Record.JAMMED] = np.float64(streak + 1)
            part_jammed(address, k)
    step.counts[Count.PROJECTED] = 1
    for i in range(count):
        for r in range(b.head[i, Head.ROWS]):
            step.record[i, Record.CORRECTION + r] = newton.f[i, r]


@lean
def integrate(m, d, newton: NewtonWorkspace, step: Step):
    """Moves the state: v+, positions by the step's motion and the correction newton.v, activations
    and time."""
    nq, nv = step.qpos.shape[0], newton.v.shape[0]
    dt = number(m + _TIMESTEP)
    qpos, qvel = numbers(pointer(d + _QPOS), nq), numbers(pointer(d + _QVEL), nv)
    for k in range(nq):
        step.qpos[k] = qpos[k]
    mj.euler(m, d)  # activations and time; its positions would have rounded velocities
    for k in range(nq):
        qpos[k] = step.qpos[k]
    for j in range(nv):
        qvel[j] = step.v_plus[j]
        newton.v[j] += step.motion[j]
    mj.integrate_pos(m, pointer(d + _QPOS), newton.v.ctypes.data, dt)


@lean
def note_origin(m, d, step: Step):
    """Notes where a step has moved from, with `integrate`, and what it has left."""
    nq, nv = step.qpos.shape[0], step.v_plus.shape[0]
    qpos, qvel = numbers(pointer(d + _QPOS), nq), numbers(pointer(d + _QVEL), nv)
    for k in range(nq):
        step.origin[k], step.origin[nq + k] = step.qpos[k], qpos[k]
    for j in range(nv):
        step.origin[2 * nq + j] = qvel[j]


@lean
def count_step(step: Step):
    """Adds the step to the totals."""
    total, count, figure = step.total, step.counts, step.figure
    count[Count.DONE] += 1
    total[Total.STEPS] += 1
    total[Total.SAME] += count[Count.SAME]
    total[Total.CONTACTS] += count[Count.BLOCKS]
    total[Total.ITERATIONS] += count[Count.ITERATIONS]
    total[Total.FACTORIZATIONS] += count[Count.FACTORIZATIONS]
    total[Total.WARM] += count[Count.ATTEMPTS] <= 0
    total[Total.PROJECTED] += count[Count.PROJECTED]
    total[Total.WORST] = max(total[Total.WORST], figure[Figure.WORST])
    total[Total.GAP] = min(total[Total.GAP], figure[Figure.GAP])
    total[Total.ENERGY] = max(total[Total.ENERGY], figure[Figure.ENERGY])
    total[Total.MOST_CONTACTS] = max(total[Total.MOST_CONTACTS], count[Count.BLOCKS])
    total[Total.MOST_ITERATIONS] = max(total[Total.MOST_ITERATIONS], count[Count.ITERATIONS])
