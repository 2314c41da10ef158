"""Servos that come off their largest force within a step, `EventDriven`."""

import numpy as np
import pytest
from mjcf import load
from servos import CLAMPS, WHEEL

import stiction

GEARED = pytest.mark.xfail(strict=True, reason="a geared wheel is left turning at 0.025 rad/s")


@pytest.mark.parametrize("clamp", ["its own", "its joint's", pytest.param("geared", marks=GEARED)])
@pytest.mark.parametrize("speed", [5.0, -5.0])
def test_a_strong_servo_brakes_a_light_wheel_within_a_step(clamp, speed):
    """400 N m would turn it back to 450 rad/s in that time."""
    own, joint = CLAMPS[clamp]
    model, data = load(WHEEL.format(servo='velocity kv="2000"', own=own, joint=joint))
    data.qvel[0] = speed
    sim = stiction.Simulator(model, stepper=stiction.EventDriven(dt=1e-3))
    for _ in range(5):
        sim.step(data)
        assert abs(data.qvel[0]) < 1e-2


def test_a_servo_of_position_follows_its_slow_way_to_the_target():
    """From full force on the speed is kp (target - position) / kv, which falls by kp / kv."""
    own = 'forcerange="-30 30" ctrlrange="-3 3"'
    model, data = load(WHEEL.format(servo='position kp="1000" kv="100"', own=own, joint=""))
    data.ctrl[0] = 1.0
    sim = stiction.Simulator(model, stepper=stiction.EventDriven(dt=1e-3))
    fastest = 0.0
    for _ in range(200):
        sim.step(data)
        fastest = max(fastest, abs(data.qvel[0]))
    assert fastest < 10.0
    assert data.qpos[0] == pytest.approx(1.0 - np.exp(-2.0), abs=1e-2)


def test_a_servo_that_is_held_presses_with_its_largest_force():
    model, data = load("""
<mujoco><option gravity="0 0 0"/>
  <worldbody><geom type="box" size=".1 .1 .1"/>
    <body pos=".2 0 0"><joint name="j" type="slide" axis="1 0 0"/>
      <geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody>
  <actuator><position joint="j" kp="1000" kv="100" forcerange="-30 30"/></actuator>
</mujoco>""")
    data.ctrl[0] = -1.0
    report = stiction.Simulator(model, stepper=stiction.EventDriven(dt=1e-3)).step(data, 20)
    assert data.qpos[0] == pytest.approx(0.0, abs=1e-6)
    assert sum(contact.force[0] for contact in report.contacts) == pytest.approx(30.0, rel=1e-6)
