"""The blocks of a problem with dense arrays: contacts, joints and box rows, in this order.

Every contact is a block of three rows, every joint and box row one of its own; what is zero is left
out. So what is written for blocks (scales, the certificate, modes) serves all problems.

A problem without mass, u = W f + q, has the contact velocities u for degrees of freedom: its rows
are those of the identity, its mass is one, and W is handed on beside its blocks.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.arrays import Array, Arrays
from stiction.contact.problem.blocks import DATA, HEADS, Blocks, Datum, Head, Kind
from stiction.kernels.compile import kernel, lean
from stiction.kernels.skyline import lay_out


@lean
def _describe(b: Blocks, i, kind, rows, width, columns, values):
    head = b.head
    head[i, Head.KIND], head[i, Head.ROWS], head[i, Head.WIDTH] = kind, rows, width
    head[i, Head.COLUMN], head[i, Head.VALUE], head[i, Head.PARENT] = columns, values, -1


@lean
def _add_row(b: Blocks, i, kind, rows, k, at, entry):
    """Block i := row k of `rows` (n, nv); returns where the next block begins."""
    width = 0
    for j in range(rows.shape[1]):
        if rows[k, j] != 0.0:
            b.column[at + width], b.value[entry + width] = j, rows[k, j]
            width += 1
    _describe(b, i, kind, 1, width, at, entry)
    return at + width, entry + width


@lean
def _add_contact(b: Blocks, i, normal, across, at, entry):
    """Block i := contact i, with across (2 nc, nv) its tangents; returns where the next begins."""
    width = 0
    for j in range(normal.shape[1]):
        if normal[i, j] != 0.0 or across[2 * i, j] != 0.0 or across[2 * i + 1, j] != 0.0:
            b.column[at + width] = j
            width += 1
    for k in range(width):
        j = b.column[at + k]
        b.value[entry + k] = normal[i, j]
        b.value[entry + width + k] = across[2 * i, j]
        b.value[entry + 2 * width + k] = across[2 * i + 1, j]
    _describe(b, i, np.int64(Kind.CONTACT), 3, width, at, entry)
    return at + width, entry + 3 * width


@lean
def _fill_contact_data(b: Blocks, arrays: Arrays, dt):
    for i in range(arrays.bound.shape[0]):
        b.data[i, Datum.BOUND], b.data[i, Datum.SLIDE] = arrays.bound[i], arrays.friction[i]
        b.data[i, Datum.DRAG] = dt * arrays.viscosity[i]


@kernel
def _allocate(nv, count, columns, values, mass):
    return Blocks(
        np.empty((count, HEADS), np.int64),
        np.zeros((count, DATA)),
        np.empty(columns, np.int64),
        np.empty(values),
        np.empty(mass),
        np.empty(nv, np.int64),
        np.empty(nv, np.int64),
        np.empty(nv),
        np.empty(nv),
    )


@kernel
def from_arrays(arrays: Arrays, dt: float) -> Blocks:
    """Blocks of a problem with mass."""
    nv, nc = arrays.mass.shape[0], arrays.normal.shape[0]
    nj, nb = arrays.joint.shape[0], arrays.box.shape[0]
    b = _allocate(
        nv, nc + nj + nb, (nc + nj + nb) * nv, (3 * nc + nj + nb) * nv, nv * (nv + 1) // 2
    )
    mass, first, row = arrays.mass, b.first, b.row
    for j in range(nv):
        b.velocity[j], b.push[j] = arrays.velocity[j], dt * arrays.force[j]
        first[j] = 0
        while mass[j, first[j]] == 0.0:
            first[j] += 1
    lay_out(first, row)
    for j in range(nv):
        for k in range(first[j], j + 1):
            b.mass[row[j] + k] = mass[j, k]
    at, entry = 0, 0
    across = arrays.tangent.reshape(2 * nc, nv)
    for i in range(nc):
        at, entry = _add_contact(b, i, arrays.normal, across, at, entry)
    for k in range(nj):
        at, entry = _add_row(b, nc + k, np.int64(Kind.HOLD), arrays.joint, k, at, entry)
        b.data[nc + k, Datum.BOUND] = arrays.joint_target[k]
    for k in range(nb):
        i = nc + nj + k
        at, entry = _add_row(b, i, np.int64(Kind.BOX), arrays.box, k, at, entry)
        b.data[i, Datum.LIMIT] = arrays.box_limit[k]
        if arrays.box_contact[k] >= 0:
            b.head[i, Head.PARENT] = arrays.box_contact[k]
            b.data[i, Datum.SPIN] = arrays.box_friction[k]
    _fill_contact_data(b, arrays, dt)
    return b


@kernel
def from_contact_space(arrays: Arrays, dt: float, dimension: int) -> Blocks:
    """Blocks of a problem u = W f + q whose contacts have `dimension` rows."""
    nc, n = arrays.bound.shape[0], arrays.velocity.shape[0]
    b = _allocate(n, nc, n, 3 * n, n)
    for j in range(n):
        b.mass[j], b.first[j], b.row[j] = 1.0, j, 0
        b.velocity[j], b.push[j] = arrays.velocity[j], 0.0
        b.column[j] = j
    for i in range(nc):
        _describe(
            b, i, np.int64(Kind.CONTACT), 3, dimension, dimension * i, 3 * dimension * i
        )  # fmt: skip
        for r in range(3):
            for k in range(dimension):
                b.value[dimension * (3 * i + r) + k] = 1.0 if r == k else 0.0
    _fill_contact_data(b, arrays, dt)
    return b


@kernel
def blocks_of(arrays: Arrays, dt: float, delassus: Array) -> Blocks:
    """Blocks of a problem; delassus: W of one in contact space, (0, 0) of one with mass."""
    if delassus.shape[0] > 0:
        return from_contact_space(arrays, dt, delassus.shape[0] // arrays.bound.shape[0])
    return from_arrays(arrays, dt)


@lean
def collect(f_n: Array, f_t: Array, f_j: Array, f_b: Array, f: Array) -> None:
    """f (count, ROWS) := impulses by kind, in the order of the blocks."""
    nc, nj = f_n.shape[0], f_j.shape[0]
    for i in range(nc):
        f[i, 0], f[i, 1], f[i, 2] = f_n[i], f_t[i, 0], f_t[i, 1]
    for k in range(nj):
        f[nc + k, 0] = f_j[k]
    for k in range(f_b.shape[0]):
        f[nc + nj + k, 0] = f_b[k]
