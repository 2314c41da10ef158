"""Takes a step on a copy of the state, and finds out how its problem changes nearby."""

from __future__ import annotations

import copy
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from stiction.bridge.rows import SAME_GAP, Key, Place
from stiction.contact.derivatives.derivatives import DIFFERENTIABLE
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Blocks
from stiction.contact.problem.graph import Size
from stiction.errors import InvalidInput, StictionError
from stiction.simulate.derivatives.compiled import CompiledDerivatives
from stiction.simulate.derivatives.differences import (
    Columns,
    Level,
    Reference,
    allocate,
    allocate_columns,
    bend_by_speed,
    differentiate,
    pose,
)
from stiction.simulate.derivatives.geometry import FOUND_ROUGHLY
from stiction.simulate.derivatives.linearization import Indices, Solved
from stiction.simulate.derivatives.step_derivatives import StepDerivatives, Taken
from stiction.simulate.derivatives.transition import INTEGRATION
from stiction.simulate.report import FRICTIONLESS, Report
from stiction.simulate.time_stepping.config import Stop
from stiction.simulate.time_stepping.engine import Guess
from stiction.simulate.time_stepping.workspace import Count, Record, Workspace

if TYPE_CHECKING:
    from stiction.simulate.time_stepping.engine import TimeEngine

POSITION_STEP = 3e-6
"""How far positions and inputs are moved, over their own size: halfway, in digits, between the
curvature that central differences miss and the rounding that they magnify."""

DERIVED_FROM = ("body_", "dof_", "jnt_", "tendon_", "actuator_", "qpos0")
"""Beginnings of the names of fields that `mj_setConst` derives others from."""

VELOCITY_STEP = 1e-4
"""How far velocities are moved: smooth forces are all but quadratic in them."""


# As plain numbers: looking a member up in an enumeration takes as long as an array's entry.
_BLOCKS, _ISLANDS = int(Count.BLOCKS), int(Size.ISLANDS)


class Differentiator:
    """Of the steps of one engine, which nobody else takes steps with; user: the one whose impulses
    steps begin with, if any."""

    def __init__(self, engine: TimeEngine, user: TimeEngine | None = None) -> None:
        self._engine, self._user = engine, user or engine
        self._law = engine.settings.contact.law
        self._data = mujoco.MjData(self.model)
        self._work = Workspace(self.model)
        self._compiled = CompiledDerivatives(engine)
        self._last: weakref.ref[StepDerivatives] | None = None

    @property
    def model(self) -> mujoco.MjModel:
        """The simulator's own copy of the model."""
        return self._engine.own.model

    def differentiate(self, data: mujoco.MjData, smoothing: float = 0.0) -> StepDerivatives:
        """Of the step from the state of `data`, which is left as it is, and which begins with the
        impulses that the user's engine has. smoothing: see `StepDerivatives.smoothed`."""
        engine, law = self._engine, self._law
        if self._last is not None and self._last() is not None:
            self._keep_last()
        engine.keep_last()
        before = self._user.work.address
        taken, transition = self._compiled.take(data, self._data, before, law, smoothing)
        if taken and transition is not None:
            found = StepDerivatives(self, law, transition, None, smoothing)
            self._last = weakref.ref(found)
            return found
        if taken:
            return self._found(None, law, None, smoothing)
        check_law(law)
        model, state = engine.own.model, self._compiled.state
        mujoco.mj_getState(model, data, state, INTEGRATION)
        mujoco.mj_setState(model, self._data, state, INTEGRATION)
        engine.begin_from(self._user.work)
        return self._differentiate(smoothing)

    def differentiate_from(self, physics: Array, guess: Guess, smoothing: float) -> StepDerivatives:
        """Of the step from that state, which begins with that guess."""
        self._keep_last()
        self._compiled.state[:] = physics
        self._put(physics)
        self._engine.memory = guess
        return self._differentiate(smoothing)

    def _differentiate(self, smoothing: float) -> StepDerivatives:
        """Takes the step from the copy's state, and differentiates it."""
        engine, data = self._engine, self._data
        report = engine.step(data, 1)
        left_out = engine.answer.flag == FRICTIONLESS
        law = "frictionless" if left_out else self._law
        check_law(law)
        transition = self._compiled.matrices(data, law, smoothing)
        return self._found(report, law, transition, smoothing)

    def _found(
        self,
        report: Report | None,
        law: str,
        transition: tuple[Array, Array] | None,
        smoothing: float,
    ) -> StepDerivatives:
        """What is told of the step that was taken. report: its own, if it is known."""
        engine = self._engine
        if engine.config.bounce < np.inf and engine.work.step.impact.any():
            raise StictionError("no derivatives: contacts bounce within this step")
        found = StepDerivatives(self, law, transition, report, smoothing)
        self._last = weakref.ref(found)
        return found

    def _keep_last(self) -> None:
        """Lets the last derivatives note what they need of their step, if somebody still has them:
        the engine is about to take another one."""
        if self._last is not None:
            found = self._last()
            if found is not None:
                found.keep()
            self._last = None

    def report(self, physics: Array) -> Report:
        """Of the step that was taken last, from that state."""
        return self._engine.report_step(physics[0] + self.model.opt.timestep)

    @property
    def state(self) -> Array:
        """That the last step began with."""
        return self._compiled.state

    def note(self) -> Taken:
        """What is kept of the step that was taken last."""
        work = self._engine.work
        step, graph = work.step, work.solver.graph
        velocity, islands = step.v_plus.copy(), int(graph.size[_ISLANDS])
        return Taken(
            step.record[: int(step.counts[_BLOCKS])].copy(),
            velocity,
            work.newton.v - velocity,
            graph.member[: int(graph.members[islands])].copy(),
            graph.members[: islands + 1].copy(),
            step.released.copy(),
        )

    def _put(self, physics: Array) -> None:
        mujoco.mj_setState(self.model, self._data, physics, INTEGRATION)

    def _call(self, kernel: Any, *arguments: Any, model: int = 0) -> Stop:
        """Runs a kernel of `differences.py` on the copy, with room for what it finds; ERROR where
        MuJoCo gave up. model: the address of another model than the simulator's own."""
        engine = self._engine
        guard, config = engine.guard, engine.config._replace(sensors=False, energy=False)
        while True:
            stop = guard.call(
                self._data, kernel, guard.frame, model or engine.own.address, self._data._address,
                config, engine.ground.features, self._work.address, *arguments,
            )  # fmt: skip
            guard.recover(self._data)
            if stop == Stop.ROOM:
                self._work = self._work.grown(self.model)
            elif stop in (Stop.DONE, Stop.ERROR):
                return Stop(stop)
            else:
                raise StictionError(f"no derivatives: near this state {Stop(stop)!r}")

    def pose(self, physics: Array, taken: Taken, law: str) -> Solved:
        """The step that was taken, its problem posed once more: a step's own is overwritten by
        the overlap's."""
        engine, record = self._engine, taken.record
        config = engine.config
        self._put(physics)
        self._work.step.released[:] = taken.released
        if self._call(pose) == Stop.ERROR:
            raise self._gave_up()
        step = self._work.step
        n = int(step.counts[Count.BLOCKS])
        key, place = step.key[:n].copy(), step.place[:n].copy()
        match = _match(key, place, record)
        drag = record[match, Record.GRIPPED]
        gripped = (drag > 0.0).astype(np.int64)
        bends = np.zeros((n, 3, self.model.nv))
        if gripped.any():
            self._call(bend_by_speed, taken.velocity, gripped, bends)
        return Solved(
            _copied(self._work.blocks),
            key,
            place,
            record[match, Record.FORCE : Record.FORCE + 6],
            taken.velocity,
            taken.correction,
            record[match, Record.CORRECTION : Record.CORRECTION + 3],
            gripped,
            drag,
            bends,
            taken.islands[match],
            step.released.copy(),
            law,
            engine.settings.contact.facets or 0,
            float(self.model.opt.timestep),
            self._alike(key),
            float(config.touch),
            float(config.near),
            float(config.slack),
            float(config.shallow),
        )

    def _alike(self, key: Indices) -> Array:
        """(n,) difference of two gaps of a block's pair that does not count [m]."""
        geoms = np.where(key[:, Key.INDEX, None] >= 0, key[:, : Key.SECOND + 1], 0)
        radius = self.model.geom_rbound[geoms]
        radius = np.where(radius > 0.0, radius, np.inf).min(axis=1)
        return np.where(key[:, Key.INDEX] >= 0, SAME_GAP * radius, 0.0)

    @cached_property
    def _variables(self) -> tuple[Indices, Indices, Array]:
        """(variable, level, eps) of `differentiate`, for positions, velocities, activations and
        controls."""
        m, d, size = self.model, self._data, self._engine.own.size
        variable = [-1 - np.arange(m.nv)]
        level = [np.full(m.nv, Level.POSITION)]
        eps = [np.array([POSITION_STEP * (size if _is_length(m, j) else 1.0) for j in range(m.nv)])]
        for array, kind, far in (
            (d.qvel, Level.VELOCITY, VELOCITY_STEP),
            (d.act, Level.ACTUATION, POSITION_STEP),
            (d.ctrl, Level.ACTUATION, POSITION_STEP),
        ):
            start = array.__array_interface__["data"][0]
            variable.append(start + 8 * np.arange(len(array)))
            level.append(np.full(len(array), kind))
            eps.append(np.full(len(array), far))
        whole = np.concatenate(variable).astype(np.int64), np.concatenate(level).astype(np.int64)
        return *whole, np.concatenate(eps)

    def state_columns(self, physics: Array, step: Solved, taken: Taken | None) -> Columns:
        """For positions, velocities, activations and controls, in this order. taken: the step,
        where its slopes are compiled."""
        if taken is not None:
            found = self._compiled_columns(physics, step, taken)
            if found is not None:
                return found
        self._put(physics)
        out, stop = self._difference(step, *self._variables)
        if stop == Stop.ERROR:
            raise self._gave_up()
        return out

    def _compiled_columns(self, physics: Array, s: Solved, taken: Taken) -> Columns | None:
        """The same from closed forms: the step is taken once more, from its own answer."""
        self._keep_last()
        self._compiled.state[:] = physics
        self._put(physics)
        self._engine.memory = Guess(taken.record, None)
        self._engine.step(self._data, 1)
        step = self._engine.work.step
        record = step.record[: int(step.counts[_BLOCKS])]
        return self._compiled.columns(self._data, s.law, _match(s.key, s.place, record))

    def parameter_columns(self, physics: Array, step: Solved, name: str) -> Columns:
        """For each number of a field of the model, what MuJoCo derives from it included."""
        model = copy.copy(self.model)
        spare = mujoco.MjData(model) if name.startswith(DERIVED_FROM) else None
        field = getattr(model, name).reshape(-1)
        size = np.abs(field)
        eps = POSITION_STEP * np.where(size > 0.0, size, size.max() or 1.0)
        variable = field.__array_interface__["data"][0] + 8 * np.arange(field.size)
        level = np.full(field.size, Level.POSITION, np.int64)
        self._put(physics)
        out, stop = self._difference(step, variable, level, eps, model, spare)
        if stop == Stop.ERROR:
            reason = f"{name} cannot be moved: {self._engine.guard.message}"
            raise InvalidInput("names", reason)
        return out

    def _difference(
        self,
        s: Solved,
        variable: Indices,
        level: Indices,
        eps: Array,
        model: mujoco.MjModel | None = None,
        spare: mujoco.MjData | None = None,
    ) -> tuple[Columns, Stop]:
        """Central differences of the step's problem at the copy's state, see `differentiate`."""
        m = self.model
        reach = np.array([FOUND_ROUGHLY * self._engine.own.size])
        reference = Reference(
            s.key, s.place, s.velocity, s.impulse, s.correction, s.pushed, s.gripped, reach
        )  # fmt: skip
        plus, minus, scratch = allocate(s.count, m.nv, m.nq, m.na)
        out = allocate_columns(len(variable), s.count, m.nv, m.na)
        self._work.step.released[:] = s.released
        stop = self._call(
            differentiate, variable, level, eps, 0 if spare is None else int(spare._address),
            reference, (plus, minus), scratch, out,
            model=0 if model is None else int(model._address),
        )  # fmt: skip
        return out, stop

    def _gave_up(self) -> StictionError:
        return StictionError(f"no derivatives: {' '.join(self._engine.guard.message.split())}")

    def sensor_differences(self, physics: Array) -> Array:
        """(nsensordata, 2 nv + na + nu) sensors by state and controls, by differences of steps."""
        self._keep_last()
        m, d = self.model, self._data
        n = 2 * m.nv + m.na
        out = np.zeros((m.nsensordata, n + m.nu))
        direction = np.zeros(m.nv)
        for k in range(n + m.nu):
            ends = []
            for amount in (POSITION_STEP, -POSITION_STEP):
                self._put(physics)
                if k < m.nv:
                    direction[k] = 1.0
                    mujoco.mj_integratePos(m, d.qpos, direction, amount)
                    direction[k] = 0.0
                elif k < 2 * m.nv:
                    d.qvel[k - m.nv] += amount
                elif k < n:
                    d.act[k - 2 * m.nv] += amount
                else:
                    d.ctrl[k - n] += amount
                self._engine.step(d, 1)
                ends.append(d.sensordata.copy())
            out[:, k] = (ends[0] - ends[1]) / (2.0 * POSITION_STEP)
        return out


def check_law(law: str) -> None:
    """Raises InvalidInput where a law of contact has no derivatives."""
    if law not in DIFFERENTIABLE:
        reason = f"has the law {law!r}: derivatives are known for {', '.join(DIFFERENTIABLE)}"
        raise InvalidInput("contact", reason)


def _copied(blocks: Blocks) -> Blocks:
    parts: Any = (part.copy() for part in blocks)
    return Blocks(*parts)


def _is_length(model: mujoco.MjModel, dof: int) -> bool:
    """Whether the position of a degree of freedom is a length."""
    joint = model.dof_jntid[dof]
    kind = model.jnt_type[joint]
    if kind == mujoco.mjtJoint.mjJNT_FREE:
        return bool(dof - model.jnt_dofadr[joint] < 3)
    return bool(kind == mujoco.mjtJoint.mjJNT_SLIDE)


def _match(key: Indices, place: Array, record: Array) -> Indices:
    """(n,) the line of the record that each block has: a step with wide margins for limits may have
    had more blocks."""
    same = record[: len(key), Record.FIRST : Record.SECOND + 1]
    if len(record) == len(key) and (same == key[:, : Key.SECOND + 1]).all():
        return np.arange(len(key))
    out = np.zeros(len(key), np.int64)
    for i in range(len(key)):
        pair = (record[:, Record.FIRST] == key[i, 0]) & (record[:, Record.SECOND] == key[i, 1])
        apart = record[:, Record.X : Record.X + 3] - place[i, Place.X : Place.Z + 1]
        out[i] = int(np.argmin(np.where(pair, (apart**2).sum(axis=1), np.inf)))
    return out
