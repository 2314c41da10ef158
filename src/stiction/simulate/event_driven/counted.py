"""`CountedEvents`: the event-driven engine behind the interface that simulators step by."""

from __future__ import annotations

from collections import Counter
from time import perf_counter
from typing import Any

import mujoco
import numpy as np

from stiction.simulate.event_driven.engine import EventDriven, EventEngine
from stiction.simulate.event_driven.output import all_solving
from stiction.simulate.report import Report, Statistics, summarize
from stiction.simulate.settings import Settings
from stiction.simulate.time_stepping.workspace import Total


class CountedEvents:
    """Steps of `EventDriven`, counted as `TimeEngine` counts its own."""

    def __init__(self, model: mujoco.MjModel, settings: Settings) -> None:
        assert isinstance(settings.stepper, EventDriven)
        self._engine = EventEngine(model, settings.contact, settings.stepper)
        self.stale = False
        """Whether the model is to be copied anew before the next step."""
        self._rungs: Counter[str] = Counter()
        self.reset_statistics()

    def refresh(self) -> None:
        """Copies the model anew."""
        self.stale = False
        self._engine.refresh()

    def step(self, data: mujoco.MjData, nstep: int) -> Report:
        """Takes steps; the last one's report."""
        total = self._total
        for _ in range(nstep):
            if self.stale:
                self.refresh()
            began = perf_counter()
            report = self._engine.step(data)
            self._elapsed += perf_counter() - began
            told = self._engine.summary
            self._rungs[told.rungs[-1]] += 1
            total[Total.STEPS] += 1
            total[Total.CONTACTS] += told.contacts
            total[Total.ITERATIONS] += told.pivots
            total[Total.WORST] = max(total[Total.WORST], told.worst)
            total[Total.GAP] = min(total[Total.GAP], -told.overlap)
            total[Total.ENERGY] = max(total[Total.ENERGY], told.energy)
            total[Total.MOST_CONTACTS] = max(total[Total.MOST_CONTACTS], told.contacts)
            total[Total.MOST_ITERATIONS] = max(total[Total.MOST_ITERATIONS], told.pivots)
        return report

    @property
    def statistics(self) -> Statistics:
        """Figures over all steps since the last reset."""
        spent = all_solving(self._elapsed)
        return summarize(np.array(self._total), self._rungs, (), spent)

    def reset_statistics(self) -> None:
        """Starts the statistics anew."""
        # Not an array: from Python, entries of lists are written in a third of the time.
        self._total, self._elapsed = [0.0] * len(Total), 0.0
        self._rungs.clear()

    @property
    def memory(self) -> Any:
        """The phase that the last step ended in."""
        return self._engine.memory

    @memory.setter
    def memory(self, memory: Any) -> None:
        self._engine.memory = memory

    def overwritten(self) -> None:
        """Notes that what the last step left in the data may stand there no more; each step writes
        all of it."""

    def forget(self) -> None:
        """Drops it: the next step finds its phase from the state."""
        self._engine.memory = None
