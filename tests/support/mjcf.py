"""MJCF that several tests start from."""

import mujoco
import numpy as np

BOX = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 1"/>
    <body name="box" pos="0 0 .1"><freejoint name="free"/>
      <geom name="cube" type="box" size=".1 .1 .1" mass="2"/></body>
  </worldbody>
</mujoco>"""


def load(xml):
    """The model of an MJCF text, and its data."""
    model = mujoco.MjModel.from_xml_string(xml)
    return model, mujoco.MjData(model)


CHAIN = """
    <body name="upper" pos="0 0 2">
      <joint name="shoulder" type="ball" {joint}/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
      <body name="lower" pos=".3 0 0">
        <joint name="elbow" axis="0 1 0" {joint}/>
        <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".02" mass=".5"/>
        <body name="tip" pos=".3 .1 0">
          <joint name="reach" type="slide" axis="0 .6 .8" {joint} stiffness="30"/>
          <geom type="sphere" size=".05" mass=".2"/><site name="site"/>
        </body>
      </body>
    </body>"""

SMOOTH = {
    "pendulum": (CHAIN.format(joint=""), ""),
    "damped": (CHAIN.format(joint='damping=".3" armature=".01"'), ""),
    "servo": (
        CHAIN.format(joint='damping=".1"'),
        '<actuator><position joint="elbow" kp="50" kv="4"/><velocity joint="reach" kv="7"/>'
        '<position joint="elbow" kp="20" dampratio="1"/></actuator>',
    ),
    "activation": (
        CHAIN.format(joint='damping=".1"'),
        '<actuator><general joint="elbow" dyntype="filter" dynprm=".05" gainprm="3"/>'
        '<general joint="reach" dyntype="filterexact" dynprm=".02" gainprm="3"/>'
        '<general joint="elbow" dyntype="integrator" actlimited="true" actrange="-.1 .1"'
        ' gainprm="3"/>'
        '<general joint="elbow" dyntype="filter" dynprm=".1" actearly="true" gainprm="2"'
        ' biastype="affine" biasprm="0 -1 -1"/></actuator>',
    ),
    "muscle": (
        CHAIN.format(joint='damping=".1"'),
        '<tendon><fixed name="cord"><joint joint="elbow" coef=".05"/></fixed></tendon>'
        '<actuator><muscle tendon="cord" lengthrange="-.1 .1" force="40"/></actuator>',
    ),
    "tendon": (
        CHAIN.format(joint=""),
        '<tendon><fixed stiffness="20" damping="3"><joint joint="elbow" coef="1"/>'
        '<joint joint="reach" coef="-.4"/></fixed></tendon>',
    ),
    "fluid": (CHAIN.format(joint="") + "<!-- -->", ""),
    "tumbling in a fluid": (
        '<body pos="0 0 2"><freejoint/><geom type="box" size=".1 .2 .3" mass="9"/></body>', ""
    ),
    "falling through a fluid": (
        '<body pos="0 0 2" euler="10 20 30"><freejoint/>'
        '<geom type="ellipsoid" size=".1 .2 .05" mass="9" fluidshape="ellipsoid"/></body>', ""
    ),
    "weightless": (CHAIN.format(joint="").replace('<body name="', '<body gravcomp="1" name="'), ""),
    "plastic": (CHAIN.format(joint='springyield="0.05"').replace(
        'name="elbow"', 'name="elbow" stiffness="30"'), ""),
    "tumbling": (
        '<body pos="0 0 2"><freejoint/><geom type="box" size=".1 .2 .3" mass="1"/></body>', ""
    ),
    "two trees": (
        CHAIN.format(joint='damping=".2"')
        + '<body pos="3 0 2"><freejoint/><geom type="sphere" size=".2"/></body>',
        "",
    ),
}  # fmt: skip


def smooth(name):
    """A model without contact, moving, under the integrator that the simulator stands for."""
    bodies, rest = SMOOTH[name]
    medium = 'density="900" viscosity=".5"' if name.endswith("fluid") else ""
    model, data = load(
        f'<mujoco><option integrator="implicitfast" {medium}><flag energy="enable"/></option>'
        f"<worldbody>{bodies}</worldbody>{rest}</mujoco>"
    )
    data.qvel[:] = np.linspace(-1.5, 2.0, model.nv)
    return model, data


def jumble():
    """Bodies that land on each other and slide, and a motor."""
    bodies = "".join(
        f'<body pos="{0.15 * k} {0.05 * (k % 3)} {0.13 + 0.21 * k}" euler="{9 * k} {40 * k} 0">'
        f'<freejoint/><geom type="{"box" if k % 2 else "capsule"}" size=".1 .08 .06"/></body>'
        for k in range(6)
    )
    model, data = load(f"""
<mujoco>
  <size memory="20M"/>
  <worldbody>
    <geom type="plane" size="9 9 1"/>{bodies}
    <body pos="-.5 0 .3"><joint name="arm" axis="0 1 0" frictionloss=".1" range="-90 90"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/></body>
  </worldbody>
  <actuator><motor joint="arm"/></actuator>
</mujoco>""")
    data.ctrl[0] = -1.0
    data.qvel[:3] = [-1.0, 0.3, 0.0]
    return model, data
