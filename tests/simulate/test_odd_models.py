"""Odd but legal models: every kind of actuator and sensor, every flag, frames, replicas, scales."""

import warnings

import mujoco
import numpy as np
import pytest

import stiction

WORLD = """
<mujoco>{head}<worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody>{tail}</mujoco>"""
ARM = """
<site name="pole" pos="0 0 1"/><geom name="post" size=".02" pos="0 0 .1"/>
<body name="arm" pos="0 0 .6"><joint name="hinge" axis="0 1 0" damping=".1"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
  <site name="tip" pos=".3 0 0" size=".05"/>
  <body pos=".3 0 0"><joint name="slide" type="slide" axis="1 0 0" range="-.1 .1"/>
    <geom name="ball" size=".04" mass=".2"/></body>
</body>
<body pos="1 0 .3"><freejoint/><geom type="box" size=".1 .1 .1"/></body>"""
ACTUATORS = {
    "motor": '<motor joint="hinge"/>',
    "position": '<position joint="hinge" kp="50" kv="2"/>',
    "clamped": '<position joint="hinge" kp="1000" kv="50" forcerange="-1 1"/>',
    "velocity": '<velocity joint="hinge" kv="3"/>',
    "intvelocity": '<intvelocity joint="hinge" kp="50" actrange="-1 1"/>',
    "damper": '<damper joint="hinge" kv="3" ctrlrange="0 1"/>',
    "muscle": '<muscle joint="hinge" lengthrange=".1 1"/>',
    "cylinder": '<cylinder joint="slide" timeconst=".1" diameter=".05"/>',
    "adhesion": '<adhesion body="arm" ctrlrange="0 1" gain="5"/>',
    "integrator": '<general joint="hinge" dyntype="integrator" biastype="affine" biasprm="0 -5"/>',
    "filter": '<general joint="hinge" dyntype="filter" dynprm=".05"/>',
    "filterexact": '<general joint="hinge" dyntype="filterexact" dynprm=".05"/>',
    "early": '<general joint="hinge" dyntype="integrator" actearly="true"/>',
    "site": '<motor site="tip" gear="1 0 0 0 1 0"/>',
    "in parent": '<motor jointinparent="hinge"/>',
    "slider crank": '<motor cranksite="tip" slidersite="pole" cranklength=".5"/>',
}
SENSORS = """
touch site="tip"|accelerometer site="tip"|velocimeter site="tip"|gyro site="tip"|force site="tip"|
torque site="tip"|magnetometer site="tip"|rangefinder site="tip"|jointpos joint="hinge"|
jointvel joint="hinge"|jointlimitpos joint="slide"|jointlimitvel joint="slide"|
jointlimitfrc joint="slide"|jointactuatorfrc joint="hinge"|framepos objtype="site" objname="tip"|
framequat objtype="site" objname="tip"|framelinvel objtype="site" objname="tip"|
frameangvel objtype="site" objname="tip"|framelinacc objtype="site" objname="tip"|
frameangacc objtype="site" objname="tip"|subtreecom body="arm"|subtreelinvel body="arm"|
subtreeangmom body="arm"|distance geom1="ball" geom2="post" cutoff="1"|
normal geom1="ball" geom2="post" cutoff="1"|fromto geom1="ball" geom2="post" cutoff="1"|clock|
e_potential|e_kinetic|contact geom1="ball" num="2" data="found force dist"|
insidesite site="tip" objtype="body" objname="arm"|user dim="2"
""".replace("\n", "").split("|")
FLAGS = (
    "constraint",
    "equality",
    "frictionloss",
    "limit",
    "contact",
    "spring",
    "damper",
    "gravity",
    "clampctrl",
    "warmstart",
    "filterparent",
    "actuation",
    "refsafe",
    "sensor",
    "midphase",
    "eulerdamp",
    "autoreset",
    "nativeccd",
    "island",
)
OPTIONS = {
    "no gravity": '<option gravity="0 0 0"/>',
    "sideways": '<option gravity="9 0 -1"/>',
    "short steps": '<option timestep="1e-5"/>',
    "long steps": '<option timestep=".05"/>',
    "RK4": '<option integrator="RK4"/>',
    "implicit": '<option integrator="implicit"/>',
    "dense": '<option jacobian="dense" solver="PGS"/>',
    "pyramidal": '<option cone="pyramidal" impratio="10" noslip_iterations="5"/>',
    "overridden": '<option o_margin=".01"><flag override="enable"/></option>',
    "all enabled": '<option><flag multiccd="enable" energy="enable" fwdinv="enable"/></option>',
    "in a fluid": '<option density="1.2" viscosity="1e-5" wind="1 0 0"/>',
    "user data": '<size nuserdata="5"/>',
}
BOX, BALL = 'type="box" size="{0} {0} {0}"', 'size="{0}"'
PAIR = "".join(
    f'<body pos="{x}" ><freejoint/><geom {shape} density="1000"/></body>'
    for x, shape in (("0 0 {1}", BOX), ("{2} 0 {3}", BALL))
)
BODIES = {
    "nothing": "",
    "nothing that moves": '<body><geom size=".1"/></body>',
    "nested replicas": """
<replicate count="3" offset=".3 0 0"><replicate count="2" offset="0 .3 0">
  <body pos="0 0 .2"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
</replicate></replicate>""",
    "nested frames": """
<frame pos="0 0 1" euler="0 30 0"><frame euler="10 0 0">
  <body><freejoint/><geom size=".1"/></body></frame></frame>""",
    "a ball joint with a limit": """
<body pos="0 0 1"><joint type="ball" range="0 30" frictionloss=".1"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body>""",
    "three joints of one body": """
<body pos="0 0 1"><joint axis="1 0 0"/><joint axis="0 1 0"/><joint type="slide"/>
  <geom size=".1"/></body>""",
    "light": '<body pos="0 0 .2"><freejoint/><geom size=".1" mass="1e-12"/></body>',
    "heavy": '<body pos="0 0 .2"><freejoint/><geom size=".1" mass="1e15"/></body>',
    "compensated": '<body pos="0 0 1" gravcomp="1"><freejoint/><geom size=".1"/></body>',
    "kilometres": PAIR.format(1e3, 2e3, 5e2, 5e3),
    "millimetres": PAIR.format(1e-3, 2e-3, 5e-4, 5e-3),
}
MODELS = {
    **{f"actuator: {k}": ("", ARM, f"<actuator>{v}</actuator>") for k, v in ACTUATORS.items()},
    **{f"sensor: {v.split()[0]}": ("", ARM, f"<sensor><{v}/></sensor>") for v in SENSORS},
    **{f"flag: {k}": (f'<option><flag {k}="disable"/></option>', ARM, "") for k in FLAGS},
    **{f"option: {k}": (v, ARM, "") for k, v in OPTIONS.items()},
    **{f"bodies: {k}": ("", v, "") for k, v in BODIES.items()},
}
WAYS = {
    "soft": {},
    "rigid": {"equality": "rigid"},
    "events": {"stepper": stiction.EventDriven()},
}
REFUSED = {"actuator: adhesion": "adhesion", "flag: filterparent": "jammed"}
"""By events: contacts that pull, and links that overlap where their joint is."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_an_odd_model_is_stepped_or_refused_by_name(name, way):
    head, bodies, tail = MODELS[name]
    model = mujoco.MjModel.from_xml_string(WORLD.format(head=head, bodies=bodies, tail=tail))
    data = mujoco.MjData(model)
    data.ctrl[:] = 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stiction.OverlapWarning)
        if way == "events" and name in REFUSED:
            with pytest.raises(stiction.StictionError, match=REFUSED[name]):
                stiction.Simulator(model, **WAYS[way]).step(data)
            return
        sim = stiction.Simulator(model, **WAYS[way])
        for _ in range(30):
            assert sim.step(data).certificate.passed
    assert data.time == pytest.approx(30 * model.opt.timestep)
    for values in (data.qpos, data.qvel, data.act, data.sensordata, data.qacc):
        assert np.isfinite(values).all()
