"""Baraff's index sets, and the forces that answer when one of them is driven.

Symbols, on the unit rows of `cones.py` (there the diagonal of A = rows rows' is one):

    theta_i, a_i    normal force of contact i, and its acceleration   a_i  = n_i . v + free_i
    phi_u, slip_u   friction of unit u, and its tangential one (2,)   slip = t_u . v + free_u
    v               sum of all rows times their forces
    radius_u        mu theta_parent + limit: the strength that friction may have
    along_u         unit vector: direction of friction at the edge of its disc

Each contact is in one set by its normal (his C, NC) and each unit in one by its friction:

    CLAMPED      a = 0 is kept by varying theta         STICK   slip = 0 is kept   (his CF)
    SEPARATING   theta = 0 is kept, a >= 0              SLIP    phi = radius along (his NCF),
    OPEN         not considered, or given up                    along . slip <= 0  (his (21))
                                                        HALF    along . slip = 0, while driven
    IDLE: a unit whose contact does not press           FIXED   SLIP for ever: dynamic friction

The forces that answer to a step of the driven one solve G x = -rows . driven, over the rows
that are held (CLAMPED, STICK). G = rows cols' is not symmetric: the column of a contact that
slides is n + mu along . t, as its friction follows its normal force.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.problem.cones import Cones
from stiction.kernels.compile import kernel, lean
from stiction.kernels.dense import dot, row_dot, rows_dot
from stiction.kernels.linear import project_out, solve_dense

OPEN, CLAMPED, SEPARATING = 0, 1, 2
STICK, SLIP, HALF, IDLE, FIXED = 1, 2, 3, 4, 5

NORMAL, FRICTION = 0, 1

DEPENDENT_CLAMPED = 1e-7
"""Remainder of a unit row, after projection on those held, below which it is not held. Rounding
leaves 1e-16; a mass ratio of 10^6 leaves 1e-3. Lower, and a nearly dependent row takes forces
of its inverse."""

CANCELLED = 0.7
"""Remainder of a row after projection, of its length, above which rounding in it is that of the row
and once is enough."""

BROKEN = 1e-10
"""Violation of a condition, of the load, beyond which it has to be established."""

RATE = 1e-11
"""A rate below this, relative to the largest, is rounding and never meets a limit."""

NEGLIGIBLE = 1e-12
"""A step that moves nothing by more than this of the load counts as zero (his 5.4)."""

LEAST_PIVOT = 1e-12
"""Pivot below which the held rows cannot be kept by the forces that answer."""

LIMIT_TURN = 0.5
"""Angle [rad] by which one Newton step may turn a direction."""


class Sets(NamedTuple):
    """Where the method stands: sets, forces, and what follows from them."""

    normal: np.ndarray  # (n,) int8
    unit: np.ndarray  # (u,) int8
    theta: np.ndarray  # (n,)
    phi: np.ndarray  # (u, 2)
    along: np.ndarray  # (u, 2)
    v: np.ndarray  # (r,)
    a: np.ndarray  # (n,)
    slip: np.ndarray  # (u, 2)


class Work(NamedTuple):
    """The system of held rows, and the direction found with it."""

    rows: np.ndarray  # (cap, r)
    cols: np.ndarray  # (cap, r)
    extra: np.ndarray  # (cap,) added to the diagonal
    name: np.ndarray  # (cap,) contact i, or n + unit
    weight: np.ndarray  # (cap, 2) of a unit's row, in its plane
    basis: np.ndarray  # (r, r) orthonormal, of the held rows
    matrix: np.ndarray  # (cap, cap)
    x: np.ndarray  # (cap,)
    driven: np.ndarray  # (r,)
    aim: np.ndarray  # (2,) direction of the friction that is driven
    changed: np.ndarray  # (2,) int64, kind and index of the member that changed sets last, or -1
    theta: np.ndarray  # (n,) rates from here on
    phi: np.ndarray  # (u, 2)
    v: np.ndarray  # (r,)
    a: np.ndarray  # (n,)
    slip: np.ndarray  # (u, 2)


@kernel
def new_sets(p: Cones):
    """All contacts open, all units idle, but those without a contact (dry joint friction)."""
    n, r = p.normal.shape
    units = p.mu.shape[0]
    unit = np.full(units, IDLE, np.int8)
    for u in range(units):
        if p.parent[u] < 0:
            unit[u] = OPEN
    return Sets(
        np.zeros(n, np.int8), unit, np.zeros(n), np.zeros((units, 2)), np.zeros((units, 2)),
        np.zeros(r), p.free_normal.copy(), p.free.copy(),
    )  # fmt: skip


@kernel
def new_work(p: Cones):
    """Room for all that a solve needs."""
    n, r = p.normal.shape
    units = p.mu.shape[0]
    cap = r + units + 1
    return Work(
        np.empty((cap, r)), np.empty((cap, r)), np.empty(cap), np.empty(cap, np.int64),
        np.empty((cap, 2)), np.empty((r, r)), np.empty((cap, cap)), np.empty(cap), np.empty(r),
        np.empty(2), np.empty(2, np.int64), np.empty(n), np.empty((units, 2)), np.empty(r),
        np.empty(n), np.empty((units, 2)),
    )  # fmt: skip


@lean
def _add_unit(p: Cones, u, f0, f1, out):
    """out += f0 and f1 times the unit's two rows."""
    for k in range(out.shape[0]):
        out[k] += f0 * p.rows[u, 0, k] + f1 * p.rows[u, 1, k]


@lean
def radius(p: Cones, s: Sets, u):
    """How strong the unit's friction may be."""
    if p.parent[u] < 0:
        return p.limit[u]
    return p.limit[u] + p.mu[u] * max(s.theta[p.parent[u]], 0.0)


@lean
def normal_fault(s: Sets, i):
    """How far contact i, not clamped, is from its normal condition."""
    return max(max(-s.a[i], -s.theta[i]), min(s.theta[i], s.a[i]))


@lean
def unit_fault(p: Cones, s: Sets, u):
    """How far open friction is from its condition: beyond its edge, or slipping inside it."""
    size = np.hypot(s.phi[u, 0], s.phi[u, 1])
    reach = radius(p, s, u)
    if size > reach:
        return size - reach
    return min(np.hypot(s.slip[u, 0], s.slip[u, 1]), reach)


@lean
def _across(p: Cones, v, a, slip):
    """a and slip that v adds to the free ones."""
    for i in range(a.shape[0]):
        a[i] = row_dot(p.normal, i, v)
    rows = p.rows.reshape((2 * slip.shape[0], v.shape[0]))
    for u in range(slip.shape[0]):
        slip[u, 0] = row_dot(rows, 2 * u, v)
        slip[u, 1] = row_dot(rows, 2 * u + 1, v)


@lean
def update_velocities(p: Cones, s: Sets):
    """v, a and slip from the forces: anew each time, so that rounding does not add up."""
    for k in range(s.v.shape[0]):
        s.v[k] = 0.0
    for i in range(s.theta.shape[0]):
        if s.theta[i] != 0.0:
            for k in range(s.v.shape[0]):
                s.v[k] += s.theta[i] * p.normal[i, k]
    for u in range(s.phi.shape[0]):
        if s.phi[u, 0] != 0.0 or s.phi[u, 1] != 0.0:
            _add_unit(p, u, s.phi[u, 0], s.phi[u, 1], s.v)
    _across(p, s.v, s.a, s.slip)
    for i in range(s.a.shape[0]):
        s.a[i] += p.free_normal[i]
    for u in range(s.slip.shape[0]):
        s.slip[u, 0] += p.free[u, 0]
        s.slip[u, 1] += p.free[u, 1]


@lean
def update_forces(p: Cones, s: Sets):
    """Friction of the units that slip or idle from their normal forces, then all velocities."""
    for u in range(s.phi.shape[0]):
        i = p.parent[u]
        if s.unit[u] == IDLE:
            s.phi[u, 0], s.phi[u, 1] = 0.0, 0.0
        elif (s.unit[u] == SLIP or s.unit[u] == FIXED) and i >= 0:
            # A normal force below zero, on its way up, pulls its friction along.
            strength = p.limit[u] + p.mu[u] * s.theta[i]
            s.phi[u, 0] = strength * s.along[u, 0]
            s.phi[u, 1] = strength * s.along[u, 1]
        elif s.unit[u] == SLIP:
            s.phi[u, 0] = p.limit[u] * s.along[u, 0]
            s.phi[u, 1] = p.limit[u] * s.along[u, 1]
    update_velocities(p, s)


@lean
def begin_slip(s: Sets, u, x, y):
    """Unit u slips from now on, its friction along (x, y)."""
    size = np.hypot(x, y)
    s.along[u, 0] = x / size
    s.along[u, 1] = y / size
    s.unit[u] = SLIP


@lean
def _column(p: Cones, s: Sets, i, out):
    """out (r,) = what a unit of theta_i does to v, with the friction that follows it."""
    for k in range(out.shape[0]):
        out[k] = p.normal[i, k]
    for u in range(p.first[i], p.first[i + 1]):
        if s.unit[u] == SLIP or s.unit[u] == FIXED:
            _add_unit(p, u, p.mu[u] * s.along[u, 0], p.mu[u] * s.along[u, 1], out)


@lean
def _hold(w: Work, k, rank, row, name, weight0, weight1):
    """Appends `row` to those held if it is independent; returns (k, rank)."""
    if rank == row.shape[0]:
        return k, rank
    spare = w.basis[rank]
    for c in range(row.shape[0]):
        spare[c] = row[c]
    before = np.sqrt(dot(row, row))
    rest = project_out(w.basis, rank, spare)
    # Once leaves rounding of the row in it, which counts where little remains.
    if DEPENDENT_CLAMPED < rest < CANCELLED * before:
        rest = project_out(w.basis, rank, spare)
    if not rest > DEPENDENT_CLAMPED * max(1.0, before):
        return k, rank
    for c in range(row.shape[0]):
        spare[c] /= rest
        w.rows[k, c], w.cols[k, c] = row[c], row[c]
    w.extra[k] = 0.0
    w.name[k] = name
    w.weight[k, 0] = weight0
    w.weight[k, 1] = weight1
    return k + 1, rank + 1


@lean
def _gather(p: Cones, s: Sets, w: Work):
    """Lists the rows to be held; returns their number.

    A dependent row is left out: it is held by the others, and its force stays as it is.
    """
    n = s.theta.shape[0]
    k = 0
    rank = 0
    for i in range(n):
        if s.normal[i] == CLAMPED:
            k, rank = _hold(w, k, rank, p.normal[i], i, 0.0, 0.0)
    for u in range(s.unit.shape[0]):
        if s.unit[u] == STICK:
            k, rank = _hold(w, k, rank, p.rows[u, 0], n + u, 1.0, 0.0)
            if not p.flat[u]:
                k, rank = _hold(w, k, rank, p.rows[u, 1], n + u, 0.0, 1.0)
        elif s.unit[u] == HALF:
            for c in range(w.driven.shape[0]):
                w.driven[c] = 0.0
            _add_unit(p, u, s.along[u, 0], s.along[u, 1], w.driven)
            k, rank = _hold(w, k, rank, w.driven, n + u, s.along[u, 0], s.along[u, 1])
    return k


@lean
def _gather_turning(p: Cones, s: Sets, w: Work, k):
    """Appends to the k rows held one across each SLIP, whose direction may turn, and whose diagonal
    gains slip over radius; returns their number."""
    n = s.theta.shape[0]
    for u in range(s.unit.shape[0]):
        if s.unit[u] != SLIP or not radius(p, s, u) > NEGLIGIBLE:
            continue
        across0, across1 = -s.along[u, 1], s.along[u, 0]
        row, column = w.rows[k], w.cols[k]
        for c in range(row.shape[0]):
            row[c] = 0.0
        _add_unit(p, u, across0, across1, row)
        if dot(row, row) > DEPENDENT_CLAMPED:
            for c in range(row.shape[0]):
                column[c] = row[c]
            against = -(s.along[u, 0] * s.slip[u, 0] + s.along[u, 1] * s.slip[u, 1])
            w.extra[k] = max(against, NEGLIGIBLE) / radius(p, s, u)
            w.name[k] = n + u
            w.weight[k, 0] = across0
            w.weight[k, 1] = across1
            k += 1
    return k


@lean
def _fill(p: Cones, s: Sets, w: Work, k):
    """Columns and G of the k rows listed."""
    n, r = p.normal.shape
    for i in range(k):
        if w.name[i] < n:
            _column(p, s, w.name[i], w.cols[i])
    for i in range(k):
        for j in range(k):
            w.matrix[i, j] = rows_dot(w.rows, i, w.cols, j, r)
        w.matrix[i, i] += w.extra[i]


@lean
def answer(p: Cones, s: Sets, w: Work, kind, d, g0, g1):
    """Fills the rates of all forces and velocities for a unit step of the driven force: of
    contact d's normal (g0 = +-1) or of unit d's friction along (g0, g1). False if singular."""
    n, r = p.normal.shape
    k = _gather(p, s, w)
    _fill(p, s, w, k)
    if kind == NORMAL:
        _column(p, s, d, w.driven)
        for c in range(r):
            w.driven[c] *= g0
    else:
        for c in range(r):
            w.driven[c] = 0.0
        _add_unit(p, d, g0, g1, w.driven)
    for i in range(k):
        w.x[i] = -dot(w.rows[i], w.driven)
    if not solve_dense(w.matrix, w.x.reshape((-1, 1)), k, LEAST_PIVOT):
        return False
    for i in range(n):
        w.theta[i] = 0.0
    for u in range(p.mu.shape[0]):
        w.phi[u, 0], w.phi[u, 1] = 0.0, 0.0
    for c in range(r):
        w.v[c] = w.driven[c]
    if kind == NORMAL:
        w.theta[d] = g0
    else:
        w.phi[d, 0] = g0
        w.phi[d, 1] = g1
    for i in range(k):
        for c in range(r):
            w.v[c] += w.x[i] * w.cols[i, c]
        if w.name[i] < n:
            w.theta[w.name[i]] = w.x[i]
        else:
            w.phi[w.name[i] - n, 0] += w.x[i] * w.weight[i, 0]
            w.phi[w.name[i] - n, 1] += w.x[i] * w.weight[i, 1]
    for u in range(p.mu.shape[0]):
        if (s.unit[u] == SLIP or s.unit[u] == FIXED) and p.parent[u] >= 0:
            follow = p.mu[u] * w.theta[p.parent[u]]
            w.phi[u, 0] = follow * s.along[u, 0]
            w.phi[u, 1] = follow * s.along[u, 1]
    _across(p, w.v, w.a, w.slip)
    return True


@lean
def refresh(p: Cones, s: Sets, w: Work, limit):
    """Newton's method on the exact law with the sets as they are: the directions of slipping
    friction turn against the slip, and what rounding left of held rows goes. Returns the
    largest residual of what is held."""
    n = s.theta.shape[0]
    worst = np.inf
    held = _gather(p, s, w)
    for _ in range(limit):
        k = _gather_turning(p, s, w, held)
        size = 0.0
        for i in range(k):
            if w.name[i] < n:
                w.x[i] = -s.a[w.name[i]]
            else:
                u = w.name[i] - n
                w.x[i] = -(w.weight[i, 0] * s.slip[u, 0] + w.weight[i, 1] * s.slip[u, 1])
            size = max(size, abs(w.x[i]))
        if size <= 1e-15 or (size <= 1e-12 and size >= 0.5 * worst):
            return size
        worst = size
        _fill(p, s, w, k)
        if not solve_dense(w.matrix, w.x.reshape((-1, 1)), k, LEAST_PIVOT):
            return size
        for i in range(k - 1, -1, -1):  # directions first: they turn by x over the old radius
            if w.name[i] < n:
                s.theta[w.name[i]] += w.x[i]
            else:
                u = w.name[i] - n
                if s.unit[u] == SLIP:
                    angle = w.x[i] / radius(p, s, u)
                    angle = min(max(angle, -LIMIT_TURN), LIMIT_TURN)
                    c, q = np.cos(angle), np.sin(angle)
                    e0, e1 = s.along[u, 0], s.along[u, 1]
                    s.along[u, 0] = c * e0 - q * e1
                    s.along[u, 1] = q * e0 + c * e1
                else:
                    s.phi[u, 0] += w.x[i] * w.weight[i, 0]
                    s.phi[u, 1] += w.x[i] * w.weight[i, 1]
        update_forces(p, s)
    return worst
