"""The closed forms of mechanics, through the simulator, on MJCF.

Steps are semi-implicit: after k steps of length h at the acceleration a, v = k h a and
x = h^2 a k (k + 1) / 2, exactly.
"""

from math import atan, ceil, cos, floor, hypot, pi, sin, sqrt, tan

import mujoco
import numpy as np
import pytest
from mjcf import load

import stiction
from stiction import Coulomb, Frictionless, Mode, NoSlip

G = 9.81
EXACT_AND_POLYGON = pytest.mark.parametrize(
    "contact", [Coulomb(), Coulomb(facets=8)], ids=["cone", "facets"]
)
BOTH_SIDES = pytest.mark.parametrize("holds", [True, False], ids=["holds", "gives"])


def along(k, h, acceleration):
    """Distance after k steps from rest."""
    return h * h * acceleration * k * (k + 1) / 2


def forces(report):
    """Normal forces by pair of bodies, summed."""
    total = {}
    for contact in report.contacts:
        total[contact.bodies] = total.get(contact.bodies, 0.0) + contact.force[0]
    return total


def world_force(data, report):
    """(3,) sum of the contact forces on second bodies, in the world."""
    frames = {c.index: data.contact[c.index].frame.reshape(3, 3) for c in report.contacts}
    return sum((frames[c.index].T @ c.force for c in report.contacts), np.zeros(3))


def incline(angle, geom, height, mu):
    """A geom, touching a slope that falls toward +x; qpos is aligned with the slope."""
    return f"""
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002"/>
  <worldbody>
    <geom name="slope" type="plane" size="9 9 1" euler="0 {angle} 0" friction="{mu}"/>
    <body name="body" pos="{height * sin(angle)} 0 {height * cos(angle)}" euler="0 {angle} 0">
      <freejoint/>
      <geom name="geom" {geom} mass="1.5" friction="{mu}"/>
    </body>
  </worldbody>
</mujoco>"""


def flat(geom, height, mu, *, timestep=0.002, extra="", mass=2.0, condim=3):
    """A geom on a horizontal floor."""
    return f"""
<mujoco>
  <option timestep="{timestep}"/>
  <default><geom friction="{mu}" condim="{condim}"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 1"/>
    <body name="body" pos="0 0 {height}"><freejoint/>
      <geom name="geom" {geom} mass="{mass}"/>
    </body>
    {extra}
  </worldbody>
</mujoco>"""


# --- one body --------------------------------------------------------------------------------


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


@pytest.mark.parametrize("share", [0.99, 1.01])
def test_hinge_with_dry_friction_holds_up_to_its_torque(share):
    mass, length, angle = 1.3, 0.4, 0.6
    torque = mass * G * length * sin(angle)
    model, data = load(f"""
<mujoco>
  <worldbody>
    <body><joint type="hinge" axis="0 1 0" frictionloss="{torque / share}"/>
      <geom type="sphere" size=".05" pos="0 0 {-length}" mass="{mass}"/></body>
  </worldbody>
</mujoco>""")
    data.qpos[0] = angle
    sim = stiction.Simulator(model)
    inertia = mass * (length**2 + 0.4 * 0.05**2)
    sim.step(data)
    if share < 1.0:
        sim.step(data, 1000)
        assert data.qvel[0] == 0.0
        assert data.qpos[0] == angle
    else:
        speed = -0.002 * (torque - torque / share) / inertia
        assert data.qvel[0] == pytest.approx(speed, rel=1e-9)


@pytest.mark.parametrize("share", [0.99, 1.01])
def test_tendon_with_dry_friction_holds_up_to_its_force(share):
    mass = 0.7
    model, data = load(f"""
<mujoco>
  <worldbody>
    <body name="a"><joint name="a" type="slide" axis="0 0 1"/>
      <geom type="sphere" size=".05" mass="{mass}"/></body>
    <body name="b" pos="1 0 0"><joint name="b" type="slide" axis="0 0 1"/>
      <geom type="sphere" size=".05" mass="{mass}"/></body>
  </worldbody>
  <tendon><fixed frictionloss="{mass * G}"><joint joint="a" coef="1"/><joint joint="b" coef="1"/>
  </fixed></tendon>
</mujoco>""")
    model.opt.gravity[2] *= share
    stiction.Simulator(model).step(data, 100)
    expected = 0.0 if share < 1.0 else -100 * 0.002 * 0.01 * G
    assert data.qvel == pytest.approx([expected, expected], rel=1e-9, abs=1e-15)


@EXACT_AND_POLYGON
@BOTH_SIDES
def test_torsional_friction_holds_up_to_its_moment(contact, holds):
    mass, spin = 2.0, 0.03
    model, data = load(
        flat('type="sphere" size=".1"', 0.1, f"0.8 {spin} 0.001", mass=mass, condim=4)
    )
    limit = spin * mass * G
    data.xfrc_applied[1, 5] = limit * (0.99 if holds else 1.01)
    report = stiction.Simulator(model, contact).step(data, 200)
    inertia = 0.4 * mass * 0.1**2
    expected = 0.0 if holds else 200 * 0.002 * 0.01 * limit / inertia
    assert data.qvel[5] == pytest.approx(expected, rel=1e-8, abs=1e-12)
    assert np.abs(data.qvel[:5]).max() <= 1e-12
    moment = -limit * (0.99 if holds else 1.0)
    assert report.contacts[0].torque == pytest.approx([moment, 0.0, 0.0], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_spinning_ball_is_stopped_by_torsional_friction(cone):
    mass, spin, h = 2.0, 0.03, 0.002
    xml = flat('type="sphere" size=".1"', 0.1, f"0.8 {spin} 0.001", mass=mass, condim=4)
    model, data = load(xml.replace("<option ", f'<option cone="{cone}" '))
    data.qvel[5] = 40.0
    deceleration = spin * mass * G / (0.4 * mass * 0.1**2)
    sim = stiction.Simulator(model)
    sim.step(data, 100)
    assert data.qvel[5] == pytest.approx(40.0 - 100 * h * deceleration, rel=1e-9)
    force = np.zeros(6)
    mujoco.mj_contactForce(model, data, 0, force)
    assert force[3] == pytest.approx(-spin * mass * G, rel=1e-9)
    sim.step(data, ceil(40.0 / (h * deceleration)) - 100)
    assert np.abs(data.qvel).max() <= 1e-12


@EXACT_AND_POLYGON
@BOTH_SIDES
def test_rolling_friction_holds_a_ball_up_to_its_moment(contact, holds):
    mass, roll, radius = 2.0, 0.004, 0.1
    model, data = load(
        flat(f'type="sphere" size="{radius}"', radius, f"0.8 0.03 {roll}", mass=mass, condim=6)
    )
    limit = roll * mass * G / radius
    data.xfrc_applied[1, 0] = limit * (0.99 if holds else 1.01)
    stiction.Simulator(model, contact).step(data, 200)
    expected = 0.0 if holds else 200 * 0.002 * 0.01 * limit / (1.4 * mass)
    assert data.qvel[0] == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert np.abs(data.qvel[[1, 2, 3, 5]]).max() <= 1e-10
    assert data.qvel[4] * radius == pytest.approx(data.qvel[0], rel=1e-8, abs=1e-12)


def test_rolling_ball_is_stopped_by_rolling_friction():
    roll, radius, v0, h = 0.004, 0.1, 0.5, 0.002
    model, data = load(flat(f'type="sphere" size="{radius}"', radius, f"0.8 0.03 {roll}", condim=6))
    data.qvel[0], data.qvel[4] = v0, v0 / radius
    deceleration = roll * G / radius / 1.4
    sim = stiction.Simulator(model)
    sim.step(data, 200)
    assert data.qvel[0] == pytest.approx(v0 - 200 * h * deceleration, rel=1e-8)
    sim.step(data, ceil(v0 / (h * deceleration)) - 200)
    assert np.abs(data.qvel).max() <= 1e-12


# --- many bodies -----------------------------------------------------------------------------


def stack(masses, mu=0.5):
    boxes = "".join(
        f'<body name="box{k}" pos="0 0 {0.05 + 0.1 * k}"><freejoint/>'
        f'<geom type="box" size=".05 .05 .05" mass="{mass}"/></body>'
        for k, mass in enumerate(masses)
    )
    return load(f"""
<mujoco>
  <size memory="10M"/>
  <default><geom friction="{mu}"/></default>
  <worldbody><geom type="plane" size="9 9 1"/>{boxes}</worldbody>
</mujoco>""")


@EXACT_AND_POLYGON
@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_stacked_boxes_carry_what_is_above_them(contact, n):
    model, data = stack([1.5] * n)
    report = stiction.Simulator(model, contact).step(data, 200)
    below = ["world", *(f"box{k}" for k in range(n - 1))]
    expected = {(below[k], f"box{k}"): (n - k) * 1.5 * G for k in range(n)}
    assert forces(report) == pytest.approx(expected, rel=1e-9)
    assert np.abs(data.qvel).max() <= 1e-12


@EXACT_AND_POLYGON
@pytest.mark.parametrize("heavy", [1e3, 1e4, 1e5, 1e6])
def test_one_kilogram_carries_a_million(contact, heavy):
    model, data = stack([1.0, heavy])
    start = data.qpos.copy()
    report = stiction.Simulator(model, contact).step(data, 500)
    expected = {("world", "box0"): (1.0 + heavy) * G, ("box0", "box1"): heavy * G}
    assert forces(report) == pytest.approx(expected, rel=1e-9)
    assert np.abs(data.qvel).max() <= 1e-11
    assert np.abs(data.qpos - start).max() <= 1e-10


@EXACT_AND_POLYGON
@pytest.mark.parametrize(("x", "y"), [(0.0, 0.0), (0.1, -0.05), (0.29, 0.19), (-0.299, 0.0)])
def test_four_legged_table_balances_force_and_moments(contact, x, y):
    a, b, mass = 0.3, 0.2, 12.0
    legs = "".join(
        f'<geom name="leg{i}{j}" type="sphere" size=".01" pos="{i * a} {j * b} -.39"/>'
        for i in (-1, 1)
        for j in (-1, 1)
    )
    model, data = load(f"""
<mujoco>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body name="table" pos="0 0 .4"><freejoint/>
      <inertial pos="{x} {y} 0" mass="{mass}" diaginertia=".5 .6 .9"/>{legs}</body>
  </worldbody>
</mujoco>""")
    stands = abs(x) / a + abs(y) / b <= 2.0
    report = stiction.Simulator(model, contact).step(data, 200)
    assert stands
    load_by_leg = np.array([c.force[0] for c in report.contacts])
    places = np.array([c.position[:2] for c in report.contacts])
    assert len(load_by_leg) == 4
    assert load_by_leg.min() >= 0.0
    assert load_by_leg.sum() == pytest.approx(mass * G, rel=1e-10)
    assert load_by_leg @ places == pytest.approx([mass * G * x, mass * G * y], abs=1e-8)
    assert np.abs(data.qvel).max() <= 1e-12


@pytest.mark.parametrize(("b", "h"), [(1.0, 2.0), (1.0, 3.0), (0.5, 2.0)])
def test_rocking_block_loses_the_share_of_its_rotation_that_housner_gives(b, h):
    model, data = load(f"""
<mujoco>
  <option gravity="0 0 0"/>
  <default><geom friction="5"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body pos="0 0 {h / 2}"><freejoint/>
      <geom type="box" size="{b / 2} .2 {h / 2}" mass="3"/></body>
  </worldbody>
</mujoco>""")
    omega = 0.7  # about +y, round the edge at x = -b / 2: the other edge comes down
    data.qvel[:] = [omega * h / 2, 0.0, -omega * b / 2, 0.0, omega, 0.0]
    stiction.Simulator(model).step(data)
    ratio = 1.0 - 1.5 * sin(atan(b / h)) ** 2
    assert data.qvel[4] / omega == pytest.approx(ratio, rel=1e-9)
    if (b, h) == (1.0, 2.0):
        assert ratio == pytest.approx(0.7)
    # Now it turns round the edge that came down.
    assert data.qvel[0] == pytest.approx(data.qvel[4] * h / 2, rel=1e-9)
    assert data.qvel[2] == pytest.approx(data.qvel[4] * b / 2, rel=1e-9)


def heap(seed=0):
    """Cubes and balls flying into each other above a floor; alike about all axes, so that free
    flight keeps their kinetic energy."""
    rng = np.random.default_rng(seed)
    bodies = ""
    for k in range(9):
        x, y, z = 0.24 * (k % 3), 0.24 * (k // 3), 0.13
        shape = 'type="box" size=".1 .1 .1"' if k % 2 else 'type="sphere" size=".11"'
        quat = " ".join(map(str, rng.normal(size=4)))
        turned = f'quat="{quat}"' if k % 4 == 1 else ""
        bodies += f'<body pos="{x} {y} {z + 0.1 * (k % 4 == 1)}" {turned}><freejoint/>'
        bodies += f'<geom {shape} mass="{rng.uniform(0.5, 2.0)}"/></body>'
    model, data = load(f"""
<mujoco>
  <size memory="20M"/>
  <option gravity="0 0 0"/>
  <default><geom friction=".6"/></default>
  <worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody>
</mujoco>""")
    for k in range(9):
        centre = np.array([0.24, 0.24, 0.0])
        data.qvel[6 * k : 6 * k + 3] = 3.0 * (centre - data.qpos[7 * k : 7 * k + 3])
        data.qvel[6 * k + 3 : 6 * k + 6] = rng.normal(size=3)
    return model, data


def kinetic(model, data):
    """Kinetic energy [J] of the velocity and the positions that data holds."""
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_makeM(model, data)
    moment = np.zeros(model.nv)
    mujoco.mj_mulM(model, data, moment, data.qvel)
    return 0.5 * data.qvel @ moment


@pytest.mark.parametrize(
    "contact",
    [Coulomb(), Coulomb(facets=8), Frictionless(), NoSlip(), stiction.Viscous(20.0)],
    ids=lambda contact: type(contact).__name__,
)
@pytest.mark.parametrize("seed", [0, 1])
def test_kinetic_energy_never_rises(contact, seed):
    model, data = heap(seed)
    sim = stiction.Simulator(model, contact)
    before = first = kinetic(model, data)
    for _ in range(150):
        report = sim.step(data)
        after = kinetic(model, data)
        assert after <= before + 1e-9 * first
        assert report.energy <= 1e-12 * first
        before = after
    assert before < 0.9 * first
    assert sim.statistics.energy <= 1e-12 * first


def contact_velocity(model, data, contact):
    """Velocity [m/s] of the second geom's body against the first's, in the contact's frame."""
    relative = np.zeros(3)
    jacobian = np.zeros((3, model.nv))
    for sign, geom in zip((-1, 1), contact.geom, strict=True):
        body = model.geom_bodyid[geom]
        mujoco.mj_jac(model, data, jacobian, None, contact.pos, body)
        relative += sign * (jacobian @ data.qvel)
    return contact.frame.reshape(3, 3) @ relative


@EXACT_AND_POLYGON
def test_friction_never_does_work_and_the_laws_hold_at_each_contact(contact):
    model, data = heap()
    sim = stiction.Simulator(model, contact)
    pressed = 0
    for _ in range(100):
        report = sim.step(data)  # data keeps the kinematics of the step's beginning
        for c in report.contacts:
            v = contact_velocity(model, data, data.contact[c.index])
            assert c.force[0] >= 0.0
            assert v[0] >= -max(c.gap, 0.0) / 0.002 - 1e-7
            assert c.force[1:] @ v[1:] <= 1e-7
            assert c.margin >= -1e-7 * max(1.0, c.force[0])
            assert c.slip == pytest.approx(v[1:], abs=1e-9)
            pressed += c.force[0] > 0.0
            if c.mode == Mode.SLIDE and contact.facets is None:
                assert c.force[1:] @ v[1:] == pytest.approx(
                    -0.6 * c.force[0] * hypot(*v[1:]), abs=1e-6 * max(1.0, c.force[0])
                )
    assert pressed > 100


def thrown(rotation=(1.0, 0.0, 0.0, 0.0), order=(0, 1, 2, 3), length=1.0, mass=1.0, floor=9.0):
    """Four bodies on a floor, each in its own way of moving, the whole world turned by a
    quaternion and measured in other units. Returns model and data."""
    turn, floor = np.array(rotation), floor * length
    gravity = np.zeros(3)
    mujoco.mju_rotVecQuat(gravity, np.array([0.0, 0.0, -G * length]), turn)
    kinds = [
        ('type="box" size="{0} {0} {1}"', (0.1, 0.05), (0.0, 0.0, 0.05), (2.0, 0.7, 0.0), 3.0),
        ('type="sphere" size="{0}"', (0.1,), (1.0, 0.0, 0.1), (-1.5, 1.0, 0.0), 5.0),
        (
            'type="capsule" size="{0} {1}"', (0.05, 0.1), (0.0, 1.0, 0.3),
            (0.3, -0.2, -1.0), 2.0,
        ),
        ('type="box" size="{0} {0} {0}"', (0.08,), (1.0, 1.0, 0.15), (0.5, 0.5, 0.0), 1.0),
    ]  # fmt: skip
    bodies = ""
    for k in order:
        shape, sizes, place, _, weight = kinds[k]
        at = np.zeros(3)
        mujoco.mju_rotVecQuat(at, length * np.array(place), turn)
        pos, quat = " ".join(map(repr, at.tolist())), " ".join(map(repr, turn.tolist()))
        bodies += f'<body name="body{k}" pos="{pos}" quat="{quat}"><freejoint name="joint{k}"/>'
        bodies += f'<geom {shape.format(*(length * s for s in sizes))} mass="{weight * mass}"/>'
        bodies += "</body>"
    model, data = load(f"""
<mujoco>
  <option gravity="{" ".join(map(repr, gravity.tolist()))}"/>
  <default><geom friction=".4"/></default>
  <worldbody>
    <geom type="plane" size="{floor} {floor} {floor}"
          quat="{" ".join(map(repr, turn.tolist()))}"/>{bodies}
  </worldbody>
</mujoco>""")
    for k, (_, _, _, velocity, _) in enumerate(kinds):
        v = np.zeros(3)
        mujoco.mju_rotVecQuat(v, length * np.array(velocity), turn)
        at = model.joint(f"joint{k}").dofadr[0]
        data.qvel[at : at + 3] = v
        data.qvel[at + 3 : at + 6] = [0.5, -0.3, 0.8]
    return model, data


def motion(model, data, contact, steps):
    """(4, 13) places, attitudes and velocities of the bodies by name after so many steps."""
    stiction.Simulator(model, contact).step(data, steps)
    rows = []
    for k in range(4):
        q, v = model.joint(f"joint{k}").qposadr[0], model.joint(f"joint{k}").dofadr[0]
        rows.append([*data.qpos[q : q + 7], *data.qvel[v : v + 6]])
    return np.array(rows)


ROTATIONS = [
    (sqrt(0.5), sqrt(0.5), 0.0, 0.0),
    (sqrt(0.5), 0.0, 0.0, sqrt(0.5)),
    (0.5, 0.5, 0.5, 0.5),
    (0.8, 0.36, -0.48, 0.0),
]


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_the_motion_is_the_same_in_a_rotated_world(rotation):
    expected = motion(*thrown(), None, 150)
    found = motion(*thrown(rotation), None, 150)
    turn, back, vector = np.array(rotation), np.zeros(4), np.zeros(3)
    mujoco.mju_negQuat(back, turn)
    for k in range(4):
        for part in (slice(0, 3), slice(7, 10)):
            mujoco.mju_rotVecQuat(vector, found[k, part], back)
            assert vector == pytest.approx(expected[k, part], abs=1e-9)
        # Angular velocity is in the body's own frame already.
        assert found[k, 10:] == pytest.approx(expected[k, 10:], abs=1e-7)


@EXACT_AND_POLYGON
def test_the_motion_is_the_same_whatever_the_order_of_bodies(contact):
    expected = motion(*thrown(), contact, 150)
    for order in ((3, 2, 1, 0), (2, 0, 3, 1)):
        found = motion(*thrown(order=order), contact, 150)
        assert found == pytest.approx(expected, abs=1e-9)


@EXACT_AND_POLYGON
@pytest.mark.parametrize(("length", "mass"), [(1e3, 1e3), (1e-3, 1.0), (1.0, 1e-3), (1.0, 1e3)])
def test_the_motion_is_the_same_in_other_units(contact, length, mass):
    expected = motion(*thrown(), contact, 150)
    found = motion(*thrown(length=length, mass=mass), contact, 150)
    found[:, [0, 1, 2, 7, 8, 9]] /= length
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("size", [0.5, 1000.0])
def test_the_motion_is_the_same_however_large_the_floor_is_drawn(size):
    expected = motion(*thrown(), None, 150)
    assert motion(*thrown(floor=size), None, 150) == pytest.approx(expected, abs=1e-9)


# --- paradoxes -------------------------------------------------------------------------------


def rod(mu, gravity=G):
    """Rod of half-length 1, m = 1, I = 1/3, that leans at tan(theta) = 2 on its lower end."""
    c, s, r = 1 / sqrt(5.0), 2 / sqrt(5.0), 0.01
    return load(f"""
<mujoco>
  <option timestep="0.01" gravity="0 0 {-gravity}"/>
  <default><geom friction="{mu}"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body pos="0 0 {s}">
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
      <joint type="hinge" axis="0 1 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 {1 / 3} 1"/>
      <geom type="sphere" size="{r}" pos="{-c} 0 {-s + r}"/>
    </body>
  </worldbody>
</mujoco>""")


def impulse(data):
    """(normal, along x) impulse [N s] on the rod, and the velocity of its end after the step."""
    contact = data.contact[0]
    force = data.qfrc_constraint[[1, 0]] * 0.01
    x, _, z = contact.pos - np.array([0.0, 0.0, 2 / sqrt(5.0)])
    v = np.array([data.qvel[1] - data.qvel[2] * x, data.qvel[0] + data.qvel[2] * z])
    return force, v


def test_painleve_rod_slides_with_a_large_force_just_below_the_paradox():
    model, data = rod(1.3)
    data.qvel[0] = -20.0
    stiction.Simulator(model).step(data)
    force, v = impulse(data)
    assert force == pytest.approx([2.4525, 1.3 * 2.4525], rel=1e-8)
    assert v[0] == pytest.approx(0.0, abs=1e-12)
    assert v[1] < -10.0


@EXACT_AND_POLYGON
@pytest.mark.parametrize("mu", [1.2, 1.5, 10.0])
def test_painleve_rod_is_brought_to_rest_by_an_impact_without_collision(mu, contact):
    model, data = rod(mu)
    data.qvel[0] = -1.0
    stiction.Simulator(model, contact).step(data)
    force, v = impulse(data)
    assert force == pytest.approx([0.383385, 0.42943], rel=1e-5)
    assert np.abs(v).max() <= 1e-12


@pytest.mark.parametrize("mu", [1.0, 1e2, 1e4])
def test_lynch_and_masons_rod_slips_however_rough_it_is(mu):
    model, data = rod(mu, gravity=0.0)
    data.qvel[:2] = [1.0, -0.1]
    stiction.Simulator(model).step(data)
    force, v = impulse(data)
    normal = 0.1 / (1.6 + 1.2 * mu)
    assert force == pytest.approx([normal, -mu * normal], rel=1e-8)
    assert v == pytest.approx([0.0, 1.0 - (1.2 + 3.4 * mu) * normal], abs=1e-9)
    if mu == 1e4:
        assert force == pytest.approx([0.0, -1 / 12], abs=1e-4)
        assert v[1] == pytest.approx(0.716667, abs=1e-4)


def test_lynch_and_masons_rod_under_no_slip_opens_and_does_not_slip():
    model, data = rod(1.0, gravity=0.0)
    data.qvel[:2] = [1.0, -0.1]
    stiction.Simulator(model, NoSlip()).step(data)
    force, v = impulse(data)
    assert force == pytest.approx([0.0, -0.294118], abs=1e-6)
    assert v == pytest.approx([0.252941, 0.0], abs=1e-6)
