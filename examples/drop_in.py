"""The smallest change: `mj_step` replaced in a loop, on a slope that is barely not too steep.

    python examples/drop_in.py [seconds]

A block lies on a slope of 26 degrees with mu 0.5: tan(26 deg) = 0.488, so it must stay. The
slope is a floor under gravity that leans.
"""

import sys
from math import cos, radians, sin

import mujoco
import numpy as np

import stiction

SLOPE = radians(26.0)
XML = f"""
<mujoco>
  <option timestep="0.002" gravity="{-9.81 * sin(SLOPE)} 0 {-9.81 * cos(SLOPE)}"/>
  <default><geom friction="0.5"/></default>
  <worldbody>
    <geom type="plane" size="2 2 0.1"/>
    <body pos="0 0 0.05"><freejoint/><geom type="box" size="0.1 0.1 0.05" mass="2"/></body>
  </worldbody>
</mujoco>"""


def slide(model, seconds, step):
    """How far the block has slid after that time [m]."""
    data = mujoco.MjData(model)
    start = data.qpos[:3].copy()
    while data.time < seconds:
        step(model, data)
    return float(np.linalg.norm(data.qpos[:2] - start[:2]))


def main(seconds=5.0):
    model = mujoco.MjModel.from_xml_string(XML)
    simulator = stiction.Simulator(model)  # has mj_step's signature when called
    for name, step in (("mj_step", mujoco.mj_step), ("stiction", simulator)):
        print(f"{name:8} slid {1e3 * slide(model, float(seconds), step):.6f} mm in {seconds} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
