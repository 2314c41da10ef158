"""The method of Runge and Kutta, compiled: stages with contacts that are held by Coulomb's law.

A stage evaluates a state, finds the held contacts in it, differences their rows, and solves for
their forces by Baraff's algorithm (`sustained.py`), all without returning to Python. Other laws
go stage by stage, and so do states for which that algorithm has no answer (`trajectories.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.guard import caught, leave
from stiction.bridge.layout import offset
from stiction.kernels.compile import kernel
from stiction.simulate.event_driven.distances import (
    Snapshot,
    copy_row,
    match,
    read_loads,
    read_rows,
    row_speeds,
    snap_rows,
)
from stiction.simulate.event_driven.focus import focus, unfocus
from stiction.simulate.event_driven.held_rows import held_rows, held_spins
from stiction.simulate.event_driven.rotations import unroll
from stiction.simulate.event_driven.stiffness import WEIGHTS
from stiction.simulate.event_driven.surveyor import Outcome, Slot, evaluate, place, slot
from stiction.simulate.event_driven.sustained import Loads, drive_loads, dry_arrays, hold_loads

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

NUDGE = 1e-5
"""How far positions are moved to difference rows [m, rad]: the truncation error is then some
1e-10 of the rate, and rounding 1e-11."""

SMALLEST = 1e-7
"""Speed [m/s, rad/s] below which rates of rows, which go with its square, are zero."""

JUMP = 1e-3
"""Distance [m] beyond which a contact is another one, when rows are differenced."""

FASTEST = float(mujoco.mjMAXVAL)
"""Speed [m/s, rad/s] beyond which a motion diverges."""

# Kernels, typed by Numba and not here.
mj: Any = library
pointer: Any = layout.pointer
numbers: Any = layout.numbers

_QPOS, _QVEL, _ACT, _ACT_DOT = (
    offset("mjData", name) for name in ("qpos", "qvel", "act", "act_dot")
)


class Course(NamedTuple):
    """What a phase keeps along its trajectory; nh held contacts."""

    pair: Indices  # (nh, 2) as in `Snapshot`
    point: Array  # (nh, 3)
    axis: Array  # (nh, 3)
    held: Indices  # (nh,) contacts of the phase's snapshot
    sliding: Mask  # (nh,)
    direction: Array  # (nh, 2)
    steady: Mask  # (nh,)
    least: Array  # (nh,) slip below which it is about to stop [m/s]
    turning: Array  # (nf,)
    spinning: Array  # (ns,)
    spin_contact: Indices  # (ns,)


class Start(NamedTuple):
    """Where a trajectory starts, with the forces that act there."""

    qpos: Array
    qvel: Array
    act: Array
    act_dot: Array
    acceleration: Array
    normal: Array
    tangent: Array
    box: Array
    damping: Array  # (nv, nv) what is taken implicitly, or (0, 0)


class Limits(NamedTuple):
    """What of the model integration needs."""

    rotations: Indices  # first degree of freedom of each ball
    clamped: Indices  # activations with a range
    low: Array
    high: Array


@kernel
def difference(
    session: int, probe: int, qpos: Array, qvel: Array, pair: Indices, point: Array, axis: Array,
    rates: Array, joint_rate: Array,
) -> None:  # fmt: skip
    """(d rows / dt) v of contacts, by their identity, into rates (nh, 3) and of joints into
    joint_rate (ne,): differences between positions a little ahead and behind, evaluated in the data
    at `probe`."""
    rates[:] = 0.0
    joint_rate[:] = 0.0
    fastest = 0.0
    for k in range(qvel.shape[0]):
        fastest = max(fastest, abs(qvel[k]))
    if fastest < SMALLEST or rates.shape[0] + joint_rate.shape[0] == 0:
        return
    m, ahead = slot(session, Slot.MODEL), NUDGE / fastest
    found = np.ones(rates.shape[0], np.bool_)
    speed, far, joint = np.zeros(rates.shape), np.zeros(found.shape), np.zeros(joint_rate.shape)
    for side in range(2):
        sign = 1.0 - 2.0 * side
        numbers(pointer(probe + _QPOS), qpos.shape[0])[:] = qpos
        mj.integrate_pos(m, pointer(probe + _QPOS), qvel.ctypes.data, sign * ahead)
        place(session, probe)
        row_speeds(probe, qvel, pair, point, axis, speed, far, joint)
        for i in range(rates.shape[0]):
            found[i] = found[i] and far[i] < JUMP
            for k in range(3):
                rates[i, k] += sign * speed[i, k] * (0.5 / ahead)
        for e in range(joint_rate.shape[0]):
            joint_rate[e] += sign * joint[e] * (0.5 / ahead)
    for i in range(rates.shape[0]):
        if not found[i]:
            rates[i, 0], rates[i, 1], rates[i, 2] = 0.0, 0.0, 0.0


@kernel
def difference_alone(
    session: int, probe: int, qpos: Array, qvel: Array, pair: Indices, point: Array, axis: Array,
    rates: Array, joint_rate: Array,
) -> None:  # fmt: skip
    """`difference`, which looks for no other contacts meanwhile."""
    m, masks = slot(session, Slot.MODEL), slot(session, Slot.MASKS)
    focus(m, pair, masks)
    difference(session, probe, qpos, qvel, pair, point, axis, rates, joint_rate)
    unfocus(m, masks)


@kernel
def survey_rates(
    session: int, probe: int, qpos: Array, qvel: Array, pair: Indices, point: Array, axis: Array,
    rates: Array, joint_rate: Array,
) -> Any:  # fmt: skip
    """`difference_alone`, guarded."""
    if caught(slot(session, Slot.FRAME), probe) != 0:
        return np.int64(Outcome.ERROR)
    difference_alone(session, probe, qpos, qvel, pair, point, axis, rates, joint_rate)
    leave(slot(session, Slot.FRAME))
    return np.int64(Outcome.DONE)


@kernel
def gather(
    course: Course, mass: Array, force: Array, joint: Array, dry: Array, dry_limit: Array,
    spin: Array, spin_contact: Indices, spin_friction: Array, qvel: Array, there: Indices,
    held: tuple[Indices, Array, Array, Array, Mask, Array], rates: Array, joint_rate: Array,
    spins: bool,
) -> Loads:  # fmt: skip
    """The loads of a state of the phase; there (nh,): where held contacts are in its rows, or -1;
    held: `held_rows`; spins: whether the law knows torsional and rolling friction."""
    _, normal, tangent, friction, sliding, direction = held
    nv, nf = qvel.shape[0], dry.shape[0]
    rows, first, parents = held_spins(there, course.held, course.spin_contact, spin_contact)
    ns = rows.shape[0] if spins else 0
    box, limit = np.zeros((nf + ns, nv)), np.zeros(nf + ns)
    parent, ratio, turning = np.full(nf + ns, -1), np.zeros(nf + ns), np.zeros(nf + ns)
    loaded = force.copy()
    for k in range(nf):
        copy_row(dry, k, box, k)
        if course.turning[k] != 0.0:  # a known force
            for a in range(nv):
                loaded[a] -= course.turning[k] * dry_limit[k] * dry[k, a]
        else:
            limit[k] = dry_limit[k]
    for k in range(ns):
        copy_row(spin, rows[k], box, nf + k)
        parent[nf + k], ratio[nf + k] = parents[k], spin_friction[rows[k]]
        turning[nf + k] = course.spinning[first[k]]
    return Loads(
        mass, qvel, loaded, normal, rates[:, 0].copy(), tangent, rates[:, 1:].copy(), friction,
        sliding, direction, joint, joint_rate, box, limit, parent, ratio, turning,
    )  # fmt: skip


@kernel
def hold_course(
    course: Course, seen: Snapshot, qvel: Array, there: Indices, rates: Array, joint_rate: Array,
    static: Array, dynamic: Array, guess: tuple[Array, Array, Array],
) -> tuple[Loads, Any]:  # fmt: skip
    """(loads, `hold_loads` of them) of a state of the phase; there and rates as for `gather`."""
    held = held_rows(
        there, seen.normal, seen.tangent, seen.friction, qvel, course.sliding, course.direction,
        course.steady, course.least,
    )  # fmt: skip
    loads = gather(
        course, seen.mass, seen.force, seen.joint, seen.dry, seen.dry_limit, seen.spin,
        seen.spin_contact, seen.spin_friction, qvel, there, held, rates, joint_rate, True,
    )  # fmt: skip
    return loads, hold_loads(loads, static, dynamic, guess)


@kernel
def _move(m: int, d: int, start: Start, turn: Array, qvel: Array, act: Array) -> bool:
    """Puts a state into the data at d: qpos after a displacement `turn` (nv,) from the start;
    whether its speeds are finite and bounded."""
    numbers(pointer(d + _QPOS), start.qpos.shape[0])[:] = start.qpos
    mj.integrate_pos(m, pointer(d + _QPOS), turn.ctypes.data, 1.0)
    numbers(pointer(d + _QVEL), qvel.shape[0])[:] = qvel
    numbers(pointer(d + _ACT), act.shape[0])[:] = act
    bounded = True
    for k in range(qvel.shape[0]):
        bounded = bounded and abs(qvel[k]) <= FASTEST
    return bounded


@kernel
def _loads_at(session: int, d: int, probe: int, course: Course, qpos: Array, qvel: Array) -> Loads:
    """The loads of the state of the data at d, which is evaluated."""
    m, nv = slot(session, Slot.MODEL), qvel.shape[0]
    mass, force, _ = read_loads(m, d, nv)
    (
        normal, tangent, _, friction, _, point, axis, pair, _, _, joint, _, dry, limit, spin,
        spin_contact, resist,
    ) = read_rows(d, nv)  # fmt: skip
    snap_rows(d, mass, joint)
    there = match(course.pair, course.point, course.axis, pair, point, axis)
    held = held_rows(
        there, normal, tangent, friction, qvel, course.sliding, course.direction, course.steady,
        course.least,
    )  # fmt: skip
    at = held[0]
    rates, joint_rate = np.zeros((at.shape[0], 3)), np.zeros(joint.shape[0])
    difference(session, probe, qpos, qvel, pair[at], point[at], axis[at], rates, joint_rate)
    return gather(
        course, mass, force, joint, dry, limit, spin, spin_contact, resist, qvel, there, held,
        rates, joint_rate, True,
    )  # fmt: skip


@kernel
def follow_stages(
    session: int, d: int, probe: int, course: Course, start: Start, limits: Limits, static: Array,
    dynamic: Array, h: float, qpos: Array, qvel: Array, act: Array, turn: Array,
) -> Any:  # fmt: skip
    """The state after the time h into qpos, qvel and act, and the displacement (nv,) into turn;
    stages are evaluated in the data at d, with no contacts but the course's. static, dynamic:
    coefficients of friction in the place of the contacts' own, (1,), or (0,)."""
    m, masks = slot(session, Slot.MODEL), slot(session, Slot.MASKS)
    focus(m, course.pair, masks)
    if start.damping.shape[0] > 0:
        done = _extrapolate(
            session, d, probe, course, start, limits, static, dynamic, h, qpos, qvel, act, turn
        )
    else:
        done = _follow(
            session, d, probe, course, start, limits, static, dynamic, h, qpos, qvel, act, turn
        )
    unfocus(m, masks)
    return done


@kernel
def _follow(
    session: int, d: int, probe: int, course: Course, start: Start, limits: Limits, static: Array,
    dynamic: Array, h: float, qpos: Array, qvel: Array, act: Array, turn: Array,
) -> Any:  # fmt: skip
    m, na, rate = slot(session, Slot.MODEL), start.act.shape[0], start.qvel.copy()
    change, act_change = start.acceleration.copy(), start.act_dot.copy()
    total, acceleration, act_dot = rate.copy(), change.copy(), act_change.copy()
    guess = (start.normal, start.tangent, start.box)
    for stage in range(1, 4):
        part = h if stage == 3 else 0.5 * h
        for k in range(qvel.shape[0]):
            turn[k] = part * rate[k]
            qvel[k] = start.qvel[k] + part * change[k]
        for k in range(na):
            act[k] = start.act[k] + part * act_change[k]
        if not _move(m, d, start, turn, qvel, act):
            return np.int64(Outcome.DIVERGED)
        done = evaluate(session, d, False)
        if done != Outcome.DONE:
            return done
        at = numbers(pointer(d + _QPOS), start.qpos.shape[0]).copy()
        loads = _loads_at(session, d, probe, course, at, qvel.copy())
        change, normal, tangent, _, box, found, _ = drive_loads(
            loads, dry_arrays(loads, static, dynamic), guess
        )
        if not found:
            return np.int64(Outcome.NO_FORCE)
        guess = (normal, tangent, box)
        rate = unroll(turn, qvel, limits.rotations)
        act_change = numbers(pointer(d + _ACT_DOT), na).copy()
        weight = 1.0 if stage == 3 else 2.0
        for k in range(qvel.shape[0]):
            total[k] += weight * rate[k]
            acceleration[k] += weight * change[k]
        for k in range(na):
            act_dot[k] += weight * act_change[k]
    part = h / 6.0
    for k in range(qvel.shape[0]):
        turn[k] = part * total[k]
        qvel[k] = start.qvel[k] + part * acceleration[k]
    for k in range(na):
        act[k] = start.act[k] + part * act_dot[k]
    _arrive(m, start, limits, turn, qpos, act)
    return np.int64(Outcome.DONE)


@kernel
def _arrive(m: int, start: Start, limits: Limits, turn: Array, qpos: Array, act: Array) -> None:
    """qpos := that after the displacement `turn`; act within its ranges."""
    qpos[:] = start.qpos
    mj.integrate_pos(m, qpos.ctypes.data, turn.ctypes.data, 1.0)
    for k in range(limits.clamped.shape[0]):
        i = limits.clamped[k]
        act[i] = min(max(act[i], limits.low[k]), limits.high[k])


@kernel
def _loads_after(
    session: int, d: int, probe: int, course: Course, start: Start, turn: Array, qvel: Array,
    act: Array,
) -> tuple[Any, Loads, Array]:  # fmt: skip
    """(outcome, loads, rates of activations) of the state after the displacement `turn`; where it
    was not evaluated nothing but the outcome counts."""
    at, speed, done = start.qpos.copy(), start.qvel.copy(), np.int64(Outcome.DIVERGED)
    if _move(slot(session, Slot.MODEL), d, start, turn, qvel, act):
        done = evaluate(session, d, False)
        at[:], speed[:] = numbers(pointer(d + _QPOS), at.shape[0]), qvel
    loads = _loads_at(session, d, probe, course, at, speed)
    return done, loads, numbers(pointer(d + _ACT_DOT), act.shape[0]).copy()


@kernel
def _extrapolate(
    session: int, d: int, probe: int, course: Course, start: Start, limits: Limits, static: Array,
    dynamic: Array, h: float, qpos: Array, qvel: Array, act: Array, turn: Array,
) -> Any:  # fmt: skip
    """`_follow` where damping is implicit, see `stiffness.py`."""
    m, nv, na = slot(session, Slot.MODEL), qvel.shape[0], act.shape[0]
    total, speed, level = np.zeros(nv), np.zeros(nv), np.zeros(na)
    guess = (start.normal, start.tangent, start.box)
    turn[:], qvel[:], act[:] = 0.0, start.qvel, start.act
    done, first, act_change = _loads_after(session, d, probe, course, start, turn, qvel, act)
    if done != Outcome.DONE:
        return done
    mass = first.mass.copy()
    for n in range(1, len(WEIGHTS) + 1):
        part, weight, loads = h / n, WEIGHTS[n - 1], first
        turn[:], qvel[:], act[:], act_change[:] = 0.0, start.qvel, start.act, start.act_dot
        loads.mass[:] = mass
        for i in range(n):
            if i > 0:
                done, loads, act_change = _loads_after(
                    session, d, probe, course, start, turn, qvel, act
                )
                if done != Outcome.DONE:
                    return done
            loads.mass[:] += part * start.damping
            change, normal, tangent, _, box, found, _ = drive_loads(
                loads, dry_arrays(loads, static, dynamic), guess
            )
            if not found:
                return np.int64(Outcome.NO_FORCE)
            guess = (normal, tangent, box)
            for k in range(nv):
                qvel[k] += part * change[k]
            for k in range(na):
                act[k] += part * act_change[k]
            rate = unroll(turn, qvel, limits.rotations)
            for k in range(nv):
                turn[k] += part * rate[k]
        for k in range(nv):
            total[k] += weight * turn[k]
            speed[k] += weight * qvel[k]
        for k in range(na):
            level[k] += weight * act[k]
    turn[:], qvel[:], act[:] = total, speed, level
    _arrive(m, start, limits, turn, qpos, act)
    return np.int64(Outcome.DONE)
