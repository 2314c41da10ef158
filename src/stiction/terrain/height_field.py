"""The surface of a height field: triangles over a grid, in the frame of the field.

A triangle is z = height + slope (x, y) over one half of a cell: the diagonal goes from the cell's
first vertex to that of the next row and column. An edge starts at the vertex (c, r) and goes along
the row (kind 0), along the column (1) or along the diagonal (2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel, leaf
from stiction.kernels.triples import Triple

Array = NDArray[np.float64]

FLAT = 1e-9
"""Change of slope across an edge, or around a vertex, up to which the surface is flat there."""


class Field(NamedTuple):
    """One height field: z (rows, columns) on a grid of steps dx, dy from (x, y)."""

    z: Array
    x: float
    y: float
    dx: float
    dy: float


@leaf
def cells_about(field: Field, a: Triple, b: Triple, wide: float) -> tuple[int, int, int, int]:
    """(first column, last + 1, first row, last + 1) of the cells that meet, as seen from above, the
    rectangle with corners a and b, widened on all sides."""
    rows, columns = field.z.shape
    c0 = max(int(np.floor((min(a[0], b[0]) - wide - field.x) / field.dx)), 0)
    c1 = min(int(np.floor((max(a[0], b[0]) + wide - field.x) / field.dx)) + 1, columns - 1)
    r0 = max(int(np.floor((min(a[1], b[1]) - wide - field.y) / field.dy)), 0)
    r1 = min(int(np.floor((max(a[1], b[1]) + wide - field.y) / field.dy)) + 1, rows - 1)
    return c0, c1, r0, r1


@leaf
def vertex_of(field: Field, c: int, r: int) -> Triple:
    """The vertex (c, r)."""
    return field.x + c * field.dx, field.y + r * field.dy, field.z[r, c]


@leaf
def slopes(field: Field, c: int, r: int, half: int) -> tuple[float, float]:
    """(dz/dx, dz/dy) of a half of the cell (c, r): 0 above the diagonal, 1 below it."""
    z = field.z
    if half == 0:
        return (z[r + 1, c + 1] - z[r + 1, c]) / field.dx, (z[r + 1, c] - z[r, c]) / field.dy
    return (z[r, c + 1] - z[r, c]) / field.dx, (z[r + 1, c + 1] - z[r, c + 1]) / field.dy


@leaf
def covers(
    field: Field, c: int, r: int, half: int, x: float, y: float, wide_x: float, wide_y: float
) -> bool:
    """Whether (x, y) is over that triangle, or beyond by no more than shares of the cell."""
    u, v = (x - field.x) / field.dx - c, (y - field.y) / field.dy - r
    if half == 0:
        return u >= -wide_x and v <= 1.0 + wide_y and v - u >= -wide_x - wide_y
    return v >= -wide_y and u <= 1.0 + wide_x and u - v >= -wide_x - wide_y


@kernel
def is_on_face(field: Field, x: float, y: float, n: Triple) -> bool:
    """Whether the triangle below or above (x, y) has the normal n."""
    rows, columns = field.z.shape
    c, r = int(np.floor((x - field.x) / field.dx)), int(np.floor((y - field.y) / field.dy))
    if c < 0 or r < 0 or c >= columns - 1 or r >= rows - 1:
        return False
    sx, sy = slopes(field, c, r, 0 if covers(field, c, r, 0, x, y, 0.0, 0.0) else 1)
    return n[2] > 0.0 and abs(n[0] + sx * n[2]) <= FLAT and abs(n[1] + sy * n[2]) <= FLAT


@kernel
def spread(field: Field, c: int, r: int, kind: int, side: int) -> Triple:
    """Unit vector from an edge of the surface into the triangle on that side, across the edge as
    seen from above; side 0 is the left one. Straight down where there is none."""
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


@kernel
def is_peak(field: Field, c: int, r: int, n: Triple) -> bool:
    """Whether no edge from the vertex (c, r) rises above the plane with normal n through it."""
    rows, columns = field.z.shape
    for dc, dr in ((1, 0), (1, 1), (0, 1), (-1, 0), (-1, -1), (0, -1)):
        if 0 <= c + dc < columns and 0 <= r + dr < rows:
            x, y, z = dc * field.dx, dr * field.dy, field.z[r + dr, c + dc] - field.z[r, c]
            if n[0] * x + n[1] * y + n[2] * z > FLAT:
                return False
    return True
