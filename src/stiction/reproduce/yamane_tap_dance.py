"""Yamane and Nakamura, Table II: a humanoid taps the floor, frequent impacts."""

from __future__ import annotations

from math import degrees

from stiction.reproduce import humanoids
from stiction.reproduce.humanoids import Run, Tally
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
from stiction.scenes.humanoid import tap_dance

FRAMES = 9670
RAISED = 1250
"""Frame in which the right foot is up between two taps."""

METHODS: dict[str, humanoids.Method] = {
    "lexicographic, 1e-10": humanoids.lexicographic_method(1e-10),
    "lexicographic, 1e-08": humanoids.lexicographic_method(1e-8),
    "lexicographic, 1e-04": humanoids.lexicographic_method(1e-4),
    "search": humanoids.search_method,
    "stiction.lcp, lexicographic": humanoids.library_method("lexicographic"),
}


def run(quick: bool, progress: Progress) -> Result:
    """Success, pivots and time of lexicographic Lemke and of the search."""
    return run_sized(1200 if quick else FRAMES, 5 if quick else 1, quick, progress)


def run_sized(frames: int, every: int, quick: bool, progress: Progress) -> Result:
    """As `run`, over so many frames; other methods get one in `every`."""
    found = humanoids.study("tap-dance", tap_dance, frames, METHODS, progress, every, RAISED)
    by_search, exact = found.by_search, found.exact
    return Result(
        name="yamane-tap-dance",
        title="Yamane and Nakamura: tap dance of a humanoid",
        paper="Yamane and Nakamura, A Numerically Robust LCP Solver, Table II",
        quick=quick,
        tables=(
            _table(by_search, found.ours),
            _costs(by_search, found.ours),
            _simulation(by_search, exact),
            _served(found.served),
        ),
        plots=(
            Plot(
                "Vertical force of the floor on the feet (exact cone)",
                "s",
                "N",
                tuple(
                    Line(f"{side} foot", tuple(exact.times), tuple(force))
                    for side, force in exact.forces.items()
                ),
            ),
        ),
        pictures=(Picture("The dance, between two taps", "tap-dance", tuple(by_search.qpos)),),
        claims=_claims(by_search),
        notes=_notes(by_search, exact),
        counts=found.counts,
    )


def _table(by_search: Run, ours: dict[str, Tally]) -> Table:
    his = {"lexicographic, 1e-10": ("9620 of 9656", "13, 7, 16"), "search": ("9670 of 9670", "0")}
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *his.get(name, (None, None)),
            f"{tally.success} of {tally.frames}",
            ", ".join(str(kind) for kind in tally.kinds) if any(tally.kinds) else "0",
        )
        for name, tally in {**by_search.tallies, **ours}.items()
    ]
    return Table(
        "Frames solved; failures as no solution, cycle, error",
        ("method", "his success", "his failures", "success", "failures"),
        tuple(rows),
        "The first three are the textbook's method.",
    )


def _costs(by_search: Run, ours: dict[str, Tally]) -> Table:
    his = {"lexicographic, 1e-10": (71102 / 9656, 0.375), "search": (34335 / 9670, 0.182)}
    rows: list[tuple[Cell, ...]] = []
    for name, tally in {**by_search.tallies, **ours}.items():
        pivots, time = his.get(name, (None, None))
        frames = max(tally.frames, 1)
        rows.append((name, pivots, tally.pivots / frames, time, 1e3 * tally.seconds / frames))
    return Table(
        "Pivots and time of a solve",
        ("method", "his pivots", "pivots", "his time, ms", "time, ms"),
        tuple(rows),
        "The textbook's method is numpy on a dense tableau: its time is not comparable with that "
        "of compiled code, its pivots are.",
    )


def _served(served: dict[str, humanoids.Served]) -> Table:
    return Table(
        "The same dance by servos: deepest a sole sinks, turn about the vertical at the end",
        ("simulator", "sunk, um", "turned, degrees"),
        tuple((kind, 1e6 * one.sunk, degrees(one.yaw)) for kind, one in served.items()),
    )


def _simulation(by_search: Run, exact: Run) -> Table:
    return Table(
        "The simulations",
        ("", "his, search", "ours, search", "ours, exact cone"),
        (
            ("contacts", 7.19, by_search.contacts, exact.contacts),
            ("active", 1.70, by_search.active, exact.active),
            ("ms per step", 3.54, 1e3 * by_search.step_seconds, 1e3 * exact.step_seconds),
        ),
        "Ours go through Python, frame by frame, to see every problem.",
    )


def _claims(run: Run) -> tuple[Claim, ...]:
    lexicographic, search = run.tallies["lexicographic, 1e-10"], run.tallies["search"]
    library = run.tallies["stiction.lcp, lexicographic"]
    frames = max(search.frames, 1)
    return (
        Claim(
            "the search solves every frame with impacts",
            "9670 of 9670",
            f"{search.success} of {search.frames}",
            verdict(search.success == search.frames),
        ),
        Claim(
            "lexicographic Lemke with its best threshold does not",
            "99.63 %",
            f"{100 * lexicographic.success / frames:.2f} %",
            verdict(lexicographic.success < lexicographic.frames),
        ),
        Claim(
            "the search needs fewer pivots than lexicographic Lemke",
            "3.6 against 7.4 per frame",
            f"{search.pivots / frames:.0f} against {lexicographic.pivots / frames:.0f} per frame",
            verdict(search.pivots < lexicographic.pivots),
        ),
        Claim(
            "it is faster",
            "0.18 against 0.38 ms",
            f"{1e3 * search.seconds / frames:.2f} against {1e3 * library.seconds / frames:.2f} ms, "
            "both compiled",
            verdict(search.seconds < library.seconds),
        ),
    )


def _notes(by_search: Run, exact: Run) -> tuple[str, ...]:
    notes = [
        "The dance is ours, of 5 s for both sides; the paper's is recorded motion. As there, the "
        "robot turns about the vertical as it dances.",
        "Each method gets every frame's problem of the simulation by the search; pivots of the "
        "search are those after the frictionless problem, which tells it where to start.",
    ]
    return (*notes, *humanoids.stop_notes(by_search, exact))
