"""`EventDriven` on what a model holds beside contacts: actuators, limits, constraints, dry joints.

Closed forms wherever there are any. Then geoms of all pairs that collide by MuJoCo's convex
routines, whose contacts come one at a time.
"""

import mujoco
import numpy as np
import pytest

import stiction
from stiction.contact import Coulomb, NoSlip
from stiction.simulate.event_driven.engine import EventDriven, EventEngine
from stiction.simulate.event_driven.surveyor import Surveyor

GRAVITY = 9.81
TOLERANCE = 1e-7


def slider(more="", below="", at="0 0 0", joint=""):
    """A body of 2 kg on a vertical slide joint, without collisions."""
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option {more}/><worldbody><body name="mass" pos="{at}">
        <joint name="slide" type="slide" axis="0 0 1" {joint}/>
        <geom size=".1" mass="2" contype="0" conaffinity="0"/></body></worldbody>{below}</mujoco>"""
    )


def run(model, seconds, contact=None, ctrl=None, velocity=None, **options):
    """(data, report) after so long."""
    data = mujoco.MjData(model)
    if ctrl is not None:
        data.ctrl[:] = ctrl
    if velocity is not None:
        data.qvel[:] = velocity
    engine = EventEngine(model, contact or Coulomb(), EventDriven(**options))
    for _ in range(round(seconds / engine.dt)):
        report = engine.step(data)
    return data, report


# Actuators and passive forces


def test_a_motor_pushes_by_newtons_law():
    model = slider('gravity="0 0 0"', '<actuator><motor joint="slide" gear="3"/></actuator>')
    data, _ = run(model, 0.5, ctrl=4.0, dt=0.01)
    assert data.qpos[0] == pytest.approx(0.5 * (12.0 / 2.0) * 0.25, abs=1e-12)
    assert data.qvel[0] == pytest.approx(3.0, abs=1e-12)


def test_a_servo_swings_as_a_harmonic_oscillator():
    model = slider('gravity="0 0 0"', '<actuator><position joint="slide" kp="50"/></actuator>')
    data, _ = run(model, 1.0, ctrl=0.3, dt=0.01)
    assert data.qpos[0] == pytest.approx(0.3 * (1.0 - np.cos(5.0)), abs=1e-7)


def test_an_activation_rises_by_its_exponential_and_stays_in_its_range():
    filtered = '<general joint="slide" dyntype="filter" dynprm=".2" {}/>'
    for limit, top in (("", 1.0), ('actlimited="true" actrange="0 .5"', 0.5)):
        below = f"<actuator>{filtered.format(limit)}</actuator>"
        data, _ = run(slider('gravity="0 0 0"', below), 0.4, ctrl=1.0, dt=0.01)
        assert data.act[0] == pytest.approx(min(1.0 - np.exp(-2.0), top), abs=1e-6)


def test_a_damped_spring_follows_its_closed_form():
    model = slider('gravity="0 0 0"', joint='stiffness="50" damping="4"')
    data, _ = run(model, 1.0, velocity=1.0, dt=0.01)
    decay, beat = 1.0, np.sqrt(25.0 - 1.0)
    assert data.qpos[0] == pytest.approx(np.exp(-decay) * np.sin(beat) / beat, abs=1e-7)


def test_a_control_callback_is_called_before_each_step():
    model = slider('gravity="0 0 0"', '<actuator><motor joint="slide"/></actuator>')
    data = mujoco.MjData(model)
    simulator = stiction.Simulator(model, stepper=EventDriven(dt=0.01))

    def push(_, d):
        d.ctrl[0] = 1.0 if d.time < 0.0999 else 0.0

    mujoco.set_mjcb_control(push)
    try:
        simulator.step(data, nstep=20)
    finally:
        mujoco.set_mjcb_control(None)
    assert data.qvel[0] == pytest.approx(0.5 * 0.1, abs=1e-12)


def test_adhesion_is_refused_by_name():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="pad" pos="0 0 .1">
        <freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody>
        <actuator><adhesion body="pad" gain="10" ctrlrange="0 1"/></actuator></mujoco>"""
    )
    with pytest.raises(stiction.InvalidInput, match=r"adhesion.*TimeStepping"):
        stiction.Simulator(model, stepper=EventDriven())


# Friction and restitution of single impacts


def hit(geom, velocity, contact, height=0.1, **options):
    """Velocity (6,) of a body that touches the floor, after its impact."""
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1"/>
        <body pos="0 0 {height}"><freejoint/><geom {geom}/></body></worldbody></mujoco>"""
    )
    data, _ = run(model, 1e-9, contact, velocity=velocity, dt=1e-9, **options)
    return data.qvel


@pytest.mark.parametrize("hypothesis", ["newton", "poisson"])
def test_a_ball_that_hits_obliquely_slides_or_sticks_by_its_closed_form(hypothesis):
    e, mu = 0.6, 0.2
    geom = f'size=".1" mass="1" friction="{mu}" priority="1"'
    for along in (3.0, 0.5):
        v = hit(geom, [along, 0, -1.0, 0, 0, 0], Coulomb(), restitution=e, hypothesis=hypothesis)
        # Friction has mu times the normal impulse, in compression and expansion, or what stops it.
        pull = min(mu * (1.0 + e), 2.0 / 7.0 * along)
        assert v[2] == pytest.approx(e, abs=1e-8)
        assert v[0] == pytest.approx(along - pull, abs=1e-8)
        assert v[4] == pytest.approx(2.5 * pull / 0.1, abs=1e-6)


@pytest.mark.parametrize("contact", [NoSlip(), Coulomb()], ids=["no-slip", "coulomb"])
def test_newton_and_poisson_differ_where_friction_pushes_along_the_normal(contact):
    # A rod on its end, leaning by 45 degrees: of its contact's matrix W the coupling is not zero.
    half, lean = 0.5, np.pi / 4
    rod = (
        f'type="capsule" size="1e-4 {half}" mass="1" friction="9" priority="1" axisangle="0 1 0 45"'
    )
    inertia = 1.0 / 12.0 * (2 * half) ** 2
    x, z = -half * np.sin(lean), -half * np.cos(lean)
    normal, coupling = 1.0 + x * x / inertia, -x * z / inertia
    tangent = 1.0 + z * z / inertia
    along, down, e = 0.4, -1.0, 0.5
    for hypothesis, expected in (
        ("newton", -e * down),
        ("poisson", -e * (down - coupling / tangent * along)),
    ):
        v = hit(
            rod, [along, 0, down, 0, 0, 0], contact, height=-z + 1e-4, restitution=e,
            hypothesis=hypothesis,
        )  # fmt: skip
        assert v[2] - v[4] * x == pytest.approx(expected, rel=1e-3)
        assert v[0] + v[4] * z == pytest.approx(0.0, abs=1e-3)
    assert normal * tangent > coupling**2


def test_torsional_friction_slows_a_spinning_ball_and_is_told():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/>
        <geom size=".1" mass="1" condim="4" friction="1 .01 0" priority="1"/></body></worldbody>
        </mujoco>"""
    )
    data, _ = run(model, 0.02, velocity=[0, 0, 0, 0, 0, 1.0], dt=1e-3)
    torque = 0.01 * GRAVITY
    assert data.qvel[5] == pytest.approx(1.0 - torque / 4e-3 * 0.02, abs=1e-9)
    force = np.zeros(6)
    mujoco.mj_contactForce(model, data, 0, force)
    np.testing.assert_allclose(np.abs(force), [GRAVITY, 0, 0, torque, 0, 0], atol=1e-9)
    data, _ = run(model, 0.1, velocity=[0, 0, 0, 0, 0, 1.0], dt=1e-3)
    assert abs(data.qvel[5]) < 1e-6


# Limits

TENDON = '<tendon><fixed name="rope" {}><joint joint="slide" coef="1"/></fixed></tendon>'


@pytest.mark.parametrize(
    ("joint", "below"),
    [
        ('limited="true" range="-.1 1"', ""),
        ("", TENDON.format('limited="true" range="-.1 1"')),
    ],
    ids=["joint", "tendon"],
)
def test_a_limit_stops_what_falls_and_carries_it(joint, below):
    model = slider("", below, joint=joint)
    fall = np.sqrt(2.0 * 0.1 / GRAVITY)
    before, _ = run(model, 0.14, dt=0.01)
    assert before.time < fall
    assert before.qpos[0] == pytest.approx(-0.5 * GRAVITY * 0.14**2, abs=1e-12)
    data, report = run(model, 0.3, dt=0.01)
    assert data.qpos[0] == pytest.approx(-0.1, abs=TOLERANCE)
    assert abs(data.qvel[0]) < 1e-12
    assert data.efc_force[0] == pytest.approx(2.0 * GRAVITY)
    assert report.certificate.passed


def test_a_limit_bounces_by_the_restitution():
    model = slider(joint='limited="true" range="-.1 1"')
    fall, e = np.sqrt(2.0 * 0.1 / GRAVITY), 0.5
    data, _ = run(model, 0.2, dt=0.01, restitution=e)
    since = 0.2 - fall
    expected = -0.1 + e * GRAVITY * fall * since - 0.5 * GRAVITY * since**2
    assert data.qpos[0] == pytest.approx(expected, abs=1e-6)


# Equality constraints and dry friction

PAIR = """<mujoco><option gravity="0 0 0"/><worldbody>
    <body><joint name="first" type="slide" axis="1 0 0"/>
      <geom size=".1" mass="2" contype="0" conaffinity="0"/></body>
    <body pos="0 1 0"><joint name="second" type="slide" axis="1 0 0"/>
      <geom size=".1" mass="3" contype="0" conaffinity="0"/></body></worldbody>
    <tendon><fixed name="rope"><joint joint="first" coef="2"/><joint joint="second" coef="-1"/>
    </fixed></tendon><actuator><motor joint="first"/></actuator><equality>{}</equality></mujoco>"""


@pytest.mark.parametrize(
    "equality",
    ['<joint joint1="second" joint2="first" polycoef="0 2 0 0 0"/>', '<tendon tendon1="rope"/>'],
    ids=["joint", "tendon"],
)
def test_a_gear_is_rigid(equality):
    model = mujoco.MjModel.from_xml_string(PAIR.format(equality))
    data, report = run(model, 0.5, ctrl=7.0, dt=0.01)
    # Seen from the first joint the second one's mass counts by the square of the ratio.
    travel = 0.5 * 7.0 / (2.0 + 4.0 * 3.0) * 0.25
    np.testing.assert_allclose(data.qpos, [travel, 2.0 * travel], atol=1e-9)
    assert report.certificate.passed


def test_a_weld_carries_a_body_and_tells_its_force():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body name="a" pos="0 0 1"><freejoint/>
        <geom type="box" size=".1 .1 .1" mass="2"/></body></worldbody>
        <equality><weld body1="a"/></equality></mujoco>"""
    )
    data, _ = run(model, 0.1, dt=0.01)
    np.testing.assert_allclose(data.qpos, [0, 0, 1, 1, 0, 0, 0], atol=TOLERANCE)
    assert np.linalg.norm(data.efc_force[:3]) == pytest.approx(2.0 * GRAVITY, rel=1e-6)


@pytest.mark.parametrize(
    ("joint", "below"),
    [('frictionloss="4"', ""), ("", TENDON.format('frictionloss="4"'))],
    ids=["joint", "tendon"],
)
def test_dry_friction_stops_what_slides_where_it_should(joint, below):
    model = slider('gravity="0 0 0"', below, joint=joint)
    data, _ = run(model, 1.0, velocity=1.5, dt=0.01)
    assert data.qpos[0] == pytest.approx(1.5**2 / (2.0 * 2.0), abs=1e-9)
    assert data.qvel[0] == pytest.approx(0.0, abs=1e-12)


# Geoms


def landing(geom, ground):
    """A model of one body above a ground, mu = 0.6."""
    corners = [f"{x} {y} {z}" for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.05, 0.05)]
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option><flag energy="enable"/></option><asset>
        <hfield name="hills" nrow="4" ncol="4" size="1 1 .15 .1"
          elevation="0 .2 .1 0  .1 .8 .5 0  0 .4 1 .2  0 .1 .2 0"/>
        <mesh name="slab" vertex="{" ".join(corners)}"/>
        <mesh name="tent" vertex="-.06 -.05 -.03 .06 -.05 -.03 -.06 .05 -.03 .06 .05 -.03
          -.06 0 .04 .06 0 .04"/></asset><worldbody><geom {ground} friction=".6"/>
        <body pos=".1 .05 .25" euler="20 10 5"><freejoint/><geom {geom} friction=".6"/></body>
        </worldbody></mujoco>"""
    )


def land(model, seconds):
    """(data, deepest overlap [m], largest rise of the energy [J]) of a run."""
    data = mujoco.MjData(model)
    engine = EventEngine(model, Coulomb(), EventDriven(dt=2e-3))
    mujoco.mj_forward(model, data)
    deepest, rise, energy = 0.0, 0.0, data.energy.sum()
    for _ in range(round(seconds / engine.dt)):
        report = engine.step(data)
        deepest = max(deepest, *(-c.gap for c in report.contacts), 0.0)
        rise, energy = max(rise, data.energy.sum() - energy), data.energy.sum()
    return data, deepest, rise


@pytest.mark.parametrize("geom", ['size=".05"', 'type="capsule" size=".03 .06"'], ids=str)
def test_round_things_land_and_roll_on_a_height_field_without_overlap(geom):
    data, deepest, rise = land(landing(geom, 'type="hfield" hfield="hills"'), 0.36)
    assert data.ncon > 0
    assert deepest <= TOLERANCE
    assert rise < 1e-6


FEATURED = {
    "box": 'type="box" size=".05 .04 .03"',
    "tent": 'type="mesh" mesh="tent"',
    "coin": 'type="cylinder" size=".02 .002" condim="6"',
    "capsule": 'type="capsule" size=".03 .06" condim="6"',
}


def above_field(geom, heights):
    """A model of one body above a height field of cells of 7 cm, up to 3 cm high; mu = 0.5."""
    rows, columns = heights.shape
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option><flag energy="enable"/></option><asset>
        <hfield name="field" nrow="{rows}" ncol="{columns}" size=".4 .4 .03 .1"
          elevation="{" ".join(f"{h:.4f}" for h in heights.ravel())}"/>
        <mesh name="tent" vertex="-.06 -.05 -.03 .06 -.05 -.03 -.06 .05 -.03 .06 .05 -.03
          -.06 0 .04 .06 0 .04"/></asset>
        <worldbody><geom type="hfield" hfield="field" friction=".1"/><body pos="0 0 .15">
        <freejoint/><geom {geom} friction=".5 .001 .001"/></body></worldbody></mujoco>"""
    )


def ground(bumpy):
    """(12, 12) random heights, or level ones; from 0 to 1 in any case, as MuJoCo scales them."""
    heights = np.random.default_rng(100).random((12, 12)) if bumpy else np.full((12, 12), 0.5)
    heights[0, 0], heights[-1, -1] = 0.0, 1.0
    return heights


@pytest.mark.parametrize("bumpy", [False, True], ids=["flat", "bumpy"])
@pytest.mark.parametrize(
    ("shape", "seed"), [("box", 0), ("box", 1), ("tent", 0), ("coin", 0), ("capsule", 0)]
)
def test_things_dropped_on_a_height_field_come_to_rest_in_few_events(shape, seed, bumpy):
    model = above_field(FEATURED[shape], ground(bumpy))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    quat = rng.normal(size=4)
    data.qpos[3:] = quat / np.linalg.norm(quat)
    data.qvel[:] = rng.normal(size=6) * [0.3, 0.3, 0.3, 3, 3, 3]
    engine = EventEngine(model, Coulomb(), EventDriven(dt=2e-3))
    mujoco.mj_forward(model, data)
    first = energy = data.energy.sum()
    deepest = rise = worst = events = 0.0
    while data.time < 2.0 and not (data.ncon and np.abs(data.qvel).max() < 1e-6):
        report = engine.step(data)
        deepest = max(deepest, *(-c.gap for c in report.contacts), 0.0)
        rise, energy = max(rise, data.energy.sum() - energy), data.energy.sum()
        worst, events = max(worst, report.certificate.worst), events + engine.events
    assert data.time < 2.0
    assert events < 600
    assert deepest <= TOLERANCE
    assert rise < 1e-5 * first
    assert worst < 1e-6


def test_a_box_slides_over_the_cells_of_a_level_field_as_over_a_plane():
    model = above_field(FEATURED["box"], ground(bumpy=False))
    data = mujoco.MjData(model)
    data.qpos[:3] = [-0.1, 0.013, 0.045]
    data.qvel[:2] = [0.9, 0.2]
    engine = EventEngine(model, Coulomb(), EventDriven(dt=2e-3))
    speed = np.hypot(0.9, 0.2)
    events = 0
    for _ in range(round(speed / (0.5 * GRAVITY) / engine.dt) + 5):
        engine.step(data)
        events += engine.events
    # Without the field's edges, straight on for v^2 / 2 mu g, and one event: the stop.
    travel = speed / (2.0 * 0.5 * GRAVITY)
    np.testing.assert_allclose(data.qpos[0], -0.1 + 0.9 * travel, atol=1e-6)
    np.testing.assert_allclose(data.qpos[1], 0.013 + 0.2 * travel, atol=1e-6)
    np.testing.assert_allclose(data.qpos[3:], [1, 0, 0, 0], atol=1e-6)
    assert np.abs(data.qvel).max() < 1e-9
    assert events <= 3


@pytest.mark.parametrize("shape", FEATURED)
def test_gaps_to_a_height_field_are_the_distances_that_mujoco_finds(shape):
    model = above_field(FEATURED[shape], ground(bumpy=True))
    data, rng = mujoco.MjData(model), np.random.default_rng(7)
    surveyor = Surveyor(model, 2e-3, TOLERANCE, damped=False)
    for wanted in np.geomspace(1e-7, 1e-3, 20):
        quat = rng.normal(size=4)
        data.qpos[:] = [*rng.uniform(-0.2, 0.2, 2), 0.15, *(quat / np.linalg.norm(quat))]
        nearest = np.inf
        for _ in range(100):
            model.geom_margin[:], model.body_margin[:] = 5e-3, 5e-3
            mujoco.mj_kinematics(model, data)
            mujoco.mj_collision(model, data)
            nearest = data.contact.dist.min(initial=5e-3)
            if abs(nearest - wanted) < 1e-3 * wanted:
                break
            data.qpos[2] -= 0.9 * (nearest - wanted)
        # A little speed gives a margin of 4 mm.
        seen = surveyor.survey(data, data.qpos.copy(), np.r_[0, 0, -1.0, 0, 0, 0], np.zeros(0))
        # A rim that crosses an edge is measured upright, and so too near by the gap's square.
        assert seen.gap.min() == pytest.approx(nearest, abs=1e-11 + (shape == "coin") * wanted / 99)


@pytest.mark.parametrize(
    "ground", ['type="mesh" mesh="slab"', 'type="box" size=".5 .5 .05"'], ids=["mesh", "box"]
)
def test_a_mesh_comes_to_rest_on_a_mesh_or_a_box(ground):
    data, deepest, rise = land(landing('type="mesh" mesh="tent"', f'{ground} euler="8 4 0"'), 0.3)
    assert np.abs(data.qvel).max() < 1e-9
    assert deepest <= TOLERANCE
    assert rise < 1e-9


# Viscous friction by both solvers


def test_lemke_and_principal_pivoting_hold_a_quadruped_alike():
    ends = []
    for solver in ("ppm", "lemke"):
        model, data, controller = stiction.scenes.load("quadruped")
        simulator = stiction.Simulator(
            model, stiction.Viscous(0.1, solver=solver), stepper=EventDriven(dt=1e-3)
        )
        for _ in range(10):
            controller(model, data)
            report = simulator.step(data)
        assert report.certificate.passed
        ends.append(data.qpos.copy())
    np.testing.assert_allclose(*ends, rtol=0.0, atol=1e-8)
    assert np.abs(ends[0] - model.key_qpos[0]).max() > 0.0
