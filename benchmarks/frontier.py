"""Error against cost: what a result of a given accuracy takes, not what a step takes.

    python benchmarks/frontier.py                    everything, half an hour or more
    python benchmarks/frontier.py --quick            two step sizes, one round, without peers
    python benchmarks/frontier.py --scenes pinch arch --methods stiction mujoco-C drake
    python benchmarks/frontier.py --out docs/frontier.json     keeps the numbers, beside those of
                                                               scenes that are not run
    python benchmarks/frontier.py --read docs/frontier.json    shows numbers that were kept

Every scene (`frontier_scenes.py` says what its error is) is run at steps of 0.5 to 20 ms by
`stiction.Simulator` as it comes (and with its `EventDriven` stepper on the two scenes whose motion
has corners but no rest), MuJoCo as the scene sets it (elliptic cones, impratio 10, its
default contacts), MuJoCo tuned against slip (A, C: `stiction.record.comparison`), and where they
are installed by Drake, PyBullet and DART (`frontier_peers.py` says how each is set up).

The cost is processor time per simulated second: of the calls that step, called by as many steps
as lie between two samples (0.1 s), by single steps where a controller has to be asked before each.
All runs of a scene go in turns, and a cost is the median of the rounds; a run of more than
`SLOW` seconds is not repeated, and one that has taken `LIMIT` is given up. Errors are those of the
first round. A run that ended early says how: a warning of MuJoCo's about its state, a step that
stiction did not solve, a fall, or a body that is metres from where anything could be.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import NamedTuple

import frontier_peers
import mujoco
import numpy as np
from frontier_scenes import CASES, SAMPLE, Ended, Samples, creep
from rich.console import Console
from rich.progress import track
from rich.table import Table

import stiction
from stiction.cli.warmup import JOBS
from stiction.record import tuned
from stiction.record.comparison import NOSLIP, quiet

STEPS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""ms"""
QUICK_STEPS = (2.0, 10.0)
ROUNDS = 3
SLOW, LIMIT = 4.0, 90.0
"""s of processor time: of a run that is not repeated, of one that is given up."""
FAR = 1000.0
"""m from the origin: nothing gets there, not even by falling, that has not blown up."""
UNSTABLE = tuple(
    int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{name}")) for name in ("QPOS", "QVEL", "QACC")
)


class Stiction:
    """`stiction.Simulator` as it comes, or driven by events."""

    def __init__(self, scene, model, data, events=False):
        self.model, self.data = model, data
        stepper = stiction.EventDriven(dt=model.opt.timestep) if events else None
        self.simulator = stiction.Simulator(model, stepper=stepper)

    def advance(self, steps):
        try:
            self.simulator.step(self.data, steps)
        except stiction.StictionError as error:
            raise Ended("not solved") from error

    def qpos(self):
        return self.data.qpos


class MuJoCo:
    """`mj_step`; `noslip` as in `tuned`, None for the options that the scene has."""

    def __init__(self, scene, model, data, noslip):
        self.model, self.data = model if noslip is None else tuned(model, noslip), data

    def advance(self, steps):
        mujoco.mj_step(self.model, self.data, steps)
        if any(self.data.warning[kind].number for kind in UNSTABLE):
            raise Ended("blew up")

    def qpos(self):
        return self.data.qpos


EVENTS = "stiction-events"
WARM_UP = ("steps", "events")
"""Of `stiction warmup`: loading machine code is no part of a cost."""
METHODS = {
    "stiction": Stiction,
    EVENTS: partial(Stiction, events=True),
    **{name: partial(MuJoCo, noslip=noslip) for name, noslip in NOSLIP.items()},
    **frontier_peers.ENGINES,
}
TUNED = ("mujoco-A", "mujoco-C")
TITLES = {
    "stiction": "stiction",
    EVENTS: "stiction, events",
    "mujoco": "MuJoCo",
    "mujoco-A": "MuJoCo tuned, A",
    "mujoco-C": "MuJoCo tuned, C",
    "drake": "Drake",
    "bullet": "PyBullet",
    "dart": "DART",
}


class Outcome(NamedTuple):
    """One run."""

    cost: float
    """Processor time over simulated time."""
    ended: str
    """Why it ended early, or empty."""
    samples: Samples


def run(case, method, step):
    """The case by one method at `step` [s]."""
    model, data, controller = case.load()
    model.opt.timestep = step
    engine = METHODS[method](case.name, model, data)
    states, spent, ended = [data.qpos.copy()], 0.0, ""
    while not ended and len(states) <= round(case.seconds / SAMPLE):
        try:
            spent += advance(engine, controller, round(SAMPLE / step))
            states.append(np.array(engine.qpos()))
            ended = trouble(case, model, states, spent)
        except Ended as reason:
            ended = str(reason)
    time = SAMPLE * np.arange(len(states))
    return Outcome(spent / max(time[-1], SAMPLE), ended, Samples(model, time, np.array(states)))


def trouble(case, model, states, spent):
    """Why a run should not go on from the last of its states, or empty."""
    if not np.all(np.abs(states[-1]) < FAR):
        return "blew up"
    return case.lost(model, states) or ("too slow" if spent > LIMIT else "")


def advance(engine, controller, steps):
    """Seconds of the processor that the steps took, without the controller's."""
    if controller is None:
        begun = process_time()
        engine.advance(steps)
        return process_time() - begun
    spent = 0.0
    for _ in range(steps):
        controller(engine.model, engine.data)
        begun = process_time()
        engine.advance(1)
        spent += process_time() - begun
    return spent


def reference_of(case, step):
    """(n, nq) by stiction at `step` [s]; says how far MuJoCo, tuned, is from it."""
    ours, theirs = (run(case, method, step).samples for method in ("stiction", "mujoco-A"))
    ours = ours._replace(reference=theirs.qpos)
    for panel, error in case.errors.items():
        print(
            f"{panel}: reference at {1e3 * step:g} ms; MuJoCo tuned, A, is {error(ours):.1e} m off"
        )
    return ours.qpos


def measure(case, methods, steps, rounds):
    """One row for each panel, method and step size [ms]."""
    points = [
        (step, method)
        for step in steps
        for method in methods
        if (case.peers or method not in frontier_peers.ENGINES)
        and (case.smooth or method != EVENTS)
    ]
    for method in {method for _, method in points}:
        # Loads, or compiles, what it needs.
        METHODS[method](case.name, *case.load()[:2]).advance(2)
    reference = reference_of(case, 1e-3 * min(steps) / 4) if case.referred else None
    first, costs = {}, {point: [] for point in points}
    turns = [(k, point) for k in range(rounds) for point in points]
    for turn, (step, method) in track(turns, description=f"{case.name:<8}"):
        known = costs[step, method]
        if turn and max(known) * case.seconds > SLOW:
            continue
        outcome = run(case, method, 1e-3 * step)
        known.append(outcome.cost)
        if turn == 0:
            first[step, method] = outcome
    rows = []
    for (step, method), outcome in first.items():
        samples = outcome.samples._replace(reference=reference)
        for panel, error in case.errors.items():
            rows.append(
                {
                    "scene": case.name,
                    "panel": panel,
                    "method": method,
                    "step": step,
                    "error": None if outcome.ended else error(samples),
                    "cost": float(f"{np.median(costs[step, method]):.4g}"),
                    "ended": outcome.ended,
                    "creep": creep(samples) if case.still and not outcome.ended else None,
                }
            )
    return rows


def environment():
    """What the numbers belong to."""
    packages = {"stiction": stiction.__version__}
    for name in ("mujoco", *frontier_peers.PACKAGES.values()):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"python": platform.python_version(), "machine": platform.machine(), **packages}


def length(metres):
    """A length as one would say it."""
    if metres == 0.0:
        return "0"
    for scale, unit in ((1.0, "m"), (1e-3, "mm"), (1e-6, "um"), (1e-9, "nm"), (1e-12, "pm")):
        if metres >= scale:
            return f"{metres / scale:.3g} {unit}"
    return "< 1 pm"


def speed(cost):
    """How many times faster than real time."""
    return f"{1 / cost:.0f} x" if cost < 0.1 else f"{1 / cost:.2g} x"


def cell(row):
    """Speed and error of a point."""
    return f"{speed(row['cost'])}, {row['ended'] or length(row['error'])}"


def show(rows, console):
    """A table of each panel: methods down, steps across."""
    for panel in dict.fromkeys(row["panel"] for row in rows):
        mine = [row for row in rows if row["panel"] == panel]
        steps = sorted({row["step"] for row in mine})
        table = Table("", *(f"{step:g} ms" for step in steps), title=panel)
        for method in dict.fromkeys(row["method"] for row in mine):
            by_step = {row["step"]: row for row in mine if row["method"] == method}
            table.add_row(TITLES[method], *(cell(by_step[step]) for step in steps))
        console.print(table)


def best(rows, panel, methods, step, by="error"):
    """The row of a panel at that step with the least error among methods, or None."""
    found = [
        row
        for row in rows
        if row["panel"] == panel and row["method"] in methods and row["step"] == step
    ]
    found.sort(key=lambda row: (bool(row["ended"]), row[by] or 0.0, row["cost"]))
    return found[0] if found else None


def markdown(rows):
    """The short table of the documentation.

    Of MuJoCo the better of its tuned ways at that step, of the peers the best one: by error.
    """

    def text(row, named=False):
        if row is None:
            return "-"
        return f"{TITLES[row['method']]}: {cell(row)}" if named else cell(row)

    lines = [
        "| scene | stiction at 10 ms | MuJoCo at 1 ms | tuned at 1 ms | tuned at 10 ms "
        "| best of Drake, PyBullet, DART at 1 ms |",
        "|---|---|---|---|---|---|",
    ]
    for panel in dict.fromkeys(row["panel"] for row in rows):
        columns = (
            text(best(rows, panel, ("stiction",), 10.0)),
            text(best(rows, panel, ("mujoco",), 1.0)),
            text(best(rows, panel, TUNED, 1.0)),
            text(best(rows, panel, TUNED, 10.0)),
            text(best(rows, panel, tuple(frontier_peers.ENGINES), 1.0), named=True),
        )
        lines.append(f"| {panel} | " + unbroken(" | ".join(columns)) + " |")
    return "\n".join(lines)


def creep_markdown(rows):
    """How far bodies moved in the second half, by method at 1 ms, and ours at 10 ms."""
    panels = list(dict.fromkeys(row["panel"] for row in rows if CASES[row["scene"]].still))
    lines = ["| moved by | " + " | ".join(panels) + " |", "|---" * (len(panels) + 1) + "|"]
    shown = [("stiction", 10.0), *((method, 1.0) for method in METHODS if method != EVENTS)]
    for method, step in shown:
        found = [best(rows, panel, (method,), step, by="creep") for panel in panels]
        cells = ("-" if row is None else row["ended"] or length(row["creep"]) for row in found)
        lines.append(unbroken(f"| {TITLES[method]}, {step:g} ms | " + " | ".join(cells) + " |"))
    return "\n".join(lines)


def unbroken(line):
    """A row of a Markdown table whose numbers stay with their units."""
    return re.sub(r"(?<=\d) (?=[a-z])|(?<=<) (?=\d)", "\N{NO-BREAK SPACE}", line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two steps, one round, no peers")
    parser.add_argument("--scenes", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--methods", nargs="+", choices=METHODS)
    parser.add_argument("--steps", nargs="+", type=float, help="ms")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, help="file for the numbers (JSON)")
    parser.add_argument("--read", type=Path, help="show these numbers, run nothing")
    options = parser.parse_args()
    console = Console()
    rows = read(options.read) if options.read else run_all(options)
    show(rows, console)
    console.print("times real time by processor time, and error; short form:\n")
    print(markdown(rows))
    print("\nhow far what should not move got in the second half:\n")
    print(creep_markdown(rows))


def run_all(options):
    """The rows of the scenes that are asked for."""
    missing = frontier_peers.missing()
    methods = options.methods or [
        name for name in METHODS if not (options.quick and name in frontier_peers.ENGINES)
    ]
    for name in [name for name in methods if name in missing]:
        print(f"{TITLES[name]}: {frontier_peers.PACKAGES[name]} is not installed, left out")
        methods.remove(name)
    steps = options.steps or (QUICK_STEPS if options.quick else STEPS)
    rounds = 1 if options.quick else options.rounds
    for job in WARM_UP:
        JOBS[job]()
    rows = []
    for name in options.scenes:
        with quiet():
            rows += measure(CASES[name], methods, steps, rounds)
        if options.out:
            keep(rows, options.out)
    return rows


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))["rows"]


def keep(rows, path):
    """Writes them to the file, where rows of other scenes stay."""
    done = {row["scene"] for row in rows}
    others = [row for row in read(path) if row["scene"] not in done] if path.exists() else []
    order = list(CASES)
    everything = sorted(others + rows, key=lambda row: order.index(row["scene"]))
    lines = ",\n".join(json.dumps(row) for row in everything)
    head = json.dumps(environment())
    path.write_text(f'{{"environment": {head},\n"rows": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
