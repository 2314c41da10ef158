"""The first half of a step: smooth forces, collisions, and the problem of contact they pose."""

from __future__ import annotations

import mujoco
import numpy as np

from stiction.bridge import library as mj
from stiction.bridge.ahead import leave_out
from stiction.bridge.forces import hide_ahead, hide_limits
from stiction.bridge.gyroscopic import steady_spin
from stiction.bridge.joined import exclude_joined
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
from stiction.bridge.margins import free_motion, set_margins
from stiction.bridge.mass import read_mass
from stiction.bridge.rows import Key, Place, count_blocks, read_normals, read_rows
from stiction.bridge.servos import add_released
from stiction.bridge.shared_points import hold_once
from stiction.contact.problem.blocks import (
    ROWS,
    Blocks,
    Datum,
    Head,
    Kind,
    inverse_inertias,
)
from stiction.contact.problem.graph import Graph, connect_blocks
from stiction.contact.solvers.blocks.workspace import NewtonWorkspace, Request
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.skyline import factor_skyline, solve_skyline
from stiction.kernels.sparse import BlockMatrix
from stiction.simulate.time_stepping.config import Config, Stop
from stiction.simulate.time_stepping.dependent import settle
from stiction.simulate.time_stepping.standstill import LARGEST, drop_rounding
from stiction.simulate.time_stepping.whirling import add_bound
from stiction.simulate.time_stepping.workspace import Answer, Count, Record, Seen, Step
from stiction.terrain.meetings import replace_contacts
from stiction.terrain.refinement import refine_contacts
from stiction.terrain.seams import exclude_ghosts
from stiction.terrain.upright import collide

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
_SMOOTH, _QACC, _CONSTRAINT = (
    offset("mjData", name) for name in ("qfrc_smooth", "qacc", "qfrc_constraint")
)
_SIZES = tuple(offset("mjData", name) for name in ("ncon", "nefc", "ne", "nf", "nl"))
_FLAGS = tuple(
    offset("mjData", f"flg_{name}") for name in ("energypos", "energyvel", "subtreevel", "rnepost")
)
_TIME, _ACT_DOT = offset("mjData", "time"), offset("mjData", "act_dot")
_NUMBER = offset("mjWarningStat", "number")
_WARNING = offset("mjData", "warning")
_STAT = size_of("mjWarningStat")
_FULL_A = _WARNING + int(mujoco.mjtWarning.mjWARN_CONTACTFULL) * _STAT + _NUMBER
_FULL_B = _WARNING + int(mujoco.mjtWarning.mjWARN_CNSTRFULL) * _STAT + _NUMBER


@leaf
def _is_finite(address, n):
    values = numbers(address, n)
    total = 0.0
    for k in range(n):
        total += values[k] * 0.0
    return total == 0.0


@kernel
def inputs_are_finite(m, d):
    """Whether time, state, controls and applied forces are numbers."""
    nv = pointer(m + _NV)
    return (
        _is_finite(d + _TIME, 1)
        and _is_finite(pointer(d + _QPOS), pointer(m + _NQ))
        and _is_finite(pointer(d + _QVEL), nv)
        and _is_finite(pointer(d + _ACT), pointer(m + _NA))
        and _is_finite(pointer(d + _CTRL), pointer(m + _NU))
        and _is_finite(pointer(d + _QFRC), nv)
        and _is_finite(pointer(d + _XFRC), 6 * pointer(m + _NBODY))
        and _is_finite(pointer(d + _MPOS), 3 * pointer(m + _NMOCAP))
        and _is_finite(pointer(d + _MQUAT), 4 * pointer(m + _NMOCAP))
    )


@kernel
def diverges(m, d, v):
    """Whether the state after the step, with speeds v, is not a number or beyond all use."""
    for j in range(v.shape[0]):
        if not abs(v[j]) <= LARGEST:
            return True
    return not _is_finite(pointer(d + _ACT_DOT), pointer(m + _NA))


@leaf
def _compare(address, n, seen, at):
    """Whether the n doubles there are, to the bit, those seen from `at` on, which they become."""
    values = numbers(address, n)
    same = True
    for k in range(n):
        same = same and values[k] == seen[at + k]
        seen[at + k] = values[k]
    return same


@leaf
def _equal(address, n, seen, at):
    """Whether the n doubles there are, to the bit, those seen from `at` on."""
    values = numbers(address, n)
    k = 0
    while k < n and values[k] == seen[at + k]:
        k += 1
    return k == n


@kernel
def note_output(m, d, step: Step):
    """Notes whether a step moved anything, and what it wrote, by which it is seen later whether it
    still stands there."""
    nq, nv, na = pointer(m + _NQ), pointer(m + _NV), pointer(m + _NA)
    rests = _equal(pointer(d + _QPOS), nq, step.seen, 0)
    rests = rests and _equal(pointer(d + _QVEL), nv, step.seen, nq)
    rests = rests and _equal(pointer(d + _ACT), na, step.seen, nq + nv)
    step.counts[Count.RESTS] = np.int64(rests)
    at = step.seen.shape[0] - 2 * nv
    _compare(pointer(d + _QACC), nv, step.seen, at)
    _compare(pointer(d + _CONSTRAINT), nv, step.seen, at + nv)


@kernel
def compare_with_last(m, d, step: Step):
    """What the last step left for this one, a `Seen`: ALL if this one begins with just what that
    one began with, and what that one wrote still stands there; INPUTS if the first is true alone;
    else NOTHING. Notes what this one begins with."""
    nq, nv, seen, counts = pointer(m + _NQ), pointer(m + _NV), step.seen, step.counts
    na, nu = pointer(m + _NA), pointer(m + _NU)
    bodies, mocap = 6 * pointer(m + _NBODY), pointer(m + _NMOCAP)
    same = counts[Count.SEEN] != Seen.NOTHING and counts[Count.RESTS] == 1
    same &= counts[Count.WATCHED] == 0
    at = 0
    same &= _compare(pointer(d + _QPOS), nq, seen, at)
    at += nq
    same &= _compare(pointer(d + _QVEL), nv, seen, at)
    at += nv
    same &= _compare(pointer(d + _ACT), na, seen, at)
    at += na
    same &= _compare(pointer(d + _CTRL), nu, seen, at)
    at += nu
    same &= _compare(pointer(d + _QFRC), nv, seen, at)
    at += nv
    same &= _compare(pointer(d + _XFRC), bodies, seen, at)
    at += bodies
    same &= _compare(pointer(d + _MPOS), 3 * mocap, seen, at)
    at += 3 * mocap
    same &= _compare(pointer(d + _MQUAT), 4 * mocap, seen, at)
    at += 4 * mocap
    if not same:
        return np.int64(Seen.NOTHING)
    stands = counts[Count.SEEN] == Seen.ALL
    stands &= _compare(pointer(d + _QACC), nv, seen, at)
    stands &= _compare(pointer(d + _CONSTRAINT), nv, seen, at + nv)
    return np.int64(Seen.ALL if stands else Seen.INPUTS)


@kernel
def recall_impulses(m, d, count, step: Step, f, v):
    """Impulses and velocity of the last step, which began with what this one begins with and left
    positions and velocity as they were; whether its blocks are this one's."""
    key, record = step.key, step.record
    if step.counts[Count.OLD] != count:
        return False
    for i in range(count):
        for k in range(2):
            if record[i, Record.FIRST + k] != key[i, k]:
                return False
        for r in range(ROWS):
            f[i, r] = record[i, Record.FORCE + r]
    qvel = numbers(pointer(d + _QVEL), v.shape[0])
    for j in range(v.shape[0]):
        v[j] = qvel[j]
        step.motion[j] = 0.0
    return True


@leaf
def _full(d):
    return integer(d + _FULL_A) + integer(d + _FULL_B)


@kernel
def move_smoothly(m, d):
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
def weigh(m, d, config: Config, b: Blocks, request: Request, step: Step):
    """Mass, momentum and free velocity of the step, none of which asks for contacts: MASS where the
    mass is not positive definite, else DONE. Damping and servos are in the mass, so that the free
    velocity is what joints come to, not what their forces would fling them to."""
    nv = b.first.shape[0]
    dt = number(m + _TIMESTEP)
    if config.derivatives:
        mj.smooth_derivatives(m, d, 0)
    read_mass(m, d, b, config.derivatives)
    qvel, force = numbers(pointer(d + _QVEL), nv), numbers(pointer(d + _SMOOTH), nv)
    for j in range(nv):
        b.velocity[j] = qvel[j]
        b.push[j] = dt * force[j]
    if config.servos:
        add_released(m, d, b, step.released)
    drop_rounding(m, d, b, step)
    scratch = (step.small, step.six, step.rate, step.x, step.block)
    steady_spin(m, d, b, config.derivatives, step.free, scratch)
    for k in range(b.mass.shape[0]):
        step.factor[k] = b.mass[k]
    step.counts[Count.DOF] = factor_skyline(step.factor, b.row, b.first)
    if step.counts[Count.DOF] >= 0:
        return Stop.MASS
    for j in range(nv):
        request.v_free[j] = b.push[j]
    solve_skyline(step.factor, b.row, b.first, request.v_free)
    for j in range(nv):
        request.v_free[j] += b.velocity[j]
    return Stop.DONE


@kernel
def meet(
    m, d, config: Config, ground, b: Blocks, request: Request, step: Step, extra, found, sparing
):
    """MuJoCo's collisions and constraint rows, with margins for this step, which is weighed; DONE,
    or ARENA where not all found room. ground: `terrain.Ground.features`; extra: least margin of
    joints; found: whether the contacts are there already; sparing: whether those that the step does
    not come to are left out.

    Where contacts pull (adhesion), the forces before them are evaluated once more, and the step is
    weighed again.
    """
    qvel = numbers(pointer(d + _QVEL), request.v_free.shape[0])
    free_motion(m, d, request.v_free, step.reach)
    before = _full(d)
    if not found:
        set_margins(m, d, qvel, request.v_free, step.reach, extra)
        collide(m, d)
        refine_contacts(m, d)
        if ground is not None:
            terrain, hulls, tolerance = ground
            replace_contacts(m, d, terrain, hulls, tolerance)
        step.counts[Count.LEFT_OUT] = 0
        if sparing:
            step.counts[Count.LEFT_OUT] = leave_out(
                m, d, step.reach, config.touch, step.live, step.depth, step.kick
            )
    exclude_ghosts(m, d, step.reach, config.touch)
    if config.rigid:
        exclude_joined(m, d)
    mj.make_constraint(m, d)
    if _full(d) != before:
        return Stop.ARENA
    stop = Stop.DONE
    if config.adhesion:
        hide_ahead(d, config.touch)
        mj.transmission(m, d)
        mj.fwd_velocity(m, d)
        mj.fwd_actuation(m, d)
        mj.fwd_acceleration(m, d)
        if step.counts[Count.WHIRLS] == 1:
            add_bound(m, d, step)
        stop = weigh(m, d, config, b, request, step)
    else:
        mj.reference_constraint(m, d)
    if config.sensors:
        hide_limits(d, config.touch)
        mj.sensor_pos(m, d)
        mj.sensor_vel(m, d)
    if config.energy:
        mj.energy_pos(m, d)
        mj.energy_vel(m, d)
    return stop


@kernel
def guess_impulses(step: Step, count, request: Request):
    """Impulses of the last step's blocks for this step's: the nearest one of the same pair."""
    key, place, record = step.key, step.place, step.record
    f, built, inputs = request.guess, request.built, request.inputs
    old = step.counts[Count.OLD]
    at, before = 0, -1
    for i in range(count):
        built[i] = inputs[i] = step.correction[i] = step.jammed[i] = 0.0
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
        built[i] = record[found, Record.BUILT]
        if found > before:  # else it may be another one's too, of contacts in one point
            inputs[i] = record[found, Record.INPUTS]
        before = found
        step.correction[i] = record[found, Record.CORRECTION]
        step.jammed[i] = record[found, Record.JAMMED]


@kernel
def keep_answer(step: Step, newton: NewtonWorkspace, request: Request):
    """Keeps the step's answer, which runs into contacts that it was solved without, for its next
    solve to begin with."""
    count = step.counts[Count.BLOCKS]
    for i in range(count):
        for k in range(3):
            step.answer[i, Answer.FIRST + k] = step.key[i, k]
        step.answer[i, Answer.BUILT] = request.built[i]
        for r in range(ROWS):
            step.answer[i, Answer.IMPULSE + r] = newton.f[i, r]
    for j in range(newton.v.shape[0]):
        request.start[j] = newton.v[j]
    step.counts[Count.ANSWERED] = count


@kernel
def guess_from_answer(step: Step, count, request: Request):
    """The answer that was kept as the guess; what it did not have has no impulse. Blocks come in
    the same order as then."""
    key, answer, known = step.key, step.answer, step.counts[Count.ANSWERED]
    j = 0
    for i in range(count):
        same = j < known
        for k in range(3):
            same = same and answer[j, Answer.FIRST + k] == key[i, k]
        request.built[i] = answer[j, Answer.BUILT] if same else 0.0
        for r in range(ROWS):
            request.guess[i, r] = answer[j, Answer.IMPULSE + r] if same else 0.0
        j += same


@kernel
def fill_blocks(m, d, config: Config, b: Blocks, step: Step, address):
    """Blocks of the step, which is weighed and met; whether they found room. address: of the
    workspace that they are of."""
    blocks, entries = count_blocks(d)
    step.counts[Count.NEED_BLOCKS] = blocks
    step.counts[Count.NEED_ENTRIES] = entries
    if blocks > b.head.shape[0] or entries > b.value.shape[0]:
        return False
    count = read_rows(
        m, d, b, config.rigid, config.viscosity, config.touch, config.near, config.rough,
        config.shallow, config.deep, config.bends, step.key, step.place,
    )  # fmt: skip
    if config.once:
        place = step.place[:count]
        hold_once(
            m, step.key[:count], place[:, Place.X : Place.Z + 1], read_normals(d, count, step.key),
            place[:, Place.GAP], b.data[:count, Datum.SLIDE],
        )  # fmt: skip
    if config.rigid:
        settle(m, address, count)
    step.counts[Count.BLOCKS] = count
    return True


@kernel
def prepare(
    m, d, config: Config, b: Blocks, g: Graph, s: BlockMatrix, step: Step, work, weight, address
):  # fmt: skip
    """Blocks, who touches whom, inverse inertias; whether all found room. Where there are soft
    rows, inverse inertias are those of the mass alone. address: of the workspace."""
    if not fill_blocks(m, d, config, b, step, address):
        return False
    count = step.counts[Count.BLOCKS]
    if not connect_blocks(b, count, g, s):
        return False
    inverse_inertias(b, count, step.factor, work, weight)
    return True


@kernel
def count_soft_rows(b: Blocks, count):
    """How many blocks are soft rows: equalities come first."""
    soft = 0
    while soft < count and b.head[soft, Head.KIND] == Kind.SOFT:
        soft += 1
    return soft
