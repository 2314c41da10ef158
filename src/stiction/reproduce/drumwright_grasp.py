"""Drumwright, Table I: boxes held between two pushers by friction alone.

Two boxes of 0.1 m and 1 kg, 200 N on each pusher, mu = 100, steps of 0.01 s. MuJoCo's collision
routine gives four corners to a face; each is taken three times, as his simulator does, which makes
36 contacts of three pairs of faces and 216 variables of a four-sided pyramid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stiction.contact import Coulomb, NoSlip
from stiction.reproduce.grasping import FRICTION, STEP, Held, hold, models, wrapped
from stiction.reproduce.result import (
    Cell,
    Claim,
    Line,
    Picture,
    Plot,
    Progress,
    Result,
    Table,
    exponent,
    verdict,
)

HIS_LEMKE, LEMKE = "Stewart-Trinkle, LEMKE", "Stewart-Trinkle, our Lemke"
QP, PPM = "no-slip, active-set QP", "no-slip, modified PPM"

HIS = {HIS_LEMKE: 10.9681, QP: 1.9892, PPM: 1.6680}
"""Mean over ten trials [s], of ten steps in Matlab."""

DRAWS = 3
"""Ways in which LEMKE's ties are drawn, to see how long it holds."""

HIS_STEPS = {HIS_LEMKE: "about 10", QP: "at least 100", PPM: "at least 100"}


def run(quick: bool, progress: Progress) -> Result:
    """Times, pivots, how long each holds, and growth with the number of boxes."""
    return run_sized(
        trials=2 if quick else 10,
        length=10,
        endurance=50 if quick else 1000,
        compiled=1000 if quick else 10_000,
        rows=(1, 2, 4, 8) if quick else (1, 2, 4, 8, 16, 32),
        quick=quick,
        progress=progress,
    )


def run_sized(
    trials: int,
    length: int,
    endurance: int,
    compiled: int,
    rows: tuple[int, ...],
    quick: bool,
    progress: Progress,
) -> Result:
    """As `run`: trials of `length` steps, steps to hold for, numbers of boxes."""
    ten = _ten_steps(trials, length, progress)
    progress(0.4, "how long each holds")
    long = {
        name: hold(wrapped(make()), endurance)
        for name, make in models().items()
        if name != HIS_LEMKE
    }
    # LEMKE takes seconds for a step: his 100 are enough.
    drawn = [hold(wrapped(models(k)[HIS_LEMKE]()), min(endurance, 100)) for k in range(DRAWS)]
    long = {HIS_LEMKE: drawn[0], **long}
    progress(0.7, f"{compiled} steps")
    ours = {
        "no-slip, compiled": hold(NoSlip(), compiled),
        "exact cone, compiled": hold(Coulomb(), compiled),
        "four facets, compiled": hold(Coulomb(4), compiled),
    }
    mujocos = {"MuJoCo": hold(None, compiled), "MuJoCo, tuned": hold(None, compiled, noslip=20)}
    progress(0.8, "growth")
    growth = _grow(rows, 200 if quick else 1000)
    good = [*ours.values(), *[held for name, held in long.items() if name.startswith("no-slip")]]
    good += [held for name in ("no-slip", "exact cone") for held in growth[name].values()]
    return Result(
        name="drumwright-grasp",
        title="Drumwright: boxes held by force closure",
        paper="Drumwright, Rapidly Computable Viscous Friction and No-Slip Rigid Contact Models, "
        "Table I",
        quick=quick,
        tables=(
            _times(ten),
            _pivots(ten),
            _endurance(long, ours, mujocos),
            _growth_times(growth),
            _growth_sunk(growth),
        ),
        plots=(_growth_plot(growth),),
        pictures=(
            Picture(
                "The grasp, after all steps",
                "grasp",
                tuple(ours["no-slip, compiled"].qpos),
                {"boxes": 2, "friction": FRICTION, "timestep": STEP},
            ),
        ),
        claims=_claims(ten, long, drawn, ours["no-slip, compiled"]),
        notes=_notes(ten, long, growth),
        counts={
            "solves": sum(held.steps for held in good),
            "failures": sum(held.end != "held" for held in good),
        },
    )


def _ten_steps(trials: int, length: int, progress: Progress) -> dict[str, list[Held]]:
    """Trials of each model in turns, so that a busy machine is busy for all. LEMKE's ties are drawn
    anew in each."""
    found: dict[str, list[Held]] = {}
    for name, make in models().items():
        progress(0.0, f"ten steps each: compiling {name}")
        hold(wrapped(make()), 1)
    for trial in range(trials):
        progress(0.4 * trial / trials, "ten steps each")
        for name, make in models(trial).items():
            found.setdefault(name, []).append(hold(wrapped(make()), length))
    return found


def _solve_time(trials: list[Held]) -> float:
    """Median over trials [s]."""
    return float(np.median([held.solve for held in trials]))


def _times(ten: dict[str, list[Held]]) -> Table:
    base = _solve_time(ten[PPM])
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            216 if name.startswith("Stewart") else 36,
            HIS.get(name),
            HIS[name] / HIS[PPM] if name in HIS else None,
            float(np.mean([held.seconds for held in trials])),
            float(np.std([held.seconds for held in trials])),
            1e3 * _solve_time(trials),
            _solve_time(trials) / base,
        )
        for name, trials in ten.items()
    ]
    return Table(
        "Table I: ten steps of 0.01 s",
        (
            "model and solver",
            "LCP variables",
            "his mean, s",
            "his, over PPM",
            "mean, s",
            "deviation, s",
            "median solve, ms",
            "solve, over PPM",
        ),
        tuple(rows),
        "His times, and our mean, are of the whole simulation; a solve of ours is without the "
        "assembly of an LCP's matrix and without a certificate. LEMKE is its rules in numpy, ours "
        "and the modified PPM are compiled, daqp is C.",
    )


def _pivots(ten: dict[str, list[Held]]) -> Table:
    his = {PPM: ("5.5", "7")}
    rows: list[tuple[Cell, ...]] = []
    for name, trials in ten.items():
        pivots = [p for held in trials for p in held.pivots]
        held = sum(trial.end == "held" for trial in trials)
        rows.append(
            (name, *his.get(name, (None, None)), float(np.mean(pivots)), max(pivots),
             f"{held} of {len(trials)}")
        )  # fmt: skip
    return Table(
        "Pivots per solve",
        ("model and solver", "his mean", "his most", "mean", "most", "trials that held"),
        tuple(rows),
        "Of LEMKE with all tries that regularization took; of daqp iterations.",
    )


def _endurance(long: dict[str, Held], ours: dict[str, Held], mujocos: dict[str, Held]) -> Table:
    rows = tuple(
        (name, HIS_STEPS.get(name), held.steps, held.end, 1e6 * held.sink, held.worst or None)
        for name, held in {**long, **ours, **mujocos}.items()
    )
    return Table(
        "How long the boxes are held",
        ("model and solver", "his steps", "steps", "end", "sunk, um", "worst violation"),
        rows,
        "A box counts as dropped 10 mm below its start. Answers of the assembled LCPs are taken as "
        "they come, up to a violation of 0.99.",
    )


def _grow(rows: tuple[int, ...], steps: int) -> dict[str, dict[int, Held]]:
    """Whole steps by the number of boxes, mu = 1 and 1 ms as MuJoCo's users have it."""
    ways: dict[str, Callable[[int], Held]] = {
        "no-slip": lambda n: hold(NoSlip(), steps, boxes=n, timestep=1e-3, friction=1.0),
        "exact cone": lambda n: hold(Coulomb(), steps, boxes=n, timestep=1e-3, friction=1.0),
        "MuJoCo": lambda n: hold(None, steps, boxes=n, timestep=1e-3, friction=1.0),
        "MuJoCo, tuned": lambda n: hold(
            None, steps, boxes=n, timestep=1e-3, friction=1.0, noslip=20
        ),
    }
    found: dict[str, dict[int, Held]] = {name: {} for name in ways}
    for n in rows:
        for name, way in ways.items():
            found[name][n] = way(n)
    return found


def _growth_times(growth: dict[str, dict[int, Held]]) -> Table:
    sizes = list(next(iter(growth.values())))
    rows: list[tuple[Cell, ...]] = [
        (n, 4 * (n + 1), *[_per_step(by_size[n]) for by_size in growth.values()]) for n in sizes
    ]
    slopes = ", ".join(
        f"{name} {exponent(sizes[1:], [_per_step(held) for held in by_size.values()][1:]):.1f}"
        for name, by_size in growth.items()
    )
    return Table(
        "Rows of 1 to 32 boxes, mu = 1, 1 ms: us per step",
        ("boxes", "contacts", *growth),
        tuple(rows),
        f"Exponents of the time from two boxes on: {slopes}.",
    )


def _growth_sunk(growth: dict[str, dict[int, Held]]) -> Table:
    def cell(held: Held) -> Cell:
        return 1e6 * held.sink if held.end == "held" else f"dropped after {held.steps} steps"

    rows = tuple(
        (n, *[cell(by_size[n]) for by_size in growth.values()]) for n in next(iter(growth.values()))
    )
    return Table("The same rows: sunk, um", ("boxes", *growth), rows)


def _per_step(held: Held) -> float:
    """Mean time of a step [us]."""
    return 1e6 * held.seconds / max(held.steps, 1)


def _growth_plot(growth: dict[str, dict[int, Held]]) -> Plot:
    lines = tuple(
        Line(
            name,
            tuple(float(n) for n in by_size),
            tuple(_per_step(held) for held in by_size.values()),
        )
        for name, by_size in growth.items()
    )
    return Plot("Time of a step over the number of boxes", "boxes", "us", lines, log=True)


def _claims(
    ten: dict[str, list[Held]], long: dict[str, Held], drawn: list[Held], compiled: Held
) -> tuple[Claim, ...]:
    ppm, lemke = _solve_time(ten[PPM]), _solve_time(ten[LEMKE])
    pivots = [p for held in ten[PPM] for p in held.pivots]
    mine, kept = long[LEMKE], sum(one.end == "held" for one in drawn)
    ends = ", ".join(f"{one.end} after {one.steps} steps" for one in drawn)
    claims = [
        Claim(
            "no-slip by PPM solves several times faster than Stewart-Trinkle by Lemke",
            f"{HIS[HIS_LEMKE] / HIS[PPM]:.1f} times",
            f"{lemke / ppm:.1f} times, both compiled",
            verdict(lemke > 2.0 * ppm),
        ),
        Claim(
            "no-slip holds the boxes",
            "at least 100 steps",
            f"{compiled.steps} steps, sunk by {max(0.0, 1e6 * compiled.sink):.1g} um",
            verdict(compiled.end == "held"),
        ),
        Claim(
            "Stewart-Trinkle by Lemke drops them",
            "after about 10 steps",
            f"by LEMKE, ties drawn {DRAWS} ways: {ends}; by ours {mine.end}, {mine.steps} steps",
            "yes" if kept == 0 else "in part" if kept < DRAWS else "no",
        ),
        Claim(
            "modified PPM takes few pivots",
            "5.5 in the mean, 7 at most",
            f"{np.mean(pivots):.1f} in the mean, {max(pivots)} at most",
            verdict(max(pivots) <= 7),
        ),
    ]
    if QP in ten:
        ratio = _solve_time(ten[QP]) / ppm
        claims.append(
            Claim(
                "modified PPM is faster than an active-set QP solver",
                f"{HIS[QP] / HIS[PPM]:.2f} times (quadprog of Matlab)",
                f"{ratio:.2f} times (daqp)",
                verdict(ratio > 1.0),
            )
        )
    return tuple(claims)


def _notes(
    ten: dict[str, list[Held]], long: dict[str, Held], growth: dict[str, dict[int, Held]]
) -> tuple[str, ...]:
    mine = long[LEMKE]
    notes = []
    if mine.end == "held":
        notes.append(
            f"Our Lemke on the LCP with mu = 100 let a box slip by {1e6 * mine.sink:.0f} um, by "
            "the law: that LCP has several solutions, and some of them slide. Which one is found "
            "is the solver's choice, and no failure."
        )
    if QP not in ten:
        notes.append("daqp is not installed: the row of the QP solver is left out.")
    notes.append(
        "Duplicated corners carry the normal of the face; his simulator takes all three normals "
        "that meet in a corner, two of which would hold the boxes without any friction."
    )
    lost = [n for n, held in growth["MuJoCo"].items() if held.end != "held"]
    if lost:
        notes.append(f"MuJoCo as it comes drops rows of {', '.join(map(str, lost))} boxes.")
    return tuple(notes)
