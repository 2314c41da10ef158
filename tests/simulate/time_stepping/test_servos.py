"""Servos that come off their largest force within a time step."""

import mujoco
import numpy as np
import pytest
from mjcf import load
from servos import CLAMPS, WHEEL
from slopes import assert_agree

import stiction


@pytest.mark.parametrize("clamp", CLAMPS)
@pytest.mark.parametrize("speed", [5.0, -5.0])
def test_a_strong_servo_brakes_a_light_wheel_within_a_step(clamp, speed):
    """400 N m would turn it back to 918 rad/s in that time, and did."""
    own, joint = CLAMPS[clamp]
    model, data = load(WHEEL.format(servo='velocity kv="2000"', own=own, joint=joint))
    data.qvel[0] = speed
    sim = stiction.Simulator(model)
    for _ in range(5):
        assert sim.step(data).certificate.passed
        assert abs(data.qvel[0]) < 1e-2


def test_a_servo_of_position_follows_its_slow_way_to_the_target():
    """From full force on the speed is kp (target - position) / kv, which falls by kp / kv."""
    own = 'forcerange="-30 30" ctrlrange="-3 3"'
    model, data = load(WHEEL.format(servo='position kp="1000" kv="100"', own=own, joint=""))
    data.ctrl[0] = 1.0
    sim, fastest = stiction.Simulator(model), 0.0
    for _ in range(100):
        sim.step(data)
        fastest = max(fastest, abs(data.qvel[0]))
    assert fastest < 10.0
    assert data.qpos[0] == pytest.approx(1.0 - np.exp(-2.0), abs=1e-2)


def test_a_servo_that_something_holds_presses_with_its_largest_force():
    model, data = load("""
<mujoco><option gravity="0 0 0" timestep="0.002"/>
  <worldbody><geom type="box" size=".1 .1 .1"/>
    <body pos=".2005 0 0"><joint name="j" type="slide" axis="1 0 0"/>
      <geom type="box" size=".1 .1 .1" mass=".01"/></body></worldbody>
  <actuator><position joint="j" kp="1000" kv="100" forcerange="-30 30"/></actuator>
</mujoco>""")
    data.ctrl[0] = -1.0
    sim = stiction.Simulator(model)
    for _ in range(20):
        report = sim.step(data)
        assert report.certificate.passed
    assert data.qpos[0] == pytest.approx(-0.0005, abs=1e-6)
    assert sum(contact.force[0] for contact in report.contacts) == pytest.approx(30.0, rel=1e-6)


def test_a_servo_that_stays_at_its_largest_force_is_as_in_mujoco():
    model, ours = load(WHEEL.format(servo='velocity kv="2"', own='forcerange="-.1 .1"', joint=""))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    theirs = mujoco.MjData(model)
    ours.ctrl[0] = theirs.ctrl[0] = 100.0
    sim = stiction.Simulator(model)
    for _ in range(20):
        sim.step(ours)
        mujoco.mj_step(model, theirs)
    assert ours.qvel[0] == pytest.approx(theirs.qvel[0], rel=1e-12)


@pytest.mark.parametrize("speed", [5.0, 0.1])
def test_derivatives_are_those_of_the_step_that_releases_it(speed):
    own, joint = CLAMPS["its own"]
    model, data = load(WHEEL.format(servo='velocity kv="2000"', own=own, joint=joint))
    data.qvel[0] = speed
    data.ctrl[0] = 0.05
    assert_agree(stiction.Simulator(model), data)


def test_a_batch_releases_them_as_well():
    own, joint = CLAMPS["its joint's"]
    model, _ = load(WHEEL.format(servo='velocity kv="2000"', own=own, joint=joint))
    batch = stiction.Batch(model, nsim=3)
    batch.bind("qvel")[:, 0] = [5.0, 0.1, -5.0]
    batch.step()
    assert np.abs(batch.bind("qvel")).max() < 1e-2
