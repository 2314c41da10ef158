"""Frames per second and speed against real time, as they truly are."""

from __future__ import annotations

from time import perf_counter

WINDOW = 0.5
"""Real time over which they are measured [s]."""


class Pace:
    """`frame` is called once for each frame that was sent."""

    def __init__(self) -> None:
        self.frames = 0.0
        """Per second."""
        self.speed = 0.0
        """Simulated over real time."""
        self._since, self._last, self._count, self._time = 0.0, 0.0, 0, 0.0

    def frame(self, time: float) -> bool:
        """Counts a frame at simulated `time` [s]; whether the figures are new.

        After a pause the count starts anew.
        """
        now = perf_counter()
        paused = now - self._last > WINDOW
        self._last = now
        if paused:
            self._since, self._count, self._time = now, 0, time
            return False
        self._count += 1
        passed = now - self._since
        if passed < WINDOW:
            return False
        self.frames = self._count / passed
        self.speed = max(0.0, time - self._time) / passed
        self._since, self._count, self._time = now, 0, time
        return True
