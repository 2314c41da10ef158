"""The interior point's path followed through its folds, by its arclength.

Coulomb's law is not monotone, so that the path x . y = gap e may turn back: the gap has to grow for
a while before it can fall to zero, as Lemke's artificial variable does between two pivots. Methods
that let the gap fall only (`iteration.py`) end at such a fold. Here the path is a curve like any
other. With z = (v, x, y) and the start z_1, its points are

    F(z) = gap F(z_1),   F = (momentum, y - B (u + mu |u_t| e_n), x . y / w e)

from gap = 1, where the start lies on it, to gap = 0, the answer. Each iteration factors the matrix
of F once and solves twice:

    tangent      dz/dgap; the gap falls along it while the determinant is positive and grows while
                 it is negative, so that a fold is passed and never taken back
    correction   Newton's method towards the path, of which the part along the tangent is taken off
                 (in relative changes of x and y): it comes back to the path, not to a gap

A step goes along the tangent until some x or y would have changed by all it has; if that leads too
far from the path, corrections follow, and where these do not come back, a shorter step does.
|u_t| is rounded off by `smooth` of what a speed is on the path: else the tangent would jump where a
slip turns round, and steps become endlessly short.

What each point keeps: x and y inside, momentum and y = .. as far as steps were whole. How it fails:
factorizations or time run out, or strides become too short, mostly where two branches of the path
nearly touch; then `TURNS` has another path, rounded off and begun otherwise; the first begins near
the best iterate, on the path nearest to it. Grains in rows and
layers, which land all at once, and light bodies under heavy ones have paths with a hundred folds;
but not from everywhere. Past those of `TURNS` paths are drawn: each begins every contact elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.problem.blocks import ROWS, Blocks
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.iterate import add_vector, copy_island, copy_vector
from stiction.contact.solvers.blocks.system import speeds, unbalanced
from stiction.contact.solvers.blocks.workspace import (
    InteriorWorkspace,
    Setting,
    System,
    unpack_interior,
    unpack_newton,
    unpack_problem,
)
from stiction.contact.solvers.interior_point.begin import begin, begin_on_path, fraction, scatter
from stiction.contact.solvers.interior_point.columns import (
    DF,
    DP,
    DQ,
    DX,
    DY,
    GOAL,
    GOAL_P,
    GOAL_Q,
    KEPT_F,
    KEPT_P,
    KEPT_Q,
    KEPT_X,
    KEPT_Y,
    RHO,
    RHO_START,
    TANGENT,
    P,
    Q,
    X,
    Y,
)
from stiction.contact.solvers.interior_point.iteration import (
    RESUMED_ATTEMPT,
    UNREFINED_GAP,
    direct,
    factor,
    follow_attempt,
)
from stiction.contact.solvers.interior_point.rows import (
    advance,
    find_longest_step,
    find_rest,
    scale_cones,
)
from stiction.contact.solvers.interior_point.units import (
    Unit,
    acts,
    classify,
    intervals_of,
    reach_of,
)
from stiction.contact.solvers.proximal.iteration import SOLVED
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.stage import stage


class Turn(NamedTuple):
    """How one path is begun and followed."""

    size: float
    """Start, over the load."""
    smooth: float
    """Speed by which |u_t| is rounded off, over what a speed is on the path."""
    limit: float
    """Factorizations at most."""
    near: float
    """1 if it begins near the best iterate, 0 if at nothing."""


DIRECTIONS = DF + ROWS - DX
"""Columns of a direction: they stand together."""

TURNS = (
    Turn(0.1, 1e-3, 80.0, 1.0), Turn(10.0, 1e-4, 200.0, 0.0), Turn(100.0, 1e-4, 200.0, 0.0),
    Turn(1.0, 0.003, 200.0, 0.0), Turn(3.0, 0.02, 200.0, 0.0), Turn(1e5, 1e-3, 200.0, 0.0),
)  # fmt: skip
"""In turn. The first begins at the point of the path for which what is known was all but right, and
has a third as far to go: of heaps of 216 spheres it solves as many as the second, in 30
factorizations instead of 74; of 77 it solves 55 in 80 factorizations and 6 more in 40 more, and the
second most of what it leaves. Of 177 islands of falling spheres, boxes, capsules and a chain that
attempts of `iteration.py` had left, the second solves 172 in a median of 43 to 56 factorizations,
the third 173 in 46 to 62; begun at nothing, but nearer to the cones' edges, it has more folds: the
fourth solves 160. Of what
one of them leaves, the others solve half or more. Begun far inside of the cones the
path has fewer folds where masses are a million to one, and seldom ends where they are not."""

NEAR_TURNS = 1
"""As many of them begin near the best iterate: the first ones."""

LARGE_TURNS = 5
"""As many of them do islands take that are not small."""

SIZES, SMOOTHS, SPREADS = (0.3, 3e5), (3e-5, 0.01), (1.0, 50.0)
"""Between which a path that is drawn has its size, its smoothness, both evenly by their logarithms,
and the factor by which contacts begin elsewhere. Of three drops of a hundred thousand and a million
to one that had no answer such paths solve one in 28, one in 3 and three in 4; of a heap of bunnies
one in 6, of a castle of sand one in 40."""

DRAWN_LIMIT = 300.0
"""Factorizations of a path that is drawn, at most."""

FIRST_STRIDE, LONGEST_STRIDE, LEAST_STRIDE = 0.7, 0.95, 1e-4
"""Share of the way along the tangent to where an x or y has changed by all it has."""

LENGTHEN, SHORTEN = 1.6, 0.4
"""What a stride is multiplied by after one that came back to the path, and one that did not."""

MOST_GROWTH = 3.0
"""Times that an x, a y or the gap may grow in a stride."""

ON_PATH, OFF_PATH = 10.0, 30.0
"""Distance from the path, x . y over what it is there: near enough for the next stride; too far for
corrections. Held ten times as close it takes a sixth more factorizations, and solves fewer."""

LOOSE = 0.01
"""Weight of y - B (u + ..) in that distance: it is met in the end whatever happens on the way."""

CORRECTIONS = 4
"""Of a stride, at most; each is to leave `CLOSER` of the distance at most."""

CLOSER = 0.8

SHARE_INSIDE = 0.9
"""Share of the way to the boundary that a stride or a correction goes at most."""

LEAST_FALL, LEAST_CORRECTED = 0.01, 0.05
"""Of the gap that a stride leaves at least, and a correction."""

HANDED_OVER, LEAST_HANDED = 1e-6, 1e-10
"""Gap over the load, or over the start's if that comes first, below which `iteration.py` is asked
to go on from there: folds are rare so far down; what is left to decide are contacts that neither
press nor slip, at which the tangent changes all the time."""

HANDED_AGAIN, HANDOVERS = 1e-2, 3
"""Where that comes to a fold after all, it is asked again at this share of the gap, so many times
in all."""


@lean_leaf
def _between(ends, share):
    """The number with that share of the way between two, by their logarithms."""
    return ends[0] * (ends[1] / ends[0]) ** share


@lean
def _choose(number):
    """(size, smooth, limit, near) of path `number`, as in `Turn`, and the factor by which contacts
    begin elsewhere."""
    if number < len(TURNS):
        size, smooth, limit, near = TURNS[number]
        return size, smooth, limit, near, 1.0
    size, smooth = _between(SIZES, fraction(number, -1)), _between(SMOOTHS, fraction(number, -2))
    return size, smooth, DRAWN_LIMIT, 0.0, _between(SPREADS, fraction(number, -3))


@lean_leaf
def is_near(number):
    """Whether path `number` begins near the best iterate."""
    return number < NEAR_TURNS


@lean_leaf
def _carry(back, here, i, at, kept, to):
    """kept[i, to] := here[i, at], or back again."""
    if back:
        here[i, at] = kept[i, to]
    else:
        kept[i, to] = here[i, at]


@lean
def _note_point(g: Graph, s: BlockMatrix, k, w: InteriorWorkspace, back):
    """Notes the point at hand; or goes back to the one that was noted."""
    st, path = w.state, w.path
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for r in range(ROWS):
            _carry(back, w.f, i, r, path, KEPT_F + r)
        for c in range(3):
            _carry(back, st, i, X + c, path, KEPT_X + c)
            _carry(back, st, i, Y + c, path, KEPT_Y + c)
            _carry(back, st, i, P + c, path, KEPT_P + c)
            _carry(back, st, i, Q + c, path, KEPT_Q + c)
    if back:
        copy_vector(g, s, k, w.kept_v, w.v)
    else:
        copy_vector(g, s, k, w.v, w.kept_v)


@lean
def _note_tangent(g: Graph, s: BlockMatrix, y: System, k, w: InteriorWorkspace):
    """tangent := the direction at hand."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for c in range(DIRECTIONS):
            w.path[i, TANGENT + c] = w.state[i, DX + c]
    copy_vector(g, s, k, y.x, w.tangent_v)


@lean
def _combine(g: Graph, s: BlockMatrix, y: System, k, w: InteriorWorkspace, kept, along):
    """direction := kept of it, and the tangent `along` times."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for c in range(DIRECTIONS):
            tangent = w.path[i, TANGENT + c]
            w.state[i, DX + c] = kept * w.state[i, DX + c] + along * tangent
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            y.x[j] = kept * y.x[j] + along * w.tangent_v[j]


@lean
def _aim_at(g: Graph, k, w: InteriorWorkspace, kept, target):
    """Goals := kept of what they are, and the complementarity `target`."""
    st = w.state
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for c in range(3):
            st[i, GOAL + c] *= kept
            st[i, GOAL_P + c] = kept * st[i, GOAL_P + c] + target
            st[i, GOAL_Q + c] = kept * st[i, GOAL_Q + c] + target
        st[i, GOAL] += target


@lean
def _measure(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight, target):
    """How far the point is from where x . y = target, over the target; RHO is the path's."""
    st = w.state
    far = 0.0
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        unit = w.unit[i, 0]
        if unit == Unit.CONE:
            x0, x1, x2 = st[i, X], st[i, X + 1], st[i, X + 2]
            y0, y1, y2 = st[i, Y], st[i, Y + 1], st[i, Y + 2]
            far = max(far, abs(x0 * y0 + x1 * y1 + x2 * y2 - target))
            far = max(far, max(abs(x0 * y1 + y0 * x1), abs(x0 * y2 + y0 * x2)))
            rest = st[i, RHO] ** 2 + st[i, RHO + 1] ** 2 + st[i, RHO + 2] ** 2
            far = max(far, LOOSE * np.sqrt((x0 * x0 + x1 * x1 + x2 * x2) * rest))
        elif unit == Unit.LINE:
            far = max(far, abs(st[i, X] * st[i, Y] - target))
            far = max(far, LOOSE * abs(st[i, X] * st[i, RHO]))
        first, last = intervals_of(b, w, i)
        for r in range(first, last):
            if first == 0 or acts(b, i, r, weight):
                c, reach = r - first, reach_of(b, w, i, r)
                far = max(far, abs(st[i, P + c] * (reach + w.f[i, r]) - target))
                far = max(far, abs(st[i, Q + c] * (reach - w.f[i, r]) - target))
                far = max(far, LOOSE * reach * abs(st[i, RHO + r]))
    return far / target


@lean
def _project(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight, gap):
    """Multiple of the tangent that takes its part off the direction, in relative changes of x, y,
    the slacks of intervals, and the gap."""
    st, path = w.state, w.path
    both, square = 0.0, 1.0 / (gap * gap)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        unit, t = w.unit[i, 0], TANGENT - DX
        if unit == Unit.CONE or unit == Unit.LINE:
            rows = 3 if unit == Unit.CONE else 1
            for half in range(2):
                at_x, at_d = (X, DX) if half == 0 else (Y, DY)
                inside = st[i, at_x]
                if unit == Unit.CONE:
                    inside -= np.sqrt(st[i, at_x + 1] ** 2 + st[i, at_x + 2] ** 2)
                scale = 1.0 / (inside * inside)
                for c in range(rows):
                    along = path[i, t + at_d + c]
                    both += scale * along * st[i, at_d + c]
                    square += scale * along * along
        first, last = intervals_of(b, w, i)
        for r in range(first, last):
            if first == 0 or acts(b, i, r, weight):
                c = r - first
                for half in range(2):
                    at_p, at_d = (P + c, DP + c) if half == 0 else (Q + c, DQ + c)
                    scale = 1.0 / (st[i, at_p] * st[i, at_p])
                    along = path[i, t + at_d]
                    both += scale * along * st[i, at_d]
                    square += scale * along * along
    return -both / square


@lean
def _place(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, w: InteriorWorkspace, weight, gap, rounding
):  # fmt: skip
    """Speeds, rest and momentum of the point at hand, less what they are on the path at this
    gap."""
    speeds(b, g, k, w.v, w.u)
    find_rest(b, g, k, w, weight, rounding)
    unbalanced(b, g, s, k, w.v, w.f, y.left, w.r)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for r in range(ROWS):
            w.state[i, RHO + r] += gap * w.path[i, RHO_START + r]
    add_vector(g, s, k, gap, w.r_start, w.r)


@lean
def _start(g: Graph, s: BlockMatrix, k, w: InteriorWorkspace):
    """Lets the path begin at the point at hand, whose rest and momentum have been found."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for r in range(ROWS):
            w.path[i, RHO_START + r] = -w.state[i, RHO + r]
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            w.r_start[j] = -w.r[j]


@lean
def _rest_along(g: Graph, k, w: InteriorWorkspace, weight, gap, rounding):
    """RHO := its derivative by the gap, along the path."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for r in range(ROWS):
            w.state[i, RHO + r] = w.path[i, RHO_START + r]
        if w.unit[i, 0] == Unit.CONE:
            square = rounding * rounding * max(weight[i, 0], weight[i, 1])
            slip = w.u[i, 1] * w.u[i, 1] + w.u[i, 2] * w.u[i, 2]
            w.state[i, RHO] += 0.5 * square / (gap * np.sqrt(slip + square))


@lean
def _head_on(
    address, b: Blocks, g: Graph, s: BlockMatrix, y: System, k, w: InteriorWorkspace, weight, gap,
    whole, rounding, refined,
):  # fmt: skip
    """Factors the matrix at the point at hand: (sign of the determinant, longest step along the
    tangent by the gap, longest step against it, change of the gap by the correction). The tangent
    is noted; the direction at hand is the correction. whole: x . y at gap one; refined: whether
    rounding counts."""
    scale_cones(b, g, k, w, weight)
    sign = factor(address, k, 1.0, np.int64(0))
    if sign == 0.0:
        return sign, 0.0, 0.0, 0.0
    _aim_at(g, k, w, 0.0, whole)
    _rest_along(g, k, w, weight, gap, rounding)
    ahead = direct(address, k, 1.0, refined, 0.0)
    _note_tangent(g, s, y, k, w)
    _combine(g, s, y, k, w, -1.0, 0.0)
    behind = find_longest_step(b, g, k, w, weight)
    _place(b, g, s, y, k, w, weight, gap, rounding)
    scale_cones(b, g, k, w, weight)
    _aim_at(g, k, w, 1.0, gap * whole)
    direct(address, k, 1.0, refined, 1.0)
    along = _project(b, g, k, w, weight, gap)
    _combine(g, s, y, k, w, 1.0, along)
    return sign, ahead, behind, along


@lean
def _go(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, w: InteriorWorkspace, weight, gap, change,
    least,
):  # fmt: skip
    """Goes along the direction at hand, inside of the boundary and not below `least` of the gap;
    the gap then."""
    step = min(1.0, SHARE_INSIDE * find_longest_step(b, g, k, w, weight))
    if gap + step * change < least * gap:
        step = min(step, -(1.0 - least) * gap / change)
    add_vector(g, s, k, step, y.x, w.v)
    advance(b, g, k, w, step)
    return gap + step * change


@stage("float64(intp, int64, float64, int64, float64, float64)", eager=False)
def follow_turns(address, k, load, number, best, most):
    """Best residual so far, after path `number` on island k, of TURNS or drawn, in `most`
    factorizations at most; the best iterate is in best_f and best_v of the interior point. address:
    of a packed workspace."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    setting, weight = request.setting, work.weight
    law, deadline = setting[Setting.LAW], setting[Setting.DEADLINE]
    size, smooth, limit, near, spread = _choose(number)
    limit = min(limit, most)
    classify(b, g, k, law, w, weight)
    if near > 0.0:
        copy_island(g, s, k, w.best_f, w.best_v, w.f, w.v)
        speeds(b, g, k, w.v, w.u)
        begin_on_path(b, g, k, w, weight, size * load)
    else:
        begin(b, g, k, w, weight, size * load)
        copy_vector(g, s, k, request.v_free, w.v)
    if spread > 1.0:
        scatter(g, k, w, number, spread)
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            w.r_start[j] = 0.0
    for at in range(g.members[k], g.members[k + 1]):
        for r in range(ROWS):
            w.path[g.member[at], RHO_START + r] = 0.0
    unit, whole = smooth * size * load, (size * load) ** 2
    gap, stride, handovers = 1.0, FIRST_STRIDE, 0
    handed = max(HANDED_OVER / (size * size), LEAST_HANDED)
    _place(b, g, s, y, k, w, weight, gap, unit)
    _start(g, s, k, w)
    _place(b, g, s, y, k, w, weight, gap, unit)
    first = setting[Setting.FACTORIZATIONS]
    correction = 0  # of this stride, so many; 0: the next one begins
    before, here = np.inf, gap
    while setting[Setting.FACTORIZATIONS] - first < limit and ticks() <= deadline:
        if correction == 0:
            _note_point(g, s, k, w, np.int64(0))
            here = gap
        refined = np.int64(gap * whole <= UNREFINED_GAP * load * load)
        sign, ahead, behind, change = _head_on(
            address, b, g, s, y, k, w, weight, gap, whole, unit * np.sqrt(gap), refined
        )
        if sign == 0.0:
            break
        least = LEAST_CORRECTED
        if correction == 0:
            if sign < 0.0:
                ahead, behind = behind, ahead
            reach = min(behind, MOST_GROWTH * ahead)
            along = -sign * stride * min(reach, gap if sign > 0.0 else MOST_GROWTH * gap)
            _combine(g, s, y, k, w, 1.0, along)
            change += along
            least, before = LEAST_FALL, np.inf
        gap = _go(b, g, s, y, k, w, weight, gap, change, least)
        _place(b, g, s, y, k, w, weight, gap, unit * np.sqrt(gap))
        far = _measure(b, g, k, w, weight, gap * whole)
        if not far < ON_PATH:
            correction += 1
            if correction > CORRECTIONS or not far < min(OFF_PATH, CLOSER * before):
                _note_point(g, s, k, w, np.int64(1))
                gap, stride, correction = here, SHORTEN * stride, 0
                if stride < LEAST_STRIDE:
                    break
                _place(b, g, s, y, k, w, weight, gap, unit * np.sqrt(gap))
            before = far
            continue
        correction, stride = 0, min(LONGEST_STRIDE, LENGTHEN * stride)
        if gap < handed:
            _note_point(g, s, k, w, np.int64(0))
            best = follow_attempt(address, k, load, np.int64(RESUMED_ATTEMPT), best)
            handed, handovers = HANDED_AGAIN * handed, handovers + 1
            if best <= SOLVED or handovers == HANDOVERS:
                break
            _note_point(g, s, k, w, np.int64(1))
            _place(b, g, s, y, k, w, weight, gap, unit * np.sqrt(gap))
    return best


follow_turn = follow_turns.external
