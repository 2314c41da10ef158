"""Where the interior point begins: in the middle of the cones, near what is known, or scattered."""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import ROWS, Blocks, Head
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.workspace import InteriorWorkspace
from stiction.contact.solvers.interior_point.columns import COLUMNS, MU, P, Q, X, Y
from stiction.contact.solvers.interior_point.units import Unit, acts, reach_of
from stiction.kernels.compile import lean, lean_leaf

WIDEST = 1e4
"""Start of an interval's slacks, at most, over that of a contact's: one whose limit is nearly zero
would begin with an endless one."""

TINY = 1e-300


@lean_leaf
def _clear(w: InteriorWorkspace, i):
    """All but the friction coefficient: paths take columns that a block does not have as well, and
    an answer may not depend on what another one left there."""
    for c in range(MU + 1, COLUMNS):
        w.state[i, c] = 0.0


@lean
def begin(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight, deep):
    """Impulses and slacks in the middle of their cones, by `deep`, whose square is an energy."""
    st = w.state
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        _clear(w, i)
        for r in range(ROWS):
            w.f[i, r] = 0.0
        if w.unit[i, 0] == Unit.CONE:
            heavy = max(weight[i, 0], weight[i, 1])
            st[i, Y] = deep * np.sqrt(heavy)
            st[i, X] = st[i, Y] / heavy
            w.f[i, 0] = st[i, X] / st[i, MU]
        elif w.unit[i, 0] == Unit.LINE:
            st[i, Y] = deep * np.sqrt(weight[i, 0])
            st[i, X] = st[i, Y] / weight[i, 0]
            w.f[i, 0] = st[i, X]
        elif w.unit[i, 0] == Unit.INTERVAL:
            _begin_interval(b, w, i, 0, 0, weight[i, 0], 0.0, deep)
        for r in range(3, b.head[i, Head.ROWS]):
            if w.unit[i, 2] == Unit.INTERVAL and acts(b, i, r, weight):
                _begin_interval(b, w, i, r, r - 3, weight[i, r], 0.0, deep)


@lean
def begin_near(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight, deep):
    """Impulses and slacks as the impulses and the speeds at hand have them, but `deep` inside their
    cones at least."""
    st, f, u = w.state, w.f, w.u
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        unit, rows = w.unit[i, 0], b.head[i, Head.ROWS]
        _clear(w, i)
        if unit == Unit.CONE:
            heavy = max(weight[i, 0], weight[i, 1])
            inside = deep * np.sqrt(heavy)
            slip = np.sqrt(u[i, 1] * u[i, 1] + u[i, 2] * u[i, 2])
            friction = np.sqrt(f[i, 1] * f[i, 1] + f[i, 2] * f[i, 2])
            st[i, X] = max(st[i, MU] * f[i, 0], friction + inside / heavy)
            st[i, Y] = slip + max(u[i, 0] / st[i, MU], inside)
            for c in range(1, 3):
                st[i, X + c], st[i, Y + c] = f[i, c], u[i, c]
            f[i, 0] = st[i, X] / st[i, MU]
        elif unit == Unit.LINE:
            inside = deep * np.sqrt(weight[i, 0])
            st[i, X] = max(f[i, 0], inside / weight[i, 0])
            st[i, Y] = max(u[i, 0], inside)
            f[i, 0] = st[i, X]
        elif unit == Unit.INTERVAL:
            _begin_interval(b, w, i, 0, 0, weight[i, 0], u[i, 0], deep)
        elif unit == Unit.NONE:
            f[i, 0] = 0.0
        if unit != Unit.CONE and w.unit[i, 1] == Unit.NONE:
            for r in range(1, min(rows, 3)):
                f[i, r] = 0.0
        for r in range(3, rows):
            if w.unit[i, 2] == Unit.INTERVAL and acts(b, i, r, weight):
                _begin_interval(b, w, i, r, r - 3, weight[i, r], u[i, r], deep)
            else:
                f[i, r] = 0.0


@lean_leaf
def _split(s, deep):
    """(x, y) with x - y = s and x y = deep^2, both positive; the smaller one without
    cancellation."""
    root = np.sqrt(s * s + 4.0 * deep * deep)
    large = 0.5 * (abs(s) + root)
    small = deep * deep / large
    return (large, small) if s > 0.0 else (small, large)


@lean
def begin_on_path(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight, deep):
    """Impulses and slacks on the path itself, x . y = deep^2 e, near the impulses and the speeds at
    hand: the difference of the two is kept, by energy."""
    st, f, u = w.state, w.f, w.u
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        unit = w.unit[i, 0]
        _clear(w, i)
        if unit == Unit.CONE:
            length, mu = np.sqrt(max(weight[i, 0], weight[i, 1])), st[i, MU]
            slip = np.sqrt(u[i, 1] * u[i, 1] + u[i, 2] * u[i, 2])
            s0 = mu * f[i, 0] * length - (u[i, 0] / mu + slip) / length
            s1, s2 = f[i, 1] * length - u[i, 1] / length, f[i, 2] * length - u[i, 2] / length
            size = np.sqrt(s1 * s1 + s2 * s2)
            d1, d2 = (s1 / size, s2 / size) if size > 0.0 else (1.0, 0.0)
            x, y = _split(s0 + size, deep)
            x_back, y_back = _split(s0 - size, deep)
            along, against = 0.5 * (x - x_back) / length, 0.5 * (y - y_back) * length
            st[i, X], st[i, Y] = 0.5 * (x + x_back) / length, 0.5 * (y + y_back) * length
            st[i, X + 1], st[i, X + 2] = along * d1, along * d2
            st[i, Y + 1], st[i, Y + 2] = against * d1, against * d2
            f[i, 0], f[i, 1], f[i, 2] = st[i, X] / mu, st[i, X + 1], st[i, X + 2]
        elif unit == Unit.LINE:
            length = np.sqrt(weight[i, 0])
            x, y = _split(f[i, 0] * length - u[i, 0] / length, deep)
            st[i, X], st[i, Y] = x / length, y * length
            f[i, 0] = st[i, X]
        elif unit == Unit.INTERVAL:
            _begin_interval(b, w, i, 0, 0, weight[i, 0], 0.0, deep)
        elif unit == Unit.NONE:
            f[i, 0] = 0.0
        if unit != Unit.CONE and w.unit[i, 1] == Unit.NONE:
            for r in range(1, min(b.head[i, Head.ROWS], 3)):
                f[i, r] = 0.0
        for r in range(3, b.head[i, Head.ROWS]):
            if w.unit[i, 2] == Unit.INTERVAL and acts(b, i, r, weight):
                _begin_interval(b, w, i, r, r - 3, weight[i, r], 0.0, deep)
            else:
                f[i, r] = 0.0


@lean_leaf
def _begin_interval(b: Blocks, w: InteriorWorkspace, i, r, c, weight, u, deep):
    """Takes an interval's impulse inside by `deep` or half its reach, and opens its slacks."""
    st = w.state
    reach = max(reach_of(b, w, i, r), TINY)
    edge = reach - min(deep / np.sqrt(weight), 0.5 * reach)
    w.f[i, r] = min(max(w.f[i, r], -edge), edge)
    slack = min(deep * deep / reach, WIDEST * deep * np.sqrt(weight))
    st[i, P + c] = max(u, 0.0) + slack
    st[i, Q + c] = max(-u, 0.0) + slack


@lean_leaf
def fraction(first, second):
    """A number from 0 to 1, as if drawn: the same for the same two integers."""
    mixed = np.int64(first) * np.int64(40503) + np.int64(second) * np.int64(2654435761)
    mixed = (mixed ^ (mixed >> 15)) * np.int64(2246822519)
    mixed = (mixed ^ (mixed >> 13)) * np.int64(3266489917)
    return ((mixed ^ (mixed >> 16)) & np.int64(0xFFFFFF)) / np.float64(0x1000000)


@lean
def scatter(g: Graph, k, w: InteriorWorkspace, number, spread):
    """Scatters where the contacts of island k begin: every x by a factor of its own, from 1 /
    spread to spread, and y by its inverse. number: another one, other factors."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        if w.unit[i, 0] == Unit.CONE or w.unit[i, 0] == Unit.LINE:
            times = spread ** (2.0 * fraction(number, at - g.members[k]) - 1.0)
            w.state[i, X] *= times
            w.state[i, Y] /= times
            w.f[i, 0] *= times
