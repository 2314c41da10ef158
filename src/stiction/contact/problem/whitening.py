"""Rows divided by the factor of the mass: M = L L', row_w = L^-1 row (`kernels/linear.py`)."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array, Arrays, Whitened
from stiction.kernels.compile import kernel, lean
from stiction.kernels.linear import divide

Indices = NDArray[np.int64]


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


@lean
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


@kernel
def whiten(arrays: Arrays, upper: Array, last: Indices, v_free: Array) -> Whitened:
    """The problem in coordinates of unit mass; upper, last: factor of its mass."""
    nc, nv = arrays.normal.shape
    normal, joint, box = arrays.normal.copy(), arrays.joint.copy(), arrays.box.copy()
    tangent = arrays.tangent.copy().reshape(2 * nc, nv)
    free_normal = whiten_rows(upper, last, normal, v_free) - arrays.bound
    free_tangent = whiten_rows(upper, last, tangent, v_free).reshape(nc, 2)
    free_joint = whiten_rows(upper, last, joint, v_free) - arrays.joint_target
    free_box = whiten_rows(upper, last, box, v_free)
    momentum = whiten_momentum(upper, last, v_free)
    return Whitened(
        normal, tangent.reshape(nc, 2, nv), joint, box, free_normal, free_tangent, free_joint,
        free_box, momentum,
    )  # fmt: skip


def whiten_contact_space(arrays: Arrays, factor: Array, diagonal: Array) -> Whitened:
    """The same of a problem u = W f + q; factor (n, r): W = factor factor', diagonal (n,): of W."""
    nc = len(arrays.friction)
    rows, free = by_contact(factor, nc), by_contact(arrays.velocity, nc)
    momentum = _least_squares(factor, arrays.velocity, diagonal)
    none = np.zeros((0, len(momentum)))
    return Whitened(
        np.ascontiguousarray(rows[:, 0]),
        np.ascontiguousarray(rows[:, 1:]),
        none,
        none,
        free[:, 0] - arrays.bound,
        np.ascontiguousarray(free[:, 1:]),
        np.zeros(0),
        np.zeros(0),
        momentum,
    )


def by_contact(rows: Array, nc: int) -> Array:
    """Interleaved rows (dimension nc, ...) as (nc, 3, ...), zeros for a missing tangent."""
    out = np.zeros((nc, 3, *rows.shape[1:]))
    dimension = len(rows) // max(nc, 1)
    out[:, :dimension] = rows.reshape(nc, dimension, *rows.shape[1:])
    return out


def _least_squares(rows: Array, free: Array, diagonal: Array) -> Array:
    """x (r,) with rows x nearest to `free`, each entry weighted by 1 / diagonal.

    So weighted the columns of `rows` are orthogonal: they were eigenvectors (`check.psd`).
    """
    weight = np.divide(1.0, diagonal, out=np.zeros(len(free)), where=diagonal > 0.0)
    weighted = weight[:, None] * rows
    return cast(Array, (free @ weighted) / np.einsum("ij,ij->j", rows, weighted))
