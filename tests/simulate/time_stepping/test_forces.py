"""The forces that a step leaves in MjData, and the sensors that read them."""

import mujoco
import numpy as np
import pytest
from mjcf import BOX, load
from mjdata import dense_jacobian

import stiction

G = 9.81
CONES = pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])


@CONES
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_contact_forces_read_with_the_users_model_sum_to_the_weight(cone, condim):
    xml = BOX.replace("<worldbody>", f'<option cone="{cone}"/><worldbody>', 1)
    model, data = load(xml.replace('mass="2"', f'mass="2" condim="{condim}"'))
    report = stiction.Simulator(model).step(data, 20)
    total, force = np.zeros(3), np.zeros(6)
    for k in range(data.ncon):
        mujoco.mj_contactForce(model, data, k, force)
        total += data.contact[k].frame.reshape(3, 3).T @ force[:3]
        told = next(c for c in report.contacts if c.index == k)
        assert force[:3] == pytest.approx(told.force, abs=1e-9)
        assert force[3:] == pytest.approx(told.torque, abs=1e-9)
    assert total == pytest.approx([0.0, 0.0, 2.0 * G], abs=1e-9)


@CONES
@pytest.mark.parametrize("condim", [3, 4, 6])
def test_constraint_forces_balance_the_momentum(cone, condim):
    model, data = load(f"""
<mujoco>
  <option cone="{cone}" gravity="1 -.5 -9.81"/>
  <default><geom friction=".3 .01 .002" condim="{condim}"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body pos="0 0 .1"><freejoint/><geom type="sphere" size=".1"/></body>
    <body pos=".5 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="0 0 1"><joint name="hinge" axis="0 1 0" range="-1 5" frictionloss=".2"/>
      <geom type="box" size=".1 .1 .1" pos=".3 0 0"/></body>
    <body pos="2 0 1"><joint name="slide" type="slide" axis="0 0 1"/>
      <geom type="sphere" size=".1"/></body>
  </worldbody>
  <equality><joint joint1="slide" polycoef=".01 0 0 0 0"/></equality>
</mujoco>""")
    data.qvel[:6] = [1.0, 0.5, 0.0, 0.3, 5.0, 0.1]
    sim = stiction.Simulator(model)
    for _ in range(30):
        before = data.qvel.copy()
        sim.step(data)
        assert data.qacc == pytest.approx((data.qvel - before) / 0.002, rel=1e-10, abs=1e-10)
        jacobian = dense_jacobian(data, model.nv)
        assert data.qfrc_constraint == pytest.approx(jacobian.T @ data.efc_force, abs=1e-8)
        inertia = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, inertia, data.qacc)
        assert inertia == pytest.approx(data.qfrc_smooth + data.qfrc_constraint, abs=1e-7)


@CONES
def test_touch_and_force_sensors_read_the_contact_forces(cone):
    model, data = load(f"""
<mujoco>
  <option cone="{cone}"/>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body name="table" pos="0 0 .5"><freejoint/>
      <geom type="box" size=".2 .2 .02" mass="3"/>
      <body name="foot" pos="0 0 -.25"><site name="ankle" pos="0 0 .2"/>
        <geom type="box" size=".1 .1 .25" mass="1"/>
        <site name="sole" type="box" size=".12 .12 .02" pos="0 0 -.25"/></body>
    </body>
  </worldbody>
  <sensor>
    <touch site="sole"/><force site="ankle"/><torque site="ankle"/><accelerometer site="ankle"/>
  </sensor>
</mujoco>""")
    stiction.Simulator(model).step(data, 10)
    # The foot carries the table, 3 of 4 kg, which pushes down on it.
    expected = [4.0 * G, 0.0, 0.0, -3.0 * G, 0.0, 0.0, 0.0, 0.0, 0.0, G]
    assert data.sensordata == pytest.approx(expected, abs=1e-8)


def test_limit_sensors_read_the_limit_and_not_what_is_looked_ahead_to():
    model, data = load("""
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body><joint name="hinge" axis="0 1 0" range="-1 .5"/>
      <geom type="sphere" size=".1" pos="1 0 0" mass="2"/></body>
  </worldbody>
  <sensor><jointlimitpos joint="hinge"/><jointlimitvel joint="hinge"/>
    <jointlimitfrc joint="hinge"/></sensor>
</mujoco>""")
    data.qpos[0] = 0.5
    sim = stiction.Simulator(model)
    sim.step(data, 5)  # gravity turns it toward the upper limit
    assert data.qpos[0] == pytest.approx(0.5, abs=1e-12)
    assert data.sensordata[0] == pytest.approx(0.0, abs=1e-9)
    assert data.sensordata[2] == pytest.approx(2.0 * G * np.cos(0.5), rel=1e-9)


def test_energy_is_computed_where_the_model_asks():
    model, data = load(
        BOX.replace("<worldbody>", '<option><flag energy="enable"/></option><worldbody>', 1)
    )
    stiction.Simulator(model).step(data, 3)
    assert data.energy == pytest.approx([2.0 * G * 0.1, 0.0], abs=1e-12)
