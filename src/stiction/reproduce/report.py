"""What the page on the experiments shows: claims, tables, plots, pictures, machine."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go

from stiction.record.html import write_page
from stiction.record.plots import COLOURS, figure
from stiction.reproduce.picture import render
from stiction.reproduce.result import Cell, Picture, Plot, Result, Table

SHADES = {"yes": "yes", "in part": "part", "no": "no"}
"""Of verdicts, as classes."""

DOUBLES = tuple(2**k for k in range(11))
"""Marks of a logarithmic axis of sizes."""

THEIRS = ("his", "Lloyd", "exponent he expects")
"""How the heads of columns begin that hold a paper's figures."""


def write_report(results: Sequence[Result], path: Path) -> None:
    """Writes the page on all results."""
    quick = " (quick)" if any(result.quick for result in results) else ""
    write_page(
        path,
        "experiments.html",
        title=f"The papers' experiments, reproduced{quick}",
        results=results,
        solves=sum(result.counts.get("solves", 0) for result in results),
        failures=sum(result.counts.get("failures", 0) for result in results),
        shades=SHADES,
        png=_png,
        kinds=_kinds,
        cells=_cells,
        figure=_figure,
        facts=_facts,
    )


def _facts(result: Result) -> str:
    facts = [f"{key}: {value}" for key, value in result.machine.items()]
    facts.append(f"seeds: {ranges(result.seeds)}" if result.seeds else "nothing is drawn by chance")
    facts.append(f"run time: {result.seconds:.0f} s")
    return "; ".join(facts)


def _cells(table: Table) -> list[list[str]]:
    return [[text(cell) for cell in row] for row in table.rows]


def _kinds(table: Table) -> list[str]:
    """Classes of the columns; the first names the rows."""
    columns = list(zip(table.columns, zip(*table.rows, strict=True), strict=True))
    return ["", *(_kind(*column) for column in columns[1:])]


def _kind(head: str, cells: Sequence[Cell]) -> str:
    """Class of a column: words are set from the left, numbers (and counts such as 9 of 10) from
    the right."""
    if head.startswith(THEIRS):
        return "theirs"
    worded = any(isinstance(cell, str) and not cell[:1].isdigit() for cell in cells)
    return "" if worded else "number"


def text(cell: Cell) -> str:
    """A cell to read: three digits of a float, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        if cell != cell:
            return ""
        cell += 0.0  # of -0 it makes 0
        return f"{cell:.0f}" if 100.0 <= abs(cell) < 1e6 else f"{cell:.3g}"
    return str(cell)


def markdown(table: Table) -> str:
    """The table as Markdown."""
    lines = [table.columns, tuple("---" for _ in table.columns)]
    lines += [tuple(text(cell) for cell in row) for row in table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _figure(plot: Plot) -> go.Figure:
    drawn = figure(plot.y, log=plot.log, height=420, title_x=plot.x)
    for line, colour in zip(plot.lines, colours(plot), strict=True):
        mode = "markers" if line.points else "lines+markers" if len(line.x) < 60 else "lines"
        drawn.add_scatter(
            x=_short(line.x),
            y=_short(line.y),
            name=line.name,
            mode=mode,
            line={"color": colour, "dash": "dash" if line.dashed else "solid", "width": 1.6},
            marker={"color": colour, "size": 6},
        )
    if plot.log:
        ends = [x for line in plot.lines for x in line.x]
        ticks = [size for size in DOUBLES if min(ends) <= size <= max(ends)]
        drawn.update_xaxes(type="log", tickvals=ticks)
        drawn.update_yaxes(dtick=1)
    else:
        drawn.update_yaxes(rangemode="normal")
    drawn.update_layout(hovermode="closest")
    return drawn


def colours(plot: Plot) -> list[str]:
    """Of the lines, in their order."""
    kins = list(dict.fromkeys(line.kin or line.name for line in plot.lines))
    return [COLOURS[kins.index(line.kin or line.name) % len(COLOURS)] for line in plot.lines]


def _short(values: Sequence[float]) -> list[float]:
    """Six digits: more are not seen, and would make the page three times as large."""
    return [float(f"{value:.6g}") for value in values]


def _png(picture: Picture) -> str:
    """The picture as the address of an image, or "" where nothing can render it."""
    image = render(picture)
    return "" if image is None else f"data:image/png;base64,{base64.b64encode(image).decode()}"


def ranges(seeds: Sequence[int]) -> str:
    """ "0 to 19" for a run of seeds, else a list."""
    ordered = sorted(seeds)
    if len(ordered) > 2 and ordered == list(range(ordered[0], ordered[-1] + 1)):
        return f"{ordered[0]} to {ordered[-1]}"
    return ", ".join(str(seed) for seed in ordered)
