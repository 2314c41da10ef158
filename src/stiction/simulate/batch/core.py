"""The part of a batch that steps: `Core`, in the place of MuJoCo's own.

`mujoco.batch.Batch` checks arguments and hands them to a core that holds the rows of state, the
outputs and the fields that simulations have of their own. `Core` has MuJoCo's inside, and takes
over from it what steps: `step` and `rollout`, with what each simulation's next step begins with.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from mujoco.introspect import ast_nodes, structs
from numpy.typing import NDArray

from stiction.bridge.gyroscopic import standalone
from stiction.bridge.layout import offset, size_of
from stiction.bridge.library import CONTROLLER
from stiction.bridge.own_model import OwnModel
from stiction.errors import InvalidInput, StictionError
from stiction.simulate.batch.loop import (
    INTEGRATION,
    MEMORIES,
    OWNS,
    RESULTS,
    Cursor,
    Job,
    Memory,
    Own,
    Phase,
    Result,
    run_simulations,
    trace_step,
)
from stiction.simulate.batch.pool import Pool, Task, Worker, task_simulation
from stiction.simulate.batch.products import Products
from stiction.simulate.derivatives.transition import Want
from stiction.simulate.settings import Settings
from stiction.simulate.time_stepping.config import Config, Stop
from stiction.simulate.time_stepping.engine import Guess
from stiction.simulate.time_stepping.fallback import Answer
from stiction.simulate.time_stepping.workspace import RECORDS, state_size
from stiction.terrain.meetings import Ground

Indices = NDArray[np.int64]
Ids = NDArray[np.int32] | None
Record = tuple[str | None, int, NDArray[Any]]

FAILED = "failed"
"""The rung of a simulation that did."""

KEPT_BLOCKS = 8
"""Blocks whose impulses are kept for each simulation at first."""

_ACC = int(mujoco.mjtStage.mjSTAGE_ACC)
_OPT, _OPT_SIZE = offset("mjModel", "opt"), size_of("mjOption")

UNREAD = (
    "geom_gap", "pair_gap", "geom_margin", "body_margin", "pair_margin", "jnt_margin",
    "tendon_margin",
)  # fmt: skip
"""Fields that the steps set themselves."""

STRUCTURE = ("body_parentid", "jnt_type", "dof_parentid", "M_colind", "D_colind")
"""Fields that the workspace of a thread is made for."""


_STATE_FIELDS = (
    "time", "qpos", "qvel", "act", "qacc_warmstart", "ctrl", "qfrc_applied", "xfrc_applied",
    "eq_active", "mocap_pos", "mocap_quat", "userdata", "plugin_state", "history", "plastic",
)  # fmt: skip
"""Fields of MjData that rows of state hold, and outputs do not."""


def _is_pointer(name: str) -> bool:
    kinds = {field.name: field.type for field in structs.STRUCTS["mjData"].fields}
    return isinstance(kinds[name], ast_nodes.PointerType)


class Core:
    """MuJoCo's core of a batch, whose steps are ours."""

    def __init__(
        self, inner: Any, model: mujoco.MjModel, settings: Settings, fields: Sequence[str]
    ) -> None:
        self._inner, self._model, self.settings = inner, model, settings
        self._names = sorted(fields)
        self._pool = Pool(model, settings, inner.nthread)
        nsim = inner.nsim
        self._kept = np.zeros((nsim, KEPT_BLOCKS, RECORDS))
        self._larger: dict[int, NDArray[np.float64]] = {}
        self._memory = np.zeros((nsim, MEMORIES), np.int64)
        row = self._kept.strides[0]
        self._memory[:, Memory.ADDRESS] = self._kept.ctypes.data + row * np.arange(nsim)
        self._memory[:, Memory.ROOM] = KEPT_BLOCKS
        self._seen = np.zeros((nsim, state_size(model)))
        self._origin = np.zeros((nsim, self._pool.workers[0].engine.work.step.origin.size))
        self.results = np.zeros((nsim, RESULTS))
        """(nsim, Result)"""
        compiled = self._pool.workers[0].engine.compiled
        ways = ("",) if compiled is None else compiled.solver.rungs
        self.rungs = [ways[0], ways[-1]]
        """Ways that answered, by number."""
        self._errors: dict[int, str] = {}
        self._ours = np.zeros(nsim, np.bool_)  # whose last call was one of ours
        self._state, self._warning, self._status = inner.state(), inner.warning(), inner.status()
        self._outputs: dict[str, tuple[int, int, int, int]] = {}
        self._models: list[mujoco.MjModel] | None = None
        self._changed = True
        self._own: Indices | None = None
        self._template = mujoco.MjData(model)
        self._everyone = np.arange(nsim, dtype=np.int64)
        self.job = np.zeros(len(Job), np.int64)
        """What the threads share (`Job`)."""
        self.lock = threading.RLock()
        """Held by the call that the batch is in."""
        self.is_cut_off = False
        """Whether this process is a fork, in which MuJoCo's own threads are not."""
        _all.add(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def error(self, sim: int) -> str:
        """Message of the error of a simulation's last call, or ''."""
        told: str = self._inner.error(sim)  # checks the number
        return self._errors.get(int(sim), "") if self._ours[sim] else told

    def output(self, name: str) -> Any:
        """MuJoCo's rows of a field, which our calls fill as well."""
        rows = self._inner.output(name)
        if rows is not None and rows.nbytes and name not in self._outputs:
            address, size = rows.__array_interface__["data"][0], rows.strides[0]
            self._outputs[name] = (offset("mjData", name), _is_pointer(name), address, size)
        return rows

    def expand(self, name: str) -> Any:
        """MuJoCo's rows of a field of the model."""
        rows = self._inner.expand(name)
        self._changed = True
        return rows

    def set_const(self, ids: Ids) -> int:
        """MuJoCo's, after which more fields differ."""
        self._changed = True
        return self._theirs(ids, self._inner.set_const(ids))

    def set_models(self, models: Any) -> None:
        """MuJoCo's; steps follow."""
        given = models if isinstance(models, list) else [] if models is None else [models]
        for k, model in enumerate(given):
            for name in STRUCTURE:
                if not np.array_equal(getattr(model, name, 0), getattr(self._model, name)):
                    raise InvalidInput(f"models[{k}].{name}", "differs from that of the batch's")
        self._inner.set_models(models)
        self._models = models if isinstance(models, list) else None
        base = models if isinstance(models, mujoco.MjModel) else self._model
        self._pool = Pool(base, self.settings, self._inner.nthread)
        self._changed = True

    def forward(self, ids: Ids, stage: int) -> int:
        """MuJoCo's."""
        self._check_threads()
        return self._theirs(ids, self._inner.forward(ids, stage))

    def reset(self, ids: Ids, keyframe: Any, stage: int) -> int:
        """MuJoCo's; what the simulations remember of their last step is dropped."""
        self._check_threads()
        chosen = slice(None) if ids is None else ids
        for entry in (Memory.USED, Memory.RESTS, Memory.CORRECTED):
            self._memory[chosen, entry] = 0
        self.results[chosen] = 0.0
        return self._theirs(ids, self._inner.reset(ids, keyframe, stage))

    def _check_threads(self) -> None:
        """Raises where MuJoCo would wait for ever for threads of another process."""
        if self.is_cut_off:
            raise StictionError(
                "the batch was made before this process was forked, with threads of MuJoCo's that "
                "are not in it: it can step; make another Batch here to reset or to evaluate"
            )

    def _theirs(self, ids: Ids, failed: int) -> int:
        self._ours[slice(None) if ids is None else ids] = False
        return failed

    def step(self, ids: Ids, nstep: int, stage: int) -> int:
        """Takes steps; how many simulations failed."""
        after = stage == _ACC
        if after:
            self._check_threads()
        chosen = self._everyone if ids is None else ids.astype(np.int64)
        failed = self._run(chosen, self, nstep, 0 if after else stage)
        if after:
            status = self._status.copy()
            self._inner.forward(chosen[status[chosen] == 0].astype(np.int32), stage)
            self._status[:] = np.maximum(status, self._status)
            failed = int(np.count_nonzero(self._status[chosen]))
        return failed

    def rollout(
        self,
        ids: Ids,
        nstep: int,
        control: NDArray[np.float64] | None,
        control_spec: int,
        records: list[Record],
    ) -> int:
        """Takes steps with controls before each, and records after each; how many failed."""
        count = self._inner.nsim if ids is None else len(ids)
        for name, spec, rows in records:
            self._check_rows("record", rows, (count, nstep), *self._recorded(name, spec))
            if not rows.flags.writeable:
                raise InvalidInput("record", "is an array that cannot be written to")
        if control is not None:
            width = mujoco.mj_stateSize(self._model, control_spec)
            self._check_rows("control", control, (count, nstep), (width,), np.dtype(np.float64))
        chosen = self._everyone if ids is None else ids.astype(np.int64)
        return self._run(chosen, self, nstep, 0, control, control_spec, records)

    def differentiate(
        self, want: Want, ids: Ids, arrays: list[NDArray[np.float64]], smoothing: float
    ) -> int:
        """Fills what `want` asks for of the simulations' next step; how many failed. arrays: those
        of `Ask.FIRST` and so on, a row for each."""
        chosen = self._everyone if ids is None else ids.astype(np.int64)
        return self._run(chosen, Products(self, want, chosen, arrays, smoothing))

    def _run(
        self,
        chosen: Indices,
        task: Task,
        nstep: int = 1,
        stage: int = 0,
        control: NDArray[np.float64] | None = None,
        control_spec: int = 0,
        records: Sequence[Record] = (),
    ) -> int:
        self._inner.step(np.zeros(0, np.int32), 1, 0)  # checks callbacks
        if self._changed:
            self._find_fields()
        outputs = np.array(list(self._outputs.values()), np.int64).reshape(-1, 4)
        traces = np.array([self._trace(*record) for record in records], np.int64).reshape(-1, 4)
        job = self.job
        job[Job.NEXT] = job[Job.HALT] = 0
        job[Job.COUNT], job[Job.IDS] = len(chosen), chosen.ctypes.data
        job[Job.STEPS], job[Job.STAGE] = nstep, stage
        job[Job.STATE], job[Job.WIDTH] = self._state.ctypes.data, self._state.shape[1]
        job[Job.WARNING], job[Job.MEMORY] = self._warning.ctypes.data, self._memory.ctypes.data
        job[Job.RESULT], job[Job.SEEN] = self.results.ctypes.data, self._seen.ctypes.data
        job[Job.ORIGIN] = self._origin.ctypes.data
        job[Job.OWN] = 0 if self._own is None else self._own.ctypes.data
        job[Job.OUTPUTS], job[Job.OUTPUT_COUNT] = outputs.ctypes.data, len(outputs)
        job[Job.CONTROL] = 0 if control is None else control.ctypes.data
        job[Job.CONTROL_WIDTH] = 0 if control is None else control.shape[-1]
        job[Job.CONTROL_SPEC] = control_spec
        job[Job.TRACES], job[Job.TRACE_COUNT] = traces.ctypes.data, len(traces)
        job[Job.CONTROLLER] = CONTROLLER
        self._status[chosen], self._ours[chosen] = 0, True
        for sim in [sim for sim in self._errors if self._ours[sim] and not self._status[sim]]:
            del self._errors[sim]
        self._pool.run(task)
        return int(np.count_nonzero(self._status[chosen]))

    def _recorded(self, name: str | None, spec: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of what one step records."""
        if name is None:
            if not 0 <= spec < 1 << int(mujoco.mjtState.mjNSTATE):
                raise InvalidInput("record", f"is {spec}: an mjtState, or bits of it")
            return (mujoco.mj_stateSize(self._model, spec),), np.dtype(np.float64)
        value = getattr(self._template, name, None)
        if self._inner.output(name) is None and name not in _STATE_FIELDS:
            raise InvalidInput("record", f"is {name!r}: not a field of MjData of fixed size")
        array = np.zeros((), np.int32) if isinstance(value, int) else np.asarray(value)
        return array.shape, array.dtype

    @staticmethod
    def _check_rows(
        what: str,
        rows: NDArray[Any],
        calls: tuple[int, int],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        """Raises InvalidInput unless kernels find rows of that shape there."""
        if not isinstance(rows, np.ndarray):
            raise InvalidInput(what, f"is a {type(rows).__name__}, not an array")
        if rows.dtype != dtype or not rows.flags.c_contiguous:
            raise InvalidInput(what, f"must be a C-contiguous array of {dtype}")
        if rows.shape != (*calls, *shape):
            raise InvalidInput(what, f"must have shape {(*calls, *shape)}", rows.shape)

    def _trace(self, name: str | None, spec: int, rows: NDArray[Any]) -> tuple[int, int, int, int]:
        """A line of `Job.TRACES`."""
        size = int(np.prod(rows.shape[2:])) * rows.itemsize
        if name is None:
            return spec, 2, rows.ctypes.data, size
        return offset("mjData", name), _is_pointer(name), rows.ctypes.data, size

    # What a worker asks for.

    def start(self, worker: Worker) -> None:
        """A worker steps as it is."""

    def advance(self, worker: Worker, *arguments: int) -> int:
        """Steps simulations until there are none; why it stopped."""
        return worker.engine.guard.call(worker.data, run_simulations, *arguments)

    def resolve(self, worker: Worker, stop: Stop) -> bool:
        """Steps stop for no reasons of their own."""
        return False

    def note(self, worker: Worker, answer: Answer) -> None:
        """Notes the way that answered, by its number."""
        rung = answer.rung
        if not rung:
            return
        if rung not in self.rungs[1:]:
            self.rungs.append(rung)
        cursor, number = worker.cursor, self.rungs.index(rung, 1)
        cursor[Cursor.RUNG] = max(cursor[Cursor.RUNG], number)

    def make_room(self, sim: int, blocks: int) -> None:
        """Makes room for what a simulation's next step begins with."""
        larger = np.zeros((2 * blocks, RECORDS))
        self._memory[sim, Memory.ADDRESS] = larger.ctypes.data
        self._memory[sim, Memory.ROOM] = 2 * blocks
        self._larger[sim] = larger

    def fail(self, worker: Worker, at: int, error: StictionError) -> None:
        """Notes a simulation's failure; what it should have recorded is what it recorded last, or
        the state that it began with."""
        sim = task_simulation(self.job, at)
        self.note_failure(sim, error)
        self.results[sim, Result.WORST] = np.nan
        model, data = worker.engine.own.model, worker.data
        if worker.cursor[Cursor.PHASE] == Phase.LOAD:
            mujoco.mj_setState(model, data, self._state[sim], INTEGRATION)
        for taken in range(int(worker.cursor[Cursor.TAKEN]), int(self.job[Job.STEPS])):
            trace_step(model._address, data._address, int(self.job.ctypes.data), at, taken)

    def note_failure(self, sim: int, error: StictionError) -> None:
        """Notes why a simulation's call failed."""
        self._status[sim], self._errors[sim] = 1, str(error)

    def own_of(self, worker: Worker, sim: int) -> OwnModel:
        """The model that the worker has loaded the simulation with."""
        return worker.engine.own if self._models is None else self._owns[sim]

    def beginning(self, worker: Worker, sim: int) -> tuple[NDArray[np.float64], Guess]:
        """State and guess that the simulation's next step begins with; the worker's engine is made
        ready for it."""
        if self._own is not None:
            self.make_ready(worker, sim)
        address, _, used, rests, corrected = self._memory[sim]
        size = 8 * RECORDS * int(used)
        record = np.frombuffer(ctypes.string_at(int(address), size)).reshape(-1, RECORDS)
        return self._state[sim], Guess(
            record,
            self._seen[sim].copy() if rests else None,
            self._origin[sim].copy() if corrected else None,
        )

    def make_ready(self, worker: Worker, sim: int) -> None:
        """Checks the simulation's own fields, and finds what follows from them."""
        engine = worker.engine
        if self._models is not None:
            engine.own = self._owns[sim] = OwnModel(self._models[sim])
        else:
            self._inner.get_model(sim, engine.own.source)
            engine.own.take_over()
        if not np.array_equal(standalone(engine.own.model), engine.work.step.free):
            raise InvalidInput("dof_armature", "of a free body is zero in all simulations or none")
        engine.adapt()
        assert self._own is not None
        own = self._own[sim]
        self._configs[sim] = engine.config.as_array()
        self._grounds[sim] = engine.ground
        options = self._options[sim]
        ctypes.memmove(options.ctypes.data, engine.own.address + _OPT, _OPT_SIZE)
        for rows, checked in self._compared:
            checked[sim] = rows[sim]
        self._memory[sim, Memory.RESTS] = 0  # its model is another one now
        own[Own.MODEL] = engine.own.address if self._models is not None else 0
        own[Own.CONFIG], own[Own.OPTIONS] = self._configs[sim].ctypes.data, options.ctypes.data
        own[Own.GROUND], own[Own.READY] = engine.ground.address, 1

    def _find_fields(self) -> None:
        """Finds the fields that simulations have of their own; all are checked anew."""
        self._changed = False
        found = {name: self._inner.expanded(name) for name in self._names if name not in UNREAD}
        own = {name: rows for name, rows in found.items() if rows is not None and rows.nbytes}
        self._compared = [(rows, np.zeros_like(rows)) for rows in own.values()]
        lines = [
            (
                -1 if name.startswith("opt.") else offset("mjModel", name),
                rows.__array_interface__["data"][0],
                rows.strides[0],
                checked.ctypes.data,
            )
            for name, (rows, checked) in zip(own, self._compared, strict=True)
        ]
        self._fields = np.array(lines, np.int64).reshape(-1, 4)
        self.job[Job.FIELDS], self.job[Job.FIELD_COUNT] = self._fields.ctypes.data, len(lines)
        self._own = None
        if lines or self._models is not None:
            nsim = self._inner.nsim
            self._own = np.zeros((nsim, OWNS), np.int64)
            self._configs = np.zeros((nsim, len(Config._fields)))
            self._options = np.zeros((nsim, _OPT_SIZE), np.uint8)
            self._grounds: dict[int, Ground] = {}
            self._owns: dict[int, OwnModel] = {}

    @property
    def certificate(self) -> NDArray[np.float64]:
        """(nsim,) largest certificate of each simulation's last call."""
        return self.results[:, Result.WORST].copy()

    @property
    def rung(self) -> NDArray[np.str_]:
        """(nsim,) the ways that answered."""
        number = self.results[:, Result.RUNG].astype(np.int64)
        cold = self.results[:, Result.WARM] < self.results[:, Result.STEPS]
        names = np.array([*self.rungs, FAILED])
        return names[np.where(self._failed, -1, np.where((number == 0) & cold, 1, number))]

    @property
    def _failed(self) -> NDArray[np.bool_]:
        return np.isnan(self.results[:, Result.WORST])


_all: weakref.WeakSet[Core] = weakref.WeakSet()


def _cut_off() -> None:
    """In a forked process: MuJoCo's threads are not in it, and ending a batch would wait for them.
    So it is never ended there."""
    for core in _all:
        core.lock = threading.RLock()  # the thread that held it is not there
        if core._inner.nthread > 1:
            core.is_cut_off = True
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(core._inner))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_cut_off)
