"""The user's model: left as it is, and followed as it changes."""

import copy

import mujoco
import numpy as np
import pytest
from mjcf import BOX, jumble, load
from mjdata import state

import stiction
from stiction import InvalidInput
from stiction.bridge.own_model import OwnModel

G = 9.81


def as_bytes(model):
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def test_the_users_model_is_not_modified():
    model, data = load(BOX.replace('mass="2"', 'mass="2" margin=".01" gap=".002"'))
    before = as_bytes(model)
    sim = stiction.Simulator(model)
    data.qvel[0] = 3.0
    sim.step(data, 50)
    sim(model, data)
    sim.refresh()
    data.qpos[0] = np.nan
    with pytest.raises(InvalidInput):
        sim.step(data)
    assert as_bytes(model) == before


def test_options_are_followed_as_they_change():
    model, data = load(BOX.replace('pos="0 0 .1"', 'pos="0 0 5"'))
    sim = stiction.Simulator(model)
    sim.step(data)
    model.opt.gravity[2] = 1.0
    model.opt.timestep = 0.01
    sim.step(data)
    assert data.qvel[2] == pytest.approx(-0.002 * G + 0.01, rel=1e-12)
    assert data.time == pytest.approx(0.012)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_GRAVITY
    before = data.qvel[2]
    sim.step(data)
    assert data.qvel[2] == before


@pytest.mark.parametrize("flag", ["CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY", "CONSTRAINT"])
def test_what_the_model_disables_does_not_act(flag):
    model, data = load("""
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <geom type="plane" size="9 9 1" contype="2"/>
    <body pos="0 0 .1"><freejoint/><geom type="sphere" size=".1" conaffinity="2"/></body>
    <body pos="2 0 1"><joint axis="0 1 0" range="-1 0"/>
      <geom type="sphere" size=".1" pos=".2 0 0"/></body>
    <body pos="3 0 1"><joint axis="0 1 0" frictionloss="1000"/>
      <geom type="sphere" size=".1" pos=".2 0 0"/></body>
    <body pos="4 0 1"><joint name="held" axis="0 1 0"/>
      <geom type="sphere" size=".1" pos=".2 0 0"/></body>
  </worldbody>
  <equality><joint joint1="held" solref=".004 1" solimp=".999 .9999 .001"/></equality>
</mujoco>""")
    model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    stiction.Simulator(model).step(data, 20)
    moves = dict(
        zip(("CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY"), data.qvel[[2, 6, 7, 8]], strict=True)
    )
    for part, speed in moves.items():
        assert (abs(speed) > 0.1) == (flag in (part, "CONSTRAINT")), part


@pytest.mark.parametrize("stepper", [stiction.TimeStepping(), stiction.EventDriven()])
def test_friction_is_followed_as_it_changes(stepper):
    model, data = load(BOX)
    sim = stiction.Simulator(model, stepper=stepper)
    model.geom_friction[:, 0] = 0.0
    data.qvel[0] = 1.0
    sim.step(data, 10)
    assert data.qvel[0] == pytest.approx(1.0, rel=1e-12)
    model.geom_friction[:, 0] = 0.5
    sim.step(data, 10)
    assert data.qvel[0] == pytest.approx(1.0 - 0.02 * 0.5 * G, rel=1e-9)


def test_masses_and_sizes_are_followed_as_they_change():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    sim.step(data)
    model.body_mass[1] *= 3.0
    model.body_inertia[1] *= 3.0
    report = sim.step(data)
    assert sum(c.force[0] for c in report.contacts) == pytest.approx(6.0 * G)
    model.geom_size[1, 2] = 0.05
    model.geom_rbound[1] = np.linalg.norm(model.geom_size[1])
    model.geom_aabb[1, 5] = 0.05
    sim.step(data, 500)
    assert data.qpos[2] == pytest.approx(0.05, abs=1e-6)


def test_a_model_that_changes_has_the_bits_of_one_that_was_so_from_the_start():
    model, data = jumble()
    changed, other = copy.copy(model), copy.copy(data)
    sim = stiction.Simulator(changed)
    for m in (model, changed):
        m.geom_friction[:, 0] *= 0.5
        m.body_mass[1:] *= 1.5
        m.dof_damping[:] = 0.1
        m.dof_armature[:] = 0.01
    stiction.Simulator(model).step(data, 100)
    sim.step(other, 100)
    assert state(other) == state(data)


def test_what_a_fluid_does_to_geoms_is_followed_once_there_is_a_fluid():
    bodies = "".join(
        f'<body pos="0 0 {2 * k}"><freejoint/><geom size=".1 .1 .05" type="box"/></body>'
        for k in range(30)
    )
    model, data = load(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    data.qvel[::6] = 3.0
    changed, other = copy.copy(model), copy.copy(data)
    sim = stiction.Simulator(changed)
    sim.step(other)
    stiction.Simulator(model).step(data)
    for density in (0.0, 100.0, 100.0):
        for m in (model, changed):
            m.opt.density = density
            m.geom_fluid[:, :2] += 0.5
        sim.step(other)
        stiction.Simulator(model).step(data)
        assert state(other) == state(data)
    assert data.qvel[0] < 2.99


def test_edits_of_a_large_model_are_noticed_but_for_what_no_step_reads():
    geoms = "".join(f'<geom size=".1" pos="{i} 0 0"/>' for i in range(300))
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    own = OwnModel(model)
    model.geom_solref[:, 0] = 0.01
    assert not own.follow()
    model.geom_surfacevel[7] = 1.0
    assert not own.follow()
    for name in ("geom_friction", "geom_size", "geom_pos", "geom_margin", "flg_surfacevel"):
        setattr(model, name, getattr(model, name) + 1)
        assert own.follow(), name
        assert not own.follow()
    model.geom_surfacevel[299] = 2.0
    assert own.follow()
    assert np.array_equal(own.model.geom_surfacevel, model.geom_surfacevel)
    assert np.array_equal(own.model.geom_solref, model.geom_solref)


def test_a_colour_may_change_at_no_cost():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    sim.step(data)
    taken = sim._engine.own.model
    model.geom_rgba[:] = 0.5
    sim.step(data)
    assert sim._engine.own.model is taken
    assert not np.array_equal(taken.geom_rgba, model.geom_rgba)


LOOKING = """
<mujoco>
  <asset><material name="glass" rgba="1 1 1 1"/></asset>
  <worldbody>
    <camera name="eye" pos=".1 0 2"/>
    <body pos="0 0 1"><joint name="x" type="slide" axis="1 0 0"/><geom size=".1"/>
      <site name="beam" pos="0 0 -.2" zaxis="0 0 -1"/></body>
    <geom name="pane" type="box" size="1 1 .01" pos="0 0 .5" material="glass"/>
    <geom type="plane" size="1 1 .1"/>
  </worldbody>
  <actuator><motor joint="x" group="2"/></actuator>
  <sensor>
    <rangefinder site="beam"/><framepos objtype="camera" objname="eye"/>
    <camprojection site="beam" camera="eye"/>
  </sensor>
</mujoco>"""


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("cam_pos", (0, 2), 3.0),
        ("cam_fovy", 0, 20.0),
        ("mat_rgba", (0, 3), 0.0),
        ("geom_matid", 0, -1),
        ("actuator_group", 0, 3),
    ],
)
def test_what_sensors_and_options_look_at_is_followed(name, at, value):
    model, data = load(LOOKING)
    model.geom_rgba[0, 3] = 0.0
    model.opt.disableactuator = 1 << 3
    sim, unedited = stiction.Simulator(model), copy.copy(model)
    sim.step(data)
    getattr(model, name)[at] = value
    told = []
    for each in (sim, stiction.Simulator(model), stiction.Simulator(unedited)):
        held = copy.copy(data)
        held.ctrl[:] = 1.0
        each.step(held)
        told.append(np.append(held.sensordata, held.qvel))
    assert np.array_equal(told[0], told[1])
    assert not np.array_equal(told[0], told[2])


def test_callbacks_are_given_users_own_numbers_as_they_are():
    model, data = load("""
<mujoco><size nuser_actuator="1"/>
  <worldbody><body><joint name="x" type="slide"/><geom size=".1"/></body></worldbody>
  <actuator><general joint="x" gaintype="user" user="1"/></actuator>
</mujoco>""")
    seen = []

    def gain(model, data, actuator):
        seen.append(float(model.actuator_user[actuator, 0]))
        return 0.0

    mujoco.set_mjcb_act_gain(gain)
    try:
        sim = stiction.Simulator(model)
        sim.step(data)
        model.actuator_user[:] = 2.0
        sim.step(data)
    finally:
        mujoco.set_mjcb_act_gain(None)
    assert seen == [1.0, 2.0]


def test_a_height_field_that_was_edited_is_taken_over_by_refresh():
    model, data = load("""
<mujoco>
  <asset><hfield name="ground" nrow="3" ncol="3" size="2 2 1 .1"
    elevation="0 0 0 0 0 0 0 0 0"/></asset>
  <worldbody><geom type="hfield" hfield="ground"/>
    <body pos="0 0 1.2"><freejoint/><geom size=".1"/></body></worldbody>
</mujoco>""")
    sim = stiction.Simulator(model)
    model.hfield_data[:] = 1.0
    sim.refresh()
    sim.step(data, 300)
    assert data.qpos[2] == pytest.approx(1.1, abs=1e-6)


def test_a_bad_change_is_refused_and_the_old_model_kept():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    model.opt.timestep = -1.0
    for _ in range(2):
        with pytest.raises(InvalidInput, match="timestep"):
            sim.step(data)
    model.opt.timestep = 0.002
    sim.step(data)
    assert data.time == 0.002


def test_the_simulator_is_a_step_function():
    model, data = load(BOX)
    sim = stiction.Simulator(model)
    assert sim(model, data) is None
    assert data.time == 0.002
    assert sim.model is model
    with pytest.raises(InvalidInput, match="not the one"):
        sim(copy.copy(model), data)


def test_the_one_liner_steps_as_a_simulator_does():
    model, ours = load(BOX)
    ours.qvel[:] = [1.0, 0.5, 0.0, 0.1, 0.2, 0.3]
    other = copy.copy(ours)
    report = stiction.step(model, ours, 5)
    for _ in range(5):
        stiction.step(model, ours)
    stiction.Simulator(model).step(other, 10)
    assert np.array_equal(ours.qpos, other.qpos)
    assert report.time == pytest.approx(0.01)
