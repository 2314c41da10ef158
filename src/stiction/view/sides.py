"""The two sides of a live session: the scene under stiction, and the same scene under MuJoCo."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact.models.registry import parse_contact
from stiction.record import contacts as shown
from stiction.record.comparison import NOSLIP, Load, tuned
from stiction.record.contacts import Contacts
from stiction.record.motion import bodies_to_watch, body_id
from stiction.simulate import EventDriven, TimeStepping
from stiction.simulate.settings import Equality
from stiction.simulate.simulator import Simulator
from stiction.view.session import View
from stiction.view.springs import Spring, pull

Array = NDArray[np.float64]


EVENTS = "event-driven"

STEPPERS = ("time stepping", EVENTS)
"""How time passes on our side."""


class Side(ABC):
    """A scene of its own, with its controller, that takes steps."""

    title: str

    def __init__(self, load: Load, watch: tuple[str, ...]) -> None:
        self.model, self.data, self.controller = load()
        names = watch or bodies_to_watch(self.model, set())
        self._watched = [body_id(self.model, name) for name in names]
        self._start = self.data.xipos[self._watched].copy()
        self.own_friction = float(self.model.geom_friction[:, 0].max(initial=0.0))
        """Largest coefficient of sliding friction that the model gives a geom."""
        self._friction = (self.model.geom_friction.copy(), self.model.pair_friction.copy())
        self._pulled = False
        self._contacts: Contacts | None = shown.none()

    def set_friction(self, friction: float | None) -> None:
        """Gives every geom and pair this coefficient of sliding friction; None: the model's own."""
        model = self.model
        model.geom_friction[:], model.pair_friction[:] = self._friction
        if friction is not None:
            model.geom_friction[:, 0] = friction
            model.pair_friction[:, :2] = friction

    def step(self, count: int, springs: Collection[Spring], strength: float) -> None:
        """Takes the steps, controller and springs included."""
        if self._pulled and not springs:
            self.data.xfrc_applied[:] = 0.0
        self._pulled = bool(springs)
        if self.controller is None and not springs:
            self._step(count)
        else:
            for _ in range(count):
                if self.controller is not None:
                    self.controller(self.model, self.data)
                if springs:
                    pull(self.model, self.data, springs, strength)
                self._step(1)

        self._contacts = None

    def contacts(self) -> Contacts:
        """Of the last step, at the state that it started from."""
        if self._contacts is None:
            self._contacts = self._find_contacts()
        return self._contacts

    @abstractmethod
    def _step(self, count: int) -> None: ...

    @abstractmethod
    def _find_contacts(self) -> Contacts: ...

    def view(self) -> View:
        """As it is now."""
        moved = np.linalg.norm(self.data.xipos[self._watched] - self._start, axis=1)
        travel = float(moved.max(initial=0.0))
        return View(self.title, self.model, self.data, self.contacts(), travel)


class Ours(Side):
    """Under a contact model of stiction, named as `record.parse_contact` names them."""

    def __init__(
        self,
        load: Load,
        watch: tuple[str, ...],
        contact: str,
        friction: float | None,
        equality: Equality,
        stepper: str,
    ) -> None:
        super().__init__(load, watch)
        self._equality = equality
        super().set_friction(friction)
        self.use(contact, stepper)

    def use(self, contact: str, stepper: str) -> None:
        """Takes another contact model, or another of `STEPPERS`, from the next step on."""
        law, events = parse_contact(contact), stepper == EVENTS
        way = EventDriven(dt=float(self.model.opt.timestep)) if events else TimeStepping()
        self.simulator = Simulator(self.model, law, stepper=way, equality=self._equality)
        self.title = f"stiction, {contact}" + (", event-driven" if events else "")

    def set_friction(self, friction: float | None) -> None:
        """As for any side."""
        super().set_friction(friction)
        self.simulator.refresh()

    def _step(self, count: int) -> None:
        self._report = self.simulator.step(self.data, count)

    def _find_contacts(self) -> Contacts:
        return shown.as_arrays(self._report.contacts, self.model, self.data)

    def worst(self) -> float:
        """Largest certificate since the last call."""
        worst = self.simulator.statistics.worst
        self.simulator.reset_statistics()
        return worst


class Theirs(Side):
    """Under MuJoCo: as the model sets it, or tuned against slip (`record.comparison`)."""

    def __init__(
        self, load: Load, watch: tuple[str, ...], way: str, friction: float | None
    ) -> None:
        super().__init__(load, watch)
        noslip = NOSLIP[way]
        if noslip is not None:
            self.model = tuned(self.model, noslip)
        self.set_friction(friction)
        self.title = "MuJoCo" + way.removeprefix("mujoco").replace("-", ", tuned ")

    def _step(self, count: int) -> None:
        mujoco.mj_step(self.model, self.data, count)

    def _find_contacts(self) -> Contacts:
        return shown.as_arrays(shown.mujoco_contacts(self.model, self.data), self.model, self.data)
