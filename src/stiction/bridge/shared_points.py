"""Contacts in one point: a foot on several facets of a height field.

MuJoCo gives one contact for each facet that a ball or a corner meets. Their tangent planes differ,
and together span all directions: under the no-slip model, which holds a contact that touches
whether or not it presses, the point could not even leave the ground. A point has one plane to stay
in, that of the nearest facet; against the others it is frictionless.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.bridge.geom_types import CAPSULE, SPHERE, kind_of
from stiction.bridge.layout import numbers, offset, pointer
from stiction.kernels.compile import kernel, leaf

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_SIZE = offset("mjModel", "geom_size")
_BOUND = offset("mjModel", "geom_rbound")

ONE_POINT = 1e-2
"""Distance of two points, over the radius of the smaller geom, below which they are one: collisions
with height fields are found by iterations."""


@leaf
def _radius(m: int, geom: int) -> float:
    """Of a geom that is round wherever it touches, else 0 [m]."""
    if kind_of(m, geom) in (SPHERE, CAPSULE):
        return numbers(pointer(m + _SIZE), 3 * geom + 1)[3 * geom]
    return 0.0


@leaf
def _extent(m: int, geom: int) -> float:
    """Radius of the sphere around a geom, 0 for planes [m]."""
    return numbers(pointer(m + _BOUND), geom + 1)[geom]


@kernel
def hold_once(
    m: int, pair: Indices, point: Array, axis: Array, gap: Array, friction: Array
) -> None:
    """Leaves friction (nc,) only to the nearest of the contacts of two geoms that are in one point.

    m: address of the model; pair (nc, 2): geoms, or negative. point and axis (nc, 3): position and
    normal, from the first geom to the second.
    """
    centre = point.copy()  # of the ball that touches, where one does
    for i in range(pair.shape[0]):
        first, second = pair[i, 0], pair[i, 1]
        if first < 0:
            continue
        inward = 0.0
        if _radius(m, second) > 0.0:
            inward = _radius(m, second) + 0.5 * gap[i]
        elif _radius(m, first) > 0.0:
            inward = -_radius(m, first) - 0.5 * gap[i]
        for k in range(3):
            centre[i, k] += inward * axis[i, k]
        near = ONE_POINT * min(_extent(m, first), _extent(m, second))
        for j in range(i):
            if pair[j, 0] != first or pair[j, 1] != second:
                continue
            if friction[i] == 0.0 or friction[j] == 0.0:
                continue
            apart = 0.0
            for k in range(3):
                apart += (centre[i, k] - centre[j, k]) ** 2
            if apart < near * near:
                friction[j if gap[i] < gap[j] else i] = 0.0
