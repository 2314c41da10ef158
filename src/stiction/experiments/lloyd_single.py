"""Lloyd, Figures 7 and 8: ten situations of one body, 1 to 16 contacts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from stiction.experiments import families, lloyd
from stiction.experiments.families import SINGLE_BODIES, ContactArrays
from stiction.experiments.lloyd import WAYS, Measured
from stiction.experiments.result import Cell, Line, Plot, Progress, Result, Table, exponent

Make = Callable[[np.random.Generator], ContactArrays]
His = tuple[int, int, dict[str, tuple[float, float]]]

HIS_SINGLE: His = (
    8,
    16,
    {"standard": (5.2, 50.9), "structural": (2.1, 12.5), "reduced": (0.57, 1.34)},
)
HIS_STACKS: His = (
    4,
    32,
    {"standard": (2.1, 2136.0), "structural": (1.45, 224.0), "reduced": (1.32, 96.0)},
)
"""Contacts, and his times [ms] at the first and at the last of them, way by way."""


def run(quick: bool, progress: Progress) -> Result:
    """Times of the four ways on the ten situations."""
    return single(5 if quick else 20, 2 if quick else 5, quick, progress)


def single(count: int, repeats: int, quick: bool, progress: Progress) -> Result:
    """As `run`, with so many wrenches and repeats."""
    cases: list[tuple[str, Make]] = [(k, partial(families.single_body, k)) for k in SINGLE_BODIES]
    return compare(
        "lloyd-single",
        "Lloyd: ten situations of one body",
        "Lloyd, Fast Implementation of Lemke's Algorithm, Figures 7 and 8",
        cases,
        HIS_SINGLE,
        count,
        repeats,
        quick,
        progress,
    )


def stacks(
    configurations: tuple[tuple[int, int], ...],
    count: int,
    repeats: int,
    quick: bool,
    progress: Progress,
) -> Result:
    """The same for stacks of blocks."""

    def make(blocks: int, contacts: int) -> Make:
        return lambda rng: families.stack(blocks, contacts, rng)

    return compare(
        "lloyd-stack",
        "Lloyd: stacks of one to five blocks",
        "Lloyd, Fast Implementation of Lemke's Algorithm, Figures 9 and 10",
        [
            (f"{blocks} block{'s'[: blocks > 1]}", make(blocks, contacts))
            for blocks, contacts in configurations
        ],
        HIS_STACKS,
        count,
        repeats,
        quick,
        progress,
    )


def compare(
    name: str,
    title: str,
    paper: str,
    cases: list[tuple[str, Make]],
    his: His,
    count: int,
    repeats: int,
    quick: bool,
    progress: Progress,
) -> Result:
    """Times of the four ways on each case, and how they grow with the number of contacts."""
    progress(0.0, "compiling")
    lloyd.warm_up(cases[0][1])
    all_measured: list[dict[str, Measured]] = []
    contacts: list[int] = []
    for index, (label, make) in enumerate(cases):
        progress(index / len(cases), label)
        contacts.append(len(make(np.random.default_rng(0)).friction))
        all_measured.append(lloyd.measure(make, range(count), repeats))
    rows: list[tuple[Cell, ...]] = [
        (
            label,
            size,
            *[m[way].mean for way in WAYS],
            m["standard"].mean / m["reduced"].mean,
            " ".join(f"{m[way].solved}/{count}" for way in WAYS),
            max(m[way].worst for way in WAYS),
        )
        for (label, _), size, m in zip(cases, contacts, all_measured, strict=True)
    ]
    columns = (
        "problem",
        "contacts",
        *[f"{way}, ms" for way in WAYS],
        "standard / reduced",
        "solved, in that order",
        "worst violation",
    )
    times = {way: [m[way].mean for m in all_measured] for way in WAYS}
    low, high, theirs = his
    within = [k for k, size in enumerate(contacts) if low <= size <= high]
    last = contacts.index(max(contacts))

    def grown(way: str) -> float:
        return exponent([contacts[k] for k in within], [times[way][k] for k in within])

    slopes: list[tuple[Cell, ...]] = []
    for way in WAYS:
        ends = theirs.get(way)
        slopes.append(
            (
                way,
                None if ends is None else exponent((low, high), ends),
                grown(way),
                None if ends is None else theirs["standard"][1] / ends[1],
                all_measured[last]["standard"].mean / all_measured[last][way].mean,
            )
        )
    x = tuple(float(size) for size in contacts)
    gains = [m["standard"].mean / m["reduced"].mean for m in all_measured]
    return Result(
        name=name,
        title=title,
        paper=paper,
        quick=quick,
        tables=(
            Table("Mean time over random wrenches, eight facets", columns, tuple(rows)),
            Table(
                "Growth with the number of contacts, and gain at the largest problem",
                (
                    "way",
                    f"his exponent, {low} to {high} contacts",
                    "ours",
                    "his gain over standard",
                    "ours",
                ),
                tuple(slopes),
                "His exponents are of the two times that he names.",
            ),
        ),
        plots=(
            Plot(
                "Time of a solve over the number of contacts",
                "contacts",
                "ms",
                tuple(Line(way, x, tuple(times[way]), points=True) for way in WAYS),
                log=True,
            ),
            Plot(
                "The reduced way and the exact cone, close up",
                "contacts",
                "ms",
                tuple(Line(way, x, tuple(times[way]), points=True) for way in ("reduced", "exact")),
            ),
        ),
        notes=_notes(name, times, gains, grown),
        counts={
            "solves": sum(len(m[way].seconds) for m in all_measured for way in WAYS),
            "failures": sum(lloyd.failures(m, WAYS) for m in all_measured),
        },
        seeds=tuple(range(count)),
    )


def _notes(
    name: str,
    times: dict[str, list[float]],
    gains: list[float],
    grown: Callable[[str], float],
) -> tuple[str, ...]:
    slower = sum(gain < 1.0 for gain in gains)
    behind = sum(a > b for a, b in zip(times["structural"], times["standard"], strict=True))
    notes = [
        "His claim that the reduced way is faster than the standard one holds in "
        f"{len(gains) - slower} of {len(gains)} cases: by {min(gains):.1f} to {max(gains):.1f} "
        "times.",
        "His claim that the structural way is faster than the standard one "
        + (
            "holds in all cases."
            if behind == 0
            else f"does not hold in {behind} of {len(gains)} cases: our standard way is a revised "
            "Lemke that inverts the active block alone, which takes part of the same advantage."
        ),
    ]
    if name == "lloyd-stack":
        notes.append(
            "With more bodies the systems grow with their number, and the gain is less than on one "
            f"body, as he says; the reduced way grows with the exponent {grown('reduced'):.1f}."
        )
    else:
        notes.append(
            'His "just a little greater than O(n)" for the reduced way is an upper bound here: the '
            f"exponent is {grown('reduced'):.1f}, most of a solve being its fixed cost."
        )
    notes.append("Geometry is ours, after the names that he gives; loads are drawn by seed.")
    return tuple(notes)
