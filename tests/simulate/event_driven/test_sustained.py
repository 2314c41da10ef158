"""Contact that lasts, `EventDriven`: what rests, slides, rolls, tips, hangs on joints or jams."""

import mujoco
import numpy as np
import pytest
from event_runs import BOX, GRAVITY, TOLERANCE, Run, free, load, name

from stiction.contact import Baraff, Coulomb, DrumwrightShell, Frictionless, NoSlip, Viscous


@pytest.mark.parametrize("integrator", ["rk4", "symplectic"])
@pytest.mark.parametrize(
    "contact", [Coulomb(), NoSlip(), Viscous(0.1), Frictionless(), Baraff(), DrumwrightShell()],
    ids=name,
)  # fmt: skip
def test_a_box_at_rest_stays_at_rest(contact, integrator):
    run = Run(BOX, contact, dt=1e-3, integrator=integrator)
    run.step(20)
    assert np.abs(run.data.qvel).max() < 1e-12
    assert np.abs(run.data.qpos[:3] - [0, 0, 0.1]).max() < 1e-12
    weight = 8.0 * GRAVITY
    assert sum(c.force[0] for c in run.report.contacts) == pytest.approx(weight)
    assert run.worst < 1e-8
    force = np.zeros(6)
    total = 0.0
    for i in range(run.data.ncon):
        mujoco.mj_contactForce(run.model, run.data, i, force)
        total += force[0]
    assert total == pytest.approx(weight)
    np.testing.assert_allclose(run.data.qfrc_constraint[2], weight)


def test_a_sliding_box_stops_where_it_should():
    run = Run(BOX, dt=5e-3)
    run.data.qvel[:2] = [1.2, 0.9]
    run.step(100)
    distance = 1.5**2 / (2 * 0.5 * GRAVITY)
    np.testing.assert_allclose(run.data.qpos[:2], np.array([0.8, 0.6]) * distance, atol=1e-9)
    assert np.abs(run.data.qvel).max() < 1e-12


def test_viscous_friction_slows_a_box_by_its_exponential():
    run = Run(BOX, Viscous(0.5), dt=5e-3)
    run.data.qvel[0] = 1.0
    run.step(100)
    # Every touching contact rubs: four of them.
    assert run.data.qvel[0] == pytest.approx(np.exp(-4 * 0.5 * 0.5 / 8.0), rel=1e-9)


def pivoting_error(dt):
    """A cylinder on its rim, wobbling under viscous friction, against many small steps."""
    model = load(free('type="cylinder" size=".1 .02"'))
    run = Run(model, Viscous(2.0), dt=dt)
    tilt = 0.6
    run.data.qpos[3:] = [np.cos(tilt / 2), np.sin(tilt / 2), 0, 0]
    run.data.qpos[2] = 0.1 * np.sin(tilt) + 0.02 * np.cos(tilt)
    run.data.qvel[:] = [0.4, 0.1, 0, 0, 0, 12.0]
    run.data.qvel[2] = 0.0
    run.step(round(0.064 / dt))
    return np.concatenate([run.data.qpos, run.data.qvel])


def test_between_events_the_error_falls_with_the_fourth_power_of_the_step():
    exact = pivoting_error(0.25e-3)
    errors = [np.abs(pivoting_error(dt) - exact).max() for dt in (8e-3, 4e-3, 2e-3)]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert errors[-1] < 1e-5
    assert (slopes > 3.4).all(), (errors, slopes)


@pytest.mark.parametrize(
    ("geom", "up", "spin"),
    [
        ('size=".1"', 0.1, [0, 5.0, 0]),
        ('type="cylinder" size=".1 .05" euler="90 0 0"', 0.1, [0, 5.0, 0]),
    ],
)
def test_round_things_roll_without_leaving_or_entering_the_floor(geom, up, spin):
    run = Run(load(free(geom, f"0 0 {up}")), dt=2e-3)
    run.data.qvel[:] = [0.5, 0, 0, *spin]
    heights = run.step(400, lambda: run.data.qpos[2])
    assert np.abs(np.array(heights) - up).max() <= TOLERANCE
    assert run.data.qpos[0] == pytest.approx(0.4, abs=1e-6)
    assert run.data.qvel[0] == pytest.approx(0.5, abs=1e-6)


def test_a_sphere_that_slides_rolls_in_the_end_at_five_sevenths():
    run = Run(load(free('size=".1" friction=".2"', "0 0 .1")), dt=1e-3)
    run.data.qvel[0] = 1.0
    start = 2.0 / (7.0 * 0.2 * GRAVITY)
    run.step(int(start / 1e-3))
    assert run.data.qvel[0] == pytest.approx(1.0 - 0.2 * GRAVITY * run.data.time, abs=1e-9)
    run.step(100)
    assert run.data.qvel[0] == pytest.approx(5.0 / 7.0, abs=1e-7)
    assert run.data.qvel[4] == pytest.approx(50.0 / 7.0, abs=1e-6)


def test_a_box_on_its_edge_tips_without_leaving_the_edge():
    run = Run(load(free('type="box" size=".1 .2 .1" friction="2"')), dt=2e-3)
    tilt = np.pi / 4 + 0.05
    run.data.qpos[3:] = [np.cos(tilt / 2), 0, np.sin(tilt / 2), 0]
    run.data.qpos[:3] = [0, 0, 0.1 * (np.sin(tilt) + np.cos(tilt))]
    edge = []
    for _ in range(100):
        run.step()
        if run.report.energy < 0.0:
            break
        turn = run.data.xmat[1].reshape(3, 3)
        edge.append(run.data.xpos[1] + turn @ [0.1, 0, -0.1])
    assert len(edge) > 40
    assert np.abs(np.array(edge) - edge[0]).max() < TOLERANCE
    assert run.rise < 1e-9


def test_a_hinge_with_dry_friction_holds_up_to_its_limit():
    arm = (
        '<body><joint type="hinge" axis="0 1 0" frictionloss="{}"/>'
        '<geom type="capsule" fromto="0 0 0 .4 0 0" size=".02" mass="1" contype="0"/></body>'
    )
    torque = 0.2 * GRAVITY
    for share, holds in ((1.01, True), (0.99, False)):
        run = Run(load(arm.format(share * torque), ""), dt=1e-3)
        run.step(20)
        assert (abs(run.data.qvel[0]) < 1e-12) == holds


def test_a_joint_limit_stops_a_pendulum():
    model = load(
        '<body><joint type="hinge" axis="0 1 0" range="-90 30" limited="true"/>'
        '<geom type="capsule" fromto="0 0 0 .4 0 0" size=".02" contype="0"/></body>',
        "",
    )
    run = Run(model, dt=2e-3)
    angle = run.step(400, lambda: run.data.qpos[0])
    assert max(angle) <= np.radians(30) + TOLERANCE
    assert run.data.qpos[0] == pytest.approx(np.radians(30), abs=2 * TOLERANCE)
    assert abs(run.data.qvel[0]) < 1e-12


def test_a_closed_loop_stays_closed():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option><flag energy="enable" contact="disable"/></option><worldbody>
        <body name="a" pos="0 0 1"><joint type="hinge" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body>
        <body name="b" pos="1 0 1"><joint type="hinge" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 -.7 0 0" size=".02"/>
          <body pos="-.7 0 0"><joint type="hinge" axis="0 1 0"/>
            <geom type="capsule" fromto="0 0 0 0 0 -.1" size=".02"/></body></body>
        </worldbody><equality><connect body1="a" body2="b" anchor=".3 0 0"/></equality></mujoco>"""
    )
    run = Run(model, dt=1e-3)
    run.data.qvel[2] = 1.0
    run.step(200)
    assert np.abs(run.data.efc_pos[:3]).max() <= TOLERANCE
    assert run.rise < 1e-6


def test_a_painleve_rod_is_freed_by_an_impulse():
    # tan(theta) = 2, mu above 4/3, sliding toward its contact: no finite force exists.
    rod = free('type="box" size="1 .05 .0001" mass="1" friction="2"')
    run = Run(load(rod), dt=1e-3)
    angle = np.arctan(2.0)
    run.data.qpos[3:] = [np.cos(angle / 2), 0, np.sin(angle / 2), 0]
    run.data.qpos[2] = np.sin(angle) + 1e-4 * np.cos(angle)
    run.data.qvel[0] = 3.0
    run.step(3)
    assert np.isfinite(run.data.qvel).all()
    assert run.rise < 1e-6
    assert run.overlap <= TOLERANCE


def test_a_painleve_rod_stops_sliding_however_short_the_step_is():
    rod = free('type="capsule" fromto="-1 0 0 1 0 0" size="1e-4" mass="1" friction="2"')
    run = Run(load(rod), dt=1e-6)
    angle = np.arctan(2.0)
    run.data.qpos[3:] = [np.cos(angle / 2), 0, np.sin(angle / 2), 0]
    run.data.qpos[2] = np.sin(angle) + 1e-4
    run.data.qvel[0] = 3.0
    run.step()
    # The contact's matrix is [[1.6, -1.2], [-1.2, 3.4]], so that an impulse of 0.9
    # along the normal and 1.2 against the slip stops it; that is within the cone.
    assert run.data.qvel[2] == pytest.approx(0.9, abs=1e-2)
    assert run.data.qvel[0] == pytest.approx(3.0 - 1.2, abs=1e-2)
