"""What a gripper holds while it swings about: the cost of a step, and how far the part creeps.

    python benchmarks/carried_parts.py [--steps 3000] [--menagerie DIR]

Two fingers press a part with 20 N, and swing it by 0.5 and 0.4 rad about two axes and by 0.1 m
along two, at 0.6 to 0.9 Hz; steps of 2 ms. A box stands on a turntable, 0.2 m from the axis, that
turns to and fro at up to 2.5 rad/s, and boxes and cylinders on a tray that tilts to and fro by 0.12
rad. With a copy of mujoco_menagerie its Panda as well, whose fingers hold a block by eight pads
while the arm sways. MuJoCo as it comes, and tuned against slip (C of simulator_speed.py), step the
same. Of each part, or the last one: microseconds of processor time for a call of one step with new
controls, factorizations of a step, and how far the part has moved on what carries it in all steps
but the first 500.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
from time import thread_time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from pathlib import Path

import mujoco
import numpy as np
from compiled import compile_all
from derivatives import PANDA, hold_block

import stiction
from stiction.record import tuned

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from gripper import PARTS, gripper
from tray import tray

BEGIN = 500
SWING = np.array([0.1, 0.1, 0.5, 0.4, 0.0, 0.0])
HERTZ = np.array([0.7, 0.9, 0.6, 0.8, 0.0, 0.0])

TURNTABLE = """
<mujoco>
  <option timestep="0.002"/><default><geom friction="1"/></default>
  <worldbody>
    <body><joint name="turn" damping="1"/><geom type="cylinder" size=".5 .02" mass="5"/></body>
    <body pos=".2 0 .07"><freejoint/><geom type="box" size=".05 .05 .05" mass=".5"/></body>
  </worldbody>
  <actuator><velocity joint="turn" kv="20"/></actuator>
</mujoco>
"""


def tilt(t):
    return min(1.0, t) * 0.12 * np.sin(2.0 * np.pi * np.array([0.8, 0.7]) * t + np.arange(2))


def cases(menagerie):
    """(name, model, data, what carries it, part, controls of a time) of every part."""
    for name in PARTS:
        model = mujoco.MjModel.from_xml_string(gripper(name))
        press = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
        yield (
            name, model, mujoco.MjData(model), model.body("left_finger").id, model.nbody - 1,
            lambda t, press=press: press + SWING * np.sin(2.0 * np.pi * HERTZ * t),
        )  # fmt: skip
    model = mujoco.MjModel.from_xml_string(TURNTABLE)
    yield (
        "box on a turntable", model, mujoco.MjData(model), 1, 2, lambda t: 2.5 * np.sin(2.0 * t),
    )  # fmt: skip
    for n in (3, 5):
        model = mujoco.MjModel.from_xml_string(tray(n))
        yield f"{n * n} things on a tray", model, mujoco.MjData(model), 1, model.nbody - 1, tilt
    path = Path(menagerie or "", PANDA)
    if path.exists():
        model, data = hold_block(path)
        base = data.ctrl.copy()
        swing = 0.02 * np.maximum(np.abs(base), 0.5) * np.cos(np.arange(model.nu))
        swing[-1] = 0.0
        yield (
            "Panda with a block", model, data, model.body("left_finger").id, model.nbody - 1,
            lambda t: base + swing * np.sin(2.0 * np.pi * t),
        )  # fmt: skip


def place(model, data, finger, part):
    """Of the part, as the finger sees it (3,)."""
    seen = copy.copy(data)
    mujoco.mj_kinematics(model, seen)
    return seen.xmat[finger].reshape(3, 3).T @ (seen.xpos[part] - seen.xpos[finger])


def run(model, data, step, finger, part, controls, steps):
    """(us of a step, way of the part [m])."""
    own, spent, start = copy.copy(data), 0.0, None
    for k in range(steps):
        own.ctrl[:] = controls(k * model.opt.timestep)
        begun = thread_time()
        step(own)
        if k >= BEGIN:
            spent += thread_time() - begun
        if k == BEGIN:
            start = place(model, own, finger, part)
    way = np.linalg.norm(place(model, own, finger, part) - start)
    return 1e6 * spent / (steps - BEGIN), way


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--menagerie")
    given = parser.parse_args()
    print(
        "| part | ours, us | `mj_step` | tuned | ours / `mj_step` | ours / tuned | factorizations "
        "| creep, mm | of `mj_step` | of tuned |"
    )
    print("|" + "---|" * 10, flush=True)
    compile_all()
    for name, model, data, *rest in cases(given.menagerie):
        sim, firm = stiction.Simulator(model), tuned(model, 20)
        ours, way = run(model, data, sim.step, *rest, given.steps)
        plain, far = run(model, data, lambda d, m=model: mujoco.mj_step(m, d), *rest, given.steps)
        hard, held = run(firm, data, lambda d, m=firm: mujoco.mj_step(m, d), *rest, given.steps)
        print(
            f"| {name} | {ours:.0f} | {plain:.0f} | {hard:.0f} | {ours / plain:.1f} "
            f"| {ours / hard:.1f} | {sim.statistics.pivots:.1f} | {1e3 * way:.2g} "
            f"| {1e3 * far:.2g} | {1e3 * held:.2g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
