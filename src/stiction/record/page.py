"""What the reports of runs and comparisons say and show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from stiction.record import plots
from stiction.record.comparison import NOSLIP, Outcome
from stiction.record.html import write_page
from stiction.record.machine import machine
from stiction.record.motion import middle_of
from stiction.record.recording import Recording
from stiction.record.render.encode import can_encode, encode_clip, png
from stiction.record.render.film import Film, Look, data_url, shoot
from stiction.record.render.offscreen import NoGraphics
from stiction.record.trajectory import Trajectory
from stiction.record.words import length, number, speed

WIDTH, HEIGHT = 560, 340
"""Of a scene in a report [pixels]."""
FRAMES, SMOOTH = 72, 12.0
"""Frames of its clip at most; shown in a second at least, faster than real time if need be."""
CLIP_WAIT = 30.0
"""How long a report waits for its clip to be drawn [s]."""


class Section(NamedTuple):
    """A part of a report: a sentence on what the figures show, and the figures."""

    heading: str
    text: str
    figures: Sequence[go.Figure]


def write_report(recording: Recording, path: str | PathLike[str], *, clip: bool = True) -> Path:
    """Writes the report of a run; returns the path. `clip`: whether the scene is drawn in it."""
    trajectory = recording.trajectory
    warning = ""
    if recording.interrupted or recording.failure:
        end = f"Ended at {recording.time[-1]:.4g} s, {recording.asked:g} s were asked for."
        warning = f"{end} {recording.failure or 'Stopped by Ctrl-C.'}"
    if recording.start_overlap:
        said = recording.start_overlap
        warning = f"{said[0].upper()}{said[1:]}. {warning}".strip()
    return write_page(
        path,
        "run.html",
        title=trajectory.name or "run",
        contact=trajectory.contact,
        steps=recording.steps,
        milliseconds=f"{1e3 * trajectory.timestep:g}",
        warning=warning,
        seen=_seen([trajectory]) if clip else None,
        tiles=summary(recording),
        sections=_sections(recording),
        machine=machine(),
    )


def write_comparison(
    outcomes: Sequence[Outcome], path: str | PathLike[str], *, name: str, clip: bool = True
) -> Path:
    """Writes the report of a comparison; returns the path. `clip`: whether two of the outcomes, the
    first of ours and the first of MuJoCo's if there are both, are drawn in it."""
    bodies = ", ".join(outcomes[0].motion.bodies) if outcomes else ""
    warnings = [
        f"{outcome.name} ended at {outcome.time[-1]:.4g} s: {outcome.failure}"
        for outcome in outcomes
        if outcome.failure
    ]
    rows = [row(outcome) for outcome in outcomes]
    shown = len(COLUMNS) if any(line[-1] for line in rows) else -1  # the last one where one ended
    return write_page(
        path,
        "comparison.html",
        title=f"{name}: contact models side by side",
        watched=bodies or "nothing",
        columns=COLUMNS[:shown],
        kinds=("", *("number" for _ in COLUMNS[1:-1]), "")[:shown],
        rows=[line[:shown] for line in rows],
        warnings=warnings,
        seen=_seen([outcome.trajectory for outcome in _two(outcomes)]) if clip else None,
        sections=_compared(outcomes),
        machine=machine(),
    )


def _two(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """One of ours and one of MuJoCo's, or what there is."""
    ours = [outcome for outcome in outcomes if outcome.worst is not None]
    theirs = [outcome for outcome in outcomes if outcome.worst is None]
    return [*ours[:1], *theirs[:1]] if ours and theirs else outcomes[:2]


class Seen(NamedTuple):
    """A scene in a report."""

    picture: str
    """Address of an image; empty where there are no graphics."""
    clip: str
    """Address of a clip; empty where there is no ffmpeg."""
    text: str


def _seen(trajectories: Sequence[Trajectory]) -> Seen:
    """The scene, drawn, under each of the contact models."""
    titles = [title_of(trajectory.contact) for trajectory in trajectories]
    size = Look(width=WIDTH * len(trajectories), height=HEIGHT)
    film = shoot(trajectories, titles=titles, most=FRAMES, look=size)
    film = replace(film, fps=max(film.fps, SMOOTH))
    span = float(film.time[-1] - film.time[0])
    pace = span * film.fps / max(len(film.time) - 1, 1)
    told = "Green contacts stick, magenta ones slide, grey ones bear nothing; arrows are forces."
    try:
        frames = _in_time(film)
    except NoGraphics as error:
        return Seen("", "", f"There is no picture: {error}.")
    if len(frames) < len(film.time):
        told += f" Graphics are slow here: the first {film.time[len(frames) - 1]:.2g} s."
    picture = data_url(png(frames[len(frames) // 2]), "image/png")
    if not can_encode():
        return Seen(picture, "", f"{told} A clip needs pip install 'stiction[render]'.")
    clip = data_url(encode_clip(frames, film.fps), "video/mp4")
    return Seen(picture, clip, f"{told} At {pace:.2g} x real time.")


def _in_time(film: Film) -> list[NDArray[np.uint8]]:
    """The frames, as many of the first ones as can be drawn in `CLIP_WAIT`."""
    frames, began = [], perf_counter()
    for frame in film.frames():
        frames.append(frame)
        if perf_counter() - began > CLIP_WAIT:
            break
    return frames


def title_of(contact: str) -> str:
    """What stands over a scene under that contact model, or that way of MuJoCo's."""
    if contact in NOSLIP:
        return "MuJoCo" + contact.removeprefix("mujoco").replace("-", ", tuned ")
    return f"stiction, {contact}"


def _compared(outcomes: Sequence[Outcome]) -> list[Section]:
    return [
        Section(
            "Slip",
            "How far the watched body that moved most is from its start; what is less than 1e-12 m "
            "is drawn there.",
            [plots.compared_motion(outcomes)],
        ),
        Section(
            "Penetration",
            "Deepest overlap at a contact; what is less than 1e-12 m is drawn there.",
            [plots.compared_penetration(outcomes)],
        ),
        Section(
            "Contact forces",
            "Of all contacts together, normal forces and lengths of friction forces.",
            plots.compared_forces(outcomes),
        ),
        Section(
            "Contact modes",
            "Green sticks, magenta slides: where any loaded contact does. MuJoCo has no modes: "
            "what slips faster than 1 um/s is drawn as sliding.",
            [plots.compared_modes(outcomes)],
        ),
        Section(
            "Energy",
            "Potential (gravity and springs) and kinetic together.",
            [plots.compared_energy(outcomes)],
        ),
        Section("Time", "One after another on this machine.", [plots.compared_speed(outcomes)]),
    ]


COLUMNS = (
    "contact", "moves um/s", "slips um/s", "sinks um", "overlap um", "us/step", "certificate",
    "ended",
)  # fmt: skip


def row(outcome: Outcome) -> tuple[str, ...]:
    """One line of a comparison's table, under `COLUMNS`."""
    return (
        outcome.name,
        number(1e6 * outcome.net_speed),
        number(1e6 * outcome.slip),
        number(1e6 * outcome.sink),
        number(1e6 * float(outcome.penetration.max(initial=0.0))),
        f"{outcome.us_per_step:.1f}",
        "-" if outcome.worst is None else f"{outcome.worst:.0e}",
        "early" if outcome.failure or outcome.interrupted else "",
    )


def summary(recording: Recording) -> dict[str, str]:
    """The figures of a run that matter most, by name."""
    half = slice(middle_of(recording.time), None)
    return {
        "simulated": f"{recording.time[-1] - recording.time[0]:.4g} s",
        "a step, median": f"{recording.us_per_step:.1f} us, {recording.step_speed:.3g} x real time",
        "whole run, controller and recording too": f"{recording.speed:.3g} x real time",
        "net speed, second half": speed(recording.motion.net_speed(recording.time)),
        "slip at loaded contacts, second half": speed(
            float(recording.sliding_speed()[half].mean())
        ),
        "deepest overlap, all steps": length(float(recording.overlap.max(initial=0.0))),
        "worst certificate, all steps": f"{float(recording.worst.max(initial=0.0)):.1e}",
    }


def _sections(recording: Recording) -> list[Section]:
    watched = ", ".join(recording.motion.bodies[:8]) or "none"
    slip = [plots.slip_displacement(recording), plots.slip_speed(recording)]
    if recording.motion.turned.max(initial=0.0) > 1e-3:
        slip.insert(1, plots.slip_turn(recording))
    penetration = [plots.penetration(recording)]
    return [
        Section(
            "Slip",
            f"Watched bodies: {watched}. Slip at contacts is the fastest sliding of any "
            "that bears 1 % of the largest force or more; what is slower than 1e-12 m/s is drawn "
            "there.",
            slip,
        ),
        Section("Penetration", "How deep bodies overlap, before each step.", penetration),
        Section(
            "Contact forces",
            "By pair of bodies, the heaviest loaded ones. Friction in use is |f_t| / (mu f_n): at "
            "1 it is at the edge of its cone, and the contact slides. How contacts that are "
            "redundant share a load is not unique.",
            plots.contact_forces(recording),
        ),
        Section(
            "Contact modes",
            "Green sticks, magenta slides, grey bears no force; of a pair, magenta where any of "
            "its contacts slides.",
            plots.contact_modes(recording),
        ),
        Section("Energy", "Potential: gravity and springs.", [plots.energy(recording)]),
        Section(
            "Certificate",
            "Largest scaled violation of any law of contact, recomputed from each step's own "
            "numbers.",
            [plots.certificate(recording)],
        ),
        Section(
            "Pivots",
            "Iterations of Newton's method, or pivots where a pivoting solver answered; below, how "
            "many steps each way answered.",
            plots.pivots(recording),
        ),
        Section(
            "Time by stage",
            "Smooth and collision are MuJoCo's own work. Running median over nine samples.",
            [plots.time_by_stage(recording)],
        ),
    ]


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
