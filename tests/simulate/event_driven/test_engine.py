"""`EventDriven`: closed forms, and that nothing overlaps, gains energy, or moves on for ever."""

import mujoco
import numpy as np
import pytest

import stiction
from stiction.contact import Baraff, Coulomb, DrumwrightShell, Frictionless, NoSlip, Viscous
from stiction.simulate.event_driven.engine import EventDriven, EventEngine

GRAVITY = 9.81
TOLERANCE = 1e-7
FLOOR = '<geom type="plane" size="5 5 .1" friction=".1"/>'


def load(body, floor=FLOOR, option=""):
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><option {option}><flag energy='enable'/></option>"
        f"<worldbody>{floor}{body}</worldbody></mujoco>"
    )


def free(geom, at="0 0 1"):
    return f'<body name="thing" pos="{at}"><freejoint/><geom {geom}/></body>'


BALL = load(free('size=".1"', "0 0 1.1"))
BOX = load(free('type="box" size=".1 .1 .1" friction=".5"', "0 0 .1"))


def name(contact):
    return type(contact).__name__


class Run:
    """Steps a model and keeps what every run must obey."""

    def __init__(self, model, contact=None, **options):
        self.model, self.data = model, mujoco.MjData(model)
        self.engine = EventEngine(model, contact or Coulomb(), EventDriven(**options))
        self.overlap, self.rise, self.worst = 0.0, 0.0, 0.0

    def step(self, count=1, watch=lambda: None):
        seen = []
        mujoco.mj_forward(self.model, self.data)
        energy = self.data.energy.sum()
        for _ in range(count):
            self.report = self.engine.step(self.data)
            self.rise = max(self.rise, self.data.energy.sum() - energy)
            energy = self.data.energy.sum()
            self.overlap = max(self.overlap, *(-c.gap for c in self.report.contacts), 0.0)
            self.worst = max(self.worst, self.report.certificate.worst)
            seen.append(watch())
        return seen

    def until_rest(self, longest, speed=1e-6):
        """Steps until nothing moves; whether it came to that before `longest` [s]."""
        while self.data.time < longest:
            self.step()
            if np.abs(self.data.qvel).max() < speed:
                self.step()
                if np.abs(self.data.qvel).max() < speed:
                    return True
        return False


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


# Sustained contact


@pytest.mark.parametrize("integrator", ["rk4", "symplectic"])
@pytest.mark.parametrize(
    "contact", [Coulomb(), NoSlip(), Viscous(0.1), Frictionless(), Baraff(), DrumwrightShell()],
    ids=name,
)  # fmt: skip
def test_a_box_at_rest_stays_at_rest(contact, integrator):
    run = Run(BOX, contact, dt=1e-3, integrator=integrator)
    run.step(20)
    assert np.abs(run.data.qvel).max() < 1e-12
    assert np.abs(run.data.qpos[:3] - [0, 0, 0.1]).max() < 1e-12
    weight = 8.0 * GRAVITY
    assert sum(c.force[0] for c in run.report.contacts) == pytest.approx(weight)
    assert run.worst < 1e-8
    force = np.zeros(6)
    total = 0.0
    for i in range(run.data.ncon):
        mujoco.mj_contactForce(run.model, run.data, i, force)
        total += force[0]
    assert total == pytest.approx(weight)
    np.testing.assert_allclose(run.data.qfrc_constraint[2], weight)


def test_a_sliding_box_stops_where_it_should():
    run = Run(BOX, dt=5e-3)
    run.data.qvel[:2] = [1.2, 0.9]
    run.step(100)
    distance = 1.5**2 / (2 * 0.5 * GRAVITY)
    np.testing.assert_allclose(run.data.qpos[:2], np.array([0.8, 0.6]) * distance, atol=1e-9)
    assert np.abs(run.data.qvel).max() < 1e-12


def test_viscous_friction_slows_a_box_by_its_exponential():
    run = Run(BOX, Viscous(0.5), dt=5e-3)
    run.data.qvel[0] = 1.0
    run.step(100)
    # Every touching contact rubs: four of them.
    assert run.data.qvel[0] == pytest.approx(np.exp(-4 * 0.5 * 0.5 / 8.0), rel=1e-9)


def pivoting_error(dt):
    """A cylinder on its rim, wobbling under viscous friction, against many small steps."""
    model = load(free('type="cylinder" size=".1 .02"'))
    run = Run(model, Viscous(2.0), dt=dt)
    tilt = 0.6
    run.data.qpos[3:] = [np.cos(tilt / 2), np.sin(tilt / 2), 0, 0]
    run.data.qpos[2] = 0.1 * np.sin(tilt) + 0.02 * np.cos(tilt)
    run.data.qvel[:] = [0.4, 0.1, 0, 0, 0, 12.0]
    run.data.qvel[2] = 0.0
    run.step(round(0.064 / dt))
    return np.concatenate([run.data.qpos, run.data.qvel])


def test_between_events_the_error_falls_with_the_fourth_power_of_the_step():
    exact = pivoting_error(0.25e-3)
    errors = [np.abs(pivoting_error(dt) - exact).max() for dt in (8e-3, 4e-3, 2e-3)]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert errors[-1] < 1e-5
    assert (slopes > 3.4).all(), (errors, slopes)


@pytest.mark.parametrize(
    ("geom", "up", "spin"),
    [
        ('size=".1"', 0.1, [0, 5.0, 0]),
        ('type="cylinder" size=".1 .05" euler="90 0 0"', 0.1, [0, 5.0, 0]),
    ],
)
def test_round_things_roll_without_leaving_or_entering_the_floor(geom, up, spin):
    run = Run(load(free(geom, f"0 0 {up}")), dt=2e-3)
    run.data.qvel[:] = [0.5, 0, 0, *spin]
    heights = run.step(400, lambda: run.data.qpos[2])
    assert np.abs(np.array(heights) - up).max() <= TOLERANCE
    assert run.data.qpos[0] == pytest.approx(0.4, abs=1e-6)
    assert run.data.qvel[0] == pytest.approx(0.5, abs=1e-6)


def test_a_sphere_that_slides_rolls_in_the_end_at_five_sevenths():
    run = Run(load(free('size=".1" friction=".2"', "0 0 .1")), dt=1e-3)
    run.data.qvel[0] = 1.0
    start = 2.0 / (7.0 * 0.2 * GRAVITY)
    run.step(int(start / 1e-3))
    assert run.data.qvel[0] == pytest.approx(1.0 - 0.2 * GRAVITY * run.data.time, abs=1e-9)
    run.step(100)
    assert run.data.qvel[0] == pytest.approx(5.0 / 7.0, abs=1e-7)
    assert run.data.qvel[4] == pytest.approx(50.0 / 7.0, abs=1e-6)


def test_a_box_on_its_edge_tips_without_leaving_the_edge():
    run = Run(load(free('type="box" size=".1 .2 .1" friction="2"')), dt=2e-3)
    tilt = np.pi / 4 + 0.05
    run.data.qpos[3:] = [np.cos(tilt / 2), 0, np.sin(tilt / 2), 0]
    run.data.qpos[:3] = [0, 0, 0.1 * (np.sin(tilt) + np.cos(tilt))]
    edge = []
    for _ in range(100):
        run.step()
        if run.report.energy < 0.0:
            break
        turn = run.data.xmat[1].reshape(3, 3)
        edge.append(run.data.xpos[1] + turn @ [0.1, 0, -0.1])
    assert len(edge) > 40
    assert np.abs(np.array(edge) - edge[0]).max() < TOLERANCE
    assert run.rise < 1e-9


def test_a_hinge_with_dry_friction_holds_up_to_its_limit():
    arm = (
        '<body><joint type="hinge" axis="0 1 0" frictionloss="{}"/>'
        '<geom type="capsule" fromto="0 0 0 .4 0 0" size=".02" mass="1" contype="0"/></body>'
    )
    torque = 0.2 * GRAVITY
    for share, holds in ((1.01, True), (0.99, False)):
        run = Run(load(arm.format(share * torque), ""), dt=1e-3)
        run.step(20)
        assert (abs(run.data.qvel[0]) < 1e-12) == holds


def test_a_joint_limit_stops_a_pendulum():
    model = load(
        '<body><joint type="hinge" axis="0 1 0" range="-90 30" limited="true"/>'
        '<geom type="capsule" fromto="0 0 0 .4 0 0" size=".02" contype="0"/></body>',
        "",
    )
    run = Run(model, dt=2e-3)
    angle = run.step(400, lambda: run.data.qpos[0])
    assert max(angle) <= np.radians(30) + TOLERANCE
    assert run.data.qpos[0] == pytest.approx(np.radians(30), abs=2 * TOLERANCE)
    assert abs(run.data.qvel[0]) < 1e-12


def test_a_closed_loop_stays_closed():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option><flag energy="enable" contact="disable"/></option><worldbody>
        <body name="a" pos="0 0 1"><joint type="hinge" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body>
        <body name="b" pos="1 0 1"><joint type="hinge" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 -.7 0 0" size=".02"/>
          <body pos="-.7 0 0"><joint type="hinge" axis="0 1 0"/>
            <geom type="capsule" fromto="0 0 0 0 0 -.1" size=".02"/></body></body>
        </worldbody><equality><connect body1="a" body2="b" anchor=".3 0 0"/></equality></mujoco>"""
    )
    run = Run(model, dt=1e-3)
    run.data.qvel[2] = 1.0
    run.step(200)
    assert np.abs(run.data.efc_pos[:3]).max() <= TOLERANCE
    assert run.rise < 1e-6


def test_a_painleve_rod_is_freed_by_an_impulse():
    # tan(theta) = 2, mu above 4/3, sliding toward its contact: no finite force exists.
    rod = free('type="box" size="1 .05 .0001" mass="1" friction="2"')
    run = Run(load(rod), dt=1e-3)
    angle = np.arctan(2.0)
    run.data.qpos[3:] = [np.cos(angle / 2), 0, np.sin(angle / 2), 0]
    run.data.qpos[2] = np.sin(angle) + 1e-4 * np.cos(angle)
    run.data.qvel[0] = 3.0
    run.step(3)
    assert np.isfinite(run.data.qvel).all()
    assert run.rise < 1e-6
    assert run.overlap <= TOLERANCE


def test_a_painleve_rod_stops_sliding_however_short_the_step_is():
    rod = free('type="capsule" fromto="-1 0 0 1 0 0" size="1e-4" mass="1" friction="2"')
    run = Run(load(rod), dt=1e-6)
    angle = np.arctan(2.0)
    run.data.qpos[3:] = [np.cos(angle / 2), 0, np.sin(angle / 2), 0]
    run.data.qpos[2] = np.sin(angle) + 1e-4
    run.data.qvel[0] = 3.0
    run.step()
    # The contact's matrix is [[1.6, -1.2], [-1.2, 3.4]], so that an impulse of 0.9
    # along the normal and 1.2 against the slip stops it; that is within the cone.
    assert run.data.qvel[2] == pytest.approx(0.9, abs=1e-2)
    assert run.data.qvel[0] == pytest.approx(3.0 - 1.2, abs=1e-2)


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
