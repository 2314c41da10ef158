"""What the page shows and steers: a clock that plays, pauses, steps and resets, and its sides.

A session belongs to one thread. It never raises because of what happens in a simulation: it pauses,
keeps the state, and says what happened in `notice`. Wrong arguments raise InvalidInput.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, isfinite

import mujoco

from stiction.errors import InvalidInput
from stiction.record.contacts import Contacts
from stiction.view.history import History
from stiction.view.springs import Spring

SPEEDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Simulated over real time, to choose from."""


@dataclass(eq=False)
class View:
    """One side as it is to be drawn."""

    title: str
    model: mujoco.MjModel
    data: mujoco.MjData
    """Evaluated: `xpos`, `xmat` and the contacts fit together."""
    contacts: Contacts
    travel: float
    """How far the watched body that moved most is from its start [m]."""


class Session(ABC):
    """See the module's head."""

    name: str
    history: History
    springs: dict[int, Spring]
    """By visitor."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.playing = False
        self.speed = 1.0
        self.behind = False
        """Whether the last call of `advance` ran out of its allowance."""
        self.notice = ""
        self.history = History()
        self.springs = {}

    @property
    @abstractmethod
    def time(self) -> float:
        """Simulated [s]."""

    @property
    @abstractmethod
    def worst(self) -> float:
        """Largest certificate since the start or the last reset."""

    @abstractmethod
    def views(self) -> tuple[View, ...]:
        """Ours, and what stands beside it, if anything."""

    @abstractmethod
    def advance(self, elapsed: float, allowance: float = inf) -> None:
        """Goes on by `elapsed` [s] of real time, if playing, in at most `allowance` [s] of it."""

    @abstractmethod
    def step(self) -> None:
        """One step, or sample; the session is paused then."""

    @abstractmethod
    def reset(self) -> None:
        """Back to the start; settings and play state stay."""

    def play(self, playing: bool = True) -> None:
        """Plays, or pauses."""
        self.playing = playing

    def set_speed(self, speed: float) -> None:
        """Simulated over real time; positive."""
        if not (isfinite(speed) and 0.0 < speed <= 1000.0):
            raise InvalidInput("speed", f"is {speed}: a number from 0 to 1000")
        self.speed = float(speed)
