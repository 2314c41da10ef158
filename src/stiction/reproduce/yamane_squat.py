"""Yamane and Nakamura, Table I and Figure 2: a humanoid squats, by six LCP solvers."""

from __future__ import annotations

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
from stiction.scenes.humanoid import squat

FRAMES = 1000
LOWEST = 500
"""Frame in which the squat is deepest."""

HIS: dict[str, tuple[int, int, int, int, int]] = {
    "Lemke": (998, 506, 52, 157, 283),
    "lexicographic, 0": (998, 514, 27, 147, 310),
    "lexicographic, 1e-08": (998, 900, 17, 18, 63),
    "lexicographic, 1e-06": (1000, 990, 3, 2, 5),
    "lexicographic, 1e-04": (1000, 996, 3, 0, 1),
    "search": (999, 999, 0, 0, 0),
}
"""Frames, successes, and failures by kind: no solution, cycle, error."""

METHODS: dict[str, frame_lcps.Method] = {
    "Lemke": frame_lcps.plain_method,
    "lexicographic, 0": frame_lcps.lexicographic_method(0.0),
    "lexicographic, 1e-08": frame_lcps.lexicographic_method(1e-8),
    "lexicographic, 1e-06": frame_lcps.lexicographic_method(1e-6),
    "lexicographic, 1e-04": frame_lcps.lexicographic_method(1e-4),
    "search": frame_lcps.paper_search,
    humanoids.LIBRARY_SEARCH: frame_lcps.search_method,
    "stiction.lcp, lemke": frame_lcps.library_method("lemke"),
    "stiction.lcp, lexicographic": frame_lcps.library_method("lexicographic"),
}


def run(quick: bool, progress: Progress) -> Result:
    """Successes and failures of each method, and the feet's forces over time."""
    return run_sized(400 if quick else FRAMES, 5 if quick else 1, quick, progress)


def run_sized(frames: int, every: int, quick: bool, progress: Progress) -> Result:
    """As `run`, over so many frames; other methods get one in `every`."""
    found = humanoids.study("humanoid", squat, frames, METHODS, progress, every, LOWEST)
    by_search, exact = found.by_search, found.exact
    return Result(
        name="yamane-squat",
        title="Yamane and Nakamura: squat of a humanoid",
        paper="Yamane and Nakamura, A Numerically Robust LCP Solver, Table I and Figure 2",
        quick=quick,
        tables=(
            _table(by_search, found.ours),
            _contacts(by_search, exact),
            Table(
                "The same squat by servos: farthest a foot moves, deepest a sole sinks",
                ("simulator", "moved, um", "sunk, um"),
                tuple(
                    (kind, 1e6 * one.moved, 1e6 * one.sunk) for kind, one in found.served.items()
                ),
            ),
        ),
        plots=(_forces(by_search, exact),),
        pictures=(Picture("The squat, halfway", "humanoid", tuple(by_search.qpos)),),
        claims=_claims(by_search),
        notes=_notes(by_search, exact),
        counts=found.counts,
    )


def _table(by_search: Run, ours: dict[str, Tally]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, tally in {**by_search.tallies, **ours}.items():
        his = HIS.get(name)
        rows.append(
            (
                name,
                None if his is None else f"{his[1]} of {his[0]}",
                None if his is None else ", ".join(str(kind) for kind in his[2:]),
                f"{tally.success} of {tally.frames}",
                ", ".join(str(kind) for kind in tally.kinds),
                tally.improper,
                tally.pivots / max(tally.frames, 1),
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
            "improper",
            "pivots",
            "ms per solve",
        ),
        tuple(rows),
        "The first six are the paper's methods on a dense tableau in numpy: their times are not "
        "comparable with those of compiled code. Improper are successes with a force or a "
        "velocity below -1e-3 [N, m/s], which his count does not look at. The simulations have all "
        "contacts, the methods the corners of the contact areas.",
    )


def _contacts(by_search: Run, exact: Run) -> Table:
    return Table(
        "Contacts and active contacts, means over frames",
        ("", "his, search", "ours, search", "ours, exact cone"),
        (
            ("contacts", 15.4, by_search.contacts, exact.contacts),
            ("active", 2.18, by_search.active, exact.active),
        ),
    )


def _forces(by_search: Run, exact: Run) -> Plot:
    lines = [
        Line(f"{side} foot, {name}", tuple(run.times), tuple(run.forces[side]), dashed=dashed)
        for run, name, dashed in ((by_search, "search", False), (exact, "exact cone", True))
        for side in ("left", "right")
    ]
    total = [sum(pair) for pair in zip(*by_search.forces.values(), strict=True)]
    lines.append(Line("both feet", tuple(by_search.times), tuple(total)))
    return Plot("Figure 2: vertical force of the floor on the feet", "s", "N", tuple(lines))


def _claims(run: Run) -> tuple[Claim, ...]:
    tallies = run.tallies

    def ours(name: str) -> str:
        tally = tallies[name]
        proper = f", {tally.success - tally.improper} of them proper" if tally.improper else ""
        return f"{tally.success} of {tally.frames}{proper}"

    def his(name: str) -> str:
        return f"{HIS[name][1]} of {HIS[name][0]}"

    rates = {name: tallies[name].success / max(tallies[name].frames, 1) for name in HIS}
    thresholds = [name for name in HIS if name.startswith("lexi")]
    best = max(thresholds, key=lambda name: rates[name])
    plain, search = tallies["Lemke"], tallies["search"]
    return (
        Claim(
            "the search solves every frame",
            his("search"),
            ours("search"),
            verdict(search.success == search.frames),
        ),
        Claim(
            "Lemke's method fails on many frames",
            his("Lemke"),
            ours("Lemke"),
            verdict(plain.success < plain.frames),
        ),
        Claim(
            "lexicographic ordering without a threshold does not help much",
            his("lexicographic, 0"),
            ours("lexicographic, 0"),
            verdict(rates["lexicographic, 0"] < 0.6),
        ),
        Claim(
            "a threshold helps",
            f"best: {his('lexicographic, 1e-04')} at 1e-04",
            f"best, at {best.split()[-1]}: {ours(best)}",
            verdict(rates[best] > rates["lexicographic, 0"]),
        ),
        Claim(
            "the largest threshold is the best",
            his("lexicographic, 1e-04"),
            ours("lexicographic, 1e-04"),
            verdict(best == thresholds[-1]),
        ),
        Claim(
            "few of the contacts are active",
            "2.18 of 15.4",
            f"{run.active:.3g} of {run.contacts:.3g}",
            verdict(run.active < 0.5 * run.contacts),
        ),
    )


def _notes(by_search: Run, exact: Run) -> tuple[str, ...]:
    library = by_search.tallies["stiction.lcp, lemke"]
    notes = [
        "Lemke's method fails more often than his: soles and floor are exact planes here, so that "
        "nearly every ratio test is a tie, and the textbook gives z0 no right to leave first.",
        "An entry of the right sign is a pivot, however small, as in his Step 1: rounding of "
        "redundant contacts becomes one, and most failures come of it.",
        "stiction.lcp's own Lemke solves all: scaling, a generic covering vector and Harris's rule "
        "for ties are enough here. The search is not needed for it, which the paper does not try."
        if library.success == library.frames
        else "stiction.lcp's own Lemke fails as well, on a few.",
        "Which contacts are active is not unique: forces of single feet may differ between "
        "solvers, and step within a run; their sum does not.",
        "All methods get the same problems, those of the simulation by the search; his Table I is "
        "of six simulations. Our step is semi-implicit Euler, his Runge-Kutta; e_max is his, 1e-3.",
    ]
    return (*notes, *humanoids.stop_notes(by_search, exact))
