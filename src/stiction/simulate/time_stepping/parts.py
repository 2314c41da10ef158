"""A step that no solver answers, taken in parts: shorter steps of the same law, one after the
other.

Grains in layers that land at once are the hardest that there is. A blow that reaches all of them
within one step has hundreds of contacts to decide together, and half the step is no easier, as long
as the same contacts close in it: impacts have no scale of time. But no two grains touch to the last
digit. In a part that is short enough the blow has passed the gaps of nanometres to its neighbours
only, few contacts are to be decided, and by the next part these grains move as they were told.

    part     a step like any other, from the state that the part before has left, with all laws
             certified; what its first solvers do not answer is mended briefly (`climb.py`)
    length   the whole, divided by two so and so often; after a part without an answer a sixteenth
             of it, after one with an answer twice as long, where that begins at a multiple of it

Of three castles of 183 grains each (mu = 1) that land on ramps, one step of 4 ms takes 70 to 115
tries, the shortest part being of some nanoseconds, and 20 to 30 s; as a whole it had no answer in
any time that was tried.

What is told of the step: the worst certificate of its parts, mean forces of constraints and mean
accelerations in `qfrc_constraint` and `qacc`; contacts, their forces and sensors as of the last
part.

How it fails: parts become too short, or too many are tried. Then all is as before the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from stiction.simulate.time_stepping.fallback import copy_table
from stiction.simulate.time_stepping.workspace import Count, Figure, Record, Total

if TYPE_CHECKING:
    from stiction.simulate.time_stepping.engine import TimeEngine

SHORTER, LONGER = 4, 1
"""Halvings of a part that is tried after one without an answer, and doublings after one with. With
half of it in place of a sixteenth, twice as many have no answer, and these take most of the
time."""

SHORTEST = 26
"""Halvings of a step at most: of a millisecond 15 ps."""

MOST_TRIES, MOST_UNANSWERED = 400, 40
"""Parts that are tried, with and without an answer."""

_INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_FORCES = slice(int(Record.FORCE), int(Record.FORCE) + 6)


class DividedStep:
    """The step that an engine has found no answer to, from the state of the data."""

    def __init__(self, engine: TimeEngine, data: mujoco.MjData) -> None:
        self._engine, self._data = engine, data
        model = engine.own.model
        self._whole = float(model.opt.timestep)
        self._begun, self._velocity = data.time, data.qvel.copy()
        self._state = np.zeros(mujoco.mj_stateSize(model, _INTEGRATION))
        mujoco.mj_getState(model, data, self._state, _INTEGRATION)
        self._memory, self._total = engine.memory, engine.work.step.total.copy()
        self._figure, self._table = np.zeros(len(Figure)), copy_table(engine.work)
        self._impulse, self._iterations, self._last = np.zeros(model.nv), 0, self._whole

    def take(self) -> bool:
        """Whether all parts have an answer; the step has been taken then."""
        done = False
        try:
            done = self._take_parts()
        finally:
            self._engine.set_timestep(self._whole)
            if not done:
                self._put_back()
        if done:
            self._sum_up()
        return done

    def _take_parts(self) -> bool:
        """Whether they were taken, as far as there are answers."""
        at, halvings, unanswered = 0, SHORTER, 0
        for _ in range(MOST_TRIES):
            while at % (length := 1 << (SHORTEST - halvings)):
                halvings += 1
            dt = self._whole / (1 << halvings)
            if self._engine.take_part(self._data, dt):
                self._note(dt)
                at, halvings = at + length, max(0, halvings - LONGER)
                if at == 1 << SHORTEST:
                    return True
            else:
                unanswered, halvings = unanswered + 1, halvings + SHORTER
                if halvings > SHORTEST or unanswered > MOST_UNANSWERED:
                    return False
        return False

    def _note(self, dt: float) -> None:
        """Adds the part that was just taken to what is told of all."""
        work, figure = self._engine.work, self._figure
        found = work.step.figure
        if found[Figure.WORST] >= figure[Figure.WORST]:
            self._table = copy_table(work)
        figure[Figure.WORST] = max(figure[Figure.WORST], found[Figure.WORST])
        figure[Figure.GAP] = min(figure[Figure.GAP], found[Figure.GAP])
        figure[Figure.ENERGY] += found[Figure.ENERGY]
        figure[Figure.RESIDUAL] = max(figure[Figure.RESIDUAL], found[Figure.RESIDUAL])
        figure[Figure.LIMITS] = found[Figure.LIMITS]
        self._impulse += dt * self._data.qfrc_constraint
        self._iterations += int(work.step.counts[Count.ITERATIONS])
        self._last = dt

    def _sum_up(self) -> None:
        """Leaves data and workspace as after one step."""
        data, work, total = self._data, self._engine.work, self._total
        step = work.step
        data.time = self._begun + self._whole
        data.qacc[:] = (data.qvel - self._velocity) / self._whole
        data.qfrc_constraint[:] = self._impulse / self._whole
        step.figure[:] = self._figure
        for to, array in zip(work.grading.table, self._table, strict=True):
            to[:] = array
        step.counts[Count.ITERATIONS] = self._iterations
        step.counts[Count.ATTEMPTS] = max(1, step.counts[Count.ATTEMPTS])
        # The last part's forces, as impulses of a whole step: what the next one begins with.
        step.record[: step.counts[Count.OLD], _FORCES] *= self._whole / self._last
        for entry in (Total.SAME, Total.WARM):
            step.total[entry] = total[entry]
        step.total[Total.STEPS] = total[Total.STEPS] + 1
        most = max(step.total[Total.MOST_ITERATIONS], self._iterations)
        step.total[Total.MOST_ITERATIONS] = most
        step.total[Total.CONTACTS] = total[Total.CONTACTS] + step.counts[Count.BLOCKS]
        pushed_out = step.total[Total.PROJECTED] > total[Total.PROJECTED]
        step.total[Total.PROJECTED] = total[Total.PROJECTED] + pushed_out

    def _put_back(self) -> None:
        """Leaves data and workspace as before the step."""
        mujoco.mj_setState(self._engine.own.model, self._data, self._state, _INTEGRATION)
        self._engine.memory = self._memory
        self._engine.work.step.total[:] = self._total
