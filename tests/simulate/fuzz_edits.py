"""Random edits of a model's arrays, each taken by a simulator or refused by name: three of four in
time steps, one by events.

    python tests/simulate/fuzz_edits.py SEED COUNT

A process of its own: an edit that is not noticed may end it. Prints how many were refused and how
many taken.
"""

import sys
import warnings

import mujoco
import numpy as np

import stiction

EVERY_KIND = """
<mujoco>
  <asset>
    <texture name="t" type="2d" builtin="checker" rgb1="1 1 1" rgb2="0 0 0" width="8" height="8"/>
    <material name="m" texture="t"/>
    <mesh name="rock" vertex="0 0 0  .1 0 0  0 .1 0  0 0 .1  .1 .1 .1"/>
    <hfield name="h" nrow="4" ncol="5" size="1 1 .1 .1"
      elevation="0 0 0 0 0 .1 .2 .1 .2 0 0 .1 0 .1 0 0 0 0 0 0"/>
  </asset>
  <worldbody>
    <light pos="0 0 3"/><camera pos="0 -1 1"/>
    <geom name="floor" type="plane" size="5 5 1" material="m"/>
    <geom type="hfield" hfield="h" pos="3 0 0"/>
    <site name="anchor" pos="0 0 1"/>
    <body name="mocap" mocap="true" pos="-1 0 1">
      <geom size=".02" contype="0" conaffinity="0"/></body>
    <body name="arm" pos="0 0 .5">
      <joint type="ball"/>
      <geom name="upper" type="cylinder" fromto="0 0 0 .3 0 0" size=".03"/>
      <site name="side" pos=".1 0 .05"/>
      <body name="fore" pos=".3 0 0">
        <joint name="elbow" axis="0 1 0" range="-2 2" limited="true" damping=".1"/>
        <geom type="box" size=".1 .02 .02" pos=".1 0 0"/>
        <body name="tip" pos=".2 0 0">
          <joint name="reach" type="slide" axis="1 0 0" range="-.1 .1" limited="true"
            frictionloss=".1"/>
          <geom type="cylinder" size=".02 .03"/><site name="tip"/>
        </body>
      </body>
    </body>
    <body pos="0 1 .2"><freejoint/>
      <geom name="ball" type="ellipsoid" size=".1 .08 .06" condim="6"/></body>
    <body name="rock" pos="1 1 .3"><freejoint/><geom type="mesh" mesh="rock" condim="4"/>
      <geom size=".03" pos=".1 0 0"/></body>
    <body pos="3 0 .5"><freejoint/><geom type="mesh" mesh="rock"/></body>
    <body name="box" pos="1 1.1 .7"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  </worldbody>
  <contact><pair geom1="ball" geom2="floor"/><exclude body1="arm" body2="fore"/></contact>
  <equality>
    <connect body1="tip" body2="mocap" anchor="0 0 0" active="false"/>
    <weld body1="rock" body2="box" active="false"/>
    <joint joint1="elbow" joint2="reach" active="false"/>
  </equality>
  <tendon>
    <spatial name="rope" range="0 1" limited="true">
      <site site="anchor"/><geom geom="upper" sidesite="side"/><site site="tip"/></spatial>
    <fixed name="sum"><joint joint="elbow" coef="1"/><joint joint="reach" coef="2"/></fixed>
  </tendon>
  <actuator>
    <motor joint="elbow"/><position joint="reach" kp="10"/>
    <general tendon="sum" dyntype="filter" dynprm=".1" gainprm="1"/>
    <motor site="tip" gear="0 0 1 0 0 0"/>
  </actuator>
  <sensor>
    <jointpos joint="elbow"/><touch site="tip"/><accelerometer site="tip"/>
    <framepos objtype="body" objname="rock" reftype="body" refname="box"/>
    <tendonpos tendon="rope"/><rangefinder site="tip"/><clock/>
  </sensor>
  <custom><numeric name="n" data="1 2 3"/><text name="x" data="hello"/>
    <tuple name="tu"><element objtype="body" objname="arm"/></tuple></custom>
  <keyframe><key/></keyframe>
</mujoco>"""

WHOLE = (-5, -2, -1, 0, 1, 2, 3, 5, 8, 20, 100, 1000, 2**20, 2**31 - 1, -(2**31))
REAL = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-300, 1e30, -1e30)
TEXT = ("names", "names_map", "paths", "tex_data", "text_data")


def draw(rng, old, dtype):
    """Another value for an entry."""
    if dtype.kind == "f":
        return rng.choice(REAL)
    if dtype.kind == "b":
        return not old
    value = int(rng.choice([*WHOLE, int(old) + 1, int(old) - 1]))
    limits = np.iinfo(dtype)
    return min(max(value, limits.min), limits.max)


def main(seed, count):
    warnings.simplefilter("ignore")
    mujoco.set_mju_user_warning(lambda text: None)
    rng = np.random.default_rng(seed)
    model = mujoco.MjModel.from_xml_string(EVERY_KIND)
    fields = {
        name: values
        for name in dir(model)
        if name not in TEXT and isinstance(values := getattr(model, name), np.ndarray)
        if values.size and values.dtype.kind in "fiub" and values.flags.writeable
    }
    whole = [name for name, values in fields.items() if values.dtype.kind != "f"]
    real = [name for name, values in fields.items() if values.dtype.kind == "f"]
    kept, refused = stiction.Simulator(model), 0
    for k in range(count):
        name = str(rng.choice(whole if k % 4 else real))
        values = fields[name]
        at = int(rng.integers(values.size))
        old = values.flat[at].copy()
        values.flat[at] = draw(rng, old, values.dtype)
        print(k, name, at, old, values.flat[at], file=sys.stderr, flush=True)
        try:
            if k % 2:
                kept.refresh()
            stepper = stiction.TimeStepping() if k % 4 else stiction.EventDriven()
            simulator = kept if k % 2 else stiction.Simulator(model, stepper=stepper)
            data = mujoco.MjData(model)
            data.ctrl[:] = rng.normal(size=model.nu)
            simulator.step(data, 5 if k % 4 else 2)
        except stiction.StictionError:
            refused += 1
        finally:
            values.flat[at] = old
        kept.refresh()
    print(refused, count - refused)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
