"""The last seconds of what the plots show."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SPAN = 10.0
"""Simulated time that is kept [s]."""

MOST = 2000
"""Samples that are kept, however close they are."""


class History:
    """Slip on both sides and the certificate over simulated time."""

    def __init__(self) -> None:
        self._rows: deque[tuple[float, float, float, float]] = deque(maxlen=MOST)

    def add(self, time: float, slip: float, beside: float, worst: float) -> None:
        """Keeps a sample: time [s], slip of ours and of what stands beside [m/s], certificate.

        What is later than `time` is dropped: the clock was set back.
        """
        rows = self._rows
        while rows and rows[-1][0] >= time:
            rows.pop()
        rows.append((time, slip, beside, worst))
        while rows[0][0] < time - SPAN:
            rows.popleft()

    def clear(self) -> None:
        """Forgets all."""
        self._rows.clear()

    def columns(self) -> tuple[Array, Array, Array, Array]:
        """Time, slip, slip beside, certificate: (n,) each."""
        rows = np.array(self._rows, float).reshape(-1, 4)
        return rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3]
