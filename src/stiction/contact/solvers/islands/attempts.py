"""The interior point on an island, and what its attempts leave: polished, stiffened, followed on.

    attempt     near what is known, or from nothing (`interior_point/iteration.py`)
    polish      Newton's method from what that has found, modes one by one
    stiffen     rows of what is nearly right grow stiffer (`stiffening/curve.py`): before any path
                where no more than the last digits are missing, else between them
    turn        a path that is followed through its folds (`interior_point/continuation.py`)

Each begins with the best iterate so far, which is in `InteriorWorkspace.best_f`.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import Blocks
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.iterate import copy_island
from stiction.contact.solvers.blocks.workspace import Setting
from stiction.contact.solvers.interior_point.continuation import (
    LARGE_TURNS,
    NEAR_TURNS,
    TURNS,
    follow_turn,
    is_near,
)
from stiction.contact.solvers.interior_point.iteration import (
    COLD_ATTEMPT,
    NEAR_ATTEMPT,
    contentment,
    follow_attempt,
    is_heap,
    is_small,
)
from stiction.contact.solvers.islands.guess import NEARBY, stay_near, take_nothing
from stiction.contact.solvers.islands.one_by_one import is_few
from stiction.contact.solvers.proximal.iteration import ONE_BY_ONE, SOLVED, refine
from stiction.contact.solvers.proximal.laws import enter_cones
from stiction.contact.solvers.stiffening.curve import stiffen
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean
from stiction.kernels.sparse import BlockMatrix

SEARCHED = 1e-3
"""Residual of what such a search leaves up to which no attempt is made near it: of 189 it solves 8,
paths that turn 99, at three times the cost."""

MENDABLE = 0.1
"""Residual of an iterate that is worth mending (`patches.py`): beyond, it is wrong everywhere."""

ENOUGH = 2e-9
"""Residual with which no further attempt is made: rounding may leave as much on a heap."""

RESCUE_EPS, RESCUE_STEPS, RESCUE_PATIENCE = (1e-2, 1e-3), 40, 12
HEAP_PATIENCE = 6
"""Of Newton's method from the best iterate of an attempt that fell short, its modes changed one by
one: compliances, in turn, and iterations, at most and without half the residual. Of what attempts
left of a chain the first solves 80 % and the second half of the rest, of piles 60 and 15 %, in 11
to 19 factorizations; with a hundredth of the compliance and modes changed all at once, 30 and
25 %. On heaps only the first, with half the patience: patches and paths do what it leaves."""

STIFFENABLE, STIFFENING_LIMIT, STIFFENING_AFTER = 1e-2, 300, 1
"""Residual from which on rows are stiffened, factorizations of that, at most, and after which of
the paths that are followed; after the first of FEW_NODES, where the second one solves 4 of 86 that
it left, and this 76 of 80. Of 41 islands of walls that all paths had left 39 are solved so, in a
median of 94. Before any path it costs more than that: the slowest steps of 125 spheres took three
times as long, of 27 mixed bodies five times."""

FEW_LIMIT = 100.0
"""Factorizations of the path after which rows of a few trees or bodies are stiffened, where they
are near enough to be: of chains of 50 links three paths in four that lead to an answer take less,
and with twice as many the slowest steps, which stiffening solves, take up to half as long again."""

CONTRADICTORY, CONTRADICTORY_LIMIT = 1e-6, 80
"""Residual up to which rows are stiffened before any path, and factorizations of that, at most: no
more than the last digits contradict each other. Of boxes in a pile that takes 36 to 61 where two
paths take 400, in vain."""

CROWD = 48
"""Bodies of an island beyond which the path that begins near what is known comes before others, in
place of a second attempt: a chain or a few bodies that one attempt leaves are seldom near."""


@lean
def follow_attempts(
    address, k, load, best, near, enough, g: Graph, b: Blocks, s: BlockMatrix, work, w, request
):  # fmt: skip
    """(residual, attempts) of the interior point: begun near the iterate at hand of residual
    `best`, or the guess if that is far off, if `near` is true, or else from nothing; then, of
    islands that are neither small nor a crowd, near what that has found; and by paths that turn,
    until the residual is `enough`. Where a search has come near, a path comes first. Where none
    turns, or patches come first, an attempt from nothing takes their place. The best iterate is in
    work."""
    best = stay_near(best, g, s, k, work, request)
    copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
    coulomb = request.setting[Setting.LAW] == Law.COULOMB
    turns, few = enough < MENDABLE and coulomb, is_few(g, s, k) and coulomb
    searched = few and turns and best <= SEARCHED
    tried, polished, known, taken = np.inf, best if few else -1.0, False, 0
    if not searched:
        best, tried, polished, known, taken = _attempt(
            address, k, load, best, near, turns, enough, polished, g, b, s, work, w, request
        )
    if turns and best <= CONTRADICTORY:
        best = _stiffen(address, k, load, best, CONTRADICTORY_LIMIT, g, s, work, w, request)
    if turns:
        best, count = _follow_turns(
            address, k, load, best, tried, polished, enough, known, searched, g, b, s, work, w,
            request,
        )  # fmt: skip
        taken += count
    if best == np.inf:
        take_nothing(g, s, k, work, request)
    return best, taken


@lean
def _attempt(
    address, k, load, best, near, turns, enough, polished, g: Graph, b: Blocks, s: BlockMatrix,
    work, w, request,
):  # fmt: skip
    """(residual, `tried`, `polished`, whether anything was near, attempts) after attempts near what
    is known, and from nothing. See `turn`; turns: whether paths that turn come after."""
    small, brief = is_small(g, k), request.setting[Setting.BRIEF] == 1
    crowd = g.positions[k + 1] - g.positions[k] > CROWD
    tried, known, cold, taken = np.inf, False, False, 0
    while near or not cold:
        tried = best if near else tried
        best = follow_attempt(
            address, k, load, np.int64(NEAR_ATTEMPT if near else COLD_ATTEMPT), best
        )
        taken, known = taken + 1, known or best < np.inf
        best = polished = _polish(address, k, load, best, polished, g, b, s, work, w, request)
        if best <= enough or ticks() > request.setting[Setting.DEADLINE]:
            break
        cold, better = cold or not near, best < min(tried, NEARBY)
        if turns and (crowd or brief or small or taken > 1 or not better):
            break
        near = better and (turns or not near)
    return best, tried, polished, known, taken


@lean
def _follow_turns(
    address, k, load, best, tried, polished, enough, known, searched, g: Graph, b: Blocks,
    s: BlockMatrix, work, w, request,
):  # fmt: skip
    """(residual, paths) after paths that turn; known: whether attempts came near anything,
    searched: whether a search did in place of them. See `turn`."""
    small, crowd = is_small(g, k), g.positions[k + 1] - g.positions[k] > CROWD
    # A path near what Newton's method made of nothing costs more than one from nothing, and comes
    # last.
    first, last = 0 if crowd and known else NEAR_TURNS, len(TURNS) if small else LARGE_TURNS
    if request.setting[Setting.BRIEF] == 1:
        first, last = 0, NEAR_TURNS
    stiffened = first + (0 if is_few(g, s, k) else STIFFENING_AFTER)
    taken = 0
    for number in range(first, last):
        if best <= enough or ticks() > request.setting[Setting.DEADLINE]:
            break
        best, tried = turn(
            address, k, load, number, best, tried, polished, g, b, s, work, w, request
        )
        polished, taken = best, taken + 1
        if number == stiffened:
            best = _stiffen(address, k, load, best, STIFFENING_LIMIT, g, s, work, w, request)
        if searched and number == first and best > enough:
            best = follow_attempt(address, k, load, np.int64(NEAR_ATTEMPT), best)
            best = polished = _polish(address, k, load, best, polished, g, b, s, work, w, request)
    if crowd and first > 0 and best > enough:
        best, _ = turn(address, k, load, 0, best, tried, polished, g, b, s, work, w, request)
    return best, taken


@lean
def _polish(
    address, k, load, best, polished, g: Graph, b: Blocks, s: BlockMatrix, work, w, request
):  # fmt: skip
    """Residual after Newton's method from the interior point's best iterate, unless that is the one
    of residual `polished`, from which it came no further; the better one is in work, and the
    interior point's best."""
    setting, heap = request.setting, is_heap(g, k)
    copy_island(g, s, k, w.best_f, w.best_v, work.f, work.v)
    if best == polished:
        return best
    if best == np.inf:
        # Its steps were too short to meet the momentum: no iterate is the best one. Newton's
        # method meets it in one step: from the last iterate it spares 38 of 62 heaps of spheres
        # the attempt from nothing, from where the attempt began it brought none of them nearer.
        copy_island(g, s, k, w.f, w.v, work.f, work.v)
        enter_cones(b, g, k, setting[Setting.LAW], setting[Setting.FACETS], work.f)
    patience = np.int64(HEAP_PATIENCE if heap else RESCUE_PATIENCE)
    for number in range(1 if heap else len(RESCUE_EPS)):
        if best <= SOLVED or ticks() > setting[Setting.DEADLINE]:
            break
        found = refine(
            address, k, load, ONE_BY_ONE, RESCUE_EPS[number], RESCUE_STEPS, patience,
            contentment(g, k), best,
        )  # fmt: skip
        if found < best:
            best = found
            copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
    return best


@lean
def _stiffen(address, k, load, best, limit, g: Graph, s: BlockMatrix, work, w, request):
    """Residual after the rows have been stiffened from the interior point's best iterate, if that
    is near, in `limit` factorizations at most; the better one is in work, and the interior point's
    best."""
    if not SOLVED < best <= STIFFENABLE or request.setting[Setting.FACETS] != 0:
        return best
    copy_island(g, s, k, w.best_f, w.best_v, work.f, work.v)
    found = stiffen(address, k, load, contentment(g, k), best, limit)
    if found < best:
        best = found
        copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
    return best


@lean
def turn(
    address, k, load, number, best, tried, polished, g: Graph, b: Blocks, s: BlockMatrix, work, w,
    request,
):  # fmt: skip
    """(residual, tried) after path `number`, and an attempt near the best iterate, unless
    its residual is `tried`: that of the last one that such an attempt was begun near, to no avail;
    none of a few trees or bodies, of which it solves one in a hundred, and none of heaps, of which
    it solves one in fifteen, where the next path solves most. The best iterate is in work,
    and the interior point's best. No path begins near what is far off. polished: see `_polish`."""
    if is_near(number) and not best < NEARBY:
        return best, tried
    short = is_few(g, s, k) and best <= STIFFENABLE and request.setting[Setting.FACETS] == 0
    most = FEW_LIMIT if short and number == NEAR_TURNS else np.inf
    best = follow_turn(address, k, load, number, best, most)
    best = polished = _polish(address, k, load, best, polished, g, b, s, work, w, request)
    if ENOUGH < best < min(tried, NEARBY) and not (is_few(g, s, k) or is_heap(g, k)):
        tried = best
        best = follow_attempt(address, k, load, np.int64(NEAR_ATTEMPT), best)
        best = _polish(address, k, load, best, polished, g, b, s, work, w, request)
    return best, tried
