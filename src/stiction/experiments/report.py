"""Results as one HTML page that needs no network: tables, plots, pictures, machine, seeds."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from stiction.errors import StictionError
from stiction.experiments.picture import render
from stiction.experiments.result import Cell, Plot, Result, Table

COLOURS = ("#3268a8", "#c8553d", "#2e8b57", "#8a6fb0", "#b8860b", "#5f6b73", "#c45a8c", "#4aa3a2")
"""Of curves, in turn."""

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2328; margin: 2rem auto; max-width: 62rem;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; border-top: 1px solid #d5dadd; padding-top: 1rem; }
h3 { font-size: 1rem; margin-bottom: .3rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #e3e7e9; }
th:first-child, td:first-child { text-align: left; }
th { background: #f3f5f6; } .scroll { overflow-x: auto; }
.note, .facts { color: #55616a; font-size: .9rem; } img { max-width: 100%; border-radius: 4px; }
nav a { margin-right: 1rem; }
"""


def write_report(results: Sequence[Result], path: Path) -> None:
    """Writes the page; the plotting library is part of it."""
    offline, figures = _plotly()
    parts = [_section(result, figures) for result in results]
    links = "".join(f'<a href="#{r.name}">{escape(r.name)}</a>' for r in results)
    quick = " (quick)" if any(r.quick for r in results) else ""
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>stiction: the papers' experiments</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{STYLE}</style><script>{offline.get_plotlyjs()}</script></head><body>
<h1>The papers' experiments, reproduced{quick}</h1>
<p>Absolute times are those of other machines: compare ratios, exponents, counts.</p>
<nav>{links}</nav>
{"".join(parts)}
</body></html>
"""
    path.write_text(page, encoding="utf-8")


def _plotly() -> tuple[Any, Any]:
    try:
        return import_module("plotly.offline"), import_module("plotly.graph_objects")
    except ImportError as error:
        raise StictionError(
            "the report is drawn by plotly, which is not installed: pip install plotly"
        ) from error


def _section(result: Result, figures: Any) -> str:
    facts = [f"{key}: {value}" for key, value in result.machine.items()]
    if result.seeds:
        facts.append(f"seeds: {_ranges(result.seeds)}")
    facts.append(f"run time: {result.seconds:.0f} s")
    counts = ", ".join(f"{key}: {value}" for key, value in result.counts.items())
    return f"""<section id="{result.name}"><h2>{escape(result.title)}</h2>
<p class="note">{escape(result.paper)}. Counts: {escape(counts)}</p>
{"".join(_picture(p) for p in result.pictures)}
{"".join(_table(t) for t in result.tables)}
{"".join(_plot(p, figures) for p in result.plots)}
<ul>{"".join(f"<li>{escape(note)}</li>" for note in result.notes)}</ul>
<p class="facts">{escape("; ".join(facts))}</p></section>
"""


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(text(cell))}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return f"""<h3>{escape(table.title)}</h3>
<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>{note}
"""


def text(cell: Cell) -> str:
    """A cell to read: four digits of a float, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return str(cell)


def markdown(table: Table) -> str:
    """The table as Markdown."""
    lines = [table.columns, tuple("---" for _ in table.columns)]
    lines += [tuple(text(cell) for cell in row) for row in table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _plot(plot: Plot, figures: Any) -> str:
    drawn = figures.Figure()
    for index, line in enumerate(plot.lines):
        mode = "markers" if line.points else "lines+markers" if len(line.x) < 60 else "lines"
        colour = COLOURS[index % len(COLOURS)]
        drawn.add_scatter(
            x=list(line.x),
            y=list(line.y),
            name=line.name,
            mode=mode,
            line={"color": colour, "dash": "dash" if line.dashed else "solid", "width": 1.6},
            marker={"color": colour, "size": 6},
        )
    kind = "log" if plot.log else "linear"
    axis = {"type": kind, "gridcolor": "#e3e7e9", "zeroline": False}
    drawn.update_layout(
        title=plot.title,
        template="none",
        height=420,
        xaxis={**axis, "title": {"text": plot.x}},
        yaxis={**axis, "title": {"text": plot.y}},
        legend={"orientation": "h", "y": -0.2},
    )
    return str(drawn.to_html(full_html=False, include_plotlyjs=False))


def _picture(picture: Any) -> str:
    image = render(picture)
    if image is None:
        return ""
    data = base64.b64encode(image).decode()
    caption = escape(picture.title)
    return f'<figure><img alt="{caption}" src="data:image/png;base64,{data}">' + (
        f'<figcaption class="note">{caption}</figcaption></figure>'
    )


def _ranges(seeds: Sequence[int]) -> str:
    """ "0 to 19" for a run of seeds, else a list."""
    ordered = sorted(seeds)
    if len(ordered) > 2 and ordered == list(range(ordered[0], ordered[-1] + 1)):
        return f"{ordered[0]} to {ordered[-1]}"
    return ", ".join(str(seed) for seed in ordered)
