"""Corners, edges and faces of geoms that have some, in the geoms' own frames.

A box and a mesh are convex polyhedra, a sphere a corner with a radius, a capsule an edge with one,
and so is the side of a cylinder, whose caps and rims follow from its size. Ellipsoids have none.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.geom_types import BOX, CAPSULE, MESH, SPHERE
from stiction.kernels.packing import packed

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@packed
class Hulls(NamedTuple):
    """Features of all geoms; those of geom g lie from start[g] to start[g + 1]."""

    radius: Array  # (ngeom,) around the corners and the edge of a sphere, capsule or cylinder [m]
    corner_start: Indices
    corner: Array  # (n, 3) [m]
    edge_start: Indices
    edge: Array  # (n, 6) both ends [m]
    inward: Array  # (n, 6) unit vectors from the edge into its two faces; zero for an axis
    face_start: Indices
    face: Array  # (n, 6) a point [m], the outward normal
    side_start: Indices  # (number of faces + 1,)
    side: Array  # (n, 6) of a face: a point of each side [m], the direction from it into the face


class _Hull(NamedTuple):
    radius: float
    corners: list[Array]
    edges: list[Array]
    inward: list[Array]
    faces: list[Array]
    sides: list[list[Array]]


def build_hulls(model: mujoco.MjModel, wanted: NDArray[np.bool_]) -> Hulls:
    """The features of the geoms that are wanted (ngeom,); others have none."""
    none = _Hull(0.0, [], [], [], [], [])
    hulls = [_hull_of(model, g) if wanted[g] else none for g in range(model.ngeom)]
    faces = [face for hull in hulls for face in hull.sides]
    return Hulls(
        np.array([hull.radius for hull in hulls]),
        _starts([hull.corners for hull in hulls]),
        _stack([corner for hull in hulls for corner in hull.corners], 3),
        _starts([hull.edges for hull in hulls]),
        _stack([edge for hull in hulls for edge in hull.edges], 6),
        _stack([pair for hull in hulls for pair in hull.inward], 6),
        _starts([hull.faces for hull in hulls]),
        _stack([face for hull in hulls for face in hull.faces], 6),
        _starts(faces),
        _stack([side for face in faces for side in face], 6),
    )


def _starts(lists: list[list[Array]]) -> Indices:
    return np.cumsum([0, *(len(each) for each in lists)]).astype(np.int64)


def _stack(parts: list[Array], *shape: int) -> Array:
    return np.array(parts, np.float64).reshape(-1, *shape)


def _hull_of(model: mujoco.MjModel, geom: int) -> _Hull:
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    if kind == BOX:
        corners = np.array(list(product((-1.0, 1.0), repeat=3))) * size
        loops, normals = _box_faces()
        return _polyhedron(corners, loops, normals)
    if kind == MESH:
        return _polyhedron(*_mesh_faces(model, int(model.geom_dataid[geom])))
    if kind == SPHERE:
        return _Hull(float(size[0]), [np.zeros(3)], [], [], [], [])
    ends = np.array([[0.0, 0.0, -size[1]], [0.0, 0.0, size[1]]])  # a capsule or a cylinder
    corners = list(ends) if kind == CAPSULE else []
    return _Hull(float(size[0]), corners, [ends], [np.zeros((2, 3))], [], [])


def _box_faces() -> tuple[list[Indices], Array]:
    """Corners around each face, in the order of `itertools.product`, and outward normals."""
    loops, normals = [], []
    for axis, sign in product(range(3), (0, 1)):
        first, second = (4, 2, 1)[(axis + 1) % 3], (4, 2, 1)[(axis + 2) % 3]
        base = sign * (4, 2, 1)[axis]
        loops.append(np.array([base, base + first, base + first + second, base + second]))
        normals.append(np.eye(3)[axis] * (2.0 * sign - 1.0))
    return loops, np.array(normals)


def _mesh_faces(model: mujoco.MjModel, mesh: int) -> tuple[Array, list[Indices], Array]:
    """(vertices, corners around each face, normals) of a mesh's convex hull."""
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    vertices = np.asarray(model.mesh_vert[first : first + count], np.float64)
    begin = int(model.mesh_polyadr[mesh])
    faces = range(begin, begin + int(model.mesh_polynum[mesh]))
    loops = []
    for face in faces:
        start = int(model.mesh_polyvertadr[face])
        loop = model.mesh_polyvert[start : start + int(model.mesh_polyvertnum[face])]
        loops.append(np.asarray(loop, np.int64))
    return vertices, loops, np.asarray(model.mesh_polynormal[faces], np.float64)


def _polyhedron(corners: Array, loops: list[Indices], normals: Array) -> _Hull:
    edges: dict[tuple[int, int], list[Array]] = {}
    faces, sides = [], []
    for loop, normal in zip(loops, normals, strict=True):
        middle = corners[loop].mean(axis=0)
        faces.append(np.concatenate([middle, normal]))
        around = []
        for a, b in zip(loop, np.roll(loop, -1), strict=True):
            inward = np.cross(normal, corners[b] - corners[a])
            inward *= np.sign(inward @ (middle - corners[a])) / np.linalg.norm(inward)
            around.append(np.concatenate([corners[a], inward]))
            edges.setdefault((min(a, b), max(a, b)), []).append(inward)
        sides.append(around)
    used = sorted({int(k) for loop in loops for k in loop})
    whole = {ends: pair for ends, pair in edges.items() if len(pair) == 2}
    return _Hull(
        0.0,
        list(corners[used]),
        [corners[list(ends)] for ends in whole],
        [np.array(pair) for pair in whole.values()],
        faces,
        sides,
    )
