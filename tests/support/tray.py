"""A tray that tilts about two axes, with things on it."""

import numpy as np

TRAY = """
<mujoco>
  <option timestep="0.002"/><default><geom friction="1"/></default>
  <worldbody>
    <body name="tray" pos="0 0 .3">
      <joint name="x" axis="1 0 0" pos="0 0 -.3"/><joint name="y" axis="0 1 0" pos="0 0 -.3"/>
      <geom type="box" size=".4 .4 .02" mass="5"/>
    </body>
    {things}
  </worldbody>
  <actuator>
    <position joint="x" kp="2e4" kv="1e3"/><position joint="y" kp="2e4" kv="1e3"/>
  </actuator>
</mujoco>
"""
THING = """
<body pos="{:.2f} {:.2f} .37"><freejoint/><geom type="{}" size=".05 .05 .05" mass=".2"/></body>
"""


def tray(n):
    """Its MJCF, with n x n boxes and cylinders in turn beside each other."""
    things = "".join(
        THING.format(0.15 * i, 0.15 * j, ("box", "cylinder")[(i + j) % 2])
        for i in np.arange(n) - (n - 1) // 2
        for j in np.arange(n) - (n - 1) // 2
    )
    return TRAY.format(things=things)
