"""Derivatives of steps, against central differences of the steps themselves."""

import mujoco
import numpy as np
import pytest
from mjcf import SMOOTH, load, smooth
from numpy.testing import assert_allclose, assert_array_equal
from robots import robot
from slopes import assert_agree, swell

import stiction
from stiction import Coulomb, Frictionless, InvalidInput, Mode, NoSlip, Viscous, scenes
from stiction.simulate.derivatives.step_derivatives import StepDerivatives


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_motion_has_the_derivatives_of_its_steps(name):
    model, data = smooth(name)
    data.ctrl[:], data.act[:] = 0.3, 0.05
    assert_agree(stiction.Simulator(model), data, 1e-6, eps=1e-5)


TUMBLING = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body pos="0 0 1" euler="10 20 30"><freejoint/>
      <inertial pos=".1 -.2 .05" mass="2" fullinertia=".3 .2 .25 .02 -.03 .01"/></body>
    <body pos="2 0 1"><freejoint/><geom type="box" size=".1 .2 .3"/></body>
  </worldbody>
</mujoco>"""


@pytest.mark.parametrize("damping", [0.0, 0.7])
def test_free_bodies_that_tumble_about_what_is_not_their_origin(damping):
    model, data = load(TUMBLING)
    model.dof_damping[:6] = damping * np.arange(1, 7)
    data.qvel[:] = np.random.default_rng(0).normal(size=12)
    data.xfrc_applied[1] = [1.0, -2.0, 3.0, 0.2, 0.5, -0.3]
    assert assert_agree(stiction.Simulator(model), data, 1e-8, eps=1e-5).is_compiled


SERVOS = """
<mujoco>
  <worldbody>
    <body><joint name="a" axis="0 1 0" damping=".1"/><geom type="capsule" fromto="0 0 0 .5 0 0"
        size=".05"/>
      <body pos=".5 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" size=".05"
          fromto="0 0 0 .5 0 0"/></body></body>
  </worldbody>
  <tendon><fixed name="t"><joint joint="a" coef=".7"/><joint joint="b" coef="-.4"/></fixed></tendon>
  <actuator>
    <motor joint="a" ctrllimited="true" ctrlrange="-.1 .1"/>
    <motor joint="a" gear="3" ctrllimited="true" ctrlrange="-1 1"/>
    <position tendon="t" kp="20" kv="2"/>
    <position joint="b" kp="20" kv="2" forcelimited="true" forcerange="-.01 .01"/>
    <general joint="b" gaintype="affine" gainprm="2 3 0" biastype="affine" biasprm=".1 -4 -.2"/>
    <general joint="a" dyntype="filter" dynprm=".02" gainprm="5"/>
    <general joint="b" dyntype="filterexact" dynprm=".02" gainprm="5" actearly="true"/>
    <general tendon="t" dyntype="integrator" gaintype="affine" gainprm="2 3 0" actlimited="true"
      actrange="-1 1"/>
    <general joint="b" dyntype="integrator" gainprm="2" actlimited="true" actrange="-.2 .2"
      actearly="true"/>
    <motor joint="b" group="3"/>
    <general joint="b" group="3" dyntype="filter" dynprm=".02"/>
  </actuator>
</mujoco>"""


def test_servos_activations_and_their_limits():
    model, data = load(SERVOS)
    model.opt.disableactuator = 1 << 3
    data.ctrl[:], data.act[:] = 0.3, 0.25
    data.qpos[:], data.qvel[:] = [0.3, -0.2], [1.0, 2.0]
    found = assert_agree(stiction.Simulator(model), data, 1e-8, eps=1e-5)
    assert found.is_compiled
    assert not found.B[:, [0, 3, 8, 9, 10]].any()  # beyond a range, or disabled
    assert found.B[:, [1, 2, 4, 5, 6, 7]].any(axis=0).all()


@pytest.mark.parametrize("density", [0.0, 1e-3])
@pytest.mark.parametrize("off", [-1e-6, 1e-6])
def test_servos_that_come_off_their_largest_force_or_to_it(off, density):
    model, data = load(f"""
<mujoco><option density="{density}"/>
  <worldbody><body><joint name="turn" axis="0 1 0"/><geom size=".02" pos=".05 0 0" mass=".05"/>
  </body></worldbody>
  <actuator><velocity joint="turn" kv="50" forcerange="-2 2"/></actuator></mujoco>""")
    data.ctrl[:], data.qvel[:] = 0.5, 0.46 + off  # where the force is at its largest
    assert_agree(stiction.Simulator(model), data, 1e-8, eps=1e-7)


def test_controls_at_the_end_of_their_range_move_inward():
    model, data = load(SERVOS)
    data.ctrl[:2] = 0.05, 1.0
    inside = stiction.Simulator(model).derivatives(data).B
    data.ctrl[0] = 0.1
    assert_allclose(stiction.Simulator(model).derivatives(data).B, inside, atol=1e-12)


SCENES = ["pinch", "grasp", "incline", "sliding-cube", "ladder", "quadruped", "humanoid"]
SCENES += ["tap-dance", "jack", "block-feeder"]


@pytest.mark.parametrize("name", SCENES)
def test_shipped_scenes_have_the_derivatives_of_their_steps(name):
    model, data, control = scenes.load(name)
    sim = stiction.Simulator(model)
    for _ in range(40):
        if control:
            control(model, data)
        sim.step(data)
    if control:
        control(model, data)
    swell(model)
    found = assert_agree(stiction.Simulator(model), data)
    assert any(mode != Mode.SEPARATE for mode in found.modes)


ROBOTS = [("dm_control", name) for name in ("cheetah", "hopper", "humanoid", "quadruped")]
ROBOTS += [
    ("gymnasium", name) for name in ("ant", "half_cheetah", "hopper", "humanoid", "walker2d")
]


@pytest.mark.parametrize(("package", "name"), ROBOTS)
def test_robots_that_flail_have_the_derivatives_of_their_steps(package, name):
    model = robot(package, name)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
        model.opt.timestep /= 5.0
    sim = stiction.Simulator(model)
    for k in range(60):
        data.ctrl[:] = 0.3 * rng.uniform(-1.0, 1.0, model.nu)
        report = sim.step(data, 5)
        if k > 15 and any(contact.mode != Mode.SEPARATE for contact in report.contacts):
            break
    swell(model)
    limited = model.jnt_limited.astype(bool)
    model.jnt_range[limited] += [1e-5, -1e-5]
    found = assert_agree(stiction.Simulator(model), data)
    assert any(mode != Mode.SEPARATE for mode in found.modes)


PLAIN = ["pinch", "grasp", "incline", "ladder", "humanoid", "jack"]


@pytest.mark.parametrize("name", PLAIN)
def test_closed_forms_agree_with_differences_of_what_comes_before_contact(name):
    model, data, control = scenes.load(name)
    swell(model)
    data.qvel[:] = 0.01 * np.random.default_rng(0).normal(size=model.nv)
    data.xfrc_applied[1:, :] = 0.1
    if control:
        control(model, data)
    found = stiction.Simulator(model).derivatives(data)
    assert found.is_compiled
    differences = StepDerivatives(found._source, found._law, None, found.report)
    for have, want in ((found.A, differences.A), (found.B, differences.B)):
        size = max(1.0, np.abs(want).max(initial=0.0))
        assert_allclose(have / size, want / size, atol=1e-5)  # face on face: 5e-6


BALL = """
<mujoco>
  <option timestep="0.005" cone="{cone}"/>
  <worldbody>
    <geom type="plane" size="9 9 1" condim="{dim}" friction=".6 .02 .01"/>
    <body pos="0 0 .0999" euler="10 20 30"><freejoint/>
      <geom type="ellipsoid" size=".1 .1 .1" mass="2" condim="{dim}" friction=".6 .02 .01"/></body>
  </worldbody>
</mujoco>"""


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("dim", [1, 3, 4, 6])
@pytest.mark.parametrize("moving", [False, True])
def test_contacts_of_all_dimensions_stick_spin_and_roll(dim, cone, moving):
    model, data = load(BALL.format(dim=dim, cone=cone).replace("ellipsoid", "sphere"))
    data.qvel[:] = [1.0, 0.4, -0.1, 2.0, 5.0, 3.0] if moving else [0.0, 0.0, -0.1, 0.0, 0.0, 0.0]
    data.qfrc_applied[:] = [0.3, 0.1, 0.0, 0.001, 0.002, 0.003]
    assert_agree(stiction.Simulator(model), data)


JOINTS = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body pos="0 0 .5">
      <joint type="slide" axis="1 0 .2" frictionloss="{loss}" damping="1"/>
      <joint axis="0 1 0" range="-40 {limit}" limited="true"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <body pos=".3 0 0">
        <joint type="ball"/><geom type="capsule" fromto="0 0 0 .1 0 -.4" size=".03"/>
        <body pos=".1 0 -.4"><joint axis="1 0 0" stiffness="3"/><joint axis="0 1 0" damping=".1"/>
          <geom type="box" size=".08 .05 .03" pos=".02 0 -.02"/></body>
      </body>
    </body>
    <body pos="1 0 .098"><freejoint/>
      <geom type="cylinder" size=".08 .1" euler="0 4 0"/></body>
  </worldbody>
  <actuator><motor joint="{joint}" gear="3"/></actuator>
</mujoco>"""


@pytest.mark.parametrize("loss", [0.001, 50.0], ids=["loose", "dry"])
@pytest.mark.parametrize("limit", [2, 60], ids=["stopped", "free"])
def test_all_joint_types_limits_and_dry_friction(loss, limit):
    text = JOINTS.format(loss=loss, limit=limit, joint="turn")
    text = text.replace('<joint axis="0 1 0" range', '<joint name="turn" axis="0 1 0" range')
    model, data = load(text)
    data.qpos[1] = np.radians(2.5)
    data.qvel[:] = np.linspace(-0.5, 1.0, model.nv)
    data.ctrl[:] = 0.5
    assert_agree(stiction.Simulator(model), data)


LOOP = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body name="a" pos="0 0 .4"><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02" contype="0" conaffinity="0"/>
      <body pos=".2 0 0"><joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" contype="0" conaffinity="0"/>
        <site name="end" pos="0 0 -.2"/></body></body>
    <body name="b" pos="0 0 .2"><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .21 0 .0" size=".02" contype="0" conaffinity="0"/></body>
    <body name="c" pos="1 0 .15"><freejoint/><geom type="sphere" size=".1"/></body>
    <body name="hand" mocap="true" pos="1 .05 .2"/>
  </worldbody>
  <equality>
    <connect body1="b" body2="a" anchor=".2 0 0"/>
    <weld body1="c" body2="hand"/>
  </equality>
</mujoco>"""


@pytest.mark.parametrize("equality", ["soft", "rigid"])
def test_loops_and_welds(equality):
    model, data = load(LOOP)
    data.qvel[:3] = [0.3, -0.2, 0.1]
    assert_agree(stiction.Simulator(model, equality=equality), data, eps=1e-6)


def tilted_box():
    """A box that slides on an edge, a tenth of a millimetre deep."""
    model, data = load(BALL.format(dim=3, cone="elliptic").replace("ellipsoid", "box"))
    mujoco.mj_kinematics(model, data)
    data.qpos[2] = 0.1 * np.abs(data.geom_xmat[1, 6:]).sum() - 1e-4
    data.qvel[:] = [0.5, 0.2, -0.1, 0.3, -0.2, 0.1]
    return model, data


@pytest.mark.parametrize(
    "contact", [Coulomb(), Coulomb(facets=8), NoSlip(), Viscous(20.0), Frictionless()], ids=repr
)
def test_every_law_of_contact(contact):
    model, data = tilted_box()
    found = assert_agree(stiction.Simulator(model, contact), data)
    assert any(mode != Mode.SEPARATE for mode in found.modes)


def test_a_ball_that_lands_has_the_derivative_of_its_gap():
    model, data = load(BALL.format(dim=1, cone="elliptic").replace("ellipsoid", "sphere"))
    data.qpos[2], data.qvel[2] = 0.101, -1.0
    found = assert_agree(stiction.Simulator(model), data)
    # v+ = -gap / h, and the ball ends on the ground wherever it began
    assert found.A[8, 2] == pytest.approx(-1.0 / model.opt.timestep)
    assert found.A[2, 2] == pytest.approx(0.0, abs=1e-9)


def test_the_report_of_derivatives_has_the_time_after_their_step():
    model, data, _ = scenes.load("sliding-cube")
    sim = stiction.Simulator(model)
    first = sim.derivatives(data)
    second = sim.derivatives(data)  # the first one's report was not asked for before
    assert first.report.time == second.report.time == sim.step(data).time


def test_what_rests_on_the_ground_is_put_back_onto_it():
    model, data, _ = scenes.load("sliding-cube")
    data.qvel[:] = 0.0
    found = stiction.Simulator(model).derivatives(data)
    assert found.report.overlap < 1e-12
    assert_allclose(found.A[2], 0.0, atol=1e-9)  # height after the step: the ground's
    assert_allclose(found.A[8], 0.0, atol=1e-6)


def test_parameters_move_the_step_as_edits_of_the_model_do():
    model, data = tilted_box()
    found = (
        stiction.Simulator(model)
        .derivatives(data)
        .parameters(["geom_friction", "body_mass", "body_inertia"])
    )
    for name, matrix in found.items():
        field = getattr(model, name)
        assert matrix.shape == (12, *field.shape)
        for at in [(1, 0), (1, 2)] if field.ndim > 1 else [(1,)]:
            kept, ends = field[at], []
            for amount in (1e-6, -1e-6):
                field[at] = kept + amount
                moved = mujoco.MjData(model)
                mujoco.mj_setConst(model, moved)
                moved.qpos[:], moved.qvel[:] = data.qpos, data.qvel
                stiction.Simulator(model).step(moved)
                ends.append(moved.qvel.copy())
            field[at] = kept
            mujoco.mj_setConst(model, moved)
            want = (ends[0] - ends[1]) / 2e-6
            have = matrix[(slice(6, None), *at)]
            assert_allclose(have, want, atol=1e-5 * max(1.0, np.abs(want).max()))


def test_smoothed_a_floor_ahead_is_felt_the_more_the_nearer_it_is():
    model, data = load(BALL.format(dim=3, cone="elliptic").replace("ellipsoid", "sphere"))
    sim, felt = stiction.Simulator(model), []
    data.qvel[2] = -0.1
    for height in (0.102, 0.1015, 0.101):
        data.qpos[2] = height
        found = sim.derivatives(data)
        assert found.A[8, 2] == pytest.approx(0.0, abs=1e-9)
        smooth = found.smoothed(1e-3)
        felt.append(-smooth.A[8, 2] * model.opt.timestep)
        assert_allclose(sim.derivatives(data, smoothing=1e-3).A, smooth.A, atol=1e-9)
        assert_allclose(found.smoothed(1e-14).A, found.A, atol=1e-5)
    assert 0.0 < felt[0] < felt[1] < felt[2] < 1.0


def test_sensors_have_derivatives_on_request():
    model, data = load("""
<mujoco><worldbody><body name="arm"><joint name="j" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body></worldbody>
  <actuator><motor joint="j"/></actuator>
  <sensor><jointpos joint="j"/><jointvel joint="j"/><jointactuatorfrc joint="j"/></sensor>
</mujoco>""")
    found = stiction.Simulator(model).derivatives(data)
    assert_allclose(found.C, [[1, 0], [0, 1], [0, 0]], atol=1e-8)
    assert_allclose(found.D, [[0], [0], [1]], atol=1e-8)


def test_products_take_changes_forward_and_gradients_back():
    model, data, control = scenes.load("quadruped")
    control(model, data)
    found = stiction.Simulator(model).derivatives(data)
    rng = np.random.default_rng(0)
    x, u, g = (rng.normal(size=n) for n in (*found.B.shape, len(found.A)))
    assert_allclose(found.jvp(x, u), found.A @ x + found.B @ u)
    by_state, by_control = found.vjp(g)
    assert by_state @ x + by_control @ u == pytest.approx(g @ found.jvp(x, u))


def test_derivatives_leave_the_simulator_as_it_was():
    model, data, _ = scenes.load("grasp")
    ends = []
    for look in (False, True):
        sim, own = stiction.Simulator(model), mujoco.MjData(model)
        own.qpos[:] = data.qpos
        for _ in range(5):
            if look:
                sim.derivatives(own)
            sim.step(own)
        ends.append((own.qpos.copy(), own.qvel.copy(), sim.statistics.steps))
    for plain, looked in zip(*ends, strict=True):
        assert_array_equal(plain, looked)


CORNERS = " ".join(f"{0.1 * np.cos(t)} {0.1 * np.sin(t)} {z}"
                   for t in np.arange(12) * np.pi / 6 for z in (0, 0.02))  # fmt: skip
DISC = f"""<mujoco>
  <asset><mesh name="disc" vertex="{CORNERS}"/></asset>
  <worldbody><geom type="plane" size="1 1 .1"/>
    <body pos="0 0 .02" gravcomp=".1"><freejoint/><geom type="mesh" mesh="disc"/></body></worldbody>
  </mujoco>"""


def test_the_lowest_corner_of_a_mesh_is_kept_where_a_small_turn_has_another():
    model, data = load(DISC)
    sim = stiction.Simulator(model)
    sim.step(data, 200)
    mujoco.mj_integratePos(model, data.qpos, np.array([0, 0, -1e-5, 2e-6, 1e-6, 0]), 1.0)
    data.qvel[:] = 1e-3
    assert not assert_agree(sim, data, 1e-8).is_compiled


def test_belts_carry_what_slides_and_what_sticks():
    model, data = tilted_box()
    model.geom_surfacevel[0, :3] = [0.3, -0.1, 0.0]
    model.flg_surfacevel = 1
    for speed in (0.0, 1.0):
        data.qvel[0] = speed
        assert_agree(stiction.Simulator(model), data)


def test_what_bounces_has_no_derivatives_in_the_step_of_its_impact():
    model, data = load(BALL.format(dim=1, cone="elliptic").replace("ellipsoid", "sphere"))
    sim = stiction.Simulator(model, restitution=0.5)
    data.qpos[2] = 0.5
    assert_agree(sim, data)
    data.qpos[2], data.qvel[2] = 0.101, -3.0
    with pytest.raises(stiction.StictionError, match="bounce"):
        sim.derivatives(data)


def test_nothing_that_moves_has_empty_derivatives(capfd):
    model, data = load('<mujoco><worldbody><geom type="plane" size="1 1 1"/></worldbody></mujoco>')
    found = stiction.Simulator(model).derivatives(data)
    assert found.A.shape == (0, 0)
    assert found.margin == np.inf
    assert not capfd.readouterr().out  # LAPACK complains of empty matrices there


def test_what_has_no_derivatives_says_so():
    model, data, _ = scenes.load("incline")
    with pytest.raises(InvalidInput, match="EventDriven"):
        stiction.Simulator(model, stepper=stiction.EventDriven()).derivatives(data)
    found = stiction.Simulator(model).derivatives(data)
    with pytest.raises(InvalidInput, match="smoothing"):
        found.smoothed(-1.0)
    with pytest.raises(InvalidInput, match="body_mas"):
        found.parameters("body_mas")
    with pytest.raises(InvalidInput, match="body_ipos cannot be moved"):
        found.parameters("body_ipos")  # of a body that MuJoCo has simplified
