"""Newton's method on the contact laws in velocities, with proximal impulses: a step's first rung.

Unknown is the velocity v; every row's impulse follows from it. With u the speed along a row (less
its bound), w its inverse inertia, and f the impulse of the last iteration, a row that holds has

    f+ = f - u / (eps w)                     so that at rest, f+ = f, u is zero exactly

A row that separates has none, a sliding one mu f_n+ against the slip. The momentum balance
M (v - v0) = h f_applied + A' f+ is then a linear system in v (`system.py`) whose matrix is

    M + sum over holding rows of a a' / (eps w) + (mu / (eps w_n)) d n' where sliding along d

Modes are those of Alart and Curnier's functions (`newton.py`), the step of whose projection is
1/w: a contact presses if f - u/w > 0, sticks if the friction f - u/w stays in its disc. Without
sliding the matrix is symmetric and stays the same while the modes do: then an iteration costs a
triangular solve, and the impulses converge by a factor of eps times the spread of inertias each.

It is a local method, and needs a start: the last step's impulses, or an interior point's. Started
with no memory of the impulses (keep = 0) redundant rows share the load in one way only, whatever
came before: with new modes f begins at zero, and -u / (eps w) summed over iterations is the least
impulse, weighted by w, that does it. Where that lies outside a cone (faces with many contacts,
contacts that push against each other) the impulses must be built upon (keep = 1).

A small eps kicks impulses by u / eps and scatters modes that are not right yet; a large one
converges slowly. So it begins with what it is given, and falls (`EPS_FALL`) whenever the modes
stay and the residual does not fall tenfold.

What each iteration keeps true: the momentum balance, to rounding. How it can fail: the modes go
round, or a sliding system has no solution. The best iterate is kept, and its residual returned.

The law may be any of `grading.Law` but CONVEX: frictionless leaves rows 1.. out, no-slip holds rows
1 and 2 of a touching contact whatever the normal does, viscous friction is a row that gives.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind, is_gripped
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.newton import polygon_edge, project_polygon
from stiction.contact.solvers.system import (
    factor_system,
    imbalance,
    solve,
    speeds,
    unbalanced,
)
from stiction.contact.solvers.workspace import (
    NewtonWorkspace,
    Setting,
    System,
    unpack_newton,
    unpack_problem,
)
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.stage import stage

EXACT = 1e-13
"""Residual of impulses and speeds, relative to the load, that is rounding: what is to rest exactly
is refined so far."""

LEAST_EPS = 1e-9
"""Compliance of a row over its own inverse inertia, at least: below it the refined solve no longer
resolves the mass beside the rows."""

LARGE_EPS, EPS_FALL, SLOW_EPS_FALL = 5e-4, 1e-2, 0.1
"""Compliance to which a hundredth of it may follow where modes stay, and that share; and the share
where it begins larger, with modes that are not known yet."""

STALLED = 1e-11
"""Residual up to which an iteration with the same modes that leaves half of it is the last: contacts
contradict each other by as much, as those of a foot of which one lands. A fifth of what a humanoid
that sways had factored was for nothing."""

BALANCED = 1e-7
"""Residual of the laws below which the momentum's counts as well, where the iteration ends; above,
it says nothing."""

UNREFINED = 1e-3
"""Residual above which the solution with a new factor needs no refinement: its rounding is less
than what the next iteration changes."""

MAY_PRESS = 1e-6
"""Speed over the load, by energy, below which a contact that has separated may yet press."""

PRESSES = 1e-9
"""Impulse over the load, by energy, beyond which it does; below it is rounding, divided by eps."""

KEPT_MODE = 1e-8
"""Impulse over the load, by energy, by which the friction of a joint, of a spin or of rolling may
pass its limit, or fall short of it, and keep its mode; twice the residual if that is less. An
iteration with new modes is off by eps, and would tell what is at its limit to slide and to stick by
turns, with a factorization each. As the residual falls, modes come to be what they are."""

AT_LIMIT = 1e-5
"""Share of its limit that friction may lack, and yet be taken to slide as it did, when an island is
begun with the impulses of the last step: what has slid to where it stands still, or all but, has
no speed to tell by."""

TURNED = 0.3
"""Change of a slip's direction, or of how stiff it is across, over itself, beyond which the matrix
is another one; below, its factor is kept as long as the residual falls tenfold."""

CLOSING = 1e-13
"""Speed at which a contact closes, over the terms that it is the sum of, up to which that is their
rounding: of bodies that fall together, touching, and have nothing to do with each other."""

CALM = 1e-4
"""Speed over the load, by energy, below which a contact that bore no load is taken to press and to
stick where a step is begun AFRESH: of what is held by more contacts than it takes,
some may go without a load, and once they do the others are loaded to the edges of their cones. With
all of them the least impulse that does it lies well inside. What does part is seen at once."""

BEGINS = 1e-300
"""Impulse of such a contact."""

MODES, IMPULSES, ONE_BY_ONE, AFRESH = 0, 1, 2, 3
"""What Newton's method takes of the impulses that it begins with: the modes alone; themselves, to
build upon; the same with modes that change one block at a time, the worst one's; and the modes, but
that all which touches presses (`CALM`). All at once
they may go round for ever where a few are wrong; one by one takes as many iterations as are."""

SEPARATE, STICK, SLIDE, SLIDE_BACK = 0, 1, 2, 3
"""Modes of a unit: no impulse; holds; slides at its limit; of an interval, at its lower limit."""


@lean
def _runs_in(b: Blocks, i, u, v):
    """Whether contact i closes at its speed u (< 0), rather than that rounding of the velocity v
    makes it look so."""
    width, c0, a0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN], b.head[i, Head.VALUE]
    parts = 0.0
    for c in range(width):
        parts += abs(b.value[a0 + c] * v[b.column[c0 + c]])
    return -u > CLOSING * parts


@lean
def load_of(b: Blocks, g: Graph, k, law, u, weight, v):
    """How hard the free motion, v with speeds u along the rows, runs into the rows of island k, by
    energy; zero if nothing needs to act."""
    load, acts = 0.0, g.size[Size.STAR] == 1
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        kind, rows = b.head[i, Head.KIND], b.head[i, Head.ROWS]
        if kind == Kind.CONTACT:
            if u[i, 0] < 0.0 and weight[i, 0] > 0.0:
                load = max(load, -u[i, 0] / np.sqrt(weight[i, 0]))
                acts = acts or _runs_in(b, i, u[i, 0], v)
            if law == Law.FRICTIONLESS or rows < 3 or weight[i, 1] == 0.0:
                continue
            sticky = law != Law.COULOMB and b.data[i, Datum.BOUND] >= 0.0
            if u[i, 0] < 0.0 or sticky:
                slip = np.sqrt(u[i, 1] * u[i, 1] + u[i, 2] * u[i, 2])
                load = max(load, slip / np.sqrt(weight[i, 1]))
                acts = acts or (sticky and slip > 0.0)
        elif kind != Kind.SOFT:
            for r in range(3 if is_gripped(b, i) else 1):
                if weight[i, r] > 0.0 and u[i, r] != 0.0:
                    load, acts = max(load, abs(u[i, r]) / np.sqrt(weight[i, r])), True
    return load if acts else 0.0


@lean_leaf
def _disc_mode(facets, y0, y1, radius, w, eps, shape, i):
    """Mode of a disc whose projected impulse is y, and the `shape` of a sliding one."""
    if facets > 0:
        _, _, place = project_polygon(y0, y1, radius, 0.0, facets)
        if place < 0:
            return STICK
        half = np.pi / facets
        angle = polygon_edge(y0, y1, 0.0, facets)
        if place == 0:
            angle += half
            shape[i, 2] = np.cos(half)
            shape[i, 3] = 1.0 / (eps * w)
        else:
            angle += 0.0 if place == 1 else 2.0 * half
            shape[i, 2] = 1.0
            shape[i, 3] = 0.0
        shape[i, 0] = np.cos(angle)
        shape[i, 1] = np.sin(angle)
        return SLIDE
    size = np.sqrt(y0 * y0 + y1 * y1)
    if size <= radius:
        return STICK
    shape[i, 0] = y0 / size
    shape[i, 1] = y1 / size
    shape[i, 2] = 1.0
    # Across the slip the impulse turns with it: f = -(R / |slip|) u; |slip| = (|y| - R) w.
    shape[i, 3] = radius / (w * (size - radius) + radius * eps * w)
    return SLIDE


@lean_leaf
def _interval_mode(y, radius, before, slack):
    """Mode of an interval whose projected impulse is y; the one before within `slack`."""
    edge = radius + slack if before == STICK else radius
    if y > edge or (before == SLIDE and y > radius - slack):
        return SLIDE
    if y < -edge or (before == SLIDE_BACK and -y > radius - slack):
        return SLIDE_BACK
    return STICK


@lean
def find_modes(
    b: Blocks, g: Graph, k, law, facets, work: NewtonWorkspace, eps, near, edge, tied, share, calm
):  # fmt: skip
    """Modes of all units of island k from f - u / w; (whether any changed, whether any slides,
    whether one that slid already has `TURNED`).

    A contact that has separated, and stands still to `near`, neither presses nor parts but by
    rounding: it presses if the impulse that it would have had by now exceeds `edge`. Intervals
    keep their modes within `tied` of their limits. What bore no load presses, and sticks, if it is
    slower than `calm`. All by energy; near = tied = 0 where modes are not known yet. share: of its
    limit with which friction slides.
    """
    head, data = b.head, b.data
    f, u, weight, shape, mode = work.f, work.u, work.weight, work.shape, work.mode
    changed, slides, turned = False, False, False
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        kind, rows = head[i, Head.KIND], head[i, Head.ROWS]
        if weight[i, 0] == 0.0:  # a row that moves nothing
            for r in range(max(1, rows - 1)):
                mode[i, r] = SEPARATE
            continue
        if kind != Kind.CONTACT:
            new = STICK
            if kind == Kind.BOX:
                y, limit = f[i, 0] - u[i, 0] / weight[i, 0], share * data[i, Datum.LIMIT]
                new = SEPARATE  # without friction, as in the problem that takes overlap back
                if limit > 0.0:
                    new = _interval_mode(y, limit, mode[i, 0], tied / np.sqrt(weight[i, 0]))
            changed |= new != mode[i, 0]
            mode[i, 0] = new
            if is_gripped(b, i):
                new = STICK if weight[i, 1] > 0.0 else SEPARATE
                changed |= new != mode[i, 1]
                mode[i, 1] = new
            continue
        theta = f[i, 0] - u[i, 0] / weight[i, 0]
        length = np.sqrt(weight[i, 0])
        if mode[i, 0] == SEPARATE and abs(u[i, 0]) < near * length:
            theta = shape[i, 4] if shape[i, 4] * length > edge else 0.0
        elif f[i, 0] * length <= edge and abs(u[i, 0]) < calm * length:
            theta = BEGINS
        new = STICK if theta > 0.0 else SEPARATE
        changed |= new != mode[i, 0]
        mode[i, 0] = new
        if rows < 3:
            continue
        presses, new = new == STICK, SEPARATE
        if law == Law.COULOMB:
            if theta == BEGINS and data[i, Datum.SLIDE] > 0.0 and weight[i, 1] > 0.0:
                new = STICK
            elif presses and data[i, Datum.SLIDE] > 0.0 and weight[i, 1] > 0.0:
                y0 = f[i, 1] - u[i, 1] / weight[i, 1]
                y1 = f[i, 2] - u[i, 2] / weight[i, 1]
                radius = share * data[i, Datum.SLIDE] * theta
                d0, d1, stiff = shape[i, 0], shape[i, 1], shape[i, 3]
                new = _disc_mode(facets, y0, y1, radius, weight[i, 1], eps, shape, i)
                if new == SLIDE:
                    slides = True
                    turned |= abs(shape[i, 3] - stiff) > TURNED * stiff
                    turned |= abs(shape[i, 0] - d0) + abs(shape[i, 1] - d1) > TURNED
        elif data[i, Datum.BOUND] >= 0.0 and (
            law == Law.VISCOUS or (law == Law.NO_SLIP and data[i, Datum.SLIDE] > 0.0)
        ):
            new = STICK
        changed |= new != mode[i, 1]
        mode[i, 1] = new
        for r in range(3, rows):
            new = SEPARATE
            rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
            if law == Law.COULOMB and presses and rough > 0.0 and weight[i, r] > 0.0:
                y, limit = f[i, r] - u[i, r] / weight[i, r], share * rough * theta
                new = _interval_mode(y, limit, mode[i, r - 1], tied / np.sqrt(weight[i, r]))
                slides |= new != STICK
            changed |= new != mode[i, r - 1]
            mode[i, r - 1] = new
    return changed, slides, turned


@lean
def linearize(b: Blocks, g: Graph, k, law, work: NewtonWorkspace, D, memory, eps):
    """g := the impulses that the modes give at the speeds u, after the impulses f, or after none
    if memory is 0; D := how they fall with the speeds."""
    head, data = b.head, b.data
    f, out, u = work.f, work.g, work.u
    weight, shape, mode = work.weight, work.shape, work.mode
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows = head[i, Head.ROWS]
        for c in range(ROWS * rows):
            D[i, c] = 0.0
        if head[i, Head.KIND] == Kind.SOFT:
            D[i, 0] = data[i, Datum.DRAG]
            out[i, 0] = -data[i, Datum.DRAG] * u[i, 0]
            continue
        stiff = 0.0
        if mode[i, 0] == STICK:
            stiff = 1.0 / (eps * weight[i, 0])
            out[i, 0] = memory * f[i, 0] - u[i, 0] * stiff
        elif mode[i, 0] == SEPARATE:
            out[i, 0] = 0.0
        else:
            out[i, 0] = data[i, Datum.LIMIT] if mode[i, 0] == SLIDE else -data[i, Datum.LIMIT]
        D[i, 0] = stiff
        if rows < 3:
            continue
        out[i, 1] = out[i, 2] = 0.0
        if mode[i, 1] == STICK:
            hold = data[i, Datum.DRAG] if law == Law.VISCOUS else 1.0 / (eps * weight[i, 1])
            before = 0.0 if law == Law.VISCOUS else memory
            for r in range(1, 3):
                out[i, r] = before * f[i, r] - hold * u[i, r]
                D[i, (ROWS + 1) * r] = hold
        elif mode[i, 1] == SLIDE:
            d0, d1, turn = shape[i, 0], shape[i, 1], shape[i, 3]
            rough = data[i, Datum.SLIDE] * shape[i, 2]
            held = memory * eps * weight[i, 1] * (d0 * f[i, 2] - d1 * f[i, 1])
            across = turn * (held - (d0 * u[i, 2] - d1 * u[i, 1]))
            out[i, 1] = rough * out[i, 0] * d0 - across * d1
            out[i, 2] = rough * out[i, 0] * d1 + across * d0
            D[i, ROWS] = rough * stiff * d0
            D[i, 2 * ROWS] = rough * stiff * d1
            D[i, ROWS + 1] = turn * d1 * d1
            D[i, ROWS + 2] = D[i, 2 * ROWS + 1] = -turn * d0 * d1
            D[i, 2 * ROWS + 2] = turn * d0 * d0
        for r in range(3, rows):
            rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
            out[i, r] = 0.0
            if mode[i, r - 1] == STICK:
                hold = 1.0 / (eps * weight[i, r])
                out[i, r] = memory * f[i, r] - u[i, r] * hold
                D[i, (ROWS + 1) * r] = hold
            elif mode[i, r - 1] != SEPARATE:
                edge = rough if mode[i, r - 1] == SLIDE else -rough
                out[i, r] = edge * out[i, 0]
                D[i, ROWS * r] = edge * stiff


@lean_leaf
def _residual(b: Blocks, i, law, facets, u, f, weight, load):
    """Largest entry of Alart and Curnier's functions of block i, relative to the load."""
    head, data = b.head, b.data
    kind, rows = head[i, Head.KIND], head[i, Head.ROWS]
    if weight[i, 0] <= 0.0 or kind == Kind.SOFT:
        return 0.0
    length = np.sqrt(weight[i, 0])
    x, y = f[i, 0] * length / load, u[i, 0] / (length * load)
    if kind == Kind.HOLD:
        off = abs(y)
    elif kind == Kind.BOX:
        edge = data[i, Datum.LIMIT] * length / load
        off = abs(x - min(max(x - y, -edge), edge))
    else:
        off = abs(min(x, y))
    if kind == Kind.CONTACT and rows > 2 and weight[i, 1] > 0.0:
        across = np.sqrt(weight[i, 1])
        s0, s1 = u[i, 1] / (across * load), u[i, 2] / (across * load)
        if law == Law.NO_SLIP and data[i, Datum.BOUND] >= 0.0 and data[i, Datum.SLIDE] > 0.0:
            off = max(off, np.sqrt(s0 * s0 + s1 * s1))
        elif law == Law.COULOMB and data[i, Datum.SLIDE] > 0.0:
            p0, p1 = f[i, 1] * across / load, f[i, 2] * across / load
            radius = data[i, Datum.SLIDE] * x * across / length if x > 0.0 else 0.0
            y0, y1 = p0 - s0, p1 - s1
            if facets > 0:
                q0, q1, _ = project_polygon(y0, y1, radius, 0.0, facets)
            else:
                size = np.sqrt(y0 * y0 + y1 * y1)
                shrink = 1.0 if size <= radius else radius / size
                q0, q1 = y0 * shrink, y1 * shrink
            off = max(off, max(abs(p0 - q0), abs(p1 - q1)))
        if law == Law.COULOMB:
            for r in range(3, rows):
                if weight[i, r] > 0.0:
                    rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
                    span = np.sqrt(weight[i, r])
                    edge = rough * max(x, 0.0) * span / length
                    p, s = f[i, r] * span / load, u[i, r] / (span * load)
                    off = max(off, abs(p - min(max(p - s, -edge), edge)))
    return off


@lean
def residual_of(b: Blocks, g: Graph, k, law, facets, u, f, weight, load):
    """Largest entry of Alart and Curnier's functions over island k, relative to the load."""
    worst = 0.0
    for at in range(g.members[k], g.members[k + 1]):
        off = _residual(b, g.member[at], law, facets, u, f, weight, load)
        if not off <= worst:  # also where it is not a number
            worst = off
    return worst


@lean
def _note_modes(g: Graph, k, work: NewtonWorkspace):
    """past := the modes of island k."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for c in range(ROWS - 1):
            work.past[i, c] = work.mode[i, c]


@lean
def _change_one(b: Blocks, g: Graph, k, law, facets, work: NewtonWorkspace, load):
    """Takes back all changes of modes but that of the block with the largest residual; whether any
    unit slides then. What slid goes on as it did."""
    mode, past = work.mode, work.past
    chosen, worst, slides = -1, -1.0, False
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        differs = False
        for c in range(ROWS - 1):
            differs |= mode[i, c] != past[i, c]
        if differs:
            off = _residual(b, i, law, facets, work.u, work.f, work.weight, load)
            if off > worst:
                chosen, worst = i, off
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for c in range(ROWS - 1):
            if i != chosen:
                mode[i, c] = past[i, c]
            # What blocks that had more rows left behind is no mode.
            slides |= 0 < c < b.head[i, Head.ROWS] - 1 and mode[i, c] >= SLIDE
    return slides


@lean
def enter_cones(b: Blocks, g: Graph, k, law, facets, f):
    """Takes rounding off the impulses of island k: none pulls, none leaves its cone."""
    head, data = b.head, b.data
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        if head[i, Head.KIND] != Kind.CONTACT:
            if head[i, Head.KIND] == Kind.BOX:
                limit = data[i, Datum.LIMIT]
                f[i, 0] = min(max(f[i, 0], -limit), limit)
            continue
        f[i, 0] = max(f[i, 0], 0.0)
        if law != Law.COULOMB or head[i, Head.ROWS] < 3:
            continue
        radius = data[i, Datum.SLIDE] * f[i, 0] if f[i, 0] > 0.0 else 0.0
        if facets > 0:
            f[i, 1], f[i, 2], _ = project_polygon(f[i, 1], f[i, 2], radius, 0.0, facets)
        else:
            size = np.sqrt(f[i, 1] * f[i, 1] + f[i, 2] * f[i, 2])
            if size > radius:
                f[i, 1] *= radius / size
                f[i, 2] *= radius / size
        for r in range(3, head[i, Head.ROWS]):
            limit = (data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]) * f[i, 0]
            f[i, r] = min(max(f[i, r], -limit), limit)


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


@lean
def move_island(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, work: NewtonWorkspace, memory, eps
):  # fmt: skip
    """v += x; u and f change with it. By the change itself, because the speeds' rounding, divided
    by eps, would spoil the momentum balance."""
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            work.v[j] += y.x[j]
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows = b.head[i, Head.ROWS]
        for r in range(rows):
            total = work.g[i, r]
            for q in range(rows):
                d = y.D[i, ROWS * r + q]
                if d != 0.0:
                    total -= d * y.change[i, q]
            work.f[i, r] = total
            work.u[i, r] += y.change[i, r]
        if work.mode[i, 0] == SEPARATE and work.weight[i, 0] > 0.0:
            before = memory * work.shape[i, 4]
            work.shape[i, 4] = before - work.u[i, 0] / (eps * work.weight[i, 0])


@lean
def _imbalance(b: Blocks, g: Graph, s: BlockMatrix, y: System, k, v, f, load):
    """What impulses f and velocity v leave of the momentum balance of island k, over the load."""
    unbalanced(b, g, s, k, v, f, y.left, y.rhs)
    return imbalance(b, g, s, k, y.rhs) / load


@stage("float64(intp, int64, float64, int64, float64, int64, int64, float64, float64)")
def refine_island(address, k, load, keep, eps, limit, patience, content, least):
    """Residual of the best iterate, which replaces the impulses f and the velocity v of island k
    if it is better than the residual `least`; else they are as before.

    address: of a packed workspace; keep: MODES, IMPULSES, ONE_BY_ONE or AFRESH;
    patience: iterations without half the residual after which modes are taken to go round;
    content: residual at which it ends.
    """
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    law, facets = request.setting[Setting.LAW], request.setting[Setting.FACETS]
    f, v, u = work.f, work.v, work.u
    copy_island(g, s, k, f, v, work.best_f, work.best_v)
    speeds(b, g, k, v, u)
    for at in range(g.members[k], g.members[k + 1]):
        work.shape[g.member[at], 4] = 0.0
    best, before = least, np.inf
    stuck, star, complete = 0, g.size[Size.STAR] == 1, True
    ready, whole, slow = False, False, True
    used, fall = 0.0, EPS_FALL if eps <= LARGE_EPS else SLOW_EPS_FALL
    for turn in range(limit):
        near = MAY_PRESS * load if turn > 0 else 0.0
        share = 1.0 if turn > 0 else 1.0 - AT_LIMIT
        tied = min(2.0 * before, KEPT_MODE) * load if turn > 0 else 0.0
        if keep == ONE_BY_ONE:
            _note_modes(g, k, work)
        calm = CALM * load if turn == 0 and keep == AFRESH else 0.0
        changed, slides, turned = find_modes(
            b, g, k, law, facets, work, eps, near, PRESSES * load, tied, share, calm
        )  # fmt: skip
        if keep == ONE_BY_ONE and changed and BALANCED < before < np.inf:
            slides = _change_one(b, g, k, law, facets, work, load)
        slides |= star  # in contact space no matrix is symmetric
        anew = changed or not ready or used != eps or whole != slides
        anew = anew or (slides and (slow or turned))
        whole = slides
        alone = keep in (MODES, AFRESH)
        memory = 0.0 if alone and (changed or turn == 0) else 1.0
        linearize(b, g, k, law, work, y.D, memory, eps)
        if anew:
            request.setting[Setting.FACTORIZATIONS] += 1
            used = eps
            if factor_system(b, g, s, y, k, np.int64(not whole)) == 0.0:
                break
        ready = True
        unbalanced(b, g, s, k, v, work.g, y.left, y.rhs)
        # With memory an iteration refines the one before; a symmetric system needs no more, nor
        # does another one as long as modes are looked for.
        searches = anew and UNREFINED < before < np.inf
        solve(b, g, s, y, k, np.int64(whole and not searches))
        move_island(b, g, s, y, k, work, memory, eps)
        residual = residual_of(b, g, k, law, facets, u, f, work.weight, load)
        if not residual < np.inf:
            break
        weighed = residual < BALANCED and (residual <= content or least < np.inf)
        if weighed:
            residual = max(residual, _imbalance(b, g, s, y, k, v, f, load))
        slow = residual > 0.1 * before
        stalled = turn > 0 and not changed and STALLED >= residual > 0.5 * before
        if turn > 0 and not changed and (anew or not slides) and slow and eps > LEAST_EPS:
            eps = max(LEAST_EPS, fall * eps)
            stuck -= 1
        before = residual
        stuck = 0 if residual < 0.5 * best else stuck + 1
        if residual <= content and residual < best:
            return residual
        if residual < best:
            best, complete = residual, weighed
            copy_island(g, s, k, f, v, work.best_f, work.best_v)
        if residual <= content or stalled or stuck > patience:
            break
        if ticks() > request.setting[Setting.DEADLINE]:
            break
    copy_island(g, s, k, work.best_f, work.best_v, f, v)
    if best < BALANCED and not complete:
        best = max(best, _imbalance(b, g, s, y, k, v, f, load))
    return best


@stage("void(intp, int64, float64)", eager=False)
def spread_residual(address, k, load):
    """Takes the impulses f of island k into their cones, and writes the residual of each of its
    blocks into `System.pull`, column 0."""
    b, g, _, request = unpack_problem(address)
    y, work = unpack_newton(address)
    law, facets = request.setting[Setting.LAW], request.setting[Setting.FACETS]
    enter_cones(b, g, k, law, facets, work.f)
    speeds(b, g, k, work.v, work.u)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        y.pull[i, 0] = _residual(b, i, law, facets, work.u, work.f, work.weight, load)


refine = refine_island.external
