"""Many bodies that fall, pile up and come to rest in each other's way.

- `bin`: boxes, spheres, capsules and cylinders dropped into a bin.
- `wall`: a dry brick wall hit by a heavy ball.
- `rubble`: an arch that lost a foot.
- `ragdoll`: the humanoid without its servos.

The last two are edits of other scenes' text (`mjcf.py` says why it is text).
"""

from math import pi
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from stiction.errors import InvalidInput
from stiction.scenes.blocks import arch_xml
from stiction.scenes.humanoid import ARM, LEG, SIDES, humanoid_xml
from stiction.scenes.mjcf import FLOOR, document, lines, numbers
from stiction.scenes.scene import Scene, from_keyframe

Array = NDArray[np.float64]

SHAPES = {
    "box": ((0.05, 0.04, 0.03), 0.03, "part"),
    "sphere": ((0.05,), 0.05, "other"),
    "capsule": ((0.03, 0.04), 0.03, "next"),
    "cylinder": ((0.035, 0.04), 0.04, "driver"),
}
"""Sizes as MuJoCo takes them [m], height of the middle when one lies on the floor [m], colour."""

_PITCH, _JITTER = 0.155, 0.004
"""Between the bodies' middles at the start, and how far they stray from it [m]: the farthest corner
is 0.071 m from its middle, so that they do not touch however they are turned."""

_BRICK = (0.24, 0.115, 0.07)
"""Length, depth, height [m]."""
_JOINT = 0.01
"""Open joint between the bricks of a course [m]."""

RANGES = {
    "hip_yaw": (-0.6, 0.6),
    "hip_roll": (-0.4, 0.8),
    "hip_pitch": (-2.0, 0.5),
    "knee": (0.0, 2.4),
    "ankle_pitch": (-0.8, 0.8),
    "ankle_roll": (-0.4, 0.4),
    "shoulder_pitch": (-3.0, 1.0),
    "shoulder_roll": (-0.1, 1.6),
    "shoulder_yaw": (-1.2, 1.2),
    "elbow": (-2.4, 0.0),
}
"""Of the left side [rad]; the right one mirrors roll and yaw."""


def bin_xml(
    *, count: int = 27, friction: float = 0.5, seed: int = 1, timestep: float = 0.002
) -> str:
    """`count` bodies of 0.5 kg and of four shapes, dropped into a bin.

    The lowest layer lies on the floor, those above hang in the air, turned at random by `seed`.
    """
    if count < 1:
        raise InvalidInput("count", f"is {count}, must be at least 1")
    if seed < 0:
        raise InvalidInput("seed", f"is {seed}, must not be negative")
    random = np.random.default_rng(seed)
    side = max(2, round(count ** (1 / 3)))  # bodies along an edge of a layer

    def body(index: int) -> str:
        kind = list(SHAPES)[index % len(SHAPES)]
        size, rest, material = SHAPES[kind]
        layer, place = divmod(index, side * side)
        across = np.array([place % side, place // side]) - (side - 1) / 2
        x, y = _PITCH * across + random.uniform(-_JITTER, _JITTER, 2)
        z = rest if layer == 0 else _PITCH * (layer + 0.5)
        turn = _lying(kind, random.uniform(0, 2 * pi)) if layer == 0 else _any_turn(random)
        return f"""\
    <body name="{kind}{index}" pos="{numbers(x, y, z)}" quat="{numbers(*turn)}">
      <freejoint/>
      <geom type="{kind}" size="{numbers(*size)}" mass="0.5" material="{material}"/>
    </body>"""

    half, thick = _PITCH * side / 2 + 0.01, 0.01  # inside of the bin; half of a wall
    height = _PITCH * -(-count // (side * side)) / 2
    middle, length = half + thick, half + 2 * thick
    walls = lines(
        f"""\
    <geom name="{name}" type="box" size="{numbers(*size, height)}" pos="{numbers(*at, height)}"
          rgba="0.33 0.35 0.38 0.15"/>"""
        for name, size, at in (
            ("front", (thick, length), (middle, 0)),
            ("back", (thick, length), (-middle, 0)),
            ("left", (length, thick), (0, middle)),
            ("right", (length, thick), (0, -middle)),
        )
    )
    world = lines(["    " + FLOOR, walls, *(body(index) for index in range(count))])
    return document(
        "bin",
        world,
        friction=friction,
        timestep=timestep,
        center=(0, 0, 0.8 * height),
        extent=3.2 * max(half, height),
        elevation=-35,
    )


def wall_xml(
    *,
    courses: int = 4,
    bricks: int = 3,
    ball_mass: float = 30.0,
    speed: float = 7.0,
    friction: float = 0.6,
    timestep: float = 0.002,
) -> str:
    """A dry wall of `courses` rows, `bricks` long, that a ball hits at `speed` [m/s].

    The bricks, 3.5 kg each, are in running bond: every other course begins and ends with a
    shorter one. The ball, `ball_mass` [kg], comes from half a metre at the wall's half height.
    """
    for name, value in (("courses", courses), ("bricks", bricks)):
        if value < 1:
            raise InvalidInput(name, f"is {value}, must be at least 1")
    if not ball_mass > 0:
        raise InvalidInput("ball_mass", f"is {ball_mass}, must be positive")
    length, depth, height = _BRICK
    pitch, radius = length + _JOINT, 0.15
    width = bricks * pitch - _JOINT

    def spans(course: int) -> list[tuple[float, float]]:
        """Where bricks begin and end along a course."""
        if course % 2 == 0:
            return [(k * pitch, k * pitch + length) for k in range(bricks)]
        whole = [((k + 0.5) * pitch, (k + 0.5) * pitch + length) for k in range(bricks - 1)]
        return [(0.0, pitch / 2 - _JOINT), *whole, ((bricks - 0.5) * pitch, width)]

    def brick(course: int, index: int, begin: float, end: float) -> str:
        middle, half = (begin + end - width) / 2, (end - begin) / 2
        return f"""\
    <body name="brick{course}_{index}" pos="{numbers(0, middle, height * (course + 0.5))}">
      <freejoint/>
      <geom type="box" size="{numbers(depth / 2, half, height / 2)}" density="1800"
            material="{("stone", "next_stone")[(course + index) % 2]}"/>
    </body>"""

    rows = lines(
        brick(course, index, *span)
        for course in range(courses)
        for index, span in enumerate(spans(course))
    )
    level = max(radius, courses * height / 2)
    world = f"""\
    {FLOOR}
    <body name="ball" pos="{numbers(-0.5 - radius - depth / 2, 0, level)}">
      <freejoint/>
      <geom type="sphere" size="{radius}" mass="{numbers(ball_mass)}" material="driver"/>
    </body>
{rows}"""
    moving = numbers(speed, *[0.0] * (6 * (1 + sum(len(spans(k)) for k in range(courses))) - 1))
    return document(
        "wall",
        world,
        friction=friction,
        timestep=timestep,
        below=f'  <keyframe><key name="start" qvel="{moving}"/></keyframe>',
        center=(0.1, 0, level),
        extent=1.2 * max(width, courses * height),
        azimuth=130,
    )


def rubble_xml(
    *,
    stones: int = 11,
    friction: float = 0.6,
    radius: float = 1.0,
    thickness: float = 0.25,
    timestep: float = 0.002,
) -> str:
    """The arch of `stones` wedges without the lowest one on the right: it drops and breaks up.

    `radius` and `thickness` [m] are the arch's. Without the keystone instead, the neighbours lean
    on each other and the arch stands.
    """
    if stones < 3:
        raise InvalidInput("stones", f"is {stones}, must be at least 3")
    text = arch_xml(stones=stones, friction=friction, radius=radius, thickness=thickness)
    model, world = _parse(text, "rubble", timestep)
    world.remove(_find(world, "body[@name='stone0']"))
    return ElementTree.tostring(model, encoding="unicode")


def ragdoll_xml(
    *,
    push: float = 0.5,
    damping: float = 0.02,
    friction: float = 0.7,
    timestep: float = 0.002,
) -> str:
    """The humanoid without servos, standing, pushed forward at `push` [m/s].

    Its joints have the ranges of a person's and `damping` [N m s/rad]; its limbs touch each other.
    """
    if not damping >= 0:
        raise InvalidInput("damping", f"is {damping}, must not be negative")
    model, world = _parse(humanoid_xml(friction=friction), "ragdoll", timestep)
    model.remove(_find(model, "actuator"))
    for side, mirror in SIDES.items():
        for joint in LEG + ARM:
            low, high = RANGES[joint]
            if mirror < 0 and joint.endswith(("roll", "yaw")):
                low, high = -high, -low
            hinge = _find(world, f".//joint[@name='{side}_{joint}']")
            hinge.set("range", numbers(low, high))
            hinge.set("damping", numbers(damping))
    for geom in world.iter("geom"):
        for bits in ("contype", "conaffinity"):
            geom.attrib.pop(bits, None)
    looks = _find(model, "statistic")
    looks.set("center", "0.15 0 0.1")  # in front of it, where it comes to lie
    looks.set("extent", "0.7")
    start = _find(model, "keyframe/key")
    del start.attrib["ctrl"]
    start.set("qvel", numbers(push, *[0.0] * (5 + len(SIDES) * len(LEG + ARM))))
    return ElementTree.tostring(model, encoding="unicode")


def _lying(kind: str, yaw: float) -> Array:
    """Quaternion of a body that lies on the floor: a capsule on its side, others as they are."""
    about = np.array([np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)])
    if kind != "capsule":
        return about
    w, z = about[0], about[3]
    return np.sqrt(0.5) * np.array([w, -z, w, z])  # a quarter turn about y, then the yaw


def _any_turn(random: np.random.Generator) -> Array:
    """Quaternion, all turns being equally likely."""
    turn = random.normal(size=4)
    return turn / np.linalg.norm(turn)


def _parse(
    text: str, name: str, timestep: float
) -> tuple[ElementTree.Element, ElementTree.Element]:
    """A scene's model under another name and with another time step, and its worldbody."""
    model = ElementTree.fromstring(text)
    model.set("model", name)
    _find(model, "option").set("timestep", numbers(timestep))
    return model, _find(model, "worldbody")


def _find(element: ElementTree.Element, path: str) -> ElementTree.Element:
    found = element.find(path)
    assert found is not None, path
    return found


SCENES = (
    Scene(
        name="bin",
        summary="boxes, spheres, capsules and cylinders dropped into a bin",
        xml=bin_xml,
        control=None,
        start=None,
        watch=("box0",),
        seconds=2.0,
    ),
    Scene(
        name="wall",
        summary="a brick wall hit by a heavy ball",
        xml=wall_xml,
        control=None,
        start=from_keyframe,
        watch=("ball", "brick0_0"),
        seconds=2.0,
    ),
    Scene(
        name="rubble",
        summary="an arch that lost a foot and collapses",
        xml=rubble_xml,
        control=None,
        start=None,
        watch=("keystone",),
        seconds=2.0,
    ),
    Scene(
        name="ragdoll",
        summary="a humanoid without servos that falls",
        xml=ragdoll_xml,
        control=None,
        start=from_keyframe,
        watch=("pelvis",),
        seconds=2.0,
    ),
)
