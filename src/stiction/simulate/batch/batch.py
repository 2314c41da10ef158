"""`Batch`: many simulations of one model, with the interface of `mujoco.batch.Batch`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

import mujoco
import numpy as np
from mujoco import batch as mujoco_batch
from numpy.typing import ArrayLike, NDArray

from stiction.bridge.validation import check_model
from stiction.contact.derivatives.derivatives import check_smoothing
from stiction.contact.models.model import ContactModel
from stiction.errors import InvalidInput, StictionError, real_numbers
from stiction.simulate.batch.core import Core
from stiction.simulate.derivatives.transition import Want
from stiction.simulate.options import is_whole
from stiction.simulate.settings import Options, check_settings
from stiction.simulate.steppers import TimeStepping

Array = NDArray[np.float64]
P = ParamSpec("P")
R = TypeVar("R")

STAGES = tuple(int(stage) for stage in mujoco.mjtStage.__members__.values())

_SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)


class SimulationError(StictionError, mujoco_batch.SimulationError):  # type: ignore[misc]
    """Some simulations of a call failed; the others ran to completion.

    Those that failed have the state that they had before the call. `ids` lists them, and
    `Batch.error(i)` tells why.
    """

    def __init__(self, ids: NDArray[np.int_], message: str, ncall: int) -> None:
        self.ids, self.ncall = ids, ncall
        shown = ", ".join(str(i) for i in ids[:5]) + (", ..." if len(ids) > 5 else "")
        text = f"{len(ids)} of {ncall} simulations ({shown}); simulation {ids[0]}: {message}"
        RuntimeError.__init__(self, text)

    def __reduce__(self) -> tuple[Any, ...]:
        return _same_error, (self.ids, self.ncall, str(self))


def _rows(name: str, given: ArrayLike, shape: tuple[int, int]) -> Array:
    """An array of that shape that kernels can read."""
    rows = np.ascontiguousarray(real_numbers(name, given), np.float64)
    if rows.shape != shape:
        raise InvalidInput(name, f"must have shape {shape}", rows.shape)
    return rows


@contextmanager
def _naming(argument: str) -> Iterator[None]:
    """Lets what MuJoCo says of an argument be an `InvalidInput` that names it. A `FatalError` is of
    the batch: that it cannot do that."""
    try:
        yield
    except (StictionError, mujoco.FatalError):
        raise
    except Exception as error:
        raise InvalidInput(argument, f"is not taken: {error}") from None


def checked_ids(ids: ArrayLike | None, nsim: int) -> NDArray[np.int32] | None:
    """Simulations as the methods of a batch take them: sorted numbers, or None for all."""
    with _naming("ids"):
        chosen: NDArray[np.int32] | None = mujoco_batch._ids(ids, nsim)
        return chosen


def _stage(stage: Any) -> int:
    known = isinstance(stage, mujoco.mjtStage) or (is_whole(stage) and int(stage) in STAGES)
    if not known:
        raise InvalidInput("stage", f"is {stage!r}: one of `mujoco.mjtStage`")
    return int(stage)


def _same_error(ids: NDArray[np.int_], ncall: int, text: str) -> SimulationError:
    made = SimulationError(ids, "", ncall)
    made.args = (text,)
    return made


def _one_at_a_time(
    method: Callable[Concatenate[Batch, P], R],
) -> Callable[Concatenate[Batch, P], R]:
    """Lets calls from other threads wait: all of them write to the same workers and rows."""

    @wraps(method)
    def call(self: Batch, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._b.lock:
            return method(self, *args, **kwargs)

    return call


class Batch(mujoco_batch.Batch):  # type: ignore[misc]
    """`nsim` simulations of a copy of `model`, on `nthread` threads (0: all processors).

    The interface is that of `mujoco.batch.Batch`, on which it is built: `bind`, `expand`,
    `set_const`, `set_models`, `forward`, `reset`, `rollout`, `get_model`, `get_data`, `jac`, `ray`,
    named views, `status` and `error` are its own, and MuJoCo's documentation of them holds. Steps
    are stiction's, with the contact model and the options of `Simulator`, whose bits they have at
    any number of threads; each simulation keeps the impulses that its next step begins with.

    `forward` and `reset` evaluate as `mj_forward` does: accelerations and forces after them are
    MuJoCo's, those after `step` are ours.

    A batch serves one Python thread at a time; others wait for it.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        nsim: int,
        nthread: int = 0,
        contact: ContactModel | None = None,
        **options: Unpack[Options],
    ) -> None:
        check_model(model)
        settings = check_settings(contact, **options)
        if not isinstance(settings.stepper, TimeStepping):
            raise InvalidInput("stepper", f"is {settings.stepper!r}: a batch takes TimeStepping()")
        for name, value, least in (("nsim", nsim, 1), ("nthread", nthread, 0)):
            if not (is_whole(value) and least <= value < 2**31):
                raise InvalidInput(name, f"is {value!r}: a whole number, {least} or more")
        own = copy.copy(model)
        own.opt.enableflags &= ~_SLEEP  # our steps know no sleep
        super().__init__(own, int(nsim), int(nthread))
        self.model = model
        self._b: Core = Core(self._b, own, settings, sorted(mujoco_batch.MODEL_FIELDS))
        self.settings = settings

    rollout = _one_at_a_time(mujoco_batch.Batch.rollout)
    set_const = _one_at_a_time(mujoco_batch.Batch.set_const)
    set_models = _one_at_a_time(mujoco_batch.Batch.set_models)

    def __repr__(self) -> str:
        return (
            f"Batch(nv={self.model.nv}, nsim={self.nsim}, nthread={self.nthread}, "
            f"contact={self.settings.contact!r})"
        )

    @property
    def certificate(self) -> NDArray[np.float64]:
        """(nsim,) the largest violation of any law in the steps of each simulation's last call;
        not a number where it failed."""
        return self._b.certificate

    @property
    def rung(self) -> NDArray[np.str_]:
        """(nsim,) how those steps were answered: "proximal" where the last step's impulses were
        enough of a start in all of them, else the way that was needed in addition; "failed"."""
        return self._b.rung

    @_one_at_a_time
    def step(
        self,
        ids: ArrayLike | None = None,
        nstep: int = 1,
        stage: int = int(mujoco.mjtStage.mjSTAGE_NONE),
    ) -> None:
        """Takes `nstep` steps of each simulation.

        ids: the simulations, sorted, or a mask (nsim,), or None for all.
        stage: `mjtStage` to which the new state is evaluated. By default derived fields describe
        the state before the last step, as after `mj_step`. mjSTAGE_POS brings kinematics and the
        sensors that depend on positions up to date, mjSTAGE_VEL velocities as well; contacts and
        forces remain those of the step. mjSTAGE_ACC calls `mj_forward`, whose forces are MuJoCo's.

        Simulations that fail keep the state that they had, and do not stop the others:
        `SimulationError` lists them afterwards.
        """
        if not (is_whole(nstep) and 1 <= nstep < 2**63):
            raise InvalidInput("nstep", f"is {nstep!r}: a whole number of steps, 1 or more")
        super().step(checked_ids(ids, self.nsim), int(nstep), _stage(stage))

    @_one_at_a_time
    def forward(
        self, ids: ArrayLike | None = None, stage: int = int(mujoco.mjtStage.mjSTAGE_ACC)
    ) -> None:
        """MuJoCo's: evaluates the simulations up to a stage."""
        super().forward(checked_ids(ids, self.nsim), _stage(stage))

    @_one_at_a_time
    def reset(
        self,
        ids: ArrayLike | None = None,
        keyframe: ArrayLike = -1,
        stage: int = int(mujoco.mjtStage.mjSTAGE_ACC),
    ) -> None:
        """MuJoCo's: puts simulations back to the model's initial state, or to a keyframe each, (n,)
        or one for all, and evaluates them up to a stage."""
        chosen, stage = checked_ids(ids, self.nsim), _stage(stage)
        with _naming("keyframe"):
            super().reset(chosen, keyframe, stage)

    @_one_at_a_time
    def bind(self, name: str) -> NDArray[Any]:
        """MuJoCo's: a live array (nsim, ...) of a field of MjData."""
        with _naming("name"):
            bound: NDArray[Any] = super().bind(name)
            return bound

    @_one_at_a_time
    def expand(self, name: str) -> NDArray[Any]:
        """MuJoCo's: a live array (nsim, ...) of a field of the model, each simulation its own."""
        with _naming("name"):
            own: NDArray[Any] = super().expand(name)
            return own

    def derivatives(
        self, ids: ArrayLike | None = None, *, smoothing: float = 0.0
    ) -> tuple[Array, Array]:
        """A (n, 2 nv + na, 2 nv + na) and B (n, 2 nv + na, nu) of the step that each simulation
        would take next, as `Simulator.derivatives` has them; states are left as they are.

        ids: the simulations, as for `step`. Those whose derivatives fail are not a number, and
        `SimulationError` lists them afterwards. smoothing: see `StepDerivatives.smoothed`.
        """
        n, size = self._sizes(ids)
        A, B = np.empty((n, size, size)), np.empty((n, size, self.model.nu))
        self._differentiate(Want.MATRICES, ids, [A, B], smoothing)
        return A, B

    def jvp(
        self,
        state: ArrayLike | None = None,
        control: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        *,
        smoothing: float = 0.0,
    ) -> Array:
        """(n, 2 nv + na) change of each simulation's state after its next step, for changes of its
        state (n, 2 nv + na) and of its controls (n, nu), None for none: A state + B control,
        without A and B. ids, smoothing: as for `derivatives`."""
        n, size = self._sizes(ids)
        inputs = int(self.model.nu)
        given = [
            _rows("state", np.zeros((n, size)) if state is None else state, (n, size)),
            _rows("control", np.zeros((n, inputs)) if control is None else control, (n, inputs)),
        ]
        out = np.empty((n, size))
        self._differentiate(Want.FORWARD, ids, [*given, out], smoothing)
        return out

    def vjp(
        self, gradient: ArrayLike, ids: ArrayLike | None = None, *, smoothing: float = 0.0
    ) -> tuple[Array, Array]:
        """(n, 2 nv + na) and (n, nu): the gradients of functions of the simulations' states after
        their next steps, by state and by controls; gradient (n, 2 nv + na): those by the state
        after. A' gradient and B' gradient, without A and B. ids, smoothing: as for `derivatives`.
        """
        n, size = self._sizes(ids)
        by_state, by_control = np.empty((n, size)), np.empty((n, self.model.nu))
        given = _rows("gradient", gradient, (n, size))
        self._differentiate(Want.BACK, ids, [given, by_state, by_control], smoothing)
        return by_state, by_control

    def _sizes(self, ids: ArrayLike | None) -> tuple[int, int]:
        """How many simulations are meant, and the size of a state."""
        chosen = checked_ids(ids, self.nsim)
        n = self.nsim if chosen is None else len(chosen)
        return n, 2 * int(self.model.nv) + int(self.model.na)

    @_one_at_a_time
    def _differentiate(
        self, want: Want, ids: ArrayLike | None, arrays: list[Array], smoothing: float
    ) -> None:
        chosen, smoothing = checked_ids(ids, self.nsim), check_smoothing(smoothing)
        self._check(chosen, self._b.differentiate(want, chosen, arrays, smoothing))

    def _check(self, ids: NDArray[np.int32] | None, nfail: int) -> None:
        if nfail:
            called = np.arange(self.nsim) if ids is None else ids
            failed = called[self.status[called] != 0]
            raise SimulationError(failed, self.error(int(failed[0])), len(called))
