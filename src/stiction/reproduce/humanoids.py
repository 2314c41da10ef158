"""What Yamane and Nakamura's two humanoid experiments share.

The robot is in high-gain mode: joints follow a prescribed motion, six degrees of freedom of the
pelvis are left to the contacts, which are many times redundant. The simulation runs on the pivot
search; each frame's LCP (eight facets, unknowns in newtons) is given to all other methods as well,
so that all of them see the same problems. In the paper each method runs its own simulation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction import scenes
from stiction.contact import ContactModel, ContactProblem, ContactSolution, Coulomb
from stiction.errors import StictionError
from stiction.record.comparison import tuned
from stiction.reproduce import textbook
from stiction.reproduce.frame_lcps import FACETS, Method, corners
from stiction.reproduce.pivot_search import pressing, rows_of
from stiction.reproduce.problems import HighGain, Recorder, contact_lcp
from stiction.reproduce.result import COMPILING, Progress, clock
from stiction.simulate import Simulator
from stiction.status import Status

Array = NDArray[np.float64]
Motion = Callable[[float], Array]
STEP = 1e-3  # s

LIBRARY_SEARCH = "stiction.lcp, search"
"""Among the methods of a study."""


@dataclass
class Tally:
    """How a method did over all frames."""

    outcomes: Counter[Status] = field(default_factory=Counter)
    pivots: int = 0
    computed: int = 0
    """Pivots, with those of a search that led nowhere."""
    improper: int = 0
    """Of the successes those with a force or a velocity below -e_max."""
    seconds: float = 0.0

    @property
    def frames(self) -> int:
        """With contact."""
        return sum(self.outcomes.values())

    @property
    def success(self) -> int:
        """Frames solved."""
        return self.outcomes[Status.SOLVED]

    @property
    def kinds(self) -> tuple[int, int, int]:
        """Failures by the paper's kinds: no solution, cycle, error (and what remains)."""
        none, cycle = self.outcomes[Status.RAY], self.outcomes[Status.CYCLE]
        return none, cycle, self.frames - self.success - none - cycle


@dataclass
class Run:
    """A simulated motion."""

    tallies: dict[str, Tally]
    own: Tally
    """Of the simulation's own contact model."""
    contacts: float
    """Mean over frames with contact."""
    active: float
    times: list[float]
    forces: dict[str, list[float]]
    """Vertical force of the floor on each foot [N], by frame."""
    qpos: Array
    """For a picture."""
    step_seconds: float
    """Mean time of a whole step, other methods not counted [s]."""
    stopped: str
    """Why the simulation ended early, or nothing."""


def simulate(
    scene: str,
    motion: Motion,
    frames: int,
    methods: dict[str, Method],
    contact: ContactModel,
    progress: Progress,
    share: tuple[float, float] = (0.0, 1.0),
    every: int = 1,
    shown: int = 0,
) -> Run:
    """Runs the motion for so many frames; `progress` is told of the part `share` of it. Other
    methods get one frame in `every`; the state after frame `shown` is kept for a picture."""
    model, data, _ = scenes.load(scene)
    tallies = {name: Tally() for name in methods}
    own = Tally()
    contacts = active = 0
    elsewhere = 0.0

    def watch(problem: ContactProblem, solution: ContactSolution, seconds: float) -> None:
        nonlocal contacts, active, elsewhere
        began = clock()
        if problem.nc:
            own.outcomes[solution.status] += 1
            own.pivots += solution.pivots
            own.computed += solution.pivots
            own.seconds += seconds if seconds < COMPILING else 0.0
            contacts += problem.nc
            active += int(solution.active.sum())
            if (own.frames - 1) % every == 0:
                _compare(problem, corners(model, data), methods, tallies)
        elsewhere += clock() - began

    simulator = Simulator(model, HighGain(Recorder(contact, watch), data, motion))
    times: list[float] = []
    forces: dict[str, list[float]] = {"left": [], "right": []}
    stopped = ""
    spent = 0.0
    qpos = data.qpos.copy()
    for frame in range(frames):
        if frame % max(1, frames // 50) == 0:
            done = share[0] + (share[1] - share[0]) * frame / frames
            progress(done, f"{scene}, {contact!r}")
        began, before = clock(), elsewhere
        try:
            report = simulator.step(data)
        except StictionError as error:
            stopped = f"frame {frame}: {error}"
            break
        took = clock() - began - (elsewhere - before)
        spent += took if took < COMPILING else 0.0
        times.append(data.time)
        if frame <= shown:
            qpos = data.qpos.copy()
        for side, series in forces.items():
            series.append(
                float(sum(c.force[0] for c in report.contacts if f"{side}_foot" in c.bodies))
            )
    with_contact = max(own.frames, 1)
    return Run(
        tallies,
        own,
        contacts / with_contact,
        active / with_contact,
        times,
        forces,
        qpos,
        spent / max(len(times), 1),
        stopped,
    )


def _compare(
    problem: ContactProblem,
    kept: NDArray[np.intp],
    methods: dict[str, Method],
    tallies: dict[str, Tally],
) -> None:
    if not methods:
        return
    matrix, free = contact_lcp(problem, FACETS, forces=True)
    rows = rows_of(kept, problem.nc, FACETS)
    matrix, free = matrix[np.ix_(rows, rows)], free[rows]
    active = pressing(matrix, free, FACETS)
    for name, method in methods.items():
        tally = tallies[name]
        found = method(matrix, free, active)
        tally.seconds += found.seconds if found.seconds < COMPILING else 0.0
        tally.outcomes[found.status] += 1
        tally.pivots += found.pivots
        tally.computed += found.computed
        least = min(found.z.min(initial=0.0), (matrix @ found.z + free).min(initial=0.0))
        tally.improper += found.status is Status.SOLVED and bool(least < -textbook.E_MAX)


@dataclass
class Served:
    """The same motion by servos, in which the robot's own dynamics take part."""

    moved: float = 0.0
    """Farthest that a foot moved over the floor [m]."""
    sunk: float = 0.0
    """Deepest that a sole sank [m]."""
    yaw: float = 0.0
    """How far the pelvis has turned about the vertical at the end [rad]."""


KINDS = {"MuJoCo": None, "MuJoCo, tuned": 20, "stiction": None}
"""Simulators of `by_servos`; iterations of noslip of the tuned one."""


def by_servos(scene: str, seconds: float, kind: str) -> Served:
    """The scene by its own controller, for so long, by one of KINDS."""
    model, data, controller = scenes.load(scene)
    noslip = KINDS[kind]
    if noslip is not None:
        model = tuned(model, noslip)
    simulator = Simulator(model) if kind == "stiction" else None
    feet = [model.body(f"{side}_foot").id for side in ("left", "right")]
    start = data.xpos[feet, :2].copy()
    out = Served()
    for _ in range(round(seconds / model.opt.timestep)):
        if controller is not None:
            controller(model, data)
        if simulator is None:
            mujoco.mj_step(model, data)
        else:
            simulator.step(data)
        moved = np.hypot(*(data.xpos[feet, :2] - start).T)
        out.moved = max(out.moved, float(moved.max()))
        out.sunk = max(out.sunk, -float(data.contact.dist.min(initial=0.0)))
    w, x, y, z = data.qpos[3:7]
    out.yaw = float(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))
    return out


@dataclass(frozen=True)
class Study:
    """A motion by the search, by the exact cone, and by servos under each of KINDS."""

    by_search: Run
    exact: Run
    served: dict[str, Served]

    @property
    def ours(self) -> dict[str, Tally]:
        """The solves that the two simulations went on with."""
        return {
            "search (the simulation's own)": self.by_search.own,
            "exact cone (a simulation of its own)": self.exact.own,
        }

    @property
    def counts(self) -> dict[str, int]:
        """Frames, and what our solvers solved and failed at."""
        tallies = (*self.ours.values(), self.by_search.tallies[LIBRARY_SEARCH])
        failures = sum(tally.frames - tally.success for tally in tallies)
        return {
            "solves": sum(tally.frames for tally in self.ours.values()),
            "failures": failures + bool(self.by_search.stopped) + bool(self.exact.stopped),
            "frames": len(self.by_search.times),
        }


def study(
    scene: str,
    motion: Motion,
    frames: int,
    methods: dict[str, Method],
    progress: Progress,
    every: int,
    shown: int,
) -> Study:
    """The motion in all ways; arguments as of `simulate`."""
    contact = Coulomb(FACETS, "search")
    by_search = simulate(
        scene, motion, frames, methods, contact, progress, (0.0, 0.7), every, shown
    )
    exact = simulate(scene, motion, frames, {}, Coulomb(), progress, (0.7, 0.9))
    progress(0.9, "MuJoCo on the same scene")
    served = {kind: by_servos(scene, frames * STEP, kind) for kind in KINDS}
    return Study(by_search, exact, served)


def stop_notes(*runs: Run) -> list[str]:
    """Why simulations ended early, for those that did."""
    return [f"A simulation stopped: {run.stopped}" for run in runs if run.stopped]
