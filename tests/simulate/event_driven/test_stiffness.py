"""Damping that is too fast for explicit steps, and rows that differ by the decimals of a file."""

import mujoco
import numpy as np
import pytest

from stiction import Coulomb, EventDriven, Frictionless, Simulator
from stiction.simulate.event_driven.phases import State
from stiction.simulate.event_driven.trajectories import Motion

SERVO = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body pos="0 0 1">
      <joint name="arm" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="1"/>
      <body pos="0.3 0 0">
        <joint name="wrist" axis="0 1 0" damping="{damping}"/>
        <geom type="sphere" size="0.01" mass="0.01" pos="0.01 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="servo" joint="wrist" kp="{kp}" kv="{kv}"/>
  </actuator>
</mujoco>
"""
"""A wrist of 2e-6 kg m^2 on an arm that swings."""


def _run(xml: str, dt: float, time: float, contact=None, ctrl: float = 0.0) -> mujoco.MjData:
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.ctrl[:] = ctrl
    simulator = Simulator(model, contact=contact, stepper=EventDriven(dt=dt))
    simulator.step(data, round(time / dt))
    return data


@pytest.mark.parametrize("contact", [None, Frictionless()])
def test_servo_whose_damping_is_a_thousand_times_too_fast_comes_to_its_target(contact) -> None:
    xml = SERVO.format(damping=0, kp=10, kv=1)
    data = _run(xml, 2e-3, 0.4, contact, ctrl=0.5)
    # the wrist follows its command with the time constant kv / kp
    assert data.qpos[1] == pytest.approx(0.5 * (1.0 - np.exp(-4.0)), abs=0.02)
    fine = _run(xml, 2e-4, 0.4, contact, ctrl=0.5)
    np.testing.assert_allclose(data.qpos, fine.qpos, atol=1e-5)


def test_fast_damping_is_integrated_to_the_third_order() -> None:
    xml = SERVO.format(damping=0.05, kp=0, kv=0)
    reference = _run(xml, 1.25e-4, 0.2)
    errors = [np.abs(_run(xml, dt, 0.2).qpos - reference.qpos).max() for dt in (8e-3, 4e-3, 2e-3)]
    assert errors[0] > 6.0 * errors[1] > 36.0 * errors[2]


def test_slow_damping_is_integrated_to_the_fourth_order() -> None:
    xml = SERVO.format(damping=1e-4, kp=0, kv=0)
    reference = _run(xml, 1.25e-4, 0.2)
    errors = [np.abs(_run(xml, dt, 0.2).qpos - reference.qpos).max() for dt in (8e-3, 4e-3)]
    assert errors[0] > 14.0 * errors[1]


def test_stiff_finger_presses_a_block_against_a_wall_and_holds_it() -> None:
    model = mujoco.MjModel.from_xml_string("""
    <mujoco>
      <option timestep="0.002"/>
      <worldbody>
        <geom type="box" size="0.05 0.5 0.5" pos="-0.1 0 0.5" friction="1"/>
        <body name="block" pos="0.0005 0 0.5">
          <freejoint/><geom type="box" size="0.05 0.05 0.05" mass="0.1" friction="1"/>
        </body>
        <body pos="0.0615 0 0.5">
          <joint name="finger" type="slide" axis="1 0 0"/>
          <geom type="sphere" size="0.01" mass="0.001" friction="1"/>
        </body>
      </worldbody>
      <actuator><position joint="finger" kp="500" kv="50"/></actuator>
    </mujoco>""")
    data = mujoco.MjData(model)
    data.ctrl[:] = -0.02
    simulator = Simulator(model, stepper=EventDriven())
    for _ in range(100):
        simulator.step(data)
        assert data.contact.dist.min(initial=0.0) >= -1e-7
    height = data.qpos[2]
    simulator.step(data, 100)
    assert data.qpos[2] == pytest.approx(height, abs=1e-7)
    assert data.qpos[2] > 0.49


LINKAGE = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="crank">
      <joint axis="0 1 0" frictionloss="1e-4"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.1" size="0.01" mass="0.1" contype="0"/>
      <body name="rod" pos="0 0 0.1">
        <joint axis="0 1 0" frictionloss="1e-4"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.005" mass="0.01" contype="0"/>
      </body>
    </body>
    <body name="rocker" pos="0.2 0 0">
      <joint axis="0 1 {tilt}" frictionloss="1e-4"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.1" size="0.01" mass="0.1" contype="0"/>
    </body>
  </worldbody>
  <equality><connect body1="rod" body2="rocker" anchor="0.2 {across} 0"/></equality>
  <keyframe><key qvel="1 -1 1"/></keyframe>
</mujoco>
"""
"""Four bars in a plane: their joint's row across the plane has no entries but by `tilt`."""


def _swing(tilt: str, across: str) -> mujoco.MjData:
    model = mujoco.MjModel.from_xml_string(LINKAGE.format(tilt=tilt, across=across))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    Simulator(model, stepper=EventDriven()).step(data, 100)
    return data


def test_linkage_written_with_eight_decimals_moves_as_the_exact_one_does() -> None:
    exact, rounded = _swing("0", "0"), _swing("0.00000003", "0.00000001")
    assert np.abs(exact.qpos).min() > 0.1
    np.testing.assert_allclose(rounded.qpos, exact.qpos, atol=1e-6)


def test_piece_at_the_velocity_level_may_end_without_contacts() -> None:
    model = mujoco.MjModel.from_xml_string("""
    <mujoco>
      <compiler angle="radian"/>
      <worldbody><body>
        <joint axis="0 1 0" limited="true" range="-1 1"/>
        <geom size="0.1" pos="0.2 0 0"/>
      </body></worldbody>
    </mujoco>""")
    data = mujoco.MjData(model)
    motion = Motion(model, Coulomb(), 2e-3, 1e-7, lambda *_: None, damped=False)
    motion.start(data)
    state = State(np.array([-1.0 + 1e-9]), np.array([50.0]), np.zeros(0))
    phase = motion.phase(state, motion.look(state))
    assert phase.seen.nc
    moved, grip = motion.velocity_level(phase, 0.02)
    assert not moved.seen.nc
    assert not grip.press.any()
