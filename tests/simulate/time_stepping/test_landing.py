"""Contact at a distance, and overlap: bodies land, and come apart, without energy."""

from math import ceil, sin

import mujoco
import numpy as np
import pytest
from mjcf import BOX, load

import stiction
from stiction import TimeStepping

SHAPES = {
    "sphere": ('type="sphere" size=".1"', 0.1),
    "box": ('type="box" size=".1 .1 .1"', 0.1),
    "capsule": ('type="capsule" size=".05 .1"', 0.15),
    "cylinder": ('type="cylinder" size=".1 .1"', 0.1),
    "ellipsoid": ('type="ellipsoid" size=".15 .12 .1"', 0.1),
}


@pytest.mark.parametrize("floor", ["plane", "box"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("speed", [0.0, 3.3, 200.0])
def test_bodies_land_without_sinking_in_or_bouncing(shape, speed, floor):
    geom, half = SHAPES[shape]
    ground = 'type="plane" size="9 9 1"'
    if floor == "box":
        ground = 'type="box" size="2 2 .05" pos="0 0 -.05"'
    model, data = load(f"""
<mujoco><option ccd_tolerance="1e-9" ccd_iterations="200"/><worldbody><geom {ground}/>
  <body pos="0 0 {half + 0.213}"><freejoint/><geom {geom}/></body></worldbody></mujoco>""")
    data.qvel[2] = -speed
    sim = stiction.Simulator(model)
    landed = False
    for _ in range(150):
        sim.step(data)
        height = data.qpos[2] - half
        assert height >= -1e-6
        landed |= height <= 1e-6
        if landed:
            assert abs(height) <= 1e-6
            assert data.qvel[2] <= 1e-5
    assert landed
    if floor == "plane":  # between curved and flat bodies MuJoCo's distance has its own tolerance
        assert abs(height) <= 1e-9
        assert np.abs(data.qvel).max() <= 1e-9


@pytest.mark.parametrize("speed", [10.0, 333.0, 5000.0])
def test_a_bullet_is_stopped_by_a_thin_wall(speed):
    model, data = load("""
<mujoco><option gravity="0 0 0"/><worldbody>
  <geom type="box" size=".01 1 1"/>
  <body pos="-5 0 0"><freejoint/><geom type="sphere" size=".005"/></body>
</worldbody></mujoco>""")
    data.qvel[0] = speed
    sim = stiction.Simulator(model)
    for _ in range(ceil(5.0 / speed / 0.002) + 5):
        sim.step(data)
        assert data.qpos[0] <= -0.015 + 1e-9
    assert data.qpos[0] == pytest.approx(-0.015, abs=1e-9)
    assert np.abs(data.qvel).max() <= 1e-9


@pytest.mark.parametrize(
    ("gap", "push", "timestep"), [(2.4e-4, 0.0, 0.005), (2e-3, 60.0, 0.002), (1e-3, 600.0, 0.001)]
)
def test_a_body_pushed_from_rest_does_not_sink_in(gap, push, timestep):
    model, data = load(f"""
<mujoco><option timestep="{timestep}"/><worldbody><geom type="plane" size="9 9 1"/>
  <body pos="0 0 {0.01 + gap}"><freejoint/><geom type="sphere" size=".01" mass=".1"/></body>
</worldbody></mujoco>""")
    data.xfrc_applied[1, 2] = -push
    sim = stiction.Simulator(model)
    for _ in range(5):
        sim.step(data)
        assert data.qpos[2] >= 0.01 - 1e-6


def test_bullets_meet_in_the_middle():
    model, data = load("""
<mujoco><option gravity="0 0 0"/><worldbody>
  <body pos="-5 0 0"><freejoint/><geom type="sphere" size=".05"/></body>
  <body pos="5 0 0"><freejoint/><geom type="sphere" size=".05"/></body>
</worldbody></mujoco>""")
    data.qvel[[0, 6]] = 777.0, -777.0
    stiction.Simulator(model).step(data, 10)
    assert data.qpos[[0, 7]] == pytest.approx([-0.05, 0.05], abs=1e-9)


@pytest.mark.parametrize("depth", [1e-6, 1e-4, 1e-3, 0.01, 0.05])
@pytest.mark.parametrize("angle", [0.0, 0.4])
def test_overlap_is_pushed_out_without_adding_kinetic_energy(depth, angle):
    model, data = load(f"""
<mujoco><option gravity="0 0 0"/><compiler angle="radian"/><worldbody>
  <geom type="plane" size="9 9 1"/>
  <body name="low" pos="0 0 {0.1 * (sin(angle) + np.cos(angle)) - depth}" euler="0 {angle} 0">
    <freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="ball" pos="1 0 .1"><freejoint/><geom type="sphere" size=".1"/></body>
  <body name="ball on ball" pos="1 0 {0.3 - depth}"><freejoint/>
    <geom type="sphere" size=".1"/></body>
</worldbody></mujoco>""")
    sim = stiction.Simulator(model)
    for _ in range(200):
        sim.step(data)
        assert np.abs(data.qvel).max() <= 1e-12
    mujoco.mj_forward(model, data)
    assert data.contact.dist.min(initial=0.0) >= -1e-6
    assert sim.statistics.pushed_out >= 1
    assert sim.statistics.overlap == pytest.approx(depth, rel=1e-6)


def test_overlap_is_left_alone_where_that_is_asked_for():
    model, data = load(BOX.replace('pos="0 0 .1"', 'pos="0 0 .09"'))
    sim = stiction.Simulator(model, stepper=TimeStepping(push_out=False))
    sim.step(data, 100)
    assert data.qpos[2] == pytest.approx(0.09, abs=1e-12)
    assert sim.statistics.pushed_out == 0


@pytest.mark.parametrize("override", ["disable", "enable"])
def test_geoms_that_meet_as_a_pair_alone_are_seen_ahead_as_others_are(override):
    """They have no contype and no conaffinity, like what is there to be looked at only."""
    runs = []
    for bits, pair in (('contype="0" conaffinity="0"', '<pair geom1="a" geom2="b"/>'), ("", "")):
        model, data = load(
            f"""<mujoco><option timestep=".01"><flag override="{override}"/></option><worldbody>
            <geom name="a" type="plane" size="5 5 1" {bits}/>
            <body pos="0 0 .5"><freejoint/><geom name="b" size=".05" {bits}/></body>
            </worldbody><contact>{pair}</contact></mujoco>"""
        )
        data.qvel[2] = -30.0
        sim = stiction.Simulator(model)
        heights = []
        for _ in range(20):
            sim.step(data)
            heights.append(data.qpos[2])
        runs.append(heights)
    assert min(runs[0]) >= 0.05 - 1e-9
    assert runs[0] == runs[1]
