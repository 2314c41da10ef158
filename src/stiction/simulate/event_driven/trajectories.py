"""Motion between events: where a state goes under smooth forces and the contacts that it holds.

`runge_kutta` is the method of order four. Each stage looks for the held contacts anew, where they
are then, and solves for their forces; rotations are integrated in exponential coordinates
(`rotations.py`). `symplectic_euler` is one solve of the contact model over the whole time. Both are
functions of that time, so that an event can be located by calling them with less.
"""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import validation
from stiction.bridge.shared_points import hold_once
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import Kind
from stiction.contact.models.model import ContactModel
from stiction.contact.problem.problem import ContactProblem
from stiction.simulate.event_driven.distances import (
    Snapshot,
    Surveyor,
    closing_bound,
    match,
    row_speeds,
)
from stiction.simulate.event_driven.held_rows import held_rows, held_spins
from stiction.simulate.event_driven.impact import tangents_for
from stiction.simulate.event_driven.phases import Held, Impasse, Moved, Path, Phase, State
from stiction.simulate.event_driven.rotations import unroll
from stiction.simulate.event_driven.slip_directions import choose_directions
from stiction.simulate.event_driven.sustained import (
    Forces,
    Loads,
    certify_sustained,
    solve_sustained,
)

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

Check = Callable[[ContactProblem, ContactSolution, Snapshot, Indices, str], None]
"""Raises for a solution at those contacts that its certificate does not pass."""

ACCEPT = 1e-6
"""Certificate that forces, an impact or a velocity-level solve must pass."""

REST_SHARE = 1e-3
"""Share of the tolerance that a contact at rest may move in a step: less speed counts as rest."""

SOLVED = 1e-8
"""Share of the bodies' speeds that a solve may leave along a row, by its certificate."""

NUDGE = 1e-5
"""How far positions are moved to difference rows [m, rad]: the truncation error is then some
1e-10 of the rate, and rounding 1e-11."""

SMALLEST = 1e-7
"""Speed [m/s, rad/s] below which rates of rows, which go with its square, are zero."""

SLOW = 0.1
"""Share of its speed at the start of a phase below which a slip is about to stop."""

JUMP = 1e-3
"""Distance [m] beyond which a contact is another one, when rows are differenced."""

HALVINGS = 6
"""How often a piece is halved for accuracy before it is taken as it is."""


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
    ) -> None:
        self.model, self.contact, self.dt, self.tolerance = model, contact, dt, tolerance
        self._check = check
        self.law = contact.sustained
        self.rest_speed = REST_SHARE * tolerance / dt
        self.survey = Surveyor(model, dt, tolerance)
        self.shown: Snapshot | None = None
        """What `data` holds, evaluated."""
        self.pivots = 0
        self._probe = mujoco.MjData(model)
        ball, free = mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_FREE
        first = np.where(model.jnt_type == free, model.jnt_dofadr + 3, model.jnt_dofadr)
        turns = (model.jnt_type == ball) | (model.jnt_type == free)
        self._rotations = first[turns].astype(np.int64)
        self._ranges = _activation_ranges(model)

    def start(self, data: mujoco.MjData) -> None:
        """Works in data from now on; takes over what it holds beside the state."""
        self.data, self.shown = data, None
        self.survey.full = self.survey.count_full(data)
        self.pivots = 0
        self._probe.mocap_pos[:] = data.mocap_pos
        self._probe.mocap_quat[:] = data.mocap_quat
        self._probe.eq_active[:] = data.eq_active

    def look(self, state: State, ahead: bool = True) -> Snapshot:
        """What is seen at a state; ahead as in `Surveyor.survey`."""
        seen = self.survey.survey(self.data, *state, ahead)
        if self.law.kind is Kind.HOLD:
            hold_once(
                self.model._address, seen.pair, seen.point, seen.axis, seen.gap, seen.friction
            )
        self.shown = seen
        return seen

    def moved(self, state: State, by: Array) -> Array:
        """qpos after a displacement (nv,) in exponential coordinates."""
        qpos = state.qpos.copy()
        mujoco.mj_integratePos(self.model, qpos, by, 1.0)
        return qpos

    def slack(self, seen: Snapshot, qvel: Array) -> Array:
        """(nc,) speeds that count as rest: slow ones, or what a passed solve leaves."""
        return self.rest_speed + SOLVED * (np.abs(seen.normal) @ np.abs(qvel))

    def phase(self, state: State, seen: Snapshot) -> Phase:
        """The phase that begins at a state, in which no contact that touches may approach."""
        speed = seen.normal @ state.qvel
        touching = np.flatnonzero(seen.gap <= self.tolerance)
        held = touching[speed[touching] <= self.slack(seen, state.qvel)[touching]]
        slip = seen.tangent[held] @ state.qvel
        size = np.hypot(slip[:, 0], slip[:, 1])
        rubs = (size > self.rest_speed) & (seen.friction[held] > 0.0)
        direction = np.divide(slip, size[:, None], out=np.zeros_like(slip), where=rubs[:, None])
        turn = seen.dry @ state.qvel
        turning = np.where(np.abs(turn) > self.rest_speed, np.sign(turn), 0.0)
        spinning = np.zeros(len(seen.spin))
        if len(spinning):
            spin = np.where(np.isin(seen.spin_contact, held), seen.spin @ state.qvel, 0.0)
            spinning = np.where(np.abs(spin) > self.rest_speed, np.sign(spin), 0.0)
        bound = self._bound(seen, speed, held)
        return Phase(
            state, seen, speed, bound, touching, held, rubs, direction, size,
            np.zeros(len(held), np.bool_), turning, spinning,
        )  # fmt: skip

    def _bound(self, seen: Snapshot, speed: Array, held: Indices) -> Array:
        """(nc,) closing speeds of the state that `data` is in; -inf where held."""
        bound = -speed
        if len(held) < seen.nc:
            bound = closing_bound(self.model, self.data, seen, speed)
        bound[held] = -np.inf
        return bound

    # Forces

    def hold(self, phase: Phase) -> Held:
        """Forces at the start of a phase; Impasse if there are none that pass their certificate."""
        loads = self._loads(phase, phase.state, phase.seen, phase.held)
        found = solve_sustained(self.law, loads)
        if found is None:
            raise Impasse
        forces, arrays = found
        self.pivots += forces.steps
        certificate = certify_sustained(self.law, loads, arrays, forces)
        if not certificate.worst <= ACCEPT:
            raise Impasse
        return Held(forces, loads, certificate)

    def rests(self, phase: Phase, held: Held) -> bool:
        """Whether nothing will move within a step by more than rounding."""
        fastest = np.abs(phase.state.qvel).max(initial=0.0)
        change = self.dt * np.abs(held.forces.acceleration).max(initial=0.0)
        return bool(
            fastest + change <= REST_SHARE * self.rest_speed and not phase.seen.act_dot.any()
        )

    def _loads(self, phase: Phase, state: State, seen: Snapshot, place: Indices) -> Loads:
        """The held contacts at a state of the phase; place (nh,): where they are, or -1."""
        v = state.qvel
        at, normal, tangent, friction, sliding, direction = held_rows(
            place, seen.normal, seen.tangent, seen.friction, v, phase.sliding, phase.direction,
            phase.steady, np.maximum(SLOW * phase.pace, self.rest_speed),
        )  # fmt: skip
        rates, joint_rate = self._rates(state, seen, at)
        force, box, limit = seen.force, seen.dry, seen.dry_limit
        nf = len(box)
        parent, ratio, turning = np.full(nf, -1), np.zeros(nf), np.zeros(nf)
        if nf:
            moves = phase.turning != 0.0
            force = force - box[moves].T @ (phase.turning * limit)[moves]
            limit = np.where(moves, 0.0, limit)
        if len(seen.spin) and self.law.kind is Kind.DRY:
            rows, first, number = held_spins(
                place, phase.held, phase.seen.spin_contact, seen.spin_contact
            )
            box = np.concatenate([box, seen.spin[rows]])
            limit = np.concatenate([limit, np.zeros(len(rows))])
            parent = np.concatenate([parent, number])
            ratio = np.concatenate([ratio, seen.spin_friction[rows]])
            turning = np.concatenate([turning, phase.spinning[first]])
        return Loads(
            seen.mass, v, force, normal, rates[:, 0].copy(), tangent, rates[:, 1:].copy(), friction,
            sliding, direction, seen.joint, joint_rate, box, limit, parent, ratio, turning,
        )  # fmt: skip

    def _rates(self, state: State, seen: Snapshot, at: Indices) -> tuple[Array, Array]:
        """((nh, 3), (ne,)): (d rows / dt) v of contacts `at` and of joints, by differences."""
        rates, joint_rate = np.zeros((len(at), 3)), np.zeros(len(seen.joint))
        v = state.qvel
        fastest = float(np.abs(v).max(initial=0.0))
        if fastest < SMALLEST or not len(at) + len(joint_rate):
            return rates, joint_rate
        ahead = NUDGE / fastest
        kept = _identity(seen, at)
        found = np.ones(len(at), np.bool_)
        for sign in (1.0, -1.0):
            self.survey.place(self._probe, self.moved(state, sign * ahead * v), rows_alone=True)
            speed, far, joint = row_speeds(self._probe._address, v, *kept)
            found &= far < JUMP
            rates += sign * speed
            joint_rate += sign * joint
        rates *= 0.5 / ahead
        rates[~found] = 0.0
        return rates, joint_rate * (0.5 / ahead)

    def choose_slips(self, phase: Phase, held: Held, h: float) -> tuple[Phase, Forces]:
        """The phase with the slips of a step of length h, see `slip_directions.py`, and the forces
        that it starts with."""
        first = held.forces
        if self.law.kind is not Kind.DRY or not len(phase.held):
            return phase, first
        slips = choose_directions(self.law, held.loads, held.forces, h, self.rest_speed)
        if (slips.direction != held.loads.direction).any():
            turned = held.loads._replace(sliding=slips.sliding, direction=slips.direction)
            first = self._accelerate(turned)
        return phase._replace(**slips._asdict()), first

    def _accelerate(self, loads: Loads, guess: Forces | None = None) -> Forces:
        """Forces of a state, looked for from a guess; Impasse where there are none."""
        found = solve_sustained(self.law, loads, guess)
        if found is None:
            raise Impasse
        return found[0]

    # Trajectories

    def runge_kutta(self, phase: Phase, first: Forces) -> Path:
        """Runge-Kutta of order four; first: forces at the start, from which each stage's are
        looked for."""
        start, guess = phase.state, first
        kept = _identity(phase.seen, phase.held)

        def rate(turn: Array, qvel: Array, act: Array) -> tuple[Array, Array, Array]:
            nonlocal guess
            state = State(self.moved(start, turn), qvel, act)
            self._check_speed(state)
            seen = self.look(state, ahead=False)
            place = match(*kept, seen.pair, seen.point, seen.axis)
            guess = self._accelerate(self._loads(phase, state, seen, place), guess)
            acceleration = guess.acceleration
            return unroll(turn, qvel, self._rotations), acceleration, seen.act_dot

        def path(h: float) -> Moved:
            v, act = start.qvel, start.act
            nonlocal guess
            guess = first  # whatever was tried before, the same time gives the same state
            u1, a1, z1 = v, first.acceleration, phase.seen.act_dot
            u2, a2, z2 = rate(0.5 * h * u1, v + 0.5 * h * a1, act + 0.5 * h * z1)
            u3, a3, z3 = rate(0.5 * h * u2, v + 0.5 * h * a2, act + 0.5 * h * z2)
            u4, a4, z4 = rate(h * u3, v + h * a3, act + h * z3)
            part = h / 6.0
            state = State(
                self.moved(start, part * (u1 + 2.0 * (u2 + u3) + u4)),
                v + part * (a1 + 2.0 * (a2 + a3) + a4),
                self._clamped(act + part * (z1 + 2.0 * (z2 + z3) + z4)),
            )
            return self._arrive(phase, phase.held, h, state)

        return path

    def symplectic_euler(self, phase: Phase) -> Path:
        """Symplectic Euler with the contacts that touch."""

        def path(h: float) -> Moved:
            return self._arrive(
                phase, phase.touching, h, self._solve_velocities(phase, h, phase.touching)
            )

        return path

    def velocity_level(self, phase: Phase, h: float) -> Moved:
        """A piece at the velocity level with all contacts in reach: h, halved until gaps, which
        such a solve takes for linear in the motion, are within the tolerance."""
        everything = np.arange(phase.seen.nc)
        for left in range(HALVINGS, -1, -1):
            end = self._arrive(phase, everything, h, self._solve_velocities(phase, h, everything))
            if end.seen.gap.min(initial=0.0) >= -self.tolerance or left == 0:
                break
            h *= 0.5
        return end

    def accurate_end(self, held: Held | None, path: Path, h: float) -> Moved:
        """The end of the longest piece, h halved a few times at most, after which held contacts
        have not sunk in, nor those that press moved, by more than the tolerance: that is what
        integration errs. (A contact that is let go moves as well: it costs halvings, once.)"""
        press = np.zeros(0, np.bool_) if held is None else held.forces.normal > 0.0
        for left in range(HALVINGS, -1, -1):
            end = path(h)
            there = end.place[end.place >= 0]
            gap, drift = end.seen.gap[there], end.speed[there] * h
            off = -min(float(gap.min(initial=0.0)), float(drift.min(initial=0.0)))
            if press.any():
                firm = end.place[press & (end.place >= 0)]
                shift = np.abs(end.seen.gap[firm]) + np.abs(end.speed[firm]) * h
                off = max(off, 0.1 * float(shift.max(initial=0.0)))
            if off <= self.tolerance or left == 0:
                break
            h *= 0.5
        return end

    def _solve_velocities(self, phase: Phase, h: float, contacts: Indices) -> State:
        """The state after a solve of the contact model over the time h with those contacts."""
        seen, start = phase.seen, phase.state
        gap = seen.gap[contacts]
        number = np.full(seen.nc, -1)
        number[contacts] = np.arange(len(contacts))
        spins = np.flatnonzero(number[seen.spin_contact] >= 0)
        nf = len(seen.dry)
        problem = ContactProblem(
            mass=seen.mass,
            velocity=start.qvel,
            force=seen.force,
            dt=h,
            normal=seen.normal[contacts],
            tangent=tangents_for(self.contact, seen, contacts),
            friction=seen.friction[contacts],
            bound=np.where(gap > self.tolerance, -gap / h, 0.0),
            joint=seen.joint,
            box=np.concatenate([seen.dry, seen.spin[spins]]),
            box_limit=np.concatenate([h * seen.dry_limit, np.zeros(len(spins))]),
            box_contact=np.concatenate([np.full(nf, -1), number[seen.spin_contact[spins]]]),
            box_friction=np.concatenate([np.zeros(nf), seen.spin_friction[spins]]),
        )
        solution = self.contact.solve(problem)
        self._check(problem, solution, seen, contacts, "velocity level")
        return State(
            self.moved(start, h * solution.velocity),
            solution.velocity,
            self._clamped(start.act + h * seen.act_dot),
        )

    def _arrive(self, phase: Phase, kept: Indices, h: float, state: State) -> Moved:
        """The state with what is seen there; `kept` are contacts that the motion respects."""
        self._check_speed(state)
        seen = self.look(state)
        speed = seen.normal @ state.qvel
        place = match(*_identity(phase.seen, kept), seen.pair, seen.point, seen.axis)
        bound = self._bound(seen, speed, np.unique(place[place >= 0]))
        return Moved(h, state, seen, speed, bound, place)

    def _check_speed(self, state: State) -> None:
        """Raises StictionError where the motion diverges."""
        if not np.abs(state.qvel).max(initial=0.0) <= mujoco.mjMAXVAL:
            raise validation.diverged(self.model, self.data, state.qvel)

    def _clamped(self, act: Array) -> Array:
        """Activations within their ranges."""
        for k, low, high in self._ranges:
            act[k] = min(max(act[k], low), high)
        return act


def _identity(seen: Snapshot, contacts: Indices) -> tuple[Indices, Array, Array]:
    """What contacts are recognised by in another snapshot: pair, point and axis."""
    return seen.pair[contacts], seen.point[contacts], seen.axis[contacts]


def _activation_ranges(model: mujoco.MjModel) -> list[tuple[int, float, float]]:
    """(index in act, low, high) of activations that are limited."""
    return [
        (int(model.actuator_actadr[i] + model.actuator_actnum[i] - 1), *model.actuator_actrange[i])
        for i in np.flatnonzero(model.actuator_actlimited)
        if model.actuator_actadr[i] >= 0
    ]
