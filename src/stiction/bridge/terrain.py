"""Contacts of corners, edges and faces with a height field, where MuJoCo gives one per cell.

MuJoCo meets a height field prism by prism, each with one contact where it is nearest to the other
geom. A face over a prism is nearest wherever rounding says, so that the contact jumps about below
it, and a body is carried by one corner after the other; and a corner that slides from one triangle
to the next meets the side of the next prism, which is inside of the ground.

Here the contacts of such a pair are those that a polyhedron has with a surface of triangles,

    corner on triangle   normal of the triangle
    vertex on face       normal of the face; only vertices that stand out of the surface
    edge across edge     normal to both; only edges at which the surface is convex

each with its own signed distance. They are where they are on the bodies, whichever is nearest. A
cylinder has the points of its rims that are lowest, highest and half-way between over the plane of
each triangle, and its rims where they cross edges. MuJoCo's own contact of a prism is kept where
none of these is as near, and if the surface does not rise above its plane beside it.

In the frame of the height field a triangle is z = height + slope (x, y) over one half of a cell: the
diagonal goes from the cell's first vertex to that of the next row and column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.hulls import Hulls, build_hulls
from stiction.bridge.layout import offset, size_of
from stiction.kernels.compile import kernel, leaf

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

FLAT = 1e-9
"""Change of slope across an edge, or around a vertex, up to which the surface is flat there."""

TILT = 0.02
"""Sine of the angle by which an edge's contact may be steeper than the faces beside it: a face that
lies on a ridge keeps both ends of what it covers when it tilts."""

CROSSING = 1e-3
"""Sine of the angle below which edges are parallel, and do not cross."""

UPRIGHT = 1e-3
"""Least upward part of the normal across an edge; what is steeper stands beside the field."""

INSIDE = 1e-9
"""Share of a cell, or of an edge, by which its border belongs to it."""

SHALLOW = 100.0
"""Overlap, in tolerances, up to which a corner counts for all triangles beside it. Of deeper ones,
which trial states have, the triangle above it tells the distance."""

AS_NEAR = 0.1
"""Share of the tolerance by which MuJoCo's contact must be nearer to be kept."""

ROUGH = 1e-3
"""Sine of the angle by which the surface may rise above the plane of MuJoCo's contact."""

PRECISION = 1e-9
"""Error of MuJoCo's witnesses [m], by which its normals are off where they are that near."""

BESIDE = 1e-6
"""Distance from an edge [m] within which MuJoCo's contact touches the triangles on both sides."""

WIDTH = 9
"""Numbers that describe a contact: gap, point, normal, position on the field."""

GAP, POINT, NORMAL, FOOT = 0, 1, 4, 7
"""Where they begin."""

CYLINDER = int(mujoco.mjtGeom.mjGEOM_CYLINDER)
_SHAPES = tuple(
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}")) for name in ("CAPSULE", "CYLINDER", "BOX", "MESH")
)

# Kernels, typed by Numba and not here.
integer: Any = layout.integer
number: Any = layout.number
pointer: Any = layout.pointer
integers: Any = layout.integers
numbers: Any = layout.numbers
flags: Any = layout.flags
add_contact: Any = library.add_contact

_SIZE = size_of("mjContact")
_DIST, _POS, _FRAME, _GEOM, _REACH = (
    offset("mjContact", name) for name in ("dist", "pos", "frame", "geom", "includemargin")
)
_NCON, _CONTACT, _XPOS, _XMAT = (
    offset("mjData", name) for name in ("ncon", "contact", "geom_xpos", "geom_xmat")
)


class Terrain(NamedTuple):
    """Height fields of a model, and which geoms meet them feature by feature."""

    field: Indices  # (ngeom,) or -1
    shape: Indices  # (ngeom,) type of a geom with features, or -1
    size: Array  # (ngeom, 3) of geoms [m]
    extent: Array  # (nhfield, 2) half lengths [m]
    rows: Indices  # (nhfield,)
    columns: Indices  # (nhfield,)
    start: Indices  # (nhfield,) in height
    height: Array  # of all vertices, row by row [m]


class Field(NamedTuple):
    """One height field: z (rows, columns) on a grid of steps dx, dy from (x, y)."""

    z: Array
    x: float
    y: float
    dx: float
    dy: float


class Ground:
    """The height fields of a model; `relay` replaces contacts with them."""

    def __init__(self, model: mujoco.MjModel, tolerance: float) -> None:
        field = np.where(model.geom_type == mujoco.mjtGeom.mjGEOM_HFIELD, model.geom_dataid, -1)
        shape = np.where(np.isin(model.geom_type, _SHAPES), model.geom_type, -1)
        self.present = bool((field >= 0).any() and (shape >= 0).any())
        self._tolerance = tolerance
        if not self.present:
            return
        scale = np.repeat(model.hfield_size[:, 2], model.hfield_nrow * model.hfield_ncol)
        self._terrain = Terrain(
            field.astype(np.int64),
            shape.astype(np.int64),
            model.geom_size.copy(),
            model.hfield_size[:, :2].copy(),
            model.hfield_nrow.astype(np.int64),
            model.hfield_ncol.astype(np.int64),
            model.hfield_adr.astype(np.int64),
            model.hfield_data.astype(np.float64) * scale,
        )
        self._hulls = build_hulls(model)

    def relay(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Replaces the contacts with height fields; between `mj_collision` and
        `mj_makeConstraint`."""
        relay(model._address, data._address, self._terrain, self._hulls, self._tolerance)


@kernel
def relay(m: int, d: int, terrain: Terrain, hulls: Hulls, tolerance: float) -> None:
    """Replaces contacts of the data at d; see the head."""
    ncon = integer(d + _NCON)
    if ncon > 0:
        old = flags(pointer(d + _CONTACT), ncon * _SIZE).copy()
        integers(d + _NCON, 1)[0] = 0
        relay_from(m, d, old, terrain, hulls, tolerance)


@kernel
def relay_from(
    m: int, d: int, old: NDArray[np.uint8], terrain: Terrain, hulls: Hulls, tolerance: float
) -> None:
    """Fills the contacts of the data at d, which is to have none, from the old ones.

    A call of its own: only an argument is certain to outlive the use of its address.
    """
    base, end_of_all = old.ctypes.data, old.ctypes.data + old.shape[0]
    room = np.empty((64, WIDTH))
    start = base
    while start < end_of_all:
        geoms = integers(start + _GEOM, 2)
        first, second = geoms[0], geoms[1]
        end = start + _SIZE
        while end < end_of_all:
            others = integers(end + _GEOM, 2)
            if others[0] != first or others[1] != second:
                break
            end += _SIZE
        found = 0
        if first >= 0 and second >= 0 and terrain.field[first] >= 0 and terrain.shape[second] >= 0:
            field = field_of(terrain, terrain.field[first])
            reach = number(start + _REACH)
            found = survey_features(d, field, terrain, hulls, first, second, reach, tolerance, room)
            if found > room.shape[0]:
                room = np.empty((found, WIDTH))
                found = survey_features(
                    d, field, terrain, hulls, first, second, reach, tolerance, room
                )
            place, turn = frame_of(d, first)
            for contact in range(start, end, _SIZE):
                if is_news(contact, field, place, turn, room[:found], tolerance):
                    add_contact(m, d, contact)
            for k in range(found):
                write_contact(start, place, turn, room[k])
                add_contact(m, d, start)
        else:
            for contact in range(start, end, _SIZE):
                add_contact(m, d, contact)
        start = end


@kernel
def field_of(terrain: Terrain, k: int) -> Field:
    """The k-th height field."""
    rows, columns = terrain.rows[k], terrain.columns[k]
    z = terrain.height[terrain.start[k] : terrain.start[k] + rows * columns]
    x, y = terrain.extent[k, 0], terrain.extent[k, 1]
    steps = (2.0 * x / (columns - 1), 2.0 * y / (rows - 1))
    return Field(z.reshape(rows, columns), -x, -y, steps[0], steps[1])


@leaf
def frame_of(d, geom):
    """(position (3,), axes as columns (3, 3)) of a geom."""
    place = numbers(pointer(d + _XPOS) + 24 * geom, 3)
    turn = numbers(pointer(d + _XMAT) + 72 * geom, 9).reshape(3, 3)
    return place, turn


@kernel
def survey_features(
    d: int, field: Field, terrain: Terrain, hulls: Hulls, first: int, second: int, reach: float,
    tolerance: float, out: Array,
) -> int:  # fmt: skip
    """Contacts of geom `second` with the height field, nearer than reach, into out (n, WIDTH), in
    the frame of the field. Returns how many there are; those for which there is no room are not
    written."""
    ground, turn = frame_of(d, first)
    place, own = frame_of(d, second)
    shift, axes = turn.T @ (place - ground), turn.T @ own
    deep = SHALLOW * tolerance
    count = 0
    for i in range(hulls.corner_start[second], hulls.corner_start[second + 1]):
        corner = shift + axes @ hulls.corner[i]
        count = put_corner(field, corner, hulls.radius[second], reach, deep, out, count)
    for i in range(hulls.edge_start[second], hulls.edge_start[second + 1]):
        a, b = shift + axes @ hulls.edge[i, 0], shift + axes @ hulls.edge[i, 1]
        sides = hulls.inward[i] @ axes.T
        count = put_edge(field, a, b, sides, hulls.radius[second], reach, out, count)
    if hulls.face_start[second] < hulls.face_start[second + 1]:
        count = put_faces(field, hulls, second, shift, axes, reach, deep, out, count)
    if terrain.shape[second] == CYLINDER:
        radius, half = terrain.size[second, 0], terrain.size[second, 1]
        count = put_caps(field, shift, axes, radius, half, reach, deep, out, count)
        count = put_rims(field, shift, axes, radius, half, reach, deep, out, count)
    return count


# The surface


@leaf
def cells(field, low_x, high_x, low_y, high_y):
    """(first column, last + 1, first row, last + 1) of the cells that meet a rectangle."""
    rows, columns = field.z.shape
    c0 = max(int(np.floor((low_x - field.x) / field.dx)), 0)
    c1 = min(int(np.floor((high_x - field.x) / field.dx)) + 1, columns - 1)
    r0 = max(int(np.floor((low_y - field.y) / field.dy)), 0)
    r1 = min(int(np.floor((high_y - field.y) / field.dy)) + 1, rows - 1)
    return c0, c1, r0, r1


@leaf
def slopes(field, c, r, half):
    """(dz/dx, dz/dy) of a half of the cell (c, r): 0 above the diagonal, 1 below it."""
    z = field.z
    if half == 0:
        return (z[r + 1, c + 1] - z[r + 1, c]) / field.dx, (z[r + 1, c] - z[r, c]) / field.dy
    return (z[r, c + 1] - z[r, c]) / field.dx, (z[r + 1, c + 1] - z[r, c + 1]) / field.dy


@leaf
def covers(field, c, r, half, x, y, wide_x, wide_y):
    """Whether (x, y) is over that triangle, or beyond by no more than shares of the cell."""
    u, v = (x - field.x) / field.dx - c, (y - field.y) / field.dy - r
    if half == 0:
        return u >= -wide_x and v <= 1.0 + wide_y and v - u >= -wide_x - wide_y
    return v >= -wide_y and u <= 1.0 + wide_x and u - v >= -wide_x - wide_y


@kernel
def spread(field: Field, c: int, r: int, kind: int, side: int) -> tuple[float, float, float]:
    """Unit vector from an edge of the surface into the triangle on that side, across the edge as
    seen from above. Edges start at the vertex (c, r); kind 0 goes along the row, 1 along the
    column, 2 along the diagonal; side 0 is the left one. Straight down where there is none."""
    rows, columns = field.z.shape
    if kind == 0:
        wx, wy = 0.0, 1.0 - 2.0 * side
        column, row, half = c, r - side, 1 - side
    elif kind == 1:
        wx, wy = 2.0 * side - 1.0, 0.0
        column, row, half = c - 1 + side, r, 1 - side
    else:
        long = np.hypot(field.dx, field.dy)
        sign = 1.0 - 2.0 * side
        wx, wy = -sign * field.dy / long, sign * field.dx / long
        column, row, half = c, r, side
    if column < 0 or row < 0 or column >= columns - 1 or row >= rows - 1:
        return 0.0, 0.0, -1.0
    sx, sy = slopes(field, column, row, half)
    rise = sx * wx + sy * wy
    size = np.sqrt(1.0 + rise * rise)
    return wx / size, wy / size, rise / size


@kernel
def is_ridge(field: Field, c: int, r: int, kind: int) -> bool:
    """Whether the surface is convex across an edge: of `spread`."""
    ax, ay, az = spread(field, c, r, kind, 0)
    bx, by, bz = spread(field, c, r, kind, 1)
    level_a, level_b = np.hypot(ax, ay), np.hypot(bx, by)
    if level_a == 0.0 or level_b == 0.0:
        return True
    return az / level_a + bz / level_b < -FLAT


@kernel
def stands_out(field: Field, c: int, r: int) -> bool:
    """Whether a plane may touch the surface in the vertex (c, r), and not on all sides of it."""
    rows, columns = field.z.shape
    if c == 0 or r == 0 or c == columns - 1 or r == rows - 1:
        return True
    z = field.z
    bend = (
        (z[r, c - 1] + z[r, c + 1] - 2.0 * z[r, c]) / field.dx,
        (z[r - 1, c] + z[r + 1, c] - 2.0 * z[r, c]) / field.dy,
        (z[r - 1, c - 1] + z[r + 1, c + 1] - 2.0 * z[r, c]) / np.hypot(field.dx, field.dy),
    )
    return max(bend) <= FLAT and min(bend) < -FLAT


@leaf
def put(out, count, gap, x, y, z, nx, ny, nz):
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
    c0, c1, r0, r1 = cells(field, at[0] - wide, at[0] + wide, at[1] - wide, at[1] + wide)
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
    c0, c1, r0, r1 = cells(
        field,
        min(a[0], b[0]) - wide,
        max(a[0], b[0]) + wide,
        min(a[1], b[1]) - wide,
        max(a[1], b[1]) + wide,
    )
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
        if nx * x + ny * y + nz * z > TILT:
            return False
        if nx * sides[side, 0] + ny * sides[side, 1] + nz * sides[side, 2] < -TILT:
            return False
    return True


# Vertices on faces


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
    c0, c1, r0, r1 = cells(field, low[0] - reach, high[0] + reach, low[1] - reach, high[1] + reach)
    for r in range(r0, r1 + 1):
        for c in range(c0, c1 + 1):
            if field.z[r, c] < low[2] - reach or not stands_out(field, c, r):
                continue
            vertex = np.array([field.x + c * field.dx, field.y + r * field.dy, field.z[r, c]])
            local = axes.T @ (vertex - shift)
            face = nearest_face(hulls, geom, local)
            point, normal = hulls.face[face, :3], hulls.face[face, 3:]
            gap = (local - point) @ normal
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


# Cylinders


@kernel
def put_caps(
    field: Field, shift: Array, axes: Array, radius: float, half: float, reach: float, deep: float,
    out: Array, count: int,
) -> int:  # fmt: skip
    """Vertices of the surface that stand out of it on the caps of a cylinder."""
    wide = radius + half + reach
    c0, c1, r0, r1 = cells(field, shift[0] - wide, shift[0] + wide, shift[1] - wide, shift[1] + wide)
    for r in range(r0, r1 + 1):
        for c in range(c0, c1 + 1):
            if field.z[r, c] < shift[2] - wide or not stands_out(field, c, r):
                continue
            vertex = np.array([field.x + c * field.dx, field.y + r * field.dy, field.z[r, c]])
            local = axes.T @ (vertex - shift)
            sign = 1.0 if local[2] > 0.0 else -1.0
            gap = sign * local[2] - half
            if gap > reach or gap < -deep or np.hypot(local[0], local[1]) > radius:
                continue
            n = -sign * axes[:, 2]
            count = put(out, count, gap, vertex[0], vertex[1], vertex[2], n[0], n[1], n[2])
    return count


@kernel
def put_rims(
    field: Field, shift: Array, axes: Array, radius: float, half: float, reach: float, deep: float,
    out: Array, count: int,
) -> int:  # fmt: skip
    """The rims of a cylinder on triangles, and where they cross edges of the surface."""
    wide = radius + half + reach
    c0, c1, r0, r1 = cells(field, shift[0] - wide, shift[0] + wide, shift[1] - wide, shift[1] + wide)
    axis = axes[:, 2].copy()
    for r in range(r0, r1 + 1):
        for c in range(c0, c1 + 1):
            for part in range(2 * (r < r1 and c < c1)):
                sx, sy = slopes(field, c, r, part)
                normal = np.array([-sx, -sy, 1.0]) / np.sqrt(1.0 + sx * sx + sy * sy)
                lean = normal @ axis
                down = lean * axis - normal
                size = np.sqrt(down @ down)
                down = down / size if size > FLAT else axes[:, 0].copy()
                across = np.cross(axis, down)
                for cap in (-1.0, 1.0):
                    center = shift + cap * half * axis
                    # Of the cap that is farther away the lowest point is enough.
                    points = 4 if cap * lean < 0.0 else 1
                    for k in range(points):
                        way = (down if k % 2 == 0 else across) * (radius if k < 2 else -radius)
                        count = put_point(
                            field, c, r, part, center + way, 0.0, reach, deep, out, count
                        )
            for kind in range(3):
                ec, er = c + (kind != 1), r + (kind != 0)
                if ec >= field.z.shape[1] or er >= field.z.shape[0]:
                    continue
                if max(field.z[r, c], field.z[er, ec]) < shift[2] - wide:
                    continue
                for cap in (-1.0, 1.0):
                    center = shift + cap * half * axis
                    count = put_rim_crossings(
                        field, c, r, kind, ec, er, center, axes, cap, radius, reach, out, count
                    )
    return count


@kernel
def put_rim_crossings(
    field: Field, c: int, r: int, kind: int, ec: int, er: int, center: Array, axes: Array,
    cap: float, radius: float, reach: float, out: Array, count: int,
) -> int:  # fmt: skip
    """A rim where, as seen from above, it crosses an edge of the surface."""
    px, py = field.x + c * field.dx, field.y + r * field.dy
    qx, qy = (ec - c) * field.dx, (er - r) * field.dy
    pz, qz = field.z[r, c], field.z[er, ec] - field.z[r, c]
    # The plane through the edge, upright: A cos + B sin = C along the rim.
    a = radius * (axes[1, 0] * qx - axes[0, 0] * qy)
    b = radius * (axes[1, 1] * qx - axes[0, 1] * qy)
    level = (py - center[1]) * qx - (px - center[0]) * qy
    size = np.hypot(a, b)
    if size <= abs(level) or size == 0.0:
        return count
    middle, swing = np.arctan2(b, a), np.arccos(level / size)
    sides = np.empty((2, 3))
    for angle in (middle - swing, middle + swing):
        out_way = np.cos(angle) * axes[:, 0] + np.sin(angle) * axes[:, 1]
        at = center + radius * out_way
        t = ((at[0] - px) * qx + (at[1] - py) * qy) / (qx * qx + qy * qy)
        if not -INSIDE <= t <= 1.0 + INSIDE:
            continue
        tangent = np.cos(angle) * axes[:, 1] - np.sin(angle) * axes[:, 0]
        n = np.cross(tangent, np.array([qx, qy, qz]))
        long = np.sqrt(n @ n)
        if long <= CROSSING * np.sqrt(qx * qx + qy * qy + qz * qz):
            continue
        n *= (1.0 if n[2] > 0.0 else -1.0) / long
        gap = (at[2] - pz - t * qz) * n[2]
        sides[0], sides[1] = -out_way, -cap * axes[:, 2]
        if abs(gap) > reach or not fits(field, c, r, kind, n[0], n[1], n[2], sides):
            continue
        count = put(out, count, gap, px + t * qx, py + t * qy, pz + t * qz, n[0], n[1], n[2])
    return count


# MuJoCo's own contacts


@kernel
def is_news(
    contact: int, field: Field, place: Array, turn: Array, found: Array, tolerance: float
) -> bool:
    """Whether a contact of MuJoCo's tells more than those that were found; see the head."""
    dist = number(contact + _DIST)
    n = turn.T @ numbers(contact + _FRAME, 3)
    p = turn.T @ (numbers(contact + _POS, 3) - place) - 0.5 * dist * n
    near = max(dist + AS_NEAR * tolerance, -SHALLOW * tolerance)
    steep = ROUGH + PRECISION / max(abs(dist), PRECISION)
    c0, c1, r0, r1 = cells(field, p[0] - BESIDE, p[0] + BESIDE, p[1] - BESIDE, p[1] + BESIDE)
    for r in range(r0, r1):
        for c in range(c0, c1):
            for half in range(2):
                wide_x, wide_y = BESIDE / field.dx, BESIDE / field.dy
                if not covers(field, c, r, half, p[0], p[1], wide_x, wide_y):
                    continue
                sx, sy = slopes(field, c, r, half)
                size = np.sqrt(1.0 + sx * sx + sy * sy)
                level = field.z[r, c] + sx * (p[0] - field.x - c * field.dx)
                level += sy * (p[1] - field.y - r * field.dy)
                if p[2] < level - BESIDE * size:
                    continue  # on the side or the base of the field
                for k in range(found.shape[0]):
                    x, y, gap = found[k, FOOT], found[k, FOOT + 1], found[k, GAP]
                    if gap > near:
                        continue
                    foot = found[k, POINT + 2] - 0.5 * gap * found[k, NORMAL + 2]
                    off = (foot - p[2] - sx * (x - p[0]) - sy * (y - p[1])) / size
                    if abs(off) <= AS_NEAR * tolerance:
                        return False
                for k in range(3):
                    vc, vr = c + (k == 2) + (half == 1 and k == 1), r + (half == 0 and k == 1)
                    vr += k == 2
                    x, y = field.x + vc * field.dx - p[0], field.y + vr * field.dy - p[1]
                    z = field.z[vr, vc] - p[2]
                    far = np.sqrt(x * x + y * y + z * z)
                    if n[0] * x + n[1] * y + n[2] * z > steep * far + BESIDE:
                        return False
    return True


@kernel
def write_contact(contact: int, place: Array, turn: Array, line: Array) -> None:
    """A contact that was found into the structure of MuJoCo's."""
    numbers(contact + _DIST, 1)[0] = line[GAP]
    numbers(contact + _POS, 3)[:] = place + turn @ line[POINT : POINT + 3]
    n = turn @ line[NORMAL : NORMAL + 3]
    other = np.array([0.0, 1.0, 0.0]) if abs(n[1]) < 0.5 else np.array([0.0, 0.0, 1.0])
    first = other - n * (n @ other)
    first /= np.sqrt(first @ first)
    frame = numbers(contact + _FRAME, 9)
    frame[:3], frame[3:6], frame[6:] = n, first, np.cross(n, first)
