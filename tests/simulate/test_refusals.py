"""What the simulator refuses, by name."""

import copy
import pickle

import mujoco
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


@pytest.mark.parametrize("stepper", [stiction.TimeStepping(), stiction.EventDriven()])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_time_that_is_none_is_refused_by_name(value, stepper):
    model, data = load(SERVO)
    sim = stiction.Simulator(model, stepper=stepper)
    data.time = value
    with pytest.raises(InvalidInput, match=r"^data.time: is (nan|inf)"):
        sim.step(data, 5)
    data.time = 0.0
    sim.step(data)


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


@pytest.mark.parametrize(
    "delayed",
    [
        '<actuator><motor joint="j" delay=".01" nsample="6"/></actuator>',
        '<sensor><jointpos joint="j" delay=".01" nsample="6"/></sensor>',
    ],
)
def test_delays_are_refused_as_what_they_are(delayed):
    model, _ = load(f"""
<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>{delayed}
</mujoco>""")
    with pytest.raises(InvalidInput, match="has actuators or sensors with delays"):
        stiction.Simulator(model)


def test_flexible_bodies_are_refused_by_name():
    model, _ = load("""
<mujoco><worldbody>
  <flexcomp name="sheet" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" mass="1"/>
</worldbody></mujoco>""")
    with pytest.raises(InvalidInput, match="flex 'sheet'"):
        stiction.Simulator(model)


@pytest.mark.parametrize(
    "options", [{"stepper": stiction.EventDriven()}, {"delassus": "assembly"}], ids=str
)
def test_moving_surfaces_are_refused_by_name_where_they_are_unknown(options):
    model, _ = load(BOX.replace('name="floor"', 'name="floor" surfacevel="1 0 0 0 0 0"'))
    with pytest.raises(InvalidInput, match="geom 'floor'"):
        stiction.Simulator(model, **options)


@pytest.mark.parametrize(
    ("restitution", "options"),
    [
        (-0.1, {}),
        (1.1, {}),
        (float("nan"), {}),
        ("much", {}),
        ([0.5, 0.5, 0.5], {}),
        ([0.5, 2.0], {}),
        (0.5, {"stepper": stiction.EventDriven()}),
        (0.5, {"delassus": "assembly"}),
        (0.5, {"contact": stiction.Baraff()}),
    ],
    ids=str,
)
def test_restitution_that_cannot_be_is_refused_by_name(restitution, options):
    model, _ = load(BOX)
    with pytest.raises(InvalidInput, match="restitution"):
        stiction.Simulator(model, restitution=restitution, **options)


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


MANY_GEOMS = BOX.replace("</body>", '<geom size=".1"/>' * 400 + "</body>")


@pytest.mark.parametrize("stepper", [stiction.TimeStepping(), stiction.EventDriven()])
def test_data_of_another_model_with_as_many_joints_and_bodies_is_refused(stepper):
    model, _ = load(MANY_GEOMS)
    _, other = load(BOX)
    sim = stiction.Simulator(model, stepper=stepper)
    for data in (other, pickle.loads(pickle.dumps(other))):  # without a signature then
        with pytest.raises(InvalidInput, match="another model"):
            sim.step(data)
        with pytest.raises(InvalidInput, match="another model"):
            stiction.step(model, data)
        with pytest.raises(InvalidInput, match="another model"):
            stiction.step(pickle.loads(pickle.dumps(model)), data)


def test_data_of_a_copy_of_the_model_and_of_an_edited_one_is_taken():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    sim.step(data)
    sim.step(mujoco.MjData(copy.copy(model)))
    sim.step(pickle.loads(pickle.dumps(data)))
    model.geom_size[1] = 0.2
    sim.refresh()
    sim.step(mujoco.MjData(model))
    stiction.Simulator(pickle.loads(pickle.dumps(model))).step(data)


EDITS = [
    ("geom_type", 1, -5, "geom 'cube'"),
    ("geom_type", 1, 105, "geom 'cube'"),
    ("geom_type", 1, 7, "geom_dataid.*geom 'cube'"),
    ("geom_condim", 1, 0, "geom 'cube'"),
    ("geom_condim", 1, 7, "geom 'cube'"),
    ("geom_size", 1, np.nan, "geom 'cube'"),
    ("geom_size", 1, -0.1, "geom 'cube'"),
    ("geom_size", 1, 0.0, "geom 'cube'"),
    ("geom_bodyid", 1, 50, "geom_bodyid"),
    ("geom_pos", 1, np.inf, "geom 'cube'"),
    ("body_parentid", 1, 50, "body_parentid"),
    ("body_parentid", 1, 2, "body_parentid"),
    ("body_pos", 2, np.nan, "body 'arm'"),
    ("body_dofnum", 1, 60, "body_dofnum"),
    ("jnt_type", 1, 9, "joint 'hinge'"),
    ("jnt_type", 1, 0, "jnt_type"),
    ("jnt_axis", 1, np.nan, "joint 'hinge'"),
    ("dof_armature", 6, np.nan, "joint 'hinge'"),
    ("dof_jntid", 6, 9, "dof_jntid"),
    ("actuator_trnid", 0, 9, "actuator_trnid"),
    ("actuator_trntype", 0, 77, "actuator 'motor'"),
    ("actuator_gainprm", 0, np.nan, "actuator 'motor'"),
    ("qpos0", 2, np.nan, "qpos0"),
]


@pytest.mark.parametrize(("field", "index", "value", "named"), EDITS)
def test_an_edit_that_mujoco_would_not_compile_is_refused_by_name(field, index, value, named):
    model, data = load(SERVO)
    sim = stiction.Simulator(model)
    before = copy.copy(getattr(model, field)[index])
    getattr(model, field)[index] = value
    for refused in (sim.refresh, lambda: sim.step(data), lambda: stiction.Simulator(model)):
        with pytest.raises(InvalidInput, match=named):
            refused()
    assert data.time == 0.0
    getattr(model, field)[index] = before
    sim.step(data)


@pytest.mark.parametrize("nstep", [0, -1, 1.5, 2.0, True, 2**63, 10**30, "3", None, np.nan])
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
        {"tolerance": True},
        {"tolerance": "1e-6"},
        {"tolerance": None},
        {"warm_start": "yes"},
        {"warm_start": None},
        {"failures": 3},
        {"delassus": None},
        {"delassus": ["auto"]},
    ],
    ids=str,
)
def test_wrong_options_are_refused_by_name(options):
    model, _ = load(BOX)
    with pytest.raises(InvalidInput, match=next(iter(options))):
        stiction.Simulator(model, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"dt": "1e-3"},
        {"dt": True},
        {"dt": -1.0},
        {"dt": np.inf},
        {"integrator": ["rk4"]},
        {"restitution": "0.5"},
        {"restitution": None},
        {"hypothesis": None},
        {"tolerance": None},
        {"tolerance": np.nan},
        {"most_events": 10.0},
        {"most_events": "many"},
        {"most_events": False},
    ],
    ids=str,
)
def test_wrong_options_of_a_stepper_are_refused_by_name(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        stiction.EventDriven(**options)


def test_pushing_out_is_on_or_off():
    with pytest.raises(InvalidInput, match="push_out"):
        stiction.TimeStepping(push_out="no")


def test_bodies_that_a_mocap_body_carries_are_taken():
    model = mujoco.MjModel.from_xml_string("""
<mujoco><worldbody>
  <body mocap="true"><geom size=".1"/><body pos="0 0 .2"><geom size=".1"/>
    <body pos="0 0 .3"><joint/><geom size=".1"/></body></body></body>
  <body mocap="true" pos="1 0 0"/>
</worldbody></mujoco>""")
    data = mujoco.MjData(model)
    stiction.Simulator(model).step(data, 5)
    assert data.time == pytest.approx(0.01)
