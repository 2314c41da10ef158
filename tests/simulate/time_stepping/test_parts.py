"""Steps that no solver answers, taken in parts."""

from time import perf_counter

import mujoco
import numpy as np
import pytest
from mjcf import BOX, load
from mjdata import state

import stiction
from stiction.simulate.time_stepping.config import Stop
from stiction.simulate.time_stepping.parts import SHORTER


def unanswered_beyond(sim, longest):
    """Lets no step of the simulator that is longer than that have an answer [s]."""
    engine = sim._engine
    taken = []

    def run(session, data, nstep, turn):
        dt = engine.own.model.opt.timestep
        if dt > longest:
            engine._compiled_run(session, 0, 0, turn)
            return int(Stop.UNSOLVED)
        taken.append(dt)
        return engine._compiled_run(session, data, nstep, turn)

    def answer(model, data, work, failed=None):
        raise stiction.SolveFailed(None, stiction.Status.ERROR, "too long", "")

    engine._compiled_run, engine._run = engine._run, run
    engine.fallback.answer = answer
    engine.fallback.answer_part = lambda work, dt: False
    return taken


def falling():
    model, data = load(BOX)
    data.qpos[2] += 1e-3
    data.qvel[:3] = 0.3, 0.1, -1.0
    return model, data


def test_a_step_in_parts_ends_where_as_many_shorter_steps_do():
    model, data = falling()
    whole = model.opt.timestep
    sim = stiction.Simulator(model)
    taken = unanswered_beyond(sim, whole / 2**SHORTER)
    before = data.qvel.copy()
    report = sim.step(data)
    assert len(taken) > 2**SHORTER
    assert sum(taken) == pytest.approx(whole, rel=1e-12)
    assert report.rung == "parts"
    assert report.certificate.worst <= 1e-8
    assert data.time == whole
    assert np.array_equal(data.qacc, (data.qvel - before) / whole)

    other = mujoco.MjData(model)
    other.qpos[:], other.qvel[:] = falling()[1].qpos, before
    shorter = stiction.Simulator(model)
    impulse = np.zeros(model.nv)
    for dt in taken:
        model.opt.timestep = dt
        last = shorter.step(other)
        impulse += dt * other.qfrc_constraint
    assert np.allclose(data.qpos, other.qpos, rtol=0.0, atol=1e-12)
    assert np.allclose(data.qvel, other.qvel, rtol=0.0, atol=1e-12)
    assert np.allclose(data.qfrc_constraint, impulse / whole, rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(report.contacts, last.contacts, strict=True):
        assert np.allclose(ours.force, theirs.force, rtol=1e-6, atol=1e-6)


def test_statistics_count_a_step_in_parts_once():
    model, data = falling()
    sim = stiction.Simulator(model)
    unanswered_beyond(sim, model.opt.timestep / 10)
    sim.step(data, 3)
    assert data.time == pytest.approx(3 * model.opt.timestep)
    assert sim.statistics.steps == 3
    assert sim.statistics.rungs == {"parts": 3}


def test_the_time_of_a_step_in_parts_is_counted():
    model, data = falling()
    sim = stiction.Simulator(model)
    unanswered_beyond(sim, model.opt.timestep / 10)
    sim.step(data)
    began = perf_counter()
    report = sim.step(data)
    passed = perf_counter() - began
    assert 0.5 * passed < sum(report.seconds.values()) < 1.05 * passed


def test_a_step_whose_parts_have_no_answer_fails_and_leaves_all_as_it_was():
    model, data = falling()
    sim = stiction.Simulator(model)
    sim.step(data, 2)
    unanswered_beyond(sim, 0.0)
    before, guess = state(data), sim._engine.memory
    with pytest.raises(stiction.SolveFailed):
        sim.step(data)
    assert state(data) == before
    assert np.array_equal(sim._engine.memory.record, guess.record)
    assert sim.statistics.steps == 2
    assert sim._engine.own.model.opt.timestep == model.opt.timestep


@pytest.mark.parametrize("options", [{"budget": 1.0}, {"on_failure": "frictionless"}])
def test_no_step_is_taken_in_parts_where_something_else_was_asked_for(options):
    model, data = falling()
    sim = stiction.Simulator(model, **options)
    taken = unanswered_beyond(sim, model.opt.timestep / 10)
    with pytest.raises(stiction.SolveFailed):
        sim.step(data)
    assert not taken


GRAINS = """
<mujoco>
  <option timestep="4e-3"/>
  <default><geom type="sphere" size=".01" friction="1 .005 .005"/></default>
  <worldbody>
    <geom type="plane" size="1 1 .01"/>
    <geom type="box" size=".1 .12 .06" pos="0 0 .02" euler="0 18 0"/>
    <replicate count="3" offset="0 0 .02828">
      <replicate count="6" offset=".02 0 0">
        <replicate count="6" offset="0 .02 0">
          <body pos="-.05 -.05 .29"><freejoint/><geom/></body>
        </replicate>
      </replicate>
      <replicate count="5" offset=".02 0 0">
        <replicate count="5" offset="0 .02 0">
          <body pos="-.04 -.04 .30414"><freejoint/><geom/></body>
        </replicate>
      </replicate>
    </replicate>
  </worldbody>
</mujoco>
"""


@pytest.mark.long
def test_a_castle_of_sand_lands_on_a_ramp():
    model, data = load(GRAINS)
    sim = stiction.Simulator(model)
    for _ in range(55):
        sim.step(data)
    assert sim.statistics.worst <= 1e-6
    assert sim.statistics.rungs["parts"] >= 1
