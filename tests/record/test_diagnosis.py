import mujoco
import numpy as np
import pytest
from blocks import block_model, loader

from stiction import scenes
from stiction.record import diagnose
from stiction.record.diagnosis import Pair
from stiction.record.diagnosis.findings import creeping_pairs, of_pair


def found(model, seconds=0.1):
    return {finding.kind: finding for finding in diagnose(loader(model), seconds).findings}


def test_diagnosis_tells_a_frictionless_contact():
    model, _ = block_model(floor="condim='1'", geom="condim='1'", gravity=(1.0, 0.0, -9.81))
    assert "condim is 1" in found(model)["condim 1"].text


def test_diagnosis_tells_friction_that_is_too_small_and_how_much_would_do():
    friction = "friction='.1'"
    model, _ = block_model(floor=friction, geom=friction, gravity=(3.0, 0.0, -9.81))
    finding = found(model)["too little friction"]
    assert "mu 0.31" in finding.text
    assert "3.1 times" in finding.advice


def test_diagnosis_tells_a_block_that_holds_and_one_that_is_near_the_edge():
    friction = "friction='.32'"
    model, _ = block_model(floor=friction, geom=friction, gravity=(3.0, 0.0, -9.81))
    kinds = found(model)
    assert "96 %" in kinds["near the cone"].text
    assert "holds" in kinds
    assert "too little friction" not in kinds


@pytest.mark.parametrize(("condim", "free"), [(3, True), (4, True), (6, False)])
def test_diagnosis_tells_a_ball_that_nothing_keeps_from_rolling(condim, free):
    rough = f"condim='{condim}' friction='1 .05 .05'"
    model, _ = block_model("sphere", floor=rough, geom=rough, gravity=(1.0, 0.0, -9.81))
    kinds = found(model)
    assert ("free to turn" in kinds) == free
    if free:
        assert kinds["free to turn"].cause
        assert "carried at one point" in kinds["free to turn"].text


def test_diagnosis_tells_what_is_ignored():
    soft = "solref='.004 1' margin='.001'"
    model, _ = block_model(floor=soft)
    model.opt.noslip_iterations = 10
    findings = diagnose(loader(model), 0.05).findings
    said = " ".join(finding.text for finding in findings if finding.kind == "ignored")
    for word in ('solref "0.004 1"', "margin 0.001", "noslip_iterations 10"):
        assert word in said


def test_diagnosis_tells_that_nothing_touches():
    model, _ = block_model(height=0.5)
    assert "no contact" in found(model, 0.02)


def test_diagnosis_tells_that_only_mujoco_lets_it_creep():
    kinds = {f.kind: f for f in diagnose(lambda: scenes.load("pinch"), 0.4).findings}
    assert "regularized" in kinds["soft friction"].text
    assert "holds" in kinds


def test_a_stack_that_sinks_under_mujoco_is_not_said_to_creep():
    blocks = "".join(
        f"<body name='b{k}' pos='0 0 {0.05 + 0.1 * k}'><freejoint/>"
        "<geom type='box' size='.05 .05 .05' mass='50' solref='.4 1'/></body>"
        for k in range(3)
    )
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody><geom type='plane' size='1 1 .1'/>{blocks}</worldbody></mujoco>"
    )
    kinds = found(model, 0.3)
    assert "soft friction" not in kinds
    assert "not friction" in kinds["sinking"].text


def test_diagnosis_tells_bodies_that_start_inside_each_other():
    model, _ = block_model(height=0.015)
    kinds = found(model)
    assert "35 mm inside" in kinds["overlap at the start"].text
    assert "sinking" not in kinds
    assert "no friction" not in kinds  # which they have, once they are apart


def test_many_bodies_that_start_inside_each_other_are_one_finding():
    balls = "".join(
        f"<body name='b{k}' pos='{0.05 * k} 0 .1'><freejoint/><geom size='.1'/></body>"
        for k in range(7)
    )
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{balls}</worldbody></mujoco>")
    diagnosis = diagnose(lambda: (model, mujoco.MjData(model), None), 0.01)
    overlaps = [f for f in diagnosis.findings if f.kind == "overlap at the start"]
    assert len(overlaps) == 1
    assert "0.15 m inside" in overlaps[0].text
    assert "11 other pairs of bodies" in overlaps[0].text


def test_diagnosis_tells_bodies_that_pass_through_each_other():
    model, _ = block_model(geom="contype='2' conaffinity='2'", height=0.06)
    text = found(model, 0.2)["passes through"].text
    assert "without a contact" in text
    assert "contype 2" in text
    for excluded in (False, True):
        model, text = block_model(height=0.06)
        spec = mujoco.MjSpec.from_string(text)
        if excluded:
            spec.add_exclude(bodyname1="block", bodyname2="world")
        kinds = found(spec.compile(), 0.2)
        assert ("passes through" in kinds) == excluded


FINGERS = """
<mujoco>
  <option timestep="0.002" gravity="0 0 0"/>
  <default><geom friction="{friction}"/></default>
  <worldbody>
    <body name="left" pos="-.06 0 0">
      <joint name="l" type="slide" axis="1 0 0"/>
      <geom type="sphere" size=".01" mass="{finger}"/>
    </body>
    <body name="right" pos=".06 0 0">
      <joint name="r" type="slide" axis="-1 0 0"/>
      <geom type="sphere" size=".01" mass="{finger}"/>
    </body>
    <body name="part">
      <freejoint/>
      <geom type="box" size=".05 .05 .05" mass="1"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="grip" joint="l" forcerange="-5 5"/>
    <motor name="hold" joint="r" forcerange="-90 90"/>
  </actuator>
</mujoco>"""


def gripped(finger=0.3, friction=1.0, pull=1.0):
    """A part between two ball tips that push with 5 N, pulled sideways [N]."""
    model = mujoco.MjModel.from_xml_string(FINGERS.format(finger=finger, friction=friction))

    def load():
        data = mujoco.MjData(model)
        data.ctrl[:] = 50.0, 5.0
        data.xfrc_applied[model.body("part").id, 2] = pull
        mujoco.mj_forward(model, data)
        return model, data, None

    return {finding.kind: finding for finding in diagnose(load, 0.2).findings}


def test_diagnosis_tells_a_part_that_turns_about_its_two_fingertips():
    assert "carried at 2 points" in gripped()["free to turn"].text


def test_an_actuator_at_its_limit_is_a_cause_where_what_it_grips_slides():
    slides, holds = gripped(friction=0.05), gripped()
    assert slides["actuator at its limit"].where == "grip"
    assert slides["actuator at its limit"].cause
    assert "100 % of the time" in slides["actuator at its limit"].text
    assert not holds["actuator at its limit"].cause


def test_an_actuator_that_grips_nothing_that_slides_is_no_cause():
    model, text = block_model(gravity=(9.0, 0.0, -9.81))
    spec = mujoco.MjSpec.from_string(text)
    spec.option.gravity[:] = (9.0, 0.0, -9.81)
    for geom in spec.geoms:
        geom.friction[0] = 0.1
    arm = spec.worldbody.add_body(name="arm", pos=[3.0, 0.0, 1.0])
    arm.add_joint(name="turn", axis=[0.0, 1.0, 0.0])
    arm.add_geom(size=[0.1, 0.1, 0.1])
    motor = spec.add_actuator(name="motor", target="turn", forcerange=[-1.0, 1.0])
    motor.trntype, motor.forcelimited = mujoco.mjtTrn.mjTRN_JOINT, 1
    model = spec.compile()

    def load():
        data = mujoco.MjData(model)
        data.ctrl[:] = 5.0
        mujoco.mj_forward(model, data)
        return model, data, None

    kinds = {finding.kind: finding for finding in diagnose(load, 0.1).findings}
    assert kinds["too little friction"].cause
    assert not kinds["actuator at its limit"].cause


def test_a_light_finger_is_named_where_friction_yields():
    light, heavy = gripped(finger=0.01), gripped(finger=1.0)
    assert "left" in light["light body"].where or "right" in light["light body"].where
    assert "soft friction" in light
    assert "light body" not in heavy


def pair(friction_force, slip):
    """Ten samples of a pair with mu 0.5 under 10 N."""
    return Pair(
        ("part", "pad"), 3, 0.5, samples=10, normal=[10.0] * 10, tangential=[friction_force] * 10,
        drift=[np.array([slip, 0.0, 0.0])] * 10,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("friction_force", "slip", "creeps"),
    [(1.0, 1e-4, True), (5.0, 1e-1, False), (0.0, 1e-4, False), (1.0, 1e-7, False)],
)
def test_creep_is_steady_slip_of_a_contact_that_is_loaded_and_inside_its_cone(
    friction_force, slip, creeps
):
    held, soft = pair(max(friction_force, 1.0), 0.0), pair(friction_force, slip)
    assert bool(creeping_pairs({held.key: held}, {soft.key: soft})) == creeps


def test_what_slides_for_a_while_and_holds_otherwise_does_not_lack_friction():
    knocked = pair(1.0, 0.0)
    knocked.sliding, knocked.slip = 2, [0.1] * 10
    (finding,) = of_pair(knocked)
    assert finding.kind == "moving"
    assert "20 % of its friction" in finding.text
    jammed = pair(5.0, 0.0)
    jammed.sliding, jammed.slip, jammed.needed = 10, [0.1] * 10, 3e4
    (finding,) = of_pair(jammed)
    assert "3e+04" not in finding.text
    assert "No friction of use" in finding.text
