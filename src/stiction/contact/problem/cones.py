"""A contact problem as the Coulomb solvers see it: unit rows, one load, friction by `units`.

From the whitened problem, joints are eliminated first (their rows' span is projected out of
all others; Drumwright's Algorithm 2 finds independent ones), so that only normals and friction
remain. A friction unit is a disc (two rows) or an interval (one row) in which an impulse
opposes sliding, with radius

    mu * (normal impulse of its parent contact) + limit

A contact with friction is the parent of a disc. A box row is an interval with a limit; torsional
or rolling friction is one whose parent is its contact. A contact's units stand together, its
disc first; those without a parent come last. Rows are divided by their length and the load by
its size:

    normal_i = n_i / |n_i|,   theta_i = |n_i| f_i / load,   a unit's rows by one common length,

so that the Delassus diagonal is one, velocities and impulses are of size one, and every
tolerance below is absolute. `mu` carries the ratio of the two lengths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.problem.arrays import Arrays, Whitened
from stiction.kernels.compile import kernel, lean
from stiction.kernels.linear import orthonormal_rows, project_out

DEPENDENT = 1e-10
"""A row's remainder after projection, relative to the row, below which it is dependent. The
square root of what Cholesky leaves of a dependent row's pivot is 1e-8; by projection twice it
is 1e-16."""

INFINITE_FRICTION = 1e8
"""What stands for an infinite friction coefficient between unit rows: the limit of Coulomb's
law differs from it by 1e-8 of the load."""


class Cones(NamedTuple):
    """Arrays of the scaled problem: n contacts, u units, r coordinates."""

    normal: np.ndarray  # (n, r) unit rows, or zero rows
    free_normal: np.ndarray  # (n,)
    parent: np.ndarray  # (u,) contact, or -1
    first: np.ndarray  # (n+1,) units of contact i are first[i] .. first[i+1]-1
    mu: np.ndarray  # (u,)
    limit: np.ndarray  # (u,)
    rows: np.ndarray  # (u, 2, r) the second row of an interval is zero
    free: np.ndarray  # (u, 2)
    flat: np.ndarray  # (u,) bool: an interval
    length_normal: np.ndarray  # (n,)
    length: np.ndarray  # (u,)
    unit: np.ndarray  # (nb,) of each box row, or -1: no impulse is allowed there
    load: float


@lean
def project_row(basis, size, row, shift):
    """Takes the basis out of `row` in place; returns row . shift of before, and the length of
    what remains (zero if it is rounding of the row itself)."""
    before = 0.0
    moved = 0.0
    for a in range(row.shape[0]):
        before += row[a] * row[a]
        moved += row[a] * shift[a]
    rest = np.sqrt(before)
    if size > 0:
        project_out(basis, size, row)
        rest = project_out(basis, size, row)
    if not rest > DEPENDENT * np.sqrt(before):
        for a in range(row.shape[0]):
            row[a] = 0.0
        return moved, 0.0
    return moved, rest


@kernel
def joint_shift(rows_joint, free_joint, basis, kept):
    """(size, shift): an orthonormal basis of the joint rows' span in `basis`, and the change of
    velocity (r,) within it that brings the free joint velocities to zero."""
    size = orthonormal_rows(rows_joint, basis, kept, DEPENDENT)
    r = basis.shape[1]
    shift = np.zeros(r)
    # Kept row i is basis-triangular: rows_i = sum_k (rows_i . basis_k) basis_k, k <= its rank.
    rank = 0
    for i in range(rows_joint.shape[0]):
        if not kept[i]:
            continue
        value = -free_joint[i]
        for a in range(r):
            value -= rows_joint[i, a] * shift[a]
        pivot = 0.0
        for a in range(r):
            pivot += rows_joint[i, a] * basis[rank, a]
        for a in range(r):
            shift[a] += value / pivot * basis[rank, a]
        rank += 1
    return size, shift


@lean
def is_tied(arrays: Arrays, k):
    """Whether the limit of box row k grows with a normal impulse."""
    return arrays.box_contact[k] >= 0 and arrays.box_friction[k] > 0.0


@kernel
def _place_units(arrays: Arrays):
    """(first (n+1,), unit (nb,), total): `first` and `unit` of `Cones`, and how many units."""
    n, boxes = arrays.friction.shape[0], arrays.box_limit.shape[0]
    first = np.zeros(n + 1, np.int64)
    unit = np.full(boxes, -1)
    for k in range(boxes):
        if is_tied(arrays, k):
            first[arrays.box_contact[k] + 1] += 1
    for i in range(n):
        first[i + 1] += first[i] + (1 if arrays.friction[i] > 0.0 else 0)
    # Filled from their ends, so that no count per contact is needed.
    end = first[1:].copy()
    total = first[n]
    for k in range(boxes - 1, -1, -1):
        if is_tied(arrays, k):
            end[arrays.box_contact[k]] -= 1
            unit[k] = end[arrays.box_contact[k]]
    for k in range(boxes):
        if arrays.box_limit[k] > 0.0 and unit[k] < 0:
            unit[k] = total
            total += 1
    return first, unit, total


@kernel
def build_cones(p: Whitened, arrays: Arrays):
    """(cones, joints): the scaled problem, and the joints' (basis, kept, size, shift)."""
    n, r = p.rows_normal.shape
    friction, box_limit = arrays.friction, arrays.box_limit
    basis = np.empty((r, r))
    kept = np.empty(p.rows_joint.shape[0], np.bool_)
    size, shift = joint_shift(p.rows_joint, p.free_joint, basis, kept)
    first, unit, total = _place_units(arrays)
    normal = p.rows_normal.copy()
    free_normal = p.free_normal.copy()
    length_normal = np.ones(n)
    parent = np.full(total, -1)
    mu = np.zeros(total)
    limit = np.zeros(total)
    rows = np.zeros((total, 2, r))
    free = np.zeros((total, 2))
    flat = np.zeros(total, np.bool_)
    length = np.ones(total)
    load = 0.0
    for i in range(n):
        moved, size_n = project_row(basis, size, normal[i], shift)
        free_normal[i] += moved
        if size_n > 0.0:
            length_normal[i] = size_n
            for a in range(r):
                normal[i, a] /= size_n
            free_normal[i] /= size_n
        load = max(load, abs(free_normal[i]))
        if friction[i] > 0.0:
            u = first[i]
            parent[u] = i
            for t in range(2):
                rows[u, t] = p.rows_tangent[i, t]
                moved, size_t = project_row(basis, size, rows[u, t], shift)
                free[u, t] = p.free_tangent[i, t] + moved
                length[u] = max(length[u] if t == 1 else 0.0, size_t)
            if length[u] == 0.0:
                length[u] = 1.0
            mu[u] = min(friction[i] * length[u] / length_normal[i], INFINITE_FRICTION)
            load = _divide_unit(rows[u], free[u], length[u], load)
    for k in range(box_limit.shape[0]):
        if unit[k] >= 0:
            u = unit[k]
            rows[u, 0] = p.rows_box[k]
            moved, size_t = project_row(basis, size, rows[u, 0], shift)
            free[u, 0] = p.free_box[k] + moved
            flat[u] = True
            limit[u] = box_limit[k]
            length[u] = size_t if size_t > 0.0 else 1.0
            if is_tied(arrays, k):
                parent[u] = arrays.box_contact[k]
                mu[u] = min(
                    arrays.box_friction[k] * length[u] / length_normal[parent[u]], INFINITE_FRICTION
                )
            load = _divide_unit(rows[u], free[u], length[u], load)
    if load == 0.0:
        load = 1.0
    free_normal /= load
    free /= load
    for k in range(total):
        limit[k] = min(limit[k] * length[k] / load, INFINITE_FRICTION)
    return (
        Cones(
            normal, free_normal, parent, first, mu, limit, rows, free, flat,
            length_normal, length, unit, load,
        ),
        (basis, kept, size, shift),
    )  # fmt: skip


@lean
def _divide_unit(rows, free, length, load):
    """Scales a unit's rows and free velocity by its length, in place; returns the new load."""
    for t in range(2):
        for a in range(rows.shape[1]):
            rows[t, a] /= length
        free[t] /= length
        load = max(load, abs(free[t]))
    return load


@kernel
def joint_impulses(rows_joint, kept, basis, size, target):
    """(nj,) impulses with rows_joint' f = target, a vector (r,) in the rows' span; zero on the
    rows that `orthonormal_rows` left out. The kept rows are triangular in the basis."""
    f = np.zeros(rows_joint.shape[0])
    r = basis.shape[1]
    rest = target.copy()
    rank = size
    for i in range(rows_joint.shape[0] - 1, -1, -1):
        if not kept[i]:
            continue
        rank -= 1
        along = 0.0
        pivot = 0.0
        for a in range(r):
            along += rest[a] * basis[rank, a]
            pivot += rows_joint[i, a] * basis[rank, a]
        f[i] = along / pivot
        for a in range(r):
            rest[a] -= f[i] * rows_joint[i, a]
    return f


@kernel
def to_impulses(p: Whitened, c: Cones, joints, theta, phi):
    """(normal, tangent, joint, box) impulses [N s] for the scaled ones; joints as from
    `build_cones`."""
    basis, kept, size, shift = joints
    n, r = c.normal.shape
    normal = np.zeros(n)
    tangent = np.zeros((n, 2))
    box = np.zeros(c.unit.shape[0])
    # The joints take what contacts push into their span, and bring their rows to target.
    target = shift.copy()
    for i in range(n):
        normal[i] = theta[i] * (c.load / c.length_normal[i])
        u = c.first[i]
        if u < c.first[i + 1] and not c.flat[u]:
            for t in range(2):
                tangent[i, t] = phi[u, t] * (c.load / c.length[u])
        if size > 0:
            for a in range(r):
                target[a] -= normal[i] * p.rows_normal[i, a]
                for t in range(2):
                    target[a] -= tangent[i, t] * p.rows_tangent[i, t, a]
    for k in range(box.shape[0]):
        u = c.unit[k]
        if u >= 0:
            box[k] = phi[u, 0] * (c.load / c.length[u])
            if size > 0:
                for a in range(r):
                    target[a] -= box[k] * p.rows_box[k, a]
    joint = joint_impulses(p.rows_joint, kept, basis, size, target)
    return normal, tangent, joint, box


@kernel
def from_impulses(c: Cones, normal, tangent, box):
    """(theta, phi): the scaled impulses of a warm start, within their cones."""
    n = normal.shape[0]
    theta = np.zeros(n)
    phi = np.zeros((c.parent.shape[0], 2))
    for i in range(n):
        theta[i] = max(normal[i], 0.0) * (c.length_normal[i] / c.load)
        u = c.first[i]
        if u < c.first[i + 1] and not c.flat[u]:
            for t in range(2):
                phi[u, t] = tangent[i, t] * (c.length[u] / c.load)
    for k in range(box.shape[0]):
        u = c.unit[k]
        if u >= 0:
            phi[u, 0] = box[k] * (c.length[u] / c.load)
    return theta, phi
