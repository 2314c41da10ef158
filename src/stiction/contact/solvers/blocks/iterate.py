"""An island's iterate: its impulses and its velocity."""

from __future__ import annotations

from stiction.contact.problem.blocks import ROWS
from stiction.contact.problem.graph import Graph
from stiction.kernels.compile import lean
from stiction.kernels.sparse import BlockMatrix


@lean
def copy_island(g: Graph, s: BlockMatrix, k, from_f, from_v, to_f, to_v):
    """Copies impulses and velocity of island k."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for r in range(ROWS):
            to_f[i, r] = from_f[i, r]
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            to_v[j] = from_v[j]
