"""Bodies on slopes and floors, and what the books say of them."""

from math import cos, sin

import pytest

from stiction import Coulomb

G = 9.81
EXACT_AND_POLYGON = pytest.mark.parametrize(
    "contact", [Coulomb(), Coulomb(facets=8)], ids=["cone", "facets"]
)
BOTH_SIDES = pytest.mark.parametrize("holds", [True, False], ids=["holds", "gives"])


def along(k, h, acceleration):
    """Distance after k steps from rest."""
    return h * h * acceleration * k * (k + 1) / 2


def forces(report):
    """Normal forces by pair of bodies, summed."""
    total = {}
    for contact in report.contacts:
        total[contact.bodies] = total.get(contact.bodies, 0.0) + contact.force[0]
    return total


def incline(angle, geom, height, mu):
    """A geom, touching a slope that falls toward +x; qpos is aligned with the slope."""
    return f"""
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002"/>
  <worldbody>
    <geom name="slope" type="plane" size="9 9 1" euler="0 {angle} 0" friction="{mu}"/>
    <body name="body" pos="{height * sin(angle)} 0 {height * cos(angle)}" euler="0 {angle} 0">
      <freejoint/>
      <geom name="geom" {geom} mass="1.5" friction="{mu}"/>
    </body>
  </worldbody>
</mujoco>"""


def flat(geom, height, mu, *, timestep=0.002, extra="", mass=2.0, condim=3):
    """A geom on a horizontal floor."""
    return f"""
<mujoco>
  <option timestep="{timestep}"/>
  <default><geom friction="{mu}" condim="{condim}"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 1"/>
    <body name="body" pos="0 0 {height}"><freejoint/>
      <geom name="geom" {geom} mass="{mass}"/>
    </body>
    {extra}
  </worldbody>
</mujoco>"""
