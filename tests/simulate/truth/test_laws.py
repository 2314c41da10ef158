"""What holds of any motion: energy and friction's work; frames, orders and units do not matter."""

from math import hypot, sqrt

import mujoco
import numpy as np
import pytest
from closed_forms import EXACT_AND_POLYGON, G
from mjcf import load

import stiction
from stiction import Coulomb, Frictionless, Mode, NoSlip


def heap(seed=0):
    """Cubes and balls flying into each other above a floor; alike about all axes, so that free
    flight keeps their kinetic energy."""
    rng = np.random.default_rng(seed)
    bodies = ""
    for k in range(9):
        x, y, z = 0.24 * (k % 3), 0.24 * (k // 3), 0.13
        shape = 'type="box" size=".1 .1 .1"' if k % 2 else 'type="sphere" size=".11"'
        quat = " ".join(map(str, rng.normal(size=4)))
        turned = f'quat="{quat}"' if k % 4 == 1 else ""
        bodies += f'<body pos="{x} {y} {z + 0.1 * (k % 4 == 1)}" {turned}><freejoint/>'
        bodies += f'<geom {shape} mass="{rng.uniform(0.5, 2.0)}"/></body>'
    model, data = load(f"""
<mujoco>
  <size memory="20M"/>
  <option gravity="0 0 0"/>
  <default><geom friction=".6"/></default>
  <worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody>
</mujoco>""")
    for k in range(9):
        centre = np.array([0.24, 0.24, 0.0])
        data.qvel[6 * k : 6 * k + 3] = 3.0 * (centre - data.qpos[7 * k : 7 * k + 3])
        data.qvel[6 * k + 3 : 6 * k + 6] = rng.normal(size=3)
    return model, data


def kinetic(model, data):
    """Kinetic energy [J] of the velocity and the positions that data holds."""
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_makeM(model, data)
    moment = np.zeros(model.nv)
    mujoco.mj_mulM(model, data, moment, data.qvel)
    return 0.5 * data.qvel @ moment


@pytest.mark.parametrize(
    "contact",
    [Coulomb(), Coulomb(facets=8), Frictionless(), NoSlip(), stiction.Viscous(20.0)],
    ids=lambda contact: type(contact).__name__,
)
@pytest.mark.parametrize("seed", [0, 1])
def test_kinetic_energy_never_rises(contact, seed):
    model, data = heap(seed)
    sim = stiction.Simulator(model, contact)
    before = first = kinetic(model, data)
    for _ in range(150):
        report = sim.step(data)
        after = kinetic(model, data)
        assert after <= before + 1e-9 * first
        assert report.energy <= 1e-12 * first
        before = after
    assert before < 0.9 * first
    assert sim.statistics.energy <= 1e-12 * first


def contact_velocity(model, data, contact):
    """Velocity [m/s] of the second geom's body against the first's, in the contact's frame."""
    relative = np.zeros(3)
    jacobian = np.zeros((3, model.nv))
    for sign, geom in zip((-1, 1), contact.geom, strict=True):
        body = model.geom_bodyid[geom]
        mujoco.mj_jac(model, data, jacobian, None, contact.pos, body)
        relative += sign * (jacobian @ data.qvel)
    return contact.frame.reshape(3, 3) @ relative


@EXACT_AND_POLYGON
def test_friction_never_does_work_and_the_laws_hold_at_each_contact(contact):
    model, data = heap()
    sim = stiction.Simulator(model, contact)
    pressed = 0
    for _ in range(100):
        report = sim.step(data)  # data keeps the kinematics of the step's beginning
        for c in report.contacts:
            v = contact_velocity(model, data, data.contact[c.index])
            assert c.force[0] >= 0.0
            assert v[0] >= -max(c.gap, 0.0) / 0.002 - 1e-7
            assert c.force[1:] @ v[1:] <= 1e-7
            assert c.margin >= -1e-7 * max(1.0, c.force[0])
            assert c.slip == pytest.approx(v[1:], abs=1e-9)
            pressed += c.force[0] > 0.0
            if c.mode == Mode.SLIDE and contact.facets is None:
                assert c.force[1:] @ v[1:] == pytest.approx(
                    -0.6 * c.force[0] * hypot(*v[1:]), abs=1e-6 * max(1.0, c.force[0])
                )
    assert pressed > 100


def thrown(rotation=(1.0, 0.0, 0.0, 0.0), order=(0, 1, 2, 3), length=1.0, mass=1.0, floor=9.0):
    """Four bodies on a floor, each in its own way of moving, the whole world turned by a
    quaternion and measured in other units. Returns model and data."""
    turn, floor = np.array(rotation), floor * length
    gravity = np.zeros(3)
    mujoco.mju_rotVecQuat(gravity, np.array([0.0, 0.0, -G * length]), turn)
    kinds = [
        ('type="box" size="{0} {0} {1}"', (0.1, 0.05), (0.0, 0.0, 0.05), (2.0, 0.7, 0.0), 3.0),
        ('type="sphere" size="{0}"', (0.1,), (1.0, 0.0, 0.1), (-1.5, 1.0, 0.0), 5.0),
        (
            'type="capsule" size="{0} {1}"', (0.05, 0.1), (0.0, 1.0, 0.3),
            (0.3, -0.2, -1.0), 2.0,
        ),
        ('type="box" size="{0} {0} {0}"', (0.08,), (1.0, 1.0, 0.15), (0.5, 0.5, 0.0), 1.0),
    ]  # fmt: skip
    bodies = ""
    for k in order:
        shape, sizes, place, _, weight = kinds[k]
        at = np.zeros(3)
        mujoco.mju_rotVecQuat(at, length * np.array(place), turn)
        pos, quat = " ".join(map(repr, at.tolist())), " ".join(map(repr, turn.tolist()))
        bodies += f'<body name="body{k}" pos="{pos}" quat="{quat}"><freejoint name="joint{k}"/>'
        bodies += f'<geom {shape.format(*(length * s for s in sizes))} mass="{weight * mass}"/>'
        bodies += "</body>"
    model, data = load(f"""
<mujoco>
  <option gravity="{" ".join(map(repr, gravity.tolist()))}"/>
  <default><geom friction=".4"/></default>
  <worldbody>
    <geom type="plane" size="{floor} {floor} {floor}"
          quat="{" ".join(map(repr, turn.tolist()))}"/>{bodies}
  </worldbody>
</mujoco>""")
    for k, (_, _, _, velocity, _) in enumerate(kinds):
        v = np.zeros(3)
        mujoco.mju_rotVecQuat(v, length * np.array(velocity), turn)
        at = model.joint(f"joint{k}").dofadr[0]
        data.qvel[at : at + 3] = v
        data.qvel[at + 3 : at + 6] = [0.5, -0.3, 0.8]
    return model, data


def motion(model, data, contact, steps):
    """(4, 13) places, attitudes and velocities of the bodies by name after so many steps."""
    stiction.Simulator(model, contact).step(data, steps)
    rows = []
    for k in range(4):
        q, v = model.joint(f"joint{k}").qposadr[0], model.joint(f"joint{k}").dofadr[0]
        rows.append([*data.qpos[q : q + 7], *data.qvel[v : v + 6]])
    return np.array(rows)


ROTATIONS = [
    (sqrt(0.5), sqrt(0.5), 0.0, 0.0),
    (sqrt(0.5), 0.0, 0.0, sqrt(0.5)),
    (0.5, 0.5, 0.5, 0.5),
    (0.8, 0.36, -0.48, 0.0),
]


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_the_motion_is_the_same_in_a_rotated_world(rotation):
    expected = motion(*thrown(), None, 150)
    found = motion(*thrown(rotation), None, 150)
    turn, back, vector = np.array(rotation), np.zeros(4), np.zeros(3)
    mujoco.mju_negQuat(back, turn)
    for k in range(4):
        for part in (slice(0, 3), slice(7, 10)):
            mujoco.mju_rotVecQuat(vector, found[k, part], back)
            assert vector == pytest.approx(expected[k, part], abs=1e-9)
        # Angular velocity is in the body's own frame already.
        assert found[k, 10:] == pytest.approx(expected[k, 10:], abs=1e-7)


@EXACT_AND_POLYGON
def test_the_motion_is_the_same_whatever_the_order_of_bodies(contact):
    expected = motion(*thrown(), contact, 150)
    for order in ((3, 2, 1, 0), (2, 0, 3, 1)):
        found = motion(*thrown(order=order), contact, 150)
        assert found == pytest.approx(expected, abs=1e-9)


@EXACT_AND_POLYGON
@pytest.mark.parametrize(("length", "mass"), [(1e3, 1e3), (1e-3, 1.0), (1.0, 1e-3), (1.0, 1e3)])
def test_the_motion_is_the_same_in_other_units(contact, length, mass):
    expected = motion(*thrown(), contact, 150)
    found = motion(*thrown(length=length, mass=mass), contact, 150)
    found[:, [0, 1, 2, 7, 8, 9]] /= length
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("size", [0.5, 1000.0])
def test_the_motion_is_the_same_however_large_the_floor_is_drawn(size):
    expected = motion(*thrown(), None, 150)
    assert motion(*thrown(floor=size), None, 150) == pytest.approx(expected, abs=1e-9)
