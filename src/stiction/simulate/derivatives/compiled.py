"""`CompiledDerivatives`: what one engine's steps are differentiated with in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.narrow_phase import TABLE
from stiction.contact.derivatives.derivatives import DIFFERENTIABLE
from stiction.contact.problem.arrays import Array
from stiction.simulate.derivatives.differences import Columns, allocate_columns
from stiction.simulate.derivatives.memory import Transition
from stiction.simulate.derivatives.smooth import plain
from stiction.simulate.derivatives.transition import (
    ASKS,
    INTEGRATION,
    STOPS,
    Ask,
    Want,
    differentiate_step,
    differentiate_step_on_ground,
    run_request,
    run_step,
)
from stiction.simulate.time_stepping.config import Config, Stop
from stiction.simulate.time_stepping.loop import Slot
from stiction.simulate.time_stepping.workspace import Count

if TYPE_CHECKING:
    from stiction.bridge.own_model import OwnModel
    from stiction.simulate.time_stepping.engine import TimeEngine

Indices = NDArray[np.int64]

LEAST_ROOM = 8
"""Blocks that there is room for at least."""

# As plain numbers: looking a member up in an enumeration takes as long as an array's entry.
_DONE, _ERROR, _ROOM = int(Stop.DONE), int(Stop.ERROR), int(Stop.ROOM)
_BLOCKS, _WATCHED = int(Count.BLOCKS), int(Count.WATCHED)
_WANT, _LAW, _STAGE = int(Ask.WANT), int(Ask.LAW), int(Ask.STAGE)
_BEFORE = int(Ask.BEFORE)
_MATRICES, _SLOPES = int(Want.MATRICES), int(Want.SLOPES)


class CompiledDerivatives:
    """Of the step that an engine has taken last."""

    def __init__(self, engine: TimeEngine) -> None:
        self._engine, self._session = engine, engine.session_address
        self._known: Config | None = None
        self._law, self._before = "", 0
        self._model = engine.own.model
        self._scales, self._smoothing = np.zeros(2), 0.0
        # As Numba's dispatcher itself: calls from Python cost.
        self._run: Callable[[int, int, int, int], int] = getattr(run_request, "entry", run_request)
        self._step: Callable[..., int] = getattr(run_step, "entry", run_step)
        self.request = np.zeros(ASKS, np.int64)
        """(ASKS,)"""
        self._address = int(self.request.ctypes.data)
        self.request[Ask.TABLE], self.request[Ask.SCALES] = TABLE, self._scales.ctypes.data
        m = engine.own.model
        self.state = np.zeros(mujoco.mj_stateSize(m, INTEGRATION))
        """That the step of `matrices` began with."""
        n = 2 * m.nv + m.na
        self._shapes = (n, n), (n, m.nu)
        self._start = int(self.state.ctypes.data)

    def follow(self) -> None:
        """Adapts to the engine's model, where that has changed."""
        if self._known is not self._engine.config:
            self._known = self._engine.config
            self.adapt(self._engine.own)

    def adapt(self, own: OwnModel) -> None:
        """Adapts to a model that the engine steps; no stage where it needs another way."""
        engine, request = self._engine, self.request
        self._law = ""
        self._model, self._scales[0] = own.model, own.size
        request[Ask.FACETS] = engine.settings.contact.facets or 0
        request[Ask.STAGE], request[Ask.READY] = 0, 1
        self._quiet = engine.config._replace(sensors=False, energy=False).as_array()
        request[Ask.QUIET] = self._quiet.ctypes.data
        if plain(own.model) and own.model.nv > 0:
            on_ground = engine.session[Slot.GROUND] != 0
            stage = differentiate_step_on_ground if on_ground else differentiate_step
            request[Ask.STAGE] = stage.address
            self.make_room()

    def smooth(self, smoothing: float) -> None:
        """How much contacts are smoothed from now on."""
        self._scales[1] = self._smoothing = smoothing

    def make_room(self) -> None:
        """Makes room for the blocks of the step at hand."""
        engine = self._engine
        count = int(engine.work.step.counts[_BLOCKS])
        self._memory = Transition(
            self._model, engine.work.step.free, LEAST_ROOM + count + count // 4
        )
        self.request[Ask.MEMORY] = self._memory.address

    def take(
        self, source: mujoco.MjData, data: mujoco.MjData, before: int, law: str, smoothing: float
    ) -> tuple[bool, tuple[Array, Array] | None]:
        """Takes the step from the state of `source`, with `data`, begun with the impulses of the
        workspace at the address `before`: whether it was taken, otherwise it is to be as any other;
        and A and B, or None where they need another way. `state` is the one that it began with."""
        engine = self._engine
        if self._smoothing != smoothing:
            self.smooth(smoothing)
        if self._known is not engine.config:
            self.follow()
        # After a compiled step Python itself is slow, its code no longer at hand: every line of
        # this and of its callers takes ten times what it does in a loop.
        if (self._law != law or self._before != before) and not self._prepare(law, before):
            return False, None
        if engine.stale:
            return False, None
        # As arrays: to find an array's address takes Python longer than to hand it over.
        A, B = np.empty(self._shapes[0]), np.empty(self._shapes[1])
        try:
            stop = self._step(
                self._session, data._address, source._address, self._start, self._address, A, B
            )
        except SystemError as error:
            raise engine.guard.cause(error, data) from None
        if stop == _DONE:
            return True, (A, B)
        if stop > 0:
            engine.guard.recover(data)
            return False, None
        if stop + STOPS == _ROOM:
            self.make_room()
            if self._call(data) == _DONE:
                return True, (A, B)
        return True, None

    def _prepare(self, law: str, before: int) -> bool:
        """Asks for matrices of a step by that law; whether there are any."""
        request = self.request
        if not request[_STAGE] or law not in DIFFERENTIABLE:
            return False
        request[_WANT], request[_LAW], request[_BEFORE] = _MATRICES, DIFFERENTIABLE[law], before
        self._law, self._before = law, before
        return True

    def matrices(
        self, data: mujoco.MjData, law: str, smoothing: float
    ) -> tuple[Array, Array] | None:
        """A and B of the step that was taken with that data, from `state`, which it has again
        afterwards; None where the model, or the step, needs another way."""
        self.smooth(smoothing)
        A, B = np.empty(self._shapes[0]), np.empty(self._shapes[1])
        self.request[Ask.FIRST], self.request[Ask.SECOND] = A.ctypes.data, B.ctypes.data
        return (A, B) if self._ask(_MATRICES, data, law) else None

    def _ask(self, want: int, data: mujoco.MjData, law: str) -> bool:
        """Whether what is wanted was found."""
        engine, request = self._engine, self.request
        if self._known is not engine.config:
            self.follow()
        if not request[_STAGE] or engine.work.step.counts[_WATCHED]:
            return False
        self._law = ""
        request[_WANT], request[_LAW] = want, DIFFERENTIABLE[law]
        stop = self._call(data)
        if stop == _ROOM:
            self.make_room()
            stop = self._call(data)
        if stop == _ERROR:
            engine.guard.recover(data)
        return stop == _DONE

    def columns(self, data: mujoco.MjData, law: str, match: Indices) -> Columns | None:
        """How the problem of the step changes with the state, as differences would have it; match
        (n,): the step's block for each one of the problem. The rest as for `matrices`."""
        self.smooth(0.0)
        if not self._ask(_SLOPES, data, law):
            return None
        slopes, m = self._memory.slopes, self._model
        nv, n, inputs = m.nv, len(match), m.na + m.nu
        out = allocate_columns(2 * nv + inputs, n, nv, m.na)
        parts = (slopes.push_q, slopes.push_v, slopes.push_a, slopes.push_u)
        out.push[:] = np.concatenate(parts, axis=1).T
        out.act[2 * nv :] = np.concatenate([slopes.act_a, slopes.act_u], axis=1).T
        out.speed[:nv] = slopes.speed[match].transpose(2, 0, 1)
        out.gap[:nv] = slopes.gap[match].T
        out.speed_w[:nv] = slopes.speed_w[match].transpose(2, 0, 1)
        out.push_w[:nv] = slopes.push_w[:, :nv].T
        return out

    def _call(self, data: mujoco.MjData) -> int:
        engine = self._engine
        try:  # as `Guard.call` does, without a call of its own
            return self._run(self._session, data._address, self._start, self._address)
        except SystemError as error:
            raise engine.guard.cause(error, data) from None
