"""Parts held by friction alone, between pads that push inward.

- `pinch`: a small capsule between two pads (google-deepmind/mujoco #3328).
- `grasp`: a row of boxes between two others, pushed together (Drumwright VII-A, Fig. 1).
"""

from stiction.errors import InvalidInput
from stiction.scenes.mjcf import document, lines, numbers
from stiction.scenes.scene import Scene, from_keyframe

MOST_BOXES = 32

_TRAVEL = 0.002  # m that a pad is told to go past first contact
_HALF = 0.05  # m, half the side of a box


def pinch_xml(*, force: float = 12.0, friction: float = 0.7, timestep: float = 0.002) -> str:
    """A 45 g capsule of radius 4 mm that two pads press from the sides with `force` [N] each.

    It holds if 2 friction force >= 0.44 N. The time step is the one of the issue.
    """
    radius, thick = 0.004, 0.005
    world = f"""\
    <body name="left" pos="{numbers(-radius - thick, 0, 0)}">
      <joint name="left" type="slide" axis="1 0 0" damping="60"/>
      <geom type="box" size="{thick} 0.02 0.02" mass="0.1" material="driver"/>
    </body>
    <body name="right" pos="{numbers(radius + thick, 0, 0)}">
      <joint name="right" type="slide" axis="-1 0 0" damping="60"/>
      <geom type="box" size="{thick} 0.02 0.02" mass="0.1" material="driver"/>
    </body>
    <body name="capsule">
      <freejoint/>
      <geom type="capsule" fromto="0 -0.015 0 0 0.015 0" size="{radius}" mass="0.045"
            material="part"/>
    </body>"""
    below = f"""\
  <actuator>
    <position name="left" joint="left" kp="{numbers(force / _TRAVEL)}"/>
    <position name="right" joint="right" kp="{numbers(force / _TRAVEL)}"/>
  </actuator>
  <keyframe><key name="start" ctrl="{_TRAVEL} {_TRAVEL}"/></keyframe>"""
    return document(
        "pinch", world, friction=friction, timestep=timestep, below=below, extent=0.05, azimuth=100
    )


def grasp_xml(
    *,
    boxes: int = 2,
    friction: float = 1.0,
    force: float | None = None,
    timestep: float = 0.001,
) -> str:
    """`boxes` cubes of 0.1 m and 1 kg in a row, pushed together by one more at either end.

    `force` [N] of each pusher is 100 per box unless given. Drumwright's published run has
    two boxes, friction 100 and a time step of 0.01 s.
    """
    if not 1 <= boxes <= MOST_BOXES:
        raise InvalidInput("boxes", f"is {boxes}, must be 1 to {MOST_BOXES}")
    force = 100.0 * boxes if force is None else force
    edge = _HALF * (boxes + 1)  # centre of a pusher
    size = f'type="box" size="{_HALF} {_HALF} {_HALF}" mass="1"'

    def pusher(name: str, x: float, inward: int) -> str:
        return f"""\
    <body name="{name}" pos="{numbers(x, 0, 0)}">
      <joint name="{name}" type="slide" axis="{inward} 0 0"/>
      <geom {size} material="driver"/>
    </body>"""

    def box(index: int) -> str:
        name = "middle" if index == boxes // 2 else f"box{index}"
        return f"""\
    <body name="{name}" pos="{numbers(_HALF * (2 * index + 1 - boxes), 0, 0)}">
      <freejoint/>
      <geom {size} material="{("part", "next")[index % 2]}"/>
    </body>"""

    world = lines(
        [pusher("left", -edge, 1), pusher("right", edge, -1), *(box(i) for i in range(boxes))]
    )
    below = f"""\
  <actuator><motor name="left" joint="left"/><motor name="right" joint="right"/></actuator>
  <keyframe><key name="start" ctrl="{numbers(force, force)}"/></keyframe>"""
    return document(
        "grasp",
        world,
        friction=friction,
        timestep=timestep,
        below=below,
        extent=0.1 * (boxes + 2),
    )


SCENES = (
    Scene(
        name="pinch",
        summary="a 45 g capsule pinched between two pads",
        xml=pinch_xml,
        control=None,
        start=from_keyframe,
        watch=("capsule",),
        seconds=10.0,
    ),
    Scene(
        name="grasp",
        summary="a row of boxes held between two that push inward",
        xml=grasp_xml,
        control=None,
        start=from_keyframe,
        watch=("middle",),
        seconds=10.0,
    ),
)
