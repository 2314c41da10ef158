"""Baraff's mechanisms, simulated by one contact model or by MuJoCo."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction import scenes
from stiction.contact import Baraff, ContactModel, ContactProblem, ContactSolution, Coulomb
from stiction.contact.certificate.certificate import LawName
from stiction.errors import SolveFailed, StictionError
from stiction.record.comparison import tuned
from stiction.reproduce.problems import changed
from stiction.reproduce.result import COMPILING, clock
from stiction.simulate import Simulator
from stiction.simulate.report import Statistics
from stiction.status import Status

Array = NDArray[np.float64]

FRAME = 1.0 / 25.0  # s, a picture of an interactive simulation
DYNAMIC = 0.8  # of the static friction, while sliding
ZERO_BOUND = 1e-9  # m/s, of a bound that counts as zero
STROKE = 0.05  # m, that the rack rises on a stroke
EVERY = 20  # steps of Baraff's method to one look at forces and accelerations
EXACT, RIGID = "exact cone", "exact cone, rigid joints"
BARAFF, COLD = "Baraff", "Baraff, no warm start"


class Sustained(ContactModel):
    """Coulomb's law by the exact cone; beside it, forces and accelerations by Baraff's method of
    the contacts that touch, with static and dynamic friction, counted."""

    law: LawName = "coulomb"  # type: ignore[misc]

    def __init__(self) -> None:
        self.forces: Counter[Status] = Counter()

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """The exact cone's solution."""
        self._accelerations(problem)
        return Coulomb().solve(problem)

    def _accelerations(self, problem: ContactProblem) -> None:
        """Sustained contact: what touches and does not part, joint limits included."""
        speed = problem.normal @ problem.velocity
        still = (problem.bound >= -ZERO_BOUND) & (np.abs(speed) <= 1e-6)
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


class Method:
    """Baraff's method in a run: a step at which it stops short is taken by the exact cone."""

    def __init__(self, model: mujoco.MjModel, warm_start: bool) -> None:
        self.steps: Counter[Status] = Counter()
        self._own = Simulator(model, Baraff(), warm_start=warm_start)
        self._other = Simulator(model, Coulomb())
        self._sustained = Sustained()
        self._look = Simulator(model, self._sustained)
        self._copy = mujoco.MjData(model)

    @property
    def statistics(self) -> Statistics:
        """Of the steps that it took itself."""
        return self._own.statistics

    @property
    def forces(self) -> Counter[Status]:
        """How the forces that `look` computed ended."""
        return self._sustained.forces

    def step(self, data: mujoco.MjData) -> None:
        """One step, counted by how it ended."""
        try:
            self._own.step(data)
            self.steps[Status.SOLVED] += 1
        except SolveFailed as failed:
            self.steps[failed.status] += 1
            self._other.step(data)

    def look(self, data: mujoco.MjData) -> None:
        """Forces and accelerations in the state of `data`, which is left as it is."""
        mujoco.mj_copyData(self._copy, self._look.model, data)
        with suppress(SolveFailed):  # the exact cone's, on a copy
            self._look.step(self._copy)


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


def simulate(scene: str, kind: str, seconds: float) -> tuple[Ran, Method | None]:
    """One mechanism for so long; the method, where it is Baraff's."""
    model, data, controller = scenes.load(scene)
    method = None
    simulator: Simulator | Method | None = None
    if kind == "MuJoCo, tuned":
        model = tuned(model, 20)
    elif kind in (BARAFF, COLD):
        simulator = method = Method(model, kind == BARAFF)
    elif kind != "MuJoCo":
        simulator = Simulator(model, Coulomb(), equality="rigid" if kind == RIGID else "soft")
    name, axis = WATCHED[scene]
    body = model.body(name).id
    times: list[float] = []
    heights: list[float] = []
    failures, sunk, contacts = 0, 0.0, 0
    spent = 0.0
    for _ in range(round(seconds / model.opt.timestep)):
        began = clock()
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
        took = clock() - began
        spent += took if took < COMPILING else 0.0
        times.append(data.time)
        heights.append(float(data.xpos[body, axis]))
        if method is not None and kind == BARAFF and len(times) % EVERY == 1:
            method.look(data)
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
