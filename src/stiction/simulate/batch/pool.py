"""Threads that step simulations: `Pool`, and the `Worker` that each of them has.

The compiled loop (`loop.py`) needs no Python but where a simulation stops it: then the worker does
what `TimeEngine` does for one simulation, and the loop goes on.
"""

from __future__ import annotations

import copy
import ctypes
import os
import queue
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.errors import StictionError
from stiction.kernels.clock import ticks_per_second
from stiction.simulate.batch.loop import Cursor, Job, Phase, now
from stiction.simulate.settings import Settings
from stiction.simulate.time_stepping.config import Stop
from stiction.simulate.time_stepping.engine import CHUNK, TimeEngine
from stiction.simulate.time_stepping.fallback import Answer
from stiction.simulate.time_stepping.workspace import Count

if TYPE_CHECKING:
    from stiction.simulate.derivatives.compiled import CompiledDerivatives

Words = NDArray[np.int64]


class Task(Protocol):
    """What is to be done, and who is asked where the compiled loop cannot go on."""

    job: Words
    """(Job,)"""

    def make_ready(self, worker: Worker, sim: int) -> None:
        """Checks and takes over the simulation's own fields of the model."""

    def make_room(self, sim: int, blocks: int) -> None:
        """Makes room for the guess of the simulation's next call."""

    def start(self, worker: Worker) -> None:
        """Prepares a worker."""

    def advance(self, worker: Worker, *arguments: int) -> int:
        """Runs the compiled loop; why it stopped. arguments: addresses of session, data, job and
        cursor."""

    def resolve(self, worker: Worker, stop: Stop) -> bool:
        """Removes what stopped the loop, if it is the task's own; whether it is."""

    def note(self, worker: Worker, answer: Answer) -> None:
        """Notes what answered a step that the compiled solver did not."""

    def fail(self, worker: Worker, at: int, error: StictionError) -> None:
        """Notes that the simulation at that position of the call failed."""


class Worker:
    """What one thread steps with."""

    def __init__(self, model: mujoco.MjModel, settings: Settings) -> None:
        self.engine = TimeEngine(model, settings)
        self.data = mujoco.MjData(model)
        self.cursor = np.zeros(len(Cursor), np.int64)
        self.derivatives: CompiledDerivatives | None = None

    def run(self, task: Task) -> None:
        """Takes simulations of the task and steps them until there are none."""
        job, cursor, engine = task.job, self.cursor, self.engine
        cursor[:] = 0
        session = int(engine.session.ctypes.data)
        addresses = (session, self.data._address, int(job.ctypes.data), int(cursor.ctypes.data))
        task.start(self)
        while cursor[Cursor.PHASE] != Phase.END:
            cursor[Cursor.DEADLINE] = now() + int(CHUNK * ticks_per_second())
            try:
                stop = task.advance(self, *addresses)
                if stop != Stop.DONE:
                    self._resolve(Stop(stop), task)
            except StictionError as error:
                task.fail(self, int(cursor[Cursor.AT]), error)
                cursor[Cursor.PHASE] = Phase.NEXT

    def _resolve(self, stop: Stop, task: Task) -> None:
        """Removes what stopped the loop, or raises it."""
        cursor, engine = self.cursor, self.engine
        if task.resolve(self, stop):
            return
        sim = task_simulation(task.job, int(cursor[Cursor.AT]))
        if stop == Stop.EDITED:
            task.make_ready(self, sim)
        elif stop == Stop.MEMORY:
            task.make_room(sim, int(engine.work.step.counts[Count.OLD]))
        elif stop == Stop.ROOM and cursor[Cursor.PHASE] == Phase.LOAD:
            engine.make_room(int(engine.work.step.counts[Count.NEED_BLOCKS]))
        else:
            answer = engine.resolve(stop, self.data)
            if answer is not None:
                task.note(self, answer)
                cursor[Cursor.SOLVED] = 1


def task_simulation(job: Words, at: int) -> int:
    """Number of the simulation at that position of a job."""
    return ctypes.c_int64.from_address(int(job[Job.IDS]) + 8 * at).value


class Pool:
    """As many workers as threads, the caller's among them."""

    def __init__(self, model: mujoco.MjModel, settings: Settings, nthread: int) -> None:
        self.nthread = nthread
        self.workers = [Worker(copy.copy(model), settings) for _ in range(nthread)]
        self._start()

    def _start(self) -> None:
        """Starts the threads beside the caller's; a forked process has none of them."""
        self._process = os.getpid()
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        for _ in range(self.nthread - 1):
            threading.Thread(
                target=_serve, args=(self._calls,), name="stiction-batch", daemon=True
            ).start()
        self._end = weakref.finalize(self, _dismiss, self._calls, self.nthread - 1)

    def run(self, task: Task) -> None:
        """Does the task; the first exception that is no simulation's failure is raised."""
        if self._process != os.getpid():
            self._end.detach()
            self._start()
        count = min(self.nthread, max(1, int(task.job[Job.COUNT])))
        done = threading.Semaphore(0)
        errors: list[BaseException] = []

        def help_with(worker: Worker) -> None:
            try:
                worker.run(task)
            except BaseException as error:
                errors.append(error)
                task.job[Job.HALT] = 1
            finally:
                done.release()

        for worker in self.workers[1:count]:
            self._calls.put(lambda worker=worker: help_with(worker))  # type: ignore[misc]
        help_with(self.workers[0])
        for _ in range(count):
            done.acquire()
        if errors:
            raise errors[0]


def _serve(calls: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    """What a thread does: calls, until there is None. It holds none of them while it waits."""
    while True:
        call = calls.get()
        if call is None:
            return
        call()
        del call


def _dismiss(calls: queue.SimpleQueue[Callable[[], None] | None], count: int) -> None:
    for _ in range(count):
        calls.put(None)
