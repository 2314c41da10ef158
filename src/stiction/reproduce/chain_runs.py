"""Hoist, ring and net, simulated by one contact model or by MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass, field

import mujoco

from stiction import scenes
from stiction.contact import ContactModel, Coulomb
from stiction.contact.problem.modes import Mode
from stiction.errors import StictionError
from stiction.record.comparison import quiet, tuned
from stiction.reproduce.result import COMPILING, clock
from stiction.simulate import Simulator, Statistics

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

HEAVY = Case("hoist, 10 ms", "hoist", {"timestep": 0.01}, 10.0, "link24")
"""What the light load is there for: no contact model keeps this stable."""

EXACT, FACETS = "exact cone", "eight facets"
MODELS: dict[str, ContactModel] = {EXACT: Coulomb(), FACETS: Coulomb(8)}
MUJOCO: dict[str, int | None] = {"MuJoCo": None, "MuJoCo, tuned": 20}
"""Iterations of noslip in the tuned one."""

CAUGHT = -0.4
"""Height [m] above which a cylinder is in the net; the ground is at -0.6, the net sags to -0.2."""


@dataclass
class Ran:
    """One case by one simulator."""

    case: Case
    model: str
    frames: int = 0
    """With contact."""
    touching: int = 0
    pressing: int = 0
    """Contacts and active contacts, summed over frames."""
    seconds: float = 0.0
    """Of all steps [s]."""
    solving: float = 0.0
    """Of the contact solves, stages before and after not counted [s]."""
    worst: float = float("nan")
    overlap: float = 0.0
    """Deepest [m]."""
    handed_on: float = float("nan")
    """Share of steps that the compiled solver handed to the ladder."""
    times: list[float] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    stopped: str = ""
    did: str = ""
    qpos: tuple[float, ...] = ()

    @property
    def contacts(self) -> float:
        """Mean over frames with contact."""
        return self.touching / max(self.frames, 1)

    @property
    def active(self) -> float:
        """Likewise, of those that press."""
        return self.pressing / max(self.frames, 1)

    @property
    def step(self) -> float:
        """Mean time of a step [s]."""
        return self.seconds / max(len(self.times), 1)

    @property
    def solve(self) -> float:
        """Mean time of a solve [s]."""
        return self.solving / max(len(self.times), 1)


def simulate(case: Case, name: str, seconds: float) -> Ran:
    """One case for so long."""
    model, data, controller = scenes.load(case.scene, **case.options)
    simulator = Simulator(model, MODELS[name]) if name in MODELS else None
    noslip = MUJOCO.get(name)
    if noslip is not None:
        model = tuned(model, noslip)
    body = model.body(case.watch).id
    ran = Ran(case, name)
    with quiet() as warned:
        for _ in range(round(seconds / model.opt.timestep)):
            if controller is not None:
                controller(model, data)
            began = clock()
            try:
                touching, pressing = _step(simulator, model, data)
            except StictionError as error:
                ran.stopped = str(error)
                break
            if warned:  # MuJoCo has put the state back to the start
                break
            took = clock() - began
            if took < COMPILING:
                ran.seconds += took
            ran.frames += touching > 0
            ran.touching += touching
            ran.pressing += pressing
            if simulator is None:
                ran.overlap = max(ran.overlap, -float(data.contact.dist.min(initial=0.0)))
            ran.times.append(data.time)
            ran.heights.append(float(data.xpos[body, 2]))
    if simulator is not None:
        _take_over(ran, simulator.statistics)
    if warned:
        ran.did = f"unstable after {ran.times[-1] if ran.times else 0.0:.1f} s"
    else:
        ran.did = _did(case, model, data, ran.heights)
    ran.qpos = tuple(data.qpos)
    return ran


def _step(
    simulator: Simulator | None, model: mujoco.MjModel, data: mujoco.MjData
) -> tuple[int, int]:
    """Takes a step; returns the contacts, and how many of them press (of MuJoCo all do)."""
    if simulator is None:
        mujoco.mj_step(model, data)
        return int(data.ncon), int(data.ncon)
    report = simulator.step(data)
    pressing = sum(contact.mode != Mode.SEPARATE for contact in report.contacts)
    return len(report.contacts), pressing


def _take_over(ran: Ran, statistics: Statistics) -> None:
    """Takes over what the simulator counted."""
    compiled = statistics.rungs.get("proximal", 0) + statistics.rungs.get("interior point", 0)
    share = statistics.seconds["solve"] / max(sum(statistics.seconds.values()), 1e-9)
    ran.solving = share * ran.seconds
    ran.worst, ran.overlap = statistics.worst, statistics.overlap
    ran.handed_on = 1.0 - compiled / max(statistics.steps, 1)


def _did(case: Case, model: mujoco.MjModel, data: mujoco.MjData, heights: list[float]) -> str:
    """What became of the scene, in words."""
    if case.scene == "hoist":
        return f"load lifted by {1e3 * (max(heights) - heights[0]):.0f} mm"
    if case.scene == "ring":
        wires = [b for b in range(model.nbody) if model.body(b).name.endswith("_lower")]
        hang = sum(float(data.xpos[b, 2]) > -1.5 for b in wires)
        return f"{hang} of {len(wires)} wires hang"
    cylinders = [b for b in range(model.nbody) if model.body(b).name.startswith("cylinder")]
    kept = sum(float(data.xpos[b, 2]) > CAUGHT for b in cylinders)
    return f"{kept} of {len(cylinders)} cylinders in the net"
