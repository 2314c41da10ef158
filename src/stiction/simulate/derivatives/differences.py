"""What a step's problem is at states nearby: central differences of all that comes before contact.

The law of contact is differentiated exactly (`contact/derivatives`); it needs to know how the
problem itself changes. Here the state, a control or a parameter is moved a little to either side,
kinematics, forces, collisions and rows are evaluated as a step does it, and the problem is read at
the velocity and the impulses of the step: nothing is solved again.

    push      S (v - v+) + h f + J' f          momentum that is left over
    speed     J v+                             of each row
    gap, data                                  of each block
    push_w    -S w + N' f_w, speed_w = N w     the same of the overlap's correction w, with half
                                               a step of how paths part where it grips
    act       activations after the step

A contact may be found elsewhere, or not at all, as soon as a mesh turns a little, whose lowest
corner is then another one. Such variables are moved less (`LESS`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import library as mj
from stiction.bridge.arcs import parting
from stiction.bridge.constants import set_const
from stiction.bridge.guard import caught
from stiction.bridge.layout import number, numbers, offset, pointer, size_of
from stiction.bridge.rows import Key, Place
from stiction.bridge.servos import release_unclamped
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import (
    DATA,
    ROWS,
    Blocks,
    Datum,
    Head,
    Kind,
    add_impulses,
    mass_times,
)
from stiction.contact.solvers.blocks.workspace import unpack_problem
from stiction.kernels.compile import kernel
from stiction.kernels.packing import packed
from stiction.simulate.time_stepping.config import Config, Stop
from stiction.simulate.time_stepping.pose import fill_blocks, meet, move_smoothly, weigh
from stiction.simulate.time_stepping.whirling import keep_energy, note_past, turns_fast
from stiction.simulate.time_stepping.workspace import Count, Step, unpack_step

Indices = NDArray[np.int64]

_QPOS, _QVEL, _ACT, _TIME = (offset("mjData", name) for name in ("qpos", "qvel", "act", "time"))
_TIMESTEP = offset("mjModel", "opt", "timestep")
_CONTACT_SIZE, _CONTACT = size_of("mjContact"), offset("mjData", "contact")
_POS, _FRAME = offset("mjContact", "pos"), offset("mjContact", "frame")
_NQ, _NA = offset("mjModel", "nq"), offset("mjModel", "na")

LESS = 1e-2
"""How far a variable is moved where contacts do not stay in place, over how far it should be."""


class Level(IntEnum):
    """What must be evaluated anew where a variable has changed."""

    POSITION = 0
    VELOCITY = 1
    """All but kinematics, collisions and rows."""
    ACTUATION = 2
    """Actuators, and what their forces sum up to."""


@packed
class Reference(NamedTuple):
    """The step that is differentiated; n blocks."""

    key: Indices  # (n, Key)
    place: Array  # (n, Place)
    velocity: Array  # (nv,) v+
    impulse: Array  # (n, ROWS)
    correction: Array  # (nv,) w
    pushed: Array  # (n, 3) impulses that pushed overlap out
    gripped: Indices  # (n,) 1 where the correction grips
    reach: Array  # (1,) how far a contact may be found from its place [m]


@packed
class Reading(NamedTuple):
    """The problem at one state."""

    push: Array  # (nv,)
    speed: Array  # (n, ROWS)
    gap: Array  # (n,)
    data: Array  # (n, DATA)
    push_w: Array  # (nv,)
    speed_w: Array  # (n, 3)
    act: Array  # (na,)
    found: Array  # (n,) 1 where the block was there, and where it was before


@packed
class Columns(NamedTuple):
    """Derivatives of readings, a line for each variable."""

    push: Array  # (k, nv)
    speed: Array  # (k, n, ROWS)
    gap: Array  # (k, n)
    data: Array  # (k, n, DATA)
    push_w: Array  # (k, nv)
    speed_w: Array  # (k, n, 3)
    act: Array  # (k, na)


@packed
class Scratch(NamedTuple):
    """What moving a state works in."""

    qpos: Array  # (nq,)
    direction: Array  # (nv,)
    moved: Array  # (nv,)
    match: Indices  # (n,)


def allocate(n: int, nv: int, nq: int, na: int) -> tuple[Reading, Reading, Scratch]:
    """Two readings, and what they are made in."""
    made = [
        Reading(
            np.zeros(nv), np.zeros((n, ROWS)), np.zeros(n), np.zeros((n, DATA)), np.zeros(nv),
            np.zeros((n, 3)), np.zeros(na), np.zeros(n),
        )
        for _ in range(2)
    ]  # fmt: skip
    scratch = Scratch(np.zeros(nq), np.zeros(nv), np.zeros(nv), np.zeros(n, np.int64))
    return made[0], made[1], scratch


def allocate_columns(k: int, n: int, nv: int, na: int) -> Columns:
    """Room for k variables."""
    return Columns(
        np.zeros((k, nv)), np.zeros((k, n, ROWS)), np.zeros((k, n)), np.zeros((k, n, DATA)),
        np.zeros((k, nv)), np.zeros((k, n, 3)), np.zeros((k, na)),
    )  # fmt: skip


@kernel
def add_parting(m, d, key, place, v, out):
    """out (3,) += half a step of how a contact's paths part at v (nv,), along its rows."""
    contact, dt = pointer(d + _CONTACT) + key[Key.INDEX] * _CONTACT_SIZE, number(m + _TIMESTEP)
    frame = numbers(contact + _FRAME, 9)
    _, a = parting(m, d, key[0], key[1], numbers(contact + _POS, 3), v, dt)
    for r in range(3):
        along = frame[3 * r] * a[0] + frame[3 * r + 1] * a[1] + frame[3 * r + 2] * a[2]
        out[r] += 0.5 * dt * along * (place[Place.RATIO] if r == 2 else 1.0)


@kernel
def _match(ref: Reference, key, place, count, match):
    """match (n,) := the block that each one of the reference is now, or -1: of the same pair the
    nearest, and of those alike the one that comes in the same turn."""
    for i in range(ref.key.shape[0]):
        match[i] = -1
        best = np.inf
        turn = 0
        for k in range(i):
            same = ref.key[k, 0] == ref.key[i, 0] and ref.key[k, 1] == ref.key[i, 1]
            turn += 1 if same else 0
        seen = 0
        for k in range(count):
            if key[k, 0] != ref.key[i, 0] or key[k, 1] != ref.key[i, 1]:
                continue
            apart = 1e-12 * (seen - turn) ** 2
            if key[k, Key.INDEX] >= 0:
                for c in range(Place.X, Place.Z + 1):
                    apart += (place[k, c] - ref.place[i, c]) ** 2
            if apart < best:
                best = apart
                match[i] = k
            seen += 1


@kernel
def _is_near(ref: Reference, i, step: Step, k):
    """Whether block k is where block i of the reference was."""
    if ref.key[i, Key.INDEX] < 0:
        return True
    apart = 0.0
    for c in range(Place.X, Place.Z + 1):
        apart += (step.place[k, c] - ref.place[i, c]) ** 2
    return apart <= ref.reach[0] * ref.reach[0]


@kernel
def _read(m, d, b: Blocks, count, step: Step, force, ref: Reference, s: Scratch, out: Reading):
    """Reads the problem of the blocks at the velocity and the impulses of the reference; force
    (cap, ROWS) is overwritten."""
    head, data, column, value = b.head, b.data, b.column, b.value
    nv = b.first.shape[0]
    _match(ref, step.key, step.place, count, s.match)
    for i in range(count):
        for r in range(ROWS):
            force[i, r] = 0.0
    for i in range(ref.key.shape[0]):
        k = s.match[i]
        out.found[i] = 1.0 if k >= 0 and _is_near(ref, i, step, k) else 0.0
        out.gap[i] = 0.0
        for r in range(3):
            out.speed_w[i, r] = 0.0
        for r in range(ROWS):
            out.speed[i, r] = 0.0
        if k < 0:
            continue
        out.gap[i] = step.place[k, Place.GAP]
        for c in range(DATA):
            out.data[i, c] = data[k, c]
        width, c0 = head[k, Head.WIDTH], head[k, Head.COLUMN]
        for r in range(head[k, Head.ROWS]):
            force[k, r] = ref.impulse[i, r]
            a0 = head[k, Head.VALUE] + r * width
            speed, pushed = 0.0, 0.0
            for c in range(width):
                speed += value[a0 + c] * ref.velocity[column[c0 + c]]
                pushed += value[a0 + c] * ref.correction[column[c0 + c]]
            out.speed[i, r] = speed
            if r == 0 or (r < 3 and ref.gripped[i] == 1):
                out.speed_w[i, r] = pushed
        if ref.gripped[i] == 1:
            add_parting(m, d, step.key[k], step.place[k], ref.velocity, out.speed_w[i])
    for j in range(nv):
        s.moved[j] = b.velocity[j] - ref.velocity[j]
    mass_times(b, s.moved, out.push)
    for j in range(nv):
        out.push[j] += b.push[j]
    add_impulses(b, 0, count, force, out.push)
    for i in range(count):
        for r in range(ROWS):
            force[i, r] = 0.0
    for i in range(ref.key.shape[0]):
        k = s.match[i]
        if k >= 0:
            for r in range(3 if ref.gripped[i] == 1 else 1):
                force[k, r] = ref.pushed[i, r]
            if head[k, Head.KIND] == Kind.SOFT:
                force[k, 0] = -data[k, Datum.DRAG] * out.speed_w[i, 0]
    for j in range(nv):
        s.moved[j] = -ref.correction[j]
    mass_times(b, s.moved, out.push_w)
    add_impulses(b, 0, count, force, out.push_w)


@kernel
def _advance_activations(m, d, s: Scratch, out: Reading):
    """Activations after the step, by MuJoCo; the state is put back."""
    na, nq, nv = out.act.shape[0], s.qpos.shape[0], s.direction.shape[0]
    qpos, qvel = numbers(pointer(d + _QPOS), nq), numbers(pointer(d + _QVEL), nv)
    act, time = numbers(pointer(d + _ACT), na), numbers(d + _TIME, 1)
    before, now = act.copy(), time[0]
    place, speed = qpos.copy(), qvel.copy()
    mj.euler(m, d)
    for k in range(na):
        out.act[k] = act[k]
        act[k] = before[k]
    for k in range(nq):
        qpos[k] = place[k]
    for j in range(nv):
        qvel[j] = speed[j]
    time[0] = now


@kernel
def _pose(m, d, config: Config, ground, address, level):
    """Fills the blocks of the step at the state as it is; why it stopped. level: what has changed
    since the data was evaluated."""
    b, _, _, request = unpack_problem(address)
    _, step = unpack_step(address)
    whirls = level != Level.ACTUATION and turns_fast(m, d, step)
    step.counts[Count.WHIRLS] = np.int64(whirls)
    step.counts[Count.CORRECTED] = 0  # states beside it come from where velocities say
    if whirls:
        note_past(m, d, address)
    if level == Level.POSITION or whirls or config.adhesion:
        move_smoothly(m, d)
        if whirls:
            keep_energy(m, d, address)
        stop = weigh(m, d, config, b, request, step)
        if stop == Stop.DONE:
            stop = meet(m, d, config, ground, b, request, step, 0.0, False, False)
    else:
        if level == Level.VELOCITY:
            mj.fwd_velocity(m, d)
        mj.fwd_actuation(m, d)
        mj.fwd_acceleration(m, d)
        mj.reference_constraint(m, d)
        stop = weigh(m, d, config, b, request, step)
    if stop != Stop.DONE:
        return stop
    return Stop.DONE if fill_blocks(m, d, config, b, step, address) else Stop.ROOM


@kernel
def _evaluate(
    m, d, config: Config, ground, address, level, ref: Reference, s: Scratch, out: Reading
):  # fmt: skip
    """Poses the step at the state as it is, and reads it; why it stopped."""
    stop = _pose(m, d, config, ground, address, level)
    if stop != Stop.DONE:
        return stop
    b, _, _, request = unpack_problem(address)
    _, step = unpack_step(address)
    _read(m, d, b, step.counts[Count.BLOCKS], step, request.guess, ref, s, out)
    if out.act.shape[0] > 0:
        _advance_activations(m, d, s, out)
    return Stop.DONE


@kernel
def pose(frame, m, d, config: Config, ground, address):
    """Poses the step at the state as it is, into the workspace; why it stopped."""
    if caught(frame, d) != 0:
        return Stop.ERROR
    stop = _pose(m, d, config, ground, address, Level.POSITION)
    if config.servos:
        _, step = unpack_step(address)
        release_unclamped(m, d, step.released)
    return stop


@kernel
def bend_by_speed(frame, m, d, config: Config, ground, address, velocity, gripped, out):
    """out (n, 3, nv) := by the velocity v+, what `add_parting` finds of the blocks that are gripped
    (n,), of the step as it is posed: differences of a quadratic form, exact whatever their
    length."""
    if caught(frame, d) != 0:
        return Stop.ERROR
    _, step = unpack_step(address)
    v = velocity.copy()
    for i in range(out.shape[0]):
        if gripped[i] == 0:
            continue
        for j in range(out.shape[2]):
            ends = np.zeros((2, 3))
            for side in range(2):
                v[j] = velocity[j] + (0.5 if side == 0 else -0.5)
                add_parting(m, d, step.key[i], step.place[i], v, ends[side])
            v[j] = velocity[j]
            for r in range(3):
                out[i, r, j] = ends[0, r] - ends[1, r]
    return Stop.DONE


@kernel
def _subtract(plus: Reading, minus: Reading, eps, out: Columns, c):
    """Fills line c with a central difference. A block that is not there on one side is taken to be
    as on the other."""
    scale = 0.5 / eps
    for j in range(plus.push.shape[0]):
        out.push[c, j] = (plus.push[j] - minus.push[j]) * scale
        out.push_w[c, j] = (plus.push_w[j] - minus.push_w[j]) * scale
    for k in range(plus.act.shape[0]):
        out.act[c, k] = (plus.act[k] - minus.act[k]) * scale
    for i in range(plus.gap.shape[0]):
        if plus.found[i] == 0.0 or minus.found[i] == 0.0:
            continue
        out.gap[c, i] = (plus.gap[i] - minus.gap[i]) * scale
        for r in range(3):
            out.speed_w[c, i, r] = (plus.speed_w[i, r] - minus.speed_w[i, r]) * scale
        for r in range(ROWS):
            out.speed[c, i, r] = (plus.speed[i, r] - minus.speed[i, r]) * scale
        for k in range(DATA):
            out.data[c, i, k] = (plus.data[i, k] - minus.data[i, k]) * scale


@kernel
def _are_found(plus: Reading, minus: Reading):
    """Whether all blocks were where they had been, on both sides."""
    found = True
    for i in range(plus.found.shape[0]):
        found = found and plus.found[i] == 1.0 and minus.found[i] == 1.0
    return found


@kernel
def _move(m, d, variable, amount, s: Scratch):
    """Moves a variable; of a degree of freedom, the position from s.qpos on."""
    if variable >= 0:
        numbers(variable, 1)[0] += amount
        return
    nq = s.qpos.shape[0]
    qpos = numbers(pointer(d + _QPOS), nq)
    for k in range(nq):
        qpos[k] = s.qpos[k]
    if amount != 0.0:
        s.direction[-1 - variable] = 1.0
        mj.integrate_pos(m, pointer(d + _QPOS), s.direction.ctypes.data, amount)
        s.direction[-1 - variable] = 0.0


@kernel
def _evaluate_ends(
    m, d, config: Config, ground, address, variable, level, far, spare, ref: Reference, ends,
    s: Scratch,
):  # fmt: skip
    """Reads the problem with the variable moved by `far` to either side, and puts it back; why it
    stopped."""
    kept = number(variable) if variable >= 0 else 0.0
    _move(m, d, variable, far, s)
    if spare != 0:
        set_const(m, spare)
    stop = _evaluate(m, d, config, ground, address, level, ref, s, ends[0])
    if stop == Stop.DONE:
        _move(m, d, variable, -2.0 * far if variable >= 0 else -far, s)
        if spare != 0:
            set_const(m, spare)
        stop = _evaluate(m, d, config, ground, address, level, ref, s, ends[1])
    if variable >= 0:
        numbers(variable, 1)[0] = kept
    else:
        _move(m, d, variable, 0.0, s)
    return stop


@kernel
def differentiate(
    frame, m, d, config: Config, ground, address, variable, level, eps, spare, ref: Reference,
    ends, s: Scratch, out: Columns,
):  # fmt: skip
    """Fills `out` with central differences; why it stopped.

    variable (k,): the address of a number in the data or in the model, or -1 - a degree of freedom
    whose position is moved; level (k,): `Level` of each, those of one level in a row; eps (k,): how
    far; spare: address of another data of the model, for fields of it that MuJoCo derives others
    from, or 0.
    """
    if caught(frame, d) != 0:
        return Stop.ERROR
    stop = Stop.DONE
    nq = s.qpos.shape[0]
    qpos = numbers(pointer(d + _QPOS), nq)
    for k in range(nq):
        s.qpos[k] = qpos[k]
    for c in range(variable.shape[0]):
        if c > 0 and level[c] != level[c - 1]:  # what is not evaluated again is the state's own
            stop = _pose(m, d, config, ground, address, Level.POSITION)
        far = eps[c]
        for attempt in range(2):
            if stop == Stop.DONE:
                stop = _evaluate_ends(
                    m, d, config, ground, address, variable[c], level[c], far, spare, ref, ends, s
                )
            if stop != Stop.DONE:
                return stop
            if attempt == 1 or _are_found(ends[0], ends[1]):
                break
            far *= LESS
        _subtract(ends[0], ends[1], far, out, c)
    return Stop.DONE
