"""Drumwright, Table I: boxes held between two pushers by friction alone.

Two boxes of 0.1 m and 1 kg, 200 N on each pusher, mu = 100, steps of 0.01 s. MuJoCo's collision
routine gives four corners to a face; each is taken three times, as his simulator does, which makes
36 contacts of three pairs of faces and 216 variables of a four-sided pyramid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction import lcp, scenes
from stiction.contact import ContactModel, ContactProblem, ContactSolution, Coulomb, NoSlip
from stiction.contact.certificate import LawName
from stiction.contact.model import Impulses
from stiction.errors import StictionError
from stiction.experiments import textbook
from stiction.experiments.humanoids import tune
from stiction.experiments.problems import Lcp, Repeated
from stiction.experiments.result import (
    Cell,
    Line,
    Picture,
    Plot,
    Progress,
    Result,
    Table,
    exponent,
)
from stiction.simulate import Simulator
from stiction.status import Status

Array = NDArray[np.float64]

STEP, FRICTION, COPIES, FACETS = 0.01, 100.0, 3, 4
DROPPED = 0.01  # m that a box has fallen when it is not held any more
FREE = 1e30  # daqp's infinity
EQUALITY = 5  # daqp's code for a constraint that is always active

HIS = {"lemke": (10.9681, 2.1812), "qp": (1.9892, 0.2640), "ppm": (1.6680, 0.3669)}
"""Mean and deviation over ten trials [s], of ten steps in Matlab."""


class NoSlipQp(ContactModel):
    """The no-slip model as a quadratic program in velocities, by daqp's active-set method."""

    law: LawName = "no-slip"  # type: ignore[misc]

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses from the multipliers."""
        import daqp  # type: ignore[import-not-found]

        touching = (problem.bound >= 0.0) & (problem.friction > 0.0)
        tangent = problem.tangent[touching].reshape(-1, problem.nv)
        rows = np.ascontiguousarray(np.concatenate([tangent, problem.normal]))
        lower = np.concatenate([np.zeros(len(tangent)), problem.bound])
        upper = np.concatenate([np.zeros(len(tangent)), np.full(problem.nc, FREE)])
        sense = np.zeros(len(rows), np.int32)
        sense[: len(tangent)] = EQUALITY
        mass = np.array(problem.mass)
        _, _, flag, info = daqp.solve(
            mass, -mass @ problem.free_velocity, rows, upper, lower, sense
        )
        push = -np.asarray(info["lam"])
        out = np.zeros((problem.nc, 2))
        out[touching] = push[: len(tangent)].reshape(-1, 2)
        status = Status.SOLVED if flag == 1 else Status.ERROR
        pivots = int(info.get("iterations", 0))
        none = np.zeros(0)
        return Impulses(push[len(tangent) :], out, none, none, status, pivots, ("daqp",))


class Counted(ContactModel):
    """Another model, its pivots and solve times kept (of an LCP without its assembly)."""

    def __init__(self, inner: ContactModel) -> None:
        self.inner, self.facets = inner, inner.facets
        self.law = inner.law  # type: ignore[misc]
        self.pivots: list[int] = []
        self.seconds: list[float] = []

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """What the inner model finds."""
        began = perf_counter()
        found = self.inner.solve_island(problem, None)
        spent = perf_counter() - began
        self.seconds.append(self.inner.seconds[-1] if isinstance(self.inner, Lcp) else spent)
        self.pivots.append(found.pivots)
        return found


def library_lemke(matrix: Array, free: Array) -> tuple[Array, Status, int]:
    """`stiction.lcp`'s Lemke on the assembled matrix."""
    result = lcp.solve(matrix, free, "lemke")
    return result.z, result.status, result.pivots


def models() -> dict[str, Callable[[], ContactModel]]:
    """What is compared; daqp only where it is installed."""
    found: dict[str, Callable[[], ContactModel]] = {
        "Stewart-Trinkle, textbook Lemke": lambda: Lcp(FACETS, textbook.regularized),
        "Stewart-Trinkle, our Lemke": lambda: Lcp(FACETS, library_lemke),
        "no-slip, active-set QP": NoSlipQp,
        "no-slip, modified PPM": NoSlip,
    }
    try:
        import daqp  # noqa: F401
    except ImportError:
        del found["no-slip, active-set QP"]
    return found


@dataclass
class Held:
    """A simulation of the grasp."""

    steps: int
    """Until the boxes were dropped, a solver failed, or the time was up."""
    end: str
    sink: float
    """How far the lowest box is below its start [m]."""
    worst: float
    pivots: list[int]
    solve: float
    """Median time of a solve [s]."""
    seconds: float
    """Of the whole simulation."""
    qpos: Array


def hold(
    contact: ContactModel | None,
    steps: int,
    *,
    boxes: int = 2,
    timestep: float = STEP,
    friction: float = FRICTION,
    adjust: Callable[[Any], None] | None = None,
) -> Held:
    """Holds the boxes for so many steps; None for the contact model is MuJoCo's own step."""
    model, data, _ = scenes.load("grasp", boxes=boxes, friction=friction, timestep=timestep)
    if adjust is not None:
        adjust(model)
    counted = contact.inner if isinstance(contact, Repeated) else None
    simulator = None
    if contact is not None:
        simulator = Simulator(model, contact, tolerance=0.99 if counted else 1e-6)
    free = [model.jnt_qposadr[j] + 2 for j in range(model.njnt) if model.jnt_type[j] == 0]
    began = perf_counter()
    done, end, worst = 0, "held", 0.0
    chunk = 1 if counted else 50
    while done < steps:
        now = min(chunk, steps - done)
        try:
            if simulator is None:
                mujoco.mj_step(model, data, now)
            else:
                report = simulator.step(data, now)
                worst = max(worst, report.certificate.worst if counted else 0.0)
        except StictionError:
            end = "solver failed"
            break
        done += now
        if -data.qpos[free].min() > DROPPED:
            end = "dropped"
            break
    spent = perf_counter() - began
    if simulator is not None and not counted:
        worst = simulator.statistics.worst
    kept = counted if isinstance(counted, Counted) else None
    return Held(
        done,
        end,
        -float(data.qpos[free].min()),
        worst,
        kept.pivots if kept else [],
        float(np.median(kept.seconds)) if kept and kept.seconds else spent / max(done, 1),
        spent,
        data.qpos.copy(),
    )


def run(quick: bool, progress: Progress) -> Result:
    """Times, pivots, how long each holds, and growth with the number of boxes."""
    return measure(
        trials=2 if quick else 10,
        endurance=50 if quick else 1000,
        compiled=1000 if quick else 10_000,
        rows=(1, 2, 4, 8) if quick else (1, 2, 4, 8, 16, 32),
        quick=quick,
        progress=progress,
    )


def measure(
    trials: int,
    endurance: int,
    compiled: int,
    rows: tuple[int, ...],
    quick: bool,
    progress: Progress,
) -> Result:
    """As `run`: trials of ten steps, steps to hold for, numbers of boxes."""
    progress(0.0, "ten steps each")
    ten = _ten_steps(trials)
    progress(0.3, "how long each holds")
    # The textbook's Lemke takes a fifth of a second for a step: twice his 100 are enough.
    long = {
        name: hold(wrapped(make()), min(endurance, 200) if "textbook" in name else endurance)
        for name, make in models().items()
    }
    progress(0.5, "10,000 steps")
    ours = {
        "no-slip, compiled": hold(NoSlip(), compiled),
        "exact cone, compiled": hold(Coulomb(), compiled),
        "four facets, compiled": hold(Coulomb(4), compiled),
    }
    progress(0.6, "MuJoCo")
    mujocos = {
        "MuJoCo": hold(None, compiled),
        "MuJoCo, tuned": hold(None, compiled, adjust=tune),
    }
    progress(0.7, "growth")
    growth = _grow(rows, 200 if quick else 1000)
    good = [*ours.values(), *[held for name, held in long.items() if name.startswith("no-slip")]]
    return Result(
        name="drumwright-grasp",
        title="Drumwright: boxes held by force closure",
        paper="Drumwright, Rapidly Computable Viscous Friction and No-Slip Rigid Contact Models, "
        "Table I",
        quick=quick,
        tables=(_table(ten), _endurance(long, ours, mujocos), _growth_table(growth)),
        plots=(_growth_plot(growth),),
        pictures=(
            Picture(
                "The grasp, after all steps",
                "grasp",
                tuple(ours["no-slip, compiled"].qpos),
                {"boxes": 2, "friction": FRICTION, "timestep": STEP},
            ),
        ),
        notes=_notes(ten, long, ours, growth),
        counts={
            "solves": sum(held.steps for held in good),
            "failures": sum(held.end != "held" for held in good),
        },
    )


def wrapped(model: ContactModel) -> ContactModel:
    """The model with every corner three times, its solves counted."""
    return Repeated(Counted(model), COPIES)


def _ten_steps(trials: int) -> dict[str, list[Held]]:
    found: dict[str, list[Held]] = {}
    for name, make in models().items():
        hold(wrapped(make()), 2)  # compiles
        found[name] = [hold(wrapped(make()), 10) for _ in range(trials)]
    return found


def _table(ten: dict[str, list[Held]]) -> Table:
    his = {
        "Stewart-Trinkle, textbook Lemke": "lemke",
        "no-slip, active-set QP": "qp",
        "no-slip, modified PPM": "ppm",
    }
    base = _solve_time(ten["no-slip, modified PPM"])
    rows: list[tuple[Cell, ...]] = []
    for name, trials in ten.items():
        key = his.get(name)
        pivots = [p for held in trials for p in held.pivots]
        rows.append(
            (
                name,
                216 if name.startswith("Stewart") else 36,
                None if key is None else HIS[key][0] / HIS["ppm"][0],
                _solve_time(trials) / base,
                1e3 * float(np.median([held.seconds for held in trials])),
                1e3 * max(held.seconds for held in trials),
                1e3 * _solve_time(trials),
                float(np.mean(pivots)) if pivots else None,
                max(pivots, default=0),
                f"{sum(held.end == 'held' for held in trials)}/{len(trials)}",
            )
        )
    return Table(
        "Table I: ten steps of 0.01 s",
        (
            "model and solver",
            "LCP variables",
            "his time over PPM's",
            "our solve time over PPM's",
            "ten steps, median, ms",
            "slowest, ms",
            "solve, ms",
            "pivots, mean",
            "pivots, max",
            "trials that held",
        ),
        tuple(rows),
        "His times are of the whole simulation: 10.97, 1.99 and 1.67 s. The textbook's Lemke is "
        "numpy, ours and the modified PPM are compiled, daqp is C. His PPM took 5.5 pivots in the "
        "mean and 7 at most.",
    )


def _solve_time(trials: list[Held]) -> float:
    """Median over trials [s]."""
    return float(np.median([held.solve for held in trials]))


def _endurance(long: dict[str, Held], ours: dict[str, Held], mujocos: dict[str, Held]) -> Table:
    his = {
        "Stewart-Trinkle, textbook Lemke": "about 10",
        "no-slip, active-set QP": "at least 100",
        "no-slip, modified PPM": "at least 100",
    }
    rows = tuple(
        (name, his.get(name), held.steps, held.end, 1e6 * held.sink, held.worst or None)
        for name, held in {**long, **ours, **mujocos}.items()
    )
    return Table(
        "How long the boxes are held",
        ("model and solver", "his steps", "our steps", "end", "sunk, um", "worst violation"),
        rows,
        "A box counts as dropped 10 mm below its start. Answers of the assembled LCPs are taken as "
        "they come, up to a violation of 0.99.",
    )


def _grow(rows: tuple[int, ...], steps: int) -> dict[str, dict[int, Held]]:
    """Times of whole steps by the number of boxes, mu = 1 and 1 ms as MuJoCo's users have it."""
    ways: dict[str, Callable[[int], Held]] = {
        "no-slip": lambda n: hold(NoSlip(), steps, boxes=n, timestep=1e-3, friction=1.0),
        "exact cone": lambda n: hold(Coulomb(), steps, boxes=n, timestep=1e-3, friction=1.0),
        "MuJoCo": lambda n: hold(None, steps, boxes=n, timestep=1e-3, friction=1.0),
        "MuJoCo, tuned": lambda n: hold(
            None, steps, boxes=n, timestep=1e-3, friction=1.0, adjust=tune
        ),
    }
    return {name: {n: way(n) for n in rows} for name, way in ways.items()}


def _growth_table(growth: dict[str, dict[int, Held]]) -> Table:
    sizes = list(next(iter(growth.values())))
    rows: list[tuple[Cell, ...]] = []
    for name, by_size in growth.items():
        for n, held in by_size.items():
            rows.append(
                (name, n, 4 * (n + 1), 1e6 * held.seconds / max(held.steps, 1), held.end,
                 1e6 * held.sink)
            )  # fmt: skip
    spent = {
        name: [held.seconds / max(held.steps, 1) for held in by_size.values()]
        for name, by_size in growth.items()
    }
    slopes = ", ".join(f"{name} {exponent(sizes[1:], t[1:]):.1f}" for name, t in spent.items())
    return Table(
        "Rows of boxes, mu = 1, 1 ms",
        ("simulator", "boxes", "contacts", "us per step", "end", "sunk, um"),
        tuple(rows),
        f"Exponents of the time from two boxes on: {slopes}.",
    )


def _growth_plot(growth: dict[str, dict[int, Held]]) -> Plot:
    lines = tuple(
        Line(
            name,
            tuple(float(n) for n in by_size),
            tuple(1e6 * held.seconds / max(held.steps, 1) for held in by_size.values()),
        )
        for name, by_size in growth.items()
    )
    return Plot("Time of a step over the number of boxes", "boxes", "us", lines, log=True)


def _notes(
    ten: dict[str, list[Held]],
    long: dict[str, Held],
    ours: dict[str, Held],
    growth: dict[str, dict[int, Held]],
) -> tuple[str, ...]:
    ppm = _solve_time(ten["no-slip, modified PPM"])
    lemke = _solve_time(ten["Stewart-Trinkle, our Lemke"])
    textbook_held = long["Stewart-Trinkle, textbook Lemke"]
    mine = long["Stewart-Trinkle, our Lemke"]
    notes = [
        "That no-slip is several times faster than Stewart-Trinkle by Lemke holds: "
        f"{lemke / ppm:.0f} times with compiled code on both sides (his 6.6).",
        "That Stewart-Trinkle drops the boxes after about ten steps "
        + (
            f"holds for the textbook's Lemke: {textbook_held.end} after {textbook_held.steps}."
            if textbook_held.end != "held"
            else f"does not hold: the textbook's Lemke held all {textbook_held.steps} steps."
        )
        + (
            f" The same LCP by our Lemke held all {mine.steps} steps, and let a box slip by "
            f"{1e6 * mine.sink:.0f} um on the way, by the law: with mu = 100 the LCP has several "
            "solutions, and some of them slide."
            if mine.end == "held"
            else f" Our Lemke on the same LCP: {mine.end} after {mine.steps} steps."
        ),
        "That no-slip holds holds: "
        + ", ".join(f"{name} {held.steps} steps ({held.end})" for name, held in ours.items())
        + ".",
    ]
    if "no-slip, active-set QP" in ten:
        qp = _solve_time(ten["no-slip, active-set QP"])
        notes.append(
            f"His PPM was 1.19 times as fast as the QP solver; ours is {qp / ppm:.2f} times as "
            "fast as daqp, both called from Python with the problem's arrays."
        )
    else:
        notes.append("daqp is not installed: the row of the QP solver is left out.")
    notes.append(
        "Duplicated corners carry the normal of the face; his simulator takes all three normals "
        "that meet in a corner, two of which would hold the boxes without any friction."
    )
    lost = [n for n, held in growth["MuJoCo"].items() if held.end != "held"]
    if lost:
        notes.append(f"MuJoCo as it comes drops rows of {', '.join(map(str, lost))} boxes.")
    return tuple(notes)
