"""A quadruped of 12 joints that trots over a terrain map (Drumwright VII-B, Fig. 2).

The robot is of the usual kind, 14 kg, legs of two 0.2 m links that end in spheres. `legs` holds
their kinematics, `trot` the controller.
"""

import numpy as np
from numpy.typing import NDArray

from stiction.errors import InvalidInput
from stiction.scenes.legs import FOOT, HIP_X, HIP_Y, LEGS, LINK, OFFSET, STANCE, joints_for
from stiction.scenes.mjcf import NO_SELF_CONTACT, document, lines, numbers
from stiction.scenes.scene import Scene, from_keyframe
from stiction.scenes.trot import Trot

Array = NDArray[np.float64]

_CELL = 0.05  # m between points of the terrain map
_REACH, _WIDTH = 3.0, 1.5  # m, half its length and width
_AHEAD = 2.0  # m from the start to its middle


def terrain(roughness: float) -> Array:
    """Heights [m] over the map, rows along y and columns along x, from -roughness to +roughness.

    Smooth hills half a metre across, and level ground at the start.
    """
    x = _AHEAD + np.arange(-_REACH, _REACH + _CELL / 2, _CELL)
    y = np.arange(-_WIDTH, _WIDTH + _CELL / 2, _CELL)[:, None]
    hills = np.sin(5.1 * x + 0.8) * np.cos(4.3 * y) + 0.6 * np.sin(3.1 * x - 3.7 * y)
    hills *= np.clip((np.hypot(x, y) - 0.5) / 0.5, 0.0, 1.0)
    # The extremes become exactly -1 and 1. MuJoCo stores heights between them in single
    # precision, from 0 to 1: the level ground is then exactly 0.5.
    return roughness * np.where(hills > 0, hills / hills.max(), hills / -hills.min())


def quadruped_xml(*, roughness: float = 0.03, friction: float = 0.8) -> str:
    """The robot standing on hills of `roughness` [m] up and down; 0 is a plane."""
    if roughness < 0:
        raise InvalidInput("roughness", f"is {roughness}, must not be negative")
    names = list(LEGS)
    world = lines([_ground(roughness), _trunk(names)])
    motors = lines(
        f'    <motor name="{leg}_{joint}" joint="{leg}_{joint}" ctrlrange="-40 40"/>'
        for leg in names
        for joint in ("abduction", "hip", "knee")
    )
    angles = [
        joints_for(np.array([0.0, side * OFFSET, -STANCE]), side) for _, side in LEGS.values()
    ]
    pose = numbers(0, 0, STANCE + FOOT, 1, 0, 0, 0, *np.ravel(angles))
    below = f"""\
{_map(roughness)}  <actuator>
{motors}
  </actuator>
  <keyframe><key name="start" qpos="{pose}"/></keyframe>"""
    return document(
        "quadruped",
        world,
        friction=friction,
        below=below,
        center=(1.1, 0, 0.1),
        extent=1.9,
        azimuth=100,
    )


def _ground(roughness: float) -> str:
    if roughness == 0:
        return '    <geom name="ground" type="plane" size="10 10 0.1" material="floor"/>'
    return f"""\
    <geom name="ground" type="hfield" hfield="terrain" pos="{_AHEAD} 0 {numbers(-roughness)}"
          material="stone"/>"""


def _map(roughness: float) -> str:
    if roughness == 0:
        return ""
    heights = terrain(roughness)
    text = " ".join(f"{height:.9g}" for height in heights.ravel() / roughness)
    rows, columns = heights.shape
    return f"""\
  <asset>
    <hfield name="terrain" nrow="{rows}" ncol="{columns}" elevation="{text}"
            size="{_REACH} {_WIDTH} {numbers(2 * roughness)} 0.1"/>
  </asset>
"""


def _trunk(names: list[str]) -> str:
    return f"""\
    <body name="trunk" pos="0 0 {2 * LINK + FOOT}">
      <freejoint/>
      <geom type="box" size="0.22 0.06 0.05" mass="8"
            {NO_SELF_CONTACT} material="part"/>
      <geom type="box" size="0.03 0.04 0.03" pos="0.25 0 0.03" mass="0.4"
            {NO_SELF_CONTACT} material="next"/>
{lines(_leg(name) for name in names)}
    </body>"""


def _leg(name: str) -> str:
    end, side = LEGS[name]
    rotor = 'armature="0.008" damping="0.1"'
    return f"""\
      <body name="{name}_hip" pos="{end * HIP_X} {side * HIP_Y} 0">
        <joint name="{name}_abduction" axis="1 0 0" range="-0.9 0.9" {rotor}/>
        <geom type="capsule" fromto="0 0 0 0 {side * OFFSET} 0" size="0.03" mass="0.5"
              {NO_SELF_CONTACT} material="other"/>
        <body name="{name}_thigh" pos="0 {side * OFFSET} 0">
          <joint name="{name}_hip" axis="0 1 0" range="-1.5 3" {rotor}/>
          <geom type="capsule" fromto="0 0 0 0 0 {-LINK}" size="0.02" mass="0.7"
                {NO_SELF_CONTACT} material="next"/>
          <body name="{name}_shank" pos="0 0 {-LINK}">
            <joint name="{name}_knee" axis="0 1 0" range="-2.7 -0.1" {rotor}/>
            <geom type="capsule" fromto="0 0 0 0 0 {-LINK}" size="0.012" mass="0.15"
                  {NO_SELF_CONTACT} material="fixed"/>
            <geom name="{name}_foot" type="sphere" pos="0 0 {-LINK}" size="{FOOT}" mass="0.05"
                  {NO_SELF_CONTACT} material="driver"/>
          </body>
        </body>
      </body>"""


SCENES = (
    Scene(
        name="quadruped",
        summary="a quadruped that trots over hilly ground",
        xml=quadruped_xml,
        control=Trot,
        start=from_keyframe,
        watch=("trunk",),
        seconds=10.0,
    ),
)
