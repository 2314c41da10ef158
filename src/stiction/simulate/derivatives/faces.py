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
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.packing import packed
from stiction.simulate.derivatives.curvature import GAP, NORMAL, ON_SURFACE, POINT, TANGENT

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
    """What a pair of boxes is worked out in, and one contact of it."""

    place: Array  # (2, 3) of either box
    turn: Array  # (2, 9)
    size: Array  # (2, 3)
    face: NDArray[np.int64]  # (2,) axis of either box along the normal, or -1
    off: Array  # (2,) sine of the angle between them
    normal: Array  # (3, 3) of the planes that meet
    inverse: Array  # (3, 3)
    share: Array  # (3, 2) of either box in how each one moves
    end: Array  # (3,) where they meet
    carries: Array  # (2, 3) share of the ways to turn about an axis in which a box carries


def allocate_planes() -> Planes:
    """Room for one pair."""
    return Planes(
        np.zeros((2, 3)), np.zeros((2, 9)), np.zeros((2, 3)), np.zeros(2, np.int64), np.zeros(2),
        np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 2)), np.zeros(3), np.zeros((2, 3)),
    )  # fmt: skip


@lean
def _find_faces(n, p: Planes):
    """p.face, p.off := the axis of either box that is nearest to the normal, and how far it is."""
    for which in range(2):
        turn, best = p.turn, 0.0
        for c in range(3):
            along = n[0] * turn[which, c] + n[1] * turn[which, 3 + c] + n[2] * turn[which, 6 + c]
            if abs(along) > abs(best):
                best, p.face[which] = along, c
        p.off[which], sign, axis = 0.0, 1.0 if best > 0.0 else -1.0, p.face[which]
        for c in range(3):
            p.off[which] = max(p.off[which], abs(n[c] - sign * turn[which, 3 * c + axis]))


@lean_leaf
def _invert(p: Planes):
    """p.inverse := of p.normal; whether the planes meet in a point."""
    m, out = p.normal, p.inverse
    a0, a1, a2 = m[0, 0], m[0, 1], m[0, 2]
    b0, b1, b2 = m[1, 0], m[1, 1], m[1, 2]
    c0, c1, c2 = m[2, 0], m[2, 1], m[2, 2]
    x, y, z = b1 * c2 - b2 * c1, b2 * c0 - b0 * c2, b0 * c1 - b1 * c0
    volume = a0 * x + a1 * y + a2 * z
    scale = 1.0 / volume
    out[0, 0], out[1, 0], out[2, 0] = scale * x, scale * y, scale * z
    x, y, z = c1 * a2 - c2 * a1, c2 * a0 - c0 * a2, c0 * a1 - c1 * a0
    out[0, 1], out[1, 1], out[2, 1] = scale * x, scale * y, scale * z
    x, y, z = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
    out[0, 2], out[1, 2], out[2, 2] = scale * x, scale * y, scale * z
    return abs(volume) > SKEW


@lean
def _shares_plane(count, which, axis, p: Planes):
    """Whether a side across an axis is one of the planes that were found, of the other box; half of
    it is then of either."""
    for k in range(count):
        along = 0.0
        for c in range(3):
            along += p.normal[k, c] * p.turn[which, 3 * c + axis]
        if 1.0 - along * along <= ONE_PLANE:
            p.share[k, 0] = p.share[k, 1] = 0.5
            return True
    return False


@lean
def _find_planes(carrying, n, gap, point, near, p: Planes):
    """The three planes that meet where a box lies on the carrying one; whether they are three."""
    count = 0
    for c in range(3):
        p.end[c] = point[c] + 0.5 * gap * n[c] * (1.0 - 2.0 * carrying)
    for which in range(2):
        for c in range(3):
            if which == carrying and c == p.face[which]:
                continue
            at = 0.0
            for k in range(3):
                at += p.turn[which, 3 * k + c] * (p.end[k] - p.place[which, k])
            if abs(abs(at) - p.size[which, c]) > near:
                continue
            if _shares_plane(count, which, c, p):
                continue
            if count == 3:
                return False
            for k in range(3):
                p.normal[count, k] = p.turn[which, 3 * k + c]
            p.share[count, which], p.share[count, 1 - which] = 1.0, 0.0
            count += 1
    return count == 3 and _invert(p)


@lean_leaf
def _put_move(k, which, carrying, n0, n1, n2, p: Planes, out):
    """Column 3 + k of out: the changes as one box moves along axis k."""
    by, m = p.inverse, p.normal
    x = p.share[0, which] * m[0, k]
    y = p.share[1, which] * m[1, k]
    z = p.share[2, which] * m[2, k]
    e0 = by[0, 0] * x + by[0, 1] * y + by[0, 2] * z
    e1 = by[1, 0] * x + by[1, 1] * y + by[1, 2] * z
    e2 = by[2, 0] * x + by[2, 1] * y + by[2, 2] * z
    own = n0 if k == 0 else n1 if k == 1 else n2
    rise = n0 * e0 + n1 * e1 + n2 * e2 - (own if which == carrying else 0.0)
    out[GAP, 3 + k] = (1.0 - 2.0 * carrying) * rise
    out[POINT, 3 + k] = e0 - 0.5 * rise * n0
    out[POINT + 1, 3 + k] = e1 - 0.5 * rise * n1
    out[POINT + 2, 3 + k] = e2 - 0.5 * rise * n2


@lean_leaf
def _put_turn(k, a, b, which, carrying, n, gap, about, p: Planes, out):
    """Column k of out: the changes as one box turns about axis k; a, b: the two axes after it."""
    share = p.carries[which, k]
    first = share if which == 0 else 1.0 - share  # of the ways in which the first box carries
    off = gap * (first - 1.0 + carrying)
    x, y = p.end[a] + off * n[a] - about[a], p.end[b] + off * n[b] - about[b]
    u, v = -share * n[b], share * n[a]
    back = (0.5 - which) * gap
    out[NORMAL + a, k], out[NORMAL + b, k], out[NORMAL + k, k] = u, v, 0.0
    out[GAP, k] = x * out[GAP, 3 + b] - y * out[GAP, 3 + a]
    out[POINT + k, k] = x * out[POINT + k, 3 + b] - y * out[POINT + k, 3 + a]
    out[POINT + a, k] = x * out[POINT + a, 3 + b] - y * out[POINT + a, 3 + a] - back * u
    out[POINT + b, k] = x * out[POINT + b, 3 + b] - y * out[POINT + b, 3 + a] - back * v


@lean
def _change(carrying, which, n, gap, about, p: Planes, out):
    """out (CHANGES, 6) := the changes as one box turns about `about` or moves. Where either box may
    carry, planes move the same with both; the end lies on the one that does not carry, and the
    normal turns with the other."""
    for k in range(3):
        _put_move(k, which, carrying, n[0], n[1], n[2], p, out)
        for c in range(3):
            out[NORMAL + c, 3 + k] = out[TANGENT + c, k] = out[TANGENT + c, 3 + k] = 0.0
    _put_turn(0, 1, 2, which, carrying, n, gap, about, p, out)
    _put_turn(1, 2, 0, which, carrying, n, gap, about, p, out)
    _put_turn(2, 0, 1, which, carrying, n, gap, about, p, out)


@lean
def _share_turns(n, p: Planes):
    """p.carries := of two boxes face on face, as either turns about each axis, to and fro: the one
    along whose normal they overlap less."""
    place, turn, half = p.place, p.turn, p.size
    for axis in range(3):
        a, b = (axis + 1) % 3, (axis + 2) % 3
        x, y = -n[b], n[a]  # what the normal turns by
        shift = x * (place[1, a] - place[0, a]) + y * (place[1, b] - place[0, b])
        more, size = 0.0, 0.0  # of the overlap along the first normal
        for box in range(2):
            for c in range(3):
                if c != p.face[box]:
                    rise = abs(x * turn[box, 3 * a + c] + y * turn[box, 3 * b + c]) * half[box, c]
                    more += (2 * box - 1) * rise
                    size += rise
        for which in range(2):
            share = 0.0
            for sign in range(-1, 2, 2):  # of the first normal less the second
                less = more - sign * shift
                first = less < 0.0 if abs(less) > AS_DEEP * size else which == 1
                share += 0.5 if first else 0.0
            p.carries[which, axis] = share if which == 0 else 1.0 - share


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


@lean
def take_boxes(m, d, first, second, frame, p: Planes):
    """Reads two boxes with a contact between them; the one that carries, 0 or 1, or -1 where the
    normal is not that of a face, or the tangents do not follow from it. frame (3, 3): both."""
    for which in range(2):
        geom = second if which == 1 else first
        place, size = (
            numbers(pointer(d + _XPOS) + 24 * geom, 3),
            numbers(pointer(m + _SIZE) + 24 * geom, 3),
        )
        turn = numbers(pointer(d + _XMAT) + 72 * geom, 9)
        for c in range(3):
            p.place[which, c], p.size[which, c] = place[c], size[c]
        for c in range(9):
            p.turn[which, c] = turn[c]
    n = frame[0]
    _find_faces(n, p)
    carrying = 0 if p.off[0] <= p.off[1] else 1
    if p.off[carrying] > FACE_NORMAL or not _follows(frame):
        return -1
    if p.off[1 - carrying] <= FACE_ON_FACE:
        _share_turns(n, p)
    else:
        for axis in range(3):
            p.carries[carrying, axis], p.carries[1 - carrying, axis] = 1.0, 0.0
    return carrying


@lean
def differentiate_face(carrying, n, gap, point, about, length, p: Planes, out):
    """out (2, CHANGES, 6) := the changes of one contact of the two boxes that were taken as either
    turns about `about` (3,) or moves; whether it has closed forms. n (3,): the normal that they
    were taken with; length: the size of what moves [m]."""
    if not _find_planes(carrying, n, gap, point, ON_SURFACE * length, p):
        return False
    for which in range(2):
        _change(carrying, which, n, gap, about, p, out[which])
    return True
