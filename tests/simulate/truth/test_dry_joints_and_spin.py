"""Dry friction of joints and tendons; torsional and rolling friction."""

from math import ceil, sin

import mujoco
import numpy as np
import pytest
from closed_forms import BOTH_SIDES, EXACT_AND_POLYGON, G, flat
from mjcf import load

import stiction


@pytest.mark.parametrize("share", [0.99, 1.01])
def test_hinge_with_dry_friction_holds_up_to_its_torque(share):
    mass, length, angle = 1.3, 0.4, 0.6
    torque = mass * G * length * sin(angle)
    model, data = load(f"""
<mujoco>
  <worldbody>
    <body><joint type="hinge" axis="0 1 0" frictionloss="{torque / share}"/>
      <geom type="sphere" size=".05" pos="0 0 {-length}" mass="{mass}"/></body>
  </worldbody>
</mujoco>""")
    data.qpos[0] = angle
    sim = stiction.Simulator(model)
    inertia = mass * (length**2 + 0.4 * 0.05**2)
    sim.step(data)
    if share < 1.0:
        sim.step(data, 1000)
        assert data.qvel[0] == 0.0
        assert data.qpos[0] == angle
    else:
        speed = -0.002 * (torque - torque / share) / inertia
        assert data.qvel[0] == pytest.approx(speed, rel=1e-9)


@pytest.mark.parametrize("share", [0.99, 1.01])
def test_tendon_with_dry_friction_holds_up_to_its_force(share):
    mass = 0.7
    model, data = load(f"""
<mujoco>
  <worldbody>
    <body name="a"><joint name="a" type="slide" axis="0 0 1"/>
      <geom type="sphere" size=".05" mass="{mass}"/></body>
    <body name="b" pos="1 0 0"><joint name="b" type="slide" axis="0 0 1"/>
      <geom type="sphere" size=".05" mass="{mass}"/></body>
  </worldbody>
  <tendon><fixed frictionloss="{mass * G}"><joint joint="a" coef="1"/><joint joint="b" coef="1"/>
  </fixed></tendon>
</mujoco>""")
    model.opt.gravity[2] *= share
    stiction.Simulator(model).step(data, 100)
    expected = 0.0 if share < 1.0 else -100 * 0.002 * 0.01 * G
    assert data.qvel == pytest.approx([expected, expected], rel=1e-9, abs=1e-15)


@EXACT_AND_POLYGON
@BOTH_SIDES
def test_torsional_friction_holds_up_to_its_moment(contact, holds):
    mass, spin = 2.0, 0.03
    model, data = load(
        flat('type="sphere" size=".1"', 0.1, f"0.8 {spin} 0.001", mass=mass, condim=4)
    )
    limit = spin * mass * G
    data.xfrc_applied[1, 5] = limit * (0.99 if holds else 1.01)
    report = stiction.Simulator(model, contact).step(data, 200)
    inertia = 0.4 * mass * 0.1**2
    expected = 0.0 if holds else 200 * 0.002 * 0.01 * limit / inertia
    assert data.qvel[5] == pytest.approx(expected, rel=1e-8, abs=1e-12)
    assert np.abs(data.qvel[:5]).max() <= 1e-12
    moment = -limit * (0.99 if holds else 1.0)
    assert report.contacts[0].torque == pytest.approx([moment, 0.0, 0.0], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_spinning_ball_is_stopped_by_torsional_friction(cone):
    mass, spin, h = 2.0, 0.03, 0.002
    xml = flat('type="sphere" size=".1"', 0.1, f"0.8 {spin} 0.001", mass=mass, condim=4)
    model, data = load(xml.replace("<option ", f'<option cone="{cone}" '))
    data.qvel[5] = 40.0
    deceleration = spin * mass * G / (0.4 * mass * 0.1**2)
    sim = stiction.Simulator(model)
    sim.step(data, 100)
    assert data.qvel[5] == pytest.approx(40.0 - 100 * h * deceleration, rel=1e-9)
    force = np.zeros(6)
    mujoco.mj_contactForce(model, data, 0, force)
    assert force[3] == pytest.approx(-spin * mass * G, rel=1e-9)
    sim.step(data, ceil(40.0 / (h * deceleration)) - 100)
    assert np.abs(data.qvel).max() <= 1e-12


@EXACT_AND_POLYGON
@BOTH_SIDES
def test_rolling_friction_holds_a_ball_up_to_its_moment(contact, holds):
    mass, roll, radius = 2.0, 0.004, 0.1
    model, data = load(
        flat(f'type="sphere" size="{radius}"', radius, f"0.8 0.03 {roll}", mass=mass, condim=6)
    )
    limit = roll * mass * G / radius
    data.xfrc_applied[1, 0] = limit * (0.99 if holds else 1.01)
    stiction.Simulator(model, contact).step(data, 200)
    expected = 0.0 if holds else 200 * 0.002 * 0.01 * limit / (1.4 * mass)
    assert data.qvel[0] == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert np.abs(data.qvel[[1, 2, 3, 5]]).max() <= 1e-10
    assert data.qvel[4] * radius == pytest.approx(data.qvel[0], rel=1e-8, abs=1e-12)


def test_rolling_ball_is_stopped_by_rolling_friction():
    roll, radius, v0, h = 0.004, 0.1, 0.5, 0.002
    model, data = load(flat(f'type="sphere" size="{radius}"', radius, f"0.8 0.03 {roll}", condim=6))
    data.qvel[0], data.qvel[4] = v0, v0 / radius
    deceleration = roll * G / radius / 1.4
    sim = stiction.Simulator(model)
    sim.step(data, 200)
    assert data.qvel[0] == pytest.approx(v0 - 200 * h * deceleration, rel=1e-8)
    sim.step(data, ceil(v0 / (h * deceleration)) - 200)
    assert np.abs(data.qvel).max() <= 1e-12
