"""The scenes of `frontier.py`: what runs, for how long, and what counts as its error.

Five of them must not move at all, and the error is how far any free body got from its start at any
of the samples. The start counts: where contact begins with overlap, bodies that touch to rounding
fall for a step first. `creep` leaves it out: from the middle of the run to its end. Three have a
closed form:

    sliding   a cube launched at 6 m/s, at 30 degrees to the axes, stops after v^2 / (2 mu g) and
              on its line: distance from there to where it lies
    rolling   a ball launched without spin slides for 2 v / (7 mu g) and then rolls at 5 v / 7:
              distance from its place after two seconds
    pushing   a box is pushed over the floor at 0.1 m/s, 10 degrees away from the normal of the
              pusher's face, which is well within friction: it must not move on the pusher

Two have none. In `walking` the quadruped trots over a plane, its controller called once in each
step, so that a longer step is a slower controller too. The error is how far the trunk gets from
where it is in a run of stiction's at a quarter of the finest step that is asked for; `frontier.py`
prints how far from that MuJoCo, tuned, is at the same step. A trunk below 0.15 m has fallen.
The `bin`, 27 bodies of four shapes dropped on each other, has two errors: the deepest overlap in
the second half, found by MuJoCo's collision detection whoever simulated it, and how far the box
that crept most got in the last second. What rolls may roll: only boxes count there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, radians, sin
from typing import NamedTuple

import mujoco
import numpy as np

from stiction import scenes
from stiction.scenes.mjcf import FLOOR, document, numbers

SAMPLE = 0.1
"""s between samples: a multiple of every step size."""
GRAVITY = 9.81
SPEED, HEADING, FRICTION = 6.0, 30.0, 0.5
BALL_SPEED, BALL_RADIUS = 3.0, 0.05


class Ended(Exception):
    """A run that cannot go on, and why."""


class Samples(NamedTuple):
    """What a run leaves behind to be measured."""

    model: mujoco.MjModel
    time: np.ndarray
    """(n,) [s], the start included."""
    qpos: np.ndarray
    """(n, nq)"""
    reference: np.ndarray | None = None
    """(n, nq) of a run with a much finer step, for an error that is a difference to it."""


@dataclass(frozen=True)
class Case:
    """One scene and its errors [m], each a panel of the figure."""

    name: str
    load: Callable[[], scenes.Loaded]
    errors: dict[str, Callable[[Samples], float]]
    """By the panel's title."""
    seconds: float = 5.0
    lost: Callable[[mujoco.MjModel, list[np.ndarray]], str] = lambda model, states: ""
    """How the run has failed by the last of its states, or empty."""
    peers: bool = True
    """Whether engines other than MuJoCo can be given the same scene."""
    still: bool = False
    """Whether nothing in it should move, so that `creep` is an error too."""
    smooth: bool = False
    """Whether the motion between a few events is the point, which `EventDriven` is for."""
    referred: bool = False
    """Whether its errors need a reference."""


def free_places(samples):
    """(n, bodies, 3) [m] of bodies with a free joint."""
    model = samples.model
    free = model.jnt_qposadr[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
    return samples.qpos[:, free[:, None] + np.arange(3)]


def farthest(samples):
    places = free_places(samples)
    return float(np.linalg.norm(places - places[0], axis=2).max())


def creep(samples):
    """How far the free body that moved most is at the end from where it was halfway [m]."""
    return farthest(samples._replace(qpos=samples.qpos[[len(samples.qpos) // 2, -1]]))


def from_stopping_point(samples):
    course = radians(HEADING)
    way = SPEED**2 / (2 * FRICTION * GRAVITY)
    stop = way * np.array([cos(course), sin(course)])
    return float(np.linalg.norm(free_places(samples)[-1, 0, :2] - stop))


def from_rolling_place(samples):
    slides = 2 * BALL_SPEED / (7 * FRICTION * GRAVITY)
    way = BALL_SPEED * slides - FRICTION * GRAVITY * slides**2 / 2
    way += 5 / 7 * BALL_SPEED * (samples.time[-1] - slides)
    return float(np.linalg.norm(free_places(samples)[-1, 0, :2] - [way, 0.0]))


def on_the_pusher(samples):
    """Of the box, in the axes of the pusher, which does not turn."""
    joint = samples.model.joint("pusher")
    axis = samples.model.jnt_axis[joint.id]
    travel = samples.qpos[:, joint.qposadr[0]]
    places = free_places(samples)[:, 0] - travel[:, None] * axis
    return float(np.linalg.norm(places - places[0], axis=1).max())


def deepest_overlap(samples):
    model, data, deepest = samples.model, mujoco.MjData(samples.model), 0.0
    for qpos in samples.qpos[len(samples.qpos) // 2 :]:
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(model, data)
        for contact in data.contact:
            deepest = max(deepest, overlap(model, data, contact))
    return deepest


def overlap(model, data, contact):
    """How deep the two geoms of a contact are within each other [m]. MuJoCo has a cylinder that
    stands upright on a plane 0.3 mm within it: on planes it is worked out here."""
    plane, geom = contact.geom
    if model.geom_type[plane] != mujoco.mjtGeom.mjGEOM_PLANE:
        return -contact.dist
    normal, size = data.geom_xmat[plane].reshape(3, 3)[:, 2], model.geom_size[geom]
    x, y, z = np.abs(data.geom_xmat[geom].reshape(3, 3).T @ normal)
    reach = {
        mujoco.mjtGeom.mjGEOM_SPHERE: size[0],
        mujoco.mjtGeom.mjGEOM_CAPSULE: size[0] + z * size[1],
        mujoco.mjtGeom.mjGEOM_CYLINDER: np.hypot(x, y) * size[0] + z * size[1],
        mujoco.mjtGeom.mjGEOM_BOX: np.array([x, y, z]) @ size,
    }
    height = (data.geom_xpos[geom] - data.geom_xpos[plane]) @ normal
    return reach[mujoco.mjtGeom(model.geom_type[geom])] - height


def creep_of_boxes(samples):
    """How far the box that moved most is from where it was a second before the end."""
    model = samples.model
    names = [model.body(model.jnt_bodyid[j]).name for j in range(model.njnt)]
    boxes = [i for i, name in enumerate(names) if name.startswith("box")]
    places = free_places(samples)[:, boxes]
    before = np.searchsorted(samples.time, samples.time[-1] - 1.0 - SAMPLE / 2)
    return float(np.linalg.norm(places[-1] - places[before], axis=1).max())


def from_reference(samples):
    """Of the first free body."""
    there = free_places(samples._replace(qpos=samples.reference))
    return float(np.linalg.norm(free_places(samples)[:, 0] - there[:, 0], axis=1).max())


def dropped(model, states):
    """Something that should not move is half a metre away."""
    samples = Samples(model, np.zeros(2), np.array([states[0], states[-1]]))
    return "lost" if farthest(samples) > 0.5 else ""


def fallen(model, states):
    return "fell" if states[-1][2] < 0.15 else ""


def shipped(name, **options):
    return lambda: scenes.load(name, **options)


def started(xml):
    """A scene of this file, at its first keyframe."""

    def load():
        model = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        mujoco.mj_forward(model, data)
        return scenes.Loaded(model, data, None)

    return load


ROLLING = document(
    "rolling",
    f"""\
    {FLOOR}
    <body name="ball" pos="0 0 {BALL_RADIUS}">
      <freejoint/>
      <geom type="sphere" size="{BALL_RADIUS}" mass="1" material="part"/>
    </body>""",
    friction=FRICTION,
    below=f'  <keyframe><key qvel="{BALL_SPEED} 0 0 0 0 0"/></keyframe>',
)

PUSHING = document(
    "pushing",
    f"""\
    {FLOOR}
    <body name="pusher" pos="-0.07 0.01 0.05">
      <joint name="pusher" type="slide" axis="{numbers(cos(radians(10)), sin(radians(10)), 0)}"/>
      <geom type="box" size="0.02 0.04 0.03" mass="1" material="driver"/>
    </body>
    <body name="box" pos="0 0 0.05">
      <freejoint/>
      <geom type="box" size="0.05 0.05 0.05" mass="1" material="part"/>
    </body>""",
    friction=FRICTION,
    below="""\
  <actuator><velocity name="pusher" joint="pusher" kv="1000"/></actuator>
  <keyframe><key ctrl="0.1"/></keyframe>""",
)

CASES = {
    case.name: case
    for case in (
        Case("pinch", shipped("pinch"), {"pinch": farthest}, lost=dropped, still=True),
        Case(
            "grasp",
            shipped("grasp", boxes=8),
            {"grasp of 8 boxes": farthest},
            lost=dropped,
            still=True,
        ),
        Case(
            "stack",
            shipped("stack", top_mass=1000.0),
            {"stack, 1000:1 on top": farthest},
            lost=dropped,
            still=True,
        ),
        Case("arch", shipped("arch"), {"arch": farthest}, lost=dropped, still=True),
        Case("incline", shipped("incline"), {"incline": farthest}, lost=dropped, still=True),
        Case(
            "sliding",
            shipped("sliding-cube", speed=SPEED, heading=HEADING, friction=FRICTION),
            {"sliding": from_stopping_point},
            seconds=2.0,
            smooth=True,
        ),
        Case(
            "rolling",
            started(ROLLING),
            {"rolling": from_rolling_place},
            seconds=2.0,
            smooth=True,
        ),
        Case("pushing", started(PUSHING), {"pushing": on_the_pusher}),
        Case(
            "walking",
            shipped("quadruped", roughness=0.0),
            {"walking": from_reference},
            lost=fallen,
            peers=False,
            referred=True,
        ),
        Case(
            "bin",
            shipped("bin"),
            {"bin: overlap": deepest_overlap, "bin: creep of boxes": creep_of_boxes},
        ),
    )
}
