"""Painleve's rod, and Lynch and Mason's."""

from math import sqrt

import numpy as np
import pytest
from closed_forms import EXACT_AND_POLYGON, G
from mjcf import load

import stiction
from stiction import NoSlip


def rod(mu, gravity=G):
    """Rod of half-length 1, m = 1, I = 1/3, that leans at tan(theta) = 2 on its lower end."""
    c, s, r = 1 / sqrt(5.0), 2 / sqrt(5.0), 0.01
    return load(f"""
<mujoco>
  <option timestep="0.01" gravity="0 0 {-gravity}"/>
  <default><geom friction="{mu}"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body pos="0 0 {s}">
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
      <joint type="hinge" axis="0 1 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 {1 / 3} 1"/>
      <geom type="sphere" size="{r}" pos="{-c} 0 {-s + r}"/>
    </body>
  </worldbody>
</mujoco>""")


def impulse(data):
    """(normal, along x) impulse [N s] on the rod, and the velocity of its end after the step."""
    contact = data.contact[0]
    force = data.qfrc_constraint[[1, 0]] * 0.01
    x, _, z = contact.pos - np.array([0.0, 0.0, 2 / sqrt(5.0)])
    v = np.array([data.qvel[1] - data.qvel[2] * x, data.qvel[0] + data.qvel[2] * z])
    return force, v


def test_painleve_rod_slides_with_a_large_force_just_below_the_paradox():
    model, data = rod(1.3)
    data.qvel[0] = -20.0
    stiction.Simulator(model).step(data)
    force, v = impulse(data)
    assert force == pytest.approx([2.4525, 1.3 * 2.4525], rel=1e-8)
    assert v[0] == pytest.approx(0.0, abs=1e-12)
    assert v[1] < -10.0


@EXACT_AND_POLYGON
@pytest.mark.parametrize("mu", [1.2, 1.5, 10.0])
def test_painleve_rod_is_brought_to_rest_by_an_impact_without_collision(mu, contact):
    model, data = rod(mu)
    data.qvel[0] = -1.0
    stiction.Simulator(model, contact).step(data)
    force, v = impulse(data)
    assert force == pytest.approx([0.383385, 0.42943], rel=1e-5)
    assert np.abs(v).max() <= 1e-12


@pytest.mark.parametrize("mu", [1.0, 1e2, 1e4])
def test_lynch_and_masons_rod_slips_however_rough_it_is(mu):
    model, data = rod(mu, gravity=0.0)
    data.qvel[:2] = [1.0, -0.1]
    stiction.Simulator(model).step(data)
    force, v = impulse(data)
    normal = 0.1 / (1.6 + 1.2 * mu)
    assert force == pytest.approx([normal, -mu * normal], rel=1e-8)
    assert v == pytest.approx([0.0, 1.0 - (1.2 + 3.4 * mu) * normal], abs=1e-9)
    if mu == 1e4:
        assert force == pytest.approx([0.0, -1 / 12], abs=1e-4)
        assert v[1] == pytest.approx(0.716667, abs=1e-4)


def test_lynch_and_masons_rod_under_no_slip_opens_and_does_not_slip():
    model, data = rod(1.0, gravity=0.0)
    data.qvel[:2] = [1.0, -0.1]
    stiction.Simulator(model, NoSlip()).step(data)
    force, v = impulse(data)
    assert force == pytest.approx([0.0, -0.294118], abs=1e-6)
    assert v == pytest.approx([0.252941, 0.0], abs=1e-6)
