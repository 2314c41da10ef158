"""What a gripper holds while it swings about: the cost of a step, and how far the part creeps.

    python benchmarks/carried_parts.py [--steps 3000] [--menagerie DIR]

Two fingers press a part with 20 N, and swing it by 0.5 and 0.4 rad about two axes and by 0.1 m
along two, at 0.6 to 0.9 Hz; steps of 2 ms. With a copy of mujoco_menagerie its Panda as well, whose
fingers hold a block by eight pads while the arm sways. MuJoCo as it comes, and tuned against slip
(C of simulator_speed.py), step the same. Of each part: microseconds of processor time for a call of
one step with new controls, factorizations of a step, and how far the part has moved on the left
finger in all steps but the first 500.
"""

from __future__ import annotations

import argparse
import copy
import os
from time import thread_time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from pathlib import Path

import mujoco
import numpy as np
from derivatives import PANDA, hold_block

import stiction
from stiction.kernels.stage import prepare_late
from stiction.record import tuned

BEGIN = 500
GRIPPER = """
<mujoco>
  <option timestep="0.002" integrator="implicitfast"/>
  <default><geom size=".02" mass=".5" contype="0" conaffinity="0" friction="1"/></default>
  <worldbody>
    <body pos="0 0 .5">
      <joint name="x" type="slide" axis="1 0 0" damping="5"/><geom/>
      <body>
        <joint name="z" type="slide" axis="0 0 1" damping="5"/><geom/>
        <body>
          <joint name="yaw" axis="0 0 1" damping="1"/><geom/>
          <body>
            <joint name="pitch" axis="0 1 0" damping="1"/><geom/>
            <body name="left_finger" pos="0 .04 -.1">
              <joint name="left" type="slide" axis="0 -1 0" damping="2"/>
              <geom type="box" size=".012 .01 .02" mass=".05" contype="1"/>
            </body>
            <body pos="0 -.04 -.1">
              <joint name="right" type="slide" axis="0 1 0" damping="2"/>
              <geom type="box" size=".012 .01 .02" mass=".05" contype="1"/>
            </body>
          </body>
        </body>
      </body>
    </body>
    <body name="part" pos="0 0 .4"><freejoint/>{part}</body>
  </worldbody>
  <equality><joint joint1="left" joint2="right" polycoef="0 1 0 0 0"/></equality>
  <actuator>
    <position joint="x" kp="500" kv="40"/><position joint="z" kp="2000" kv="80"/>
    <position joint="yaw" kp="50" kv="3"/><position joint="pitch" kp="50" kv="3"/>
    <motor joint="left" gear="20"/><motor joint="right" gear="20"/>
  </actuator>
</mujoco>
"""
HALVES = '<geom type="box" size=".02 .02 .015" pos="0 0 {}.015" mass=".1" conaffinity="1"/>'
PARTS = {
    "box": '<geom type="box" size=".02 .02 .03" mass=".1" conaffinity="1"/>',
    "two boxes in one": HALVES.format("") + HALVES.format("-"),
    "cylinder": '<geom type="cylinder" size=".02 .03" mass=".1" conaffinity="1"/>',
    "capsule": '<geom type="capsule" size=".02 .03" mass=".1" conaffinity="1"/>',
    "sphere": '<geom size=".022" mass=".1" condim="4" conaffinity="1"/>',
    "ellipsoid": '<geom type="ellipsoid" size=".02 .02 .03" mass=".1" condim="4" conaffinity="1"/>',
}
SWING = np.array([0.1, 0.1, 0.5, 0.4, 0.0, 0.0])
HERTZ = np.array([0.7, 0.9, 0.6, 0.8, 0.0, 0.0])


def cases(menagerie):
    """(name, model, data, finger, part, controls of a time) of every part."""
    for name, part in PARTS.items():
        model = mujoco.MjModel.from_xml_string(GRIPPER.format(part=part))
        press = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
        yield (
            name, model, mujoco.MjData(model), model.body("left_finger").id, model.nbody - 1,
            lambda t, press=press: press + SWING * np.sin(2.0 * np.pi * HERTZ * t),
        )  # fmt: skip
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
    stiction.Simulator(mujoco.MjModel.from_xml_string("<mujoco/>"))
    prepare_late()
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
