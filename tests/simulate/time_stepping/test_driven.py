"""Baraff's method in a simulator's compiled steps."""

from time import perf_counter

import mujoco
import numpy as np
import pytest

import stiction
from stiction import scenes
from stiction.contact import Baraff
from stiction.contact.models.model import ContactModel
from stiction.contact.solvers.baraff.blocks import label_islands
from stiction.simulate.time_stepping import engine
from stiction.simulate.time_stepping.workspace import Count, Figure
from stiction.status import Code


class ByArrays(ContactModel):
    """`Baraff` as a contact model that the simulator does not know: called from Python."""

    law = "coulomb"

    def solve(self, problem, start=None):
        return Baraff().solve(problem)


MECHANISM = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body name="table" pos="0 0 .1"><freejoint/>
      <geom type="box" size=".1 .1 .02" mass="1"/>
      <geom pos=".08 0 -.08" size=".02"/><geom pos="-.05 .07 -.08" size=".02"/>
      <geom pos="-.05 -.07 -.08" size=".02"/></body>
    <body name="rider" pos="0.02 0 .17"><freejoint/>
      <geom type="box" size=".05 .05 .05" mass=".3"/></body>
    <body name="ball" pos="1 0 .1"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>
    <body name="arm" pos="-1 0 .5">
      <joint name="shoulder" axis="0 1 0" range="-20 20" limited="true" frictionloss=".05"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".02" mass=".5"/>
      <body pos=".4 0 0">
        <joint name="elbow" axis="0 1 0" frictionloss=".02"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".2"/>
      </body>
    </body>
    <body name="slider" pos="-1 1 .5"><joint name="rail" type="slide" axis="1 0 0"/>
      <geom size=".05" mass=".5"/></body>
  </worldbody>
  <equality><joint joint1="elbow" joint2="rail" polycoef="0 -1 0 0 0"/></equality>
</mujoco>"""
"""A box on a sliding table, a ball, an arm on its limit with dry joints and an equality. The table
has three legs: with four, how they share the load is open, and with it how friction turns it."""


def mechanism():
    model = mujoco.MjModel.from_xml_string(MECHANISM)
    data = mujoco.MjData(model)
    data.joint("shoulder").qpos = 0.3
    data.qvel[:3] = 0.5, 0.2, 0.0
    data.qvel[12:15] = 1.0, 0.0, 0.0
    return model, data


def mechanism_or_scene(name):
    if name == "mechanism":
        return (*mechanism(), None)
    return scenes.load(name)


@pytest.mark.parametrize("equality", ["soft", "rigid"])
@pytest.mark.parametrize("name", ["mechanism", "block-feeder", "jack"])
def test_compiled_steps_move_as_those_called_from_python(name, equality):
    model, data, controller = mechanism_or_scene(name)
    compiled = stiction.Simulator(model, Baraff(), equality=equality)
    called = stiction.Simulator(model, ByArrays(), equality=equality)
    other = mujoco.MjData(model)
    for _ in range(150):
        if controller is not None:
            controller(model, data)
        mujoco.mj_copyData(other, model, data)
        report = compiled.step(data)
        called.step(other)
        assert report.rungs == ("driving",)
        assert report.certificate.worst <= 1e-8
        speed = np.abs(data.qvel).max()
        assert np.abs(data.qvel - other.qvel).max() <= 1e-8 * max(speed, 1e-3)
    assert compiled.statistics.warm > 0.5


def test_without_warm_start_every_step_is_driven_from_nothing():
    model, data = mechanism()
    sim = stiction.Simulator(model, Baraff(), warm_start=False)
    report = sim.step(data, 20)
    assert report.rungs == ("driving",)
    assert sim.statistics.rungs == {"driving": 20}
    assert sim.statistics.warm == 0.0
    assert sim.statistics.seconds["solve"] > 0.0


def test_the_time_of_driving_is_counted_once():
    model, data = mechanism()
    sim = stiction.Simulator(model, Baraff())
    sim.step(data)
    sim.reset_statistics()
    began = perf_counter()
    for _ in range(20):
        sim.step(data)
    passed = perf_counter() - began
    assert 0.0 < sum(sim.statistics.seconds.values()) < 1.05 * passed


def test_islands_of_blocks_are_those_of_the_problem():
    model, data = mechanism()
    posed = []

    class Watching(ByArrays):
        def solve(self, problem, start=None):
            work = sim._engine.work
            count = int(work.step.counts[Count.BLOCKS])
            posed.append((problem, label_islands(work.blocks, count)))
            return super().solve(problem)

    sim = stiction.Simulator(model, Watching(), equality="rigid")
    sim.step(data, 5)
    for problem, (dofs, blocks) in posed:
        assert {tuple(np.flatnonzero(dofs == label)) for label in set(blocks)} == {
            tuple(island.dofs) for island in problem.islands()
        }
        assert len(set(blocks)) == 3


@pytest.fixture
def failing(monkeypatch):
    """Baraff's compiled way drives into a cycle; his way from Python is not to be asked."""
    inner = engine.drive

    def fail(warm, tolerance, address):
        inner(warm, -1.0, address)
        return int(Code.CYCLE)

    def refuse(self, problem, start=None):
        raise AssertionError("the way that has failed is run again")

    monkeypatch.setattr(engine, "drive", fail)
    monkeypatch.setattr(Baraff, "solve", refuse)


def test_a_compiled_way_that_failed_is_not_run_again(failing):
    model, data = mechanism()
    sim = stiction.Simulator(model, Baraff(), tolerance=1e-30)
    with pytest.raises(stiction.SolveFailed) as caught:
        sim.step(data)
    assert caught.value.status == "cycle"
    assert data.time == 0.0


def test_what_a_failed_way_found_is_taken_where_it_is_good_enough(failing):
    model, data = mechanism()
    report = stiction.Simulator(model, Baraff()).step(data)
    assert report.rungs == ("driving",)
    assert 0.0 < report.certificate.worst <= 1e-6
    best = stiction.Simulator(model, Baraff(), tolerance=1e-30, on_failure="best").step(data)
    assert best.rungs == ("driving", "best attempt")
    assert best.missed


def test_a_failed_way_goes_on_without_friction_where_asked(failing, monkeypatch):
    model, data = mechanism()
    sim = stiction.Simulator(model, Baraff(), on_failure="frictionless")

    def find_nothing(warm, tolerance, address):
        sim._engine.work.step.figure[Figure.WORST] = np.inf
        return int(Code.CYCLE)

    monkeypatch.setattr(engine, "drive", find_nothing)
    report = sim.step(data)
    assert report.rungs == ("driving", "without friction")
    assert sim.statistics.rungs == {"without friction": 1}


def test_a_step_that_fails_leaves_the_state_as_it_was(monkeypatch):
    """Certificate and ladder with a tolerance that nothing passes."""
    model, data = mechanism()
    sim = stiction.Simulator(model, Baraff(), tolerance=1e-30)
    monkeypatch.setattr(engine, "RESIDUAL", 1e-30)
    before = data.qpos.copy(), data.qvel.copy(), data.time
    with pytest.raises(stiction.SolveFailed):
        sim.step(data)
    assert np.array_equal(data.qpos, before[0])
    assert np.array_equal(data.qvel, before[1])
    assert data.time == before[2]


def test_torsional_friction_is_refused_by_name():
    model = mujoco.MjModel.from_xml_string("""
<mujoco><worldbody><geom type="plane" size="9 9 1" condim="4"/>
  <body pos="0 0 .1"><freejoint/><geom size=".1" condim="4"/></body></worldbody></mujoco>""")
    data = mujoco.MjData(model)
    before = data.qpos.copy()
    with pytest.raises(stiction.InvalidInput, match="torsional"):
        stiction.Simulator(model, Baraff()).step(data)
    assert np.array_equal(data.qpos, before)


def test_a_coefficient_of_its_own_is_kept():
    """`static` takes the place of the model's friction, also where steps are called from Python."""
    model = mujoco.MjModel.from_xml_string("""
<mujoco><option gravity="2 0 -9.81"/><worldbody><geom type="plane" size="9 9 1"/>
  <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>""")
    speeds = []
    for contact in (Baraff(), Baraff(static=0.1)):
        data = mujoco.MjData(model)
        stiction.Simulator(model, contact).step(data, 100)
        speeds.append(data.qvel[0])
    assert abs(speeds[0]) <= 1e-12
    assert speeds[1] == pytest.approx((2.0 - 0.981) * 0.2)
