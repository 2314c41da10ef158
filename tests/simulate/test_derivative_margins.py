"""How far the derivatives of a step are from a border of modes, and which side they have there."""

import numpy as np
import pytest
from mjcf import load
from numpy.testing import assert_allclose
from slopes import assert_agree, differences

import stiction
from stiction import Mode

BESIDE = """<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
  <geom type="plane" size="1 1 .1" euler="0 90 0" pos="-.1 0 0"/>
  <body pos="0 0 .1"><freejoint/><geom type="{kind}" size=".1 .1 .1"/></body>
  </worldbody></mujoco>"""
LOW = 1e-3
"""How deep things lie in the floor: what rests on it is at a border [m]."""


@pytest.mark.parametrize("kind", ["sphere", "box"])
def test_margin_is_zero_where_a_contact_just_touches(kind):
    model, data = load(BESIDE.format(kind=kind))
    sim = stiction.Simulator(model)
    data.qpos[2] -= LOW
    assert sim.derivatives(data).margin == 0.0
    data.qpos[0] += 0.05
    assert sim.derivatives(data).margin > 0.1


@pytest.mark.parametrize("kind", ["sphere", "box"])
def test_margin_of_what_rests_is_how_far_it_is_from_the_surface(kind):
    model, data = load(BESIDE.format(kind=kind))
    sim, margins = stiction.Simulator(model), []
    data.qpos[0] += 0.05
    for height in (0.0, -1e-6, -2e-6):
        data.qpos[2] = 0.1 + height
        margins.append(sim.derivatives(data).margin)
    assert margins[0] == 0.0
    assert 0.0 < margins[1] < 0.1
    assert_allclose(margins[2], 2.0 * margins[1], rtol=1e-2)
    if kind == "sphere":  # of a box, four corners would land together
        data.qpos[2] = 0.1 + 1e-6
        assert_allclose(sim.derivatives(data).margin, margins[1], rtol=1e-2)


def test_margin_of_what_friction_keeps_in_an_overlap_is_how_deep_it_lies():
    model, data = load(BESIDE.format(kind="box"))
    data.qpos[2] -= LOW
    sim, margins = stiction.Simulator(model), []
    for depth in (1e-6, 2e-6):
        data.qpos[0] = -depth
        margins.append(sim.derivatives(data).margin)
    assert 0.0 < margins[0] < 0.1
    assert_allclose(margins[1], 2.0 * margins[0], rtol=1e-2)
    left = stiction.Simulator(model, stepper=stiction.TimeStepping(push_out=False))
    assert left.derivatives(data).margin > 0.1


def test_margin_of_two_boxes_side_by_side_is_zero_on_the_floor_that_holds_both():
    beside = """<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
      <body pos="0 0 .099"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
      <body pos="{x} 0 .099"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
      </worldbody></mujoco>"""
    for x, touches in ((0.2, True), (0.3, False)):
        model, data = load(beside.format(x=x))
        assert (stiction.Simulator(model).derivatives(data).margin == 0.0) == touches


FOOT = """<mujoco><worldbody><geom type="plane" size="1 1 .1" condim="1"/>
  <body pos="0 0 .35"><joint type="slide" axis="0 0 1"/><geom size=".05"/>
    <body pos="0 0 -.2"><joint name="ankle" axis="0 1 0" limited="true" range="-20 20" {dry}/>
      <geom type="capsule" fromto="0 0 0 .1 0 -.1" size=".02" condim="1"/>
      </body></body></worldbody>
  <actuator><motor joint="ankle"/></actuator></mujoco>"""


def foot(over, gap, dry=""):
    """A foot whose ankle is pressed against its lower limit, or beyond it, above the ground."""
    model, data = load(FOOT.format(dry=dry))
    data.qpos[1] = model.jnt_range[1, 0] - over
    toe = 0.1 * np.sqrt(2.0) * np.sin(data.qpos[1] + np.pi / 4)
    data.qpos[0] = gap + toe + 0.02 - 0.15
    data.qvel[0], data.ctrl[0] = -0.05, -0.5
    return stiction.Simulator(model), data


def test_margin_of_a_joint_that_is_pressed_against_its_limit_is_zero():
    for over, at_border in ((0.0, True), (1e-4, False), (-1e-4, False)):
        sim, data = foot(over, 0.05)
        found = sim.derivatives(data)
        assert (found.margin == 0.0) == at_border
        if not at_border:
            assert_agree(sim, data, 1e-8)


def test_at_a_limit_the_side_beyond_it_is_taken_and_what_lands_meanwhile_stays_on_the_ground():
    sim, data = foot(0.0, 1e-5)
    found = sim.derivatives(data)
    assert found.margin == 0.0
    assert found.modes[0] is not Mode.SEPARATE
    beyond = differences(sim, data, ends=(0.0, -1.0))[0]
    assert_allclose(found.A[:, 1], beyond[:, 1], atol=1e-5 * np.abs(beyond).max())


def test_dry_friction_at_its_limit_counts_unless_the_joint_is_at_its_end():
    sim, data = foot(1e-4, 0.05, 'frictionloss=".1"')
    assert sim.derivatives(data).margin > 1e-3
    assert_agree(sim, data, 1e-8)


def test_margin_of_corners_that_land_together_is_how_far_their_gaps_differ():
    model, data = load(BESIDE.format(kind="box"))
    sim, margins = stiction.Simulator(model), []
    for turn in (0.0, 1e-6, 2e-6):
        data.qpos[:3] = 0.05, 0.0, 0.1 + 5e-6
        data.qpos[3:] = np.cos(turn / 2), np.sin(turn / 2) / np.sqrt(1.25), 0, 0
        data.qpos[5] = 0.5 * data.qpos[4]
        found = sim.derivatives(data)
        assert all(mode is Mode.STICK for mode in found.modes)
        margins.append(found.margin)
    assert margins[0] == 0.0
    assert_allclose(margins[2], 2.0 * margins[1], rtol=1e-2)


PLATE = """<mujoco><worldbody><geom type="plane" size="5 5 .1" friction=".4"/>
  <body pos="0 0 .049"><freejoint/>{geoms}</body></worldbody></mujoco>"""


@pytest.mark.parametrize("corners", [3, 4])
def test_margin_is_zero_where_friction_leaves_the_velocity_undetermined(corners):
    turns = 2.0 * np.pi * np.arange(corners) / corners
    ball = '<geom size=".05" pos="{} {} 0" friction=".4"/>'
    geoms = "".join(ball.format(0.3 * np.cos(t), 0.2 * np.sin(t)) for t in turns)
    model, data = load(PLATE.format(geoms=geoms))
    sim = stiction.Simulator(model)
    data.qvel[:] = 1.0, 0.0, 0.0, 0.0, 0.0, 8.0  # slides, and turns
    found = sim.derivatives(data)
    assert all(mode is Mode.SLIDE for mode in found.modes)
    assert (found.margin == 0.0) == (corners == 4)
    data.qvel[5] = 0.0
    assert assert_agree(sim, data).margin > 1e-3
