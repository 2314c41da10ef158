"""The blocks of a problem with sparse arrays: no array of nv x nv, nor of rows x nv, on the way.

What the mass couples belongs to one node (`graph.py`): a connected component of its pattern. A
body's mass may well be diagonal. So components that the same blocks touch are one node, too: then
nodes are free bodies and trees of bodies, and their number and the factors are a fraction of what
they would be. Degrees of freedom of a node may lie anywhere in the user's arrays; here they stand
together, in the order that they have there, so that the mass is a narrow skyline whatever the
order of the arrays. `Nodes` leads there and back.

Rows are stacked, block after block, as SciPy's compressed rows. A block has the columns that any of
its rows has; what is zero elsewhere is not kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Blocks, Head, allocate
from stiction.kernels.compile import kernel
from stiction.kernels.skyline import close_skyline, lay_out

Indices = NDArray[np.int64]


class Nodes(NamedTuple):
    """Degrees of freedom in the order of their nodes."""

    order: Indices  # (nv,) degree of freedom at each place
    place: Indices  # (nv,) of each degree of freedom
    start: Indices  # (nodes + 1,) first place of each node

    def back(self, by_place: Array) -> Array:
        """(nv,) what has an entry to each place, by degrees of freedom."""
        return by_place[self.place]


class Skyline(NamedTuple):
    """A symmetric matrix, or its factor, as `kernels/skyline.py` has it."""

    entries: Array
    row: Indices  # (nv,)
    first: Indices  # (nv,)


def find_nodes(mass: csr_array, rows: csr_array, block: Indices) -> Nodes:
    """Nodes of the mass (nv, nv), for rows that belong to these blocks, as numbered."""
    count, part = connected_components(mass, directed=False)
    # Each component's blocks, by the sum of a number for each block that looks random. Two sets may
    # have one sum: then two nodes are one, which costs a little and is not wrong.
    owner = np.repeat(block, np.diff(rows.indptr))
    pairs = np.unique(owner * np.int64(count) + part[rows.indices])
    touched_by = np.zeros(count, np.uint64)
    scattered = _scatter(np.arange(int(block.max(initial=-1)) + 1, dtype=np.uint64))
    np.add.at(touched_by, pairs % count, scattered[pairs // count])
    alike = np.arange(count)
    touched = np.flatnonzero(touched_by)
    _, first, group = np.unique(touched_by[touched], return_index=True, return_inverse=True)
    alike[touched] = touched[first][group]  # named by its first component
    node = np.unique(alike[part], return_inverse=True)[1]
    count = int(node.max(initial=-1)) + 1
    order = np.argsort(node, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    start = np.searchsorted(node[order], np.arange(count + 1))
    return Nodes(order.astype(np.int64), place, start.astype(np.int64))


def _scatter(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look random, one for each (the finalizer of splitmix64)."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


@kernel
def _find_first(pointers, columns, order, place, first):
    for j in range(order.shape[0]):
        dof = order[j]
        first[j] = j
        for x in range(pointers[dof], pointers[dof + 1]):
            first[j] = min(first[j], place[columns[x]])


@kernel
def _fill_skyline(pointers, columns, values, order, place, row, entries):
    for j in range(order.shape[0]):
        dof = order[j]
        for x in range(pointers[dof], pointers[dof + 1]):
            k = place[columns[x]]
            if k <= j:
                entries[row[j] + k] = values[x]


def skyline_of(mass: csr_array, nodes: Nodes) -> Skyline:
    """The mass by places, with room for its factor."""
    nv = len(nodes.order)
    pointers, columns = mass.indptr.astype(np.int64), mass.indices.astype(np.int64)
    first, row = np.empty(nv, np.int64), np.empty(nv, np.int64)
    _find_first(pointers, columns, nodes.order, nodes.place, first)
    close_skyline(first)
    entries = np.zeros(lay_out(first, row))
    _fill_skyline(pointers, columns, mass.data, nodes.order, nodes.place, row, entries)
    return Skyline(entries, row, first)


@kernel
def _gather_columns(pointers, columns, height, place, head, gathered, mark):
    """Columns of all blocks, ascending by place, into `gathered`; their number. Overwrites mark
    (nv,)."""
    mark[:] = -1
    at, row, entry = 0, 0, 0
    for i in range(height.shape[0]):
        begin = at
        for x in range(pointers[row], pointers[row + height[i]]):
            j = place[columns[x]]
            if mark[j] != i:
                mark[j] = i
                gathered[at] = j
                at += 1
        gathered[begin:at] = np.sort(gathered[begin:at])
        head[i, Head.ROWS], head[i, Head.WIDTH] = height[i], at - begin
        head[i, Head.COLUMN], head[i, Head.VALUE], head[i, Head.PARENT] = begin, entry, -1
        entry += height[i] * (at - begin)
        row += height[i]
    return at


@kernel
def _fill_values(pointers, columns, values, height, place, b: Blocks, mark):
    """Values of all blocks, whose columns are there. Overwrites mark (nv,)."""
    row = 0
    for i in range(height.shape[0]):
        width, c0, a0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
        for k in range(width):
            mark[b.column[c0 + k]] = k
        for r in range(height[i]):
            for x in range(pointers[row], pointers[row + 1]):
                b.value[a0 + r * width + mark[place[columns[x]]]] = values[x]
            row += 1


def lay_out_blocks(
    rows: csr_array, height: Indices, mass: Skyline, nodes: Nodes, velocity: Array, push: Array
) -> Blocks:
    """Blocks of the stacked rows, `height` (count,) of them to each; kinds and data are left to the
    caller. velocity, push (nv,): by degrees of freedom."""
    nv, count = len(nodes.order), len(height)
    pointers, columns = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
    head, mark = np.zeros((count, len(Head)), np.int64), np.empty(nv, np.int64)
    gathered = np.empty(rows.nnz, np.int64)
    wide = _gather_columns(pointers, columns, height, nodes.place, head, gathered, mark)
    b = allocate(nv, count, int(head[:, Head.ROWS] @ head[:, Head.WIDTH]), len(mass.entries))
    b = b._replace(head=head, column=gathered[:wide].copy())
    _fill_values(pointers, columns, rows.data, height, nodes.place, b, mark)
    b.mass[:], b.row[:], b.first[:] = mass.entries, mass.row, mass.first
    b.velocity[:], b.push[:] = velocity[nodes.order], push[nodes.order]
    return b
