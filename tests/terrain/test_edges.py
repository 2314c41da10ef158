"""Edges of boxes across faces of others: both ends of the line touch."""

import mujoco
import numpy as np
import pytest

import stiction
from stiction.terrain.refinement import refine_contacts

WIDTH = 0.014


def meet(roll, pitch=20.0, length=0.025, shift=0.0):
    """(contacts before; gaps, points, normals after `refine_contacts`; model, data) of a box whose
    lower edge all but touches a narrow beam that it lies across, tilted by `roll` [rad]."""
    model = mujoco.MjModel.from_xml_string(f"""
<mujoco><worldbody>
  <geom type="box" size=".1 {WIDTH} .02" pos="0 0 -.02" margin=".01"/>
  <body><freejoint/><geom type="box" size=".025 {length} .025" margin=".01"/></body>
</worldbody></mujoco>""")
    data = mujoco.MjData(model)
    turn, lean = np.zeros(4), np.zeros(4)
    mujoco.mju_axisAngle2Quat(turn, [0.0, 1.0, 0.0], np.radians(pitch))
    mujoco.mju_axisAngle2Quat(lean, [1.0, 0.0, 0.0], roll)
    mujoco.mju_mulQuat(data.qpos[3:], lean, turn)
    low = 0.025 * (np.cos(np.radians(pitch)) + np.sin(np.radians(pitch)))
    inside = min(WIDTH, length + abs(shift))
    data.qpos[1:3] = shift, low + inside * abs(roll) + 1e-9
    mujoco.mj_fwdKinematics(model, data)
    mujoco.mj_collision(model, data)
    before = data.ncon
    refine_contacts(model._address, data._address)
    found = data.contact
    return before, found.dist.copy(), found.pos.copy(), found.frame[:, :3].copy(), model, data


@pytest.mark.parametrize("roll", [3e-5, -3e-5, 1e-3, -0.02])
def test_an_edge_across_a_beam_touches_at_both_of_its_ends(roll):
    before, gap, point, normal, model, data = meet(roll)
    assert before == 1, "what MuJoCo has"
    assert len(gap) == 2
    np.testing.assert_allclose(np.sort(point[:, 1]), [-WIDTH, WIDTH], atol=1e-4)
    assert np.ptp(gap) == pytest.approx(2 * WIDTH * np.sin(abs(roll)), rel=1e-3)
    true = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, None)
    assert gap.min() == pytest.approx(true, abs=1e-9)
    np.testing.assert_allclose(normal, [[0.0, 0.0, 1.0]] * 2, atol=2 * abs(roll))


def test_an_edge_that_ends_on_the_face_touches_with_its_corner():
    roll, length, shift = -1e-3, 0.01, 0.008
    before, gap, point, normal, *_ = meet(roll, length=length, shift=shift)
    assert before == 1
    assert len(gap) == 2
    np.testing.assert_allclose(np.sort(point[:, 1]), [shift - length, WIDTH], atol=1e-4)
    assert np.ptp(gap) == pytest.approx((WIDTH - shift + length) * -roll, rel=1e-2)
    np.testing.assert_allclose(normal[np.argmax(gap)], [0.0, 0.0, 1.0], atol=1e-12)


def test_steep_edges_and_faces_on_faces_stay_as_they_are():
    before, gap, *_ = meet(0.3)
    assert len(gap) == before
    before, gap, *_ = meet(0.0, pitch=0.0)
    assert len(gap) == before


@pytest.mark.parametrize("dt", [2e-3, 5e-4])
@pytest.mark.parametrize("stepper", [stiction.TimeStepping(), stiction.EventDriven()])
def test_a_cube_across_two_beams_lies_still(stepper, dt):
    """With one contact at each beam it rocked from end to end, and walked."""
    model = mujoco.MjModel.from_xml_string(f"""
<mujoco><option timestep="{dt}"/><worldbody>
  <geom type="box" size=".1 {WIDTH} .01" pos="-.05 0 0" euler="0 20 0"/>
  <geom type="box" size=".1 {WIDTH} .01" pos=".05 0 0" euler="0 -20 0"/>
  <body name="cube" pos="0 0 .026" euler=".002 0 0"><freejoint/>
    <geom type="box" size=".025 .025 .025" mass=".1" friction=".7"/></body>
</worldbody></mujoco>""")
    data = mujoco.MjData(model)
    data.qpos[2] += 0.01
    simulator = stiction.Simulator(model, stepper=stepper)
    simulator.step(data, round(0.4 / dt))
    start = data.qpos.copy()
    simulator.step(data, round(0.2 / dt))
    np.testing.assert_allclose(data.qpos, start, atol=1e-9)
    np.testing.assert_allclose(data.qvel, 0.0, atol=1e-9)
