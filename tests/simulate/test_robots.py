"""The simulator on scenes that other engines were measured on, and on robots that pip brings."""

from pathlib import Path

import mujoco
import numpy as np
import pytest
from robots import folder, robot

import stiction

SCENES = Path(__file__).parents[1] / "data" / "scenes"
STEADY = 1e-9
"""Creep [m/s] and drift [m] that count as zero."""


# --- grasps and stacks -----------------------------------------------------------------------


def scene(name):
    return mujoco.MjModel.from_xml_path(str(SCENES / f"{name}.xml"))


def hold(model, control, seconds):
    """Runs the scene with constant control; (times, bodies) heights of the free bodies [m] and
    the deepest penetration [m] by MuJoCo's own measure, every 10 ms."""
    data, look = mujoco.MjData(model), mujoco.MjData(model)
    data.ctrl[:] = control
    free = model.jnt_bodyid[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
    sim = stiction.Simulator(model)
    heights, deepest = [], 0.0
    every = round(0.01 / model.opt.timestep)
    for k in range(round(seconds / 0.01) + 1):
        if k:
            sim.step(data, every)
        look.qpos[:] = data.qpos
        mujoco.mj_fwdPosition(model, look)
        heights.append(look.xpos[free, 2].copy())
        deepest = min(deepest, look.contact.dist.min(initial=0.0))
    return np.array(heights), -deepest, sim.statistics


@pytest.mark.parametrize(
    ("name", "control"),
    [
        ("pinch12N", 0.002),
        ("pinch60N", 0.002),
        ("grasp2", 200.0),
        ("grasp4", 400.0),
        ("grasp8", 800.0),
    ],
)
def test_what_is_held_neither_creeps_nor_sinks(name, control):
    model = scene(name)
    model.opt.timestep = 0.001
    heights, penetration, statistics = hold(model, control, 10.0)
    half = len(heights) // 2
    creep = np.abs(heights[-1] - heights[half]).max() / 5.0
    assert creep <= STEADY
    assert (heights[0] - heights).max() <= 1e-6
    assert penetration <= 1e-6
    assert statistics.worst <= 1e-6
    assert statistics.energy <= 1e-12


@pytest.mark.parametrize("masses", [[1.0] * 10, [1.0, 1e6]], ids=["ten boxes", "a million to one"])
def test_a_stack_stands_for_a_hundred_seconds(masses):
    boxes = "".join(
        f'<body pos="0 0 {0.05 + 0.1 * k}"><freejoint/>'
        f'<geom type="box" size=".05 .05 .05" mass="{mass}"/></body>'
        for k, mass in enumerate(masses)
    )
    model = mujoco.MjModel.from_xml_string(f"""
<mujoco>
  <size memory="10M"/>
  <worldbody><geom type="plane" size="9 9 1"/>{boxes}</worldbody>
</mujoco>""")
    data = mujoco.MjData(model)
    start = data.qpos.copy()
    sim = stiction.Simulator(model)
    for _ in range(10):
        sim.step(data, 5000)
        assert np.abs(data.qpos - start).max() <= STEADY
    assert data.time == pytest.approx(100.0)
    assert sim.statistics.worst <= 1e-8


# --- robots ----------------------------------------------------------------------------------

SUITE = (
    "ball_in_cup", "cheetah", "dog", "finger", "fish", "hopper", "humanoid", "humanoid_CMU",
    "manipulator", "quadruped", "stacker", "walker",
)  # fmt: skip
SUITE_WITHOUT_CONTACT = (
    "acrobot", "cartpole", "lqr", "pendulum", "point_mass", "reacher", "swimmer",
)  # fmt: skip
GYMNASIUM = (
    "ant", "half_cheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum",
    "inverted_pendulum", "point", "pusher", "pusher_v5", "reacher", "swimmer", "walker2d",
    "walker2d_v5",
)  # fmt: skip


@pytest.mark.parametrize(
    ("package", "names"),
    [("dm_control", {*SUITE, *SUITE_WITHOUT_CONTACT}), ("gymnasium", set(GYMNASIUM))],
)
def test_no_model_is_left_out(package, names):
    assert {path.stem for path in folder(package).glob("*.xml")} == names


def flail(model, steps):
    """Random controls, new ones every five steps; the statistics, and the kinetic energy [J] that
    the model came to at most."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
        model.opt.timestep /= 5.0  # chosen for it; `implicitfast` runs away in MuJoCo as well
    limited = model.actuator_ctrllimited.astype(bool)[:, None]
    low, high = np.where(limited, model.actuator_ctrlrange, [-1.0, 1.0]).T
    sim = stiction.Simulator(model)
    rng = np.random.default_rng(0)
    energy = 0.0
    for _ in range(steps // 5):
        data.ctrl[:] = rng.uniform(low, high)
        sim.step(data, 5)
        energy = max(energy, data.energy[1])
    return sim.statistics, energy


def check_robot(package, name, steps):
    statistics, energy = flail(robot(package, name), steps)
    assert statistics.steps == steps
    assert statistics.worst <= 1e-6
    assert statistics.energy <= 1e-9 * energy
    assert "without friction" not in statistics.rungs


ROBOTS = pytest.mark.parametrize(
    ("package", "name"),
    [*(("dm_control", name) for name in SUITE), *(("gymnasium", name) for name in GYMNASIUM)],
)


@ROBOTS
def test_robots_flail_without_a_failure(package, name):
    check_robot(package, name, 200)


@pytest.mark.long
@ROBOTS
def test_robots_flail_for_long_without_a_failure(package, name):
    check_robot(package, name, 10_000)


def standing(name, stiffness):
    """A robot of dm_control's in its first pose, feet on the ground, a servo at every hinge."""
    spec = mujoco.MjSpec.from_file(str(folder("dm_control") / f"{name}.xml"))
    for element in [*spec.actuators, *spec.keys, *spec.sensors]:
        spec.delete(element)
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_HINGE:
            servo = spec.add_actuator(name=f"servo {joint.name}", target=joint.name)
            servo.trntype = mujoco.mjtTrn.mjTRN_JOINT
            servo.set_to_position(kp=stiffness, kv=0.1 * stiffness)
            servo.ctrllimited, servo.forcelimited, servo.actlimited = 0, 0, 0
            servo.gear = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    model = spec.compile()
    data = mujoco.MjData(model)
    data.ctrl[:] = data.qpos[model.jnt_qposadr[model.actuator_trnid[:, 0]]]
    mujoco.mj_forward(model, data)
    floor, root = model.geom("floor").id, model.jnt_bodyid[model.joint("root").id]
    collides = (model.geom_contype | model.geom_conaffinity).astype(bool)
    own = model.body_rootid[model.geom_bodyid] == root
    geoms = np.flatnonzero(collides & own)
    gaps = np.array([
        mujoco.mj_geomDistance(model, data, floor, g, 9.0, np.zeros(6)) for g in geoms
    ])  # fmt: skip
    data.qpos[2] -= gaps.min()
    return model, data, geoms[gaps <= gaps.min() + 1e-9]


@pytest.mark.parametrize(
    ("name", "stiffness", "seconds"),
    [
        ("quadruped", 300.0, 5.0),
        ("humanoid", 2000.0, 5.0),
        pytest.param("quadruped", 300.0, 60.0, marks=pytest.mark.long),
        pytest.param("humanoid", 2000.0, 60.0, marks=pytest.mark.long),
    ],
)
def test_the_feet_of_a_standing_robot_do_not_creep(name, stiffness, seconds):
    model, data, feet = standing(name, stiffness)
    assert len(feet) == 4
    sim = stiction.Simulator(model)
    settle = 4.0
    sim.step(data, round(settle / model.opt.timestep))
    mujoco.mj_kinematics(model, data)
    height, places = data.qpos[2], data.geom_xpos[feet].copy()
    report = sim.step(data, round((seconds - settle) / model.opt.timestep))
    mujoco.mj_kinematics(model, data)
    assert np.abs(data.geom_xpos[feet] - places).max() <= STEADY
    assert abs(data.qpos[2] - height) <= STEADY
    assert np.abs(data.qvel[:6]).max() <= STEADY
    # The quadruped's ball rests on its back.
    carried = sum(c.force[0] for c in report.contacts if c.bodies[0] == "world")
    weight = 9.81 * model.body_mass.sum()
    assert carried == pytest.approx(weight, rel=1e-6)
    assert sim.statistics.worst <= 1e-6


# --- dry joints ------------------------------------------------------------------------------


def dry_quadruped():
    """Four legs of three dry joints each, servos at all of them; feet that do not spin freely."""
    legs = "".join(
        f"""
        <body pos="{0.25 if k < 2 else -0.25} {0.1 if k % 2 else -0.1} 0">
          <joint name="hip{k}" axis="1 0 0"/>
          <geom type="sphere" size="0.04" mass="1" contype="0" conaffinity="0"/>
          <body>
            <joint name="thigh{k}"/>
            <geom type="capsule" size="0.02" fromto="0 0 0 -0.1 0 -0.23" mass="1" contype="0"/>
            <body pos="-0.1 0 -0.23">
              <joint name="knee{k}"/>
              <geom type="capsule" size="0.02" fromto="0 0 0 0.1 0 -0.2" mass="0.5" contype="0"/>
              <geom type="sphere" size="0.03" pos="0.1 0 -0.23" mass="0.1" condim="6"/>
            </body>
          </body>
        </body>"""
        for k in range(4)
    )
    servos = "".join(
        f"<position joint='{name}{k}' kp='300'/>"
        for k in range(4)
        for name in ("hip", "thigh", "knee")
    )
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco>
          <option timestep="0.002"/>
          <default>
            <joint type="hinge" axis="0 1 0" frictionloss="3" damping="1" armature="0.01"/>
            <geom friction="0.8 0.02 0.01"/>
          </default>
          <worldbody>
            <geom type="plane" size="5 5 1"/>
            <body pos="0 0 0.5">
              <freejoint/>
              <geom type="box" size="0.25 0.1 0.05" mass="20" contype="0"/>
              {legs}
            </body>
          </worldbody>
          <actuator>{servos}</actuator>
        </mujoco>"""
    )


def test_dry_joints_at_their_limits_do_not_slide_and_stick_by_turns():
    """Steps while the robot sways took twice the factorizations when they did."""
    model = dry_quadruped()
    data, sim = mujoco.MjData(model), stiction.Simulator(model)
    sim.step(data, 500)
    sim.reset_statistics()
    for k in range(500):
        data.ctrl[:] = 0.02 * np.sin(4e-3 * np.pi * k) * np.cos(np.arange(model.nu))
        sim.step(data)
    assert data.qpos[2] > 0.4
    assert sim.statistics.pivots < 1.5
