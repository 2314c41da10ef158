"""Steps as functions of PyTorch and JAX, checked against differences."""

import numpy as np
import pytest
from mjcf import load
from numpy.testing import assert_allclose

import stiction
from stiction.errors import InvalidInput
from stiction.gradients.function import Inputs, State, StepFunction

ARM = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body pos="0 0 .4"><joint name="a" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 -.2" size=".03"/>
      <body pos=".3 0 -.2"><joint name="b" axis="0 1 0" damping=".1"/>
        <geom type="sphere" pos=".1 0 -.15" size="{size}"/></body></body>
  </worldbody>
  <actuator><motor joint="a" gear="2"/>
    <general joint="b" dyntype="filter" dynprm=".05" gainprm="3"/></actuator>
</mujoco>"""
TOUCHING, CLEAR = 0.0502, 0.03


def arm(size=TOUCHING):
    model, _ = load(ARM.format(size=size))
    return stiction.Simulator(model)


def batch(sim, rng, shape=(3,)):
    m = sim.model
    return Inputs(
        np.zeros((*shape, m.nq)),
        np.abs(rng.normal(size=(*shape, m.nv))) * [0.3, 0.2],
        0.1 * rng.normal(size=(*shape, m.na)),
        rng.normal(size=(*shape, m.nu)),
    )


def test_gradients_go_back_through_quaternions():
    model, _ = load("""
<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="9 9 1"/>
  <body pos="0 0 .099"><freejoint/><geom type="sphere" size=".1" mass="2"/></body>
  <body pos="1 0 1"><joint type="ball"/><geom type="capsule" fromto="0 0 0 .3 0 .1" size=".02"/>
  </body></worldbody></mujoco>""")
    function, rng = StepFunction(stiction.Simulator(model)), np.random.default_rng(0)
    start = Inputs(model.qpos0 + 0.0, rng.normal(size=model.nv), np.zeros(0), np.zeros(0))
    start.qpos[3:7], start.qpos[7:] = [0.9, 0.1, 0.2, -0.4], [0.7, -0.5, 0.2, 0.3]  # not unit
    weight = State(rng.normal(size=model.nq), rng.normal(size=model.nv), np.zeros(0))
    end = function.forward(start).qpos
    by_q, by_v, *_ = function.pull(start, end, weight)

    def value(qpos, qvel):
        end = function.forward(start._replace(qpos=qpos, qvel=qvel))
        return end.qpos @ weight.qpos + end.qvel @ weight.qvel

    qpos, qvel = start[:2]
    for k in range(model.nq):
        move = 1e-6 * np.eye(model.nq)[k]
        want = (value(qpos + move, qvel) - value(qpos - move, qvel)) / 2e-6
        assert by_q[k] == pytest.approx(want, rel=1e-5, abs=1e-6)
    for k in range(model.nv):
        move = 1e-6 * np.eye(model.nv)[k]
        want = (value(qpos, qvel + move) - value(qpos, qvel - move)) / 2e-6
        assert by_v[k] == pytest.approx(want, rel=1e-5, abs=1e-6)
    change = Inputs(rng.normal(size=model.nq), rng.normal(size=model.nv), np.zeros(0), np.zeros(0))
    ahead = function.push(start, end, change)
    there = ahead.qpos @ weight.qpos + ahead.qvel @ weight.qvel
    assert there == pytest.approx(by_q @ change.qpos + by_v @ change.qvel)


def test_a_batch_of_wrong_shape_is_refused():
    function = StepFunction(arm())
    with pytest.raises(InvalidInput, match="ctrl"):
        function.forward(
            Inputs(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((2, 2)))
        )


def test_edits_of_the_model_are_followed():
    sim = arm(CLEAR)
    function, inputs = StepFunction(sim), batch(sim, np.random.default_rng(2))
    before = function.forward(inputs)
    sim.model.opt.gravity[2] = 0.0
    after = function.forward(inputs)
    assert np.abs(after.qvel - before.qvel).min() > 1e-3
    assert_allclose(after.qvel, StepFunction(sim).forward(inputs).qvel, atol=0.0)


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # by forward mode
@pytest.mark.parametrize("size", [TOUCHING, CLEAR])
def test_torch_agrees_with_its_own_gradcheck(size):
    torch = pytest.importorskip("torch")
    from stiction.gradients.torch import step

    sim = arm(size)
    qpos, qvel, act, ctrl = batch(sim, np.random.default_rng(1))
    inputs = [torch.tensor(part, requires_grad=True) for part in (qpos, qvel, ctrl, act)]
    assert torch.autograd.gradcheck(
        lambda *parts: step(sim, *parts),
        inputs,
        eps=1e-6,
        atol=1e-5,
        rtol=1e-4,
        check_forward_ad=True,
    )
    alone = step(sim, inputs[0][0], inputs[1][0])
    assert [tuple(part.shape) for part in alone] == [(2,), (2,), (1,)]


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_gradients_alone_are_smoothed(library):
    pytest.importorskip(library)
    sim = arm(TOUCHING)
    inputs = batch(sim, np.random.default_rng(1))
    function, given = StepFunction(sim), (inputs.qpos, inputs.qvel, inputs.ctrl, inputs.act)
    end = function.forward(inputs)
    one = State(*(np.ones(part.shape) for part in end))
    if library == "torch":
        import torch

        from stiction.gradients.torch import step

        tensors = [torch.tensor(part, requires_grad=True) for part in given]
        ends = step(sim, *tensors, smoothing=1e-2)
        sum(part.sum() for part in ends).backward()
        found = [part.grad.numpy() for part in tensors]
    else:
        import jax

        from stiction.gradients.jax import make_step

        jax.config.update("jax_enable_x64", True)
        smooth = make_step(sim, smoothing=1e-2)
        ends = smooth(*given)
        value = jax.grad(lambda *parts: sum(part.sum() for part in smooth(*parts)), (0, 1, 2, 3))
        found = value(*given)
    for part, own in zip(ends, end, strict=True):
        assert_allclose(np.asarray(part.detach() if library == "torch" else part), own, atol=0.0)
    want = function.pull(inputs, end.qpos, one, 1e-2)
    assert np.abs(want.qvel - function.pull(inputs, end.qpos, one).qvel).max() > 1e-6
    for have, part in zip(found, (want.qpos, want.qvel, want.ctrl, want.act), strict=True):
        assert_allclose(have, part, atol=1e-12)


@pytest.mark.parametrize("size", [TOUCHING, CLEAR])
def test_jax_agrees_with_differences_under_jit_and_vmap(size):
    jax = pytest.importorskip("jax")
    from stiction.gradients.jax import make_step

    jax.config.update("jax_enable_x64", True)
    sim, rng = arm(size), np.random.default_rng(1)
    qpos, qvel, act, ctrl = batch(sim, rng)
    step, function = make_step(sim), StepFunction(sim)
    weight = State(*(rng.normal(size=n) for n in function.sizes[:3]))

    def value(qpos, qvel, ctrl, act):
        ends = step(qpos, qvel, ctrl, act)
        return sum((end * part).sum() for end, part in zip(ends, weight, strict=True))

    found = jax.jit(jax.vmap(jax.grad(value, argnums=(0, 1, 2, 3))))(qpos, qvel, ctrl, act)
    inputs = Inputs(qpos, qvel, act, ctrl)
    end = function.forward(inputs).qpos
    want = function.pull(inputs, end, State(*(np.tile(w, (3, 1)) for w in weight)))
    for have, part in zip(found, (want.qpos, want.qvel, want.ctrl, want.act), strict=True):
        assert_allclose(have, part, atol=1e-10)
    eps = 1e-6
    for k in range(sim.model.nu):
        move = eps * np.eye(sim.model.nu)[k]
        ends = [value(qpos[0], qvel[0], ctrl[0] + sign * move, act[0]) for sign in (1, -1)]
        assert float(found[2][0, k]) == pytest.approx(
            float(ends[0] - ends[1]) / (2 * eps), abs=1e-5
        )
