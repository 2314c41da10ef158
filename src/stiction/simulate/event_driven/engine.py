"""`EventDriven`: smooth motion between events, and events where they happen (Moby's way).

A step of length dt is cut at its events:

    impact     bodies that touch and approach: velocities jump (`impact.py`)
    closing    a gap closes: found by conservative advancement (`impact_time.py`)
    stopping   a contact or dry joint that slides comes to rest: friction turns static

In between (`trajectories.py`) the state is integrated by the fourth-order Runge-Kutta method, with
forces of the contacts that are held from the acceleration level (`sustained.py`), or by symplectic
Euler, as Drumwright does for no-slip contact. Damping of joints and servos that is too fast for
that is implicit (`stiffness.py`); all other smooth forces are explicit. Equality constraints are
rigid.

A contact touches within the tolerance, and is held if its parting speed is nothing besides. One
that leaves a surface and turns back before it has left the tolerance is caught, held and at
rest: so bouncing and rocking end, which otherwise they never would (Zeno). The speed below which
that happens grows with the acceleration a and the tolerance: sqrt(2 a tolerance).

Where events come in shorter and shorter times, or no finite force exists (Painleve), a short piece
of the step is taken at the velocity level: all contacts within reach, and those that are met on the
way, in one solve of the contact model, inelastic, each allowed to close but not beyond. It always
has a solution. With restitution
it ends before an impact that is fast enough to matter, and such impacts are resolved one by one.

A step without events, in which contacts by Coulomb's law stick, is taken as a whole (`calm`).

Overlap and errors of equality constraints that integration leaves are taken back when they exceed
half of the tolerance, without adding velocity (`drift.py`).
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Literal, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import validation
from stiction.bridge.library import CALLBACKS, has_callbacks
from stiction.bridge.names import body_of, name_of
from stiction.bridge.own_model import OwnModel
from stiction.contact.certificate.certificate import Certificate
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import Kind
from stiction.contact.models.model import ContactModel
from stiction.errors import InvalidInput, SolveFailed, StictionError, is_one_of
from stiction.simulate.event_driven import drift
from stiction.simulate.event_driven import output as event_output
from stiction.simulate.event_driven.calm.steps import CalmSteps
from stiction.simulate.event_driven.distances import Snapshot
from stiction.simulate.event_driven.events import PART, Marks, check_event, find_hits
from stiction.simulate.event_driven.impact import Hypothesis, solve_impact
from stiction.simulate.event_driven.impact_time import NOTHING, EventCheck, first_event
from stiction.simulate.event_driven.phases import Held, Impasse, Moved, Phase, State
from stiction.simulate.event_driven.sustained import Forces
from stiction.simulate.event_driven.trajectories import ACCEPT, Motion
from stiction.simulate.options import is_number, is_whole
from stiction.simulate.report import Report
from stiction.simulate.time_stepping.pose import inputs_are_finite

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
Integrator = Literal["rk4", "symplectic"]

BURST = 0.25
"""Share of dt within which BURST_EVENTS events are too many to be resolved one by one."""

BURST_EVENTS = 5
"""Events in a burst, after which a piece is taken at the velocity level; half as many after each
piece of a step. What a piece has not ended would else take as many events again, and so on."""

FIRST_PIECE = 0.125
"""Length of the first such piece, in steps; the next ones are twice as long each."""

CIRCLES = 0.01
"""Time, in steps, between two stops in a row, below which a slip that ends turns faster than it is
followed: each stop of the part along its direction leaves less across it, and so on for ever."""

BRIEF = 1e-3
"""Length of a piece, in steps, that is taken though a fast impact may lie within it, or a
servo come off its largest force."""

SLIPS = 1e3
"""Slip, in units of the speeds that count as rest, above which contacts that may not slip get an
impact; what is less is drift."""


@dataclass(frozen=True)
class EventDriven:
    """Options of the event-driven stepper.

    dt           length of a step [s]; None takes the model's own
    integrator   "rk4", with forces of lasting contacts at the acceleration level, or "symplectic"
    restitution  e in [0, 1] of all contacts
    hypothesis   "newton" (velocities) or "poisson" (impulses): what e is the ratio of
    tolerance    overlap that is never exceeded, and distance that counts as touching [m, rad]
    most_events  per step, beyond which it fails
    """

    dt: float | None = None
    integrator: Integrator = "rk4"
    restitution: float = 0.0
    hypothesis: Hypothesis = "newton"
    tolerance: float = 1e-7
    most_events: int = 1000

    def __post_init__(self) -> None:
        """Checks the options."""
        if self.dt is not None and not (is_number(self.dt) and 0.0 < self.dt < np.inf):
            raise InvalidInput("dt", f"is {self.dt!r}: a step takes a positive time in seconds")
        if not is_one_of(self.integrator, ("rk4", "symplectic")):
            raise InvalidInput("integrator", f"is {self.integrator!r}: 'rk4' or 'symplectic'")
        if not (is_number(self.restitution) and 0.0 <= self.restitution <= 1.0):
            raise InvalidInput("restitution", f"is {self.restitution!r}: a number from 0 to 1")
        if not is_one_of(self.hypothesis, ("newton", "poisson")):
            raise InvalidInput("hypothesis", f"is {self.hypothesis!r}: 'newton' or 'poisson'")
        if not (is_number(self.tolerance) and 0.0 < self.tolerance < np.inf):
            raise InvalidInput("tolerance", f"is {self.tolerance!r}: a positive length in metres")
        if not (is_whole(self.most_events) and self.most_events >= 1):
            raise InvalidInput("most_events", f"is {self.most_events!r}: a whole number, 1 or more")


class Memory(NamedTuple):
    """What a step takes over from the last one."""

    phase: tuple[bytes, Phase, Held | None] | None
    """The one that the last step ended in, with the state that it belongs to."""
    forces: tuple[Array, ...] | None
    """Of its contacts, the guess of the next ones."""


class EventEngine:
    """Steps a model by events; one thread at a time.

    model is never written to; after edits of meshes or height fields call `refresh`.
    """

    def __init__(self, model: mujoco.MjModel, contact: ContactModel, stepper: EventDriven) -> None:
        contact.check_simulated()
        self.contact, self.stepper = contact, stepper
        self._impacts = contact.at_impact
        self._own = OwnModel(model)
        self._known: Callable[[], mujoco.MjData | None] = lambda: None
        """The data of the last step, which fits the model."""
        self._configure()

    def refresh(self) -> None:
        """Takes over what was changed in the model since the engine was made."""
        self._own.refresh()
        self._configure()

    def _configure(self) -> None:
        validation.check_still_surfaces(self._own.model, "EventDriven()")
        if self._own.has_adhesion:
            raise InvalidInput(
                "model",
                "has adhesion: EventDriven does not know contacts that pull; use TimeStepping()",
            )
        self.dt = float(self.stepper.dt or self._own.source.opt.timestep)
        self._motion = Motion(
            self._own.model, self.contact, self.dt, self.stepper.tolerance, self._check,
            self._own.has_derivatives,
        )  # fmt: skip
        smooth = self._motion.compiled and self.stepper.integrator == "rk4"
        self._calm = CalmSteps(self._motion, int(self._own.source.opt.cone)) if smooth else None
        self._last: weakref.ref[Report] | None = None
        self._phase: tuple[bytes, Phase, Held | None] | None = None

    @property
    def memory(self) -> Memory | None:
        """What the next step takes over from the last one; None: nothing."""
        forces = None if self._calm is None else self._calm.memory
        return None if self._phase is None and forces is None else Memory(self._phase, forces)

    @memory.setter
    def memory(self, memory: Memory | None) -> None:
        self._phase = None if memory is None else memory.phase
        if self._calm is not None:
            self._keep_last()
            self._calm.memory = None if memory is None else memory.forces

    def step(self, data: mujoco.MjData) -> Report:
        """Takes one step of length dt; data then holds the new state, evaluated: forces, sensors
        and contacts are those after the step.

        If it cannot be taken qpos, qvel, act and time are as before, and an exception says why.
        """
        began = perf_counter()
        new = data is None or data is not self._known()
        if new:
            validation.check_data(self._own.model, data)
            self._known = weakref.ref(data)
        if self._own.follow():
            self._configure()
        if mujoco.get_mjcb_control() is not None:
            self._control(data)
        before = State(data.qpos.copy(), data.qvel.copy(), data.act.copy())
        start = float(data.time)
        try:
            return self._step(data, before, start, began, new)
        except BaseException:
            data.qpos[:], data.qvel[:], data.act[:] = before
            data.time = start
            self.memory = None
            raise

    def _control(self, data: mujoco.MjData) -> None:
        """Lets the user's control callback see the state, as `mj_step` does."""
        mujoco.mj_fwdPosition(self._own.source, data)
        mujoco.mj_fwdVelocity(self._own.source, data)
        mujoco.get_mjcb_control()(self._own.source, data)

    def _step(
        self, data: mujoco.MjData, before: State, start: float, began: float, new: bool
    ) -> Report:
        """new: whether the data may not have been evaluated."""
        if not inputs_are_finite(self._own.address, data._address):
            raise validation.not_finite(self._own.model, data)
        self._motion.start(data)
        self._start, self._now, self._lost = start, 0.0, 0.0
        self.events = 0
        self._worst: Certificate | None = None
        self._rungs: list[str] = []
        self._guess: Forces | None = None
        if self._calm is not None:
            self._keep_last()
            clamped = new or self._motion.servos.are_clamped(data)
            if not (clamped and len(self._motion.servos)) and self._calm.take(
                data, start + self.dt
            ):
                return self._finish_calm(data, began)
            data.qpos[:], data.qvel[:], data.act[:] = before
            data.time = start
        phase, held = self._resume(data, before)
        overlap = max(0.0, -float(phase.seen.gap.min(initial=0.0)))
        phase, held = self._run(phase, held)
        return self._finish(phase, held, overlap, began)

    def _resume(self, data: mujoco.MjData, before: State) -> tuple[Phase, Held | None]:
        """The phase that the step starts in: the last one's, where only forces were changed since,
        and then with its own."""
        memory, motion = self._phase, self._motion
        if memory is None or memory[0] != _place(data) or has_callbacks(CALLBACKS):
            return self._begin(before), None
        _, phase, held = memory
        if held is None:
            return self._begin(before), None
        seen = motion.survey.survey_forces(data, phase.seen, *before)
        if motion.measure_rest(before, seen):
            return self._begin(before), None
        phase = phase._replace(state=before, damping=motion.damping(seen))
        if np.array_equal(seen.force, phase.seen.force):
            return phase._replace(seen=seen), held
        try:
            return motion.hold_again(phase, held, seen)
        except Impasse:
            return phase._replace(seen=seen), None

    def _run(self, phase: Phase, held: Held | None) -> tuple[Phase, Held | None]:
        """The phase at the end of the step, and its forces if they are known."""
        motion = self._motion
        recent: deque[float] = deque(maxlen=BURST_EVENTS)
        piece, stopped, circles, few = FIRST_PIECE * self.dt, False, False, BURST_EVENTS
        while self._now < self.dt * (1.0 - 1e-12):
            left = self.dt - self._now
            if held is not None and motion.rests(phase, held):
                break
            try:
                burst = len(recent) >= few and self._now - recent[-few] < BURST * self.dt
                if burst or circles:
                    raise Impasse
                held, moved, check = self._advance(phase, held, left)
                grip = drift.grip_of(motion, held)
            except Impasse:
                # Twice as long each time, after half as many events: what comes back at once is not
                # worth resolving.
                calm = max(self._calm_time(phase), BRIEF * self.dt)
                moved, grip = motion.velocity_level(phase, min(left, piece, calm))
                recent.clear()
                held, check, piece, few = None, NOTHING, 2.0 * piece, max(1, few // 2)
            began = self._now
            self._now += moved.elapsed
            stops = check.overdue > 0.0 and check.culprit < 0
            circles = stops and stopped and moved.elapsed < CIRCLES * self.dt
            stopped = stops
            if check.overdue > 0.0:
                self._count_event(moved.seen, check.culprit)
                if check.culprit < 0 or not self._fast(moved)[check.culprit]:
                    recent.append(began)
            state = drift.project_velocity(motion, grip, moved)
            phase, held = self._begin(state, moved), None
        return phase, held

    def _advance(
        self, phase: Phase, held: Held | None, left: float
    ) -> tuple[Held | None, Moved, EventCheck]:
        """Forces of the phase, and the state at its next event, or after `left` at most."""
        motion, found = self._motion, None
        smooth = self.stepper.integrator == "rk4"
        if smooth:
            held = held or motion.hold(phase, self._guess)
            self._guess = held.forces
            clamped = motion.servos.time_left(motion.data, held.forces.acceleration)
            left = min(left, max(clamped, BRIEF * self.dt))
            phase, first = motion.choose_slips(phase, held, left)
            found = motion.first_event(phase, held, first, left)
        else:
            held = None
        if found is None:
            path = motion.runge_kutta(phase, first) if smooth else motion.symplectic_euler(phase)
            end = motion.accurate_end(held, path, left)
            marks = motion.marks._replace(stops=smooth)
            decide = partial(_check_event, phase, marks)
            found = first_event(phase, path, end, decide, self.dt, motion.model.geom_rbound)
        moved, check = found
        if not check.acceptable:
            raise Impasse
        return held, moved, check

    def _fast(self, at: Phase | Moved) -> Mask:
        """(nc,) contacts that close too fast for restitution to be left out: what bounces at less
        has come to rest in a burst, unless it loses nothing."""
        e, seen = self.stepper.restitution, at.seen
        if e == 0.0:
            return np.zeros(seen.nc, np.bool_)
        change = np.abs(seen.normal @ np.linalg.solve(seen.mass, seen.force))
        return np.asarray(at.speed < -(1.0 - e) * BURST * self.dt * change, np.bool_)

    def _calm_time(self, phase: Phase) -> float:
        """Time [s] in which no contact closes that is fast; half of what its speed tells."""
        fast = self._fast(phase) & (phase.seen.gap > self.stepper.tolerance)
        return float((0.5 * phase.seen.gap[fast] / -phase.speed[fast]).min(initial=np.inf))

    # Events

    def _begin(self, state: State, moved: Moved | None = None) -> Phase:
        """The phase that starts at a state: overlap is taken back and impacts are resolved."""
        motion, tolerance = self._motion, self.stepper.tolerance
        seen = moved.seen if moved is not None and state is moved.state else motion.look(state)
        if moved is None:
            motion.measure_rest(state, seen)
        if drift.largest_error(seen) > PART * tolerance:
            state, seen = drift.project_position(motion, state, seen)
            if float(seen.gap.min(initial=0.0)) < -tolerance:
                self._jammed(seen)
        struck = np.empty(0, np.int64)
        while True:
            speed, slack, touching, hits = find_hits(
                seen.normal, seen.gap, state.qvel, tolerance, motion.rest_speed
            )
            # What an impact has stopped, and still approaches, does so as far as a certificate
            # lets it: the next impact would find nothing to do, and so for ever.
            hits, struck = np.setdiff1d(hits, struck), hits
            if motion.law.kind is Kind.HOLD and not len(hits):
                stays = touching[speed[touching] <= slack[touching]]
                hits = _slipping(seen, state.qvel, stays, slack)
            if not len(hits):
                if motion.shown is not seen:
                    seen = motion.look(state)
                return motion.phase(state, seen)
            self._count_event(seen, int(hits[0]))
            state = state._replace(qvel=self._hit(seen, state.qvel, touching, slack[touching]))
            seen = motion.look(state)

    def _hit(self, seen: Snapshot, qvel: Array, touching: Indices, slack: Array) -> Array:
        """Velocity after an impact."""
        stepper = self.stepper
        solution = solve_impact(
            self._impacts, seen, qvel, touching, slack, stepper.restitution, stepper.hypothesis
        )
        self._check(solution, seen, touching, "impact")
        before, after = (0.5 * float(v @ seen.mass @ v) for v in (qvel, solution.velocity))
        self._lost += after - before
        return solution.velocity

    def _check(
        self, solution: ContactSolution, seen: Snapshot, contacts: Indices, rung: str
    ) -> None:
        """Raises SolveFailed for an answer that its certificate does not pass."""
        worst = solution.certificate.worst
        if not worst <= ACCEPT:
            named: Counter[str] = Counter(self._name(seen, int(c)) for c in contacts)
            listed = ", ".join(f"{n} of {name}" for name, n in named.most_common(4))
            assert solution.problem is not None
            raise SolveFailed(
                solution.problem,
                solution.status,
                f"at t = {self._start + self._now:g} s the {rung} of {self.contact!r} missed "
                f"the tolerance {ACCEPT:g} (worst {worst:.1e}, "
                f"{solution.certificate.worst_entry.name.lower()}): {listed}. The state is as "
                "before the step.",
            )
        self._motion.pivots += solution.pivots
        self._grade(solution.certificate)
        self._rungs.append(rung)

    def _grade(self, certificate: Certificate) -> None:
        if self._worst is None or certificate.worst > self._worst.worst:
            self._worst = certificate

    def _count_event(self, seen: Snapshot, culprit: int) -> None:
        self.events += 1
        if self.events > self.stepper.most_events:
            what = "something that slides" if culprit < 0 else self._name(seen, culprit)
            raise StictionError(
                f"more than most_events = {self.stepper.most_events} events within the step at "
                f"t = {self._start + self._now:g} s, the last at {what}; raise most_events, or "
                "shorten dt. The state is as before the step"
            )

    def _jammed(self, seen: Snapshot) -> None:
        deepest = int(np.argmin(seen.gap))
        raise StictionError(
            f"overlap of {-seen.gap[deepest]:.1e} m at {self._name(seen, deepest)} could not be "
            f"taken back at t = {self._start + self._now:g} s: the bodies are jammed. The state "
            "is as before the step"
        )

    def _name(self, seen: Snapshot, contact: int) -> str:
        """The bodies that touch at a contact, or the joint or tendon of a limit."""
        model = self._own.model
        first, second = (int(k) for k in seen.pair[contact])
        if seen.number[contact] >= 0:
            return f"{body_of(model, first)} and {body_of(model, second)}"
        tendon = -1 - first == int(mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)
        return f"the limit of {name_of(model, 'tendon' if tendon else 'joint', second)}"

    def _finish(self, phase: Phase, held: Held | None, overlap: float, began: float) -> Report:
        """Evaluates the state at the end of the step."""
        motion, seen = self._motion, phase.seen
        try:
            held = held or motion.hold(phase, self._guess)
        except Impasse:
            self._rungs.append("no finite force")
        if held is not None and (seen.nc or len(seen.joint) or len(seen.dry)):
            self._grade(held.certificate)
        forces = event_output.acting(phase, held)
        source = self._own.source
        event_output.write(motion, phase, forces, source.opt.cone, self._start + self.dt)
        self._phase = (_place(motion.data), phase, held)
        if self._calm is not None:
            self._calm.memory = None if held is None else held.forces.parts
        certificate = self._worst or event_output.PERFECT
        self.summary = event_output.StepSummary(
            certificate.worst,
            motion.pivots,
            tuple(dict.fromkeys([*self._rungs, "accelerations"])),
            int((seen.number >= 0).sum()),
            self._lost,
            overlap,
            perf_counter() - began,
        )
        rest = motion.rest_speed
        return Report(
            source,
            float(motion.data.time),
            lambda told: event_output.facts(
                told, certificate, event_output.describe(phase, forces, rest)
            ),
            (self.summary,),
        )

    def _finish_calm(self, data: mujoco.MjData, began: float) -> Report:
        """The report of a step that `CalmSteps` took."""
        calm = self._calm
        assert calm is not None
        self._phase = None
        self.summary = event_output.StepSummary(
            calm.worst, calm.pivots, ("accelerations",), calm.contacts, 0.0, calm.overlap,
            perf_counter() - began,
        )  # fmt: skip
        report = Report(
            self._own.source,
            float(data.time),
            event_output.facts,
            (self.summary,),
            lambda: (calm.verdict, calm.record),
        )
        self._last = weakref.ref(report)
        return report

    def _keep_last(self) -> None:
        """Lets the last report, if it is in use, take what it needs from where steps write."""
        last = None if self._last is None else self._last()
        self._last = None
        if last is not None:
            last.keep()


def _check_event(phase: Phase, marks: Marks, trial: Moved) -> EventCheck:
    return EventCheck(*check_event(phase, trial, marks))


def _slipping(seen: Snapshot, qvel: Array, stays: Indices, slack: Array) -> Indices:
    """Contacts among `stays` that slip, where the model allows none."""
    stays = stays[seen.friction[stays] > 0.0]
    slip = seen.tangent[stays] @ qvel
    return stays[np.hypot(slip[:, 0], slip[:, 1]) > SLIPS * slack[stays]]


def _place(data: mujoco.MjData) -> bytes:
    """All that contacts and their motion depend on: to tell whether it was changed."""
    return b"".join(
        array.tobytes()
        for array in (data.qpos, data.qvel, data.mocap_pos, data.mocap_quat, data.eq_active)
    )
