"""`take`: a calm step in one compiled call, from the forces at its start to those at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.guard import caught, leave
from stiction.bridge.layout import offset
from stiction.contact.certificate.accelerations import Slip
from stiction.kernels.compile import kernel
from stiction.simulate.event_driven.calm.output import note_contacts, write_forces
from stiction.simulate.event_driven.calm.signs import (
    is_accurate,
    is_quiet,
    is_safe,
    nothing_closed,
    sticks,
)
from stiction.simulate.event_driven.calm.work import ROOM, Count, Number, Work, unpack_work
from stiction.simulate.event_driven.distances import Snapshot, closing_bound, match, read
from stiction.simulate.event_driven.drift import project
from stiction.simulate.event_driven.held_rows import contact_states, held_rows
from stiction.simulate.event_driven.stages import (
    FASTEST,
    Course,
    Limits,
    Start,
    difference,
    follow_stages,
    gather,
)
from stiction.simulate.event_driven.surveyor import Outcome, Slot, evaluate, load, slot, widen
from stiction.simulate.event_driven.sustained import (
    COULOMB,
    drive_loads,
    dry_arrays,
    grade_sustained,
)
from stiction.simulate.event_driven.trajectories import ACCEPT, REST_SHARE, STOPPING_SLIP

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# Kernels, typed by Numba and not here.
mj: Any = library
pointer: Any = layout.pointer
numbers: Any = layout.numbers

_QPOS, _QVEL, _ACT = (offset("mjData", name) for name in ("qpos", "qvel", "act"))


@kernel
def _same_place(callbacks: int, w: Work, held: int, joints: int, qpos: Array, qvel: Array) -> bool:
    """Whether the rates in the workspace are those of this state."""
    if w.counts[Count.SAME] != 1 or w.counts[Count.HELD] != held:
        return False
    if mj.has_callbacks(callbacks):
        return False
    if w.counts[Count.JOINTS] != joints:
        return False
    same = True
    for k in range(qpos.shape[0]):
        same = same and qpos[k] == w.qpos[k]
    for k in range(qvel.shape[0]):
        same = same and qvel[k] == w.qvel[k]
    return same


@kernel
def _stand(
    session: int, d: int, probe: int, w: Work, seen: Snapshot, qpos: Array, qvel: Array
) -> Any:
    """(whether there are forces that pass, course, loads, acceleration, normal, tangent, joint and
    box forces) of the state of the data at d, of which `seen` was read."""
    rest = w.figures[Number.REST]
    normal, tangent, joint, dry = seen.normal, seen.tangent, seen.joint, seen.dry
    spin, spin_contact = seen.spin, seen.spin_contact
    _, _, held, sliding, direction, pace, turning, spinning = contact_states(
        normal, tangent, seen.gap, seen.friction, dry, spin, spin_contact, qvel,
        w.figures[Number.TOLERANCE], rest,
    )  # fmt: skip
    nh, ne = held.shape[0], joint.shape[0]
    course = Course(
        seen.pair[held], seen.point[held], seen.axis[held], held, sliding, direction,
        np.zeros(nh, np.bool_), np.maximum(STOPPING_SLIP * pace, rest), turning, spinning,
        spin_contact,
    )  # fmt: skip
    rows = held_rows(
        held, normal, tangent, seen.friction, qvel, sliding, direction, course.steady, course.least
    )
    rates, joint_rate = np.zeros((nh, 3)), np.zeros(ne)
    if _same_place(slot(session, Slot.CALLBACKS), w, nh, ne, qpos, qvel):
        rates[:], joint_rate[:] = w.rates[:nh], w.joint_rate[:ne]
    else:
        difference(
            session, probe, qpos, qvel, course.pair, course.point, course.axis, rates, joint_rate
        )
    loads = gather(
        course, seen.mass, seen.force, joint, dry, seen.dry_limit, spin, spin_contact,
        seen.spin_friction, qvel, held, rows, rates, joint_rate, True,
    )  # fmt: skip
    nb = loads.box.shape[0]
    arrays = dry_arrays(loads, w.static.copy(), w.dynamic.copy())
    guess = (np.empty(0), np.empty((0, 2)), np.empty(0))
    if w.counts[Count.HELD] == nh and w.counts[Count.BOX] == nb:
        guess = (w.normal[:nh].copy(), w.tangent[:nh].copy(), w.box[:nb].copy())
    acceleration, f_n, f_t, f_j, f_b, found, steps = drive_loads(loads, arrays, guess)
    fits = nh <= ROOM and ne <= ROOM and nb <= ROOM and normal.shape[0] <= ROOM
    passed = False
    if found and fits:
        slip = Slip(loads.tangent_rate, sliding, rows[5], loads.turning)
        table = grade_sustained(COULOMB, arrays, slip, acceleration, f_n, f_t, f_j, f_b)
        passed = bool(table.scaled.max() <= ACCEPT)
        w.counts[Count.PIVOTS] += steps
        if passed and table.scaled.max() > w.scaled.max():
            w.value[:], w.scaled[:], w.where[:] = table.value, table.scaled, table.where
        w.counts[Count.HELD], w.counts[Count.BOX], w.counts[Count.JOINTS] = nh, nb, ne
        w.qpos[:], w.qvel[:] = qpos, qvel
        w.rates[:nh], w.joint_rate[:ne] = rates, joint_rate
        w.normal[:nh], w.tangent[:nh], w.box[:nb] = f_n, f_t, f_b
    return passed, course, loads, acceleration, f_n, f_t, f_j, f_b


@kernel
def _move(
    session: int,
    d: int,
    probe: int,
    w: Work,
    course: Course,
    start: Start,
    seen: Snapshot,
    bound: Array,
) -> tuple[Any, Array, Array]:
    """(outcome, qpos, qvel) after the step, at which the data at d is evaluated."""
    m, nv = slot(session, Slot.MODEL), start.qvel.shape[0]
    dt, rest = w.figures[Number.DT], w.figures[Number.REST]
    qpos, qvel, act = start.qpos.copy(), start.qvel.copy(), start.act.copy()
    limits = Limits(w.rotations.copy(), w.clamped.copy(), w.low.copy(), w.high.copy())
    done = follow_stages(
        session, d, probe, course, start, limits, w.static.copy(), w.dynamic.copy(), dt, qpos, qvel,
        act,
    )  # fmt: skip
    calm = np.int64(Outcome.DONE)
    if done != calm:
        return done, qpos, qvel
    for k in range(nv):
        if not abs(qvel[k]) <= FASTEST:
            return np.int64(Outcome.NOT_CALM), qpos, qvel
    numbers(pointer(d + _QPOS), qpos.shape[0])[:] = qpos
    numbers(pointer(d + _QVEL), nv)[:] = qvel
    numbers(pointer(d + _ACT), act.shape[0])[:] = act
    done = evaluate(session, d, True)
    if done != calm:
        return done, qpos, qvel
    end = read(m, d, nv)
    speed = np.zeros(end.gap.shape[0])
    for i in range(speed.shape[0]):
        speed[i] = (end.normal[i] * qvel).sum()
    place = match(course.pair, course.point, course.axis, end.pair, end.point, end.axis)
    quiet = is_accurate(place, start.normal, end.gap, speed, w)
    quiet = quiet and is_safe(m, seen, bound, course.held, end.reach, dt)
    quiet = quiet and nothing_closed(place, end, speed, qvel, w)
    if not quiet:
        return np.int64(Outcome.NOT_CALM), qpos, qvel
    if project(end, place, start.normal, speed, qvel, rest, 2.0 * rest, 2.0 * rest):
        numbers(pointer(d + _QVEL), nv)[:] = qvel
        widen(m, d)
        load(m, d)
    return calm, qpos, qvel


@kernel
def _take(session: int, d: int, probe: int, work: int) -> Any:
    (w,) = unpack_work(work)
    m, nq, nv = slot(session, Slot.MODEL), w.qpos.shape[0], w.qvel.shape[0]
    dt, rest, not_calm = w.figures[Number.DT], w.figures[Number.REST], np.int64(Outcome.NOT_CALM)
    w.value[:], w.scaled[:], w.where[:], w.counts[Count.PIVOTS] = 0.0, 0.0, -1, 0
    qpos, qvel = numbers(pointer(d + _QPOS), nq).copy(), numbers(pointer(d + _QVEL), nv).copy()
    act = numbers(pointer(d + _ACT), w.act.shape[0]).copy()
    done = evaluate(session, d, True)
    if done != Outcome.DONE:
        return done
    seen = read(m, d, nv)
    gap = seen.gap
    deepest = 0.0
    for i in range(gap.shape[0]):
        deepest = max(deepest, -gap[i])
    w.figures[Number.OVERLAP] = deepest
    speed = np.zeros(gap.shape[0])
    for i in range(speed.shape[0]):
        speed[i] = (seen.normal[i] * qvel).sum()
    if not is_quiet(seen.normal, gap, seen.error, speed, qvel, w):
        return not_calm
    bound = closing_bound(m, d, seen.number, seen.pair, seen.point, seen.axis, speed)
    passed, course, loads, acceleration, f_n, f_t, f_j, f_b = _stand(
        session, d, probe, w, seen, qpos, qvel
    )
    if not passed or not sticks(course, loads, acceleration, f_n, dt, rest):
        return not_calm
    fastest, change = 0.0, 0.0
    for k in range(nv):
        fastest, change = max(fastest, abs(qvel[k])), max(change, abs(acceleration[k]))
    if fastest + dt * change > REST_SHARE * rest or (seen.act_dot != 0.0).any():
        start = Start(qpos, qvel, act, seen.act_dot, acceleration, f_n, f_t, f_b)
        done, qpos, qvel = _move(session, d, probe, w, course, start, seen, bound)
        if done != Outcome.DONE:
            return done
        seen = read(m, d, nv)
        speed = np.zeros(seen.gap.shape[0])
        for i in range(speed.shape[0]):
            speed[i] = (seen.normal[i] * qvel).sum()
        if not is_quiet(seen.normal, seen.gap, seen.error, speed, qvel, w):
            return not_calm
        passed, course, loads, acceleration, f_n, f_t, f_j, f_b = _stand(
            session, d, probe, w, seen, qpos, qvel
        )
        if not passed:
            return not_calm
    note_contacts(seen, course.held, qvel, f_n, f_t, f_b, w)
    write_forces(m, d, seen, acceleration, f_j, f_b, w)
    return np.int64(Outcome.DONE)


@kernel
def take(session: int, d: int, probe: int, work: int) -> Any:
    """Takes a step of the data at d, or says why not; then the data is not as before. work:
    `Work`."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Outcome.ERROR)
    done = _take(session, d, probe, work)
    leave(slot(session, Slot.FRAME))
    return done
