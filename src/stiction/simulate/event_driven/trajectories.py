"""Motion between events: where a state goes under smooth forces and the contacts that it holds.

`runge_kutta` is the method of order four. Each stage looks for the held contacts anew, where they
are then, and solves for their forces; rotations are integrated in exponential coordinates
(`rotations.py`). `symplectic_euler` is one solve of the contact model over the whole time. Both are
functions of that time, so that an event can be located by calling them with less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import validation
from stiction.bridge.shared_points import hold_once
from stiction.contact.certificate.certificate import Certificate, from_table
from stiction.contact.certificate.laws import Law
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import Kind
from stiction.contact.models.model import ContactModel
from stiction.contact.problem.arrays import Arrays
from stiction.contact.problem.problem import from_arrays
from stiction.simulate.event_driven.distances import Snapshot, closing_bound, match
from stiction.simulate.event_driven.events import Marks
from stiction.simulate.event_driven.held_rows import contact_states, held_rows, speed_of_rest
from stiction.simulate.event_driven.impact import spins_at, tangents_for
from stiction.simulate.event_driven.impact_time import EventCheck
from stiction.simulate.event_driven.phases import Grip, Held, Impasse, Moved, Path, Phase, State
from stiction.simulate.event_driven.rotations import unroll
from stiction.simulate.event_driven.saturation import Servos
from stiction.simulate.event_driven.search import (
    PIECE_HALVINGS,
    Trajectory,
    arrive,
    integration_error,
    search,
)
from stiction.simulate.event_driven.slip_directions import choose_directions
from stiction.simulate.event_driven.stages import (
    FASTEST,
    Course,
    Limits,
    Start,
    gather,
    hold_course,
    survey_rates,
)
from stiction.simulate.event_driven.stiffness import WEIGHTS
from stiction.simulate.event_driven.surveyor import Outcome, Surveyor, damping_at
from stiction.simulate.event_driven.sustained import (
    NO_FORCES,
    Forces,
    Loads,
    coefficients,
    hold_otherwise,
    hold_sustained,
    solve_sustained,
)
from stiction.tolerances import RESIDUAL

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

Check = Callable[[ContactSolution, Snapshot, Indices, str], None]
"""Raises for a solution at those contacts that its certificate does not pass."""

ACCEPT = 1e-6
"""Certificate that forces, an impact or a velocity-level solve must pass."""

REST_SHARE = 1e-3
"""Share of the tolerance that a contact at rest may move in a step: less speed counts as rest,
where it is little beside what forces give in a step (`speed_of_rest`)."""

STOPPING_SLIP = 0.1
"""Share of its speed at the start of a phase below which a slip is about to stop."""


MEETINGS = 4
"""Solves of a piece at most, each with what the one before has sunk in by its end. MuJoCo tells one
point of some pairs that lie on each other along a line: while that one holds the other end closes,
which no piece however short sees coming."""


class Met(NamedTuple):
    """Contacts that a solve at the velocity level has sunk in."""

    seen: Snapshot
    """Of the state after it."""
    sunk: Indices
    """Which ones, of those seen."""
    velocity: Array
    """(nv,) that led there."""


class Unilateral(NamedTuple):
    """Rows of nc contacts, and ns of torsional and rolling friction at them."""

    normal: Array  # (nc, nv)
    tangent: Array  # (nc, 2, nv)
    friction: Array  # (nc,)
    bound: Array  # (nc,)
    spin: Array  # (ns, nv)
    parents: Indices  # (ns,) number of the contact
    spin_friction: Array  # (ns,)


class Motion:
    """Trajectories of a model: `model` is a copy whose options may be set.

    `data` is the MjData that states are evaluated in.
    """

    data: mujoco.MjData

    def __init__(
        self,
        model: mujoco.MjModel,
        contact: ContactModel,
        dt: float,
        tolerance: float,
        check: Check,
        damped: bool,
    ) -> None:
        self.model, self.contact, self.dt, self.tolerance = model, contact, dt, tolerance
        self._check = check
        self.law = contact.sustained
        self.most_rest = REST_SHARE * tolerance / dt
        """Largest speed that counts as none at any state [m/s, rad/s]."""
        self.rest_speed = self.most_rest
        """Speed that counts as none in the present step."""
        self.survey = Surveyor(model, dt, tolerance, damped)
        self.servos = Servos(model)
        self.shown: Snapshot | None = None
        """What `data` holds, evaluated."""
        self.pivots = 0
        self.probe = mujoco.MjData(model)
        self._led = bool(model.nmocap or model.neq)
        """Whether the data holds more than the state that places things."""
        ball, free = mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_FREE
        first = np.where(model.jnt_type == free, model.jnt_dofadr + 3, model.jnt_dofadr)
        turns = (model.jnt_type == ball) | (model.jnt_type == free)
        self.limits = Limits(first[turns].astype(np.int64), *_activation_ranges(model))
        self.static, self.dynamic = coefficients(self.law.static), coefficients(self.law.dynamic)
        plain = max(len(self.static), len(self.dynamic)) < 2
        self.compiled = self.law.kind is Kind.DRY and plain
        """Whether Runge-Kutta's trajectories are followed in compiled code."""
        slides = self.law.kind is Kind.DRY
        self.marks = Marks(dt, tolerance, self.rest_speed, slides, True)

    def start(self, data: mujoco.MjData) -> None:
        """Works in data from now on; takes over what it holds beside the state."""
        self.data, self.shown = data, None
        self.pivots = 0
        if self._led:
            self.probe.mocap_pos[:] = data.mocap_pos
            self.probe.mocap_quat[:] = data.mocap_quat
            self.probe.eq_active[:] = data.eq_active

    def measure_rest(self, state: State, seen: Snapshot) -> bool:
        """Sets the speed that counts as none in a step from this state, which `data` is in; whether
        it is another one than before."""
        before = self.rest_speed
        self.rest_speed = speed_of_rest(
            seen.normal, seen.tangent, seen.dry, state.qvel, self.data.qacc_smooth, self.dt,
            self.most_rest,
        )  # fmt: skip
        self.marks = self.marks._replace(rest=self.rest_speed)
        return self.rest_speed != before

    def look(self, state: State, ahead: bool = True) -> Snapshot:
        """What is seen at a state; ahead as in `Surveyor.survey`."""
        seen = self.survey.survey(self.data, *state, ahead)
        self.shown = self._held_once(seen)
        return seen

    def _held_once(self, seen: Snapshot) -> Snapshot:
        """The snapshot, where contacts that hold what others hold have lost their friction."""
        if self.law.kind is Kind.HOLD:
            hold_once(
                self.model._address, seen.pair, seen.point, seen.axis, seen.gap, seen.friction
            )
        return seen

    def moved(self, state: State, by: Array) -> Array:
        """qpos after a displacement (nv,) in exponential coordinates."""
        qpos = state.qpos.copy()
        mujoco.mj_integratePos(self.model, qpos, by, 1.0)
        return qpos

    def phase(self, state: State, seen: Snapshot) -> Phase:
        """The phase that begins at a state, in which no contact that touches may approach."""
        v = state.qvel
        speed, touching, held, sliding, direction, pace, turning, spinning = contact_states(
            seen.normal, seen.tangent, seen.gap, seen.friction, seen.dry, seen.spin,
            seen.spin_contact, v, self.tolerance, self.rest_speed,
        )  # fmt: skip
        return Phase(
            state, seen, speed, self._bound(seen, speed, held), touching, held, sliding, direction,
            pace, np.zeros(len(held), np.bool_), turning, spinning, self.damping(seen),
        )  # fmt: skip

    def damping(self, seen: Snapshot) -> Array:
        """What of the damping is implicit from the state on that `data` is in, as it is seen."""
        return damping_at(self.survey.session, self.data._address, seen.mass, self.dt)

    def _bound(self, seen: Snapshot, speed: Array, held: Indices) -> Array:
        """(nc,) closing speeds of the state that `data` is in; -inf where held."""
        bound = -speed
        if len(held) < seen.nc:
            bound = closing_bound(
                self.model._address, self.data._address, seen.number, seen.pair, seen.point,
                seen.axis, speed,
            )  # fmt: skip
        bound[held] = -np.inf
        return bound

    # Forces

    def hold(self, phase: Phase, guess: Forces | None = None) -> Held:
        """Forces at the start of a phase, looked for from a guess; Impasse if there are none that
        pass their certificate."""
        course = self._course(phase)
        if not self.compiled:
            return self._hold(self._loads(course, phase.state, phase.seen, phase.held), guess)
        rates, joint_rate = np.zeros((len(phase.held), 3)), np.zeros(len(phase.seen.joint))
        self._survey_rates(phase.state, course.pair, course.point, course.axis, rates, joint_rate)
        loads, (*found, solved, steps, table) = hold_course(
            course, phase.seen, phase.state.qvel, phase.held, rates, joint_rate, self.static,
            self.dynamic, NO_FORCES if guess is None else guess.parts,
        )  # fmt: skip
        if solved:
            certified = Forces._make((*found, steps)), from_table(Law.COULOMB, table)
            return self._accept(certified, loads, guess)
        return self._accept(hold_otherwise(self.law, loads), loads, guess)

    def hold_again(self, phase: Phase, held: Held, seen: Snapshot) -> tuple[Phase, Held]:
        """The phase, and its forces, where other smooth forces act than did in `held`."""
        changed = held.loads.force - phase.seen.force + seen.force
        loads = held.loads._replace(mass=seen.mass, force=changed)
        return phase._replace(seen=seen), self._hold(loads, held.forces)

    def _hold(self, loads: Loads, guess: Forces | None) -> Held:
        return self._accept(hold_sustained(self.law, loads, guess), loads, guess)

    def _accept(
        self, found: tuple[Forces, Certificate] | None, loads: Loads, guess: Forces | None
    ) -> Held:
        """What was found from a guess, if it passes; else what is found without."""
        if found is None or not found[1].worst <= ACCEPT:
            if guess is not None:
                return self._hold(loads, None)
            raise Impasse
        forces, certificate = found
        self.pivots += forces.steps
        return Held(forces, loads, certificate)

    def rests(self, phase: Phase, held: Held) -> bool:
        """Whether nothing will move within a step by more than rounding."""
        fastest = np.abs(phase.state.qvel).max(initial=0.0)
        change = self.dt * np.abs(held.forces.acceleration).max(initial=0.0)
        return bool(
            fastest + change <= REST_SHARE * self.rest_speed and not phase.seen.act_dot.any()
        )

    def _course(self, phase: Phase) -> Course:
        """What the phase keeps along its trajectory."""
        seen = phase.seen
        return Course(
            *_identity(seen, phase.held), phase.held, phase.sliding, phase.direction, phase.steady,
            np.maximum(STOPPING_SLIP * phase.pace, self.rest_speed), phase.turning, phase.spinning,
            seen.spin_contact,
        )  # fmt: skip

    def _loads(self, course: Course, state: State, seen: Snapshot, place: Indices) -> Loads:
        """The held contacts at a state of the phase; place (nh,): where they are, or -1."""
        v = state.qvel
        held = held_rows(
            place, seen.normal, seen.tangent, seen.friction, v, course.sliding, course.direction,
            course.steady, course.least,
        )  # fmt: skip
        at = held[0]
        rates, joint_rate = np.zeros((len(at), 3)), np.zeros(len(seen.joint))
        self._survey_rates(state, *_identity(seen, at), rates, joint_rate)
        return gather(
            course, seen.mass, seen.force, seen.joint, seen.dry, seen.dry_limit, seen.spin,
            seen.spin_contact, seen.spin_friction, v, place, held, rates, joint_rate,
            self.law.kind is Kind.DRY,
        )  # fmt: skip

    def _survey_rates(
        self,
        state: State,
        pair: Indices,
        point: Array,
        axis: Array,
        rates: Array,
        joint_rate: Array,
    ) -> None:
        """`stages.difference` at a state."""
        probe = self.probe
        self.survey.call(
            probe, survey_rates, self.survey.session, probe._address, state.qpos, state.qvel, pair,
            point, axis, rates, joint_rate,
        )  # fmt: skip

    def choose_slips(self, phase: Phase, held: Held, h: float) -> tuple[Phase, Forces]:
        """The phase with the slips of a step of length h, see `slip_directions.py`, and the forces
        that it starts with."""
        first = held.forces
        if self.law.kind is not Kind.DRY or not len(phase.held):
            return phase, first
        ahead = held.loads
        if len(phase.damping):
            ahead = ahead._replace(mass=ahead.mass + h * phase.damping)
        sliding, direction, steady = choose_directions(
            ahead, first.acceleration, first.normal, self.dynamic, h, self.rest_speed
        )
        if (direction != held.loads.direction).any():
            turned = held.loads._replace(sliding=sliding, direction=direction)
            first = self._accelerate(turned)
        return phase._replace(sliding=sliding, direction=direction, steady=steady), first

    def _accelerate(self, loads: Loads, guess: Forces | None = None) -> Forces:
        """Forces of a state, looked for from a guess; Impasse where there are none."""
        found = solve_sustained(self.law, loads, guess)
        if found is None:
            raise Impasse
        return found[0]

    # Trajectories

    def first_event(
        self, phase: Phase, held: Held, first: Forces, left: float
    ) -> tuple[Moved, EventCheck] | None:
        """The first event within `left` of the phase's Runge-Kutta trajectory, or its end, in
        compiled code; None where that finds no forces. first: forces at the start."""
        if not self.compiled:
            return None
        way = Trajectory(
            self._course(phase), _start(phase, first), self.limits, self.static, self.dynamic,
            held.forces.normal > 0.0, self.model.geom_rbound,
        )  # fmt: skip
        end, told = State(*(np.empty_like(part) for part in phase.state)), np.zeros(5)
        done = self.survey.call(
            self.data, search, self.survey.session, self.data._address, self.probe._address,
            phase, way, left, self.marks, end, told,
        )  # fmt: skip
        if done == Outcome.DIVERGED:
            raise validation.diverged(self.model, self.data, end.qvel)
        if done != Outcome.DONE:
            return None
        elapsed, overdue, ahead, acceptable, culprit = told.tolist()
        check = EventCheck(overdue, ahead, bool(acceptable), int(culprit))
        return self._read(phase, phase.held, elapsed, end), check

    def runge_kutta(self, phase: Phase, first: Forces) -> Path:
        """Runge-Kutta of order four by any law; first: forces at the start, from which each stage's
        are looked for."""
        course, start = self._course(phase), _start(phase, first)

        def path(h: float) -> Moved:
            end = self._follow_by_stages(course, start, first, h)
            return self._arrive(phase, phase.held, h, end)

        return path

    def _follow_by_stages(self, course: Course, start: Start, first: Forces, h: float) -> State:
        """The state after h."""
        guess, begin = first, State(*start[:3])

        def forces(
            turn: Array, qvel: Array, act: Array, implicit: float = 0.0
        ) -> tuple[Array, Array]:
            nonlocal guess
            state = State(self.moved(begin, turn), qvel, act)
            self._check_speed(state)
            seen = self.look(state, ahead=False)
            kept = (course.pair, course.point, course.axis)
            place = match(*kept, seen.pair, seen.point, seen.axis)
            loads = self._loads(course, state, seen, place)
            if implicit > 0.0:
                loads = loads._replace(mass=loads.mass + implicit * start.damping)
            guess = self._accelerate(loads, guess)
            return guess.acceleration, seen.act_dot

        def rate(turn: Array, qvel: Array, act: Array) -> tuple[Array, Array, Array]:
            return unroll(turn, qvel, self.limits.rotations), *forces(turn, qvel, act)

        v, act = begin.qvel, begin.act
        if len(start.damping):
            return self._extrapolate(begin, forces, h)
        u1, a1, z1 = v, first.acceleration, start.act_dot
        u2, a2, z2 = rate(0.5 * h * u1, v + 0.5 * h * a1, act + 0.5 * h * z1)
        u3, a3, z3 = rate(0.5 * h * u2, v + 0.5 * h * a2, act + 0.5 * h * z2)
        u4, a4, z4 = rate(h * u3, v + h * a3, act + h * z3)
        part = h / 6.0
        return State(
            self.moved(begin, part * (u1 + 2.0 * (u2 + u3) + u4)),
            v + part * (a1 + 2.0 * (a2 + a3) + a4),
            self._clamped(act + part * (z1 + 2.0 * (z2 + z3) + z4)),
        )

    def _extrapolate(
        self, begin: State, forces: Callable[..., tuple[Array, Array]], h: float
    ) -> State:
        """The state after h where damping is implicit, see `stiffness.py`."""
        total = [np.zeros_like(part) for part in (begin.qvel, begin.qvel, begin.act)]
        for n, weight in enumerate(WEIGHTS, 1):
            turn, v, act = np.zeros(len(begin.qvel)), begin.qvel, begin.act
            for _ in range(n):
                change, act_change = forces(turn, v, act, h / n)
                v, act = v + h / n * change, act + h / n * act_change
                turn = turn + h / n * unroll(turn, v, self.limits.rotations)
            total = [sum_ + weight * part for sum_, part in zip(total, (turn, v, act), strict=True)]
        return State(self.moved(begin, total[0]), total[1], self._clamped(total[2]))

    def symplectic_euler(self, phase: Phase) -> Path:
        """Symplectic Euler with the contacts that touch."""

        def path(h: float) -> Moved:
            state, _ = self._solve_velocities(phase, h, phase.touching)
            return self._arrive(phase, phase.touching, h, state)

        return path

    def velocity_level(self, phase: Phase, h: float) -> tuple[Moved, Grip]:
        """A piece at the velocity level with all contacts in reach, and with those that are met on
        its way: h, halved until gaps, which such a solve takes for linear in the motion, are within
        the tolerance; and the grip of those that touch at its end. Rows turn meanwhile: what stuck
        by those of its start slips by those of its end, and would be taken for sliding."""
        everything = np.arange(phase.seen.nc)
        for left in range(PIECE_HALVINGS, -1, -1):
            met: list[Met] = []
            for _ in range(MEETINGS):
                state, solution = self._solve_velocities(phase, h, everything, met)
                end = self._arrive(phase, everything, h, state)
                deepest = end.seen.gap.min(initial=0.0)
                if deepest >= -self.tolerance:
                    break
                met.append(Met(end.seen, np.flatnonzero(end.seen.gap < 0.0), solution.velocity))
            if deepest >= -self.tolerance or left == 0:
                break
            h *= 0.5
        touches = end.place >= 0
        touches[touches] = end.seen.gap[end.place[touches]] <= self.tolerance
        press = np.where(touches, solution.normal[: phase.seen.nc], 0.0)
        return end, Grip(press, np.inf, self._sticking(phase.seen, solution.velocity))

    def _sticking(self, seen: Snapshot, velocity: Array) -> Array:
        """(nc,) inf where a contact does not slip with this velocity, else -1."""
        if self.law.kind is not Kind.DRY:
            return np.full(seen.nc, np.inf if self.law.kind is Kind.HOLD else -1.0)
        slip = np.hypot(*(seen.tangent @ velocity).T)
        slack = self.rest_speed + RESIDUAL * (np.abs(seen.tangent) @ np.abs(velocity)).sum(axis=1)
        return np.where(slip <= slack, np.inf, -1.0)

    def accurate_end(self, held: Held | None, path: Path, h: float) -> Moved:
        """The end of the longest piece, h halved a few times at most, after which held contacts
        have not sunk in, nor those that press moved, by more than the tolerance: that is what
        integration errs. (A contact that is let go moves as well: it costs halvings, once.)"""
        press = np.zeros(0, np.bool_) if held is None else held.forces.normal > 0.0
        for left in range(PIECE_HALVINGS, -1, -1):
            end = path(h)
            if integration_error(press, end) <= self.tolerance or left == 0:
                break
            h *= 0.5
        return end

    def _solve_velocities(
        self, phase: Phase, h: float, contacts: Indices, met: Sequence[Met] = ()
    ) -> tuple[State, ContactSolution]:
        """The state after a solve of the contact model over the time h with those contacts, and
        with what was met on the way by earlier solves."""
        seen, start = phase.seen, phase.state
        gap = seen.gap[contacts]
        parts = [self._unilateral(seen, contacts, np.where(gap > self.tolerance, -gap / h, 0.0))]
        least = min(0.0, float(gap.min(initial=0.0)))
        for there, sunk, velocity in met:
            bound = there.normal[sunk] @ velocity + (least - there.gap[sunk]) / h
            parts.append(self._unilateral(there, sunk, bound))
        normal, tangent, friction, bound, spin, parents, spin_friction = (
            np.concatenate(rows) for rows in zip(*parts, strict=True)
        )
        first = np.cumsum([0, *(len(part.bound) for part in parts[:-1])])
        parents += np.repeat(first, [len(part.parents) for part in parts])
        nf = len(seen.dry)
        arrays = Arrays(
            mass=seen.mass + h * phase.damping if len(phase.damping) else seen.mass,
            velocity=start.qvel,
            force=seen.force,
            normal=normal,
            tangent=tangent,
            friction=friction,
            viscosity=np.zeros(len(normal)),
            bound=bound,
            joint=seen.joint,
            joint_target=np.zeros(len(seen.joint)),
            box=np.concatenate([seen.dry, spin]),
            box_limit=np.concatenate([h * seen.dry_limit, np.zeros(len(spin))]),
            box_contact=np.concatenate([np.full(nf, -1), parents]),
            box_friction=np.concatenate([np.zeros(nf), spin_friction]),
        )
        solution = self.contact.solve(from_arrays(arrays, h))
        self._check(solution, seen, contacts, "velocity level")
        state = State(
            self.moved(start, h * solution.velocity),
            solution.velocity,
            self._clamped(start.act + h * seen.act_dot),
        )
        return state, solution

    def _unilateral(self, seen: Snapshot, contacts: Indices, bound: Array) -> Unilateral:
        """Rows of those contacts as they are seen, with least speeds along normals."""
        spins, parents = spins_at(seen, contacts)
        return Unilateral(
            seen.normal[contacts], tangents_for(self.contact, seen, contacts),
            seen.friction[contacts], bound, seen.spin[spins], parents, seen.spin_friction[spins],
        )  # fmt: skip

    def _arrive(self, phase: Phase, kept: Indices, h: float, state: State) -> Moved:
        """The state with what is seen there; `kept` are contacts that the motion respects."""
        self._check_speed(state)
        self.survey.evaluate(self.data, *state)
        return self._read(phase, kept, h, state)

    def _read(self, phase: Phase, kept: Indices, h: float, state: State) -> Moved:
        """The same of a state that the data is in, evaluated."""
        was = phase.seen
        moved = arrive(
            self.model._address, self.data._address, h, state, was.pair, was.point, was.axis, kept
        )
        self.shown = self._held_once(moved.seen)
        return moved

    def _check_speed(self, state: State) -> None:
        """Raises StictionError where the motion diverges."""
        if not np.abs(state.qvel).max(initial=0.0) <= FASTEST:
            raise validation.diverged(self.model, self.data, state.qvel)

    def _clamped(self, act: Array) -> Array:
        """Activations within their ranges."""
        _, clamped, low, high = self.limits
        act[clamped] = np.clip(act[clamped], low, high)
        return act


def _start(phase: Phase, first: Forces) -> Start:
    """Where the phase's trajectory starts, with those forces."""
    return Start(
        *phase.state, phase.seen.act_dot, first.acceleration, first.normal, first.tangent,
        first.box, phase.damping,
    )  # fmt: skip


def _identity(seen: Snapshot, contacts: Indices) -> tuple[Indices, Array, Array]:
    """What contacts are recognised by in another snapshot: pair, point and axis."""
    return seen.pair[contacts], seen.point[contacts], seen.axis[contacts]


def _activation_ranges(model: mujoco.MjModel) -> tuple[Indices, Array, Array]:
    """(index in act, low, high) of activations that are limited."""
    limited = model.actuator_actlimited.astype(np.bool_) & (model.actuator_actadr >= 0)
    last = model.actuator_actadr + model.actuator_actnum - 1
    low, high = model.actuator_actrange[limited].T.copy()
    return last[limited].astype(np.int64), low, high
