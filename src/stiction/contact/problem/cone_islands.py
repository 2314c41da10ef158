"""Parts of a problem by cones (`cones.py`) that share no coordinate, each as a problem of its own.

Coordinates of bodies that touch nothing in common are zero in each other's rows, exactly, since
masses of different trees are factored apart. A part has its own contacts, units and coordinates,
and its own load, so that its tolerances are its own too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.cones import INFINITE_FRICTION, Cones
from stiction.kernels.compile import kernel, leaf, lean

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@leaf
def _root(up: Indices, a: int) -> int:
    while up[a] != a:
        up[a] = up[up[a]]
        a = up[a]
    return a


@lean
def _join(up: Indices, rows: Array, i: int, node: int) -> None:
    """Joins all coordinates of row i with a node."""
    for a in range(rows.shape[1]):
        if rows[i, a] != 0.0:
            up[_root(up, a)] = _root(up, node)


@kernel
def label_cones(c: Cones) -> tuple[int, Indices, Indices, Indices]:
    """(how many parts, the part of each contact (n,), of each unit (u,) and of each coordinate
    (r,), or -1 where it is in no row)."""
    n, r = c.normal.shape
    units = c.mu.shape[0]
    up = np.arange(r + n + units)
    rows = c.rows.reshape((2 * units, r))
    for i in range(n):
        _join(up, c.normal, i, r + i)
    for u in range(units):
        _join(up, rows, 2 * u, r + n + u)
        _join(up, rows, 2 * u + 1, r + n + u)
        if c.parent[u] >= 0:
            up[_root(up, r + n + u)] = _root(up, r + c.parent[u])
    label, count = np.full(r + n + units, -1), 0
    for k in range(r, r + n + units):
        root = _root(up, k)
        if label[root] < 0:
            label[root] = count
            count += 1
    out = np.empty(r + n + units, np.int64)
    for k in range(r + n + units):
        out[k] = label[_root(up, k)]
    return count, out[r : r + n], out[r + n :], out[:r]


@kernel
def _members(label: Indices, k: int) -> Indices:
    """Where the label is k."""
    count = 0
    for i in range(label.shape[0]):
        count += label[i] == k
    out, count = np.empty(count, np.int64), 0
    for i in range(label.shape[0]):
        if label[i] == k:
            out[count] = i
            count += 1
    return out


@kernel
def part_of(
    c: Cones, k: int, of_contact: Indices, of_unit: Indices, of_column: Indices
) -> tuple[Any, Indices, Indices]:
    """(part k, its contacts, its units). Its rows of boxes are not told apart: `unit` is empty."""
    contacts, units, columns = _members(of_contact, k), _members(of_unit, k), _members(of_column, k)
    n, nu, r = contacts.shape[0], units.shape[0], columns.shape[0]
    normal, free_normal, length_normal = np.empty((n, r)), np.empty(n), np.empty(n)
    first, parent = np.zeros(n + 1, np.int64), np.full(nu, -1)
    mu, limit, length = np.empty(nu), np.empty(nu), np.empty(nu)
    rows, free, flat = np.empty((nu, 2, r)), np.empty((nu, 2)), np.empty(nu, np.bool_)
    load, at = 0.0, 0
    for i in range(n):
        j = contacts[i]
        first[i + 1] = first[i] + c.first[j + 1] - c.first[j]
        free_normal[i], length_normal[i] = c.free_normal[j], c.length_normal[j]
        load = max(load, abs(free_normal[i]))
        for a in range(r):
            normal[i, a] = c.normal[j, columns[a]]
        for _ in range(c.first[j], c.first[j + 1]):
            parent[at] = i
            at += 1
    for u in range(nu):
        j = units[u]
        mu[u], limit[u], flat[u], length[u] = c.mu[j], c.limit[j], c.flat[j], c.length[j]
        for t in range(2):
            free[u, t] = c.free[j, t]
            load = max(load, abs(free[u, t]))
            for a in range(r):
                rows[u, t, a] = c.rows[j, t, columns[a]]
    if load == 0.0:
        load = 1.0
    for i in range(n):
        free_normal[i] /= load
    for u in range(nu):
        limit[u] = min(limit[u] / load, INFINITE_FRICTION)
        free[u, 0], free[u, 1] = free[u, 0] / load, free[u, 1] / load
    part = Cones(
        normal, free_normal, parent, first, mu, limit, rows, free, flat, length_normal, length,
        np.empty(0, np.int64), load,
    )  # fmt: skip
    return part, contacts, units
