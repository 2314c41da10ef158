"""Which contacts the overlap's problem of a step grips: paths that bend, at position level.

What a gripper holds while it turns moves on another path than the fingers do (`bridge/arcs.py`).
Where bodies turn alike and a contact sticks, the correction of the step's positions takes back what
these part by, across the face and along it; where it slides, across it.

A face has more contacts than its bodies need, and which of them press is the solver's choice. Those
beside them that do not press, and stay closed as well, are gripped with them: what the correction
is depends on velocities alone.

A large island is gripped only where nothing in it slides: things on a tray, not a heap that
tumbles, of which 125 boxes would take a third more time for paths that nobody follows.
"""

from __future__ import annotations

import numpy as np

from stiction.bridge.arcs import join_alike, parting
from stiction.bridge.layout import number, numbers, offset, pointer, size_of
from stiction.bridge.rows import Key, Place
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind, is_gripped
from stiction.contact.problem.graph import Graph
from stiction.contact.problem.modes import Mode
from stiction.contact.solvers.blocks.workspace import NewtonWorkspace
from stiction.contact.solvers.interior_point.iteration import is_small
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix
from stiction.simulate.time_stepping.config import Config
from stiction.simulate.time_stepping.workspace import Record, Step

_TIMESTEP = offset("mjModel", "opt", "timestep")
_CONTACT_SIZE, _CONTACT = size_of("mjContact"), offset("mjData", "contact")
_POS, _FRAME = offset("mjContact", "pos"), offset("mjContact", "frame")

LEAST_MOTION = 1e-9
"""Motion of a joint in a step beside which no path bends [m, rad]."""

GRIP = 1e4
"""How hard taking back what paths part by along a face is, over what of the bodies moves there.
Normals come first: where both contradict each other, as of a part that stands askew between two
fingers, they have it all. What is left is a ten-thousandth."""

SLIDING_GRIP = 1e-9
"""The same of what slides along the face: it is held across it alone."""

SHALLOW_GRIP = 0.02
"""Overlap up to which an island is gripped, over what a step takes back whole. Bodies that lie
deeper within each other are parted first: rows that hold kept some of a heap there, by
centimetres, in steps of 10 ms."""

UNYIELDING = 1e-8
"""Inverse inertia along a face over that across it, or the other way round, below which bodies
hardly move that way: two fingers of one hand close along their rails and nowhere else. What asked
them to would move the arm."""

PARTING = int(Datum.SURFACE)
"""First of the three columns of `Step.kept` that hold what paths part by, as speeds along the
normal and the two tangents of a contact that is gripped."""

FARTHEST = 0.1
"""Speed of the correction, by energy, over that of the step, up to which it is of second order."""


@lean
def _moves(g: Graph, s: BlockMatrix, k, v, dt):
    """Whether anything of island k moves at speeds v by what counts in a step."""
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            if abs(v[j]) * dt > LEAST_MOTION:
                return True
    return False


@lean_leaf
def _slides(g: Graph, k, step: Step):
    """Whether a contact of island k slides."""
    for at in range(g.members[k], g.members[k + 1]):
        if np.int64(step.record[g.member[at], Record.MODE]) == Mode.SLIDE:
            return True
    return False


@lean_leaf
def _can_grip(b: Blocks, i, newton: NewtonWorkspace):
    """Whether block i is a contact with friction, of surfaces that do not move, that touched before
    the step and along whose face its bodies can move."""
    data = b.data[i]
    grips = b.head[i, Head.KIND] == Kind.CONTACT and b.head[i, Head.ROWS] > 2
    grips = grips and data[Datum.BOUND] == 0.0
    grips = grips and newton.weight[i, 0] > UNYIELDING * newton.weight[i, 1]
    grips = grips and newton.weight[i, 1] > 0.0 and data[Datum.SLIDE] > 0.0
    return grips and data[Datum.SURFACE] == 0.0 and data[Datum.SURFACE_2] == 0.0


@lean_leaf
def closes(i, step: Step, near):
    """Whether the correction closes the gap of contact i, if that is gripped: not one that counts
    as none because another of the pair's is nearer (`bridge.rows.merge_gaps`)."""
    return step.place[i, Place.GAP] <= near or step.place[i, Place.BENT] == 1.0


@lean
def _note_parting(m, d, i, step: Step, dt):
    """Notes what the paths of the bodies of block i part by, if that is a contact of two that turn
    alike; how far that is, else 0 [m]."""
    if step.key[i, Key.INDEX] < 0:
        return 0.0
    contact = pointer(d + _CONTACT) + step.key[i, Key.INDEX] * _CONTACT_SIZE
    at, frame, size = numbers(contact + _POS, 3), numbers(contact + _FRAME, 9), 0.0
    alike, a = parting(m, d, step.key[i, 0], step.key[i, 1], at, step.v_plus, dt)
    if not alike:
        return 0.0
    for r in range(3):
        along = frame[3 * r] * a[0] + frame[3 * r + 1] * a[1] + frame[3 * r + 2] * a[2]
        size += along * along
        along *= step.place[i, Place.RATIO] if r == 2 else 1.0
        step.kept[i, PARTING + r] = 0.5 * dt * along
    return 0.5 * dt * dt * np.sqrt(size)


@lean
def _grip(m, d, config: Config, i, newton: NewtonWorkspace, step: Step, dt):
    """Grips contact i, if its bodies turn alike; how far their paths part there, else 0 [m]."""
    way = _note_parting(m, d, i, step, dt)
    if way > 0.0:
        slides = dt * max(abs(newton.u[i, 1]), abs(newton.u[i, 2])) > config.slack
        gives = max(newton.weight[i, 1], UNYIELDING * newton.weight[i, 0])
        step.record[i, Record.GRIPPED] = (SLIDING_GRIP if slides else GRIP) / gives
    return way


@lean
def _stays_beside(m, g: Graph, k, i, newton: NewtonWorkspace, step: Step, slack, dt):
    """Whether contact i, which nothing presses, stays closed as well beside one that presses and is
    gripped, of the same two bodies."""
    if not dt * abs(newton.u[i, 0]) <= slack:
        return False
    for at in range(g.members[k], g.members[k + 1]):
        o = g.member[at]
        gripped = step.record[o, Record.GRIPPED] > 0.0 and step.record[o, Record.FORCE] > 0.0
        if gripped and join_alike(m, step.key[i], step.key[o]):
            return True
    return False


@lean
def grip_island(
    m, d, config: Config, b: Blocks, g: Graph, s: BlockMatrix, k, newton: NewtonWorkspace,
    step: Step, deep,
):  # fmt: skip
    """Marks contacts of island k, whose overlap is `deep`, that are gripped, and notes in
    `step.kept` what paths part by, as speeds along the rows of contacts, zero where nothing is
    gripped; how far that is at the most [m].

    Of an island that grips all contacts between bodies that turn alike reckon with it, those that
    slide, land or lift as well: four points of one foot would contradict each other else.
    """
    dt, most = number(m + _TIMESTEP), 0.0
    begin, end = g.members[k], g.members[k + 1]
    for at in range(begin, end):
        step.kept[g.member[at], PARTING] = 0.0
    bends = config.bends and deep <= SHALLOW_GRIP * config.shallow
    if not bends or not _moves(g, s, k, step.v_plus, dt):
        return most
    if not is_small(g, k) and _slides(g, k, step):
        return most
    for at in range(begin, end):
        i = g.member[at]
        if np.int64(step.record[i, Record.MODE]) != Mode.SEPARATE and _can_grip(b, i, newton):
            most = max(most, _grip(m, d, config, i, newton, step, dt))
    if not most > config.slack:
        for at in range(begin, end):
            i = g.member[at]
            step.record[i, Record.GRIPPED] = step.kept[i, PARTING] = 0.0
        return most
    for at in range(begin, end):
        i = g.member[at]
        if b.head[i, Head.KIND] != Kind.CONTACT or step.record[i, Record.GRIPPED] > 0.0:
            continue
        stays = _stays_beside(m, g, k, i, newton, step, config.slack, dt)
        if stays and _can_grip(b, i, newton):
            most = max(most, _grip(m, d, config, i, newton, step, dt))
        else:
            _note_parting(m, d, i, step, dt)
    return most


@lean
def is_thrown(b: Blocks, g: Graph, s: BlockMatrix, k, v, step: Step, slack):
    """Whether the correction v (nv,) of island k, if that is gripped, is more than one of second
    order, without overlap or an error of a rigid equality that would ask for it."""
    here, there, gripped = 0.0, 0.0, False
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        gap, kind = step.place[i, Place.GAP], b.head[i, Head.KIND]
        if is_gripped(b, i) or kind == Kind.CONTACT:
            off, gripped = -gap, gripped or kind == Kind.HOLD
        else:
            off = abs(gap) if kind == Kind.HOLD else 0.0
        if off > slack:
            return False
    if not gripped:
        return False
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            mass = b.mass[b.row[j] + j]
            here, there = here + mass * v[j] * v[j], there + mass * step.v_plus[j] * step.v_plus[j]
    return not here <= FARTHEST * FARTHEST * there


@lean
def let_go(b: Blocks, g: Graph, k):
    """The contacts of island k that are gripped may part."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        if is_gripped(b, i):
            b.head[i, Head.KIND], b.head[i, Head.ROWS] = Kind.CONTACT, 1


@lean
def is_gripped_anywhere(g: Graph, k, step: Step):
    """Whether a contact of island k is gripped."""
    for at in range(g.members[k], g.members[k + 1]):
        if step.record[g.member[at], Record.GRIPPED] > 0.0:
            return True
    return False
