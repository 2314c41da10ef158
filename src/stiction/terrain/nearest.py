"""Contacts of two surfaces in one point, to rounding, where MuJoCo's iterations stop short of it.

MuJoCo finds contacts of ellipsoids, and of cylinders, by iterations that end once the distance is
known to `ccd_tolerance` (1e-6 m). Nearest points are known to the root of that only: normals are
off by 1e-3, and contacts jump by a quarter of a millimetre as bodies move by nothing. From there,
Newton's method finds them to rounding. Either geom touches by one feature,

    ellipsoid, ball       curved: of a sphere, or of the end of a capsule
    corner, rim           of a box, of a cylinder
    side, edge            straight along one direction, which the normal is perpendicular to
    face                  of a box or a cylinder, whose normal is the contact's

and with n the normal from the first geom to the second, a(n) and b(n) the features' points that
have it as their outward normal, b - a is along n. A surface with radii of curvature R turns its
normal by x as one walks R x on it, and what remains across n is taken away by

    (RA + RB + gap) y = b - a        n += y        in the tangent plane

Which features touch is read off MuJoCo's points; where an answer lies beyond the end of one, or its
normal between two others, the next one is tried. Where both are straight along one direction the
nearest points are not unique, and where Newton's method leads elsewhere, contacts stay as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout
from stiction.bridge.geom_types import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE, kind_of, kinds_of
from stiction.bridge.layout import offset
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.triples import (
    Triple,
    Vector,
    column,
    cross,
    dot,
    minus,
    scaled,
    three_of,
    turned,
    turned_back,
)
from stiction.terrain.contacts import (
    DIST,
    FRAME,
    GAP,
    GEOM,
    NORMAL,
    POINT,
    POS,
    frame_of,
)

Array = NDArray[np.float64]

STEPS_TO_NEAREST = 12
"""From an error of 1e-3 four are enough; what takes longer goes elsewhere."""

MOST_FEATURES = 4
"""Pairs of features that are tried."""

NEAREST = 1e-12
"""What may remain of b - a across the normal, over the size of the smaller geom."""

AT_END = 1e-3
"""Distance from the end of a geom, over its size, up to which MuJoCo's point lies there."""

SAME_CONTACT = 1e-3
"""Difference of two distances, over the size of the smaller geom, up to which they are of the same
contact."""

OUT_OF_CONE = 1e-12
"""Sine of the angle by which a normal may leave the cone of a feature's normals."""

ONE_DIRECTION = 0.05
"""Sine of the angle between two straight directions below which they count as one, and of that
between a cylinder's axis and a normal of its rim."""

# Kernels, typed by Numba and not here.
number: Any = layout.number
pointer: Any = layout.pointer
integers: Any = layout.integers
numbers: Any = layout.numbers

_GEOM_SIZE = offset("mjModel", "geom_size")


class Side(NamedTuple):
    """One geom of a pair: what it is, and what touches."""

    kind: int
    size: Array  # (3,) [m]
    place: Array  # (3,)
    turn: Array  # (3, 3) axes as columns
    sign: float  # of its outward normal along n
    feature: (
        Array  # (3,) box: sides that it lies on, -1, 0 or 1; round: on the side (1), 0, on an end
    )
    point: Array  # (3,) in the world
    radii: Array  # (3,) along both tangents: 11, 12, 22


@leaf
def are_iterated(m: int, first: int, second: int) -> bool:
    """Whether MuJoCo finds contacts of these two geoms by iterations, and they are known here."""
    a, b = kinds_of(m, first, second)
    known = SPHERE <= a <= BOX and SPHERE <= b <= BOX
    smooth = a == ELLIPSOID or b == ELLIPSOID
    return known and (smooth or (a != SPHERE and (a == CYLINDER or b == CYLINDER)))


@leaf
def into(s: Side, x: Vector) -> Triple:
    """A direction in the axes of a geom."""
    return turned_back(s.turn, x)


@leaf
def point_into(s: Side, x: Array) -> Triple:
    """A point (3,) in the axes of a geom, from its middle."""
    return into(s, minus(x, s.place))


@leaf
def put_out_of(s: Side, x: Triple, out: Array) -> None:
    """out (3,) := a point from the axes of a geom, in the world."""
    y = turned(s.turn, x)
    for c in range(3):
        out[c] = s.place[c] + y[c]


@kernel
def take_side(m: int, d: int, geom: int, sign: float, point: Array) -> Side:
    """A geom, and the feature of it that a point lies on."""
    kind = kind_of(m, geom)
    size = numbers(pointer(m + _GEOM_SIZE) + 24 * geom, 3)
    place, turn = frame_of(d, geom)
    feature = np.zeros(3)
    s = Side(kind, size, place, turn, sign, feature, point.copy(), np.zeros(3))
    at = point_into(s, point)
    if kind == BOX:
        for c in range(3):
            if abs(at[c]) > (1.0 - AT_END) * size[c]:
                feature[c] = np.sign(at[c])
    elif kind in (CAPSULE, CYLINDER):
        if abs(at[2]) > (1.0 - AT_END) * size[1]:
            feature[2] = np.sign(at[2])
        if feature[2] == 0.0 or np.hypot(at[0], at[1]) > (1.0 - AT_END) * size[0]:
            feature[0] = 1.0
    return s


@kernel
def straight_along(s: Side) -> tuple[int, int]:
    """(along how many directions the feature is straight, the axis of its one direction or of its
    face's normal); three directions where it is none."""
    if s.kind == BOX:
        free, line, face = 0, 0, 0
        for c in range(3):
            if s.feature[c] == 0.0:
                free += 1
                line = c
            else:
                face = c
        return free, line if free == 1 else face
    if s.kind == CYLINDER and s.feature[0] == 0.0:
        return 2, 2
    if s.kind in (CAPSULE, CYLINDER) and s.feature[2] == 0.0:
        return 1, 2
    return 0, 0


@leaf
def outward(s: Side, n: Array) -> Triple:
    """The outward normal of a geom at a contact of the normal n (3,), in its axes."""
    return scaled(s.sign, into(s, n))


@kernel
def put_point(s: Side, n: Array, across: Array, guide: Array) -> bool:
    """The point of a feature that has the normal n of a contact, and its radii along the tangents
    across (2, 3); along what is straight, the point beside `guide` (3,), and no radius. Whether
    there is one."""
    n0, n1, n2 = outward(s, n)
    x, y, z = point_into(s, guide)
    p, q = into(s, three_of(across, 0, 0)), into(s, three_of(across, 1, 0))
    for c in range(3):
        s.radii[c] = 0.0
    if s.kind == ELLIPSOID:
        a, b, c2 = s.size[0] * s.size[0], s.size[1] * s.size[1], s.size[2] * s.size[2]
        height = np.sqrt(n0 * (a * n0) + n1 * (b * n1) + n2 * (c2 * n2))
        x, y, z = a * n0 / height, b * n1 / height, c2 * n2 / height
        u, v = dot(p, (x, y, z)), dot(q, (x, y, z))
        long, wide = (a * p[0], b * p[1], c2 * p[2]), (a * q[0], b * q[1], c2 * q[2])
        s.radii[0] = (dot(p, long) - u * u) / height
        s.radii[1] = (dot(p, wide) - u * v) / height
        s.radii[2] = (dot(q, wide) - v * v) / height
    elif s.kind == BOX:
        x = s.feature[0] * s.size[0] if s.feature[0] != 0.0 else x
        y = s.feature[1] * s.size[1] if s.feature[1] != 0.0 else y
        z = s.feature[2] * s.size[2] if s.feature[2] != 0.0 else z
    elif s.kind == SPHERE or (s.kind == CAPSULE and s.feature[2] != 0.0):
        x, y, z = s.size[0] * n0, s.size[0] * n1, s.size[0] * n2
        z += s.feature[2] * s.size[1]
        s.radii[0] = s.radii[2] = s.size[0]
    else:
        sine = np.hypot(n0, n1)
        if s.feature[0] != 0.0:
            if sine < ONE_DIRECTION:
                return False
            x, y = s.size[0] * n0 / sine, s.size[0] * n1 / sine
            e0, e1 = -n1 / sine, n0 / sine  # along the rim
            u, v = p[0] * e0 + p[1] * e1, q[0] * e0 + q[1] * e1
            radius = s.size[0] / sine
            s.radii[0], s.radii[1], s.radii[2] = radius * u * u, radius * u * v, radius * v * v
        if s.feature[2] != 0.0:
            z = s.feature[2] * s.size[1]
    put_out_of(s, (x, y, z), s.point)
    return True


@kernel
def change_feature(s: Side, n: Array) -> bool:
    """Whether the point lies beyond its feature, or the normal out of its cone; the feature is then
    the next one."""
    normal, at, changed = outward(s, n), point_into(s, s.point), False
    if s.kind == BOX:
        for c in range(3):
            if s.feature[c] == 0.0 and abs(at[c]) > s.size[c]:
                s.feature[c], changed = np.sign(at[c]), True
            elif s.feature[c] * normal[c] < -OUT_OF_CONE:
                s.feature[c], changed = 0.0, True
    elif s.kind in (CAPSULE, CYLINDER):
        if s.feature[2] == 0.0 and abs(at[2]) > s.size[1]:
            s.feature[2], changed = np.sign(at[2]), True
        elif s.feature[0] == 0.0 and s.kind == CYLINDER and np.hypot(at[0], at[1]) > s.size[0]:
            s.feature[0], changed = 1.0, True
        elif s.feature[2] * normal[2] < -OUT_OF_CONE:
            s.feature[2], s.feature[0], changed = 0.0, 1.0, True
    return changed


@kernel
def put_middle_of_line(s: Side) -> None:
    """Moves the point to the middle of an edge, or of the axis that a side is about."""
    if s.kind != BOX:
        s.point[:] = s.place
        return
    x, size = s.feature, s.size
    put_out_of(s, (x[0] * size[0], x[1] * size[1], x[2] * size[2]), s.point)


@kernel
def cross_lines(first: Side, second: Side, u: Triple, v: Triple, n: Array) -> bool:
    """n := the perpendicular to two straight features along u and v; both points := where the lines
    are nearest. Whether they cross."""
    way = cross(u, v)
    sine = np.sqrt(dot(way, way))
    if sine < ONE_DIRECTION:
        return False
    length = sine if dot(way, n) > 0.0 else -sine
    put_middle_of_line(first)
    put_middle_of_line(second)
    away, cosine = away_of(first, second), dot(u, v)
    x, y = dot(away, u), dot(away, v)
    for c in range(3):
        n[c] = way[c] / length
        first.point[c] += ((x - cosine * y) / (sine * sine)) * u[c]
        second.point[c] += ((cosine * x - y) / (sine * sine)) * v[c]
    return True


@leaf
def scale_to_one(n: Array) -> None:
    """n (3,) over its length."""
    length = np.sqrt(dot(n, n))
    for c in range(3):
        n[c] /= length


@kernel
def set_normal(first: Side, second: Side, n: Array) -> int:
    """Makes n (3,) a normal that both features may have; in how many directions it may still turn,
    or -1 where features are straight along a common direction."""
    many, axis = straight_along(first)
    others, other = straight_along(second)
    if many + others > 2 or many == 3 or others == 3:
        return -1
    if many == 2:
        for c in range(3):
            n[c] = first.sign * first.feature[axis] * first.turn[c, axis]
        return 0
    if others == 2:
        for c in range(3):
            n[c] = second.sign * second.feature[other] * second.turn[c, other]
        return 0
    if many == 1 and others == 1:
        u, v = column(first.turn, axis), column(second.turn, other)
        return 0 if cross_lines(first, second, u, v, n) else -1
    if many == 1 or others == 1:
        line = column(first.turn, axis) if many == 1 else column(second.turn, other)
        along = dot(n, line)
        for c in range(3):
            n[c] -= along * line[c]
        scale_to_one(n)
        return 1
    return 2


@kernel
def put_tangents(first: Side, second: Side, n: Array, freedom: int, out: Array) -> None:
    """out (2, 3) := tangents; where the normal may turn in one direction only, the first is it."""
    if freedom == 1:
        many, axis = straight_along(first)
        _, other = straight_along(second)
        line = column(first.turn, axis) if many == 1 else column(second.turn, other)
        out[0, 0], out[0, 1], out[0, 2] = cross(n, line)
        out[1, 0], out[1, 1], out[1, 2] = line
        return
    least = 0
    for c in range(1, 3):
        if abs(n[c]) < abs(n[least]):
            least = c
    for c in range(3):
        out[0, c] = -n[least] * n[c]
    out[0, least] += 1.0
    scale_to_one(out[0])
    out[1, 0], out[1, 1], out[1, 2] = cross(n, three_of(out, 0, 0))


@leaf
def away_of(first: Side, second: Side) -> Triple:
    """From the first point to the second."""
    return minus(second.point, first.point)


@kernel
def settle_points(first: Side, second: Side, size: float, n: Array) -> bool:
    """Moves points and normal to where these features are nearest; whether they are then."""
    freedom = set_normal(first, second, n)
    if freedom < 0:
        return False
    many, _ = straight_along(first)
    others, _ = straight_along(second)
    across = np.empty((2, 3))
    for _ in range(STEPS_TO_NEAREST):
        put_tangents(first, second, n, freedom, across)
        lines = many == 1 and others == 1
        if many > 0 and not lines:
            if not put_point(second, n, across, second.point):
                return False
            if not put_point(first, n, across, second.point):
                return False
        else:
            if not put_point(first, n, across, first.point):
                return False
            if not put_point(second, n, across, second.point if lines else first.point):
                return False
        away = away_of(first, second)
        gap = dot(away, n)
        u, v = dot(away, three_of(across, 0, 0)), dot(away, three_of(across, 1, 0))
        a = first.radii[0] + second.radii[0] + gap
        b = first.radii[1] + second.radii[1]
        c = first.radii[2] + second.radii[2] + gap
        if freedom == 1:
            b, c, v = 0.0, a, 0.0
        if freedom == 0 or max(abs(u), abs(v)) <= NEAREST * size:
            return freedom == 0 or (a > 0.0 and a * c > b * b)
        det = a * c - b * b
        if not (a > 0.0 and det > 0.0):
            return False
        x, y = (c * u - b * v) / det, (a * v - b * u) / det
        for k in range(3):
            n[k] += x * across[0, k] + y * across[1, k]
        scale_to_one(n)
        if freedom == 1:
            set_normal(first, second, n)
    return False


@leaf
def put_contact(first: Side, second: Side, n: Array, gap: float, out: Array) -> None:
    """out (1, WIDTH) := the contact in the points of two features."""
    out[0, GAP] = gap
    for c in range(3):
        out[0, POINT + c] = 0.5 * (first.point[c] + second.point[c])
        out[0, NORMAL + c] = n[c]


@kernel
def meet_nearest(m: int, d: int, contact: int, out: Array) -> int:
    """The contact (1, 7) of two geoms of which MuJoCo has one: gap, point, normal from the first to
    the second; 1, or 0 where that stays as it is."""
    geoms = integers(contact + GEOM, 2)
    dist, n = number(contact + DIST), numbers(contact + FRAME, 3).copy()
    point = numbers(contact + POS, 3)
    first = take_side(m, d, geoms[0], 1.0, point - 0.5 * dist * n)
    second = take_side(m, d, geoms[1], -1.0, point + 0.5 * dist * n)
    size = min(least_size(first), least_size(second))
    for _ in range(MOST_FEATURES):
        if not settle_points(first, second, size, n):
            return 0
        moved = change_feature(first, n)
        if change_feature(second, n) or moved:
            continue
        gap = dot(away_of(first, second), n)
        if abs(gap - dist) > SAME_CONTACT * size:
            return 0
        put_contact(first, second, n, gap, out)
        return 1
    return 0


@leaf
def least_size(s: Side) -> float:
    """The least of a geom's sizes [m]."""
    least = s.size[0]
    if s.kind in (BOX, ELLIPSOID):
        least = min(least, s.size[1], s.size[2])
    elif s.kind == CYLINDER:
        least = min(least, s.size[1])
    return least
