"""The grade of forces that last: velocities are accelerations, impulses are forces.

Static friction obeys Coulomb's law on the tangential acceleration T a + drift, drift = (dT/dt) v.
Dynamic friction has the direction of the slip, which such a problem does not hold and which is
given: a contact that slides has f_t = -mu f_n d, a box row that turns -limit times the sign of its
speed.

The drift is to the blocks what the speed of a moving surface is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.grading import grade_rows, momentum_residual
from stiction.contact.certificate.laws import Table, new_table
from stiction.contact.problem.arrays import Array, Arrays
from stiction.contact.problem.blocks import ROWS, Datum, row_velocities
from stiction.contact.problem.dense_blocks import collect, from_arrays
from stiction.contact.problem.scales import block_speed, own_speeds, spread
from stiction.kernels.compile import kernel


class Slip(NamedTuple):
    """What velocities tell about the friction of nc contacts and nb box rows."""

    drift: Array  # (nc, 2) part of the tangential accelerations that velocities make
    sliding: NDArray[np.bool_]  # (nc,)
    direction: Array  # (nc, 2) of the slip, where sliding
    turning: Array  # (nb,) sign of the speed along a row that moves, else 0


@kernel
def grade_accelerations(
    law, arrays: Arrays, weight, free, slip: Slip, acceleration, f_n, f_t, f_j, f_b
) -> Table:  # fmt: skip
    """The certificate of accelerations (nv,) and forces.

    arrays: of a problem whose velocities are accelerations, and forces its impulses in a second;
    weight (count, ROWS): inverse inertias of its rows; free (nv,): acceleration without contacts.
    """
    b = from_arrays(arrays, 1.0)
    count, nc, nb, nv = weight.shape[0], f_n.shape[0], f_b.shape[0], free.shape[0]
    for i in range(nc):
        b.data[i, Datum.SURFACE], b.data[i, Datum.SURFACE_2] = slip.drift[i, 0], slip.drift[i, 1]
    inverse, sigma, speed = np.empty(nv), np.empty(nv), np.empty(count)
    own_speeds(b, free, inverse, sigma)
    spread(b, count, inverse, np.empty((count, ROWS)), sigma)
    for i in range(count):
        speed[i] = block_speed(b, i, sigma)
    u, f = np.zeros((count, ROWS)), np.zeros((count, ROWS))
    collect(f_n, f_t, f_j, f_b, f)
    row_velocities(b, count, acceleration, u)
    slides = np.zeros(count, np.int64)
    for i in range(nc):
        if slip.sliding[i]:
            slides[i] = 1
            u[i, 1], u[i, 2] = slip.direction[i, 0], slip.direction[i, 1]
    for k in range(nb):
        if slip.turning[k] != 0.0:
            slides[count - nb + k] = 1
            u[count - nb + k, 0] = slip.turning[k]
    residual, moved = np.empty(nv), np.empty(nv)
    momentum_residual(b, count, acceleration, f, moved, residual)
    table = new_table()
    grade_rows(
        b, count, law, np.int64(0), weight, sigma, speed, slides, u, f, residual, table
    )  # fmt: skip
    return table
