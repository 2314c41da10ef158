"""Islands of a few trees or bodies that are searched for their modes, one after the other.

Newton's method with modes that change one by one, the worst block's first, and rows that drift
where these go round (`proximal/drifting.py`), in turn.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.workspace import Setting
from stiction.contact.solvers.interior_point.iteration import CONTENT
from stiction.contact.solvers.islands.guess import NEARBY, stay_near
from stiction.contact.solvers.proximal.drifting import drift
from stiction.contact.solvers.proximal.iteration import ONE_BY_ONE, SOLVED, refine
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean
from stiction.kernels.sparse import BlockMatrix

FEW_NODES, FEW_DOFS = 12, 160
"""Trees and bodies of an island that is searched for its modes before the interior point is asked,
at most, and their degrees of freedom, unless they are of one tree. In a chain every contact moves
every other, its path has many folds, and near attempts solve one in a hundred of what starts had
left; of ragdolls, of heaps of up to six of them and of falling stones the search takes as long as
these or less. Of ten humanoids in a row it takes six times as long, of piles of 27 bodies a fifth
more."""

SEARCHES, SEARCH_EPS, SEARCH_STEPS, SEARCH_PATIENCE = 3, 1e-2, 60, 20
"""Turns of such a search, every other one of which lets rows drift; and compliance and iterations,
at most and without half the residual, of Newton's method in the others. Of 304 steps of chains of
20 links that took 4 ms or more it solves 269 in a mean of 36 factorizations, its first turn 192; of
152 of 50 links 142. With a patience of 12 the first turn solves 139."""


@lean
def is_few(g: Graph, s: BlockMatrix, k):
    """Whether island k is one of a few trees or bodies."""
    low, high, dofs = g.positions[k], g.positions[k + 1], 0
    if high - low > FEW_NODES:
        return False
    for p in range(low, high):
        node = s.order[p]
        dofs += s.start[node + 1] - s.start[node]
    return high - low == 1 or dofs <= FEW_DOFS


@lean
def search(address, k, load, best, content, g: Graph, s: BlockMatrix, work, request):
    """Residual after Newton's method with modes that change one by one, and rows that drift where
    these go round, from the iterate at hand, of residual `best`, or from the guess if that is far
    off. The best iterate is in work."""
    best = stay_near(best, g, s, k, work, request)
    before = np.inf
    for turn in range(SEARCHES):
        if best <= SOLVED or ticks() > request.setting[Setting.DEADLINE]:
            break
        if turn % 2 == 0:
            if turn > 0 and not best < before:
                break
            best = before = refine(
                address, k, load, ONE_BY_ONE, SEARCH_EPS, SEARCH_STEPS, SEARCH_PATIENCE, content,
                best,
            )  # fmt: skip
        elif best <= NEARBY:
            best = drift(address, k, load, CONTENT, best)
    return best
