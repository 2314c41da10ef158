"""Baraff, Figures 1 and 2: the block feeder and the double-action jack, at interactive rates."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from time import perf_counter

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction import scenes
from stiction.contact import Baraff, ContactModel, ContactProblem, ContactSolution, Coulomb
from stiction.contact.certificate import LawName
from stiction.errors import StictionError
from stiction.experiments.humanoids import tune
from stiction.experiments.problems import changed
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
from stiction.simulate import Simulator
from stiction.status import Status

Array = NDArray[np.float64]

FRAME = 1.0 / 25.0  # s, a picture of an interactive simulation
DYNAMIC = 0.8  # of the static friction, while sliding
TOUCHING = 1e-9  # m/s, of a bound that counts as none
STROKE = 0.05  # m, that the rack rises on a stroke


class WithBaraff(ContactModel):
    """Coulomb's law by Baraff's method; where it stops short, by ours, counted.

    On one problem in `every` it also computes forces and accelerations of the contacts that touch,
    with static and dynamic friction.
    """

    law: LawName = "coulomb"  # type: ignore[misc]

    def __init__(self, every: int) -> None:
        self._every, self._seen = every, 0
        self.steps: Counter[Status] = Counter()
        self.forces: Counter[Status] = Counter()
        self.seconds = 0.0

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """A solution of the problem, by one of the two."""
        if self._seen % self._every == 0:
            self._accelerations(problem)
        self._seen += 1
        solution = Baraff().solve(problem)
        self.seconds += solution.seconds
        self.steps[solution.status] += 1
        return solution if solution.status is Status.SOLVED else Coulomb().solve(problem)

    def _accelerations(self, problem: ContactProblem) -> None:
        """Sustained contact: what touches and does not part, joint limits included."""
        speed = problem.normal @ problem.velocity
        still = (problem.bound >= -TOUCHING) & (np.abs(speed) <= 1e-6)
        if not still.any():
            return
        now = changed(
            problem,
            **{
                name: getattr(problem.arrays, name)[still]
                for name in ("normal", "tangent", "friction", "viscosity", "bound")
            },
        )
        slip = np.hypot(*(now.tangent @ now.velocity).T)
        result = Baraff(static=now.friction, dynamic=DYNAMIC * now.friction).forces(
            now.mass, now.velocity, now.force, now.normal, now.tangent, sliding=slip > 1e-6
        )
        self.forces[result.status] += 1


@dataclass
class Ran:
    """A mechanism by one simulator."""

    scene: str
    simulator: str
    steps: int
    failures: int
    seconds: float
    contacts: float
    worst: float
    overlap: float
    achieved: str
    times: list[float]
    heights: list[float]
    qpos: Array

    @property
    def rate(self) -> float:
        """Frames of 1/25 s computed per second."""
        return self.times[-1] / FRAME / self.seconds if self.times else 0.0

    @property
    def steps_per_second(self) -> float:
        """Steps computed per second."""
        return self.steps / self.seconds


WATCHED = {"block-feeder": ("ram", 0), "jack": ("rack", 2)}
"""Body and axis that is plotted."""


def run(quick: bool, progress: Progress) -> Result:
    """Frame rates, failures, and what the mechanisms do."""
    return measure({"block-feeder": 2.0 if quick else 8.0, "jack": 2.0 if quick else 6.0}, quick,
                   progress)  # fmt: skip


def measure(seconds: dict[str, float], quick: bool, progress: Progress) -> Result:
    """As `run`, for so long each."""
    kinds = ("exact cone", "exact cone, rigid joints", "Baraff", "MuJoCo", "MuJoCo, tuned")
    ran: list[Ran] = []
    methods: dict[str, WithBaraff] = {}
    cases = [(scene, kind) for scene in seconds for kind in kinds]
    for index, (scene, kind) in enumerate(cases):
        progress(index / len(cases), f"{scene}, {kind}")
        # A step takes it tens of milliseconds: part of the time tells as much.
        part = 0.25 if kind == "Baraff" else 1.0
        found, method = simulate(scene, kind, part * seconds[scene])
        ran.append(found)
        if method is not None:
            methods[scene] = method
    ours = [r for r in ran if r.simulator.startswith("exact")]
    return Result(
        name="baraff-mechanisms",
        title="Baraff: block feeder and double-action jack",
        paper="Baraff, Fast Contact Force Computation for Nonpenetrating Rigid Bodies, "
        "Figures 1 and 2",
        quick=quick,
        tables=(_table(ran), _method_table(methods)),
        plots=(_plot(ran),),
        pictures=tuple(
            Picture(f"The {r.scene} at the end", r.scene, tuple(r.qpos))
            for r in ran
            if r.simulator == "exact cone"
        ),
        notes=_notes(ran, methods),
        counts={
            "solves": sum(r.steps for r in ours),
            "failures": sum(r.failures for r in ours),
        },
    )


def simulate(scene: str, kind: str, seconds: float) -> tuple[Ran, WithBaraff | None]:
    """One mechanism for so long; the method, where it is Baraff's."""
    model, data, controller = scenes.load(scene)
    method = WithBaraff(20) if kind == "Baraff" else None
    simulator = None
    if kind == "MuJoCo, tuned":
        tune(model)
    elif kind != "MuJoCo":
        rigid = kind == "exact cone, rigid joints"
        simulator = Simulator(model, method or Coulomb(), equality="rigid" if rigid else "soft")
    name, axis = WATCHED[scene]
    body = model.body(name).id
    times: list[float] = []
    heights: list[float] = []
    failures, sunk, contacts = 0, 0.0, 0
    spent = 0.0
    for _ in range(round(seconds / model.opt.timestep)):
        began = perf_counter()
        if controller is not None:
            controller(model, data)
        try:
            if simulator is None:
                mujoco.mj_step(model, data)
                sunk = max(sunk, -float(data.contact.dist.min(initial=0.0)))
                contacts += data.ncon
            else:
                simulator.step(data)
        except StictionError:
            failures += 1
            break
        took = perf_counter() - began
        spent += took if took < COMPILING else 0.0
        times.append(data.time)
        heights.append(float(data.xpos[body, axis]))
    steps = len(times)
    statistics = None if simulator is None else simulator.statistics
    return (
        Ran(
            scene,
            kind,
            steps,
            failures,
            spent,
            contacts / max(steps, 1) if statistics is None else statistics.contacts,
            float("nan") if statistics is None else statistics.worst,
            sunk if statistics is None else statistics.overlap,
            _achieved(scene, model, data),
            times,
            heights,
            data.qpos.copy(),
        ),
        method,
    )


def _achieved(scene: str, model: mujoco.MjModel, data: mujoco.MjData) -> str:
    if scene == "jack":
        rack = float(data.xpos[model.body("rack").id, 2])
        return f"rack up by {1e3 * rack:.0f} mm, {rack / STROKE:.1f} teeth"
    blocks = [b for b in range(model.nbody) if model.body(b).name.startswith("block")]
    out = sum(float(data.xpos[b, 0]) > 2 * STROKE for b in blocks)
    return f"{out} of {len(blocks)} blocks pushed out"


def _table(ran: list[Ran]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            r.scene,
            r.simulator,
            r.steps,
            r.failures if "MuJoCo" not in r.simulator else None,
            r.contacts,
            r.steps_per_second,
            r.rate,
            "20 to 30" if r.simulator == "Baraff" else None,
            r.worst,
            1e6 * r.overlap,
            r.achieved,
        )
        for r in ran
    ]
    return Table(
        "Mechanisms: frames of 1/25 s that are computed in a second, 40 steps of 1 ms each",
        ("scene", "simulator", "steps", "failures", "contacts", "steps per second",
         "frames per second", "his",
         "worst violation", "deepest overlap, um", "what it did"),
        tuple(rows),
        "His rate is of the whole program with its drawing, on an R4400. Contacts of ours include "
        "those within reach of the step.",
    )  # fmt: skip


def _method_table(methods: dict[str, WithBaraff]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for scene, method in methods.items():
        for level, counts in (
            ("impulses, static friction", method.steps),
            ("forces, static and dynamic friction", method.forces),
        ):
            total = sum(counts.values())
            solved = counts[Status.SOLVED]
            rays = counts[Status.RAY]
            rows.append((scene, level, total, solved, rays, total - solved - rays))
    return Table(
        "Baraff's own method on their contacts",
        ("scene", "level", "problems", "solved", "ray: an impulse is due", "stopped short"),
        tuple(rows),
        "Of the impulses every step, of the forces one step in twenty. What stops short is solved "
        "by the exact cone in the simulation.",
    )


def _plot(ran: list[Ran]) -> Plot:
    lines = tuple(
        Line(f"{WATCHED[r.scene][0]}, {r.simulator}", tuple(r.times), tuple(r.heights),
             dashed=r.simulator != "exact cone")
        for r in ran
        if r.simulator in ("exact cone", "MuJoCo")
    )  # fmt: skip
    return Plot("Place of the ram (along) and of the rack (up)", "s", "m", lines)


def _notes(ran: list[Ran], methods: dict[str, WithBaraff]) -> tuple[str, ...]:
    slowest = min(r.rate for r in ran if r.simulator == "exact cone")
    by_method = min(r.rate for r in ran if r.simulator == "Baraff")
    short = sum(
        count
        for method in methods.values()
        for status, count in method.steps.items()
        if status is not Status.SOLVED
    )
    total = sum(sum(method.steps.values()) for method in methods.values())
    return (
        f"Interactive rates hold: {slowest:.0f} frames per second or more by the compiled exact "
        "cone. By Baraff's own method, called from Python at each of the 40 steps of a frame, it "
        f"is {by_method:.1f}: his rate holds there only if a frame is one step or two, as his may "
        "be.",
        "Robustness of his method with static friction: it stops short on "
        f"{short} of {total} problems"
        + ("." if short == 0 else ", which he does not report of his own; redundant contacts are "
           "many here, since boxes touch in four corners instead of two."),
        "Mechanisms are drawn after his pictures; their sizes, speeds and loads are ours. They "
        "move in a plane of a simulator that is spatial.",
    )  # fmt: skip
