"""Reports as one HTML file each, with plotly's script inside: they open without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.io import to_html
from plotly.offline import get_plotlyjs

from stiction.record import plots
from stiction.record.comparison import Outcome
from stiction.record.machine import machine
from stiction.record.recording import Recording
from stiction.record.words import length, number, speed

Section = tuple[str, str, Sequence[go.Figure]]
"""Heading, a sentence on what is shown, the figures."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff;
       max-width: 1080px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 34px 0 2px; }
p { margin: 2px 0 8px; color: #555; }
.warning { background: #fdf0e3; border-left: 4px solid #d9730d; color: #222; padding: 10px 14px;
           margin: 14px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(155px, 1fr)); gap: 10px;
         margin: 18px 0 6px; }
.tile { background: #f5f7f8; border-radius: 6px; padding: 10px 14px; }
.tile b { display: block; font-size: 18px; font-weight: 600; } .tile span { color: #666; }
table { border-collapse: collapse; margin: 8px 0; } th, td { text-align: left;
        padding: 4px 18px 4px 0; border-bottom: 1px solid #e6e6e6; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
"""


def write_report(recording: Recording, path: str | PathLike[str]) -> Path:
    """Writes the report of a run; returns the path."""
    trajectory = recording.trajectory
    lead = (
        f"{escape(trajectory.contact)}, {recording.steps} steps of {1e3 * trajectory.timestep:g} ms"
    )
    body = [
        f"<h1>{escape(trajectory.name or 'run')}</h1><p>{lead}. Drag over a figure to look closer, "
        "double click to go back.</p>"
    ]
    if recording.interrupted or recording.failure:
        why = recording.failure or "Stopped by Ctrl-C."
        end = f"Ended at {recording.time[-1]:.4g} s, {recording.asked:g} s were asked for. "
        body.append(f'<div class="warning">{escape(end + why)}</div>')
    body.append(_tiles(summary(recording)))
    body += [_section(*section) for section in _sections(recording)]
    return _write(path, trajectory.name or "run", body)


def write_comparison(outcomes: Sequence[Outcome], path: str | PathLike[str], *, name: str) -> Path:
    """Writes the report of a comparison; returns the path."""
    bodies = ", ".join(outcomes[0].motion.bodies) if outcomes else ""
    body = [
        f"<h1>{escape(name)}: contact models side by side</h1>",
        f"<p>Watched: {escape(bodies) or 'nothing'}. Creep is the mean speed over the second half "
        "of the run, sink the way down since the start, of the body that moved most.</p>",
        _table(COLUMNS, [row(outcome) for outcome in outcomes]),
    ]
    for outcome in outcomes:
        if outcome.failure:
            text = f"{outcome.name} ended at {outcome.time[-1]:.4g} s: {outcome.failure}"
            body.append(f'<div class="warning">{escape(text)}</div>')
    sections: list[Section] = [
        (
            "Slip",
            "How far the watched body that moved most is from its start; what is less than 1e-12 m "
            "is drawn there.",
            [plots.compared_motion(outcomes)],
        ),
        (
            "Penetration",
            "Deepest overlap at a contact; what is less than 1e-12 m is drawn there.",
            [plots.compared_penetration(outcomes)],
        ),
        ("Time", "One after another on this machine.", [plots.compared_speed(outcomes)]),
    ]
    body += [_section(*section) for section in sections]
    return _write(path, f"{name}: comparison", body)


COLUMNS = ("contact", "creep um/s", "sink um", "penetration um", "us/step", "certificate", "ended")


def row(outcome: Outcome) -> tuple[str, ...]:
    """One line of a comparison's table, under `COLUMNS`."""
    return (
        outcome.name,
        number(1e6 * outcome.creep),
        number(1e6 * outcome.sink),
        number(1e6 * float(outcome.penetration.max(initial=0.0))),
        f"{outcome.us_per_step:.1f}",
        "-" if outcome.worst is None else f"{outcome.worst:.0e}",
        "early" if outcome.failure or outcome.interrupted else "",
    )


def summary(recording: Recording) -> dict[str, str]:
    """The figures of a run that matter most, by name."""
    pushed = float(recording.penetration.max(initial=0.0))
    return {
        "simulated": f"{recording.time[-1] - recording.time[0]:.4g} s",
        "of real time": f"{recording.speed:.3g} x",
        "time of a step": f"{recording.us_per_step:.1f} us",
        "creep": speed(recording.motion.creep(recording.time)),
        "deepest overlap": length(pushed),
        "worst certificate": f"{float(recording.worst.max(initial=0.0)):.1e}",
    }


def _sections(recording: Recording) -> list[Section]:
    watched = ", ".join(recording.motion.bodies[:8]) or "none"
    slip = [plots.slip_displacement(recording), plots.slip_speed(recording)]
    if recording.motion.turned.max(initial=0.0) > 1e-3:
        slip.insert(1, plots.slip_turn(recording))
    penetration = [plots.penetration(recording)]
    return [
        (
            "Slip",
            f"Watched bodies: {escape(watched)}. Slip at contacts is the fastest sliding of any "
            "that presses; what is slower than 1e-12 m/s is drawn there.",
            slip,
        ),
        ("Penetration", "How deep bodies overlap, before each step.", penetration),
        (
            "Contact forces",
            "By pair of bodies, the heaviest loaded ones. At 1 friction is at the edge of its "
            "cone, and the contact slides. How contacts that are redundant share a load is not "
            "unique.",
            plots.contact_forces(recording),
        ),
        (
            "Contact modes",
            "Blue sticks, orange slides, grey bears no force; of a pair, orange where any of its "
            "contacts slides.",
            plots.contact_modes(recording),
        ),
        ("Energy", "Potential: gravity and springs.", [plots.energy(recording)]),
        (
            "Certificate",
            "Largest scaled violation of any law of contact, recomputed from each step's own "
            "numbers.",
            [plots.certificate(recording)],
        ),
        (
            "Pivots",
            "Iterations of Newton's method, or pivots where a pivoting solver answered; below, how "
            "many steps each way answered.",
            plots.pivots(recording),
        ),
        (
            "Time by stage",
            "Smooth and collision are MuJoCo's own work. Running median over nine samples.",
            [plots.time_by_stage(recording)],
        ),
    ]


def _section(heading: str, text: str, figures: Sequence[go.Figure]) -> str:
    """One section; `text` is HTML already."""
    drawn = "".join(
        to_html(
            figure,
            full_html=False,
            include_plotlyjs=False,
            config={"displayModeBar": False, "responsive": True},
        )
        for figure in figures
    )
    return f"<section><h2>{escape(heading)}</h2><p>{text}</p>{drawn}</section>"


def _tiles(figures: Mapping[str, str]) -> str:
    tiles = (
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value in figures.items()
    )
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def cells(tag: str, line: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=number' if 0 < k < len(line) - 1 else ''}>{escape(cell)}</{tag}>"
            for k, cell in enumerate(line)
        )

    lines = [cells("th", columns), *(cells("td", line) for line in rows)]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _write(path: str | PathLike[str], title: str, body: Sequence[str]) -> Path:
    facts = [(name, value) for name, value in machine().items()]
    versions = f"<section><h2>Machine and versions</h2>{_table(('', ''), facts)}</section>"
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - stiction</title><style>{_STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head><body>{''.join(body)}{versions}</body></html>"
    )
    path = Path(path)
    path.write_text(text, encoding="utf-8")
    return path


def save_series(recording: Recording, path: str | PathLike[str]) -> Path:
    """Writes the series that the figures are drawn from as .npz; returns the path."""
    path = Path(path)
    contacts, moved = recording.contacts, recording.motion
    columns = ("sample", "pair", "normal", "tangential", "margin", "slip", "gap", "mode")
    series: dict[str, Any] = {f"contact_{name}": contacts.column(name) for name in columns}
    with path.open("wb") as file:
        np.savez_compressed(
            file,
            time=recording.time,
            bodies=np.array(moved.bodies, np.str_),
            displacement=moved.displacement,
            turned=moved.turned,
            speed=moved.speed,
            potential=moved.potential,
            kinetic=moved.kinetic,
            penetration=recording.penetration,
            overlap=recording.overlap,
            worst=recording.worst,
            pivots=recording.pivots,
            stages=recording.stages,
            stage_names=np.array(list(recording.seconds), np.str_),
            steps=recording.taken,
            rung=np.array([max(r, key=lambda k: r[k]) if r else "" for r in recording.rung]),
            pairs=np.array(contacts.pairs, np.str_).reshape(-1, 2),
            **series,
        )
    return path
