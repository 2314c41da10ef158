"""How contacts change as geoms move: by pairs of types, against differences."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from slopes import assert_agree, swell

import stiction
from stiction.simulate.derivatives.curvature import CHANGES, allocate_meet, differentiate_meeting
from stiction.simulate.derivatives.faces import allocate_planes, differentiate_face, take_boxes

GEOMS = {
    "plane": 'type="plane" size="1 1 1"',
    "sphere": 'type="sphere" size=".1"',
    "capsule": 'type="capsule" size=".06 .1"',
    "ellipsoid": 'type="ellipsoid" size=".06 .1 .14"',
    "cylinder": 'type="cylinder" size=".07 .1"',
    "box": 'type="box" size=".06 .09 .12"',
    "mesh": 'type="mesh" mesh="m"',
}

PAIR = """
<mujoco>
  {option}
  <asset><mesh name="m"
    vertex="-.1 -.1 -.08  .12 -.08 -.07  0 .13 -.09  .01 .02 .15  .09 .09 .05"/></asset>
  <worldbody>
    <body euler="{turn}"><freejoint/><geom {second} pos=".01 .02 0"/></body>
    <body>{joint}<geom {first} euler="20 30 40"/></body>
  </worldbody>
</mujoco>"""


FINE = '<option ccd_tolerance="1e-14" ccd_iterations="500"/>'
"""For two polyhedra, whose contacts MuJoCo finds by iterations and nobody refines."""


def press(first, second, seed, overlap):
    """(model, data) of two geoms that overlap so much, and approach each other as they slip."""
    rng = np.random.default_rng(seed)
    way, turn = rng.normal(size=3), " ".join(map(str, rng.uniform(-90.0, 90.0, 3)))
    joint = "" if first == "plane" else '<joint axis=".3 .5 .8" pos=".1 0 .05" armature=".01"/>'
    geoms = {"first": GEOMS[first], "second": GEOMS[second]}
    option = FINE if second == "mesh" and first in ("box", "mesh") else ""
    xml = PAIR.format(**geoms, turn=turn, joint=joint, option=option)
    model = mujoco.MjModel.from_xml_string(xml)
    data, ends = mujoco.MjData(model), np.zeros(6)
    mujoco.mj_kinematics(model, data)
    if first == "plane":
        way = data.geom_xmat[1].reshape(3, 3)[:, 2].copy()
    way /= np.linalg.norm(way)
    data.qpos[:3] = 0.5 * way
    for _ in range(60):
        mujoco.mj_kinematics(model, data)
        off = mujoco.mj_geomDistance(model, data, 0, 1, 1.0, ends) + overlap
        data.qpos[:3] -= off * way
    data.qvel[:3] = -0.5 * way + 0.2 * rng.normal(size=3)
    data.qvel[3:6] = rng.normal(size=3)
    return model, data


PAIRS = [("plane", name) for name in GEOMS if name != "plane"]
PAIRS += [
    ("sphere", name) for name in ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
]
PAIRS += [("capsule", name) for name in ("capsule", "ellipsoid", "box", "mesh")]
PAIRS += [("ellipsoid", name) for name in ("ellipsoid", "cylinder", "box")]
PAIRS += [("box", "box"), ("box", "mesh"), ("mesh", "mesh")]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_pairs_have_the_derivatives_of_their_steps(first, second, seed):
    model, data = press(first, second, seed, 2e-5)
    # MuJoCo's distances of two meshes have errors that differences magnify, by steps of any size.
    tolerance = 3e-5 if first == "mesh" else 1e-5
    assert assert_agree(stiction.Simulator(model), data, tolerance, 5e-6).is_compiled


@pytest.mark.parametrize("seed", [0, 2, 3])
@pytest.mark.parametrize("second", ["capsule", "cylinder", "box"])
def test_cylinders_have_the_derivatives_of_their_steps(second, seed):
    """Where they touch in one point."""
    model, data = press("cylinder", second, seed, 2e-5)
    assert assert_agree(stiction.Simulator(model), data, eps=5e-6).is_compiled


STACK = """
<mujoco>
  <worldbody>
    <body quat="{quat}"><freejoint/><geom type="box" size="{lower}"/></body>
    <body pos="{place}" quat="{turned}"><freejoint/><geom type="box" size="{upper}"/></body>
  </worldbody>
</mujoco>"""


def stack(seed, yaw=None, alike=False, overlap=2e-5):
    """(model, data) of two boxes face on face, at a random attitude and at a random yaw."""
    rng = np.random.default_rng(seed)
    lower, upper = rng.uniform(0.05, 0.15, (2, 3))
    upper = lower if alike else upper
    quat, turned, turn = rng.normal(size=4), np.zeros(4), np.zeros(9)
    quat /= np.linalg.norm(quat)
    yaw = rng.uniform(-0.5, 0.5) if yaw is None else yaw
    mujoco.mju_mulQuat(turned, quat, np.array([np.cos(yaw), 0.0, 0.0, np.sin(yaw)]))
    mujoco.mju_quat2Mat(turn, quat)
    aside = rng.uniform(-0.05, 0.05, 2)
    place = turn.reshape(3, 3) @ [*aside, lower[2] + upper[2] - overlap]
    text = {"quat": quat, "lower": lower, "place": place, "turned": turned, "upper": upper}
    xml = STACK.format(**{name: " ".join(map(repr, map(float, x))) for name, x in text.items()})
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qvel[6:9] = turn.reshape(3, 3) @ [0.2, 0.1, -0.5]
    data.qvel[9:] = 0.1 * rng.normal(size=3)
    return model, data


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alike", [False, True])
def test_boxes_face_on_face_have_the_derivatives_of_their_steps(seed, alike):
    """Corners on faces, edges across edges; those alike share planes of their sides. Off by as much
    as they overlap, where either face has the normal."""
    model, data = stack(seed, 0.0 if alike else None, alike, overlap=2e-6)
    assert assert_agree(stiction.Simulator(model), data, eps=1e-7).is_compiled


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("yaw", [None, 0.0])
def test_contacts_on_faces_change_as_collisions_of_the_boxes_do(seed, yaw):
    model, data = stack(seed, yaw)
    mujoco.mj_forward(model, data)
    first, second = (int(geom) for geom in data.contact.geom[0])
    frame, planes = data.contact.frame[0].reshape(3, 3).copy(), allocate_planes()
    carrying = take_boxes(model._address, data._address, first, second, frame, planes)
    assert carrying >= 0
    points, normal = data.contact.pos.copy(), frame[0].copy()
    out = np.zeros((len(points), 2, CHANGES, 6))
    for i, point in enumerate(points):
        gap = data.contact.dist[i]
        assert differentiate_face(
            carrying, normal, gap, point.copy(), points[0], 0.1, planes, out[i]
        )
    eps, kept = 2e-7, (data.geom_xpos.copy(), data.geom_xmat.copy())
    for which, geom in enumerate((first, second)):
        for axis in range(6):
            ends = []
            for amount in (eps, -eps):
                if axis < 3:  # about its own centre, where two in balance stay so
                    turn = turned(axis, amount)
                    data.geom_xmat[geom] = (turn @ kept[1][geom].reshape(3, 3)).ravel()
                else:
                    data.geom_xpos[geom, axis - 3] += amount
                mujoco.mj_collision(model, data)
                near = [np.abs(data.contact.pos - point).max(axis=1).argmin() for point in points]
                rows = (data.contact.dist[:, None], data.contact.pos, data.contact.frame[:, :3])
                ends.append(np.concatenate(rows, axis=1)[near])
                data.geom_xpos[:], data.geom_xmat[:] = kept
            want = (ends[0] - ends[1]) / (2.0 * eps)
            have = out[:, which, :7, axis].copy()
            if axis < 3:
                shift = np.cross(np.eye(3)[axis], points[0] - kept[0][geom])
                have += out[:, which, :7, 3:] @ shift
            assert_allclose(have, want, atol=1e-6)


HAND = """
<mujoco>
  <worldbody>
    <geom type="box" size=".06 .06 .02"/>
    <body pos=".004 .002 .0401"><freejoint/>
      <geom type="ellipsoid" size=".03 .04 .02" condim="6" friction=".7 .002 .002"/></body>
    {fingers}
  </worldbody>
</mujoco>"""

FINGER = """
<body pos="{x} {y} .02" euler="0 0 {turn}">
  <joint axis="0 1 0" damping=".05" armature=".001" stiffness="1" springref="90"/>
  <geom type="box" size=".008 .01 .012" pos="0 0 .015" contype="0"/>
  <body pos="0 0 .03">
    <joint axis="0 1 0" damping=".05" armature=".001" stiffness="1" springref="90"/>
    <geom type="{tip}" size=".009 .012" pos="0 0 .012"/></body>
</body>"""


@pytest.mark.parametrize("tip", ["capsule", "cylinder"])
def test_a_hand_that_closes_on_an_ellipsoid_has_the_derivatives_of_its_steps(tip):
    angles = np.radians([0.0, 120.0, 240.0])
    fingers = "".join(
        FINGER.format(x=-0.055 * np.cos(a), y=-0.055 * np.sin(a), turn=np.degrees(a), tip=tip)
        for a in angles
    )
    model = mujoco.MjModel.from_xml_string(HAND.format(fingers=fingers))
    data = mujoco.MjData(model)
    stiction.Simulator(model).step(data, 50)
    swell(model)
    data.qvel[:] += 0.01 * np.random.default_rng(0).normal(size=model.nv)
    found = assert_agree(stiction.Simulator(model), data)
    assert found.is_compiled
    assert sum(mode is not stiction.Mode.SEPARATE for mode in found.modes) >= 3


def support(turn, size, way):
    """Where an ellipsoid has the outward normal `way`, from its centre."""
    local = turn.T @ way
    return turn @ (size**2 * local) / np.linalg.norm(size * local)


def nearest(places, turns, sizes, normal):
    """(gap, point, normal) of two ellipsoids, by Newton's method on the normal."""

    def apart(n):
        a = places[0] + support(turns[0], sizes[0], n)
        b = places[1] + support(turns[1], sizes[1], -n)
        return b - a, 0.5 * (a + b)

    for _ in range(30):
        basis = np.linalg.svd(normal[None])[2][1:]
        off = basis @ apart(normal)[0]
        slope = np.array(
            [basis @ (apart(normal + 1e-7 * t)[0] - apart(normal - 1e-7 * t)[0]) for t in basis]
        ).T
        normal = normal - 2e-7 * basis.T @ np.linalg.solve(slope, off)
        normal /= np.linalg.norm(normal)
    way, point = apart(normal)
    return np.concatenate([[way @ normal], point, normal])


def turned(axis, angle):
    """(3, 3) rotation about an axis of the world."""
    quat, out = np.zeros(4), np.zeros(9)
    mujoco.mju_axisAngle2Quat(quat, np.eye(3)[axis], angle)
    mujoco.mju_quat2Mat(out, quat)
    return out.reshape(3, 3)


@pytest.mark.parametrize("gap", [0.01, -0.01])
def test_ellipsoids_roll_over_each_other_as_their_curvature_has_it(gap):
    model, data = press("ellipsoid", "ellipsoid", 3, -gap)
    mujoco.mj_forward(model, data)
    places = data.geom_xpos.copy()
    turns, sizes = data.geom_xmat.reshape(2, 3, 3).copy(), model.geom_size.copy()
    rough = places[1] - places[0]
    found = nearest(places, turns, sizes, rough / np.linalg.norm(rough))
    frame = np.zeros((3, 3))
    frame[0] = found[4:]
    frame[1:] = np.linalg.svd(frame[:1])[2][1:]
    point, out = found[1:4].copy(), np.zeros((2, CHANGES, 6))
    assert differentiate_meeting(
        model._address, data._address, 0, 1, frame, found[0], point, point, 0.1, False,
        allocate_meet(), out,
    )  # fmt: skip
    eps = 1e-5
    for which in range(2):
        for axis in range(6):
            ends = []
            for amount in (eps, -eps):
                moved, rotated = places.copy(), turns.copy()
                if axis < 3:
                    turn = turned(axis, amount)
                    moved[which] = point + turn @ (places[which] - point)
                    rotated[which] = turn @ turns[which]
                else:
                    moved[which, axis - 3] += amount
                ends.append(nearest(moved, rotated, sizes, found[4:]))
            want = (ends[0] - ends[1]) / (2.0 * eps)
            assert_allclose(out[which, :7, axis], want, atol=1e-6 * np.abs(out).max())


@pytest.mark.parametrize("kind", ["capsule", "cylinder"])
@pytest.mark.parametrize("ground", ['type="box" size="1 1 .1"', 'type="cylinder" size="1 .1"'])
def test_a_round_side_along_a_face_or_a_cap_has_the_derivatives_of_one_on_a_plane(kind, ground):
    lying = """<mujoco><worldbody><geom {ground} pos="0 0 {top}"/>
      <body pos="0 0 .0499" euler="0 90 20"><freejoint/><geom type="{kind}" size=".05 .2"/></body>
      </worldbody></mujoco>"""
    found = []
    for what, top in (('type="plane" size="1 1 .1"', 0.0), (ground, -0.1)):
        model = mujoco.MjModel.from_xml_string(lying.format(ground=what, top=top, kind=kind))
        data = mujoco.MjData(model)
        data.qvel[:] = [0.2, 0.05, 0.0, 0.02, -0.03, 0.3]
        slopes = stiction.Simulator(model).derivatives(data)
        assert slopes.is_compiled
        found.append(slopes.A)
    np.testing.assert_allclose(found[1], found[0], atol=1e-9 * np.abs(found[0]).max())
