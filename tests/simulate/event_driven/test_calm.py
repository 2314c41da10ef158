"""Steps that are taken as a whole in compiled code are those that look for events."""

import mujoco
import numpy as np
import pytest

import stiction
from stiction.contact import Coulomb
from stiction.simulate.event_driven.engine import EventDriven, EventEngine

STAND = """
<mujoco>
  <option cone="{cone}"/>
  <worldbody>
    <geom type="plane" size="5 5 1" friction=".8"/>
    <body pos="0 0 .25">
      <freejoint/><site name="middle"/>
      <geom type="box" size=".2 .1 .03" mass="3"/>
      {legs}
    </body>
  </worldbody>
  <actuator>{motors}</actuator>
  <sensor><accelerometer site="middle"/>{touch}<clock/></sensor>
</mujoco>"""
CORNERS = ((0.15, 0.1), (0.15, -0.1), (-0.15, 0.1), (-0.15, -0.1))


def stand(cone="pyramidal"):
    """A table on four legs with a servo in each knee."""
    legs = "".join(
        f'<body pos="{x} {y} 0"><joint name="j{k}" axis="0 1 0" damping=".1"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".015" mass=".3" contype="0"'
        f' conaffinity="0"/><geom name="f{k}" pos="0 0 -.23" size=".02" mass=".05" condim="4"'
        f' friction=".8 .01"/><site name="s{k}" pos="0 0 -.23" size=".03"/></body>'
        for k, (x, y) in enumerate(CORNERS)
    )
    motors = "".join(f'<motor joint="j{k}"/>' for k in range(4))
    touch = "".join(f'<touch site="s{k}"/>' for k in range(4))
    model = mujoco.MjModel.from_xml_string(
        STAND.format(cone=cone, legs=legs, motors=motors, touch=touch)
    )
    return model, mujoco.MjData(model)


def sway(model, data):
    """Torques of servos whose target sways."""
    angle, rate = data.qpos[7:], data.qvel[6:]
    data.ctrl[:] = 30.0 * (0.05 * np.sin(8.0 * data.time) - angle) - 0.8 * rate


def run(model, data, engine, steps):
    """Where the motion was, with forces and sensors."""
    seen, calm = [], 0
    for _ in range(steps):
        sway(model, data)
        engine.step(data)
        calm += engine.memory.phase is None
        seen.append(np.concatenate([data.qpos, data.qvel, data.qacc, data.sensordata]))
    return np.array(seen), calm


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_calm_steps_are_the_steps_that_look_for_events(cone):
    model, data = stand(cone)
    whole = EventEngine(model, Coulomb(), EventDriven(dt=1e-3))
    pieces = EventEngine(model, Coulomb(), EventDriven(dt=1e-3))
    pieces._calm = None
    run(model, data, pieces, 30)  # comes to stand
    other = mujoco.MjData(model)
    other.qpos[:], other.qvel[:], other.time = data.qpos, data.qvel, data.time
    ours, calm = run(model, data, whole, 60)
    theirs, _ = run(model, other, pieces, 60)
    assert calm > 20
    assert np.abs(ours - theirs).max() < 1e-6


def step_until_calm(model, data):
    """A simulator, and the report of a calm step that it took."""
    simulator = stiction.Simulator(model, stepper=EventDriven(dt=1e-3))
    for k in range(200):
        sway(model, data)
        report = simulator.step(data)
        if k > 30 and simulator._engine.memory.phase is None:
            return simulator, report
    pytest.fail("no step was calm")


def test_a_calm_step_leaves_forces_and_a_report_as_others_do():
    model, data = stand()
    _, report = step_until_calm(model, data)
    weight = 9.81 * float(model.body_mass.sum())
    lift = sum(each.force[0] for each in report.contacts)
    found, force = np.zeros(6), 0.0
    for k in range(data.ncon):
        mujoco.mj_contactForce(model, data, k, found)
        force += found[0]
    assert len(report.contacts) == data.ncon == 4
    assert force == pytest.approx(lift, rel=1e-9)
    assert data.sensordata[3:7].sum() == pytest.approx(force, rel=1e-9)
    assert force == pytest.approx(weight, rel=0.2)
    assert report.certificate.worst < 1e-6


def test_a_report_of_a_calm_step_outlives_the_next_one():
    model, data = stand()
    simulator, kept = step_until_calm(model, data)
    wanted = data.qfrc_constraint.copy()
    data.ctrl[:] = 0.1
    simulator.step(data, 3)
    assert not np.allclose(data.qfrc_constraint, wanted, rtol=1e-6)
    assert sum(each.force[0] for each in kept.contacts) == pytest.approx(wanted[2], rel=1e-9)


def test_what_flies_and_nears_the_ground_slowly_is_calm_until_it_may_touch():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .5"><freejoint/>'
        '<geom size=".1"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    engine = EventEngine(model, Coulomb(), EventDriven(dt=1e-3))
    calm = []
    for _ in range(400):
        engine.step(data)
        calm.append(engine.memory.phase is None)
    fall = np.sqrt(2 * 0.4 / 9.81)
    assert all(calm[: int(fall / 1e-3) - 1])
    assert not all(calm)
    assert calm[-1]  # lies
    assert abs(data.qpos[2] - 0.1) <= 1e-7


@pytest.mark.parametrize(("boxes", "hinges"), [(17, 0), (1, 70)])
def test_more_held_rows_than_calm_steps_have_room_for_are_stepped(boxes, hinges):
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="5 5 1"/>'
        + "".join(
            f'<body pos="{k} 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
            for k in range(boxes)
        )
        + "".join(
            f'<body pos="{k} 3 1"><joint axis="0 0 1" frictionloss="1"/><geom size=".1"/></body>'
            for k in range(hinges)
        )
        + "</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    before = data.qpos.copy()
    simulator = stiction.Simulator(model, stepper=EventDriven())
    simulator.step(data, 3)
    np.testing.assert_allclose(data.qpos, before, atol=1e-9)
    assert data.ncon == 4 * boxes
