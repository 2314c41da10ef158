"""Models that start with bodies within each other: named, and parted without a bang."""

import copy
import warnings

import mujoco
import numpy as np
import pytest
from mjcf import BOX, load

import stiction
from stiction.contact.solvers.blocks.workspace import Outcome

# A hand around a block that its fingers are 35 mm inside of, from both sides: the left finger would
# have the block to the right, the right one to the left, and neither can open as far.
PINCHED = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="hand">
      <geom name="palm" type="box" size=".02 .1 .02" pos="-.2 0 0"/>
      <joint name="swing" axis="0 0 1" pos="-.2 0 0" range="-1 1" limited="true"/>
      <body name="left" pos="0 .02 0">
        <joint name="left" type="slide" axis="0 1 0" range="0 .01" limited="true"/>
        <geom type="box" size=".05 .02 .02" mass=".1"/>
      </body>
      <body name="right" pos="0 -.02 0">
        <joint name="right" type="slide" axis="0 -1 0" range="0 .01" limited="true"/>
        <geom type="box" size=".05 .02 .02" mass=".1"/>
      </body>
    </body>
    <body name="block" pos=".035 0 0">
      <joint name="along" type="slide" axis="1 0 0"/>
      <joint name="across" type="slide" axis="0 1 0" range="-.02 .02" limited="true"/>
      <geom name="block" type="box" size=".06 .035 .02" mass="1" friction="1"/>
    </body>
  </worldbody>
  <contact><exclude body1="left" body2="right"/></contact>
</mujoco>"""


def overlap_of(model, data):
    mujoco.mj_forward(model, data)
    return max((-contact.dist for contact in data.contact), default=0.0)


def test_bodies_deep_within_each_other_are_named_with_their_depth():
    model, data = load(PINCHED)
    simulator = stiction.Simulator(model)
    with pytest.warns(stiction.OverlapWarning, match=r"block.* by 35 mm") as caught:
        report = simulator.step(data)
    assert caught[0].filename == __file__
    assert "35 mm" in simulator.start_overlap
    assert report.deep_contacts[0].gap < -0.03
    assert {name for c in report.deep_contacts for name in c.bodies} >= {"block"}


@pytest.mark.parametrize(
    "equality",
    ['<connect body1="left" body2="block" anchor="0 0 0"/>', '<weld site1="a" site2="b"/>'],
)
def test_bodies_that_an_equality_holds_within_each_other_are_to_be_excluded(equality):
    joined = PINCHED.replace('<geom name="block"', '<site name="b"/><geom name="block"')
    joined = joined.replace(
        '<geom type="box" size=".05 .02 .02" mass=".1"/>',
        '<site name="a"/>\n<geom type="box" size=".05 .02 .02" mass=".1"/>',
        1,
    )
    model, data = load(joined.replace("<contact>", f"<equality>{equality}</equality><contact>"))
    with pytest.warns(stiction.OverlapWarning, match=r"holds left and block.*<exclude>"):
        stiction.Simulator(model).step(data)


def test_what_overlaps_little_is_not_worth_a_word():
    model, data = load(BOX)
    data.qpos[2] -= 0.003
    simulator = stiction.Simulator(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = simulator.step(data)
    assert simulator.start_overlap == ""
    assert report.deep_contacts == ()


def test_jammed_bodies_are_parted_slowly_and_get_no_speed_of_it():
    model, data = load(PINCHED)
    model.opt.gravity[:] = 0.0
    simulator = stiction.Simulator(model)
    deepest = overlap_of(model, data)
    for _ in range(100):
        before = data.qpos.copy()
        report = simulator.step(data)
        assert report.certificate.passed
        assert np.abs(data.qpos - before).max() <= 10.0 * model.opt.timestep
        np.testing.assert_allclose(data.qvel, 0.0, atol=1e-12)
    assert overlap_of(model, data) < 0.8 * deepest


def test_a_body_that_is_pulled_comes_out_of_what_it_starts_inside():
    """With friction, the loads between contradicting normals would hold it for ever."""
    model, data = load(PINCHED)
    model.opt.gravity[:] = 0.0
    simulator = stiction.Simulator(model)
    data.qfrc_applied[model.joint("along").dofadr] = 5.0
    simulator.step(data, 500)
    assert overlap_of(model, data) < 1e-6
    assert data.joint("along").qpos > 0.07


def test_jammed_joints_stay_within_their_limits():
    model, data = load(PINCHED)
    simulator = stiction.Simulator(model)
    for _ in range(200):
        simulator.step(data)
        for name in ("swing", "left", "right", "across"):
            low, high = model.joint(name).range
            assert low - 1e-2 < data.joint(name).qpos[0] < high + 1e-2


def test_jammed_bodies_are_not_solved_for_in_every_step():
    """Nothing takes their overlap back whole: one step in eight asks whether that is still so."""
    model, data = load(PINCHED)
    model.opt.gravity[:] = 0.0
    simulator = stiction.Simulator(model)
    simulator.step(data, 2)
    outcome, asked = simulator._engine.work.solver.request.outcome, []
    for _ in range(24):
        simulator.step(data)
        asked.append(bool(outcome[:, Outcome.ATTEMPTS].any()))
    assert asked == [k % 8 == 0 for k in range(24)]


TURNTABLE = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body euler="37 21 11">
    <geom type="cylinder" size=".1 .05" pos="0 0 -.045"/>
    <body name="table">
      <joint name="table" axis="0 0 1"/>
      <geom type="box" size=".06 .05 .05" pos="0 0 .05" mass="1"/>
      <body pos=".2 0 .1"><joint name="arm" axis="0 1 0" pos="-.2 0 0"/><geom size=".02" mass=".1"/>
      </body>
    </body>
  </body>
</worldbody></mujoco>"""
"""A table 5 mm within what it turns on, along its own axis: no joint moves it out."""


@pytest.mark.filterwarnings("ignore::stiction.OverlapWarning")
@pytest.mark.parametrize("torque", [0.1, -0.1])
def test_overlap_along_a_hinges_own_axis_neither_stops_the_hinge_nor_flings_what_hangs_on_it(
    torque,
):
    model, data = load(TURNTABLE)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
    free = copy.copy(data)
    simulator = stiction.Simulator(model)
    for _ in range(50):
        data.qfrc_applied[0] = free.qfrc_applied[0] = torque
        report = simulator.step(data)
        assert report.certificate.passed
        assert data.ncon > 0
        assert report.rung in ("proximal", "interior point")
        before = model.opt.disableflags
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        mujoco.mj_step(model, free)
        model.opt.disableflags = before
    np.testing.assert_allclose(data.qpos, free.qpos, atol=1e-6)
    np.testing.assert_allclose(data.qvel, free.qvel, atol=1e-4)


@pytest.mark.filterwarnings("ignore::stiction.OverlapWarning")
@pytest.mark.parametrize("depth", [0.3, 15.0])
@pytest.mark.parametrize("kind", ["box", "sphere", "capsule", "cylinder", "ellipsoid"])
def test_what_starts_deep_below_the_ground_comes_out_at_a_bounded_speed(kind, depth):
    model, data = load(f"""
<mujoco><worldbody><geom type="plane" size="9 9 1"/>
  <body pos="0 0 {-depth}"><freejoint/><geom type="{kind}" size=".1 .1 .1"/></body>
</worldbody></mujoco>""")
    sim = stiction.Simulator(model)
    share = 0.05 * model.geom_rbound[1]
    for _ in range(20):
        before = data.qpos[2]
        sim.step(data)
        assert data.qpos[2] - before == pytest.approx(share, rel=1e-6)
        np.testing.assert_allclose(data.qvel, 0.0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::stiction.OverlapWarning")
@pytest.mark.parametrize("depth", [0.3, 0.7])
@pytest.mark.parametrize("kind", ["box", "sphere", "capsule", "cylinder"])
def test_what_starts_deep_in_a_height_field_comes_out_upwards(kind, depth):
    """The nearest way out of the prism that it is in leads into the next one."""
    model, data = load(f"""
<mujoco>
  <asset><hfield name="hills" nrow="10" ncol="10" size="5 5 1 1"/></asset>
  <worldbody><geom type="hfield" hfield="hills"/>
    <body pos=".2 .1 {-depth}"><freejoint/><geom type="{kind}" size=".1 .1 .1"/></body>
  </worldbody></mujoco>""")
    sim = stiction.Simulator(model)
    share = 0.05 * model.geom_rbound[1]
    for _ in range(10):
        before = data.qpos.copy()
        assert sim.step(data).certificate.passed
        assert data.qpos[2] - before[2] == pytest.approx(share, rel=1e-6)
        np.testing.assert_allclose(data.qpos[:2], before[:2], atol=1e-9)
    sim.step(data, 500)
    assert data.qpos[2] == pytest.approx(0.2 if kind == "capsule" else 0.1, abs=1e-5)
