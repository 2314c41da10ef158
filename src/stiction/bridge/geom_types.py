"""MuJoCo's types of geoms as integers, which kernels can compare, and which a geom has."""

from __future__ import annotations

from typing import Any

import mujoco

from stiction.bridge import layout
from stiction.bridge.layout import offset
from stiction.kernels.compile import leaf

PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, HFIELD = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}"))
    for name in ("PLANE", "SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX", "MESH", "HFIELD")
)

# A kernel, typed by Numba and not here.
entry: Any = layout.entry

_TYPE = offset("mjModel", "geom_type")


@leaf
def kind_of(m: int, geom: int) -> int:
    """The type of a geom."""
    return int(entry(m + _TYPE, geom))


@leaf
def kinds_of(m: int, first: int, second: int) -> tuple[int, int]:
    """The types of two geoms; -1, -1 where one of them is none."""
    if first < 0 or second < 0:
        return -1, -1
    return kind_of(m, first), kind_of(m, second)
