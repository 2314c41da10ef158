"""Lloyd, Figures 7 and 8: ten situations of one body, 1 to 16 contacts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from stiction.reproduce import families, lloyd
from stiction.reproduce.families import SINGLE_BODIES, ContactArrays
from stiction.reproduce.lloyd import TABLEAU, WAYS, Measured
from stiction.reproduce.result import (
    Cell,
    Claim,
    Line,
    Plot,
    Progress,
    Result,
    Table,
    exponent,
    fit,
)

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
        measured = lloyd.time_ways(make, range(count), repeats)
        all_measured.append(measured | lloyd.time_ways(make, range(min(count, 3)), 1, [TABLEAU]))
    rows: list[tuple[Cell, ...]] = [
        (
            label,
            size,
            *[m[way].mean for way in (*WAYS, TABLEAU)],
            m["standard"].mean / m["reduced"].mean,
            f"{sum(m[way].solved for way in WAYS)} of {len(WAYS) * count}",
            max(m[way].worst for way in WAYS),
        )
        for (label, _), size, m in zip(cases, contacts, all_measured, strict=True)
    ]
    columns = (
        "problem",
        "contacts",
        *[f"{way}, ms" for way in (*WAYS, TABLEAU)],
        "standard / reduced",
        "solved, all ways",
        "worst violation",
    )
    times = {way: [m[way].mean for m in all_measured] for way in (*WAYS, TABLEAU)}
    low, high, theirs = his
    within = [k for k, size in enumerate(contacts) if low <= size <= high]
    last = contacts.index(max(contacts))

    def grown(way: str) -> float:
        return exponent([contacts[k] for k in within], [times[way][k] for k in within])

    slopes: list[tuple[Cell, ...]] = []
    for way in (*WAYS, TABLEAU):
        ends = theirs.get(way)
        slopes.append(
            (
                way,
                None if ends is None else exponent((low, high), ends),
                grown(way),
                None if ends is None else theirs["standard"][1] / ends[1],
                None if way == TABLEAU else times["standard"][last] / times[way][last],
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
            Table(
                "Mean time over random wrenches, eight facets",
                columns,
                tuple(rows),
                "The tableau is Lemke's method by the textbook in numpy, there for its growth.",
            ),
            Table(
                "Growth with the number of contacts, and gain at the largest problem",
                (
                    "way",
                    f"his exponent, {low} to {high} contacts",
                    "exponent",
                    "his gain over standard",
                    "gain",
                ),
                tuple(slopes),
                "His exponents are of the two times that he names.",
            ),
        ),
        plots=(_plot(x, times, his),),
        claims=_claims(times, gains, grown, his),
        notes=_notes(name, grown),
        counts={
            "solves": sum(len(m[way].seconds) for m in all_measured for way in WAYS),
            "failures": sum(lloyd.failures(m, WAYS) for m in all_measured),
        },
        seeds=tuple(range(count)),
    )


def _plot(x: tuple[float, ...], times: dict[str, list[float]], his: His) -> Plot:
    low, high, theirs = his
    lines: list[Line] = []
    for way in times:
        lines.append(Line(way, x, tuple(times[way]), points=True, kin=way))
        lines.append(fit(way, x, times[way]))
    ends = (float(low), float(high))
    lines += [
        Line(f"Lloyd, {way}, n^{exponent(ends, pair):.1f}", ends, pair, dashed=True, kin=way)
        for way, pair in theirs.items()
    ]
    title = "Time of a solve over the number of contacts"
    return Plot(title, "contacts", "ms", tuple(lines), log=True)


def _claims(
    times: dict[str, list[float]],
    gains: list[float],
    grown: Callable[[str], float],
    his: His,
) -> tuple[Claim, ...]:
    low, high, theirs = his
    cases = len(gains)
    ahead = sum(gain > 1.0 for gain in gains)
    structural = [a / b for a, b in zip(times["standard"], times["structural"], strict=True)]
    better = sum(gain > 1.0 for gain in structural)
    his_gain = {way: theirs["standard"][1] / theirs[way][1] for way in theirs}
    powers = {way: exponent((low, high), pair) for way, pair in theirs.items()}
    return (
        Claim(
            "the reduced way is faster than the standard one",
            f"{his_gain['reduced']:.0f} times at {high} contacts",
            f"in {ahead} of {cases} cases, {min(gains):.1f} to {max(gains):.1f} times",
            "yes" if ahead == cases else "in part",
        ),
        Claim(
            "the structural way is faster than the standard one",
            f"{his_gain['structural']:.0f} times at {high} contacts",
            f"in {better} of {cases} cases, {min(structural):.1f} to {max(structural):.1f} times",
            "yes" if better == cases else "in part" if better else "no",
        ),
        Claim(
            "structure, then reduction, lower the growth with the number of contacts",
            ", ".join(f"{way} {power:.1f}" for way, power in powers.items()),
            ", ".join(f"{way} {grown(way):.1f}" for way in (*powers, TABLEAU)),
            _ordered(grown),
        ),
    )


def _ordered(grown: Callable[[str], float]) -> Literal["yes", "in part", "no"]:
    """Whether growth falls from standard to structural to reduced; in part, from a tableau on."""
    if not grown("structural") > grown("reduced"):
        return "no"
    if grown("standard") > grown("structural"):
        return "yes"
    return "in part" if grown(TABLEAU) > grown("structural") else "no"


def _notes(name: str, grown: Callable[[str], float]) -> tuple[str, ...]:
    notes = [
        "Our standard way is a revised Lemke that inverts the active block alone, which takes part "
        "of the advantage that structure gives; a full tableau, as his, does not."
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
