"""Plotly figures of a recording and of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from stiction.contact.problem.modes import Mode
from stiction.record import marks
from stiction.record.comparison import Outcome
from stiction.record.contact_series import ContactSeries
from stiction.record.motion import Motion
from stiction.record.recording import STAGES, Recording
from stiction.tolerances import RESIDUAL

Array = NDArray[np.float64]

COLOURS = ("#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#6940a5", "#dfab01", "#64473a", "#787774")
"""Told apart by eyes that confuse red and green as well."""
DASHES = ("solid", "dash", "dot", "dashdot")
MODES = {mode: f"rgb{colour}" for mode, colour in marks.COLOURS.items()}
"""As on the live page and in clips."""
FLOOR = 1e-18
"""Zero, on a logarithmic axis."""
NOTHING = 1e-9
"""Lengths that a figure need not resolve [m]."""
UNRESOLVED_SPEED = 1e-12
"""Speeds that a figure need not resolve [m/s]."""
MOST_LINES = 8
"""Bodies or pairs that a figure shows; the ones that matter most, and the rest left out."""


def figure(
    title_y: str,
    span: Array | None = None,
    *,
    log: bool = False,
    height: int = 300,
    title_x: str = "time [s]",
) -> go.Figure:
    """An empty figure in the report's style; a logarithmic axis has no minor marks.

    span: the times of the run, so that all its figures are aligned under each other."""
    out = go.Figure()
    out.update_layout(
        template="plotly_white",
        height=height,
        margin={"l": 95, "r": 20, "t": 10, "b": 45},
        hovermode="x unified",
        colorway=COLOURS,
        font={"family": "system-ui, sans-serif", "size": 13},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    out.update_xaxes(title_text=title_x, automargin=False)
    if span is not None:
        out.update_xaxes(range=[float(span[0]), float(span[-1])])
    out.update_yaxes(
        title_text=title_y, exponentformat="power", rangemode="tozero", automargin=False
    )
    if log:
        out.update_yaxes(type="log", rangemode="normal")
    return out


def _line(out: go.Figure, time: Array, values: Array, name: str, **style: object) -> None:
    """Adds a line; each has its own dash, so that one under another is seen."""
    style.setdefault("dash", DASHES[len(out.data) % len(DASHES)])
    out.add_trace(go.Scatter(x=_short(time), y=_short(values), name=name, mode="lines", line=style))


def _decades(out: go.Figure, low: float, high: float) -> None:
    """Sets a logarithmic axis to whole decades around low and high, four of them at least."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    last = max(last, first + 4)
    out.update_yaxes(range=[first - 0.2, last + 0.2], dtick=max(1, round((last - first) / 5)))


def _range_of(out: go.Figure) -> tuple[float, float]:
    """Least and largest value of all lines, for `_decades`."""
    values = [value for trace in out.data for value in trace.y]
    return min(values, default=FLOOR), max(values, default=1.0)


def _at_least(out: go.Figure, most: float, least: float) -> None:
    """Keeps a linear axis from blowing rounding up: it reaches to `least`."""
    if most < least:
        out.update_yaxes(range=[0.0, least])


def _short(values: Array) -> list[float]:
    """Six digits: more are not seen, and would make the page three times as large."""
    return [float(f"{value:.6g}") for value in values]


def _unit(values: Array) -> tuple[float, str]:
    """Factor and unit of length in which the largest value is a number to read."""
    most = float(np.abs(values).max(initial=0.0))
    if most >= 0.5:
        return 1.0, "m"
    return (1e3, "mm") if most >= 5e-4 else (1e6, "um")


def _most(scores: Array) -> list[int]:
    """Indices of the largest scores, in their own order."""
    return sorted(np.argsort(-scores, kind="stable")[:MOST_LINES].tolist())


def slip_displacement(recording: Recording) -> go.Figure:
    """How far the watched bodies moved since the start."""
    return _displacement(recording.time, recording.motion)


def _displacement(time: Array, moved: Motion) -> go.Figure:
    distance = np.linalg.norm(moved.displacement, axis=2)
    factor, unit = _unit(distance)
    out = figure(f"moved since the start [{unit}]", time)
    for body in _most(distance.max(axis=0)) if distance.size else []:
        _line(out, time, factor * distance[:, body], moved.bodies[body])
    _at_least(out, factor * float(distance.max(initial=0.0)), factor * NOTHING)
    out.update_layout(showlegend=True)
    return out


def slip_turn(recording: Recording) -> go.Figure:
    """How far the watched bodies turned since the start."""
    turned = np.degrees(recording.motion.turned)
    out = figure("turned since the start [deg]", recording.time)
    for body in _most(turned.max(axis=0)) if turned.size else []:
        _line(out, recording.time, turned[:, body], recording.motion.bodies[body])
    out.update_layout(showlegend=True)
    return out


def slip_speed(recording: Recording) -> go.Figure:
    """Speed of the watched bodies, and the fastest slip at any pressed contact."""
    out = figure("speed [m/s]", recording.time, log=True)
    speed = recording.motion.speed
    for body in _most(speed.max(axis=0)) if speed.size else []:
        values = np.maximum(speed[:, body], UNRESOLVED_SPEED)
        _line(out, recording.time, values, recording.motion.bodies[body])
    slip = np.maximum(recording.sliding_speed(), UNRESOLVED_SPEED)
    _line(out, recording.time[1:], slip[1:], "slip at contacts", color="#333333", dash="dot")
    _decades(out, UNRESOLVED_SPEED, max(1e-6, _range_of(out)[1]))
    out.update_layout(showlegend=True)
    return out


def penetration(recording: Recording) -> go.Figure:
    """Deepest overlap."""
    factor, unit = _unit(np.concatenate([recording.penetration, recording.overlap]))
    out = figure(f"overlap [{unit}]", recording.time)
    time = recording.time[1:]
    _line(out, time, factor * recording.penetration[1:], "contacts, at the sample")
    rest = "contacts and limits, deepest since the last sample"
    _line(out, time, factor * recording.overlap[1:], rest)
    _at_least(out, _range_of(out)[1], factor * NOTHING)
    return out


def contact_forces(recording: Recording) -> tuple[go.Figure, go.Figure]:
    """Normal forces of every pair of bodies, and the share of friction in use."""
    contacts = recording.contacts
    n, k = len(recording.time), len(contacts.pairs)
    where = contacts.column("sample").astype(int), contacts.column("pair").astype(int)
    normal, used = np.zeros((n, k)), np.zeros((n, k))
    np.add.at(normal, where, contacts.column("normal"))
    tangential, margin = contacts.column("tangential"), contacts.column("margin")
    capacity = np.maximum(tangential + np.maximum(margin, 0.0), FLOOR)
    np.maximum.at(used, where, np.where(contacts.column("normal") > 0.0, tangential / capacity, 0))
    forces = figure("normal force [N]", recording.time)
    friction = figure("friction in use", recording.time)
    for pair in _most(normal.max(axis=0)) if k else []:
        _line(forces, recording.time[1:], normal[1:, pair], " - ".join(contacts.pairs[pair]))
    for pair in _most(normal.mean(axis=0))[: MOST_LINES // 2] if k else []:
        _line(friction, recording.time[1:], used[1:, pair], " - ".join(contacts.pairs[pair]))
    friction.update_yaxes(range=[0, 1.05])
    for out in (forces, friction):
        out.update_layout(showlegend=True)
    return forces, friction


def contact_modes(recording: Recording) -> tuple[go.Figure, go.Figure]:
    """How many contacts stick, slide and separate; and what each pair of bodies does."""
    contacts = recording.contacts
    n, k = len(recording.time), len(contacts.pairs)
    sample, pair = contacts.column("sample").astype(int), contacts.column("pair").astype(int)
    mode = contacts.column("mode").astype(int)
    counts = figure("contacts", recording.time, height=240)
    state = np.full((n, k), -1)
    np.maximum.at(state, (sample, pair), mode)  # sliding outweighs sticking
    for kind, colour in MODES.items():
        number = np.bincount(sample[mode == kind], minlength=n).astype(float)
        counts.add_trace(
            go.Scatter(
                x=_short(recording.time[1:]), y=_short(number[1:]), name=kind.name.lower(),
                mode="lines", stackgroup="contacts", line={"width": 0, "shape": "hv"},
                fillcolor=colour,
            )
        )  # fmt: skip
    pressed = np.bincount(pair, minlength=k).astype(float)
    shown = _most(pressed) if k else []
    rows = {" - ".join(contacts.pairs[p]): state[1:, p] for p in shown}
    return counts, _strips(recording.time, rows)


def _strips(time: Array, rows: dict[str, Array]) -> go.Figure:
    """A strip for each row, coloured by the mode at each of the times but the first; -1: none.

    Names stand above the strips: beside them they would push the axis out of line."""
    strips = figure("", time, height=60 + 44 * max(len(rows), 1))
    scale = [MODES[kind] for kind in (Mode.SEPARATE, Mode.STICK, Mode.SLIDE)]
    numbers = list(range(len(rows)))
    strips.add_trace(
        go.Heatmap(
            x=_short(time[1:]), y=numbers,
            z=[[None if v < 0 else int(v) for v in row] for row in rows.values()],
            zmin=-0.5, zmax=2.5, showscale=False, ygap=24, hoverongaps=False,
            colorscale=[[(i + j) / 3, scale[i]] for i in range(3) for j in (0, 1)],
            text=[[name] * len(row) for name, row in rows.items()], hovertemplate="%{text}<extra/>",
        )
    )  # fmt: skip
    for number, name in enumerate(rows):
        strips.add_annotation(
            x=0, xref="paper", xanchor="left", y=number, yshift=19, text=_plain(name),
            showarrow=False, font={"size": 12},
        )  # fmt: skip
    strips.update_yaxes(range=[len(rows) - 0.5, -0.5], showticklabels=False, showgrid=False)
    strips.update_layout(hovermode="closest")
    return strips


def _plain(text: str) -> str:
    """Plotly reads a few tags in texts: a name has none."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def energy(recording: Recording) -> go.Figure:
    """Potential and kinetic energy against the start."""
    out = figure("energy [J]", recording.time, height=320)
    moved = recording.motion
    potential = moved.potential - moved.potential[0]
    _line(out, recording.time, potential, "potential, from the start")
    _line(out, recording.time, moved.kinetic, "kinetic")
    total = potential + moved.kinetic
    _line(out, recording.time, total, "sum", color="#333333", dash="dot")
    least = 1e-9 * max(float(np.abs(moved.potential).max()), 1e-6)
    if max(map(abs, _range_of(out))) < least:
        out.update_yaxes(range=[-least, least])
    return out


def certificate(recording: Recording) -> go.Figure:
    """Largest violation of any law, and the tolerance."""
    out = figure("largest scaled violation", recording.time, log=True)
    values = np.maximum(recording.worst[1:], FLOOR)
    _line(out, recording.time[1:], values, "worst since the last sample")
    limit = np.full(2, RESIDUAL)
    _line(out, recording.time[[0, -1]], limit, "tolerance", color=COLOURS[1], dash="dash")
    _decades(out, 1e-18, max(1e-6, float(values.max(initial=0.0))))
    return out


def pivots(recording: Recording) -> tuple[go.Figure, go.Figure]:
    """Most pivots of a step, and how many steps each rung answered."""
    out = figure("most of a step", recording.time, height=260)
    _line(out, recording.time[1:], recording.pivots[1:], "pivots")
    rungs = recording.rungs
    bars = figure("", height=90 + 30 * max(len(rungs), 1), title_x="steps")
    bars.add_trace(
        go.Bar(
            x=list(rungs.values()), y=list(rungs), orientation="h", text=list(rungs.values()),
            textposition="auto", cliponaxis=False,
        )
    )  # fmt: skip
    bars.update_yaxes(automargin=True, autorange="reversed")
    bars.update_layout(hovermode="closest")
    return out, bars


def time_by_stage(recording: Recording) -> go.Figure:
    """Where a step's time goes."""
    taken = np.maximum(recording.taken, 1.0)
    large = float(np.median(recording.stages.sum(axis=1) / taken)) > 1e-3
    factor, unit = (1e3, "ms") if large else (1e6, "us")
    out = figure(f"time of a step [{unit}]", recording.time, height=340)
    for column, stage in enumerate(STAGES):
        out.add_trace(
            go.Scatter(
                x=_short(recording.time[1:]),
                y=_short(_smooth(factor * recording.stages[1:, column] / taken[1:])),
                name=stage, mode="lines", stackgroup="stages", line={"width": 0},
            )
        )  # fmt: skip
    return out


def _smooth(values: Array, width: int = 9) -> Array:
    """Running median: single interruptions by the machine are not the step's."""
    if len(values) < width:
        return values
    padded = np.pad(values, width // 2, mode="edge")
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1))


def _longest(outcomes: Sequence[Outcome]) -> Array:
    """Times of the outcome that went on longest."""
    return max((outcome.time for outcome in outcomes), key=lambda time: float(time[-1]))


def compared_motion(outcomes: Sequence[Outcome]) -> go.Figure:
    """How far the body that moved most went, under each contact model."""
    out = figure("moved since the start [m]", _longest(outcomes), log=True, height=380)
    for outcome in outcomes:
        distance = np.linalg.norm(outcome.motion.displacement, axis=2)
        values = np.maximum(distance.max(axis=1, initial=0.0), 1e-12)
        _line(out, outcome.time[1:], values[1:], outcome.name)
    _decades(out, *_range_of(out))
    return out


def compared_penetration(outcomes: Sequence[Outcome]) -> go.Figure:
    """Deepest overlap under each contact model."""
    out = figure("overlap [m]", _longest(outcomes), log=True, height=340)
    for outcome in outcomes:
        _line(out, outcome.time[1:], np.maximum(outcome.penetration[1:], 1e-12), outcome.name)
    _decades(out, *_range_of(out))
    return out


def compared_forces(outcomes: Sequence[Outcome]) -> tuple[go.Figure, go.Figure]:
    """Normal and friction forces of all contacts together, under each contact model."""
    figures = []
    for column, title in (("normal", "normal forces [N]"), ("tangential", "friction [N]")):
        out = figure(f"{title}, summed", _longest(outcomes))
        for outcome in outcomes:
            total = np.zeros(len(outcome.time))
            where = outcome.contacts.column("sample").astype(int)
            np.add.at(total, where, outcome.contacts.column(column))
            _line(out, outcome.time[1:], total[1:], outcome.name)
        out.update_layout(showlegend=True)
        figures.append(out)
    return figures[0], figures[1]


def compared_modes(outcomes: Sequence[Outcome]) -> go.Figure:
    """What the contacts of each model do: sliding where a loaded one slides."""
    time = _longest(outcomes)
    rows = {}
    for outcome in outcomes:
        state = np.full(len(time), -1)
        known = _modes(outcome.contacts, len(outcome.time))
        state[: len(known)] = known
        rows[outcome.name] = state[1:]
    return _strips(time, rows)


def _modes(contacts: ContactSeries, samples: int) -> NDArray[np.int64]:
    """(samples,) the largest mode of the loaded contacts; -1 where there are none."""
    out = np.full(samples, -1)
    loaded = contacts.loaded(samples)
    sample, mode = contacts.column("sample").astype(int), contacts.column("mode").astype(int)
    np.maximum.at(out, sample[loaded], mode[loaded])
    return out


def compared_energy(outcomes: Sequence[Outcome]) -> go.Figure:
    """Potential and kinetic energy together, from the start, under each contact model."""
    out = figure("energy from the start [J]", _longest(outcomes), height=320)
    for outcome in outcomes:
        total = outcome.motion.potential + outcome.motion.kinetic
        _line(out, outcome.time, total - total[0], outcome.name)
    return out


def compared_speed(outcomes: Sequence[Outcome]) -> go.Figure:
    """Time of a step under each contact model."""
    out = figure("", height=100 + 30 * len(outcomes), title_x="time of a step, median [us]")
    out.add_trace(
        go.Bar(
            x=[round(outcome.us_per_step, 2) for outcome in outcomes],
            y=[outcome.name for outcome in outcomes],
            orientation="h",
            marker={"color": [COLOURS[k % len(COLOURS)] for k in range(len(outcomes))]},
            text=[f"{outcome.us_per_step:.1f}" for outcome in outcomes],
            textposition="auto",
        )
    )
    out.update_yaxes(automargin=True, autorange="reversed")
    out.update_layout(hovermode="closest")
    return out
