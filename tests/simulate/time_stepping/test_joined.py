"""Bodies that a rigid equality joins, and whose geoms overlap where it does."""

import warnings

import numpy as np
import pytest
from mjcf import load

import stiction

LINK = """<body name="{name}" pos="{at} 0 1"><freejoint/>
  <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02" mass=".1"{options}/></body>"""


def chain(links, equality, options=""):
    bodies = "".join(LINK.format(name=f"b{k}", at=0.2 * k, options=options) for k in range(links))
    joints = "".join(equality.format(k, k - 1) for k in range(1, links))
    return load(f"""
<mujoco><worldbody>{bodies}</worldbody>
  <equality><connect body1="b0" anchor="0 0 0"/>{joints}</equality></mujoco>""")


@pytest.mark.parametrize(
    "equality",
    ['<connect body1="b{}" body2="b{}" anchor="0 0 0"/>', '<weld body1="b{}" body2="b{}"/>'],
)
def test_links_that_overlap_at_their_joints_swing_as_if_they_did_not_collide(equality):
    model, data = chain(4, equality)
    bare, alone = chain(4, equality, ' contype="0" conaffinity="0"')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = stiction.Simulator(model, equality="rigid").step(data, 100)
    stiction.Simulator(bare, equality="rigid").step(alone, 100)
    assert report.certificate.passed
    np.testing.assert_array_equal(data.qpos, alone.qpos)
    assert data.qpos[-5] < 0.9


def test_they_swing_by_events_as_well():
    model, data = chain(2, '<connect body1="b{}" body2="b{}" anchor="0 0 0"/>')
    stiction.Simulator(model, stepper=stiction.EventDriven()).step(data, 50)
    bare, alone = chain(
        2, '<connect body1="b{}" body2="b{}" anchor="0 0 0"/>', ' contype="0" conaffinity="0"'
    )
    stiction.Simulator(bare, stepper=stiction.EventDriven()).step(alone, 50)
    np.testing.assert_allclose(data.qpos, alone.qpos, atol=1e-9)


def test_links_that_sites_join_are_told_apart():
    model, data = load("""
<mujoco><worldbody>
  <body pos="0 0 1"><freejoint/><site name="a" pos=".2 0 0"/>
    <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02" mass=".1"/></body>
  <body pos=".2 0 1"><freejoint/><site name="b"/>
    <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02" mass=".1"/></body>
  </worldbody>
  <equality><connect site1="a" site2="b"/></equality></mujoco>""")
    report = stiction.Simulator(model, equality="rigid").step(data, 50)
    assert not report.contacts
    np.testing.assert_allclose(data.qvel[[0, 1, 3, 4, 5]], 0.0, atol=1e-12)


def test_joined_bodies_collide_where_they_are_not_joined():
    """A lid that falls upon what it hangs on, about a point that lies in neither."""
    model, data = load("""
<mujoco><worldbody>
  <body name="base"><geom type="box" size=".1 .1 .02"/></body>
  <body name="lid" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .02" mass="1"/></body>
  </worldbody>
  <equality><connect body1="lid" body2="base" anchor="-.2 0 -.05"/></equality></mujoco>""")
    sim = stiction.Simulator(model, equality="rigid")
    report = sim.step(data, 1000)
    assert report.certificate.passed
    assert report.contacts
    assert min(contact.gap for contact in report.contacts) > -1e-6


def test_a_joint_that_is_let_go_lets_its_bodies_part():
    model, data = chain(2, '<connect name="j" body1="b{}" body2="b{}" anchor="0 0 0"/>')
    sim = stiction.Simulator(model, equality="rigid")
    sim.step(data)
    data.eq_active[model.eq("j").id] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim.step(data, 200)
    assert np.linalg.norm(data.xpos[2] - data.xpos[1]) > 0.2
