"""`Replay`: a trajectory shown again, with the contacts of the step that starts at each sample."""

from __future__ import annotations

from math import inf, isfinite

import mujoco
import numpy as np

from stiction.errors import InvalidInput, StictionError
from stiction.record.contacts import Contacts, none
from stiction.record.contacts_again import ContactsAgain
from stiction.record.motion import bodies_to_watch, body_id
from stiction.record.trajectory import Trajectory
from stiction.view.session import Session, View


class Replay(Session):
    """Plays the samples at their times; `seek` goes to any of them."""

    def __init__(self, trajectory: Trajectory) -> None:
        if not len(trajectory):
            raise InvalidInput("trajectory", "holds no samples")
        super().__init__(trajectory.name)
        self.trajectory = trajectory
        model = trajectory.model()
        self.model, self.data = model, mujoco.MjData(model)
        names = trajectory.watch or bodies_to_watch(model, set())
        self._watched = [body_id(model, name) for name in names]
        self._again: ContactsAgain | None = None
        try:
            self._again = ContactsAgain(trajectory)
        except StictionError as error:  # recorded under a model that has no name here
            self.notice = f"Contacts are not shown: {error}"
        self._clock, self._worst = 0.0, 0.0
        self._show(0)
        self._start = self.data.xipos[self._watched].copy()

    @property
    def time(self) -> float:
        """Of the sample that is shown [s]."""
        return float(self.trajectory.time[self.sample])

    @property
    def span(self) -> tuple[float, float]:
        """First and last time [s]."""
        return float(self.trajectory.time[0]), float(self.trajectory.time[-1])

    @property
    def worst(self) -> float:
        """Largest certificate of the steps that were taken for the contacts."""
        return self._worst

    def views(self) -> tuple[View, ...]:
        """The one side."""
        moved = np.linalg.norm(self.data.xipos[self._watched] - self._start, axis=1)
        title = ", ".join(filter(None, (self.name, self.trajectory.contact)))
        travel = float(moved.max(initial=0.0))
        return (View(title, self.model, self.data, self._contacts, travel),)

    def seek(self, time: float) -> None:
        """Shows the last sample that is not later than `time` [s]."""
        if not isfinite(time):
            raise InvalidInput("time", f"is {time}: seconds")
        first, last = self.span
        self._clock = min(max(float(time), first), last)
        # A sample's own time, through the slider and back, may come a rounding too low.
        within = self._clock + 0.5 * self.trajectory.timestep
        self._show(int(np.searchsorted(self.trajectory.time, within, "right")) - 1)

    def advance(self, elapsed: float, allowance: float = inf) -> None:
        """Goes on by `elapsed` [s] of real time, if playing; pauses at the end."""
        if not self.playing:
            return
        self.seek(self._clock + elapsed * self.speed)
        if self._clock >= self.span[1]:
            self.playing = False

    def play(self, playing: bool = True) -> None:
        """Plays, from the start if the end was reached, or pauses."""
        if playing and self._clock >= self.span[1]:
            self.reset()
        super().play(playing)

    def step(self) -> None:
        """The next sample; paused then."""
        self.play(False)
        following = min(self.sample + 1, len(self.trajectory) - 1)
        self.seek(float(self.trajectory.time[following]))

    def reset(self) -> None:
        """Back to the first sample."""
        self.history.clear()
        self._worst = 0.0
        self.seek(self.span[0])

    def _show(self, sample: int) -> None:
        self.sample = sample
        self.trajectory.put(self.data, sample)
        mujoco.mj_forward(self.model, self.data)
        self._contacts = self._find_contacts()

    def _find_contacts(self) -> Contacts:
        if self._again is None:
            return none()
        try:
            found, worst = self._again.find(self.sample)
        except StictionError as error:
            self.notice = f"No contacts at {self.time:.4g} s: {error}"
            return none()
        self._worst = max(self._worst, worst)
        self.history.add(self.time, found.fastest, 0.0, worst)
        return found
