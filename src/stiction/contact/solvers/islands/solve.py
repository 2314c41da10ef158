"""A problem by blocks, island by island: Newton's method from the last step's impulses, and where
that fails the interior point.

    proximal         `proximal` from the given guess (`warm.py`): its modes alone first, so that
                     redundant rows share the load in one way whatever came before; then building
                     upon the impulses, with ever less of a kick; and of islands of a few trees or
                     bodies with modes that change one by one, and redundant rows that drift
                     (`one_by_one.py`)
    interior point   `interior_point`, near the given impulses, or from nothing if there are none,
                     and near what that has found, and Newton's method from there (`attempts.py`):
                     of small islands from the modes alone, as above, if that does
    turns            Coulomb's law, where that is not enough: the interior point's path, followed
                     through its folds; large heaps are mended first, and then followed from near
                     what was found (`patches.py`). Without it, an attempt from nothing
    stiffening       before these paths where no more than the last digits are missing, else between
                     the first of them and the others: rows of what is nearly right grow stiffer,
                     and change their modes one by one (`stiffening`)
    sweeps           where time has run out before that (`sweeps.py`)

An island that nothing runs into has no impulses. One at rest that is to the bit what it was in the
last step has its answer already (`at_rest.py`). Where overlap is taken back, fewer digits will do,
and cheaper ways come first (`parting.py`). Every way is bounded in iterations, those of the
interior point in time as well; the best iterate is kept, and the residual in `Request.outcome` says
how good it is.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.blocks.iterate import copy_island
from stiction.contact.solvers.blocks.system import speeds
from stiction.contact.solvers.blocks.trees import forget_tree, is_tree, mark_tree
from stiction.contact.solvers.blocks.workspace import (
    Guess,
    NewtonWorkspace,
    Outcome,
    Rung,
    Setting,
    unpack_interior,
    unpack_newton,
    unpack_problem,
)
from stiction.contact.solvers.interior_point.iteration import is_heap, is_small
from stiction.contact.solvers.islands.at_rest import recall
from stiction.contact.solvers.islands.attempts import ENOUGH, MENDABLE, follow_attempts, turn
from stiction.contact.solvers.islands.guess import stay_near
from stiction.contact.solvers.islands.parting import part
from stiction.contact.solvers.islands.sweeps import sweep
from stiction.contact.solvers.islands.warm import built_of, share_alone, start_warm
from stiction.contact.solvers.proximal.laws import enter_cones, load_of
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.stage import stage


@lean
def _move_freely(b: Blocks, g: Graph, k, work: NewtonWorkspace):
    """Impulses of the soft rows of island k, which nothing runs into: those of its free motion."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        if b.head[i, Head.KIND] == Kind.SOFT:
            work.f[i, 0] = -b.data[i, Datum.DRAG] * work.u[i, 0]


@lean
def _solve_island(address, k, load, g: Graph, b: Blocks, s: BlockMatrix, work, w, request):
    """(residual, rung, streak, attempts) of island k; streak: see `warm.built_of`."""
    setting, small = request.setting, is_small(g, k)
    guessed, parted = setting[Setting.WARM] != Guess.NONE, setting[Setting.DIGITS] > 0
    best, rung, streak, taken = np.inf, np.int64(Rung.NONE), np.int64(0), np.int64(0)
    if parted:
        rung, best = part(address, k, load, small, b, g, s, work, request)
    if rung == Rung.NONE and guessed and (small or not parted):
        rung, best, streak = start_warm(address, k, load, small, g, b, s, work, request)
        taken = np.int64(rung == Rung.INTERIOR_POINT)
    if rung != Rung.NONE:
        return best, rung, streak, taken
    rung = np.int64(Rung.INTERIOR_POINT)
    if ticks() > setting[Setting.DEADLINE]:
        return best, rung, streak, np.int64(1)
    enough = MENDABLE if setting[Setting.MENDED] == 1 and is_heap(g, k) else ENOUGH
    best, taken = follow_attempts(
        address, k, load, best, guessed, enough, g, b, s, work, w, request
    )
    if best <= ENOUGH and small:
        best = share_alone(address, k, load, best, g, s, work, w)
    return best, rung, streak, taken


@stage("void(intp, int64)")
def solve_blocks(address, count):
    """Impulses f and velocity v of the `count` blocks of a packed workspace, and what came of each
    island. The graph, v_free, the rows' weights and the settings are the caller's."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    setting, weight, v_free = request.setting, work.weight, request.v_free
    law, facets = setting[Setting.LAW], setting[Setting.FACETS]
    for j in range(v_free.shape[0]):
        work.v[j] = v_free[j]
        if setting[Setting.WARM] != Guess.NEAR:
            request.start[j] = b.velocity[j]
    for i in range(count):
        for c in range(ROWS):
            work.f[i, c] = 0.0
        if b.head[i, Head.ROWS] > 2:
            weight[i, 1] = weight[i, 2] = max(weight[i, 1], weight[i, 2])
    for k in range(g.size[Size.ISLANDS]):
        # Where overlap is taken back, mass and rows are as they were in the solve before.
        known = setting[Setting.DIGITS] > 0 and is_tree(g, k)
        if not known:
            forget_tree(g, k)
        speeds(b, g, k, v_free, work.u)
        load = load_of(b, g, k, law, work.u, weight, v_free)
        for c in range(request.outcome.shape[1]):
            request.outcome[k, c] = 0.0
        if load == 0.0:
            _move_freely(b, g, k, work)
            continue
        if setting[Setting.WARM] != Guess.ALIKE and recall(b, g, s, k, request, work):
            built = np.int64(request.built[g.member[g.members[k]]])
            answered = min(built, np.int64(Rung.INTERIOR_POINT))
            request.outcome[k, Outcome.RUNG] = answered if built >= 0 else np.int64(Rung.IMPULSES)
            request.outcome[k, Outcome.LOAD] = load
            continue
        setting[Setting.FACTORIZATIONS] = 0
        if not known:
            mark_tree(b, g, s, k, y.x)
        best, rung, streak, taken = _solve_island(address, k, load, g, b, s, work, w, request)
        if best > ENOUGH and ticks() > setting[Setting.DEADLINE]:
            best = stay_near(best, g, s, k, work, request)
            best = sweep(address, k, load, best)
        enter_cones(b, g, k, law, facets, work.f)
        built = built_of(rung, streak, setting[Setting.FACTORIZATIONS])
        for at in range(g.members[k], g.members[k + 1]):
            request.built[g.member[at]] = built
        request.outcome[k, Outcome.RESIDUAL] = best
        request.outcome[k, Outcome.FACTORIZATIONS] = setting[Setting.FACTORIZATIONS]
        request.outcome[k, Outcome.RUNG] = rung
        request.outcome[k, Outcome.ATTEMPTS] = taken
        request.outcome[k, Outcome.LOAD] = load


@stage("void(intp, int64, int64, float64)", eager=False)
def take_turn(address, k, number, tried):
    """Path `number` (`continuation.py`) on an island that attempts and patches did not solve: the
    better one of what the island had and what is found. tried: see `turn`."""
    b, g, s, request = unpack_problem(address)
    _, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    setting, outcome = request.setting, request.outcome
    load, best = outcome[k, Outcome.LOAD], outcome[k, Outcome.RESIDUAL]
    setting[Setting.FACTORIZATIONS] = 0
    copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
    best, _ = turn(address, k, load, number, best, tried, best, g, b, s, work, w, request)
    enter_cones(b, g, k, setting[Setting.LAW], setting[Setting.FACETS], work.f)
    outcome[k, Outcome.RESIDUAL] = best
    outcome[k, Outcome.ATTEMPTS] += 1
    outcome[k, Outcome.FACTORIZATIONS] += setting[Setting.FACTORIZATIONS]


solve_all = solve_blocks.external
