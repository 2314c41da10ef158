"""Conveyors: `geom_surfacevel`, friction over surfaces that move."""

import mujoco
import numpy as np
import pytest
from mjcf import load

import stiction
from stiction.contact.problem.block_problem import to_problem
from stiction.simulate.time_stepping.workspace import Count

G, MU, SPEED = 9.81, 0.5, 1.0

BELT = """
<mujoco>
  <option timestep="0.001" cone="{cone}"/>
  <worldbody>
    <geom name="belt" type="box" size="5 1 .1" pos="0 0 -.1" euler="0 0 {angle}" friction="{mu}"
      surfacevel="{velocity}"/>
    <body name="box" pos="0 0 .1"><freejoint/>
      <geom type="box" size=".1 .1 .1" mass="2" friction="{mu}" condim="{condim}"/></body>
  </worldbody>
</mujoco>"""


def belt(velocity=f"{SPEED} 0 0 0 0 0", angle=0, cone="elliptic", mu=MU, condim=3):
    text = BELT.format(velocity=velocity, angle=angle, cone=cone, mu=mu, condim=condim)
    return load(text)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_a_box_on_a_belt_is_sped_up_by_friction_and_then_rides_along(cone):
    model, data = belt(cone=cone)
    simulator = stiction.Simulator(model)
    for step in range(1, 301):
        report = simulator.step(data)
        assert report.certificate.passed
        assert data.qvel[0] == pytest.approx(min(MU * G * step * 1e-3, SPEED), abs=1e-9)
        sliding = {contact.mode for contact in report.contacts if contact.force[0] > 0.0}
        assert sliding == {
            stiction.Mode.SLIDE if MU * G * step * 1e-3 < SPEED else stiction.Mode.STICK
        }
    np.testing.assert_allclose(data.qvel[[1, 2, 3, 4, 5]], 0.0, atol=1e-9)


def test_slip_is_that_over_the_belt():
    model, data = belt()
    report = stiction.Simulator(model).step(data)
    assert np.hypot(*report.contacts[0].slip) == pytest.approx(SPEED - MU * G * 1e-3)


def test_a_box_held_against_a_running_belt_pulls_with_the_friction_that_it_bears():
    model, data = belt()
    simulator = stiction.Simulator(model)
    data.xfrc_applied[1, 0] = -MU * 2.0 * G
    simulator.step(data, 100)
    assert abs(data.qvel[0]) < 1e-9


@pytest.mark.parametrize("contact", [stiction.NoSlip(), stiction.Coulomb(facets=8)], ids=str)
def test_other_laws_of_friction_follow_the_belt(contact):
    model, data = belt(angle=30)
    simulator = stiction.Simulator(model, contact=contact)
    simulator.step(data, 400)
    expected = SPEED * np.array([np.cos(np.pi / 6), 0.5])
    np.testing.assert_allclose(data.qvel[:2], expected, atol=1e-6)


def test_a_turntable_takes_along_what_lies_on_it():
    model, data = belt(velocity="0 0 0 0 0 2", condim=4)
    data.qpos[0] = 0.3
    stiction.Simulator(model).step(data, 400)
    assert data.qvel[5] == pytest.approx(2.0, rel=0.02)
    assert np.linalg.norm(data.qvel[:2]) == pytest.approx(
        2.0 * np.linalg.norm(data.qpos[:2]), rel=0.02
    )


def test_velocities_of_surfaces_are_mujocos():
    model, data = belt(velocity=".4 -.3 0 0 0 1.5", angle=25, condim=4)
    simulator = stiction.Simulator(model)
    simulator.step(data)
    work = simulator._engine.work
    count = int(work.step.counts[Count.BLOCKS])
    ours = work.blocks.data[:count, 6:9]
    index = work.step.key[:count, 2]
    theirs = np.array([data.contact[i].surfacevel for i in index])
    assert np.abs(theirs).max() > 0.1
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_the_problem_of_a_step_as_arrays_has_the_same_answer():
    model, data = belt(velocity="1 .5 0 0 0 0", condim=4)
    simulator = stiction.Simulator(model)
    simulator.step(data, 3)
    work = simulator._engine.work
    count = int(work.step.counts[Count.BLOCKS])
    problem = to_problem(work.blocks, count, model.opt.timestep)
    assert problem.nv == model.nv + 1
    solution = stiction.Coulomb().solve(problem)
    assert solution.certificate.passed
    np.testing.assert_allclose(solution.velocity[: model.nv], work.step.v_plus, atol=1e-7)
    assert solution.velocity[-1] == pytest.approx(1.0)


def test_belts_move_as_mujocos_do():
    model, data = belt(velocity=".5 0 0 0 0 .3", angle=30)
    theirs = mujoco.MjData(model)
    simulator = stiction.Simulator(model)
    for _ in range(800):
        simulator.step(data)
        mujoco.mj_step(model, theirs)
    np.testing.assert_allclose(data.qvel[:2], theirs.qvel[:2], atol=0.02)
