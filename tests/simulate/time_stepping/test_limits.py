"""Limits of joints and tendons hold exactly."""

from math import ceil

import numpy as np
import pytest
from mjcf import load

import stiction

G = 9.81


@pytest.mark.parametrize("speed", [0.3, 7.3, 113.0])
def test_joint_limits_hold_exactly_and_do_not_bounce(speed):
    model, data = load("""
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 0"/>
  <worldbody>
    <body><joint axis="0 1 0" range="-1 1"/><geom type="sphere" size=".1" pos=".5 0 0"/></body>
    <body pos="5 0 0"><joint type="slide" axis="1 0 0" range="-2 1"/>
      <geom type="sphere" size=".1"/></body>
  </worldbody>
</mujoco>""")
    data.qvel[:] = [speed, -speed]
    sim = stiction.Simulator(model)
    for _ in range(ceil(2.0 / speed / 0.002) + 10):
        sim.step(data)
        assert data.qpos[0] <= 1.0 + 1e-12
        assert data.qpos[1] >= -2.0 - 1e-12
        assert data.qvel[0] >= -1e-12
        assert data.qvel[1] <= 1e-12
    assert data.qpos == pytest.approx([1.0, -2.0], abs=1e-12)
    assert data.qvel == pytest.approx([0.0, 0.0], abs=1e-12)


def test_a_limit_holds_where_an_impact_flings_the_joint():
    model, data = load("""
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <geom type="plane" size="9 9 1" friction="0"/>
    <body pos="0 0 1"><joint type="slide" axis="0 0 1"/>
      <geom type="sphere" size=".02" mass="10"/>
      <body><joint name="flap" axis="0 -1 0" range="-.1 .1"/>
        <geom type="sphere" size=".02" pos=".1 0 -.1" mass=".01"
          friction="0"/></body>
    </body>
  </worldbody>
</mujoco>""")
    data.qvel[0] = -10.0
    sim = stiction.Simulator(model)
    for _ in range(200):
        sim.step(data)
        assert data.qpos[1] <= 0.1 + 1e-9
    assert data.qpos[1] == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_ball_joint_limits_hold_whatever_the_axis(axis):
    model, data = load("""
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 0"/>
  <worldbody><body><joint type="ball" range="0 1"/><geom type="sphere" size=".1"/></body>
  </worldbody>
</mujoco>""")
    data.qvel[axis] = 37.0
    sim = stiction.Simulator(model)
    for _ in range(30):
        sim.step(data)
        assert 2.0 * np.arccos(min(1.0, data.qpos[0])) <= 1.0 + 1e-9
    assert np.abs(data.qvel).max() <= 1e-9


@pytest.mark.parametrize("speed", [0.5, 20.0, 300.0])
def test_tendon_limits_hold_from_the_first_step_on(speed):
    model, data = load("""
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body><joint name="a" type="slide" axis="1 0 0"/><geom type="sphere" size=".1"/></body>
    <body pos="0 2 0"><joint name="b" type="slide" axis="1 0 0"/><geom type="sphere" size=".1"/>
    </body>
  </worldbody>
  <tendon><fixed range="-1 1"><joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed>
  </tendon>
</mujoco>""")
    data.qpos[0], data.qvel[0] = 0.5, speed
    sim = stiction.Simulator(model)
    for _ in range(ceil(0.5 / speed / 0.002) + 10):
        sim.step(data)
        assert data.qpos.sum() <= 1.0 + 1e-12
    assert data.qpos.sum() == pytest.approx(1.0, abs=1e-9)
    assert data.qvel == pytest.approx([speed / 2, -speed / 2], rel=1e-9)


def test_spatial_tendon_limit_holds_a_hanging_weight():
    model, data = load("""
<mujoco>
  <worldbody>
    <site name="hook" pos="0 0 1"/>
    <body><freejoint/><geom type="sphere" size=".1" mass="3"/><site name="eye" pos="0 0 .1"/></body>
  </worldbody>
  <tendon><spatial name="rope" range="0 1"><site site="hook"/><site site="eye"/></spatial></tendon>
</mujoco>""")
    stiction.Simulator(model).step(data, 1000)
    assert data.ten_length[0] == pytest.approx(1.0, abs=1e-9)
    assert np.abs(data.qvel).max() <= 1e-9
    assert data.efc_force[0] == pytest.approx(3.0 * G, rel=1e-9)
