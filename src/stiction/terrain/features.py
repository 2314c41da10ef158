"""Corners, edges and faces of a body on the surface of a height field.

Each function adds contacts nearer than `reach` to out (n, WIDTH), from number `count` on, in the
frame of the field, and returns how many there are then; those for which there is no room are
counted and not written.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel, leaf
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
)
from stiction.terrain.hulls import Hulls

Array = NDArray[np.float64]

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
        line = out[count]
        line[GAP] = gap
        line[POINT], line[POINT + 1], line[POINT + 2] = (
            x + 0.5 * gap * nx,
            y + 0.5 * gap * ny,
            z + 0.5 * gap * nz,
        )
        line[NORMAL], line[NORMAL + 1], line[NORMAL + 2] = nx, ny, nz
        line[FOOT], line[FOOT + 1] = x, y
    return count + 1


# Corners on triangles


@kernel
def put_point(
    field: Field, c: int, r: int, half: int, at: Array, radius: float, reach: float, deep: float,
    out: Array, count: int,
) -> int:  # fmt: skip
    """A ball around a point on one triangle."""
    sx, sy = slopes(field, c, r, half)
    size = np.sqrt(1.0 + sx * sx + sy * sy)
    level = field.z[r, c] + sx * (at[0] - field.x - c * field.dx)
    level += sy * (at[1] - field.y - r * field.dy)
    far = (at[2] - level) / size
    gap = far - radius
    if gap > reach or gap < -reach - deep:
        return count
    nx, ny, nz = -sx / size, -sy / size, 1.0 / size
    x, y, z = at[0] - far * nx, at[1] - far * ny, at[2] - far * nz
    if not covers(field, c, r, half, x, y, INSIDE, INSIDE):
        return count
    if far < -deep and not covers(field, c, r, half, at[0], at[1], INSIDE, INSIDE):
        return count
    return put(out, count, gap, x, y, z, nx, ny, nz)


@kernel
def put_corner(
    field: Field, at: Array, radius: float, reach: float, deep: float, out: Array, count: int
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
    field: Field, a: Array, b: Array, sides: Array, radius: float, reach: float, out: Array,
    count: int,
) -> int:  # fmt: skip
    """An edge of a body from a to b on the edges of the surface."""
    wide = reach + radius
    c0, c1, r0, r1 = cells_about(field, a, b, wide)
    low = min(a[2], b[2]) - wide
    along = b - a
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
    field: Field, c: int, r: int, kind: int, ec: int, er: int, a: Array, along: Array,
    sides: Array, radius: float, reach: float, out: Array, count: int,
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
    field: Field, c: int, r: int, kind: int, nx: float, ny: float, nz: float, sides: Array
) -> bool:
    """Whether a normal belongs to an edge of the surface that is convex, and to the edge of a body
    with faces in the directions of `sides` (2, 3)."""
    if nz < UPRIGHT or not is_ridge(field, c, r, kind):
        return False
    for side in range(2):
        x, y, z = spread(field, c, r, kind, side)
        if nx * x + ny * y + nz * z > STEEPER:
            return False
        if nx * sides[side, 0] + ny * sides[side, 1] + nz * sides[side, 2] < -STEEPER:
            return False
    return True


# Vertices on axes and faces


@kernel
def put_axis(
    field: Field, a: Array, b: Array, radius: float, reach: float, out: Array, count: int
) -> int:
    """Vertices of the surface that stand out of it on the round side about the axis from a to b."""
    wide = reach + radius
    c0, c1, r0, r1 = cells_about(field, a, b, wide)
    along = b - a
    for r in range(r0, r1 + 1):
        for c in range(c0, c1 + 1):
            if field.z[r, c] < min(a[2], b[2]) - wide or not stands_out(field, c, r):
                continue
            vertex = np.array([field.x + c * field.dx, field.y + r * field.dy, field.z[r, c]])
            share = (vertex - a) @ along / (along @ along)
            if not 0.0 <= share <= 1.0:
                continue
            away = a + share * along - vertex
            far = np.sqrt(away @ away)
            if far == 0.0 or abs(far - radius) > reach or away[2] < UPRIGHT * far:
                continue
            n = away / far
            if is_peak(field, c, r, n):
                count = put(
                    out, count, far - radius, vertex[0], vertex[1], vertex[2], n[0], n[1], n[2]
                )
    return count


@kernel
def put_faces(
    field: Field, hulls: Hulls, geom: int, shift: Array, axes: Array, reach: float, deep: float,
    out: Array, count: int,
) -> int:  # fmt: skip
    """Vertices of the surface that stand out of it on the faces of a polyhedron."""
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for i in range(hulls.corner_start[geom], hulls.corner_start[geom + 1]):
        corner = shift + axes @ hulls.corner[i]
        low, high = np.minimum(low, corner), np.maximum(high, corner)
    c0, c1, r0, r1 = cells_about(field, low, high, reach)
    for r in range(r0, r1 + 1):
        for c in range(c0, c1 + 1):
            if field.z[r, c] < low[2] - reach or not stands_out(field, c, r):
                continue
            vertex = np.array([field.x + c * field.dx, field.y + r * field.dy, field.z[r, c]])
            local = axes.T @ (vertex - shift)
            face = nearest_face(hulls, geom, local)
            point, normal = hulls.face[face, :3], hulls.face[face, 3:]
            gap = float((local - point) @ normal)
            if gap > reach or gap < -reach or not is_over(hulls, face, local, gap, deep):
                continue
            n = -(axes @ normal)
            count = put(out, count, gap, vertex[0], vertex[1], vertex[2], n[0], n[1], n[2])
    return count


@kernel
def nearest_face(hulls: Hulls, geom: int, at: Array) -> int:
    """The face whose plane a point is farthest outside of, or least inside."""
    best, farthest = -1, -np.inf
    for i in range(hulls.face_start[geom], hulls.face_start[geom + 1]):
        far = 0.0
        for k in range(3):
            far += (at[k] - hulls.face[i, k]) * hulls.face[i, 3 + k]
        if far > farthest:
            best, farthest = i, far
    return best


@kernel
def is_over(hulls: Hulls, face: int, at: Array, gap: float, deep: float) -> bool:
    """Whether a point is over a face, or inside of the body by more than `deep`."""
    if gap < -deep:
        return True
    for i in range(hulls.side_start[face], hulls.side_start[face + 1]):
        far = 0.0
        for k in range(3):
            far += (at[k] - hulls.side[i, k]) * hulls.side[i, 3 + k]
        if far < 0.0:
            return False
    return True
