"""The first event on a Runge-Kutta trajectory, looked for in one compiled call.

The same search as `impact_time.first_event` makes along any trajectory, where contacts are held by
Coulomb's law: a state of the trajectory costs a quarter of what it does from Python. It is made
along the curve through the trajectory's ends first (`curve.py`), whose states cost a tenth; where
that has an event the trajectory is looked at, by Newton's method from there. If that does not find
it, the search is made along the trajectory itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout
from stiction.bridge.guard import caught, leave
from stiction.bridge.layout import offset
from stiction.kernels.compile import kernel
from stiction.kernels.dense import row_dot
from stiction.simulate.event_driven.curve import Curve, curve_state, lay_curve
from stiction.simulate.event_driven.distances import closing_bound, match, read
from stiction.simulate.event_driven.events import Marks, check_event
from stiction.simulate.event_driven.impact_time import (
    FINEST,
    LOCATE,
    EventCheck,
    next_guess,
    safe_time,
)
from stiction.simulate.event_driven.phases import Moved, Phase, State
from stiction.simulate.event_driven.stages import FASTEST, Course, Limits, Start, follow_stages
from stiction.simulate.event_driven.surveyor import Outcome, Slot, evaluate, slot

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

CURVE_REFINEMENTS = 3
"""States of the trajectory by which an event of the curve is located; one or two are usual."""

PIECE_HALVINGS = 6
"""How often a piece is halved for accuracy before it is taken as it is."""

# Kernels, typed by Numba and not here.
pointer: Any = layout.pointer
numbers: Any = layout.numbers

_QPOS, _QVEL, _ACT = (offset("mjData", name) for name in ("qpos", "qvel", "act"))


class Trajectory(NamedTuple):
    """What leads from the start of a phase on."""

    course: Course
    start: Start
    limits: Limits
    static: Array
    dynamic: Array
    press: Mask  # (nh,) held contacts that press at its start
    radius: Array  # (ngeom,)


@kernel
def integration_error(press: Mask, moved: Moved) -> float:
    """How far [m] held contacts have sunk in by a state, and those that press have moved, by
    integration; a contact that is let go moves as well."""
    off = 0.0
    for i in range(moved.place.shape[0]):
        j = moved.place[i]
        if j >= 0:
            gap, drift = moved.seen.gap[j], moved.speed[j] * moved.elapsed
            off = max(off, -min(gap, drift))
            if i < press.shape[0] and press[i]:
                off = max(off, 0.1 * (abs(gap) + abs(drift)))
    return off


@kernel
def arrive(
    m: int, d: int, h: float, state: State, pair: Indices, point: Array, axis: Array, kept: Indices
) -> Moved:
    """The state after h, which the data at d is in, with what is seen there; kept: contacts that
    the motion respects, of those by pair, point and axis."""
    seen = read(m, d, state.qvel.shape[0])
    speed = np.zeros(seen.gap.shape[0])
    for i in range(speed.shape[0]):
        speed[i] = row_dot(seen.normal, i, state.qvel)
    place = match(pair[kept], point[kept], axis[kept], seen.pair, seen.point, seen.axis)
    bound = closing_bound(m, d, seen.number, seen.pair, seen.point, seen.axis, speed)
    for j in place:
        if j >= 0:
            bound[j] = -np.inf
    return Moved(h, state, seen, speed, bound, place)


@kernel
def _follow(
    session: int, d: int, probe: int, phase: Phase, way: Trajectory, h: float
) -> tuple[Any, Moved, Array]:
    """(outcome, state after h, displacement until then); of the state nothing but its velocity
    counts if that diverged."""
    start, m = way.start, slot(session, Slot.MODEL)
    nv = start.qvel.shape[0]
    state = State(np.zeros(start.qpos.shape[0]), np.zeros(nv), np.zeros(start.act.shape[0]))
    qpos, qvel, act, turn = state.qpos, state.qvel, state.act, np.zeros(nv)
    nowhere = Moved(h, state, phase.seen, phase.speed, phase.bound, phase.held)
    done = follow_stages(
        session, d, probe, way.course, start, way.limits, way.static, way.dynamic, h, qpos, qvel,
        act, turn,
    )  # fmt: skip
    if done != Outcome.DONE:
        return done, nowhere, turn
    for k in range(nv):
        if not abs(qvel[k]) <= FASTEST:
            return np.int64(Outcome.DIVERGED), nowhere, turn
    done = evaluate_at(session, d, state)
    if done != Outcome.DONE:
        return done, nowhere, turn
    was = phase.seen
    return done, arrive(m, d, h, state, was.pair, was.point, was.axis, phase.held), turn


@kernel
def evaluate_at(session: int, d: int, state: State) -> Any:
    """Puts the data at d in that state, evaluated; `Outcome`."""
    numbers(pointer(d + _QPOS), state.qpos.shape[0])[:] = state.qpos
    numbers(pointer(d + _QVEL), state.qvel.shape[0])[:] = state.qvel
    numbers(pointer(d + _ACT), state.act.shape[0])[:] = state.act
    return evaluate(session, d, True)


@kernel
def _look(
    session: int, d: int, probe: int, phase: Phase, way: Trajectory, curve: Curve, t: float,
    exact: bool,
) -> tuple[Any, Moved]:  # fmt: skip
    """(outcome, state after t), of the trajectory where that is to be exact, else on the curve."""
    if exact:
        done, moved, _ = _follow(session, d, probe, phase, way, t)
        return done, moved
    m, was = slot(session, Slot.MODEL), phase.seen
    state = curve_state(m, curve, t)
    done = evaluate_at(session, d, state)
    return done, arrive(m, d, t, state, was.pair, was.point, was.axis, phase.held)


@kernel
def advance(
    session: int, d: int, probe: int, phase: Phase, way: Trajectory, curve: Curve, end: Moved,
    marks: Marks, exact: bool,
) -> tuple[Any, float, Moved, EventCheck]:  # fmt: skip
    """(outcome, before, state, what it is): the first state with an event that conservative
    advancement meets, or the end; before: the time of the last one without."""
    before, seen, bound = 0.0, phase.seen, phase.bound
    while True:
        safe = safe_time(seen, bound, end.seen.reach, marks.dt, way.radius)
        then, after, done = before + max(safe, FINEST * marks.dt), end, np.int64(Outcome.DONE)
        if then < end.elapsed * (1.0 - 1e-9):
            done, after = _look(session, d, probe, phase, way, curve, then, exact)
        check = check_event(phase, after, marks)
        if done != Outcome.DONE or check.overdue > 0.0 or after.elapsed == end.elapsed:
            return done, before, after, check
        before, seen, bound = after.elapsed, after.seen, after.bound


@kernel
def _find(
    session: int, d: int, probe: int, phase: Phase, way: Trajectory, curve: Curve, end: Moved,
    marks: Marks, exact: bool,
) -> tuple[Any, Moved, EventCheck]:  # fmt: skip
    """(outcome, the first state with an event, or the end, what it is)."""
    done, before, after, check = advance(session, d, probe, phase, way, curve, end, marks, exact)
    if done != Outcome.DONE or check.overdue == 0.0:
        return done, after, check
    guess = after.elapsed - check.overdue
    wide, tries = after.elapsed - before, 0
    for _ in range(LOCATE):
        high = after.elapsed
        if check.acceptable or high - before <= 1e-14 * high:
            break
        guess, wide, tries = next_guess(guess, before, high, wide, tries)
        done, trial = _look(session, d, probe, phase, way, curve, guess, exact)
        if done != Outcome.DONE:
            break
        found = check_event(phase, trial, marks)
        if found.overdue > 0.0:
            after, check = trial, found
            guess = trial.elapsed - found.overdue
        else:
            before = trial.elapsed
            guess = trial.elapsed + found.ahead
    return done, after, check


@kernel
def _search(
    session: int, d: int, probe: int, phase: Phase, way: Trajectory, left: float, marks: Marks
) -> tuple[Any, Moved, EventCheck]:
    """(outcome, the first state with an event within `left`, or the last one, what it is)."""
    nothing, h = EventCheck(0.0, np.inf, True, -1), left
    done, end, turn = _follow(session, d, probe, phase, way, h)
    for _ in range(PIECE_HALVINGS):
        if done != Outcome.DONE or integration_error(way.press, end) <= marks.tolerance:
            break
        h *= 0.5
        done, end, turn = _follow(session, d, probe, phase, way, h)
    if done != Outcome.DONE:
        return done, end, nothing
    curve = lay_curve(way.start, h, turn, end.state.qvel, way.limits.rotations)
    done, after, check = _find(session, d, probe, phase, way, curve, end, marks, False)
    if done != Outcome.DONE or after.elapsed == h:
        return done, after, check
    guess = after.elapsed
    for _ in range(CURVE_REFINEMENTS):
        done, trial, _ = _follow(session, d, probe, phase, way, guess)
        if done != Outcome.DONE:
            return done, trial, nothing
        check = check_event(phase, trial, marks)
        if check.overdue > 0.0 and check.acceptable:
            return done, trial, check
        guess += check.ahead if check.overdue == 0.0 else -check.overdue
        if not 0.0 < guess < h:
            break
    return _find(session, d, probe, phase, way, curve, end, marks, True)


@kernel
def _note(
    session: int, d: int, probe: int, phase: Phase, way: Trajectory, left: float, marks: Marks,
    state: State, told: Array,
) -> Any:  # fmt: skip
    """`search` without a guard."""
    done, moved, check = _search(session, d, probe, phase, way, left, marks)
    if done == Outcome.DONE:
        done = evaluate_at(session, d, moved.state)  # others may have come after it
    state.qpos[:], state.qvel[:], state.act[:] = moved.state.qpos, moved.state.qvel, moved.state.act
    told[0], told[1], told[2] = moved.elapsed, check.overdue, check.ahead
    told[3], told[4] = check.acceptable, check.culprit
    return done


@kernel
def search(
    session: int, d: int, probe: int, phase: Phase, way: Trajectory, left: float, marks: Marks,
    state: State, told: Array,
) -> Any:  # fmt: skip
    """The first event within the time `left` of a phase's trajectory, or the end of it: the state
    there, in which the data at d is then, evaluated, and told (5,), its time and `EventCheck`."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Outcome.ERROR)
    done = _note(session, d, probe, phase, way, left, marks, state, told)
    leave(slot(session, Slot.FRAME))
    return done
