"""Contacts of convex pairs that are not where the pair is nearest, replaced by the one that is.

See the head of `distances.py`. The pairs are those of cylinders and meshes with capsules,
ellipsoids, cylinders, boxes and meshes, of which MuJoCo gives several contacts.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.contacts import end_of_pair
from stiction.bridge.geom_types import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, kinds_of
from stiction.bridge.layout import offset
from stiction.kernels.compile import kernel, leaf
from stiction.simulate.event_driven.distances import PRECISE
from stiction.terrain.contacts import (
    CONTACT,
    DIST,
    FRAME,
    GEOM,
    NCON,
    SIZE,
    write_contact,
)

Array = NDArray[np.float64]

WRONG_NORMAL = 1e-3
"""Sine of the angle by which the normals of a pair may be off before they are replaced."""

_CONVEX = (CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH)
_ROUND = (CYLINDER, MESH)
_EXCLUDE = offset("mjContact", "exclude")

# Kernels, typed by Numba and not here.
integer: Any = layout.integer
number: Any = layout.number
pointer: Any = layout.pointer
integers: Any = layout.integers
numbers: Any = layout.numbers
geom_distance: Any = library.geom_distance


def has_suspects(model: mujoco.MjModel) -> bool:
    """Whether the model has such pairs."""
    kinds = model.geom_type
    return bool(np.isin(kinds, _ROUND).any()) and int(np.isin(kinds, _CONVEX).sum()) > 1


@leaf
def _is_doubtful(m: int, first: int, second: int) -> bool:
    """Whether MuJoCo's contacts of that pair may be off."""
    a, b = kinds_of(m, first, second)
    return (a in _CONVEX) and (b in _CONVEX) and ((a in _ROUND) or (b in _ROUND))


@kernel
def mend(m: int, d: int, tolerance: float) -> None:
    """Replaces contacts of the data at d. Between `mj_collision` and `mj_makeConstraint`."""
    start = pointer(d + CONTACT)
    end_of_all = start + integer(d + NCON) * SIZE
    while start < end_of_all:
        end = end_of_pair(start, end_of_all)
        geoms = integers(start + GEOM, 2)
        if end - start > SIZE and _is_doubtful(m, geoms[0], geoms[1]):
            _mend_pair(m, d, start, end, tolerance, np.zeros(6))
        start = end


@kernel
def _mend_pair(m: int, d: int, start: int, end: int, tolerance: float, ends: Array) -> None:
    geoms = integers(start + GEOM, 2)
    nearest = start
    for contact in range(start, end, SIZE):
        if number(contact + DIST) < number(nearest + DIST):
            nearest = contact
    found = number(nearest + DIST)
    true = geom_distance(m, d, geoms[0], geoms[1], abs(found) + 1.0, ends.ctypes.data)
    if abs(true) < PRECISE:
        return  # touching to rounding: there is no direction between the witnesses
    normal = (ends[3:] - ends[:3]) / true
    normal /= np.sqrt((normal * normal).sum())
    along = (normal * numbers(nearest + FRAME, 3)).sum()
    tilt = np.sqrt(max(0.0, 1.0 - along * along)) if along > 0.0 else 1.0
    if abs(found - true) <= 0.1 * tolerance and tilt <= WRONG_NORMAL:
        return
    write_contact(start, true, 0.5 * (ends[:3] + ends[3:]), normal)
    for contact in range(start + SIZE, end, SIZE):
        integers(contact + _EXCLUDE, 1)[0] = 1
