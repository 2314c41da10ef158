"""Yamane and Nakamura, Table II: a humanoid taps the floor, frequent impacts."""

from __future__ import annotations

from math import degrees

from stiction.reproduce import frame_lcps, humanoids
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

LEMKE, SEARCH = "lexicographic, 1e-10", "search"
ACTIVE = "lexicographic, 1e-10, active contacts"
LIBRARY = "stiction.lcp, lexicographic"
LIBRARY_ACTIVE = "stiction.lcp, lexicographic, active contacts"

METHODS: dict[str, frame_lcps.Method] = {
    LEMKE: frame_lcps.lexicographic_method(1e-10),
    "lexicographic, 1e-08": frame_lcps.lexicographic_method(1e-8),
    "lexicographic, 1e-04": frame_lcps.lexicographic_method(1e-4),
    ACTIVE: frame_lcps.on_active(frame_lcps.lexicographic_method(1e-10)),
    SEARCH: frame_lcps.paper_search,
    humanoids.LIBRARY_SEARCH: frame_lcps.search_method,
    LIBRARY: frame_lcps.library_method("lexicographic"),
    LIBRARY_ACTIVE: frame_lcps.on_active(frame_lcps.library_method("lexicographic")),
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
    his = {LEMKE: ("9620 of 9656", "13, 7, 16"), SEARCH: ("9670 of 9670", "0")}
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *his.get(name, (None, None)),
            f"{tally.success} of {tally.frames}",
            ", ".join(str(kind) for kind in tally.kinds) if any(tally.kinds) else "0",
            tally.improper,
        )
        for name, tally in {**by_search.tallies, **ours}.items()
    ]
    return Table(
        "Frames solved; failures as no solution, cycle, error",
        ("method", "his success", "his failures", "success", "failures", "improper"),
        tuple(rows),
        "The first five are the paper's methods. Improper are successes with a force or a velocity "
        "below -1e-3 [N, m/s], which his count does not look at.",
    )


def _costs(by_search: Run, ours: dict[str, Tally]) -> Table:
    his = {LEMKE: (71102 / 9656, 0.375), SEARCH: (34335 / 9670, 0.182)}
    rows: list[tuple[Cell, ...]] = []
    for name, tally in {**by_search.tallies, **ours}.items():
        pivots, time = his.get(name, (None, None))
        frames = max(tally.frames, 1)
        ours_here = (tally.pivots / frames, tally.computed / frames)
        rows.append((name, pivots, *ours_here, time, 1e3 * tally.seconds / frames))
    return Table(
        "Pivots and time of a solve",
        ("method", "his pivots", "pivots", "computed", "his time, ms", "time, ms"),
        tuple(rows),
        "Pivots are those of the sequence that led to the answer, computed are all that a search "
        "looked at. The paper's methods are numpy on a dense tableau: their times are not "
        "comparable with those of compiled code.",
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
    tallies = run.tallies
    thresholds = [name for name in METHODS if name.startswith("lexi") and name != ACTIVE]
    best = max((tallies[name] for name in thresholds), key=lambda tally: tally.success)
    search, frames = tallies[SEARCH], max(tallies[SEARCH].frames, 1)

    def pivots(name: str) -> float:
        return tallies[name].pivots / frames

    def milliseconds(name: str) -> float:
        return 1e3 * tallies[name].seconds / frames

    ours, alone = milliseconds(humanoids.LIBRARY_SEARCH), milliseconds(LIBRARY_ACTIVE)
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
            f"{100 * best.success / frames:.2f} %",
            verdict(best.success < best.frames),
        ),
        Claim(
            "the search needs fewer pivots than lexicographic Lemke",
            "3.6 against 7.4 per frame",
            f"{pivots(SEARCH):.1f} against {pivots(LEMKE):.1f} per frame, {pivots(ACTIVE):.1f} on "
            f"active contacts; {search.computed / frames:.1f} computed",
            verdict(pivots(SEARCH) < min(pivots(LEMKE), pivots(ACTIVE))),
        ),
        Claim(
            "it is faster",
            "0.18 against 0.38 ms",
            f"{ours:.3f} against {milliseconds(LIBRARY):.3f} ms, {alone:.3f} on active contacts, "
            "all compiled",
            "in part" if alone <= ours < milliseconds(LIBRARY) else verdict(ours < alone),
        ),
    )


def _notes(by_search: Run, exact: Run) -> tuple[str, ...]:
    notes = [
        "The dance is ours, of 5 s for both sides; the paper's is recorded motion. As there, the "
        "robot turns about the vertical as it dances.",
        "Each method gets every frame's problem of the simulation by the search, with the corners "
        "of the contact areas alone; pivots and times are those after the frictionless problem, "
        "which tells a search where to start.",
    ]
    return (*notes, *humanoids.stop_notes(by_search, exact))
