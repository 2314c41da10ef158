"""A simulator's blocks as Baraff's driving takes them: islands, whitened, and the way back.

The same islands and rows as `Baraff.solve` has of a `ContactProblem`, but that rows are whitened by
a skyline factor of the mass, M = U D U' (`kernels/skyline.py`), with soft rows folded in:

    row_w = D^-1/2 U^-1 row,   so that   row_w . row_w = row M^-1 row'
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.arrays import Arrays, Whitened
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind
from stiction.kernels.compile import kernel
from stiction.kernels.linear import merge, root
from stiction.kernels.skyline import close_skyline, factor_skyline, lay_out


@kernel
def has_tied_rows(b: Blocks, count):
    """Whether a contact has torsional or rolling friction."""
    for i in range(count):
        if b.head[i, Head.KIND] == Kind.CONTACT:
            rows, data = b.head[i, Head.ROWS], b.data[i]
            if (rows > 3 and data[Datum.SPIN] > 0.0) or (rows > 4 and data[Datum.ROLL] > 0.0):
                return True
    return False


@kernel
def label_islands(b: Blocks, count):
    """(dofs (nv,), blocks (count,)): the least degree of freedom of the island that each belongs
    to; -1 for a block of zeros."""
    head, column, value = b.head, b.column, b.value
    nv = b.first.shape[0]
    dofs = np.arange(nv)
    for j in range(nv):
        for k in range(b.first[j], j):
            if b.mass[b.row[j] + k] != 0.0:
                merge(dofs, j, k)
    blocks = np.full(count, -1)
    for i in range(count):
        width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
        for k in range(head[i, Head.ROWS] * width):
            if value[head[i, Head.VALUE] + k] != 0.0:
                j = column[c0 + k % width]
                if blocks[i] < 0:
                    blocks[i] = j
                merge(dofs, blocks[i], j)
    for i in range(count):
        if blocks[i] >= 0:
            blocks[i] = root(dofs, blocks[i])
    for j in range(nv):
        dofs[j] = root(dofs, j)
    return dofs, blocks


@kernel
def factor_folded(b: Blocks, count):
    """(factor, row, first) of the mass with the soft rows of the first `count` blocks in it, as a
    skyline of its own."""
    head, column, value = b.head, b.column, b.value
    nv = b.first.shape[0]
    first, row = b.first.copy(), np.empty(nv, np.int64)
    for i in range(count):
        if head[i, Head.KIND] == Kind.SOFT:
            c0 = head[i, Head.COLUMN]
            for k in range(1, head[i, Head.WIDTH]):
                first[column[c0 + k]] = min(first[column[c0 + k]], column[c0])
    close_skyline(first)
    mass = np.zeros(lay_out(first, row))
    for j in range(nv):
        for k in range(b.first[j], j + 1):
            mass[row[j] + k] = b.mass[b.row[j] + k]
    for i in range(count):
        if head[i, Head.KIND] == Kind.SOFT:
            c0, a0 = head[i, Head.COLUMN], head[i, Head.VALUE]
            for k in range(head[i, Head.WIDTH]):
                scaled = b.data[i, Datum.DRAG] * value[a0 + k]
                for c in range(k + 1):
                    mass[row[column[c0 + k]] + column[c0 + c]] += scaled * value[a0 + c]
    factor_skyline(mass, row, first)
    return mass, row, first


@kernel
def _whiten_row(b: Blocks, factored, i, r, place, work, out):
    """out := row r of block i, whitened; factored: of `factor_folded`; place (nv,): coordinate of
    each degree of freedom in `out`; work (nv,) is zero before and after."""
    factor, row, first = factored
    width, c0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
    a0 = b.head[i, Head.VALUE] + r * width
    last = -1
    for k in range(width):
        if b.value[a0 + k] != 0.0:
            last = b.column[c0 + k]
            work[last] = b.value[a0 + k]
    for k in range(last, -1, -1):
        y = work[k]
        if y != 0.0:
            work[k] = 0.0
            at = row[k]
            out[place[k]] = y * np.sqrt(factor[at + k])
            share = y * factor[at + k]
            for j in range(first[k], k):
                work[j] -= share * factor[at + j]


@kernel
def pose_island(b: Blocks, members, factored, u, place, size):
    """(arrays, whitened) of an island: its blocks `members`, its `size` degrees of freedom, the
    factor of its mass (`factor_folded`), u the free speeds less bounds. Of `arrays` only what
    `build_cones` reads is filled."""
    nc, nj, nb = 0, 0, 0
    for i in members:
        kind = b.head[i, Head.KIND]
        nc += kind == Kind.CONTACT
        nj += kind == Kind.HOLD
        nb += kind == Kind.BOX
    normal, tangent = np.zeros((nc, size)), np.zeros((nc, 2, size))
    joint, box = np.zeros((nj, size)), np.zeros((nb, size))
    free_n, free_t = np.zeros(nc), np.zeros((nc, 2))
    free_j, free_b = np.zeros(nj), np.zeros(nb)
    friction, limit = np.zeros(nc), np.zeros(nb)
    work = np.zeros(place.shape[0])
    nc, nj, nb = 0, 0, 0
    for i in members:
        kind = b.head[i, Head.KIND]
        if kind == Kind.CONTACT:
            _whiten_row(b, factored, i, 0, place, work, normal[nc])
            free_n[nc] = u[i, 0]
            if b.head[i, Head.ROWS] > 2 and b.data[i, Datum.SLIDE] > 0.0:
                friction[nc] = b.data[i, Datum.SLIDE]
                for t in range(2):
                    _whiten_row(b, factored, i, 1 + t, place, work, tangent[nc, t])
                    free_t[nc, t] = u[i, 1 + t]
            nc += 1
        elif kind == Kind.HOLD:
            _whiten_row(b, factored, i, 0, place, work, joint[nj])
            free_j[nj] = u[i, 0]
            nj += 1
        elif kind == Kind.BOX:
            _whiten_row(b, factored, i, 0, place, work, box[nb])
            free_b[nb] = u[i, 0]
            limit[nb] = b.data[i, Datum.LIMIT]
            nb += 1
    none, rows = np.zeros(0), np.zeros((0, size))
    arrays = Arrays(
        rows, none, none, rows, np.zeros((0, 2, size)), friction, none, none, rows, none, rows,
        limit, np.full(nb, -1), np.zeros(nb),
    )  # fmt: skip
    return arrays, Whitened(normal, tangent, joint, box, free_n, free_t, free_j, free_b, none)


@kernel
def read_impulses(b: Blocks, members, f, nc, nb):
    """(normal, tangent, box) impulses of an island, from f."""
    normal, tangent, box = np.zeros(nc), np.zeros((nc, 2)), np.zeros(nb)
    nc, nb = 0, 0
    for i in members:
        kind = b.head[i, Head.KIND]
        if kind == Kind.CONTACT:
            normal[nc] = f[i, 0]
            tangent[nc, 0] = f[i, 1]
            tangent[nc, 1] = f[i, 2]
            nc += 1
        elif kind == Kind.BOX:
            box[nb] = f[i, 0]
            nb += 1
    return normal, tangent, box


@kernel
def put_impulses(b: Blocks, members, normal, tangent, joint, box, f):
    """Writes the impulses of an island into f."""
    nc, nj, nb = 0, 0, 0
    for i in members:
        f[i] = 0.0
        kind = b.head[i, Head.KIND]
        if kind == Kind.CONTACT:
            f[i, 0] = normal[nc]
            f[i, 1] = tangent[nc, 0]
            f[i, 2] = tangent[nc, 1]
            nc += 1
        elif kind == Kind.HOLD:
            f[i, 0] = joint[nj]
            nj += 1
        elif kind == Kind.BOX:
            f[i, 0] = box[nb]
            nb += 1
