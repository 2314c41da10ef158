"""Derivatives of steps with equalities of joints and of points, and with gravity compensated."""

import mujoco
import numpy as np
import pytest
from mjcf import load
from numpy.testing import assert_allclose
from slopes import assert_agree, swell

import stiction

JOINED = """
<mujoco>
  <option timestep="0.002"/>
  <default><geom contype="0" conaffinity="0" mass=".4"/><joint damping=".1"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1" contype="1" conaffinity="1"/>
    <body pos="0 0 1"><joint name="a" axis="0 1 0"/>
      <geom type="capsule" size=".03" fromto="0 0 0 .5 0 0"/>
      <body name="l" pos=".5 0 0"><joint name="b" axis="0 1 .2"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .5 0 0"/><site name="tip" pos=".5 0 0"/>
      </body></body>
    <body name="k" pos="1 .02 .98"><joint name="c" type="ball"/>
      <geom type="capsule" size=".03" fromto="0 0 0 .1 0 -.5"/><site name="top" pos="0 -.02 .02"/>
      <body pos="0 0 -.5"><joint name="e" axis="0 1 0"/>
        <geom type="capsule" size=".05" fromto="0 0 0 0 .1 -.4"/></body></body>
    <body name="box" pos="2 0 .1"><freejoint/>
      <geom type="box" size=".1 .1 .1" contype="1" conaffinity="1"/></body>
    <body name="lift" pos="2 0 .31" gravcomp=".7">
      <joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
      <geom type="box" size=".1 .05 .03" pos=".04 0 .02"/></body>
  </worldbody>
  <equality>EQUALITIES</equality>
  <actuator><motor joint="a"/><motor joint="e"/></actuator>
</mujoco>"""

EQUALITIES = {
    "none": "",
    "two joints": '<joint joint1="a" joint2="e" polycoef=".1 -.5 .3 .2 -.4"/>',
    "one joint": '<joint joint1="e" polycoef=".05"/>',
    "points": '<connect body1="l" body2="k" anchor=".5 0 0"/>',
    "sites": '<connect site1="tip" site2="top"/>',
    "a box on the ground": '<connect body1="box" body2="lift" anchor="0 .02 .1"/>',
    "all": '<joint joint1="a" joint2="e" polycoef=".1 -.5 .3 .2 -.4"/>'
    '<connect body1="l" body2="k" anchor=".5 0 0"/>'
    '<connect body1="box" body2="lift" anchor="0 .02 .1"/>',
}


def joined(name, equality):
    """A simulator and its data, after some steps."""
    model, data = load(JOINED.replace("EQUALITIES", EQUALITIES[name]))
    data.qvel[:] = 0.5 * np.random.default_rng(3).normal(size=model.nv)
    data.ctrl[:] = 0.3
    stiction.Simulator(model, equality=equality).step(data, 60)
    swell(model)
    return stiction.Simulator(model, equality=equality), data


@pytest.mark.parametrize("equality", ["soft", "rigid"])
@pytest.mark.parametrize("name", EQUALITIES)
def test_joined_bodies_have_the_derivatives_of_their_steps(name, equality):
    sim, data = joined(name, equality)
    if equality == "rigid":  # an error that is taken back, on either side of a difference
        data.qpos[0] += 1e-3
    assert assert_agree(sim, data, 1e-6, eps=1e-7).is_compiled


@pytest.mark.parametrize("equality", ["soft", "rigid"])
def test_products_with_equalities_are_those_of_the_matrices(equality):
    sim, data = joined("all", equality)
    found, batch = sim.derivatives(data), stiction.Batch(sim.model, 1, equality=equality)
    physics = np.empty(mujoco.mj_stateSize(sim.model, mujoco.mjtState.mjSTATE_INTEGRATION))
    mujoco.mj_getState(sim.model, data, physics, mujoco.mjtState.mjSTATE_INTEGRATION)
    batch.state[:] = physics
    rng = np.random.default_rng(0)
    x, u, g = (rng.normal(size=(1, n)) for n in (*found.B.shape, len(found.A)))
    size = np.abs(found.A).max()
    assert_allclose(batch.jvp(x, u), x @ found.A.T + u @ found.B.T, atol=1e-11 * size)
    by_state, by_control = batch.vjp(g)
    assert_allclose(by_state, g @ found.A, atol=1e-11 * size)
    assert_allclose(by_control, g @ found.B, atol=1e-11 * size)


def test_smoothed_with_rigid_equalities_they_are_those_by_arrays():
    sim, data = joined("all", "rigid")
    want = sim.derivatives(data).smoothed_by_arrays(1e-4)
    have = sim.derivatives(data, smoothing=1e-4)
    assert have.is_compiled
    assert_allclose(have.A, want.A, atol=1e-6 * np.abs(want.A).max())


def test_smoothed_with_soft_equalities_they_are_one_and_come_to_the_exact_ones():
    sim, data = joined("all", "soft")
    exact = sim.derivatives(data)
    size = np.abs(exact.A).max()
    have = sim.derivatives(data, smoothing=1e-4)
    assert have.is_compiled
    assert_allclose(exact.smoothed(1e-4).A, have.A, atol=1e-9 * size)
    assert np.abs(have.A - exact.A).max() > 1e-6 * size
    assert_allclose(sim.derivatives(data, smoothing=1e-9).A, exact.A, atol=1e-3 * size)


def test_a_rigid_loop_in_the_air_has_a_margin():
    sim, data = joined("points", "rigid")
    data.qpos[0] += 1e-3
    assert sim.derivatives(data).margin > 0.0
