"""Pieces of MJCF that the scenes share.

Every scene carries the options that suit MuJoCo's own contact best short of its `noslip`
solver (elliptic cones, impratio 10), so that a comparison with `mj_step` is a fair one.
Rigid contact ignores them. Lengths are written with all their digits: bodies that touch in
the formula touch in the model to rounding.

So a scene is text, and not an `MjSpec`, though that nests bodies more plainly: recordings, the page
and processes of a sweep carry a scene's text, and `MjSpec.to_xml` writes six digits of a length.
Written and read again no scene is the same model to the bit: the ladder is 5e-6 m off, stones of
the arch 4e-7 m.
"""

from collections.abc import Iterable

FLOOR = '<geom name="floor" type="plane" size="10 10 0.1" material="floor"/>'

NO_SELF_CONTACT = 'contype="0" conaffinity="1"'
"""For the links of a robot or a rope: they touch what has both bits, but not each other."""

_LOOKS = """\
  <visual>
    <headlight ambient="0.35 0.35 0.35" diffuse="0.5 0.5 0.5" specular="0.1 0.1 0.1"/>
    <global azimuth="{azimuth}" elevation="{elevation}" offwidth="1280" offheight="960"/>
  </visual>
  <statistic center="{center}" extent="{extent}"/>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.75 0.83 0.92" rgb2="1 1 1"
             width="64" height="384"/>
    <texture name="grid" type="2d" builtin="checker" rgb1="0.83 0.84 0.86" rgb2="0.77 0.78 0.81"
             width="256" height="256"/>
    <material name="floor" texture="grid" texrepeat="2 2" texuniform="true"/>
    <material name="fixed" rgba="0.33 0.35 0.38 1"/>
    <material name="driver" rgba="0.80 0.22 0.18 1"/>
    <material name="part" rgba="0.20 0.42 0.72 1"/>
    <material name="next" rgba="0.42 0.62 0.86 1"/>
    <material name="other" rgba="0.93 0.66 0.20 1"/>
    <material name="stone" rgba="0.72 0.69 0.62 1"/>
    <material name="next_stone" rgba="0.80 0.77 0.71 1"/>
  </asset>
"""


def numbers(*values: float) -> str:
    """Values of an attribute, with all their digits."""
    return " ".join(f"{float(value):.17g}" for value in values)


def lines(parts: Iterable[str]) -> str:
    """Elements below one another."""
    return "\n".join(parts)


def document(
    name: str,
    world: str,
    *,
    friction: float,
    timestep: float = 0.001,
    below: str = "",
    stiffness: str = "",
    center: tuple[float, float, float] = (0.0, 0.0, 0.0),
    extent: float = 1.0,
    azimuth: float = 60.0,
    elevation: float = -20.0,
) -> str:
    """A whole model: `world` inside its worldbody, `below` after it.

    `friction` is that of every geom which does not give its own; `stiffness`, for MuJoCo's
    contact, holds further attributes of every geom. The rest is where a camera should look,
    from how far [m, degrees].
    """
    looks = _LOOKS.format(
        center=numbers(*center), extent=numbers(extent), azimuth=azimuth, elevation=elevation
    )
    return f"""\
<mujoco model="{name}">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{numbers(timestep)}" gravity="0 0 -9.81" cone="elliptic" impratio="10"
          integrator="implicitfast"/>
  <default><geom friction="{numbers(friction)} 0.005 0.0001" condim="3" {stiffness}/></default>
{looks}  <worldbody>
    <light pos="1 -2 4" dir="-0.2 0.4 -1" directional="true" diffuse="0.5 0.5 0.5"/>
{world}
  </worldbody>
{below}
</mujoco>
"""
