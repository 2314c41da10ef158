"""Points and directions in space as three numbers each, without arrays.

An array expression of three numbers allocates its result, and its products go through a library for
large matrices: in a step that looks at dozens of corners that is most of what the geometry costs.
Vectors are tuples or arrays, of which the first three entries count; turns are arrays (3, 3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import leaf

Array = NDArray[np.float64]
Triple = tuple[float, float, float]
Vector = Array | Triple


@leaf
def minus(a: Vector, b: Vector) -> Triple:
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@leaf
def moved(a: Vector, far: float, along: Vector) -> Triple:
    """a + far along."""
    return a[0] + far * along[0], a[1] + far * along[1], a[2] + far * along[2]


@leaf
def scaled(factor: float, a: Vector) -> Triple:
    """factor a."""
    return factor * a[0], factor * a[1], factor * a[2]


@leaf
def dot(a: Vector, b: Vector) -> float:
    """a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@leaf
def cross(a: Vector, b: Vector) -> Triple:
    """a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@leaf
def turned(turn: Array, a: Vector) -> Triple:
    """turn @ a."""
    return (
        turn[0, 0] * a[0] + turn[0, 1] * a[1] + turn[0, 2] * a[2],
        turn[1, 0] * a[0] + turn[1, 1] * a[1] + turn[1, 2] * a[2],
        turn[2, 0] * a[0] + turn[2, 1] * a[1] + turn[2, 2] * a[2],
    )


@leaf
def turned_back(turn: Array, a: Vector) -> Triple:
    """turn.T @ a."""
    return (
        turn[0, 0] * a[0] + turn[1, 0] * a[1] + turn[2, 0] * a[2],
        turn[0, 1] * a[0] + turn[1, 1] * a[1] + turn[2, 1] * a[2],
        turn[0, 2] * a[0] + turn[1, 2] * a[1] + turn[2, 2] * a[2],
    )


@leaf
def velocity_at(velocity: Vector, turning: Vector, arm: Vector) -> Triple:
    """velocity + turning x arm: that of a point `arm` farther on a body with that angular
    velocity."""
    v, w, r = velocity, turning, arm
    return (
        v[0] + w[1] * r[2] - w[2] * r[1],
        v[1] + w[2] * r[0] - w[0] * r[2],
        v[2] + w[0] * r[1] - w[1] * r[0],
    )


@leaf
def three_of(rows: Array, i: int, first: int) -> Triple:
    """Three entries of row i of an array (n, k), from `first` on: a slice would cost two atomic
    reference counts."""
    return rows[i, first], rows[i, first + 1], rows[i, first + 2]


@leaf
def column(turn: Array, k: int) -> Triple:
    """Column k of a turn: an axis."""
    return turn[0, k], turn[1, k], turn[2, k]


@leaf
def carried(shift: Vector, turn: Array, a: Vector) -> Triple:
    """shift + turn @ a."""
    return moved(turned(turn, a), 1.0, shift)
