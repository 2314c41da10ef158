"""Assembly and disassembly against the dense way: J M^-1 J', M^-1 tau, and their KKT system.

Inertias are compared in units of their diagonal, the largest of the same kind (angular or
linear); joint accelerations in the norm of the mass matrix.
"""

import importlib
import os
import warnings

import mujoco
import numpy as np
import pytest
from dense_way import (
    AGREE,
    BALL,
    GRIPPED,
    HINGE,
    SLIDE,
    add_link,
    chain,
    check,
    compiled,
    forest,
    jacobian,
    state,
)

from stiction import InvalidInput, articulated
from stiction.articulated.order import order_of_assembly

# Two workers would compile the same kernels at once.
pytestmark = pytest.mark.xdist_group("articulated")
ROBOTS = ("humanoid", "humanoid_CMU", "dog", "quadruped")


@pytest.mark.parametrize("armature", [0.0, 1e-6, 0.5])
@pytest.mark.parametrize("kind", [HINGE, SLIDE, BALL], ids=["hinge", "slide", "ball"])
@pytest.mark.parametrize("links", [1, 2, 3, 8, 21])
def test_chains_agree_with_the_dense_way(links, kind, armature):
    model = chain(links, kind, armature)
    check(model, state(model), sorted({1, (links + 1) // 2, links}))


@pytest.mark.parametrize("seed", range(12))
def test_random_forests_agree_with_the_dense_way(seed):
    model = forest(14, seed, roots=1 + seed % 3)
    if model.nv:
        data = state(model, seed)
        moving = [b for b in range(1, model.nbody) if model.body_treeid[b] >= 0]
        picked = np.random.default_rng(seed).permutation(moving)[:5]
        check(model, data, picked, seed)


def test_all_links_can_be_handles():
    model = forest(14, seed=3)
    check(model, state(model), [b for b in range(1, 15) if model.body_treeid[b] >= 0])


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    reason = "dm_control, whose robots these are, is not installed"
    with pytest.MonkeyPatch.context() as patched:
        if "MUJOCO_GL" not in os.environ:
            patched.setenv("MUJOCO_GL", "disable")  # dm_control looks for one when it is imported
        pytest.importorskip("dm_control", reason=reason)
        return robot_model(request.param)


def robot_model(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module(f"dm_control.suite.{name}")
        common = importlib.import_module("dm_control.suite.common")
        if name == "dog":
            xml, assets = module.get_model_and_assets(10, True)
        elif name == "quadruped":
            xml, assets = module.make_model(), common.ASSETS
        else:
            xml, assets = module.get_model_and_assets()
    return mujoco.MjModel.from_xml_string(xml if isinstance(xml, str) else xml.decode(), assets)


@pytest.mark.parametrize("seed", range(3))
def test_robots_agree_with_the_dense_way(robot, seed):
    picked = 1 + np.random.default_rng(seed).permutation(robot.nbody - 1)[:6]
    data = state(robot, seed)
    check(robot, data, [int(b) for b in picked], seed)
    np.testing.assert_allclose(
        articulated.accelerations(robot, data),
        data.qacc_smooth,
        rtol=0,
        atol=AGREE * np.abs(data.qacc_smooth).max(),
    )


def test_bodies_fixed_to_the_world_and_mocap_bodies_do_not_move():
    model = mujoco.MjModel.from_xml_string(GRIPPED.format(""))
    data = state(model)
    inertia, bias = articulated.inverse_inertia(model, data, ["base", "arm"])
    assert not inertia[:6].any()
    assert not bias[:6].any()
    check(model, data, [2, 4])


def test_a_body_without_joints_moves_with_its_parent():
    model = mujoco.MjModel.from_xml_string(GRIPPED.format(""))
    data = state(model)
    inertia, _ = articulated.inverse_inertia(model, data, ["forearm", "hand"])
    r = data.xipos[4] - data.xipos[3]
    shift = np.eye(6)
    shift[3:, :3] = -np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    np.testing.assert_allclose(inertia[6:, :6], shift @ inertia[:6, :6], atol=1e-10)


def test_links_in_trees_of_their_own_do_not_feel_each_other():
    model = mujoco.MjModel.from_xml_string(GRIPPED.format(""))
    inertia, _ = articulated.inverse_inertia(model, state(model), ["hand", "box"])
    assert not inertia[:6, 6:].any()


def test_order_and_frame_are_those_of_mujoco():
    """A free body at rest: a torque turns it, a force moves its centre, gravity is in the bias."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom type='box' size='.1 .2 .3' pos='.5 0 0'/>"
        "</body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    inertia, bias = articulated.inverse_inertia(model, data, [1])
    expected = 1 / np.concatenate([model.body_inertia[1], np.full(3, model.body_mass[1])])
    order = np.argsort(model.body_inertia[1])[::-1]
    assert inertia.diagonal()[3:] == pytest.approx(expected[3:])
    assert sorted(inertia.diagonal()[:3]) == pytest.approx(expected[order])
    np.testing.assert_allclose(bias, [0, 0, 0, 0, 0, -9.81], atol=1e-12)


def test_bias_is_what_mujocos_own_accelerations_show():
    model = chain(6, BALL)
    data = state(model)
    mujoco.mj_rnePostConstraint(model, data)
    _, bias = articulated.inverse_inertia(model, data, range(1, 7))
    seen = np.zeros(6)
    for i in range(6):
        mujoco.mj_objectAcceleration(model, data, mujoco.mjtObj.mjOBJ_BODY, i + 1, seen, 0)
        seen[3:] += model.opt.gravity  # theirs is what an accelerometer feels
        np.testing.assert_allclose(bias[6 * i :][:6], seen, atol=1e-9 * np.abs(bias).max())


def test_light_links_between_heavy_ones_keep_their_digits():
    rng, spec = np.random.default_rng(1), mujoco.MjSpec()
    body = spec.worldbody
    for i in range(8):
        body = add_link(body, rng, HINGE, density=1000.0 if i % 2 else 1.0)
    model = compiled(spec)
    check(model, state(model), [2, 4, 6, 8])


def test_joint_axes_in_line_need_armature():
    spec = mujoco.MjSpec()
    body = add_link(spec.worldbody, np.random.default_rng(0), None)
    for axis in ([1, 0, 0], [0, 1, 0], [0, 0, 1]):
        body.add_joint(type=HINGE, axis=axis, armature=0.01)
    model = compiled(spec)
    data = mujoco.MjData(model)
    data.qpos[1] = np.pi / 2  # the third axis falls on the first
    mujoco.mj_forward(model, data)
    check(model, data, [1])
    model.dof_armature[:] = 0.0
    data.qpos[:] = 0.0
    model.jnt_axis[2] = model.jnt_axis[0]
    mujoco.mj_forward(model, data)
    with pytest.raises(InvalidInput, match="singular"):
        articulated.accelerations(model, data)


@pytest.mark.parametrize("armature", [0.0, 1.0])
def test_a_thousand_links_agree_with_the_factorized_mass_matrix(armature):
    model = chain(1000, HINGE, armature)
    data = state(model, speed=0.1)
    bodies = [1, 500, 1000]
    rows = np.concatenate([jacobian(model, data, b) for b in bodies])
    half = np.zeros_like(rows)
    mujoco.mj_solveM(model, data, half, rows)
    inertia, _ = articulated.inverse_inertia(model, data, bodies)
    scale = np.sqrt(np.abs((rows @ half.T).diagonal()))
    off = np.abs(inertia - rows @ half.T) / np.outer(scale, scale)
    assert off.max() < 1e-8  # the two are 4e-10 and 3e-12 apart; without armature M is the worse


@pytest.mark.parametrize("links", [1, 2, 3, 64, 1000])
def test_the_order_of_a_chain_is_balanced_and_keeps_few_handles(links):
    ends = np.column_stack([np.arange(-1, links - 1), np.arange(links)])
    wanted = np.zeros(links, np.int64)
    wanted[-1] = 1
    order = order_of_assembly(ends, np.zeros(links, np.int64), wanted, 0)
    assert sorted(order.join[:, 0]) == list(range(links))
    depth = np.zeros(links + len(order.join), int)
    for k, (_, left, right, _, _) in enumerate(order.join):
        depth[links + k] = 1 + max(depth[left] if left >= 0 else 0, depth[right])
    assert depth[-1] <= 2 * np.log2(links) + 2
    assert np.diff(order.first).max() <= 3


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_any_tree_have_at_most_two_handles_besides_those_asked_for(seed):
    rng, links = np.random.default_rng(seed), 200
    parents = [-1] + [int(rng.integers(max(0, i - 10), i)) for i in range(1, links)]
    ends = np.column_stack([parents, np.arange(links)])
    wanted = np.zeros(links, np.int64)
    wanted[rng.permutation(links)[:3]] = 1
    order = order_of_assembly(ends, np.zeros(links, np.int64), wanted, 0)
    for part in range(len(order.first) - 1):
        own = order.handle[order.first[part] : order.first[part + 1], 0]
        assert np.count_nonzero(wanted[own] == 0) <= 2


def test_data_are_only_read():
    model = forest(10, 1)
    data = state(model)
    before = [np.array(getattr(data, name)) for name in ("qpos", "qvel", "cdof", "qfrc_smooth")]
    articulated.inverse_inertia(model, data, [3])
    articulated.accelerations(model, data, [3], np.ones((1, 6)))
    after = [getattr(data, name) for name in ("qpos", "qvel", "cdof", "qfrc_smooth")]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_no_bodies_and_models_without_joints_give_empty_arrays():
    model = chain(3)
    inertia, bias = articulated.inverse_inertia(model, state(model), [])
    assert inertia.shape == (0, 0)
    assert bias.shape == (0,)
    still = mujoco.MjModel.from_xml_string("<mujoco><worldbody><body/></worldbody></mujoco>")
    data = mujoco.MjData(still)
    mujoco.mj_forward(still, data)
    assert articulated.accelerations(still, data).shape == (0,)
    assert not articulated.inverse_inertia(still, data, [1])[0].any()


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ([0], r"bodies\[0\].*world"),
        (["world"], r"bodies\[0\].*world"),
        ([1, 9], r"bodies\[1\].*is 9.*1 to 5"),
        ([-1], r"bodies\[0\].*is -1"),
        (["arm"], r"bodies\[0\].*'arm'.*no such body"),
        ([2, 1, 2], r"bodies\[2\].*again.*bodies\[0\]"),
        ([1.0], r"bodies\[0\].*number or name"),
        ("link", "sequence"),
        (3, "sequence"),
    ],
)
def test_wrong_bodies_are_named(bodies, message):
    model = chain(5)
    with pytest.raises(InvalidInput, match=message):
        articulated.inverse_inertia(model, state(model), bodies)


@pytest.mark.parametrize(
    ("wrenches", "message"),
    [
        (np.zeros((2, 6)), r"wrenches \(shape \(2, 6\)\): must have shape \(1, 6\)"),
        (np.zeros(5), "must have shape"),
        ([[0, 0, 0, 0, 0, np.nan]], r"wrenches\[0, 5\].*finite"),
        ("pull", "real numbers"),
    ],
)
def test_wrong_wrenches_are_named(wrenches, message):
    model = chain(2)
    with pytest.raises(InvalidInput, match=message):
        articulated.accelerations(model, state(model), [2], wrenches)


def test_data_of_another_model_are_refused():
    with pytest.raises(InvalidInput, match="another model"):
        articulated.inverse_inertia(chain(3), state(chain(2)), [1])
    one, other = (
        mujoco.MjModel.from_xml_string(
            "<mujoco><worldbody><body><joint/><geom size='.1'/>"
            f"{'<site/>' * sites}</body></worldbody></mujoco>"
        )
        for sites in (0, 3)
    )
    with pytest.raises(InvalidInput, match="another model"):
        articulated.accelerations(one, state(other))
    with pytest.raises(InvalidInput, match=r"data.*MjData"):
        articulated.accelerations(one, None)
    with pytest.raises(InvalidInput, match=r"model.*MjModel"):
        articulated.inverse_inertia("model.xml", state(one), [1])
