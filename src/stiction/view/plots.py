"""The live plots: slip on both sides, and the certificate."""

from __future__ import annotations

import numpy as np
import viser
from numpy.typing import NDArray
from viser import uplot

from stiction.tolerances import RESIDUAL
from stiction.view.history import History

Array = NDArray[np.float64]

OURS, BESIDE = "#0b7a3e", "#c02020"
"""Colours of the lines."""

LEAST = 1e-18
"""Certificate that is drawn for none at all: rounding of rounding."""

_TIME = uplot.Series(label="t [s]")
_HEIGHT = 150


class Plots:
    """Two charts, whose time runs with the simulation's."""

    def __init__(self, gui: viser.GuiApi, *, beside: bool) -> None:
        self._beside = beside
        lines = [_TIME, uplot.Series(label="stiction", stroke=OURS, width=2)]
        if beside:
            lines.append(uplot.Series(label="beside", stroke=BESIDE, width=2))
        none = np.zeros(1)
        self._slip = gui.add_uplot(
            (none,) * len(lines),
            tuple(lines),
            title="slip [mm/s]",
            scales={"x": uplot.Scale(time=False)},
            legend=uplot.Legend(live=False),
            height=_HEIGHT,
            padding=(12, 16, 0, 0),
        )
        self._worst = gui.add_uplot(
            (none, none, none),
            (
                _TIME,
                uplot.Series(label="certificate", stroke=OURS, width=2),
                uplot.Series(label="tolerance", stroke="#888888", dash=(6, 4)),
            ),
            title="certificate, log10",
            scales={"x": uplot.Scale(time=False), "y": uplot.Scale(range=(-18.0, -4.0))},
            legend=uplot.Legend(live=False),
            height=_HEIGHT,
            padding=(12, 16, 0, 0),
        )

    def refresh(self, history: History) -> None:
        """Draws what the history holds now."""
        time, slip, beside, worst = history.columns()
        if not len(time):
            time = slip = beside = worst = np.zeros(1)
        sides = (1e3 * slip, 1e3 * beside) if self._beside else (1e3 * slip,)
        self._slip.data = (time, *sides)
        tolerance = np.full(len(time), np.log10(RESIDUAL))
        self._worst.data = (time, np.log10(np.maximum(worst, LEAST)), tolerance)
