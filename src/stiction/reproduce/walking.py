"""The walking quadruped of Drumwright's Tables II and III, by any contact model and stepper."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mujoco
import numpy as np

from stiction import scenes
from stiction.contact import ContactModel, ContactProblem, ContactSolution
from stiction.contact.problem.modes import Mode
from stiction.errors import StictionError
from stiction.record.comparison import tuned
from stiction.reproduce.problems import Around
from stiction.reproduce.result import COMPILING, clock
from stiction.reproduce.viscous_ways import BothWays
from stiction.simulate import EventDriven, Simulator, TimeStepping

FRICTION = 100.0
FALLEN = 0.2  # m, height of the trunk; it walks at 0.3
REACH = 1e-5  # m, gap of a contact that counts as one


class Timed(Around):
    """Another contact model, its times kept; the simulator takes the Python path for it."""

    def __init__(self, inner: ContactModel) -> None:
        super().__init__(inner)
        self.seconds: list[float] = []
        """Of solves."""

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """What the inner model finds."""
        began = clock()
        found = self.inner.solve(problem)
        self.seconds.append(clock() - began)
        return found


class Walker:
    """A quadruped under way: one contact model, one stepper, its own controller.

    contact None is MuJoCo's own step, tuned with `noslip` iterations unless that is None.
    """

    def __init__(
        self,
        name: str,
        contact: ContactModel | None,
        seconds: float,
        *,
        friction: float = FRICTION,
        stepper: TimeStepping | EventDriven | None = None,
        noslip: int | None = None,
    ) -> None:
        self.name, self.contact = name, contact
        self.model, self.data, controller = scenes.load("quadruped", friction=friction)
        assert controller is not None
        self._controller = controller
        if noslip is not None:
            self.model = tuned(self.model, noslip)
        self._simulator: Simulator | None = None
        if contact is not None:
            self._simulator = Simulator(self.model, contact, stepper=stepper or TimeStepping())
        self.wanted = round(seconds / self.model.opt.timestep)
        self.contacts: list[int] = []
        """That press or touch, step by step."""
        self.times: list[float] = []
        self.places: list[float] = []
        """Of the trunk along x [m]."""
        self.lowest = np.inf
        """Height of the trunk [m]."""
        self.stopped = ""
        """Why no further step could be taken, or nothing."""
        self.seconds = 0.0
        """Of all steps, control included [s]."""

    @property
    def steps(self) -> int:
        """That were taken."""
        return len(self.times)

    @property
    def done(self) -> bool:
        """Whether there is nothing more to do."""
        return self.steps >= self.wanted or bool(self.stopped) or self.lowest < FALLEN

    @property
    def end(self) -> str:
        """What became of it."""
        if self.stopped:
            return "stopped: no solution"
        return "fell" if self.lowest < FALLEN else "walked"

    @property
    def distance(self) -> float:
        """Along x [m]."""
        return self.places[-1] if self.places else 0.0

    @property
    def per_step(self) -> float:
        """Mean time of a step, control included [s]."""
        extra = self.contact.overhead if isinstance(self.contact, BothWays) else 0.0
        return (self.seconds - extra) / max(self.steps, 1)

    @property
    def per_solve(self) -> float:
        """Median time of a solve [s]; not a number where it is not measured."""
        kept = self.contact.seconds if isinstance(self.contact, Timed) else []
        return float(np.median(kept)) if kept else float("nan")

    @property
    def worst(self) -> float:
        """Largest violation in a certificate; MuJoCo has none."""
        return float("nan") if self._simulator is None else self._simulator.statistics.worst

    def step(self) -> None:
        """Control and one step."""
        began = clock()
        self._controller(self.model, self.data)
        try:
            touching = self._advance()
        except StictionError as error:
            self.stopped = readable(str(error))
            return
        took = clock() - began
        self.seconds += took if took < COMPILING else 0.0
        self.contacts.append(touching)
        self.lowest = min(self.lowest, float(self.data.qpos[2]))
        self.times.append(float(self.data.time))
        self.places.append(float(self.data.qpos[0]))

    def _advance(self) -> int:
        """Takes a step; returns how many contacts touch."""
        if self._simulator is None:
            mujoco.mj_step(self.model, self.data)
            return int(self.data.ncon)
        report = self._simulator.step(self.data)
        return sum(c.mode != Mode.SEPARATE or c.gap <= REACH for c in report.contacts)


def readable(message: str) -> str:
    """What went wrong and where, without the advice that follows."""
    first, _, _ = message.removeprefix("error: ").partition(". The state is as before")
    return f"{first}."


def walk_together(walkers: Sequence[Walker], progress: Callable[[float], None]) -> None:
    """Lets all walk to their ends, a step each in turns: a busy machine is busy for all."""
    most = max(walker.wanted for walker in walkers)
    for step in range(most):
        if step % max(1, most // 100) == 0:
            progress(step / most)
        for walker in walkers:
            if not walker.done:
                walker.step()
