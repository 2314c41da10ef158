"""`TimeEngine`: takes steps of `TimeStepping`.

A call runs compiled steps (`loop.py`) until they are done or one cannot be taken. `Baraff`'s are
solved by a kernel of its own in between (`driven.py`). A step whose certificate the compiled
solver did not pass is handed to the contact model's own ladder of solvers (`fallback.py`), with the
same problem as arrays, and finished with what that finds. One that has no answer at all is taken in
parts (`parts.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple
from weakref import ref

import mujoco
import numpy as np
from mujoco import get_mjcb_control

from stiction.bridge import validation
from stiction.bridge.guard import Guard
from stiction.bridge.gyroscopic import standalone
from stiction.bridge.library import CALLBACKS
from stiction.bridge.own_model import OwnModel
from stiction.bridge.rows import DEEP
from stiction.bridge.servos import has_servos
from stiction.contact.certificate.certificate import Certificate
from stiction.contact.certificate.laws import Law, Table
from stiction.contact.models.description import Kind, StepSolver
from stiction.contact.problem.arrays import Array
from stiction.contact.solvers.blocks.free_motion import free_islands
from stiction.contact.solvers.interior_point.coarse import follow_coarsely
from stiction.contact.solvers.interior_point.continuation import follow_turns
from stiction.contact.solvers.islands.solve import take_turn
from stiction.contact.solvers.islands.sweeps import sweep_island
from stiction.contact.solvers.proximal.drifting import drift_island
from stiction.contact.solvers.proximal.iteration import spread_residual
from stiction.contact.solvers.stiffening.curve import stiffen_island
from stiction.contact.solvers.stiffening.steps import stiffen_by_steps
from stiction.errors import SolveFailed, StictionError
from stiction.kernels.clock import seconds, ticks_per_second
from stiction.kernels.stage import prepare
from stiction.simulate.event_driven.distances import PRECISE
from stiction.simulate.report import FRICTIONLESS, PARTS, Facts, Report, Statistics, summarize
from stiction.simulate.settings import Settings
from stiction.simulate.time_stepping.bounce import take_impacts
from stiction.simulate.time_stepping.config import Config, Stop
from stiction.simulate.time_stepping.dependent import settle_dependent
from stiction.simulate.time_stepping.driven import drive
from stiction.simulate.time_stepping.fallback import COMPILED, Answer, Fallback
from stiction.simulate.time_stepping.jammed import part_island
from stiction.simulate.time_stepping.led import lead_rows
from stiction.simulate.time_stepping.loop import (
    Slot,
    Turn,
    begin_as,
    run,
    take_steps,
    take_steps_on_ground,
)
from stiction.simulate.time_stepping.parts import DividedStep
from stiction.simulate.time_stepping.restitution import bounce_speed, check_restitution
from stiction.simulate.time_stepping.whirling import bound_energy, note_momenta
from stiction.simulate.time_stepping.workspace import (
    Count,
    Seen,
    Stage,
    Workspace,
    read_told,
)
from stiction.status import Code, Status
from stiction.terrain.meetings import Ground
from stiction.terrain.refinement import replace_rough
from stiction.terrain.seams import pass_by
from stiction.tolerances import RESIDUAL

TOUCHING = 1e-8
"""Gap or overlap that counts as touching, over the size of what moves: below it lies what rounding
and the collision routines leave."""

CLOSE = 1e-6
"""Gap of a contact that counts as none, over the size of the smallest geom that moves, if that is
more than `TOUCHING`: feet of robots are small, and those that sway in place have steps of three
times as many factorizations where such gaps stay. Paths are curved, and what
stands or rolls leaves gaps of some nanometres. Closed within the step, each at a speed of its own,
rows that are redundant contradict each other, and nothing comes to rest: of 27 boxes that fall
twice as many steps take the interior point, and the slowest steps of chains take ten times as
long. Not of meshes, whose gaps MuJoCo's iterations scatter by more: boxes that are meshes, pressed
into a corner, take eight times as long if these count as none."""

LEVEL = 1e-7
"""Difference of two gaps to a height field that counts as zero, over the size of what moves."""

SHALLOW = 0.05
"""Overlap that one step pushes out whole, over the size of what moves."""

CHUNK = 0.05
"""Time that compiled steps take before they look for signals, such as Ctrl-C [s]."""

CALL_TIME, LEAST_BUDGET = 4e-5, 2.5e-4
"""Part of a budget that a call takes beside its compiled step; and the least budget, in which small
piles are solved: a step that is not, spoils the start of the next one and costs more [s]."""

GROWTH = 8
"""Most that the next chunk has more steps than the last: its own may take longer."""


# As plain numbers: looking a member up in an enumeration takes as long as an array's entry.
_FIRST, _LATER, _SOLVED, _DONE = int(Turn.FIRST), int(Turn.LATER), int(Turn.SOLVED), int(Stop.DONE)
_SEEN, _INPUTS = int(Count.SEEN), int(Seen.INPUTS)
LATE_STAGES = (
    replace_rough, pass_by, follow_turns, take_turn, spread_residual, part_island,
    follow_coarsely, drift_island, sweep_island, stiffen_island, stiffen_by_steps, note_momenta,
    bound_energy,
)  # fmt: skip
"""What only some steps need: loaded with the simulator if it is on disk, else compiled in the first
step that needs it."""

_COMPILED = (COMPILED,)


class Guess(NamedTuple):
    """What a step begins with beside its state."""

    record: Array  # (blocks, RECORDS) of the last step
    seen: Array | None  # `Step.seen`, where that one moved nothing
    origin: Array | None = None  # `Step.origin`, where that one corrected positions


class TimeEngine:
    """Steps a model in time; one thread at a time. The model is never written to."""

    def __init__(self, model: mujoco.MjModel, settings: Settings, divides: bool = True) -> None:
        """divides: whether `step` takes a step without an answer in parts."""
        self.settings = settings
        self.stale = False
        """Whether the model is to be copied anew before the next compiled step."""
        self.own = OwnModel(model)
        self.work = Workspace(model)
        self.guard = Guard()
        self.compiled = settings.compiled
        self._ways = () if self.compiled is None else self.compiled.solver.rungs
        self._restitution = check_restitution(model, settings.restitution)
        if settings.delassus == "assembly":
            validation.check_still_surfaces(model, "delassus='assembly'")
        self.fallback = Fallback(settings)
        self._divides = divides and self.fallback.divides
        self._driven = self.compiled is not None and self.compiled.solver is StepSolver.DRIVING
        self._chunk = 1
        self._rungs: Counter[str] = Counter()
        self._last: ref[Report] | None = None
        self.answer = COMPILED
        """What answered the last step that was reported."""
        prepare()
        for late in LATE_STAGES:
            late.load()
        self.session = np.zeros(len(Slot), np.int64)
        """Addresses that compiled steps are taken with (`Slot`)."""
        self._address = int(self.session.ctypes.data)
        self.session[Slot.FRAME] = self.guard.frame
        self.session[Slot.CALLBACKS] = CALLBACKS
        self.session[Slot.PLUGINS] = model.nplugin
        self.adapt()
        # As Numba's dispatcher itself: calls from Python cost, and this one is made in every step.
        self._run: Callable[[int, int, int, int], int] = getattr(run, "entry", run)
        # No step: what is not compiled yet is, here and not in the first step's time.
        self._run(self._address, 0, 0, 0)
        if self._driven:
            drive(False, RESIDUAL, self.work.address)

    def refresh(self) -> None:
        """Copies the model anew."""
        self.keep_last()
        self.stale = False
        self.own.refresh()
        self.adapt()

    def _follow(self) -> None:
        """Takes over what was changed in the model."""
        self.keep_last()
        if self.own.follow():
            self.adapt()

    def adapt(self) -> None:
        """Adapts to the engine's own model as it is now."""
        own, session = self.own, self.session
        self.ground = Ground(own.model, LEVEL * own.size)
        session[Slot.GROUND] = self.ground.address
        stage = take_steps_on_ground if self.ground.address else take_steps
        session[Slot.STEPS] = stage.address
        for needed, late in (
            (self._restitution.any(), take_impacts),
            (
                own.model.neq and (self.settings.equality != "rigid" or own.model.nmocap),
                free_islands,
            ),
            (own.model.neq and own.model.nmocap and self.settings.equality == "rigid", lead_rows),
            (own.model.neq and self.settings.equality == "rigid", settle_dependent),
        ):
            if needed:
                late.address  # noqa: B018  (compiled here, and not in the middle of a run)
        if self.ground.features is not None:
            own.model.opt.ccd_tolerance = min(own.model.opt.ccd_tolerance, PRECISE)
        self.set_timestep(float(own.model.opt.timestep))
        session[Slot.MODEL], session[Slot.SOURCE] = own.address, own.fields.address
        if not np.array_equal(standalone(own.model), self.work.step.free):
            self.work = self.work.with_room(own.model, self.work.room.blocks)
        session[Slot.WORK] = self.work.address
        self.work.step.restitution[:] = self._restitution
        self.work.step.counts[Count.SEEN] = 0

    def set_timestep(self, dt: float) -> None:
        """Lets the next steps take the time dt [s]."""
        self.own.model.opt.timestep = self._dt = dt
        self.config = self._configured()
        self.work.step.counts[Count.SEEN] = Seen.NOTHING

    @property
    def session_address(self) -> int:
        """Of the session, for kernels."""
        return self._address

    @property
    def config(self) -> Config:
        """How steps are taken."""
        return self._config

    @config.setter
    def config(self, config: Config) -> None:
        self._config = config
        self._config_array = config.as_array()
        self.session[Slot.CONFIG] = self._config_array.ctypes.data

    def _configured(self) -> Config:
        settings, own, compiled = self.settings, self.own, self.compiled
        opt, size, pushed_out = own.model.opt, own.size, getattr(settings.stepper, "push_out", True)
        in_loop = compiled is not None and compiled.solver is StepSolver.INTERIOR_POINT
        rough = TOUCHING * size
        near = max(rough, CLOSE * own.smallest)
        if settings.contact.acts_nearby:
            # A foot that stands leaves the ground a little in each step, since its path is curved.
            # What would fall back in a step touches.
            fall = 0.5 * float(np.linalg.norm(opt.gravity)) * opt.timestep**2
            near, rough = max(near, fall), max(rough, fall)
        budget = settings.budget
        driven = not opt.disableflags & mujoco.mjtDisableBit.mjDSBL_ACTUATION
        coulomb = settings.contact.law == "coulomb"  # whatever solves it
        slack = TOUCHING * size if pushed_out else np.inf
        bounce = bounce_speed(opt, size) if self._restitution.any() else np.inf
        return Config(
            np.int64(compiled.law if compiled is not None and in_loop else -1),
            np.int64(0 if compiled is None else compiled.facets),
            settings.equality == "rigid",
            own.has_derivatives,
            own.has_adhesion,
            bool(own.model.nsensor) and not opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR,
            bool(opt.enableflags & mujoco.mjtEnableBit.mjENBL_ENERGY),
            settings.warm_start,
            settings.contact.sustained.viscosity,
            RESIDUAL,
            TOUCHING * size,
            near,
            settings.contact.sustained.kind is Kind.HOLD,
            slack,
            SHALLOW * size,
            DEEP if pushed_out else np.inf,
            np.int64(
                0 if budget is None else ticks_per_second() * max(LEAST_BUDGET, budget - CALL_TIME)
            ),
            bounce,
            settings.delassus != "assembly" and driven and has_servos(own.model),
            rough,
            coulomb and slack < np.inf and bounce == np.inf,
        )

    def step(self, data: mujoco.MjData, nstep: int, controlled: bool = False) -> Report:
        """Takes steps, the user's control before each unless it is `controlled` already; the last
        one's report. Written for single steps: what a call costs beside them is this function."""
        if not controlled and get_mjcb_control() is not None:
            return self._step_controlled(data, nstep)
        if self._last is not None and (last := self._last()) is not None:
            last.keep()
        if self.stale:
            self.refresh()
        wanted = nstep if nstep < self._chunk else self._chunk
        began = perf_counter() if nstep > 1 else 0.0
        try:  # as `Guard.call` does, without a call of its own
            stop = self._run(self._address, data._address, wanted, _FIRST)
        except SystemError as error:
            raise self.guard.cause(error, data) from None
        arguments = _COMPILED
        if nstep > 1 or stop != _DONE:
            arguments = (self._go_on(data, nstep, wanted, stop, perf_counter() - began),)
        self.answer = arguments[0]
        report = Report(self.own.source, data.time, self._gather, arguments, self._copy_told)
        self._last = ref(report)
        return report

    def _go_on(self, data: mujoco.MjData, nstep: int, wanted: int, stop: int, now: float) -> Answer:
        """Takes what is left of nstep steps; what answered the last one. Of the first `wanted` ones
        compiled code has taken what it could, in the time `now` if there are several [s], and
        stopped for that reason."""
        left, turn, answer, absent = nstep, _LATER, COMPILED, 0
        while True:
            taken = wanted if stop == _DONE else self.work.taken
            if taken:
                if nstep > 1:
                    fit = int(taken * CHUNK / max(now, 1e-9))
                    self._chunk = max(1, min(fit, GROWTH * self._chunk))
                if answer is not COMPILED:
                    if taken == 1 and self.work.step.counts[Count.LEFT_OUT] < absent:
                        answer = COMPILED  # it ran into contacts, and the step was solved with them
                    elif answer.rung:
                        self._rungs[answer.rung] += 1
                left -= taken
                if left == 0:
                    return answer if taken == 1 else COMPILED
                answer, turn = COMPILED, _LATER
            if stop != _DONE:
                began, counted = perf_counter(), int(self.work.step.ticks.sum())
                try:
                    found = self.resolve(Stop(stop), data)
                except SolveFailed:
                    if not (self._divides and DividedStep(self, data).take()):
                        raise
                    now, absent = perf_counter() - began, 0
                    self._count_solving(now, counted)
                    answer, stop, wanted = Answer(flag=PARTS), _DONE, 1
                    continue
                if stop == Stop.UNSOLVED:
                    self._count_solving(perf_counter() - began, counted)
                if found is not None:
                    answer, turn = found, _SOLVED
                    absent = self.work.step.counts[Count.LEFT_OUT]
            if self.stale:
                self.refresh()
            wanted = left if left < self._chunk else self._chunk
            began = perf_counter()
            try:
                stop = self._run(self._address, data._address, wanted, turn)
            except SystemError as error:
                raise self.guard.cause(error, data) from None
            now = perf_counter() - began

    def _count_solving(self, time: float, counted: int) -> None:
        """Counts as solving what stages have not counted of that time [s]; counted: ticks of all
        stages before it."""
        ticks = self.work.step.ticks
        outside = int(time * ticks_per_second()) - (int(ticks.sum()) - counted)
        ticks[Stage.SOLVE] += max(0, outside)

    def report_step(self, time: float) -> Report:
        """Of a step that another kernel has taken by this engine's session, to that time of the
        simulation."""
        self.answer = COMPILED
        report = Report(self.own.source, time, self._gather, _COMPILED, self._copy_told)
        self._last = ref(report)
        return report

    def _step_controlled(self, data: mujoco.MjData, nstep: int) -> Report:
        """Lets the user's control callback see the state before each step, as `mj_step` does."""
        for _ in range(nstep):
            mujoco.mj_fwdPosition(self.own.source, data)
            mujoco.mj_fwdVelocity(self.own.source, data)
            get_mjcb_control()(self.own.source, data)
            report = self.step(data, 1, controlled=True)
        return report

    def resolve(self, stop: Stop, data: mujoco.MjData) -> Answer | None:
        """Removes what stopped the steps, or raises it. The answer, if there is one to finish the
        step at hand with."""
        if stop == Stop.UNSOLVED:
            failed = None
            if self._driven:
                code = drive(self.settings.warm_start, RESIDUAL, self.work.address)
                if code == Code.SOLVED:
                    return COMPILED
                # What has rows that it does not take was not tried, and is refused in words.
                failed = None if code == Code.UNSUITABLE else Status.from_code(code)
            return self.fallback.answer(self.own.model, data, self.work, failed)
        if stop == Stop.EDITED:
            self._follow()
        elif stop == Stop.ROOM:
            self.work = self.work.grown(self.own.model)
            self.session[Slot.WORK] = self.work.address
        else:
            if stop == Stop.ERROR:
                self.guard.recover(data)
            raise self._explain(stop, data)
        return None

    def take_part(self, data: mujoco.MjData, dt: float) -> bool:
        """Takes one step of the time dt [s], if an answer is found at little cost; whether it
        is."""
        self.set_timestep(dt)
        turn = _LATER
        while True:
            stop = self.guard.call(data, self._run, self._address, data._address, 1, turn)
            if stop == _DONE:
                return True
            if stop == Stop.UNSOLVED:
                if not self.fallback.answer_part(self.work, dt):
                    return False
                turn = _SOLVED
            else:
                self.resolve(Stop(stop), data)
                self.set_timestep(dt)
                turn = _LATER

    def _explain(self, stop: Stop, data: mujoco.MjData) -> StictionError:
        """The error that says why a step could not be taken."""
        model = self.own.model
        if stop == Stop.NOT_FINITE:
            return validation.not_finite(model, data)
        if stop == Stop.DIVERGED:
            return validation.diverged(model, data, self.work.newton.v)
        if stop == Stop.ERROR:
            said = " ".join(self.guard.message.split())
            return StictionError(
                f"MuJoCo gave up at t = {data.time:g} s ({said}); the step was not taken"
            )
        if stop == Stop.ARENA:
            return StictionError(
                f"MuJoCo's arena of {data.narena} bytes is full at t = {data.time:g} s, so that "
                "contacts would be missing; give the model more: <size memory='...'/>. The step "
                "was not taken"
            )
        return validation.not_definite(model, int(self.work.step.counts[Count.DOF]))

    def keep_last(self) -> None:
        """Lets the last report take what it needs, if somebody still has it."""
        if self._last is not None:
            report = self._last()
            if report is not None:
                report.keep()
            self._last = None

    def _copy_told(self) -> tuple[Array, float]:
        """What `_gather` needs beside an answer."""
        return self.work.copy_told(), self._dt

    def _gather(self, answer: Answer, memory: Array, dt: float) -> Facts:
        """What the last step told, which took the time dt [s]. memory: for `read_told`."""
        told, solution = read_told(memory), answer.solution
        verdict: Certificate | tuple[Law, Table]
        if solution is not None:
            rungs, verdict = (*self._ways, *solution.rungs), solution.certificate
        else:
            assert self.compiled is not None, "other answers come as solutions"
            attempts = told.counts[Count.ATTEMPTS]
            rungs = (*self._ways, *answer.climbed) if attempts > 0 else self._ways[:1]
            law = Law.FRICTIONLESS if answer.flag == FRICTIONLESS else self.compiled.law
            verdict = (law, told.table)
        return Facts(
            int(told.counts[Count.ITERATIONS]),
            (*rungs, answer.flag) if answer.flag else rungs,
            told.figure,
            verdict,
            seconds(told.ticks),
            dt,
            told.record,
        )

    @property
    def statistics(self) -> Statistics:
        """Figures over all steps since the last reset."""
        step = self.work.step
        spent = seconds(step.spent + step.ticks)
        return summarize(step.total, self._rungs, self._ways, spent)

    def reset_statistics(self) -> None:
        """Starts the statistics anew."""
        self.keep_last()
        step = self.work.step
        step.total[:] = 0.0
        step.spent[:], step.ticks[:] = 0, 0
        self._rungs.clear()

    @property
    def memory(self) -> Guess:
        """What the next step is begun with."""
        step = self.work.step
        rests = step.counts[Count.SEEN] != Seen.NOTHING and step.counts[Count.RESTS] == 1
        record = step.record[: int(step.counts[Count.OLD])].copy()
        corrected = step.counts[Count.CORRECTED] == 1
        return Guess(
            record,
            step.seen.copy() if rests else None,
            step.origin.copy() if corrected else None,
        )

    @memory.setter
    def memory(self, guess: Guess) -> None:
        self.keep_last()
        count = len(guess.record)
        if count > self.work.room.blocks:
            self.make_room(count)
        step = self.work.step
        step.record[:count] = guess.record
        step.counts[Count.OLD], step.counts[Count.SEEN] = count, Seen.NOTHING
        step.counts[Count.CORRECTED] = guess.origin is not None
        if guess.origin is not None:
            step.origin[:] = guess.origin
        if guess.seen is not None:
            step.seen[:] = guess.seen
            step.counts[Count.SEEN], step.counts[Count.RESTS] = Seen.INPUTS, 1

    def begin_from(self, other: Workspace) -> None:
        """Takes over the impulses that another engine of the model would begin with."""
        self.keep_last()
        if not begin_as(self.work.address, other.address):
            self.make_room(int(other.step.counts[Count.OLD]))
            begin_as(self.work.address, other.address)

    def make_room(self, blocks: int) -> None:
        """Takes a workspace for so many blocks."""
        self.work = self.work.with_room(self.own.model, blocks)
        self.session[Slot.WORK] = self.work.address

    def overwritten(self) -> None:
        """Notes that what the last step left in the data may stand there no more."""
        counts = self.work.step.counts
        counts[_SEEN] = min(2 * int(counts[_SEEN]), _INPUTS)

    def forget(self) -> None:
        """Drops the last step's impulses, so that the next step starts from none."""
        self.keep_last()
        counts = self.work.step.counts
        counts[Count.OLD] = counts[Count.SEEN] = counts[Count.CORRECTED] = 0
