"""What contacts with the world do to the bodies that they push, and all that these are carried by.

A contact with what never moves pushes one body alone, and its wrench changes with the motion of
that body alone, by a matrix of 6 x 6 (`maps.py`): as with inertias, those of all that a degree of
freedom moves add up. With w and N the wrench and the matrix so summed, S the motions of degrees of
freedom,

    dmomentum_j / dq_k = S_k . (N' S_j + S_j x* w)    where k comes before j
                         S_j . N S_k                  where it does not, and j moves k

for N and w of the farther one. `bodies.py` adds both up along with the inverse dynamics.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array
from stiction.kernels.compile import lean
from stiction.kernels.packing import packed
from stiction.kernels.six import add_three, put_three
from stiction.simulate.derivatives.motions import cross_force, six_dot

Indices = NDArray[np.int64]


@packed
class Load(NamedTuple):
    """Of a body and all that it carries, about the centre of mass of their tree; over the scale
    that forces are taken by."""

    bears: Indices  # (nbody,) 1 where there is any
    wrench: Array  # (nbody, 6) w
    change: Array  # (nbody, 6, 6) N
    part: Array  # (6, 6)


def allocate_load(nbody: int) -> Load:
    """Room for a model."""
    return Load(
        np.zeros(nbody, np.int64), np.zeros((nbody, 6)), np.zeros((nbody, 6, 6)), np.zeros((6, 6))
    )


@lean
def clear_load(load: Load):
    """No loads."""
    for i in range(load.bears.shape[0]):
        if load.bears[i] == 1:
            load.bears[i] = 0
            for c in range(6):
                load.wrench[i, c] = 0.0
                for k in range(6):
                    load.change[i, c, k] = 0.0


@lean
def add_load(i, x, y, z, scale, wrench, row, by, load: Load):
    """Adds `scale` times the torque and force wrench[row] on body i, and its changes by (6, 6) with
    the body's motion, all about a point that is (x, y, z) from its tree's centre of mass. As a
    torque about that centre has more than the one about the point, a motion there has less."""
    part, total, change = load.part, load.wrench, load.change[i]
    load.bears[i] = 1
    a, b, c = scale * wrench[row, 3], scale * wrench[row, 4], scale * wrench[row, 5]
    total[i, 0] += scale * wrench[row, 0] + y * c - z * b
    total[i, 1] += scale * wrench[row, 1] + z * a - x * c
    total[i, 2] += scale * wrench[row, 2] + x * b - y * a
    for r in range(3, 6):
        total[i, r] += scale * wrench[row, r]
    for r in range(6):
        a, b, c = scale * by[r, 3], scale * by[r, 4], scale * by[r, 5]
        part[r, 0] = scale * by[r, 0] + y * c - z * b
        part[r, 1] = scale * by[r, 1] + z * a - x * c
        part[r, 2] = scale * by[r, 2] + x * b - y * a
        part[r, 3], part[r, 4], part[r, 5] = a, b, c
    for k in range(6):
        a, b, c = part[3, k], part[4, k], part[5, k]
        change[0, k] += part[0, k] + y * c - z * b
        change[1, k] += part[1, k] + z * a - x * c
        change[2, k] += part[2, k] + x * b - y * a
        for r in range(3, 6):
            change[r, k] += part[r, k]


@lean
def carry_load(parent, load: Load):
    """Adds the loads of bodies to those of what carries them; parent (nbody,)."""
    for i in range(parent.shape[0] - 1, 0, -1):
        p = parent[i]
        if load.bears[i] == 1 and p > 0:
            load.bears[p] = 1
            for c in range(6):
                load.wrench[p, c] += load.wrench[i, c]
                for k in range(6):
                    load.change[p, c, k] += load.change[i, c, k]


@lean
def describe_load(load: Load, i, cdof, k, own):
    """own[2] += N S and own[7] := N' S + S x* w, of degree of freedom k, which moves body i."""
    change = load.change[i]
    for c in range(6):
        own[2, c] += six_dot(change, c, cdof, k)
    put_three(own, 42, change, cdof[k, 0], 0, cdof[k, 1], 6, cdof[k, 2], 12)
    add_three(own, 42, change, cdof[k, 3], 18, cdof[k, 4], 24, cdof[k, 5], 30)
    cross_force(cdof, k, load.wrench, i, own, 7)
