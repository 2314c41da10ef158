"""Cylinders that stand on planes, straightened before MuJoCo looks for their contacts.

MuJoCo finds the lowest point of a rim along p = (n . a) a - n, with a the axis of the cylinder and
n the normal of the plane, and takes p for zero below 1e-15. Of a cylinder that stands p is
rounding, which exceeds that once it has turned for some steps: it then points along the axis as
well as any other way, the point lies up to a radius above the plane, and a cylinder that stands on
it, or in it, has no contact. Margins are a hundredth of a geom at least (`bridge.margins`), so that
errors of rounding / |p| matter only where the tilt is rounding itself; there the axis is made n.
"""

from __future__ import annotations

from typing import Any

from stiction.bridge import layout, library
from stiction.bridge.geom_types import CYLINDER, PLANE
from stiction.bridge.layout import offset
from stiction.kernels.compile import kernel
from stiction.terrain.contacts import frame_of

# Kernels, typed by Numba and not here.
mj: Any = library
pointer: Any = layout.pointer
integers: Any = layout.integers

UPRIGHT_TILT = 1e-11
"""Sine of the angle between an axis and a normal below which the two are one. Rounding turns the
lowest point of a rim by 1e-16 over this at most, which lifts it by 1e-5 of a radius."""

_NGEOM, _TYPE = offset("mjModel", "ngeom"), offset("mjModel", "geom_type")


@kernel
def straighten(m: int, d: int) -> None:
    """Axes of cylinders in the data at d := normals of planes that they all but are."""
    ngeom = pointer(m + _NGEOM)
    kind = integers(pointer(m + _TYPE), ngeom)
    first, last, cylinders = ngeom, -1, 0
    for g in range(ngeom):
        if kind[g] == PLANE:
            first, last = min(first, g), g
        elif kind[g] == CYLINDER:
            cylinders += 1
    if last < 0 or cylinders == 0:
        return
    for g in range(ngeom):
        if kind[g] != CYLINDER:
            continue
        _, turn = frame_of(d, g)
        for p in range(first, last + 1):
            if kind[p] != PLANE:
                continue
            _, flat = frame_of(d, p)
            along = turn[0, 2] * flat[0, 2] + turn[1, 2] * flat[1, 2] + turn[2, 2] * flat[2, 2]
            side, tilt = (1.0 if along > 0.0 else -1.0), 0.0
            for c in range(3):
                tilt = max(tilt, abs(turn[c, 2] - side * flat[c, 2]))
            if 0.0 < tilt < UPRIGHT_TILT:
                for c in range(3):
                    turn[c, 2] = side * flat[c, 2]


@kernel
def collide(m: int, d: int) -> None:
    """`mj_collision`, which finds cylinders that stand on planes."""
    straighten(m, d)
    mj.collide(m, d)
