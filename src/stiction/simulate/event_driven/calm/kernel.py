"""`take`: a calm step in one compiled call, from the forces at its start to those at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.guard import caught, leave
from stiction.bridge.layout import offset
from stiction.kernels.compile import kernel
from stiction.simulate.event_driven.calm.output import note_contacts, write_forces
from stiction.simulate.event_driven.calm.signs import is_quiet, sticks
from stiction.simulate.event_driven.calm.work import ROOM, Count, Number, Work, unpack_work
from stiction.simulate.event_driven.curve import lay_curve
from stiction.simulate.event_driven.distances import Snapshot, closing_bound, read, read_forces
from stiction.simulate.event_driven.drift import FIRM, project
from stiction.simulate.event_driven.events import Marks
from stiction.simulate.event_driven.held_rows import contact_states, held_rows, speed_of_rest
from stiction.simulate.event_driven.phases import Grip, Phase, State
from stiction.simulate.event_driven.search import (
    Trajectory,
    advance,
    arrive,
    evaluate_at,
    integration_error,
)
from stiction.simulate.event_driven.stages import (
    FASTEST,
    Course,
    Limits,
    Start,
    difference_alone,
    follow_stages,
    gather,
)
from stiction.simulate.event_driven.surveyor import (
    Outcome,
    Slot,
    damping_at,
    evaluate,
    load,
    slot,
    widen,
)
from stiction.simulate.event_driven.sustained import (
    drive_whitened,
    dry_arrays,
    grade_whitened,
    whiten,
)
from stiction.simulate.event_driven.trajectories import ACCEPT, REST_SHARE, STOPPING_SLIP

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# Kernels, typed by Numba and not here.
mj: Any = library
pointer: Any = layout.pointer
numbers: Any = layout.numbers

_QPOS, _QVEL, _ACT = (offset("mjData", name) for name in ("qpos", "qvel", "act"))
_SMOOTH = offset("mjData", "qacc_smooth")
_NGEOM, _RBOUND = offset("mjModel", "ngeom"), offset("mjModel", "geom_rbound")


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
def _begin(m: int, d: int, w: Work, seen: Snapshot, state: State) -> Phase:
    """The phase that begins at the state of the data at d, of which `seen` was read."""
    speed, touching, held, sliding, direction, pace, turning, spinning = contact_states(
        seen.normal, seen.tangent, seen.gap, seen.friction, seen.dry, seen.spin, seen.spin_contact,
        state.qvel, w.figures[Number.TOLERANCE], w.figures[Number.REST],
    )  # fmt: skip
    bound = closing_bound(m, d, seen.number, seen.pair, seen.point, seen.axis, speed)
    for i in held:
        bound[i] = -np.inf
    steady = np.zeros(held.shape[0], np.bool_)
    return Phase(
        state, seen, speed, bound, touching, held, sliding, direction, pace, steady, turning,
        spinning, np.zeros((0, 0)),
    )  # fmt: skip


@kernel
def _stand(session: int, probe: int, w: Work, phase: Phase) -> Any:
    """(whether there are forces that pass, course, loads, acceleration, normal, tangent, joint and
    box forces) of the start of a phase."""
    seen, held, qpos, qvel = phase.seen, phase.held, phase.state.qpos, phase.state.qvel
    nh, ne = held.shape[0], seen.joint.shape[0]
    course = Course(
        seen.pair[held], seen.point[held], seen.axis[held], held, phase.sliding, phase.direction,
        phase.steady, np.maximum(STOPPING_SLIP * phase.pace, w.figures[Number.REST]),
        phase.turning, phase.spinning, seen.spin_contact,
    )  # fmt: skip
    rows = held_rows(
        held, seen.normal, seen.tangent, seen.friction, qvel, phase.sliding, phase.direction,
        phase.steady, course.least,
    )  # fmt: skip
    rates, joint_rate = np.zeros((nh, 3)), np.zeros(ne)
    if _same_place(slot(session, Slot.CALLBACKS), w, nh, ne, qpos, qvel):
        rates[:], joint_rate[:] = w.rates[:nh], w.joint_rate[:ne]
    else:
        difference_alone(
            session, probe, qpos, qvel, course.pair, course.point, course.axis, rates, joint_rate
        )
    loads = gather(
        course, seen.mass, seen.force, seen.joint, seen.dry, seen.dry_limit, seen.spin,
        seen.spin_contact, seen.spin_friction, qvel, held, rows, rates, joint_rate, True,
    )  # fmt: skip
    nb = loads.box.shape[0]
    arrays = dry_arrays(loads, w.static.copy(), w.dynamic.copy())
    whitened = whiten(arrays, loads.tangent_rate)
    guess = (np.empty(0), np.empty((0, 2)), np.empty(0))
    if w.counts[Count.HELD] == nh and w.counts[Count.BOX] == nb:
        guess = (w.normal[:nh].copy(), w.tangent[:nh].copy(), w.box[:nb].copy())
    acceleration, f_n, f_t, f_j, f_b, found, steps = drive_whitened(loads, arrays, whitened, guess)
    fits = nh <= ROOM and ne <= ROOM and nb <= ROOM and seen.gap.shape[0] <= ROOM
    passed = False
    if found and fits:
        table = grade_whitened(loads, arrays, whitened, acceleration, f_n, f_t, f_j, f_b)
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
    session: int, d: int, probe: int, w: Work, course: Course, start: Start, phase: Phase
) -> tuple[Any, State, Snapshot]:
    """(outcome, state, what is seen there) after the step, at which the data at d is evaluated."""
    m, nv = slot(session, Slot.MODEL), start.qvel.shape[0]
    dt, rest, tolerance = w.figures[Number.DT], w.figures[Number.REST], w.figures[Number.TOLERANCE]
    state = State(start.qpos.copy(), start.qvel.copy(), start.act.copy())
    qvel, turn, calm = state.qvel, np.zeros(nv), np.int64(Outcome.DONE)
    limits = Limits(w.rotations.copy(), w.clamped.copy(), w.low.copy(), w.high.copy())
    way = Trajectory(
        course, start, limits, w.static.copy(), w.dynamic.copy(), start.normal > 0.0,
        numbers(pointer(m + _RBOUND), pointer(m + _NGEOM)).copy(),
    )  # fmt: skip
    done = follow_stages(
        session, d, probe, course, start, limits, way.static, way.dynamic, dt, state.qpos, qvel,
        state.act, turn,
    )  # fmt: skip
    was = phase.seen
    if done != calm:
        return done, state, was
    for k in range(nv):
        if not abs(qvel[k]) <= FASTEST:
            return np.int64(Outcome.NOT_CALM), state, was
    done = evaluate_at(session, d, state)
    if done != calm:
        return done, state, was
    end = arrive(m, d, dt, state, was.pair, was.point, was.axis, phase.held)
    if integration_error(way.press, end) > tolerance:
        return np.int64(Outcome.NOT_CALM), state, was
    curve = lay_curve(start, dt, turn, qvel, limits.rotations)
    marks = Marks(dt, tolerance, rest, True, True)
    done, between, _, check = advance(
        session, d, probe, phase, way, curve, end, marks, False
    )  # fmt: skip
    if done != calm or check.overdue > 0.0:
        return np.int64(Outcome.NOT_CALM), state, was
    if between > 0.0:
        done = evaluate_at(session, d, state)
    seen = end.seen
    grip = Grip(start.normal, FIRM * rest, np.full(start.normal.shape[0], 2.0 * rest))
    if project(seen, end.place, grip, end.speed, qvel, rest, 2.0 * rest):
        numbers(pointer(d + _QVEL), nv)[:] = qvel
        widen(m, d)
        load(m, d)
        seen = read_forces(m, d, seen)
    return done, state, seen


@kernel
def _take(session: int, d: int, probe: int, work: int) -> Any:
    (w,) = unpack_work(work)
    m, nq, nv = slot(session, Slot.MODEL), w.qpos.shape[0], w.qvel.shape[0]
    dt, not_calm = w.figures[Number.DT], np.int64(Outcome.NOT_CALM)
    w.value[:], w.scaled[:], w.where[:], w.counts[Count.PIVOTS] = 0.0, 0.0, -1, 0
    state = State(
        numbers(pointer(d + _QPOS), nq).copy(), numbers(pointer(d + _QVEL), nv).copy(),
        numbers(pointer(d + _ACT), w.act.shape[0]).copy(),
    )  # fmt: skip
    done = evaluate(session, d, True)
    if done != Outcome.DONE:
        return done
    seen, qvel = read(m, d, nv), state.qvel
    rest = speed_of_rest(
        seen.normal, seen.tangent, seen.dry, qvel, numbers(pointer(d + _SMOOTH), nv), dt,
        w.figures[Number.MOST_REST],
    )  # fmt: skip
    w.figures[Number.REST] = rest
    phase = _begin(m, d, w, seen, state)
    deepest = 0.0
    for i in range(seen.gap.shape[0]):
        deepest = max(deepest, -seen.gap[i])
    w.figures[Number.OVERLAP] = deepest
    if not is_quiet(seen.normal, seen.gap, seen.error, phase.speed, qvel, w):
        return not_calm
    passed, course, loads, acceleration, f_n, f_t, f_j, f_b = _stand(session, probe, w, phase)
    if not passed or not sticks(course, loads, acceleration, f_n, dt, rest):
        return not_calm
    fastest, change = 0.0, 0.0
    for k in range(nv):
        fastest, change = max(fastest, abs(qvel[k])), max(change, abs(acceleration[k]))
    if fastest + dt * change > REST_SHARE * rest or (seen.act_dot != 0.0).any():
        start = Start(
            state.qpos, qvel, state.act, seen.act_dot, acceleration, f_n, f_t, f_b,
            damping_at(session, d, seen.mass, dt),
        )  # fmt: skip
        done, state, seen = _move(session, d, probe, w, course, start, phase)
        if done != Outcome.DONE:
            return done
        phase, qvel = _begin(m, d, w, seen, state), state.qvel
        if not is_quiet(seen.normal, seen.gap, seen.error, phase.speed, qvel, w):
            return not_calm
        passed, course, loads, acceleration, f_n, f_t, f_j, f_b = _stand(session, probe, w, phase)
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
