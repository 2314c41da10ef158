"""Stick, slide or separate: read off an answer by one rule, whoever found and graded it."""

import mujoco
import numpy as np
import pytest

from stiction import Baraff, Coulomb, Mode, Simulator
from stiction.contact import ContactProblem
from stiction.contact.certificate.grading import allocate, grade_blocks, set_scales
from stiction.contact.certificate.laws import Law
from stiction.contact.certificate.modes import contact_modes, read_modes
from stiction.contact.problem.blocks import ROWS, row_velocities
from stiction.contact.problem.dense_blocks import from_arrays

BODY = """<body pos="{x} 0 .1">
  <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
  <joint type="slide" axis="0 0 1"/><geom size=".1"/></body>"""
SCENE = f"""<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="3 3 .1"/>
  {BODY.format(x=0)}{BODY.format(x=1)}{BODY.format(x=2)}</worldbody></mujoco>"""


def slow_beside_fast():
    """A light body that creeps on the floor, a heavy fast one that may run into it, and an answer:
    its creep is far above rounding of its own speeds, and far below that of the other's."""
    problem = ContactProblem(
        mass=np.diag([1.0, 1.0, 1.0, 1e3]),
        velocity=[0.0, 0.0, 0.0, 100.0],
        force=[0.0, 0.0, -9.81, 0.0],
        dt=0.01,
        normal=[[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, -1.0]],
        tangent=[[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], np.zeros((2, 4))],
        friction=[0.5, 0.0],
        bound=[0.0, -1e3],
    )
    return problem, np.array([1e-8, 0.0, 0.0, 100.0]), np.array([0.0981, 0.0])


@pytest.mark.parametrize("tolerance", [0.0, np.inf], ids=["spread", "own"])
def test_stick_or_slide_does_not_depend_on_the_scales_that_grading_needed(tolerance):
    problem, velocity, normal = slow_beside_fast()
    b, count = from_arrays(problem.arrays, problem.dt), 2
    grading = allocate(problem.nv, count)
    u, f = np.zeros((count, ROWS)), np.zeros((count, ROWS))
    f[:, 0] = normal
    row_velocities(b, count, velocity, u)
    set_scales(b, np.array(problem.free_velocity), grading)
    grade_blocks(
        b, count, int(Law.COULOMB), 0, tolerance, problem.scales.weight, velocity, u, f, grading
    )
    modes = np.zeros(count)
    read_modes(b, count, u, f, grading.own, modes)
    assert list(modes) == list(contact_modes(problem, velocity, normal))
    assert list(modes) == [Mode.SLIDE, Mode.SEPARATE]


@pytest.mark.parametrize(
    ("contact", "delassus"),
    [
        (Coulomb(), "factorized"),
        (Coulomb(), "assembly"),
        (Baraff(), "factorized"),
        (Coulomb(facets=8, solver="standard"), "factorized"),
    ],
)
def test_reports_tell_the_same_modes_whoever_solved_the_step(contact, delassus):
    """One body rests, one slides, one has left the floor."""
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    data.qvel[3], data.qvel[8] = 2.0, 1.0
    simulator = Simulator(model, contact, delassus=delassus)
    for _ in range(3):
        report = simulator.step(data)
    assert [c.mode for c in report.contacts][:2] == [Mode.STICK, Mode.SLIDE]
    assert all(c.mode == Mode.SEPARATE for c in report.contacts[2:])
