"""Islands: groups of contacts, joints and box rows that share no degree of freedom.

An impulse in one island changes no velocity in another, so each is a problem of its own.
Two degrees of freedom belong together if the mass matrix couples them or one row touches
both; a box row belongs to its contact; a tree of merged sets (union-find) holds the groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from stiction.kernels.compile import kernel
from stiction.kernels.linear import merge, root

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Island(NamedTuple):
    """Indices into a problem's rows and degrees of freedom, ascending."""

    contacts: Indices
    joints: Indices
    boxes: Indices
    dofs: Indices


@kernel
def _merge_row(parent: Indices, row: Array, first: int) -> int:
    """Merges the set of `first` (-1: none yet) with all that `row` touches; its new `first`."""
    for j in range(row.shape[0]):
        if row[j] != 0.0:
            if first < 0:
                first = j
            merge(parent, first, j)
    return first


@kernel
def label_rows(
    mass: Array, normal: Array, tangent: Array, joint: Array, box: Array, box_contact: Indices
) -> tuple[Indices, Indices]:
    """Labels of all rows (contacts, joints, boxes) and of the dofs.

    Each is the least dof of its island; -1 for a row of zeros.
    """
    nv = mass.shape[0]
    nc, nj, nb = normal.shape[0], joint.shape[0], box.shape[0]
    parent = np.arange(nv)
    for i in range(nv):
        for j in range(i):
            if mass[i, j] != 0.0:
                merge(parent, i, j)
    labels = np.empty(nc + nj + nb, np.int64)
    for i in range(nc):
        first = _merge_row(parent, normal[i], -1)
        for k in range(2):
            first = _merge_row(parent, tangent[i, k], first)
        labels[i] = first
    for i in range(nj):
        labels[nc + i] = _merge_row(parent, joint[i], -1)
    for i in range(nb):
        contact = box_contact[i]
        first = _merge_row(parent, box[i], labels[contact] if contact >= 0 else -1)
        labels[nc + nj + i] = first
        if contact >= 0:
            labels[contact] = first
    for i in range(nb):  # a row of zeros, whose contact got its label by a later one
        if box_contact[i] >= 0:
            labels[nc + nj + i] = labels[box_contact[i]]
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            labels[i] = root(parent, labels[i])
    for j in range(nv):
        parent[j] = root(parent, j)
    return labels, parent


@kernel
def label_blocks(delassus: Array, dimension: int) -> Indices:
    """Label of each contact: the least contact of its island, by the blocks of `delassus`."""
    nc = delassus.shape[0] // dimension
    parent = np.arange(nc)
    for i in range(delassus.shape[0]):
        for j in range(i):
            if delassus[i, j] != 0.0:
                merge(parent, i // dimension, j // dimension)
    for i in range(nc):
        parent[i] = root(parent, i)
    return parent


def label_sparse_rows(
    mass: Any, normal: Any, tangent: Any, joint: Any, box: Any, box_contact: Indices
) -> tuple[Indices, Indices]:
    """What `label_rows` gives, of sparse matrices (tangents (2 nc, nv)): the connected components
    of a graph of degrees of freedom and rows."""
    nv, nc, nj, nb = mass.shape[0], normal.shape[0], joint.shape[0], box.shape[0]
    row_of = (np.arange(nc), np.arange(2 * nc) // 2, nc + np.arange(nj), nc + nj + np.arange(nb))
    tied = np.flatnonzero(box_contact >= 0)
    here, there = [nv + nc + nj + tied], [nv + box_contact[tied]]
    for rows, of in zip((normal, tangent, joint, box), row_of, strict=True):
        here.append(nv + of[np.repeat(np.arange(len(of)), np.diff(rows.indptr))])
        there.append(rows.indices)
    here.append(np.repeat(np.arange(nv), np.diff(mass.indptr)))
    there.append(mass.indices)
    label = _components(np.concatenate(here), np.concatenate(there), nv + nc + nj + nb)
    # A component is named by its least degree of freedom; rows of zeros have none.
    least = np.full(len(label), nv, np.int64)
    np.minimum.at(least, label[:nv], np.arange(nv))
    rows_of = least[label[nv:]]
    return np.where(rows_of == nv, -1, rows_of), least[label[:nv]]


def label_sparse_blocks(delassus: Any, dimension: int) -> Indices:
    """What `label_blocks` gives, of a sparse matrix."""
    n = delassus.shape[0]
    nc = n // dimension
    here = np.repeat(np.arange(n), np.diff(delassus.indptr)) // dimension
    label = _components(here, delassus.indices // dimension, nc)
    least = np.full(nc, nc, np.int64)
    np.minimum.at(least, label, np.arange(nc))
    return least[label]


def _components(here: Indices, there: Indices, size: int) -> Indices:
    """Label of each of the nodes of the graph with these edges."""
    graph = coo_array((np.ones(len(here)), (here, there)), shape=(size, size))
    _, label = connected_components(graph.tocsr(), directed=False)
    return label.astype(np.int64)


def gather(
    labels: Indices, dof_labels: Indices, nc: int, nj: int, box_contact: Indices
) -> list[Island]:
    """Islands from row and dof labels, in the order of their labels.

    Rows of zeros (label -1) touch nothing: each is an island without dofs, at the end, box rows
    together with their contact.
    Degrees of freedom that no row touches are in none.
    """
    islands = []
    for label in np.unique(labels[labels >= 0]):
        rows = np.flatnonzero(labels == label)
        cut = np.searchsorted(rows, (nc, nc + nj))
        contacts, joints, boxes = np.split(rows, cut)
        dofs = np.flatnonzero(dof_labels == label)
        islands.append(Island(contacts, joints - nc, boxes - nc - nj, dofs))
    none = np.empty(0, np.int64)
    for row in np.flatnonzero(labels < 0):
        kind = int(row >= nc) + int(row >= nc + nj)
        if kind == 2 and box_contact[row - nc - nj] >= 0:
            continue
        groups = [none, none, np.flatnonzero(box_contact == row) if kind == 0 else none, none]
        groups[kind] = np.array([row - (0, nc, nc + nj)[kind]])
        islands.append(Island(*groups))
    return islands
