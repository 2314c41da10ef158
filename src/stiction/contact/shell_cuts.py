"""Kernels of `drumwright_shell.py`: a dual active-set method on cuts of the friction cone.

Symbols, on the unit rows of `cones.py`:

    minimize 1/2 |v - v_free|^2   over v (r,)   subject to, at every contact i,
    a_i - mu |slip_i| >= 0,       a_i = n_i . v + free_i,   slip_i = t_i . v + free_i (2,)

which is the dual of the least kinetic energy over the cone (`drumwright_shell.py`). A cut is
one half-plane of a contact's constraint: a + mu e . slip >= 0 for a unit vector e, hence the
row g = n + mu e . t. Its multiplier is an impulse along g, that is, a normal impulse with
friction along e. The worst constraint is cut where it fails most, e = -slip / |slip|.

What each step keeps true: v - v_free is the sum of the active cuts' rows times impulses >= 0,
and the active cuts hold exactly. The driven cut's impulse grows until the cut holds; an active
one whose impulse reaches zero on the way goes. Every full step raises the dual objective, so
with a given number of facets no active set comes back (Goldfarb and Idnani 1983).

Dry friction of a joint has an impulse between -limit and limit: as a row it is active while
its slip is zero, and rests at a limit else.

How it can fail: INFEASIBLE (the driven cut depends on active ones and nothing gives way: the
bounds contradict each other), PIVOT_LIMIT.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact import baraff_driving as driving
from stiction.contact.cones import Cones
from stiction.kernels import cholesky
from stiction.kernels.compile import kernel
from stiction.status import Code

RANK = 1e-12
"""Schur complement of a unit row, below which it depends on the active ones."""

EXACT = 1e-12
"""Violation, of the load, that is left when cuts alone have to do."""

HOLDS = 1e-10
"""Violation of an optimality condition, of the load, that passes."""

INSIDE = 0.98
"""Friction below this part of its radius is taken to stick: cuts of a contact that slides
crowd around one direction, so their sum stays near the edge."""


REPAIRS = 8
"""Times that Newton's method may correct the sets before more cuts are made."""


class Cuts(NamedTuple):
    """The active rows and their impulses; the first size[0] slots are in use."""

    size: np.ndarray  # (1,) int64
    rows: np.ndarray  # (r + 1, r) unit rows; the last in use may be the driven one
    owner: np.ndarray  # (r + 1,) contact i, or n + unit
    e: np.ndarray  # (r + 1, 2)
    length: np.ndarray  # (r + 1,) of g before it was divided
    offset: np.ndarray  # (r + 1,) g . v + offset is the cut's value
    force: np.ndarray  # (r + 1,)
    low: np.ndarray  # (r + 1,)
    high: np.ndarray  # (r + 1,)
    factor: np.ndarray  # (r + 1, r + 1) Cholesky factor of rows rows'
    resting: np.ndarray  # (u,) impulse of a box row that is not active
    v: np.ndarray  # (r,)


@kernel
def new_cuts(p: Cones):
    """No cut, no impulse."""
    r = p.normal.shape[1]
    m = r + 1
    return Cuts(
        np.zeros(1, np.int64), np.empty((m, r)), np.empty(m, np.int64), np.empty((m, 2)),
        np.empty(m), np.empty(m), np.zeros(m), np.empty(m), np.empty(m), np.empty((m, m)),
        np.zeros(p.mu.shape[0]), np.zeros(r),
    )  # fmt: skip


@kernel
def _dot(a, b):
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@kernel
def _velocity(p: Cones, c: Cuts, count):
    """v from all impulses, the driven one in slot `count - 1` included."""
    c.v[:] = 0.0
    for k in range(count):
        for j in range(c.v.shape[0]):
            c.v[j] += c.force[k] * c.rows[k, j]
    for u in range(c.resting.shape[0]):
        if c.resting[u] != 0.0:
            for j in range(c.v.shape[0]):
                c.v[j] += c.resting[u] * p.rows[u, 0, j]


@kernel
def _against(slip0, slip1, facets):
    """(e0, e1): where a cone of that many facets (0: a circle) opposes the slip most."""
    size = np.hypot(slip0, slip1)
    if size == 0.0:
        return 0.0, 0.0  # the normal itself is a row of the cone
    if facets == 0:
        return -slip0 / size, -slip1 / size
    sector = 2.0 * np.pi / facets
    angle = np.round(np.arctan2(-slip1, -slip0) / sector) * sector
    if facets == 2:
        return (-1.0 if slip0 > 0.0 else 1.0), 0.0
    return np.cos(angle), np.sin(angle)


@kernel
def _set_cut(p: Cones, c: Cuts, slot, i, e0, e1):
    """Puts the cut of contact i along (e0, e1) into a slot; returns its value."""
    row = c.rows[slot]
    row[:] = p.normal[i]
    offset = p.free_normal[i]
    for u in range(p.first[i], p.first[i + 1]):
        f0, f1 = p.mu[u] * e0, p.mu[u] * e1
        for j in range(row.shape[0]):
            row[j] += f0 * p.rows[u, 0, j] + f1 * p.rows[u, 1, j]
        offset += f0 * p.free[u, 0] + f1 * p.free[u, 1]
    length = np.sqrt(_dot(row, row))
    if length == 0.0:
        length = 1.0
    for j in range(row.shape[0]):
        row[j] /= length
    c.owner[slot] = i
    c.e[slot, 0] = e0
    c.e[slot, 1] = e1
    c.length[slot] = length
    c.offset[slot] = offset / length
    c.force[slot] = 0.0
    c.low[slot] = 0.0
    c.high[slot] = np.inf
    return _dot(row, c.v) + c.offset[slot]


@kernel
def _slip(p: Cones, u, v):
    return p.free[u, 0] + _dot(p.rows[u, 0], v), p.free[u, 1] + _dot(p.rows[u, 1], v)


@kernel
def _worst_contact(p: Cones, c: Cuts, facets, tolerance):
    """(contact, e0, e1) of the constraint that fails most, or (-1, 0, 0)."""
    worst, found, best0, best1 = -tolerance, -1, 0.0, 0.0
    for i in range(p.normal.shape[0]):
        value = p.free_normal[i] + _dot(p.normal[i], c.v)
        e0, e1, mu = 0.0, 0.0, 0.0
        for u in range(p.first[i], p.first[i + 1]):
            slip0, slip1 = _slip(p, u, c.v)
            e0, e1 = _against(slip0, slip1, facets)
            mu = p.mu[u]
            value += mu * (e0 * slip0 + e1 * slip1)
        value /= np.sqrt(1.0 + mu * mu)
        if value < worst * (1.0 + 1e-9):
            worst, found, best0, best1 = value, i, e0, e1
    return found, best0, best1


@kernel
def _worst_box(p: Cones, c: Cuts, tolerance):
    """Unit of dry friction at rest whose slip asks for another impulse, or -1."""
    worst, found = tolerance, -1
    for u in range(p.mu.shape[0]):
        if p.parent[u] >= 0:
            continue
        active = False
        for k in range(c.size[0]):
            active = active or c.owner[k] == p.normal.shape[0] + u
        if active:
            continue
        slip, _ = _slip(p, u, c.v)
        room = p.limit[u] - c.resting[u] if slip < 0.0 else c.resting[u] + p.limit[u]
        if min(abs(slip), room) > worst:
            worst, found = min(abs(slip), room), u
    return found


@kernel
def _set_box(p: Cones, c: Cuts, slot, u):
    """Puts a row of dry friction into a slot, turned so that its value is negative."""
    slip, _ = _slip(p, u, c.v)
    turn = -1.0 if slip > 0.0 else 1.0
    for j in range(c.v.shape[0]):
        c.rows[slot, j] = turn * p.rows[u, 0, j]
    c.owner[slot] = p.normal.shape[0] + u
    c.e[slot, 0] = turn
    c.e[slot, 1] = 0.0
    c.length[slot] = 1.0
    c.offset[slot] = turn * p.free[u, 0]
    c.force[slot] = turn * c.resting[u]
    c.low[slot] = -p.limit[u]
    c.high[slot] = p.limit[u]
    c.resting[u] = 0.0
    return turn * slip


@kernel
def _leave(p: Cones, c: Cuts, slot, size):
    """Takes slot out of the active ones; a box row rests where it is. `size` counts the driven
    slot, which moves down too."""
    n = p.normal.shape[0]
    if c.owner[slot] >= n:
        c.resting[c.owner[slot] - n] = c.e[slot, 0] * c.force[slot]
    for k in range(slot, size - 1):
        c.rows[k] = c.rows[k + 1]
        c.owner[k] = c.owner[k + 1]
        c.e[k] = c.e[k + 1]
        c.length[k] = c.length[k + 1]
        c.offset[k] = c.offset[k + 1]
        c.force[k] = c.force[k + 1]
        c.low[k] = c.low[k + 1]
        c.high[k] = c.high[k + 1]


@kernel
def _drive(p: Cones, c: Cuts, value, limit):
    """Drives the row in slot size[0] until it holds and is active, or rests at its limit.
    Returns (code, steps)."""
    m = c.rows.shape[0]
    y = np.empty(m)
    x = np.empty(m)
    for steps in range(1, limit + 1):
        k = c.size[0]
        for s in range(k):
            y[s] = _dot(c.rows[s], c.rows[k])
        cholesky.forward(c.factor, k, y)
        rate = _dot(c.rows[k], c.rows[k])
        for s in range(k):
            rate -= y[s] * y[s]
            x[s] = y[s]
        cholesky.backward(c.factor, k, x)
        step = -value / rate if rate > RANK else np.inf
        leaving = k
        if c.high[k] - c.force[k] < step:
            step = c.high[k] - c.force[k]
            leaving = -1
        for s in range(k):
            if x[s] > RANK and c.force[s] - c.low[s] < step * x[s]:
                step = max(c.force[s] - c.low[s], 0.0) / x[s]
                leaving = s
            elif x[s] < -RANK and c.high[s] - c.force[s] < step * -x[s]:
                step = max(c.high[s] - c.force[s], 0.0) / -x[s]
                leaving = s
        if step == np.inf:
            return Code.INFEASIBLE, steps
        c.force[k] += step
        for s in range(k):
            c.force[s] = min(max(c.force[s] - step * x[s], c.low[s]), c.high[s])
        if leaving == k:
            cholesky.append(c.factor, k, y, rate)
            c.size[0] = k + 1
            _velocity(p, c, k + 1)
            return Code.SOLVED, steps
        if leaving < 0:
            c.force[k] = c.high[k]
            _leave(p, c, k, k + 1)
            _velocity(p, c, k)
            return Code.SOLVED, steps
        if x[leaving] > 0.0:
            c.force[leaving] = c.low[leaving]
        else:
            c.force[leaving] = c.high[leaving]
        _leave(p, c, leaving, k + 1)
        cholesky.delete(c.factor, k, leaving)
        c.size[0] = k - 1
        _velocity(p, c, k)
        value = _dot(c.rows[k - 1], c.v) + c.offset[k - 1]
        if value >= 0.0:
            cholesky_row(c, k - 1)
            return Code.SOLVED, steps
    return Code.PIVOT_LIMIT, limit


@kernel
def cholesky_row(c: Cuts, k):
    """Makes the driven row in slot k, which holds already, active if it is independent."""
    y = np.empty(k + 1)
    rate = _dot(c.rows[k], c.rows[k])
    for s in range(k):
        y[s] = _dot(c.rows[s], c.rows[k])
    cholesky.forward(c.factor, k, y)
    for s in range(k):
        rate -= y[s] * y[s]
    if rate > RANK:
        cholesky.append(c.factor, k, y, rate)
        c.size[0] = k + 1


@kernel
def cut_down(p: Cones, c: Cuts, facets, tolerance, limit):
    """Cuts until no constraint fails by more than `tolerance`; returns (code, steps)."""
    steps = 0
    while steps < limit:
        k = c.size[0]
        i, e0, e1 = _worst_contact(p, c, facets, tolerance)
        if i >= 0:
            value = _set_cut(p, c, k, i, e0, e1)
        else:
            u = _worst_box(p, c, tolerance)
            if u < 0:
                return Code.SOLVED, steps
            value = _set_box(p, c, k, u)
        code, more = _drive(p, c, value, limit - steps)
        steps += more
        if code != Code.SOLVED:
            return code, steps
    return Code.PIVOT_LIMIT, steps


@kernel
def to_sets(p: Cones, c: Cuts, s: driving.Sets):
    """Impulses of the cuts, contact by contact, and the sets they suggest."""
    n = p.normal.shape[0]
    s.theta[:] = 0.0
    s.phi[:, :] = 0.0
    for u in range(p.mu.shape[0]):
        if p.parent[u] < 0:
            s.phi[u, 0] = c.resting[u]
    for k in range(c.size[0]):
        if c.owner[k] < n:
            i = c.owner[k]
            along = c.force[k] / c.length[k]
            s.theta[i] += along
            for u in range(p.first[i], p.first[i + 1]):
                s.phi[u, 0] += p.mu[u] * along * c.e[k, 0]
                s.phi[u, 1] += p.mu[u] * along * c.e[k, 1]
        else:
            s.phi[c.owner[k] - n, 0] = c.e[k, 0] * c.force[k]
    for i in range(n):
        s.normal[i] = driving.CLAMPED if s.theta[i] > 0.0 else driving.SEPARATING
    for u in range(p.mu.shape[0]):
        size = np.hypot(s.phi[u, 0], s.phi[u, 1])
        i = p.parent[u]
        if i >= 0 and s.theta[i] == 0.0:
            s.unit[u] = driving.IDLE
        elif size > INSIDE * driving.radius(p, s, u):
            s.unit[u] = driving.SLIP
            s.along[u, 0] = s.phi[u, 0] / size
            s.along[u, 1] = s.phi[u, 1] / size
        else:
            s.unit[u] = driving.STICK


@kernel
def optimality(p: Cones, s: driving.Sets):
    """Largest violation of what makes impulses in `s` the least energy: they lie in the cone,
    a - mu |slip| >= 0, and one of the two at its edge, friction against the slip."""
    worst = 0.0
    for i in range(s.theta.shape[0]):
        value = s.a[i]
        for u in range(p.first[i], p.first[i + 1]):
            slip = np.hypot(s.slip[u, 0], s.slip[u, 1])
            reach = p.mu[u] * max(s.theta[i], 0.0)
            weight = np.sqrt(1.0 + p.mu[u] * p.mu[u])
            value = (value - p.mu[u] * slip) / weight
            worst = max(worst, np.hypot(s.phi[u, 0], s.phi[u, 1]) - reach)
            if slip > 0.0:
                off0 = s.phi[u, 0] + reach * s.slip[u, 0] / slip
                off1 = s.phi[u, 1] + reach * s.slip[u, 1] / slip
                worst = max(worst, min(slip, np.hypot(off0, off1)))
        worst = max(worst, max(max(-value, -s.theta[i]), min(value, s.theta[i])))
    for u in range(p.mu.shape[0]):
        if p.parent[u] < 0:
            goal = min(max(s.phi[u, 0] - s.slip[u, 0], -p.limit[u]), p.limit[u])
            worst = max(worst, abs(s.phi[u, 0] - goal))
    return worst if worst == worst else np.inf


@kernel
def repair(p: Cones, s: driving.Sets):
    """Moves what Newton's method left outside its set to the set next to it; returns how many."""
    moved = 0
    for i in range(s.theta.shape[0]):
        value = s.a[i]
        for u in range(p.first[i], p.first[i + 1]):
            value -= p.mu[u] * np.hypot(s.slip[u, 0], s.slip[u, 1])
        presses = s.normal[i] == driving.CLAMPED
        if presses and s.theta[i] < 0.0:
            s.normal[i] = driving.SEPARATING
            s.theta[i] = 0.0
            moved += 1
        elif not presses and value < -HOLDS:
            s.normal[i] = driving.CLAMPED
            moved += 1
        for u in range(p.first[i], p.first[i + 1]):
            moved += repair_unit(p, s, u, s.normal[i] == driving.CLAMPED)
    for u in range(p.mu.shape[0]):
        if p.parent[u] < 0:
            moved += repair_unit(p, s, u, True)
    driving.settle(p, s)
    return moved


@kernel
def repair_unit(p: Cones, s: driving.Sets, u, presses):
    """The same for one friction unit; returns whether it moved."""
    size = np.hypot(s.phi[u, 0], s.phi[u, 1])
    slip = np.hypot(s.slip[u, 0], s.slip[u, 1])
    along = s.along[u, 0] * s.slip[u, 0] + s.along[u, 1] * s.slip[u, 1]
    before = s.unit[u]
    if not presses:
        s.unit[u] = driving.IDLE
    elif before == driving.IDLE:
        s.unit[u] = driving.STICK
        if slip > HOLDS:
            s.unit[u] = driving.SLIP
            s.along[u, 0] = -s.slip[u, 0] / slip
            s.along[u, 1] = -s.slip[u, 1] / slip
    elif before == driving.STICK and size > driving.radius(p, s, u) + HOLDS:
        s.unit[u] = driving.SLIP
        s.along[u, 0] = s.phi[u, 0] / size
        s.along[u, 1] = s.phi[u, 1] / size
    elif before == driving.SLIP and along > 0.0:
        s.unit[u] = driving.STICK
    return s.unit[u] != before


@kernel
def polish(p: Cones, s: driving.Sets, w: driving.Work):
    """Newton's method on the circle from the sets in `s`, which it may correct; whether all
    optimality conditions hold after it."""
    driving.settle(p, s)
    for _ in range(REPAIRS):
        driving.refresh(p, s, w, True, 8)
        if optimality(p, s) <= HOLDS:
            return True
        if repair(p, s) == 0:
            break
    return False


@kernel
def solve_shell(p: Cones, facets, start_theta, start_phi, limit):
    """(theta, phi, code, steps): least kinetic energy over the cone, of `facets` sides or (0)
    circular. start_theta, start_phi: an earlier answer, or empty."""
    n = p.normal.shape[0]
    s = driving.new_sets(p)
    w = driving.new_work(p)
    c = new_cuts(p)
    steps = 0
    if facets > 0:
        code, steps = cut_down(p, c, facets, EXACT, limit)
        to_sets(p, c, s)
        return s.theta, s.phi, np.int64(code), steps
    if n > 0 and start_theta.shape[0] == n:
        driving.warm_sets(p, s, start_theta, start_phi)
        if polish(p, s, w):
            return s.theta, s.phi, np.int64(Code.SOLVED), 0
    # Cuts find which contacts press, stick and slide; Newton's method then finds the circle.
    tolerance = 1e-2
    code = Code.SOLVED
    while tolerance > 0.1 * EXACT:
        code, more = cut_down(p, c, 0, tolerance, limit - steps)
        steps += more
        if code != Code.SOLVED:
            break
        to_sets(p, c, s)
        if polish(p, s, w):
            return s.theta, s.phi, np.int64(code), steps
        tolerance *= 0.1
    to_sets(p, c, s)
    return s.theta, s.phi, np.int64(code), steps
