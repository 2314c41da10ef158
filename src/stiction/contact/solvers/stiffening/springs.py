"""Rows as springs that stiffen: their modes, their impulses, and how far they are inside of the
modes; symbols as in `curve.py`.

theta is in `InteriorWorkspace.z`, q in `InteriorWorkspace.f`, the modes in `NewtonWorkspace.mode`.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.iterate import add_vector
from stiction.contact.solvers.blocks.workspace import InteriorWorkspace, NewtonWorkspace
from stiction.contact.solvers.interior_point.begin import fraction
from stiction.contact.solvers.interior_point.columns import TANGENT
from stiction.contact.solvers.proximal.iteration import fill_sliding
from stiction.contact.solvers.proximal.modes import SEPARATE, SLIDE, SLIDE_BACK, STICK
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix

UNEQUAL, SPRING = 0.3, TANGENT
"""Share by which springs differ, at most, the same in every step; and the column of
`InteriorWorkspace.path` that says how. Rows that would come to their edges together, as those of a
box with its weight in the middle do, come there one by one.
"""

NO_EVENT = 1e30
"""Margin of what has one mode only."""


@lean_leaf
def _is_interval(b: Blocks, i, r, weight):
    """Whether row r (>= 3) of a contact resists: spin or rolling."""
    rough = b.data[i, Datum.SPIN] if r == 3 else b.data[i, Datum.ROLL]
    return rough > 0.0 and weight[i, r] > 0.0


@lean_leaf
def _slides(b: Blocks, i, weight):
    """Whether contact i has friction."""
    return b.head[i, Head.ROWS] > 2 and weight[i, 1] > 0.0 and 0.0 < b.data[i, Datum.SLIDE] < np.inf


@lean_leaf
def _margin_of_interval(theta, limit, mode):
    """How far inside of its mode an interval is."""
    if mode == STICK:
        return limit - abs(theta)
    return theta - limit if mode == SLIDE else -theta - limit


@lean
def measure_margins(b: Blocks, g: Graph, k, work: NewtonWorkspace, theta, load, out):
    """out (cap, ROWS) := how far inside of its mode each unit of island k is, in the columns of
    `mode`, over the load, by energy; NO_EVENT where it has no other."""
    weight, mode, data = work.weight, work.mode, b.data
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        kind, rows = b.head[i, Head.KIND], b.head[i, Head.ROWS]
        for c in range(ROWS - 1):
            out[i, c] = NO_EVENT
        if weight[i, 0] == 0.0 or kind == Kind.HOLD or kind == Kind.SOFT:
            continue
        scale = np.sqrt(weight[i, 0]) / load
        n = theta[i, 0]
        if kind == Kind.BOX:
            out[i, 0] = scale * _margin_of_interval(n, data[i, Datum.LIMIT], mode[i, 0])
            continue
        out[i, 0] = scale * (n if mode[i, 0] == STICK else -n)
        if mode[i, 0] != STICK or rows < 3:
            continue
        if _slides(b, i, weight):
            size = np.sqrt(theta[i, 1] * theta[i, 1] + theta[i, 2] * theta[i, 2])
            inside = data[i, Datum.SLIDE] * n - size
            across = np.sqrt(weight[i, 1]) / load
            out[i, 1] = across * (inside if mode[i, 1] == STICK else -inside)
        for r in range(3, rows):
            if _is_interval(b, i, r, weight):
                rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
                span = np.sqrt(weight[i, r]) / load
                out[i, r - 1] = span * _margin_of_interval(theta[i, r], rough * n, mode[i, r - 1])


@lean_leaf
def _mode_of_interval(theta, limit):
    if abs(theta) <= limit:
        return STICK
    return SLIDE if theta > 0.0 else SLIDE_BACK


@lean
def _choose_friction(b: Blocks, i, work: NewtonWorkspace, theta):
    """Modes of the rows of contact i beyond the normal, by theta, now that it presses or not."""
    mode, weight, data = work.mode, work.weight, b.data
    rows, n = b.head[i, Head.ROWS], theta[i, 0]
    presses = mode[i, 0] == STICK
    for c in range(1, max(1, rows - 1)):
        mode[i, c] = SEPARATE
    if not presses or rows < 3:
        return
    if weight[i, 1] > 0.0 and data[i, Datum.SLIDE] > 0.0:
        size = np.sqrt(theta[i, 1] * theta[i, 1] + theta[i, 2] * theta[i, 2])
        mode[i, 1] = STICK
        if _slides(b, i, weight) and size > data[i, Datum.SLIDE] * n:
            mode[i, 1] = SLIDE
    for r in range(3, rows):
        if _is_interval(b, i, r, weight):
            rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
            mode[i, r - 1] = _mode_of_interval(theta[i, r], rough * n)


@lean
def _choose_modes(b: Blocks, g: Graph, k, work: NewtonWorkspace, theta):
    """Modes of all units of island k, by theta."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        kind = b.head[i, Head.KIND]
        if kind == Kind.CONTACT:
            presses = theta[i, 0] > 0.0 and work.weight[i, 0] > 0.0
            work.mode[i, 0] = STICK if presses else SEPARATE
            _choose_friction(b, i, work, theta)
        elif kind == Kind.BOX and work.weight[i, 0] > 0.0:
            work.mode[i, 0] = _mode_of_interval(theta[i, 0], b.data[i, Datum.LIMIT])
        else:
            work.mode[i, 0] = STICK if work.weight[i, 0] > 0.0 else SEPARATE


@lean
def choose_anew(b: Blocks, g: Graph, k, work: NewtonWorkspace, w: InteriorWorkspace, stiff):
    """Modes of all units at the speeds u, for springs at rest with the impulses w.f."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for r in range(b.head[i, Head.ROWS]):
            w.z[i, r] = 0.0
            if work.weight[i, r] > 0.0:
                spring = stiff * w.path[i, SPRING] / work.weight[i, r]
                w.z[i, r] = w.f[i, r] - spring * work.u[i, r]
    _choose_modes(b, g, k, work, w.z)


@lean
def change_mode(b: Blocks, i, c, work: NewtonWorkspace, theta):
    """Changes the mode of unit c of block i, which is at its edge."""
    mode = work.mode
    if b.head[i, Head.KIND] == Kind.CONTACT and c == 0:
        mode[i, 0] = SEPARATE if mode[i, 0] == STICK else STICK
        _choose_friction(b, i, work, theta)
        if mode[i, 0] == STICK and mode[i, 1] == STICK and _slides(b, i, work.weight):
            mode[i, 1] = SLIDE  # a disc that opens has no radius yet
    elif mode[i, c] != STICK:
        mode[i, c] = STICK
    elif c == 1:
        mode[i, c] = SLIDE
    else:
        row = 0 if c == 0 else c + 1
        mode[i, c] = SLIDE if theta[i, row] > 0.0 else SLIDE_BACK


@lean
def find_impulses(
    b: Blocks, g: Graph, k, work: NewtonWorkspace, w: InteriorWorkspace, stiff
):  # fmt: skip
    """w.z := theta, and the impulses f of island k at the speeds u, by the modes."""
    q, theta = w.f, w.z
    f, u, weight, mode, data = work.f, work.u, work.weight, work.mode, b.data
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        kind, rows = b.head[i, Head.KIND], b.head[i, Head.ROWS]
        if kind == Kind.SOFT:
            f[i, 0] = -data[i, Datum.DRAG] * u[i, 0]
            continue
        for r in range(rows):
            f[i, r] = theta[i, r] = 0.0
            if weight[i, r] > 0.0:
                theta[i, r] = q[i, r] - stiff * w.path[i, SPRING] / weight[i, r] * u[i, r]
        if mode[i, 0] == STICK:
            f[i, 0] = theta[i, 0]
        elif kind == Kind.BOX and mode[i, 0] != SEPARATE:
            f[i, 0] = data[i, Datum.LIMIT] if mode[i, 0] == SLIDE else -data[i, Datum.LIMIT]
        if rows < 3:
            continue
        if mode[i, 1] == STICK:
            f[i, 1], f[i, 2] = theta[i, 1], theta[i, 2]
        elif mode[i, 1] == SLIDE:
            size = np.sqrt(theta[i, 1] * theta[i, 1] + theta[i, 2] * theta[i, 2])
            share = data[i, Datum.SLIDE] * theta[i, 0] / size if size > 0.0 else 0.0
            f[i, 1], f[i, 2] = share * theta[i, 1], share * theta[i, 2]
        for r in range(3, rows):
            rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
            if mode[i, r - 1] == STICK:
                f[i, r] = theta[i, r]
            elif mode[i, r - 1] != SEPARATE:
                f[i, r] = rough * theta[i, 0] * (1.0 if mode[i, r - 1] == SLIDE else -1.0)


@lean
def move(
    b: Blocks, g: Graph, s: BlockMatrix, k, work: NewtonWorkspace, x, change, share
):  # fmt: skip
    """v += share x, u += share change, on island k. By the change itself: the rounding of speeds,
    times s, would be seen in the impulses."""
    add_vector(g, s, k, share, x, work.v)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for r in range(b.head[i, Head.ROWS]):
            work.u[i, r] += share * change[i, r]


@lean
def respond(
    b: Blocks, g: Graph, k, work: NewtonWorkspace, w: InteriorWorkspace, stiff, D
):  # fmt: skip
    """D := how the impulses fall with the speeds; whether any row slides."""
    weight, mode, data, theta = work.weight, work.mode, b.data, w.z
    slides = False
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        kind, rows = b.head[i, Head.KIND], b.head[i, Head.ROWS]
        for c in range(ROWS * rows):
            D[i, c] = 0.0
        if kind == Kind.SOFT:
            D[i, 0] = data[i, Datum.DRAG]
            continue
        if mode[i, 0] != STICK:
            continue
        spring = stiff * w.path[i, SPRING]
        hold = spring / weight[i, 0]
        D[i, 0] = hold
        if rows < 3:
            continue
        if mode[i, 1] == STICK:
            D[i, ROWS + 1] = D[i, 2 * ROWS + 2] = spring / weight[i, 1]
        elif mode[i, 1] == SLIDE:
            slides = True
            size = np.sqrt(theta[i, 1] * theta[i, 1] + theta[i, 2] * theta[i, 2])
            d0, d1 = (theta[i, 1] / size, theta[i, 2] / size) if size > 0.0 else (1.0, 0.0)
            rough = data[i, Datum.SLIDE]
            turn = 0.0
            if size > 0.0:
                turn = spring / weight[i, 1] * rough * max(theta[i, 0], 0.0) / size
            fill_sliding(D, i, rough * hold, turn, d0, d1)
        for r in range(3, rows):
            rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
            if mode[i, r - 1] == STICK:
                D[i, (ROWS + 1) * r] = spring / weight[i, r]
            elif mode[i, r - 1] != SEPARATE:
                slides = True
                D[i, ROWS * r] = rough * hold * (1.0 if mode[i, r - 1] == SLIDE else -1.0)
    return slides


@lean_leaf
def _fall_of_interval(d_theta, theta, d_limit, mode):
    """How the margin of an interval changes."""
    if mode == STICK:
        return d_limit - (d_theta if theta > 0.0 else -d_theta)
    return d_theta - d_limit if mode == SLIDE else -d_theta - d_limit


@lean_leaf
def _sooner(margin, change, least, i, c, first, unit):
    """The sooner one of the events `least` of (first, unit) and that of a margin of (i, c)."""
    if change < 0.0 and margin < -change * least:
        return max(margin, 0.0) / -change, i, c
    return least, first, unit


@lean
def find_event(
    b: Blocks, g: Graph, k, work: NewtonWorkspace, w: InteriorWorkspace, margin, stiff, sign, load,
    longest,
):  # fmt: skip
    """(step, block, unit) of the first edge that a unit comes to along the tangent, at most
    `longest`; block -1 if none does."""
    u, weight, mode, data, theta = work.u, work.weight, work.mode, b.data, w.z
    least, first, unit = longest, -1, 0
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        kind, rows = b.head[i, Head.KIND], b.head[i, Head.ROWS]
        if weight[i, 0] == 0.0 or kind == Kind.HOLD or kind == Kind.SOFT:
            continue
        rate, scale = -sign * stiff * w.path[i, SPRING], np.sqrt(weight[i, 0]) / load
        dn = rate * (u[i, 0] + w.u[i, 0]) / weight[i, 0]
        if kind == Kind.BOX:
            change = scale * _fall_of_interval(dn, theta[i, 0], 0.0, mode[i, 0])
            least, first, unit = _sooner(margin[i, 0], change, least, i, 0, first, unit)
            continue
        change = scale * (dn if mode[i, 0] == STICK else -dn)
        least, first, unit = _sooner(margin[i, 0], change, least, i, 0, first, unit)
        if mode[i, 0] != STICK or rows < 3:
            continue
        if _slides(b, i, weight):
            t0, t1 = theta[i, 1], theta[i, 2]
            d0 = rate * (u[i, 1] + w.u[i, 1]) / weight[i, 1]
            d1 = rate * (u[i, 2] + w.u[i, 2]) / weight[i, 1]
            size = np.sqrt(t0 * t0 + t1 * t1)
            grows = (t0 * d0 + t1 * d1) / size if size > 0.0 else np.sqrt(d0 * d0 + d1 * d1)
            change = np.sqrt(weight[i, 1]) / load * (data[i, Datum.SLIDE] * dn - grows)
            change = change if mode[i, 1] == STICK else -change
            least, first, unit = _sooner(margin[i, 1], change, least, i, 1, first, unit)
        for r in range(3, rows):
            if _is_interval(b, i, r, weight):
                rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
                d = rate * (u[i, r] + w.u[i, r]) / weight[i, r]
                change = _fall_of_interval(d, theta[i, r], rough * dn, mode[i, r - 1])
                change *= np.sqrt(weight[i, r]) / load
                least, first, unit = _sooner(
                    margin[i, r - 1], change, least, i, r - 1, first, unit
                )  # fmt: skip
    return least, first, unit


@lean
def draw_springs(g: Graph, k, w: InteriorWorkspace):
    """Lets the springs of island k differ."""
    for at in range(g.members[k], g.members[k + 1]):
        w.path[g.member[at], SPRING] = 1.0 + UNEQUAL * fraction(at - g.members[k], 0)
