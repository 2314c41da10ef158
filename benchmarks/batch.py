"""Many simulations at once: `stiction.Batch` on one thread and two, beside `mujoco.batch.Batch`.

    python benchmarks/batch.py            everything, in one run
    python benchmarks/batch.py --quick    the table of models only

`bare` is what the same steps cost in the compiled loop that a `Simulator` calls, without the rest
of the call: what a batch takes beyond it is its overhead. Times are those of the processor (all
threads together), in turns within one run, so that other programs on the machine do not count.
`efficiency` is the processor's time per step on one thread over that on two: twice that is the
speed-up of an idle machine. `speed-up` is by the clock: the shortest of many calls on one thread
over the shortest on two, in turns, so that a machine which is idle now and then, for the few
milliseconds of a call, shows what it can; on one that never is it shows less.

Models that are not installed are left out: Ant and Humanoid come with gymnasium, the standing
robot with dm_control, the hand with gymnasium-robotics.
"""

from __future__ import annotations

import argparse
import copy
import resource
from time import perf_counter, process_time

import mujoco
import numpy as np
from mujoco import batch as mujoco_batch
from simulator_speed import lift_onto_floor, package_file, settle, settle_hand, standing

import stiction
from stiction import scenes
from stiction.simulate.time_stepping.config import Stop
from stiction.simulate.time_stepping.loop import run
from stiction.simulate.time_stepping.workspace import Count

NSIM, NSTEP, ROUNDS = 64, 10, 15
CALLS = 400
"""On one thread, and on two, in turns, of which the shortest tell the speed-up."""


def cases():
    """(name, model, data) of every model that is at hand."""
    model, data, _ = scenes.load("pinch")
    stiction.Simulator(model).step(data, 200)
    yield "pinch", model, data
    for name in ("ant", "humanoid"):
        path = package_file("gymnasium", "envs", "mujoco", "assets", f"{name}.xml")
        if path is None:
            print(f"{name}: gymnasium is not installed, left out")
            continue
        model = mujoco.MjModel.from_xml_path(str(path))
        data = mujoco.MjData(model)
        lift_onto_floor(model, data)
        yield name, model, data
    path = package_file("dm_control", "suite", "quadruped.xml")
    if path is None:
        print("quadruped: dm_control is not installed, left out")
    else:
        model = standing(path, 300.0)
        data = mujoco.MjData(model)
        settle(model, data)
        yield "standing quadruped", model, data
    path = package_file("gymnasium_robotics", "envs", "assets", "hand", "manipulate_block.xml")
    if path is None:
        print("hand: gymnasium-robotics is not installed, left out")
    else:
        model = mujoco.MjModel.from_xml_path(str(path))
        data = mujoco.MjData(model)
        settle_hand(model, data)
        yield "hand with a block", model, data


def states(model, data, count):
    """Rows of mjSTATE_INTEGRATION that differ a little in velocities."""
    rng = np.random.default_rng(0)
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    rows = np.empty((count, mujoco.mj_stateSize(model, spec)))
    for row in rows:
        own = copy.copy(data)
        own.qvel[:] += 0.01 * rng.standard_normal(model.nv)
        mujoco.mj_getState(model, own, row, spec)
    return rows


def new_controls(model, rng, count):
    """(count, nu) within their limits: what moves does not come to rest."""
    low, high = np.where(
        model.actuator_ctrllimited[:, None] > 0, model.actuator_ctrlrange, [-1.0, 1.0]
    ).T
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return middle + 0.2 * half * rng.uniform(-1.0, 1.0, (count, model.nu))


class Bare:
    """The compiled loop of a simulator each."""

    def __init__(self, model, rows):
        self.sims = [stiction.Simulator(model) for _ in rows]
        self.data = [mujoco.MjData(model) for _ in rows]
        for data, row in zip(self.data, rows, strict=True):
            mujoco.mj_setState(model, data, row, mujoco.mjtState.mjSTATE_INTEGRATION)

    def step(self, nstep):
        for sim, data in zip(self.sims, self.data, strict=True):
            engine = sim._engine
            if run(int(engine.session.ctypes.data), data._address, nstep, 0) != Stop.DONE:
                sim.step(data, nstep - int(engine.work.step.counts[Count.DONE]))


class Single:
    """`mj_step` of one data each."""

    def __init__(self, model, rows):
        self.model = model
        self.data = [mujoco.MjData(model) for _ in rows]
        for data, row in zip(self.data, rows, strict=True):
            mujoco.mj_setState(model, data, row, mujoco.mjtState.mjSTATE_INTEGRATION)

    def step(self, nstep):
        for data in self.data:
            mujoco.mj_step(self.model, data, nstep)


def filled(batch, rows):
    batch.state[:] = rows
    return batch


def measure(model, data):
    """(us of the processor per step of each way, worst certificate), medians of rounds in turns."""
    rows = states(model, data, NSIM)
    ways = {
        "bare": Bare(model, rows),
        "one": filled(stiction.Batch(model, NSIM, 1), rows),
        "two": filled(stiction.Batch(model, NSIM, 2), rows),
        "mj_step": Single(model, rows),
        "mujoco one": filled(mujoco_batch.Batch(model, NSIM, 1), rows),
        "mujoco two": filled(mujoco_batch.Batch(model, NSIM, 2), rows),
    }
    busy = {name: [] for name in ways}
    rng = np.random.default_rng(2)
    for turn in range(ROUNDS + 1):
        controls = new_controls(model, rng, NSIM)
        for name, way in ways.items():
            for k in range(NSIM):
                (way.ctrl[k] if hasattr(way, "nsim") else way.data[k].ctrl)[:] = controls[k]
            begun = process_time()
            way.step(nstep=NSTEP)
            if turn:
                busy[name].append(1e6 * (process_time() - begun) / (NSIM * NSTEP))
    worst = float(ways["two"].certificate.max())
    return {name: float(np.median(times)) for name, times in busy.items()}, worst


def speed_up(model, data):
    """Shortest call by the clock on one thread over the shortest on two, of many in turns."""
    rows, rng = states(model, data, NSIM), np.random.default_rng(3)
    batches = [filled(stiction.Batch(model, NSIM, nthread), rows) for nthread in (1, 2)]
    controls, least = new_controls(model, rng, NSIM), [np.inf, np.inf]
    for _ in range(CALLS):
        for k, batch in enumerate(batches):
            batch.state[:], batch.ctrl[:] = rows, controls  # the same steps in every call
            begun = perf_counter()
            batch.step(nstep=NSTEP)
            least[k] = min(least[k], perf_counter() - begun)
    return least[0] / least[1]


def calls():
    """What a call of `sim.step` costs beyond its compiled step, where a step is next to nothing."""
    xml = "<body><joint type='slide'/><geom size='.1'/></body>"
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{xml}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    sim = stiction.Simulator(model)
    held = [sim.step(data, 100)]

    def hold(data):
        held[0] = sim.step(data)

    session, address = int(sim._engine.session.ctypes.data), data._address
    ways = {  # (function, arguments, how often)
        "sim.step": (sim.step, (data,), 2000),
        "held": (hold, (data,), 2000),
        "stiction.step": (stiction.step, (model, data), 2000),
        "compiled": (run, (session, address, 2000, 0), 1),
        "mj_step": (mujoco.mj_step, (model, data), 2000),
        "mj_step, in C": (mujoco.mj_step, (model, data, 2000), 1),
    }
    least = dict.fromkeys(ways, np.inf)
    for _ in range(40):
        for name, (way, arguments, count) in ways.items():
            begun = process_time()
            for _ in range(count):
                way(*arguments)
            least[name] = min(least[name], 1e6 * (process_time() - begun) / 2000)
    print(
        "\na call, beyond the step itself: "
        f"sim.step {least['sim.step'] - least['compiled']:.1f} us, "
        f"where the report before is held {least['held'] - least['compiled']:.1f} us, "
        f"stiction.step {least['stiction.step'] - least['compiled']:.1f} us, "
        f"mj_step {least['mj_step'] - least['mj_step, in C']:.1f} us"
    )


def table():
    print(f"{NSIM} simulations, {NSTEP} steps a call; us per step, medians of {ROUNDS} rounds\n")
    print(
        f"{'model':<20}{'nv':>4}{'bare':>8}{'batch':>8}{'overhead':>10}{'efficiency':>12}"
        f"{'speed-up':>10}{'mj_step':>9}{'mujoco.batch':>14}{'ratio':>7}{'single':>8}"
        "   worst certificate"
    )
    for name, model, data in cases():
        t, worst = measure(model, data)
        print(
            f"{name:<20}{model.nv:>4}{t['bare']:>8.1f}{t['one']:>8.1f}"
            f"{100 * (t['one'] / t['bare'] - 1):>9.1f}%{t['one'] / t['two']:>12.2f}"
            f"{speed_up(model, data):>10.2f}{t['mj_step']:>9.1f}{t['mujoco one']:>14.1f}"
            f"{t['mujoco one'] / t['one']:>7.2f}{t['mj_step'] / t['bare']:>8.2f}   {worst:.0e}",
            flush=True,
        )
    print("\nratio: mujoco.batch's time over ours; single: that of mj_step over our single steps")


def memory():
    """Bytes that a simulation of a batch takes, once it has been stepped."""
    model, data, _ = scenes.load("pinch")
    stiction.Batch(model, 2, 2).step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    batch = stiction.Batch(model, 40_000, 2)
    batch.qpos[:], batch.ctrl[:] = data.qpos, data.ctrl
    batch.step()
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"memory: {1024 * used / 40_000:.0f} bytes per simulation of the pinch\n")


def many(count=10_000, seconds=1.0):
    """The pinch, many times over: no failure, and the same bits on one thread and two."""
    model, data, _ = scenes.load("pinch")
    rng = np.random.default_rng(1)
    shove = 0.05 * rng.standard_normal((count, model.nv))
    finals = []
    for nthread in (1, 2):
        batch = stiction.Batch(model, count, nthread)
        batch.qpos[:], batch.ctrl[:], batch.qvel[:] = data.qpos, data.ctrl, shove
        steps = round(seconds / model.opt.timestep)
        begun = perf_counter()
        worst = 0.0
        for _ in range(steps // 10):
            batch.step(nstep=10)
            worst = max(worst, float(batch.certificate.max()))
        spent = perf_counter() - begun
        finals.append(batch.state.copy())
        print(
            f"{count} pinches for {seconds:g} s, {nthread} thread(s): {spent:.0f} s, "
            f"{count * steps / spent:.0f} steps per second, {int(batch.status.sum())} failures, "
            f"worst certificate {worst:.0e}",
            flush=True,
        )
    print(f"same bits: {np.array_equal(finals[0], finals[1])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the table of models only")
    options = parser.parse_args()
    if not options.quick:
        memory()  # first: what is asked is the most that the process ever had
    table()
    calls()
    if not options.quick:
        many()


if __name__ == "__main__":
    main()
