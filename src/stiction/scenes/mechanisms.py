"""Planar mechanisms driven by a motor (Baraff, Figs. 1 and 2).

- `block-feeder`: a crank drives a ram that pushes the lowest block out of a magazine, over
  and over; blocks go down a step one by one.
- `jack`: a rocking lever carries two pawls that lift a rack in turn, one on each stroke.

All bodies move in the plane of x and z: two slides and a hinge where they are free, hinges
and a `connect` where they are jointed. As in the paper, mechanisms have levels: parts that
only transmit motion (crank, rod, lever, the arms of pawls) touch nothing. The paper shows
pictures only; all sizes are ours.
"""

from math import pi, sin

import mujoco

from stiction.errors import InvalidInput
from stiction.scenes.mjcf import document, lines, numbers
from stiction.scenes.scene import Controller, Scene, from_keyframe

_PLANAR = """\
<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>\
<joint type="hinge" axis="0 -1 0"/>"""
_LEVEL = 'contype="0" conaffinity="0"'  # of parts that touch nothing
_DEPTH = 0.04  # m, half of all parts' depth along y

# --- Block feeder --------------------------------------------------------------------

_BLOCK = (0.05, 0.03)  # m, half width and height
_PLAY = 0.001  # m between a block and either wall of the magazine
_CRANK, _ROD, _RAM = 0.08, 0.3, 0.15  # m: radius, length, half length
_RAM_HALF = 0.028  # m, half height: a little lower than a block, so that only one is pushed
_OUT = 0.065  # m, where the ram's front turns back; the block it pushed is then clear


def block_feeder_xml(*, blocks: int = 5, speed: float = 3.0, friction: float = 0.3) -> str:
    """`blocks` of 0.5 kg in a magazine, and a crank that turns at `speed` [rad/s]."""
    if blocks < 1:
        raise InvalidInput("blocks", f"is {blocks}, must be at least 1")
    half, tall = _BLOCK
    high = 2 * tall * (blocks + 1)
    slot = 2 * tall + 0.01  # below the magazine's walls
    wall = (high - slot) / 2
    axle = _OUT - 2 * _RAM - _ROD - _CRANK
    pin = axle - _CRANK + _ROD  # of the ram, farthest back: crank and rod in line
    pile = lines(
        f"""\
    <body name="block{k}" pos="{numbers(0, 0, tall * (2 * k + 1))}">
      {_PLANAR}
      <geom type="box" size="{half} {_DEPTH} {tall}" mass="0.5"
            material="{("part", "next")[k % 2]}"/>
    </body>"""
        for k in range(blocks)
    )
    walls = lines(
        f"""\
    <geom name="{name}" type="box" size="0.01 {_DEPTH} {numbers(wall)}"
          pos="{numbers(side * (half + _PLAY + 0.01), 0, slot + wall)}" material="fixed"/>"""
        for name, side in (("left", -1), ("right", 1))
    )
    world = f"""\
    <geom name="table" type="box" size="0.4 {_DEPTH} 0.02" pos="-0.08 0 -0.02" material="fixed"/>
    <geom name="tray" type="box" size="0.3 {_DEPTH} 0.02" pos="0.6 0 -0.12" material="fixed"/>
    <geom name="stop" type="box" size="0.02 {_DEPTH} 0.06" pos="0.92 0 -0.08" material="fixed"/>
{walls}
{pile}
    <body name="crank" pos="{numbers(axle, 0, _RAM_HALF)}">
      <joint name="crank" type="hinge" axis="0 -1 0" armature="0.01"/>
      <geom type="cylinder" fromto="0 0.06 0 0 0.05 0" size="{_CRANK + 0.015}" mass="1"
            {_LEVEL} material="driver"/>
      <body name="rod" pos="{-_CRANK} 0 0">
        <joint type="hinge" axis="0 -1 0"/>
        <geom type="capsule" fromto="0 0 0 {_ROD} 0 0" size="0.01" mass="0.3" {_LEVEL}
              material="other"/>
      </body>
    </body>
    <body name="ram" pos="{numbers(pin + _RAM, 0, _RAM_HALF)}">
      {_PLANAR}
      <geom type="box" size="{_RAM} {_DEPTH} {_RAM_HALF}" mass="2" material="driver"/>
    </body>"""
    below = f"""\
  <equality>
    <connect body1="rod" body2="ram" anchor="{_ROD} 0 0" solref="0.004 1"/>
  </equality>
  <actuator><velocity name="crank" joint="crank" kv="20"/></actuator>
  <keyframe><key name="start" ctrl="{numbers(-speed)}"/></keyframe>"""
    return document(
        "block-feeder",
        world,
        friction=friction,
        below=below,
        center=(0.1, 0, 0.05),
        extent=1.0,
        azimuth=90,
        elevation=-10,
    )


# --- Jack ----------------------------------------------------------------------------

ROCK, ROCK_PERIOD = 0.5, 2.0
"""How far the lever rocks either way [rad], how often [s]."""

_STEM, _TOOTH, _PITCH = 0.015, 0.01, 0.05  # m: rack's half width, radius of teeth and tips
_SEAT = _STEM + _TOOTH  # m from the rack's middle to teeth and to tips in place
_ARM, _REACH = 0.08, 0.1  # m: lever from its axle to a pawl's hinge; from there up to its tip
_TEETH = 12


def jack_xml(*, load: float = 20.0, friction: float = 0.2) -> str:
    """A rack of 2 kg with a `load` [kg] on it, and both pawls below a tooth at the start.

    Rack and load rise by one pitch, 0.05 m, on each stroke of the lever. A tooth that
    presses on a pawl presses it against the rack; one that comes from below turns it away.
    """
    first = _REACH + 2 * _TOOTH  # height of the teeth that rest on the pawls
    top = first + 2 * _PITCH  # of the rack
    low = first - _TEETH * _PITCH
    teeth = lines(
        f"""\
      <geom type="sphere" size="{_TOOTH}" pos="{numbers(side * _SEAT, 0, first - _PITCH * k)}"
            mass="0" contype="2" conaffinity="0" material="other"/>"""
        for side in (-1, 1)
        for k in range(_TEETH)
    )
    pawls = lines(
        f"""\
      <body name="{name}_pawl" pos="{side * _ARM} 0 0">
        <joint type="hinge" axis="0 -1 0" stiffness="0.1" springref="{side}" damping="0.005"/>
        <geom type="capsule" fromto="0 0 0 {numbers(side * (_SEAT - _ARM), 0, _REACH)}"
              size="0.007" mass="0.15" {_LEVEL} material="part"/>
        <geom type="sphere" pos="{numbers(side * (_SEAT - _ARM), 0, _REACH)}" size="{_TOOTH}"
              mass="0.02" contype="0" conaffinity="2" material="driver"/>
      </body>"""
        for name, side in (("left", -1), ("right", 1))
    )
    world = f"""\
    <geom type="cylinder" fromto="0 0.06 0 0 0.02 0" size="0.02" {_LEVEL} material="fixed"/>
    <body name="rack">
      <joint name="rack" type="slide" axis="0 0 1"/>
      <geom type="box" size="{numbers(_STEM, _DEPTH / 2, (top - low) / 2)}" mass="1.5"
            pos="{numbers(0, 0, (top + low) / 2)}" contype="2" conaffinity="0" material="next"/>
      <geom type="box" size="0.1 {_DEPTH} 0.01" pos="{numbers(0, 0, top + 0.01)}" mass="0.5"
            material="next"/>
{teeth}
    </body>
    <body name="load" pos="{numbers(0, 0, top + 0.02 + 0.08)}">
      {_PLANAR}
      <geom type="box" size="0.09 {_DEPTH} 0.08" mass="{numbers(load)}" material="stone"/>
    </body>
    <body name="lever">
      <joint name="lever" type="hinge" axis="0 -1 0" armature="0.05"/>
      <geom type="box" size="{_ARM} 0.008 0.012" pos="0 0.05 0" mass="1" {_LEVEL}
            material="driver"/>
{pawls}
    </body>"""
    below = """\
  <actuator><position name="lever" joint="lever" kp="3000" kv="60"/></actuator>"""
    return document(
        "jack",
        world,
        friction=friction,
        stiffness='solref="0.004 1" solimp="0.95 0.99 0.0001"',
        below=below,
        center=(0, 0, 0.25),
        extent=0.9,
        azimuth=90,
        elevation=-8,
    )


def _rock(model: mujoco.MjModel) -> Controller:
    def controller(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        data.ctrl[0] = ROCK * sin(2 * pi * data.time / ROCK_PERIOD)

    return controller


SCENES = (
    Scene(
        name="block-feeder",
        summary="a crank and a ram push blocks out of a magazine",
        xml=block_feeder_xml,
        control=None,
        start=from_keyframe,
        watch=("ram", "block0"),
        seconds=8.0,
    ),
    Scene(
        name="jack",
        summary="a lever with two pawls lifts a loaded rack on both strokes",
        xml=jack_xml,
        control=_rock,
        start=None,
        watch=("rack", "load"),
        seconds=6.0,
    ),
)
