"""Equality constraints: as soft as MuJoCo has them, or rigid."""

import copy

import mujoco
import numpy as np
import pytest
from mjcf import load
from mjdata import dense_jacobian

import stiction

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


@pytest.mark.parametrize("gravity", ["0 0 -9.81", "2 -1 3"])
def test_what_a_soft_connection_bears_comes_to_rest_by_the_first_way(gravity):
    """Next to no motion is left then, and the load is what its momentum is measured by."""
    model, data = load(f"""
<mujoco><option gravity="{gravity}"/><worldbody>
  <body name="post"><geom type="box" size=".05 .05 .05"/></body>
  <body name="load" pos="1.5 2 -1"><freejoint/><geom type="box" size=".05 .05 .05" mass="1"/></body>
</worldbody><equality><connect body1="post" body2="load" anchor="1.5 2 -1"/></equality></mujoco>""")
    sim = stiction.Simulator(model)
    sim.step(data, 800)
    assert sim.statistics.worst <= 1e-8
    assert len(sim.statistics.rungs) == 1
    assert not data.qvel.any()


@pytest.mark.parametrize("kind", ["weld", 'connect anchor=".1 0 0"'])
def test_wheels_balanced_on_their_axles_are_joined_as_softly_as_in_mujoco(kind):
    """MuJoCo takes softness from how easily bodies' centres of mass move, which is not at all."""
    model, data = load(f"""
<mujoco><option timestep=".005" tolerance="1e-15"/>
<default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body name="a" pos=".13 -.07 .4" quat="-.5 .65 -.22 -.65"><joint axis="-1.7 .5 -1.7"/>
    <geom size=".06"/></body>
  <body name="b" pos="-.09 -.15 .25" quat="1 -.7 -.9 1.6"><joint axis="1.4 -.4 -1.1"/>
    <geom type="capsule" size=".02 .07"/></body>
</worldbody><equality><{kind} body1="a" body2="b"/></equality></mujoco>""")
    data.qvel[:] = [0.5, -0.3]
    sim = stiction.Simulator(model)
    for _ in range(50):
        theirs = copy.copy(data)
        mujoco.mj_forward(model, theirs)
        sim.step(data)
        assert data.qvel == pytest.approx(theirs.qvel + 0.005 * theirs.qacc, abs=2e-5)


LINKAGE = """
<mujoco>
  <default><geom contype="0" conaffinity="0"/></default>
  <option gravity="0 0 0"/>
  <worldbody><body quat="-.54 -1.06 .44 -.4"><freejoint/>
    <geom type="box" size=".15 .03 .02" mass="1"/>
    <body pos="-.1 0 .05"><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 .1" size=".01" mass=".2"/>
      <body pos="0 0 .1"><joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .2 0 .03" size=".01" mass=".2"/>
        <site name="tip" pos=".2 {across} .03"/></body></body>
    <body pos=".1 0 .05"><joint axis="0 1 {tilt}"/>
      <geom type="capsule" fromto="0 0 0 0 0 .13" size=".01" mass=".2"/>
      <site name="end" pos="0 0 .13"/></body>
  </body></worldbody>
  <equality><connect site1="tip" site2="end"/></equality>
</mujoco>"""
"""Four bars in a plane that floats askew: their joint's row across the plane is rounding, but by
`tilt`, and `across` is an error that nothing can take back [m]."""


def swing(tilt, across):
    model, data = load(LINKAGE.format(tilt=tilt, across=across))
    data.qvel[:] = [0.9, -0.2, 0.1, 0.3, -0.03, 0.1, 1.0, -1.0, 1.0]
    stiction.Simulator(model, equality="rigid").step(data, 100)
    return data.qvel


@pytest.mark.parametrize(("tilt", "across"), [(0, 1e-7), (0, 1e-5), (3e-8, 1e-8), (1e-5, 1e-5)])
def test_a_floating_linkage_that_is_all_but_plane_moves_as_a_plane_one(tilt, across):
    assert swing(tilt, across) == pytest.approx(swing(0, 0), abs=10 * max(tilt, across))


def test_a_rigid_joint_that_another_joint_makes_redundant_throws_nothing_about():
    model, data = load("""
<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="base" quat="-.54 -1.06 .44 -.4"><freejoint/><geom type="box" size=".05 .03 .02"/>
    <body pos="-.05 .12 -.15" quat=".55 .6 .74 .41"><joint type="ball"/>
      <geom type="capsule" size=".03 .08"/></body>
    <body name="slider" pos="-.1 .05 -.06"><joint type="slide" axis=".3 1.4 -.6"/>
      <geom size=".05"/></body></body>
</worldbody>
<equality><connect body1="base" body2="slider" anchor=".02 0 0"/></equality></mujoco>""")
    data.qvel[:] = before = [0, 0.9, -0.2, 0.1, 0.3, -0.03, 0.1, 0, 0, 0]
    data.qpos[-1] = 1e-6
    stiction.Simulator(model, equality="rigid").step(data)
    assert data.qvel == pytest.approx(before, abs=1e-3)


@pytest.mark.parametrize("size", [0.1, 1e-3, 1e-5])
@pytest.mark.parametrize("stepper", [stiction.TimeStepping(), stiction.EventDriven()])
def test_a_rigid_weld_holds_bodies_of_all_sizes(size, stepper):
    model, data = load(f"""
<mujoco><option gravity="0 0 0"/>
<default><geom type="box" size="{size} {size} {size}" density="{1e-3 / size**5}"/></default>
<worldbody>
  <body name="a"><freejoint/><geom/></body>
  <body name="b" pos="{3 * size} 0 0"><freejoint/><geom/></body>
</worldbody><equality><weld body1="a" body2="b"/></equality></mujoco>""")
    data.qvel[:2] = [size, 0.5 * size]
    stiction.Simulator(model, equality="rigid", stepper=stepper).step(data, 50)
    assert data.qvel[6] == pytest.approx(0.5 * size, rel=1e-2)


def test_a_body_that_is_held_far_off_its_centre_needs_no_solver():
    model = mujoco.MjModel.from_xml_string("""
    <mujoco>
      <worldbody>
        <body name="box" pos="1 2 3"><freejoint/><geom type="box" size=".05 .05 .05"/></body>
      </worldbody>
      <equality><connect body1="box" body2="world" anchor="-1 -2 -3"/></equality>
    </mujoco>""")
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    for _ in range(20):
        report = sim.step(data)
        assert report.rungs == ("proximal",)
        assert report.certificate.passed
