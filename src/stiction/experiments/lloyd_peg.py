"""Lloyd, Figures 5 and 6: a peg in a hole, 8 to 32 contacts on one body, and on to 256."""

from __future__ import annotations

from functools import partial

from stiction.experiments import families, lloyd
from stiction.experiments.lloyd import WAYS, Measured
from stiction.experiments.result import Cell, Line, Plot, Progress, Result, Table, exponent

HIS = {"standard": (6.18, 400.75), "structural": (2.55, 26.63), "reduced": (1.08, 4.58)}
"""His times at 8 and at 32 contacts [ms], on a Pentium III-M at 1 GHz."""

CLAIMED = {"standard": 3, "structural": 2, "reduced": 1}
"""Exponents that he expects."""

HIS_RANGE = (8, 12, 16, 20, 24, 28, 32)
BEYOND = (64, 128, 256)


def run(quick: bool, progress: Progress) -> Result:
    """Times of the four ways over the number of contacts, with fitted exponents."""
    his_range, beyond = ((8, 16, 32), (64,)) if quick else (HIS_RANGE, BEYOND)
    return measure(his_range, beyond, 5 if quick else 20, 2 if quick else 5, quick, progress)


def measure(
    his_range: tuple[int, ...],
    beyond: tuple[int, ...],
    count: int,
    repeats: int,
    quick: bool,
    progress: Progress,
) -> Result:
    """As `run`, for chosen numbers of contacts, wrenches and repeats."""
    sizes = his_range + beyond
    progress(0.0, "compiling")
    lloyd.warm_up(partial(families.peg, 8))
    all_measured: list[dict[str, Measured]] = []
    for index, size in enumerate(sizes):
        progress(index / len(sizes), f"{size} contacts")
        # Lemke's method takes seconds there: few wrenches tell its growth as well.
        wrenches, rounds = (count, repeats) if size <= 64 else (min(count, 3), 1)
        make = partial(families.peg, size)
        measured = lloyd.measure(make, range(count), repeats, WAYS[1:])
        measured |= lloyd.measure(make, range(wrenches), rounds, WAYS[:1])
        all_measured.append(measured)
    return Result(
        name="lloyd-peg",
        title="Lloyd: peg in a hole",
        paper="Lloyd, Fast Implementation of Lemke's Algorithm, Figures 5 and 6",
        quick=quick,
        tables=(_times(sizes, all_measured), _growth(his_range, sizes, all_measured)),
        plots=(_plot(sizes, all_measured),),
        notes=_notes(his_range, all_measured),
        counts={
            "solves": sum(len(m[way].seconds) for m in all_measured for way in WAYS),
            "failures": sum(lloyd.failures(m, WAYS) for m in all_measured),
        },
        seeds=tuple(range(count)),
    )


def _times(sizes: tuple[int, ...], all_measured: list[dict[str, Measured]]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            size,
            *[m[way].mean for way in WAYS],
            *[float(sum(m[way].pivots)) / len(m[way].pivots) for way in WAYS],
            " ".join(f"{m[way].solved}/{len(m[way].seconds)}" for way in WAYS),
            max(m[way].worst for way in WAYS),
        )
        for size, m in zip(sizes, all_measured, strict=True)
    ]
    columns = (
        "contacts",
        *[f"{way}, ms" for way in WAYS],
        *[f"{way}, pivots" for way in WAYS],
        "solved, in that order",
        "worst violation",
    )
    return Table("Mean time and pivots over random wrenches, eight facets", columns, tuple(rows))


def _growth(
    his_range: tuple[int, ...], sizes: tuple[int, ...], all_measured: list[dict[str, Measured]]
) -> Table:
    part = len(his_range)
    last = part - 1
    rows: list[tuple[Cell, ...]] = []
    for way in WAYS:
        times = [m[way].mean for m in all_measured]
        pivots = [sum(m[way].pivots) / len(m[way].pivots) for m in all_measured]
        his = HIS.get(way)
        rows.append(
            (
                way,
                CLAIMED.get(way),
                None if his is None else exponent((8, 32), his),
                exponent(his_range, times[:part]),
                exponent(sizes, times),
                exponent(sizes, pivots),
                None if his is None else HIS["standard"][1] / his[1],
                all_measured[last]["standard"].mean / times[last],
            )
        )
    columns = (
        "way",
        "exponent he expects",
        "his, 8 to 32",
        f"ours, {his_range[0]} to {his_range[-1]}",
        f"ours, to {sizes[-1]}",
        "of the pivots",
        "his gain over standard at 32",
        f"our gain at {his_range[-1]}",
    )
    return Table(
        "Growth with the number of contacts",
        columns,
        tuple(rows),
        "The exponent is the slope of a straight line through the logarithms.",
    )


def _plot(sizes: tuple[int, ...], all_measured: list[dict[str, Measured]]) -> Plot:
    x = tuple(float(size) for size in sizes)
    ours = [Line(way, x, tuple(m[way].mean for m in all_measured)) for way in WAYS]
    his = [Line(f"Lloyd, {way}", (8.0, 32.0), ends, dashed=True) for way, ends in HIS.items()]
    return Plot(
        "Time of a solve over the number of contacts",
        "contacts",
        "ms",
        (*ours, *his),
        log=True,
    )


def _notes(his_range: tuple[int, ...], all_measured: list[dict[str, Measured]]) -> tuple[str, ...]:
    part = len(his_range)

    def grown(way: str) -> float:
        return exponent(his_range, [m[way].mean for m in all_measured[:part]])

    order = grown("standard") > grown("structural") > grown("reduced")
    return (
        "His claim, that structure and reduction take the growth from the cube to the square to "
        "the number of contacts itself, "
        + ("holds" if order else "does not hold")
        + f" in order; our exponents are {grown('standard'):.1f}, {grown('structural'):.1f} and "
        f"{grown('reduced'):.1f} in his range.",
        "Where our structural and reduced ways grow less than his, it is because contacts of one "
        "body cost a scan each, which at these sizes is small beside the fixed cost of a solve.",
        "Our standard way is a revised Lemke (inverse of the active block, updated), not a full "
        "tableau, which lowers its time but not its order.",
        "Peg, wrenches and coefficients of friction (0.2 to 0.3) are drawn by seed; the paper does "
        "not give its own.",
    )
