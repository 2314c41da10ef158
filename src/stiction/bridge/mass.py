"""The inertia of a step as a skyline, from MuJoCo's own, with implicit damping and actuators.

M and the derivatives of the smooth forces couple degrees of freedom of one kinematic tree only;
the skyline never crosses from one tree to the next, and its shape is the model's.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.layout import integers, number, numbers, offset, pointer
from stiction.contact.problem.blocks import Blocks
from stiction.kernels.compile import kernel
from stiction.kernels.skyline import close_skyline, lay_out

Indices = NDArray[np.int64]

_TIMESTEP = offset("mjModel", "opt", "timestep")
_M_NNZ, _M_ADR, _M_COL = (offset("mjModel", f"M_{k}") for k in ("rownnz", "rowadr", "colind"))
_D_NNZ, _D_ADR, _D_COL = (offset("mjModel", f"D_{k}") for k in ("rownnz", "rowadr", "colind"))
_M = offset("mjData", "M")
_DERIV = offset("mjData", "qDeriv")


def tree_starts(model: mujoco.MjModel) -> Indices:
    """(trees + 1,) first degree of freedom of each kinematic tree, and nv."""
    return np.append(model.tree_dofadr[: model.ntree], model.nv).astype(np.int64)


def skyline_of(model: mujoco.MjModel) -> tuple[Indices, Indices, int]:
    """(first, row, entries) of the skyline that holds M and the derivatives of smooth forces."""
    nv = model.nv
    first = np.arange(nv, dtype=np.int64)
    for start, count, column in (
        (model.M_rowadr, model.M_rownnz, model.M_colind),
        (model.D_rowadr, model.D_rownnz, model.D_colind),
    ):
        for j in range(nv):
            for k in column[start[j] : start[j] + count[j]]:
                first[max(j, k)] = min(first[max(j, k)], min(j, k))
    row = np.zeros(nv, np.int64)
    close_skyline(first)
    return first, row, int(lay_out(first, row))


@kernel
def read_mass(m, d, b: Blocks, derivatives):
    """Fills the mass with M, less h qDeriv if `derivatives`."""
    mass, row = b.mass, b.row
    nv = row.shape[0]
    if nv == 0:
        return
    for k in range(mass.shape[0]):
        mass[k] = 0.0
    count, start = integers(pointer(m + _M_NNZ), nv), integers(pointer(m + _M_ADR), nv)
    total = start[nv - 1] + count[nv - 1]
    column, value = integers(pointer(m + _M_COL), total), numbers(pointer(d + _M), total)
    for j in range(nv):
        for k in range(start[j], start[j] + count[j]):
            mass[row[j] + column[k]] = value[k]
    if derivatives:
        dt = number(m + _TIMESTEP)
        count, start = integers(pointer(m + _D_NNZ), nv), integers(pointer(m + _D_ADR), nv)
        total = start[nv - 1] + count[nv - 1]
        column, value = integers(pointer(m + _D_COL), total), numbers(pointer(d + _DERIV), total)
        for j in range(nv):
            for k in range(start[j], start[j] + count[j]):
                at = column[k]
                if at == j:
                    mass[row[j] + j] -= dt * value[k]
                elif value[k] != 0.0:  # damping and servos leave joints to themselves
                    mass[row[max(at, j)] + min(at, j)] -= 0.5 * dt * value[k]
