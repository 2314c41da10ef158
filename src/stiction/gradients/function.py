"""A step as a function of arrays: next states, changes taken forward and gradients taken back.

Positions are qpos, with quaternions as they are. A quaternion q is made unit before the step, so
that its length does not matter, and gradients have no part along it. With u = q / |q|,

    u exp(change)     du = 1/2 u (0, change),    change = 2 vec(u* dq) / |q|
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import fields
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.changes import Fields
from stiction.errors import InvalidInput
from stiction.simulate.batch.batch import Batch
from stiction.simulate.simulator import Simulator

Array = NDArray[np.float64]

BALL, FREE = int(mujoco.mjtJoint.mjJNT_BALL), int(mujoco.mjtJoint.mjJNT_FREE)
NONE = int(mujoco.mjtStage.mjSTAGE_NONE)


class State(NamedTuple):
    """Arrays (..., n) of a batch of states, of changes of them, or of gradients by them."""

    qpos: Array
    qvel: Array
    act: Array


class Inputs(NamedTuple):
    """The same of what a step begins with."""

    qpos: Array
    qvel: Array
    act: Array
    ctrl: Array


class StepFunction:
    """The step of a simulator, for many states at once, on all processors. Everything that is no
    argument (applied forces, mocap bodies, time) is as in fresh data, and no step begins with the
    impulses of another."""

    def __init__(self, simulator: Simulator) -> None:
        self._model, self._settings = simulator.model, simulator.settings
        self._lock = threading.Lock()
        self._kept: tuple[Batch, Fields] | None = None

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Of qpos, qvel, act and ctrl."""
        m = self._model
        return int(m.nq), int(m.nv), int(m.na), int(m.nu)

    def forward(self, inputs: Inputs) -> State:
        """The states after one step."""
        shape = self._check(inputs)
        with self._lock:
            batch, ids = self._load(inputs)
            batch.step(ids)
            ends = (part[ids] for part in (batch.qpos, batch.qvel, batch.act))
            return State(*(end.reshape(*shape, -1) for end in ends))

    def push(self, inputs: Inputs, end: Array, change: Inputs, smoothing: float = 0.0) -> State:
        """Changes of the states after the step, for changes of the inputs; end (..., nq): qpos
        after the step; smoothing: see `StepDerivatives.smoothed`."""
        shape, (_, nv, _, _) = self._check(inputs), self.sizes
        self._check(change)
        moved = _tangent_change(self._model, inputs.qpos, change.qpos)
        state = np.concatenate([moved, change.qvel, change.act], axis=-1)
        with self._lock:
            batch, ids = self._load(inputs)
            found = batch.jvp(_flat(state), _flat(change.ctrl), ids, smoothing=smoothing)
        found = found.reshape(*shape, -1)
        qpos = _ambient_change(self._model, end, found[..., :nv])
        return State(qpos, found[..., nv : 2 * nv], found[..., 2 * nv :])

    def pull(self, inputs: Inputs, end: Array, gradient: State, smoothing: float = 0.0) -> Inputs:
        """Gradients by the inputs, from those by the states after the step; end, smoothing: as for
        `push`."""
        shape, (_, nv, _, _) = self._check(inputs), self.sizes
        moved = _tangent_gradient(self._model, end, gradient.qpos)
        given = np.concatenate([moved, gradient.qvel, gradient.act], axis=-1)
        with self._lock:
            batch, ids = self._load(inputs)
            by_state, by_control = batch.vjp(_flat(given), ids, smoothing=smoothing)
        state, control = by_state.reshape(*shape, -1), by_control.reshape(*shape, -1)
        qpos = _ambient_gradient(self._model, inputs.qpos, state[..., :nv])
        return Inputs(qpos, state[..., nv : 2 * nv], state[..., 2 * nv :], control)

    def _check(self, arrays: Inputs) -> tuple[int, ...]:
        """The shape of the batch that all arrays have."""
        batch = arrays.qpos.shape[:-1]
        for name, array, size in zip(Inputs._fields, arrays, self.sizes, strict=True):
            if array.shape != (*batch, size):
                raise InvalidInput(name, f"must have shape {(*batch, size)}", array.shape)
        return batch

    def _load(self, inputs: Inputs) -> tuple[Batch, NDArray[np.int32]]:
        """A batch whose first simulations have these states, and their numbers."""
        flat = Inputs(*(_flat(part) for part in inputs))
        count = len(flat.qpos)
        if self._kept is not None and (self._kept[0].nsim < count or self._kept[1].edited):
            self._kept = None
        if self._kept is None:
            options: dict[str, Any] = {
                field.name: getattr(self._settings, field.name) for field in fields(self._settings)
            }
            made = Batch(self._model, max(count, 1), 1 if count == 1 else 0, **options)
            self._kept = (made, Fields(self._model))
        batch, ids = self._kept[0], np.arange(count, dtype=np.int32)
        batch.reset(ids, stage=NONE)
        batch.qpos[:count] = _unit(self._model, flat.qpos)
        batch.qvel[:count], batch.act[:count], batch.ctrl[:count] = flat[1:]
        return batch, ids


_functions: weakref.WeakKeyDictionary[Simulator, StepFunction] = weakref.WeakKeyDictionary()


def step_function(simulator: Simulator) -> StepFunction:
    """The function of a simulator, kept with it."""
    function = _functions.get(simulator)
    if function is None:
        function = _functions[simulator] = StepFunction(simulator)
    return function


def _flat(array: Array) -> Array:
    """(n, k) all of a batch, one after the other."""
    return array.reshape(int(np.prod(array.shape[:-1])), array.shape[-1])


def _joints(model: mujoco.MjModel) -> list[tuple[slice, slice, slice | None, slice | None]]:
    """(numbers of qpos that add up, their degrees of freedom, quaternion, its degrees of freedom)
    of each joint."""
    found: list[tuple[slice, slice, slice | None, slice | None]] = []
    for kind, at, dof in zip(model.jnt_type, model.jnt_qposadr, model.jnt_dofadr, strict=True):
        n = {BALL: 0, FREE: 3}.get(int(kind), 1)
        turns = kind in (BALL, FREE)
        four = slice(at + n, at + n + 4) if turns else None
        three = slice(dof + n, dof + n + 3) if turns else None
        found.append((slice(at, at + n), slice(dof, dof + n), four, three))
    return found


def _unit(model: mujoco.MjModel, qpos: Array) -> Array:
    """qpos (n, nq) with quaternions made unit."""
    out = qpos.copy()
    for row in out:
        mujoco.mj_normalizeQuat(model, row)
    return out


def _tangent_gradient(model: mujoco.MjModel, qpos: Array, gradient: Array) -> Array:
    """(..., nv) by a change of position, from that by qpos (..., nq), which is unit."""
    out = np.empty((*qpos.shape[:-1], model.nv))
    for numbers, dofs, four, three in _joints(model):
        out[..., dofs] = gradient[..., numbers]
        if four and three:
            by = gradient[..., four]
            out[..., three] = 0.5 * np.einsum("...ij,...i->...j", _times(qpos[..., four]), by)
    return out


def _ambient_gradient(model: mujoco.MjModel, qpos: Array, gradient: Array) -> Array:
    """(..., nq) by qpos, from that by a change of position (..., nv)."""
    out = np.empty(qpos.shape)
    for numbers, dofs, four, three in _joints(model):
        out[..., numbers] = gradient[..., dofs]
        if four and three:
            unit, size = _direction(qpos[..., four])
            by = np.einsum("...ij,...j->...i", _times(unit), gradient[..., three])
            out[..., four] = 2.0 * by / size
    return out


def _tangent_change(model: mujoco.MjModel, qpos: Array, change: Array) -> Array:
    """(..., nv) change of position, from that of qpos (..., nq)."""
    out = np.empty((*qpos.shape[:-1], model.nv))
    for numbers, dofs, four, three in _joints(model):
        out[..., dofs] = change[..., numbers]
        if four and three:
            unit, size = _direction(qpos[..., four])
            by = np.einsum("...ij,...i->...j", _times(unit), change[..., four])
            out[..., three] = 2.0 * by / size
    return out


def _ambient_change(model: mujoco.MjModel, qpos: Array, change: Array) -> Array:
    """(..., nq) change of qpos, which is unit, from that of position (..., nv)."""
    out = np.empty(qpos.shape)
    for numbers, dofs, four, three in _joints(model):
        out[..., numbers] = change[..., dofs]
        if four and three:
            turn = change[..., three]
            out[..., four] = 0.5 * np.einsum("...ij,...j->...i", _times(qpos[..., four]), turn)
    return out


def _direction(quaternion: Array) -> tuple[Array, Array]:
    """A quaternion over its length, and the length (..., 1); as MuJoCo has it, one of no length is
    no turn."""
    size = np.linalg.norm(quaternion, axis=-1, keepdims=True)
    none = size < mujoco.mjMINVAL
    unit = np.where(none, [1.0, 0.0, 0.0, 0.0], quaternion / np.where(none, 1.0, size))
    return unit, np.where(none, 1.0, size)


def _times(quaternion: Array) -> Array:
    """(..., 4, 3) the product of a quaternion with a pure one, as a matrix."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    rows = [[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
