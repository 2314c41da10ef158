"""An interior point on the exact friction cone, with De Saxce's term in its matrix.

Coulomb's law is x in K, y in K, x . y = 0 with y = B (u + mu |u_t| e_n) (`rows.py`): a cone
problem but for the term mu |u_t|. Mehrotra's predictor and corrector follow the path x . y = gap e,
gap to zero. Impulses of redundant contacts come to lie in the middle of their cones. Near the end,
when Alart and Curnier's residual falls below `FINISHABLE`, Newton's method on the modes
(`proximal/`) finishes. Begun from nothing, what it finds does not depend on the last step.

What is kept: x, y, and the slacks of intervals stay inside; momentum and y = .. are met to
(1 - a) of what they were in each step a. Where it departs from the textbook:

- The derivative of mu |u_t| is in the matrix (theta = 1), which is then unsymmetric. Lagging it
  (theta = 0) leaves a convex problem and a symmetric matrix, but needs two to three times as many
  factorizations and solves fewer problems.
- With it the path may fold: the determinant of the matrix is negative, or steps are short. Then
  theta is halved, to zero at the last.
- The slack of a contact that opens is raised to its speed where that costs little.

How it fails: steps become too short, iterations or time run out; the best iterate is kept, with its
residual. An attempt may begin near what is known, the last step's impulses and velocity or the best
iterate so far, moved into their cones: that takes four fifths of the factorizations, and often
solves what an attempt from nothing has left undone. Where the path has folds that halving theta
does not pass, `continuation.py` follows it through them.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import Blocks
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.blocks.iterate import add_vector, copy_island, copy_vector
from stiction.contact.solvers.blocks.system import (
    factor_system,
    imbalance,
    push,
    solve,
    speeds,
    unbalanced,
)
from stiction.contact.solvers.blocks.workspace import (
    InteriorWorkspace,
    NewtonWorkspace,
    Setting,
    unpack_interior,
    unpack_newton,
    unpack_problem,
)
from stiction.contact.solvers.interior_point.begin import begin, begin_near
from stiction.contact.solvers.interior_point.rows import (
    advance,
    aim,
    find_rest,
    lift_slacks,
    measure_gap,
    offset,
    respond,
    scale_cones,
)
from stiction.contact.solvers.interior_point.rows import (
    follow as follow_rows,
)
from stiction.contact.solvers.interior_point.units import classify
from stiction.contact.solvers.proximal.iteration import EXACT, LEAST_EPS, SOLVED, refine
from stiction.contact.solvers.proximal.laws import enter_cones, residual_of
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.stage import stage

FINISHABLE, FINISHABLE_HEAP = 1e-5, 1e-6
"""Residual at which Newton's method is tried, and the same on heaps. There it takes twice as many
factorizations from ten times as far, most of them in vain; smaller islands have their modes right
sooner, and steps of piles of 27 bodies take a fortieth less so."""

FINISH_EPS, FINISH_STEPS, FINISH_PATIENCE = 1e-4, 8, 1
"""Its compliance at most, iterations at most, and those without half the residual."""

KICK = 30.0
"""Its compliance over the residual that it begins with: impulses change by a thirtieth of the load
at first, and modes that are right stay."""

CONTENT = 1e-10
"""Residual at which it ends, on islands that are not small. Bodies that come to rest there are
refined further in the next steps, by their warm starts."""

SMALL_ISLAND = 48
"""Blocks of a small island, which the contact model's whole ladder is asked about where nothing
else does. The least impulses are looked for after the interior point, so that it
shares a load as a warm start does: how a box slides depends on which corner presses. Larger heaps
seldom have any inside their cones."""

HEAP = 300
"""Blocks of an island beyond which patches cost less than the path followed through its folds."""

FINISH_EVERY = 3
"""Iterations between two such tries."""

LEAST_STEP = 1e-8
"""Step below which an attempt ends."""

SHORT_STEP = 0.01
"""Step below which an iteration is taken again with less of theta."""

STALL = 4
"""Iterations without half the gap after which an attempt ends, of islands that are neither small
nor heaps: it is at a fold, which seldom lets it by, and what comes next takes less. Of piles of 27
to 64 bodies that saves up to a tenth of the time, and leaves no more problems unsolved; it saves
nothing of heaps, and chains, which are small, would take more paths that turn."""

TO_BOUNDARY = 0.99
"""Share of the way to the boundary that a step takes."""

COLD_ATTEMPT, NEAR_ATTEMPT, RESUMED_ATTEMPT = 0, 1, 2
"""Where an attempt begins: at nothing; near the impulses and the velocity at hand; at the point at
hand itself (`continuation.py`)."""

DEEP = (3.0, 0.03)
"""How far inside of the cones it begins, over the load; resumed, it is inside already."""

UNBALANCED_DEEP = 0.05
"""How much farther inside of them an attempt near the impulses at hand begins, over the momentum
that these leave: the path has as far to go."""

LIMITS = (30, 24, 24)
"""Its iterations at most."""

UNREFINED_GAP = 1e-6
"""Gap, over the load, above which directions need no refinement: what it would mend is less than
what the next iteration does."""


@lean_leaf
def is_small(g: Graph, k):
    """Whether island k is a small one."""
    return g.members[k + 1] - g.members[k] <= SMALL_ISLAND


@lean_leaf
def is_heap(g: Graph, k):
    """Whether island k is one that patches mend."""
    return g.members[k + 1] - g.members[k] > HEAP


@lean_leaf
def contentment(g: Graph, k):
    """Residual at which Newton's method may end on island k: small ones are to rest exactly."""
    return EXACT if is_small(g, k) else CONTENT


@stage("float64(intp, int64, float64, int64)")
def factor_island(address, k, theta, symmetric):
    """Factors the matrix of island k at the point at hand; the sign of its determinant."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    respond(b, g, k, w, work.weight, theta, y.D)
    request.setting[Setting.FACTORIZATIONS] += 1
    return factor_system(b, g, s, y, k, symmetric)


@stage("float64(intp, int64, float64, int64, float64)")
def direct_island(address, k, theta, refined, rate):
    """Directions towards the goals, and the longest step along them; refined: whether rounding
    counts; of the predictor only the length does; rate: 1, or 0 for a tangent (`rows.offset`),
    whose momentum is that of the path's start."""
    b, g, s, _ = unpack_problem(address)
    y, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    offset(b, g, k, w, work.weight, rate)
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            y.rhs[j] = w.r[j] if rate > 0.0 else w.r_start[j]
    push(b, g, k, w.z, y.rhs)
    solve(b, g, s, y, k, refined)
    return follow_rows(b, g, k, w, work.weight, theta, y.D, y.change)


factor, direct = factor_island.external, direct_island.external


@lean_leaf
def _lessen(theta):
    return 0.0 if theta < 0.3 else 0.5 * theta


@lean
def _predict(address, k, theta, tied):
    """Factors the matrix and goes towards no gap: (sign of the determinant, longest step, theta),
    with less of theta where the path folds. Sign 0: there is none."""
    while True:
        sign = factor(address, k, theta, np.int64(theta == 0.0 and not tied))
        if sign > 0.0 or (theta == 0.0 and sign != 0.0):
            step = direct(address, k, theta, np.int64(0), 1.0)
            return sign, min(1.0, step), theta
        if theta == 0.0:
            return 0.0, 0.0, theta
        theta = _lessen(theta)


@lean
def _look(
    b: Blocks, g: Graph, s: BlockMatrix, k, law, facets, w: InteriorWorkspace,
    work: NewtonWorkspace, load, r, best,
):  # fmt: skip
    """Residual of the iterate with its impulses taken into their cones, which becomes the best one
    if it is and its momentum is met."""
    copy_island(g, s, k, w.f, w.v, work.f, work.v)
    enter_cones(b, g, k, law, facets, work.f)
    residual = residual_of(b, g, k, law, facets, w.u, work.f, work.weight, load)
    if residual < best and imbalance(b, g, s, k, r) < 1e-8 * load:
        best = residual
        copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
    return residual, best


@lean
def _finish(
    address, g: Graph, s: BlockMatrix, k, load, residual, w: InteriorWorkspace,
    work: NewtonWorkspace, best,
):  # fmt: skip
    """Best residual after Newton's method from the iterate at hand."""
    copy_island(g, s, k, w.f, w.v, work.f, work.v)
    eps = FINISH_EPS
    if not is_small(g, k):
        eps = min(FINISH_EPS, max(LEAST_EPS, KICK * residual))
    found = refine(
        address, k, load, 1, eps, FINISH_STEPS, FINISH_PATIENCE, contentment(g, k), np.inf
    )
    if found < best:
        best = found
        copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
    return best


@stage("float64(intp, int64, float64, int64, float64)")
def follow_path(address, k, load, start, best):
    """Best residual so far, after an attempt on island k that starts where `start` says, a
    NEAR_ATTEMPT at f and v of Newton's method; the best iterate is in best_f and best_v of the
    interior point. address: of a packed workspace."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    law, facets = request.setting[Setting.LAW], request.setting[Setting.FACETS]
    weight, r = work.weight, w.r
    tied, full = classify(b, g, k, law, w, weight)
    tied |= g.size[Size.STAR] == 1
    if start == NEAR_ATTEMPT:
        copy_island(g, s, k, work.f, work.v, w.f, w.v)
        speeds(b, g, k, w.v, w.u)
        unbalanced(b, g, s, k, w.v, w.f, y.left, r)
        deep = DEEP[start] * load + UNBALANCED_DEEP * imbalance(b, g, s, k, r)
        begin_near(b, g, k, w, weight, min(deep, DEEP[COLD_ATTEMPT] * load))
    elif start == COLD_ATTEMPT:
        begin(b, g, k, w, weight, DEEP[start] * load)
        copy_vector(g, s, k, request.v_free, w.v)
        speeds(b, g, k, w.v, w.u)
    last, begun = -FINISH_EVERY, full
    least, stalled, small = np.inf, 0, is_small(g, k)
    heap = is_heap(g, k)
    stall = LIMITS[start] if small or heap else STALL
    finishable = FINISHABLE_HEAP if heap else FINISHABLE
    for turn in range(LIMITS[start]):
        gap = measure_gap(b, g, k, w, weight, 0.0)
        stalled += 1
        if gap < 0.5 * least:
            least, stalled = gap, 0
        if stalled >= stall:
            break
        find_rest(b, g, k, w, weight, 0.0)
        unbalanced(b, g, s, k, w.v, w.f, y.left, r)
        residual, best = _look(b, g, s, k, law, facets, w, work, load, r, best)
        if residual <= finishable and turn - last >= FINISH_EVERY:
            last = turn
            best = _finish(address, g, s, k, load, residual, w, work, best)
            if best <= SOLVED:
                break
        theta = begun
        while True:
            scale_cones(b, g, k, w, weight)
            sign, step, theta = _predict(address, k, theta, tied)
            if sign == 0.0:
                break
            ahead = measure_gap(b, g, k, w, weight, step)
            centring = min(1.0, max(1e-2, (ahead / gap) ** 3)) if gap > 0.0 else 0.0
            aim(b, g, k, w, weight, centring * gap)
            refined = np.int64(gap <= UNREFINED_GAP * load * load)
            step = direct(address, k, theta, refined, 1.0)
            step = min(1.0, TO_BOUNDARY * step)
            if step >= SHORT_STEP or theta == 0.0:
                break
            theta = _lessen(theta)
        # A fold lasts: every other iteration begins with what the one before it came to.
        begun = theta if begun == full and not small else full
        if sign == 0.0 or ticks() > request.setting[Setting.DEADLINE]:
            break
        if not (step >= LEAST_STEP and step < np.inf):
            break
        add_vector(g, s, k, step, y.x, w.v)
        advance(b, g, k, w, step)
        speeds(b, g, k, w.v, w.u)
        lift_slacks(g, k, w, measure_gap(b, g, k, w, weight, 0.0))
    return best


follow_attempt = follow_path.external
