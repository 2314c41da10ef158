"""Loads that contacts can share in several ways, `EventDriven`."""

import mujoco
import numpy as np

from stiction import scenes
from stiction.contact import Coulomb
from stiction.simulate.event_driven.engine import EventDriven, EventEngine
from stiction.simulate.event_driven.phases import State


def pinched():
    """An engine of the pinch, its data, and the phase that it starts in."""
    model, data, _ = scenes.load("pinch")
    engine = EventEngine(model, Coulomb(), EventDriven())
    engine.step(data)
    motion = engine._motion
    motion.start(data)
    phase = motion.phase(
        state := State(data.qpos.copy(), data.qvel.copy(), data.act.copy()), motion.look(state)
    )
    return engine, data, phase


def test_a_pinched_capsule_is_held_to_the_last_bit():
    engine, data, _ = pinched()
    place = data.qpos.copy()
    for _ in range(100):
        report = engine.step(data)
        assert not data.qvel.any()
    assert np.array_equal(data.qpos, place)
    pressed = [contact.force[0] for contact in report.contacts]
    assert min(pressed) > 0.25 * max(pressed)


def test_coulombs_law_leaves_open_whether_it_turns():
    """The same state: with one contact of each pad pressing it turns about these two, with all four
    it does not, and both obey every law."""
    engine, _, phase = pinched()
    motion = engine._motion
    shared = motion.hold(phase)
    front = phase.seen.point[phase.held, 1] > 0.0
    first = motion.hold(
        phase,
        shared.forces._replace(normal=np.where(front, 2.0, 0.0) * shared.forces.normal),
    )
    assert np.abs(shared.forces.acceleration).max() < 1e-9
    assert np.abs(first.forces.acceleration).max() > 10.0
    assert shared.certificate.worst < 1e-8
    assert first.certificate.worst < 1e-8
    assert not first.forces.normal[~front].any()


def test_a_pinched_capsule_is_held_while_something_else_slides():
    """Parts that share no body share their loads apart."""
    spec = mujoco.MjSpec.from_string(scenes.get("pinch").xml())
    body = spec.worldbody.add_body(pos=[3.0, 0.0, 0.1])
    body.add_freejoint()
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.1, 0.1, 0.1])
    floor = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[2.0, 2.0, 0.1])
    floor.pos = [3.0, 0.0, -0.1]
    model = spec.compile()
    _, pinch, _ = scenes.load("pinch")
    data = mujoco.MjData(model)
    data.ctrl[:] = pinch.ctrl
    data.qvel[-6] = 1.0
    data.qpos[: len(pinch.qpos)] = pinch.qpos
    still = data.qvel.size - 6
    engine = EventEngine(model, Coulomb(), EventDriven())
    for _ in range(40):
        engine.step(data)
        np.testing.assert_allclose(data.qvel[:still], 0.0, atol=1e-12)
    assert 0.0 < data.qvel[-6] < 0.99
