"""The live plots: slip on both sides, and the certificate."""

from __future__ import annotations

from typing import Any

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

SLOWEST = 1e-2
"""Least top of the slip's axis [mm/s]: ticks have three decimals."""

_TIME = uplot.Series(label="t [s]")
_HEIGHT = 150


class Plots:
    """Two charts, whose time runs with the simulation's."""

    def __init__(self, gui: viser.GuiApi, *, beside: bool) -> None:
        self._folder = gui.add_folder("Plots")
        self._gui, self._beside = gui, beside
        self._add()

    def _add(self) -> None:
        lines = [_TIME, uplot.Series(label="stiction", stroke=OURS, width=2)]
        if self._beside:
            lines.append(uplot.Series(label="beside", stroke=BESIDE, width=2))
        with self._folder:
            self._shown = _range_of(())
            self._slip = self._chart("slip [mm/s]", lines, self._shown)
            self._worst = self._chart(
                "certificate, log10",
                [
                    _TIME,
                    uplot.Series(label="certificate", stroke=OURS, width=2),
                    uplot.Series(label="tolerance", stroke="#888888", dash=(6, 4)),
                ],
                (-18.0, -4.0),
            )

    def _chart(self, title: str, lines: list[uplot.Series], shown: tuple[float, float]) -> Any:
        return self._gui.add_uplot(
            (np.zeros(1),) * len(lines),
            tuple(lines),
            title=title,
            scales=_scales(shown),
            axes=(uplot.Axis(), uplot.Axis(size=56)),
            legend=uplot.Legend(live=False),
            height=_HEIGHT,
            padding=(12, 16, 0, 0),
        )

    def refresh(self, history: History, *, beside: bool) -> None:
        """Draws what the history holds now; `beside`: whether there are two sides."""
        if beside != self._beside:  # another legend
            self._beside = beside
            self._slip.remove()
            self._worst.remove()
            self._add()
        time, slip, other, worst = history.columns()
        if not len(time):
            time = slip = other = worst = np.zeros(1)
        sides = (1e3 * slip, 1e3 * other) if beside else (1e3 * slip,)
        shown = _range_of(sides)
        if shown != self._shown:  # a chart is made anew for its scales
            self._shown = shown
            self._slip.scales = _scales(shown)
        self._slip.data = (time, *sides)
        tolerance = np.full(len(time), np.log10(RESIDUAL))
        self._worst.data = (time, np.log10(np.maximum(worst, LEAST)), tolerance)


def _scales(shown: tuple[float, float]) -> dict[str, uplot.Scale]:
    return {"x": uplot.Scale(time=False), "y": uplot.Scale(range=shown)}


def _range_of(sides: tuple[Array, ...]) -> tuple[float, float]:
    """Of the slip's axis: from zero, and never so near that rounding fills the chart; in steps, so
    that the axis does not shake."""
    most = max((float(side.max(initial=0.0)) for side in sides), default=0.0)
    top = SLOWEST
    while top < 1.05 * most:
        top *= 2.0
    return 0.0, top
