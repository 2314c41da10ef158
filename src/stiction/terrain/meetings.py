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
sphere is a corner with a radius; the axes of capsules and cylinders are edges with one, which
vertices touch as well. A cylinder has
the points of its rims that are lowest, highest and half-way between over the plane of each
triangle, and its rims where they cross edges. MuJoCo's own contact of a prism is kept, once, where
none of these is as near, and if the surface does not rise above its plane beside it. Of a body that
lies deep in the ground it is not: the nearest way out of a prism leads into the next one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.contacts import end_of_pair
from stiction.bridge.geom_types import BOX, CAPSULE, CYLINDER, HFIELD, MESH, SPHERE
from stiction.kernels.compile import kernel
from stiction.kernels.packing import pack, packed, unpacker
from stiction.kernels.triples import (
    carried,
    column,
    minus,
    moved,
    three_of,
    turned,
    turned_back,
)
from stiction.terrain.contacts import (
    CONTACT,
    DIST,
    FRAME,
    GEOM,
    NCON,
    POS,
    REACH,
    SIZE,
    frame_of,
    keep,
    take_contacts,
    write_contact,
)
from stiction.terrain.features import (
    FOOT,
    GAP,
    NORMAL,
    POINT,
    WIDTH,
    put_axis,
    put_corner,
    put_edge,
    put_faces,
)
from stiction.terrain.height_field import Field, cells_about, covers, slopes
from stiction.terrain.hulls import Hulls, build_hulls
from stiction.terrain.rims import put_caps, put_rims

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

SHALLOW_CORNER = 100.0
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

ONE_CONTACT = 1e-5
"""Distance [m] up to which two of MuJoCo's contacts with like normals are one."""

# Kernels, typed by Numba and not here.
integer: Any = layout.integer
number: Any = layout.number
pointer: Any = layout.pointer
integers: Any = layout.integers
numbers: Any = layout.numbers
table: Any = layout.table
add_contact: Any = library.add_contact


@packed
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


@packed
class Level(NamedTuple):
    """How near is level."""

    tolerance: Array  # (1,) difference of two gaps that counts as zero [m]


_indices = np.zeros(0, np.int64)
unpack_ground = unpacker(
    Terrain(
        _indices, _indices, np.zeros((0, 3)), np.zeros((0, 2)), _indices, _indices, _indices,
        np.zeros(0),
    ),
    build_hulls(mujoco.MjModel.from_xml_string("<mujoco/>"), np.zeros(0, np.bool_)),
    Level(np.zeros(1)),
)  # fmt: skip
"""(Terrain, Hulls, Level) of `Ground.address`."""


class Ground:
    """The height fields of a model; `replace_contacts` replaces contacts with them.

    features: what a kernel needs for that, or None where nothing with features can meet a field
    address: of the same, packed; 0 where there is nothing
    """

    features: tuple[Terrain, Hulls, float] | None = None
    address: int = 0

    def __init__(self, model: mujoco.MjModel, tolerance: float) -> None:
        field = np.where(model.geom_type == HFIELD, model.geom_dataid, -1)
        collides = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
        collides[model.pair_geom1] = collides[model.pair_geom2] = True
        featured = collides & np.isin(model.geom_type, (SPHERE, CAPSULE, CYLINDER, BOX, MESH))
        if not ((field >= 0).any() and featured.any()):
            return
        scale = np.repeat(model.hfield_size[:, 2], model.hfield_nrow * model.hfield_ncol)
        terrain = Terrain(
            field.astype(np.int64),
            np.where(featured, model.geom_type, -1).astype(np.int64),
            model.geom_size.copy(),
            model.hfield_size[:, :2].copy(),
            model.hfield_nrow.astype(np.int64),
            model.hfield_ncol.astype(np.int64),
            model.hfield_adr.astype(np.int64),
            model.hfield_data.astype(np.float64) * scale,
        )
        self.features = (terrain, build_hulls(model, featured), tolerance)
        self._kept = (*self.features[:2], Level(np.array([tolerance])))
        self._packed = pack(*self._kept)
        self.address = int(self._packed.ctypes.data)

    def replace_contacts(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Replaces the contacts with height fields; between `mj_collision` and
        `mj_makeConstraint`."""
        if self.features is not None:
            replace_contacts(model._address, data._address, *self.features)


@kernel
def replace_contacts(m: int, d: int, terrain: Terrain, hulls: Hulls, tolerance: float) -> None:
    """Replaces contacts of the data at d; see the head."""
    if integer(d + NCON) > 0:
        fill_contacts(m, d, take_contacts(d), terrain, hulls, tolerance)


@kernel
def fill_contacts(
    m: int, d: int, old: NDArray[np.uint8], terrain: Terrain, hulls: Hulls, tolerance: float
) -> None:
    """Fills the contacts of the data at d, which has none left, from the old ones."""
    base, end_of_all = old.ctypes.data, old.ctypes.data + old.shape[0]
    room, axes = np.empty((64, WIDTH)), np.empty((3, 3))
    start = base
    while start < end_of_all:
        geoms = integers(start + GEOM, 2)
        first, second = geoms[0], geoms[1]
        end = end_of_pair(start, end_of_all)
        found = 0
        if first >= 0 and second >= 0 and terrain.field[first] >= 0 and terrain.shape[second] >= 0:
            field = field_of(terrain, terrain.field[first])
            reach = number(start + REACH)
            found = survey_features(
                d, field, terrain, hulls, first, second, reach, tolerance, axes, room
            )
            if found > room.shape[0]:
                room = np.empty((found, WIDTH))
                found = survey_features(
                    d, field, terrain, hulls, first, second, reach, tolerance, axes, room
                )
            place, turn = frame_of(d, first)
            kept = integer(d + NCON)
            for contact in range(start, end, SIZE):
                tells = is_news(contact, field, place, turn, room, found, reach, tolerance)
                if tells and not is_double(d, kept, contact):
                    add_contact(m, d, contact)
            for k in range(found):
                point = carried(place, turn, three_of(room, k, POINT))
                write_contact(start, room[k, GAP], point, turned(turn, three_of(room, k, NORMAL)))
                add_contact(m, d, start)
        else:
            keep(m, d, start, end)
        start = end


@kernel
def field_of(terrain: Terrain, k: int) -> Field:
    """The k-th height field."""
    rows, columns = terrain.rows[k], terrain.columns[k]
    z = table(terrain.height.ctypes.data + 8 * terrain.start[k], rows, columns)
    x, y = terrain.extent[k, 0], terrain.extent[k, 1]
    return Field(z, -x, -y, 2.0 * x / (columns - 1), 2.0 * y / (rows - 1))


@kernel
def survey_features(
    d: int, field: Field, terrain: Terrain, hulls: Hulls, first: int, second: int, reach: float,
    tolerance: float, axes: Array, out: Array,
) -> int:  # fmt: skip
    """Contacts of geom `second` with the height field, nearer than reach, into out (n, WIDTH), in
    the frame of the field, in which its axes become `axes` (3, 3). Returns how many there are;
    those for which there is no room are not written."""
    ground, turn = frame_of(d, first)
    place, own = frame_of(d, second)
    shift = turned_back(turn, minus(place, ground))
    for k in range(3):
        axes[0, k], axes[1, k], axes[2, k] = turned_back(turn, column(own, k))
    deep = SHALLOW_CORNER * tolerance
    count = 0
    for i in range(hulls.corner_start[second], hulls.corner_start[second + 1]):
        corner = carried(shift, axes, three_of(hulls.corner, i, 0))
        count = put_corner(field, corner, hulls.radius[second], reach, deep, out, count)
    for i in range(hulls.edge_start[second], hulls.edge_start[second + 1]):
        a = carried(shift, axes, three_of(hulls.edge, i, 0))
        b = carried(shift, axes, three_of(hulls.edge, i, 3))
        sides = (
            turned(axes, three_of(hulls.inward, i, 0)),
            turned(axes, three_of(hulls.inward, i, 3)),
        )
        count = put_edge(field, a, b, sides, hulls.radius[second], reach, out, count)
        if hulls.radius[second] > 0.0:
            count = put_axis(field, a, b, hulls.radius[second], reach, out, count)
    if hulls.face_start[second] < hulls.face_start[second + 1]:
        count = put_faces(field, hulls, second, shift, axes, reach, deep, out, count)
    if terrain.shape[second] == CYLINDER:
        radius, half = terrain.size[second, 0], terrain.size[second, 1]
        count = put_caps(field, shift, axes, radius, half, reach, deep, out, count)
        count = put_rims(field, shift, axes, radius, half, reach, deep, out, count)
    return count


@kernel
def is_news(
    contact: int, field: Field, place: Array, turn: Array, found: Array, count: int,
    reach: float, tolerance: float,
) -> bool:  # fmt: skip
    """Whether a contact of MuJoCo's tells more than the `count` that were found; see the head."""
    for k in range(count):
        if found[k, GAP] < -reach - SHALLOW_CORNER * tolerance:
            return False
    dist = number(contact + DIST)
    n = turned_back(turn, numbers(contact + FRAME, 3))
    p = moved(turned_back(turn, minus(numbers(contact + POS, 3), place)), -0.5 * dist, n)
    near = max(dist + AS_NEAR * tolerance, -SHALLOW_CORNER * tolerance)
    steep = ROUGH + PRECISION / max(abs(dist), PRECISION)
    c0, c1, r0, r1 = cells_about(field, p, p, BESIDE)
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
                for k in range(count):
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
def is_double(d: int, first: int, contact: int) -> bool:
    """Whether the data at d hold the same contact from the number `first` on, seen from the next
    triangle."""
    point, normal = numbers(contact + POS, 3), numbers(contact + FRAME, 3)
    for k in range(first, integer(d + NCON)):
        other = pointer(d + CONTACT) + k * SIZE
        away, off = 0.0, 0.0
        for c in range(3):
            away = max(away, abs(numbers(other + POS, 3)[c] - point[c]))
            off = max(off, abs(numbers(other + FRAME, 3)[c] - normal[c]))
        if away <= ONE_CONTACT and off <= ROUGH:
            return True
    return False
