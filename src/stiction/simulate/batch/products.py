"""Derivatives of the next steps of a batch's simulations, a task for its threads: `Products`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stiction.contact.derivatives.derivatives import DIFFERENTIABLE
from stiction.errors import StictionError
from stiction.simulate.batch.loop import Cursor, Phase
from stiction.simulate.batch.pool import Worker, task_simulation
from stiction.simulate.batch.product_loop import run_products
from stiction.simulate.derivatives.compiled import CompiledDerivatives
from stiction.simulate.derivatives.differentiator import Differentiator, check_law
from stiction.simulate.derivatives.transition import Ask, Want
from stiction.simulate.report import FRICTIONLESS
from stiction.simulate.time_stepping.config import Stop
from stiction.simulate.time_stepping.fallback import Answer

if TYPE_CHECKING:
    from stiction.simulate.batch.core import Core

Array = NDArray[np.float64]


class Products:
    """What is asked of a batch, and a task for its threads."""

    def __init__(
        self,
        core: Core,
        want: Want,
        ids: NDArray[np.int64],
        arrays: list[Array],
        smoothing: float,
    ) -> None:
        """arrays: those of `Ask.FIRST` and so on, a row for each simulation."""
        check_law(core.settings.contact.law)
        self.job = core.job
        self._core, self._want, self._ids, self._arrays = core, want, ids, arrays
        self._law = DIFFERENTIABLE[core.settings.contact.law]
        self._smoothing = smoothing

    def start(self, worker: Worker) -> None:
        """Prepares a worker's request."""
        if worker.derivatives is None:
            worker.derivatives = CompiledDerivatives(worker.engine)
        compiled = worker.derivatives
        compiled.follow()
        compiled.smooth(self._smoothing)
        request = compiled.request
        request[Ask.WANT], request[Ask.USUAL] = self._want, self._law
        for k in range(3):
            rows = self._arrays[k] if k < len(self._arrays) else None
            request[Ask.ROWS + 2 * k] = 0 if rows is None else rows.ctypes.data
            size = 0 if rows is None else int(np.prod(rows.shape[1:]))
            request[Ask.ROWS + 2 * k + 1] = size

    def advance(self, worker: Worker, *arguments: int) -> int:
        """Runs the compiled loop; why it stopped."""
        assert worker.derivatives is not None
        request = int(worker.derivatives.request.ctypes.data)
        return worker.engine.guard.call(worker.data, run_products, *arguments, request)

    def resolve(self, worker: Worker, stop: Stop) -> bool:
        """Removes what stopped the loop where it differentiates; whether it was there."""
        if worker.cursor[Cursor.PHASE] != Phase.SAVE:
            return False
        compiled, at = worker.derivatives, int(worker.cursor[Cursor.AT])
        assert compiled is not None
        if stop == Stop.MEMORY:
            compiled.adapt(self._core.own_of(worker, task_simulation(self.job, at)))
        elif stop == Stop.ROOM:
            compiled.make_room()
        else:
            if stop == Stop.ERROR:
                worker.engine.guard.recover(worker.data)
            self._differentiate_otherwise(worker, at)
            worker.cursor[Cursor.PHASE] = Phase.NEXT
        return True

    def _differentiate_otherwise(self, worker: Worker, at: int) -> None:
        """Differentiates the step of the simulation at that position in Python."""
        sim = task_simulation(self.job, at)
        physics, guess = self._core.beginning(worker, sim)
        found = Differentiator(worker.engine).differentiate_from(physics, guess, self._smoothing)
        first, second, *third = (rows[at] for rows in self._arrays)
        if self._want == Want.MATRICES:
            first[:], second[:] = found.A, found.B
        elif self._want == Want.FORWARD:
            third[0][:] = found.jvp(first, second)
        else:
            second[:], third[0][:] = found.vjp(first)

    def note(self, worker: Worker, answer: Answer) -> None:
        """Notes what answered a step."""
        if answer.flag == FRICTIONLESS:
            assert worker.derivatives is not None
            worker.derivatives.request[Ask.LAW] = DIFFERENTIABLE["frictionless"]

    def fail(self, worker: Worker, at: int, error: StictionError) -> None:
        """Notes that the simulation at that position failed: it has no derivatives."""
        self._core.note_failure(task_simulation(self.job, at), error)
        for rows in self._arrays[-2 if self._want != Want.FORWARD else -1 :]:
            rows[at] = np.nan

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)
