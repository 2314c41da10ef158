"""Cylinders that lean on boxes, on capsules and on each other, where MuJoCo gives several points of
a face that they do not share.

MuJoCo looks for a second contact along the face that it takes a cylinder's flat neighbour to have.
Of a cylinder that leans on an edge or a corner, or with its rim, that face is a strip of its side,
and the contacts lie wherever margins cut it: an edge may be a fifth of a millimetre within the
cylinder, unseen, and a capsule across a rim a whole one. What leans touches in one point. It is
sought from every feature of the two (`nearest.py`) that is near MuJoCo's point, and must have a
larger gap than the one along MuJoCo's normal: no direction parts two convex bodies better than that
of a contact. An edge that is all but parallel to a flat end or to the axis touches at both ends of
what they share,

    corner on end, on side      where the edge ends
    rim over edge               where the cylinder does, along the normal to both

and on a side where it is nearest between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout
from stiction.bridge.geom_types import BOX, CAPSULE, CYLINDER, kinds_of
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.triples import Triple, column, cross, dot, minus, moved, scaled
from stiction.terrain.contacts import (
    DIST,
    FRAME,
    GAP,
    GEOM,
    NORMAL,
    POINT,
    POS,
    SIZE,
)
from stiction.terrain.cylinders import PARALLEL, SHARED_STRETCH
from stiction.terrain.ends import FLAT_TILT
from stiction.terrain.nearest import (
    ONE_DIRECTION,
    SAME_CONTACT,
    Side,
    away_of,
    change_feature,
    into,
    least_size,
    meet_nearest,
    outward,
    point_into,
    put_contact,
    put_middle_of_line,
    scale_to_one,
    settle_points,
    take_side,
)

Array = NDArray[np.float64]

FEATURES_OF_CORNER = 7
"""Features of a box that meet in a corner: itself, three edges, three faces."""

VIEWS = 5
"""Normals that a pair of features is looked at from, at most."""

AS_GOOD = 1e-9
"""What the contact may be short of the gap along MuJoCo's normal, over the size of the smaller
geom."""

# Kernels, typed by Numba and not here.
number: Any = layout.number
integers: Any = layout.integers
numbers: Any = layout.numbers


@leaf
def may_lean(m: int, first: int, second: int) -> bool:
    """Whether one of these two geoms is a cylinder, and the other one a box, a capsule or another
    cylinder."""
    a, b = kinds_of(m, first, second)
    if b == CYLINDER:
        return a in (CAPSULE, CYLINDER, BOX)
    return a == CYLINDER and b in (CAPSULE, BOX)


@leaf
def axis_along(box: Side, cylinder: Side) -> int:
    """The axis of a box whose edges run along the cylinder, or -1."""
    x = into(box, column(cylinder.turn, 2))
    for c in range(3):
        if 1.0 - x[c] * x[c] < ONE_DIRECTION * ONE_DIRECTION:
            return c
    return -1


@leaf
def reach_of(s: Side, n: Array) -> float:
    """How far a box, a cylinder or a capsule reaches along its outward normal, from its middle."""
    x, y, z = outward(s, n)
    if s.kind == BOX:
        return abs(x) * s.size[0] + abs(y) * s.size[1] + abs(z) * s.size[2]
    round_part = s.size[0] if s.kind == CAPSULE else np.hypot(x, y) * s.size[0]
    return round_part + abs(z) * s.size[1]


@leaf
def gap_along(first: Side, second: Side, n: Array) -> float:
    """The gap between two geoms, seen along n (3,)."""
    a, b = first.place, second.place
    return dot(minus(b, a), n) - reach_of(first, n) - reach_of(second, n)


@leaf
def set_box_feature(box: Side, corner: Triple, which: int) -> None:
    """The feature `which` (1 to FEATURES_OF_CORNER) of those that meet in a corner."""
    for c in range(3):
        box.feature[c] = corner[c] if which & (1 << c) else 0.0


@leaf
def set_round_feature(s: Side, end: float, which: int) -> None:
    """Of a cylinder or a capsule the side (0), the rim or cap (1) or the flat (2) of an end."""
    s.feature[0] = 0.0 if which == 2 else 1.0
    s.feature[2] = 0.0 if which == 0 else end


@leaf
def may_touch(a: int, b: int, start: int) -> bool:
    """Whether the features a of a cylinder and b of a box touch in one point, as seen from the view
    `start`: side and edge or corner, rim and face or edge, end and corner. Normals of a rim on an
    edge may lie far from MuJoCo's, others do not."""
    sides = (b & 1) + ((b >> 1) & 1) + (b >> 2)
    if a == 0:
        return start == 0 and sides > 1
    if a == 1:
        return sides == 2 or (start == 0 and sides == 1)
    return start == 0 and sides == 3


@kernel
def look_along(box: Side, which: int, n: Array) -> bool:
    """n (3,) := where to look from: the middle of the normals that the box has there, or those of
    its faces 0, 1 and 2. Whether there is that face."""
    if which < 3 and box.feature[which] == 0.0:
        return False
    n[:] = 0.0
    for k in range(3):
        if which in (k, 3):
            for c in range(3):
                n[c] += box.sign * box.feature[k] * box.turn[c, k]
    scale_to_one(n)
    return True


@kernel
def find_contact(
    first: Side, second: Side, at: Array, size: float, least: float, n: Array, out: Array
) -> bool:
    """Whether two features are nearest, as they are, in points that are found from `at` and n on,
    with a gap above the least; out (1, WIDTH) := the contact there."""
    first.point[:], second.point[:] = at, at
    if not settle_points(first, second, size, n):
        return False
    if change_feature(first, n) or change_feature(second, n):
        return False
    gap = dot(away_of(first, second), n)
    if gap > least:
        put_contact(first, second, n, gap, out)
    return gap > least


@leaf
def edge_along(box: Side, a: Triple, feature: Array) -> int:
    """The axis of the edge that a box turns to an end whose outward normal is a, if it is all but
    parallel to it, or -1; feature (3,) := the sides that the edge lies on."""
    x = into(box, a)
    for c in range(3):
        b, e = x[(c + 1) % 3], x[(c + 2) % 3]
        if abs(x[c]) < FLAT_TILT and abs(b) > FLAT_TILT and abs(e) > FLAT_TILT:
            feature[c], feature[(c + 1) % 3], feature[(c + 2) % 3] = 0.0, -np.sign(b), -np.sign(e)
            return c
    return -1


@kernel
def meet_edge_on_end(box: Side, cylinder: Side, end: float, out: Array) -> int:
    """Contacts (2, WIDTH) of an edge that lies on an end of a cylinder (1 or -1); their number, 0
    where none does."""
    a = scaled(end, column(cylinder.turn, 2))
    axis = edge_along(box, a, box.feature)
    if axis < 0:
        return 0
    u, radius = column(box.turn, axis), cylinder.size[0]
    put_middle_of_line(box)
    x = minus(box.point, moved(cylinder.place, cylinder.size[1], a))
    # Over the end, |x + s u| <= radius across a.
    rise, height = dot(u, a), dot(x, a)
    square = 1.0 - rise * rise
    middle = -(dot(x, u) - height * rise) / square
    beside = dot(x, x) - height * height - square * middle * middle
    if beside >= radius * radius:
        return 0
    half, count = np.sqrt((radius * radius - beside) / square), 0
    for side in (-1.0, 1.0):
        s, far = middle + side * half, box.size[axis]
        if side * s < -far:
            return 0
        p, normal = moved(x, s, u), a
        if side * s > far:
            s = side * far
            p = moved(x, s, u)
        else:
            normal = cross(u, cross(a, p))
        length = np.sqrt(dot(normal, normal))
        length = length if dot(normal, a) > 0.0 else -length
        over = dot(p, a)
        gap = over * dot(a, normal) / length
        out[count, GAP] = gap
        for c in range(3):
            way = cylinder.size[1] * a[c] + p[c] - 0.5 * over * a[c]
            out[count, POINT + c] = cylinder.place[c] + way
            out[count, NORMAL + c] = cylinder.sign * normal[c] / length
        count += 1
    return count


@kernel
def put_on_side(cylinder: Side, t: float, spoke: Triple, normal: Triple, out: Array) -> None:
    """out (WIDTH,) := the contact of a side with what lies from the point t of its axis along
    `spoke`, as seen along `normal`, of any length."""
    far = np.sqrt(dot(spoke, spoke))
    length = np.sqrt(dot(normal, normal))
    over = far - cylinder.size[0]
    out[GAP] = over * dot(spoke, normal) / (far * length)
    for c in range(3):
        foot = cylinder.place[c] + t * cylinder.turn[c, 2]
        out[POINT + c] = foot + (1.0 - 0.5 * over / far) * spoke[c]
        out[NORMAL + c] = cylinder.sign * normal[c] / length


@kernel
def meet_edge_on_side(box: Side, cylinder: Side, axis: int, corner: Triple, out: Array) -> int:
    """Contacts (3, WIDTH) of the side of a cylinder with the edge through a corner that runs along
    it, as the axis of the box does; their number, 0 where they share too little."""
    set_box_feature(box, corner, FEATURES_OF_CORNER - (1 << axis))
    put_middle_of_line(box)
    u, v = column(cylinder.turn, 2), column(box.turn, axis)
    place, middle = cylinder.place, box.point
    x = minus(middle, place)
    cosine, at = dot(u, v), dot(x, u)
    # Across the axis, from its point t to the edge: x + t rate.
    along: Triple = (v[0] / cosine, v[1] / cosine, v[2] / cosine)
    rate, x = minus(along, u), moved(x, -at, along)
    reach, half = box.size[axis] * abs(cosine), cylinder.size[1]
    low, high = max(-half, at - reach), min(half, at + reach)
    if high - low < SHARED_STRETCH * cylinder.size[0]:
        return 0
    count = 0
    for t in (low, high):
        spoke = moved(x, t, rate)
        slope = dot(spoke, v) / cosine if abs(t) == half else 0.0
        put_on_side(cylinder, t, spoke, moved(spoke, -slope, u), out[count])
        count += 1
    square = dot(rate, rate)
    if square > PARALLEL * PARALLEL:
        t = -dot(x, rate) / square
        spoke = moved(x, t, rate)
        if low < t < high and dot(spoke, spoke) > 0.0:
            put_on_side(cylinder, t, spoke, spoke, out[count])
            count += 1
    return count


@kernel
def is_contact(first: Side, second: Side, size: float, out: Array, count: int) -> bool:
    """Whether the deepest of some contacts (count, WIDTH) is as deep as two geoms are along its
    normal."""
    deepest = 0
    for k in range(count):
        if out[k, GAP] < out[deepest, GAP]:
            deepest = k
    seen = gap_along(first, second, out[deepest, NORMAL : NORMAL + 3])
    return count > 0 and abs(seen - out[deepest, GAP]) < SAME_CONTACT * size


@kernel
def look_at_rim(s: Side, end: float, at: Array, n: Array) -> bool:
    """n (3,) := the middle of the normals that a rim has beside `at`; whether it has any there."""
    x, y, _ = point_into(s, at)
    far = np.hypot(x, y)
    if s.kind != CYLINDER or far == 0.0:
        return False
    for c in range(3):
        n[c] = (x * s.turn[c, 0] + y * s.turn[c, 1]) / far + end * s.turn[c, 2]
        n[c] *= s.sign
    scale_to_one(n)
    return True


@kernel
def lean_on_round(
    first: Side, second: Side, at: Array, seen: Array, size: float, out: Array
) -> int:
    """The contact (1, WIDTH) of a cylinder with a capsule or another cylinder, near `at`; 1, or 0
    where none is found. What lies on an end is no leaning."""
    ends = (np.sign(point_into(first, at)[2]), np.sign(point_into(second, at)[2]))
    lies = abs(dot(column(first.turn, 2), column(second.turn, 2))) < FLAT_TILT
    least, n = gap_along(first, second, seen) - AS_GOOD * size, np.empty(3)
    for start in range(3):
        for a in range(2 if first.kind == CAPSULE else 3):
            for b in range(2 if second.kind == CAPSULE else 3):
                if (a == 2 or b == 2) and (a == b or a == 0 or b == 0 or lies):
                    continue
                if start > 0 and not (a == 1 or b == 1):
                    continue
                set_round_feature(first, ends[0], a)
                set_round_feature(second, ends[1], b)
                n[:] = seen
                if start == 1 and not (a == 1 and look_at_rim(first, ends[0], at, n)):
                    continue
                if start == 2 and not (b == 1 and look_at_rim(second, ends[1], at, n)):
                    continue
                if find_contact(first, second, at, size, least, n, out):
                    return 1
    return 0


@kernel
def lean_on_box(first: Side, second: Side, at: Array, seen: Array, size: float, out: Array) -> int:
    """The contact (1, WIDTH) of a cylinder and a box near `at`; 1, or 0 where none is found."""
    box, cylinder = (first, second) if first.kind == BOX else (second, first)
    x, y, z = point_into(box, at)
    corner: Triple = (np.sign(x), np.sign(y), np.sign(z))
    end = np.sign(point_into(cylinder, at)[2])
    least, n = gap_along(first, second, seen) - AS_GOOD * size, np.empty(3)
    for start in range(VIEWS):
        for a in range(3):
            for b in range(1, FEATURES_OF_CORNER + 1):
                if not may_touch(a, b, start):
                    continue
                set_round_feature(cylinder, end, a)
                set_box_feature(box, corner, b)
                n[:] = seen
                if start > 0 and not look_along(box, start - 1, n):
                    continue
                if find_contact(first, second, at, size, least, n, out):
                    return 1
    return 0


@kernel
def meet_along_edge(first: Side, second: Side, at: Array, out: Array) -> int:
    """Contacts (3, WIDTH) of a cylinder with an edge of a box that runs along its side or its end;
    their number, -1 where the side has an edge along it with which it does not touch, 0 where there
    is none."""
    box, cylinder = (first, second) if first.kind == BOX else (second, first)
    size = min(least_size(first), least_size(second))
    axis, count = axis_along(box, cylinder), 0
    if axis >= 0:
        x, y, z = point_into(box, at)
        corner: Triple = (np.sign(x), np.sign(y), np.sign(z))
        count = meet_edge_on_side(box, cylinder, axis, corner, out)
        return count if is_contact(first, second, size, out, count) else -1
    count = meet_edge_on_end(box, cylinder, np.sign(point_into(cylinder, at)[2]), out)
    return count if is_contact(first, second, size, out, count) else 0


@leaf
def deepest_of(contact: int, many: int) -> int:
    """The deepest of `many` contacts of MuJoCo's from `contact` on."""
    deepest = contact
    for k in range(1, many):
        if number(contact + k * SIZE + DIST) < number(deepest + DIST):
            deepest = contact + k * SIZE
    return deepest


@kernel
def is_doubtful(m: int, d: int, contact: int, many: int, out: Array, count: int) -> bool:
    """Whether contacts (count, WIDTH) that were found otherwise cannot be those of two geoms, or
    may not: deeper than they are along MuJoCo's normal, or less deep than MuJoCo's, `many` from
    `contact` on, by more than those are off."""
    geoms, found = integers(contact + GEOM, 2), np.inf
    for k in range(count):
        found = min(found, out[k, GAP])
    at, seen = numbers(contact + POS, 3), numbers(contact + FRAME, 3)
    first, second = take_side(m, d, geoms[0], 1.0, at), take_side(m, d, geoms[1], -1.0, at)
    off = SAME_CONTACT * min(least_size(first), least_size(second))
    deepest = number(deepest_of(contact, many) + DIST)
    return found < gap_along(first, second, seen) - off or deepest < found - off


@kernel
def meet_leaning(m: int, d: int, contact: int, many: int, out: Array) -> int:
    """Contacts (3, WIDTH) of a cylinder that leans on something; their number, 0 where those stay
    that MuJoCo has, `many` from `contact` on."""
    geoms, deepest = integers(contact + GEOM, 2), deepest_of(contact, many)
    at, seen = numbers(deepest + POS, 3), numbers(deepest + FRAME, 3)
    first, second = take_side(m, d, geoms[0], 1.0, at), take_side(m, d, geoms[1], -1.0, at)
    boxed = first.kind == BOX or second.kind == BOX
    if boxed:
        count = meet_along_edge(first, second, at, out)
        if count != 0:
            return max(count, 0)
    if many == 1 and meet_nearest(m, d, contact, out) == 1:
        return 1
    size = min(least_size(first), least_size(second))
    if boxed:
        return lean_on_box(first, second, at, seen, size, out)
    return lean_on_round(first, second, at, seen, size, out)
