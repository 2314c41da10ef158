"""Long and closed chains in contact (Yamane V-C, Fig. 4).

- `hoist`: a rope of 25 ball joints over a rod lifts a load.
- `ring`: wires of five ball joints end in rings, which hang in one another.
- `net`: four strings of 16 ball joints, fixed at both ends, catch five cylinders.

Chains are capsules from node to node. The paper gives the numbers of joints, the durations
(10, 4 and 2 s) and pictures; sizes, masses and friction are ours.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import cos, pi, radians, sin, sqrt, tan

import mujoco

from stiction.errors import InvalidInput
from stiction.scenes.mjcf import FLOOR, NO_SELF_CONTACT, document, lines, numbers
from stiction.scenes.scene import Controller, Scene, from_keyframe

Point = tuple[float, float, float]

PULL, PULL_PERIOD = 0.25, 4.0
"""How far the hoist's rope is pulled and let go again [m], how often [s]."""


def chain(
    name: str,
    nodes: Sequence[Point],
    *,
    radius: float,
    mass: float,
    look: str,
    tip: str = "",
    damping: float = 2e-4,
    origin: Point = (0.0, 0.0, 0.0),
) -> str:
    """Bodies `name`0, `name`1, ... inside each other, one per segment between `nodes` [m].

    Each hangs on a ball joint at its first node. `origin` is that of the body around them,
    whose axes are the world's, as theirs are; `tip` goes into the last one, whose origin is
    the last but one node. `mass` [kg] is that of a segment, `look` its further attributes,
    `damping` [N m s] that of a joint.
    """
    inside, before = tip, [origin, *nodes]
    for index in reversed(range(len(nodes) - 1)):
        here, there = nodes[index], nodes[index + 1]
        inside = f"""\
      <body name="{name}{index}" pos="{numbers(*_from(before[index], here))}">
        <joint type="ball" damping="{numbers(damping)}"/>
        <geom type="capsule" fromto="0 0 0 {numbers(*_from(here, there))}" size="{radius}"
              mass="{mass}" {look}/>
{inside}
      </body>"""
    return inside


def _from(origin: Point, point: Point) -> Point:
    return (point[0] - origin[0], point[1] - origin[1], point[2] - origin[2])


# --- Hoist ---------------------------------------------------------------------------

_ROPE, _LINK = 0.008, 0.05  # m, the rope's radius and the length of a link
_TURNS = 6  # of the rope on its way over the rod, 180 degrees in all
_HANGING = 9  # links on either side


def hoist_xml(*, load: float = 1.0, friction: float = 0.2, timestep: float = 0.001) -> str:
    """A rope with a `load` [kg] at one end, laid over a rod; a hand pulls at the other.

    Seven links start tangent to the rod, each at its middle. The load rises if the hand
    pulls with exp(pi friction) times its weight.
    """
    around = _LINK / 2 / tan(pi / _TURNS / 2)  # from the rod's axis to the rope's
    nodes: list[Point] = [(-around, 0.0, -_LINK * (_HANGING + 0.5))]
    for turn in (0,) * _HANGING + tuple(range(_TURNS + 1)) + (_TURNS,) * _HANGING:
        angle = pi / 2 - pi * turn / _TURNS  # of the link, from x toward z
        x, y, z = nodes[-1]
        nodes.append((x + _LINK * cos(angle), y, z + _LINK * sin(angle)))
    tip = f"""\
        <geom type="box" size="0.04 0.04 0.04" pos="0 0 {numbers(-_LINK - 0.04)}"
              mass="{numbers(load)}" {NO_SELF_CONTACT} material="part"/>"""
    rope = chain(
        "link",
        nodes,
        radius=_ROPE,
        mass=0.02,
        look=f'{NO_SELF_CONTACT} material="other"',
        tip=tip,
        origin=nodes[0],
    )
    world = f"""\
    <geom name="rod" type="capsule" fromto="0 -0.2 0 0 0.2 0" size="{numbers(around - _ROPE)}"
          material="fixed"/>
    <body name="hand" pos="{numbers(*nodes[0])}">
      <joint name="hand" type="slide" axis="0 0 -1"/>
      <geom type="sphere" size="0.02" mass="0.2" {NO_SELF_CONTACT} material="driver"/>
{rope}
    </body>"""
    below = """\
  <actuator><position name="hand" joint="hand" kp="4000" kv="100"/></actuator>"""
    return document(
        "hoist",
        world,
        friction=friction,
        timestep=timestep,
        below=below,
        center=(0, 0, -0.25),
        extent=0.8,
        azimuth=65,
        elevation=-12,
    )


def _pull(model: mujoco.MjModel) -> Controller:
    def controller(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        data.ctrl[0] = PULL * (1 - cos(2 * pi * data.time / PULL_PERIOD)) / 2

    return controller


# --- Ring ----------------------------------------------------------------------------

_TUBE, _HOLE, _SEGMENT = 0.005, 0.04, 0.05  # m: ring's thickness / 2, its radius, wire link
_SIDES = 8  # capsules around a ring


def ring_xml(*, wires: int = 3, swing: float = 1.5, friction: float = 0.3) -> str:
    """`wires` that hang in one another, the first on a peg, all turning at `swing` [rad/s].

    A wire is a ring, four links and another ring, turned by 90 degrees: five ball joints.
    The next wire's upper ring lies in its lower one, tube on tube. At first they swing like
    one rigid body about the point where they hang, and half as fast along the peg.
    """
    if wires < 1:
        raise InvalidInput("wires", f"is {wires}, must be at least 1")
    peg = 0.01
    pieces, velocity = [], []
    top = peg + _TUBE  # where a wire's first tube hangs, above the peg's axis
    for wire in range(wires):
        pieces.append(_wire(f"wire{wire}", top))
        arm = top - _HOLE - peg
        velocity += [swing * arm, -swing / 2 * arm, 0.0, swing / 2, swing, 0.0, *[0.0] * 15]
        top -= 4 * _HOLE + 4 * _SEGMENT - 2 * _TUBE
    world = lines(
        [
            f"""\
    <geom name="peg" type="capsule" fromto="0 -0.15 0 0 0.15 0" size="{peg}"
          material="fixed"/>""",
            *pieces,
        ]
    )
    return document(
        "ring",
        world,
        friction=friction,
        below=f'  <keyframe><key name="start" qvel="{numbers(*velocity)}"/></keyframe>',
        center=(0, 0, top / 2),
        extent=max(-top, 0.3),
        azimuth=50,
        elevation=-8,
    )


def _wire(name: str, top: float) -> str:
    """Rings at both ends of four links, hanging down from a tube whose axis is at `top` [m]."""
    nodes: list[Point] = [(0.0, 0.0, top - 2 * _HOLE - _SEGMENT * k) for k in range(5)]
    lower = f"""\
      <body name="{name}_lower" pos="{numbers(0, 0, -_SEGMENT)}">
        <joint type="ball" damping="0.0002"/>
{_ring((0.0, 0.0, -_HOLE), along_x=False)}
      </body>"""
    links = chain(
        f"{name}_link",
        nodes,
        radius=0.004,
        mass=0.01,
        look='material="other"',
        tip=lower,
        origin=(0.0, 0.0, top - _HOLE),
    )
    return f"""\
    <body name="{name}_upper" pos="{numbers(0, 0, top - _HOLE)}">
      <freejoint/>
{_ring((0.0, 0.0, 0.0), along_x=True)}
{links}
    </body>"""


def _ring(centre: Point, *, along_x: bool) -> str:
    """Capsules around a regular polygon in the plane of z and x, or of z and y.

    The middles of its sides are at `_HOLE` from the centre; two sides are level.
    """
    corner = _HOLE / cos(pi / _SIDES)
    places = []
    for k in range(_SIDES + 1):
        angle = (2 * k + 1) * pi / _SIDES
        across, up = corner * sin(angle), corner * cos(angle)
        x, y = (across, 0.0) if along_x else (0.0, across)
        places.append((centre[0] + x, centre[1] + y, centre[2] + up))
    return lines(
        f"""\
        <geom type="capsule" fromto="{numbers(*here, *there)}" size="{_TUBE}" mass="0.005"
              material="{"part" if along_x else "next"}"/>"""
        for here, there in pairwise(places)
    )


# --- Net -----------------------------------------------------------------------------

_STRING, _MESH = 0.006, 0.06  # m, radius and length of a link
_LINKS = 15  # between 16 joints
_BEND = radians(5.0)  # between links at the start
_CROSS = 2  # links from a string's middle to where it crosses another


def net_xml(*, drop: float = 0.16, friction: float = 0.5) -> str:
    """Two strings across two others, and five cylinders that fall on them from `drop` [m].

    A string sags in an arc of 15 links between its two fixed ends; the joint at the far end
    closes the loop. The second pair starts on the first: links touch where they cross.
    """
    arc = _arc()
    crossing = _LINKS // 2 + _CROSS  # the link that another string crosses, at its middle
    middle = [(a + b) / 2 for a, b in zip(*arc[crossing : crossing + 2], strict=True)]
    slope = _CROSS * _BEND
    # Two links of that slope that cross at a right angle, `lift` apart, touch.
    lift = 2 * _STRING * sqrt(1 + sin(slope) ** 2) / cos(slope)
    strings, ends = [], []
    for along_x in (True, False):
        for side in (-1, 1):
            name = f"{'x' if along_x else 'y'}{'a' if side < 0 else 'b'}_"
            aside = side * middle[0]
            nodes: list[Point] = [
                (along, aside, up) if along_x else (aside, along, up + lift) for along, up in arc
            ]
            bits = 'contype="1" conaffinity="2"' if along_x else 'contype="2" conaffinity="1"'
            look = f'{bits} material="{"other" if along_x else "driver"}"'
            strings.append(chain(name, nodes, radius=_STRING, mass=0.03, damping=3e-3, look=look))
            last = tuple(b - a for a, b in zip(nodes[-2], nodes[-1], strict=True))
            ends.append(
                f'    <connect body1="{name}{_LINKS - 1}" anchor="{numbers(*last)}" '
                'solref="0.01 1"/>'
            )
    ground = f'    <body name="ground" pos="0 0 -0.6">{FLOOR}</body>'
    world = lines([ground, *strings, *(_cylinder(k, middle[1] + lift + drop) for k in range(5))])
    below = lines(["  <equality>", *ends, "  </equality>"])
    return document(
        "net",
        world,
        friction=friction,
        stiffness='solref="0.006 1"',
        below=below,
        extent=0.9,
    )


def _arc() -> list[tuple[float, float]]:
    """Nodes of a string, (along, up) [m]: its ends are at height 0, its middle at 0 along."""
    nodes = [(0.0, 0.0)]
    for link in range(_LINKS):
        angle = (link - _LINKS // 2) * _BEND
        along, up = nodes[-1]
        nodes.append((along + _MESH * cos(angle), up + _MESH * sin(angle)))
    half = nodes[-1][0] / 2
    return [(along - half, up) for along, up in nodes]


def _cylinder(index: int, height: float) -> str:
    """Level, above the net, each turned against the one below it."""
    radius, half, turn = 0.03, 0.18, radians(80.0 + 5.0 * index)
    end = (half * cos(turn), half * sin(turn), 0.0)
    return f"""\
    <body name="cylinder{index}" pos="{numbers(0, 0, height + radius + 3 * radius * index)}">
      <freejoint/>
      <geom type="cylinder" fromto="{numbers(*(-e for e in end), *end)}" size="{radius}"
            mass="0.4" contype="3" conaffinity="3" material="{("part", "next")[index % 2]}"/>
    </body>"""


SCENES = (
    Scene(
        name="hoist",
        summary="a rope of 25 joints over a rod lifts a load",
        xml=hoist_xml,
        control=_pull,
        start=None,
        watch=("hand", f"link{_TURNS + 2 * _HANGING}"),
        seconds=10.0,
    ),
    Scene(
        name="ring",
        summary="wires that hang in one another by rings, swinging",
        xml=ring_xml,
        control=None,
        start=from_keyframe,
        watch=("wire0_upper",),
        seconds=4.0,
    ),
    Scene(
        name="net",
        summary="five cylinders fall into a net of four strings",
        xml=net_xml,
        control=None,
        start=None,
        watch=tuple(f"cylinder{index}" for index in range(5)),
        seconds=2.0,
    ),
)
