"""An interior point on the exact friction cone, with De Saxce's term in its matrix.

Coulomb's law is x in K, y in K, x . y = 0 with y = B (u + mu |u_t| e_n) (`rows.py`): a cone
problem but for the term mu |u_t|. Mehrotra's predictor and corrector follow the path x . y = gap e,
gap to zero. Impulses of redundant contacts come to lie in the middle of their cones. Near the end,
when Alart and Curnier's residual falls below `FINISHABLE`, Newton's method on the modes
(`proximal.py`) finishes. Begun from nothing, what it finds does not depend on the last step.

What is kept: x, y, and the slacks of intervals stay inside; momentum and y = .. are met to
(1 - a) of what they were in each step a. Where it departs from the textbook:

- The derivative of mu |u_t| is in the matrix (theta = 1), which is then unsymmetric. Lagging it
  (theta = 0) leaves a convex problem and a symmetric matrix, but needs two to three times as many
  factorizations and solves fewer problems.
- With it the path may fold: the determinant of the matrix is negative, or steps are short. Then
  theta is halved, to zero at the last, or the mass is raised (`shifts`), and the gap is not let
  fall as fast (`hold`).
- The slack of a contact that opens is raised to its speed where that costs little (`lift`).

How it fails: steps become too short, iterations or time run out. `ATTEMPTS` are tried in turn, each
with a limit, and the best iterate of all is kept, with its residual. Before the first and between
them it begins near what is known (`NEAR_ATTEMPT`): the last step's impulses and velocity, or the
best iterate so far, moved into their cones. That takes four fifths of the factorizations, and often
solves what an attempt has left undone. All of it was found by trial on problems of piles that
Newton's method alone could not solve, and no proof stands behind it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.problem.blocks import Blocks
from stiction.contact.problem.graph import Graph, Size
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
from stiction.contact.solvers.proximal import (
    EXACT,
    LEAST_EPS,
    copy_island,
    enter_cones,
    refine,
    residual_of,
)
from stiction.contact.solvers.system import (
    assemble,
    imbalance,
    push,
    solve,
    speeds,
    unbalanced,
)
from stiction.contact.solvers.workspace import (
    InteriorWorkspace,
    NewtonWorkspace,
    Setting,
    System,
    unpack_interior,
    unpack_newton,
    unpack_problem,
)
from stiction.kernels import sparse
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.stage import stage

SOLVED = 1e-9
"""Residual, relative to the load, with which an attempt is content; the certificate asks for 1e-8
of scales that may be larger than the load or a little smaller."""

FINISHABLE = 1e-6
"""Residual at which Newton's method is tried: from ten times as far it takes twice as many
factorizations, most of them in vain."""

FINISHABLE_SMALL = 1e-5
"""The same of small islands, which are to come to rest exactly: their modes come right sooner, and
Newton's method has the last digits from further off."""

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

FINISH_EVERY = 3
"""Iterations between two such tries."""

FOLDED_STEP = 0.1
"""Step of the predictor that counts as a fold."""

LEAST_STEP = 1e-8
"""Step below which an attempt ends."""

MOST_SHIFT = 300.0
"""Largest multiple of the mass that is added."""


class Attempt(NamedTuple):
    """How one attempt goes."""

    size: float
    """Start, over the load."""
    tau: float
    """Share of the way to the boundary that a step takes."""
    hold: float
    """Least centring after a fold; above one the gap grows."""
    limit: float
    """Iterations at most."""
    lift: float
    """1 if slacks are raised."""
    shifts: float
    """Times that the mass may be raised in one iteration."""
    theta: float
    """1, or 0 for the symmetric matrix throughout."""
    stuck: float
    """Step below which an iteration is taken again with less of theta."""


NEAR_ATTEMPT = -1
"""Number of the attempt that begins near the impulses and the velocity at hand."""

BEGIN_NEAR = Attempt(0.03, 0.99, 0.0, 24.0, 1.0, 0.0, 1.0, 0.01)

ATTEMPTS = (
    Attempt(3.0, 0.99, 0.0, 30.0, 1.0, 0.0, 1.0, 0.01),
    Attempt(3.0, 0.8, 2.0, 80.0, 1.0, 0.0, 1.0, 0.01),
    Attempt(10.0, 0.99, 0.0, 200.0, 0.0, 0.0, 0.0, 0.01),
    Attempt(3.0, 0.99, 0.0, 60.0, 0.0, 0.0, 1.0, 0.3),
    Attempt(0.3, 0.9, 0.7, 60.0, 1.0, 0.0, 1.0, 0.1),
    Attempt(3.0, 0.95, 1.0, 60.0, 1.0, 8.0, 1.0, 0.01),
    Attempt(3.0, 0.99, 0.7, 100.0, 0.0, 4.0, 1.0, 0.3),
    Attempt(30.0, 0.99, 0.7, 60.0, 1.0, 0.0, 1.0, 0.3),
    Attempt(3.0, 0.9, 2.0, 100.0, 0.0, 0.0, 1.0, 0.3),
    Attempt(0.5, 0.9, 3.0, 120.0, 1.0, 0.0, 1.0, 0.1),
)
"""In turn. The first is the quickest; the order of the others is the one of seven that took the
fewest factorizations on 363 steps of falling boxes, capsules and mixed bodies, also of boxes a
hundred times as heavy as their neighbours, all of which are solved. The last three differ most."""

UNREFINED_GAP = 1e-6
"""Gap, over the load, above which directions need no refinement: what it would mend is less than
what the next iteration does."""


@lean_leaf
def is_small(g: Graph, k):
    """Whether island k is a small one."""
    return g.members[k + 1] - g.members[k] <= SMALL_ISLAND


@lean_leaf
def contentment(g: Graph, k):
    """Residual at which Newton's method may end on island k: small ones are to rest exactly."""
    return EXACT if is_small(g, k) else CONTENT


@lean
def _direction(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, w: InteriorWorkspace, weight, r, theta,
    shift, refined,
):  # fmt: skip
    """Directions towards the goals, and the longest step along them; r: what is left of the
    momentum; refined: whether rounding counts; of the predictor only the length does."""
    offset(b, g, k, w, weight)
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            y.rhs[j] = r[j]
    push(b, g, k, w.z, y.rhs)
    solve(b, g, s, y, k, shift, refined)
    return follow_rows(b, g, k, w, weight, theta, y.D, y.change)


@lean_leaf
def _lessen(theta):
    return 0.0 if theta < 0.3 else 0.5 * theta


@lean
def _predict(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, w: InteriorWorkspace, weight, r, theta,
    shift, tries, shifts, tied, setting,
):  # fmt: skip
    """Factors the matrix and goes towards no gap: (sign of the determinant, longest step, theta,
    shift, tries), with less of theta and more mass where the path folds. Sign 0: there is none."""
    low, high = g.positions[k], g.positions[k + 1]
    while True:
        symmetric = np.int64(theta == 0.0 and not tied)
        respond(b, g, k, w, weight, theta, y.D)
        assemble(b, g, s, y, k, shift, symmetric)
        sign = sparse.factor(s, low, high, symmetric)
        setting[Setting.FACTORIZATIONS] += 1
        step = 0.0
        if sign > 0.0 or (theta == 0.0 and sign != 0.0):
            step = _direction(b, g, s, y, k, w, weight, r, theta, shift, np.int64(0))
            step = min(1.0, step)
            if theta == 0.0 or shifts == 0.0 or step >= FOLDED_STEP or tries >= shifts:
                break
        if theta == 0.0:
            break
        tries += 1
        if tries <= shifts and shift < MOST_SHIFT:
            shift = max(1.0, 4.0 * shift)
        else:
            theta = _lessen(theta)
    return sign, step, theta, shift, tries


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


@stage("float64(intp, int64, float64, int64, float64)")
def follow_path(address, k, load, number, best):
    """Best residual so far, after attempt `number` on island k; the best iterate is in best_f and
    best_v of the interior point. NEAR_ATTEMPT begins at f and v of Newton's method. address: of a
    packed workspace."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    law, facets = request.setting[Setting.LAW], request.setting[Setting.FACETS]
    deadline, r = request.setting[Setting.DEADLINE], w.r
    near = number == NEAR_ATTEMPT
    size, tau, hold, limit, lift, shifts, full, stuck = BEGIN_NEAR if near else ATTEMPTS[number]
    weight = work.weight
    low, high = g.positions[k], g.positions[k + 1]
    tied = classify(b, g, k, law, w, weight) or g.size[Size.STAR] == 1
    if near:
        copy_island(g, s, k, work.f, work.v, w.f, w.v)
        speeds(b, g, k, w.v, w.u)
        begin_near(b, g, k, w, weight, size * load)
    else:
        begin(b, g, k, w, weight, size * load)
        for p in range(low, high):
            node = s.order[p]
            for j in range(s.start[node], s.start[node + 1]):
                w.v[j] = request.v_free[j]
        speeds(b, g, k, w.v, w.u)
    last, kept, begun = -FINISH_EVERY, 0.0, full
    small = is_small(g, k)
    for turn in range(int(limit)):
        gap = measure_gap(b, g, k, w, weight, 0.0)
        find_rest(b, g, k, w, weight)
        unbalanced(b, g, s, k, w.v, w.f, y.left, r)
        residual, best = _look(b, g, s, k, law, facets, w, work, load, r, best)
        if residual <= (FINISHABLE_SMALL if small else FINISHABLE) and turn - last >= FINISH_EVERY:
            last = turn
            copy_island(g, s, k, w.f, w.v, work.f, work.v)
            eps = FINISH_EPS if small else min(FINISH_EPS, max(LEAST_EPS, KICK * residual))
            found = refine(
                address, k, load, 1, eps, FINISH_STEPS, FINISH_PATIENCE, contentment(g, k), np.inf
            )
            if found < best:
                best = found
                copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
            if best <= SOLVED:
                break
        theta, shift, tries = begun, kept, 0
        while True:
            scale_cones(b, g, k, w, weight)
            sign, step, theta, shift, tries = _predict(
                b, g, s, y, k, w, weight, r, theta, shift, tries, shifts, tied, request.setting
            )
            if sign == 0.0:
                break
            ahead = measure_gap(b, g, k, w, weight, step)
            centring = min(1.0, max(1e-2, (ahead / gap) ** 3)) if gap > 0.0 else 0.0
            if theta < full or shift > 0.0:
                centring = max(centring, hold)
            aim(b, g, k, w, weight, centring * gap)
            refined = np.int64(gap <= UNREFINED_GAP * load * load)
            step = _direction(b, g, s, y, k, w, weight, r, theta, shift, refined)
            step = min(1.0, tau * step)
            if step >= stuck or theta == 0.0:
                break
            theta = _lessen(theta)
        kept = 0.25 * shift if shift > 1.0 and theta > 0.0 else 0.0
        # A fold lasts: every other iteration begins with what the one before it came to.
        begun = theta if begun == full and not small else full
        if sign == 0.0 or ticks() > deadline:
            break
        if not (step >= LEAST_STEP and step < np.inf):
            break
        for p in range(low, high):
            node = s.order[p]
            for j in range(s.start[node], s.start[node + 1]):
                w.v[j] += step * y.x[j]
        advance(b, g, k, w, step)
        speeds(b, g, k, w.v, w.u)
        if lift > 0.0:
            lift_slacks(g, k, w, measure_gap(b, g, k, w, weight, 0.0))
    return best


follow_attempt = follow_path.external
