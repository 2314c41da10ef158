"""How contacts of a pair of geoms change as one geom moves past the other.

Where a contact is, its normal and its gap are functions of how the two geoms stand to each other:
six coordinates, whatever the joints between them. Where two surfaces meet at one point, or a plane
meets corners, they have closed forms (`curvature.py`). Elsewhere the second geom is turned and
moved a little along each coordinate, the pair alone is collided again, and central differences are
taken. Where the first geom moves, it is as if both did, and the second one back. Collisions that
are found by iteration are found to a finer tolerance here than in a step, with a model that differs
in nothing else.

A sphere that turns is the same sphere: it is moved only. Two boxes face on face are an exception:
MuJoCo takes the normal of one face or of the other, and where that is the same the one that stands
straight. Each box is turned by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.bridge.geom_types import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, PLANE, SPHERE
from stiction.bridge.layout import integers, numbers, offset, pointer, size_of
from stiction.bridge.rows import Key, Place
from stiction.contact.problem.arrays import Array
from stiction.kernels.compile import kernel, lean, lean_leaf
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.curvature import (
    CHANGES,
    GAP,
    NORMAL,
    POINT,
    STRAIGHT,
    Meet,
    allocate_meet,
    differentiate_meeting,
)
from stiction.simulate.derivatives.faces import (
    Planes,
    allocate_planes,
    differentiate_face,
    take_boxes,
)
from stiction.terrain.height_field import is_on_face
from stiction.terrain.meetings import field_of
from stiction.terrain.pairs import allocate, meet_pair

_CONTACT_SIZE = size_of("mjContact")
_REACH, _FRAME = offset("mjContact", "includemargin"), offset("mjContact", "frame")
_CONTACT = offset("mjData", "contact")
_TYPE, _NGEOM = offset("mjModel", "geom_type"), offset("mjModel", "ngeom")
_MODEL_SIZE = size_of("mjModel")
_TOLERANCE, _ITERATIONS = (
    offset("mjModel", "opt", f"ccd_{name}") for name in ("tolerance", "iterations")
)
_XPOS, _XMAT = offset("mjData", "geom_xpos"), offset("mjData", "geom_xmat")

CLOSED_FORM_STEP = 2e-7
"""How far geoms are turned [rad], and moved over the size of what moves, where their contacts come
from closed forms: rounding is small, and what lies face on face must not seem to lie on an edge."""

ITERATED_STEP = 1e-5
"""The same where contacts are found by iterations, whose tolerance shows."""

FOUND_AGAIN = 1e-6
"""Distance from where a contact was, over the size of what moves, up to which it is found again."""

FOUND_ROUGHLY = 1e-2
"""The same where contacts are found by iterations: where a round body lies on a flat one, the point
wanders by far more than the tolerance."""

FINEST_COLLISION = 1e-14
"""Tolerance of MuJoCo's iterations [m]."""

MOST_ITERATIONS = 200
"""Of them, at most."""

SPARE = 1.0 + 1e-3
"""Of the distance up to which contacts were looked for: how far they are looked for again."""


@packed
class Geometry(NamedTuple):
    """Contacts and their changes; n blocks."""

    frame: Array  # (n, 3, 3) normal and tangents
    follows: Array  # (n,) 1 where tangents follow from the normal, 0 where from the geoms
    change: Array  # (n, 2, CHANGES, 6) for turns and moves of either geom, about the pair's first
    ends: Array  # (2, n, CHANGES) at both ends of a move
    found: Array  # (2, n) whether a contact was there
    place: Array  # (12,) of a geom
    raw: Array
    contact: NDArray[np.uint8]
    better: Array
    room: Array
    out: Array
    radii: Array  # this and the next three: see `Meet`
    ends_of: Array
    local: Array
    three: Array
    finer: NDArray[np.uint8]  # a model that finds collisions more precisely
    box_place: Array  # this and the next nine: see `Planes`
    box_turn: Array
    box_size: Array
    face: NDArray[np.int64]
    off: Array
    normal: Array
    inverse: Array
    share: Array
    end: Array
    carries: Array


def allocate_geometry(n: int) -> Geometry:
    """Room for n blocks."""
    planes = allocate_planes()
    return Geometry(
        np.zeros((n, 3, 3)), np.zeros(n), np.zeros((n, 2, CHANGES, 6)), np.zeros((2, n, CHANGES)),
        np.zeros((2, n)), np.zeros(12), *allocate(), *allocate_meet(),
        np.zeros(_MODEL_SIZE, np.uint8), *planes[:3], planes.face, *planes[4:],
    )  # fmt: skip


@lean
def _move_geom(d, geom, kept, centre, axis, amount):
    """Puts the geom where `kept` (12,) has it, turned about `centre` (axis 0 to 2) or moved (3 to
    5)."""
    xpos = numbers(pointer(d + _XPOS) + 24 * geom, 3)
    xmat = numbers(pointer(d + _XMAT) + 72 * geom, 9)
    for c in range(3):
        xpos[c] = kept[c]
    for c in range(9):
        xmat[c] = kept[3 + c]
    if axis > 2:
        xpos[axis - 3] += amount
        return
    a, b = (axis + 1) % 3, (axis + 2) % 3
    cosine, sine = np.cos(amount), np.sin(amount)
    x, y = kept[a] - centre[a], kept[b] - centre[b]
    xpos[a] = centre[a] + cosine * x - sine * y
    xpos[b] = centre[b] + sine * x + cosine * y
    for c in range(3):
        x, y = kept[3 + 3 * a + c], kept[3 + 3 * b + c]
        xmat[3 * a + c] = cosine * x - sine * y
        xmat[3 * b + c] = sine * x + cosine * y


@kernel
def _look_again(table, m, d, ground, geoms, reach, begin, end, place, side, g: Geometry):
    """Finds the contacts of a pair again, each block's as the nearest one."""
    ends, found, out = g.ends, g.found, g.out
    count = meet_pair(
        table, m, d, ground, geoms[0], geoms[1], reach, g.raw, g.contact, g.better, g.room, out
    )  # fmt: skip
    for i in range(begin, end):
        best, which = np.inf, -1
        for k in range(count):
            apart = 0.0
            for c in range(3):
                apart += (out[k, 1 + c] - place[i, Place.X + c]) ** 2
            if apart < best:
                best, which = apart, k
        found[side, i] = 1.0 if which >= 0 else 0.0
        if which >= 0:
            for c in range(CHANGES):
                ends[side, i, c] = out[which, c]
            g.follows[i] = out[which, CHANGES]


@lean
def _subtract(begin, end, which, axis, eps, place, g: Geometry):
    """Column `axis` of the changes with a geom; where a contact is there on one side only, from
    that side."""
    ends, found = g.ends, g.found
    for i in range(begin, end):
        sides = found[0, i] + found[1, i]
        for c in range(CHANGES):
            base = place[i, Place.GAP] if c == GAP else 0.0
            if POINT <= c < NORMAL:
                base = place[i, Place.X + c - POINT]
            elif c >= NORMAL:
                base = g.frame[i, (c - NORMAL) // 3, (c - NORMAL) % 3]
            plus = ends[0, i, c] if found[0, i] > 0.0 else base
            minus = ends[1, i, c] if found[1, i] > 0.0 else base
            g.change[i, which, c, axis] = (plus - minus) / (sides * eps) if sides > 0.0 else 0.0


@lean
def _refer_to_point(begin, end, which, centre, place, g: Geometry):
    """Turns about `centre` become turns about the point of the pair's first contact."""
    x = centre[0] - place[begin, Place.X]
    y = centre[1] - place[begin, Place.X + 1]
    z = centre[2] - place[begin, Place.X + 2]
    for i in range(begin, end):
        change = g.change[i, which]
        for c in range(CHANGES):
            u, v, w = change[c, 3], change[c, 4], change[c, 5]
            change[c, 0] += w * y - v * z
            change[c, 1] += u * z - w * x
            change[c, 2] += v * x - u * y


@kernel
def _move_one(
    table, m, d, ground, which, axes, begin, end, key, place, reach, far, size, g: Geometry
):
    """Changes with one geom of a pair, its first or its second, along the axes from axes[0] to
    axes[1], turns before moves: it turns about its own centre, so that two alike, face on face,
    stay in balance."""
    geom, kept = key[begin, which], g.place
    centre = kept[:3]
    for c in range(3):
        kept[c] = numbers(pointer(d + _XPOS) + 24 * geom, 3)[c]
    for c in range(9):
        kept[3 + c] = numbers(pointer(d + _XMAT) + 72 * geom, 9)[c]
    for axis in range(axes[0], axes[1]):
        eps = far if axis < 3 else far * size
        for side in range(2):
            _move_geom(d, geom, kept, centre, axis, eps - 2.0 * side * eps)
            _look_again(table, m, d, ground, key[begin], reach, begin, end, place, side, g)
        _subtract(begin, end, which, axis, eps, place, g)
    _move_geom(d, geom, kept, centre, 3, 0.0)
    _refer_to_point(begin, end, which, centre, place, g)


@lean
def _move_back(begin, end, which, place, g: Geometry):
    """Changes with the first geom of a pair (which: 0) or the second, from those with the other."""
    for i in range(begin, end):
        ours, theirs, frame = g.change[i, which], g.change[i, 1 - which], g.frame[i]
        for c in range(CHANGES):
            for axis in range(6):
                ours[c, axis] = -theirs[c, axis]
        for axis in range(3):
            a, b = (axis + 1) % 3, (axis + 2) % 3
            away = place[i, Place.X + axis] - place[begin, Place.X + axis]
            ours[POINT + axis, 3 + axis] += 1.0
            ours[POINT + a, b] += away
            ours[POINT + b, a] -= away
            for r in range(2):
                ours[NORMAL + 3 * r + a, axis] -= frame[r, b]
                ours[NORMAL + 3 * r + b, axis] += frame[r, a]


@lean
def _stop_turns(begin, end, which, g: Geometry):
    """No changes as a geom turns about its own centre."""
    for i in range(begin, end):
        for c in range(CHANGES):
            for axis in range(3):
                g.change[i, which, c, axis] = 0.0


@lean
def _are_found(begin, end, place, near, g: Geometry):
    """Whether the contacts just found are those of the blocks."""
    for i in range(begin, end):
        if g.found[0, i] == 0.0 or abs(g.ends[0, i, GAP] - place[i, Place.GAP]) > near:
            return False
        for c in range(3):
            if abs(g.ends[0, i, POINT + c] - place[i, Place.X + c]) > near:
                return False
    return True


@lean_leaf
def _is_exact(first, second):
    """Whether MuJoCo finds contacts of these types of geoms without iterations; the first is not
    the greater."""
    return first == PLANE or (
        (first in (SPHERE, CAPSULE, BOX)) and (second in (SPHERE, CAPSULE, BOX))
    )


@kernel
def _refine(m, out):
    """Address of a model as the one at m, but with finer collisions; its bytes are `out`."""
    words = out.shape[0] // 8
    given, copy = numbers(m, words), numbers(out.ctypes.data, words)
    for k in range(words):
        copy[k] = given[k]
    address = out.ctypes.data
    numbers(address + _TOLERANCE, 1)[0] = min(numbers(m + _TOLERANCE, 1)[0], FINEST_COLLISION)
    least = integers(address + _ITERATIONS, 1)
    least[0] = max(least[0], MOST_ITERATIONS)
    return np.int64(address)


@lean_leaf
def _meets_plane(first, second):
    """Whether these are a plane and what meets it in corners, or in one point."""
    known = second in (SPHERE, CAPSULE, ELLIPSOID, BOX, MESH)
    return first == PLANE and known


@lean_leaf
def _meets_once(first, second):
    """Whether contacts of these types of geoms, if there is but one, join the nearest points."""
    known = first in (SPHERE, CAPSULE, ELLIPSOID, CYLINDER)
    return known and second in (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX)


@lean_leaf
def _stay_at_ends(radii, far):
    """Whether contacts stay where they are on both surfaces, though there are others beside them:
    of balls, corners and faces, which are curved as much in all directions, or of the rim of a
    cylinder that lies on a face. far: radius of what is straight."""
    even = radii[0, 1] == 0.0 and radii[1, 1] == 0.0
    even = even and radii[0, 0] == radii[0, 2] and radii[1, 0] == radii[1, 2]
    return even or min(radii[0, 0], radii[0, 2]) == far or min(radii[1, 0], radii[1, 2]) == far


@lean
def _close(m, d, begin, end, key, place, size, kinds, g: Geometry):
    """Changes of a pair's contacts by closed forms; whether they have them all. kinds: the types of
    its geoms."""
    meet = Meet(g.radii, g.ends_of, g.local, g.three)
    about = place[begin, Place.X : Place.X + 3]
    for i in range(begin, end):
        point = place[i, Place.X : Place.X + 3]
        if not differentiate_meeting(
            m, d, key[begin, 0], key[begin, 1], g.frame[i], place[i, Place.GAP], point, about,
            size, g.follows[i] == 0.0, meet, g.change[i],
        ):  # fmt: skip
            return False
        several = _meets_once(kinds[0], kinds[1]) and end > begin + 1
        if several and not _stay_at_ends(g.radii, STRAIGHT * size):
            return False
    return True


@lean
def _close_faces(m, d, begin, end, key, place, size, g: Geometry):
    """Changes of the contacts of two boxes by closed forms; whether they have them all."""
    planes = Planes(
        g.box_place, g.box_turn, g.box_size, g.face, g.off, g.normal, g.inverse, g.share, g.end,
        g.carries,
    )  # fmt: skip
    carrying = take_boxes(m, d, key[begin, 0], key[begin, 1], g.frame[begin], planes)
    if carrying < 0:
        return False
    about, n = place[begin, Place.X : Place.X + 3], g.frame[begin, 0]
    for i in range(begin, end):
        for c in range(3):
            if g.frame[i, 0, c] != n[c]:
                return False
        point = place[i, Place.X : Place.X + 3]
        if not differentiate_face(
            carrying, n, place[i, Place.GAP], point, about, size, planes, g.change[i]
        ):
            return False
    return True


@kernel
def _lie_on_faces(d, ground, begin, end, key, place, second, g: Geometry):
    """Whether the contacts of a pair are those of corners, or round ends, with triangles of a
    height field. second: type of the other geom."""
    if ground is None:
        return False
    terrain, first = ground[0], key[begin, 0]
    if terrain.field[first] < 0 or terrain.shape[key[begin, 1]] < 0:
        return False
    if second not in (SPHERE, CAPSULE, BOX):
        return False
    field = field_of(terrain, terrain.field[first])
    origin = numbers(pointer(d + _XPOS) + 24 * first, 3)
    turn = numbers(pointer(d + _XMAT) + 72 * first, 9)
    for i in range(begin, end):
        x, y, a, b, c = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(3):
            n = g.frame[i, 0, k]
            off = place[i, Place.X + k] - 0.5 * place[i, Place.GAP] * n - origin[k]
            x, y = x + turn[3 * k] * off, y + turn[3 * k + 1] * off
            a, b, c = a + turn[3 * k] * n, b + turn[3 * k + 1] * n, c + turn[3 * k + 2] * n
        if not is_on_face(field, x, y, (a, b, c)):
            return False
        g.follows[i] = 1.0
    return True


@kernel
def _difference(table, m, d, ground, begin, end, key, place, reach, size, first, second, g):
    """Changes of a pair's contacts by differences."""
    far = CLOSED_FORM_STEP if _is_exact(first, second) else ITERATED_STEP
    moved, axes = 1, (0, 6)
    if first == SPHERE or second == SPHERE:  # whose turns change nothing
        moved, axes = (1 if second == SPHERE else 0), (3, 6)
        _stop_turns(begin, end, moved, g)
    _move_one(table, m, d, ground, moved, axes, begin, end, key, place, reach, far, size, g)
    _move_back(begin, end, 1 - moved, place, g)
    if first == BOX and second == BOX:
        axes = (0, 3)
        _move_one(table, m, d, ground, 0, axes, begin, end, key, place, reach, far, size, g)


@kernel
def differentiate_contacts(table, m, d, ground, count, key, place, needed, size, g: Geometry):
    """Fills frames and changes of all blocks that are contacts of geoms and needed (n,), a pair's
    all or none; whether the contacts are found where they are. ground: `terrain.Ground.features`;
    size: of what moves [m], that moves are measured by."""
    contacts = pointer(d + _CONTACT)
    kinds = integers(pointer(m + _TYPE), pointer(m + _NGEOM))
    begin, finer = 0, np.int64(0)
    while begin < count:
        end = begin + 1
        if key[begin, Key.INDEX] < 0 or needed[begin] == 0:
            begin = end
            continue
        while end < count and key[end, 0] == key[begin, 0] and key[end, 1] == key[begin, 1]:
            end += 1
        first, second = kinds[key[begin, 0]], kinds[key[begin, 1]]
        for i in range(begin, end):
            frame = numbers(contacts + key[i, Key.INDEX] * _CONTACT_SIZE + _FRAME, 9)
            for c in range(9):
                g.frame[i, c // 3, c % 3] = frame[c]
            g.follows[i] = 0.0 if second == CAPSULE else 1.0
        pair = (first, second)
        flat = _meets_plane(first, second)
        flat = flat or _lie_on_faces(d, ground, begin, end, key, place, second, g)
        if flat and _close(m, d, begin, end, key, place, size, pair, g):
            begin = end
            continue
        on_face = first == BOX and second == BOX
        if on_face and _close_faces(m, d, begin, end, key, place, size, g):
            begin = end
            continue
        reach = SPARE * numbers(contacts + key[begin, Key.INDEX] * _CONTACT_SIZE + _REACH, 1)[0]
        near = FOUND_AGAIN * size
        if not _is_exact(first, second):
            near = FOUND_ROUGHLY * size
            if finer == 0:
                finer = _refine(m, g.finer)
        model = m if finer == 0 else finer
        _look_again(table, model, d, ground, key[begin], reach, begin, end, place, 0, g)
        if not _are_found(begin, end, place, near, g):
            return False
        ends = first in (CAPSULE, CYLINDER) and second in (CYLINDER, BOX)
        once = end == begin + 1 or ends
        once = once and g.follows[begin] == 1.0 and _meets_once(first, second)
        if not (once and _close(m, d, begin, end, key, place, size, pair, g)):
            _difference(
                table, model, d, ground, begin, end, key, place, reach, size, first, second, g
            )
        begin = end
    return True
