"""Smoothed derivatives in compiled code beside those from arrays, by products and by batches."""

import numpy as np
import pytest
from mjcf import load
from numpy.testing import assert_allclose

import stiction

SMOOTHINGS = (1e-1, 1e-3, 1e-5)

PLATE = """
<mujoco><option timestep="0.002" gravity="0.3 0 -9.81" cone="elliptic"/>
<worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 .0499"><freejoint/>
    <geom type="box" size=".1 .08 .05" condim="{dim}" friction="{mu} 0.01 0.002"/>
    <body pos="0 0 .1"><joint name="turn" axis="0 1 0" frictionloss="{loss}" range="-.1 .05"
        limited="true"/>
      <geom type="capsule" fromto="0 0 0 .1 0 .1" size=".02"/></body></body>
  <body pos="0.4 0 .102"><freejoint/><geom type="sphere" size=".1" condim="{dim}"/></body>
</worldbody>
<actuator><motor joint="turn"/></actuator></mujoco>"""


def plate(dim, mu=0.6, loss=0.05, speed=0.3):
    """A plate on the floor with a dry joint at its limit, and a ball that is about to land."""
    model, data = load(PLATE.format(dim=dim, mu=mu, loss=loss))
    data.qpos[7] = 0.0499
    data.qvel[:2], data.qvel[9] = [speed, 0.1 * speed], -0.5
    return model, data


def compare(sim, data, smoothing, close=1e-7):
    """Compiled derivatives, which must be those from arrays."""
    want = sim.derivatives(data).smoothed_by_arrays(smoothing)
    have = sim.derivatives(data, smoothing=smoothing)
    assert have.is_compiled
    for name in ("A", "B"):
        own, other = getattr(have, name), getattr(want, name)
        assert_allclose(own, other, atol=close * max(1.0, np.abs(other).max(initial=0.0)))
    assert have.margin == want.margin
    assert have.modes == want.modes
    return have


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("scene", ["pinch", "grasp", "quadruped", "humanoid", "ragdoll"])
def test_scenes_have_the_smoothed_derivatives_of_their_arrays(scene, smoothing):
    model, data, control = stiction.scenes.load(scene)
    sim = stiction.Simulator(model)
    for _ in range(20):
        if control:
            control(model, data)
        sim.step(data)
    have = compare(sim, data, smoothing)
    assert np.abs(have.A - sim.derivatives(data).A).max() > 1e-9


@pytest.mark.parametrize(
    "contact",
    [
        stiction.Coulomb(),
        stiction.Coulomb(facets=6),
        stiction.NoSlip(),
        stiction.Viscous(0.5),
        stiction.Frictionless(),
    ],
    ids=str,
)
@pytest.mark.parametrize("dim", [1, 3, 4, 6])
def test_every_law_and_kind_of_row_has_them(contact, dim):
    # Without slip a plate that is stopped at once tips, held at points that then contradict.
    model, data = plate(dim, speed=0.0 if isinstance(contact, stiction.NoSlip) else 0.3)
    sim = stiction.Simulator(model, contact)
    for smoothing in SMOOTHINGS:
        compare(sim, data, smoothing)


@pytest.mark.parametrize("speed", [0.0, 0.3])
def test_torsional_rows_that_hold_each_other_and_a_dry_joint_do_not_spoil_them(speed):
    model, data = plate(4, mu=2.0, loss=50.0, speed=speed)
    sim = stiction.Simulator(model)
    have = compare(sim, data, 1e-3)
    assert np.isfinite(have.A).all()


def test_where_nothing_moves_there_is_a_derivative():
    model, data = plate(3, speed=0.0)
    model.opt.gravity[:] = 0.0
    data.qvel[:] = 0.0
    have = compare(stiction.Simulator(model), data, 1e-3)
    assert np.isfinite(have.A).all()


def test_less_smoothing_than_a_system_has_digits_for_is_taken_from_arrays():
    model, data = plate(3)
    sim = stiction.Simulator(model)
    found = sim.derivatives(data, smoothing=1e-12)
    assert not found.is_compiled
    assert_allclose(found.A, sim.derivatives(data).A, atol=1e-3)


def test_a_gap_is_felt_as_the_central_path_has_it():
    """A ball above a floor, in free fall: a single contact is on the path itself, where y / (x + y)
    of a change of the free velocity is left."""
    model, data = load("""
<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 .15"><joint type="slide" axis="0 0 1"/><geom type="sphere" size=".1"/></body>
</worldbody></mujoco>""")
    data.qpos[0], data.qvel[0] = -0.0485, -0.1
    smoothing, dt, gap = 1e-2, 0.01, 0.0015
    found = stiction.Simulator(model).derivatives(data, smoothing=smoothing)
    fall = abs(data.qvel[0]) + 9.81 * dt
    ahead = (-fall + gap / dt) / fall  # y - x: how much too fast it is, over its speed
    root = np.sqrt(0.25 * ahead**2 + smoothing)
    x, y = root - 0.5 * ahead, root + 0.5 * ahead
    assert found.A[1, 1] == pytest.approx(y / (x + y), rel=1e-9)
    assert found.A[1, 0] == pytest.approx(-x / (x + y) / dt, rel=1e-9)


def test_products_of_a_batch_are_those_of_its_matrices():
    model, data, control = stiction.scenes.load("quadruped")
    control(model, data)
    batch = stiction.Batch(model, 3, 1)
    batch.qpos[:], batch.ctrl[:] = data.qpos, data.ctrl
    batch.qvel[:] = 0.1 * np.random.default_rng(0).normal(size=(3, model.nv))
    A, B = batch.derivatives(smoothing=1e-3)
    rng = np.random.default_rng(1)
    x, u = rng.normal(size=(3, A.shape[1])), rng.normal(size=(3, model.nu))
    ahead = np.einsum("nij,nj->ni", A, x) + np.einsum("nij,nj->ni", B, u)
    assert_allclose(batch.jvp(x, u, smoothing=1e-3), ahead, atol=1e-9 * np.abs(ahead).max())
    by_state, by_control = batch.vjp(x, smoothing=1e-3)
    back = np.einsum("nij,ni->nj", A, x)
    assert_allclose(by_state, back, atol=1e-9 * np.abs(back).max())
    assert_allclose(by_control, np.einsum("nij,ni->nj", B, x), atol=1e-9)
    exact, _ = batch.derivatives()
    assert np.abs(exact - A).max() > 1e-3
    sim = stiction.Simulator(model)
    data.qvel[:] = batch.qvel[1]
    assert_allclose(A[1], sim.derivatives(data, smoothing=1e-3).A, atol=1e-9)


def test_models_that_go_by_differences_are_smoothed_in_batches_too():
    model, data = load("""
<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body name="a" pos="0 0 .101"><freejoint/><geom type="sphere" size=".1"/></body>
  <body name="b" pos=".5 0 .5"><freejoint/><geom type="sphere" size=".1"/></body></worldbody>
  <equality><weld body1="a" body2="b"/></equality></mujoco>""")
    data.qvel[2] = -0.5
    batch = stiction.Batch(model, 2, 1)
    batch.qpos[:], batch.qvel[:] = data.qpos, data.qvel
    A, _ = batch.derivatives(smoothing=1e-2)
    want = stiction.Simulator(model).derivatives(data).smoothed(1e-2).A
    assert_allclose(A[0], want, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("smoothing", [-1e-3, 1.0, np.nan, "much"])
def test_a_smoothing_that_is_none_is_refused(smoothing):
    model, data = plate(3)
    batch = stiction.Batch(model, 1, 1)
    for ask in (
        lambda: stiction.Simulator(model).derivatives(data, smoothing=smoothing),
        lambda: batch.derivatives(smoothing=smoothing),
        lambda: batch.jvp(smoothing=smoothing),
        lambda: batch.vjp(np.zeros((1, 2 * model.nv)), smoothing=smoothing),
    ):
        with pytest.raises(stiction.InvalidInput, match="smoothing"):
            ask()
