"""The same state gives the same bits: in one call or many, fresh, warm, in threads."""

import copy
import threading
import warnings

import mujoco
import numpy as np
import pytest
from mjcf import BOX, jumble, load
from mjdata import state

import stiction
from stiction.contact.solvers.proximal.modes import SEPARATE, SLIDE


def test_many_steps_in_one_call_are_the_same_bits_as_single_steps():
    model, data = jumble()
    other = copy.copy(data)
    stiction.Simulator(model).step(data, 300)
    sim = stiction.Simulator(model)
    for _ in range(300):
        report = sim.step(other)
    assert state(other) == state(data)
    assert np.array_equal(other.qacc, data.qacc)
    assert report.time == data.time


def test_the_same_state_gives_the_same_bits_in_a_fresh_simulator():
    model, data = jumble()
    stiction.Simulator(model).step(data, 150)
    start = copy.copy(data)
    first, used = copy.copy(start), stiction.Simulator(model)
    used.step(first, 50)
    for _ in range(2):
        again = mujoco.MjData(model)  # nothing in it but the state
        again.qpos[:], again.qvel[:] = start.qpos, start.qvel
        again.ctrl[:], again.time = start.ctrl, start.time
        stiction.Simulator(model).step(again, 50)
        assert state(again) == state(first)
    # And in one that has been elsewhere, once it has forgotten.
    used.forget()
    last = copy.copy(start)
    used.step(last, 50)
    assert state(last) == state(first)


TIPPING = """
<mujoco><option timestep="0.002" gravity="0.3 0 -9.81" cone="elliptic"/>
<worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 .0499"><freejoint/>
    <geom type="box" size=".1 .08 .05" condim="6" friction="0.6 0.01 0.002"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize(
    "contact",
    [stiction.Coulomb(), stiction.Coulomb(facets=6), stiction.NoSlip(), stiction.Viscous(0.5)],
    ids=str,
)
def test_a_simulator_that_forgot_its_steps_gives_the_bits_of_a_fresh_one(contact):
    model, data = load(TIPPING)
    data.qvel[:2] = [0.3, 0.03]

    def forces(sim):
        moved, found = copy.copy(data), []
        for _ in range(10):
            sim.step(moved)
            found.append(moved.qfrc_constraint.tobytes() + moved.efc_force.tobytes())
        return found

    used = stiction.Simulator(model, contact)
    fresh = forces(used)
    used.forget()
    assert forces(used) == fresh


def test_a_warm_start_changes_the_answer_only_where_the_law_has_several():
    """Two contacts of one pair either slide both, turning about each other, or one sticks and the
    other parts: Coulomb's law allows both. And where several slide, how they share a load is left
    open, and with it their friction."""
    model, data = jumble()
    sim, fresh = stiction.Simulator(model), stiction.Simulator(model, warm_start=False)
    differ = 0
    for _ in range(300):
        cold = copy.copy(data)
        other, report = fresh.step(cold), sim.step(data)
        if np.abs(cold.qvel - data.qvel).max() > 1e-9:
            differ += 1
            assert max(other.certificate.worst, report.certificate.worst) <= 1e-8
            modes = [[c.mode for c in found.contacts] for found in (other, report)]
            assert modes[0] != modes[1] or modes[0].count(stiction.Mode.SLIDE) > 1
    assert differ <= 3


def test_a_warm_start_does_not_change_how_a_box_slides_and_spins():
    # Four corners share the weight in more than one way, and friction depends on how.
    model, data = load(BOX.replace('size=".1 .1 .1"', 'size=".1 .15 .1"'))
    data.qvel[:] = [1.0, 0.3, 0.0, 0.0, 0.0, 4.0]
    sim = stiction.Simulator(model)
    for _ in range(150):
        cold = copy.copy(data)
        stiction.Simulator(model, warm_start=False).step(cold)
        sim.step(data)
        assert np.abs(cold.qvel - data.qvel).max() <= 1e-10


def test_simulators_in_threads_give_the_same_bits_as_alone():
    model, start = jumble()
    alone = copy.copy(start)
    stiction.Simulator(model).step(alone, 300)
    runs = [copy.copy(start) for _ in range(8)]
    sims = [stiction.Simulator(model) for _ in range(8)]
    threads = [
        threading.Thread(target=sim.step, args=(data, 300))
        for sim, data in zip(sims, runs, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(state(data) == state(alone) for data in runs)


def test_a_state_that_is_put_back_is_stepped_again():
    model, data = load(BOX)
    data.qvel[0] = 1.0
    sim, before = stiction.Simulator(model), copy.copy(data)
    sim.step(data)
    after = data.qpos.copy()
    data.qpos[:], data.qvel[:], data.time = before.qpos, before.qvel, before.time
    sim.step(data)
    assert np.allclose(data.qpos, after, rtol=0.0, atol=1e-15)


def test_what_rests_is_not_solved_again():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    sim.step(data, 100)
    sim.reset_statistics()
    report = sim.step(data, 100)
    assert report.pivots == 0
    assert sim.statistics.pivots == 0.0
    mujoco.mj_forward(model, data)  # overwrites what the step left
    forces = sim.step(data).contacts[0].force
    assert np.array_equal(forces, report.contacts[0].force)


ARM = """<mujoco><option timestep="0.002"/><worldbody><body>
  <joint name="a" axis="0 1 0" damping="30"/>
  <geom type="capsule" size=".03" fromto="0 0 0 .4 0 0"/>
  <body pos=".4 0 0"><joint name="b" axis="0 1 0" damping="30"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .3 0 .1"/></body></body></worldbody>
  <actuator><position joint="a" kp="300" ctrlrange="-1 1"/>
    <position joint="b" kp="200" ctrlrange="-1 1"/></actuator></mujoco>"""


def test_an_arm_that_servos_hold_rests_to_the_last_bit():
    model, data = load(ARM)
    data.ctrl[:] = 0.3, -0.7
    sim = stiction.Simulator(model)
    sim.step(data, 4000)
    before = data.qpos.copy()
    sim.step(data, 100)
    assert not data.qvel.any()
    assert (data.qpos == before).all()
    data.ctrl[0] += 1e-6  # what moves a servo a little moves the arm
    sim.step(data, 4000)
    assert abs(data.qpos[0] - before[0] - 1e-6) < 1e-7


def test_boxes_in_a_grasp_rest_to_the_last_bit():
    model, data, _ = stiction.scenes.load("grasp", boxes=4)
    sim = stiction.Simulator(model)
    sim.step(data, 600)
    before = data.qpos.copy()
    report = sim.step(data, 100)
    assert not data.qvel.any()
    assert (data.qpos == before).all()
    assert report.certificate.worst < 1e-8


def test_the_weakest_push_moves_what_nothing_holds():
    model, data = load(
        "<mujoco><option gravity='0 0 0'/><worldbody><body><freejoint/>"
        "<geom size='.1' mass='1'/></body></worldbody></mujoco>"
    )
    data.xfrc_applied[1, 0] = 1e-16
    stiction.Simulator(model).step(data, 100)
    assert np.isclose(data.qvel[0], 100 * model.opt.timestep * 1e-16, rtol=1e-9)


def test_modes_of_rows_that_are_no_more_change_no_step():
    """Two bodies within each other, which a joint holds so: their modes are changed one by one."""
    model, data = load("""
<mujoco><option timestep=".001" gravity=".637 .705 -8.292"/><worldbody>
  <geom type="plane" size="5 5 .1" friction=".8"/>
  <body name="a" pos="-.0885 -.0213 .1841" quat="1.6999 .1971 .4980 -2.5004"><freejoint/>
    <geom size=".0587" condim="4" friction=".797 .01 .001"/>
    <geom type="ellipsoid" size=".0467 .0462 .0308" condim="4" pos=".05 .03 0"/></body>
  <body name="b" pos="-.0229 -.1154 .2372" quat="-1.7851 -1.1976 -1.5138 .1756"><freejoint/>
    <geom type="capsule" size=".029 .049" condim="1"/>
    <geom type="box" size=".0565 .0629 .0421" condim="1" pos=".05 .03 0"/></body>
</worldbody><equality><connect body1="a" body2="b" anchor=".02 0 0"/></equality></mujoco>""")
    found = []
    for left in (SEPARATE, SLIDE):
        mujoco.mj_resetData(model, data)
        sim = stiction.Simulator(model, equality="rigid")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", stiction.OverlapWarning)
            for _ in range(60):
                sim._engine.work.solver.newton.mode[:, 1:] = left
                sim.step(data)
        found.append(data.qvel.tobytes())
    assert found[0] == found[1]
