"""Stacks, tables and a rocking block."""

from math import atan, sin

import numpy as np
import pytest
from closed_forms import EXACT_AND_POLYGON, G, forces
from mjcf import load

import stiction


def stack(masses, mu=0.5):
    boxes = "".join(
        f'<body name="box{k}" pos="0 0 {0.05 + 0.1 * k}"><freejoint/>'
        f'<geom type="box" size=".05 .05 .05" mass="{mass}"/></body>'
        for k, mass in enumerate(masses)
    )
    return load(f"""
<mujoco>
  <size memory="10M"/>
  <default><geom friction="{mu}"/></default>
  <worldbody><geom type="plane" size="9 9 1"/>{boxes}</worldbody>
</mujoco>""")


@EXACT_AND_POLYGON
@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_stacked_boxes_carry_what_is_above_them(contact, n):
    model, data = stack([1.5] * n)
    report = stiction.Simulator(model, contact).step(data, 200)
    below = ["world", *(f"box{k}" for k in range(n - 1))]
    expected = {(below[k], f"box{k}"): (n - k) * 1.5 * G for k in range(n)}
    assert forces(report) == pytest.approx(expected, rel=1e-9)
    assert np.abs(data.qvel).max() <= 1e-12


@EXACT_AND_POLYGON
@pytest.mark.parametrize("heavy", [1e3, 1e4, 1e5, 1e6])
def test_one_kilogram_carries_a_million(contact, heavy):
    model, data = stack([1.0, heavy])
    start = data.qpos.copy()
    report = stiction.Simulator(model, contact).step(data, 500)
    expected = {("world", "box0"): (1.0 + heavy) * G, ("box0", "box1"): heavy * G}
    assert forces(report) == pytest.approx(expected, rel=1e-9)
    assert np.abs(data.qvel).max() <= 1e-11
    assert np.abs(data.qpos - start).max() <= 1e-10


@EXACT_AND_POLYGON
@pytest.mark.parametrize(("x", "y"), [(0.0, 0.0), (0.1, -0.05), (0.29, 0.19), (-0.299, 0.0)])
def test_four_legged_table_balances_force_and_moments(contact, x, y):
    a, b, mass = 0.3, 0.2, 12.0
    legs = "".join(
        f'<geom name="leg{i}{j}" type="sphere" size=".01" pos="{i * a} {j * b} -.39"/>'
        for i in (-1, 1)
        for j in (-1, 1)
    )
    model, data = load(f"""
<mujoco>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body name="table" pos="0 0 .4"><freejoint/>
      <inertial pos="{x} {y} 0" mass="{mass}" diaginertia=".5 .6 .9"/>{legs}</body>
  </worldbody>
</mujoco>""")
    stands = abs(x) / a + abs(y) / b <= 2.0
    report = stiction.Simulator(model, contact).step(data, 200)
    assert stands
    load_by_leg = np.array([c.force[0] for c in report.contacts])
    places = np.array([c.position[:2] for c in report.contacts])
    assert len(load_by_leg) == 4
    assert load_by_leg.min() >= 0.0
    assert load_by_leg.sum() == pytest.approx(mass * G, rel=1e-10)
    assert load_by_leg @ places == pytest.approx([mass * G * x, mass * G * y], abs=1e-8)
    assert np.abs(data.qvel).max() <= 1e-12


@pytest.mark.parametrize(("b", "h"), [(1.0, 2.0), (1.0, 3.0), (0.5, 2.0)])
def test_rocking_block_loses_the_share_of_its_rotation_that_housner_gives(b, h):
    model, data = load(f"""
<mujoco>
  <option gravity="0 0 0"/>
  <default><geom friction="5"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body pos="0 0 {h / 2}"><freejoint/>
      <geom type="box" size="{b / 2} .2 {h / 2}" mass="3"/></body>
  </worldbody>
</mujoco>""")
    omega = 0.7  # about +y, round the edge at x = -b / 2: the other edge comes down
    data.qvel[:] = [omega * h / 2, 0.0, -omega * b / 2, 0.0, omega, 0.0]
    stiction.Simulator(model).step(data)
    ratio = 1.0 - 1.5 * sin(atan(b / h)) ** 2
    assert data.qvel[4] / omega == pytest.approx(ratio, rel=1e-9)
    if (b, h) == (1.0, 2.0):
        assert ratio == pytest.approx(0.7)
    # Now it turns round the edge that came down.
    assert data.qvel[0] == pytest.approx(data.qvel[4] * h / 2, rel=1e-9)
    assert data.qvel[2] == pytest.approx(data.qvel[4] * b / 2, rel=1e-9)
