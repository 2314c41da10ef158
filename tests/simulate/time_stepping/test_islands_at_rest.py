"""Islands that are to the bit what they were in the last step: their answer is there already."""

import mujoco
import numpy as np
import pytest

import stiction
from stiction.contact.problem.graph import Size
from stiction.contact.solvers.blocks.workspace import Outcome

STACK_AND_SLIDER = """
<mujoco><option timestep="0.002"/><worldbody>
  <geom type="plane" size="0 0 .1" friction=".5"/>
  <body pos="0 0 .05"><freejoint/><geom type="box" size=".05 .05 .05"/></body>
  <body pos=".01 0 .15"><freejoint/><geom type="box" size=".05 .05 .05"/></body>
  <body name="slider" pos="1 0 .05"><freejoint/><geom type="box" size=".05 .05 .05"/></body>
</worldbody></mujoco>
"""


@pytest.fixture
def settled():
    """(simulator, data): the stack at rest, the other box sliding."""
    model = mujoco.MjModel.from_xml_string(STACK_AND_SLIDER)
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    sim.step(data, 300)
    assert not data.qvel.any()
    data.qvel[12] = 2.0
    sim.step(data)
    return sim, data


def factorizations(sim):
    """Of each island in the last step, in the order of their bodies."""
    solver = sim._engine.work.solver
    return solver.request.outcome[: solver.graph.size[Size.ISLANDS], Outcome.FACTORIZATIONS]


def test_a_stack_at_rest_is_not_solved_again_while_another_box_slides(settled):
    sim, data = settled
    model = sim.model
    force = data.efc_force.copy()
    report = sim.step(data)
    stack, slider = factorizations(sim)
    assert stack == 0
    assert slider > 0
    assert report.certificate.passed
    assert not data.qvel[:12].any()
    assert data.qvel[12] < 2.0
    assert np.isclose(data.efc_force.sum(), force.sum(), rtol=0.2)
    weight = 9.81 * model.body_mass[1:3].sum()
    assert data.qfrc_constraint[2] + data.qfrc_constraint[8] == pytest.approx(weight, rel=1e-9)


def test_a_stack_that_is_pushed_ever_so_little_is_solved_again(settled):
    sim, data = settled
    data.xfrc_applied[2, 0] = 1e-6
    report = sim.step(data)
    assert factorizations(sim)[0] > 0
    assert report.certificate.passed
    assert data.qfrc_constraint[6] == pytest.approx(-1e-6, rel=1e-4)


def test_the_answer_is_the_same_from_a_state_that_was_put_back(settled):
    sim, data = settled
    state = sim.get_state(data)
    sim.step(data, 20)
    first = data.qpos.copy(), data.qvel.copy(), data.qfrc_constraint.copy()
    sim.set_state(data, state)
    sim.step(data, 20)
    for before, after in zip(first, (data.qpos, data.qvel, data.qfrc_constraint), strict=True):
        np.testing.assert_array_equal(before, after)
