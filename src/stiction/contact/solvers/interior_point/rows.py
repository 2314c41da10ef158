"""Every kind of row to the interior point: residual, linear response, direction, step.

With u the speeds along a block's rows less their bound, and f its impulses:

    cone      contact with friction mu: B = diag(1/mu, 1, 1), f = B x, y = B (u + mu |u_t| e_n),
              x and y in the second-order cone, x . y = 0 (De Saxce's form of Coulomb's law)
    line      contact without friction, joint limit: x = f_n, y = u_n
    interval  dry friction, and spin and rolling of a contact, |f| <= R = limit + k f_n:
              p _|_ R + f,  q _|_ R - f,  u = p - q
    held      must not move (a rigid equality; no-slip): f += -(u + du) / (eps w)
    linear    f = -drag u (a soft equality; viscous friction)

Eliminated to df = z - D (A dv), block by block; D and z go to `blocks/system.py`. The derivative of
mu |u_t| makes D unsymmetric; theta scales it, and zero leaves the symmetric matrix of the convex
problem.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.workspace import InteriorWorkspace
from stiction.contact.solvers.interior_point import cone
from stiction.contact.solvers.interior_point.columns import (
    DF,
    DP,
    DQ,
    DX,
    DY,
    GOAL,
    GOAL_P,
    GOAL_Q,
    LAM,
    MU,
    RHO,
    SCALING,
    SLIP,
    P,
    Q,
    X,
    Y,
)
from stiction.contact.solvers.interior_point.units import (
    Unit,
    acts,
    intervals_of,
    limit_ratio,
    reach_of,
)
from stiction.kernels.compile import lean, lean_leaf

HOLD_EPS = 1e-5
"""Compliance of held rows over their inverse inertia; what it leaves falls with each iteration."""

TINY = 1e-300

ENDLESS_STEP = 1e10
"""Step that is taken to be as long as any."""


@lean
def measure_gap(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight, a):
    """Mean complementarity of the pairs, after a step a along the direction at hand."""
    st = w.state
    total, pairs = 0.0, 0
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        unit = w.unit[i, 0]
        if unit == Unit.CONE:
            for c in range(3):
                total += (st[i, X + c] + a * st[i, DX + c]) * (st[i, Y + c] + a * st[i, DY + c])
            pairs += 1
        elif unit == Unit.LINE:
            total += (st[i, X] + a * st[i, DX]) * (st[i, Y] + a * st[i, DY])
            pairs += 1
        first, last = intervals_of(b, w, i)
        for r in range(first, last):
            if first == 3 and not acts(b, i, r, weight):
                continue
            c = r - first
            reach = reach_of(b, w, i, r) + a * limit_ratio(b, i, r) * st[i, DF] * (first == 3)
            f = w.f[i, r] + a * st[i, DF + r]
            total += (st[i, P + c] + a * st[i, DP + c]) * (reach + f)
            total += (st[i, Q + c] + a * st[i, DQ + c]) * (reach - f)
            pairs += 2
    return max(total / max(pairs, 1), 0.0)


@lean
def find_rest(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight, rounding):
    """rho, and the direction of slip, from the speeds u; rounding: energy's root of the speed by
    which |u_t| is rounded off, 0 for |u_t| itself."""
    st = w.state
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        unit, u = w.unit[i, 0], w.u
        if unit == Unit.CONE:
            round_off = rounding * rounding * max(weight[i, 0], weight[i, 1])
            t = np.sqrt(u[i, 1] * u[i, 1] + u[i, 2] * u[i, 2] + round_off)
            st[i, RHO] = u[i, 0] / st[i, MU] + t - st[i, Y]
            st[i, RHO + 1] = u[i, 1] - st[i, Y + 1]
            st[i, RHO + 2] = u[i, 2] - st[i, Y + 2]
            t = max(t, TINY)
            st[i, SLIP] = u[i, 1] / t
            st[i, SLIP + 1] = u[i, 2] / t
        elif unit == Unit.LINE:
            st[i, RHO] = u[i, 0] - st[i, Y]
        elif unit == Unit.INTERVAL:
            st[i, RHO] = u[i, 0] - (st[i, P] - st[i, Q])
        if w.unit[i, 2] == Unit.INTERVAL:
            for r in range(3, b.head[i, Head.ROWS]):
                st[i, RHO + r] = u[i, r] - (st[i, P + r - 3] - st[i, Q + r - 3])


@lean
def scale_cones(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight):
    """Scalings, and the goals of the predictor: no complementarity left."""
    st = w.state
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        unit = w.unit[i, 0]
        if unit == Unit.CONE:
            cone.scale(st, i)
            l0, l1, l2 = st[i, LAM], st[i, LAM + 1], st[i, LAM + 2]
            st[i, GOAL] = -(l0 * l0 + l1 * l1 + l2 * l2)
            st[i, GOAL + 1] = -2.0 * l0 * l1
            st[i, GOAL + 2] = -2.0 * l0 * l2
        elif unit == Unit.LINE:
            st[i, GOAL] = -st[i, X] * st[i, Y]
        elif unit == Unit.INTERVAL:
            reach = reach_of(b, w, i, 0)
            st[i, GOAL_P] = -st[i, P] * (reach + w.f[i, 0])
            st[i, GOAL_Q] = -st[i, Q] * (reach - w.f[i, 0])
        if w.unit[i, 2] == Unit.INTERVAL:
            for r in range(3, b.head[i, Head.ROWS]):
                reach = reach_of(b, w, i, r)
                st[i, GOAL_P + r - 3] = -st[i, P + r - 3] * (reach + w.f[i, r])
                st[i, GOAL_Q + r - 3] = -st[i, Q + r - 3] * (reach - w.f[i, r])


@lean
def aim(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight, target):
    """Goals of the corrector: complementarity `target`, with the predictor's second order."""
    st = w.state
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        unit = w.unit[i, 0]
        if unit == Unit.CONE:
            p0, p1, p2 = cone.unapply(st, i, st[i, DY], st[i, DY + 1], st[i, DY + 2])
            q0, q1, q2 = cone.apply(st, i, st[i, DX], st[i, DX + 1], st[i, DX + 2])
            st[i, GOAL] += target - (p0 * q0 + p1 * q1 + p2 * q2)
            st[i, GOAL + 1] -= p0 * q1 + q0 * p1
            st[i, GOAL + 2] -= p0 * q2 + q0 * p2
        elif unit == Unit.LINE:
            st[i, GOAL] += target - st[i, DX] * st[i, DY]
        elif unit == Unit.INTERVAL:
            st[i, GOAL_P] += target - st[i, DP] * st[i, DF]
            st[i, GOAL_Q] += target + st[i, DQ] * st[i, DF]
        if w.unit[i, 2] == Unit.INTERVAL:
            for r in range(3, b.head[i, Head.ROWS]):
                grown = limit_ratio(b, i, r) * st[i, DF]
                st[i, GOAL_P + r - 3] += target - st[i, DP + r - 3] * (grown + st[i, DF + r])
                st[i, GOAL_Q + r - 3] += target - st[i, DQ + r - 3] * (grown - st[i, DF + r])


@lean_leaf
def _interval_rates(b: Blocks, w: InteriorWorkspace, i, r, c):
    """(P + Q, kappa) of an interval."""
    st = w.state
    reach = reach_of(b, w, i, r)
    up = st[i, P + c] / (reach + w.f[i, r])
    down = st[i, Q + c] / (reach - w.f[i, r])
    return up + down, limit_ratio(b, i, r) * (up - down) / (up + down)


@lean
def respond(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight, theta, D):
    """D of every block of island k."""
    st = w.state
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows, unit = b.head[i, Head.ROWS], w.unit[i, 0]
        for c in range(ROWS * rows):
            D[i, c] = 0.0
        if unit == Unit.CONE:
            w0, w1, w2 = st[i, SCALING + 4], -st[i, SCALING + 5], -st[i, SCALING + 6]
            h = 1.0 / (st[i, SCALING + 3] * st[i, SCALING + 3])
            m = 1.0 / st[i, MU]
            e1, e2 = theta * st[i, SLIP], theta * st[i, SLIP + 1]
            k00, k01, k02 = h * (2.0 * w0 * w0 - 1.0), h * 2.0 * w0 * w1, h * 2.0 * w0 * w2
            k11, k12, k22 = h * (2.0 * w1 * w1 + 1.0), h * 2.0 * w1 * w2, h * (2.0 * w2 * w2 + 1.0)
            D[i, 0] = m * m * k00
            D[i, 1] = m * (k00 * e1 + k01)
            D[i, 2] = m * (k00 * e2 + k02)
            D[i, ROWS] = m * k01
            D[i, ROWS + 1] = k01 * e1 + k11
            D[i, ROWS + 2] = k01 * e2 + k12
            D[i, 2 * ROWS] = m * k02
            D[i, 2 * ROWS + 1] = k02 * e1 + k12
            D[i, 2 * ROWS + 2] = k02 * e2 + k22
        elif unit == Unit.LINE:
            D[i, 0] = st[i, X] / st[i, Y]
        elif unit == Unit.INTERVAL:
            rate, _ = _interval_rates(b, w, i, 0, 0)
            D[i, 0] = 1.0 / rate
        elif unit == Unit.HELD:
            D[i, 0] = 1.0 / (HOLD_EPS * weight[i, 0])
        elif unit == Unit.LINEAR:
            D[i, 0] = b.data[i, Datum.DRAG]
        if w.unit[i, 1] != Unit.NONE:
            held = w.unit[i, 1] == Unit.HELD
            stiff = 1.0 / (HOLD_EPS * weight[i, 1]) if held else b.data[i, Datum.DRAG]
            D[i, ROWS + 1] = D[i, 2 * ROWS + 2] = stiff
        if w.unit[i, 2] == Unit.INTERVAL:
            for r in range(3, rows):
                if acts(b, i, r, weight):
                    rate, kappa = _interval_rates(b, w, i, r, r - 3)
                    for c in range(3):
                        D[i, ROWS * r + c] = -kappa * D[i, c]
                    D[i, ROWS * r + r] = 1.0 / rate


@lean
def offset(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight, rate):
    """z, and in dx what of it does not depend on the velocity; rate: 1, or 0 where held and linear
    rows are to change with the velocity alone."""
    st = w.state
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows, unit, z = b.head[i, Head.ROWS], w.unit[i, 0], w.z
        for r in range(rows):
            z[i, r] = 0.0
        if unit == Unit.CONE:
            x0, x1, x2 = cone.divide(st, i, st[i, GOAL], st[i, GOAL + 1], st[i, GOAL + 2])
            x0, x1, x2 = cone.unapply(st, i, x0, x1, x2)
            st[i, DX], st[i, DX + 1], st[i, DX + 2] = x0, x1, x2
            r0, r1, r2 = cone.unapply_twice(st, i, st[i, RHO], st[i, RHO + 1], st[i, RHO + 2])
            z[i, 0], z[i, 1], z[i, 2] = (x0 - r0) / st[i, MU], x1 - r1, x2 - r2
        elif unit == Unit.LINE:
            z[i, 0] = (st[i, GOAL] - st[i, X] * st[i, RHO]) / st[i, Y]
        elif unit == Unit.INTERVAL:
            rate, _ = _interval_rates(b, w, i, 0, 0)
            reach, f = reach_of(b, w, i, 0), w.f[i, 0]
            turn = st[i, GOAL_P] / (reach + f) - st[i, GOAL_Q] / (reach - f)
            z[i, 0] = (turn - st[i, RHO]) / rate
        elif unit == Unit.HELD:
            z[i, 0] = -rate * w.u[i, 0] / (HOLD_EPS * weight[i, 0])
        elif unit == Unit.LINEAR:
            z[i, 0] = rate * (-b.data[i, Datum.DRAG] * w.u[i, 0] - w.f[i, 0])
        if w.unit[i, 1] != Unit.NONE:
            held = w.unit[i, 1] == Unit.HELD
            stiff = 1.0 / (HOLD_EPS * weight[i, 1]) if held else b.data[i, Datum.DRAG]
            for r in range(1, 3):
                z[i, r] = rate * (-stiff * w.u[i, r] - (0.0 if held else w.f[i, r]))
        if w.unit[i, 2] == Unit.INTERVAL:
            for r in range(3, rows):
                if acts(b, i, r, weight):
                    rate, kappa = _interval_rates(b, w, i, r, r - 3)
                    reach, f = reach_of(b, w, i, r), w.f[i, r]
                    turn = st[i, GOAL_P + r - 3] / (reach + f) - st[i, GOAL_Q + r - 3] / (reach - f)
                    z[i, r] = (turn - st[i, RHO + r]) / rate - kappa * z[i, 0]


@lean
def follow(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight, theta, D, change):
    """Directions of all impulses and slacks, and the longest step along them that stays inside;
    change: A dv."""
    st = w.state
    step = ENDLESS_STEP
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows, unit = b.head[i, Head.ROWS], w.unit[i, 0]
        for r in range(rows):
            total = w.z[i, r]
            for c in range(rows):
                total -= D[i, ROWS * r + c] * change[i, c]
            st[i, DF + r] = total
        if unit == Unit.CONE:
            along = st[i, SLIP] * change[i, 1] + st[i, SLIP + 1] * change[i, 2]
            y0 = change[i, 0] / st[i, MU] + theta * along + st[i, RHO]
            y1, y2 = change[i, 1] + st[i, RHO + 1], change[i, 2] + st[i, RHO + 2]
            st[i, DY], st[i, DY + 1], st[i, DY + 2] = y0, y1, y2
            r0, r1, r2 = cone.unapply_twice(st, i, y0, y1, y2)
            st[i, DX] -= r0
            st[i, DX + 1] -= r1
            st[i, DX + 2] -= r2
        elif unit == Unit.LINE:
            st[i, DY] = change[i, 0] + st[i, RHO]
            st[i, DX] = (st[i, GOAL] - st[i, X] * st[i, DY]) / st[i, Y]
        first, last = intervals_of(b, w, i)
        for r in range(first, last):
            if first == 0 or acts(b, i, r, weight):
                c = r - first
                up, down, d_up, d_down = _room_of(b, w, i, r, first)
                st[i, DP + c] = (st[i, GOAL_P + c] - st[i, P + c] * d_up) / up
                st[i, DQ + c] = (st[i, GOAL_Q + c] - st[i, Q + c] * d_down) / down
        step = _shorten(b, i, w, weight, step)
    return step


@lean_leaf
def _room_of(b: Blocks, w: InteriorWorkspace, i, r, first):
    """How far an interval's impulse is from its upper and its lower limit, R + f and R - f, and how
    both change along the direction at hand."""
    reach, f, df = reach_of(b, w, i, r), w.f[i, r], w.state[i, DF + r]
    grown = limit_ratio(b, i, r) * w.state[i, DF] if first == 3 else 0.0
    return reach + f, reach - f, grown + df, grown - df


@lean_leaf
def _line_step(step, x, d):
    """The shorter one of `step` and the longest with x + step d not negative."""
    return min(step, -x / d) if d < 0.0 else step


@lean_leaf
def _shorten(b: Blocks, i, w: InteriorWorkspace, weight, step):
    """The shorter one of `step` and the longest along the direction of block i that stays
    inside."""
    st, unit = w.state, w.unit[i, 0]
    if unit == Unit.CONE:
        step = cone.shorten(st, i, X, DX, step)
        step = cone.shorten(st, i, Y, DY, step)
    elif unit == Unit.LINE:
        step = _line_step(_line_step(step, st[i, X], st[i, DX]), st[i, Y], st[i, DY])
    first, last = intervals_of(b, w, i)
    for r in range(first, last):
        if first == 0 or acts(b, i, r, weight):
            c = r - first
            up, down, d_up, d_down = _room_of(b, w, i, r, first)
            step = _line_step(_line_step(step, up, d_up), down, d_down)
            step = _line_step(step, st[i, P + c], st[i, DP + c])
            step = _line_step(step, st[i, Q + c], st[i, DQ + c])
    return step


@lean
def find_longest_step(b: Blocks, g: Graph, k, w: InteriorWorkspace, weight):
    """Longest step along the direction at hand that stays inside."""
    step = ENDLESS_STEP
    for at in range(g.members[k], g.members[k + 1]):
        step = _shorten(b, g.member[at], w, weight, step)
    return step


@lean
def advance(b: Blocks, g: Graph, k, w: InteriorWorkspace, a):
    """Moves impulses and slacks by a step a."""
    st = w.state
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        unit = w.unit[i, 0]
        for r in range(b.head[i, Head.ROWS]):
            w.f[i, r] += a * st[i, DF + r]
        if unit == Unit.CONE:
            for c in range(3):
                st[i, X + c] += a * st[i, DX + c]
                st[i, Y + c] += a * st[i, DY + c]
            w.f[i, 0], w.f[i, 1], w.f[i, 2] = (
                st[i, X] / st[i, MU],
                st[i, X + 1],
                st[i, X + 2],
            )
        elif unit == Unit.LINE:
            st[i, X] += a * st[i, DX]
            st[i, Y] += a * st[i, DY]
            w.f[i, 0] = st[i, X]
        if unit == Unit.INTERVAL or w.unit[i, 2] == Unit.INTERVAL:
            for c in range(3):
                st[i, P + c] += a * st[i, DP + c]
                st[i, Q + c] += a * st[i, DQ + c]


@lean
def lift_slacks(g: Graph, k, w: InteriorWorkspace, gap):
    """Raises the slack of a cone to what the speeds give where that is larger and costs little
    complementarity: contacts that open would hold the path back."""
    st = w.state
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        if w.unit[i, 0] == Unit.CONE:
            u = w.u
            slack = u[i, 0] / st[i, MU] + np.sqrt(u[i, 1] * u[i, 1] + u[i, 2] * u[i, 2])
            if slack > st[i, Y] and st[i, X] * (slack - st[i, Y]) <= gap:
                st[i, Y] = slack
