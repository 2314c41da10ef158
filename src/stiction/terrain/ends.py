"""Flat ends of cylinders on flat faces, where MuJoCo gives three or four points of a rim.

A can stands on the whole disc of its end. Three points of the rim, or four, carry it over a
triangle or a square: it would tip about a chord, up to half a radius before its edge, and on the
far side of a chord sink in. Where an end and a face, of a plane, of a box or of another end, are
all but parallel, contacts are

    rim on face       six points of the rim, one of them below the load: where a line of gravity
                      through the centre of mass leaves the face; and the point that is nearest
    corner on end     corners of a box below the end
    rim over edge     where the rim, as seen along the face's normal, crosses what bounds the face

each with its own distance. Which points are met follows from the load and from the cylinder's own
axes, not from the tilt, which is rounding in what lies flat. A load that other contacts bring may
lie between two of the six, 0.87 of a radius out or more; a tilt of a hair then brings the nearest
point of the rim below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import bodies, layout
from stiction.bridge.geom_types import BOX, CYLINDER, PLANE, kind_of, kinds_of
from stiction.bridge.layout import offset
from stiction.kernels.compile import kernel, leaf
from stiction.terrain.contacts import FRAME, GAP, GEOM, NORMAL, POINT, frame_of

Array = NDArray[np.float64]

FLAT_TILT = 0.05
"""Sine of the angle between an end and the normal of a contact from which it is met by one point of
its rim."""

ON_RIM = 6
"""Points of a rim."""

BESIDE_AXIS = 0.5
"""Distance of a load from the axis, over the radius, from which a point of the rim is below it.
Less tips nothing."""

ON_BORDER = 1e-6
"""Distance from the border of a face, over the radius, within which a point is on it."""

NEARER_ON_RIM = 1e-9
"""Distance, over the radius, by which the nearest point of a rim must be nearer than six others to
be met."""

CENTRE, OUTWARD, ALONG, ACROSS, HALF, RADIUS, FACE = 0, 3, 6, 9, 12, 14, 15
"""Columns of a face: its centre, its outward normal, two axes in it, half of its lengths along
these, the radius of a round one or 0."""

# Kernels, typed by Numba and not here.
pointer: Any = layout.pointer
integers: Any = layout.integers
numbers: Any = layout.numbers
body_of_geom: Any = bodies.body_of_geom
centre_of_tree: Any = bodies.centre_of_tree

_GRAVITY, _GEOM_SIZE = offset("mjModel", "opt", "gravity"), offset("mjModel", "geom_size")


@leaf
def meets_faces(m: int, first: int, second: int) -> bool:
    """Whether one of two geoms is a cylinder, and the other one has flat faces."""
    a, b = kinds_of(m, first, second)
    if b == CYLINDER:
        return a in (PLANE, CYLINDER, BOX)
    return a == CYLINDER and b == BOX


@kernel
def put_face(m: int, d: int, geom: int, n: Array, sign: float, face: Array) -> bool:
    """face (FACE,) := the flat face of a geom that looks along sign * n; whether there is one."""
    kind = kind_of(m, geom)
    size = numbers(pointer(m + _GEOM_SIZE) + 24 * geom, 3)
    place, turn = frame_of(d, geom)
    axis, lean = 2, 0.0
    for c in range(3):
        along = sign * (turn[0, c] * n[0] + turn[1, c] * n[1] + turn[2, c] * n[2])
        if c == 2 or (kind == BOX and abs(along) > np.sqrt(0.5)):
            axis, lean = c, along
            if abs(along) > np.sqrt(0.5):
                break
    if 1.0 - lean * lean > FLAT_TILT * FLAT_TILT or (kind == PLANE and lean < 0.0):
        return False
    far = size[axis] if kind == BOX else size[1]
    side = 1.0 if lean > 0.0 else -1.0
    a, b = (axis + 1) % 3, (axis + 2) % 3
    for c in range(3):
        face[OUTWARD + c] = side * turn[c, axis]
        face[CENTRE + c] = place[c] + (0.0 if kind == PLANE else far * face[OUTWARD + c])
        face[ALONG + c], face[ACROSS + c] = turn[c, a], turn[c, b]
    face[HALF], face[HALF + 1] = (size[a], size[b]) if kind == BOX else (np.inf, np.inf)
    face[RADIUS] = size[0] if kind == CYLINDER else 0.0
    return True


@leaf
def columns_dot(a: Array, i: int, b: Array, j: int) -> float:
    """Product of the vectors (3,) in a from i on, and in b from j on."""
    return a[i] * b[j] + a[i + 1] * b[j + 1] + a[i + 2] * b[j + 2]


@leaf
def is_over(face: Array, p: Array, spare: float) -> bool:
    """Whether a point lies over a face; spare: how far beside it still counts."""
    x, y, z = p[0] - face[CENTRE], p[1] - face[CENTRE + 1], p[2] - face[CENTRE + 2]
    u = x * face[ALONG] + y * face[ALONG + 1] + z * face[ALONG + 2]
    v = x * face[ACROSS] + y * face[ACROSS + 1] + z * face[ACROSS + 2]
    if face[RADIUS] > 0.0:
        return np.hypot(u, v) <= face[RADIUS] + spare
    return abs(u) <= face[HALF] + spare and abs(v) <= face[HALF + 1] + spare


@leaf
def height_over(face: Array, p: Array) -> float:
    """Height of a point over the plane of a face."""
    x, y, z = p[0] - face[CENTRE], p[1] - face[CENTRE + 1], p[2] - face[CENTRE + 2]
    return x * face[OUTWARD] + y * face[OUTWARD + 1] + z * face[OUTWARD + 2]


@leaf
def put_on_rim(disc: Array, angle: float, p: Array) -> None:
    """p (3,) := a point of the rim of a disc."""
    x, y = disc[RADIUS] * np.cos(angle), disc[RADIUS] * np.sin(angle)
    for c in range(3):
        p[c] = disc[CENTRE + c] + x * disc[ALONG + c] + y * disc[ACROSS + c]


@leaf
def meet_face(face: Array, p: Array, sign: float, out: Array, count: int) -> int:
    """A point on a face as a contact into out; sign: 1 if the face is of the first geom, else -1.
    How many there are."""
    if count == out.shape[0]:
        return count
    gap = height_over(face, p)
    out[count, GAP] = gap
    for c in range(3):
        out[count, POINT + c] = p[c] - 0.5 * gap * face[OUTWARD + c]
        out[count, NORMAL + c] = sign * face[OUTWARD + c]
    return count + 1


@kernel
def put_load(m: int, d: int, geoms: NDArray[np.int32], face: Array, p: Array) -> None:
    """p (3,) := where a line of gravity through the centre of mass of what moves leaves the plane
    of a face."""
    # Of the world and a body, the body; else the later one.
    moves = max(body_of_geom(m, geoms[0]), body_of_geom(m, geoms[1]))
    com = centre_of_tree(m, d, moves)
    gravity = numbers(m + _GRAVITY, 3)
    fall = columns_dot(gravity, 0, face, OUTWARD)
    height = height_over(face, com)
    for c in range(3):
        way = face[OUTWARD + c] if fall == 0.0 else gravity[c] / fall
        p[c] = com[c] - height * way


@kernel
def meet_rim(disc: Array, face: Array, load: Array, sign: float, spare: float, out: Array) -> int:
    """Points of the rim of a disc on a face into out; see the head. sign: 1 if the face is of the
    first geom, else -1; spare: see `is_over`. How many there are."""
    p, radius = np.empty(3), disc[RADIUS]
    x, y, z = load[0] - disc[CENTRE], load[1] - disc[CENTRE + 1], load[2] - disc[CENTRE + 2]
    u = x * disc[ALONG] + y * disc[ALONG + 1] + z * disc[ALONG + 2]
    v = x * disc[ACROSS] + y * disc[ACROSS + 1] + z * disc[ACROSS + 2]
    start = np.arctan2(v, u) if np.hypot(u, v) > BESIDE_AXIS * radius else 0.0
    count, least = 0, np.inf
    for k in range(ON_RIM):
        put_on_rim(disc, start + k * (2.0 * np.pi / ON_RIM), p)
        least = min(least, height_over(face, p))
        if is_over(face, p, spare):
            count = meet_face(face, p, sign, out, count)
    u, v = columns_dot(disc, ALONG, face, OUTWARD), columns_dot(disc, ACROSS, face, OUTWARD)
    if u != 0.0 or v != 0.0:
        put_on_rim(disc, np.arctan2(-v, -u), p)
        nearer = height_over(face, p) < least - NEARER_ON_RIM * radius
        if nearer and is_over(face, p, spare):
            count = meet_face(face, p, sign, out, count)
    return count


@kernel
def cross_edges(disc: Array, face: Array, sign: float, out: Array) -> int:
    """Where the rim of a disc crosses the edges of a box' face, into out; how many there are."""
    p, count = np.empty(3), 0
    for k in range(2):
        axis = ALONG if k == 0 else ACROSS
        u = disc[RADIUS] * columns_dot(disc, ALONG, face, axis)
        v = disc[RADIUS] * columns_dot(disc, ACROSS, face, axis)
        wide, middle = np.hypot(u, v), np.arctan2(v, u)
        for side in (-1.0, 1.0):
            level = side * face[HALF + k]
            for c in range(3):
                level -= (disc[CENTRE + c] - face[CENTRE + c]) * face[axis + c]
            if abs(level) >= wide:
                continue
            swing = np.arccos(level / wide)
            for angle in (middle - swing, middle + swing):
                put_on_rim(disc, angle, p)
                if is_over(face, p, ON_BORDER * disc[RADIUS]):
                    count = meet_face(face, p, sign, out, count)
    return count


@kernel
def cross_rims(disc: Array, face: Array, sign: float, out: Array) -> int:
    """Where the rim of a disc crosses the one of another, into out; how many there are."""
    p, x = np.empty(3), np.empty(3)
    for c in range(3):
        x[c] = face[CENTRE + c] - disc[CENTRE + c]
    u = x[0] * disc[ALONG] + x[1] * disc[ALONG + 1] + x[2] * disc[ALONG + 2]
    v = x[0] * disc[ACROSS] + x[1] * disc[ACROSS + 1] + x[2] * disc[ACROSS + 2]
    apart, radius, other = np.hypot(u, v), disc[RADIUS], face[RADIUS]
    if not abs(radius - other) + ON_BORDER * radius < apart < radius + other:
        return 0
    swing = np.arccos((apart * apart + radius * radius - other * other) / (2.0 * apart * radius))
    count = 0
    for side in (-1.0, 1.0):
        put_on_rim(disc, np.arctan2(v, u) + side * swing, p)
        count = meet_face(face, p, sign, out, count)
    return count


@kernel
def meet_corners(disc: Array, face: Array, sign: float, out: Array) -> int:
    """Corners of a box' face on a disc, into out; sign: -1 if the face is of the first geom. How
    many there are."""
    p, count = np.empty(3), 0
    for a in (-1.0, 1.0):
        for b in (-1.0, 1.0):
            for c in range(3):
                p[c] = face[CENTRE + c] + a * face[HALF] * face[ALONG + c]
                p[c] += b * face[HALF + 1] * face[ACROSS + c]
            if is_over(disc, p, 0.0):
                count = meet_face(disc, p, sign, out, count)
    return count


@kernel
def meet_ends(m: int, d: int, contact: int, out: Array) -> int:
    """Contacts (MOST_MET, 7) of two geoms, of which at least one is a cylinder, that meet by an end
    and a face; their number, 0 where they do not. contact: MuJoCo's, or the first of them."""
    geoms, n = integers(contact + GEOM, 2), numbers(contact + FRAME, 3)
    faces = np.empty((2, FACE))
    for k in range(2):
        if not put_face(m, d, geoms[k], n, 1.0 - 2.0 * k, faces[k]):
            return 0
    load, count = np.empty(3), 0
    for k in range(2):
        disc, face, sign = faces[k], faces[1 - k], 2.0 * k - 1.0
        if disc[RADIUS] == 0.0:
            continue
        put_load(m, d, geoms, face, load)
        spare = ON_BORDER * disc[RADIUS]
        if face[RADIUS] > 0.0 and k == 1:
            spare = -spare  # what lies on both rims is there already
        count += meet_rim(disc, face, load, sign, spare, out[count:])
        if face[RADIUS] == 0.0 and face[HALF] < np.inf:
            count += cross_edges(disc, face, sign, out[count:])
            count += meet_corners(disc, face, -sign, out[count:])
        elif face[RADIUS] > 0.0 and k == 0:
            count += cross_rims(disc, face, sign, out[count:])
    return count
