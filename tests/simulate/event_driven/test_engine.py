"""`EventDriven`: impacts by closed forms, drops without overlap or gain of energy, and errors."""

import mujoco
import numpy as np
import pytest
from event_runs import BALL, BOX, FLOOR, GRAVITY, TOLERANCE, Run, free, load, name

import stiction
from stiction.contact import Coulomb, DrumwrightShell, NoSlip
from stiction.scenes.chains import net_xml
from stiction.simulate.event_driven.engine import EventDriven
from stiction.simulate.event_driven.phases import State

# Impacts


@pytest.mark.parametrize("hypothesis", ["newton", "poisson"])
def test_a_ball_bounces_to_e_squared_of_its_height(hypothesis):
    run = Run(BALL, dt=2e-3, restitution=0.6, hypothesis=hypothesis)
    heights = np.array(run.step(720, lambda: run.data.qpos[2] - 0.1))
    top = [
        heights[i]
        for i in range(1, len(heights) - 1)
        if heights[i - 1] <= heights[i] > heights[i + 1]
    ]
    # Between samples at most dt / 2 lies between the top and the nearest one.
    expected = 0.36 ** np.arange(1, 4)
    np.testing.assert_allclose(top[:3], expected, atol=GRAVITY * 1e-3**2 / 2 + 2e-6)
    assert run.overlap <= TOLERANCE


@pytest.mark.parametrize("e", [0.3, 0.6])
def test_bouncing_ends_when_the_geometric_series_does(e):
    run = Run(BALL, dt=2e-3, restitution=e)
    end = np.sqrt(2.0 / GRAVITY) * (1.0 + e) / (1.0 - e)
    moving = run.step(int(end / 2e-3) + 10, lambda: abs(run.data.qvel[2]) > 1e-6)
    last = (np.flatnonzero(moving)[-1] + 1) * 2e-3
    assert last == pytest.approx(end, abs=5e-3)
    assert abs(run.data.qpos[2] - 0.1) <= TOLERANCE


def test_a_ball_without_loss_returns_to_its_height():
    run = Run(BALL, dt=2e-3, restitution=1.0)
    energy = run.step(1000, lambda: run.data.energy.sum())
    assert np.ptp(energy) < 1e-5 * energy[0]


@pytest.mark.parametrize("contact", [Coulomb(), NoSlip(), DrumwrightShell()], ids=name)
def test_a_rocking_block_keeps_seven_tenths_of_its_spin(contact):
    model = load(free('type="box" size=".1 .3 .2" friction="5"'))
    run = Run(model, contact, dt=1e-3)
    tilt = 0.2
    run.data.qpos[3:] = [np.cos(tilt / 2), 0, np.sin(tilt / 2), 0]
    run.data.qpos[:3] = [
        -0.1 * np.cos(tilt) + 0.2 * np.sin(tilt), 0, 0.1 * np.sin(tilt) + 0.2 * np.cos(tilt)
    ]  # fmt: skip
    before = after = None
    for _ in range(400):
        spin = run.data.qvel[4]
        run.step()
        if run.report.energy < 0.0:
            before, after = spin, run.data.qvel[4]
            break
    # Within the step of the impact the spin grows by gravity, by a few thousandths.
    assert after / before == pytest.approx(1.0 - 1.5 * np.sin(np.arctan(0.5)) ** 2, abs=0.01)


def test_the_rocking_ratio_does_not_depend_on_the_step():
    run = Run(load(free('type="box" size=".1 .3 .2" friction="5"', "0 0 .2")), NoSlip(), dt=1e-9)
    run.data.qvel[:] = [-0.2, 0, -0.1, 0, -1.0, 0]  # about the edge at x = 0.1, coming down
    run.step()
    assert run.data.qvel[4] == pytest.approx(-0.7, abs=1e-6)


@pytest.mark.parametrize("hypothesis", ["newton", "poisson"])
@pytest.mark.parametrize("seed", range(5))
def test_no_impact_with_friction_and_restitution_adds_energy(seed, hypothesis):
    rng = np.random.default_rng(seed)
    run = Run(
        load(free('type="box" size=".2 .05 .02" friction="1"')),
        dt=2e-3,
        restitution=0.9,
        hypothesis=hypothesis,
    )
    quat = rng.normal(size=4)
    run.data.qpos[2:] = [0.3, *(quat / np.linalg.norm(quat))]
    run.data.qvel[:] = rng.normal(size=6) * [1, 1, 1, 8, 8, 8]
    run.step(150)
    assert run.rise < 1e-6 * run.data.energy.sum()
    assert run.overlap <= TOLERANCE


# Drops

SHAPES = {
    "coin": 'type="cylinder" size=".02 .002" friction=".5 .001 .001" condim="6"',
    "rod": 'type="box" size=".1 .01 .01" friction=".5"',
    "box": 'type="box" size=".05 .04 .03" friction=".5"',
}


def drop(shape, seed, dt):
    rng = np.random.default_rng(seed)
    run = Run(load(free(SHAPES[shape])), dt=dt)
    quat = rng.normal(size=4)
    run.data.qpos[2:] = [0.15, *(quat / np.linalg.norm(quat))]
    run.data.qvel[:] = rng.normal(size=6) * [0.3, 0.3, 0.3, 3, 3, 3]
    mujoco.mj_forward(run.model, run.data)
    energy = run.data.energy.sum()
    rests = run.until_rest(4.0)
    assert run.overlap <= TOLERANCE, seed
    assert run.rise < 1e-5 * energy, seed
    assert rests, seed
    assert run.worst < 1e-6, seed


@pytest.mark.parametrize(
    ("shape", "seed"),
    [("coin", 0), ("coin", 1)] + [("rod", k) for k in range(1, 4)] + [("box", k) for k in range(5)],
)
def test_dropped_things_come_to_rest_without_overlap_or_gain(shape, seed):
    drop(shape, seed, 2e-3)


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_a_thousand_drops(shape):
    for seed in range(1000 // len(SHAPES) + 1):
        drop(shape, 1000 + seed, 2e-3)


def test_geoms_of_all_kinds_land_without_overlap():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><asset>
        <hfield name="hills" nrow="3" ncol="3" size="1 1 .1 .1" elevation="0 0 0 0 1 0 0 0 0"/>
        <mesh name="tent" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .1 .1 .1 0"/></asset><worldbody>
        <geom type="hfield" hfield="hills"/><geom type="box" size=".2 .9 .1" pos="2 0 0"/>
        <body pos=".3 .2 .2"><freejoint/><geom size=".05"/></body>
        <body pos="2 0 .2" euler="20 10 0"><freejoint/><geom type="cylinder" size=".05 .03"/></body>
        <body pos="2 .5 .2" euler="5 10 0"><freejoint/><geom type="mesh" mesh="tent"/></body>
        <body pos="2 -.5 .2" euler="5 10 0"><freejoint/><geom type="ellipsoid" size=".05 .04 .03"/>
        </body></worldbody></mujoco>"""
    )
    run = Run(model, dt=2e-3)
    run.step(100)
    assert run.overlap <= TOLERANCE
    assert run.data.qpos[2] > 0.05
    assert (run.data.qpos[[9, 16, 23]] > 0.1).all()


# Against time stepping


@pytest.mark.parametrize(
    ("geom", "at", "velocity"),
    [
        ('size=".1" friction=".4"', "0 0 .3", [1.0, 0, 0, 0, -3.0, 0]),
        (
            'type="box" size=".1 .05 .05" friction=".4" euler="0 10 0"',
            "0 0 .12",
            [0.5, 0, 0, 0, 0, 0],
        ),
    ],
    ids=["a ball that falls, slides and rolls", "a box that falls on its edge"],
)
def test_time_stepping_converges_to_the_same_motion_with_the_first_power_of_its_step(
    geom, at, velocity
):
    model = load(free(geom, at))
    run = Run(model, dt=1e-3)
    run.data.qvel[:] = velocity
    run.step(400)
    steps = np.array([2e-3, 1e-3, 5e-4, 2.5e-4])
    errors = []
    for dt in steps:
        model.opt.timestep = dt
        data = mujoco.MjData(model)
        data.qvel[:] = velocity
        stiction.Simulator(model, contact=Coulomb()).step(data, nstep=round(0.4 / dt))
        errors.append(np.abs(data.qpos - run.data.qpos).max())
    order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert errors[-1] < 1e-3
    assert 0.8 < order < 1.3, errors


# Errors


def state(data):
    return [data.qpos.copy(), data.qvel.copy(), data.act.copy(), data.time]


def test_too_many_events_are_an_error_that_names_bodies_and_time():
    run = Run(BALL, dt=0.1, restitution=0.8, most_events=2)
    run.data.qpos[2], run.data.qvel[2] = 0.101, -0.1
    before = state(run.data)
    with pytest.raises(stiction.StictionError, match=r"most_events = 2.*t = .*world and thing"):
        run.engine.step(run.data)
    for a, b in zip(before, state(run.data), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_state_that_is_no_number_is_refused_and_kept():
    run = Run(BOX)
    run.data.qvel[1] = np.nan
    with pytest.raises(stiction.InvalidInput, match="qvel"):
        run.engine.step(run.data)
    assert run.data.time == 0.0
    assert np.isnan(run.data.qvel[1])


def test_overlap_at_the_start_is_taken_back_without_speed():
    run = Run(BOX, dt=1e-3)
    run.data.qpos[2] = 0.095
    run.step()
    assert run.data.qpos[2] == pytest.approx(0.1, abs=TOLERANCE)
    assert np.abs(run.data.qvel).max() < 1e-9


@pytest.mark.parametrize(
    "options",
    [
        {"dt": 0.0}, {"dt": np.nan}, {"integrator": "euler"}, {"restitution": 1.5},
        {"hypothesis": "kane"}, {"tolerance": 0.0}, {"most_events": 0},
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused_by_name(options):
    with pytest.raises(stiction.InvalidInput, match=next(iter(options))):
        EventDriven(**options)


def test_the_users_model_is_not_written_to():
    model = load(free('type="box" size=".1 .1 .1"', "0 0 .1"))
    before = [model.geom_margin.copy(), model.opt.timestep, model.opt.cone, model.opt.jacobian]
    Run(model, dt=5e-3).step(3)
    after = [model.geom_margin, model.opt.timestep, model.opt.cone, model.opt.jacobian]
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


def test_sensors_tell_the_state_after_the_step():
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><worldbody>{FLOOR}<body pos="0 0 .1"><freejoint/>
        <geom type="box" size=".1 .1 .1"/><site name="sole" type="box" size=".1 .1 .11"/></body>
        </worldbody><sensor><touch site="sole"/><accelerometer site="sole"/></sensor></mujoco>"""
    )
    run = Run(model, dt=1e-3)
    run.step(3)
    np.testing.assert_allclose(run.data.sensordata, [8 * GRAVITY, 0, 0, GRAVITY], atol=1e-9)


def test_the_simulator_takes_it_as_a_stepper():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 .2'><freejoint/>"
        "<geom size='.1' mass='1'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    simulator = stiction.Simulator(model, stiction.NoSlip(), stepper=stiction.EventDriven(dt=0.01))
    report = simulator.step(data, nstep=40)
    assert data.time == pytest.approx(0.4)
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-6)
    assert report.certificate.passed
    assert simulator.statistics.steps == 40


@pytest.mark.parametrize("inertia", [0.0, -1.0])
def test_an_inertia_that_is_not_positive_definite_is_refused_by_the_joint(inertia):
    model = load(
        free('type="box" size=".1 .1 .1"', "0 0 .1")
        + '<body name="other" pos="1 0 .1"><freejoint name="loose"/><geom size=".1"/></body>'
    )
    simulator = stiction.Simulator(model, stepper=EventDriven())
    data = mujoco.MjData(model)
    model.dof_M0[-1] = inertia
    with pytest.raises(stiction.InvalidInput, match="not positive definite at joint 'loose'"):
        simulator.step(data)
    assert data.time == 0.0


def test_an_impact_that_leaves_what_a_certificate_passes_is_not_repeated_for_ever(monkeypatch):
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="1 1 .1"/><body pos="0 0 .1"><freejoint/>'
        '<geom size=".1"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    data.qvel[2] = -1e-3
    simulator = stiction.Simulator(model, stepper=stiction.EventDriven(most_events=5))
    engine = simulator._engine._engine
    monkeypatch.setattr(engine, "_hit", lambda seen, qvel, touching, slack: 0.99 * qvel)
    engine.events = 0
    engine._motion.start(data)
    state = State(data.qpos.copy(), data.qvel.copy(), data.act.copy())
    phase = engine._begin(state)
    assert engine.events == 1
    assert len(phase.held) == 1


def test_cylinders_that_lie_on_each_other_along_a_line_do_not_rock_on_its_ends():
    # MuJoCo tells one point of the line. While that one held, the other end closed: 170 events in a
    # step of 1 ms, and pieces of 15 us between them.
    model = mujoco.MjModel.from_xml_string(net_xml())
    data = mujoco.MjData(model)
    stepper = stiction.EventDriven(most_events=40)
    simulator = stiction.Simulator(model, stepper=stepper)
    simulator.step(data, 260)
    assert data.time == pytest.approx(0.26)
