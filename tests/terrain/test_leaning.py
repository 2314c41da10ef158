"""Cylinders that lean on boxes, capsules and each other touch them where they do, and nothing lies
within unseen."""

import mujoco
import numpy as np
import pytest
from scipy.optimize import minimize

import stiction
from stiction.terrain.refinement import refine_contacts

PAIR = """<mujoco><worldbody>
  <body><freejoint/><geom {other} margin="1e-3"/></body>
  <body><freejoint/><geom type="cylinder" size=".035 .04" margin="1e-3"/></body>
</worldbody></mujoco>"""
OTHERS = {
    "box": 'type="box" size=".05 .04 .03"',
    "capsule": 'type="capsule" size=".03 .04"',
    "can": 'type="cylinder" size=".02 .06"',
}


def reach(model, data, geom, way):
    """How far a geom extends in a direction, from its middle."""
    size, local = model.geom_size[geom], data.geom_xmat[geom].reshape(3, 3).T @ way
    kind = mujoco.mjtGeom(int(model.geom_type[geom]))
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return np.abs(local) @ size
    side = 1.0 if kind == mujoco.mjtGeom.mjGEOM_CAPSULE else np.hypot(local[0], local[1])
    return side * size[0] + abs(local[2]) * size[1]


def separation(model, data, way):
    """How far apart the two geoms are along a direction."""
    way = way / np.linalg.norm(way)
    apart = (data.geom_xpos[1] - data.geom_xpos[0]) @ way
    return apart - reach(model, data, 0, way) - reach(model, data, 1, way)


def farthest_apart(model, data, start, rng):
    """The largest of all separations, which is the distance, by descent from many directions."""
    best = -np.inf
    for k in range(12):
        way = start + (0.5 * rng.normal(size=3) if k else 0.0)
        options = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 2000}
        found = minimize(
            lambda x: -separation(model, data, x), way, method="Nelder-Mead", options=options
        )
        best = max(best, -found.fun)
    return best


def bring_together(model, data, rng, overlap):
    """Puts the cylinder beside the other so that they overlap, the other one nearly upright."""
    mujoco.mju_euler2Quat(data.qpos[3:7], 0.2 * rng.normal(size=3), "xyz")
    if rng.random() < 0.5:
        data.qpos[10:14] = rng.normal(size=4)
    way = rng.normal(size=3)
    way /= np.linalg.norm(way)
    data.qpos[7:10] = 0.3 * way
    for _ in range(60):
        mujoco.mj_kinematics(model, data)
        data.qpos[7:10] -= (mujoco.mj_geomDistance(model, data, 0, 1, 1.0, None) + overlap) * way
    mujoco.mj_forward(model, data)


@pytest.mark.parametrize(
    ("other", "seen", "close"), [("box", 15, 1e-8), ("capsule", 4, 1e-8), ("can", 8, 3e-5)]
)
def test_the_deepest_contact_is_as_deep_as_the_bodies_are(other, seen, close):
    """Of poses in which MuJoCo has several contacts, of which some are off by tenths of a
    millimetre. Of two cylinders some lie on each other, along a line that is known less exactly."""
    model = mujoco.MjModel.from_xml_string(PAIR.format(other=OTHERS[other]))
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    off_before, off_after = [], []
    while len(off_after) < seen:
        bring_together(model, data, rng, rng.uniform(0.0, 4e-4))
        across = abs(data.geom_xmat[:, 2::3][0] @ data.geom_xmat[:, 2::3][1])
        if data.ncon < 2 or (other == "capsule" and across < 0.05):  # that lies on an end
            continue
        sign = 1.0 if data.contact.geom[0, 0] == 0 else -1.0
        true = farthest_apart(model, data, sign * data.contact.frame[0, :3], rng)
        off_before.append(abs(data.contact.dist.min() - true))
        refine_contacts(model._address, data._address)
        off_after.append(abs(data.contact.dist.min() - true))
    assert max(off_before) > 1e-4
    assert max(off_after) < close


def test_margins_do_not_change_the_contact():
    model = mujoco.MjModel.from_xml_string(PAIR.format(other=OTHERS["box"]))
    data, found = mujoco.MjData(model), []
    axes = [[0.84249582, 0.53216592, -0.08366738], [-0.53697559, 0.81717638, -0.20947551]]
    axes.append(np.cross(*axes))
    data.qpos[:3] = 0.1572798, -0.09449184, 0.09648496
    mujoco.mju_mat2Quat(data.qpos[3:7], np.array(axes).T.ravel())
    data.qpos[7:10] = 0.06104742, -0.08069463, 0.04001101
    for margin in (0.0, 1e-4, 1e-3, 1e-2):
        model.geom_margin[:] = margin
        mujoco.mj_forward(model, data)
        refine_contacts(model._address, data._address)
        assert data.ncon == 1
        found.append(np.r_[data.contact.dist, data.contact.pos[0], data.contact.frame[0, :3]])
    assert found[0][0] == pytest.approx(-2.02e-4, rel=0.01)
    assert np.abs(np.array(found) - found[0]).max() < 1e-12


EDGE = """<mujoco><option timestep=".002"/><worldbody>
  <geom type="plane" size="1 1 .1" friction=".8"/>
  <geom type="box" size=".3 .1 .1" pos="0 0 .07071" euler="{roll} 0 0" friction=".8"/>
  <body pos="{x} 0 {z}" {turn}><freejoint/>
    <geom type="cylinder" size=".05 .04" mass=".3" friction=".8"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("lying", [False, True])
def test_a_can_that_stands_or_lies_on_an_edge_rests_on_a_line(lying):
    """Balanced on the edge of a box that stands on its own edge: two contacts, both on the edge,
    none of them deeper than the other."""
    top = 0.07071 + 0.1 * np.sqrt(2.0)
    z = top + (0.05 if lying else 0.04) - 1e-5
    turn = 'euler="0 90 0"' if lying else ""
    model = mujoco.MjModel.from_xml_string(EDGE.format(roll=45, x=0, z=z, turn=turn))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    refine_contacts(model._address, data._address)
    half = 0.04 if lying else 0.05
    assert data.ncon == 2
    assert np.abs(np.sort(data.contact.pos[:, 0]) - [-half, half]).max() < 1e-6
    assert np.abs(data.contact.dist + 1e-5).max() < 1e-9
    assert np.abs(np.abs(data.contact.frame[:, 2]) - 1.0).max() < 1e-9


def test_a_can_that_leans_on_a_box_comes_to_rest_beside_it():
    """With its foot on the ground and its side over an upper edge."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option timestep=".002"/><worldbody>
        <geom type="plane" size="1 1 .1" friction="1"/>
        <geom type="box" size=".03 .1 .03" pos="0 0 .03" friction="1"/>
        <body pos="-.085 0 .075" euler="0 25 0"><freejoint/>
          <geom type="cylinder" size=".02 .07" mass=".3" friction="1"/></body>
        </worldbody></mujoco>"""
    )
    data, simulator = mujoco.MjData(model), stiction.Simulator(model)
    simulator.step(data, 1000)
    before = data.qpos.copy()
    simulator.step(data, 200)
    assert np.array_equal(data.qpos, before)
    mujoco.mj_forward(model, data)
    assert data.geom_xpos[2][2] > 0.03  # it leans, and does not lie
