"""`record`: run a simulator and keep what a report needs. Ctrl-C and failures keep what was done.

Samples are taken every few steps. Figures of the solver (certificate, pivots, rungs, time) cover
all steps between two samples: the largest or the sum, never a step left out. Contacts are those
of the step that ends at the sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from time import perf_counter

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.validation import check_data
from stiction.contact.models.registry import contact_name
from stiction.errors import InvalidInput, StictionError, is_count, is_number
from stiction.record.contact_series import ContactSeries
from stiction.record.motion import Motion, bodies_to_watch, check_watch, motion
from stiction.record.trajectory import States, Trajectory
from stiction.simulate.report import Contact, Report
from stiction.simulate.simulator import Simulator
from stiction.simulate.time_stepping.workspace import Stage

Array = NDArray[np.float64]
Controller = Callable[[mujoco.MjModel, mujoco.MjData], None]

NO_CONTACT = "no contact"
"""What stands for a rung between two samples without a contact: there was nothing to solve."""

STAGES = tuple(stage.name.lower() for stage in Stage)


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    simulated: float
    """[s]."""
    total: float
    """[s]."""
    elapsed: float
    """On the clock [s]."""
    worst: float
    """Largest certificate so far."""


@dataclass(eq=False)
class Recording:
    """A run as series over its n samples; the first is the start, before any step."""

    trajectory: Trajectory
    contacts: ContactSeries
    motion: Motion
    penetration: Array
    """(n,) deepest overlap at a contact [m]."""
    overlap: Array
    """(n,) the same over all steps since the last sample, joint limits included [m, rad]."""
    worst: Array
    """(n,) largest certificate since the last sample."""
    pivots: Array
    """(n,) most pivots of a step since the last sample."""
    stages: Array
    """(n, len(STAGES)) time by stage since the last sample [s]."""
    taken: Array
    """(n,) steps since the last sample."""
    clock: Array
    """(n,) time of those steps, calls included, the controller not [s]."""
    rung: list[dict[str, int]]
    """n times: how many steps each way answered since the last sample."""
    steps: int
    elapsed: float
    """On the clock, recording included [s]."""
    asked: float
    """Length of run that was asked for [s]."""
    interrupted: bool
    """Whether Ctrl-C ended it."""
    failure: str
    """What ended it early, or empty."""
    start_overlap: str = ""
    """Which bodies it started with deep within each other; empty for none."""

    @property
    def time(self) -> Array:
        """(n,) [s]."""
        return self.trajectory.time

    @property
    def rungs(self) -> dict[str, int]:
        """How many steps each way answered."""
        total: Counter[str] = Counter()
        for part in self.rung:
            total.update(part)
        return {name: count for name, count in total.most_common() if count}

    @property
    def seconds(self) -> dict[str, float]:
        """Time of all steps by stage [s]."""
        return dict(zip(STAGES, map(float, self.stages.sum(axis=0)), strict=True))

    @property
    def us_per_step(self) -> float:
        """Time of a step, median [us]: the stages, without the call from Python and without the
        controller."""
        return median_step(self.stages.sum(axis=1), self.taken)

    @property
    def step_speed(self) -> float:
        """Simulated over real time of the steps alone, by the median one."""
        spent = 1e-6 * self.us_per_step
        return self.trajectory.timestep / spent if spent > 0.0 else float("inf")

    @property
    def speed(self) -> float:
        """Simulated over real time of the whole run, controller and recording included."""
        return float(self.time[-1] - self.time[0]) / max(self.elapsed, 1e-12)

    def sliding_speed(self) -> Array:
        """(n,) fastest slip at a loaded contact [m/s]."""
        return self.contacts.fastest_slip(len(self.time))


def record(
    simulator: Simulator,
    data: mujoco.MjData,
    seconds: float,
    *,
    controller: Controller | None = None,
    watch: tuple[str, ...] = (),
    samples: int = 1000,
    name: str = "",
    xml: str = "",
    path: str = "",
    on_progress: Callable[[Progress], None] | None = None,
    on_sample: Callable[[mujoco.MjData, Report], None] | None = None,
) -> Recording:
    """Runs for `seconds` [s] from the state in data, and returns what was recorded.

    controller  called before each step
    watch       bodies whose slip is followed; none: every free body that comes into contact
    samples     how many at most, evenly apart
    name        of the scene; `xml` or `path` its model, for a trajectory that can be replayed.
                Without either the trajectory is bound to the simulator's own model
    on_progress called after each sample; on_sample too, with the data and the last step's report

    Ctrl-C, a solve that failed and a state that is not finite end the run early: what was done
    until then is returned, with `interrupted` or `failure` set. The simulator's statistics are
    reset.
    """
    if not isinstance(simulator, Simulator):
        raise InvalidInput("simulator", f"is {simulator!r}: a stiction.Simulator")
    check_data(simulator.model, data)
    check_watch(simulator.model, watch)
    for word, called in (
        ("controller", controller), ("on_progress", on_progress), ("on_sample", on_sample),
    ):  # fmt: skip
        if called is not None and not callable(called):
            raise InvalidInput(word, f"is {called!r}: a function, or None")
    if not (is_number(seconds) and 0.0 < seconds < np.inf):
        raise InvalidInput("seconds", f"is {seconds!r}: a run takes a positive time [s]")
    if not is_count(samples, 1):
        raise InvalidInput("samples", f"is {samples!r}: one or more")
    run = _Run(simulator, data, seconds, controller, samples, on_progress, on_sample)
    run.go()
    model = simulator.model
    n = run.done
    run.contacts.trim(n)
    touched = {name for pair in run.contacts.pairs for name in pair}
    trajectory = Trajectory(
        **run.states.arrays(n),
        timestep=float(model.opt.timestep),
        name=name,
        contact=contact_name(simulator.contact),
        watch=tuple(watch) or bodies_to_watch(model, touched),
        xml=xml,
        path=path,
    )
    trajectory.bind(model)
    return Recording(
        trajectory,
        run.contacts,
        motion(trajectory, trajectory.watch),
        run.penetration[:n],
        run.overlap[:n],
        run.worst[:n],
        run.pivots[:n],
        run.stages[:n],
        run.taken[:n],
        run.clock[:n],
        run.rung[:n],
        run.steps,
        run.elapsed,
        seconds,
        run.interrupted,
        run.failure,
        simulator.start_overlap,
    )


def median_step(clock: Array, taken: Array) -> float:
    """Median over the samples of the time of a step [us]."""
    if not (taken > 0.0).any():
        return 0.0
    return 1e6 * float(np.median(clock[taken > 0.0] / taken[taken > 0.0]))


class _Run:
    """The loop of `record` and what it gathers; `done` samples are whole at any moment."""

    def __init__(
        self,
        simulator: Simulator,
        data: mujoco.MjData,
        seconds: float,
        controller: Controller | None,
        samples: int,
        on_progress: Callable[[Progress], None] | None,
        on_sample: Callable[[mujoco.MjData, Report], None] | None,
    ) -> None:
        self.simulator, self.data, self.controller = simulator, data, controller
        self.seconds, self.on_progress, self.on_sample = seconds, on_progress, on_sample
        self.total = max(1, round(seconds / simulator.model.opt.timestep))
        self.every = ceil(self.total / samples)
        most = ceil(self.total / self.every) + 1
        self.states = States(simulator.model, most)
        self.contacts = ContactSeries()
        self.penetration, self.overlap = np.zeros(most), np.zeros(most)
        self.worst, self.pivots = np.zeros(most), np.zeros(most)
        self.stages = np.zeros((most, len(STAGES)))
        self.taken, self.clock = np.zeros(most), np.zeros(most)
        self.rung: list[dict[str, int]] = [{}]
        self.steps, self.done, self.elapsed = 0, 0, 0.0
        self.interrupted, self.failure = False, ""
        self._spent = 0.0

    def go(self) -> None:
        """Steps until the time is over or something ends it."""
        began = perf_counter()
        self.simulator.reset_statistics()
        self.states.add(self.data)
        self.done = 1
        try:
            while self.steps < self.total:
                self._advance(min(self.every, self.total - self.steps))
                if self.on_progress is not None:
                    now = self.steps * self.simulator.model.opt.timestep
                    worst = float(self.worst[: self.done].max())
                    elapsed = perf_counter() - began
                    self.on_progress(Progress(now, self.seconds, elapsed, worst))
        except KeyboardInterrupt:
            self.interrupted = True
        except StictionError as error:
            self.failure = str(error)
        self.elapsed = perf_counter() - began

    def _advance(self, steps: int) -> None:
        simulator, data = self.simulator, self.data
        self._spent = 0.0
        try:
            if self.controller is None:
                report = self._step(steps)
            else:
                for _ in range(steps - 1):  # reports that nobody keeps cost nothing
                    self.controller(simulator.model, data)
                    self._step(1)
                self.controller(simulator.model, data)
                report = self._step(1)
        except (StictionError, KeyboardInterrupt):
            if simulator.statistics.steps:
                self._sample(())
            raise
        self._sample(report.contacts)
        if self.on_sample is not None:
            self.on_sample(data, report)

    def _step(self, steps: int) -> Report:
        began = perf_counter()
        report = self.simulator.step(self.data, steps)
        self._spent += perf_counter() - began
        return report

    def _sample(self, contacts: tuple[Contact, ...]) -> None:
        simulator, data, k = self.simulator, self.data, self.done
        figures = simulator.statistics
        simulator.reset_statistics()
        self.contacts.add(k, contacts)
        self.penetration[k] = max(0.0, -float(data.contact.dist.min(initial=0.0)))
        self.overlap[k], self.worst[k] = figures.overlap, figures.worst
        self.pivots[k] = figures.most_pivots
        self.stages[k] = list(figures.seconds.values())
        self.taken[k], self.clock[k] = figures.steps, self._spent
        free = {NO_CONTACT: figures.steps} if figures.most_contacts == 0 else figures.rungs
        self.rung.append(free)
        self.states.add(data)
        self.steps += figures.steps
        self.done = k + 1
