"""The simulator's interface: what it leaves in MjData, what it tells, what it refuses."""

import copy
import threading
from math import ceil, pi, sin

import mujoco
import numpy as np
import pytest

import stiction
from stiction import (
    ContactModel,
    ContactProblem,
    Coulomb,
    Frictionless,
    InvalidInput,
    Mode,
    NoSlip,
    SolveFailed,
    Status,
    StictionError,
    TimeStepping,
    Viscous,
    scenes,
)
from stiction.contact.models.model import Impulses

G = 9.81
CONES = pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])


def load(xml):
    model = mujoco.MjModel.from_xml_string(xml)
    return model, mujoco.MjData(model)


BOX = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 1"/>
    <body name="box" pos="0 0 .1"><freejoint name="free"/>
      <geom name="cube" type="box" size=".1 .1 .1" mass="2"/></body>
  </worldbody>
</mujoco>"""


# --- where there is no contact: MuJoCo's implicitfast ------------------------------------------

CHAIN = """
    <body name="upper" pos="0 0 2">
      <joint name="shoulder" type="ball" {joint}/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
      <body name="lower" pos=".3 0 0">
        <joint name="elbow" axis="0 1 0" {joint}/>
        <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".02" mass=".5"/>
        <body name="tip" pos=".3 .1 0">
          <joint name="reach" type="slide" axis="0 .6 .8" {joint} stiffness="30"/>
          <geom type="sphere" size=".05" mass=".2"/><site name="site"/>
        </body>
      </body>
    </body>"""

SMOOTH = {
    "pendulum": (CHAIN.format(joint=""), ""),
    "damped": (CHAIN.format(joint='damping=".3" armature=".01"'), ""),
    "servo": (
        CHAIN.format(joint='damping=".1"'),
        '<actuator><position joint="elbow" kp="50" kv="4"/><velocity joint="reach" kv="7"/>'
        '<position joint="elbow" kp="20" dampratio="1"/></actuator>',
    ),
    "activation": (
        CHAIN.format(joint='damping=".1"'),
        '<actuator><general joint="elbow" dyntype="filter" dynprm=".05" gainprm="3"/>'
        '<general joint="reach" dyntype="filterexact" dynprm=".02" gainprm="3"/>'
        '<general joint="elbow" dyntype="integrator" actlimited="true" actrange="-.1 .1"'
        ' gainprm="3"/>'
        '<general joint="elbow" dyntype="filter" dynprm=".1" actearly="true" gainprm="2"'
        ' biastype="affine" biasprm="0 -1 -1"/></actuator>',
    ),
    "muscle": (
        CHAIN.format(joint='damping=".1"'),
        '<tendon><fixed name="cord"><joint joint="elbow" coef=".05"/></fixed></tendon>'
        '<actuator><muscle tendon="cord" lengthrange="-.1 .1" force="40"/></actuator>',
    ),
    "tendon": (
        CHAIN.format(joint=""),
        '<tendon><fixed stiffness="20" damping="3"><joint joint="elbow" coef="1"/>'
        '<joint joint="reach" coef="-.4"/></fixed></tendon>',
    ),
    "fluid": (CHAIN.format(joint="") + "<!-- -->", ""),
    "weightless": (CHAIN.format(joint="").replace('<body name="', '<body gravcomp="1" name="'), ""),
    "plastic": (CHAIN.format(joint='springyield="0.05"').replace(
        'name="elbow"', 'name="elbow" stiffness="30"'), ""),
    "tumbling": (
        '<body pos="0 0 2"><freejoint/><geom type="box" size=".1 .2 .3" mass="1"/></body>', ""
    ),
    "two trees": (
        CHAIN.format(joint='damping=".2"')
        + '<body pos="3 0 2"><freejoint/><geom type="sphere" size=".2"/></body>',
        "",
    ),
}  # fmt: skip


def smooth(name):
    """A model without contact, moving, under the integrator that the simulator stands for."""
    bodies, rest = SMOOTH[name]
    medium = 'density="900" viscosity=".5"' if name == "fluid" else ""
    model, data = load(
        f'<mujoco><option integrator="implicitfast" {medium}><flag energy="enable"/></option>'
        f"<worldbody>{bodies}</worldbody>{rest}</mujoco>"
    )
    data.qvel[:] = np.linspace(-1.5, 2.0, model.nv)
    return model, data


@pytest.mark.parametrize("name", SMOOTH)
def test_without_contact_steps_are_those_of_implicitfast(name):
    model, ours = smooth(name)
    theirs = copy.copy(ours)
    sim = stiction.Simulator(model)
    rng = np.random.default_rng(1)
    for _ in range(200):
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


def test_a_model_without_freedom_passes_the_time():
    model, data = load("""
<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body mocap="true"><geom type="sphere" size=".1"/></body></worldbody></mujoco>""")
    stiction.Simulator(model).step(data, 3)
    assert data.time == pytest.approx(0.006)


# --- callbacks -------------------------------------------------------------------------------


def test_the_control_callback_is_called_once_a_step_with_the_state_up_to_date():
    model, ours = smooth("servo")
    theirs = copy.copy(ours)
    calls = []

    def control(m, d):
        calls.append(d.time)
        d.ctrl[0] = 0.1 * d.site("site").xpos[2] - 0.01 * d.subtree_com[1, 0]

    mujoco.set_mjcb_control(control)
    try:
        report = stiction.Simulator(model).step(ours, 20)
        assert calls == pytest.approx([0.002 * k for k in range(20)])
        mujoco.mj_step(model, theirs, 20)
    finally:
        mujoco.set_mjcb_control(None)
    assert report.time == ours.time
    assert ours.qpos == pytest.approx(theirs.qpos, rel=1e-11, abs=1e-11)
    assert ours.ctrl == pytest.approx(theirs.ctrl, rel=1e-9)


def test_an_exception_in_the_control_callback_reaches_the_caller_and_no_step_is_taken():
    model, data = smooth("servo")
    before = state(data)

    def control(m, d):
        raise RuntimeError("no controller")

    mujoco.set_mjcb_control(control)
    try:
        with pytest.raises(RuntimeError, match="no controller"):
            stiction.Simulator(model).step(data)
    finally:
        mujoco.set_mjcb_control(None)
    assert state(data) == before


def test_the_passive_callback_adds_its_force():
    model, data = load("""
<mujoco><worldbody><body><joint type="slide" axis="0 0 1"/>
  <geom type="sphere" size=".1" mass="3"/></body></worldbody></mujoco>""")

    def hold(m, d):
        d.qfrc_passive[0] += 3.0 * G

    mujoco.set_mjcb_passive(hold)
    try:
        stiction.Simulator(model).step(data, 10)
    finally:
        mujoco.set_mjcb_passive(None)
    assert data.qvel[0] == pytest.approx(0.0, abs=1e-14)


# --- forces in MjData ------------------------------------------------------------------------


def dense_jacobian(data, nv):
    """(nefc, nv) of the rows in data, kept sparse."""
    full = np.zeros((data.nefc, nv))
    for row in range(data.nefc):
        begin = data.efc_J_rowadr[row]
        columns = data.efc_J_colind[begin : begin + data.efc_J_rownnz[row]]
        full[row, columns] = data.efc_J[begin : begin + data.efc_J_rownnz[row]]
    return full


@CONES
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_contact_forces_read_with_the_users_model_sum_to_the_weight(cone, condim):
    xml = BOX.replace("<worldbody>", f'<option cone="{cone}"/><worldbody>', 1)
    model, data = load(xml.replace('mass="2"', f'mass="2" condim="{condim}"'))
    report = stiction.Simulator(model).step(data, 20)
    total, force = np.zeros(3), np.zeros(6)
    for k in range(data.ncon):
        mujoco.mj_contactForce(model, data, k, force)
        total += data.contact[k].frame.reshape(3, 3).T @ force[:3]
        told = next(c for c in report.contacts if c.index == k)
        assert force[:3] == pytest.approx(told.force, abs=1e-9)
        assert force[3:] == pytest.approx(told.torque, abs=1e-9)
    assert total == pytest.approx([0.0, 0.0, 2.0 * G], abs=1e-9)


@CONES
@pytest.mark.parametrize("condim", [3, 4, 6])
def test_constraint_forces_balance_the_momentum(cone, condim):
    model, data = load(f"""
<mujoco>
  <option cone="{cone}" gravity="1 -.5 -9.81"/>
  <default><geom friction=".3 .01 .002" condim="{condim}"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body pos="0 0 .1"><freejoint/><geom type="sphere" size=".1"/></body>
    <body pos=".5 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="0 0 1"><joint name="hinge" axis="0 1 0" range="-1 5" frictionloss=".2"/>
      <geom type="box" size=".1 .1 .1" pos=".3 0 0"/></body>
    <body pos="2 0 1"><joint name="slide" type="slide" axis="0 0 1"/>
      <geom type="sphere" size=".1"/></body>
  </worldbody>
  <equality><joint joint1="slide" polycoef=".01 0 0 0 0"/></equality>
</mujoco>""")
    data.qvel[:6] = [1.0, 0.5, 0.0, 0.3, 5.0, 0.1]
    sim = stiction.Simulator(model)
    for _ in range(30):
        before = data.qvel.copy()
        sim.step(data)
        assert data.qacc == pytest.approx((data.qvel - before) / 0.002, rel=1e-10, abs=1e-10)
        jacobian = dense_jacobian(data, model.nv)
        assert data.qfrc_constraint == pytest.approx(jacobian.T @ data.efc_force, abs=1e-8)
        inertia = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, inertia, data.qacc)
        assert inertia == pytest.approx(data.qfrc_smooth + data.qfrc_constraint, abs=1e-7)


@CONES
def test_touch_and_force_sensors_read_the_contact_forces(cone):
    model, data = load(f"""
<mujoco>
  <option cone="{cone}"/>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body name="table" pos="0 0 .5"><freejoint/>
      <geom type="box" size=".2 .2 .02" mass="3"/>
      <body name="foot" pos="0 0 -.25"><site name="ankle" pos="0 0 .2"/>
        <geom type="box" size=".1 .1 .25" mass="1"/>
        <site name="sole" type="box" size=".12 .12 .02" pos="0 0 -.25"/></body>
    </body>
  </worldbody>
  <sensor>
    <touch site="sole"/><force site="ankle"/><torque site="ankle"/><accelerometer site="ankle"/>
  </sensor>
</mujoco>""")
    stiction.Simulator(model).step(data, 10)
    # The foot carries the table: 3 of 4 kg. It pushes up on what it hangs from.
    expected = [4.0 * G, 0.0, 0.0, -3.0 * G, 0.0, 0.0, 0.0, 0.0, 0.0, G]
    found = data.sensordata.copy()
    found[3] = -abs(found[3])
    assert found == pytest.approx(expected, abs=1e-8)


def test_limit_sensors_read_the_limit_and_not_what_is_looked_ahead_to():
    model, data = load("""
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body><joint name="hinge" axis="0 1 0" range="-1 .5"/>
      <geom type="sphere" size=".1" pos="1 0 0" mass="2"/></body>
  </worldbody>
  <sensor><jointlimitpos joint="hinge"/><jointlimitvel joint="hinge"/>
    <jointlimitfrc joint="hinge"/></sensor>
</mujoco>""")
    data.qpos[0] = 0.5
    sim = stiction.Simulator(model)
    sim.step(data, 5)  # gravity turns it toward the upper limit
    assert data.qpos[0] == pytest.approx(0.5, abs=1e-12)
    assert data.sensordata[0] == pytest.approx(0.0, abs=1e-9)
    assert data.sensordata[2] == pytest.approx(2.0 * G * np.cos(0.5), rel=1e-9)


def test_energy_is_computed_where_the_model_asks():
    model, data = load(
        BOX.replace("<worldbody>", '<option><flag energy="enable"/></option><worldbody>', 1)
    )
    stiction.Simulator(model).step(data, 3)
    assert data.energy == pytest.approx([2.0 * G * 0.1, 0.0], abs=1e-12)


# --- equality constraints --------------------------------------------------------------------

LEVERS = """
    <body name="mocap" mocap="true" pos=".1 0 1"/>
    <body name="ball" pos="0 0 1"><freejoint/><geom type="sphere" size=".2" mass="2"/></body>
    <body pos="2 0 0"><joint name="a" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/></body>
    <body pos="2 1 0"><joint name="b" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .5 0 0" size=".02" mass="1"/></body>"""
TENDONS = """
  <tendon>
    <fixed name="t1"><joint joint="a" coef="1"/></fixed>
    <fixed name="t2"><joint joint="b" coef="1"/></fixed>
  </tendon>"""
EQUALITIES = {
    "weld": '<weld body1="mocap" body2="ball"/>',
    "soft weld": '<weld body1="mocap" body2="ball" solref=".2 .4" solimp=".5 .8 .1"/>',
    "connect": '<connect body1="mocap" body2="ball" anchor=".1 0 .1"/>',
    "joint": '<joint joint1="a" joint2="b" polycoef="0 -.5 .2 0 0"/>',
    "fixed joint": '<joint joint1="a" polycoef="0 0 0 0 0"/>',
    "tendon": '<tendon tendon1="t1" tendon2="t2" polycoef="0 .5 0 0 0"/>',
}


def held(name):
    model, data = load(f"""
<mujoco>
  <option integrator="implicitfast" tolerance="1e-15" iterations="200"/>
  <worldbody>{LEVERS}</worldbody>{TENDONS}
  <equality>{EQUALITIES[name]}</equality>
</mujoco>""")
    return model, data


@pytest.mark.parametrize("name", EQUALITIES)
def test_equalities_are_as_soft_as_mujoco_has_them(name):
    model, ours = held(name)
    if name.endswith(("weld", "connect")):
        ours.mocap_pos[0] += [0.1, 0.05, 0.1]
    theirs = copy.copy(ours)
    sim = stiction.Simulator(model)
    for _ in range(300):
        sim.step(ours)
        mujoco.mj_step(model, theirs)
        assert ours.qpos == pytest.approx(theirs.qpos, abs=1e-9)
        assert ours.qvel == pytest.approx(theirs.qvel, abs=1e-9)
        assert ours.efc_force == pytest.approx(theirs.efc_force, rel=1e-7, abs=1e-6)


@pytest.mark.parametrize("name", EQUALITIES)
def test_rigid_equalities_hold_exactly(name):
    model, data = held(name)
    sim = stiction.Simulator(model, equality="rigid")
    for _ in range(300):
        sim.step(data)
    mujoco.mj_forward(model, data)
    # What is left of one step's curvature where the held body turns; nothing where it does not.
    turns = np.abs(data.qvel).max() * 0.002
    assert np.abs(data.efc_pos[: data.ne]).max() <= 1e-9 + turns**2
    jacobian = dense_jacobian(data, model.nv) if data.efc_J_rownnz.size else None
    if jacobian is not None and name not in ("connect", "joint"):
        assert np.abs(data.efc_pos[: data.ne]).max() <= 1e-9


def test_a_rigid_loop_does_not_drift():
    model, data = load("""
<mujoco>
  <default><geom contype="0"/></default>
  <worldbody>
    <body pos="0 0 1"><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .4 0 .1" size=".02" mass="1"/>
      <body pos=".4 0 .1"><joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .5 0 0" size=".02" mass="1"/>
        <body name="end" pos=".5 0 0"><joint axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 .1 0 -.4" size=".02" mass="1"/></body>
      </body>
    </body>
  </worldbody>
  <equality><connect body1="end" anchor=".1 0 -.4"/></equality>
</mujoco>""")
    sim = stiction.Simulator(model, equality="rigid")
    errors, fastest = [], 0.0
    for _ in range(2000):
        sim.step(data)
        fastest = max(fastest, np.abs(data.qvel).max())
        errors.append(np.abs(data.efc_pos[: data.ne]).max())
    assert fastest > 1.0
    assert max(errors) <= (0.002 * fastest) ** 2
    assert max(errors[1500:]) <= 2.0 * max(errors[:1000])


# --- limits and dry joints -------------------------------------------------------------------


@pytest.mark.parametrize("speed", [0.3, 7.3, 113.0])
def test_joint_limits_hold_exactly_and_do_not_bounce(speed):
    model, data = load("""
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 0"/>
  <worldbody>
    <body><joint axis="0 1 0" range="-1 1"/><geom type="sphere" size=".1" pos=".5 0 0"/></body>
    <body pos="5 0 0"><joint type="slide" axis="1 0 0" range="-2 1"/>
      <geom type="sphere" size=".1"/></body>
  </worldbody>
</mujoco>""")
    data.qvel[:] = [speed, -speed]
    sim = stiction.Simulator(model)
    for _ in range(ceil(2.0 / speed / 0.002) + 10):
        sim.step(data)
        assert data.qpos[0] <= 1.0 + 1e-12
        assert data.qpos[1] >= -2.0 - 1e-12
        assert data.qvel[0] >= -1e-12
        assert data.qvel[1] <= 1e-12
    assert data.qpos == pytest.approx([1.0, -2.0], abs=1e-12)
    assert data.qvel == pytest.approx([0.0, 0.0], abs=1e-12)


def test_a_limit_holds_where_an_impact_flings_the_joint():
    model, data = load("""
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <geom type="plane" size="9 9 1" friction="0"/>
    <body pos="0 0 1"><joint type="slide" axis="0 0 1"/>
      <geom type="sphere" size=".02" mass="10"/>
      <body><joint name="flap" axis="0 -1 0" range="-.1 .1"/>
        <geom type="sphere" size=".02" pos=".1 0 -.1" mass=".01"
          friction="0"/></body>
    </body>
  </worldbody>
</mujoco>""")
    data.qvel[0] = -10.0
    sim = stiction.Simulator(model)
    for _ in range(200):
        sim.step(data)
        assert data.qpos[1] <= 0.1 + 1e-9
    assert data.qpos[1] == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_ball_joint_limits_hold_whatever_the_axis(axis):
    model, data = load("""
<mujoco>
  <compiler angle="radian"/>
  <option gravity="0 0 0"/>
  <worldbody><body><joint type="ball" range="0 1"/><geom type="sphere" size=".1"/></body>
  </worldbody>
</mujoco>""")
    data.qvel[axis] = 37.0
    sim = stiction.Simulator(model)
    for _ in range(30):
        sim.step(data)
        assert 2.0 * np.arccos(min(1.0, data.qpos[0])) <= 1.0 + 1e-9
    assert np.abs(data.qvel).max() <= 1e-9


@pytest.mark.parametrize("speed", [0.5, 20.0, 300.0])
def test_tendon_limits_hold_from_the_first_step_on(speed):
    model, data = load("""
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body><joint name="a" type="slide" axis="1 0 0"/><geom type="sphere" size=".1"/></body>
    <body pos="0 2 0"><joint name="b" type="slide" axis="1 0 0"/><geom type="sphere" size=".1"/>
    </body>
  </worldbody>
  <tendon><fixed range="-1 1"><joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed>
  </tendon>
</mujoco>""")
    data.qpos[0], data.qvel[0] = 0.5, speed
    sim = stiction.Simulator(model)
    for _ in range(ceil(0.5 / speed / 0.002) + 10):
        sim.step(data)
        assert data.qpos.sum() <= 1.0 + 1e-12
    assert data.qpos.sum() == pytest.approx(1.0, abs=1e-9)
    assert data.qvel == pytest.approx([speed / 2, -speed / 2], rel=1e-9)


def test_spatial_tendon_limit_holds_a_hanging_weight():
    model, data = load("""
<mujoco>
  <worldbody>
    <site name="hook" pos="0 0 1"/>
    <body><freejoint/><geom type="sphere" size=".1" mass="3"/><site name="eye" pos="0 0 .1"/></body>
  </worldbody>
  <tendon><spatial name="rope" range="0 1"><site site="hook"/><site site="eye"/></spatial></tendon>
</mujoco>""")
    stiction.Simulator(model).step(data, 1000)
    assert data.ten_length[0] == pytest.approx(1.0, abs=1e-9)
    assert np.abs(data.qvel).max() <= 1e-9
    assert data.efc_force[0] == pytest.approx(3.0 * G, rel=1e-9)


# --- contact at a distance, overlap ----------------------------------------------------------

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


# --- the user's model and how it is followed -------------------------------------------------


def as_bytes(model):
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def test_the_users_model_is_not_modified():
    model, data = load(BOX.replace('mass="2"', 'mass="2" margin=".01" gap=".002"'))
    before = as_bytes(model)
    sim = stiction.Simulator(model)
    data.qvel[0] = 3.0
    sim.step(data, 50)
    sim(model, data)
    sim.refresh()
    data.qpos[0] = np.nan
    with pytest.raises(InvalidInput):
        sim.step(data)
    assert as_bytes(model) == before


def test_options_are_followed_as_they_change():
    model, data = load(BOX.replace('pos="0 0 .1"', 'pos="0 0 5"'))
    sim = stiction.Simulator(model)
    sim.step(data)
    model.opt.gravity[2] = 1.0
    model.opt.timestep = 0.01
    sim.step(data)
    assert data.qvel[2] == pytest.approx(-0.002 * G + 0.01, rel=1e-12)
    assert data.time == pytest.approx(0.012)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_GRAVITY
    before = data.qvel[2]
    sim.step(data)
    assert data.qvel[2] == before


@pytest.mark.parametrize("flag", ["CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY", "CONSTRAINT"])
def test_what_the_model_disables_does_not_act(flag):
    model, data = load("""
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <geom type="plane" size="9 9 1" contype="2"/>
    <body pos="0 0 .1"><freejoint/><geom type="sphere" size=".1" conaffinity="2"/></body>
    <body pos="2 0 1"><joint axis="0 1 0" range="-1 0"/>
      <geom type="sphere" size=".1" pos=".2 0 0"/></body>
    <body pos="3 0 1"><joint axis="0 1 0" frictionloss="1000"/>
      <geom type="sphere" size=".1" pos=".2 0 0"/></body>
    <body pos="4 0 1"><joint name="held" axis="0 1 0"/>
      <geom type="sphere" size=".1" pos=".2 0 0"/></body>
  </worldbody>
  <equality><joint joint1="held" solref=".004 1" solimp=".999 .9999 .001"/></equality>
</mujoco>""")
    model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    stiction.Simulator(model).step(data, 20)
    moves = dict(
        zip(("CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY"), data.qvel[[2, 6, 7, 8]], strict=True)
    )
    for part, speed in moves.items():
        assert (abs(speed) > 0.1) == (flag in (part, "CONSTRAINT")), part


def test_other_changes_need_a_refresh():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    model.geom_friction[:, 0] = 0.0
    sim.refresh()
    data.qvel[0] = 1.0
    sim.step(data, 10)
    assert data.qvel[0] == pytest.approx(1.0, rel=1e-12)
    model.geom_friction[:, 0] = 0.5
    sim.refresh()
    sim.step(data, 10)
    assert data.qvel[0] == pytest.approx(1.0 - 0.02 * 0.5 * G, rel=1e-9)


def test_a_bad_change_is_refused_and_the_old_model_kept():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    model.opt.timestep = -1.0
    for _ in range(2):
        with pytest.raises(InvalidInput, match="timestep"):
            sim.step(data)
    model.opt.timestep = 0.002
    sim.step(data)
    assert data.time == 0.002


def test_the_simulator_is_a_step_function():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    assert sim(model, data) is None
    assert data.time == 0.002
    assert sim.model is model
    with pytest.raises(InvalidInput, match="not the one"):
        sim(copy.copy(model), data)


def test_the_one_liner_steps_as_a_simulator_does():
    model, ours = load(BOX)
    ours.qvel[:] = [1.0, 0.5, 0.0, 0.1, 0.2, 0.3]
    other = copy.copy(ours)
    report = stiction.step(model, ours, 5)
    for _ in range(5):
        stiction.step(model, ours)
    stiction.Simulator(model).step(other, 10)
    assert np.array_equal(ours.qpos, other.qpos)
    assert report.time == pytest.approx(0.01)


# --- determinism -----------------------------------------------------------------------------


def jumble():
    """Bodies that land on each other and slide, and a motor."""
    bodies = "".join(
        f'<body pos="{0.15 * k} {0.05 * (k % 3)} {0.13 + 0.21 * k}" euler="{9 * k} {40 * k} 0">'
        f'<freejoint/><geom type="{"box" if k % 2 else "capsule"}" size=".1 .08 .06"/></body>'
        for k in range(6)
    )
    model, data = load(f"""
<mujoco>
  <size memory="20M"/>
  <worldbody>
    <geom type="plane" size="9 9 1"/>{bodies}
    <body pos="-.5 0 .3"><joint name="arm" axis="0 1 0" frictionloss=".1" range="-90 90"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/></body>
  </worldbody>
  <actuator><motor joint="arm"/></actuator>
</mujoco>""")
    data.ctrl[0] = -1.0
    data.qvel[:3] = [-1.0, 0.3, 0.0]
    return model, data


def state(data):
    """The bits of the state."""
    fields = ("qpos", "qvel", "act")
    return (
        b"".join(np.asarray(getattr(data, f)).tobytes() for f in fields)
        + np.float64(data.time).tobytes()
    )


def test_many_steps_in_one_call_are_the_same_bits_as_single_steps():
    model, data = jumble()
    other = copy.copy(data)
    stiction.Simulator(model).step(data, 300)
    sim = stiction.Simulator(model)
    for _ in range(300):
        report = sim.step(other)
    assert state(other) == state(data)
    assert np.array_equal(other.qacc, data.qacc)
    assert report.time == data.time


def test_the_same_state_gives_the_same_bits_in_a_fresh_simulator():
    model, data = jumble()
    stiction.Simulator(model).step(data, 150)
    start = copy.copy(data)
    first, used = copy.copy(start), stiction.Simulator(model)
    used.step(first, 50)
    for _ in range(2):
        again = mujoco.MjData(model)  # nothing in it but the state
        again.qpos[:], again.qvel[:] = start.qpos, start.qvel
        again.ctrl[:], again.time = start.ctrl, start.time
        stiction.Simulator(model).step(again, 50)
        assert state(again) == state(first)
    # And in one that has been elsewhere, once it has forgotten.
    used.forget()
    last = copy.copy(start)
    used.step(last, 50)
    assert state(last) == state(first)


def test_a_warm_start_does_not_change_the_answer():
    model, data = jumble()
    sim = stiction.Simulator(model)
    for _ in range(300):
        cold = copy.copy(data)
        stiction.Simulator(model, warm_start=False).step(cold)
        sim.step(data)
        assert np.abs(cold.qvel - data.qvel).max() <= 1e-9


def test_a_warm_start_does_not_change_how_a_box_slides_and_spins():
    # Four corners share the weight in more than one way, and friction depends on how.
    model, data = load(BOX.replace('size=".1 .1 .1"', 'size=".1 .15 .1"'))
    data.qvel[:] = [1.0, 0.3, 0.0, 0.0, 0.0, 4.0]
    sim = stiction.Simulator(model)
    for _ in range(150):
        cold = copy.copy(data)
        stiction.Simulator(model, warm_start=False).step(cold)
        sim.step(data)
        assert np.abs(cold.qvel - data.qvel).max() <= 1e-10


def test_simulators_in_threads_give_the_same_bits_as_alone():
    model, start = jumble()
    alone = copy.copy(start)
    stiction.Simulator(model).step(alone, 300)
    runs = [copy.copy(start) for _ in range(8)]
    sims = [stiction.Simulator(model) for _ in range(8)]
    threads = [
        threading.Thread(target=sim.step, args=(data, 300))
        for sim, data in zip(sims, runs, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(state(data) == state(alone) for data in runs)


# --- what a step tells -----------------------------------------------------------------------


def test_the_report_tells_of_contacts():
    model, data = load(BOX.replace("<geom ", '<geom friction=".5" '))
    data.qvel[0] = 1.0
    sim = stiction.Simulator(model)
    report = sim.step(data)
    assert report.time == data.time == 0.002
    assert report.certificate.passed
    assert report.rung == report.rungs[-1]
    assert not report.frictionless
    assert report.energy < 0.0
    assert report.overlap == 0.0
    assert set(report.seconds) == {"smooth", "collision", "rows", "solve", "certify", "advance"}
    assert all(seconds > 0.0 for seconds in report.seconds.values())
    assert len(report.contacts) == data.ncon == 4
    for contact in report.contacts:
        assert contact.geoms == ("geom 'floor'", "geom 'cube'")
        assert contact.bodies == ("world", "box")
        assert contact.mode == Mode.SLIDE
        assert contact.friction == pytest.approx([0.5, 0.5])
        assert contact.margin == pytest.approx(0.0, abs=1e-9)
        assert np.hypot(*contact.slip) == pytest.approx(1.0 - 0.001 * G, rel=1e-9)
        assert contact.gap == pytest.approx(0.0, abs=1e-12)
        assert np.abs(contact.position[:2]) == pytest.approx([0.1, 0.1])
        assert np.array_equal(contact.torque, np.zeros(3))
    assert sum(c.force[0] for c in report.contacts) == pytest.approx(2.0 * G)
    report = sim.step(data, 200)
    assert {c.mode for c in report.contacts} == {Mode.STICK}
    assert all(c.margin >= 0.0 for c in report.contacts)
    assert sum(c.force[1:] for c in report.contacts) == pytest.approx([0.0, 0.0], abs=1e-9)
    assert "Report" in repr(report)


def test_a_contact_ahead_is_told_with_its_gap():
    model, data = load(BOX.replace('pos="0 0 .1"', 'pos="0 0 .1005"'))
    report = stiction.Simulator(model).step(data)
    assert {c.mode for c in report.contacts} == {Mode.SEPARATE}
    assert [c.gap for c in report.contacts] == pytest.approx([5e-4] * 4)
    assert all(c.force[0] == 0.0 for c in report.contacts)


def test_the_report_outlives_the_next_steps():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    report = sim.step(data)
    first = report.contacts[0].force.copy()
    later = sim.step(data)
    data.xfrc_applied[1, 2] = -500.0
    sim.step(data, 5)
    assert np.array_equal(report.contacts[0].force, first)
    assert sum(c.force[0] for c in later.contacts) == pytest.approx(2.0 * G)


def test_statistics_count_all_steps_until_they_are_reset():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    assert sim.statistics.steps == 0
    sim.step(data, 30)
    sim.step(data)
    statistics = sim.statistics
    assert statistics.steps == 31
    assert statistics.worst <= 1e-8
    assert statistics.contacts == statistics.most_contacts == 4
    assert sum(statistics.rungs.values()) == 31
    assert 0.0 <= statistics.warm <= 1.0
    assert statistics.energy <= 1e-12
    assert statistics.pushed_out == 0
    assert statistics.seconds["solve"] > 0.0
    sim.reset_statistics()
    assert sim.statistics.steps == 0
    sim.step(data)
    assert sim.statistics.steps == 1


@pytest.mark.parametrize(
    ("contact", "expected"),
    [
        (Frictionless(), 0.5),
        (NoSlip(), 0.0),
        (Viscous(2.5), 0.5 / (1.0 + 4 * 0.002 * 2.5 / 2.0)),
        (Coulomb(), 0.5 - 0.002 * G),
        (Coulomb(facets=4), 0.5 - 0.002 * G),
        (Coulomb(solver="standard", facets=8), 0.5 - 0.002 * G),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_contact_model_has_its_own_law(contact, expected):
    # Low, wide and slow: held at its front edge it does not tip.
    model, data = load(
        BOX.replace('size=".1 .1 .1"', 'size=".3 .3 .01"').replace('"0 0 .1"', '"0 0 .01"')
    )
    data.qvel[0] = 0.5
    report = stiction.Simulator(model, contact).step(data)
    assert data.qvel[0] == pytest.approx(expected, rel=1e-8, abs=1e-9)
    assert report.certificate.worst <= 1e-6


# --- what touches ------------------------------------------------------------------------------


@pytest.mark.parametrize("contact", [NoSlip(), Viscous(1000.0)], ids=lambda value: value.law)
def test_a_foot_that_stands_still_touches_though_its_path_is_curved(contact):
    # Its path leaves the ground by some 1e-7 m in a step; as a contact ahead it would slide.
    model, data, controller = scenes.load("quadruped", friction=100.0)
    sim = stiction.Simulator(model, contact)
    for _ in range(1000):
        controller(model, data)
        sim.step(data)
        assert data.qpos[2] > 0.28
    assert data.qpos[0] > 0.03
    assert sim.statistics.worst <= 1e-6


VALLEY = """
<mujoco>
  <option timestep=".002"/>
  <asset><hfield name="valley" nrow="2" ncol="3" size="1 1 .5 .1" elevation="1 0 1 1 0 1"/></asset>
  <worldbody>
    <geom type="hfield" hfield="valley"/>
    <body pos="0 .2 .1118033988749895"><freejoint/><geom size=".1" mass="1"/></body>
  </worldbody>
</mujoco>
"""


def test_a_ball_on_two_slopes_is_held_and_can_be_lifted():
    model, data = load(VALLEY)
    sim = stiction.Simulator(model, NoSlip())
    report = sim.step(data, 50)
    assert np.abs(data.qvel).max() < 1e-9
    assert [c.mode for c in report.contacts] == [Mode.STICK, Mode.STICK]
    data.xfrc_applied[1, :3] = [2.0, 0.0, 0.0]
    sim.step(data, 50)
    assert np.abs(data.qvel).max() < 1e-9
    data.xfrc_applied[1, :3] = [0.0, 0.0, 2 * G]
    sim.step(data, 50)
    # One step goes along the normal of the slope that holds it.
    assert data.qvel[2] == pytest.approx(50 * 0.002 * G, rel=0.01)


FIELD = """
<mujoco>
  <asset>
    <hfield name="field" nrow="12" ncol="12" size=".8 .8 .06 .1" elevation="{heights}"/>
  </asset>
  <worldbody>
    <geom {ground} friction=".5"/>
    <body pos="-.4 .013 {height}"><freejoint/>
      <geom {shape} friction=".5 .001 .001" mass="1"/></body>
  </worldbody>
</mujoco>
"""
SLAB = 'type="box" size=".05 .04 .03"'


@pytest.mark.parametrize(
    ("shape", "spin", "end"),
    [(SLAB, 0.0, 1.5**2 / (2 * 0.5 * G)), ('size=".03"', 1.5 / 0.03, 0.6)],
    ids=["box", "ball"],
)
def test_cells_of_a_level_field_are_not_felt(shape, spin, end):
    ends = []
    for ground in ('type="plane" size="2 2 .1"', 'type="hfield" hfield="field"'):
        model, data = load(
            FIELD.format(heights=" ".join(["0"] * 144), ground=ground, height=0.03, shape=shape)
        )
        data.qvel[[0, 4]] = 1.5, spin
        sim = stiction.Simulator(model)
        sim.step(data, 200)
        assert sim.statistics.overlap < 1e-9
        ends.append(data.qpos.copy())
    np.testing.assert_allclose(*ends, atol=1e-9)
    assert ends[0][0] == pytest.approx(end - 0.4, abs=2e-3)


@pytest.mark.parametrize(
    "shape",
    [
        SLAB,
        'type="cylinder" size=".02 .002" condim="6"',
        'type="capsule" size=".03 .06" condim="6"',
    ],
    ids=["box", "coin", "capsule"],
)
@pytest.mark.parametrize("seed", range(2))
def test_things_dropped_on_bumpy_ground_come_to_rest(shape, seed):
    rng = np.random.default_rng(seed)
    heights = " ".join(f"{h:.4f}" for h in rng.random(144))
    ground = 'type="hfield" hfield="field"'
    model, data = load(FIELD.format(heights=heights, ground=ground, height=0.2, shape=shape))
    quat = rng.normal(size=4)
    data.qpos[3:] = quat / np.linalg.norm(quat)
    sim = stiction.Simulator(model)
    sim.step(data, 1500)
    assert np.abs(data.qvel).max() < 1e-6
    assert data.qpos[2] > 0.0
    assert sim.statistics.worst <= 1e-6


TILES = "".join(
    f'<geom type="box" size=".1 .5 .05" pos="{0.2 * i - 0.8} 0 -.05" friction=".5"/>'
    for i in range(12)
)
PLANE = '<geom type="plane" size="2 2 .1" friction=".5"/>'


def on_floor(floor, geom, x=-0.43):
    """A model and data of a body of 1 kg that rests on a floor, its middle at x, 3 cm high."""
    return load(f"""<mujoco><worldbody>{floor}<body pos="{x} .013 .03"><freejoint/>
        <geom {geom} mass="1" friction=".5"/></body></worldbody></mujoco>""")


@pytest.mark.parametrize(
    ("geom", "velocity"),
    [
        (SLAB, [1.5, 0, 0, 0, 0, 0]),
        ('type="cylinder" size=".05 .03"', [1.5, 0, 0, 0, 0, 0]),
        ('size=".03"', [1.0, 0, 0, 0, 1 / 0.03, 0]),
    ],
    ids=["box", "cylinder", "ball"],
)
def test_seams_of_a_tiled_floor_are_not_felt(geom, velocity):
    ends = []
    for floor in (PLANE, TILES):
        model, data = on_floor(floor, geom)
        data.qvel[:] = velocity
        stiction.Simulator(model).step(data, 400)
        ends.append(data.qpos.copy())
    np.testing.assert_allclose(*ends, atol=1e-9)


def test_a_box_that_stands_at_a_seam_can_be_pushed_over_it():
    model, data = on_floor(TILES, SLAB, x=-0.35)
    sim = stiction.Simulator(model)
    sim.step(data, 10)
    data.xfrc_applied[1, 0] = 8.0
    sim.step(data, 100)
    assert data.qvel[0] == pytest.approx((8.0 - 0.5 * G) * 0.2, abs=1e-9)


def test_a_step_in_the_floor_stops_a_box():
    raised = TILES + '<geom type="box" size=".1 .5 .05" pos="-.1 0 -.04"/>'
    model, data = on_floor(raised, SLAB)
    data.qvel[0] = 2.0
    stiction.Simulator(model).step(data, 200)
    assert data.qpos[0] + 0.05 <= -0.2 + 1e-6


@pytest.mark.parametrize("speed", [1.0, 20.0, 300.0])
@pytest.mark.parametrize("geom", ['size=".02"', 'type="box" size=".02 .02 .02"'])
def test_nothing_goes_through_a_thin_wall(geom, speed):
    model, data = load(f"""<mujoco><option gravity="0 0 0"/><worldbody>
        <geom type="box" size=".0005 1 1"/><body pos="-.3 0 0"><freejoint/><geom {geom}/></body>
        </worldbody></mujoco>""")
    data.qvel[:] = [speed, 0, 0, 0.3, 0.2, 0.5]
    stiction.Simulator(model).step(data, round(1.0 / (0.002 * speed)) + 20)
    assert data.qpos[0] < -0.02


@pytest.mark.parametrize("speed", [1.0, 30.0, 100.0, 1000.0])
@pytest.mark.parametrize("offset", [0.0, 0.02, 0.035])
def test_fast_balls_that_meet_do_not_miss_each_other(speed, offset):
    model, data = load(f"""<mujoco><option gravity="0 0 0"/><worldbody>
        <body pos="-.3 0 0"><freejoint/><geom size=".02" mass="1"/></body>
        <body pos=".3 {offset} 0"><freejoint/><geom size=".02" mass="1"/></body>
        </worldbody></mujoco>""")
    data.qvel[0], data.qvel[6] = 0.5 * speed, -0.5 * speed
    stiction.Simulator(model).step(data, round(1.0 / (0.002 * speed)) + 20)
    assert data.qvel[0] < 0.45 * speed
    assert data.qvel[:3] + data.qvel[6:9] == pytest.approx([0, 0, 0], abs=1e-9 * speed)


# --- what is refused -------------------------------------------------------------------------

SERVO = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 1"/>
    <body name="box" pos="0 0 .1"><freejoint name="free"/>
      <geom name="cube" type="box" size=".1 .1 .1"/></body>
    <body name="arm" pos="1 0 1"><joint name="hinge"/><geom type="sphere" size=".1" pos="0 0 .2"/>
    </body>
    <body name="hand" mocap="true"/>
  </worldbody>
  <actuator><general name="motor" joint="hinge" dyntype="filter" dynprm=".1"/></actuator>
</mujoco>"""

BAD_STATES = [
    ("qpos", 2, "joint 'free'"),
    ("qpos", 7, "joint 'hinge'"),
    ("qvel", 6, "joint 'hinge' of body 'arm'"),
    ("act", 0, "act"),
    ("ctrl", 0, "actuator 'motor'"),
    ("qfrc_applied", 6, "joint 'hinge'"),
    ("xfrc_applied", (1, 3), "body 'box'"),
    ("mocap_pos", (0, 1), "mocap_pos"),
    ("mocap_quat", (0, 1), "mocap_quat"),
]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("field", "index", "named"), BAD_STATES)
def test_numbers_that_are_none_are_refused_by_name(field, index, named, value):
    model, data = load(SERVO)
    sim = stiction.Simulator(model)
    sim.step(data, 3)
    getattr(data, field)[index] = value
    before = state(data)
    with pytest.raises(InvalidInput, match=named) as caught:
        sim.step(data, 5)
    assert f"data.{field}" in str(caught.value)
    assert state(data) == before
    getattr(data, field)[index] = 1.0 if field == "mocap_quat" else 0.0
    sim.step(data)  # and it goes on


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
def test_friction_that_is_none_is_refused_by_the_geoms_name(value):
    model, _ = load(BOX)
    model.geom("cube").friction[0] = value
    with pytest.raises(InvalidInput, match="geom 'cube'"):
        stiction.Simulator(model)


def test_bad_friction_of_a_pair_and_of_dry_joints_is_refused():
    model, _ = load(
        BOX.replace(
            "</mujoco>",
            '<contact><pair name="both" geom1="floor" geom2="cube"/></contact></mujoco>',
        )
    )
    model.pair_friction[0, 1] = -1.0
    with pytest.raises(InvalidInput, match="pair 'both'"):
        stiction.Simulator(model)
    model, _ = load(SERVO)
    model.dof_frictionloss[6] = np.nan
    with pytest.raises(InvalidInput, match="joint 'hinge'"):
        stiction.Simulator(model)


@pytest.mark.parametrize("value", [0.0, -0.002, np.nan, np.inf])
def test_a_step_that_takes_no_time_is_refused(value):
    model, _ = load(BOX)
    model.opt.timestep = value
    with pytest.raises(InvalidInput, match="timestep"):
        stiction.Simulator(model)


def test_bad_mass_and_gravity_are_refused():
    model, _ = load(BOX)
    model.body("box").mass[0] = np.nan
    with pytest.raises(InvalidInput, match="body 'box'"):
        stiction.Simulator(model)
    model, _ = load(BOX)
    model.opt.gravity[1] = np.nan
    with pytest.raises(InvalidInput, match="gravity"):
        stiction.Simulator(model)


def test_an_actuator_that_drives_what_it_should_damp_is_named():
    model, data = load("""
<mujoco>
  <worldbody><body><joint name="hinge"/><geom type="sphere" size=".1" pos="0 0 .2"/></body>
  </worldbody>
  <actuator><velocity joint="hinge" kv="-100"/></actuator>
</mujoco>""")
    before = state(data)
    with pytest.raises(InvalidInput, match="joint 'hinge'"):
        stiction.Simulator(model).step(data)
    assert state(data) == before


def test_flexible_bodies_are_refused_by_name():
    model, _ = load("""
<mujoco><worldbody>
  <flexcomp name="sheet" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" mass="1"/>
</worldbody></mujoco>""")
    with pytest.raises(InvalidInput, match="flex 'sheet'"):
        stiction.Simulator(model)


def test_moving_surfaces_are_refused_by_name():
    model, _ = load(BOX.replace('name="floor"', 'name="floor" surfacevel="1 0 0 0 0 0"'))
    with pytest.raises(InvalidInput, match="geom 'floor'"):
        stiction.Simulator(model)


def test_a_full_arena_is_an_error_and_no_contact_is_dropped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log of its warnings
    bodies = "".join(
        f'<body pos="{k} 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for k in range(20)
    )
    model, data = load(
        f'<mujoco><size memory="20K"/><worldbody><geom type="plane" size="9 9 1"/>{bodies}'
        "</worldbody></mujoco>"
    )
    before = state(data)
    with pytest.raises(StictionError, match="arena"):
        stiction.Simulator(model).step(data)
    assert state(data) == before


def test_data_of_another_model_is_refused():
    sim = stiction.Simulator(load(BOX)[0])
    _, other = load(SERVO)
    with pytest.raises(InvalidInput, match="nq"):
        sim.step(other)
    with pytest.raises(InvalidInput, match="MjData"):
        sim.step(None)
    with pytest.raises(InvalidInput, match="MjModel"):
        stiction.Simulator("model.xml")


@pytest.mark.parametrize("nstep", [0, -1, 1.5])
def test_a_number_of_steps_that_is_none_is_refused(nstep):
    model, data = load(BOX)
    with pytest.raises(InvalidInput, match="nstep"):
        stiction.Simulator(model).step(data, nstep)
    assert data.time == 0.0


@pytest.mark.parametrize(
    "options",
    [
        {"contact": "coulomb"},
        {"contact": Viscous()},
        {"stepper": 0.001},
        {"equality": "hard"},
        {"on_failure": "ignore"},
        {"tolerance": 0.0},
        {"tolerance": np.nan},
        {"tolerance": 2.0},
    ],
    ids=str,
)
def test_wrong_options_are_refused_by_name(options):
    model, _ = load(BOX)
    with pytest.raises(InvalidInput, match=next(iter(options))):
        stiction.Simulator(model, **options)


# --- failure ---------------------------------------------------------------------------------


class Helpless(ContactModel):
    """Finds nothing from a given time on; before that, as `Coulomb`."""

    law = "coulomb"

    def __init__(self, calls=0):
        self.calls = calls

    def solve_island(self, problem, start):
        self.calls -= 1
        if self.calls >= 0:
            return Coulomb().solve_island(problem, start)
        nothing = np.zeros(problem.nc)
        return Impulses(
            nothing,
            np.zeros((problem.nc, 2)),
            np.zeros(problem.nj),
            np.zeros(problem.nb),
            Status.CYCLE,
            7,
            ("hope",),
        )


def test_a_failed_solve_carries_the_problem_and_leaves_the_state():
    model, data = load(BOX)
    sim = stiction.Simulator(model, Helpless(3))
    sim.step(data, 3)
    before = state(data)
    with pytest.raises(SolveFailed) as caught:
        sim.step(data)
    assert state(data) == before
    assert isinstance(caught.value.problem, ContactProblem)
    assert caught.value.problem.nc == 4
    assert caught.value.status is Status.CYCLE
    message = str(caught.value)
    assert "world" in message
    assert "box" in message
    assert "t = 0.006" in message
    assert Coulomb().solve(caught.value.problem).status is Status.SOLVED
    assert sim.statistics.steps == 3


def test_a_failure_within_many_steps_leaves_the_last_good_state():
    model, data = load(BOX)
    with pytest.raises(SolveFailed):
        stiction.Simulator(model, Helpless(4)).step(data, 10)
    assert data.time == pytest.approx(0.008)


def test_the_problem_of_a_failed_solve_is_saved_where_asked(tmp_path):
    model, data = load(BOX)
    sim = stiction.Simulator(model, Helpless(), failures=tmp_path / "failed")
    with pytest.raises(SolveFailed) as caught:
        sim.step(data)
    (path,) = (tmp_path / "failed").iterdir()
    assert str(path) in str(caught.value)
    saved = ContactProblem.load(path)
    assert np.array_equal(saved.normal, caught.value.problem.normal)


def test_a_failed_step_goes_on_without_friction_where_asked():
    model, data = load(BOX)
    data.qvel[0] = 1.0
    sim = stiction.Simulator(model, Helpless(1), on_failure="frictionless")
    report = sim.step(data)
    assert not report.frictionless
    slower = data.qvel[0]
    assert slower < 1.0
    report = sim.step(data)
    assert report.frictionless
    assert report.rung == "without friction"
    assert data.qvel[0] == slower
    assert data.qvel[2] == pytest.approx(0.0, abs=1e-12)
    assert sim.statistics.rungs["without friction"] == 1


def test_the_ladder_answers_where_the_compiled_solver_may_not():
    model, ours = jumble()
    other = copy.copy(ours)
    ladder = stiction.Simulator(model, Helpless(10**6))
    compiled = stiction.Simulator(model)
    for _ in range(60):
        ladder.step(ours)
        compiled.step(other)
        other.qpos[:], other.qvel[:] = ours.qpos, ours.qvel
    assert ladder.statistics.worst <= 1e-8
    assert ladder.statistics.steps == 60


@pytest.mark.parametrize("condim", [4, 6])
def test_torsional_and_rolling_friction_reach_the_ladder(condim):
    # One contact: with several, how they share the load is not determined, nor is the spin then.
    model, data = load(f"""
<mujoco>
  <default><geom friction=".4 .02 .005" condim="{condim}"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body pos="0 0 .1"><freejoint/><geom type="sphere" size=".1"/></body>
  </worldbody>
</mujoco>""")
    data.qvel[:] = [1.0, 0.0, 0.0, 0.0, 3.0, pi]
    other = copy.copy(data)
    stiction.Simulator(model, Helpless(10**6)).step(data)
    stiction.Simulator(model).step(other)
    assert data.qvel == pytest.approx(other.qvel, abs=1e-8)
