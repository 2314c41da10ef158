"""MuJoCo's callbacks: called as `mj_step` calls them."""

import copy

import mujoco
import pytest
from mjcf import load, smooth
from mjdata import state

import stiction

G = 9.81


def test_the_control_callback_is_called_once_a_step_with_the_state_up_to_date():
    model, ours = smooth("servo")
    theirs = copy.copy(ours)
    calls = []

    def control(m, d):
        calls.append(d.time)
        d.ctrl[0] = 0.1 * d.site("site").xpos[2] - 0.01 * d.subtree_com[1, 0]

    mujoco.set_mjcb_control(control)
    try:
        report = stiction.Simulator(model).step(ours, 20)
        assert calls == pytest.approx([0.002 * k for k in range(20)])
        mujoco.mj_step(model, theirs, 20)
    finally:
        mujoco.set_mjcb_control(None)
    assert report.time == ours.time
    assert ours.qpos == pytest.approx(theirs.qpos, rel=1e-11, abs=1e-11)
    assert ours.ctrl == pytest.approx(theirs.ctrl, rel=1e-9)


def test_an_exception_in_the_control_callback_reaches_the_caller_and_no_step_is_taken():
    model, data = smooth("servo")
    before = state(data)

    def control(m, d):
        raise RuntimeError("no controller")

    mujoco.set_mjcb_control(control)
    try:
        with pytest.raises(RuntimeError, match="no controller"):
            stiction.Simulator(model).step(data)
    finally:
        mujoco.set_mjcb_control(None)
    assert state(data) == before


def test_the_passive_callback_adds_its_force():
    model, data = load("""
<mujoco><worldbody><body><joint type="slide" axis="0 0 1"/>
  <geom type="sphere" size=".1" mass="3"/></body></worldbody></mujoco>""")

    def hold(m, d):
        d.qfrc_passive[0] += 3.0 * G

    mujoco.set_mjcb_passive(hold)
    try:
        stiction.Simulator(model).step(data, 10)
    finally:
        mujoco.set_mjcb_passive(None)
    assert data.qvel[0] == pytest.approx(0.0, abs=1e-14)
