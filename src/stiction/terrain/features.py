"""Corners, edges and faces of a body on the surface of a height field.

Each function adds contacts nearer than `reach` to out (n, WIDTH), from number `count` on, in the
frame of the field, and returns how many there are then; those for which there is no room are
counted and not written.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel, leaf
from stiction.kernels.triples import (
    Triple,
    carried,
    dot,
    minus,
    moved,
    three_of,
    turned,
    turned_back,
)
from stiction.terrain.height_field import (
    FLAT,
    Field,
    cells_about,
    covers,
    is_peak,
    is_ridge,
    slopes,
    spread,
    stands_out,
    vertex_of,
)
from stiction.terrain.hulls import Hulls

Array = NDArray[np.float64]
Sides = tuple[Triple, Triple]
"""Directions from an edge of a body into the faces beside it."""

STEEPER = 0.02
"""Sine of the angle by which an edge's contact may be steeper than the faces beside it: a face that
lies on a ridge keeps both ends of what it covers when it tilts."""

CROSSING = 1e-3
"""Sine of the angle below which edges are parallel, and do not cross."""

UPRIGHT = 1e-3
"""Least upward part of the normal across an edge; what is steeper stands beside the field."""

INSIDE = 1e-9
"""Share of a cell, or of an edge, by which its border belongs to it."""

WIDTH = 9
"""Numbers that describe a contact: gap, point, normal, position on the field."""

GAP, POINT, NORMAL, FOOT = 0, 1, 4, 7
"""Where they begin."""


@leaf
def put(
    out: Array,
    count: int,
    gap: float,
    x: float,
    y: float,
    z: float,
    nx: float,
    ny: float,
    nz: float,
) -> int:
    """Notes the contact at (x, y, z) of the surface; returns the number of contacts."""
    if count < out.shape[0]:
        out[count, GAP] = gap
        out[count, POINT] = x + 0.5 * gap * nx
        out[count, POINT + 1] = y + 0.5 * gap * ny
        out[count, POINT + 2] = z + 0.5 * gap * nz
        out[count, NORMAL], out[count, NORMAL + 1], out[count, NORMAL + 2] = nx, ny, nz
        out[count, FOOT], out[count, FOOT + 1] = x, y
    return count + 1


# Corners on triangles


@kernel
def put_point(
    field: Field, c: int, r: int, half: int, at: Triple, radius: float, reach: float, deep: float,
    out: Array, count: int,
) -> int:  # fmt: skip
    """A ball around a point on one triangle; deeper than `reach`, where the point itself is below
    the triangle."""
    sx, sy = slopes(field, c, r, half)
    size = np.sqrt(1.0 + sx * sx + sy * sy)
    level = field.z[r, c] + sx * (at[0] - field.x - c * field.dx)
    level += sy * (at[1] - field.y - r * field.dy)
    far = (at[2] - level) / size
    gap = far - radius
    if gap > reach:
        return count
    nx, ny, nz = -sx / size, -sy / size, 1.0 / size
    x, y, z = at[0] - far * nx, at[1] - far * ny, at[2] - far * nz
    beyond_reach = gap < -reach - deep
    if not beyond_reach and not covers(field, c, r, half, x, y, INSIDE, INSIDE):
        return count
    deeper = beyond_reach or far < -deep
    if deeper and not covers(field, c, r, half, at[0], at[1], INSIDE, INSIDE):
        return count
    return put(out, count, gap, x, y, z, nx, ny, nz)


@kernel
def put_corner(
    field: Field, at: Triple, radius: float, reach: float, deep: float, out: Array, count: int
) -> int:
    """A ball around a corner on all triangles near it, once for those in one plane."""
    first = count
    wide = reach + radius
    c0, c1, r0, r1 = cells_about(field, at, at, wide)
    for r in range(r0, r1):
        for c in range(c0, c1):
            for half in range(2):
                found = put_point(field, c, r, half, at, radius, reach, deep, out, count)
                if found > count and not is_known(out, first, count):
                    count = found
    return count


@kernel
def is_known(out: Array, first: int, last: int) -> bool:
    """Whether a contact has the normal of one of those before it, of the same corner."""
    if last >= out.shape[0]:
        return False
    for k in range(first, last):
        away = 0.0
        for j in range(NORMAL, NORMAL + 3):
            away = max(away, abs(out[k, j] - out[last, j]))
        if away <= FLAT:
            return True
    return False


# Edges across edges


@kernel
def put_edge(
    field: Field, a: Triple, b: Triple, sides: Sides, radius: float, reach: float, out: Array,
    count: int,
) -> int:  # fmt: skip
    """An edge of a body from a to b on the edges of the surface."""
    wide = reach + radius
    c0, c1, r0, r1 = cells_about(field, a, b, wide)
    low = min(a[2], b[2]) - wide
    along = minus(b, a)
    for r in range(r0, r1 + 1):
        for c in range(c0, c1 + 1):
            for kind in range(3):
                ec, er = c + (kind != 1), r + (kind != 0)
                if ec >= field.z.shape[1] or er >= field.z.shape[0]:
                    continue
                if max(field.z[r, c], field.z[er, ec]) < low:
                    continue
                count = put_crossing(
                    field, c, r, kind, ec, er, a, along, sides, radius, reach, out, count
                )
    return count


@kernel
def put_crossing(
    field: Field, c: int, r: int, kind: int, ec: int, er: int, a: Triple, along: Triple,
    sides: Sides, radius: float, reach: float, out: Array, count: int,
) -> int:  # fmt: skip
    """The line from a on an edge of the surface, from the vertex (c, r) to (ec, er), where they are
    nearest between their ends."""
    px, py, pz = field.x + c * field.dx, field.y + r * field.dy, field.z[r, c]
    qx, qy, qz = (ec - c) * field.dx, (er - r) * field.dy, field.z[er, ec] - pz
    bx, by, bz = along[0], along[1], along[2]
    nx, ny, nz = by * qz - bz * qy, bz * qx - bx * qz, bx * qy - by * qx
    size = np.sqrt(nx * nx + ny * ny + nz * nz)
    long = np.sqrt((bx * bx + by * by + bz * bz) * (qx * qx + qy * qy + qz * qz))
    if size <= CROSSING * long:
        return count
    wx, wy, wz = px - a[0], py - a[1], pz - a[2]
    # ((p - a) x q) . n and ((p - a) x b) . n, over n . n
    s = (wy * qz - wz * qy) * nx + (wz * qx - wx * qz) * ny + (wx * qy - wy * qx) * nz
    t = (wy * bz - wz * by) * nx + (wz * bx - wx * bz) * ny + (wx * by - wy * bx) * nz
    s, t = s / (size * size), t / (size * size)
    if not (-INSIDE <= s <= 1.0 + INSIDE and -INSIDE <= t <= 1.0 + INSIDE):
        return count
    sign = 1.0 if nz > 0.0 else -1.0
    nx, ny, nz = sign * nx / size, sign * ny / size, sign * nz / size
    gap = -(wx * nx + wy * ny + wz * nz) - radius
    if gap > reach or gap < -reach or not fits(field, c, r, kind, nx, ny, nz, sides):
        return count
    return put(out, count, gap, px + t * qx, py + t * qy, pz + t * qz, nx, ny, nz)


@kernel
def fits(
    field: Field, c: int, r: int, kind: int, nx: float, ny: float, nz: float, sides: Sides
) -> bool:
    """Whether a normal belongs to an edge of the surface that is convex, and to the edge of a body
    with faces in the directions of `sides`."""
    if nz < UPRIGHT or not is_ridge(field, c, r, kind):
        return False
    for side in range(2):
        x, y, z = spread(field, c, r, kind, side)
        if nx * x + ny * y + nz * z > STEEPER:
            return False
        if dot((nx, ny, nz), sides[side]) < -STEEPER:
            return False
    return True


# Vertices on axes and faces


@kernel
def put_axis(
    field: Field, a: Triple, b: Triple, radius: float, reach: float, out: Array, count: int
) -> int:
    """Vertices of the surface that stand out of it on the round side about the axis from a to b."""
    wide = reach + radius
    c0, c1, r0, r1 = cells_about(field, a, b, wide)
    along = minus(b, a)
    for r in range(r0, r1 + 1):
        for c in range(c0, c1 + 1):
            if field.z[r, c] < min(a[2], b[2]) - wide or not stands_out(field, c, r):
                continue
            vertex = vertex_of(field, c, r)
            share = dot(minus(vertex, a), along) / dot(along, along)
            if not 0.0 <= share <= 1.0:
                continue
            away = minus(moved(a, share, along), vertex)
            far = np.sqrt(dot(away, away))
            if far == 0.0 or abs(far - radius) > reach or away[2] < UPRIGHT * far:
                continue
            n = away[0] / far, away[1] / far, away[2] / far
            if is_peak(field, c, r, n):
                count = put(
                    out, count, far - radius, vertex[0], vertex[1], vertex[2], n[0], n[1], n[2]
                )
    return count


@kernel
def put_faces(
    field: Field, hulls: Hulls, geom: int, shift: Triple, axes: Array, reach: float, deep: float,
    out: Array, count: int,
) -> int:  # fmt: skip
    """Vertices of the surface that stand out of it on the faces of a polyhedron."""
    low, high = (np.inf, np.inf, np.inf), (-np.inf, -np.inf, -np.inf)
    for i in range(hulls.corner_start[geom], hulls.corner_start[geom + 1]):
        x, y, z = carried(shift, axes, three_of(hulls.corner, i, 0))
        low = min(low[0], x), min(low[1], y), min(low[2], z)
        high = max(high[0], x), max(high[1], y), max(high[2], z)
    c0, c1, r0, r1 = cells_about(field, low, high, reach)
    for r in range(r0, r1 + 1):
        for c in range(c0, c1 + 1):
            if field.z[r, c] < low[2] - reach or not stands_out(field, c, r):
                continue
            vertex = vertex_of(field, c, r)
            local = turned_back(axes, minus(vertex, shift))
            face = nearest_face(hulls, geom, local)
            gap = beyond(hulls.face, face, local)
            if gap > reach or gap < -reach or not is_over(hulls, face, local, gap, deep):
                continue
            n = turned(axes, three_of(hulls.face, face, 3))
            count = put(out, count, gap, vertex[0], vertex[1], vertex[2], -n[0], -n[1], -n[2])
    return count


@leaf
def beyond(planes: Array, i: int, at: Triple) -> float:
    """How far a point is beyond the i-th plane: planes (n, 6), a point and a normal each."""
    far = 0.0
    for k in range(3):
        far += (at[k] - planes[i, k]) * planes[i, 3 + k]
    return far


@kernel
def nearest_face(hulls: Hulls, geom: int, at: Triple) -> int:
    """The face whose plane a point is farthest outside of, or least inside."""
    best, farthest = -1, -np.inf
    for i in range(hulls.face_start[geom], hulls.face_start[geom + 1]):
        far = beyond(hulls.face, i, at)
        if far > farthest:
            best, farthest = i, far
    return best


@kernel
def is_over(hulls: Hulls, face: int, at: Triple, gap: float, deep: float) -> bool:
    """Whether a point is over a face, or inside of the body by more than `deep`."""
    if gap < -deep:
        return True
    for i in range(hulls.side_start[face], hulls.side_start[face + 1]):
        if beyond(hulls.side, i, at) < 0.0:
            return False
    return True
