"""Contacts of a box with the face of another, to first order, in closed form.

MuJoCo takes the normal N of one face, of the box that is said to carry here, and as contacts the
ends of what the other box, which lies on it, has of its own face within the edges of that one. Each
is where three planes meet,

    faces of the lying box       a corner has three, a point of an edge two, of a face one
    sides of the carrying face   where the edges of that end what lies on it

and with e that point, each plane with its normal m moves with one of the boxes, velocity v there:

    m . de = m . v(e) for each plane      dg = N . (de - v(e) of the carrying box)
    dN = w x N of the carrying box        the contact's point is e - g N / 2

Face on face, either box may be the one that carries: MuJoCo takes the normal along which they
overlap less. At the border, in which boxes lie that rest on each other, that depends on how they
turn: each way has its own, and the mean of both is taken; of two that overlap as much, the box that
does not turn carries. Sides that lie in one plane end what both have in common, whichever is the
farther in: one way the one, the other way the other, in the mean half of each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.bridge.layout import numbers, offset, pointer
from stiction.contact.problem.arrays import Array
from stiction.kernels.compile import kernel, lean
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.curvature import CHANGES, GAP, NORMAL, ON_SURFACE, POINT, TANGENT

_SIZE = offset("mjModel", "geom_size")
_XPOS, _XMAT = offset("mjData", "geom_xpos"), offset("mjData", "geom_xmat")

FACE_NORMAL = 1e-12
"""Sine of the angle between a contact's normal and that of the face that it is the normal of."""

FACE_ON_FACE = 2e-7
"""The same of two faces up to which either may be the one that carries."""

AS_DEEP = 1e-6
"""Difference of two overlaps, over what a turn adds to both, up to which neither is the lesser."""

ONE_PLANE = 1e-12
"""Square of the sine of the angle between two sides that lie in one plane."""

SKEW = 1e-2
"""Volume spanned by the normals of three planes up to which they do not meet in a point."""


@packed
class Planes(NamedTuple):
    """What one contact is worked out in."""

    face: NDArray[np.int64]  # (2,) axis of either box along the normal, or -1
    off: Array  # (2,) sine of the angle between them
    normal: Array  # (3, 3) of the planes that meet
    inverse: Array  # (3, 3)
    share: Array  # (3, 2) of either box in how each one moves
    end: Array  # (3,) where they meet
    column: Array  # (2, CHANGES) with the first box carrying, and with the second
    six: Array  # (2, 3) velocity of a box at the end, and turn of the normal


def allocate_planes() -> Planes:
    """Room for one contact."""
    return Planes(
        np.zeros(2, np.int64), np.zeros(2), np.zeros((3, 3)), np.zeros((3, 3)),
        np.zeros((3, 2)), np.zeros(3), np.zeros((2, CHANGES)), np.zeros((2, 3)),
    )  # fmt: skip


@lean
def _find_faces(n, turns, p: Planes):
    """p.face, p.off := the axis of either box that is nearest to the normal, and how far it is."""
    for which in range(2):
        turn, best = turns[which], 0.0
        for c in range(3):
            along = n[0] * turn[c] + n[1] * turn[3 + c] + n[2] * turn[6 + c]
            if abs(along) > abs(best):
                best, p.face[which] = along, c
        p.off[which], sign, axis = 0.0, 1.0 if best > 0.0 else -1.0, p.face[which]
        for c in range(3):
            p.off[which] = max(p.off[which], abs(n[c] - sign * turn[3 * c + axis]))


@lean
def _invert(p: Planes):
    """p.inverse := of p.normal; whether the planes meet in a point."""
    m, out = p.normal, p.inverse
    for c in range(3):
        a, b = (c + 1) % 3, (c + 2) % 3
        for k in range(3):
            x, y = (k + 1) % 3, (k + 2) % 3
            out[k, c] = m[a, x] * m[b, y] - m[a, y] * m[b, x]
    volume = m[0, 0] * out[0, 0] + m[0, 1] * out[1, 0] + m[0, 2] * out[2, 0]
    for c in range(3):
        for k in range(3):
            out[c, k] /= volume
    return abs(volume) > SKEW


@lean
def _shares_plane(count, turn, axis, p: Planes):
    """Whether a side across an axis is one of the planes that were found, of the other box; half of
    it is then of either."""
    for k in range(count):
        along = 0.0
        for c in range(3):
            along += p.normal[k, c] * turn[3 * c + axis]
        if 1.0 - along * along <= ONE_PLANE:
            p.share[k, 0] = p.share[k, 1] = 0.5
            return True
    return False


@lean
def _find_planes(carrying, n, gap, point, near, places, turns, sizes, p: Planes):
    """The three planes that meet where a box lies on the carrying one; whether they are three."""
    count = 0
    for c in range(3):
        p.end[c] = point[c] + 0.5 * gap * n[c] * (1.0 - 2.0 * carrying)
    for which in range(2):
        place, turn, size = places[which], turns[which], sizes[which]
        for c in range(3):
            if which == carrying and c == p.face[which]:
                continue
            at = 0.0
            for k in range(3):
                at += turn[3 * k + c] * (p.end[k] - place[k])
            if abs(abs(at) - size[c]) > near:
                continue
            if _shares_plane(count, turn, c, p):
                continue
            if count == 3:
                return False
            for k in range(3):
                p.normal[count, k] = turn[3 * k + c]
            p.share[count, which], p.share[count, 1 - which] = 1.0, 0.0
            count += 1
    return count == 3 and _invert(p)


@lean
def _change(carrying, which, axis, n, gap, about, p: Planes):
    """p.column[carrying] := the changes as one box turns about `about` or moves."""
    v, turned, end, out = p.six[0], p.six[1], p.end, p.column[carrying]
    for c in range(3):
        v[c] = turned[c] = 0.0
    if axis > 2:
        v[axis - 3] = 1.0
    else:
        a, b = (axis + 1) % 3, (axis + 2) % 3
        v[a], v[b] = about[b] - end[b], end[a] - about[a]
        if which == carrying:
            turned[a], turned[b] = -n[b], n[a]
    x, y, z = 0.0, 0.0, 0.0
    for k in range(3):
        if p.share[k, which] > 0.0:
            m = p.normal[k, 0] * v[0] + p.normal[k, 1] * v[1] + p.normal[k, 2] * v[2]
            m *= p.share[k, which]
            x += p.inverse[0, k] * m
            y += p.inverse[1, k] * m
            z += p.inverse[2, k] * m
    rise = n[0] * x + n[1] * y + n[2] * z
    if which == carrying:
        rise -= n[0] * v[0] + n[1] * v[1] + n[2] * v[2]
    sign = 1.0 - 2.0 * carrying
    out[GAP] = sign * rise
    out[POINT], out[POINT + 1], out[POINT + 2] = x, y, z
    for c in range(3):
        out[POINT + c] -= 0.5 * (rise * n[c] + sign * gap * turned[c])
        out[NORMAL + c] = turned[c]
        out[TANGENT + c] = 0.0


@lean
def _carrier(which, axis, sign, n, away, turns, sizes, p: Planes):
    """The box along whose face two that lie face on face overlap less, as one of them turns by
    `sign` about an axis; away (3,): from the first box to the second."""
    a, b = (axis + 1) % 3, (axis + 2) % 3
    rate = sign if which == 0 else -sign  # of the first normal less that of the second
    x, y = -rate * n[b], rate * n[a]
    less, size = -(x * away[a] + y * away[b]), 0.0
    for box in range(2):
        for c in range(3):
            if c != p.face[box]:
                tilt = abs(x * turns[box][3 * a + c] + y * turns[box][3 * b + c]) * sizes[box][c]
                less += tilt if box == 1 else -tilt
                size += tilt
    if abs(less) <= AS_DEEP * size:
        return 1 - which
    return 0 if less < 0.0 else 1


@lean
def _follows(frame):
    """Whether the tangent is the one that MuJoCo makes of the normal."""
    n = frame[0]
    e = 1 if abs(n[1]) < 0.5 else 2
    size = np.sqrt(1.0 - n[e] * n[e])
    for c in range(3):
        if abs((1.0 if c == e else 0.0) - n[c] * n[e] - size * frame[1, c]) > ON_SURFACE:
            return False
    return True


@kernel
def differentiate_face(m, d, first, second, frame, gap, point, about, length, p: Planes, out):
    """out (2, CHANGES, 6) := the changes of one contact of two boxes as either turns about `about`
    (3,) or moves; whether it has closed forms. frame (3, 3): the normal and the tangents, which
    follow from it; length: the size of what moves [m]."""
    n, near = frame[0], ON_SURFACE * length
    places = (
        numbers(pointer(d + _XPOS) + 24 * first, 3),
        numbers(pointer(d + _XPOS) + 24 * second, 3),
    )
    turns = (
        numbers(pointer(d + _XMAT) + 72 * first, 9),
        numbers(pointer(d + _XMAT) + 72 * second, 9),
    )
    sizes = (
        numbers(pointer(m + _SIZE) + 24 * first, 3),
        numbers(pointer(m + _SIZE) + 24 * second, 3),
    )
    _find_faces(n, turns, p)
    carrying = 0 if p.off[0] <= p.off[1] else 1
    if p.off[carrying] > FACE_NORMAL or not _follows(frame):
        return False
    either = p.off[1 - carrying] <= FACE_ON_FACE
    if not _find_planes(carrying, n, gap, point, near, places, turns, sizes, p):
        return False
    for which in range(2):
        for axis in range(6):
            _change(carrying, which, axis, n, gap, about, p)
            for c in range(CHANGES):
                out[which, c, axis] = p.column[carrying, c]
    if not either:
        return True
    away = p.six[1]
    if not _find_planes(1 - carrying, n, gap, point, near, places, turns, sizes, p):
        return False
    for which in range(2):
        for axis in range(3):
            share = 0.0
            for side in range(2):
                for c in range(3):
                    away[c] = places[1][c] - places[0][c]
                by = _carrier(which, axis, 1.0 - 2.0 * side, n, away, turns, sizes, p)
                share += 0.5 if by != carrying else 0.0
            if share > 0.0:
                _change(1 - carrying, which, axis, n, gap, about, p)
                for c in range(CHANGES):
                    change = p.column[1 - carrying, c] - out[which, c, axis]
                    out[which, c, axis] += share * change
    return True
