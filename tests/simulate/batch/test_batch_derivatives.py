"""Derivatives over a batch: matrices as those of a simulator, products as those of the matrices."""

import mujoco
import numpy as np
import pytest
from mjcf import load
from numpy.testing import assert_allclose, assert_array_equal

import stiction
from stiction import InvalidInput, scenes

STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)

JOINTS = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom type="plane" size="9 9 1" condim="{dim}" friction=".6 .02 .01"/>
    <body pos="0 0 .5">
      <joint type="slide" axis="1 0 .2" frictionloss=".01" damping="1"/>
      <joint name="turn" axis="0 1 0" range="-40 2" limited="true"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <body pos=".3 0 0">
        <joint type="ball"/><geom type="capsule" fromto="0 0 0 .1 0 -.4" size=".03"/>
        <body pos=".1 0 -.4"><joint axis="1 0 0" stiffness="3"/><joint axis="0 1 0" damping=".1"/>
          <geom type="box" size=".08 .05 .03" pos=".02 0 -.08"/></body>
      </body>
    </body>
    <body pos="1 0 .0995"><freejoint/>
      <geom type="sphere" size=".1" condim="{dim}" friction=".6 .02 .01"/></body>
    <body pos="1.15 0 .0995"><freejoint/>
      <geom type="sphere" size=".1" condim="{dim}" friction=".6 .02 .01"/></body>
  </worldbody>
  <actuator><general joint="turn" gear="3" dyntype="filter" dynprm=".05" gainprm="3"/></actuator>
</mujoco>"""
"""Every joint, a limit, dry friction, two bodies that touch each other, an activation."""


def joints(dim=3):
    model, data = load(JOINTS.format(dim=dim))
    data.qpos[1], data.act[:], data.ctrl[:] = np.radians(2.5), 0.1, 0.5
    data.qvel[:] = np.linspace(-0.5, 1.0, model.nv)
    data.xfrc_applied[1:] = 0.1
    return model, data


def scene(name):
    model, data, control = scenes.load(name)
    if control:
        control(model, data)
    return model, data


def spread(model, data, nsim=5, **options):
    """Simulations with speeds of their own."""
    batch, rng = stiction.Batch(model, nsim, 2, **options), np.random.default_rng(0)
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    batch.state[:] = state
    batch.qvel[:] += 0.1 * rng.normal(size=(nsim, model.nv)) * np.arange(nsim)[:, None]
    return batch


def assert_products(batch):
    """They are those of the matrices, which are returned; the batch is left as it was."""
    before, model = batch.state.copy(), batch.model
    A, B = batch.derivatives()
    rng, n = np.random.default_rng(1), A.shape[1]
    x, g = rng.normal(size=(2, batch.nsim, n))
    u = rng.normal(size=(batch.nsim, model.nu))
    scale = max(1.0, np.abs(A).max())
    want = np.einsum("nij,nj->ni", A, x) + np.einsum("nij,nj->ni", B, u)
    assert_allclose(batch.jvp(x, u) / scale, want / scale, atol=1e-12)
    by_state, by_control = batch.vjp(g)
    assert_allclose(by_state / scale, np.einsum("nij,ni->nj", A, g) / scale, atol=1e-12)
    assert_allclose(by_control / scale, np.einsum("nij,ni->nj", B, g) / scale, atol=1e-12)
    assert_array_equal(batch.state, before)
    return A, B


@pytest.mark.parametrize("name", ["pinch", "grasp", "quadruped", "humanoid", "jack"])
def test_products_are_those_of_the_matrices(name):
    batch = spread(*scene(name))
    A, B = assert_products(batch)
    sim, data = stiction.Simulator(batch.model), mujoco.MjData(batch.model)
    for k in range(batch.nsim):
        mujoco.mj_setState(batch.model, data, batch.state[k], STATE)
        sim.forget()
        found = sim.derivatives(data)
        assert found.is_compiled
        assert_array_equal(found.A, A[k])
        assert_array_equal(found.B, B[k])


@pytest.mark.parametrize("dim", [1, 3, 4, 6])
def test_products_go_through_all_joints_and_dimensions_of_contact(dim):
    assert_products(spread(*joints(dim)))


@pytest.mark.parametrize(
    "contact", [stiction.Coulomb(facets=8), stiction.NoSlip(), stiction.Viscous(20.0)], ids=repr
)
def test_products_go_through_every_law(contact):
    assert_products(spread(*joints(), contact=contact))


def test_what_is_not_compiled_goes_the_other_way():
    model, data = joints()
    model.opt.density = 1.2  # air
    batch = spread(model, data, nsim=3)
    A, _ = assert_products(batch)
    assert np.isfinite(A).all()


def test_simulations_with_fields_of_their_own_have_derivatives_of_their_own():
    model, data = joints()
    batch = spread(model, data, nsim=3)
    batch.expand("dof_damping")[:, 0] = [0.5, 1.0, 5.0]
    batch.expand("geom_friction")[:, :, 0] = np.array([0.1, 0.6, 1.0])[:, None]
    A, B = assert_products(batch)
    for k in range(3):
        own = batch.get_model(k)
        mujoco.mj_setState(own, data, batch.state[k], STATE)
        found = stiction.Simulator(own).derivatives(data)
        assert_array_equal(found.A, A[k])
        assert_array_equal(found.B, B[k])


def test_the_next_step_begins_as_if_nothing_had_been_asked():
    ends = []
    for look in (False, True):
        batch = spread(*scene("grasp"))
        for _ in range(4):
            if look:
                batch.vjp(np.ones((batch.nsim, 2 * batch.model.nv + batch.model.na)))
            batch.step()
        ends.append(batch.state.copy())
    assert_array_equal(*ends)


def test_chosen_simulations_have_rows_in_their_order():
    batch = spread(*scene("pinch"))
    n = 2 * batch.model.nv + batch.model.na
    g = np.random.default_rng(2).normal(size=(batch.nsim, n))
    whole, part = batch.vjp(g), batch.vjp(g[[1, 3]], ids=[1, 3])
    for have, want in zip(part, whole, strict=True):
        assert_array_equal(have, want[[1, 3]])


def test_a_simulation_without_derivatives_does_not_stop_the_others():
    model, data = load("""
<mujoco><worldbody><geom type="plane" size="9 9 1"/>
  <body pos="0 0 .5"><freejoint/><geom size=".1"/></body></worldbody></mujoco>""")
    batch = spread(model, data, nsim=3, restitution=0.5)
    batch.qpos[1, 2], batch.qvel[1, 2] = 0.101, -3.0
    gradient = np.ones((3, 12))
    with pytest.raises(stiction.SimulationError, match="bounce") as failure:
        batch.vjp(gradient)
    assert_array_equal(failure.value.ids, [1])
    by_state, _ = batch.vjp(gradient[[0, 2]], ids=[0, 2])
    assert np.isfinite(by_state).all()


def test_rows_of_wrong_shape_are_refused():
    batch = spread(*scene("pinch"))
    n = 2 * batch.model.nv + batch.model.na
    with pytest.raises(InvalidInput, match="gradient"):
        batch.vjp(np.zeros((batch.nsim, n + 1)))
    with pytest.raises(InvalidInput, match="control"):
        batch.jvp(control=np.zeros((batch.nsim, batch.model.nu + 1)))
