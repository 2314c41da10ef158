"""One body: on slopes and floors, at walls, in a pinch, rolling and tipping.

Steps are semi-implicit: after k steps of length h at the acceleration a, v = k h a and
x = h^2 a k (k + 1) / 2, exactly.
"""

from math import cos, floor, hypot, pi, sin, tan

import mujoco
import numpy as np
import pytest
from closed_forms import BOTH_SIDES, EXACT_AND_POLYGON, G, along, flat, forces, incline
from mjcf import load

import stiction
from stiction import Coulomb, Mode


@EXACT_AND_POLYGON
@pytest.mark.parametrize("angle", [0.05, 0.3, 0.7])
def test_block_below_the_friction_angle_stays_put(contact, angle):
    model, data = load(incline(angle, 'type="box" size=".1 .1 .05"', 0.05, 1.01 * tan(angle)))
    sim = stiction.Simulator(model, contact)
    start = data.qpos.copy()
    for _ in range(20):
        report = sim.step(data, 100)
        assert np.abs(data.qvel).max() <= 1e-13
        assert {c.mode for c in report.contacts if c.force[0] > 0.0} == {Mode.STICK}
    assert np.abs(data.qpos - start).max() <= 1e-12
    friction = hypot(*sum(c.force[1:] for c in report.contacts))
    assert friction == pytest.approx(1.5 * G * sin(angle), rel=1e-10)
    assert sum(c.force[0] for c in report.contacts) == pytest.approx(1.5 * G * cos(angle), rel=1e-9)
    assert sum(c.margin for c in report.contacts) >= 0.0


@EXACT_AND_POLYGON
@pytest.mark.parametrize("angle", [0.05, 0.3, 0.7])
def test_block_above_the_friction_angle_slides_with_the_acceleration_of_the_books(contact, angle):
    mu = 0.99 * tan(angle)
    model, data = load(incline(angle, 'type="box" size=".1 .1 .05"', 0.05, mu))
    start = data.qpos[:3].copy()
    report = stiction.Simulator(model, contact).step(data, 500)
    acceleration = G * (sin(angle) - mu * cos(angle))
    down = np.array([cos(angle), 0.0, -sin(angle)])
    assert np.abs(data.qvel[:3] - 500 * 0.002 * acceleration * down).max() <= 1e-10
    assert np.abs(data.qpos[:3] - start - along(500, 0.002, acceleration) * down).max() <= 1e-9
    assert np.abs(data.qvel[3:]).max() <= 1e-9
    assert {c.mode for c in report.contacts if c.force[0] > 0.0} == {Mode.SLIDE}
    assert all(abs(c.margin) <= 1e-9 for c in report.contacts)


@EXACT_AND_POLYGON
def test_sliding_block_stops_after_the_stopping_distance_and_then_is_still(contact):
    mu, v0, h = 0.3, 2.0, 0.002
    model, data = load(flat('type="box" size=".1 .1 .05"', 0.05, mu))
    data.qvel[0] = v0
    sim = stiction.Simulator(model, contact)
    steps = floor(v0 / (h * mu * G))
    sim.step(data, steps)
    assert data.qvel[0] == pytest.approx(v0 - steps * h * mu * G, rel=1e-9)
    sim.step(data)
    assert np.abs(data.qvel).max() <= 1e-12
    distance = h * sum(v0 - k * h * mu * G for k in range(1, steps + 1))
    assert data.qpos[0] == pytest.approx(distance, rel=1e-10)
    assert data.qpos[0] == pytest.approx(v0**2 / (2 * mu * G) - v0 * h / 2, abs=h * h * mu * G)
    stopped = data.qpos.copy()
    sim.step(data, 500)
    assert np.abs(data.qvel).max() <= 1e-12
    assert np.abs(data.qpos - stopped).max() <= 1e-12


@EXACT_AND_POLYGON
def test_fast_flat_cube_never_lifts_and_stays_upright(contact):
    h, v0 = 0.001, 6.0
    model, data = load(flat('type="box" size=".05 .05 .05"', 0.05, 0.5, timestep=h))
    data.qvel[0] = v0
    sim = stiction.Simulator(model, contact)
    stopped = None
    while data.time < 1.5:
        sim.step(data)
        assert abs(data.qpos[2] - 0.05) <= 1e-6
        assert data.qpos[3] >= 1.0 - 1e-12
        if stopped is None and abs(data.qvel[0]) <= 1e-9:
            stopped = data.time
    assert stopped == pytest.approx(v0 / (0.5 * G), abs=1.01 * h)
    assert stopped == pytest.approx(1.223, abs=1.5e-3)
    assert data.qpos[0] == pytest.approx(v0**2 / G - v0 * h / 2, abs=1e-5)


@EXACT_AND_POLYGON
def test_sliding_sphere_comes_to_roll_at_five_sevenths_of_its_speed(contact):
    mu, v0, h, radius = 0.2, 3.0, 0.001, 0.1
    model, data = load(flat(f'type="sphere" size="{radius}"', radius, mu, timestep=h))
    data.qvel[0] = v0
    sim = stiction.Simulator(model, contact)
    begins = 2 * v0 / (7 * mu * G)
    steps = floor(begins / h)
    report = sim.step(data, steps)
    assert report.contacts[0].mode == Mode.SLIDE
    assert data.qvel[0] == pytest.approx(v0 - steps * h * mu * G, rel=1e-9)
    assert data.qvel[4] * radius == pytest.approx(2.5 * steps * h * mu * G, rel=1e-9)
    for _ in range(5):
        report = sim.step(data, 50)
        assert report.contacts[0].mode == Mode.STICK
        assert data.qvel[0] == pytest.approx(5 * v0 / 7, rel=1e-9)
        assert data.qvel[0] == pytest.approx(data.qvel[4] * radius, rel=1e-9)
        assert abs(data.qpos[2] - radius) <= 1e-9


@EXACT_AND_POLYGON
@BOTH_SIDES
def test_cylinder_rolls_down_a_slope_until_a_third_of_its_tangent_exceeds_friction(contact, holds):
    angle, radius, k, h = 0.4, 0.1, 300, 0.002
    mu = tan(angle) / 3 * (1.01 if holds else 0.99)
    geom = f'type="cylinder" size="{radius} .15" euler="{pi / 2} 0 0"'
    model, data = load(incline(angle, geom, radius, mu))
    stiction.Simulator(model, contact).step(data, k)
    acceleration = 2 / 3 * G * sin(angle) if holds else G * (sin(angle) - mu * cos(angle))
    down = np.array([cos(angle), 0.0, -sin(angle)])
    assert data.qvel[:3] @ down == pytest.approx(k * h * acceleration, rel=1e-8)
    slip = data.qvel[:3] @ down - radius * data.qvel[4]
    if holds:
        assert abs(slip) <= 1e-9
    else:
        assert slip == pytest.approx(k * h * (acceleration - 2 * mu * G * cos(angle)), rel=1e-6)


def push(data, force, height):
    """Force along +x at a height above the centre of body 1."""
    data.xfrc_applied[1, 0] = force
    data.xfrc_applied[1, 4] = force * height


@EXACT_AND_POLYGON
@BOTH_SIDES
def test_block_pushed_low_slides_at_the_friction_force(contact, holds):
    mu, mass, half, top = 0.4, 2.0, 0.1, 0.15  # b / (2 mu) = 0.25: it would tip above that
    model, data = load(flat(f'type="box" size="{half} .1 {top}"', top, mu, mass=mass))
    force = mu * mass * G * (0.99 if holds else 1.01)
    push(data, force, 0.24 - top)
    report = stiction.Simulator(model, contact).step(data, 200)
    assert np.abs(data.qvel[[1, 2, 3, 4, 5]]).max() <= 1e-10
    expected = 0.0 if holds else 200 * 0.002 * (force - mu * mass * G) / mass
    assert data.qvel[0] == pytest.approx(expected, rel=1e-8, abs=1e-12)
    assert forces(report) == pytest.approx({("world", "body"): mass * G}, rel=1e-9)


@EXACT_AND_POLYGON
@BOTH_SIDES
def test_block_pushed_high_tips_where_the_moment_exceeds_that_of_its_weight(contact, holds):
    mu, mass, half, top = 0.4, 2.0, 0.1, 0.15
    model, data = load(flat(f'type="box" size="{half} .1 {top}"', top, mu, mass=mass))
    height = 0.27
    force = mass * G * 2 * half / (2 * height) * (0.99 if holds else 1.01)
    assert force < mu * mass * G
    push(data, force, height - top)
    sim = stiction.Simulator(model, contact)
    sim.step(data)
    if holds:
        sim.step(data, 199)
        assert np.abs(data.qvel).max() <= 1e-11
        return
    inertia = mass * (half**2 + top**2) * 4 / 3  # about the edge that stays
    moment = force * height - mass * G * half
    assert data.qvel[4] == pytest.approx(0.002 * moment / inertia, rel=1e-9)
    assert data.qvel[0] == pytest.approx(top * data.qvel[4], rel=1e-9)
    assert data.qvel[2] == pytest.approx(half * data.qvel[4], rel=1e-9)
    sim.step(data, 199)
    assert data.qvel[4] > 0.01


@EXACT_AND_POLYGON
@BOTH_SIDES
def test_block_pressed_on_a_wall_holds_where_friction_carries_its_weight(contact, holds):
    mass, mu = 1.2, 0.6
    model, data = load(f"""
<mujoco>
  <default><geom friction="{mu}"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1" zaxis="1 0 0"/>
    <body name="block" pos=".05 0 0"><freejoint/>
      <geom type="box" size=".05 .06 .07" mass="{mass}"/></body>
  </worldbody>
</mujoco>""")
    press = mass * G / mu * (1.01 if holds else 0.99)
    data.xfrc_applied[1, 0] = -press
    report = stiction.Simulator(model, contact).step(data, 300)
    expected = 0.0 if holds else -300 * 0.002 * (G - mu * press / mass)
    assert data.qvel[2] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert np.abs(data.qvel[[0, 1, 3, 4, 5]]).max() <= 1e-10
    assert sum(c.force[0] for c in report.contacts) == pytest.approx(press, rel=1e-9)


PINCH = """
<mujoco>
  <option timestep="0.001"/>
  <default><geom friction="0.7"/></default>
  <worldbody>
    <body name="left" pos="-.009 0 0"><joint name="left" type="slide" axis="1 0 0"/>
      <geom type="box" size=".005 .02 .02" mass=".1"/></body>
    <body name="right" pos=".009 0 0"><joint name="right" type="slide" axis="-1 0 0"/>
      <geom type="box" size=".005 .02 .02" mass=".1"/></body>
    <body name="part"><freejoint/>
      <geom type="capsule" size=".004 .015" mass=".045" euler="90 0 0"/></body>
  </worldbody>
  <actuator><motor joint="left"/><motor joint="right"/></actuator>
</mujoco>"""


@EXACT_AND_POLYGON
@pytest.mark.parametrize("share", [0.99, 1.01, 38.0, 190.0])
def test_pinched_part_holds_where_both_pads_carry_its_weight(contact, share):
    # 38 and 190 times what is needed: 12 and 60 N, as in google-deepmind/mujoco #3328.
    mass, mu = 0.045, 0.7
    model, data = load(PINCH)
    press = mass * G / (2 * mu) * share
    data.ctrl[:] = press
    report = stiction.Simulator(model, contact).step(data, 300)
    if share >= 1.0:
        assert np.abs(data.qvel).max() <= 1e-12
        assert np.abs(data.qpos[:5]).max() <= 1e-9
    else:
        assert data.qvel[4] == pytest.approx(-0.3 * (G - 2 * mu * press / mass), rel=1e-7)
    assert forces(report) == pytest.approx(
        {("part", "left"): press, ("part", "right"): press}, rel=1e-7
    )


@pytest.mark.parametrize("degrees", [0.0, 10.0, 22.5, 45.0, 77.0, 130.0, 271.0])
def test_friction_opposes_the_velocity_alike_in_every_direction(degrees):
    mu, h = 0.35, 0.002
    heading = np.array([cos(degrees * pi / 180), sin(degrees * pi / 180)])
    model, data = load(flat('type="box" size=".1 .1 .02"', 0.02, mu))
    data.qvel[:2] = 1.0 * heading
    stiction.Simulator(model).step(data, 100)
    assert np.abs(data.qvel[:2] - (1.0 - 100 * h * mu * G) * heading).max() <= 1e-9
    travel = 100 * h - along(100, h, mu * G)
    assert np.abs(data.qpos[:2] - travel * heading).max() <= 1e-9
    assert abs(data.qvel[5]) <= 1e-9


@pytest.mark.parametrize("facets", [4, 6, 8, 16])
@pytest.mark.parametrize("degrees", [0.0, 10.0, 22.5, 45.0, 77.0])
def test_a_polygon_of_facets_turns_friction_by_no_more_than_half_a_facet(facets, degrees):
    mu, h = 0.35, 0.002
    heading = np.array([cos(degrees * pi / 180), sin(degrees * pi / 180)])
    model, data = load(flat('type="box" size=".1 .1 .02"', 0.02, mu))
    data.qvel[:2] = heading
    stiction.Simulator(model, Coulomb(facets=facets)).step(data)
    change = data.qvel[:2] - heading
    # A corner of the polygon; where two are as good, anything on the edge between them.
    assert cos(pi / facets) - 1e-9 <= hypot(*change) / (h * mu * G) <= 1.0 + 1e-9
    assert -change @ heading / hypot(*change) >= cos(pi / facets) - 1e-9


@pytest.mark.parametrize("degrees", [0.0, 30.0, 60.0, 90.0])
def test_two_coefficients_of_sliding_make_an_ellipse(degrees):
    model, data = load("""
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 1"/>
    <body pos="0 0 .1"><freejoint/><geom name="ball" type="sphere" size=".1" mass="1"/></body>
  </worldbody>
  <contact><pair geom1="floor" geom2="ball" condim="3" friction=".5 .2 .01 .001 .001"/></contact>
</mujoco>""")
    direction = np.array([cos(degrees * pi / 180), sin(degrees * pi / 180)])
    mujoco.mj_forward(model, data)
    frame = data.contact[0].frame.reshape(3, 3)
    data.qvel[:3] = 5.0 * direction @ frame[1:]
    before = data.qvel[:3].copy()
    report = stiction.Simulator(model).step(data)
    # Most dissipation over the ellipse: f_i = mu_i^2 v_i / |mu v|, of the speed after the step.
    slip = frame[1:] @ (data.qvel[:3] + np.cross(data.qvel[3:], [0.0, 0.0, -0.1]))
    mu = np.array([0.5, 0.2])
    expected = -(mu**2) * slip / hypot(*(mu * slip)) * G
    assert frame[1:] @ (data.qvel[:3] - before) / 0.002 == pytest.approx(expected, abs=1e-8)
    force = np.zeros(6)
    mujoco.mj_contactForce(model, data, 0, force)
    assert force[1:3] == pytest.approx(expected, abs=1e-8)
    assert report.contacts[0].force[1:] == pytest.approx(expected, abs=1e-8)
    assert report.contacts[0].slip == pytest.approx(slip, abs=1e-8)
    assert report.contacts[0].friction == pytest.approx([0.5, 0.2])
    assert report.contacts[0].margin == pytest.approx(0.0, abs=1e-8)
