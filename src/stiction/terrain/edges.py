"""The edge of a box across the face of another, where MuJoCo gives one contact that jumps from end
to end of the line in which they touch.

An edge that lies in a face touches it at two points. Tilted by a hair, it is nearest to the box
where it crosses one of the face's own edges, and MuJoCo gives that contact alone, of edge on edge:
the other end of the line is a hair farther, and nothing keeps it from sinking in within a step. It
is then the only contact in the next step, and so on to and fro: what is held so rocks, and walks.
Here the other end is a contact as well, with its own distance:

    edge on edge      where the edge crosses the opposite edge of the face, along the same normal
    corner on face    where it ends before that, along the face's normal
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout
from stiction.bridge.geom_types import BOX, kinds_of
from stiction.bridge.layout import offset
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.triples import Triple, column, dot, minus, moved, scaled, turned_back
from stiction.terrain.contacts import DIST, FRAME, GEOM, POS, frame_of

Array = NDArray[np.float64]

POINT_TILT = 0.05
"""Sine of the angle between face and edge from which they touch in one point."""

ACROSS_EDGE = 1e-9
"""Cosine of the angle between an edge and a normal across it: rounding."""

ALONG = 0.1
"""Cosine of the angle between an edge and the width of a face from which it does not cross it."""

SHORTNESS = 1e-2
"""Length of the line, over the face's width, that is a point."""

# Kernels, typed by Numba and not here.
number: Any = layout.number
pointer: Any = layout.pointer
integers: Any = layout.integers
numbers: Any = layout.numbers

_GEOM_SIZE = offset("mjModel", "geom_size")


@leaf
def are_boxes(m: int, first: int, second: int) -> bool:
    """Whether both geoms are boxes."""
    a, b = kinds_of(m, first, second)
    return a == BOX and b == BOX


@leaf
def _across(n: Triple) -> int:
    """The axis that a normal, in a box' own frame, is perpendicular to; or -1."""
    for k in range(3):
        if abs(n[k]) < ACROSS_EDGE:
            return k
    return -1


@kernel
def follow_edge(
    m: int, d: int, face: int, other: int, contact: int, sign: float, out: Array, row: int
) -> bool:
    """The other end of the line in which an edge of the geom `other` touches a face of the geom
    `face` into that row of out (n, 7): gap, point, normal from the first geom to the second;
    whether there is one. sign: 1 if `face` is the contact's first geom, else -1."""
    dist, pos = number(contact + DIST), numbers(contact + POS, 3)
    outward = scaled(sign, numbers(contact + FRAME, 3))
    centre, turn = frame_of(d, face)
    place, axes = frame_of(d, other)
    half = numbers(pointer(m + _GEOM_SIZE) + 24 * face, 3)
    reach = numbers(pointer(m + _GEOM_SIZE) + 24 * other, 3)
    n = turned_back(turn, outward)
    along, edge = _across(n), _across(turned_back(axes, outward))
    if along < 0 or edge < 0:
        return False
    top = (along + 1) % 3
    if abs(n[(along + 2) % 3]) > abs(n[top]):
        top = (along + 2) % 3
    wide = 3 - along - top
    if abs(n[wide]) > POINT_TILT or abs(n[wide]) < ACROSS_EDGE:
        return False  # no edge across this face, or one that MuJoCo has both ends of
    below, above = moved(pos, -0.5 * dist, outward), moved(pos, 0.5 * dist, outward)
    at = turned_back(turn, minus(below, centre))
    line = column(axes, edge)
    t = turned_back(turn, line)
    if abs(t[wide]) < ALONG:
        return False
    start = dot(minus(above, place), line)
    way = -2.0 * at[wide] / t[wide]
    end = min(max(start + way, -reach[edge]), reach[edge])
    crosses = end == start + way
    way = end - start
    if abs(way * t[wide]) < SHORTNESS * half[wide] or abs(at[along] + way * t[along]) > half[along]:
        return False
    point = moved(above, way, line)
    normal = outward
    if crosses:
        far = moved(below, -2.0 * at[wide], column(turn, wide))
        gap = dot(minus(point, far), outward)
    else:
        normal = scaled(np.sign(n[top]), column(turn, top))
        gap = dot(minus(point, centre), normal) - half[top]
    point = moved(point, -0.5 * gap, normal)
    out[row, 0] = gap
    for k in range(3):
        out[row, 1 + k], out[row, 4 + k] = point[k], sign * normal[k]
    return True


@kernel
def meet_edges(m: int, d: int, contact: int, out: Array) -> int:
    """Contacts (n, 7) of two boxes of which MuJoCo has one, this one included; their number, or 0
    where that one is all."""
    geoms = integers(contact + GEOM, 2)
    first, second = geoms[0], geoms[1]
    count = 1
    if follow_edge(m, d, first, second, contact, 1.0, out, count):
        count += 1
    if follow_edge(m, d, second, first, contact, -1.0, out, count):
        count += 1
    if count == 1:
        return 0
    out[0, 0] = number(contact + DIST)
    for k in range(3):
        out[0, 1 + k] = numbers(contact + POS, 3)[k]
        out[0, 4 + k] = numbers(contact + FRAME, 3)[k]
    return count
