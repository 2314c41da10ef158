"""`EventDriven`: slips that begin, slow slips, and impacts that lose nothing."""

import mujoco
import numpy as np
import pytest

import stiction
from stiction.contact import Coulomb, Frictionless
from stiction.contact.models.description import Kind, SustainedLaw
from stiction.simulate.event_driven import sustained
from stiction.simulate.event_driven.impact import solve_impact
from stiction.simulate.event_driven.phases import State
from stiction.simulate.event_driven.slip_directions import turning_rates
from stiction.simulate.event_driven.sustained import NO_FORCES, Loads, drive_loads, dry_arrays

GRAVITY = 9.81
FLOOR = '<geom type="plane" size="5 5 .1" friction="{mu}"/>'
BOX = (
    '<body pos="0 0 .05"><freejoint/>'
    '<geom type="box" size=".05 .05 .05" mass="1" friction=".5"/></body>'
)


def load(body, mu, timestep=1e-3):
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{timestep}"/><worldbody>{FLOOR.format(mu=mu)}{body}'
        "</worldbody></mujoco>"
    )


@pytest.mark.parametrize("factor", [1.002, 1.01, 1.05])
def test_a_box_pulled_a_little_harder_than_friction_holds_gets_the_right_speed(factor):
    model = load(BOX, 0.5)
    data = mujoco.MjData(model)
    data.xfrc_applied[1, 0] = 0.5 * GRAVITY * factor
    stiction.Simulator(model, stepper=stiction.EventDriven()).step(data, 50)
    assert data.qvel[0] == pytest.approx(0.5 * GRAVITY * (factor - 1.0) * 0.05, rel=1e-9)
    assert np.abs(data.qvel[1:]).max() < 1e-9


@pytest.mark.parametrize("timestep", [1e-5, 2e-3])
@pytest.mark.parametrize(("half", "gravity"), [(0.1, 9.81), (0.1, 0.01), (1e-4, 0.01), (1e3, 1e-4)])
@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_a_tilted_box_slides_by_its_closed_form_whatever_units_it_is_in(
    factor, half, gravity, timestep
):
    across, along = 0.5 * gravity * factor, gravity
    model = mujoco.MjModel.from_xml_string(f"""
        <mujoco><option timestep="{timestep}" gravity="{across} 0 {-along}"/><worldbody>
        <geom type="plane" size="0 0 {half}" friction=".5"/><body pos="0 0 {half}"><freejoint/>
        <geom type="box" size="{half} {half} {half}" density="{1e4 / half}" friction=".5"/></body>
        </worldbody></mujoco>""")
    data = mujoco.MjData(model)
    stiction.Simulator(model, stepper=stiction.EventDriven()).step(data, 50)
    speed = (across - 0.5 * along) * 50 * timestep if factor > 1.0 else 0.0
    assert data.qvel[0] == pytest.approx(speed, rel=1e-9, abs=1e-9 * gravity * timestep)


def test_a_slow_slip_turns_to_where_it_is_pulled_without_overshooting():
    model = load(BOX, 0.5)
    data = mujoco.MjData(model)
    data.xfrc_applied[1, 0] = 0.5 * GRAVITY * 1.02
    data.qvel[1] = 1e-5
    simulator = stiction.Simulator(model, stepper=stiction.EventDriven())
    across = []
    for _ in range(20):
        simulator.step(data)
        across.append(data.qvel[1])
    assert np.abs(across).max() <= 1e-5
    assert abs(across[-1]) < 1e-9
    assert data.qvel[0] == pytest.approx(0.5 * GRAVITY * 0.02 * 0.02, rel=1e-3)


def test_a_slip_turns_by_the_friction_over_its_momentum():
    rates = turning_rates(
        2.0 * np.eye(3), np.array([[0.0, 0, 1]]), np.array([[[1.0, 0, 0], [0, 1, 0]]]),
        np.array([0.1, 0, 0]), np.array([0.5]), np.array([20.0]), np.array([True]),
    )  # fmt: skip
    assert rates == pytest.approx([0.5 * 20.0 / (2.0 * 0.1)])


def energy_of(model, data):
    seen = mujoco.MjData(model)
    seen.qpos[:], seen.qvel[:] = data.qpos, data.qvel
    mujoco.mj_forward(model, seen)
    mujoco.mj_energyPos(model, seen)
    mujoco.mj_energyVel(model, seen)
    return seen.energy.sum()


def test_a_cube_of_elastic_spheres_keeps_its_energy():
    rng = np.random.default_rng(42)
    ball = (
        '<body pos="{} {} {}"><freejoint/>'
        '<geom type="sphere" size=".1" mass="10" friction="0"/></body>'
    )
    x, y = rng.uniform(-1e-3, 1e-3, (2, 27))
    places = [(0.21 * i, 0.21 * j, 0.21 * k) for i in range(3) for j in range(3) for k in range(3)]
    body = "".join(
        ball.format(p[0] + dx, p[1] + dy, 0.21 + p[2])
        for p, dx, dy in zip(places, x, y, strict=True)
    )
    model = load(body, 0.0, 5e-3)
    data = mujoco.MjData(model)
    before = energy_of(model, data)
    stepper = stiction.EventDriven(restitution=1.0)
    stiction.Simulator(model, stepper=stepper).step(data, 60)
    assert np.abs(data.qvel).max() > 0.2
    assert energy_of(model, data) == pytest.approx(before, rel=1e-9)


def test_an_impact_that_drives_parting_bodies_together_loses_nothing_without_friction():
    # The middle one of three balls in a row is hit from the left, and parts on its right more
    # slowly than it will move: by Newton's hypothesis alone energy would rise.
    ball = '<body pos="{} 0 1"><joint type="slide"/><geom size=".1" mass="1"/></body>'
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{''.join(ball.format(0.2 * k) for k in range(3))}</worldbody></mujoco>"
    )
    engine = stiction.Simulator(
        model, Frictionless(), stepper=stiction.EventDriven(restitution=1.0)
    )._engine
    motion = engine._engine._motion
    data = mujoco.MjData(model)
    motion.start(data)
    velocity = np.array([1.0, 0.0, 0.1])
    seen = motion.look(State(data.qpos.copy(), velocity, data.act.copy()))
    touching = np.flatnonzero(seen.gap <= 1e-7)
    assert len(touching) == 2
    solution = solve_impact(
        Frictionless(), seen, velocity, touching, np.full(2, 1e-9), 1.0, "newton"
    )
    assert solution.velocity @ solution.velocity == pytest.approx(velocity @ velocity, rel=1e-12)
    assert solution.velocity.sum() == pytest.approx(velocity.sum(), rel=1e-12)


def test_slow_bounces_end_though_fast_impacts_happen_at_the_same_time():
    # One ball is about to lie still, the other bounces on: that is not taken for the end of both.
    ball = '<body pos="{} 0 {}"><freejoint/><geom size=".1" mass="1"/></body>'
    model = load(ball.format(0, 0.10001) + ball.format(1, 0.6), 0.5, 5e-3)
    data = mujoco.MjData(model)
    stepper = stiction.EventDriven(restitution=0.8)
    simulator = stiction.Simulator(model, Coulomb(), stepper=stepper)
    highest = 0.0
    while data.time < 0.9:
        simulator.step(data)
        if data.time > 0.33:
            highest = max(highest, data.qpos[9] - 0.1)
    assert highest == pytest.approx(0.64 * 0.5, rel=1e-3)
    assert data.qpos[2] == pytest.approx(0.1, abs=2e-7)


def test_three_cylinders_that_slip_on_each_other_need_no_second_solver(monkeypatch):
    # Two of their contacts almost coincide after 0.22 s. A row that depends on others but for 1e-7
    # is held by them but for 1e-10 of the load, which driving takes as it is.
    asked, ask = [], sustained._slide
    monkeypatch.setattr(sustained, "_slide", lambda *given: asked.append(1) or ask(*given))
    cylinder = (
        '<body pos="{} 0 {}"><freejoint/>'
        '<geom type="cylinder" size=".05 .1" euler="90 0 0" friction=".5"/></body>'
    )
    top = 0.05 * (1.0 + np.sqrt(3.0))
    bodies = cylinder.format(-0.05, 0.05) + cylinder.format(0.05, 0.05) + cylinder.format(0, top)
    model = load(bodies, 0.5)
    data = mujoco.MjData(model)
    data.qvel[[0, 6, 12, 15]] = 0.3, 0.2, 0.5, 1.0
    simulator = stiction.Simulator(model, stepper=stiction.EventDriven())
    pivots = []
    for _ in range(240):
        pivots.append(simulator.step(data).pivots)
    assert not asked
    assert max(pivots) < 1500


def test_a_mass_that_rounding_has_made_singular_has_no_forces():
    ones = np.ones((2, 2))
    loads = Loads(
        ones, np.zeros(2), np.array([0.0, -1.0]), np.array([[0.0, 1.0]]), np.zeros(1),
        np.zeros((1, 2, 2)), np.zeros((1, 2)), np.full(1, 0.5), np.zeros(1, np.bool_),
        np.zeros((1, 2)), np.zeros((0, 2)), np.zeros(0), np.zeros((0, 2)), np.zeros(0),
        np.zeros(0, np.int64), np.zeros(0), np.zeros(0),
    )  # fmt: skip
    *_, found, _ = drive_loads(loads, dry_arrays(loads, np.zeros(0), np.zeros(0)), NO_FORCES)
    assert not found
    assert not turning_rates(
        ones, loads.normal, loads.tangent, loads.velocity, loads.friction, np.ones(1),
        np.ones(1, np.bool_),
    ).any()  # fmt: skip


def test_what_stuck_in_a_piece_at_the_velocity_level_does_not_slide_after_it() -> None:
    cylinders = "".join(
        f'<body pos="{0.02 * i} {0.01 * i} {0.1 + 0.12 * i}" euler="{20 * i} {30 * i} 0">'
        '<freejoint/><geom type="cylinder" size=".04 .06"/></body>'
        for i in range(3)
    )
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="2 2 .1" '
        f'friction=".4"/>{cylinders}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    # Each piece left a slip that stopped at once, twice, and the next piece followed: 51 events.
    stepper = stiction.EventDriven(most_events=25)
    stiction.Simulator(model, stepper=stepper).step(data, 400)


def test_driving_that_has_failed_is_not_tried_again(monkeypatch):
    """Painleve's rod has no finite force: driving goes through all orders to find that out."""
    foot = -np.array([1.0, 2.0]) / np.sqrt(5.0)
    loads = Loads(
        np.diag([1.0, 1.0, 1.0 / 3.0]), np.array([-1.0, 0.0, 0.0]), np.array([0.0, -GRAVITY, 0.0]),
        np.array([[0.0, 1.0, foot[0]]]), np.zeros(1),
        np.array([[[1.0, 0.0, -foot[1]], [0.0, 0.0, 0.0]]]), np.zeros((1, 2)), np.full(1, 1.4),
        np.ones(1, np.bool_), np.array([[-1.0, 0.0]]), np.zeros((0, 3)), np.zeros(0),
        np.zeros((0, 3)), np.zeros(0), np.zeros(0, np.int64), np.zeros(0), np.zeros(0),
    )  # fmt: skip
    again = []
    monkeypatch.setattr(sustained, "drive_loads", lambda *given: again.append(given))
    assert sustained.hold_sustained(SustainedLaw(Kind.DRY), loads) is None
    assert not again


def test_dominoes_that_slide_down_each_other_are_driven_in_few_steps():
    # Some twenty contacts that depend on each other, a third of which slide: driving one after the
    # other failed through all of its orders, with 56,000 steps and 28 s in one step.
    domino = (
        '<body pos="{} 0 .05"><freejoint/>'
        '<geom type="box" size=".005 .02 .05" mass=".1" friction=".4"/></body>'
    )
    model = load("".join(domino.format(0.05 * k) for k in range(6)), 0.4, 2e-3)
    data = mujoco.MjData(model)
    data.qvel[[0, 4]] = 0.15, 3.0
    simulator = stiction.Simulator(model, stepper=stiction.EventDriven())
    for _ in range(210):
        report = simulator.step(data)
        assert report.pivots < 20_000
        assert report.certificate.worst < 1e-6
    tilt = 2.0 * np.arcsin(data.qpos.reshape(-1, 7)[:, 5])
    assert np.all(np.diff(tilt) < 0.0)  # each leans on the next one
    assert tilt[0] > 1.2
