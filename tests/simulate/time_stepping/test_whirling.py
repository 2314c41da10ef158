"""Trees that turn fast: their energy does not grow by Coriolis forces."""

import mujoco
import numpy as np
import pytest
from mjcf import load
from slopes import assert_agree

import stiction
from stiction.simulate.time_stepping.whirling import FAST_TURN, NUTATION_GROWTH

LINK = '<geom type="capsule" size=".02 .028" euler="0 90 0" mass=".1"/>'
BALL = '<joint type="ball" pos="-.05 0 0" damping="{}"/>'
HINGE = '<joint axis="0 1 {}" pos="-.05 0 0"/>'


def chain(links, joint, base="<freejoint/>", *, gravity=0.0, world="", actuator="", dt=2e-3):
    """A chain of links of 10 cm along x, from the origin on."""
    body = f"<body>{base}{LINK}"
    body += f'<body pos=".1 0 0">{joint}{LINK}' * (links - 1) + "</body>" * links
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{dt}" gravity="0 0 {gravity}"/>'
        f"<worldbody>{world}{body}</worldbody>{actuator}</mujoco>"
    )


def thrown(model, speed, seed):
    data = mujoco.MjData(model)
    begin = 3 if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE else 0
    data.qvel[begin:] = speed * np.random.default_rng(seed).normal(size=model.nv - begin)
    return data


def energy_before_moving(model, data):
    """Kinetic energy of the velocity that data has, where the step that gave it began."""
    past = mujoco.MjData(model)
    past.qpos[:], past.qvel[:] = data.qpos, data.qvel
    mujoco.mj_integratePos(model, past.qpos, data.qvel, -model.opt.timestep)
    mujoco.mj_forward(model, past)
    mujoco.mj_energyVel(model, past)
    return past.energy[1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("joint", "base"),
    [
        (BALL.format(0), "<freejoint/>"),
        (HINGE.format(0), "<freejoint/>"),
        (HINGE.format(0.3), "<joint axis='0 0 1'/>"),
        (BALL.format(0), "<joint axis='0 0 1' armature='1e-4'/>"),
    ],
)
def test_chain_that_whirls_in_the_air_gains_no_energy(joint, base, seed):
    model = chain(8, joint, base)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data, simulator = thrown(model, 60.0, seed), stiction.Simulator(model)
    simulator.step(data)
    last = energy_before_moving(model, data)
    turning = data.qvel[3:] if base == "<freejoint/>" else data.qvel
    for _ in range(200):
        fast = np.abs(turning).max() * model.opt.timestep > FAST_TURN
        simulator.step(data)
        now = energy_before_moving(model, data)
        assert not fast or now <= (1 + 1e-9) * last
        last = now


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_chain_that_falls_on_its_end_does_not_run_away(seed):
    floor = '<geom type="plane" size="0 0 .1" pos="0 0 -2.3" friction=".6"/>'
    model = chain(20, BALL.format(1e-3), gravity=-9.81, world=floor)
    data = thrown(model, 0.1, seed)
    data.qpos[3:7] = np.cos(np.pi * 40 / 180), 0.0, np.sin(np.pi * 40 / 180), 0.0
    simulator = stiction.Simulator(model, on_failure="best")
    mujoco.mj_forward(model, data)
    mujoco.mj_energyPos(model, data)
    least = -2.3 * 9.81 * 2.0  # of all links on the floor [J]
    allowed = 1.1 * (data.energy[0] - least)
    for _ in range(12):
        simulator.step(data, 50)
        mujoco.mj_energyPos(model, data)
        assert energy_before_moving(model, data) + data.energy[0] - least < allowed


def falling_chain(seed):
    """30 links that fall upon their lower end, all but upright."""
    floor = '<geom type="plane" size="0 0 .1" pos="0 0 -3.3"/>'
    model = chain(30, BALL.format(1e-3), gravity=-9.81, world=floor)
    data = thrown(model, 0.1, seed)
    data.qpos[3:7] = np.cos(np.pi * 40 / 180), 0.0, np.sin(np.pi * 40 / 180), 0.0
    return model, data


@pytest.mark.parametrize("seed", [1, 2])
def test_overlap_that_is_taken_back_adds_no_energy_to_a_chain_that_whips(seed):
    """Gained in single steps: 12.7 and 9.1 J of 40."""
    model, data = falling_chain(seed)
    simulator, past, last = stiction.Simulator(model), mujoco.MjData(model), np.inf
    for _ in range(500):
        past.qpos[:] = data.qpos
        simulator.step(data)
        past.qvel[:] = data.qvel
        mujoco.mj_forward(model, past)
        mujoco.mj_energyPos(model, past)
        mujoco.mj_energyVel(model, past)
        assert past.energy.sum() < last + 0.5
        last = past.energy.sum()


def test_a_chain_that_whips_goes_on_from_its_state_with_the_same_bits():
    model, data = falling_chain(1)
    simulator, other = stiction.Simulator(model), stiction.Simulator(model)
    simulator.step(data, 380)
    corrected = 0
    for _ in range(60):
        state, again = simulator.get_state(data), mujoco.MjData(model)
        corrected += state.memory.origin is not None
        simulator.step(data)
        other.set_state(again, state)
        other.step(again)
        np.testing.assert_array_equal(again.qvel, data.qvel)
    assert corrected > 0


def test_what_turns_about_a_fixed_axis_keeps_its_speed():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="2e-3" gravity="0 0 0"/><worldbody><body><joint axis="0 0 1"/>'
        '<geom type="box" size=".1 .02 .02" pos=".1 0 0"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    data.qvel[0] = 300.0
    stiction.Simulator(model).step(data, 1000)
    assert abs(data.qvel[0] - 300.0) < 1e-9


@pytest.mark.parametrize("dt", [2e-4, 1e-3, 2e-3, 5e-3])
def test_a_flywheel_in_free_fall_keeps_its_momentum_and_its_frame_does_not_tumble(dt):
    model, data = load(
        f'<mujoco><option timestep="{dt}" gravity="0 0 0"/><worldbody><body><freejoint/>'
        '<geom type="box" size=".1 .1 .1" mass="1"/><body><joint axis="0 0 1"/>'
        '<geom type="cylinder" size=".08 .02" mass=".5" contype="0" conaffinity="0"/>'
        "</body></body></worldbody></mujoco>"
    )
    data.qvel[3], data.qvel[6] = 1.0, 500.0

    def momentum():
        mujoco.mj_forward(model, data)
        mujoco.mj_subtreeVel(model, data)
        return data.subtree_angmom[1].copy()

    before = momentum()
    stiction.Simulator(model).step(data, round(1.0 / dt))
    assert np.linalg.norm(momentum() - before) < 2.0 * dt * np.linalg.norm(before)
    assert np.linalg.norm(data.qvel[3:5]) == pytest.approx(1.0, rel=1e-6)
    assert data.qvel[6] == pytest.approx(500.0, rel=1e-6)


@pytest.mark.parametrize(("dt", "off"), [(1e-4, 2e-3), (1e-3, 0.06), (2e-3, 0.3)])
def test_a_fast_top_precesses_as_gravity_over_its_spin_has_it(dt, off):
    """Explicit Coriolis forces threw it about."""
    model, data = load(
        f'<mujoco><option timestep="{dt}"/><worldbody><body><joint type="ball"/>'
        '<inertial pos="0 0 .1" mass="1" diaginertia="1e-3 1e-3 2e-3"/></body></worldbody></mujoco>'
    )
    data.qpos[:] = np.cos(0.3), 0.0, np.sin(0.3), 0.0
    data.qvel[2] = 500.0
    stiction.Simulator(model).step(data, round(0.5 / dt))
    mujoco.mj_kinematics(model, data)
    axis = data.xmat[1].reshape(3, 3)[:, 2]
    precession = 0.5 * 9.81 * 0.1 / (2e-3 * 500.0)
    assert np.arctan2(axis[1], axis[0]) == pytest.approx(precession, rel=off + 1e-2)
    assert np.arccos(axis[2]) == pytest.approx(0.6, abs=0.1)
    assert data.qvel[2] == pytest.approx(500.0, rel=1e-9)


def _added(model, data):
    """What a step adds to MuJoCo's smooth forces."""
    stiction.Simulator(model).step(data)
    own = data.qfrc_passive + data.qfrc_actuator + data.qfrc_applied - data.qfrc_bias
    return np.abs(data.qfrc_smooth - own).max() / np.abs(data.qfrc_bias).max()


def test_only_what_turns_fast_has_other_forces_than_mujoco():
    model = chain(4, HINGE.format(0), gravity=-9.81)
    data = mujoco.MjData(model)
    data.qvel[3:6] = 0.5 * np.sqrt(2.0 * NUTATION_GROWTH / model.opt.timestep)
    data.qvel[6:] = 0.9 * FAST_TURN / model.opt.timestep
    assert _added(model, data) < 1e-14
    data = thrown(model, 4 * FAST_TURN / model.opt.timestep, 0)
    assert _added(model, data) > 1e-3


def test_forces_of_trees_that_turn_fast_outlast_the_second_look_that_adhesion_takes():
    geom = '<geom name="pad" type="plane" size="1 1 1" pos="0 0 -9"/>'
    actuator = '<actuator><adhesion body="held" ctrlrange="0 1" gain="1"/></actuator>'
    held = '<body name="held" pos="0 0 9"><freejoint/><geom size=".01"/></body>'
    plain = chain(6, BALL.format(0), world=geom + held)
    sticky = chain(6, BALL.format(0), world=geom + held, actuator=actuator)
    after = []
    for model in (plain, sticky):
        data = mujoco.MjData(model)
        data.qvel[9:] = 80.0 * np.random.default_rng(0).normal(size=model.nv - 9)
        stiction.Simulator(model).step(data, 3)
        after.append(data.qvel.copy())
    np.testing.assert_array_equal(*after)


def test_a_batch_takes_fast_trees_as_a_simulator_does():
    model = chain(6, BALL.format(0))
    data = thrown(model, 60.0, 0)
    batch = stiction.Batch(model, nsim=2, nthread=1)
    batch.bind("qpos")[:], batch.bind("qvel")[:] = data.qpos, data.qvel
    batch.step(nstep=20)
    stiction.Simulator(model).step(data, 20)
    np.testing.assert_array_equal(batch.bind("qvel")[1], data.qvel)


ARM = """<mujoco><option timestep=".004"/><worldbody>
  <geom type="plane" size="5 5 .1" pos="0 0 -.65" friction=".5"/>
  <body><joint name="a" axis="0 1 0"/>
    <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
    <body pos=".3 0 0"><joint axis="0 1 .2"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
      <body pos=".3 0 0"><joint type="ball"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/></body></body></body>
  </worldbody><actuator><motor joint="a"/></actuator></mujoco>"""


@pytest.mark.parametrize("nthread", [1, 2])
def test_simulations_of_a_batch_come_from_their_own_positions(nthread):
    model, data = load(ARM)
    speeds = [[40.0, -55.0, 10.0, 30.0, -20.0], [-30.0, 45.0, -10.0, 20.0, 20.0]]
    batch = stiction.Batch(model, nsim=2, nthread=nthread)
    batch.bind("qvel")[:] = speeds
    for _ in range(60):
        batch.step()
    for k, speed in enumerate(speeds):
        data.qpos[:], data.qvel[:] = model.qpos0, speed
        stiction.Simulator(model).step(data, 60)
        np.testing.assert_array_equal(batch.bind("qvel")[k], data.qvel)


@pytest.mark.parametrize("on_floor", [False, True])
def test_derivatives_are_those_of_bounded_coriolis_forces(on_floor):
    model, data = load(ARM)
    data.qpos[:2] = 0.3, 0.8
    data.qvel[:] = 40.0, -55.0, 10.0, 30.0, -20.0
    data.ctrl[:] = 0.5
    if not on_floor:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    sim = stiction.Simulator(model)
    found = assert_agree(sim, data, 1e-6)
    assert not found.is_compiled
    assert any(mode is not stiction.Mode.SEPARATE for mode in found.modes) == on_floor
