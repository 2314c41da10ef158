"""`Live`: a scene that is simulated while one looks at it, with MuJoCo's contact beside it."""

from __future__ import annotations

from math import inf, isfinite
from time import perf_counter

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiction.contact.models.registry import parse_contact
from stiction.errors import InvalidInput, StictionError, unknown
from stiction.record.comparison import NOSLIP, Load, quiet
from stiction.record.recording import Controller
from stiction.simulate.settings import Equality
from stiction.view.session import Session, View
from stiction.view.sides import STEPPERS, Ours, Side, Theirs
from stiction.view.springs import grab

START = "as loaded"
"""The scene's own start, among the keyframes."""

NOTHING = "nothing"
"""Beside: no second side."""

BESIDE = (*NOSLIP, NOTHING)
"""What may stand beside."""

TOGETHER = 4
"""Quick steps between two looks at the clock: each call takes and gives back the interpreter."""

QUICK = 1e-3
"""What a quick step takes [s], both sides."""

REACH = 1000.0
"""How far out a body may be pulled, over the model's extent."""


class Live(Session):
    """Both sides start together, step together, and feel the same springs.

    load      makes the scene anew: model, data at the start, controller
    contact   contact model, as `record.parse_contact` names it
    friction  coefficient of sliding friction of all geoms; None: the model's own
    beside    "mujoco", "mujoco-A", "mujoco-C" (tuned, see `record.compare`) or "nothing"
    watch     bodies whose travel is told; none: the free ones
    stepper   "time stepping" or "event-driven"
    """

    def __init__(
        self,
        load: Load,
        *,
        name: str = "",
        contact: str = "coulomb",
        friction: float | None = None,
        beside: str = "mujoco",
        equality: Equality = "soft",
        watch: tuple[str, ...] = (),
        stepper: str = STEPPERS[0],
    ) -> None:
        super().__init__(name)
        self._load, self._watch, self._equality = load, watch, equality
        self.contact, self.friction = _check_contact(contact), _check_friction(friction)
        self.beside, self.stepper = _check_beside(beside), _check_stepper(stepper)
        self.keyframe = START
        self.strength = 1.0
        self._together = 1
        self.reset()

    # --- Settings -----------------------------------------------------------------------

    def set_contact(self, contact: str) -> None:
        """Another contact model; the state stays."""
        self.ours.use(_check_contact(contact), self.stepper)
        self.contact = contact
        self.notice = ""

    def set_stepper(self, stepper: str) -> None:
        """Another way for time to pass on our side; the state stays."""
        self.ours.use(self.contact, _check_stepper(stepper))
        self.stepper = stepper
        self.notice = ""

    @property
    def keyframes(self) -> tuple[str, ...]:
        """Where a scene can start: its own start, and the model's keyframes."""
        model = self.ours.model
        return START, *(model.key(k).name or f"keyframe {k}" for k in range(model.nkey))

    def set_keyframe(self, keyframe: str) -> None:
        """Another start, from which both sides go on."""
        if keyframe not in self.keyframes:
            raise InvalidInput("keyframe", unknown(keyframe, self.keyframes))
        self.keyframe = keyframe
        self.reset()

    def set_control(self, actuator: int, value: float) -> None:
        """Sets an actuator's control on both sides, until the next reset."""
        if not isfinite(value):
            raise InvalidInput("control", f"is {value}: a number")
        for side in self._sides():
            side.data.ctrl[actuator] = value

    def set_friction(self, friction: float | None) -> None:
        """Another mu for all geoms on both sides; None: the model's own."""
        self.friction = _check_friction(friction)
        for side in self._sides():
            side.set_friction(self.friction)
        self.notice = ""

    def set_beside(self, beside: str) -> None:
        """Another neighbour. Starts both sides anew, since only then they can be compared."""
        self.beside = _check_beside(beside)
        self.reset()

    def set_strength(self, strength: float) -> None:
        """How hard springs pull; 1 is usual."""
        if not (isfinite(strength) and 0.0 <= strength <= 1000.0):
            raise InvalidInput("strength", f"is {strength}: a number from 0 to 1000")
        self.strength = float(strength)

    # --- Pulling ------------------------------------------------------------------------

    def grab(self, visitor: int, body: int, point: ArrayLike, target: ArrayLike) -> None:
        """The visitor takes the body at a point and pulls it to a target, both in the world [m]."""
        spring = grab(self.ours.model, self.ours.data, body, self._point("point", point))
        spring.target = self._point("target", target)
        self.springs[visitor] = spring

    def drag(self, visitor: int, target: ArrayLike) -> None:
        """The visitor's mouse went on to a target in the world [m]."""
        if visitor in self.springs:
            self.springs[visitor].target = self._point("target", target)

    def release(self, visitor: int) -> None:
        """The visitor lets go, if anything was held."""
        self.springs.pop(visitor, None)

    def _point(self, name: str, point: ArrayLike) -> NDArray[np.float64]:
        array = np.asarray(point, float)
        reach = REACH * float(self.ours.model.stat.extent)
        if array.shape != (3,) or not (np.abs(array - self.ours.model.stat.center) <= reach).all():
            raise InvalidInput(name, f"is {point!r}: three numbers within {reach:g} m")
        return array

    # --- The clock ----------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulated [s]."""
        return float(self.ours.data.time)

    @property
    def worst(self) -> float:
        """Largest certificate since the start or the last reset."""
        return self._worst

    def reset(self) -> None:
        """Loads the scene anew; settings and play state stay, springs do not."""
        self.ours = Ours(
            self._start, self._watch, self.contact, self.friction, self._equality, self.stepper
        )
        self.theirs: Theirs | None = None
        if self.beside != NOTHING:
            self.theirs = Theirs(self._start, self._watch, self.beside, self.friction)
        self._owed, self._worst = 0.0, 0.0
        self.springs.clear()
        self.history.clear()
        self.notice = ""

    def _start(self) -> tuple[mujoco.MjModel, mujoco.MjData, Controller | None]:
        """The scene anew, at the keyframe that was chosen."""
        model, data, controller = self._load()
        if self.keyframe != START:
            mujoco.mj_resetDataKeyframe(model, data, self.keyframes.index(self.keyframe) - 1)
            mujoco.mj_forward(model, data)
        return model, data, controller

    def play(self, playing: bool = True) -> None:
        """Plays, or pauses."""
        super().play(playing)
        self._owed = 0.0
        if playing:
            self.notice = ""

    def step(self) -> None:
        """One step of both sides; the session is paused then."""
        self.play(False)
        self._take(1, inf)

    def advance(self, elapsed: float, allowance: float = inf) -> None:
        """Steps by `elapsed` [s] of real time, if playing, in at most `allowance` [s] of it.

        What does not fit is not made up for later: the simulation is then slower than asked.
        """
        self.behind = False
        if not self.playing:
            return
        self._owed += elapsed * self.speed
        steps = int(self._owed / self.ours.model.opt.timestep)
        taken = self._take(steps, perf_counter() + allowance)
        self._owed -= steps * self.ours.model.opt.timestep
        self.behind = self.playing and taken < steps

    def _take(self, steps: int, deadline: float) -> int:
        """Takes the steps, as many as there is time for, a few at least; returns how many."""
        taken = 0
        with quiet() as warnings:
            try:
                while taken < steps and (taken == 0 or perf_counter() < deadline):
                    count = min(self._together, steps - taken)
                    began = perf_counter()
                    for side in self._sides():
                        side.step(count, self.springs.values(), self.strength)
                    taken += count
                    quick = perf_counter() - began < QUICK * count
                    self._together = TOGETHER if quick else 1
            except (StictionError, mujoco.FatalError) as error:
                super().play(False)
                self.notice = f"Paused at {self.time:.4g} s, the state is kept. {error}"
        if warnings:
            self.notice = f"MuJoCo warned at {self.time:.4g} s: {warnings[0]}"
        if taken:
            self._sample()
        return taken

    def _sample(self) -> None:
        worst = self.ours.worst()
        self._worst = max(self._worst, worst)
        beside = 0.0 if self.theirs is None else self.theirs.contacts().fastest
        self.history.add(self.time, self.ours.contacts().fastest, beside, worst)

    def _sides(self) -> tuple[Side, ...]:
        return (self.ours,) if self.theirs is None else (self.ours, self.theirs)

    def views(self) -> tuple[View, ...]:
        """Ours, then what stands beside it."""
        return tuple(side.view() for side in self._sides())


def _check_contact(contact: str) -> str:
    parse_contact(contact)
    return contact


def _check_friction(friction: float | None) -> float | None:
    if friction is None:
        return None
    if not (isfinite(friction) and friction >= 0.0):
        raise InvalidInput("mu", f"is {friction}: a number, zero or more")
    return float(friction)


def _check_stepper(stepper: str) -> str:
    if stepper not in STEPPERS:
        raise InvalidInput("stepper", unknown(stepper, STEPPERS))
    return stepper


def _check_beside(beside: str) -> str:
    if beside not in BESIDE:
        raise InvalidInput("beside", unknown(beside, BESIDE))
    return beside
