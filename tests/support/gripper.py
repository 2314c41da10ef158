"""A gripper that swings about with a part between its fingers."""

GRIPPER = """
<mujoco>
  <option timestep="0.002" integrator="implicitfast"/>
  <default><geom size=".02" mass=".5" contype="0" conaffinity="0" friction="1"/></default>
  <worldbody>
    <body pos="0 0 .5">
      <joint name="x" type="slide" axis="1 0 0" damping="5"/><geom/>
      <body>
        <joint name="z" type="slide" axis="0 0 1" damping="5"/><geom/>
        <body>
          <joint name="yaw" axis="0 0 1" damping="1"/><geom/>
          <body>
            <joint name="pitch" axis="0 1 0" damping="1"/><geom/>
            <body name="left_finger" pos="0 .04 -.1">
              <joint name="left" type="slide" axis="0 -1 0" damping="2"/>
              <geom type="box" size=".012 .01 .02" mass=".05" contype="1"/>
            </body>
            <body pos="0 -.04 -.1">
              <joint name="right" type="slide" axis="0 1 0" damping="2"/>
              <geom type="box" size=".012 .01 .02" mass=".05" contype="1"/>
            </body>
          </body>
        </body>
      </body>
    </body>
    <body name="part" pos="0 0 .4"><freejoint/>{part}</body>
  </worldbody>
  <equality><joint joint1="left" joint2="right" polycoef="0 1 0 0 0"/></equality>
  <actuator>
    <position joint="x" kp="500" kv="40"/><position joint="z" kp="2000" kv="80"/>
    <position joint="yaw" kp="50" kv="3"/><position joint="pitch" kp="50" kv="3"/>
    <motor joint="left" gear="20"/><motor joint="right" gear="20"/>
  </actuator>
</mujoco>
"""
HALVES = '<geom type="box" size=".02 .02 .015" pos="0 0 {}.015" mass=".1" conaffinity="1"/>'
PARTS = {
    "box": '<geom type="box" size=".02 .02 .03" mass=".1" conaffinity="1"/>',
    "two boxes in one": HALVES.format("") + HALVES.format("-"),
    "cylinder": '<geom type="cylinder" size=".02 .03" mass=".1" conaffinity="1"/>',
    "capsule": '<geom type="capsule" size=".02 .03" mass=".1" conaffinity="1"/>',
    "sphere": '<geom size=".022" mass=".1" condim="4" conaffinity="1"/>',
    "ellipsoid": '<geom type="ellipsoid" size=".02 .02 .03" mass=".1" condim="4" conaffinity="1"/>',
}


def gripper(part: str) -> str:
    """MJCF of the gripper, its fingers in reach of that one of PARTS."""
    return GRIPPER.format(part=PARTS[part])
