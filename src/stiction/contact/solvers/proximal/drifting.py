"""Newton's method for the last digits, where redundant rows contradict each other.

A box that lies on another by its corners has more rows than ways to move. Rounding, or a turn
within the step, leaves no velocity at which all of them hold: one has to let go, or to slip, by
1e-8 of what the load's speed is, and what it bore passes to the others. Newton's method
(`iteration.py`) does not see it: each row is well inside of its cone, all are held, and u stays
where it is. Only the impulses change, by the same df = -u / (eps w) in every iteration, and
A' df = 0: they drift.

    drift     f := f + a df, to where the first of them comes to the edge of its cone: as far as
              modes stay what they are nothing else changes. A ratio test, as in pivoting
    modes     change there, for one row; the next iterations find where that leads

What each iteration keeps true: the momentum balance, to rounding. The compliance eps follows the
residual, so that impulses which do not drift change by little. How it fails: there are too many
such rows, or modes go round; the best iterate is kept. Of 54 heaps of 125 boxes and 147 of 343 that
the interior point had left, two rounds of patches mend 40 and 108, and with it 52 and 138.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.blocks.iterate import copy_island
from stiction.contact.solvers.blocks.system import (
    factor_system,
    imbalance,
    solve,
    speeds,
    unbalanced,
)
from stiction.contact.solvers.blocks.workspace import (
    NewtonWorkspace,
    Setting,
    unpack_newton,
    unpack_problem,
)
from stiction.contact.solvers.proximal.iteration import BALANCED, linearize, move_island
from stiction.contact.solvers.proximal.laws import residual_of
from stiction.contact.solvers.proximal.modes import MAY_PRESS, PRESSES, SEPARATE, STICK, find_modes
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.stage import stage

DRIFT_KICK, LEAST_DRIFT_EPS, LARGEST_DRIFT_EPS = 100.0, 1e-7, 1e-2
"""Compliance over the residual, and its limits: impulses that contradict each other change by a
hundredth of the load in an iteration."""

DRIFT_STEPS, DRIFT_PATIENCE = 80, 30
"""Iterations at most, and those without half the residual: it grows where modes change."""

PAST_EDGE = 1e-6
"""Share of the way to the edge by which a drift goes on: modes change there."""

ENDLESS_DRIFT = 1e10
"""Multiple that is taken to be as long as any."""


@lean_leaf
def _to_disc(y0, y1, n, d0, d1, dn, mu):
    """Least multiple a > 0 at which |y + a d| is mu (n + a dn), from inside."""
    c = y0 * y0 + y1 * y1 - mu * mu * n * n
    if not c < 0.0:
        return ENDLESS_DRIFT
    a = d0 * d0 + d1 * d1 - mu * mu * dn * dn
    b = y0 * d0 + y1 * d1 - mu * mu * n * dn
    square = b * b - a * c
    if square < 0.0 or (b <= 0.0 and a <= 0.0):
        return ENDLESS_DRIFT
    root = np.sqrt(square)
    return -c / (b + root) if b > 0.0 else (root - b) / a


@lean_leaf
def _to_limit(y, d, limit, d_limit):
    """Least multiple a > 0 at which |y + a d| is limit + a d_limit, from inside."""
    least = ENDLESS_DRIFT
    if d - d_limit > 0.0 and limit - y > 0.0:
        least = (limit - y) / (d - d_limit)
    if -d - d_limit > 0.0 and limit + y > 0.0:
        least = min(least, (limit + y) / (-d - d_limit))
    return least


@lean
def _reach_edge(b: Blocks, g: Graph, k, law, work: NewtonWorkspace, df):
    """Least multiple of df (.., ROWS) at which an impulse of island k, less u / w, comes to the
    edge of its cone."""
    f, u, weight, mode, data = work.f, work.u, work.weight, work.mode, b.data
    least = ENDLESS_DRIFT
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        kind, rows = b.head[i, Head.KIND], b.head[i, Head.ROWS]
        if weight[i, 0] == 0.0 or mode[i, 0] == SEPARATE:
            continue
        n, dn = f[i, 0] - u[i, 0] / weight[i, 0], df[i, 0]
        if kind == Kind.BOX and mode[i, 0] == STICK:
            least = min(least, _to_limit(n, dn, data[i, Datum.LIMIT], 0.0))
        if kind != Kind.CONTACT:
            continue
        if dn < 0.0 and n > 0.0:
            least = min(least, -n / dn)
        if law != Law.COULOMB or rows < 3:
            continue
        if mode[i, 1] == STICK:
            y0, y1 = f[i, 1] - u[i, 1] / weight[i, 1], f[i, 2] - u[i, 2] / weight[i, 1]
            far = _to_disc(y0, y1, n, df[i, 1], df[i, 2], dn, data[i, Datum.SLIDE])
            least = min(least, far)
        for r in range(3, rows):
            if mode[i, r - 1] == STICK and weight[i, r] > 0.0:
                rough = data[i, Datum.SPIN] if r == 3 else data[i, Datum.ROLL]
                y = f[i, r] - u[i, r] / weight[i, r]
                least = min(least, _to_limit(y, df[i, r], rough * n, rough * dn))
    return least


@stage("float64(intp, int64, float64, float64, float64)", eager=False)
def drift_island(address, k, load, content, least):
    """Residual of the best iterate, which replaces the impulses f and the velocity v of island k
    if it is better than their residual, `least`. content: residual at which it ends; address: of a
    packed workspace."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    law, facets = request.setting[Setting.LAW], request.setting[Setting.FACETS]
    f, v, u, df = work.f, work.v, work.u, y.pull
    star = g.size[Size.STAR] == 1
    copy_island(g, s, k, f, v, work.best_f, work.best_v)
    speeds(b, g, k, v, u)
    for at in range(g.members[k], g.members[k + 1]):
        work.shape[g.member[at], 4] = 0.0
    eps = min(LARGEST_DRIFT_EPS, max(LEAST_DRIFT_EPS, DRIFT_KICK * least))
    best, before, stuck, slow = least, np.inf, 0, True
    used, whole = 0.0, np.int64(-1)
    for turn in range(DRIFT_STEPS):
        changed, slides, turned = find_modes(
            b, g, k, law, facets, work, eps, MAY_PRESS * load if turn > 0 else 0.0,
            PRESSES * load, 0.0, 1.0, 0.0,
        )  # fmt: skip
        symmetric = np.int64(not (slides or star))
        linearize(b, g, k, law, work, y.D, 1.0, eps)
        if changed or used != eps or whole != symmetric or (slides and (slow or turned)):
            request.setting[Setting.FACTORIZATIONS] += 1
            used, whole = eps, symmetric
            if factor_system(b, g, s, y, k, symmetric) == 0.0:
                break
        unbalanced(b, g, s, k, v, work.g, y.left, y.rhs)
        solve(b, g, s, y, k, np.int64(1))
        for at in range(g.members[k], g.members[k + 1]):
            i = g.member[at]
            for r in range(ROWS):
                df[i, r] = f[i, r]
        move_island(b, g, s, y, k, work, 1.0, eps)
        for at in range(g.members[k], g.members[k + 1]):
            i = g.member[at]
            for r in range(ROWS):
                df[i, r] = f[i, r] - df[i, r]
        residual = residual_of(b, g, k, law, facets, u, f, work.weight, load)
        if not residual < np.inf:
            break
        if residual < max(BALANCED, best):
            unbalanced(b, g, s, k, v, f, y.left, y.rhs)
            residual = max(residual, imbalance(b, g, s, k, y.rhs) / load)
        stuck = 0 if residual < 0.5 * best else stuck + 1
        if residual < best:
            best = residual
            copy_island(g, s, k, f, v, work.best_f, work.best_v)
        late = ticks() > request.setting[Setting.DEADLINE]
        if best <= content or stuck > DRIFT_PATIENCE or late:
            break
        slow = residual > 0.1 * before
        if turn > 0 and not changed and slow:
            lower = max(LEAST_DRIFT_EPS, DRIFT_KICK * residual)
            if eps > 3.0 * lower:
                eps = lower
            elif residual > 0.5 * before:
                far = _reach_edge(b, g, k, law, work, df) * (1.0 + PAST_EDGE)
                if far < ENDLESS_DRIFT:
                    for at in range(g.members[k], g.members[k + 1]):
                        i = g.member[at]
                        for r in range(ROWS):
                            f[i, r] += far * df[i, r]
        before = residual
    copy_island(g, s, k, work.best_f, work.best_v, f, v)
    return best


drift = drift_island.external
