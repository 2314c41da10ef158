"""Collisions of some pairs of geoms alone, for a while.

Stages of the integrator and differences of rows ask for the contacts that a phase holds and for no
others, so that MuJoCo need not look for those: geoms of all other pairs collide with nothing
meanwhile, by the masks (`contype`, `conaffinity`) of the surveyor's own model. Pairs that the model
names one by one are found as before.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout
from stiction.bridge.layout import offset
from stiction.kernels.compile import lean

Indices = NDArray[np.int64]

# Kernels, typed by Numba and not here.
pointer: Any = layout.pointer
integers: Any = layout.integers

_NGEOM, _NBODY = offset("mjModel", "ngeom"), offset("mjModel", "nbody")
_BODY = offset("mjModel", "geom_bodyid")
_GEOM_TYPE, _GEOM_AFFINITY, _BODY_TYPE, _BODY_AFFINITY = (
    offset("mjModel", name)
    for name in ("geom_contype", "geom_conaffinity", "body_contype", "body_conaffinity")
)


class Masks:
    """The masks of a model as they are, to be put back."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._kept = np.concatenate(self._arrays())
        self.address = int(self._kept.ctypes.data)

    def restore(self) -> None:
        """After an error, which may have come while others were in their place."""
        first = 0
        for array in self._arrays():
            array[:] = self._kept[first : first + len(array)]
            first += len(array)

    def _arrays(self) -> tuple[NDArray[np.int32], ...]:
        model = self._model
        return (
            model.geom_contype, model.geom_conaffinity, model.body_contype, model.body_conaffinity,
        )  # fmt: skip


@lean
def focus(m: int, pair: Indices, masks: int) -> None:
    """Lets only the geoms of the pairs (n, 2) collide; rows of limits, below zero, name none.
    masks: `Masks.address`, the model's own."""
    ngeom, nbody = pointer(m + _NGEOM), pointer(m + _NBODY)
    body = integers(pointer(m + _BODY), ngeom)
    geom_type = integers(pointer(m + _GEOM_TYPE), ngeom)
    geom_affinity = integers(pointer(m + _GEOM_AFFINITY), ngeom)
    body_type = integers(pointer(m + _BODY_TYPE), nbody)
    body_affinity = integers(pointer(m + _BODY_AFFINITY), nbody)
    kept = integers(masks, 2 * (ngeom + nbody))
    for g in range(ngeom):
        geom_type[g], geom_affinity[g] = 0, 0
    for b in range(nbody):
        body_type[b], body_affinity[b] = 0, 0
    for i in range(pair.shape[0]):
        if pair[i, 0] < 0:
            continue
        for side in range(2):
            g = pair[i, side]
            b = body[g]
            geom_type[g], geom_affinity[g] = kept[g], kept[ngeom + g]
            body_type[b] = kept[2 * ngeom + b]
            body_affinity[b] = kept[2 * ngeom + nbody + b]


@lean
def unfocus(m: int, masks: int) -> None:
    """Lets all collide again that do."""
    ngeom, nbody = pointer(m + _NGEOM), pointer(m + _NBODY)
    geom_type = integers(pointer(m + _GEOM_TYPE), ngeom)
    geom_affinity = integers(pointer(m + _GEOM_AFFINITY), ngeom)
    body_type = integers(pointer(m + _BODY_TYPE), nbody)
    body_affinity = integers(pointer(m + _BODY_AFFINITY), nbody)
    kept = integers(masks, 2 * (ngeom + nbody))
    for g in range(ngeom):
        geom_type[g], geom_affinity[g] = kept[g], kept[ngeom + g]
    for b in range(nbody):
        body_type[b] = kept[2 * ngeom + b]
        body_affinity[b] = kept[2 * ngeom + nbody + b]
