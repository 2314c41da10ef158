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

from stiction import InvalidInput, articulated
from stiction.articulated.order import order_of_assembly

# Two workers would compile the same kernels at once.
pytestmark = pytest.mark.xdist_group("articulated")

AGREE = 1e-9
AXES = np.eye(3)
HINGE, SLIDE = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE
BALL, FREE = mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_FREE
ROBOTS = ("humanoid", "humanoid_CMU", "dog", "quadruped")


def compiled(spec):
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return spec.compile()


def add_link(parent, rng, kind=HINGE, armature=0.0, density=1000.0):
    body = parent.add_body(pos=[0.02, 0.0, -0.2] + 0.02 * rng.normal(size=3))
    if kind == FREE:
        body.add_freejoint()
    elif kind is not None:
        axis = rng.normal(size=3)
        body.add_joint(type=kind, axis=axis / np.linalg.norm(axis), armature=armature)
    size = rng.uniform(0.02, 0.05, 3)
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=size, pos=[0, 0, -0.1], density=density)
    return body


def chain(links, kind=HINGE, armature=0.0, seed=0):
    rng, spec = np.random.default_rng(seed), mujoco.MjSpec()
    body = spec.worldbody
    for _ in range(links):
        body = add_link(body, rng, kind, armature)
    return compiled(spec)


def forest(links, seed, roots=2):
    """Random trees of all joints, some of several, some bodies without one, some armature."""
    rng, spec = np.random.default_rng(seed), mujoco.MjSpec()
    bodies = [
        add_link(spec.worldbody, rng, [FREE, BALL, HINGE, None][int(rng.integers(4))])
        for _ in range(roots)
    ]
    for _ in range(links - roots):
        kind = [HINGE, HINGE, SLIDE, BALL, None][int(rng.integers(5))]
        armature = float(rng.choice([0.0, 0.01, 1.0]))
        body = add_link(bodies[int(rng.integers(len(bodies)))], rng, kind, armature)
        if kind == HINGE and rng.random() < 0.4:
            body.add_joint(
                type=HINGE, axis=rng.normal(size=3), armature=float(rng.choice([0, 0.1]))
            )
        bodies.append(body)
    return compiled(spec)


def state(model, seed=0, speed=1.0):
    """Random positions, velocities and forces."""
    rng, data = np.random.default_rng(seed), mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
    data.qvel = speed * rng.normal(size=model.nv)
    data.qfrc_applied = rng.normal(size=model.nv)
    data.xfrc_applied = rng.normal(size=(model.nbody, 6))
    data.ctrl = rng.uniform(-1, 1, model.nu)
    mujoco.mj_forward(model, data)
    return data


def jacobian(model, data, body, point=None, dot=False):
    """(6, nv) angular rows, then linear ones, at a point [m], the body's centre unless given."""
    rows = np.zeros((2, 3, model.nv))
    place = data.xipos[body] if point is None else point
    (mujoco.mj_jacDot if dot else mujoco.mj_jac)(model, data, rows[1], rows[0], place, body)
    return rows.reshape(6, model.nv)


def mass_matrix(model, data):
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    return full


def reference(model, data, bodies, wrenches, rows=None, target=None):
    """Inertia, bias and qacc by the dense way, under rows qacc = target."""
    mass = mass_matrix(model, data)
    J = np.concatenate([jacobian(model, data, b) for b in bodies])
    drift = np.concatenate([jacobian(model, data, b, dot=True) for b in bodies]) @ data.qvel
    upper = np.linalg.cholesky(mass).T  # coordinates x = upper qacc have unit mass
    J_w = np.linalg.solve(upper.T, J.T).T
    force = np.linalg.solve(upper.T, data.qfrc_smooth)
    held, start = np.eye(model.nv), np.zeros(model.nv)
    if rows is not None:
        inverse = np.linalg.pinv(np.linalg.solve(upper.T, rows.T).T, rcond=1e-8)
        held -= inverse @ np.linalg.solve(upper.T, rows.T).T
        start = inverse @ target
    inertia = J_w @ held @ J_w.T
    bias = J_w @ (held @ force + start) + drift
    qacc = np.linalg.solve(upper, held @ (force + J_w.T @ wrenches) + start)
    return inertia, bias, qacc


def per_entry(angular, linear):
    """Scales of six entries; what only slides, or only turns, is measured by links of 0.1 m."""
    return np.repeat([max(angular, linear / 0.1), max(linear, angular * 0.1)], 3) + 1e-12


def check(model, data, bodies, seed=0, tolerance=AGREE, **held):
    wrenches = np.random.default_rng(seed).normal(size=6 * len(bodies))
    inertia, bias, qacc = reference(model, data, bodies, wrenches, **held)
    own_inertia, own_bias = articulated.inverse_inertia(model, data, bodies)
    own_qacc = articulated.accelerations(model, data, bodies, wrenches)
    size = np.sqrt(inertia.diagonal().clip(0)).reshape(-1, 2, 3).max(axis=(0, 2))
    scale = np.tile(per_entry(*size), len(bodies))
    assert np.abs((own_inertia - inertia) / np.outer(scale, scale)).max() < tolerance
    assert np.array_equal(own_inertia, own_inertia.T)
    size = np.abs(bias).reshape(-1, 2, 3).max(axis=(0, 2))
    assert np.abs((own_bias - bias) / np.tile(per_entry(*size), len(bodies))).max() < tolerance
    mass = mass_matrix(model, data)
    off = own_qacc - qacc
    assert np.sqrt(off @ mass @ off) < tolerance * np.sqrt(qacc @ mass @ qacc)


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
    os.environ.setdefault("MUJOCO_GL", "disable")
    reason = "dm_control, whose robots these are, is not installed"
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


FOUR_BAR = """
<mujoco>
  <default><geom type="capsule" size=".02"/><joint axis="0 1 0"/></default>
  <worldbody>
    <body name="crank" pos="0 0 1"><joint/><geom fromto="0 0 0 0 0 .2"/>
      <body name="coupler" pos="0 0 .2"><joint/><geom fromto="0 0 0 .4 0 .1"/></body>
    </body>
    <body name="rocker" pos=".4 0 1"><joint armature=".001"/><geom fromto="0 0 0 0 0 .3"/></body>
  </worldbody>
  <equality><connect body1="coupler" body2="rocker" anchor=".4 0 .1"/></equality>
</mujoco>"""

GRIPPED = """
<mujoco>
  <default><default class="rod"><geom type="capsule" size=".03"/></default></default>
  <worldbody>
    <body name="base" mocap="true"><geom size=".02"/></body>
    <body name="arm" pos="0 0 1">
      <joint axis="0 1 0"/>
      <geom class="rod" fromto="0 0 0 .3 0 0"/>
      <body name="forearm" pos=".3 0 0">
        <joint type="ball"/>
        <geom class="rod" fromto="0 0 0 .3 .1 0"/>
        <body name="hand" pos=".3 .1 0">
          <geom type="box" size=".03 .04 .02"/>
          <site name="grip" pos=".05 0 0"/>
        </body>
      </body>
    </body>
    <body name="box" pos=".6 .1 1">
      <freejoint/>
      <geom type="box" size=".05 .03 .04"/>
      <site name="held"/>
    </body>
    <body name="ball" pos="1 1 1"><freejoint/><geom size=".05"/></body>
  </worldbody>
  <equality>{}</equality>
</mujoco>"""

WELD = '<weld body1="hand" body2="box"/>'
GRIPS = {
    "weld": WELD,
    "connect": '<connect body1="box" body2="hand" anchor=".05 .02 0"/>',
    "sites": '<weld site1="grip" site2="held"/>',
    "to a mocap body": '<weld body1="base" body2="box"/>'
    '<connect body1="hand" body2="box" anchor="0 0 0"/>',
    "to the world": '<connect body1="hand" anchor=".1 0 0"/>',
    "three in a row": WELD + '<connect body1="ball" body2="box" anchor="0 .1 0"/>',
    "twice": WELD + '<connect body1="hand" body2="box" anchor=".1 0 0"/>',
    "to itself": '<weld body1="hand" body2="forearm"/>',
    "inactive": '<weld body1="hand" body2="box" active="false"/>',
}


def loop_rows(model, data):
    """Rows of all active loops, from the Jacobians of their points, and their qacc target."""
    rows, target = [np.zeros((0, model.nv))], [np.zeros(0)]
    for e in np.flatnonzero(data.eq_active):
        weld = model.eq_type[e] == mujoco.mjtEq.mjEQ_WELD
        total, drift = 0.0, 0.0
        for side, number in enumerate((model.eq_obj1id[e], model.eq_obj2id[e])):
            if model.eq_objtype[e] == mujoco.mjtObj.mjOBJ_SITE:
                body, point = model.site_bodyid[number], data.site_xpos[number]
            else:
                anchor = model.eq_data[e][3 * (1 - side if weld else side) :][:3]
                body = number
                point = data.xpos[body] + data.xmat[body].reshape(3, 3) @ anchor
            sign = 1.0 if side == 0 else -1.0
            total = total + sign * jacobian(model, data, body, point)
            drift = drift + sign * jacobian(model, data, body, point, dot=True) @ data.qvel
        total[np.abs(total) < 1e-12] = 0.0  # a loop from a link to itself has rows of rounding
        rows.append(total[0 if weld else 3 :])
        target.append(-drift[0 if weld else 3 :])
    return np.concatenate(rows), np.concatenate(target)


def check_loops(model, data, bodies, seed=0):
    """Checks with velocities that the loops allow, as their rows demand."""
    rows, _ = loop_rows(model, data)
    data.qvel -= np.linalg.pinv(rows, rcond=1e-9) @ (rows @ data.qvel)
    mujoco.mj_forward(model, data)
    rows, target = loop_rows(model, data)
    check(model, data, bodies, seed, rows=rows, target=target)
    qacc = articulated.accelerations(model, data)
    scale = np.abs(rows) @ np.abs(qacc) + np.abs(target)
    assert np.all(np.abs(rows @ qacc - target) <= 1e-9 * (1 + scale))


@pytest.mark.parametrize("seed", range(3))
def test_a_planar_loop_has_redundant_rows_and_agrees(seed):
    model = mujoco.MjModel.from_xml_string(FOUR_BAR)
    data = state(model, seed)
    assert np.linalg.matrix_rank(loop_rows(model, data)[0]) == 2
    check_loops(model, data, [1, 2, 3], seed)


@pytest.mark.parametrize("grip", GRIPS)
@pytest.mark.parametrize("seed", range(2))
def test_loops_agree_with_the_kkt_system(grip, seed):
    model = mujoco.MjModel.from_xml_string(GRIPPED.format(GRIPS[grip]))
    data = state(model, seed)
    if grip == "twice":  # redundant rows agree with each other where the loop is closed
        data.qpos[:] = model.qpos0
        mujoco.mj_forward(model, data)
    check_loops(model, data, [2, 3, 4, 5, 6], seed)


@pytest.mark.parametrize("grip", GRIPS)
def test_loops_hold_where_mujoco_holds_them(grip):
    model = mujoco.MjModel.from_xml_string(GRIPPED.format(GRIPS[grip]))
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = state(model, 1)
    count = data.ne
    theirs = data.efc_J.reshape(-1, model.nv)[:count]
    ours = loop_rows(model, data)[0]
    rank = np.linalg.matrix_rank(ours, tol=1e-9)
    assert np.linalg.matrix_rank(np.concatenate([ours, theirs]), tol=1e-9) == rank


def test_loops_can_be_left_out_by_argument_or_by_mujocos_flag():
    model = mujoco.MjModel.from_xml_string(GRIPPED.format(WELD))
    data = state(model)
    free = articulated.accelerations(model, data, loops=False)
    np.testing.assert_allclose(free, data.qacc_smooth, atol=1e-9 * np.abs(free).max())
    assert np.abs(articulated.accelerations(model, data) - free).max() > 1.0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EQUALITY
    assert np.array_equal(articulated.accelerations(model, data), free)


@pytest.mark.parametrize("links", [10, 100])
def test_a_long_planar_loop_finds_its_redundant_rows(links):
    """A chain of parallel hinges pinned twice to the world: two of six rows are independent."""
    spec = mujoco.MjSpec()
    body = spec.worldbody
    for i in range(links):
        body = body.add_body(pos=[0.1 if i else 0.0, 0, 0], name=f"link{i}")
        body.add_joint(type=HINGE, axis=[0, 1, 0])
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CAPSULE, fromto=[0, 0, 0, 0.1, 0, 0], size=[0.02, 0, 0]
        )
    for _ in range(2):
        loop = spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT, name1=body.name)
        loop.objtype = mujoco.mjtObj.mjOBJ_BODY
        loop.data[:3] = [0.1, 0, 0]
    model = compiled(spec)
    check_loops(model, state(model, speed=0.1), [1, links // 2, links])


@pytest.mark.parametrize("seed", range(4))
def test_ladders_of_loops_agree_with_the_kkt_system(seed):
    """Two chains with rungs between them: many loops open at once, and none redundant."""
    rng, spec = np.random.default_rng(seed), mujoco.MjSpec()
    rails = []
    for _ in range(2):
        body, rail = spec.worldbody, []
        for _ in range(8):
            body = add_link(body, rng, BALL)
            rail.append(body)
        rails.append(rail)
    for i, (left, right) in enumerate(zip(*rails, strict=True)):
        left.name, right.name = f"left{i}", f"right{i}"
        if i % 2:
            loop = spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT, name1=left.name)
            loop.objtype, loop.name2 = mujoco.mjtObj.mjOBJ_BODY, right.name
            loop.data[:3] = [0.05, 0.0, -0.1]
    model = compiled(spec)
    check_loops(model, state(model, seed), [3, 8, 12, 16], seed)


def test_redundant_welds_between_the_ends_of_a_chain_and_the_world_agree():
    """Both ends of a chain held twice: its middle still moves."""
    rng, spec = np.random.default_rng(5), mujoco.MjSpec()
    body = spec.worldbody
    for i in range(7):
        body = add_link(body, rng, BALL)
        body.name = f"link{i}"
    for _ in range(2):
        loop = spec.add_equality(type=mujoco.mjtEq.mjEQ_WELD, name1="link6")
        loop.objtype = mujoco.mjtObj.mjOBJ_BODY
    model = compiled(spec)
    data = mujoco.MjData(model)
    data.qvel = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    check_loops(model, data, [2, 4, 7])


def test_a_closed_chain_falls_without_moving_against_itself():
    """Free bodies welded in a ring are one rigid body: they fall as it does."""
    spec = mujoco.MjSpec()
    for i in range(4):
        body = spec.worldbody.add_body(name=f"b{i}", pos=[np.cos(i), np.sin(i), 0])
        body.add_freejoint()
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.1, 0, 0])
    for i in range(4):
        loop = spec.add_equality(
            type=mujoco.mjtEq.mjEQ_WELD, name1=f"b{i}", name2=f"b{(i + 1) % 4}"
        )
        loop.objtype = mujoco.mjtObj.mjOBJ_BODY
    model = compiled(spec)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    inertia, bias = articulated.inverse_inertia(model, data, ["b0", "b2"])
    np.testing.assert_allclose(bias, np.tile([0, 0, 0, 0, 0, -9.81], 2), atol=1e-12)
    total = model.body_mass.sum()
    push = np.linalg.solve(inertia[:6, :6], [0, 0, 0, 0, 0, 1.0])  # wrench that lifts all of it
    assert push[5] == pytest.approx(total, rel=1e-12)


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
