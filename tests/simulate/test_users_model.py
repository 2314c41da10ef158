"""The user's model: left as it is, and followed as it changes."""

import copy

import mujoco
import numpy as np
import pytest
from mjcf import BOX, load

import stiction
from stiction import InvalidInput

G = 9.81


def as_bytes(model):
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def test_the_users_model_is_not_modified():
    model, data = load(BOX.replace('mass="2"', 'mass="2" margin=".01" gap=".002"'))
    before = as_bytes(model)
    sim = stiction.Simulator(model)
    data.qvel[0] = 3.0
    sim.step(data, 50)
    sim(model, data)
    sim.refresh()
    data.qpos[0] = np.nan
    with pytest.raises(InvalidInput):
        sim.step(data)
    assert as_bytes(model) == before


def test_options_are_followed_as_they_change():
    model, data = load(BOX.replace('pos="0 0 .1"', 'pos="0 0 5"'))
    sim = stiction.Simulator(model)
    sim.step(data)
    model.opt.gravity[2] = 1.0
    model.opt.timestep = 0.01
    sim.step(data)
    assert data.qvel[2] == pytest.approx(-0.002 * G + 0.01, rel=1e-12)
    assert data.time == pytest.approx(0.012)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_GRAVITY
    before = data.qvel[2]
    sim.step(data)
    assert data.qvel[2] == before


@pytest.mark.parametrize("flag", ["CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY", "CONSTRAINT"])
def test_what_the_model_disables_does_not_act(flag):
    model, data = load("""
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <geom type="plane" size="9 9 1" contype="2"/>
    <body pos="0 0 .1"><freejoint/><geom type="sphere" size=".1" conaffinity="2"/></body>
    <body pos="2 0 1"><joint axis="0 1 0" range="-1 0"/>
      <geom type="sphere" size=".1" pos=".2 0 0"/></body>
    <body pos="3 0 1"><joint axis="0 1 0" frictionloss="1000"/>
      <geom type="sphere" size=".1" pos=".2 0 0"/></body>
    <body pos="4 0 1"><joint name="held" axis="0 1 0"/>
      <geom type="sphere" size=".1" pos=".2 0 0"/></body>
  </worldbody>
  <equality><joint joint1="held" solref=".004 1" solimp=".999 .9999 .001"/></equality>
</mujoco>""")
    model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    stiction.Simulator(model).step(data, 20)
    moves = dict(
        zip(("CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY"), data.qvel[[2, 6, 7, 8]], strict=True)
    )
    for part, speed in moves.items():
        assert (abs(speed) > 0.1) == (flag in (part, "CONSTRAINT")), part


def test_other_changes_need_a_refresh():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    model.geom_friction[:, 0] = 0.0
    sim.refresh()
    data.qvel[0] = 1.0
    sim.step(data, 10)
    assert data.qvel[0] == pytest.approx(1.0, rel=1e-12)
    model.geom_friction[:, 0] = 0.5
    sim.refresh()
    sim.step(data, 10)
    assert data.qvel[0] == pytest.approx(1.0 - 0.02 * 0.5 * G, rel=1e-9)


def test_a_bad_change_is_refused_and_the_old_model_kept():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    model.opt.timestep = -1.0
    for _ in range(2):
        with pytest.raises(InvalidInput, match="timestep"):
            sim.step(data)
    model.opt.timestep = 0.002
    sim.step(data)
    assert data.time == 0.002


def test_the_simulator_is_a_step_function():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    assert sim(model, data) is None
    assert data.time == 0.002
    assert sim.model is model
    with pytest.raises(InvalidInput, match="not the one"):
        sim(copy.copy(model), data)


def test_the_one_liner_steps_as_a_simulator_does():
    model, ours = load(BOX)
    ours.qvel[:] = [1.0, 0.5, 0.0, 0.1, 0.2, 0.3]
    other = copy.copy(ours)
    report = stiction.step(model, ours, 5)
    for _ in range(5):
        stiction.step(model, ours)
    stiction.Simulator(model).step(other, 10)
    assert np.array_equal(ours.qpos, other.qpos)
    assert report.time == pytest.approx(0.01)
