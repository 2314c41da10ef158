"""An island mended where it is wrong: patches around the contacts that the solvers leave.

On a heap the interior point may have all but a few contacts right and come no further: whether one
of them sticks or slides is undecided, and the path folds there. All that is needed is there. So the
blocks with the largest residuals are taken out with the bodies that they touch and the neighbours
of these, and solved as a problem of their own:

    patch     the blocks between its nodes; what acts across its edge keeps its impulse
    inside    `solve_blocks` from the impulses at hand: small, so that warm starts and attempts
              that a heap would not let pass succeed, at a fraction of the cost
    around    Newton's method on the whole island (`proximal/`) takes in what changed at the edge
    drift     redundant rows that contradict each other drift (`proximal/drifting.py`), in a patch
              as well: first around where they do, and on the whole island if that is not enough

Each round keeps the momentum balance. A round that mends nothing is undone, and the next patch is
wider by a ring of neighbours. Of 56 steps of falling boxes, capsules and spheres that took three
attempts of the interior point or more, patches mend 54 in two rounds on average, among them eight
of nine that all of its attempts had left unsolved.

How it fails: the rounds run out, or the patch has grown to the whole island (a single tree has no
smaller one), where what is undecided reaches through the heap (`persistence.py` goes on).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stiction.contact.problem.arrays import Array
from stiction.contact.problem.block_problem import cut_out, push_of, ranges
from stiction.contact.problem.graph import Piece, Size
from stiction.contact.solvers.blocks.posed import pose
from stiction.contact.solvers.blocks.workspace import (
    ENDLESS,
    Guess,
    Outcome,
    Rung,
    Setting,
    SolverWorkspace,
)
from stiction.contact.solvers.interior_point.continuation import TURNS
from stiction.contact.solvers.interior_point.iteration import CONTENT
from stiction.contact.solvers.islands.attempts import MENDABLE
from stiction.contact.solvers.islands.solve import solve_blocks, take_turn
from stiction.contact.solvers.proximal.drifting import drift_island
from stiction.contact.solvers.proximal.iteration import SOLVED, refine_island, spread_residual

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

MENDING_ROUNDS = 6
"""Rounds that mend little, at most."""

MUCH_BETTER = 0.1
"""Of the residual, that a round leaves which does not count as one."""

MOST_DRAWN, LEAST_DRAWN, DRAWN_BLOCKS = 200, 16, 5_000
"""Paths that are drawn: as many as have so many blocks, but not more than the first, half a second
of a few contacts, and not less than the second, seconds of a heap."""

MENDED_SHARE, MENDED_AT_ONCE = 0.1, 16
"""Residual of a block that is mended, over the largest one; and how many are at once."""

LARGEST_PATCH, SMALL_PATCH = 0.5, 0.2
"""Share of an island's nodes that a patch has at most which is to cost little: larger ones cost as
much as a path of the whole island, and mend less. And of one of which all paths may be
followed."""

REJOIN_EPS, REJOIN_STEPS, REJOIN_PATIENCE = 1e-2, 20, 4
"""Compliance of Newton's method on the whole island, and its iterations, at most and without half
the residual. Begun with a small compliance it scatters the modes at the edge of a patch: of 28
patches of boxes and spheres 9 left the island better than before, with this one 23."""

DRIFTABLE = 1e-4
"""Residual from which on redundant rows are let drift (`proximal/drifting.py`)."""

DRIFT_RINGS, DRIFT_PATCHES, MUCH_DRIFTED = 2, 2, 0.3
"""Rings of neighbours around what drifts, patches of it in a round, and the share of the residual
that one leaves at most before another is cut. Each costs a tenth of a drift of the whole island: of
36 heaps of 1,000 boxes and 28 of 343 all were mended as before, in 0.7 and 0.75 of the time."""

ADJOIN_KICK, ADJOIN_EPS, ADJOIN_STEPS, ADJOIN_PATIENCE = 100.0, 1e-7, 12, 3
"""Compliance over the residual, and at least, of Newton's method on the island after such a patch;
its iterations, at most and without half the residual."""


class Effort(IntEnum):
    """How far a patch is taken that attempts do not solve."""

    FRUGAL = 0
    """The first path that turns, and all of a patch that is no larger than SMALL_PATCH: with more
    it may cost as much as a path of the heap."""
    ALL_PATHS = 1
    DRAWN_PATHS = 2
    """And then those that are drawn."""


Passes = Callable[[float], bool]
"""Whether the iterate at hand, of that residual, is an answer."""


def draw_paths(work: SolverWorkspace, k: int, passes: Passes, numbers: range) -> bool:
    """Follows paths that are drawn, until one solves island k; whether one does."""
    residual, tried = work.request.outcome[:, Outcome.RESIDUAL], np.inf
    for number in numbers:
        best = float(residual[k])
        take_turn(work.packed.ctypes.data, k, len(TURNS) + number, tried)
        tried = best if residual[k] == best else np.inf
        if passes(float(residual[k])):
            return True
    return False


def mend_island(
    work: SolverWorkspace,
    k: int,
    passes: Passes,
    rounds: int = MENDING_ROUNDS,
    effort: Effort = Effort.FRUGAL,
) -> bool:
    """Whether island k is solved, its impulses and velocity, in `work.newton`, being those of the
    best round; effort: on each patch."""
    outcome, address = work.request.outcome, work.packed.ctypes.data
    load, best = float(outcome[k, Outcome.LOAD]), float(outcome[k, Outcome.RESIDUAL])
    if not best <= MENDABLE:
        return False
    island = Island(work, k)
    most = island.nodes * LARGEST_PATCH if effort == Effort.FRUGAL else island.nodes - 1
    kept, rings, taken = island.iterate(), 1, 0
    spread_residual(address, k, load)
    while not passes(best) and taken < rounds:
        nodes = island.find_nodes(work.system.pull[island.members, 0], rings)
        if nodes.sum() > most:
            taken = rounds
            break
        island.solve_patch(nodes, effort)
        found = refine_island(
            address, k, load, 1, REJOIN_EPS, REJOIN_STEPS, REJOIN_PATIENCE, CONTENT, np.inf
        )
        if SOLVED < found <= DRIFTABLE:
            whole = taken > 0
            found = drift_island(address, k, load, CONTENT, found) if whole else island.drift(found)
        if not found < best:
            island.put(*kept)
            rings += 1
        spread_residual(address, k, load)
        taken += not found < MUCH_BETTER * best
        if found < best:
            best, kept = found, island.iterate()
    outcome[k, Outcome.RESIDUAL] = best
    return taken < rounds or passes(best)


class Patch(NamedTuple):
    """Blocks of an island that are solved as a problem of their own."""

    work: SolverWorkspace
    inside: Indices
    """Which blocks of the island's workspace they are."""
    dofs: Indices
    """And degrees of freedom."""


class Island:
    """An island of a workspace, and who touches whom in it."""

    def __init__(self, work: SolverWorkspace, k: int) -> None:
        g, s = work.graph, work.matrix
        self.work, self.k = work, k
        self.members = np.sort(g.member[g.members[k] : g.members[k + 1]])
        nodes = np.sort(s.order[g.positions[k] : g.positions[k + 1]])
        self.nodes, self.dofs = len(nodes), spans(s.start, nodes)
        counts = g.pieces[self.members + 1] - g.pieces[self.members]
        touched = g.piece[ranges(g.pieces[self.members], counts), Piece.NODE]
        self.touches = csr_array(
            (np.ones(len(touched)), touched, np.concatenate([[0], np.cumsum(counts)])),
            shape=(len(self.members), len(s.start) - 1),
        )
        self.degree = counts
        """Nodes that each block touches."""

    def iterate(self) -> tuple[Array, Array]:
        """Impulses and velocity at hand."""
        newton = self.work.newton
        return newton.f[self.members].copy(), newton.v[self.dofs].copy()

    def put(self, f: Array, v: Array) -> None:
        """Takes these."""
        self.work.newton.f[self.members], self.work.newton.v[self.dofs] = f, v

    def find_nodes(self, residual: Array, rings: int) -> Mask:
        """(nodes,) those of the patch around the blocks with the largest residuals (members,)."""
        wrong = np.argsort(-residual, kind="stable")[:MENDED_AT_ONCE]
        wrong = wrong[residual[wrong] >= MENDED_SHARE * residual.max()]
        blocks = np.zeros(len(self.members))
        blocks[wrong] = 1.0
        for _ in range(rings):
            nodes = self.touches.T @ blocks > 0.0
            blocks = (self.touches @ nodes > 0.0).astype(float)
        return np.asarray(self.touches.T @ blocks > 0.0)

    def cut(self, nodes: Mask) -> Patch:
        """The blocks between these nodes as a problem of their own, all others as they are."""
        work, b = self.work, self.work.blocks
        within = self.touches @ nodes.astype(float)
        inside = self.members[within == self.degree]
        start, chosen = work.matrix.start, np.flatnonzero(nodes)
        dofs = spans(start, chosen)
        part = cut_out(b, inside, dofs)
        outside = self.members[(within > 0) & (within < self.degree)]
        across = push_of(b, outside, work.newton.f)
        part.push[:] += across[dofs]
        sizes = start[chosen + 1] - start[chosen]
        patch = pose(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), part)
        setting = patch.request.setting
        setting[:] = work.request.setting
        setting[Setting.WARM], setting[Setting.DEADLINE] = Guess.NEAR, ENDLESS
        return Patch(patch, inside, dofs)

    def solve_patch(self, nodes: Mask, effort: Effort) -> None:
        """Solves the blocks between these nodes, all others as they are."""
        newton, (patch, inside, dofs) = self.work.newton, self.cut(nodes)
        count, setting = len(inside), patch.request.setting
        brief = effort == Effort.FRUGAL and nodes.sum() > SMALL_PATCH * self.nodes
        setting[Setting.MENDED], setting[Setting.BRIEF] = 0, brief
        patch.request.guess[:count], patch.request.start[:] = newton.f[inside], newton.v[dofs]
        patch.request.built[:count] = Rung.INTERIOR_POINT
        solve_blocks(patch.packed.ctypes.data, count)
        if effort == Effort.DRAWN_PATHS:
            residual = patch.request.outcome[: patch.graph.size[Size.ISLANDS], Outcome.RESIDUAL]
            for k in np.flatnonzero(~(residual <= SOLVED)).tolist():
                draw_paths(patch, k, lambda found: found <= SOLVED, range(LEAST_DRAWN))
        newton.f[inside], newton.v[dofs] = patch.newton.f[:count], patch.newton.v

    def drift(self, residual: float) -> float:
        """Residual after rows have drifted where the largest ones are, from the iterate at hand of
        that residual, which it replaces where it is better."""
        work, k, newton = self.work, self.k, self.work.newton
        load, address = float(work.request.outcome[k, Outcome.LOAD]), work.packed.ctypes.data
        for _ in range(DRIFT_PATCHES):
            kept = self.iterate()
            spread_residual(address, k, load)
            nodes = self.find_nodes(work.system.pull[self.members, 0], DRIFT_RINGS)
            if nodes.sum() > LARGEST_PATCH * self.nodes:
                break
            patch, inside, dofs = self.cut(nodes)
            own, count = patch.newton, len(inside)
            own.weight[:count] = newton.weight[inside]
            own.f[:count], own.v[:] = newton.f[inside], newton.v[dofs]
            for part in range(patch.graph.size[Size.ISLANDS]):
                drift_island(patch.packed.ctypes.data, part, load, CONTENT, residual)
            newton.f[inside], newton.v[dofs] = own.f[:count], own.v
            eps = max(ADJOIN_EPS, ADJOIN_KICK * residual)
            found = refine_island(
                address, k, load, 1, eps, ADJOIN_STEPS, ADJOIN_PATIENCE, CONTENT, np.inf
            )
            if not found < residual:
                self.put(*kept)
                break
            before, residual = residual, found
            if found <= SOLVED or found > MUCH_DRIFTED * before:
                break
        return residual


def spans(start: Indices, nodes: Indices) -> Indices:
    """Degrees of freedom of the nodes, in their order."""
    return ranges(start[nodes], start[nodes + 1] - start[nodes])
