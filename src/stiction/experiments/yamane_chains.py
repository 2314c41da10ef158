"""Yamane and Nakamura, Table III: a hoist, rings and a net, long and closed chains in contact."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from stiction import scenes
from stiction.contact import ContactModel, Coulomb
from stiction.contact.solution import Mode
from stiction.errors import StictionError
from stiction.experiments.result import (
    COMPILING,
    Cell,
    Line,
    Picture,
    Plot,
    Progress,
    Result,
    Table,
)
from stiction.simulate import Simulator, Statistics

Array = NDArray[np.float64]

LIGHT = 0.1
"""Load of the hoist at 10 ms [kg]. A taut rope vibrates across at 2 sqrt(tension / (mass of a link
times its length)); with 1 kg steps of 10 ms cannot follow that, whatever the contact model."""


@dataclass(frozen=True)
class Case:
    """A row of the table."""

    name: str
    scene: str
    options: dict[str, float]
    seconds: float
    watch: str
    """Body whose height is plotted."""
    his: tuple[float, float, int, float, float] | None = None
    """Contacts, active contacts, frames, LCP time and step time [ms]; no failures."""


CASES = (
    Case("hoist", "hoist", {}, 10.0, "link24", (34.2, 20.8, 9357, 62.0, 120.0)),
    Case("hoist, light load", "hoist", {"load": LIGHT}, 10.0, "link24"),
    Case(
        "hoist, light load, 10 ms",
        "hoist",
        {"load": LIGHT, "timestep": 0.01},
        10.0,
        "link24",
        (48.4, 23.0, 935, 96.5, 187.0),
    ),
    Case("ring", "ring", {}, 4.0, "wire2_lower", (26.1, 21.7, 3926, 35.0, 80.6)),
    Case("net", "net", {}, 2.0, "cylinder0", (25.7, 16.9, 1818, 9.72, 62.5)),
)

MODELS: dict[str, ContactModel] = {"exact cone": Coulomb(), "eight facets": Coulomb(8)}


@dataclass
class Ran:
    """One case by one contact model."""

    case: Case
    model: str
    frames: int
    """With contact."""
    failures: int
    contacts: float
    active: float
    solve: float
    """Mean time of the contact solve, the stage before and after it not counted [s]."""
    step: float
    """Mean time of a step [s]."""
    worst: float
    overlap: float
    handed_on: float
    """Share of steps that the compiled solver handed to the ladder."""
    times: list[float]
    heights: list[float]
    qpos: Array
    stopped: str


def run(quick: bool, progress: Progress) -> Result:
    """Failures, contacts and times of the chains."""
    return measure(0.12 if quick else 1.0, quick, progress)


def measure(share: float, quick: bool, progress: Progress) -> Result:
    """As `run`, for a share of each case's time."""
    pairs = [(case, name) for case in CASES for name in MODELS]
    ran = []
    for index, (case, name) in enumerate(pairs):
        progress(index / len(pairs), f"{case.name}, {name}")
        ran.append(simulate(case, name, max(share * case.seconds, 0.05)))
    return Result(
        name="yamane-chains",
        title="Yamane and Nakamura: hoist, ring and net",
        paper="Yamane and Nakamura, A Numerically Robust LCP Solver, Table III and Figure 4",
        quick=quick,
        tables=(_table(ran), _ratios(ran)),
        plots=(_plot(ran),),
        pictures=tuple(
            Picture(r.case.name, r.case.scene, tuple(r.qpos), dict(r.case.options))
            for r in ran
            if r.model == "exact cone" and "light" not in r.case.name
        ),
        notes=_notes(ran),
        counts={
            "solves": sum(r.frames for r in ran),
            "failures": sum(r.failures for r in ran),
        },
    )


def simulate(case: Case, name: str, seconds: float) -> Ran:
    """One case for so long."""
    model, data, controller = scenes.load(case.scene, **case.options)
    simulator = Simulator(model, MODELS[name])
    body = model.body(case.watch).id
    contacts = active = frames = failures = 0
    times: list[float] = []
    heights: list[float] = []
    stopped = ""
    spent = 0.0
    steps = round(seconds / model.opt.timestep)
    for _ in range(steps):
        if controller is not None:
            controller(model, data)
        began = perf_counter()
        try:
            report = simulator.step(data)
        except StictionError as error:
            failures += 1
            stopped = str(error)
            break
        took = perf_counter() - began
        spent += took if took < COMPILING else 0.0
        touching = report.contacts
        frames += bool(touching)
        contacts += len(touching)
        active += sum(contact.mode != Mode.SEPARATE for contact in touching)
        times.append(data.time)
        heights.append(float(data.xpos[body, 2]))
    statistics = simulator.statistics
    done = max(statistics.steps, 1)
    compiled = statistics.rungs.get("warm start", 0) + statistics.rungs.get("newton", 0)
    return Ran(
        case,
        name,
        frames,
        failures,
        contacts / max(frames, 1),
        active / max(frames, 1),
        (statistics.seconds.get("solve", float("nan")) + _outside(statistics, spent)) / done,
        spent / done,
        statistics.worst,
        statistics.overlap,
        1.0 - compiled / done,
        times,
        heights,
        data.qpos.copy(),
        stopped,
    )


def _outside(statistics: Statistics, spent: float) -> float:
    """Time beyond the compiled stages [s]: the ladder's, where it was climbed."""
    return max(0.0, spent - sum(statistics.seconds.values()))


def _table(ran: list[Ran]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for r in ran:
        his = r.case.his or (None, None, None, None, None)
        rows.append(
            (
                r.case.name,
                r.model,
                len(r.times),
                r.frames,
                r.failures,
                his[0],
                r.contacts,
                his[1],
                r.active,
                his[3],
                1e3 * r.solve,
                his[4],
                1e3 * r.step,
                r.worst,
                1e3 * r.overlap,
                f"{r.handed_on:.1%}",
            )
        )
    return Table(
        "Table III",
        (
            "scene",
            "friction",
            "steps",
            "with contact",
            "failures (his: 0)",
            "his contacts",
            "contacts",
            "his active",
            "active",
            "his LCP, ms",
            "solve, ms",
            "his step, ms",
            "step, ms",
            "worst violation",
            "deepest overlap, mm",
            "by the ladder",
        ),
        tuple(rows),
        "A solve is all that is neither kinematics, collision nor integration.",
    )


def _ratios(ran: list[Ran]) -> Table:
    by_case = {r.case.name: r for r in ran if r.model == "exact cone"}
    fine, coarse = by_case["hoist, light load"], by_case["hoist, light load, 10 ms"]
    per_second = (fine.step / 1e-3) / (coarse.step / 1e-2)
    rows: list[tuple[Cell, ...]] = [
        ("time to simulate the hoist, 1 ms over 10 ms", "about 4.5", per_second),
    ]
    for name, his in (("hoist", 62.0 / 120.0), ("ring", 35.0 / 80.6), ("net", 9.72 / 62.5)):
        r = by_case[name]
        rows.append((f"share of a step that solving takes, {name}", his, r.solve / r.step))
    return Table("Ratios", ("", "his", "ours, exact cone"), tuple(rows))


def _plot(ran: list[Ran]) -> Plot:
    lines = tuple(
        Line(f"{r.case.name}: {r.case.watch}", tuple(r.times), tuple(r.heights))
        for r in ran
        if r.model == "exact cone"
    )
    return Plot("Height of the load, the last ring and a cylinder", "s", "m", lines)


def _notes(ran: list[Ran]) -> tuple[str, ...]:
    failures = sum(r.failures for r in ran)
    by_case = {r.case.name: r for r in ran if r.model == "exact cone"}
    fine, coarse = by_case["hoist, light load"], by_case["hoist, light load, 10 ms"]
    shared = min(len(fine.times) // 10, len(coarse.times))
    apart = max(
        (abs(fine.heights[10 * k + 9] - coarse.heights[k]) for k in range(shared)), default=0.0
    )
    notes = [
        "Zero failures holds." if failures == 0 else f"{failures} runs stopped with a failure.",
        "That 10 ms give a similar result as 1 ms holds with a light load: the load's heights "
        f"differ by {1e3 * apart:.0f} mm at most. With 1 kg steps of 10 ms are unstable, in MuJoCo "
        "as well: a taut rope of 20 g links vibrates faster than a semi-implicit step can follow; "
        "the paper integrates by Runge-Kutta, and does not give its masses.",
        "Fewer contacts than his: links are capsules that touch in points, his are polygon meshes.",
    ]
    notes += [f"{r.case.name}, {r.model}: {r.stopped}" for r in ran if r.stopped]
    return tuple(notes)
