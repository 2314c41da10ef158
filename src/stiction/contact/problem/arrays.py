"""The arrays of a contact problem as kernels take them.

Numba compiles apart for read-only arrays, so the writable flags are set throughout; still
nothing may write. All are C-ordered, float64 but for the indices. nv degrees of freedom, nc
contacts, nj joint rows, nb box rows, r whitened coordinates (nv; of a Delassus problem the rank of
its matrix).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Arrays(NamedTuple):
    """A problem's own arrays; units as in `ContactProblem`."""

    mass: Array  # (nv, nv)
    velocity: Array  # (nv,)
    force: Array  # (nv,)
    normal: Array  # (nc, nv)
    tangent: Array  # (nc, 2, nv)
    friction: Array  # (nc,)
    viscosity: Array  # (nc,)
    bound: Array  # (nc,)
    joint: Array  # (nj, nv)
    joint_target: Array  # (nj,)
    box: Array  # (nb, nv)
    box_limit: Array  # (nb,)
    box_contact: NDArray[np.int64]  # (nb,) contact, or -1
    box_friction: Array  # (nb,) zero where there is no contact


class Whitened(NamedTuple):
    """A problem in coordinates where the mass is the identity.

    Velocities along rows are `free + rows @ (rows.T @ impulses)`, over all rows together.
    """

    rows_normal: Array  # (nc, r)
    rows_tangent: Array  # (nc, 2, r)
    rows_joint: Array  # (nj, r)
    rows_box: Array  # (nb, r)
    free_normal: Array  # (nc,)   N v_free - b: complementary to the normal impulse
    free_tangent: Array  # (nc, 2) T v_free
    free_joint: Array  # (nj,)   J v_free - c: to be brought to zero
    free_box: Array  # (nb,)   B v_free
    momentum: Array  # (r,)    L' v_free; of a Delassus problem by weighted least squares


class RowVelocity(NamedTuple):
    """Velocity along each row of a problem [m/s, or the row's own unit]."""

    normal: Array  # (nc,)
    tangent: Array  # (nc, 2)
    joint: Array  # (nj,)
    box: Array  # (nb,)
