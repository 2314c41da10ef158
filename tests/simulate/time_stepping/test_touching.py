"""What touches, and what would pass by: curved paths, slopes, walls, fast bodies."""

import numpy as np
import pytest
from mjcf import load

import stiction
from stiction import Mode, NoSlip, Viscous, scenes

G = 9.81


@pytest.mark.parametrize("contact", [NoSlip(), Viscous(1000.0)], ids=lambda value: value.law)
def test_a_foot_that_stands_still_touches_though_its_path_is_curved(contact):
    # Its path leaves the ground by some 1e-7 m in a step; as a contact ahead it would slide.
    model, data, controller = scenes.load("quadruped", friction=100.0)
    sim = stiction.Simulator(model, contact)
    for _ in range(1000):
        controller(model, data)
        sim.step(data)
        assert data.qpos[2] > 0.28
    assert data.qpos[0] > 0.03
    assert sim.statistics.worst <= 1e-6


@pytest.mark.parametrize(("gap", "stays"), [(3e-8, True), (3e-7, False)])
def test_a_gap_below_a_millionth_of_what_moves_is_left_and_a_larger_one_closes(gap, stays):
    # Gaps of some nanometres that redundant contacts would have to close contradict each other.
    model, data = load("""<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
        <body pos="0 0 .05"><freejoint/><geom size=".05" mass="1"/></body></worldbody></mujoco>""")
    data.qpos[2] += gap
    before = data.qpos[2]
    stiction.Simulator(model).step(data)
    if stays:
        assert data.qpos[2] == before
        assert not data.qvel.any()
    else:
        assert data.qpos[2] == pytest.approx(0.05, abs=1e-12)


def test_gaps_of_meshes_which_are_found_roughly_close_down_to_a_hundredth_of_that():
    corners = " ".join(f"{x} {y} {z}" for x in (-1, 1) for y in (-1, 1) for z in (-1, 1))
    model, data = load(f"""<mujoco>
        <asset><mesh name="cube" vertex="{corners}" scale=".05 .05 .05"/></asset>
        <worldbody><geom type="plane" size="1 1 .1"/>
        <body pos="0 0 .05"><freejoint/><geom type="mesh" mesh="cube" mass="1"/></body>
        </worldbody></mujoco>""")
    data.qpos[2] += 3e-8
    stiction.Simulator(model).step(data)
    assert data.qpos[2] == pytest.approx(0.05, abs=2e-9)  # corners are of single precision


VALLEY = """
<mujoco>
  <option timestep=".002"/>
  <asset><hfield name="valley" nrow="2" ncol="3" size="1 1 .5 .1" elevation="1 0 1 1 0 1"/></asset>
  <worldbody>
    <geom type="hfield" hfield="valley"/>
    <body pos="0 .2 .1118033988749895"><freejoint/><geom size=".1" mass="1"/></body>
  </worldbody>
</mujoco>
"""


def test_a_ball_on_two_slopes_is_held_and_can_be_lifted():
    model, data = load(VALLEY)
    sim = stiction.Simulator(model, NoSlip())
    report = sim.step(data, 50)
    assert np.abs(data.qvel).max() < 1e-9
    assert [c.mode for c in report.contacts] == [Mode.STICK, Mode.STICK]
    data.xfrc_applied[1, :3] = [2.0, 0.0, 0.0]
    sim.step(data, 50)
    assert np.abs(data.qvel).max() < 1e-9
    data.xfrc_applied[1, :3] = [0.0, 0.0, 2 * G]
    sim.step(data, 50)
    # One step goes along the normal of the slope that holds it.
    assert data.qvel[2] == pytest.approx(50 * 0.002 * G, rel=0.01)


@pytest.mark.parametrize("speed", [1.0, 20.0, 300.0])
@pytest.mark.parametrize("geom", ['size=".02"', 'type="box" size=".02 .02 .02"'])
def test_nothing_goes_through_a_thin_wall(geom, speed):
    model, data = load(f"""<mujoco><option gravity="0 0 0"/><worldbody>
        <geom type="box" size=".0005 1 1"/><body pos="-.3 0 0"><freejoint/><geom {geom}/></body>
        </worldbody></mujoco>""")
    data.qvel[:] = [speed, 0, 0, 0.3, 0.2, 0.5]
    stiction.Simulator(model).step(data, round(1.0 / (0.002 * speed)) + 20)
    assert data.qpos[0] < -0.02


@pytest.mark.parametrize("speed", [1.0, 30.0, 100.0, 1000.0])
@pytest.mark.parametrize("offset", [0.0, 0.02, 0.035])
def test_fast_balls_that_meet_do_not_miss_each_other(speed, offset):
    model, data = load(f"""<mujoco><option gravity="0 0 0"/><worldbody>
        <body pos="-.3 0 0"><freejoint/><geom size=".02" mass="1"/></body>
        <body pos=".3 {offset} 0"><freejoint/><geom size=".02" mass="1"/></body>
        </worldbody></mujoco>""")
    data.qvel[0], data.qvel[6] = 0.5 * speed, -0.5 * speed
    stiction.Simulator(model).step(data, round(1.0 / (0.002 * speed)) + 20)
    assert data.qvel[0] < 0.45 * speed
    assert data.qvel[:3] + data.qvel[6:9] == pytest.approx([0, 0, 0], abs=1e-9 * speed)


def test_bodies_that_fall_together_touching_have_nothing_to_do_with_each_other():
    # Askew, so that their speeds differ in the last digits: solving for these once took hundreds
    # of factorizations a step.
    axis, bodies = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0), []
    turn = np.array([np.cos(0.35), *(np.sin(0.35) * axis)])
    up = 2.0 * turn[1:] * turn[3] + 2.0 * turn[0] * np.cross(turn[1:], [0.0, 0.0, 1.0])
    up += (turn[0] ** 2 - turn[1:] @ turn[1:]) * np.array([0.0, 0.0, 1.0])
    for k in range(4):
        place, quat = ("%.17g " * len(x) % tuple(x) for x in (0.1 * k * up, turn))
        bodies.append(
            f'<body pos="{place}" quat="{quat}"><freejoint/>'
            '<geom type="box" size=".2 .15 .05" pos=".1 .2 0"/>'
            '<geom type="box" size=".1 .1 .05" pos="-.3 0 0"/></body>'
        )
    model, data = load(f"<mujoco><worldbody>{''.join(bodies)}</worldbody></mujoco>")
    data.qvel.reshape(-1, 6)[:, :3] = [0.3, -0.7, 0.1]
    sim = stiction.Simulator(model)
    for _ in range(100):
        report = sim.step(data)
        assert data.ncon == 24
        assert report.pivots == 0
    assert not data.qfrc_constraint.any()
    assert sim.statistics.worst <= 1e-9
