"""Caps and rims of a cylinder on the surface of a height field; arguments as in
`features.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel, leaf
from stiction.kernels.triples import (
    Triple,
    column,
    cross,
    dot,
    minus,
    moved,
    scaled,
    turned_back,
)
from stiction.terrain.features import CROSSING, INSIDE, fits, put, put_point
from stiction.terrain.height_field import (
    FLAT,
    Field,
    cells_about,
    is_ridge,
    slopes,
    stands_out,
    vertex_of,
)

Array = NDArray[np.float64]


@leaf
def bounds_of(shift: Triple, axes: Array, radius: float, half: float) -> tuple[Triple, Triple]:
    """(lowest, highest) coordinates of a cylinder's points."""
    x = half * abs(axes[0, 2]) + radius * np.hypot(axes[0, 0], axes[0, 1])
    y = half * abs(axes[1, 2]) + radius * np.hypot(axes[1, 0], axes[1, 1])
    z = half * abs(axes[2, 2]) + radius * np.hypot(axes[2, 0], axes[2, 1])
    return minus(shift, (x, y, z)), moved(shift, 1.0, (x, y, z))


@leaf
def top_of(field: Field, c: int, r: int) -> float:
    """Height of the highest point of the cell (c, r)."""
    z = field.z
    return max(max(z[r, c], z[r, c + 1]), max(z[r + 1, c], z[r + 1, c + 1]))


@leaf
def is_beside(
    field: Field, c: int, r: int, ec: int, er: int, center: Triple, wide_x: float, wide_y: float
) -> bool:
    """Whether what lies between the vertices (c, r) and (ec, er), as seen from above, is farther
    off from a point than that."""
    x, y = field.x + c * field.dx - center[0], field.y + r * field.dy - center[1]
    far_x, far_y = x + (ec - c) * field.dx, y + (er - r) * field.dy
    return x > wide_x or far_x < -wide_x or y > wide_y or far_y < -wide_y


@kernel
def put_caps(
    field: Field, shift: Triple, axes: Array, radius: float, half: float, reach: float, deep: float,
    out: Array, count: int,
) -> int:  # fmt: skip
    """Vertices of the surface that stand out of it on the caps of a cylinder."""
    low, high = bounds_of(shift, axes, radius, half)
    c0, c1, r0, r1 = cells_about(field, low, high, reach)
    for r in range(r0, r1 + 1):
        for c in range(c0, c1 + 1):
            if field.z[r, c] < low[2] - reach or not stands_out(field, c, r):
                continue
            vertex = vertex_of(field, c, r)
            local = turned_back(axes, minus(vertex, shift))
            sign = 1.0 if local[2] > 0.0 else -1.0
            gap = sign * local[2] - half
            if gap > reach or gap < -deep or np.hypot(local[0], local[1]) > radius:
                continue
            n = scaled(-sign, column(axes, 2))
            count = put(out, count, gap, vertex[0], vertex[1], vertex[2], n[0], n[1], n[2])
    return count


@kernel
def put_rims(
    field: Field, shift: Triple, axes: Array, radius: float, half: float, reach: float, deep: float,
    out: Array, count: int,
) -> int:  # fmt: skip
    """The rims of a cylinder on triangles, and where they cross edges of the surface."""
    low, high = bounds_of(shift, axes, radius, half)
    c0, c1, r0, r1 = cells_about(field, low, high, reach)
    axis = column(axes, 2)
    # How far a rim reaches out from its center.
    wide_x = radius * np.hypot(axes[0, 0], axes[0, 1]) + reach + deep
    wide_y = radius * np.hypot(axes[1, 0], axes[1, 1]) + reach + deep
    drop = radius * np.hypot(axes[2, 0], axes[2, 1]) + reach
    for r in range(r0, r1 + 1):
        for c in range(c0, c1 + 1):
            top = top_of(field, c, r) if r < r1 and c < c1 else -np.inf
            for part in range(2 * (top >= low[2] - reach)):
                sx, sy = slopes(field, c, r, part)
                normal = scaled(1.0 / np.sqrt(1.0 + sx * sx + sy * sy), (-sx, -sy, 1.0))
                lean = dot(normal, axis)
                down = minus(scaled(lean, axis), normal)
                size = np.sqrt(dot(down, down))
                down = scaled(1.0 / size, down) if size > FLAT else column(axes, 0)
                across = cross(axis, down)
                for cap in (-1.0, 1.0):
                    center = moved(shift, cap * half, axis)
                    if top < center[2] - drop or is_beside(
                        field, c, r, c + 1, r + 1, center, wide_x, wide_y
                    ):
                        continue
                    # Of the cap that is farther away the lowest point is enough.
                    points = 4 if cap * lean < 0.0 else 1
                    for k in range(points):
                        way, far = down if k % 2 == 0 else across, radius if k < 2 else -radius
                        at = moved(center, far, way)
                        count = put_point(field, c, r, part, at, 0.0, reach, deep, out, count)
            for kind in range(3):
                ec, er = c + (kind != 1), r + (kind != 0)
                if ec >= field.z.shape[1] or er >= field.z.shape[0]:
                    continue
                top = max(field.z[r, c], field.z[er, ec])
                if top < low[2] - reach or not is_ridge(field, c, r, kind):
                    continue
                for cap in (-1.0, 1.0):
                    center = moved(shift, cap * half, axis)
                    if top < center[2] - drop or is_beside(
                        field, c, r, ec, er, center, wide_x, wide_y
                    ):
                        continue
                    count = put_rim_crossings(
                        field, c, r, kind, ec, er, center, axes, cap, radius, reach, out, count
                    )
    return count


@kernel
def put_rim_crossings(
    field: Field, c: int, r: int, kind: int, ec: int, er: int, center: Triple, axes: Array,
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
    for angle in (middle - swing, middle + swing):
        x, y = column(axes, 0), column(axes, 1)
        out_way = moved(scaled(np.cos(angle), x), np.sin(angle), y)
        at = moved(center, radius, out_way)
        t = ((at[0] - px) * qx + (at[1] - py) * qy) / (qx * qx + qy * qy)
        if not -INSIDE <= t <= 1.0 + INSIDE:
            continue
        tangent = moved(scaled(np.cos(angle), y), -np.sin(angle), x)
        n = cross(tangent, (qx, qy, qz))
        long = np.sqrt(dot(n, n))
        if long <= CROSSING * np.sqrt(qx * qx + qy * qy + qz * qz):
            continue
        n = scaled((1.0 if n[2] > 0.0 else -1.0) / long, n)
        gap = (at[2] - pz - t * qz) * n[2]
        sides = scaled(-1.0, out_way), scaled(-cap, column(axes, 2))
        if abs(gap) > reach or not fits(field, c, r, kind, n[0], n[1], n[2], sides):
            continue
        count = put(out, count, gap, px + t * qx, py + t * qy, pz + t * qz, n[0], n[1], n[2])
    return count
