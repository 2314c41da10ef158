"""Takes a step on a copy of the state, and finds out how its problem changes nearby."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from stiction.bridge.narrow_phase import TABLE
from stiction.bridge.rows import Key, Place
from stiction.contact.derivatives.derivatives import LAWS
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Blocks
from stiction.contact.problem.graph import Size
from stiction.errors import InvalidInput, StictionError
from stiction.simulate.derivatives.differences import (
    Columns,
    Level,
    Reading,
    Reference,
    Scratch,
    allocate,
    allocate_columns,
    differentiate,
    pose,
    read_at,
    subtract,
)
from stiction.simulate.derivatives.linearization import Indices, Solved, StepLinearization
from stiction.simulate.derivatives.memory import Transition
from stiction.simulate.derivatives.smooth import plain
from stiction.simulate.derivatives.step_derivatives import StepDerivatives, Taken
from stiction.simulate.derivatives.transition import (
    differentiate_step,
    differentiate_step_on_ground,
)
from stiction.simulate.report import FRICTIONLESS
from stiction.simulate.time_stepping.config import Config, Stop
from stiction.simulate.time_stepping.workspace import Count, Record, Workspace

if TYPE_CHECKING:
    from stiction.simulate.simulator import Simulator
    from stiction.simulate.time_stepping.engine import TimeEngine

INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)

NEARBY = 1e-5
"""How far positions and inputs are moved, over their own size: halfway, in digits, between the
curvature that central differences miss and the rounding that they magnify."""

DERIVED_FROM = ("body_", "dof_", "jnt_", "tendon_", "actuator_", "qpos0")
"""Beginnings of the names of fields that `mj_setConst` derives others from."""

LEAST = 8
"""Blocks that there is room for at least."""

FASTER = 1e-4
"""How far velocities are moved: smooth forces are all but quadratic in them."""


# As plain numbers: looking a member up in an enumeration takes as long as an array's entry.
_DONE, _ERROR = int(Stop.DONE), int(Stop.ERROR)
_BLOCKS, _WATCHED, _ISLANDS = int(Count.BLOCKS), int(Count.WATCHED), int(Size.ISLANDS)


class Differentiator:
    """Of one simulator: has a simulator of its own, with the same settings, to step copies with."""

    def __init__(self, simulator: Simulator, engine: TimeEngine) -> None:
        """simulator: of its own, which nobody else steps; engine: the simulator's."""
        self._sim, self._engine = simulator, engine
        self._data = mujoco.MjData(self.model)
        self._work = Workspace(self.model)
        self._known: Config | None = None
        self._memory: Transition | None = None
        self._is_plain, self._length = False, 0.0
        self._size = mujoco.mj_stateSize(self.model, INTEGRATION)

    @property
    def model(self) -> mujoco.MjModel:
        """The simulator's own copy of the model."""
        return self._engine.own.model

    def differentiate(self, data: mujoco.MjData, before: Workspace) -> StepDerivatives:
        """Of the step from the state of `data`, which is left as it is; before: the workspace with
        the impulses that the step would begin with."""
        physics = np.empty(self._size)
        mujoco.mj_getState(self.model, data, physics, INTEGRATION)
        self._put(physics)
        self._engine.begin_from(before)
        report = self._engine.step(self._data, 1)
        taken = self._note()
        self._put(physics)
        return StepDerivatives(self, physics, report, taken, self._transition(taken))

    def _note(self) -> Taken:
        """What is kept of the step that was taken."""
        work, config = self._engine.work, self._engine.config
        step, graph = work.step, work.solver.graph
        if config.bounce < np.inf and step.impact.any():
            raise StictionError("no derivatives: contacts bounce within this step")
        left_out = self._engine.answer.flag == FRICTIONLESS
        law = "frictionless" if left_out else self._sim.contact.law
        if law not in LAWS:
            reason = f"has the law {law!r}: derivatives are known for {', '.join(LAWS)}"
            raise InvalidInput("contact", reason)
        velocity, islands = step.v_plus.copy(), int(graph.size[_ISLANDS])
        return Taken(
            step.record[: int(step.counts[_BLOCKS])].copy(),
            velocity,
            work.newton.v - velocity,
            graph.member[: int(graph.members[islands])].copy(),
            graph.members[: islands + 1].copy(),
            self._data.qpos.copy(),
            law,
        )

    def _transition(self, taken: Taken) -> tuple[Array, Array] | None:
        """A and B by the compiled way, where the model and the step have it."""
        engine, m = self._engine, self.model
        if self._known is not engine.config:
            self._known, self._memory = engine.config, None
            self._is_plain, self._length = plain(m) and m.nv > 0, engine.own.size
            self._kernel: Any = differentiate_step
            if engine.ground.address:
                self._kernel = differentiate_step_on_ground
        if not self._is_plain or engine.work.step.counts[_WATCHED]:
            return None
        count = len(taken.record)
        if self._memory is None or self._memory.blocks < count:
            self._memory = Transition(m, engine.work.step.free, LEAST + count + count // 4)
        n = 2 * m.nv + m.na
        A, B = np.empty((n, n)), np.empty((n, m.nu))
        stop = engine.guard.call(
            self._data, self._kernel, engine.session_address, self._data._address,
            self._memory.address, TABLE, LAWS.index(taken.law), self._sim.contact.facets or 0,
            self._length, A, B,
        )  # fmt: skip
        if stop == _ERROR:
            engine.guard.recover(self._data)
        return (A, B) if stop == _DONE else None

    def _put(self, physics: Array) -> None:
        mujoco.mj_setState(self.model, self._data, physics, INTEGRATION)

    def _call(self, kernel: Any, *arguments: Any, model: int = 0) -> None:
        """Runs a kernel of `differences.py` on the copy, with room for what it finds. model: the
        address of another model than the simulator's own."""
        engine = self._engine
        guard, config = engine.guard, engine.config._replace(sensors=False, energy=False)
        while True:
            stop = guard.call(
                self._data, kernel, guard.frame, model or engine.own.address, self._data._address,
                config, engine.ground.features, self._work.address, *arguments,
            )  # fmt: skip
            guard.recover(self._data)
            stop = Stop(stop)
            if stop == Stop.DONE:
                return
            if stop != Stop.ROOM:
                raise StictionError(f"no derivatives: near this state MuJoCo stopped ({stop!r})")
            self._work = self._work.grown(self.model)

    def pose(self, physics: Array, taken: Taken) -> Solved:
        """The step that was taken, its problem posed once more: a step's own is overwritten by
        the overlap's."""
        sim, config, record = self._sim, self._engine.config, taken.record
        self._put(physics)
        self._call(pose)
        step = self._work.step
        n = int(step.counts[Count.BLOCKS])
        key, place = step.key[:n].copy(), step.place[:n].copy()
        match = _match(key, place, record)
        return Solved(
            _copied(self._work.blocks),
            key,
            place,
            record[match, Record.FORCE : Record.FORCE + 6],
            taken.velocity,
            taken.correction,
            record[match, Record.CORRECTION],
            taken.islands[match],
            taken.law,
            sim.contact.facets or 0,
            float(self.model.opt.timestep),
            float(config.touch),
            float(config.slack),
            float(config.shallow),
        )

    @cached_property
    def _variables(self) -> tuple[Indices, Indices, Array]:
        """(variable, level, eps) of `differentiate`, for positions, velocities, activations and
        controls."""
        m, d, size = self.model, self._data, self._engine.own.size
        variable = [-1 - np.arange(m.nv)]
        level = [np.full(m.nv, Level.POSITION)]
        eps = [np.array([NEARBY * (size if _is_length(m, j) else 1.0) for j in range(m.nv)])]
        for array, kind, far in (
            (d.qvel, Level.VELOCITY, FASTER),
            (d.act, Level.ACTUATION, NEARBY),
            (d.ctrl, Level.ACTUATION, NEARBY),
        ):
            start = array.__array_interface__["data"][0]
            variable.append(start + 8 * np.arange(len(array)))
            level.append(np.full(len(array), kind))
            eps.append(np.full(len(array), far))
        whole = np.concatenate(variable).astype(np.int64), np.concatenate(level).astype(np.int64)
        return *whole, np.concatenate(eps)

    def state_columns(self, physics: Array, solved: StepLinearization) -> Columns:
        """For positions, velocities, activations and controls, in this order."""
        m = self.model
        variable, level, eps = self._variables
        self._put(physics)
        out = allocate_columns(len(variable), solved.step.count, m.nv, m.na)
        reference, plus, minus, scratch = self._readings(solved.step)
        self._call(differentiate, variable, level, eps, reference, (plus, minus), scratch, out)
        return out

    def parameter_columns(self, physics: Array, solved: StepLinearization, name: str) -> Columns:
        """For each number of a field of the model, what MuJoCo derives from it included."""
        model, scratch = copy.copy(self.model), mujoco.MjData(self.model)
        reference, plus, minus, work = self._readings(solved.step)
        field = getattr(model, name).reshape(-1)
        size = np.abs(field).max() or 1.0
        out = allocate_columns(field.size, solved.step.count, model.nv, model.na)
        self._put(physics)
        for k, kept in enumerate(field.copy()):
            eps = NEARBY * (abs(kept) or size)
            for sign, end in ((1.0, plus), (-1.0, minus)):
                field[k] = kept + sign * eps
                if name.startswith(DERIVED_FROM):
                    _derive(model, scratch, name)
                self._call(read_at, reference, work, end, model=int(model._address))
            field[k] = kept
            subtract(plus, minus, eps, out, k)
        return out

    def _readings(self, s: Solved) -> tuple[Reference, Reading, Reading, Scratch]:
        m = self.model
        reference = Reference(s.key, s.place, s.velocity, s.impulse, s.correction, s.pushed)
        return reference, *allocate(s.count, m.nv, m.nq, m.na)

    def sensor_differences(self, physics: Array) -> Array:
        """(nsensordata, 2 nv + na + nu) sensors by state and controls, by differences of steps."""
        m, d = self.model, self._data
        n = 2 * m.nv + m.na
        out = np.zeros((m.nsensordata, n + m.nu))
        direction = np.zeros(m.nv)
        for k in range(n + m.nu):
            ends = []
            for amount in (NEARBY, -NEARBY):
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
                self._sim.step(d)
                ends.append(d.sensordata.copy())
            out[:, k] = (ends[0] - ends[1]) / (2.0 * NEARBY)
        return out


def _derive(model: mujoco.MjModel, scratch: mujoco.MjData, name: str) -> None:
    try:
        mujoco.mj_setConst(model, scratch)
    except mujoco.FatalError as error:
        raise InvalidInput("names", f"{name} cannot be moved: {error}") from error


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
