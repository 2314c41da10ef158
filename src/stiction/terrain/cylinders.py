"""Contacts of cylinders and capsules that lie side by side, where MuJoCo gives one with a normal
off by 8e-4 rad, or one that jumps along the line in which they touch.

Two such geoms whose axes are nearly parallel touch at the ends of the stretch that they share:

    rim on side      the rim of a cylinder meets the side of the other geom: nearest point of the
                     circle to the other's axis, normal from that axis
    end on side      the sphere at the end of a capsule's axis meets it: normal from axis to axis
    side on side     if the axes cross within the stretch: along the perpendicular to both; only
                     where it is nearer than the ends

each with its exact distance, at any angle between the axes. Other contacts of such pairs, of caps
or of axes that cross steeply, are in `nearest.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout
from stiction.bridge.geom_types import CAPSULE, CYLINDER, kind_of, kinds_of
from stiction.bridge.layout import offset
from stiction.kernels.compile import kernel, leaf
from stiction.terrain.contacts import GAP, NORMAL, POINT, WIDTH, frame_of

Array = NDArray[np.float64]

STEEP = 0.2
"""Sine of the angle between axes from which they cross, and MuJoCo's one contact is right."""

SHARED_STRETCH = 1e-2
"""Least length of the stretch that two geoms share, over their radii: less is contact of caps."""

NEARER = 1e-8
"""Distance, over their radii, by which a contact between the ends must be nearer to count."""

PARALLEL = 1e-5
"""Sine of the angle between axes below which where they cross is rounding, and as near as the ends.
"""

RIM_STEPS = 4
"""Steps to the point of a rim that is nearest: its error is squared in each."""

# Kernels, typed by Numba and not here.
pointer: Any = layout.pointer
numbers: Any = layout.numbers

_GEOM_SIZE = offset("mjModel", "geom_size")


@leaf
def is_round(m: int, geom: int) -> bool:
    """Whether the geom is a capsule or a cylinder."""
    return geom >= 0 and kind_of(m, geom) in (CAPSULE, CYLINDER)


@kernel
def meet_sides(m: int, d: int, first: int, second: int, out: Array) -> int:
    """Contacts of two geoms side by side into out (MOST_MET, WIDTH); returns their number, 0
    where they are not."""
    a, turn_a = frame_of(d, first)
    b, turn_b = frame_of(d, second)
    u, v = turn_a[:, 2].copy(), turn_b[:, 2].copy()
    if u @ v < 0.0:
        v = -v
    cross = np.cross(u, v)
    steep = np.sqrt(cross @ cross)
    if steep > STEEP:
        return 0
    size_a = numbers(pointer(m + _GEOM_SIZE) + 24 * first, 3)
    size_b = numbers(pointer(m + _GEOM_SIZE) + 24 * second, 3)
    kinds = kinds_of(m, first, second)
    radius, least = size_a[0] + size_b[0], min(size_a[0], size_b[0])
    away = b - a
    apart = away - (away @ u) * u
    gap = np.sqrt(apart @ apart) - radius
    # From where to where the first axis has the second geom beside it.
    low = max(-size_a[1], away @ u - size_b[1])
    high = min(size_a[1], away @ u + size_b[1])
    shared = high - low
    if gap < -0.5 * radius or shared < SHARED_STRETCH * least or gap < -0.5 * shared:
        return 0
    # On each side the end of one geom is beside the other; which, the point itself tells.
    count = 2
    for k in range(count):
        side = 2.0 * k - 1.0
        end_a, end_b = a + side * size_a[1] * u, b + side * size_b[1] * v
        beyond = side * put_end(kinds[0], size_a[0], end_a, u, b, v, size_b[0], 1.0, out[k])
        beyond -= size_b[1]
        if beyond > 0.0:
            spare = np.empty(WIDTH)
            other = side * put_end(kinds[1], size_b[0], end_b, v, a, u, size_a[0], -1.0, spare)
            if other - size_a[1] < beyond:
                out[k] = spare
    if steep > PARALLEL:
        count = put_crossing(a, u, size_a, b, v, size_b, cross, out, count)
    return count


@kernel
def put_end(
    kind: int, radius: float, end: Array, axis: Array, other: Array, line: Array, thick: float,
    sign: float, out: Array,
) -> float:  # fmt: skip
    """The contact of the end of a geom's axis, or of the rim about it, with the side of a geom of
    radius `thick` about the line through `other` along `line`; sign 1 if that geom is the second.
    Returns where along the line it is."""
    away = end - other
    away = away - (away @ line) * line
    point, reach = end, radius
    if kind == CYLINDER:
        x = (away @ axis) * axis - away
        x /= np.sqrt(x @ x)
        y = np.cross(axis, x)
        x_across, y_across = x - (x @ line) * line, y - (y @ line) * line
        angle = 0.0
        for _ in range(RIM_STEPS):
            spoke = np.cos(angle) * x_across + np.sin(angle) * y_across
            swing = np.cos(angle) * y_across - np.sin(angle) * x_across
            foot = away + radius * spoke
            curvature = radius * (swing @ swing) - foot @ spoke
            if not curvature > 0.0:
                break
            angle -= (foot @ swing) / curvature
        point = end + radius * (np.cos(angle) * x + np.sin(angle) * y)
        away = point - other
        away = away - (away @ line) * line
        reach = 0.0
    size = np.sqrt(away @ away)
    gap = size - thick - reach
    normal = -away / size
    out[GAP] = gap
    out[POINT : POINT + 3] = point + (reach + 0.5 * gap) * normal
    out[NORMAL : NORMAL + 3] = sign * normal
    return (point - other) @ line  # type: ignore[return-value]  # a number


@kernel
def put_crossing(
    a: Array, u: Array, size_a: Array, b: Array, v: Array, size_b: Array, cross: Array,
    out: Array, count: int,
) -> int:  # fmt: skip
    """The contact on the perpendicular to both axes, if it is between their ends and nearer than
    what was found; returns how many there are."""
    away = b - a
    cosine, sine2 = u @ v, cross @ cross
    s = (away @ u - cosine * (away @ v)) / sine2
    t = (cosine * (away @ u) - away @ v) / sine2
    if abs(s) >= size_a[1] or abs(t) >= size_b[1]:
        return count
    height = (away @ cross) / np.sqrt(sine2)
    normal = cross * (np.sign(height) / np.sqrt(sine2))
    gap = abs(height) - size_a[0] - size_b[0]
    if gap > out[:count, GAP].min() - NEARER * min(size_a[0], size_b[0]):
        return count
    out[count, GAP] = gap
    out[count, POINT : POINT + 3] = a + s * u + (size_a[0] + 0.5 * gap) * normal
    out[count, NORMAL : NORMAL + 3] = normal
    return count + 1
