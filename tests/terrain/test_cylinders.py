"""Cylinders and capsules side by side: exact contacts, and piles that stand by their threshold."""

import mujoco
import numpy as np
import pytest

import stiction
from stiction.terrain.refinement import refine_contacts

RADIUS = 0.05
THRESHOLD = np.tan(np.radians(15.0))
"""Friction at which a cylinder stays on two others, all alike: half of the angle from the vertical
at which it touches them."""


def pile(friction, kind, yaw):
    """A cylinder on two others, of different lengths."""
    heights = (RADIUS, RADIUS, (1.0 + np.sqrt(3.0)) * RADIUS)
    body = "".join(
        f'<body pos="{x} 0 {z}" euler="90 0 0"><freejoint/>'
        f'<geom type="{kind}" size="{RADIUS} {half}" mass="1" friction="{friction}"/></body>'
        for x, z, half in zip((-RADIUS, RADIUS, 0.0), heights, (0.1, 0.12, 0.08), strict=True)
    )
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="1e-3"/><worldbody>'
        f'<geom type="plane" size="5 5 .1" friction="{friction}"/>'
        f'<frame euler="0 0 {yaw}">{body}</frame></worldbody></mujoco>'
    )


@pytest.mark.parametrize("stepper", [stiction.TimeStepping(), stiction.EventDriven()])
@pytest.mark.parametrize(("kind", "yaw"), [("cylinder", 17.3), ("capsule", 0.0)])
def test_a_pile_of_three_stands_above_its_threshold_and_falls_below(kind, yaw, stepper):
    for factor, stands in ((1.01, True), (0.99, False)):
        model = pile(factor * THRESHOLD, kind, yaw)
        data = mujoco.MjData(model)
        stiction.Simulator(model, stepper=stepper).step(data, 30)
        fastest = np.abs(data.qvel).max()
        assert fastest < 1e-11 if stands else fastest > 5e-3


def meet(first, second):
    """(gaps, points, normals) of two geoms after `refine_contacts`, and the model and its data."""
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><worldbody><geom {first} margin=".05"/>
        <body><freejoint/><geom {second} margin=".05"/></body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    mujoco.mj_fwdKinematics(model, data)
    mujoco.mj_collision(model, data)
    refine_contacts(model._address, data._address)
    contacts = data.contact
    return contacts.dist.copy(), contacts.pos.copy(), contacts.frame[:, :3].copy(), model, data


@pytest.mark.parametrize("first", ["cylinder", "capsule"])
@pytest.mark.parametrize("second", ["cylinder", "capsule"])
def test_parallel_sides_touch_at_the_ends_of_what_they_share(first, second):
    gap, point, normal, *_ = meet(
        f'type="{first}" size=".05 .1"', f'type="{second}" size=".03 .06" pos=".08001 0 .07"'
    )
    assert gap == pytest.approx([1e-5, 1e-5], abs=1e-15)
    assert np.sort(point[:, 2]) == pytest.approx([0.01, 0.1], abs=1e-12)
    assert np.abs(normal[:, 0]) == pytest.approx([1.0, 1.0], abs=1e-15)


@pytest.mark.parametrize("kind", ["cylinder", "capsule"])
@pytest.mark.parametrize("euler", ["0.3 0 0", "0 0.2 40", "0.7 -0.4 10", "3 0 0"])
def test_the_nearest_of_them_is_as_near_as_the_geoms_are(kind, euler):
    # Turned about y an end comes nearer, turned about x the axes cross.
    gap, _, _, model, data = meet(
        f'type="{kind}" size=".05 .1"',
        f'type="{kind}" size=".03 .1" pos=".0815 0 0" euler="{euler}"',
    )
    model.opt.ccd_tolerance = 1e-12
    model.opt.ccd_iterations = 500
    true = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, None)
    assert gap.min() == pytest.approx(true, abs=1e-9)


def test_axes_that_cross_steeply_touch_on_the_perpendicular_to_both():
    first, second = 'type="cylinder" size=".05 .1"', 'type="cylinder" size=".03 .1" euler="40 0 0"'
    gap, point, normal, *_ = meet(first, f'{second} pos=".0801 .02 .01"')
    along = 0.01 - 0.02 / np.tan(np.radians(-40.0))
    assert gap == pytest.approx([1e-4], abs=1e-15)
    assert point[0] == pytest.approx([0.05005, 0.0, along], abs=1e-14)
    assert np.abs(normal[0]) == pytest.approx([1.0, 0.0, 0.0], abs=1e-15)


@pytest.mark.parametrize("shift", [0.0, 0.06])
def test_caps_touch_where_either_rim_is_over_the_other_and_where_they_cross(shift):
    first, second = 'type="cylinder" size=".05 .1"', 'type="cylinder" size=".03 .1"'
    gap, point, normal, *_ = meet(first, f'{second} pos="{shift} 0 .1999"')
    assert gap == pytest.approx(-1e-4, abs=1e-15)
    assert normal == pytest.approx(np.tile([0.0, 0.0, 1.0], (len(gap), 1)), abs=1e-15)
    to_first = np.hypot(point[:, 0], point[:, 1])
    to_second = np.hypot(point[:, 0] - shift, point[:, 1])
    assert np.all((to_first < 0.05 + 1e-6) & (to_second < 0.03 + 1e-6))
    on_first, on_second = abs(to_first - 0.05) < 1e-9, abs(to_second - 0.03) < 1e-9
    assert np.all(on_first | on_second)
    assert np.sum(on_first & on_second) == (2 if shift else 0)
