"""Which bodies a problem's blocks couple: nodes, the pieces of rows on them, and islands.

A node is a range of degrees of freedom that the mass couples: a free body, or a tree of bodies and
joints. A block touches one node, two, or (a tendon) more; its columns on one node are a piece. Two
nodes belong to one island if a block touches both. An impulse in one island changes no velocity in
another, so each is a problem of its own, and its nodes stand together in the order in which the
matrix of the solvers is eliminated (`kernels/sparse.py`).

The order is found anew when the couplings have changed; most steps of things at rest keep it.

In contact space (`Size.STAR`, u = W f + q) contacts are the nodes: block i is contact i, its rows
are those of W over the impulses z of all contacts, and it acts on its own node alone. It couples
that one to the others it touches, and these not to each other.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.blocks import Blocks, Head
from stiction.kernels import tree
from stiction.kernels.compile import lean
from stiction.kernels.linear import merge, root
from stiction.kernels.packing import packed
from stiction.kernels.sparse import BlockMatrix, connect, find_block, order_nodes, words
from stiction.kernels.tree import Form, Span, TreeMatrix

Indices = NDArray[np.int64]


class Piece(IntEnum):
    """Columns of `Graph.piece`."""

    NODE = 0
    BEGIN = 1
    """Its first column, among those of its block."""
    END = 2
    TOGETHER = 3
    """1 if its columns are neighbours."""


PIECES = len(Piece)


class Size(IntEnum):
    """Entries of `Graph.size`."""

    ISLANDS = 0
    PIECES = 1
    """Pieces that the blocks have."""
    COUPLINGS = 2
    BLOCKS = 3
    """Blocks of the matrix below its diagonal."""
    ENTRIES = 4
    """Of these blocks."""
    ORDERED = 5
    """1 if the order is that of the couplings `known`."""
    STAR = 6
    """1 of a problem in contact space."""


@packed
class Graph(NamedTuple):
    """n nodes, at most `cap` blocks."""

    node: Indices  # (nv,) of each degree of freedom
    piece: Indices  # (pieces, PIECES)
    pieces: Indices  # (cap + 1,) first piece of each block
    coupling: Indices  # (couplings,) entry in the matrix of each pair of pieces of a block
    couplings: Indices  # (cap + 1,) first coupling of each block
    known: Indices  # (n, words) couplings that the order is for, as `BlockMatrix.adjacent`
    parent: Indices  # (n,) island of each node: its least node
    island: Indices  # (n,) its number, -1 for a node that no block touches
    member: Indices  # (cap,) blocks, island by island
    members: Indices  # (n + 1,) first member of each island
    positions: Indices  # (n + 1,) first position of each island
    size: Indices  # (Size,)
    place: Indices  # (cap,) where each block of a long tree acts (`solvers/blocks/trees.py`)
    tree: TreeMatrix  # of islands that are one long tree


def allocate(start: Indices, cap: int, pieces: int, couplings: int) -> Graph:
    """Room for that many blocks, pieces and couplings; start (n + 1,): first degree of freedom of
    each node, and nv."""
    n = len(start) - 1
    node = np.repeat(np.arange(n), np.diff(start)).astype(np.int64)
    return Graph(
        node,
        np.zeros((pieces, PIECES), np.int64),
        np.zeros(cap + 1, np.int64),
        np.zeros(couplings, np.int64),
        np.zeros(cap + 1, np.int64),
        np.zeros((n, words(n)), np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(cap, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(len(Size), np.int64),
        np.zeros(cap, np.int64),
        tree.allocate(start),
    )


@lean
def _cut(b: Blocks, count, g: Graph):
    """Pieces and the number of couplings of all blocks; whether there was room for them."""
    head, column, node, piece = b.head, b.column, g.node, g.piece
    room, pairs, star = piece.shape[0], 0, g.size[Size.STAR] == 1
    at = 0
    for i in range(count):
        g.pieces[i] = at
        g.couplings[i] = pairs
        c0, width = head[i, Head.COLUMN], head[i, Head.WIDTH]
        k = 0
        while k < width:
            here = node[column[c0 + k]]
            end = k + 1
            while end < width and node[column[c0 + end]] == here:
                end += 1
            if at < room:
                piece[at, Piece.NODE] = here
                piece[at, Piece.BEGIN] = k
                piece[at, Piece.END] = end
                piece[at, Piece.TOGETHER] = column[c0 + end - 1] - column[c0 + k] == end - 1 - k
            at += 1
            k = end
        n = at - g.pieces[i]
        pairs += max(n - 1, 0) if star else n * (n - 1) // 2
    g.pieces[count] = at
    g.couplings[count] = pairs
    g.size[Size.PIECES] = at
    g.size[Size.COUPLINGS] = pairs
    return at <= room and pairs <= g.coupling.shape[0]


@lean
def _compare(count, g: Graph, s: BlockMatrix):
    """Enters who touches whom into the matrix' graph; whether that is as it was last time."""
    s.adjacent[:, :] = 0
    star = g.size[Size.STAR] == 1
    for i in range(count):
        for x in range(g.pieces[i], g.pieces[i + 1]):
            a = g.piece[x, Piece.NODE]
            if star:
                connect(s, i, a)
                continue
            for y in range(g.pieces[i], x + 1):
                connect(s, a, g.piece[y, Piece.NODE])  # with itself: it is touched
    same = g.size[Size.ORDERED] == 1
    for k in range(g.known.shape[0]):
        for w in range(g.known.shape[1]):
            same = same and g.known[k, w] == s.adjacent[k, w]
            g.known[k, w] = s.adjacent[k, w]
    return same


@lean
def _find_islands(count, g: Graph, s: BlockMatrix):
    """Islands of nodes, and the nodes' positions island by island."""
    n = g.parent.shape[0]
    for k in range(n):
        g.parent[k] = k
        g.island[k] = -1
    for i in range(count):
        for x in range(g.pieces[i] + 1, g.pieces[i + 1]):
            merge(g.parent, g.piece[x - 1, Piece.NODE], g.piece[x, Piece.NODE])
    islands = 0
    for i in range(count):
        if g.pieces[i + 1] > g.pieces[i]:
            a = root(g.parent, g.piece[g.pieces[i], Piece.NODE])
            if g.island[a] < 0:
                g.island[a] = islands
                islands += 1
    g.size[Size.ISLANDS] = islands
    for k in range(islands + 1):
        g.positions[k] = 0
    for k in range(n):
        g.island[k] = g.island[root(g.parent, k)]
        if g.island[k] >= 0:
            g.positions[g.island[k] + 1] += 1
    for k in range(islands):
        g.positions[k + 1] += g.positions[k]
    for k in range(n):  # fill from the front; the starts move by one island, and are put back
        if g.island[k] >= 0:
            s.order[g.positions[g.island[k]]] = k
            g.positions[g.island[k]] += 1
    for k in range(islands, 0, -1):
        g.positions[k] = g.positions[k - 1]
    g.positions[0] = 0


@lean
def _gather_members(count, g: Graph):
    """Blocks island by island; those that touch nothing belong to none."""
    islands = g.size[Size.ISLANDS]
    for k in range(islands + 1):
        g.members[k] = 0
    for i in range(count):
        if g.pieces[i + 1] > g.pieces[i]:
            g.members[g.island[g.piece[g.pieces[i], Piece.NODE]] + 1] += 1
    for k in range(islands):
        g.members[k + 1] += g.members[k]
    for i in range(count):
        if g.pieces[i + 1] > g.pieces[i]:
            k = g.island[g.piece[g.pieces[i], Piece.NODE]]
            g.member[g.members[k]] = i
            g.members[k] += 1
    for k in range(islands, 0, -1):
        g.members[k] = g.members[k - 1]
    g.members[0] = 0


@lean
def _order(g: Graph, s: BlockMatrix):
    """The order of elimination, island by island; whether there was room for its blocks."""
    n = g.parent.shape[0]
    for k in range(n):
        s.adjacent[k, k >> 6] &= ~(np.int64(1) << (k & 63))
    entries = 0
    s.column[0] = 0
    for k in range(g.size[Size.ISLANDS]):
        entries = order_nodes(s, g.positions[k], g.positions[k + 1], entries)
    g.size[Size.BLOCKS] = s.column[g.positions[g.size[Size.ISLANDS]]]
    g.size[Size.ENTRIES] = entries
    return g.size[Size.BLOCKS] <= s.row.shape[0] and entries <= s.lower.shape[0]


@lean
def connect_blocks(b: Blocks, count, g: Graph, s: BlockMatrix):
    """Finds pieces, islands, the order of elimination and where each coupling lies in the matrix;
    whether there was room for all (`size` tells what is needed)."""
    if not _cut(b, count, g):
        return False
    if not _compare(count, g, s):
        _find_islands(count, g, s)
        g.size[Size.ORDERED] = 0
        if not _order(g, s):
            return False
        g.size[Size.ORDERED] = 1
    _gather_members(count, g)
    for k in range(g.size[Size.ISLANDS]):
        g.tree.span[k, Span.FORM] = Form.DENSE  # until it is marked (`solvers/blocks/trees.py`)
    star = g.size[Size.STAR] == 1
    for i in range(count):
        at = g.couplings[i]
        for x in range(g.pieces[i], g.pieces[i + 1]):
            p = s.position[g.piece[x, Piece.NODE]]
            if star:
                q = s.position[i]
                if p != q:
                    g.coupling[at] = s.at[find_block(s, max(p, q), min(p, q))]
                    at += 1
                continue
            for y in range(g.pieces[i], x):
                q = s.position[g.piece[y, Piece.NODE]]
                g.coupling[at] = s.at[find_block(s, max(p, q), min(p, q))]
                at += 1
    return True
