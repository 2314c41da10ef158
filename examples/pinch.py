"""A part pinched between two pads (google-deepmind/mujoco #3328): who holds it?

    python examples/pinch.py [picture.png]

The same scene for ten seconds in MuJoCo as it comes, in MuJoCo tuned for friction as far as it
goes, and in stiction. The capsule weighs 45 g and is pressed by 12 N from either side, with
mu = 0.7: it could carry 38 times its weight.
"""

import copy
import sys
from time import perf_counter

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import mujoco
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import stiction
from stiction import scenes
from stiction.record import tuned

SECONDS, SAMPLES = 10.0, 200

PAD = 0.02
"""Half the height of a pad [m]: what has slipped farther has been dropped."""

FLOOR = 1e-12
"""Slip that is drawn where there is less [m]: a logarithm has no zero."""


def plain(model):
    """With the contact options that MuJoCo has when nobody touches them."""
    model = copy.copy(model)
    model.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    model.opt.impratio = 1.0
    return model


def measure(name, model, data, advance):
    """Height of the capsule over time, deepest penetration, and seconds of stepping."""
    steps = round(SECONDS / SAMPLES / model.opt.timestep)
    body = model.body("capsule").id
    mujoco.mj_forward(model, data)
    times, heights, deepest, spent = [0.0], [data.xpos[body, 2]], 0.0, 0.0
    for _ in track(range(SAMPLES), description=f"{name:<16}"):
        begun = perf_counter()
        advance(data, steps)
        spent += perf_counter() - begun
        mujoco.mj_forward(model, data)
        deepest = max([deepest, *(-contact.dist for contact in data.contact)])
        times.append(data.time)
        heights.append(data.xpos[body, 2])
    return np.array(times), np.array(heights), deepest, spent / (SAMPLES * steps)


def main(picture="pinch.png"):
    model, data, _ = scenes.load("pinch", timestep=0.001)
    with Console().status("compiling the solver (once; later starts take a second)"):
        simulator = stiction.Simulator(model)
    default, best = plain(model), tuned(model, noslip=20)
    runs = {
        "MuJoCo": (default, lambda d, n: mujoco.mj_step(default, d, n)),
        "MuJoCo, tuned": (best, lambda d, n: mujoco.mj_step(best, d, n)),
        "stiction": (model, simulator.step),
    }
    table = Table(title="pinched with 12 N for 10 s")
    for column in ("", "creep um/s", "sink um", "penetration um", "us/step"):
        table.add_column(column, justify="left" if not column else "right")
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, (shown, advance) in runs.items():
        times, heights, deepest, cost = measure(name, shown, copy.copy(data), advance)
        slip = np.abs(heights - heights[0])
        held = len(times) if slip.max() < PAD else int(np.argmax(slip > PAD))
        half = held // 2  # creep is measured over the second half of the time it is held
        creep = (heights[half] - heights[held - 1]) / (times[held - 1] - times[half])
        sink = f"{1e6 * slip.max():.3g}"
        if held < len(times):
            sink = f"dropped after {times[held]:.1f} s"
        table.add_row(name, f"{1e6 * creep:.3g}", sink, f"{1e6 * deepest:.3g}", f"{1e6 * cost:.1f}")
        exact = "" if slip.max() > 0.0 else " (exactly zero)"
        axes.semilogy(times[1:], np.maximum(slip[1:], FLOOR), label=name + exact, linewidth=3)
    Console().print(table)
    report = simulator.statistics
    print(f"largest violation of any contact law in {report.steps} steps: {report.worst:.0e}")
    axes.set(xlabel="time [s]", ylabel="how far the part has slipped [m]", ylim=(0.5 * FLOOR, 1))
    axes.axhline(1e-9, color="grey", linewidth=0.8, linestyle=":")
    axes.text(0.1, 1.6e-9, "one nanometre", color="grey", fontsize=8)
    axes.legend(loc="upper left", bbox_to_anchor=(0.02, 0.6))
    axes.set_title("A part pinched by a gripper")
    figure.tight_layout()
    figure.savefig(picture, dpi=150)
    print(f"the slip over time: {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
