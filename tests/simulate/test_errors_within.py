"""What goes wrong within a step comes out as an exception, and the state is as before."""

import mujoco
import numpy as np
import pytest
from mjcf import BOX, load, smooth
from mjdata import state

import stiction
from stiction import StictionError

CLUTTERED = "".join(f'<geom size=".1" pos="{0.05 * i} 0 0"/>' for i in range(60))
TINY = f"""
<mujoco><size memory="6K"/><worldbody><geom type="plane" size="9 9 1"/>
  <body pos="0 0 .1"><freejoint/>{CLUTTERED}</body></worldbody></mujoco>"""

USER_ACTUATOR = """
<mujoco>
  <worldbody><geom type="plane" size="9 9 1"/>
    <body name="box" pos="0 0 .1"><freejoint/><geom size=".1"/></body>
    <body pos="1 0 1"><joint name="hinge"/><geom size=".1" pos="0 0 .2"/></body></worldbody>
  <actuator><general name="motor" joint="hinge" dyntype="user" gaintype="user"
    biastype="user" actdim="1"/></actuator>
  <sensor><user dim="1" needstage="vel"/></sensor>
</mujoco>"""

CALLBACKS = ["passive", "control", "contactfilter", "act_dyn", "act_gain", "act_bias", "sensor"]


def test_an_arena_too_small_for_mujocos_own_work_is_an_error_that_quotes_it():
    model, data = load(TINY)
    simulator, before = stiction.Simulator(model), state(data)
    for _ in range(3):
        with pytest.raises(StictionError, match=r"stackAlloc.*increase <size memory"):
            simulator.step(data, 5)
        assert state(data) == before
        assert data.pstack == 0
    with pytest.raises(mujoco.FatalError):
        mujoco.mj_step(model, data)  # the binding's own handler is in its place again


@pytest.mark.parametrize("stepper", [stiction.TimeStepping(), stiction.EventDriven()])
@pytest.mark.parametrize("name", CALLBACKS)
def test_an_exception_in_a_callback_reaches_the_caller_and_no_step_is_taken(name, stepper):
    model, data = load(USER_ACTUATOR)
    simulator = stiction.Simulator(model, stepper=stepper)
    install = getattr(mujoco, f"set_mjcb_{name}")

    def fail(*_):
        raise LookupError(f"from {name}")

    for _ in range(2):
        before = state(data)
        install(fail)
        try:
            with pytest.raises(LookupError, match=f"from {name}"):
                simulator.step(data, 10)
        finally:
            install(None)
        assert state(data) == before
        simulator.step(data, 2)  # and it goes on


def test_a_callback_may_fail_after_many_steps_and_the_last_good_state_is_kept():
    model, data = load(BOX)
    calls = []

    def fail(m, d):
        calls.append(d.time)
        if d.time > 0.1:
            raise KeyboardInterrupt

    mujoco.set_mjcb_passive(fail)
    try:
        with pytest.raises(KeyboardInterrupt):
            stiction.Simulator(model).step(data, 1000)
    finally:
        mujoco.set_mjcb_passive(None)
    assert data.time == calls[-1]


def test_a_callback_may_step_another_simulator():
    model, data = load(BOX)
    inner, tiny = load(TINY)
    simulator, other = stiction.Simulator(model), stiction.Simulator(inner)
    said = []

    def nest(m, d):
        if m.ngeom == model.ngeom:
            with pytest.raises(StictionError, match="stackAlloc") as caught:
                other.step(tiny)
            said.append(str(caught.value))

    mujoco.set_mjcb_passive(nest)
    try:
        simulator.step(data, 3)
    finally:
        mujoco.set_mjcb_passive(None)
    assert len(said) == 3
    assert data.time == pytest.approx(3 * model.opt.timestep)


@pytest.mark.parametrize("force", [1e120, 1e160, 1e200, 1e300])
@pytest.mark.parametrize("contact", [stiction.Coulomb(), stiction.NoSlip(), stiction.Baraff()])
def test_a_step_to_speeds_beyond_use_is_refused_by_the_joints_name(force, contact):
    model, data = load(BOX)
    simulator = stiction.Simulator(model, contact)
    simulator.step(data, 3)
    data.xfrc_applied[1, :3] = force
    before = state(data)
    with pytest.raises(StictionError, match=r"diverges.*joint 'free' of body 'box'"):
        simulator.step(data, 5)
    assert state(data) == before
    data.xfrc_applied[:] = 0.0
    assert simulator.step(data, 3).certificate.passed


def test_an_activation_that_would_not_be_finite_is_refused_by_the_actuators_name():
    model, data = load(USER_ACTUATOR)
    simulator, before = stiction.Simulator(model), state(data)
    mujoco.set_mjcb_act_dyn(lambda m, d, actuator: np.inf)
    try:
        with pytest.raises(StictionError, match="actuator 'motor'"):
            simulator.step(data)
    finally:
        mujoco.set_mjcb_act_dyn(None)
    assert state(data) == before


def test_large_but_finite_forces_are_taken():
    model, data = load(BOX)
    data.xfrc_applied[1, 2] = -1e9
    report = stiction.Simulator(model).step(data, 3)
    assert report.certificate.passed
    assert np.abs(data.qvel).max() < 1e-3


def test_refresh_within_the_control_callback_holds_for_that_step():
    model, data = smooth("servo")
    simulator = stiction.Simulator(model)
    seen = []

    def control(m, d):
        model.body_mass[1] *= 2.0
        simulator.refresh()
        seen.append(simulator.model.body_mass[1])

    mujoco.set_mjcb_control(control)
    try:
        simulator.step(data, 3)
    finally:
        mujoco.set_mjcb_control(None)
    assert len(seen) == 3
    other = stiction.Simulator(model)
    own, fresh = simulator._engine.own.model, other._engine.own.model
    assert own.body_mass[1] == fresh.body_mass[1] == seen[-1]


def test_refresh_within_a_passive_callback_waits_for_the_running_steps():
    model, data = load(BOX)
    simulator = stiction.Simulator(model)
    mujoco.set_mjcb_passive(lambda m, d: simulator.refresh())
    try:
        simulator.step(data, 5)
        model.geom_friction[0, 0] = np.nan
        with pytest.raises(stiction.InvalidInput, match="friction"):
            simulator.step(data)
    finally:
        mujoco.set_mjcb_passive(None)


def test_a_step_within_a_callback_of_the_same_simulator_is_refused():
    model, data = load(BOX)
    simulator = stiction.Simulator(model)
    other = mujoco.MjData(model)
    mujoco.set_mjcb_control(lambda m, d: simulator.step(other))
    try:
        with pytest.raises(StictionError, match="callback"):
            simulator.step(data)
    finally:
        mujoco.set_mjcb_control(None)
    simulator.step(data)


@pytest.mark.parametrize("force", [1e14, 1e120, 1e200])
def test_motion_between_events_that_diverges_is_refused_by_the_joint(force):
    model, data = load("""
<mujoco><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 1">
  <joint name="lift" type="slide" axis="0 0 1"/><geom size=".1"/></body></worldbody></mujoco>""")
    data.qfrc_applied[0] = force
    simulator = stiction.Simulator(model, stepper=stiction.EventDriven())
    with pytest.raises(stiction.StictionError, match=r"diverges.*'lift'"):
        simulator.step(data)
    assert data.qpos[0] == data.qvel[0] == data.time == 0.0
