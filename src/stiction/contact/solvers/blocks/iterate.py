"""An island's share of vectors of the degrees of freedom, and its iterate: impulses, velocity."""

from __future__ import annotations

from stiction.contact.problem.blocks import ROWS
from stiction.contact.problem.graph import Graph
from stiction.kernels.compile import lean
from stiction.kernels.sparse import BlockMatrix


@lean
def copy_vector(g: Graph, s: BlockMatrix, k, source, to):
    """to (nv,) := source, on island k."""
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            to[j] = source[j]


@lean
def add_vector(g: Graph, s: BlockMatrix, k, share, source, to):
    """to (nv,) += share source, on island k."""
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            to[j] += share * source[j]


@lean
def copy_island(g: Graph, s: BlockMatrix, k, from_f, from_v, to_f, to_v):
    """Copies impulses and velocity of island k."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for r in range(ROWS):
            to_f[i, r] = from_f[i, r]
    copy_vector(g, s, k, from_v, to_v)
