"""Newton's method from the guess, which is the last step's impulses as a rule: a step's first rung.

The modes alone first, so that redundant rows share the load in one way whatever came before; then
building upon the impulses, with ever less of a kick. Islands of a few trees or bodies are then
searched for their modes (`one_by_one.py`). What did not answer an island in the steps before is
tried less often (`Request.built`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import Blocks
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.iterate import copy_island
from stiction.contact.solvers.blocks.workspace import Guess, Rung, Setting
from stiction.contact.solvers.interior_point.iteration import contentment, is_heap
from stiction.contact.solvers.islands.one_by_one import is_few, search
from stiction.contact.solvers.proximal.iteration import (
    AFRESH,
    EXACT,
    IMPULSES,
    MODES,
    SOLVED,
    refine,
)
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix


class Start(NamedTuple):
    """How Newton's method begins with the impulses of the last step."""

    keep: float
    """1 if they are built upon, 0 if only their modes are taken."""
    eps: float
    limit: float
    """Iterations at most."""
    patience: float
    """Iterations without half the residual before it is given up; of islands up to SMALL_ISLAND."""
    hurry: float
    """The same of larger ones: their modes seldom come right after going round."""
    enough: float
    """Residual with which it is content."""


STARTS = (
    Start(0.0, 1e-7, 15.0, 8.0, 2.0, 1e-11),
    Start(1.0, 1e-8, 8.0, 1.0, 0.0, SOLVED),
    Start(1.0, 1e-2, 20.0, 6.0, 4.0, SOLVED),
)
"""In turn: modes alone share a load in one way whatever came before, where they can; then the
impulses, with a small compliance that finishes at once if the modes are right, and with a large one
that scatters fewer of those that are not, and falls as they come right. With a hundredth of it, in
half the iterations and not after the interior point, a seventh more problems of piles were left to
that."""

QUICK = 1
"""Of them, the one that finishes at once or fails: after steps in which impulses took long it
mostly fails, and is not tried in each. As modes that go round are given up, too
(`proximal/iteration.py`), chains take an eighth fewer factorizations, and robots that fall, or an
arch, up to a tenth."""

STARTS_DUE, AFRESH_DUE, DEAR = 8, 64, 4
"""How often starts are tried that others have answered in place of, and how often the
load is shared AFRESH where impulses are built upon, every so many steps; and factorizations in a
step beyond which that is worth it. An arm that holds a part by four pads goes on with impulses near
the edges of their cones, once it has begun to, in 10 factorizations a step; shared anew, the load
takes one."""

RETURN = Start(1.0, 1e-4, 20.0, 2.0, 2.0, SOLVED)
"""In place of them on an island that is not small, after the interior point: it succeeds as often
as the last one, and takes 8 factorizations instead of 10. On heaps it is tried when it is due, in
others in every step: one time in two it succeeds, a try costs a fifth of what the interior point
takes, and of the steps of 27 bodies in a pile a quarter fewer need that."""

MOVING = 1e-12
"""Residual at which a start is content on an island that will not rest after the step. With 1e-10
it saves an iteration more, but the certificate then asks for scales that take longer to find."""


@lean_leaf
def _is_due(streak, often):
    """Whether it is time to try once more what did not answer so many steps in a row: after one,
    two, four, and then every `often`, a power of two."""
    return streak & (streak - 1) == 0 or streak & (often - 1) == 0


@lean
def _moves(b: Blocks, g: Graph, s: BlockMatrix, k, v, load):
    """Whether anything in island k moves faster, by energy, at the velocity v than its load would
    have it in one step: it will not rest after this one."""
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            if b.mass[b.row[j] + j] * v[j] * v[j] > load * load:
                return True
    return False


@lean
def start_warm(address, k, load, small, g: Graph, b: Blocks, s: BlockMatrix, work, request):
    """(rung, residual) of Newton's method from the guess: rung NONE if no start succeeds, and that
    of a near guess if it has one; steps in a row that the rung, or the interior point if there is
    none, has answered the island before this one."""
    near = request.setting[Setting.WARM] == Guess.NEAR
    upon, streak = np.int64(0), np.int64(-1)
    for at in range(g.members[k], g.members[k + 1]):
        before = np.int64(request.built[g.member[at]])
        upon = max(upon, -before)
        streak = max(streak, before - Rung.INTERIOR_POINT)
    hard = streak >= 0
    # Where modes alone were not enough they seldom are. After the interior point no start often is,
    # but one that succeeds makes the next steps cheaper, too.
    few = is_few(g, s, k) and request.setting[Setting.LAW] == Law.COULOMB
    lasting = small or few
    afresh = upon > 2 and _is_due(upon - 1, AFRESH_DUE)
    alone = (lasting or not hard) and (upon == 0 or afresh)
    first, last = 0 if alone else 1, len(STARTS)
    returns = hard and not near and not lasting
    if hard and not near:
        streak += 1
        due = _is_due(streak, STARTS_DUE)
        if returns:
            last = first + 1 if due or not is_heap(g, k) else first
        elif not due:
            first = last - 1
    rung, best = np.int64(Rung.NONE), np.inf
    content = EXACT
    if near:
        content = contentment(g, k)
    elif _moves(b, g, s, k, request.start, load):
        content = MOVING
    for turn in range(first, last):
        if turn == QUICK and upon > 1 and not (returns or _is_due(upon, STARTS_DUE)):
            continue
        keep, eps, limit, patience, hurry, enough = RETURN if returns else STARTS[turn]
        keep = AFRESH if turn == 0 and afresh else keep
        copy_island(g, s, k, request.guess, request.start, work.f, work.v)
        best = refine(
            address, k, load, np.int64(keep), eps, np.int64(limit),
            np.int64(patience if lasting else hurry), min(content, enough), np.inf,
        )  # fmt: skip
        if best <= enough:
            rung = np.int64(Rung.IMPULSES if keep == IMPULSES else Rung.MODES)
            break
        if ticks() > request.setting[Setting.DEADLINE]:
            break
    if rung == Rung.NONE and few:
        best = search(address, k, load, best, content, g, s, work, request)
        if best <= SOLVED:
            rung = np.int64(Rung.IMPULSES)
    if rung != Rung.NONE:
        if near and hard:
            rung = np.int64(Rung.INTERIOR_POINT)
        else:
            streak = upon if rung == Rung.IMPULSES else np.int64(0)
    return rung, best, max(streak, 0)


@lean
def share_alone(address, k, load, best, g: Graph, s: BlockMatrix, work, w):
    """Residual of island k, which the interior point has solved, after Newton's method from its
    modes alone, if that does as well, so that it shares a load as warm starts do."""
    _, eps, limit, patience, _, enough = STARTS[0]
    found = refine(address, k, load, MODES, eps, np.int64(limit), np.int64(patience), EXACT, np.inf)
    if found <= enough:
        return found
    copy_island(g, s, k, w.best_f, w.best_v, work.f, work.v)
    return best


@lean_leaf
def built_of(rung, streak, factorizations):
    """`Request.built` of an island that the rung answered, in so many factorizations, after so many
    steps in a row."""
    if rung == Rung.IMPULSES:
        return -(streak + 1) if factorizations > DEAR else -1
    return rung + streak
