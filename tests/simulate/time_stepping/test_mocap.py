"""Bodies that mocap bodies lead by rigid equalities: they have the motion of what leads them."""

import mujoco
import numpy as np
import pytest
from mjcf import load

import stiction
from stiction.bridge.mocap import ELSEWHERE, SUDDEN

SCENE = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="leader" mocap="true" pos="0 0 {height}"/>
    <body name="hand" pos="0 0 {height}"><freejoint/>
      <geom type="box" size=".05 .05 .05" mass="1"/></body>
    <body name="block" pos=".12 0 .05"><freejoint/>
      <geom type="box" size=".05 .05 .05" mass=".5"/></body>
  </worldbody>
  <equality><weld name="grip" body1="leader" body2="hand"/></equality>
</mujoco>"""
ON_THE_FLOOR, ABOVE = 0.05, 0.3
DT = 0.002


def scene(height):
    model, data = load(SCENE.format(height=height))
    return model, data, stiction.Simulator(model, equality="rigid")


def lead(sim, data, velocity, steps):
    """Moves the leader at that velocity; the largest certificate."""
    worst = 0.0
    for _ in range(steps):
        data.mocap_pos[0] += DT * np.asarray(velocity)
        worst = max(worst, sim.step(data).certificate.worst)
    return worst


def test_a_led_body_has_the_velocity_of_what_leads_it():
    _, data, sim = scene(ABOVE)
    assert lead(sim, data, [0.4, 0.1, -0.2], 50) < 1e-8
    np.testing.assert_allclose(data.qvel[:3], [0.4, 0.1, -0.2], atol=1e-6)
    np.testing.assert_allclose(data.qpos[:3], data.mocap_pos[0], atol=1e-9)
    np.testing.assert_allclose(data.qfrc_constraint[:3], [0.0, 0.0, 9.81], atol=1e-3)


def test_a_led_body_turns_with_what_leads_it():
    _, data, sim = scene(ABOVE)
    for k in range(1, 60):
        data.mocap_quat[0] = [np.cos(0.001 * k), 0.0, 0.0, np.sin(0.001 * k)]
        sim.step(data)
    np.testing.assert_allclose(data.qvel[3:6], [0.0, 0.0, 0.002 / DT], atol=1e-4)


def test_a_led_body_that_is_let_go_flies_on():
    _, data, sim = scene(ABOVE)
    lead(sim, data, [0.5, 0.0, 0.0], 20)
    data.eq_active[0] = 0
    sim.step(data, 10)
    np.testing.assert_allclose(data.qvel[:3], [0.5, 0.0, -9.81 * 10 * DT], atol=1e-6)


def test_a_led_body_pushes_at_its_speed():
    _, data, sim = scene(ON_THE_FLOOR)
    assert lead(sim, data, [0.5, 0.0, 0.0], 100) < 1e-8
    assert data.qvel[6] == pytest.approx(0.5, abs=1e-6)
    assert data.qpos[7] - data.qpos[0] == pytest.approx(0.1, abs=1e-6)
    data.mocap_pos[0, 0] -= 0.01  # and the block slides on, against its friction alone
    sim.step(data, 2)
    assert data.qvel[6] == pytest.approx(0.5 - 9.81 * 2 * DT, abs=1e-6)


def test_what_is_led_into_the_floor_stays_on_it_and_slides_along():
    _, data, sim = scene(ON_THE_FLOOR)
    assert lead(sim, data, [-0.2, 0.0, -0.1], 100) < 1e-8
    assert data.qpos[2] == pytest.approx(0.05, abs=1e-6)
    assert data.qpos[0] == pytest.approx(data.mocap_pos[0, 0], abs=1e-6)
    assert data.qvel[0] == pytest.approx(-0.2, abs=1e-5)


def test_leaders_that_contradict_each_other_are_met_in_the_middle():
    text = SCENE.format(height=ABOVE).replace(
        "<geom type", '<body name="other" mocap="true" pos="0 0 .3"/><geom type', 1
    )
    text = text.replace("</equality>", '<weld body1="other" body2="hand"/></equality>')
    model, data = load(text)
    sim = stiction.Simulator(model, equality="rigid")
    worst = 0.0
    for _ in range(50):
        data.mocap_pos[:, 0] += [0.001, -0.001]
        worst = max(worst, sim.step(data).certificate.worst)
    assert worst < 1e-8
    np.testing.assert_allclose(data.qpos[:3], [0.0, 0.0, ABOVE], atol=1e-6)


@pytest.mark.parametrize("jump", [0.01, 0.03, 0.2])
def test_a_leader_that_is_set_elsewhere_flings_nothing(jump):
    _, data, sim = scene(ABOVE)
    size = np.sqrt(3) * 0.05
    data.mocap_pos[0, 0] += jump
    fastest = farthest = 0.0
    for _ in range(200):
        before = data.qpos[0]
        sim.step(data)
        fastest = max(fastest, np.abs(data.qvel).max())
        farthest = max(farthest, data.qpos[0] - before)
    assert fastest <= SUDDEN * np.sqrt(9.81 * size) * (1.0 + 1e-6)
    assert farthest <= 0.05 * size * ELSEWHERE * (1.0 + 1e-6)
    np.testing.assert_allclose(data.qpos[:3], data.mocap_pos[0], atol=1e-8)
    np.testing.assert_array_equal(data.qvel[:6], 0.0)


@pytest.mark.parametrize("torque", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_what_is_led_moves_alike_in_all_units_of_length(unit, torque):
    model, data = load(f"""
        <mujoco><option timestep="{DT}" gravity="0 0 {-9.81 * unit}"/><worldbody>
        <body name="leader" mocap="true"/>
        <body name="hand"><freejoint/>
        <geom type="box" size="{0.05 * unit} {0.05 * unit} {0.05 * unit}" mass="1"/></body>
        </worldbody><equality>
        <weld body1="leader" body2="hand" torquescale="{torque}"/></equality></mujoco>""")
    sim = stiction.Simulator(model, equality="rigid")
    for k in range(1, 6):
        data.mocap_pos[0, 0] = 0.4 * unit * DT * k
        data.mocap_quat[0] = [np.cos(DT * k), 0.0, 0.0, np.sin(DT * k)]
        sim.step(data)
    np.testing.assert_allclose(data.qvel[:3], [0.4 * unit, 0.0, 0.0], atol=1e-6 * unit)
    np.testing.assert_allclose(data.qvel[3:], [0.0, 0.0, 2.0], atol=1e-4)
    data.mocap_pos[0, 0] += 30.0 * unit
    data.mocap_quat[0] = [0.0, 0.0, 0.0, 1.0]
    sim.step(data)
    np.testing.assert_allclose(data.qvel, 0.0, atol=1e-6 * unit)
    sim.step(data, 50)
    assert data.qpos[0] == pytest.approx(0.05 * np.sqrt(3) * 0.05 * 51 * unit, rel=0.2)


def test_what_is_led_comes_to_rest_to_the_bit():
    _, data, sim = scene(ABOVE)
    lead(sim, data, [0.3, 0.0, 0.0], 30)
    sim.step(data, 20)
    place = data.qpos.copy()
    sim.reset_statistics()
    sim.step(data, 100)
    np.testing.assert_array_equal(data.qpos, place)
    assert sim.statistics.pivots == 0.0


def test_a_connected_body_swings_below_what_leads_it():
    model, data = load(
        SCENE.format(height=ABOVE).replace("weld name", "connect anchor='0 0 .1' name")
    )
    sim = stiction.Simulator(model, equality="rigid")
    assert lead(sim, data, [0.3, 0.0, 0.0], 100) < 1e-8
    mujoco.mj_forward(model, data)
    anchor = data.xpos[2] + data.xmat[2].reshape(3, 3) @ [0.0, 0.0, 0.1]
    np.testing.assert_allclose(anchor, data.mocap_pos[0] + [0.0, 0.0, 0.1], atol=1e-5)
    assert data.qvel[4] != 0.0
