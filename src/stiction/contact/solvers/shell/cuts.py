"""Least kinetic energy over a cone of facets: a dual active-set method.

Symbols, on the unit rows of `cones.py`:

    minimize 1/2 |v - v_free|^2   over v (r,)   subject to, at every contact i,
    a_i + mu e . slip_i >= 0 for all facets e,   a_i = n_i . v + free_i,   slip_i = t_i . v + free_i

which is the dual of the least kinetic energy over the cone (`drumwright_shell.py`). A cut is
one half-plane of a contact's constraint, with the row g = n + mu e . t. Its multiplier is an
impulse along g, that is, a normal impulse with friction along e. The worst constraint is cut
where it fails most, at the facet that opposes its slip most.

What each step keeps true: v - v_free is the sum of the active cuts' rows times impulses >= 0,
and the active cuts hold exactly. The driven cut's impulse grows until the cut holds; an active
one whose impulse reaches zero on the way goes. Every full step raises the dual objective, so
no active set comes back (Goldfarb and Idnani 1983).

Dry friction of a joint has an impulse between -limit and limit: as a row it is active while
its slip is zero, and rests at a limit else.

How it can fail: INFEASIBLE (the driven cut depends on active ones and nothing gives way: the
bounds contradict each other), PIVOT_LIMIT.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.problem.cones import Cones
from stiction.kernels import cholesky
from stiction.kernels.compile import kernel
from stiction.kernels.dense import dot
from stiction.status import Code

RANK = 1e-12
"""Schur complement of a unit row, below which it depends on the active ones."""

EXACT = 1e-12
"""Violation, of the load, that is left."""


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
    """(e0, e1): the facet that opposes the slip most."""
    if slip0 == 0.0 and slip1 == 0.0:
        return 0.0, 0.0  # the normal itself is a row of the cone
    if facets == 2:
        return (-1.0 if slip0 > 0.0 else 1.0), 0.0
    sector = 2.0 * np.pi / facets
    angle = np.round(np.arctan2(-slip1, -slip0) / sector) * sector
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
    length = np.sqrt(dot(row, row))
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
    return dot(row, c.v) + c.offset[slot]


@kernel
def _slip(p: Cones, u, v):
    return p.free[u, 0] + dot(p.rows[u, 0], v), p.free[u, 1] + dot(p.rows[u, 1], v)


@kernel
def _worst_contact(p: Cones, c: Cuts, facets, tolerance):
    """(contact, e0, e1) of the constraint that fails most, or (-1, 0, 0)."""
    worst, found, best0, best1 = -tolerance, -1, 0.0, 0.0
    for i in range(p.normal.shape[0]):
        value = p.free_normal[i] + dot(p.normal[i], c.v)
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
            y[s] = dot(c.rows[s], c.rows[k])
        cholesky.forward(c.factor, k, y)
        rate = dot(c.rows[k], c.rows[k])
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
        value = dot(c.rows[k - 1], c.v) + c.offset[k - 1]
        if value >= 0.0:
            _keep(c, k - 1)
            return Code.SOLVED, steps
    return Code.PIVOT_LIMIT, limit


@kernel
def _keep(c: Cuts, k):
    """Makes the driven row in slot k, which holds already, active if it is independent."""
    y = np.empty(k + 1)
    rate = dot(c.rows[k], c.rows[k])
    for s in range(k):
        y[s] = dot(c.rows[s], c.rows[k])
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
def read_impulses(p: Cones, c: Cuts):
    """(theta, phi): the cuts' impulses, contact by contact."""
    n = p.normal.shape[0]
    theta = np.zeros(n)
    phi = np.zeros(p.free.shape)
    for u in range(p.mu.shape[0]):
        if p.parent[u] < 0:
            phi[u, 0] = c.resting[u]
    for k in range(c.size[0]):
        if c.owner[k] < n:
            i = c.owner[k]
            along = c.force[k] / c.length[k]
            theta[i] += along
            for u in range(p.first[i], p.first[i + 1]):
                phi[u, 0] += p.mu[u] * along * c.e[k, 0]
                phi[u, 1] += p.mu[u] * along * c.e[k, 1]
        else:
            phi[c.owner[k] - n, 0] = c.e[k, 0] * c.force[k]
    return theta, phi


@kernel
def solve_cuts(p: Cones, facets, limit):
    """(theta, phi, code, steps): least kinetic energy over the cone of `facets` sides."""
    c = new_cuts(p)
    code, steps = cut_down(p, c, facets, EXACT, limit)
    theta, phi = read_impulses(p, c)
    return theta, phi, np.int64(code), steps
