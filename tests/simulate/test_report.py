"""What a step tells: contacts, statistics, the law of its model."""

import copy
import pickle

import numpy as np
import pytest
from mjcf import BOX, load

import stiction
from stiction import Coulomb, Frictionless, Mode, NoSlip, Viscous

G = 9.81


def test_the_report_tells_of_contacts():
    model, data = load(BOX.replace("<geom ", '<geom friction=".5" '))
    data.qvel[0] = 1.0
    sim = stiction.Simulator(model)
    report = sim.step(data)
    assert report.time == data.time == 0.002
    assert report.certificate.passed
    assert report.rung == report.rungs[-1]
    assert not report.frictionless
    assert report.energy < 0.0
    assert report.overlap == 0.0
    assert set(report.seconds) == {"smooth", "collision", "rows", "solve", "certify", "advance"}
    assert all(seconds > 0.0 for seconds in report.seconds.values())
    assert len(report.contacts) == data.ncon == 4
    for contact in report.contacts:
        assert contact.geoms == ("geom 'floor'", "geom 'cube'")
        assert contact.bodies == ("world", "box")
        assert contact.mode == Mode.SLIDE
        assert contact.friction == pytest.approx([0.5, 0.5])
        assert contact.margin == pytest.approx(0.0, abs=1e-9)
        assert np.hypot(*contact.slip) == pytest.approx(1.0 - 0.001 * G, rel=1e-9)
        assert contact.gap == pytest.approx(0.0, abs=1e-12)
        assert np.abs(contact.position[:2]) == pytest.approx([0.1, 0.1])
        assert np.array_equal(contact.torque, np.zeros(3))
    assert sum(c.force[0] for c in report.contacts) == pytest.approx(2.0 * G)
    report = sim.step(data, 200)
    assert {c.mode for c in report.contacts} == {Mode.STICK}
    assert all(c.margin >= 0.0 for c in report.contacts)
    assert sum(c.force[1:] for c in report.contacts) == pytest.approx([0.0, 0.0], abs=1e-9)
    assert "Report" in repr(report)


def test_a_contact_ahead_is_told_with_its_gap():
    model, data = load(BOX.replace('pos="0 0 .1"', 'pos="0 0 .1005"'))
    report = stiction.Simulator(model).step(data)
    assert {c.mode for c in report.contacts} == {Mode.SEPARATE}
    assert [c.gap for c in report.contacts] == pytest.approx([5e-4] * 4)
    assert all(c.force[0] == 0.0 for c in report.contacts)


@pytest.mark.parametrize("stepper", [stiction.TimeStepping(), stiction.EventDriven(dt=0.002)])
def test_a_report_tells_after_the_next_step_what_it_told_at_once(stepper):
    def tell(report):
        certificate, contacts = report.certificate, report.contacts
        forces = [(c.index, c.mode, c.gap, *c.force, *c.slip, *c.position) for c in contacts]
        figures = (report.pivots, report.rungs, report.energy, report.overlap)
        return certificate.worst, repr(certificate), forces, figures

    runs = []
    for at_once in (True, False):
        model, data = load(BOX)
        data.qvel[0] = 1.0
        sim = stiction.Simulator(model, stepper=stepper)
        report = sim.step(data, 3)
        told = tell(report) if at_once else None
        data.qvel[2] = 0.5
        sim.step(data, 2)
        runs.append(told or tell(report))
    assert runs[0] == runs[1]


def test_the_report_outlives_the_next_steps():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    report = sim.step(data)
    first = report.contacts[0].force.copy()
    later = sim.step(data)
    data.xfrc_applied[1, 2] = -500.0
    sim.step(data, 5)
    assert np.array_equal(report.contacts[0].force, first)
    assert sum(c.force[0] for c in later.contacts) == pytest.approx(2.0 * G)


def test_statistics_count_all_steps_until_they_are_reset():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    assert sim.statistics.steps == 0
    sim.step(data, 30)
    sim.step(data)
    statistics = sim.statistics
    assert statistics.steps == 31
    assert statistics.worst <= 1e-8
    assert statistics.contacts == statistics.most_contacts == 4
    assert sum(statistics.rungs.values()) == 31
    assert 0.0 <= statistics.warm <= 1.0
    assert statistics.energy <= 1e-12
    assert statistics.pushed_out == 0
    assert statistics.seconds["solve"] > 0.0
    sim.reset_statistics()
    assert sim.statistics.steps == 0
    sim.step(data)
    assert sim.statistics.steps == 1


@pytest.mark.parametrize(
    ("contact", "expected"),
    [
        (Frictionless(), 0.5),
        (NoSlip(), 0.0),
        (Viscous(2.5), 0.5 / (1.0 + 4 * 0.002 * 2.5 / 2.0)),
        (Coulomb(), 0.5 - 0.002 * G),
        (Coulomb(facets=4), 0.5 - 0.002 * G),
        (Coulomb(solver="standard", facets=8), 0.5 - 0.002 * G),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_contact_model_has_its_own_law(contact, expected):
    # Low, wide and slow: held at its front edge it does not tip.
    model, data = load(
        BOX.replace('size=".1 .1 .1"', 'size=".3 .3 .01"').replace('"0 0 .1"', '"0 0 .01"')
    )
    data.qvel[0] = 0.5
    report = stiction.Simulator(model, contact).step(data)
    assert data.qvel[0] == pytest.approx(expected, rel=1e-8, abs=1e-9)
    assert report.certificate.worst <= 1e-6


def test_a_simulator_and_a_report_say_what_they_are():
    model, data = load(BOX)
    sim = stiction.Simulator(model, Coulomb(facets=8))
    assert repr(sim).startswith("Simulator(nv=6, contact=Coulomb(facets=8, ")
    assert "stepper=TimeStepping(" in repr(sim)
    assert repr(sim.step(data, 5)).startswith("Report(time=0.01, contacts=4, worst=")


@pytest.mark.parametrize("stepper", [stiction.TimeStepping(), stiction.EventDriven()])
@pytest.mark.parametrize(
    "twice", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
)
def test_a_copied_or_pickled_report_tells_the_same_after_more_steps(stepper, twice):
    model, data = load(BOX)
    sim = stiction.Simulator(model, stepper=stepper)
    report = sim.step(data, 3)
    other = twice(report)
    sim.step(data, 3)
    assert other.time == report.time
    assert other.certificate.worst == report.certificate.worst
    assert other.rungs == report.rungs
    assert [c.mode for c in other.contacts] == [c.mode for c in report.contacts]
    assert other.contacts[0].bodies == ("world", "box")
