"""Cylinders that stand and lie on flat faces: exact contacts, thresholds, and rest."""

import mujoco
import numpy as np
import pytest
from slopes import assert_agree, swell

import stiction
from stiction.terrain.refinement import refine_contacts

RADIUS, HALF = 0.05, 0.1
TIPS = np.arctan2(RADIUS, HALF)
"""Slope at which a cylinder that stands on its end tips over."""

TABLES = {
    "plane": 'type="plane" size="1 1 1"',
    "box": 'type="box" size=".4 .3 .02" pos="0 0 -.02"',
    "cylinder": 'type="cylinder" size=".4 .02" pos="0 0 -.02"',
}


def can(place):
    """A cylinder with the place, in MJCF."""
    return (
        f'<body {place}><freejoint/><geom type="cylinder" size="{RADIUS} {HALF}" mass="1"/></body>'
    )


def on(table, *bodies, slope=0.0, friction=1.5):
    """Bodies on a table, which slopes down along x."""
    model = mujoco.MjModel.from_xml_string(f"""
<mujoco><option gravity="{9.81 * np.sin(slope)} 0 {-9.81 * np.cos(slope)}"/>
  <default><geom friction="{friction}" margin=".01"/></default>
  <worldbody><geom {TABLES.get(table, table)}/>{"".join(bodies)}</worldbody></mujoco>""")
    return model, mujoco.MjData(model)


def meet(model, data):
    """(gaps, points, normals) after `refine_contacts`."""
    mujoco.mj_fwdKinematics(model, data)
    mujoco.mj_collision(model, data)
    refine_contacts(model._address, data._address)
    found = data.contact
    return found.dist.copy(), found.pos.copy(), found.frame[:, :3].copy()


def lean(data, way, tilt):
    """Turns the first body about a level axis at the angle `way`."""
    turn = np.zeros(4)
    mujoco.mju_axisAngle2Quat(turn, [np.cos(way), np.sin(way), 0.0], tilt)
    mujoco.mju_mulQuat(data.qpos[3:7], turn, data.qpos[3:7].copy())


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("yaw", [0.0, 37.0, 123.0, 250.0])
def test_a_can_stands_to_the_slope_at_which_it_tips(table, yaw):
    place = f'pos="0 0 {HALF}" euler="0 0 {yaw}"'
    model, data = on(table, can(place), slope=0.999 * TIPS)
    start = data.qpos.copy()
    stiction.Simulator(model).step(data, 300)
    assert np.array_equal(data.qpos, start)
    model, data = on(table, can(place), slope=1.001 * TIPS)
    stiction.Simulator(model).step(data, 300)
    assert np.abs(data.qvel[3:]).max() > 0.01


def test_a_can_stands_event_by_event():
    model, data = on("box", can(f'pos="0 0 {HALF}"'), slope=0.99 * TIPS)
    stiction.Simulator(model, stepper=stiction.EventDriven()).step(data, 100)
    assert np.abs(data.qvel).max() < 1e-12


@pytest.mark.parametrize("beyond", [-1e-4, 1e-4])
def test_a_can_stands_on_the_edge_of_a_table_while_its_centre_is_over_it(beyond):
    model, data = on("box", can(f'pos="{0.4 + beyond} .1 {HALF}"'))
    stiction.Simulator(model).step(data, 400)
    if beyond < 0.0:
        assert not data.qvel.any()
    else:
        assert data.xmat[1, 8] < 0.999


@pytest.mark.parametrize("shift", [0.0, 0.03])
def test_a_stack_of_cans_stands(shift):
    stack = [can(f'pos="{(k % 2) * shift} 0 {(2 * k + 1) * HALF}"') for k in range(4)]
    model, data = on("plane", *stack, slope=0.05)
    start = data.qpos.copy()
    stiction.Simulator(model).step(data, 500)
    np.testing.assert_allclose(data.qpos, start, atol=1e-12)
    assert not data.qvel.any()


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("tilt", [1e-7, 1e-4, 0.02])
def test_no_point_of_the_rim_is_nearer_than_the_contacts_say(table, tilt):
    rng = np.random.default_rng(1)
    angle = np.linspace(0.0, 2.0 * np.pi, 20_001)
    for _ in range(20):
        model, data = on(table, can(f'pos="0 0 {HALF + 1e-5}"'))
        data.qpos[:2] = rng.uniform(-0.1, 0.1, 2)
        lean(data, rng.uniform(0.0, 2.0 * np.pi), tilt)
        gap, point, normal = meet(model, data)
        axes, centre = data.geom_xmat[1].reshape(3, 3), data.geom_xpos[1]
        rim = RADIUS * (np.outer(np.cos(angle), axes[:, 0]) + np.outer(np.sin(angle), axes[:, 1]))
        lowest = (centre - HALF * axes[:, 2] + rim)[:, 2].min()
        assert gap.min() == pytest.approx(lowest, abs=RADIUS * (2e-9 + 1e-7 * tilt))
        on_table = np.abs(normal[:, 2]) > 1.0 - 1e-15
        np.testing.assert_allclose((point[:, 2] - 0.5 * gap)[on_table], 0.0, atol=1e-15)


def test_a_box_on_a_drum_touches_with_its_corners_and_where_the_rim_crosses_its_edges():
    drum = 'type="cylinder" size=".1 .02" pos="0 0 -.02"'
    model, data = on(
        drum,
        '<body pos=".05 0 .05"><freejoint/><geom type="box" size=".06 .08 .05"/></body>',
    )
    gap, point, normal = meet(model, data)
    np.testing.assert_allclose(gap, 0.0, atol=1e-15)
    np.testing.assert_allclose(np.abs(normal[:, 2]), 1.0)
    inside = np.hypot(point[:, 0], point[:, 1]) < 0.1 - 1e-9
    corners = np.array([[-0.01, -0.08], [-0.01, 0.08]])
    np.testing.assert_allclose(np.sort(point[inside, :2], axis=0), np.sort(corners, axis=0))
    height = np.sqrt(0.1**2 - 0.08**2)
    for x, y in ((height, 0.08), (height, -0.08)):
        assert np.hypot(point[:, 0] - x, point[:, 1] - y).min() < 1e-12


LYING = (
    "box",
    "cylinder",
    'type="box" size=".4 .03 .02" pos="0 0 -.02"',
    'type="cylinder" size=".03 .02" pos="0 0 -.02"',
)


@pytest.mark.parametrize("table", LYING)
@pytest.mark.parametrize("yaw", [0.0, 30.0, 90.0])
def test_a_can_that_lies_comes_to_rest_to_the_last_bit(table, yaw):
    model, data = on(table, can(f'pos="0 0 {RADIUS + 0.002}" euler="0 90 {yaw}"'), friction=1.0)
    stiction.Simulator(model).step(data, 500)
    assert not data.qvel.any()
    assert data.qpos[2] == pytest.approx(RADIUS, abs=1e-14)


@pytest.mark.parametrize("tilt", [0.0, 1e-6, 1e-2])
def test_the_side_of_a_can_on_a_beam_is_as_far_as_its_axis_from_the_edges(tilt):
    beam = 'type="box" size=".4 .03 .02" pos="0 0 -.02"'
    model, data = on(beam, can(f'pos="0 0 {RADIUS + 1e-5 + 0.03 * tilt}" euler="-90 25 0"'))
    lean(data, 0.0, tilt)
    gap, point, _ = meet(model, data)
    axis, centre = data.geom_xmat[1].reshape(3, 3)[:, 2], data.geom_xpos[1]
    edge = np.array([1.0, 0.0, 0.0])
    across = np.cross(edge, axis) / np.linalg.norm(np.cross(edge, axis))
    for side in (-0.03, 0.03):
        k = np.argmin(np.abs(point[:, 1] - side))
        away = abs((centre - [0.0, side, 0.0]) @ across) - RADIUS
        assert gap[k] == pytest.approx(away, abs=1e-15)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("stands", [True, False])
def test_derivatives_of_cans_on_faces(table, stands):
    turn = "" if stands else "euler='0 90 20'"
    model, data = on(table, can(f'pos="0 0 {HALF if stands else RADIUS}" {turn}'), friction=0.2)
    swell(model)
    data.qvel[:2] = 0.3, 0.2
    assert_agree(stiction.Simulator(model), data)


@pytest.mark.parametrize("events", [False, True])
@pytest.mark.parametrize("turned", [37.0, 60.0, 90.0])
def test_a_can_that_slides_down_a_turned_plane_keeps_its_contacts(turned, events):
    """Its tilt is rounding there, along which MuJoCo looks for the lowest point of its rim."""
    model = mujoco.MjModel.from_xml_string(f"""
<mujoco><option timestep=".02"/>
  <worldbody>
    <body euler="{turned} {turned / 2} 0"><geom type="plane" size="0 0 1" friction=".5"/></body>
    <body><freejoint/><geom type="cylinder" size=".1 .1" mass="1" friction=".5"/></body>
  </worldbody></mujoco>""")
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    axes, slope = data.xmat[1].reshape(3, 3).copy(), np.arctan(0.505)
    model.opt.gravity = axes @ (9.81 * np.array([np.sin(slope), 0.0, -np.cos(slope)]))
    data.qpos[:3], data.qpos[3:] = axes @ [0.0, 0.0, 0.1], data.xquat[1]
    stepper = stiction.EventDriven(dt=0.02) if events else stiction.TimeStepping()
    sim = stiction.Simulator(model, stepper=stepper)
    sim.step(data, 25)
    speed = 0.5 * 9.81 * (np.sin(slope) - 0.5 * np.cos(slope))
    assert np.allclose(axes.T @ data.qvel[:3], [speed, 0.0, 0.0], atol=1e-12)
