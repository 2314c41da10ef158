"""Results as one HTML page that needs no network: claims, tables, plots, pictures, machine."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from plotly.offline import get_plotlyjs

from stiction.record.plots import COLOURS, figure
from stiction.reproduce.picture import render
from stiction.reproduce.result import Cell, Claim, Picture, Plot, Result, Table

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2328; margin: 2rem auto; max-width: 68rem;
       padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 3.5rem; border-top: 1px solid #d5dadd;
     padding-top: 1.2rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #e3e7e9;
         vertical-align: top; }
th { background: #f3f5f6; font-weight: 600; vertical-align: bottom; }
th:first-child, td:first-child, .words { text-align: left; }
td:first-child { white-space: nowrap; } .claims td { white-space: normal; }
td.theirs, th.theirs { color: #7a4a12; background: #fbf6ee; }
.claims td, .claims th { text-align: left; } .scroll { overflow-x: auto; }
.yes, .no, .part { font-weight: 600; white-space: nowrap; }
.yes { color: #0f7b4c; } .no { color: #b3261e; } .part { color: #a8690a; }
.claims a { white-space: nowrap; }
.note, .facts { color: #55616a; font-size: .9rem; margin: .3rem 0; }
figure { display: inline-block; margin: .5rem .8rem .5rem 0; vertical-align: top; }
img { max-width: 100%; border-radius: 4px; } figcaption { color: #55616a; font-size: .9rem; }
nav a { margin-right: 1rem; white-space: nowrap; }
"""

SHADES = {"yes": "yes", "in part": "part", "no": "no"}
"""Of verdicts, as classes."""

DOUBLES = tuple(2**k for k in range(11))
"""Marks of a logarithmic axis of sizes."""

THEIRS = ("his", "Lloyd", "exponent he expects")
"""How the heads of columns begin that hold a paper's figures."""


def write_report(results: Sequence[Result], path: Path) -> None:
    """Writes the page; the plotting library is part of it."""
    parts = [_section(result) for result in results]
    links = " ".join(f'<a href="#{r.name}">{escape(r.name)}</a>' for r in results)
    quick = " (quick)" if any(r.quick for r in results) else ""
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>stiction: the papers' experiments</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{STYLE}</style><script>{get_plotlyjs()}</script></head><body>
<h1>The papers' experiments, reproduced{quick}</h1>
<p>Absolute times are those of other machines: compare ratios, exponents, counts. Ours are
processor time of one thread, so that other work on the machine is not counted.
Columns of this colour hold <span class="theirs" style="color:#7a4a12">the papers' figures</span>.
</p>
<nav>{links}</nav>
{_summary(results)}
{"".join(parts)}
</body></html>
"""
    path.write_text(page, encoding="utf-8")


def _summary(results: Sequence[Result]) -> str:
    rows = "".join(
        f'<tr><td><a href="#{r.name}">{escape(r.name)}</a></td>{_claim(claim)}</tr>'
        for r in results
        for claim in r.claims
    )
    solves = sum(r.counts.get("solves", 0) for r in results)
    failures = sum(r.counts.get("failures", 0) for r in results)
    return f"""<h3>All claims</h3><div class="scroll"><table class="claims">
<tr><th>experiment</th><th>claim</th><th>theirs</th><th>ours</th><th>holds</th></tr>{rows}</table>
</div><p class="note">Solves by our own methods: {solves}, of which failed: {failures}.</p>
"""


def _claim(claim: Claim) -> str:
    return (
        f"<td>{escape(claim.text)}</td><td>{escape(claim.theirs)}</td><td>{escape(claim.ours)}</td>"
        f'<td class="{SHADES[claim.holds]}">{claim.holds}</td>'
    )


def _section(result: Result) -> str:
    facts = [f"{key}: {value}" for key, value in result.machine.items()]
    facts.append(f"seeds: {ranges(result.seeds)}" if result.seeds else "nothing is drawn by chance")
    facts.append(f"run time: {result.seconds:.0f} s")
    counts = ", ".join(f"{value} {key}" for key, value in result.counts.items())
    claims = "".join(f"<tr>{_claim(claim)}</tr>" for claim in result.claims)
    return f"""<section id="{result.name}"><h2>{escape(result.title)}</h2>
<p class="note">{escape(result.paper)}. By our own methods: {escape(counts)}.</p>
{"".join(_picture(p) for p in result.pictures)}
<h3>Claims</h3><div class="scroll"><table class="claims">
<tr><th>claim</th><th>theirs</th><th>ours</th><th>holds</th></tr>{claims}</table></div>
{"".join(_table(t) for t in result.tables)}
{"".join(_plot(p) for p in result.plots)}
<ul>{"".join(f"<li>{escape(note)}</li>" for note in result.notes)}</ul>
<p class="facts">{escape("; ".join(facts))}</p></section>
"""


def _table(table: Table) -> str:
    columns = zip(*table.rows, strict=True)
    found = [_kind(*column) for column in zip(table.columns, columns, strict=True)]
    kinds = [f' class="{kind}"' if kind else "" for kind in found]
    lines = [
        "".join(
            f"<{tag}{kind}>{escape(text(cell))}</{tag}>"
            for kind, cell in zip(kinds, line, strict=True)
        )
        for tag, line in (("th", table.columns), *(("td", row) for row in table.rows))
    ]
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"""<h3>{escape(table.title)}</h3>
<div class="scroll"><table>{body}</table></div>{note}
"""


def _kind(head: str, cells: Sequence[Cell]) -> str:
    """How a column is shown: words from the left, numbers (and counts such as 9 of 10) from the
    right."""
    if head.startswith(THEIRS):
        return "theirs"
    worded = any(isinstance(cell, str) and not cell[:1].isdigit() for cell in cells)
    return "words" if worded else ""


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


def _plot(plot: Plot) -> str:
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
    body = drawn.to_html(full_html=False, include_plotlyjs=False, config={"displayModeBar": False})
    return f"<h3>{escape(plot.title)}</h3>{body}"


def colours(plot: Plot) -> list[str]:
    """Of the lines, in their order."""
    kins = list(dict.fromkeys(line.kin or line.name for line in plot.lines))
    return [COLOURS[kins.index(line.kin or line.name) % len(COLOURS)] for line in plot.lines]


def _short(values: Sequence[float]) -> list[float]:
    """Six digits: more are not seen, and would make the page three times as large."""
    return [float(f"{value:.6g}") for value in values]


def _picture(picture: Picture) -> str:
    image = render(picture)
    if image is None:
        return ""
    data = base64.b64encode(image).decode()
    caption = escape(picture.title)
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def ranges(seeds: Sequence[int]) -> str:
    """ "0 to 19" for a run of seeds, else a list."""
    ordered = sorted(seeds)
    if len(ordered) > 2 and ordered == list(range(ordered[0], ordered[-1] + 1)):
        return f"{ordered[0]} to {ordered[-1]}"
    return ", ".join(str(seed) for seed in ordered)
