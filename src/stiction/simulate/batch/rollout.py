"""`rollout`: trajectories under given controls, with the interface of `mujoco.rollout`."""

from __future__ import annotations

import atexit
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
from stiction.simulate.batch.batch import Batch, SimulationError
from stiction.simulate.settings import Options

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
        self.nthread = 0 if nthread is None else nthread
        self.rollout_ = _Runner(self.nthread, contact, options)


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
            warnings.warn(f"{error}; they repeat their last state", RuntimeWarning, stacklevel=4)

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
        """The batch of the last call, if that had the same model, unchanged."""
        first = models[0]
        if self._kept is not None:
            model, count, fields, batch = self._kept
            if model is first and count == nsim and not fields.edited and batch.models is None:
                if any(each is not first for each in models):
                    batch.set_models(models)
                return batch
        batch = Batch(first, nsim, max(1, self._nthread), self._contact, **self._options)
        if any(each is not first for each in models):
            batch.set_models(models)
        self._kept = (first, nsim, Fields(first), batch)
        return batch


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
