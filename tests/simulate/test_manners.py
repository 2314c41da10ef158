"""What a simulator does beside stepping: copies, pickles, states, resets."""

import copy
import os
import pickle
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mjcf import BOX, jumble, load
from mjdata import state

import stiction
from stiction import Baraff, Coulomb, InvalidInput

TWICE = [
    lambda sim: copy.copy(sim),
    lambda sim: copy.deepcopy(sim),
    lambda sim: pickle.loads(pickle.dumps(sim)),
]


@pytest.mark.parametrize("twice", TWICE, ids=["copy", "deepcopy", "pickle"])
def test_a_copy_goes_on_with_the_same_bits_and_has_a_workspace_of_its_own(twice):
    model, data = jumble()
    sim = stiction.Simulator(model, Coulomb(facets=8), tolerance=1e-5)
    sim.step(data, 120)
    other, same = copy.copy(data), twice(sim)
    sim.step(data, 50)
    same.step(other, 50)
    assert state(other) == state(data)
    assert repr(same.settings) == repr(sim.settings)


def test_a_copy_shares_the_model_and_a_deep_copy_does_not():
    model, _ = load(BOX)
    sim = stiction.Simulator(model)
    assert copy.copy(sim).model is model
    assert copy.deepcopy(sim).model is not model


def test_a_simulator_that_steps_by_events_can_be_copied():
    model, data = load(BOX.replace('pos="0 0 .1"', 'pos="0 0 .11"'))
    sim = stiction.Simulator(model, stepper=stiction.EventDriven())
    sim.step(data, 10)
    other, same = copy.copy(data), copy.copy(sim)
    sim.step(data, 30)
    same.step(other, 30)
    assert state(other) == state(data)


@pytest.mark.parametrize("contact", [Coulomb(), Baraff()])
def test_a_state_that_is_set_again_goes_on_with_the_same_bits(contact):
    model, data = jumble()
    sim = stiction.Simulator(model, contact)
    sim.step(data, 120)
    kept = sim.get_state(data)
    sim.step(data, 40)
    after, forces = state(data), data.qfrc_constraint.copy()
    sim.step(data, 60)
    sim.set_state(data, kept)
    sim.step(data, 40)
    assert state(data) == after
    assert np.array_equal(data.qfrc_constraint, forces)
    # And elsewhere, through a file.
    elsewhere, another = mujoco.MjData(model), stiction.Simulator(model, contact)
    another.set_state(elsewhere, pickle.loads(pickle.dumps(kept)))
    another.step(elsewhere, 40)
    assert state(elsewhere) == after


def test_a_state_of_what_has_come_to_rest_goes_on_with_the_same_bits():
    """Steps at rest are not taken; those after the state is set again are."""
    model, data = load(BOX)
    data.qvel[:] = [0.3, 0.2, 0.0, 0.0, 0.0, 0.5]
    sim = stiction.Simulator(model)
    sim.step(data, 400)
    kept = sim.get_state(data)
    sim.step(data, 20)
    forces = data.qfrc_constraint.copy(), data.efc_force.copy()
    other = mujoco.MjData(model)
    stiction.Simulator(model).set_state(other, kept)
    again = stiction.Simulator(model)
    again.set_state(other, kept)
    again.step(other, 20)
    assert state(other) == state(data)
    assert np.array_equal(other.qfrc_constraint, forces[0])
    assert np.array_equal(other.efc_force, forces[1])


def test_a_state_with_many_contacts_finds_room_in_a_new_simulator():
    boxes = "".join(
        f'<body pos="{0.5 * i} 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for i in range(20)
    )
    model, data = load(
        f'<mujoco><worldbody><geom type="plane" size="20 9 1"/>{boxes}</worldbody></mujoco>'
    )
    sim = stiction.Simulator(model)
    sim.step(data, 3)
    kept, other = sim.get_state(data), mujoco.MjData(model)
    another = stiction.Simulator(model)
    another.set_state(other, kept)
    sim.step(data)
    another.step(other)
    assert state(other) == state(data)


def test_a_state_kept_before_the_model_was_edited_is_answered_anew():
    """A box that rested, on a floor that is slippery since: by the compiled solvers, not by
    pivoting."""
    model, data = load(BOX)
    model.opt.gravity[:] = 4.0, 0.0, -9.0
    sim = stiction.Simulator(model)
    sim.step(data, 5)
    kept = sim.get_state(data)
    model.geom_friction[:, 0] = 0.1
    sim.step(data)
    sim.set_state(data, kept)
    report = sim.step(data)
    assert report.rung in ("interior point", "proximal")
    assert data.qvel[0] == pytest.approx(model.opt.timestep * (4.0 - 0.9), rel=1e-6)


def test_a_state_of_another_model_is_refused():
    model, data = load(BOX)
    other, elsewhere = jumble()
    kept = stiction.Simulator(model).get_state(data)
    with pytest.raises(InvalidInput, match="another model"):
        stiction.Simulator(other).set_state(elsewhere, kept)


KEYS = BOX.replace(
    "</mujoco>",
    '<keyframe><key qpos="1 0 .1 1 0 0 0"/><key name="high" qpos="0 0 2 1 0 0 0"/></keyframe>'
    "</mujoco>",
)


def test_reset_begins_anew_with_the_same_bits():
    model, data = load(KEYS)
    sim = stiction.Simulator(model)
    data.qvel[:] = [1.0, 0.2, 0.0, 0.0, 0.0, 3.0]
    sim.step(data, 30)
    sim.reset(data)
    assert data.time == 0.0
    sim.step(data, 30)
    fresh = mujoco.MjData(model)
    stiction.Simulator(model).step(fresh, 30)
    assert state(data) == state(fresh)


def test_a_start_from_rest_that_is_asked_for_again_is_no_rest():
    """A box that begins to slide in its first step, put back by MuJoCo and not by the simulator:
    the step's answer is not that it rests there, which pivoting would have to mend."""
    model, data = load(KEYS)
    model.opt.gravity[:] = 12.0, 0.0, -9.0
    sim, ends = stiction.Simulator(model), []
    for _ in range(3):
        mujoco.mj_resetData(model, data)
        report = sim.step(data)
        ends.append(data.qvel[0])
        assert report.rung in ("interior point", "proximal")
    assert ends[0] > 1e-3
    assert np.ptp(ends) < 1e-12


def test_reset_takes_keyframes_by_number_and_name():
    model, data = load(KEYS)
    sim = stiction.Simulator(model)
    sim.reset(data, 0)
    assert data.qpos[0] == 1.0
    sim.reset(data, "high")
    assert data.qpos[2] == 2.0
    for key, told in ((2, "2 keyframes"), (-1, "2 keyframes"), ("hihg", "did you mean high")):
        with pytest.raises(InvalidInput, match=told):
            sim.reset(data, key)


def test_a_keyframe_by_name_where_none_has_one_is_told_so():
    model, data = load(BOX)
    with pytest.raises(InvalidInput, match="'home': the model has none with a name"):
        stiction.Simulator(model).reset(data, "home")


def test_a_controller_between_step1_and_step2_sees_the_state_as_it_is():
    sensor = '<sensor><framepos objtype="body" objname="box"/></sensor>'
    model, data = load(BOX.replace("</worldbody>", f"</worldbody>{sensor}"))
    sim, other = stiction.Simulator(model), copy.copy(data)
    data.qvel[2] = other.qvel[2] = 1.0
    twin = stiction.Simulator(model)
    for _ in range(100):
        sim.step1(data)
        assert np.array_equal(data.xpos[1], data.qpos[:3])
        assert np.array_equal(data.sensordata, data.qpos[:3])
        sim.step2(data)
        twin.step(other)
    assert state(data) == state(other)
    assert np.array_equal(data.efc_force, other.efc_force)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux")
def test_a_simulator_does_not_hold_the_textures_of_its_model():
    """Of menagerie's models they are up to nine tenths."""
    painted = BOX.replace(
        "<worldbody>",
        '<asset><texture name="paint" type="2d" builtin="checker" width="4096" height="4096"'
        ' rgb1="1 0 0" rgb2="0 1 0"/></asset><worldbody>',
    )
    model, data = load(painted)
    seen = model.tex_data.copy()
    assert model.ntexdata > 40e6
    stiction.Simulator(model).step(data)

    def held():
        pages = Path("/proc/self/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    before = held()
    simulators = [stiction.Simulator(model) for _ in range(4)]
    assert held() - before < model.ntexdata
    for each in simulators:
        each.step(data)
    assert np.array_equal(model.tex_data, seen)
