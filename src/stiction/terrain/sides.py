"""Cylinders that lie on flat faces, where MuJoCo gives points of a line that are off by 1e-6 m, or
one that jumps along it.

A cylinder that lies on a face of a box, or on the end of another cylinder, touches it along a line:
the one of its side that is nearest to the face, as far as both reach. Contacts are at the ends of
that line,

    rim on face      where the cylinder ends over the face: the point of its rim that is nearest
    side on edge     where the face ends below the cylinder: along the normal to both

each with its own distance. On planes MuJoCo's own are like that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout
from stiction.bridge.geom_types import CYLINDER, kind_of
from stiction.bridge.layout import offset
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.dense import dot
from stiction.terrain.contacts import FRAME, GAP, GEOM, NORMAL, POINT, frame_of
from stiction.terrain.ends import (
    ACROSS,
    ALONG,
    CENTRE,
    FACE,
    FLAT_TILT,
    HALF,
    OUTWARD,
    RADIUS,
    height_over,
    meet_face,
    put_face,
)

Array = NDArray[np.float64]

SHORT_LINE = 1e-2
"""Length of a line, over the cylinder's radius, that is a point."""

BESIDE_EDGE = 0.98
"""Cosine of the angle between a cylinder and an edge from which it does not cross it."""

# Kernels, typed by Numba and not here.
pointer: Any = layout.pointer
integers: Any = layout.integers
numbers: Any = layout.numbers

_GEOM_SIZE = offset("mjModel", "geom_size")


@leaf
def clip(face: Array, at: Array, u: Array, span: Array, edge: Array) -> None:
    """span (2,) := from where to where the line through `at` along u is over a face, within what it
    is; edge (2, 3) := what bounds the face there, where it does."""
    x, y, z = at[0] - face[CENTRE], at[1] - face[CENTRE + 1], at[2] - face[CENTRE + 2]
    p = x * face[ALONG] + y * face[ALONG + 1] + z * face[ALONG + 2]
    q = x * face[ACROSS] + y * face[ACROSS + 1] + z * face[ACROSS + 2]
    s = u[0] * face[ALONG] + u[1] * face[ALONG + 1] + u[2] * face[ALONG + 2]
    t = u[0] * face[ACROSS] + u[1] * face[ACROSS + 1] + u[2] * face[ACROSS + 2]
    if face[RADIUS] > 0.0:
        long = s * s + t * t
        middle, apart = -(p * s + q * t) / long, p * t - q * s
        under = face[RADIUS] * face[RADIUS] * long - apart * apart
        if under <= 0.0:
            span[1] = span[0]
            return
        half = np.sqrt(under) / long
        for k in range(2):
            end = middle + (2.0 * k - 1.0) * half
            if (k == 0 and end > span[0]) or (k == 1 and end < span[1]):
                span[k] = end
                x, y = (p + end * s) / face[RADIUS], (q + end * t) / face[RADIUS]
                for c in range(3):
                    edge[k, c] = x * face[ACROSS + c] - y * face[ALONG + c]
        return
    for axis in range(2):
        start, rate = (p, s) if axis == 0 else (q, t)
        border = ACROSS if axis == 0 else ALONG
        for side in (-1.0, 1.0):
            # side * (start + x rate) <= half
            room, speed = face[HALF + axis] - side * start, side * rate
            if speed == 0.0:
                if room < 0.0:
                    span[1] = span[0]
                continue
            end, k = room / speed, 1 if speed > 0.0 else 0
            if (k == 0 and end > span[0]) or (k == 1 and end < span[1]):
                span[k] = end
                for c in range(3):
                    edge[k, c] = face[border + c]


@kernel
def meet_edge(
    face: Array, axis: Array, u: Array, radius: float, foot: Array, edge: Array, sign: float,
    out: Array, count: int,
) -> int:  # fmt: skip
    """The contact of the side of a cylinder about the line through `axis` along u with the edge of
    a face through `foot`. sign: 1 if the face is of the first geom, else -1. How many there are."""
    n, away = np.cross(edge, u), axis - foot
    if dot(n, face[OUTWARD : OUTWARD + 3]) < 0.0:
        n = -n
    square, cosine = dot(n, n), dot(edge, u)
    n /= np.sqrt(square)
    gap = dot(away, n) - radius
    way = (dot(away, edge) - cosine * dot(away, u)) / square
    out[count, GAP] = gap
    for c in range(3):
        out[count, POINT + c] = foot[c] + way * edge[c] + 0.5 * gap * n[c]
        out[count, NORMAL + c] = sign * n[c]
    return count + 1


@kernel
def meet_along(m: int, d: int, contact: int, out: Array) -> int:
    """Contacts (MOST_MET, WIDTH) of two geoms of which one is a cylinder that lies on a face of the
    other; their number, 0 where it does not. contact: MuJoCo's, or the first of them."""
    geoms, n = integers(contact + GEOM, 2), numbers(contact + FRAME, 3)
    face, span, edge = np.empty(FACE), np.empty(2), np.zeros((2, 3))
    for k in range(2):
        lying, sign = geoms[k], 2.0 * k - 1.0
        place, turn = frame_of(d, lying)
        u = turn[:, 2].copy()
        if abs(dot(u, n)) > FLAT_TILT or kind_of(m, lying) != CYLINDER:
            continue
        if not put_face(m, d, geoms[1 - k], n, sign, face):
            continue
        size = numbers(pointer(m + _GEOM_SIZE) + 24 * lying, 3)
        outward = face[OUTWARD : OUTWARD + 3]
        lean = dot(u, outward)
        at = place - (size[0] / np.sqrt(1.0 - lean * lean)) * (outward - lean * u)
        span[0], span[1] = -size[1], size[1]
        clip(face, at, u, span, edge)
        if span[1] - span[0] < SHORT_LINE * size[0]:
            continue
        count = 0
        for end in range(2):
            p = at + span[end] * u
            if abs(span[end]) < size[1] and abs(dot(u, edge[end])) < BESIDE_EDGE:
                p -= height_over(face, p) * outward
                count = meet_edge(face, place, u, size[0], p, edge[end], sign, out, count)
            else:
                count = meet_face(face, p, sign, out, count)
        return count
    return 0
