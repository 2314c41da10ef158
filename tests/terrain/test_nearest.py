"""Contacts that MuJoCo's iterations find roughly are found to rounding."""

import mujoco
import numpy as np
import pytest

import stiction
from stiction.terrain.refinement import refine_contacts

GEOMS = {
    "sphere": 'type="sphere" size=".1"',
    "capsule": 'type="capsule" size=".06 .1"',
    "ellipsoid": 'type="ellipsoid" size=".06 .1 .14"',
    "cylinder": 'type="cylinder" size=".07 .1"',
    "box": 'type="box" size=".06 .09 .12"',
}
ROUGH = [("sphere", "ellipsoid"), ("capsule", "ellipsoid"), ("capsule", "cylinder")]
ROUGH += [("ellipsoid", name) for name in ("ellipsoid", "cylinder", "box")]
ROUGH += [("cylinder", "cylinder"), ("cylinder", "box")]


def pose(first, second, seed, overlap):
    """(model, data) of two geoms at a random attitude that overlap so much."""
    rng = np.random.default_rng(seed)
    way, turn = rng.normal(size=3), " ".join(map(str, rng.uniform(-90.0, 90.0, 3)))
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><worldbody><geom {GEOMS[first]} margin="1e-3" euler="20 30 40"/>
        <body euler="{turn}"><freejoint/><geom {GEOMS[second]} margin="1e-3"/></body>
        </worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    way /= np.linalg.norm(way)
    data.qpos[:3] = 0.5 * way
    for _ in range(60):
        mujoco.mj_kinematics(model, data)
        off = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, None) + overlap
        data.qpos[:3] -= off * way
    return model, data


def collide(model, data):
    """The contacts of a pair as MuJoCo has them, and then as a step has them: rows of gap, point,
    normal."""
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_collision(model, data)
    both = []
    for _ in range(2):
        contacts = data.contact
        rows = (contacts.dist[:, None], contacts.pos, contacts.frame[:, :3])
        both.append(np.concatenate(rows, axis=1).copy())
        refine_contacts(model._address, data._address)
    return both


def reach(model, data, geom, way):
    """How far a geom extends in a direction, from the origin."""
    size, local = model.geom_size[geom], data.geom_xmat[geom].reshape(3, 3).T @ way
    kind = mujoco.mjtGeom(int(model.geom_type[geom])).name[7:].lower()
    far = {
        "sphere": size[0],
        "capsule": size[0] + size[1] * abs(local[2]),
        "ellipsoid": np.linalg.norm(size * local),
        "cylinder": size[0] * np.hypot(local[0], local[1]) + size[1] * abs(local[2]),
        "box": size @ np.abs(local),
    }[kind]
    return data.geom_xpos[geom] @ way + far


def separation(model, data, way):
    """How far apart two geoms are along a direction."""
    return -reach(model, data, 1, -way) - reach(model, data, 0, way)


@pytest.mark.parametrize("overlap", [1e-4, -1e-4])
@pytest.mark.parametrize(("first", "second"), ROUGH)
def test_the_normal_is_the_direction_in_which_geoms_are_farthest_apart(first, second, overlap):
    rng, seen = np.random.default_rng(0), 0
    for seed in range(12):
        model, data = pose(first, second, seed, overlap)
        before, after = collide(model, data)
        if len(before) != 1 or len(after) != 1:
            continue
        seen += 1
        gap, normal = after[0, 0], after[0, 4:]
        if model.geom_type[0] > model.geom_type[1]:
            normal = -normal
        assert separation(model, data, normal) == pytest.approx(gap, abs=1e-13)
        for _ in range(20):
            way = normal + 1e-4 * rng.normal(size=3)
            assert separation(model, data, way / np.linalg.norm(way)) < gap + 1e-13
    assert seen >= 8


@pytest.mark.parametrize(("first", "second"), ROUGH)
def test_a_contact_moves_no_farther_than_its_geoms(first, second):
    """By a few times as much, where they are curved; MuJoCo's jumps by a thousand times that."""
    for seed in (0, 2, 3):
        model, data = pose(first, second, seed, 1e-4)
        _, here = collide(model, data)
        data.qpos[:3] += 1e-8
        _, there = collide(model, data)
        assert np.abs(there - here).max() < 3e-6


def test_of_two_ellipsoids_mujoco_has_a_normal_that_is_a_thousandth_off():
    """Else what is tested here is no more needed."""
    off = []
    for seed in range(12):
        before, after = collide(*pose("ellipsoid", "ellipsoid", seed, 1e-4))
        off.append(np.abs(before - after).max())
    assert max(off) > 2e-4


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("where", ["face", "edge", "corner"])
def test_an_ellipsoid_finds_the_feature_of_a_box_that_it_touches(where, seed):
    rng = np.random.default_rng(seed)
    model, data = pose("ellipsoid", "box", seed, 1e-4)
    box = int(np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_BOX)[0])
    turn, half = data.geom_xmat[box].reshape(3, 3), model.geom_size[box]
    ends = {"face": 1, "edge": 2, "corner": 3}[where]
    at = np.where(np.arange(3) < ends, 1.0, rng.uniform(-0.5, 0.5, 3)) * half
    way = np.where(np.arange(3) < ends, rng.uniform(0.3, 1.0, 3), 0.0)
    way = turn @ (way / np.linalg.norm(way))  # outward of the box
    other = data.geom_xmat[1 - box].reshape(3, 3)
    size, local = model.geom_size[1 - box], -other.T @ way
    touch = other @ (size**2 * local) / np.linalg.norm(size * local)
    want = data.geom_xpos[box] + turn @ at
    centre = want - touch - 1e-4 * way
    data.qpos[:3] += (centre - data.geom_xpos[1 - box]) * (1.0 if box == 0 else -1.0)
    mujoco.mj_kinematics(model, data)
    _, found = collide(model, data)
    assert len(found) == 1
    assert found[0, 0] == pytest.approx(-1e-4, abs=1e-13)
    assert np.abs(found[0, 4:] @ way) == pytest.approx(1.0, abs=1e-13)


def test_an_ellipsoid_that_lies_on_a_box_stays_where_it_lies():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom type="box" size=".2 .2 .05"/>
        <body pos=".03 .01 .0702"><freejoint/><geom type="ellipsoid" size=".03 .04 .02"/></body>
        </worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    sim = stiction.Simulator(model)
    sim.step(data, 300)
    before = data.qpos.copy()
    sim.step(data, 1000)
    assert np.abs(data.qpos - before).max() < 1e-12
    assert before[:2] == pytest.approx([0.03, 0.01], abs=1e-9)
