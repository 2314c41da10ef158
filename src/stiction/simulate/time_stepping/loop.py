"""The step, and many of them, in compiled code: MuJoCo's own functions and our solve between them.

    smooth      kinematics, inertia, velocities, actuators, applied and passive forces, their
                derivatives; the motion without contact
    collision   margins for what the bodies may reach within the step; collisions, constraint rows
    rows        rows to blocks, and who touches whom
    solve       island by island, from the last step's impulses or by the interior point
    certify     every law, from the blocks
    advance     forces and sensors as MuJoCo leaves them; then v+, the overlap's correction at
                position level, and MuJoCo's integration of activations and time

A step that begins with just what the last one began with, which moved nothing, has its answer
already: what is at rest costs the comparison. Where the last one's output does not stand in the
data, which may be another one, the step is taken with the impulses that it had, to the bit.
A solver from elsewhere (no law) is always asked. `run` stops before a step changes
anything where it cannot go on, and says why by `Stop`.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from stiction.bridge import library as mj
from stiction.bridge.ahead import take_all_in, take_in
from stiction.bridge.axes import read_axes
from stiction.bridge.changes import are_edited
from stiction.bridge.guard import caught, leave
from stiction.bridge.layout import number, numbers, offset, pointer
from stiction.bridge.margins import AHEAD, free_motion, travel_past_limits
from stiction.bridge.servos import Release, release_servos
from stiction.contact.certificate.grading import raise_scales, set_scales
from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import row_velocities
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.problem.soft_rows import yield_to
from stiction.contact.solvers.blocks.free_motion import free_all
from stiction.contact.solvers.blocks.workspace import (
    ENDLESS,
    Guess,
    Outcome,
    Request,
    Rung,
    Setting,
    unpack_newton,
    unpack_problem,
)
from stiction.contact.solvers.islands.at_rest import forget_moving
from stiction.contact.solvers.islands.solve import solve_all
from stiction.kernels.clock import ticks
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.stage import call, stage
from stiction.simulate.time_stepping.bounce import bounce
from stiction.simulate.time_stepping.config import Config, Stop, read_config
from stiction.simulate.time_stepping.finish import (
    check_overlap,
    count_step,
    digits_of,
    integrate,
    note_origin,
    pose_overlap,
    write_step,
)
from stiction.simulate.time_stepping.led import has_led_rows, lead
from stiction.simulate.time_stepping.pose import (
    compare_with_last,
    count_soft_rows,
    diverges,
    guess_from_answer,
    guess_impulses,
    inputs_are_finite,
    keep_answer,
    meet,
    move_smoothly,
    note_output,
    prepare,
    recall_impulses,
    weigh,
)
from stiction.simulate.time_stepping.request import ask, grade, keep_free, solve_until
from stiction.simulate.time_stepping.standstill import keep_velocity, stop_rounding
from stiction.simulate.time_stepping.whirling import keep_energy, note_past, turns_fast
from stiction.simulate.time_stepping.workspace import (
    Count,
    Figure,
    Seen,
    Stage,
    Step,
    unpack_step,
)
from stiction.terrain.meetings import unpack_ground

_TIMESTEP = offset("mjModel", "opt", "timestep")
_TIME = offset("mjData", "time")

RETRIES = 3
"""Solves of one step at most, each with wider margins for limits that the one before passed."""


@kernel
def _sum_up(g: Graph, request: Request, step: Step):
    """Counts what the islands needed, in all solves of the step."""
    counts, figure = step.counts, step.figure
    if counts[Count.ANSWERED] == 0:
        counts[Count.FACTORIZATIONS] = 0
    counts[Count.ATTEMPTS] = 0
    counts[Count.ISLANDS] = counts[Count.HARD] = 0
    figure[Figure.RESIDUAL] = 0.0
    for k in range(g.size[Size.ISLANDS]):
        found = request.outcome[k]
        rung = np.int64(found[Outcome.RUNG])
        if rung == Rung.NONE:
            continue
        counts[Count.ISLANDS] += 1
        counts[Count.HARD] += rung == Rung.INTERIOR_POINT
        counts[Count.FACTORIZATIONS] += np.int64(found[Outcome.FACTORIZATIONS])
        counts[Count.ATTEMPTS] = max(counts[Count.ATTEMPTS], np.int64(found[Outcome.ATTEMPTS]))
        figure[Figure.RESIDUAL] = max(figure[Figure.RESIDUAL], found[Outcome.RESIDUAL])
    counts[Count.ITERATIONS] = counts[Count.FACTORIZATIONS]


@kernel
def _note_no_work(counts):
    """Counts a step whose answer was there."""
    counts[Count.SAME] = 1
    counts[Count.ITERATIONS] = counts[Count.FACTORIZATIONS] = counts[Count.ATTEMPTS] = 0


@kernel
def _pose(m, d, config: Config, ground, address, found):
    """Collides, and fills the blocks of the step, their scales and the guess; why it stopped.
    ground, found: see `meet`."""
    b, g, s, request = unpack_problem(address)
    system, newton = unpack_newton(address)
    grading, step = unpack_step(address)
    begun = ticks()
    extra, sparing = step.figure[Figure.LIMITS], config.law >= 0
    sparing = sparing and step.counts[Count.ROUNDS] < RETRIES
    stop = weigh(m, d, config, b, request, step)
    if stop != Stop.DONE:
        return stop
    now = ticks()
    step.ticks[Stage.SMOOTH] += now - begun
    stop = meet(m, d, config, ground, b, request, step, extra, found, sparing)
    if stop != Stop.DONE:
        return stop
    begun = ticks()
    step.ticks[Stage.COLLISION] += begun - now
    if not prepare(m, d, config, b, g, s, step, system.scratch, newton.weight, address):
        return Stop.ROOM
    read_axes(m, d, s.start, g.tree.axis)
    count = step.counts[Count.BLOCKS]
    if has_led_rows(step, count):
        lead(address, config.budget)
    if config.bounce < np.inf:
        bounce(
            m, config.bounce, config.law, config.facets, config.budget, config.tolerance, address,
        )  # fmt: skip
    set_scales(b, request.v_free, grading)
    soft = count_soft_rows(b, count)
    if soft > 0:
        # An impact's solve has changed the rows' weights.
        few = soft <= step.yields.shape[0] and config.bounce == np.inf
        few = few and yield_to(
            b, soft, count, step.factor, step.yields, newton.weight, request.v_free
        )
        if not few:
            free_all(address)
        raise_scales(b, request.v_free, grading)
    guess_impulses(step, count, request)
    if step.counts[Count.ANSWERED] > 0:
        guess_from_answer(step, count, request)
    step.ticks[Stage.ROWS] += ticks() - begun
    return Stop.DONE if config.law >= 0 else Stop.UNSOLVED


@kernel
def _solve(m, d, config: Config, ground, address, last, found):
    """Poses the step, once more where its answer passes limits that were not seen, solves and
    grades it; why it stopped. last: a `Seen`; ground, found: see `meet`."""
    b, g, s, request = unpack_problem(address)
    _, newton = unpack_newton(address)
    grading, step = unpack_step(address)
    counts, figure, time = step.counts, step.figure, step.ticks
    stopped = False
    for _ in range(RETRIES):
        stop = _pose(m, d, config, ground, address, found)
        if stop != Stop.DONE:
            return stop
        begun = ticks()
        warm = np.int64(Guess.LAST_STEP if config.warm and counts[Count.OLD] > 0 else Guess.NONE)
        if counts[Count.ANSWERED] > 0:
            warm = np.int64(Guess.NEAR)
        latest = solve_until(step, config.budget)
        ask(request, config.law, config.facets, warm, latest, config.budget)
        count = counts[Count.BLOCKS]
        if last == Seen.INPUTS and recall_impulses(m, d, count, step, newton.f, newton.v):
            if grade(address, config.tolerance) <= config.tolerance:
                _note_no_work(counts)
                counts[Count.SOLVED_AT] = begun
                break
            last = np.int64(Seen.NOTHING)  # the model has changed, and they were kept before that
        solve_all(address, count)
        _sum_up(g, request, step)
        stopped = stop_rounding(b, g, s, request.outcome, grading.own, newton.v, step)
        now = ticks()
        # What a solve takes beyond its time belongs to what is kept free after the next one.
        counts[Count.SOLVED_AT] = min(now, latest)
        time[Stage.SOLVE] += now - begun
        missed = AHEAD * travel_past_limits(m, d, newton.v, config.touch)
        if missed > figure[Figure.LIMITS]:
            figure[Figure.LIMITS], found, counts[Count.ANSWERED] = missed, False, 0
        elif config.servos and release_servos(m, d, b, newton.v, step.released):
            keep_answer(step, newton, request)
            found = True
        else:
            break
    begun = ticks()
    figure[Figure.WORST] = grade(address, config.tolerance)
    if stopped and not figure[Figure.WORST] <= config.tolerance:
        keep_velocity(d, newton.v, step)
        figure[Figure.WORST] = grade(address, config.tolerance)
    if stopped and not figure[Figure.WORST] <= config.tolerance:
        for j in range(newton.v.shape[0]):
            newton.v[j] = step.v_plus[j]
        figure[Figure.WORST] = grade(address, config.tolerance)
    time[Stage.CERTIFY] += ticks() - begun
    return Stop.DONE if figure[Figure.WORST] <= config.tolerance else Stop.UNSOLVED


@kernel
def _runs_ahead(m, d, v, step: Step):
    """Whether a step that ends with v (nv,) would run into contacts that it was solved without;
    they are taken in, all of them after some rounds."""
    counts = step.counts
    if counts[Count.LEFT_OUT] == 0:
        return False
    free_motion(m, d, v, step.reach)
    taken = take_in(m, d, step.reach)
    counts[Count.ROUNDS] += 1
    if taken > 0 and counts[Count.ROUNDS] >= RETRIES:
        take_all_in(d)
        taken = counts[Count.LEFT_OUT]
    counts[Count.LEFT_OUT] -= taken
    return taken > 0


@kernel
def _correct_positions(m, d, config: Config, address):
    """newton.v := what overlap, and paths that bend, are taken back by at position level; whether
    there is any."""
    b, g, s, request = unpack_problem(address)
    _, newton = unpack_newton(address)
    _, step = unpack_step(address)
    counts = step.counts
    farthest = pose_overlap(m, d, config, b, g, s, newton, request, step)
    if not farthest > 0.0:
        return False
    warm = np.int64(Guess.ALIKE if config.warm else Guess.NONE)
    ask(
        request, np.int64(Law.FRICTIONLESS), np.int64(0), warm, counts[Count.DEADLINE],
        config.budget,
    )  # fmt: skip
    request.setting[Setting.DIGITS] = digits_of(farthest, config.slack)
    if counts[Count.GRIPPED] > 0:  # tangents that give way; nothing is mended, as without friction
        request.setting[Setting.LAW] = Law.VISCOUS
    if counts[Count.LED_ROWS] > 0:
        free_all(address)
    solve_all(address, counts[Count.BLOCKS])
    check_overlap(m, b, g, s, newton, request, step, config.slack, farthest, address)
    return True


@kernel
def _take(m, d, nstep, solved, config: Config, ground, address):
    """Takes up to nstep steps of the data at d with the model at m; returns why it stopped.

    ground: `terrain.Ground.features`, or None.
    solved: the first step's impulses and velocity are in the workspace already, put there
    after this function had stopped with UNSOLVED; that step is only to be finished.
    """
    b, g, s, request = unpack_problem(address)
    _, newton = unpack_newton(address)
    grading, step = unpack_step(address)
    counts, figure, time = step.counts, step.figure, step.ticks
    for taken in range(nstep):
        finished, found, last = solved and taken == 0, False, np.int64(Seen.NOTHING)
        if finished:
            row_velocities(b, counts[Count.BLOCKS], newton.v, newton.u)
            for j in range(newton.v.shape[0]):
                step.motion[j] = newton.v[j]
            found = _runs_ahead(m, d, newton.v, step)
        else:
            begun = ticks()
            counts[Count.ROUNDS], figure[Figure.LIMITS] = 0, 0.0
            counts[Count.DEADLINE] = begun + config.budget if config.budget > 0 else ENDLESS
            if not inputs_are_finite(m, d):
                return Stop.NOT_FINITE
            last = compare_with_last(m, d, step)
            counts[Count.SEEN] = Seen.NOTHING
            counts[Count.SAME] = counts[Count.ANSWERED] = 0
            for a in range(step.released.shape[0]):
                step.released[a] = Release.NONE
            if last == Seen.ALL and config.law >= 0:
                numbers(d + _TIME, 1)[0] += number(m + _TIMESTEP)
                if config.sensors:
                    mj.sensor_pos(m, d)  # a clock may be among them
                counts[Count.SEEN] = Seen.ALL
                _note_no_work(counts)
                count_step(step)
                time[Stage.SMOOTH] += ticks() - begun
                continue
            counts[Count.WHIRLS] = np.int64(turns_fast(m, d, step))
            if counts[Count.WHIRLS] == 1:
                note_past(m, d, address)
            move_smoothly(m, d)
            if counts[Count.WHIRLS] == 1:
                keep_energy(m, d, address)
            time[Stage.SMOOTH] += ticks() - begun
        while found or not finished:
            if found:
                keep_answer(step, newton, request)
            stop = _solve(m, d, config, ground, address, last, found)
            if stop != Stop.DONE:
                return stop
            finished, found = True, _runs_ahead(m, d, newton.v, step)
        if diverges(m, d, newton.v):
            return Stop.DIVERGED
        begun = ticks()
        forget_moving(g, s, newton.v, request.inputs)
        write_step(m, d, config, b, newton, grading, request, step)
        corrected = _correct_positions(m, d, config, address)
        integrate(m, d, newton, step)
        counts[Count.CORRECTED] = np.int64(corrected)
        if corrected:
            note_origin(m, d, step)
        note_output(m, d, step)
        if corrected:
            counts[Count.RESTS] = 0
        counts[Count.SEEN] = Seen.ALL
        now = ticks()
        time[Stage.ADVANCE] += now - begun
        keep_free(step, now, config.budget)
        count_step(step)
    return Stop.DONE


class Slot(IntEnum):
    """Entries of a session: the addresses that steps are taken with."""

    STEPS = 0
    """`take_steps` or `take_steps_on_ground`."""
    FRAME = 1
    """`Guard.frame`."""
    MODEL = 2
    CONFIG = 3
    """`Config.as_array`."""
    GROUND = 4
    """`pack_ground`, or 0."""
    WORK = 5
    """`Workspace`."""
    SOURCE = 6
    """`bridge.changes.Fields` of the user's model."""
    CALLBACKS = 7
    """`library.CALLBACKS`."""
    PLUGINS = 8
    """How many the model has."""


class Turn(IntEnum):
    """Where in a call of steps `run` is asked for some of them."""

    FIRST = 0
    """No step of the call has been taken yet."""
    LATER = 1
    SOLVED = 2
    """The next step is only to be finished."""


@leaf
def slot(session, which):
    """That entry of the session at that address."""
    return pointer(session + 8 * which)


@stage("int64(int64, int64, int64, int64)", counted=True)
def take_steps(session, d, nstep, solved):
    """`_take` by a session, where there is no height field."""
    config, address = read_config(slot(session, Slot.CONFIG)), slot(session, Slot.WORK)
    return np.int64(_take(slot(session, Slot.MODEL), d, nstep, solved == 1, config, None, address))


@stage("int64(int64, int64, int64, int64)", eager=False, counted=True)
def take_steps_on_ground(session, d, nstep, solved):
    """The same where there is one: compiled for those who have it."""
    terrain, hulls, level = unpack_ground(slot(session, Slot.GROUND))
    config, address = read_config(slot(session, Slot.CONFIG)), slot(session, Slot.WORK)
    ground = (terrain, hulls, level.tolerance[0])
    return np.int64(
        _take(slot(session, Slot.MODEL), d, nstep, solved == 1, config, ground, address)
    )


@leaf
def begin(session, first):
    """Prepares the workspace for steps; first: whether they are the first ones of a call."""
    _, step = unpack_step(slot(session, Slot.WORK))
    watched = slot(session, Slot.PLUGINS) > 0 or mj.has_callbacks(slot(session, Slot.CALLBACKS))
    step.counts[Count.WATCHED] = np.int64(watched)
    step.counts[Count.DONE] = 0
    if first:
        for k in range(step.ticks.shape[0]):
            step.spent[k] += step.ticks[k]
            step.ticks[k] = 0


@kernel
def begin_as(address, other):
    """Gives the workspace at an address the impulses that the steps of another one would begin
    with; whether there is room for them. What its last step left in the data may stand there no
    more."""
    _, step = unpack_step(address)
    _, given = unpack_step(other)
    old = given.counts[Count.OLD]
    if old > step.record.shape[0]:
        return False
    for i in range(old):
        for k in range(step.record.shape[1]):
            step.record[i, k] = given.record[i, k]
    for k in range(step.counts.shape[0]):
        step.counts[k] = given.counts[k]
    for k in range(step.seen.shape[0]):
        step.seen[k] = given.seen[k]
    for k in range(step.origin.shape[0]):
        step.origin[k] = given.origin[k]
    if step.counts[Count.SEEN] == Seen.ALL:
        step.counts[Count.SEEN] = Seen.INPUTS
    return True


@kernel
def run(session, d, nstep, turn):
    """Takes up to nstep steps of the data at d, or none if d is 0; returns why it stopped.
    turn: a `Turn`."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Stop.ERROR)
    begin(session, turn == Turn.FIRST)
    stop = np.int64(Stop.EDITED)
    if not are_edited(slot(session, Slot.SOURCE)):
        solved = np.int64(turn == Turn.SOLVED)
        stop = call(slot(session, Slot.STEPS), session, d, nstep, solved)
    leave(slot(session, Slot.FRAME))
    return stop
