"""Closed loops by assembly and disassembly, beside the KKT system."""

import mujoco
import numpy as np
import pytest
from dense_way import (
    BALL,
    GRIPPED,
    HINGE,
    add_link,
    check,
    compiled,
    jacobian,
    state,
)

from stiction import articulated

# Two workers would compile the same kernels at once.
pytestmark = pytest.mark.xdist_group("articulated")

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
