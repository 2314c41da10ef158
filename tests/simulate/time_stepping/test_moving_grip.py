"""A gripper that swings about with a part between its fingers."""

import mujoco
import numpy as np
import pytest
from gripper import PARTS, gripper
from slopes import assert_agree
from tray import tray

import stiction
from stiction import Mode

SWING = np.array([0.1, 0.05, 0.5, 0.4, 0.0, 0.0])
RATE = 2.0 * np.pi * np.array([0.7, 0.9, 0.6, 0.8, 0.0, 0.0])


def swing(sim, data, steps):
    """The steps' reports, while joints swing and the fingers press with 20 N."""
    for _ in range(steps):
        data.ctrl[:] = SWING * np.sin(RATE * data.time)
        data.ctrl[4:] = 1.0
        yield sim.step(data)


@pytest.mark.parametrize("part", ["box", "cylinder", "two boxes in one"])
def test_what_a_swinging_gripper_holds_sticks_in_a_few_factorizations_a_step(part):
    # Contacts that closed the gaps of a step at speeds of their own took 6 to 27.
    model = mujoco.MjModel.from_xml_string(gripper(part))
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    for _ in swing(sim, data, 300):
        pass
    sim.reset_statistics()
    for report in swing(sim, data, 500):
        assert report.certificate.worst <= 1e-8
        pressed = [contact for contact in report.contacts if contact.force[0] > 0.0]
        assert {contact.mode for contact in pressed} == {Mode.STICK}
    assert sim.statistics.pivots < 5.0
    assert sim.statistics.overlap < 1e-5


def test_gaps_that_a_turning_gripper_leaves_are_closed():
    model = mujoco.MjModel.from_xml_string(gripper("box"))
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    wide = max(
        max(contact.gap for contact in report.contacts if contact.force[0] > 0.0)
        for report in list(swing(sim, data, 800))[300:]
    )
    # They would be of r (w h)^2 / 2, a hand's breadth from the axis: 2e-6 at 2 rad/s.
    assert wide < 1e-8


def seen_by_the_finger(model, data):
    """Where the part is (3,) [m]."""
    mujoco.mj_kinematics(model, data)
    finger, part = data.body("left_finger"), data.body("part")
    return finger.xmat.reshape(3, 3).T @ (part.xpos - finger.xpos)


@pytest.mark.parametrize("part", PARTS)
def test_what_a_swinging_gripper_holds_does_not_creep_along_the_fingers(part):
    # Taken back across the faces alone, paths that bend left 0.2 mm in a second.
    model = mujoco.MjModel.from_xml_string(gripper(part))
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    for _ in swing(sim, data, 300):
        pass
    start = seen_by_the_finger(model, data)
    for _ in swing(sim, data, 500):
        pass
    assert np.linalg.norm(seen_by_the_finger(model, data) - start) < 1e-6


@pytest.mark.parametrize("count", [3, 5])
def test_things_on_a_tray_that_tilts_stay_where_they_stand(count):
    # The larger trays hold more than a small island's 48 contacts.
    model = mujoco.MjModel.from_xml_string(tray(count))
    data, sim = mujoco.MjData(model), stiction.Simulator(model)

    def seen_by_the_tray():
        mujoco.mj_kinematics(model, data)
        carrier = data.body("tray")
        return (data.xpos[2:] - carrier.xpos) @ carrier.xmat.reshape(3, 3)

    for k in range(700):
        if k == 200:
            start = seen_by_the_tray()
        data.ctrl[:] = 0.1 * min(1.0, 2 * data.time) * np.sin(4.0 * data.time + np.arange(2))
        report = sim.step(data)
        assert report.certificate.worst <= 1e-8
    np.testing.assert_allclose(seen_by_the_tray(), start, atol=1e-6)


LEG = """
<body pos="0 {} -.1">
  <joint axis="0 1 0" damping="1" stiffness="5"/><joint axis="1 0 0" damping="1" stiffness="5"/>
  <geom size=".05" mass="2" contype="0" conaffinity="0"/>
  <body pos="0 0 -.4">
    <joint axis="0 1 0" damping="1" stiffness="2"/>
    <geom size=".045" mass="2" contype="0" conaffinity="0"/>
    <body pos="0 0 -.4">
      <joint axis="0 1 0" damping="1"/><joint axis="1 0 0" damping="1"/>
      <geom type="capsule" fromto="-.07 -.01 0 .14 -.03 0" size=".027" friction=".7"/>
      <geom type="capsule" fromto="-.07 .01 0 .14 .03 0" size=".027" friction=".7"/>
    </body>
  </body>
</body>
"""
LEGS = f"""
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom type="plane" size="5 5 1" friction=".7"/>
    <body pos="0 0 .937">
      <freejoint/>
      <geom type="box" size=".08 .15 .1" pos="0 0 .1" mass="20" contype="0" conaffinity="0"/>
      {LEG.format(-0.1)}{LEG.format(0.1)}
    </body>
  </worldbody>
</mujoco>
"""


def test_feet_that_land_one_edge_first_come_to_stand_on_all_their_points():
    # Each closed gaps of micrometres by a velocity of its own, turned by that, and closed others.
    model = mujoco.MjModel.from_xml_string(LEGS)
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    data.qvel[:6] = [0.05, 0, 0, 0.2, 0.1, 0.1]
    sim.step(data, 15)
    sim.reset_statistics()
    for _ in range(50):
        report = sim.step(data)
        assert len(report.contacts) == 8
        assert max(abs(contact.gap) for contact in report.contacts) < 1e-7
    assert sim.statistics.pivots < 5.0


def test_fingers_that_press_on_each_other_do_not_move_the_arm():
    # They close along their rails and nowhere else: what is across is rounding.
    alone = gripper("box").replace('name="part" pos="0 0 .4"', 'name="part" pos="0 0 .1"')
    model = mujoco.MjModel.from_xml_string(
        alone.replace('contype="1"', 'contype="1" conaffinity="1"')
    )
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    pressed, before = 0, data.qpos[:6].copy()
    for report in swing(sim, data, 600):
        pressed += any(contact.force[0] > 1.0 for contact in report.contacts)
        way = data.qpos[:6] - before
        np.testing.assert_allclose(way, model.opt.timestep * data.qvel[:6], atol=1e-7)
        before = data.qpos[:6].copy()
    assert pressed > 500


@pytest.mark.parametrize("part", ["cylinder", "sphere"])
def test_derivatives_of_a_step_of_a_turning_gripper(part):
    model = mujoco.MjModel.from_xml_string(gripper(part))
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    for _ in swing(sim, data, 400):
        pass
    assert_agree(stiction.Simulator(model), data)


TWINS = """
<mujoco>
  <option timestep="0.002" gravity="0 0 0"/>
  <worldbody>
    <body><freejoint/><geom type="box" size=".05 .05 .05" friction="1"/></body>
    <body pos="0 0 .1002"><freejoint/><geom type="box" size=".05 .05 .05" friction="1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("contact", [stiction.Coulomb(), stiction.NoSlip()], ids=str)
def test_bodies_that_fly_and_turn_alike_close_their_gap_at_the_speed_that_they_have(contact):
    model = mujoco.MjModel.from_xml_string(TWINS)
    gaps = []
    for fast in (0.0, 20.0):
        data, sim = mujoco.MjData(model), stiction.Simulator(model, contact)
        data.qvel[:] = [fast, 0, 0, 0, 0, 10.0, fast, 0, -0.02, 0, 0, 10.0]
        gaps.append([])
        for _ in range(8):
            sim.step(data)
            gaps[-1].append(data.qpos[9] - data.qpos[2] - 0.1)
    np.testing.assert_allclose(gaps[1], gaps[0], atol=1e-9)
    np.testing.assert_allclose(gaps[0][:4], [160e-6, 120e-6, 80e-6, 40e-6], atol=1e-9)


def test_bodies_that_turn_alike_and_bounce_fly_apart():
    model = mujoco.MjModel.from_xml_string(TWINS)
    data, sim = mujoco.MjData(model), stiction.Simulator(model, restitution=0.8)
    data.qvel[:] = [20.0, 0, 0, 0, 0, 10.0, 20.0, 0, -1.0, 0, 0, 10.0]
    sim.step(data)
    assert data.qvel[8] - data.qvel[2] == pytest.approx(0.8)
    assert data.qpos[9] - data.qpos[2] - 0.1 > 1e-3


@pytest.mark.parametrize("dt", [0.002, 0.01, 0.02])
def test_what_rolls_fast_is_not_gripped(dt):
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="{dt}"/><worldbody><geom type="plane" size="50 50 1"/>
        <body pos="0 0 .1"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    )
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    data.qvel[0], data.qvel[4] = 3.0, 30.0
    sim.step(data, round(1.0 / dt))
    assert data.qpos[:3] == pytest.approx([3.0, 0.0, 0.1], abs=1e-7)
    assert np.hypot(*data.qvel[3:5]) == pytest.approx(30.0, rel=1e-7)


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_a_heap_is_not_held_where_its_bodies_lie_within_each_other(seed):
    model, data, _ = stiction.scenes.load("bin")
    model.opt.timestep = 0.01
    data.qvel[:] += 1e-6 * np.random.default_rng(seed).normal(size=model.nv) * (seed > 0)
    stiction.Simulator(model).step(data, 300)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_collision(model, data)
    assert max(-data.contact.dist) < 1e-3
