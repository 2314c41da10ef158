"""The step, and many of them, in compiled code: MuJoCo's own functions and our solve between them.

    smooth      kinematics, inertia, velocities, actuators, applied and passive forces
    collision   margins for what the bodies may reach within the step; collisions, constraint
                rows, derivatives of the smooth forces
    solve       rows to blocks, the proximal Newton method from the last step's impulses
    certify     every law, from the blocks
    advance     forces and sensors as MuJoCo leaves them; then v+, the overlap's correction at
                position level, and MuJoCo's integration of activations and time

`run` stops before a step changes anything where it cannot go on, and says why by `Stop`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import mujoco
import numpy as np

from stiction.bridge import library as mj
from stiction.bridge.clock import ticks
from stiction.bridge.guard import caught
from stiction.bridge.gyroscopic import steady_spin
from stiction.bridge.layout import (
    flags,
    integer,
    integers,
    number,
    numbers,
    offset,
    pointer,
    size_of,
)
from stiction.bridge.margins import AHEAD, free_motion, set_margins, travel_past_limits
from stiction.bridge.rows import (
    Key,
    Place,
    count_blocks,
    exclude_idle,
    fold_equalities,
    hide_ahead,
    hide_limits,
    read_mass,
    read_normals,
    read_rows,
    show_limits,
    write_forces,
)
from stiction.bridge.shared_points import hold_once
from stiction.contact.certificate.block_grading import (
    GradingWorkspace,
    grade_blocks,
    read_modes,
    set_scales,
)
from stiction.contact.certificate.grading import Law
from stiction.contact.problem.blocks import (
    ROWS,
    Blocks,
    Datum,
    Head,
    Kind,
    add_impulses,
    inverse_inertias,
    row_velocities,
)
from stiction.contact.solvers.proximal import TOLERABLE, NewtonWorkspace, solve_blocks
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.envelope import factor_symmetric, solve_symmetric
from stiction.simulate.time_stepping.workspace import (
    Count,
    Figure,
    Record,
    Stage,
    Step,
    Total,
    unpack,
)
from stiction.terrain.cylinders import refine_parallel
from stiction.terrain.meetings import replace_contacts
from stiction.terrain.seams import exclude_ghosts

_NQ, _NV, _NA, _NU, _NBODY, _NMOCAP = (
    offset("mjModel", name) for name in ("nq", "nv", "na", "nu", "nbody", "nmocap")
)
_TIMESTEP = offset("mjModel", "opt", "timestep")
_QPOS, _QVEL, _ACT, _CTRL, _QFRC, _XFRC, _MPOS, _MQUAT = (
    offset("mjData", name)
    for name in (
        "qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat",
    )
)  # fmt: skip
_SMOOTH, _FREE, _QACC, _CONSTRAINT = (
    offset("mjData", name) for name in ("qfrc_smooth", "qacc_smooth", "qacc", "qfrc_constraint")
)
_ACT_DOT = offset("mjData", "act_dot")
_SIZES = tuple(offset("mjData", name) for name in ("ncon", "nefc", "ne", "nf", "nl"))
_FLAGS = tuple(
    offset("mjData", f"flg_{name}") for name in ("energypos", "energyvel", "subtreevel", "rnepost")
)
_NUMBER = offset("mjWarningStat", "number")
_WARNING = offset("mjData", "warning")
_STAT = size_of("mjWarningStat")
_FULL_A = _WARNING + int(mujoco.mjtWarning.mjWARN_CONTACTFULL) * _STAT + _NUMBER
_FULL_B = _WARNING + int(mujoco.mjtWarning.mjWARN_CNSTRFULL) * _STAT + _NUMBER

STANDSTILL = 1e-14
"""Speed of a degree of freedom, over what the free motion has there, that is rounding."""

RETRIES = 3
"""Solves of one step at most, each with wider margins for limits that the one before passed."""

CAUTIOUS = 0.2
"""Share of a deep overlap that one step takes back."""

LARGEST = float(mujoco.mjMAXVAL)
"""Of speeds; beyond it MuJoCo calls a state bad."""


class Stop(IntEnum):
    """Why `run` returned."""

    DONE = 0
    NOT_FINITE = 1
    """State, controls or applied forces hold what is no number."""
    ARENA = 2
    """MuJoCo's arena was full: contacts or rows were dropped."""
    ROOM = 3
    """More blocks or entries than the workspace has room for."""
    MASS = 4
    """The inertia, with its derivatives, is not positive definite."""
    UNSOLVED = 5
    """The compiled solve did not pass its certificate, or was not asked for; blocks, mass and
    free velocity are those of the step."""
    DIVERGED = 6
    """The step would leave a state that is not a number, or speeds beyond all use."""
    ERROR = 7
    """MuJoCo gave up, or a callback raised an exception."""


class Config(NamedTuple):
    """How to step, fixed for a call."""

    law: np.int64
    """A `Law`, or -1 where another solver is to answer every step."""
    facets: np.int64
    rigid: bool
    derivatives: bool
    """Whether smooth forces depend on velocity, so that qDeriv is needed."""
    adhesion: bool
    sensors: bool
    energy: bool
    warm: bool
    viscosity: float
    tolerance: float
    touch: float
    """Gap that counts as none [m]."""
    near: float
    """The same of contacts, where the law asks what touches [m]."""
    once: bool
    """Whether only the nearest of contacts in one point has friction."""
    slack: float
    """Overlap that is left alone [m]."""
    shallow: float
    """Overlap that one step pushes out whole [m]."""


@leaf
def _is_finite(address, n):
    values = numbers(address, n)
    total = 0.0
    for k in range(n):
        total += values[k] * 0.0
    return total == 0.0


@kernel
def _inputs_are_finite(m, d):
    nv = pointer(m + _NV)
    return (
        _is_finite(pointer(d + _QPOS), pointer(m + _NQ))
        and _is_finite(pointer(d + _QVEL), nv)
        and _is_finite(pointer(d + _ACT), pointer(m + _NA))
        and _is_finite(pointer(d + _CTRL), pointer(m + _NU))
        and _is_finite(pointer(d + _QFRC), nv)
        and _is_finite(pointer(d + _XFRC), 6 * pointer(m + _NBODY))
        and _is_finite(pointer(d + _MPOS), 3 * pointer(m + _NMOCAP))
        and _is_finite(pointer(d + _MQUAT), 4 * pointer(m + _NMOCAP))
    )


@leaf
def _full(d):
    return integer(d + _FULL_A) + integer(d + _FULL_B)


@kernel
def _move(m, d):
    """MuJoCo's kinematics, inertia and smooth forces: all that comes before contact."""
    for flag in _FLAGS:
        flags(d + flag, 1)[0] = 0
    for size in _SIZES:  # the last step's rows are not this one's
        integers(d + size, 1)[0] = 0
    mj.fwd_kinematics(m, d)
    mj.make_mass(m, d)
    mj.factor_mass(m, d)
    mj.transmission(m, d)
    mj.fwd_velocity(m, d)
    mj.fwd_actuation(m, d)
    mj.fwd_acceleration(m, d)


@kernel
def _meet(m, d, config: Config, ground, step: Step, extra):
    """MuJoCo's collisions and constraint rows, with margins for this step; whether all found room.
    ground: `terrain.Ground.features`; extra: least margin of joints.

    Where contacts pull (adhesion), the forces before them are evaluated once more.
    """
    nv = step.v_free.shape[0]
    dt = number(m + _TIMESTEP)
    qvel, free = numbers(pointer(d + _QVEL), nv), numbers(pointer(d + _FREE), nv)
    for j in range(nv):
        step.v_free[j] = qvel[j] + dt * free[j]
    free_motion(m, d, step.v_free, step.reach)
    set_margins(m, d, qvel, step.v_free, step.reach, extra)
    before = _full(d)
    mj.collide(m, d)
    if ground is not None:
        terrain, hulls, tolerance = ground
        replace_contacts(m, d, terrain, hulls, tolerance)
    refine_parallel(m, d)
    exclude_ghosts(m, d, step.reach, config.touch)
    mj.make_constraint(m, d)
    if _full(d) != before:
        return False
    if config.adhesion:
        hide_ahead(d, config.touch)
        mj.transmission(m, d)
        mj.fwd_velocity(m, d)
        mj.fwd_actuation(m, d)
        mj.fwd_acceleration(m, d)
    else:
        mj.reference_constraint(m, d)
    if config.derivatives:
        mj.smooth_derivatives(m, d, 0)
    if config.sensors:
        hide_limits(d, config.touch)
        mj.sensor_pos(m, d)
        mj.sensor_vel(m, d)
    if config.energy:
        mj.energy_pos(m, d)
        mj.energy_vel(m, d)
    return True


@kernel
def _guess(step: Step, count, f):
    """Impulses of the last step's blocks for this step's: the nearest one of the same pair."""
    key, place, record = step.key, step.place, step.record
    old = step.counts[Count.OLD]
    at = 0
    for i in range(count):
        for r in range(ROWS):
            f[i, r] = 0.0
        # Blocks come in much the same order as before: search from where the last one was.
        found = -1
        for k in range(old):
            j = at + k if at + k < old else at + k - old
            if record[j, Record.FIRST] == key[i, 0] and record[j, Record.SECOND] == key[i, 1]:
                found = j
                break
        if found < 0:
            continue
        at = found
        if key[i, Key.INDEX] >= 0:
            near = np.inf
            j = at
            while (
                j < old
                and record[j, Record.FIRST] == key[i, 0]
                and record[j, Record.SECOND] == key[i, 1]
            ):
                apart = 0.0
                for k in range(3):
                    apart += (record[j, Record.X + k] - place[i, Place.X + k]) ** 2
                if apart < near:
                    near = apart
                    found = j
                j += 1
        for r in range(ROWS):
            f[i, r] = record[found, Record.FORCE + r]


@kernel
def _remember(b: Blocks, step: Step, count, f, u):
    """Keeps what the next step's guess and the report need."""
    key, place, record = step.key, step.place, step.record
    for i in range(count):
        for k in range(3):
            record[i, Record.FIRST + k] = key[i, k]
        for k in range(6):  # gap, ratios, position
            record[i, Record.GAP + k] = place[i, k]
        for r in range(ROWS):
            record[i, Record.FORCE + r] = f[i, r]
        rubs = b.head[i, Head.ROWS] > 2
        record[i, Record.SLIP] = u[i, 1] if rubs else 0.0
        record[i, Record.SLIP + 1] = u[i, 2] if rubs else 0.0
        record[i, Record.FRICTION] = b.data[i, Datum.SLIDE]
    step.counts[Count.OLD] = count


@kernel
def _prepare(m, d, config: Config, b: Blocks, step: Step, work, weight):
    """Mass, momentum, blocks and their inverse inertias, the factored mass, the free velocity."""
    nv = b.first.shape[0]
    dt = number(m + _TIMESTEP)
    room, entries = count_blocks(d, config.rigid)
    if room > b.head.shape[0] or entries > b.value.shape[0]:
        step.counts[Count.NEED_BLOCKS] = room
        step.counts[Count.NEED_ENTRIES] = entries
        return Stop.ROOM
    read_mass(m, d, b, config.derivatives)
    qvel, force = numbers(pointer(d + _QVEL), nv), numbers(pointer(d + _SMOOTH), nv)
    for j in range(nv):
        b.velocity[j] = qvel[j]
        b.push[j] = dt * force[j]
    scratch = (step.small, step.six, step.rate, step.x, step.block)
    steady_spin(m, d, b, config.derivatives, step.free, scratch)
    if not config.rigid:
        fold_equalities(m, d, b)
    count = read_rows(
        m, d, b, config.rigid, config.viscosity, config.touch, config.near, step.key, step.place
    )
    if config.once:
        place = step.place[:count]
        hold_once(
            m, step.key[:count], place[:, Place.X : Place.Z + 1], read_normals(d, count, step.key),
            place[:, Place.GAP], b.data[:count, Datum.SLIDE],
        )  # fmt: skip
    step.counts[Count.BLOCKS] = count
    for j in range(nv):
        for k in range(b.first[j], j + 1):
            step.factor[j, k] = b.mass[j, k]
    step.counts[Count.DOF] = factor_symmetric(step.factor, b.first)
    if step.counts[Count.DOF] >= 0:
        return Stop.MASS
    for j in range(nv):
        step.v_free[j] = b.push[j]
    solve_symmetric(step.factor, b.first, step.v_free)
    for j in range(nv):
        step.v_free[j] += b.velocity[j]
    inverse_inertias(b, count, step.factor, work, weight)
    return Stop.DONE


@kernel
def _diverges(m, d, v):
    """Whether the state after the step, with speeds v, is not a number or beyond all use."""
    for j in range(v.shape[0]):
        if not abs(v[j]) <= LARGEST:
            return True
    return not _is_finite(pointer(d + _ACT_DOT), pointer(m + _NA))


@kernel
def settle(v, sigma):
    """Takes away speeds that are rounding: what stands still does so exactly."""
    for j in range(v.shape[0]):
        if abs(v[j]) < STANDSTILL * sigma[j]:
            v[j] = 0.0


@kernel
def _write(
    m,
    d,
    config: Config,
    b: Blocks,
    newton: NewtonWorkspace,
    grading: GradingWorkspace,
    step: Step,
    last,
):
    """Writes forces and sensors of the solved step; newton.u holds the speeds of its velocity.
    last: whether this is the step that a report will tell of."""
    count = step.counts[Count.BLOCKS]
    nv = b.first.shape[0]
    dt = number(m + _TIMESTEP)
    qvel, qacc = numbers(pointer(d + _QVEL), nv), numbers(pointer(d + _QACC), nv)
    impulse, constraint = grading.work[0], numbers(pointer(d + _CONSTRAINT), nv)
    for j in range(nv):
        step.v_plus[j] = newton.v[j]
        qacc[j] = (newton.v[j] - qvel[j]) / dt
        impulse[j] = 0.0
    add_impulses(b, count, newton.f, impulse)
    energy = 0.0
    for j in range(nv):
        constraint[j] = impulse[j] / dt
        energy += 0.5 * impulse[j] * (step.v_plus[j] + step.v_free[j])
    step.figure[Figure.ENERGY] = energy
    write_forces(
        m, d, b, count, newton.f, step.v_plus, step.key, step.place, config.rigid, constraint
    )  # fmt: skip
    _remember(b, step, count, newton.f, newton.u)
    if last:
        read_modes(b, count, newton.u, newton.f, grading, step.record[:, Record.MODE])
    exclude_idle(d, count, newton.f, step.key, step.place, config.touch)
    if config.sensors:
        mj.sensor_acc(m, d)
        show_limits(d)


@kernel
def _pose_overlap(
    m, config: Config, b: Blocks, newton: NewtonWorkspace, grading: GradingWorkspace, step: Step
):
    """Turns the blocks into the problem that takes overlap back at position level, if there is
    any; returns how deep it is, or zero.

    The same blocks without friction, at rest (grading.work[0]), with the bounds that the gaps
    leave after v+, whose speeds newton.u holds: their solution, added to v+ for the positions
    alone, moves bodies apart without adding to their energy.
    """
    count = step.counts[Count.BLOCKS]
    dt = number(m + _TIMESTEP)
    deepest = 0.0
    for i in range(count):
        gap = step.place[i, Place.GAP]
        kind = b.head[i, Head.KIND]
        if kind == Kind.CONTACT:
            deepest = max(deepest, -gap)
        elif kind == Kind.HOLD:
            deepest = max(deepest, abs(gap))
    step.counts[Count.PROJECTED] = 0
    step.figure[Figure.GAP] = -deepest
    for j in range(newton.v.shape[0]):
        newton.v[j] = 0.0
    if not deepest > config.slack:
        return 0.0
    share = 1.0 if deepest <= config.shallow else max(CAUTIOUS, config.shallow / deepest)
    for i in range(count):
        speed = newton.u[i, 0] + b.data[i, Datum.BOUND]
        gap = step.place[i, Place.GAP]
        if b.head[i, Head.KIND] == Kind.BOX:
            b.data[i, Datum.LIMIT] = 0.0
            b.data[i, Datum.BOUND] = 0.0
        elif b.head[i, Head.KIND] == Kind.HOLD:
            b.data[i, Datum.BOUND] = -share * gap / dt - speed
        else:
            b.data[i, Datum.BOUND] = -(gap if gap > 0.0 else share * gap) / dt - speed
    for j in range(newton.v.shape[0]):
        b.velocity[j] = 0.0
        b.push[j] = 0.0
        grading.work[0, j] = 0.0
    return deepest


@kernel
def _check_overlap(m, b: Blocks, newton: NewtonWorkspace, step: Step, deepest, residual):
    """Keeps the correction newton.v if it was solved for; where bodies are jammed and cannot all be
    pushed out, only if it moves no contact farther than the overlap is deep."""
    count = step.counts[Count.BLOCKS]
    dt = number(m + _TIMESTEP)
    fine = residual == residual
    if residual > TOLERABLE:
        row_velocities(b, count, newton.v, newton.u, newton.size)
        for i in range(count):
            if b.head[i, Head.KIND] == Kind.CONTACT and step.key[i, Key.INDEX] >= 0:
                asked = abs(b.data[i, Datum.BOUND]) * dt
                moved = abs(newton.u[i, 0] + b.data[i, Datum.BOUND]) * dt
                fine = fine and moved <= 4.0 * (deepest + asked)
    step.counts[Count.PROJECTED] = 1 if fine else 0
    if not fine:
        for j in range(newton.v.shape[0]):
            newton.v[j] = 0.0


@kernel
def _integrate(m, d, newton: NewtonWorkspace, step: Step):
    """Moves the state: v+, positions by v+ and the correction newton.v, activations and time."""
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
        newton.v[j] += step.v_plus[j]
    mj.integrate_pos(m, pointer(d + _QPOS), newton.v.ctypes.data, dt)


@kernel
def _count_step(step: Step):
    total, count, figure = step.total, step.counts, step.figure
    count[Count.DONE] += 1
    total[Total.STEPS] += 1
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


@kernel
def _pose(
    m,
    d,
    config: Config,
    ground,
    b: Blocks,
    newton: NewtonWorkspace,
    grading: GradingWorkspace,
    step: Step,
    extra,
):
    """Collides, and fills the blocks of the step, their scales and the guess; why it stopped.
    ground, extra: see `_meet`."""
    begun = ticks()
    if not _meet(m, d, config, ground, step, extra):
        return Stop.ARENA
    now = ticks()
    step.ticks[Stage.COLLISION] += now - begun
    stop = _prepare(m, d, config, b, step, grading.work[0], newton.weight)
    if stop != Stop.DONE:
        return stop
    _guess(step, step.counts[Count.BLOCKS], newton.f)
    set_scales(b, step.v_free, grading)
    step.ticks[Stage.ROWS] += ticks() - now
    return Stop.DONE if config.law >= 0 else Stop.UNSOLVED


@kernel
def run(frame, m, d, nstep, solved, config: Config, ground, address):
    """Takes up to nstep steps of the data at d with the model at m; returns why it stopped.

    frame: `Guard.frame`.
    ground: `terrain.Ground.features`. With and without it this is compiled apart, so that only
    those who have height fields wait for what they need.
    solved: the first step's impulses and velocity are in the workspace already, put there
    after this function had stopped with UNSOLVED; that step is only to be finished.
    """
    if caught(frame) != 0:
        return Stop.ERROR
    # All of a step in one body: every level of calls above the solver would have it optimized
    # once more when it is compiled.
    b, newton, grading, step = unpack(address)
    counts, figure, time = step.counts, step.figure, step.ticks
    for taken in range(nstep):
        if not (solved and taken == 0):
            begun = ticks()
            if not _inputs_are_finite(m, d):
                return Stop.NOT_FINITE
            _move(m, d)
            time[Stage.SMOOTH] += ticks() - begun
            extra = 0.0
            for _ in range(RETRIES):
                stop = _pose(m, d, config, ground, b, newton, grading, step, extra)
                if stop != Stop.DONE:
                    return stop
                begun = ticks()
                warm = np.int64(0)
                if config.warm and counts[Count.OLD] > 0:
                    warm = np.int64(2 if counts[Count.ATTEMPTS] < 0 else 1)
                (
                    figure[Figure.RESIDUAL],
                    counts[Count.ITERATIONS],
                    counts[Count.FACTORIZATIONS],
                    counts[Count.ATTEMPTS],
                ) = solve_blocks(
                    b, counts[Count.BLOCKS], config.law, config.facets, step.v_free, newton, warm
                )
                settle(newton.v, grading.sigma)
                time[Stage.SOLVE] += ticks() - begun
                missed = AHEAD * travel_past_limits(m, d, newton.v, config.touch)
                if missed <= extra:
                    break
                extra = missed
            begun = ticks()
            row_velocities(b, counts[Count.BLOCKS], newton.v, newton.u, newton.size)
            figure[Figure.WORST] = grade_blocks(
                b, counts[Count.BLOCKS], config.law, config.facets, config.tolerance,
                step.v_free, newton.weight, newton.v, newton.u, newton.f, grading,
            )  # fmt: skip
            time[Stage.CERTIFY] += ticks() - begun
            if not figure[Figure.WORST] <= config.tolerance:
                return Stop.UNSOLVED
        else:
            row_velocities(b, counts[Count.BLOCKS], newton.v, newton.u, newton.size)
        if _diverges(m, d, newton.v):
            return Stop.DIVERGED
        begun = ticks()
        _write(m, d, config, b, newton, grading, step, taken == nstep - 1)
        deepest = _pose_overlap(m, config, b, newton, grading, step)
        if deepest > 0.0:
            law, facets, warm = np.int64(Law.FRICTIONLESS), np.int64(0), np.int64(0)
            residual, _, _, _ = solve_blocks(
                b, counts[Count.BLOCKS], law, facets, grading.work[0], newton, warm
            )
            _check_overlap(m, b, newton, step, deepest, residual)
        _integrate(m, d, newton, step)
        time[Stage.ADVANCE] += ticks() - begun
        _count_step(step)
    return Stop.DONE
