"""Runs in processes of their own, each of which takes one run after another.

A process is asked by a line of JSON and answers by another, so that a caller's script needs no
guard around its main part, and one that dies takes nothing with it but the run at hand: that is
tried again in a new process, and if this dies as well the run is a row that says so.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from stiction.sweeps.run import Row, Run, crashed, execute

TRIES = 2
"""Processes that a run may end before it is given up."""

WORKER = (sys.executable, "-c", "from stiction.sweeps.processes import serve; serve()")

WAIT = 0.2
"""Time between two looks for Ctrl-C [s]: not every system wakes a thread that waits."""


def in_processes(
    runs: Sequence[Run], count: int, command: Sequence[str] = WORKER
) -> Iterator[tuple[int, Row]]:
    """Position and row of each run, in the order in which they end; in `count` processes."""
    waiting: queue.SimpleQueue[tuple[int, Run]] = queue.SimpleQueue()
    ended: queue.SimpleQueue[tuple[int, Row] | BaseException] = queue.SimpleQueue()
    for entry in enumerate(runs):
        waiting.put(entry)
    callers = [_Caller(waiting, ended, command) for _ in range(min(count, len(runs)))]
    for caller in callers:
        caller.start()
    try:
        for _ in runs:
            item = None
            while item is None:
                try:
                    item = ended.get(timeout=WAIT)
                except queue.Empty:
                    continue
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        for caller in callers:
            caller.stop()
        for caller in callers:
            caller.join()


class _Caller(threading.Thread):
    """Hands runs to a process and waits for their rows."""

    def __init__(
        self,
        waiting: queue.SimpleQueue[tuple[int, Run]],
        ended: queue.SimpleQueue[tuple[int, Row] | BaseException],
        command: Sequence[str],
    ) -> None:
        super().__init__(name="stiction-sweep", daemon=True)
        self._waiting, self._ended, self._command = waiting, ended, command
        self._process: _Process | None = None
        self._lock = threading.Lock()
        self._stopped = False

    def run(self) -> None:
        try:
            while not self._stopped:
                position, run = self._waiting.get_nowait()
                row = self._row(run)
                if row is not None:
                    self._ended.put((position, row))
        except queue.Empty:
            return
        except BaseException as error:
            self._ended.put(error)
        finally:
            if self._process is not None:
                self._process.end()

    def _row(self, run: Run) -> Row | None:
        """The run's row; None if the sweep was stopped meanwhile."""
        why = ""
        for _ in range(TRIES):
            with self._lock:
                if self._stopped:
                    return None
                self._process = self._process or _Process(self._command)
            row = self._process.ask(run)
            if row is not None:
                return row
            why = self._process.end()
            self._process = None
        return None if self._stopped else crashed(run, why)

    def stop(self) -> None:
        """Ends the run at hand, and begins no other."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()


class _Process:
    """A process that runs what it is asked to."""

    def __init__(self, command: Sequence[str]) -> None:
        package = str(Path(__file__).parents[2])
        found = filter(None, [package, os.environ.get("PYTHONPATH")])
        # As many processes as processors: threads of a BLAS would only disturb each other.
        alone = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**alone, **os.environ, "PYTHONPATH": os.pathsep.join(found)},
            text=True,
            encoding="utf-8",
        )

    def ask(self, run: Run) -> Row | None:
        """The run's row; None if the process ended before it answered."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(asdict(run)) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            return None
        return json.loads(line) if line.endswith("\n") else None

    def kill(self) -> None:
        """Ends it, whatever it does."""
        self._process.kill()

    def end(self) -> str:
        """Waits for its end; how it ended, and what it said last."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            try:
                stream.close()
            except OSError:  # what was to be written to it cannot be any more
                continue
        code = self._process.wait()
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip().splitlines()
        self._said.close()
        return f"the process ended {_how(code)}" + (f": {said[-1]}" if said else "")


def _how(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


def serve(execute: Callable[[Run], Row] = execute) -> None:
    """What such a process does: runs from standard input, rows to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asks
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no row
    for line in sys.stdin:
        row = execute(Run(**json.loads(line)))
        answers.write(json.dumps(row) + "\n")
        answers.flush()
