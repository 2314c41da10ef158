"""Newton's hypothesis in time steps: what bounces, how high, and when it ends."""

import mujoco
import numpy as np
import pytest
from mjcf import load

import stiction

G = 9.81


def world(bodies, dt=1e-3, gravity=f"0 0 {-G}"):
    option = f'<option timestep="{dt}" gravity="{gravity}"/>'
    return load(f"<mujoco>{option}<worldbody>{bodies}</worldbody></mujoco>")


FLOOR = '<geom name="floor" type="plane" size="0 0 1" friction=".5"/>'
BALL = '<body pos="{x} 0 {z}"><freejoint/><geom size=".1" mass="{mass}" friction=".5"/></body>'


def energy_of(model, data):
    mujoco.mj_forward(model, data)
    mujoco.mj_energyPos(model, data)
    mujoco.mj_energyVel(model, data)
    return float(data.energy.sum())


def peaks_of(heights):
    h = np.asarray(heights)
    return h[1:-1][(h[1:-1] >= h[:-2]) & (h[1:-1] > h[2:])]


@pytest.mark.parametrize("e", [0.0, 0.5, 0.8, 1.0])
def test_a_ball_rises_by_the_square_of_e(e):
    model, data = world(FLOOR + BALL.format(x=0, z=1.1, mass=1), dt=2.5e-4)
    simulator = stiction.Simulator(model, restitution=e)
    heights = []
    for _ in range(6000):
        simulator.step(data)
        heights.append(data.qpos[2] - 0.1)
    assert min(heights) > -1e-9
    peaks = peaks_of(heights)
    if e == 0.0:
        assert data.qpos[2] == pytest.approx(0.1, abs=1e-9)
    for k, peak in enumerate(peaks[:2]):
        # It turns back up to a step's way above the floor.
        assert 0.98 * e ** (2 * k + 2) < peak <= e ** (2 * k + 2) + 4.5 * 2.5e-4


def test_geoms_have_their_own_restitution_and_a_pair_the_larger():
    model, data = world(FLOOR + BALL.format(x=0, z=0.6, mass=1) + BALL.format(x=1, z=0.6, mass=1))
    simulator = stiction.Simulator(model, restitution=np.array([0.0, 0.9, 0.0]))
    rise = np.zeros(2)
    for step in range(600):
        simulator.step(data)
        if step > 330:
            rise = np.maximum(rise, data.qpos[[2, 9]] - 0.1)
    assert rise[0] == pytest.approx(0.5 * 0.9**2, rel=0.02)
    assert rise[1] == pytest.approx(0.0, abs=1e-6)


def test_the_last_ball_of_newtons_cradle_flies_off_and_the_others_stay():
    count = 5
    balls = "".join(
        f'<body pos="{0.1 * i} 0 1"><joint axis="0 1 0"/>'
        '<geom size=".05" pos="0 0 -.5" mass="1" condim="1"/></body>'
        for i in range(count)
    )
    model, data = world(balls)
    data.qpos[0] = 0.3
    simulator = stiction.Simulator(model, restitution=1.0)
    start = energy_of(model, data)
    farthest = np.zeros(count)
    for step in range(1000):
        simulator.step(data)
        if step >= 400:
            farthest = np.maximum(farthest, np.abs(data.qpos))
    assert farthest[4] == pytest.approx(0.3, rel=5e-3)
    assert farthest[:4].max() < 2e-3
    assert energy_of(model, data) == pytest.approx(start, abs=2e-3)


def test_a_tumbling_box_never_gains_energy_and_comes_to_rest():
    model, data = world(
        FLOOR + '<body pos="0 0 .5" euler="20 30 0"><freejoint/>'
        '<geom type="box" size=".1 .1 .1" friction=".5"/></body>'
    )
    simulator = stiction.Simulator(model, restitution=0.5)
    before = energy_of(model, data)
    for _ in range(2500):
        report = simulator.step(data)
        assert report.certificate.passed
        now = energy_of(model, data)
        assert now <= before + 1e-9
        before = now
    np.testing.assert_allclose(data.qvel, 0.0, atol=1e-9)


def test_eccentric_impacts_with_friction_gain_no_energy():
    """Kane's rod: Newton's hypothesis alone would give it energy."""
    model, data = world(
        FLOOR.replace(".5", "1.5") + '<body pos="0 0 .5"><freejoint/><geom type="capsule" '
        'fromto="-.2 0 -.2 .2 0 .2" size=".02" friction="1.5"/></body>',
        gravity="0 0 0",
    )
    for angle in np.linspace(0.0, 3.0, 7):
        mujoco.mj_resetData(model, data)
        data.qvel[:3] = [2.0 * np.cos(angle), 0.5, -2.0]
        simulator = stiction.Simulator(model, restitution=0.9)
        before = energy_of(model, data)
        simulator.step(data, 400)
        assert data.qvel[2] > -2.0  # it has met the floor
        assert energy_of(model, data) <= before * (1.0 + 1e-9)


def test_the_force_of_a_bounce_is_the_momentum_that_it_changed():
    model, data = world(FLOOR + BALL.format(x=0, z=0.2, mass=2), gravity="0 0 0")
    data.qvel[2] = -1.0
    simulator = stiction.Simulator(model, restitution=0.5)
    impulse = np.zeros(3)
    for _ in range(200):
        report = simulator.step(data)
        for contact in report.contacts:
            impulse += contact.force * model.opt.timestep
        np.testing.assert_allclose(
            data.qacc[2] * 2.0, data.qfrc_constraint[2] + data.qfrc_smooth[2], atol=1e-9
        )
    assert data.qvel[2] == pytest.approx(0.5)
    assert impulse[0] == pytest.approx(2.0 * 1.5)


@pytest.mark.parametrize("size", [1e-4, 0.1, 100.0])
def test_what_floats_bounces_at_the_same_speed_of_its_size_in_all_units_of_length(size):
    model, data = load(f"""
        <mujoco><option timestep="1e-3" gravity="0 0 0"/><worldbody>
        <geom type="plane" size="{size} {size} {size}"/>
        <body pos="0 0 {1.001 * size}"><freejoint/><geom size="{size}" mass="1"/></body>
        </worldbody></mujoco>""")
    sim = stiction.Simulator(model, restitution=0.5)
    data.qvel[2] = -size
    sim.step(data, 10)
    assert data.qvel[2] == pytest.approx(0.5 * size)
    data.qpos[2], data.qvel[2] = 1.00001 * size, -0.009 * size
    sim.step(data, 10)
    assert data.qvel[2] == pytest.approx(0.0, abs=1e-9 * size)
