"""Contacts of two surfaces to first order, in closed form, from how curved they are there.

Geom A touches B at a, B touches A at b = a + g n; n is A's outward normal and the contact's, the
contact's point is halfway. A surface turns its normal as one walks on it: with R its radii of
curvature, a symmetric matrix of the tangent plane, a change of the normal by x in the surface's own
frame belongs to a walk of R x. R is 0 at a corner, r for a sphere, and without bound along what is
straight. As the bodies turn by wA and wB and move the points by da and db, n turns by y,

    (RA + RB + g) y = (db - da) + RA wA x n + RB wB x n        in the tangent plane
    dg = n . (db - da)
    a moves by da + RA (y - wA x n),    b by db - RB (y - wB x n)

This holds for points that are nearest to each other. Where both surfaces are straight along one
direction nearest points are not unique, and contacts are chosen otherwise: no closed form here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.bridge.bodies import body_of_geom
from stiction.bridge.geom_types import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    HFIELD,
    MESH,
    PLANE,
    SPHERE,
    kind_of,
)
from stiction.bridge.layout import entry, numbers, offset, pointer
from stiction.contact.problem.arrays import Array
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.packing import packed

_SIZE, _WELD = offset("mjModel", "geom_size"), offset("mjModel", "body_weldid")
_XPOS, _XMAT = offset("mjData", "geom_xpos"), offset("mjData", "geom_xmat")

GAP, POINT, NORMAL, TANGENT, CHANGES = 0, 1, 4, 7, 10
"""Rows of a contact's changes: of the gap, the point, the normal and the first tangent."""

STRAIGHT = 1e7
"""Radius of what is straight, over the size of what moves: its inverse is the error of edges and of
sides, and its square is rounded. Faces turn the normal with them, exactly."""

ON_SURFACE = 1e-6
"""Distance of a contact from a corner, an edge or a face, over the size of what moves, up to which
it lies there."""

ON_CURVE = 1e-2
"""The same of a point that iterations found on a surface that is curved, where the normal alone
matters."""

ALONGSIDE = 0.9
"""Square of the cosine between two straight directions that count as one."""

ON_CAP = 1e-6
"""Sine of the angle between a normal and a cylinder's axis, up to which it stands on its cap."""


@packed
class Meet(NamedTuple):
    """What one contact is worked out in."""

    radii: Array  # (2, 3) R of either geom along both tangents: 11, 12, 22
    ends: Array  # (2, 3) a and b
    local: Array  # (2, 3) a point and a normal, in a geom's frame
    three: Array  # (4, 3)


def allocate_meet() -> Meet:
    """Room for one contact."""
    return Meet(np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((4, 3)))


@lean_leaf
def _put_isotropic(radius, out, which):
    """The same radius all around."""
    out[which, 0], out[which, 1], out[which, 2] = radius, 0.0, radius


@lean_leaf
def _put_along(radius, x, y, z, frame, across, out, which):
    """A radius along the direction (x, y, z), in the world, and another one across."""
    first = x * frame[1, 0] + y * frame[1, 1] + z * frame[1, 2]
    second = x * frame[2, 0] + y * frame[2, 1] + z * frame[2, 2]
    size = np.sqrt(first * first + second * second)
    first, second, more = first / size, second / size, radius - across
    out[which, 0] = across + more * first * first
    out[which, 1] = more * first * second
    out[which, 2] = across + more * second * second


@lean
def _bend_ellipsoid(turn, size, frame, near, meet: Meet, which):
    """(S^2 - x x') / h, of the point x = S^2 m / h that has the normal m; h = |S m|."""
    local, t = meet.local, meet.three
    h = 0.0
    for c in range(3):
        h += (size[c] * local[1, c]) ** 2
    h = np.sqrt(h)
    for c in range(3):
        t[0, c] = size[c] * size[c] * local[1, c] / h
        if abs(t[0, c] - local[0, c]) > near:
            return False
        t[1, c] = t[2, c] = 0.0
        for k in range(3):
            t[1, c] += turn[3 * k + c] * frame[1, k]
            t[2, c] += turn[3 * k + c] * frame[2, k]
    for k in range(3):
        first, second = 1 + (k == 2), 1 + (k > 0)
        total, u, v = 0.0, 0.0, 0.0
        for c in range(3):
            total += t[first, c] * size[c] * size[c] * t[second, c]
            u += t[first, c] * t[0, c]
            v += t[second, c] * t[0, c]
        meet.radii[which, k] = (total - u * v) / h
    return True


@lean
def _bend_box(turn, size, frame, near, far, meet: Meet, which):
    """A corner, an edge or a face."""
    ends, edge = 0, 0
    for c in range(3):
        off = abs(meet.local[0, c]) - size[c]
        if off > near:
            return False
        if off >= -near:
            ends += 1
        else:
            edge = c
    if ends == 0:
        return False
    if ends == 2:
        x, y, z = turn[edge], turn[3 + edge], turn[6 + edge]
        _put_along(far, x, y, z, frame, 0.0, meet.radii, which)
    else:
        _put_isotropic(0.0 if ends == 3 else far, meet.radii, which)
    return True


@lean
def _bend_round(kind, turn, size, frame, near, far, meet: Meet, which):
    """A capsule's cap or side; a cylinder's side, rim or cap."""
    local = meet.local
    x, y, z = turn[2], turn[5], turn[8]
    radius, half = size[0], size[1]
    out, beyond = np.hypot(local[0, 0], local[0, 1]), abs(local[0, 2]) - half
    if kind == CAPSULE:
        if abs(np.hypot(out, max(beyond, 0.0)) - radius) > near:
            return False
        if beyond >= -near:
            _put_isotropic(radius, meet.radii, which)
        else:
            _put_along(far, x, y, z, frame, radius, meet.radii, which)
        return True
    if out > radius + near or beyond > near:
        return False
    if out >= radius - near and beyond >= -near:
        sine = np.hypot(local[1, 0], local[1, 1])
        across = local[0, 0] * local[1, 1] - local[0, 1] * local[1, 0]
        if sine < ON_CAP or abs(across) > ON_CURVE * sine * radius:  # not the nearest of the rim
            return False
        ahead = meet.three[0]  # along the rim, in the geom's frame (-y, x, 0)
        for c in range(3):
            ahead[c] = turn[3 * c + 1] * local[0, 0] - turn[3 * c] * local[0, 1]
        _put_along(
            radius / sine, ahead[0], ahead[1], ahead[2], frame, 0.0, meet.radii, which
        )  # fmt: skip
    elif beyond >= -near:
        _put_isotropic(far, meet.radii, which)
    elif out >= radius - near:
        _put_along(far, x, y, z, frame, radius, meet.radii, which)
    else:
        return False
    return True


@lean
def _bend(m, d, geom, which, frame, length, meet: Meet):
    """meet.radii[which] := of a geom at its end of the contact; whether it is known. frame (3, 3):
    normal and tangents; length: the size of what moves [m]."""
    kind = kind_of(m, geom)
    size = numbers(pointer(m + _SIZE) + 24 * geom, 3)
    place = numbers(pointer(d + _XPOS) + 24 * geom, 3)
    turn = numbers(pointer(d + _XMAT) + 72 * geom, 9)
    near, far, local = ON_SURFACE * length, STRAIGHT * length, meet.local
    for c in range(3):
        local[0, c] = local[1, c] = 0.0
        for k in range(3):
            local[0, c] += turn[3 * k + c] * (meet.ends[which, k] - place[k])
            local[1, c] += turn[3 * k + c] * frame[0, k] * (1 - 2 * which)
    if kind == PLANE:
        _put_isotropic(far, meet.radii, which)
        return local[1, 2] > 1.0 - ON_CAP * ON_CAP and abs(local[0, 2]) <= near
    if kind == HFIELD:  # on one of its triangles, as the caller has found
        _put_isotropic(far, meet.radii, which)
        return True
    if kind == SPHERE:
        _put_isotropic(size[0], meet.radii, which)
        out = np.sqrt(local[0, 0] ** 2 + local[0, 1] ** 2 + local[0, 2] ** 2)
        return abs(out - size[0]) <= near
    if kind == ELLIPSOID:
        return _bend_ellipsoid(turn, size, frame, ON_CURVE * length, meet, which)
    if kind == BOX:
        return _bend_box(turn, size, frame, near, far, meet, which)
    if kind in (CAPSULE, CYLINDER):
        return _bend_round(kind, turn, size, frame, near, far, meet, which)
    if kind == MESH:  # on a plane, by its corners
        _put_isotropic(0.0, meet.radii, which)
        return True
    return False


@lean_leaf
def _is_unique(far, radii):
    """Whether no direction is straight on both surfaces."""
    common = radii[0, 0] * radii[1, 0] + 2.0 * radii[0, 1] * radii[1, 1] + radii[0, 2] * radii[1, 2]
    return common < ALONGSIDE * far * far


@lean
def _change(which, axis, frame, gap, about, flat, meet: Meet, inverse, out):
    """out[:, axis] := the changes as one geom turns about `about` or moves; flat: the geom whose
    face the normal is that of, or -1; inverse: 11, 12, 22 of the matrix of its equation."""
    radii, ends, t = meet.radii, meet.ends, meet.three
    sign = 2.0 * which - 1.0
    for c in range(3):
        t[0, c] = t[1, c] = 0.0  # what moves the point, w x n
    if axis > 2:
        t[0, axis - 3] = 1.0
    else:
        p, q = (axis + 1) % 3, (axis + 2) % 3
        t[0, p], t[0, q] = -(ends[which, q] - about[q]), ends[which, p] - about[p]
        t[1, p], t[1, q] = -frame[0, q], frame[0, p]
    rise, u, v, x, y = 0.0, 0.0, 0.0, 0.0, 0.0
    for c in range(3):
        rise += sign * t[0, c] * frame[0, c]
        u += sign * t[0, c] * frame[1, c]
        v += sign * t[0, c] * frame[2, c]
        x += t[1, c] * frame[1, c]
        y += t[1, c] * frame[2, c]
    r0, r1, r2 = radii[which, 0], radii[which, 1], radii[which, 2]
    u, v = u + r0 * x + r1 * y, v + r1 * x + r2 * y
    first, second = inverse[0] * u + inverse[1] * v, inverse[1] * u + inverse[2] * v
    if flat >= 0:
        first, second = (x, y) if flat == which else (0.0, 0.0)
    # By the end that is less straight: the other one's walk is a difference of large numbers.
    end = 1 if radii[1, 0] + radii[1, 2] <= radii[0, 0] + radii[0, 2] else 0
    turn_x, turn_y = (first - x, second - y) if end == which else (first, second)
    s = 1.0 - 2.0 * end
    walk_x = s * (radii[end, 0] * turn_x + radii[end, 1] * turn_y)
    walk_y = s * (radii[end, 1] * turn_x + radii[end, 2] * turn_y)
    out[GAP, axis] = rise
    for c in range(3):
        n, turned = frame[0, c], first * frame[1, c] + second * frame[2, c]
        moved = walk_x * frame[1, c] + walk_y * frame[2, c] + (t[0, c] if end == which else 0.0)
        out[POINT + c, axis] = moved + 0.5 * s * (rise * n + gap * turned)
        out[NORMAL + c, axis] = turned
        out[TANGENT + c, axis] = 0.0


@lean
def _carry_tangent(turns, axis, frame, lead, meet: Meet, out):
    """The tangent's change where it is the direction `lead` (3,) of a geom, less what of it is
    along the normal; turns: whether that geom turns about the axis."""
    t = meet.three
    along, size = 0.0, 0.0
    for c in range(3):
        along += lead[c] * frame[0, c]
        size += lead[c] * frame[1, c]
    p, q = (axis + 1) % 3, (axis + 2) % 3
    for c in range(3):
        t[0, c] = 0.0
    if turns:
        t[0, p], t[0, q] = -lead[q], lead[p]
    change = 0.0
    for c in range(3):
        change += t[0, c] * frame[0, c] + lead[c] * out[NORMAL + c, axis]
    total = 0.0
    for c in range(3):
        t[1, c] = (t[0, c] - change * frame[0, c] - along * out[NORMAL + c, axis]) / size
        total += t[1, c] * frame[1, c]
    for c in range(3):
        out[TANGENT + c, axis] = t[1, c] - total * frame[1, c]


@lean
def differentiate_meeting(
    m, d, first, second, frame, gap, point, about, length, led, meet: Meet, out
):
    """out (2, CHANGES, 6) := the changes of one contact of two geoms as either turns about `about`
    (3,) or moves, unless it is fixed to the world; whether it has closed forms. frame (3, 3): the
    normal and the tangents; length: the size of what moves [m]; led: whether the tangent is the
    second geom's axis, else it follows from the normal and is left at 0."""
    radii = meet.radii
    for c in range(3):
        meet.ends[0, c] = point[c] - 0.5 * gap * frame[0, c]
        meet.ends[1, c] = point[c] + 0.5 * gap * frame[0, c]
    if not _bend(m, d, first, 0, frame, length, meet):
        return False
    if not _bend(m, d, second, 1, frame, length, meet):
        return False
    if not _is_unique(STRAIGHT * length, radii):
        return False
    a, b = radii[0, 0] + radii[1, 0] + gap, radii[0, 1] + radii[1, 1]
    c = radii[0, 2] + radii[1, 2] + gap
    size = a * c - b * b
    if not (a > 0.0 and size > 0.0):
        return False
    inverse, flat = (c / size, -b / size, a / size), -1
    for which in range(2):
        if min(radii[which, 0], radii[which, 2]) == STRAIGHT * length:
            flat = which
    turn = numbers(pointer(d + _XMAT) + 72 * second, 9)
    for k in range(3):
        meet.local[0, k] = turn[3 * k + 2]
    for which in range(2):
        body = body_of_geom(m, second if which == 1 else first)
        if entry(m + _WELD, body) == 0:
            continue
        for axis in range(6):
            _change(which, axis, frame, gap, about, flat, meet, inverse, out[which])
            if led:
                turns = which == 1 and axis < 3
                _carry_tangent(turns, axis, frame, meet.local[0], meet, out[which])
    return True
