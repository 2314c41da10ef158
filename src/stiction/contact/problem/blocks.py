"""A contact problem by blocks: rows that share their columns, kept without their zeros.

A simulator's rows touch the few degrees of freedom that move two bodies, and all rows of a
contact touch the same ones. A block is such a set of rows:

    CONTACT   row 0 the normal; rows 1, 2 sliding; row 3 spin; rows 4, 5 rolling (1, 3, 4 or 6
              rows). A joint limit is a CONTACT with one row.
    HOLD      one row that must move at a given speed (a rigid joint)
    BOX       one row with an impulse between two limits (dry friction in a joint)
    SOFT      one row with the impulse -drag (speed - bound) (an equality as soft as a model says)

`head[i]` and `data[i]` are named by the enumerations below. Entry (row r, k-th column) of block i
is value[head[i, VALUE] + r * head[i, WIDTH] + k], in column[head[i, COLUMN] + k]; columns ascend.
The mass is kept as a skyline (`kernels/skyline.py`): entry (j, k), k <= j, is mass[row[j] + k],
from first[j] on. No array has as many rows and columns as there are degrees of freedom.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.packing import packed

Indices = NDArray[np.int64]

ROWS = 6
"""Rows of a block at most."""


class Kind(IntEnum):
    """What a block is."""

    CONTACT = 0
    HOLD = 1
    BOX = 2
    SOFT = 3


class Head(IntEnum):
    """Columns of `Blocks.head`."""

    KIND = 0
    ROWS = 1
    WIDTH = 2
    COLUMN = 3
    VALUE = 4
    PARENT = 5
    """BOX: the contact that its limit grows with, where `Datum.SPIN` is positive."""


class Datum(IntEnum):
    """Columns of `Blocks.data`."""

    BOUND = 0
    """CONTACT: least N v+ [m/s]; HOLD, SOFT: the required speed; BOX: zero."""
    SLIDE = 1
    """Friction coefficient of rows 1 and 2."""
    SPIN = 2
    """Friction coefficient of row 3 [m]; BOX: growth of its limit with the normal impulse of the
    contact `Head.PARENT`."""
    ROLL = 3
    """Friction coefficient of rows 4 and 5 [m]."""
    DRAG = 4
    """h mu_v of rows 1 and 2 [N s^2/m], for viscous friction; SOFT: impulse per speed."""
    LIMIT = 5
    """BOX: largest impulse."""
    SURFACE = 6
    """CONTACT: this and the next two: velocity of the second surface over the first while the
    bodies themselves stand still, along rows 1, 2 [m/s] and 3 [rad/s] (conveyors)."""
    SURFACE_2 = 7
    SURFACE_SPIN = 8


HEADS = len(Head)
DATA = len(Datum)


@packed
class Blocks(NamedTuple):
    """The rows of a problem, its mass, and its momentum; nv degrees of freedom, at most `cap`
    blocks."""

    head: Indices  # (cap, HEADS)
    data: Array  # (cap, DATA)
    column: Indices
    value: Array
    mass: Array  # its skyline, lower part
    row: Indices  # (nv,) where the rows of the skyline lie
    first: Indices  # (nv,) first column of each
    velocity: Array  # (nv,) before the step
    push: Array  # (nv,) impulse of the applied forces, h f


@lean_leaf
def from_targets(b: Blocks, i, u):
    """u, speeds of block i along its rows, become speeds less its bound, over moving surfaces."""
    data, rows = b.data, b.head[i, Head.ROWS]
    u[i, 0] -= data[i, Datum.BOUND]
    for r in range(1, min(rows, 4)):
        u[i, r] += data[i, Datum.SURFACE + r - 1]


@lean
def row_velocities(b: Blocks, count, v, u):
    """u (count, ROWS) := speed along each row less its bound, over moving surfaces."""
    head, column, value = b.head, b.column, b.value
    for i in range(count):
        width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
        for r in range(head[i, Head.ROWS]):
            a0 = head[i, Head.VALUE] + r * width
            total = 0.0
            for k in range(width):
                total += value[a0 + k] * v[column[c0 + k]]
            u[i, r] = total
        from_targets(b, i, u)


@lean
def add_impulses(b: Blocks, begin, end, f, out):
    """out (nv,) += the impulses f (cap, ROWS) of the blocks from `begin` to `end`."""
    head, column, value = b.head, b.column, b.value
    for i in range(begin, end):
        width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
        for r in range(head[i, Head.ROWS]):
            impulse = f[i, r]
            if impulse != 0.0:
                a0 = head[i, Head.VALUE] + r * width
                for k in range(width):
                    out[column[c0 + k]] += impulse * value[a0 + k]


@lean
def inverse_inertias(b: Blocks, count, factor, work, weight):
    """weight (count, ROWS) := a M^-1 a' of each row, from the factored mass; work (nv,)."""
    head, column, value, row, first = b.head, b.column, b.value, b.row, b.first
    for i in range(count):
        width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
        low, high = 0, -1
        if width > 0:
            low, high = first[column[c0]], column[c0 + width - 1]
            for k in range(1, width):
                low = min(low, first[column[c0 + k]])
        for r in range(head[i, Head.ROWS]):
            a0 = head[i, Head.VALUE] + r * width
            for j in range(low, high + 1):
                work[j] = 0.0
            for k in range(width):
                work[column[c0 + k]] = value[a0 + k]
            total = 0.0
            for k in range(high, low - 1, -1):
                y = work[k]
                if y != 0.0:
                    at = row[k]
                    share = y * factor[at + k]
                    total += y * share
                    for j in range(first[k], k):
                        work[j] -= share * factor[at + j]
            weight[i, r] = total


@lean
def mass_times(b: Blocks, x, out):
    """out (nv,) := M x."""
    mass, first = b.mass, b.first
    for j in range(x.shape[0]):
        at = b.row[j]
        total = mass[at + j] * x[j]
        for k in range(first[j], j):
            total += mass[at + k] * x[k]
            out[k] += mass[at + k] * x[j]
        out[j] = total


def allocate(nv: int, blocks: int, entries: int, skyline: int) -> Blocks:
    """Room for a problem with that many blocks, entries of rows, and entries of its mass."""
    return Blocks(
        np.zeros((blocks, HEADS), np.int64),
        np.zeros((blocks, DATA)),
        np.zeros(entries, np.int64),
        np.zeros(entries),
        np.zeros(skyline),
        np.zeros(nv, np.int64),
        np.zeros(nv, np.int64),
        np.zeros(nv),
        np.zeros(nv),
    )
