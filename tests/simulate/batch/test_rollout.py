"""`rollout`: the interface of `mujoco.rollout`, and the bits of one `Simulator` each."""

import copy
import os
import signal
import types
import unittest

import mujoco
import numpy as np
import pytest
from mjcf import BOX, load
from our_steps import Steps

import stiction
from stiction import Batch, Simulator
from stiction.simulate import Rollout

theirs = pytest.importorskip("mujoco.rollout_test")

PHYSICS = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)

PUSHED = BOX.replace(
    "</worldbody>",
    '</worldbody><actuator><motor site="top" gear="1 0 0 0 0 0"/></actuator>'
    '<sensor><framepos objtype="body" objname="box"/></sensor>',
).replace('mass="2"/>', 'mass="2"/><site name="top"/>')

OTHER = {
    "test_detect_divergence": "what starts within the ground comes apart",
    "test_intercept_mj_errors": "in test_batch.py",
    "test_threadpool_rejected": "the data are not stepped",
}
"""Tests that do not apply, and why."""


def names():
    found = unittest.defaultTestLoader.getTestCaseNames(theirs.MuJoCoRolloutTest)
    return [name for name in found if not name.startswith(tuple(OTHER))]


@pytest.mark.parametrize("name", names())
def test_mujocos_own_test_passes(name, monkeypatch):
    """rollout_test.py in MuJoCo's wheel (Apache-2.0, DeepMind)."""
    ours = types.SimpleNamespace(**vars(theirs.rollout))
    ours.rollout, ours.Rollout = stiction.rollout, Rollout
    monkeypatch.setattr(theirs, "rollout", ours)
    monkeypatch.setattr(theirs, "mujoco", Steps())
    case = theirs.MuJoCoRolloutTest(name)
    case.setUp()
    getattr(case, name)()


def start(model, data, count):
    rows = np.empty((count, mujoco.mj_stateSize(model, PHYSICS)))
    mujoco.mj_getState(model, data, rows[0], PHYSICS)
    rows[:] = rows[0]
    rows[:, 1] = np.linspace(0.0, 1.0, count)  # x
    return rows


@pytest.mark.parametrize("threads", [1, 3])
def test_a_rollout_has_the_bits_of_one_simulator_each(threads):
    model, data = load(PUSHED)
    initial = start(model, data, 5)
    control = np.random.default_rng(0).uniform(-20.0, 20.0, (5, 30, 1))
    states, sensors = stiction.rollout(
        model, [mujoco.MjData(model) for _ in range(threads)], initial, control
    )
    assert states.shape == (5, 30, initial.shape[1])
    assert sensors.shape == (5, 30, 3)
    for k in range(5):
        sim, own = Simulator(model), mujoco.MjData(model)
        mujoco.mj_setState(model, own, initial[k], PHYSICS)
        row = np.empty(initial.shape[1])
        for step in range(30):
            own.ctrl[:] = control[k, step]
            sim.step(own)
            mujoco.mj_getState(model, own, row, PHYSICS)
            assert np.array_equal(states[k, step], row)
            assert np.array_equal(sensors[k, step], own.sensordata)


def test_a_rollout_that_fails_repeats_its_last_state_and_says_so():
    model, data = load(PUSHED)
    initial = start(model, data, 3)
    control = np.zeros((3, 10, 1))
    control[1, 4:] = np.nan
    with pytest.warns(RuntimeWarning, match=r"1 of 3 simulations \(1\).*ctrl"):
        states, _ = stiction.rollout(model, data, initial, control)
    assert states[:, 3, 0] == pytest.approx(0.008)
    assert (states[1, 4:] == states[1, 3]).all()
    assert states[0, -1, 0] == states[2, -1, 0] == pytest.approx(0.02)


def test_a_rollout_follows_its_model_and_takes_the_options_of_a_simulator():
    model, data = load(PUSHED)
    initial = start(model, data, 2)
    initial[:, 1 + model.nq] = 1.0
    final = []
    with Rollout() as pool:
        for friction in (0.5, 0.0):
            model.geom_friction[:, 0] = friction
            final.append(pool.rollout(model, data, initial, nstep=20)[0][0, -1, 1])
    assert final[0] < final[1] == pytest.approx(0.04)
    frictionless, _ = stiction.rollout(
        model, data, initial, nstep=20, contact=stiction.Frictionless(), persistent_pool=True
    )
    assert frictionless[0, -1, 1] == pytest.approx(0.04)


def test_a_batch_records_what_rollout_returns():
    model, data = load(PUSHED)
    initial = start(model, data, 4)
    control = np.random.default_rng(1).uniform(-20.0, 20.0, (4, 12, 1))
    batch = Batch(model, 4, 2)
    batch.qpos[:] = initial[:, 1 : 1 + model.nq]
    out = batch.rollout(12, control, record=(PHYSICS, "sensordata", "ncon"))
    states, sensors = stiction.rollout(model, data, initial, control)
    assert np.array_equal(out[PHYSICS], states)
    assert np.array_equal(out["sensordata"], sensors)
    assert (out["ncon"] == 4).all()
    assert np.array_equal(batch.qpos, states[:, -1, 1 : 1 + model.nq])


def test_data_of_another_model_is_refused():
    (model, _), (_, other) = load(PUSHED), load(BOX)
    states = np.zeros((2, mujoco.mj_stateSize(model, PHYSICS)))
    with pytest.raises(stiction.InvalidInput, match="data"):
        stiction.rollout(model, other, states, nstep=2)


def test_without_controls_those_of_the_data_are_applied_as_by_mujocos_own():
    model, data = load(PUSHED)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    initial = start(model, data, 2)
    data.ctrl[:] = 6.0  # [N], on 2 kg
    inputs = {"": {}, "forces": {"control_spec": int(mujoco.mjtState.mjSTATE_XFRC_APPLIED)}}
    data.xfrc_applied[1, 0] = -4.0
    for arguments in inputs.values():
        ours, _ = stiction.rollout(model, data, initial, nstep=10, **arguments)
        theirs_, _ = theirs.rollout.rollout(model, copy.copy(data), initial, nstep=10, **arguments)
        np.testing.assert_allclose(ours, theirs_, rtol=0.0, atol=1e-12)
    assert ours[0, -1, 1 + model.nq] == pytest.approx(-4.0 / 2.0 * 0.02)


def test_no_initial_states_give_no_rollouts():
    model, data = load(PUSHED)
    none = start(model, data, 1)[:0]
    state, sensors = stiction.rollout(model, data, none, nstep=3)
    assert state.shape == (0, 3, none.shape[1])
    assert sensors.shape == (0, 3, model.nsensordata)


@pytest.mark.parametrize(
    "make",
    [
        lambda shape: np.zeros(shape, np.float32),
        lambda shape: np.zeros(shape, order="F"),
        lambda shape: np.zeros((*shape, 2))[..., 0],
    ],
    ids=["single", "fortran", "strided"],
)
def test_arrays_of_other_layouts_that_are_given_for_results_are_filled(make):
    model, data = load(PUSHED)
    initial = start(model, data, 2)
    state, sensors = make((2, 3, initial.shape[1])), make((2, 3, model.nsensordata))
    filled = stiction.rollout(model, data, initial, nstep=3, state=state, sensordata=sensors)
    for given, result in zip((state, sensors), filled, strict=True):
        np.testing.assert_array_equal(given, result.astype(given.dtype))
    assert (state[:, :, 0] > 0.0).all()


@pytest.mark.parametrize("wrong", [np.zeros((2, 3, 17), int), np.zeros((2, 3, 17))])
def test_arrays_that_cannot_hold_results_are_refused_by_name(wrong):
    model, data = load(PUSHED)
    initial = start(model, data, 2)
    wrong = wrong[..., : initial.shape[1]].copy()
    wrong.flags.writeable = wrong.dtype != np.float64
    with pytest.raises(stiction.InvalidInput, match=r"^state: is (of int64|read-only)"):
        stiction.rollout(model, data, initial, nstep=3, state=wrong)


@pytest.mark.parametrize("name", ["initial_state", "control"])
def test_complex_numbers_are_refused_by_name(name):
    model, data = load(PUSHED)
    given = {"initial_state": start(model, data, 2), "control": np.ones((2, 3, model.nu))}
    given[name] = given[name] + 1j
    with pytest.raises(stiction.InvalidInput, match=f"^{name} .*must hold real numbers"):
        stiction.rollout(model, data, **given)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, if it was imported
def test_a_forked_process_rolls_out_though_its_parent_keeps_a_pool():
    model, data = load(PUSHED)
    initial, both = start(model, data, 3), [data, mujoco.MjData(model)]
    ours, _ = stiction.rollout(model, both, initial, nstep=4, persistent_pool=True)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        status = 1
        try:
            again, _ = stiction.rollout(model, both, initial, nstep=4, persistent_pool=True)
            status = 0 if np.array_equal(ours, again) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    stiction.simulate.batch.rollout.shutdown_persistent_pool()
