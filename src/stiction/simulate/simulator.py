"""`Simulator`: where `mujoco.mj_step(model, data)` stood, contact that sticks."""

from __future__ import annotations

import copy
import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import validation
from stiction.bridge.names import keyframe_of
from stiction.contact.derivatives.derivatives import check_smoothing
from stiction.contact.models.model import ContactModel
from stiction.errors import InvalidInput, StictionError
from stiction.simulate.derivatives.differentiator import Differentiator
from stiction.simulate.derivatives.step_derivatives import StepDerivatives
from stiction.simulate.event_driven.counted import CountedEvents
from stiction.simulate.event_driven.engine import EventDriven
from stiction.simulate.options import is_whole
from stiction.simulate.overlap import warn_of_overlap
from stiction.simulate.report import Report, Statistics
from stiction.simulate.settings import (
    Delassus,
    Equality,
    OnFailure,
    Settings,
    Stepper,
    check_settings,
)
from stiction.simulate.time_stepping.engine import TimeEngine
from stiction.simulate.time_stepping.restitution import check_restitution

Array = NDArray[np.float64]

MOST_STEPS = 2**63 - 1
"""Of one call."""

_INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)


@dataclass(frozen=True)
class State:
    """What `Simulator.get_state` tells: from it a run goes on with the same bits."""

    physics: Array
    """State and inputs, as MuJoCo's `mj_getState` has them (mjSTATE_INTEGRATION)."""
    memory: Any
    """What the simulator begins its next step with: impulses of the last one."""


class Simulator:
    """Steps a MuJoCo model with exact contact.

    model       followed as it changes, but for meshes and height fields: after edits of these call
                `refresh`. It is never written to.
    contact     `Coulomb()` (default; mu from the model), `Coulomb(facets=d)`, `NoSlip()`,
                `Viscous(...)`, `Frictionless()`, `Baraff()`, or any other contact model
    stepper     `TimeStepping()` (default), or `EventDriven(...)`: events between smooth motion, for
                which equality constraints are rigid, and `data` is left evaluated after the step
    equality    "soft": equality constraints are as soft as the model says; "rigid": exact
    delassus    how a step's problem comes to contact space: "factorized", by the factor of the
                mass matrix; "assembly", by the links' inverse articulated-body inertias, in every
                step, which is slower wherever a step was measured
                (benchmarks/delassus_routes.py). Compiled steps solve for velocities and need
                neither
    on_failure  where no solver meets the tolerance: "raise" `SolveFailed`; go on "frictionless" for
                that step; or take the "best" attempt of all. Either is flagged in the report, whose
                certificate says how far the step is off
    warm_start  whether the last step's impulses are tried first; the answer is the same, but for
                `Baraff()` where redundant contacts leave several
    tolerance   certificate that a step must pass once every solver has been tried; the compiled
                solver's answer is taken if it passes 1e-8
    budget      time that a step is to take, all of it, by the wall clock [s]. Where it does not
                suffice for an answer what is at hand is brought nearer by sweeps over the contacts,
                and taken if it passes `tolerance`, flagged in the report; else `on_failure`
                decides. None: bounded by the attempts' own limits
    failures    directory into which the problem of a failed solve is saved
    restitution e in [0, 1], Newton's, of all contacts that close faster than free fall makes them
                in two steps; or (ngeom,) one for each geom, of which a contact has the larger

    One simulator serves one thread at a time; make one for each, or `copy.copy` it. Copies and
    pickles have the last step's impulses with them; statistics begin anew.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        contact: ContactModel | None = None,
        *,
        stepper: Stepper | None = None,
        equality: Equality = "soft",
        delassus: Delassus = "factorized",
        on_failure: OnFailure = "raise",
        warm_start: bool = True,
        tolerance: float = 1e-6,
        budget: float | None = None,
        failures: str | Path | None = None,
        restitution: float | Array = 0.0,
    ) -> None:
        settings = check_settings(
            contact, stepper, equality, delassus, on_failure, warm_start, tolerance, budget,
            failures, restitution,
        )  # fmt: skip
        self._build(model, settings)

    def _build(self, model: mujoco.MjModel, settings: Settings) -> None:
        self.settings = settings
        self.start_overlap = ""
        """Which bodies the last new data started with deep within each other; empty for none."""
        self._model = model
        self._differentiator: Differentiator | None = None
        self._lock, self._stepping = threading.RLock(), False
        self._known: Callable[[], mujoco.MjData | None] = lambda: None
        self._looked_at = self._known  # by `derivatives`
        kind = CountedEvents if isinstance(settings.stepper, EventDriven) else TimeEngine
        self._engine: TimeEngine | CountedEvents = kind(model, settings)
        _all.add(self)

    @property
    def model(self) -> mujoco.MjModel:
        """The user's model."""
        return self._model

    @property
    def contact(self) -> ContactModel:
        """The contact model."""
        return self.settings.contact

    @property
    def stepper(self) -> Stepper:
        """How time passes."""
        return self.settings.stepper

    @property
    def restitution(self) -> Array:
        """(ngeom,) of each geom, in time steps."""
        return check_restitution(self._model, self.settings.restitution)

    @property
    def tolerance(self) -> float:
        """Certificate that a step must pass."""
        return self.settings.tolerance

    def __repr__(self) -> str:
        return f"Simulator(nv={self.model.nv}, contact={self.contact!r}, stepper={self.stepper!r})"

    def __copy__(self) -> Simulator:
        return _restore(self._model, self.settings, self._engine.memory)

    def __deepcopy__(self, memo: dict[int, Any]) -> Simulator:
        return _restore(copy.deepcopy(self._model, memo), self.settings, self._engine.memory)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._model, self.settings, self._engine.memory)

    def refresh(self) -> None:
        """Takes over what was changed in the model since the simulator was made, meshes and height
        fields included.

        A callback may call it within a step: from mjcb_control it holds for that very step
        (`EventDriven`: for the next), from others when the compiled steps that run have ended.
        """
        with self._lock:
            if self._stepping:
                validation.check_model(self.model)
                self._engine.stale = True
                return
            self._differentiator = None
            self._engine.refresh()

    def __call__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """One step with `mj_step`'s signature; model must be the simulator's own."""
        if model is not self.model:
            raise InvalidInput("model", "is not the one that this simulator was made for")
        self.step(data)

    def step(self, data: mujoco.MjData, nstep: int = 1) -> Report:
        """Takes `nstep` steps; returns the report of the last one.

        If a step cannot be taken the state is as it was before that step, and an exception says
        why: `InvalidInput` for a state, input or model that is not valid, `SolveFailed` where no
        solver answered within tolerance.
        """
        if nstep.__class__ is not int:  # asking for the type in general takes a while
            if not is_whole(nstep):
                raise _not_steps(nstep)
            nstep = int(nstep)
        if not 1 <= nstep <= MOST_STEPS:
            raise _not_steps(nstep)
        new = data is None or data is not self._known()
        if new:
            validation.check_data(self._model, data)
            self._known = weakref.ref(data)
        with self._lock:
            if self._stepping:
                raise StictionError("step was called by a callback of this simulator's own step")
            self._stepping = True
            try:
                if new:  # by itself, to see how its bodies lie
                    report = self._engine.step(data, 1)
                    self.start_overlap = warn_of_overlap(report)
                    if nstep == 1:
                        return report
                    nstep -= 1
                return self._engine.step(data, nstep)
            finally:
                self._stepping = False

    def derivatives(self, data: mujoco.MjData, *, smoothing: float = 0.0) -> StepDerivatives:
        """Derivatives of the step that `step(data)` would take, at its modes; data is left as it
        is. Of time steps only. smoothing: see `StepDerivatives.smoothed`; 0 for none."""
        if type(smoothing) is not float or smoothing != 0.0:
            smoothing = check_smoothing(smoothing)
        if data is None or data is not self._looked_at():
            validation.check_data(self._model, data)
            self._looked_at = weakref.ref(data)
        with self._lock:
            source = self._differentiator
            if source is None:
                source = self._differentiator = self._make_differentiator()
            return source.differentiate(data, smoothing)

    def _make_differentiator(self) -> Differentiator:
        if not isinstance(self._engine, TimeEngine):
            raise InvalidInput("stepper", "is EventDriven(): derivatives are those of a time step")
        engine = TimeEngine(self._model, self.settings, divides=False)
        return Differentiator(engine, self._engine)

    def step1(self, data: mujoco.MjData) -> None:
        """Evaluates the state as it is for a controller: kinematics, contacts, velocities and
        sensors, as `mj_step1` does. Then set controls, and `step2` takes the step."""
        validation.check_data(self._model, data)
        mujoco.mj_fwdPosition(self._model, data)
        mujoco.mj_sensorPos(self._model, data)
        mujoco.mj_fwdVelocity(self._model, data)
        mujoco.mj_sensorVel(self._model, data)
        self._engine.overwritten()

    def step2(self, data: mujoco.MjData) -> Report:
        """One step, after `step1`."""
        return self.step(data)

    def reset(self, data: mujoco.MjData, keyframe: int | str | None = None) -> None:
        """Puts the data back to the model's initial state, or to a keyframe, by number or name, and
        drops the last step's impulses."""
        validation.check_data(self._model, data)
        if keyframe is None:
            mujoco.mj_resetData(self._model, data)
        else:
            mujoco.mj_resetDataKeyframe(self._model, data, keyframe_of(self._model, keyframe))
        self.forget()

    def get_state(self, data: mujoco.MjData) -> State:
        """All that the next steps depend on, the last step's impulses included: set again, the run
        goes on with the same bits."""
        validation.check_data(self._model, data)
        physics = np.empty(mujoco.mj_stateSize(self._model, _INTEGRATION))
        mujoco.mj_getState(self._model, data, physics, _INTEGRATION)
        return State(physics, self._engine.memory)

    def set_state(self, data: mujoco.MjData, state: State) -> None:
        """Puts the data and the simulator back to where `get_state` found them, be it of another
        simulator of the same model and settings."""
        validation.check_data(self._model, data)
        if not isinstance(state, State):
            raise InvalidInput("state", f"is {state!r}: what `get_state` gave")
        size = mujoco.mj_stateSize(self._model, _INTEGRATION)
        if state.physics.shape != (size,):
            reason = f"belongs to another model: this one's has shape ({size},)"
            raise InvalidInput("state.physics", reason, state.physics.shape)
        mujoco.mj_setState(self._model, data, state.physics, _INTEGRATION)
        self._engine.memory = state.memory

    @property
    def statistics(self) -> Statistics:
        """Figures over all steps since the last reset."""
        return self._engine.statistics

    def reset_statistics(self) -> None:
        """Starts the statistics anew."""
        self._engine.reset_statistics()

    def forget(self) -> None:
        """Drops the last step's impulses, so that the next step starts from none."""
        self._engine.forget()


def _not_steps(nstep: Any) -> InvalidInput:
    return InvalidInput("nstep", f"is {nstep!r}: a whole number of steps, 1 to 2**63 - 1")


def _restore(model: mujoco.MjModel, settings: Settings, memory: Any) -> Simulator:
    """A simulator that goes on from another one's memory."""
    made = Simulator.__new__(Simulator)
    made._build(model, settings)
    made._engine.memory = memory
    return made


_all: weakref.WeakSet[Simulator] = weakref.WeakSet()
_shared: dict[int, Simulator] = {}
_shared_lock = threading.Lock()

SHARED = 8
"""Simulators that `step` keeps, the last used ones."""


def step(model: mujoco.MjModel, data: mujoco.MjData, nstep: int = 1) -> Report:
    """`Simulator(model).step(data, nstep)`, with a simulator kept for each model."""
    simulator = _shared.get(id(model))
    if simulator is None or simulator._model is not model:
        simulator = _share(model)
    return simulator.step(data, nstep)


def _share(model: mujoco.MjModel) -> Simulator:
    """A simulator that `step` keeps; the oldest is let go where there are too many."""
    made = Simulator(model)
    with _shared_lock:
        _shared.pop(id(model), None)
        _shared[id(model)] = made
        while len(_shared) > SHARED:
            del _shared[next(iter(_shared))]
    return made


def _renew_locks() -> None:
    """In a forked process: the threads that held locks are not in it."""
    global _shared_lock
    _shared_lock = threading.Lock()
    for simulator in _all:
        simulator._lock = threading.RLock()
        if simulator._stepping:
            simulator._stepping = False
            simulator.forget()  # a step was under way, and its impulses are half written


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
