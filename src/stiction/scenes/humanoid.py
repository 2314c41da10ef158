"""A small humanoid of 20 joints that follows prescribed joint motions (Yamane V-A, V-B).

Six joints per leg, four per arm, 0.5 m tall and 6.5 kg, after the robot of the paper. A sole
is two boxes, heel and toe, which gives 16 points on the floor where the paper reports 15.4.
The joints are servos of high gain: the balance is in the motion, not in the control.

- `humanoid` squats, once a second.
- `tap-dance` shifts its weight to one leg, taps the floor with the toes of the other, and
  changes sides.
"""

from collections.abc import Callable
from math import atan2, cos, hypot, pi, sin

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.scenes.legs import two_links
from stiction.scenes.mjcf import FLOOR, NO_SELF_CONTACT, document, lines, numbers
from stiction.scenes.scene import Controller, Scene, from_keyframe

Array = NDArray[np.float64]
Motion = Callable[[float], Array]
"""Joint angles (20,) [rad] at a time [s]."""

LEG = ("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle_pitch", "ankle_roll")
ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow")
SIDES = {"left": 1, "right": -1}
JOINTS = tuple(f"{side}_{joint}" for group in (LEG, ARM) for side in SIDES for joint in group)
"""In the order of the model: left leg, right leg, left arm, right arm."""

LINK, HIP, ANKLE = 0.13, 0.05, 0.04
"""Thigh and shank; from the middle to a hip; from sole to ankle [m]."""
TALL = 0.245
"""From ankle to hip when standing, knees a little bent [m]."""

SQUAT_DEPTH, SQUAT_PERIOD = 0.07, 1.0
"""How far down [m], how often [s]."""
DANCE_PERIOD = 5.0
"""Both sides once [s]."""

_BODY = f'material="next" {NO_SELF_CONTACT}'
_TOE, _HEEL, _BREADTH = 0.085, 0.05, 0.036  # m, of a sole from below the ankle; half its width
_GAIN, _DAMPING = 400.0, 4.0  # N m/rad, N m s/rad
_SHIFT = 0.046  # m that the pelvis moves sideways, over the standing foot
_TAPS = 4
_TOE_DOWN = 0.3  # rad, of a tapping foot
_CLEAR, _PRESS = 0.02, 0.001  # m, of its toes above the floor between taps, and below at a tap


def humanoid_xml(*, friction: float = 0.7, timestep: float = 0.001) -> str:
    """The robot standing on a level floor, at the beginning of both motions."""
    servos = lines(
        f'    <position name="{joint}" joint="{joint}" kp="{_GAIN}" kv="{_DAMPING}"/>'
        for joint in JOINTS
    )
    start = squat(0.0)
    world = f"""\
    {FLOOR}
    <body name="pelvis" pos="0 0 {2 * LINK + ANKLE}">
      <freejoint/>
      <geom type="box" size="0.03 0.06 0.025" pos="0 0 0.02" mass="0.8" {_BODY}/>
      <geom type="box" size="0.04 0.06 0.06" pos="0 0 0.11" mass="2" material="part"
            {NO_SELF_CONTACT}/>
      <geom type="sphere" size="0.04" pos="0.01 0 0.22" mass="0.4" {_BODY}/>
{lines(limb(side) for limb in (_leg, _arm) for side in SIDES)}
    </body>"""
    below = f"""\
  <actuator>
{servos}
  </actuator>
  <keyframe>
    <key name="start" qpos="{numbers(0, 0, TALL + ANKLE, 1, 0, 0, 0, *start)}"
         ctrl="{numbers(*start)}"/>
  </keyframe>"""
    return document(
        "humanoid",
        world,
        friction=friction,
        timestep=timestep,
        below=below,
        center=(0, 0, 0.25),
        extent=0.55,
        azimuth=150,
    )


def _leg(side: str) -> str:
    def hinge(joint: str, axis: str) -> str:
        return f'<joint name="{side}_{joint}" axis="{axis}" armature="0.005"/>'

    def pad(back: float, front: float) -> str:
        middle, half = (front + back) / 2, (front - back) / 2
        return f"""\
            <geom type="box" size="{numbers(half, _BREADTH, 0.01)}" mass="0.12"
                  pos="{numbers(middle, 0, 0.01 - ANKLE)}" material="driver" {NO_SELF_CONTACT}/>"""

    return f"""\
      <body name="{side}_thigh" pos="0 {SIDES[side] * HIP} 0">
        {hinge("hip_yaw", "0 0 1")}
        {hinge("hip_roll", "1 0 0")}
        {hinge("hip_pitch", "0 1 0")}
        <geom type="capsule" fromto="0 0 0 0 0 {-LINK}" size="0.022" mass="0.5" {_BODY}/>
        <body name="{side}_shank" pos="0 0 {-LINK}">
          {hinge("knee", "0 1 0")}
          <geom type="capsule" fromto="0 0 0 0 0 {-LINK}" size="0.018" mass="0.4" {_BODY}/>
          <body name="{side}_foot" pos="0 0 {-LINK}">
            {hinge("ankle_pitch", "0 1 0")}
            {hinge("ankle_roll", "1 0 0")}
{pad(-_HEEL, -0.005)}
{pad(0.02, _TOE)}
            <geom type="box" size="0.05 0.02 0.008" pos="0.01 0 -0.012" mass="0.06"
                  material="next" {NO_SELF_CONTACT}/>
          </body>
        </body>
      </body>"""


def _arm(side: str) -> str:
    def hinge(joint: str, axis: str) -> str:
        return f'<joint name="{side}_{joint}" axis="{axis}" armature="0.005"/>'

    return f"""\
      <body name="{side}_arm" pos="0 {SIDES[side] * 0.085} 0.15">
        {hinge("shoulder_pitch", "0 1 0")}
        {hinge("shoulder_roll", "1 0 0")}
        {hinge("shoulder_yaw", "0 0 1")}
        <geom type="capsule" fromto="0 0 0 0 0 -0.1" size="0.016" mass="0.25" {_BODY}/>
        <body name="{side}_forearm" pos="0 0 -0.1">
          {hinge("elbow", "0 1 0")}
          <geom type="capsule" fromto="0 0 0 0 0 -0.09" size="0.014" mass="0.2" {_BODY}/>
        </body>
      </body>"""


def squat(time: float) -> Array:
    """Down by `SQUAT_DEPTH` and up again, arms out in front against the weight behind."""
    low = _wave(time / SQUAT_PERIOD)
    leg = _leg_angles((0.0, 0.0, low * SQUAT_DEPTH - TALL))
    arms = [[-0.2 - 0.9 * low, side * 0.15, 0.0, -0.3] for side in SIDES.values()]
    return np.concatenate([leg, leg, *arms])


def tap_dance(time: float) -> Array:
    """Taps with the right foot, then with the left one, half of `DANCE_PERIOD` each."""
    turn, part = divmod(2 * time / DANCE_PERIOD, 1.0)
    tapping = "right" if int(turn) % 2 == 0 else "left"
    shift = -SIDES[tapping] * _SHIFT * _hold(part, 0.24)
    raised = _hold(max(part - 0.24, 0.0) / 0.52, 0.16) if part < 0.76 else 0.0
    beat = min(max((part - 0.32) / 0.36, 0.0), 1.0)
    toes = _CLEAR - (_CLEAR + _PRESS) * _wave(_TAPS * beat)  # above the floor
    pitch = raised * _TOE_DOWN
    lift = raised * (toes + _TOE * sin(pitch) + ANKLE * (cos(pitch) - 1.0))
    legs = [
        _leg_angles(
            (0.0, -shift, -TALL + (lift if side == tapping else 0.0)),
            pitch if side == tapping else 0.0,
        )
        for side in SIDES
    ]
    swing = 0.4 * _wave(_TAPS * beat)
    arms = [
        [-0.2 - swing, side * (0.15 + 0.35 * raised), 0.0, -0.3 - 0.5 * raised]
        for side in SIDES.values()
    ]
    return np.concatenate([*legs, *arms])


def follow(motion: Motion) -> Callable[[mujoco.MjModel], Controller]:
    """What makes a controller that tracks `motion`: servos without lag at constant speed."""

    def control(model: mujoco.MjModel) -> Controller:
        def controller(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            dt = model.opt.timestep
            now, later = motion(data.time), motion(data.time + dt)
            data.ctrl[:] = now + _DAMPING / _GAIN * (later - now) / dt

        return controller

    return control


def _leg_angles(ankle: tuple[float, float, float], pitch: float = 0.0) -> list[float]:
    """Six angles [rad] that put the ankle there, from the hip [m], with the sole at `pitch`."""
    x, y, z = ankle
    roll = atan2(y, -z)
    hip, knee = two_links(x, hypot(y, z), LINK, 1)
    return [0.0, roll, hip, knee, pitch - hip - knee, -roll]


def _wave(turns: float) -> float:
    """0 at whole turns, 1 halfway, smooth."""
    return (1 - cos(2 * pi * turns)) / 2


def _hold(part: float, ramp: float) -> float:
    """Rises from 0 to 1 during the first `ramp` of 0 to 1 and falls during the last; smooth."""
    edge = min(part, 1.0 - part, ramp) / ramp
    return _wave(edge / 2)


SCENES = (
    Scene(
        name="humanoid",
        summary="a humanoid of 20 joints that squats",
        xml=humanoid_xml,
        control=follow(squat),
        start=from_keyframe,
        watch=("left_foot", "right_foot"),
        seconds=2.0,
    ),
    Scene(
        name="tap-dance",
        summary="the same humanoid, tapping the floor with one foot, then with the other",
        xml=humanoid_xml,
        control=follow(tap_dance),
        start=from_keyframe,
        watch=("left_foot", "right_foot"),
        seconds=10.0,
    ),
)
