"""Where there is no contact, steps are those of MuJoCo's implicitfast."""

import copy

import mujoco
import numpy as np
import pytest
from mjcf import CHAIN, SMOOTH, load, smooth

import stiction
from stiction.simulate.time_stepping.whirling import NUTATION_GROWTH


@pytest.mark.parametrize("name", SMOOTH)
def test_without_contact_steps_are_those_of_implicitfast(name):
    model, ours = smooth(name)
    theirs = copy.copy(ours)
    sim = stiction.Simulator(model)
    rng, compared = np.random.default_rng(1), 0
    fast = np.sqrt(2.0 * NUTATION_GROWTH / model.opt.timestep)
    for _ in range(200):
        if not name.startswith("tumbling") and np.abs(ours.qvel).max() > fast:
            break  # steps are better than MuJoCo's then (`whirling.py`)
        compared += 1
        ours.ctrl[:] = theirs.ctrl[:] = rng.uniform(-0.5, 0.5, model.nu)
        before = theirs.qvel.copy()
        sim.step(ours)
        mujoco.mj_step(model, theirs)
        for field in ("qpos", "qvel", "act", "plastic"):
            expected = np.asarray(getattr(theirs, field))
            found = np.asarray(getattr(ours, field))
            assert found == pytest.approx(expected, rel=1e-11, abs=1e-11), field
        assert ours.time == theirs.time
        acceleration = (theirs.qvel - before) / model.opt.timestep
        assert ours.qacc == pytest.approx(acceleration, rel=1e-8, abs=1e-8)
        assert ours.energy == pytest.approx(theirs.energy, rel=1e-9, abs=1e-9)
    assert compared > 100


def test_without_damping_the_acceleration_is_mujocos_own():
    model, ours = smooth("pendulum")
    theirs = copy.copy(ours)
    stiction.Simulator(model).step(ours)
    mujoco.mj_step(model, theirs)
    assert ours.qacc == pytest.approx(theirs.qacc, rel=1e-11, abs=1e-11)


def test_without_contact_sensors_read_what_mujocos_read():
    bodies = CHAIN.format(joint="")
    model, ours = load(f"""
<mujoco>
  <option integrator="implicitfast"/>
  <worldbody>{bodies}</worldbody>
  <tendon><fixed name="cord"><joint joint="elbow" coef="1"/></fixed></tendon>
  <actuator><motor name="motor" joint="elbow"/></actuator>
  <sensor>
    <accelerometer site="site"/><gyro site="site"/><velocimeter site="site"/>
    <force site="site"/><torque site="site"/><magnetometer site="site"/>
    <framelinacc objtype="body" objname="lower"/><frameangacc objtype="body" objname="lower"/>
    <framelinvel objtype="body" objname="tip"/><framepos objtype="body" objname="tip"/>
    <jointpos joint="elbow"/><jointvel joint="elbow"/><jointactuatorfrc joint="elbow"/>
    <ballquat joint="shoulder"/><ballangvel joint="shoulder"/>
    <tendonpos tendon="cord"/><tendonvel tendon="cord"/>
    <actuatorpos actuator="motor"/><actuatorfrc actuator="motor"/>
    <subtreecom body="upper"/><subtreelinvel body="upper"/><subtreeangmom body="upper"/>
    <clock/><e_potential/><e_kinetic/>
  </sensor>
</mujoco>""")
    ours.qvel[:] = np.linspace(-1.0, 1.0, model.nv)
    ours.ctrl[:] = 0.3
    theirs = copy.copy(ours)
    sim = stiction.Simulator(model)
    for _ in range(50):
        sim.step(ours)
        mujoco.mj_step(model, theirs)
        assert ours.sensordata == pytest.approx(theirs.sensordata, rel=1e-9, abs=1e-9)


def test_applied_forces_are_mujocos():
    model, ours = smooth("damped")
    ours.qfrc_applied[:] = np.linspace(-1.0, 1.0, model.nv)
    ours.xfrc_applied[1:] = np.linspace(-2.0, 2.0, 6 * (model.nbody - 1)).reshape(-1, 6)
    theirs = copy.copy(ours)
    stiction.Simulator(model).step(ours, 50)
    mujoco.mj_step(model, theirs, 50)
    assert ours.qpos == pytest.approx(theirs.qpos, rel=1e-10, abs=1e-11)
    assert ours.qvel == pytest.approx(theirs.qvel, rel=1e-10, abs=1e-10)


def test_a_spinning_free_body_gains_no_energy():
    model, data = load("""
<mujoco><option gravity="0 0 0"/><worldbody>
  <body><freejoint/><geom type="box" size=".1 .2 .3" mass="1"/></body>
</worldbody></mujoco>""")
    data.qvel[3:] = [10.0, 40.0, 10.0]
    momentum = np.zeros(6)

    def energy():
        mujoco.mj_forward(model, data)
        mujoco.mj_mulM(model, data, momentum, data.qvel)
        return 0.5 * momentum @ data.qvel

    before = energy()
    sim = stiction.Simulator(model)
    for _ in range(20):
        sim.step(data, 50)
        after = energy()
        assert after <= before * (1.0 + 1e-12)
        before = after


@pytest.mark.parametrize("damping", [0.0, 0.02])
@pytest.mark.parametrize("turn", ["1 0 0 0", "0.8 0.6 0 0"])
@pytest.mark.parametrize("inertia", ["1 2 3", "3 1 2", "1e-3 2e-3 2.9e-3", "1 1 1"])
def test_a_body_tumbles_as_under_implicitfast_whatever_its_axes(inertia, turn, damping):
    """Turned by `turn`, the principal axes are not the body's own, and M has entries off its
    diagonal: another way leads to the momentum then."""
    model, ours = load(
        f"""<mujoco><worldbody><body pos="0 0 5"><joint type="free" damping="{damping}"/>
        <inertial pos="0 0 0" quat="{turn}" mass="1" diaginertia="{inertia}"/>
        <geom size="0.1" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    )
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    ours.qvel[3:] = [5.0, -7.0, 11.0]
    ours.xfrc_applied[1] = [1.0, 2.0, 3.0, 0.1, -0.2, 0.3]
    theirs = copy.copy(ours)
    stiction.Simulator(model).step(ours, 50)
    mujoco.mj_step(model, theirs, 50)
    np.testing.assert_allclose(ours.qvel, theirs.qvel, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.qpos, theirs.qpos, rtol=0, atol=1e-13)


def test_a_model_without_freedom_passes_the_time():
    model, data = load("""
<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body mocap="true"><geom type="sphere" size=".1"/></body></worldbody></mujoco>""")
    stiction.Simulator(model).step(data, 3)
    assert data.time == pytest.approx(0.006)
