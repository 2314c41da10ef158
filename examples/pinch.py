"""A part pinched between two pads (google-deepmind/mujoco #3328): who holds it?

    python examples/pinch.py [picture.png] [seconds]

The same scene for ten seconds in MuJoCo as it comes, in MuJoCo tuned for friction as far as it
goes, and in stiction. The capsule weighs 45 g and is pressed by 12 N from either side with mu 0.7.
"""

import copy
import io
import sys
from time import perf_counter

import mujoco
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import stiction
from stiction import scenes
from stiction.record import tuned
from stiction.reproduce.picture import render
from stiction.reproduce.result import Picture

try:
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit("examples/pinch.py needs matplotlib: pip install 'stiction[demo]'")

SAMPLES, PAD, FLOOR = 200, 0.02, 1e-12  # m: a slip that drops the part; the least that is drawn
CAMERA = {"distance": 0.085, "azimuth": 90.0, "elevation": -12.0, "x": 0.0, "y": 0.0, "z": -0.004}


def measure(name, model, data, advance, seconds):
    """Times, states, heights of the capsule, deepest penetration, and seconds per step."""
    data, deepest, spent = copy.copy(data), 0.0, 0.0
    steps = max(1, round(float(seconds) / SAMPLES / model.opt.timestep))
    part = data.body("capsule")
    mujoco.mj_forward(model, data)
    kept = [(0.0, data.qpos.copy(), part.xpos[2])]
    for _ in track(range(SAMPLES), description=f"{name:<16}"):
        spent -= perf_counter()
        advance(data, steps)
        spent += perf_counter()
        mujoco.mj_forward(model, data)
        deepest = max([deepest, *(-contact.dist for contact in data.contact)])
        kept.append((data.time, data.qpos.copy(), part.xpos[2]))
    times, states, heights = map(np.array, zip(*kept, strict=True))
    return times, states, heights, deepest, spent / (SAMPLES * steps)


def draw(axes, name, states, time):
    """The grasp at half the time of the run, where graphics are at hand."""
    image = render(Picture(name, "pinch", tuple(states[SAMPLES // 2]), camera=CAMERA))
    axes.set(title=f"{name}, after {time:.3g} s", xticks=[], yticks=[], frame_on=False)
    if image is not None:
        axes.imshow(plt.imread(io.BytesIO(image))[:, 150:570])


def main(picture="pinch.png", seconds=10.0):
    plt.switch_backend("Agg")
    model, data, _ = scenes.load("pinch", timestep=0.001)
    with Console().status("compiling (once; later starts take a second)"):
        simulator = stiction.Simulator(model)
    default, best = copy.copy(model), tuned(model, noslip=20)
    default.opt.cone, default.opt.impratio = 0, 1.0  # pyramids
    runs = {
        "MuJoCo": (default, lambda d, n: mujoco.mj_step(default, d, n)),
        "MuJoCo, tuned": (best, lambda d, n: mujoco.mj_step(best, d, n)),
        "stiction": (model, simulator.step),
    }
    columns = ("", "creep um/s", "sink um", "penetration um", "us/step")
    table = Table(*columns, title=f"pinched with 12 N for {float(seconds):g} s")
    figure = plt.figure(figsize=(12, 3.8), layout="constrained")
    left, middle, axes = figure.subplots(1, 3, width_ratios=(1, 1, 1.5))
    for name, (shown, advance) in runs.items():
        times, states, heights, deepest, cost = measure(name, shown, data, advance, seconds)
        slip = np.abs(heights - heights[0])
        held = int(np.argmax(slip > PAD)) or len(times)
        half = held // 2  # creep is measured over the second half of the time it is held
        creep = (heights[half] - heights[held - 1]) / (times[held - 1] - times[half])
        numbers = [f"{1e6 * value:.3g}" for value in (creep, slip.max(), deepest, cost)]
        if held < len(times):
            numbers[1] = f"dropped at {times[held]:.1f} s"
        table.add_row(name, *numbers)
        label = name if slip.max() > 0.0 else f"{name} (exactly zero)"
        axes.semilogy(times[1:], np.maximum(slip[1:], FLOOR), label=label, linewidth=3)
        if shown is not best:
            draw(left if shown is default else middle, name, states, times[SAMPLES // 2])
    Console().print(table)
    axes.set(xlabel="time [s]", ylabel="how far the part has slipped [m]", ylim=(0.5 * FLOOR, 1))
    axes.legend(loc="upper left", bbox_to_anchor=(0.02, 0.6))
    figure.savefig(picture, dpi=110)
    print(f"largest violation of any contact law {simulator.statistics.worst:.0e}; see {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
