"""The page of a sweep: heat maps over two of its options."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress, product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from stiction.record import plots
from stiction.record.html import write_page
from stiction.record.machine import machine
from stiction.record.page import Section
from stiction.record.words import number
from stiction.sweeps.run import CRASHED, DONE, FAILED, Row, Value
from stiction.sweeps.table import Sweep

MOST_PANELS = 6
"""Heat maps beside each other; with more, the other options are taken together."""
ACROSS = 3
MOST_CELLS = 150
"""In which numbers still find room."""
MOST_LISTED = 20
"""Runs that ended early, in the list of them."""

_GOOD_AND_BAD = [[0.0, "#d9730d"], [0.5, "#f4ede0"], [1.0, "#0f7b6c"]]
_AMOUNT = "Viridis"


@dataclass(frozen=True)
class _Quantity:
    """What a heat map shows."""

    heading: str
    text: str
    value: Callable[[Row], float | None]
    gather: Callable[[Sequence[float]], float]
    """Of the runs that share a cell."""
    unit: str
    floor: float | None = None
    """Of a logarithmic scale: what is less is drawn there. None: the scale is linear."""
    bounds: tuple[float, float] | None = None
    colours: Any = _AMOUNT


def _quantities(table: Sweep) -> tuple[_Quantity, ...]:
    return (
        _Quantity(
            "Held or dropped",
            f"Share of the runs in which no watched body sank more than {1e3 * table.drop:g} mm.",
            lambda row: row["held"],
            lambda values: float(np.mean(values)),
            "share held",
            bounds=(0.0, 1.0),
            colours=_GOOD_AND_BAD,
        ),
        _Quantity(
            "Slip",
            "Fastest slip at a loaded contact, mean over the second half of a run; the largest of "
            "the runs of a cell, blank where nothing touches any more. What is slower than "
            "1e-6 um/s is drawn there.",
            lambda row: None if row["slip"] is None else 1e6 * row["slip"],
            max,
            "um/s",
            floor=1e-6,
        ),
        _Quantity(
            "Worst certificate",
            "Largest scaled violation of any law of contact in any step; the largest of the runs "
            "of a cell. The tolerance is 1e-8. MuJoCo's own contact has none.",
            lambda row: row["certificate"],
            max,
            "violation",
            floor=1e-16,
        ),
        _Quantity(
            "Cost",
            "Time of a step, the median of a run; the median of the runs of a cell. Runs shared "
            "the machine.",
            lambda row: row["us_per_step"],
            lambda values: float(np.median(values)),
            "us",
        ),
    )


def write_report(table: Sweep, path: str | PathLike[str]) -> Path:
    """Writes the page; returns the path."""
    early = [row for row in table.rows if row["status"] != DONE]
    warnings = []
    if len(table) < table.asked:
        warnings.append(f"{len(table)} of {table.asked} runs: the same command goes on with it.")
    if early:
        count = f"{table.count(FAILED)} failed, {table.count(CRASHED)} crashed"
        listed = f"the first {MOST_LISTED} are" if len(early) > MOST_LISTED else "they are"
        warnings.append(f"Of {len(table)} runs {count}: {listed} at the end.")
    x, y, rest = _axes(table)
    panels = list(product(*rest.values()))
    together = len(panels) > MOST_PANELS
    shown = {} if together else rest
    sections = []
    for quantity in _quantities(table):
        figure = _heat_maps(table, quantity, x, y, shown)
        if figure is not None:
            sections.append(Section(quantity.heading, quantity.text, [figure]))
    settings = [*dict.fromkeys([*table.varied, "contact", "seed"])]
    return write_page(
        path,
        "sweep.html",
        title=f"{Path(table.scene).name}: a sweep",
        runs=len(table),
        seconds=f"{table.seconds:g}",
        varied={name: ", ".join(map(_word, values)) for name, values in table.varied.items()},
        together=", ".join(rest) if together else "",
        warnings=warnings,
        sections=sections,
        columns=[*settings, "status", "simulated s", "error"],
        kinds=["number"] * len(settings) + ["", "number", ""],
        early=[
            [
                *(_word(row[name]) for name in settings),
                row["status"],
                "" if row["simulated"] is None else f"{row['simulated']:.4g}",
                row["error"],
            ]
            for row in early[:MOST_LISTED]
        ],
        machine=machine(),
    )


def _axes(table: Sweep) -> tuple[str, str, dict[str, list[Value]]]:
    """The two settings with most values, and the others that have more than one."""
    several = {name: values for name, values in table.varied.items() if len(values) > 1}
    ranked = sorted(several, key=lambda name: (name == "contact", -len(several[name])))
    x, y = [*ranked, *(["seed"] if "seed" not in ranked else []), ""][:2]
    return x, y, {name: several[name] for name in ranked[2:]}


def _heat_maps(
    table: Sweep, quantity: _Quantity, x: str, y: str, shown: dict[str, list[Value]]
) -> go.Figure | None:
    """A heat map for each combination of what is shown apart that has values, on one scale; None
    where none has."""
    across, up = _ticks(table, x), _ticks(table, y)
    panels = [dict(zip(shown, values, strict=True)) for values in product(*shown.values())]
    grids = [_grid(table, quantity, (x, across), (y, up), panel) for panel in panels]
    told = [any(value is not None for line in grid for value in line) for grid in grids]
    panels, grids = list(compress(panels, told)), list(compress(grids, told))
    known = [value for grid in grids for line in grid for value in line if value is not None]
    if not known:
        return None
    columns = min(len(panels), ACROSS)
    lines = math.ceil(len(panels) / columns)
    titles = [", ".join(f"{k} {_word(v)}" for k, v in panel.items()) for panel in panels]
    out = make_subplots(
        rows=lines, cols=columns, subplot_titles=titles if shown else None,
        horizontal_spacing=0.09, vertical_spacing=0.24 / lines,
    )  # fmt: skip
    numbered = len(across) * len(up) * columns <= MOST_CELLS
    for k, grid in enumerate(grids):
        out.add_trace(
            go.Heatmap(
                x=[_word(v) for v in across],
                y=[_word(v) for v in up],
                z=[[_height(quantity, value) for value in line] for line in grid],
                text=[["" if value is None else number(value) for value in line] for line in grid],
                texttemplate="%{text}" if numbered else None,
                hovertemplate=f"{x} %{{x}}<br>{y} %{{y}}<br>%{{text}} {quantity.unit}<extra/>",
                coloraxis="coloraxis", hoverongaps=False, xgap=1, ygap=1,
            ),
            row=k // columns + 1, col=k % columns + 1,
        )  # fmt: skip
    style = plots.figure(y, title_x=x).layout
    out.update_layout(
        template=style.template, font=style.font,
        margin={"l": 80, "r": 20, "t": 30 if shown else 10, "b": 45},
        height=lines * (110 + 34 * min(max(len(up), 4), 12)),
        coloraxis=_colours(quantity, known),
    )  # fmt: skip
    out.update_xaxes(title_text=x, type="category", showgrid=False)
    out.update_yaxes(title_text=y, type="category", showgrid=False)
    return out


def _ticks(table: Sweep, name: str) -> list[Value]:
    if not name:
        return [""]
    return table.varied.get(name) or sorted({row[name] for row in table.rows})


def _grid(
    table: Sweep,
    quantity: _Quantity,
    x: tuple[str, list[Value]],
    y: tuple[str, list[Value]],
    panel: dict[str, Value],
) -> list[list[float | None]]:
    """The quantity for each value of y and x, of the runs of the panel; None without an answer."""
    cells: dict[tuple[Value, Value], list[float]] = {}
    for row in table.rows:
        value = quantity.value(row)
        if value is None or any(row[name] != wanted for name, wanted in panel.items()):
            continue
        cells.setdefault((row[y[0]] if y[0] else "", row[x[0]] if x[0] else ""), []).append(value)
    return [[quantity.gather(cells[v, u]) if (v, u) in cells else None for u in x[1]] for v in y[1]]


def _height(quantity: _Quantity, value: float | None) -> float | None:
    """Where a value is on the scale of colours."""
    if value is None or quantity.floor is None:
        return value
    return math.log10(max(value, quantity.floor))


def _colours(quantity: _Quantity, known: Sequence[float]) -> dict[str, Any]:
    bar: dict[str, Any] = {"title": {"text": quantity.unit}}
    low, high = quantity.bounds or (0.0, max(max(known), 1e-12))
    if quantity.floor is not None:
        heights = [math.log10(max(value, quantity.floor)) for value in known]
        low, high = math.floor(min(heights)), math.ceil(max(heights))
        high = max(high, low + 1)
        decades = range(int(low), int(high) + 1, max(1, round((high - low) / 5)))
        bar |= {"tickvals": list(decades), "ticktext": [f"1e{decade}" for decade in decades]}
    return {"cmin": low, "cmax": high, "colorscale": quantity.colours, "colorbar": bar}


def _word(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
