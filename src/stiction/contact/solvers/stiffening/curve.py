"""Rows that are stiffened: from impulses that are nearly right to the answer, mode by mode.

Where many rows are redundant and contradict each other by little, as those of bricks that lean on
each other do, which corner bears and which lets go is decided by a ten-millionth of the load's
speed; but what the others bear changes by as much as they bear. Newton's method (`proximal/`),
which takes all modes from f - u / w at once, goes round there, and the interior point's path turns
too sharply. So the impulses q at hand are taken for those of springs at rest, which grow stiffer.
With the stiffness s, which differs a little from row to row, and w the inverse inertia of a row,

    theta = q - s u / w,   f = theta where a row holds, theta taken into its cone where it does not

and the momentum balance M (v - v0) = h f_applied + A' f, v is a curve v(s). At s = 0 it is known:
f = q. For s to infinity u goes to zero where rows hold, and Coulomb's law holds: the answer. In
between, as long as no mode changes, the curve is smooth. Each iteration factors the matrix

    H = M + sum of a a' s / w over rows that hold, and what sliding rows add (`proximal/`)

once, goes back to the curve by Newton's method, and then along its tangent dv / dlog(s) to where
the first row comes to the edge of its mode: a ratio test, as in pivoting. That row alone changes
its mode. As in Lemke's method the curve may turn there: while the determinant of H is positive, s
grows, while it is negative, s falls, so that no fold is taken back. The matrix is kept for
corrections and for shorter steps.

Once s is LARGEST, what is left is of the order of 1 / s; the impulses found take the place of q
(a proximal step), and s begins again from less.

What each iteration keeps true: the modes are those of theta up to EDGE, the momentum balance up to
OFF_CURVE. How it fails: factorizations or time run out, or a step becomes too short where several
rows come to their edges at once; the best iterate is kept, and its residual returned.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import ROWS, Blocks, Head, Kind
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.iterate import copy_island, copy_vector
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
    System,
    unpack_interior,
    unpack_newton,
    unpack_problem,
)
from stiction.contact.solvers.interior_point.columns import KEPT_F
from stiction.contact.solvers.proximal.laws import residual_of
from stiction.contact.solvers.stiffening.springs import (
    NO_EVENT,
    change_mode,
    choose_anew,
    draw_springs,
    find_event,
    find_impulses,
    measure_margins,
    move,
    respond,
)
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.stage import stage

FIRST, FIRST_OFF, AGAIN, LARGEST = 10.0, 1e-3, 1e5, 3e8
"""Stiffness over a row's own inertia at the start, at most, and what the impulses at hand may be
off by there, over the load; after a proximal step; and at which one is taken: beyond, rounding
counts in the impulses."""

PROXIMAL_STEPS = 4
"""Proximal steps, at most."""

EDGE = 1e-7
"""Impulse over the load, by energy, by which a row may pass the edge of its mode."""

AT_EDGE = 1e-5
"""The same of the row that changes its mode, on either side: its impulse jumps by as much."""

BACK_ON_CURVE, OFF_CURVE = 1e-7, 1e-4
"""Momentum over the load, by energy, that is left where corrections end, and at most."""

CORRECTIONS, SHORTER = 3, 12
"""Newton's steps with one matrix, and steps along one tangent, at most."""

LONGEST, SHORTEST_LIMIT = 9.0, 0.05
"""Growth of s in a step, over itself, at most; and the least that this is brought down to where
tangents lead off the curve."""

MOST_FALL = 0.7
"""Of s, in a step back."""

CUT = 0.3
"""Share of a step that is tried after one that led off the curve."""

SECANTS = 6
"""Steps that are shortened to where a row comes to its edge, before they are cut."""

MOST_NEWTON = 12
"""Matrices for Newton's steps back to the curve, at most: where a slip turns round sharply these
have to be short."""


@lean
def _place(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, work: NewtonWorkspace,
    w: InteriorWorkspace, stiff, load,
):  # fmt: skip
    """Theta and impulses at the velocity and the speeds at hand; what they leave of the momentum,
    in y.rhs, and its size over the load."""
    find_impulses(b, g, k, work, w, stiff)
    unbalanced(b, g, s, k, work.v, work.f, y.left, y.rhs)
    return imbalance(b, g, s, k, y.rhs) / load


@lean
def _note(g: Graph, s: BlockMatrix, k, work: NewtonWorkspace, w: InteriorWorkspace, back):
    """Notes the velocity and the speeds at hand; or goes back to those that were noted."""
    if back:
        copy_vector(g, s, k, w.kept_v, work.v)
    else:
        copy_vector(g, s, k, work.v, w.kept_v)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for r in range(ROWS):
            if back:
                work.u[i, r] = w.path[i, KEPT_F + r]
            else:
                w.path[i, KEPT_F + r] = work.u[i, r]


@lean
def _come_back(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, work: NewtonWorkspace,
    w: InteriorWorkspace, stiff, load, off, enough,
):  # fmt: skip
    """(momentum that is left over the load, whether a step had to be shortened) after Newton's
    steps with the matrix at hand, from where it is `off`. What rounding leaves of one step the next
    one mends: refined, they take twice as long, and no fewer factorizations follow."""
    for _ in range(CORRECTIONS):
        if off <= enough:
            break
        solve(b, g, s, y, k, np.int64(0))
        share, done = 1.0, False
        move(b, g, s, k, work, y.x, y.change, share)
        while True:
            found = _place(b, g, s, y, k, work, w, stiff, load)
            if found < (1.0 - 0.5 * share) * off:
                break
            if share < 0.05:
                done = True
                break
            move(b, g, s, k, work, y.x, y.change, (CUT - 1.0) * share)
            share *= CUT
        if done:
            move(b, g, s, k, work, y.x, y.change, -share)
            return _place(b, g, s, y, k, work, w, stiff, load), True
        off = found
        if share < 1.0:
            return off, True
    return off, False


@lean
def _find_tangent(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, work: NewtonWorkspace,
    w: InteriorWorkspace,
):  # fmt: skip
    """tangent_v := dv / dlog(s), and w.u := the speeds along it."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows = b.head[i, Head.ROWS]
        for r in range(rows):
            total = 0.0
            if b.head[i, Head.KIND] != Kind.SOFT:
                for c in range(rows):
                    total -= y.D[i, ROWS * r + c] * work.u[i, c]
            y.pull[i, r] = total
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            y.rhs[j] = 0.0
    push(b, g, k, y.pull, y.rhs)
    solve(b, g, s, y, k, np.int64(0))
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for r in range(ROWS):
            w.u[i, r] = y.change[i, r]
    copy_vector(g, s, k, y.x, w.tangent_v)


@lean
def _find_passed(g: Graph, k, before, after, step, first, unit):
    """(share of the step, block, unit) at which the first unit passed its edge, (first, unit) by
    AT_EDGE, any other by EDGE; block -1 if none has."""
    least, passed, which = NO_EVENT, -1, 0
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for c in range(ROWS - 1):
            then, now = before[i, c], after[i, c]
            if now >= -(AT_EDGE if i == first and c == unit else EDGE):
                continue
            if then <= EDGE and now >= then - EDGE:  # it was there, and went no further
                continue
            inside = max(then, 0.0)
            share = step * inside / (inside - now)
            if share < least:
                least, passed, which = share, i, c
    return least, passed, which


@lean
def _stride(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, work: NewtonWorkspace,
    w: InteriorWorkspace, stiff, sign, load, longest,
):  # fmt: skip
    """(stiffness, block, unit, tries) after a step along the tangent to the first edge, with the
    matrix at hand; block -1 where none was met; stiffness 0: no step stays on the curve."""
    margin, after = work.g, y.pull
    _note(g, s, k, work, w, np.int64(0))
    measure_margins(b, g, k, work, w.z, load, margin)
    most = longest if sign > 0.0 else min(longest, MOST_FALL)
    step, first, unit = find_event(b, g, k, work, w, margin, stiff, sign, load, most)
    for turn in range(SHORTER):
        _note(g, s, k, work, w, np.int64(1))
        if first >= 0 and step < 1e-14:
            _place(b, g, s, y, k, work, w, stiff, load)
            return stiff, first, unit, turn
        then = stiff * (1.0 + sign * step)
        # v is linear in 1 / s where no row slides, so that theta is in s.
        move(b, g, s, k, work, w.tangent_v, w.u, 1.0 - stiff / then)
        off = _place(b, g, s, y, k, work, w, then, load)
        if off < 1.0:
            off, _ = _come_back(b, g, s, y, k, work, w, then, load, off, BACK_ON_CURVE)
        if not off <= OFF_CURVE:
            step, first = CUT * step, -1
            continue
        measure_margins(b, g, k, work, w.z, load, after)
        share, passed, which = _find_passed(g, k, margin, after, step, first, unit)
        if passed < 0:
            if first >= 0 and after[first, unit] > AT_EDGE:
                first = -1
            return then, first, unit, turn
        if turn >= SECANTS:
            step, first = CUT * step, -1
        else:
            step, first, unit = share, passed, which
    _note(g, s, k, work, w, np.int64(1))
    return 0.0, -1, 0, SHORTER


@lean
def _keep_springs(g: Graph, k, f, q):
    """q := the impulses f of island k."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for r in range(ROWS):
            q[i, r] = f[i, r]


@stage("float64(intp, int64, float64, float64, float64, int64)", eager=False)
def stiffen_island(address, k, load, content, least, limit):
    """Residual of the best iterate, which replaces the impulses f and the velocity v of island k
    if it is better than their residual, `least`. content: residual at which it ends; limit:
    factorizations at most; address: of a packed workspace."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    setting = request.setting
    law, facets = setting[Setting.LAW], setting[Setting.FACETS]
    copy_island(g, s, k, work.f, work.v, work.best_f, work.best_v)
    _keep_springs(g, k, work.f, w.f)
    best, longest, rounds, newton = least, LONGEST, 0, 0
    stiff = min(FIRST, FIRST_OFF / least)
    first = setting[Setting.FACTORIZATIONS]
    draw_springs(g, k, w)
    speeds(b, g, k, work.v, work.u)
    choose_anew(b, g, k, work, w, stiff)
    while setting[Setting.FACTORIZATIONS] - first < limit:
        off = _place(b, g, s, y, k, work, w, stiff, load)
        slides = respond(b, g, k, work, w, stiff, y.D)
        setting[Setting.FACTORIZATIONS] += 1
        sign = factor_system(b, g, s, y, k, np.int64(not slides))
        if sign == 0.0 or not off < np.inf:
            break
        found, short = _come_back(b, g, s, y, k, work, w, stiff, load, off, 0.01 * BACK_ON_CURVE)
        if ticks() > setting[Setting.DEADLINE]:
            break
        if short and newton < MOST_NEWTON and 10.0 * BACK_ON_CURVE < found < 0.999 * off:
            newton += 1
            continue
        newton = 0
        residual = residual_of(b, g, k, law, facets, work.u, work.f, work.weight, load)
        residual = max(residual, found)
        if residual < best:
            best = residual
            copy_island(g, s, k, work.f, work.v, work.best_f, work.best_v)
        if best <= content:
            break
        if stiff >= LARGEST:
            rounds += 1
            if rounds == PROXIMAL_STEPS:
                break
            stiff = AGAIN
            _keep_springs(g, k, work.f, w.f)
            choose_anew(b, g, k, work, w, stiff)
            continue
        _find_tangent(b, g, s, y, k, work, w)
        sign = 1.0 if sign > 0.0 else -1.0
        then, block, unit, tries = _stride(b, g, s, y, k, work, w, stiff, sign, load, longest)
        if then == 0.0:
            break
        stiff = then
        if tries > 2:
            longest = max(SHORTEST_LIMIT, 0.5 * longest)
        elif block < 0:
            longest = min(LONGEST, 2.0 * longest)
        if block >= 0:
            change_mode(b, block, unit, work, w.z)
    copy_island(g, s, k, work.best_f, work.best_v, work.f, work.v)
    return best


stiffen = stiffen_island.external
