"""Factor of the mass, and rows divided by it: M = L L', row_w = L^-1 row.

Own loops rather than LAPACK: a threaded BLAS wakes its workers for a few hundred flops, and on
a busy machine waits milliseconds for them where the work is two microseconds. The factor is
kept as U = L', and `last[j]` is the last nonzero of row j of U: with many bodies M is block
diagonal, a row touches two of them, and loops that skip zeros do no more than that asks for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array, Arrays
from stiction.kernels.compile import kernel

Indices = NDArray[np.int64]


@kernel
def factorize(mass: Array, upper: Array, last: Indices, least: float) -> int:
    """Fills `upper` (nv, nv) and `last` (nv,); returns -1, or the row that has no pivot.

    A pivot must exceed `least` of its diagonal entry, what rounding alone would leave.
    """
    nv = mass.shape[0]
    for j in range(nv):
        row = upper[j]
        last[j] = j
        for k in range(nv):
            row[k] = mass[j, k] if k >= j else 0.0
            if row[k] != 0.0:
                last[j] = k
        for i in range(j):
            factor = upper[i, j]
            if factor != 0.0:
                above = upper[i]
                for k in range(j, last[i] + 1):
                    row[k] -= factor * above[k]
                last[j] = max(last[j], last[i])
        if not row[j] > least * mass[j, j]:
            return j
        pivot = np.sqrt(row[j])
        for k in range(j, last[j] + 1):
            row[k] /= pivot
    return -1


@kernel
def divide(upper: Array, last: Indices, y: Array) -> None:
    """y := L^-1 y."""
    for j in range(y.shape[0]):
        if y[j] != 0.0:
            row = upper[j]
            value = y[j] / row[j]
            y[j] = value
            for k in range(j + 1, last[j] + 1):
                y[k] -= value * row[k]


@kernel
def solve(upper: Array, last: Indices, y: Array) -> None:
    """y := M^-1 y."""
    divide(upper, last, y)
    for j in range(y.shape[0] - 1, -1, -1):
        row = upper[j]
        total = y[j]
        for k in range(j + 1, last[j] + 1):
            total -= row[k] * y[k]
        y[j] = total / row[j]


@kernel
def times(rows: Array, v: Array) -> Array:
    """rows (n, nv) times v (nv,)."""
    out = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(v.shape[0]):
            total += rows[i, j] * v[j]
        out[i] = total
    return out


@kernel
def _add(total: Array, rows: Array, impulses: Array) -> None:
    for i in range(rows.shape[0]):
        if impulses[i] != 0.0:
            for j in range(total.shape[0]):
                total[j] += impulses[i] * rows[i, j]


@kernel
def momentum_change(
    arrays: Arrays, dt: float, f_n: Array, f_t: Array, f_j: Array, f_b: Array
) -> Array:
    """(nv,) h f + N' f_n + T' f_t + J' f_j + B' f_b [N s]."""
    total = dt * arrays.force
    _add(total, arrays.normal, f_n)
    for i in range(f_n.shape[0]):
        _add(total, arrays.tangent[i], f_t[i])
    _add(total, arrays.joint, f_j)
    _add(total, arrays.box, f_b)
    return total


@kernel
def whiten_rows(upper: Array, last: Indices, rows: Array, v_free: Array) -> Array:
    """Divides each of `rows` (n, nv) by L, in place; returns rows v_free (n,) of before."""
    free = times(rows, v_free)
    for i in range(rows.shape[0]):
        divide(upper, last, rows[i])
    return free


@kernel
def whiten_momentum(upper: Array, last: Indices, v: Array) -> Array:
    """(nv,) L' v."""
    out = np.empty(v.shape[0])
    for j in range(v.shape[0]):
        total = 0.0
        for k in range(j, last[j] + 1):
            total += upper[j, k] * v[k]
        out[j] = total
    return out
