"""Yamane and Nakamura, Table II: a humanoid taps the floor, frequent impacts."""

from __future__ import annotations

from stiction.contact import Coulomb
from stiction.experiments import humanoids
from stiction.experiments.humanoids import Run, Tally
from stiction.experiments.result import Cell, Line, Picture, Plot, Progress, Result, Table
from stiction.scenes.humanoid import tap_dance

FRAMES = 9670

METHODS: dict[str, humanoids.Method] = {
    "lexicographic, 1e-10": humanoids.lexicographic_method(1e-10),
    "lexicographic, 1e-08": humanoids.lexicographic_method(1e-8),
    "lexicographic, 1e-04": humanoids.lexicographic_method(1e-4),
    "search": humanoids.search_method,
    "stiction.lcp, lexicographic": humanoids.library_method("lexicographic"),
}


def run(quick: bool, progress: Progress) -> Result:
    """Success, pivots and time of lexicographic Lemke and of the search."""
    return measure(1200 if quick else FRAMES, 5 if quick else 1, quick, progress)


def measure(frames: int, every: int, quick: bool, progress: Progress) -> Result:
    """As `run`, over so many frames; other methods get one in `every`."""
    by_search = humanoids.simulate(
        "tap-dance", tap_dance, frames, METHODS, Coulomb(8, "search"), progress, (0.0, 0.7), every
    )
    exact = humanoids.simulate("tap-dance", tap_dance, frames, {}, Coulomb(), progress, (0.7, 1.0))
    ours = {
        "search (the simulation's own)": by_search.own,
        "exact cone (a simulation of its own)": exact.own,
    }
    search = by_search.tallies["search"]
    failures = sum(t.frames - t.success for t in (*ours.values(), search))
    return Result(
        name="yamane-tap-dance",
        title="Yamane and Nakamura: tap dance of a humanoid",
        paper="Yamane and Nakamura, A Numerically Robust LCP Solver, Table II",
        quick=quick,
        tables=(_table(by_search, ours), _simulation(by_search, exact)),
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
        pictures=(Picture("The dance", "tap-dance", tuple(by_search.qpos)),),
        notes=_notes(by_search, exact),
        counts={
            "solves": sum(t.frames for t in ours.values()),
            "failures": failures + bool(by_search.stopped) + bool(exact.stopped),
            "frames": len(by_search.times),
        },
    )


def _table(by_search: Run, ours: dict[str, Tally]) -> Table:
    his = {
        "lexicographic, 1e-10": ("9620 of 9656", "13, 7, 16", 71102 / 9656, 0.375),
        "search": ("9670 of 9670", "0, 0, 0", 34335 / 9670, 0.182),
    }
    rows: list[tuple[Cell, ...]] = []
    for name, tally in {**by_search.tallies, **ours}.items():
        theirs = his.get(name, (None, None, None, None))
        rows.append(
            (
                name,
                theirs[0],
                theirs[1],
                f"{tally.success} of {tally.frames}",
                ", ".join(str(kind) for kind in tally.kinds),
                theirs[2],
                tally.pivots / max(tally.frames, 1),
                theirs[3],
                1e3 * tally.seconds / max(tally.frames, 1),
            )
        )
    return Table(
        "Frames solved; failures as no solution, cycle, error",
        (
            "method",
            "his success",
            "his failures",
            "success",
            "failures",
            "his pivots per frame",
            "pivots per frame",
            "his LCP time, ms",
            "LCP time, ms",
        ),
        tuple(rows),
        "The first three are the textbook's method on a dense tableau in numpy: their times are "
        "not comparable with those of compiled code, their pivots are.",
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


def _notes(by_search: Run, exact: Run) -> tuple[str, ...]:
    tallies = by_search.tallies
    lexicographic, search = tallies["lexicographic, 1e-10"], tallies["search"]
    frames = max(search.frames, 1)
    fewer = search.pivots < lexicographic.pivots
    notes = [
        "That the search solves every frame with impacts holds: "
        f"{search.success} of {search.frames}; lexicographic Lemke with his best threshold, 1e-10, "
        f"solves {lexicographic.success / frames:.2%} (his 99.63 %).",
        f"That the search needs fewer pivots {'holds' if fewer else 'does not hold'}: "
        f"{search.pivots / frames:.1f} per frame against {lexicographic.pivots / frames:.1f} "
        "(his 3.6 against 7.4).",
        "The dance is ours, of 5 s for both sides; the paper's is recorded motion. As there, the "
        "robot turns about the vertical as it dances.",
    ]
    for run in (by_search, exact):
        if run.stopped:
            notes.append(f"A simulation stopped: {run.stopped}")
    return tuple(notes)
