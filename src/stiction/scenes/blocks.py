"""Bodies that stand, lean or slide on each other: what friction alone decides.

- `stack`: boxes on boxes; a heavy one may lie on top.
- `incline`: a block on a slope.
- `sliding-cube`: a cube launched over the floor.
- `ladder`: a ladder that leans on a wall.
- `arch`: a round arch of wedge-shaped stones without mortar.
"""

from math import cos, pi, radians, sin, tan

from stiction.errors import InvalidInput
from stiction.scenes.mjcf import FLOOR, document, lines, numbers
from stiction.scenes.scene import Scene, from_keyframe


def stack_xml(*, boxes: int = 10, top_mass: float = 1.0, friction: float = 0.7) -> str:
    """`boxes` cubes of 0.1 m on each other, 1 kg each but the top one: `top_mass` [kg]."""
    if boxes < 1:
        raise InvalidInput("boxes", f"is {boxes}, must be at least 1")
    half = 0.05

    def box(level: int) -> str:
        top = level == boxes - 1
        name, mass = ("top", top_mass) if top else (f"box{level}", 1.0)
        return f"""\
    <body name="{name}" pos="{numbers(0, 0, half * (2 * level + 1))}">
      <freejoint/>
      <geom type="box" size="{half} {half} {half}" mass="{numbers(mass)}"
            material="{("part", "next")[level % 2]}"/>
    </body>"""

    world = lines(["    " + FLOOR, *(box(level) for level in range(boxes))])
    height = 2 * half * boxes
    return document(
        "stack", world, friction=friction, center=(0, 0, height / 2), extent=max(height, 0.3)
    )


def incline_xml(*, angle: float = 26.0, friction: float = 0.5) -> str:
    """A 2 kg block on a slope of `angle` [degrees]: it sticks if tan(angle) <= friction.

    The default is 2.5 % on the safe side.
    """
    slope = radians(angle)
    half, thick = 0.05, 0.05  # of the block and of the ramp, m
    up = (-sin(slope), 0.0, cos(slope))  # normal of the slope; downhill is toward -x
    turn = numbers(0, 1, 0, -slope)
    ramp = tuple(-thick * u for u in up)
    block = tuple(half * u for u in up)
    world = f"""\
    <geom name="ramp" type="box" size="1.5 0.4 {thick}" pos="{numbers(*ramp)}"
          axisangle="{turn}" material="fixed"/>
    <body name="block" pos="{numbers(*block)}" axisangle="{turn}">
      <freejoint/>
      <geom type="box" size="0.1 0.1 {half}" mass="2" material="part"/>
    </body>"""
    return document("incline", world, friction=friction, extent=1.2)


def sliding_cube_xml(*, speed: float = 6.0, heading: float = 0.0, friction: float = 0.5) -> str:
    """A 1 kg cube of 0.1 m launched flat at `speed` [m/s] toward `heading` [degrees].

    It stops after speed^2 / (2 friction g), on the line that it started on, and upright.
    """
    course = radians(heading)
    velocity = numbers(speed * cos(course), speed * sin(course), 0, 0, 0, 0)
    world = f"""\
    {FLOOR}
    <body name="cube" pos="0 0 0.05">
      <freejoint/>
      <geom type="box" size="0.05 0.05 0.05" mass="1" material="part"/>
    </body>"""
    below = f'  <keyframe><key name="start" qvel="{velocity}"/></keyframe>'
    return document(
        "sliding-cube", world, friction=friction, below=below, center=(1.5, 0, 0), extent=1.8
    )


def ladder_xml(*, angle: float = 65.0, friction: float = 0.4) -> str:
    """A 3 m, 10 kg ladder that leans on a wall at `angle` [degrees] from the floor.

    Its rails end in hemispheres of radius r; with L cos(angle) = c and L sin(angle) = s
    between their centres it stands if
    (1 + friction^2) c / 2 <= friction (s + r) + friction^2 (c + r).
    """
    length, radius, width = 3.0, 0.025, 0.4
    across, up = length * cos(radians(angle)), length * sin(radians(angle))
    foot = (-across - radius, radius)
    rails = lines(
        f"""\
      <geom name="{side}" type="capsule" fromto="0 {y} 0 {numbers(across)} {y} {numbers(up)}"
            size="{radius}" mass="4" material="part"/>"""
        for side, y in (("left", width / 2), ("right", -width / 2))
    )
    rungs = lines(
        f"""\
      <geom type="capsule" fromto="{numbers(across * k / 10, -width / 2, up * k / 10)} \
{numbers(across * k / 10, width / 2, up * k / 10)}" size="0.015" mass="{numbers(2 / 9)}"
            material="other"/>"""
        for k in range(1, 10)
    )
    world = f"""\
    {FLOOR}
    <geom name="wall" type="box" size="0.05 1 2" pos="0.05 0 2" material="stone"/>
    <body name="ladder" pos="{numbers(foot[0], 0, foot[1])}">
      <freejoint/>
{rails}
{rungs}
    </body>"""
    return document(
        "ladder", world, friction=friction, center=(-0.5, 0, 1.4), extent=3.2, azimuth=40
    )


def arch_xml(
    *,
    stones: int = 9,
    friction: float = 0.7,
    radius: float = 1.0,
    thickness: float = 0.25,
) -> str:
    """A half circle of `stones` equal wedges of 0.3 m depth, standing on the floor.

    `radius` [m] is that of the middle line. Friction of about 0.4 and a thickness of 0.11
    radii are the least that any round arch stands with. A wedge touches its neighbours with
    two slabs, boxes along its two faces, which makes the joints exact face to face; its
    shape and its mass are those of the whole stone.
    """
    if stones < 2:
        raise InvalidInput("stones", f"is {stones}, must be at least 2")
    if not 0 < thickness < 1.5 * radius:
        raise InvalidInput("thickness", f"is {thickness}, must be below 1.5 radii and positive")
    half = pi / stones / 2  # angle between a stone's middle and its face
    inner, outer = radius - thickness / 2, radius + thickness / 2
    depth, density = 0.15, 2400.0  # half of it, m; kg/m^3
    # In the stone's frame x is radial, z runs along the arch, the middle line is at the origin.
    corners = [
        (r * cos(half) - radius, y, sign * r * sin(half))
        for r in (inner, outer)
        for y in (-depth, depth)
        for sign in (-1, 1)
    ]
    shape = "  ".join(numbers(*corner) for corner in corners)
    slab = 0.25 * inner * tan(half)  # half its thickness

    def face(sign: int) -> str:
        middle = (
            radius * cos(half) - radius + slab * sin(half),
            0.0,
            sign * (radius * sin(half) - slab * cos(half)),
        )
        return f"""\
      <geom type="box" size="{numbers(thickness / 2, depth, slab)}" pos="{numbers(*middle)}"
            axisangle="{numbers(0, 1, 0, -sign * half)}" mass="0" group="3"/>"""

    def stone(index: int) -> str:
        along = (2 * index + 1) * half
        name = "keystone" if index == stones // 2 else f"stone{index}"
        return f"""\
    <body name="{name}" pos="{numbers(radius * cos(along), 0, radius * sin(along))}"
          axisangle="{numbers(0, 1, 0, -along)}">
      <freejoint/>
      <geom type="mesh" mesh="stone" contype="0" conaffinity="0" density="{density}"
            material="{("stone", "next_stone")[index % 2]}"/>
{face(-1)}
{face(1)}
    </body>"""

    world = lines(["    " + FLOOR, *(stone(index) for index in range(stones))])
    below = f'  <asset><mesh name="stone" vertex="{shape}"/></asset>'
    return document(
        "arch", world, friction=friction, below=below, center=(0, 0, radius / 2), extent=2 * radius
    )


SCENES = (
    Scene(
        name="stack",
        summary="ten boxes on each other",
        xml=stack_xml,
        control=None,
        start=None,
        watch=("top",),
        seconds=5.0,
    ),
    Scene(
        name="incline",
        summary="a block on a slope just below the friction angle",
        xml=incline_xml,
        control=None,
        start=None,
        watch=("block",),
        seconds=5.0,
    ),
    Scene(
        name="sliding-cube",
        summary="a cube launched at 6 m/s that slides to a stop",
        xml=sliding_cube_xml,
        control=None,
        start=from_keyframe,
        watch=("cube",),
        seconds=2.0,
    ),
    Scene(
        name="ladder",
        summary="a ladder that leans on a wall",
        xml=ladder_xml,
        control=None,
        start=None,
        watch=("ladder",),
        seconds=5.0,
    ),
    Scene(
        name="arch",
        summary="a round arch of nine stones without mortar",
        xml=arch_xml,
        control=None,
        start=None,
        watch=("keystone",),
        seconds=5.0,
    ),
)
