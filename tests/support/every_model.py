"""Every MJCF below folders, stepped by stiction and by mj_step: what came of each, and how long it
took.

    python tests/support/every_model.py FOLDER ... [--steps 200] [--seconds 20] [--limit 90]
        [--controls] [--awake] [--failures DIRECTORY] [--only TEXT ...]

For example test/ and model/ of MuJoCo's own repository, or a copy of mujoco_menagerie. Each file
has a process of its own, which begins with all of it compiled and loaded, as after `stiction
warmup`. A line a file:

    OK        all steps, or as many as --seconds of processor time allow, passed their certificate
    REFUSED   stiction says why it does not take the model
    FAILED    a step was not solved; its problem goes to DIRECTORY
    RAWERR    an exception that is not stiction's own
    CRASH     the process ended
    TIMEOUT   --limit seconds of processor time were over in the middle of a step
    NOLOAD    MuJoCo does not load the file by itself; MJFAIL: mj_step raises an exception

then how many of each, the median of the ratios to mj_step, and what is above ten times it. Ratios
are of all steps but the first, in processor time without the clock's own, of a loop that looks at
nothing between two steps. With --controls they are drawn anew every 25 steps over their whole
range; with --awake mj_step lets no tree sleep.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import time
import warnings
from collections import Counter
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np

import stiction
from stiction.cli.warmup import JOBS
from stiction.simulate.time_stepping.engine import LATE_STAGES

WARM_UP = ("steps", "solvers", "complementarity")
"""Of `stiction warmup`, what steps of `Coulomb()` may need, with the late stages."""

HOLD = 25
"""Steps that a control is kept."""

SLOW = 10.0
"""Times mj_step that are listed."""


class Limits(NamedTuple):
    """How long a model is run."""

    steps: int = 200
    seconds: float = 20.0
    """Processor time after which no further step is begun."""
    limit: int = 90
    """Processor time after which the process is ended."""
    controls: bool = False
    failures: str | None = None
    awake: bool = False


class Outcome(NamedTuple):
    """What came of a model."""

    word: str
    text: str
    ratio: float = np.nan


def _starts(model: mujoco.MjModel) -> mujoco.MjData:
    """The first keyframe, or qpos0."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    return data


def _drive(model: mujoco.MjModel, data: mujoco.MjData, rng: np.random.Generator) -> None:
    low, high = model.actuator_ctrlrange.T
    limited = model.actuator_ctrllimited.astype(bool)
    data.ctrl[:] = np.where(
        limited, rng.uniform(low, np.maximum(high, low)), rng.normal(size=model.nu)
    )


def _clock() -> float:
    """Processor time that asking for it takes, which stands in every step's."""
    return min(-time.thread_time() + time.thread_time() for _ in range(1000))


def _timed(step, model, data, limits: Limits, count=None) -> list[float]:
    """Processor time of every step."""
    rng, times, begun, clock = np.random.default_rng(0), [], time.process_time(), _clock()
    while len(times) < (limits.steps if count is None else count):
        if count is None and time.process_time() - begun > limits.seconds:
            break
        if limits.controls and model.nu and len(times) % HOLD == 0:
            _drive(model, data, rng)
        before = time.thread_time()
        try:
            step(data)
        except stiction.StictionError as error:
            error.add_note(f"at step {len(times)}")
            raise
        times.append(max(time.thread_time() - before - clock, 0.0))
    return times


def run(path: Path, limits: Limits) -> Outcome:
    """Steps one model by both."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        return Outcome("NOLOAD", str(error))
    if limits.awake:
        model.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    try:
        mujoco.mj_step(model, _starts(model), 20)
    except Exception as error:
        return Outcome("MJFAIL", str(error))
    failures = None if limits.failures is None else Path(limits.failures) / path.stem
    data = _starts(model)
    try:
        simulator = stiction.Simulator(model, failures=failures)
    except stiction.InvalidInput as error:
        return Outcome("REFUSED", str(error))
    except Exception as error:
        return Outcome("RAWERR", repr(error))
    try:
        ours = _timed(simulator.step, model, data, limits)
    except stiction.StictionError as error:
        return Outcome("FAILED", f"{', '.join(error.__notes__)}: {error}")
    except Exception as error:
        return Outcome("RAWERR", repr(error))
    other = _starts(model)
    theirs = _timed(lambda d: mujoco.mj_step(model, d), model, other, limits, len(ours))
    ratio = sum(ours[1:]) / max(sum(theirs[1:]), 1e-9)
    return Outcome(
        "OK",
        f"steps {len(ours)} median {1e6 * np.median(ours):.0f} us"
        f" max {1e3 * max(ours[1:] or ours):.1f} ms mj_step {1e6 * np.median(theirs):.0f} us"
        f" ratio {ratio:.2f} worst {simulator.statistics.worst:.0e}"
        f" contacts {data.ncon} nv {model.nv}",
        ratio,
    )


def _child(path: Path, limits: Limits, pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limits.limit, limits.limit + 5))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    pipe.send(run(path, limits))


def in_own_process(path: Path, limits: Limits) -> Outcome:
    """`run`, in a process that may crash."""
    ours, theirs = get_context("fork").Pipe(duplex=False)
    process = get_context("fork").Process(target=_child, args=(path, limits, theirs))
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        found = None
    process.join()
    if found is not None:
        return found
    if process.exitcode == -signal.SIGXCPU:
        return Outcome("TIMEOUT", f"{limits.limit} s")
    return Outcome("CRASH", f"exit code {process.exitcode}")


def summary(found: dict[str, Outcome]) -> list[str]:
    """Lines that say what came of all."""
    counts = Counter(outcome.word for outcome in found.values())
    ratios = [outcome.ratio for outcome in found.values() if outcome.word == "OK"]
    lines = [", ".join(f"{count} {word}" for word, count in counts.most_common())]
    if ratios:
        slow = {name: o.ratio for name, o in found.items() if o.ratio > SLOW}
        lines.append(f"times mj_step: median {np.median(ratios):.2f}, above {SLOW:g}: {len(slow)}")
        lines += [f"  {ratio:6.1f}  {name}" for name, ratio in sorted(slow.items())]
    return lines


def main() -> None:
    """The lines, and the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", metavar="FOLDER", type=Path)
    parser.add_argument("--steps", type=int, default=Limits().steps)
    parser.add_argument("--seconds", type=float, default=Limits().seconds)
    parser.add_argument("--limit", type=int, default=Limits().limit)
    parser.add_argument("--controls", action="store_true")
    parser.add_argument("--awake", action="store_true")
    parser.add_argument("--failures", default=None)
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="in a file's path")
    asked = parser.parse_args()
    limits = Limits(
        asked.steps, asked.seconds, asked.limit, asked.controls, asked.failures, asked.awake
    )
    for job in WARM_UP:
        JOBS[job]()
    for late in LATE_STAGES:
        late.prepare()
    found = {}
    for path in sorted(path for folder in asked.folders for path in folder.rglob("*.xml")):
        if asked.only is None or any(text in str(path) for text in asked.only):
            found[str(path)] = in_own_process(path, limits)
            print(path, *found[str(path)][:2], file=sys.stdout, flush=True)
    print("\n".join(summary(found)))


if __name__ == "__main__":
    main()
