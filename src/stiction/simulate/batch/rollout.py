"""`rollout`: trajectories under given controls, with the interface of `mujoco.rollout`."""

from __future__ import annotations

import atexit
import os
import threading
import warnings
from collections.abc import Sequence
from typing import Any, Unpack

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout
from numpy.typing import ArrayLike, NDArray

from stiction.bridge.changes import Fields
from stiction.bridge.validation import check_data
from stiction.contact.models.model import ContactModel
from stiction.errors import InvalidInput, StictionError, real_numbers
from stiction.simulate.batch.batch import Batch, SimulationError
from stiction.simulate.options import is_flag, is_whole
from stiction.simulate.settings import Options, check_settings

Array = NDArray[np.float64]

_STATE = mujoco.mjtState
_PHYSICS = int(_STATE.mjSTATE_FULLPHYSICS)
_CTRL = int(_STATE.mjSTATE_CTRL)
_NONE = int(mujoco.mjtStage.mjSTAGE_NONE)


class Rollout(mujoco_rollout.Rollout):  # type: ignore[misc]
    """Threads for rollouts, kept from one call to the next, with the options of `Simulator`.

    nthread: 0 or 1 runs on the caller's. `rollout` takes what `mujoco.rollout.Rollout.rollout`
    takes and returns the same; see `stiction.rollout`.
    """

    def __init__(
        self,
        *,
        nthread: int | None = None,
        contact: ContactModel | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(nthread=0)
        if nthread is not None and not (is_whole(nthread) and 0 <= nthread < 2**31):
            raise InvalidInput("nthread", f"is {nthread!r}: a whole number, 0 or more")
        self.nthread = 0 if nthread is None else int(nthread)
        self.rollout_ = _Runner(self.nthread, contact, options)

    def rollout(
        self,
        model: mujoco.MjModel | Sequence[mujoco.MjModel],
        data: mujoco.MjData | Sequence[mujoco.MjData],
        initial_state: ArrayLike,
        control: ArrayLike | None = None,
        **arguments: Any,
    ) -> tuple[Array, Array]:
        """As `mujoco.rollout.Rollout.rollout`; what it refuses is an InvalidInput."""
        for name in ("state", "sensordata"):
            given = arguments.get(name)
            if isinstance(given, np.ndarray) and not given.flags.writeable:
                raise InvalidInput(name, "is read-only: an array to be filled, or None")
        try:
            for name, value in (("initial_state", initial_state), ("control", control)):
                # MuJoCo would take the real part of complex numbers.
                if value is not None and np.iscomplexobj(value):
                    real_numbers(name, value)
            filled: tuple[Array, Array] = super().rollout(
                model, data, initial_state, control, **arguments
            )
        except StictionError:
            raise
        except Exception as error:
            if not isinstance(error, ValueError):  # MuJoCo stumbled over it
                _check_types(model, data, initial_state, control, arguments)
            named = ("initial_state", "data", "model", "control", *arguments)
            told = next((name for name in named if name in str(error)), "data")
            raise Refused(told, str(error)) from None
        for name, result in zip(("state", "sensordata"), filled, strict=True):
            _fill(name, arguments.get(name), result)
        return filled


def _fill(name: str, given: Any, result: Array) -> None:
    """Writes a result to the array that was given for it, where MuJoCo took a copy of that."""
    if isinstance(given, np.ndarray) and not np.may_share_memory(given, result):
        try:
            np.copyto(given, result.reshape(given.shape), casting="same_kind")
        except TypeError:
            raise InvalidInput(name, f"is of {given.dtype}: it cannot hold the results") from None


class Refused(InvalidInput):
    """An argument that MuJoCo's own rollouts refuse, in its words."""

    def __str__(self) -> str:
        return self.reason


def _check_types(
    model: Any, data: Any, initial_state: Any, control: Any, arguments: dict[str, Any]
) -> None:
    """Raises InvalidInput for arguments of wrong types."""
    for name, value, kind in (("model", model, mujoco.MjModel), ("data", data, mujoco.MjData)):
        one = isinstance(value, kind)
        if not one and not (isinstance(value, (list, tuple)) and len(value)):
            raise InvalidInput(name, f"is {value!r}: a mujoco.{kind.__name__}, or a list of some")
        for each in () if one else value:
            if not isinstance(each, kind):
                raise InvalidInput(name, f"has {each!r}: not a mujoco.{kind.__name__}")
    warm = arguments.get("initial_warmstart")
    for name, value in (("control", control), ("initial_warmstart", warm)):
        if value is not None:
            real_numbers(name, value)
    real_numbers("initial_state", initial_state)
    for name in ("state", "sensordata"):
        value = arguments.get(name)
        if value is not None and not isinstance(value, np.ndarray):
            raise InvalidInput(name, f"is {value!r}: an array to be filled, or None")
    for name in ("nstep", "chunk_size"):
        value = arguments.get(name)
        if value is not None and not (is_whole(value) and abs(value) < 2**31):
            raise InvalidInput(name, f"is {value!r}: a whole number, or None")
    spec = arguments.get("control_spec", _CTRL)
    if not isinstance(spec, _STATE) and not (is_whole(spec) and 0 <= spec < 2**31):
        raise InvalidInput("control_spec", f"is {spec!r}: bits of mujoco.mjtState")
    if not is_flag(arguments.get("skip_checks", False)):
        raise InvalidInput("skip_checks", f"is {arguments['skip_checks']!r}: True or False")


class _Runner:
    """Takes the place of what `mujoco.rollout.Rollout` hands checked arguments to."""

    def __init__(self, nthread: int, contact: ContactModel | None, options: Options) -> None:
        self._nthread, self._contact, self._options = nthread, contact, options
        self._kept: tuple[mujoco.MjModel, int, Fields, Batch] | None = None

    def rollout(
        self,
        model: mujoco.MjModel | Sequence[mujoco.MjModel],
        data: Any,
        nstep: int,
        control_spec: int,
        initial_state: Array,
        initial_warmstart: Array | None,
        control: Array | None,
        state: Array | None,
        sensordata: Array | None,
        chunk_size: int | None,
    ) -> None:
        """Fills `state` and `sensordata`. Simulations are handed out one at a time: `chunk_size`
        makes no difference."""
        self._check(data, nstep, chunk_size)
        initial_state = np.atleast_2d(initial_state)
        models = [model] if isinstance(model, mujoco.MjModel) else list(model)
        if not models or not len(initial_state):
            return
        for each in [data] if isinstance(data, mujoco.MjData) else data:
            check_data(models[0], each)
        models = models[: len(initial_state)]
        batch = self._batch(models, len(initial_state))
        if not nstep:
            return
        batch.reset(stage=_NONE)
        at = 0
        for bit in _bits(_PHYSICS):
            width = mujoco.mj_stateSize(models[0], bit)
            start, _ = batch._component(bit)
            batch.state[:, start : start + width] = initial_state[:, at : at + width]
            at += width
        if control is None:  # those that the data hold are applied all along, as by MuJoCo's own
            held = data if isinstance(data, mujoco.MjData) else data[0]
            for bit in _bits(control_spec):
                start, width = batch._component(bit)
                batch.state[:, start : start + width] = _inputs(models[0], held, bit)
        if initial_warmstart is not None:
            batch.qacc_warmstart[:] = initial_warmstart
        out: dict[Any, Array] = {}
        if state is not None:
            out[_PHYSICS] = state
        if sensordata is not None:
            out["sensordata"] = sensordata
        try:
            batch.rollout(nstep, control, control_spec, record=tuple(out), out=out)
        except SimulationError as error:
            warnings.warn(f"{error}; they repeat their last state", RuntimeWarning, stacklevel=5)

    def _check(self, data: Any, nstep: int, chunk_size: int | None) -> None:
        """MuJoCo's own checks, in its words."""
        count = 1 if isinstance(data, mujoco.MjData) else len(data)
        if count == 0:
            raise ValueError("The list of data instances is empty")
        if self._nthread == 0 and count > 1:
            raise ValueError(
                "More than one data instance passed but rollout is configured to run on main thread"
            )
        if self._nthread > 0 and count != self._nthread:
            raise ValueError(f"Length of data: {count} not equal to nthread: {self._nthread}")
        if nstep < 0:
            raise ValueError("nstep must be non-negative")
        if chunk_size is not None and chunk_size <= 0:
            raise ValueError("chunk_size must be a positive integer")

    def _batch(self, models: list[mujoco.MjModel], nsim: int) -> Batch:
        """The batch of the last call, if that had the same model, unchanged, in this process."""
        first = models[0]
        if self._kept is not None:
            model, count, fields, batch = self._kept
            same = model is first and count == nsim and not fields.edited
            if same and batch.models is None and not batch._b.is_cut_off:
                if any(each is not first for each in models):
                    batch.set_models(models)
                return batch
        batch = Batch(first, nsim, max(1, self._nthread), self._contact, **self._options)
        if any(each is not first for each in models):
            batch.set_models(models)
        self._kept = (first, nsim, Fields(first), batch)
        return batch


def _inputs(model: mujoco.MjModel, data: mujoco.MjData, bit: int) -> Array:
    values = np.empty(mujoco.mj_stateSize(model, bit))
    mujoco.mj_getState(model, data, values, bit)
    return values


def _bits(spec: int) -> list[int]:
    return [1 << k for k in range(int(_STATE.mjNSTATE)) if spec >> k & 1]


_persistent: dict[str, Rollout] = {}
_lock = threading.Lock()


def shutdown_persistent_pool() -> None:
    """Ends the threads that `rollout(persistent_pool=True)` keeps."""
    with _lock:
        for kept in _persistent.values():
            kept.close()
        _persistent.clear()


atexit.register(shutdown_persistent_pool)


def _renew_lock() -> None:
    """In a forked process: the thread that held the lock is not in it."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def rollout(
    model: mujoco.MjModel | Sequence[mujoco.MjModel],
    data: mujoco.MjData | Sequence[mujoco.MjData],
    initial_state: ArrayLike,
    control: ArrayLike | None = None,
    *,
    control_spec: int = _CTRL,
    skip_checks: bool = False,
    nstep: int | None = None,
    initial_warmstart: ArrayLike | None = None,
    state: ArrayLike | None = None,
    sensordata: ArrayLike | None = None,
    chunk_size: int | None = None,
    persistent_pool: bool = False,
    contact: ContactModel | None = None,
    **options: Unpack[Options],
) -> tuple[Array, Array]:
    """Rolls trajectories out from initial states; returns states and sensor values after each step.

    The arguments, defaults and shapes are those of `mujoco.rollout.rollout`, and so is what it
    returns: state (nbatch, nstep, nstate), sensordata (nbatch, nstep, nsensordata). As many threads
    run as there are data; these are not written to. A rollout whose step fails repeats its last
    state, and a RuntimeWarning says why. `contact` and the options are those of `Simulator`.
    """
    if not is_flag(persistent_pool):
        raise InvalidInput("persistent_pool", f"is {persistent_pool!r}: True or False")
    check_settings(contact, **options)
    nthread = len(data) if isinstance(data, list) and len(data) > 1 else 0
    arguments: dict[str, Any] = {
        "control_spec": control_spec, "skip_checks": skip_checks, "nstep": nstep,
        "initial_warmstart": initial_warmstart, "state": state, "sensordata": sensordata,
        "chunk_size": chunk_size,
    }  # fmt: skip
    if not persistent_pool:
        with Rollout(nthread=nthread, contact=contact, **options) as made:
            return made.rollout(model, data, initial_state, control, **arguments)
    with _lock:
        name = repr((nthread, contact, sorted(options.items())))
        if name not in _persistent:
            for other in _persistent.values():
                other.close()
            _persistent.clear()
            _persistent[name] = Rollout(nthread=nthread, contact=contact, **options)
        return _persistent[name].rollout(model, data, initial_state, control, **arguments)
