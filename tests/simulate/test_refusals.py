"""What the simulator refuses, by name."""

import numpy as np
import pytest
from mjcf import BOX, load
from mjdata import state

import stiction
from stiction import InvalidInput, StictionError, Viscous

SERVO = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 1"/>
    <body name="box" pos="0 0 .1"><freejoint name="free"/>
      <geom name="cube" type="box" size=".1 .1 .1"/></body>
    <body name="arm" pos="1 0 1"><joint name="hinge"/><geom type="sphere" size=".1" pos="0 0 .2"/>
    </body>
    <body name="hand" mocap="true"/>
  </worldbody>
  <actuator><general name="motor" joint="hinge" dyntype="filter" dynprm=".1"/></actuator>
</mujoco>"""

BAD_STATES = [
    ("qpos", 2, "joint 'free'"),
    ("qpos", 7, "joint 'hinge'"),
    ("qvel", 6, "joint 'hinge' of body 'arm'"),
    ("act", 0, "act"),
    ("ctrl", 0, "actuator 'motor'"),
    ("qfrc_applied", 6, "joint 'hinge'"),
    ("xfrc_applied", (1, 3), "body 'box'"),
    ("mocap_pos", (0, 1), "mocap_pos"),
    ("mocap_quat", (0, 1), "mocap_quat"),
]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("field", "index", "named"), BAD_STATES)
def test_numbers_that_are_none_are_refused_by_name(field, index, named, value):
    model, data = load(SERVO)
    sim = stiction.Simulator(model)
    sim.step(data, 3)
    getattr(data, field)[index] = value
    before = state(data)
    with pytest.raises(InvalidInput, match=named) as caught:
        sim.step(data, 5)
    assert f"data.{field}" in str(caught.value)
    assert state(data) == before
    getattr(data, field)[index] = 1.0 if field == "mocap_quat" else 0.0
    sim.step(data)  # and it goes on


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
def test_friction_that_is_none_is_refused_by_the_geoms_name(value):
    model, _ = load(BOX)
    model.geom("cube").friction[0] = value
    with pytest.raises(InvalidInput, match="geom 'cube'"):
        stiction.Simulator(model)


def test_bad_friction_of_a_pair_and_of_dry_joints_is_refused():
    model, _ = load(
        BOX.replace(
            "</mujoco>",
            '<contact><pair name="both" geom1="floor" geom2="cube"/></contact></mujoco>',
        )
    )
    model.pair_friction[0, 1] = -1.0
    with pytest.raises(InvalidInput, match="pair 'both'"):
        stiction.Simulator(model)
    model, _ = load(SERVO)
    model.dof_frictionloss[6] = np.nan
    with pytest.raises(InvalidInput, match="joint 'hinge'"):
        stiction.Simulator(model)


@pytest.mark.parametrize("value", [0.0, -0.002, np.nan, np.inf])
def test_a_step_that_takes_no_time_is_refused(value):
    model, _ = load(BOX)
    model.opt.timestep = value
    with pytest.raises(InvalidInput, match="timestep"):
        stiction.Simulator(model)


def test_bad_mass_and_gravity_are_refused():
    model, _ = load(BOX)
    model.body("box").mass[0] = np.nan
    with pytest.raises(InvalidInput, match="body 'box'"):
        stiction.Simulator(model)
    model, _ = load(BOX)
    model.opt.gravity[1] = np.nan
    with pytest.raises(InvalidInput, match="gravity"):
        stiction.Simulator(model)


def test_an_actuator_that_drives_what_it_should_damp_is_named():
    model, data = load("""
<mujoco>
  <worldbody><body><joint name="hinge"/><geom type="sphere" size=".1" pos="0 0 .2"/></body>
  </worldbody>
  <actuator><velocity joint="hinge" kv="-100"/></actuator>
</mujoco>""")
    before = state(data)
    with pytest.raises(InvalidInput, match="joint 'hinge'"):
        stiction.Simulator(model).step(data)
    assert state(data) == before


def test_flexible_bodies_are_refused_by_name():
    model, _ = load("""
<mujoco><worldbody>
  <flexcomp name="sheet" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" mass="1"/>
</worldbody></mujoco>""")
    with pytest.raises(InvalidInput, match="flex 'sheet'"):
        stiction.Simulator(model)


def test_moving_surfaces_are_refused_by_name():
    model, _ = load(BOX.replace('name="floor"', 'name="floor" surfacevel="1 0 0 0 0 0"'))
    with pytest.raises(InvalidInput, match="geom 'floor'"):
        stiction.Simulator(model)


def test_a_full_arena_is_an_error_and_no_contact_is_dropped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log of its warnings
    bodies = "".join(
        f'<body pos="{k} 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for k in range(20)
    )
    model, data = load(
        f'<mujoco><size memory="20K"/><worldbody><geom type="plane" size="9 9 1"/>{bodies}'
        "</worldbody></mujoco>"
    )
    before = state(data)
    with pytest.raises(StictionError, match="arena"):
        stiction.Simulator(model).step(data)
    assert state(data) == before


def test_data_of_another_model_is_refused():
    sim = stiction.Simulator(load(BOX)[0])
    _, other = load(SERVO)
    with pytest.raises(InvalidInput, match="nq"):
        sim.step(other)
    with pytest.raises(InvalidInput, match="MjData"):
        sim.step(None)
    with pytest.raises(InvalidInput, match="MjModel"):
        stiction.Simulator("model.xml")


@pytest.mark.parametrize("nstep", [0, -1, 1.5])
def test_a_number_of_steps_that_is_none_is_refused(nstep):
    model, data = load(BOX)
    with pytest.raises(InvalidInput, match="nstep"):
        stiction.Simulator(model).step(data, nstep)
    assert data.time == 0.0


@pytest.mark.parametrize(
    "options",
    [
        {"contact": "coulomb"},
        {"contact": Viscous()},
        {"stepper": 0.001},
        {"equality": "hard"},
        {"on_failure": "ignore"},
        {"tolerance": 0.0},
        {"tolerance": np.nan},
        {"tolerance": 2.0},
    ],
    ids=str,
)
def test_wrong_options_are_refused_by_name(options):
    model, _ = load(BOX)
    with pytest.raises(InvalidInput, match=next(iter(options))):
        stiction.Simulator(model, **options)
