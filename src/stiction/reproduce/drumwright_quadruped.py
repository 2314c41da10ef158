"""Drumwright, Tables II and III: a quadruped walks over a terrain map for ten seconds."""

from __future__ import annotations

import numpy as np

from stiction.contact import Coulomb, DrumwrightShell, NoSlip, Viscous
from stiction.reproduce.result import (
    Cell,
    Claim,
    Line,
    Picture,
    Plot,
    Progress,
    Result,
    Table,
    verdict,
)
from stiction.reproduce.viscous_ways import BothWays
from stiction.reproduce.walking import FRICTION, Timed, Walker, walk_together
from stiction.simulate import EventDriven

SLIPPERY, ROUGH = 0.1, 1000.0
"""Viscosity of the ground [N s/m]: his, and one on which it walks."""

HIS = {"Drumwright-Shell": 416.284, "no-slip": 301.796, "Lemke": 2936.36, "PPM": 2139.73}
"""Running times [s]."""

NO_SLIP, SHELL = "no-slip, event-driven", "Drumwright-Shell, event-driven"
STEPPED, SHELL_STEPPED = "no-slip, time steps", "Drumwright-Shell, time steps"
CIRCLE, PLAIN, EXACT = "Drumwright-Shell, circle", "NoSlip, compiled", "exact cone, compiled"
VISCOUS, WALKS = f"viscous {SLIPPERY:g}, event-driven", f"viscous {ROUGH:g}, event-driven"
IMPLICIT, SMOOTH = f"viscous {ROUGH:g}, compiled", "no-slip, event-driven, Runge-Kutta"
OURS = (NO_SLIP, STEPPED, SMOOTH, EXACT, PLAIN, WALKS, IMPLICIT)
"""Which must walk, and without a failure."""

SAMPLES = 500
"""Of a curve in the plot."""


def run(quick: bool, progress: Progress) -> Result:
    """Walks by no-slip, Drumwright-Shell, viscous friction, the exact cone, and MuJoCo."""
    return run_sized(0.5 if quick else 10.0, quick, progress)


def run_sized(seconds: float, quick: bool, progress: Progress) -> Result:
    """As `run`, for so long."""
    symplectic, smooth = EventDriven(integrator="symplectic"), EventDriven(integrator="rk4")
    walkers = [
        Walker(NO_SLIP, Timed(NoSlip()), seconds, stepper=symplectic),
        Walker(SHELL, Timed(DrumwrightShell(8)), seconds, stepper=symplectic),
        Walker(STEPPED, Timed(NoSlip()), seconds),
        Walker(SHELL_STEPPED, Timed(DrumwrightShell(8)), seconds),
        # Its augmented Lagrangian takes longest; a part of the way is enough.
        Walker(CIRCLE, Timed(DrumwrightShell()), 0.2 * seconds),
        Walker(VISCOUS, BothWays(SLIPPERY), seconds, stepper=smooth),
        Walker(WALKS, BothWays(ROUGH), seconds, stepper=smooth),
        Walker(SMOOTH, NoSlip(), seconds, stepper=smooth),
        Walker(EXACT, Coulomb(), seconds, friction=0.8),
        Walker(PLAIN, NoSlip(), seconds),
        Walker(IMPLICIT, Viscous(ROUGH), seconds),
        Walker("MuJoCo", None, seconds, friction=0.8),
        Walker("MuJoCo, tuned", None, seconds, friction=0.8, noslip=20),
    ]
    walk_together(walkers, lambda share: progress(share, f"{len(walkers)} walks in turns"))
    by_name = {walker.name: walker for walker in walkers}
    ours = [by_name[name] for name in OURS]
    return Result(
        name="drumwright-quadruped",
        title="Drumwright: a quadruped on a terrain map",
        paper="Drumwright, Rapidly Computable Viscous Friction and No-Slip Rigid Contact Models, "
        "Tables II and III",
        quick=quick,
        tables=(_walks(walkers), _times(walkers), _no_slip(by_name), _viscous(by_name)),
        plots=(_way(walkers),),
        pictures=(
            Picture(
                "The quadruped at the end of its walk, no-slip, event-driven",
                "quadruped",
                tuple(by_name[NO_SLIP].data.qpos),
                {"friction": FRICTION},
                {"distance": 1.8, "azimuth": 115.0, "elevation": -18.0, "z": 0.15,
                 "x": float(by_name[NO_SLIP].data.qpos[0]), "y": 0.0},
            ),
        ),
        claims=_claims(by_name),
        notes=_notes(by_name),
        counts={
            "solves": sum(walker.steps for walker in ours),
            "failures": sum(walker.end != "walked" for walker in ours),
        },
    )  # fmt: skip


def _walks(walkers: list[Walker]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            w.name,
            w.end,
            w.steps,
            w.distance,
            w.lowest,
            min(w.contacts, default=0),
            float(np.mean(w.contacts or [0])),
            max(w.contacts, default=0),
            w.worst,
        )
        for w in walkers
    ]
    return Table(
        "How they walk",
        (
            "contact model",
            "end",
            "steps",
            "distance, m",
            "lowest trunk, m",
            "contacts: least",
            "mean",
            "most",
            "worst violation",
        ),
        tuple(rows),
        "Steps are of 1 ms. His contacts: 1 at least, 6 in the mean, 30 at most. A contact counts "
        "that presses or is within 10 um. mu = 100, of the exact cone and of MuJoCo 0.8.",
    )


def _times(walkers: list[Walker]) -> Table:
    rows: list[tuple[Cell, ...]] = [(w.name, 1e3 * w.per_step, 1e3 * w.per_solve) for w in walkers]
    return Table(
        "Times, all in turns step by step",
        ("contact model", "step with control, ms", "median solve, ms"),
        tuple(rows),
        "What is compiled does not show its solves; the rest goes through Python.",
    )


def _no_slip(by_name: dict[str, Walker]) -> Table:
    pairs = {
        "event-driven, whole simulation": (SHELL, NO_SLIP, False),
        "event-driven, solves alone": (SHELL, NO_SLIP, True),
        "time steps, whole simulation": (SHELL_STEPPED, STEPPED, False),
        "time steps, solves alone": (SHELL_STEPPED, STEPPED, True),
        "time steps, solves alone, circle": (CIRCLE, STEPPED, True),
    }
    rows: list[tuple[Cell, ...]] = []
    for what, (shell, no_slip, solves) in pairs.items():
        a, b = by_name[shell], by_name[no_slip]
        ratio = a.per_solve / b.per_solve if solves else a.per_step / b.per_step
        his = HIS["Drumwright-Shell"] / HIS["no-slip"] if what == next(iter(pairs)) else None
        rows.append((what, his, ratio))
    return Table(
        "Table II: time of Drumwright-Shell over that of no-slip, symplectic Euler, 1 ms",
        ("", "his", "ours"),
        tuple(rows),
        "Drumwright-Shell has eight facets unless it says circle.",
    )


def _viscous(by_name: dict[str, Walker]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, his in ((VISCOUS, HIS["Lemke"] / HIS["PPM"]), (WALKS, None)):
        walker = by_name[name]
        both = walker.contact
        assert isinstance(both, BothWays)
        ppm, lemke = float(np.median(both.ppm)), float(np.median(both.lemke))
        rows.append(
            (
                name,
                len(both.ppm),
                his,
                _whole(walker),
                lemke / ppm,
                float(np.median(both.solves)) / ppm,
                both.failures,
                both.apart,
            )
        )
    return Table(
        "Table III: time of Lemke over that of modified PPM, fourth-order Runge-Kutta, 1 ms",
        (
            "",
            "solves",
            "his, whole simulation",
            "whole simulation",
            "solve with assembly",
            "without",
            "Lemke's failures",
            "accelerations apart",
        ),
        tuple(rows),
        "Each solve is made both ways; the whole simulation by Lemke is the one by PPM with the "
        "time of the one in the place of the other.",
    )


def _whole(walker: Walker) -> float:
    """Time of the walk if Lemke's method stood in the place of PPM, over what it was."""
    both = walker.contact
    assert isinstance(both, BothWays)
    spent = walker.per_step * walker.steps
    count = len(both.ppm)
    more = count * (float(np.median(both.lemke)) - float(np.median(both.ppm)))
    return (spent + more) / spent


def _way(walkers: list[Walker]) -> Plot:
    lines = []
    for w in walkers:
        thin = max(1, w.steps // SAMPLES)
        lines.append(
            Line(w.name, tuple(w.times[::thin]), tuple(w.places[::thin]),
                 dashed=w.name.startswith("MuJoCo"))
        )  # fmt: skip
    return Plot("Way of the trunk", "s", "m", tuple(lines))


def _claims(by_name: dict[str, Walker]) -> tuple[Claim, ...]:
    no_slip, shell, walks = by_name[NO_SLIP], by_name[SHELL], by_name[WALKS]
    whole, solves = shell.per_step / no_slip.per_step, shell.per_solve / no_slip.per_solve
    both = by_name[WALKS].contact
    assert isinstance(both, BothWays)
    lemke = float(np.median(both.lemke)) / float(np.median(both.ppm))
    return (
        Claim(
            "no-slip walks",
            "10 s",
            f"{no_slip.times[-1]:.3g} s, {no_slip.distance:.2f} m: {no_slip.end}",
            verdict(no_slip.end == "walked"),
        ),
        Claim(
            "no-slip is faster than Drumwright-Shell",
            f"{HIS['Drumwright-Shell'] / HIS['no-slip']:.2f} times, whole simulation",
            f"{whole:.2f} times; {solves:.1f} times, solves alone",
            "yes" if min(whole, solves) > 1.0 else "in part" if solves > 1.0 else "no",
        ),
        Claim(
            "modified PPM is faster than Lemke on viscous contacts",
            f"{HIS['Lemke'] / HIS['PPM']:.2f} times, whole simulation",
            f"{_whole(walks):.2f} times; {lemke:.1f} times, solves with assembly",
            verdict(lemke > 1.0),
        ),
    )


def _notes(by_name: dict[str, Walker]) -> tuple[str, ...]:
    slippery = by_name[VISCOUS]
    notes = []
    if slippery.end != "walked":
        notes.append(
            f"On viscous friction of {SLIPPERY:g} N s/m our robot {slippery.end} after "
            f"{slippery.times[-1]:.2f} s: a foot that pushes with 10 N would slip at 100 m/s. The "
            "paper reports running times and rapid movements upon contact, not that it walked; on "
            f"{ROUGH:g} N s/m it does."
        )
    notes += [f"{w.name}: {w.stopped}" for w in by_name.values() if w.stopped]
    notes.append(
        "Robot, gait and terrain are ours. Of his times most is continuous collision detection and "
        "forward dynamics, as of ours: ratios of whole simulations are then near 1, whatever the "
        "solver."
    )
    return tuple(notes)
