"""Kernels of Baraff's method: forces are driven one after the other, sets keep the laws.

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

What each step keeps true: all conditions of all sets. The force that is driven grows until its
own condition is met; whatever member of a set meets its limit on the way changes sets.

The forces that answer to a step of the driven one solve G x = -rows . driven, over the rows
that are held (CLAMPED, STICK). G = rows cols' is not symmetric: the column of a contact that
slides is n + mu along . t, as its friction follows its normal force.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.cones import Cones, project_out
from stiction.kernels.compile import kernel
from stiction.status import Code

OPEN, CLAMPED, SEPARATING = 0, 1, 2
STICK, SLIP, HALF, IDLE, FIXED = 1, 2, 3, 4, 5

NORMAL, FRICTION = 0, 1

DEPENDENT = 1e-7
"""Remainder of a unit row, after projection on those held, below which it is not held. Rounding
leaves 1e-16; a mass ratio of 10^6 leaves 1e-3. Lower, and a nearly dependent row takes forces
of its inverse."""

BROKEN = 1e-10
"""Violation of a condition, of the load, beyond which it has to be established."""

RATE = 1e-11
"""A rate below this, relative to the largest, is rounding and never meets a limit."""

STILL = 1e-12
"""A step that moves nothing by more than this of the load counts as zero (his 5.4)."""

SINGULAR = 1e-12
"""Pivot below which the held rows cannot be kept by the forces that answer."""


RAYS = 3
"""Rays after which the directions are refreshed and the drive begun again."""


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
        np.empty(n), np.empty((units, 2)), np.empty(r), np.empty(n), np.empty((units, 2)),
    )  # fmt: skip


@kernel
def _dot(a, b):
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@kernel
def _add_unit(p: Cones, u, f0, f1, out):
    """out += f0 and f1 times the unit's two rows."""
    for k in range(out.shape[0]):
        out[k] += f0 * p.rows[u, 0, k] + f1 * p.rows[u, 1, k]


@kernel
def radius(p: Cones, s: Sets, u):
    """How strong the unit's friction may be."""
    if p.parent[u] < 0:
        return p.limit[u]
    return p.limit[u] + p.mu[u] * max(s.theta[p.parent[u]], 0.0)


@kernel
def _across(p: Cones, v, free_n, free_t, a, slip):
    """a and slip that belong to v."""
    for i in range(a.shape[0]):
        a[i] = free_n[i] + _dot(p.normal[i], v)
    for u in range(slip.shape[0]):
        slip[u, 0] = free_t[u, 0] + _dot(p.rows[u, 0], v)
        slip[u, 1] = free_t[u, 1] + _dot(p.rows[u, 1], v)


@kernel
def measure(p: Cones, s: Sets):
    """v, a and slip from the forces: anew each time, so that rounding does not add up."""
    s.v[:] = 0.0
    for i in range(s.theta.shape[0]):
        if s.theta[i] != 0.0:
            for k in range(s.v.shape[0]):
                s.v[k] += s.theta[i] * p.normal[i, k]
    for u in range(s.phi.shape[0]):
        if s.phi[u, 0] != 0.0 or s.phi[u, 1] != 0.0:
            _add_unit(p, u, s.phi[u, 0], s.phi[u, 1], s.v)
    _across(p, s.v, p.free_normal, p.free, s.a, s.slip)


@kernel
def _column(p: Cones, s: Sets, i, out):
    """out (r,) = what a unit of theta_i does to v, with the friction that follows it."""
    out[:] = p.normal[i]
    for u in range(p.first[i], p.first[i + 1]):
        if s.unit[u] == SLIP or s.unit[u] == FIXED:
            _add_unit(p, u, p.mu[u] * s.along[u, 0], p.mu[u] * s.along[u, 1], out)


@kernel
def _hold(w: Work, k, rank, row, name, weight0, weight1):
    """Appends `row` to those held if it is independent; returns (k, rank)."""
    if rank == row.shape[0]:
        return k, rank
    spare = w.basis[rank]
    spare[:] = row
    project_out(w.basis, rank, spare)
    project_out(w.basis, rank, spare)
    rest = np.sqrt(_dot(spare, spare))
    if not rest > DEPENDENT * max(1.0, np.sqrt(_dot(row, row))):
        return k, rank
    for c in range(row.shape[0]):
        spare[c] /= rest
    w.rows[k] = row
    w.cols[k] = row
    w.extra[k] = 0.0
    w.name[k] = name
    w.weight[k, 0] = weight0
    w.weight[k, 1] = weight1
    return k + 1, rank + 1


@kernel
def _gather(p: Cones, s: Sets, w: Work, curved, convex):
    """Lists the rows to be held; returns their number.

    A dependent row is left out: it is held by the others, and its force stays as it is. With
    `curved`, directions of SLIP may turn: the row across it, whose diagonal gains slip over
    radius. With `convex` the row of a sliding contact is its column (an associated law).
    """
    n = s.theta.shape[0]
    k = 0
    rank = 0
    for i in range(n):
        if s.normal[i] == CLAMPED:
            before = k
            _column(p, s, i, w.driven)
            k, rank = _hold(w, k, rank, w.driven if convex else p.normal[i], i, 0.0, 0.0)
            if k > before:
                w.cols[before] = w.driven
    for u in range(s.unit.shape[0]):
        if s.unit[u] == STICK:
            k, rank = _hold(w, k, rank, p.rows[u, 0], n + u, 1.0, 0.0)
            if not p.flat[u]:
                k, rank = _hold(w, k, rank, p.rows[u, 1], n + u, 0.0, 1.0)
        elif s.unit[u] == HALF:
            w.driven[:] = 0.0
            _add_unit(p, u, s.along[u, 0], s.along[u, 1], w.driven)
            k, rank = _hold(w, k, rank, w.driven, n + u, s.along[u, 0], s.along[u, 1])
    if not curved:
        return k
    for u in range(s.unit.shape[0]):
        if s.unit[u] != SLIP or not radius(p, s, u) > STILL:
            continue
        across0, across1 = -s.along[u, 1], s.along[u, 0]
        w.rows[k] = 0.0
        _add_unit(p, u, across0, across1, w.rows[k])
        if _dot(w.rows[k], w.rows[k]) > DEPENDENT:
            w.cols[k] = w.rows[k]
            against = -(s.along[u, 0] * s.slip[u, 0] + s.along[u, 1] * s.slip[u, 1])
            w.extra[k] = max(against, STILL) / radius(p, s, u)
            w.name[k] = n + u
            w.weight[k, 0] = across0
            w.weight[k, 1] = across1
            k += 1
    return k


@kernel
def _fill(w: Work, k):
    """G of the held rows."""
    for i in range(k):
        for j in range(k):
            w.matrix[i, j] = _dot(w.rows[i], w.cols[j])
        w.matrix[i, i] += w.extra[i]


@kernel
def _eliminate(A, x, m):
    """x := A^-1 x over the first m entries, A overwritten; False if A is singular."""
    for k in range(m):
        best = k
        for i in range(k + 1, m):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if not abs(A[best, k]) > SINGULAR:
            return False
        if best != k:
            for j in range(k, m):
                A[k, j], A[best, j] = A[best, j], A[k, j]
            x[k], x[best] = x[best], x[k]
        for i in range(k + 1, m):
            factor = A[i, k] / A[k, k]
            if factor != 0.0:
                for j in range(k + 1, m):
                    A[i, j] -= factor * A[k, j]
                x[i] -= factor * x[k]
    for k in range(m - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, m):
            total -= A[k, j] * x[j]
        x[k] = total / A[k, k]
    return True


@kernel
def _answer(p: Cones, s: Sets, w: Work, kind, d, g0, g1):
    """Fills the rates of all forces and velocities for a unit step of the driven force: of
    contact d's normal (g0 = +-1) or of unit d's friction along (g0, g1). False if singular."""
    n, r = p.normal.shape
    k = _gather(p, s, w, False, False)
    _fill(w, k)
    if kind == NORMAL:
        _column(p, s, d, w.driven)
        for c in range(r):
            w.driven[c] *= g0
    else:
        w.driven[:] = 0.0
        _add_unit(p, d, g0, g1, w.driven)
    for i in range(k):
        w.x[i] = -_dot(w.rows[i], w.driven)
    if not _eliminate(w.matrix, w.x, k):
        return False
    w.theta[:] = 0.0
    w.phi[:, :] = 0.0
    w.v[:] = w.driven
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
    _across(p, w.v, np.zeros(n), np.zeros(s.slip.shape), w.a, w.slip)
    return True


@kernel
def _to_edge(f0, f1, d0, d1, reach, growth):
    """Smallest step at which |f + step d| = reach + step growth from inside (his eq. (23)), or
    inf. The root is written without cancellation."""
    a = d0 * d0 + d1 * d1 - growth * growth
    b = f0 * d0 + f1 * d1 - reach * growth
    c = min(f0 * f0 + f1 * f1 - reach * reach, 0.0)
    under = b * b - a * c
    if under < 0.0:
        return np.inf
    if b > 0.0:
        return -c / (b + np.sqrt(under))
    if a > 0.0:
        return (-b + np.sqrt(under)) / a
    return np.inf


@kernel
def _longest_step(p: Cones, s: Sets, w: Work):
    """(step, kind, index) of the first member of a set that meets its limit, or (inf, 0, -1)."""
    top = 1.0
    for i in range(w.theta.shape[0]):
        top = max(top, max(abs(w.theta[i]), abs(w.a[i])))
    rate = RATE * top
    step, kind, index = np.inf, NORMAL, -1
    for i in range(w.theta.shape[0]):
        if s.normal[i] == CLAMPED and w.theta[i] < -rate:
            here = max(s.theta[i], 0.0) / -w.theta[i]
        elif s.normal[i] == SEPARATING and w.a[i] < -rate:
            here = max(s.a[i], 0.0) / -w.a[i]
        else:
            continue
        if here < step:
            step, index = here, i
    for u in range(s.unit.shape[0]):
        here = np.inf
        if s.unit[u] == STICK:
            growth = p.mu[u] * w.theta[p.parent[u]] if p.parent[u] >= 0 else 0.0
            if abs(growth) > rate or abs(w.phi[u, 0]) + abs(w.phi[u, 1]) > rate:
                here = _to_edge(
                    s.phi[u, 0], s.phi[u, 1], w.phi[u, 0], w.phi[u, 1], radius(p, s, u), growth
                )
        elif s.unit[u] == SLIP:
            toward = s.along[u, 0] * w.slip[u, 0] + s.along[u, 1] * w.slip[u, 1]
            if toward > rate:
                now = s.along[u, 0] * s.slip[u, 0] + s.along[u, 1] * s.slip[u, 1]
                here = max(-now, 0.0) / toward
        if here < step:
            step, kind, index = here, FRICTION, u
    return step, kind, index


@kernel
def _advance(p: Cones, s: Sets, w: Work, step):
    """Takes the step; friction at its edge is set there, not integrated."""
    for i in range(s.theta.shape[0]):
        s.theta[i] += step * w.theta[i]
        if s.normal[i] == CLAMPED:
            s.theta[i] = max(s.theta[i], 0.0)
    for u in range(s.phi.shape[0]):
        s.phi[u, 0] += step * w.phi[u, 0]
        s.phi[u, 1] += step * w.phi[u, 1]
    settle(p, s)


@kernel
def settle(p: Cones, s: Sets):
    """Friction of the units that slip or idle from their normal forces, then all velocities."""
    for u in range(s.phi.shape[0]):
        i = p.parent[u]
        if s.unit[u] == IDLE:
            s.phi[u] = 0.0
        elif (s.unit[u] == SLIP or s.unit[u] == FIXED) and i >= 0:
            # A normal force below zero, on its way up, pulls its friction along.
            strength = p.limit[u] + p.mu[u] * s.theta[i]
            s.phi[u, 0] = strength * s.along[u, 0]
            s.phi[u, 1] = strength * s.along[u, 1]
        elif s.unit[u] == SLIP:
            s.phi[u, 0] = p.limit[u] * s.along[u, 0]
            s.phi[u, 1] = p.limit[u] * s.along[u, 1]
    measure(p, s)


@kernel
def _begin_slip(s: Sets, u, x, y):
    """Unit u slips from now on, its friction along (x, y)."""
    size = np.hypot(x, y)
    s.along[u, 0] = x / size
    s.along[u, 1] = y / size
    s.unit[u] = SLIP


@kernel
def _separate(p: Cones, s: Sets, i):
    """Contact i presses no more; friction that was given up elsewhere stays to be driven."""
    s.normal[i] = SEPARATING
    s.theta[i] = 0.0
    for u in range(p.first[i], p.first[i + 1]):
        if s.unit[u] != FIXED and (
            s.unit[u] == SLIP or np.hypot(s.phi[u, 0], s.phi[u, 1]) <= BROKEN
        ):
            s.unit[u] = IDLE
            s.phi[u] = 0.0
        elif s.unit[u] == STICK:
            s.unit[u] = OPEN


@kernel
def _clamp(p: Cones, s: Sets, i):
    """Contact i presses from now on; its friction starts at its edge, which is zero."""
    s.normal[i] = CLAMPED
    for u in range(p.first[i], p.first[i + 1]):
        if s.unit[u] == IDLE:
            if np.hypot(s.slip[u, 0], s.slip[u, 1]) > BROKEN:
                _begin_slip(s, u, -s.slip[u, 0], -s.slip[u, 1])
            else:
                s.unit[u] = STICK


@kernel
def _change_sets(p: Cones, s: Sets, kind, index, bounced):
    """Moves a member that met its limit to its other set; gives it up where it bounced."""
    if kind == NORMAL:
        if s.normal[index] == CLAMPED:
            _separate(p, s, index)
            if bounced:
                s.normal[index] = OPEN
        elif bounced:
            s.normal[index] = OPEN
        else:
            _clamp(p, s, index)
        return
    u = index
    if bounced:
        s.unit[u] = OPEN
    elif s.unit[u] == STICK:
        if np.hypot(s.phi[u, 0], s.phi[u, 1]) > STILL:
            _begin_slip(s, u, s.phi[u, 0], s.phi[u, 1])
        else:  # at the cone's tip: the direction is that of the slip to come
            s.unit[u] = OPEN
    else:
        # In a plane slip is now zero. In space what is left of it lies across `along`: the
        # friction has to be established anew, in another direction.
        still = np.hypot(s.slip[u, 0], s.slip[u, 1]) <= BROKEN
        s.unit[u] = STICK if still else OPEN


@kernel
def _travel(p: Cones, s: Sets, w: Work, own, memory):
    """One step: as far as `own`, or to the first change of sets, which is made.

    memory (3,) int64: kind and index of the last change, and whether its step was zero. Returns
    (code, own reached).
    """
    step, kind, index = _longest_step(p, s, w)
    arrived = own <= step
    if arrived:
        step = own
    if step == np.inf:
        return Code.RAY, False
    size = 0.0
    for i in range(s.theta.shape[0]):
        size = max(size, max(abs(w.theta[i]), abs(w.a[i])))
    still = step * max(size, 1.0) <= STILL
    _advance(p, s, w, step)
    if arrived:
        return Code.SOLVED, True
    bounced = still and memory[0] == kind and memory[1] == index
    _change_sets(p, s, kind, index, bounced)
    memory[0] = kind
    memory[1] = index
    return Code.SOLVED, False


@kernel
def _press(p: Cones, s: Sets, i):
    """Contact i is clamped with a force of its own; its friction has to be established."""
    s.normal[i] = CLAMPED
    for u in range(p.first[i], p.first[i + 1]):
        if s.unit[u] == IDLE:
            s.unit[u] = OPEN


@kernel
def drive_normal(p: Cones, s: Sets, w: Work, d, limit):
    """Drives theta_d until its condition holds; returns (code, steps)."""
    s.normal[d] = OPEN
    memory = np.full(3, -1)
    for steps in range(limit):
        if s.theta[d] >= -STILL and abs(s.a[d]) <= STILL:
            s.theta[d] = max(s.theta[d], 0.0)
            break
        rising = s.theta[d] < -STILL or s.a[d] < 0.0
        if not rising and s.theta[d] <= STILL:
            _separate(p, s, d)
            return Code.SOLVED, steps
        if not _answer(p, s, w, NORMAL, d, 1.0 if rising else -1.0, 0.0):
            return Code.SINGULAR, steps
        own = np.inf
        if s.theta[d] < -STILL:
            own = -s.theta[d]
        elif rising and w.a[d] > RATE:
            own = -s.a[d] / w.a[d]
        elif not rising:
            own = s.theta[d]
            if w.a[d] < -RATE:
                own = min(own, s.a[d] / -w.a[d])
        before = s.theta[d]
        code, arrived = _travel(p, s, w, own, memory)
        if code != Code.SOLVED:
            return code, steps
        if arrived:
            if before < -STILL:
                s.theta[d] = 0.0  # and on, if a is still negative
            elif not rising and s.theta[d] <= STILL:
                _separate(p, s, d)
                return Code.SOLVED, steps + 1
            else:
                break
    else:
        return Code.PIVOT_LIMIT, limit
    _press(p, s, d)
    return Code.SOLVED, steps + 1


@kernel
def _aim(p: Cones, s: Sets, u, g):
    """Fills g (2,) with the direction to drive open friction in; returns whether inward, to the
    edge of its disc, or (False) against the slip; True, True if its condition holds."""
    reach = radius(p, s, u)
    size = np.hypot(s.phi[u, 0], s.phi[u, 1])
    slip = np.hypot(s.slip[u, 0], s.slip[u, 1])
    if size > reach + STILL:
        g[0] = -s.phi[u, 0] / size
        g[1] = -s.phi[u, 1] / size
        return True, False
    if slip <= BROKEN:
        s.unit[u] = STICK
        return False, True
    if reach <= STILL:
        _begin_slip(s, u, -s.slip[u, 0], -s.slip[u, 1])
        return False, True
    g[0] = -s.slip[u, 0] / slip
    g[1] = -s.slip[u, 1] / slip
    if size >= reach - STILL and s.phi[u, 0] * g[0] + s.phi[u, 1] * g[1] >= 0.0:
        _begin_slip(s, u, s.phi[u, 0], s.phi[u, 1])
        return False, True
    return False, False


@kernel
def drive_friction(p: Cones, s: Sets, w: Work, u, limit):
    """Drives phi_u until its condition holds; returns (code, steps).

    First against the slip, until that component is gone or the edge is met; then across it.
    """
    s.unit[u] = OPEN
    g = np.empty(2)
    inward, holds = _aim(p, s, u, g)
    memory = np.full(3, -1)
    steps = 0
    while not holds:
        if steps >= limit:
            return Code.PIVOT_LIMIT, steps
        steps += 1
        if not _answer(p, s, w, FRICTION, u, g[0], g[1]):
            s.unit[u] = OPEN
            return Code.SINGULAR, steps
        growth = p.mu[u] * w.theta[p.parent[u]] if p.parent[u] >= 0 else 0.0
        reach = radius(p, s, u)
        edge = np.inf
        stop = np.inf
        if inward:
            size = np.hypot(s.phi[u, 0], s.phi[u, 1])
            if 1.0 + growth > RATE:
                edge = (size - reach) / (1.0 + growth)
            edge = min(edge, size)
        else:
            edge = _to_edge(s.phi[u, 0], s.phi[u, 1], w.phi[u, 0], w.phi[u, 1], reach, growth)
            toward = g[0] * w.slip[u, 0] + g[1] * w.slip[u, 1]
            if toward > RATE:
                stop = max(-(g[0] * s.slip[u, 0] + g[1] * s.slip[u, 1]), 0.0) / toward
        code, arrived = _travel(p, s, w, min(edge, stop), memory)
        if code != Code.SOLVED:
            s.unit[u] = OPEN
            return code, steps
        if not arrived:
            continue
        if inward:
            inward, holds = _aim(p, s, u, g)
        elif edge <= stop:
            if np.hypot(s.phi[u, 0], s.phi[u, 1]) > 0.0:
                _begin_slip(s, u, s.phi[u, 0], s.phi[u, 1])
            else:
                _begin_slip(s, u, g[0], g[1])
            holds = True
        elif np.hypot(s.slip[u, 0], s.slip[u, 1]) <= BROKEN:
            s.unit[u] = STICK
            holds = True
        else:
            s.along[u] = g
            s.unit[u] = HALF
            g[0], g[1] = -g[1], g[0]
            if g[0] * s.slip[u, 0] + g[1] * s.slip[u, 1] > 0.0:
                g *= -1.0
    return Code.SOLVED, steps


@kernel
def refresh(p: Cones, s: Sets, w: Work, convex, limit):
    """Newton's method on the exact law with the sets as they are: the directions of slipping
    friction turn against the slip, and what rounding left of held rows goes. Returns the
    largest residual of what is held."""
    n = s.theta.shape[0]
    worst = np.inf
    for _ in range(limit):
        k = _gather(p, s, w, True, convex)
        size = 0.0
        for i in range(k):
            if w.name[i] < n:
                w.x[i] = -s.a[w.name[i]]
                if convex:
                    for u in range(p.first[w.name[i]], p.first[w.name[i] + 1]):
                        if s.unit[u] == SLIP:
                            along = s.along[u, 0] * s.slip[u, 0] + s.along[u, 1] * s.slip[u, 1]
                            w.x[i] -= p.mu[u] * along
            else:
                u = w.name[i] - n
                w.x[i] = -(w.weight[i, 0] * s.slip[u, 0] + w.weight[i, 1] * s.slip[u, 1])
            size = max(size, abs(w.x[i]))
        if size <= 1e-15 or (size <= 1e-12 and size >= 0.5 * worst):
            return size
        worst = size
        _fill(w, k)
        if not _eliminate(w.matrix, w.x, k):
            return size
        for i in range(k - 1, -1, -1):  # directions first: they turn by x over the old radius
            if w.name[i] < n:
                s.theta[w.name[i]] += w.x[i]
            else:
                u = w.name[i] - n
                if s.unit[u] == SLIP:
                    angle = min(max(w.x[i] / radius(p, s, u), -0.5), 0.5)
                    c, q = np.cos(angle), np.sin(angle)
                    e0, e1 = s.along[u, 0], s.along[u, 1]
                    s.along[u, 0] = c * e0 - q * e1
                    s.along[u, 1] = q * e0 + c * e1
                else:
                    s.phi[u, 0] += w.x[i] * w.weight[i, 0]
                    s.phi[u, 1] += w.x[i] * w.weight[i, 1]
        settle(p, s)
    return worst


@kernel
def _give_up_broken(p: Cones, s: Sets):
    """Opens whatever does not hold after `refresh`; returns how many conditions fail."""
    broken = 0
    for i in range(s.theta.shape[0]):
        if s.normal[i] == CLAMPED:
            if s.theta[i] < -BROKEN or abs(s.a[i]) > BROKEN:
                s.normal[i] = OPEN
                broken += 1
                for u in range(p.first[i], p.first[i + 1]):
                    if s.unit[u] == STICK:
                        s.unit[u] = OPEN
            else:
                s.theta[i] = max(s.theta[i], 0.0)
        elif normal_fault(s, i) > BROKEN:
            broken += 1
        elif s.theta[i] > BROKEN:  # a drive that a ray ended: its force stands, and holds
            _press(p, s, i)
    for u in range(s.unit.shape[0]):
        size = np.hypot(s.phi[u, 0], s.phi[u, 1])
        slip = np.hypot(s.slip[u, 0], s.slip[u, 1])
        fails = False
        if s.unit[u] == STICK:
            fails = size > radius(p, s, u) + BROKEN or slip > BROKEN
        elif s.unit[u] == SLIP and size > STILL:
            along = s.along[u, 0] * s.slip[u, 0] + s.along[u, 1] * s.slip[u, 1]
            fails = along + slip > BROKEN
        elif s.unit[u] == OPEN:
            fails = unit_fault(p, s, u) > BROKEN
        if fails:
            s.unit[u] = OPEN
            broken += 1
    return broken


@kernel
def normal_fault(s: Sets, i):
    """How far contact i, not clamped, is from its normal condition."""
    return max(max(-s.a[i], -s.theta[i]), min(s.theta[i], s.a[i]))


@kernel
def unit_fault(p: Cones, s: Sets, u):
    """How far open friction is from its condition: beyond its edge, or slipping inside it."""
    size = np.hypot(s.phi[u, 0], s.phi[u, 1])
    reach = radius(p, s, u)
    if size > reach:
        return size - reach
    return min(np.hypot(s.slip[u, 0], s.slip[u, 1]), reach)


@kernel
def _next(p: Cones, s: Sets, order, last, greedy):
    """(kind, index) of what to establish next, or (0, -1): the friction of the contact whose
    normal was last driven, else the worst normal (the first by `order` unless `greedy`), else
    friction by `order`."""
    if last >= 0 and s.normal[last] == CLAMPED:
        for u in range(p.first[last], p.first[last + 1]):
            if s.unit[u] == OPEN:
                return FRICTION, u
    worst, found = BROKEN, -1
    for k in range(order.shape[0]):
        i = order[k]
        if s.normal[i] != CLAMPED:
            fault = normal_fault(s, i)
            if fault > worst * (1.0 + 1e-9):
                worst, found = fault, i
                if not greedy:
                    break
    if found >= 0:
        return NORMAL, found
    for k in range(order.shape[0]):
        for u in range(p.first[order[k]], p.first[order[k] + 1]):
            if s.unit[u] == OPEN and (
                s.normal[order[k]] == CLAMPED or np.hypot(s.phi[u, 0], s.phi[u, 1]) > BROKEN
            ):
                return FRICTION, u
    for u in range(s.unit.shape[0]):
        if s.unit[u] == OPEN and p.parent[u] < 0:
            return FRICTION, u
    return NORMAL, -1


@kernel
def establish(p: Cones, s: Sets, w: Work, order, greedy, limit, rounds):
    """Establishes the conditions everywhere, from the sets and forces in `s`.

    Returns (code, steps, rounds used): a round is his algorithm, then `refresh`. On RAY the
    direction is in w.theta, w.phi. With frozen directions a ray is no proof in space, so it
    counts only if it comes back after they were refreshed.
    """
    steps = 0
    rays = 0
    settle(p, s)
    for turn in range(rounds):
        refresh(p, s, w, False, 20)
        if _give_up_broken(p, s) == 0:
            return Code.SOLVED, steps, turn
        last = -1
        while True:
            kind, d = _next(p, s, order, last, greedy)
            if d < 0:
                break
            if steps >= limit:
                return Code.PIVOT_LIMIT, steps, turn
            if kind == NORMAL:
                code, more = drive_normal(p, s, w, d, limit - steps)
                last = d
            else:
                code, more = drive_friction(p, s, w, d, limit - steps)
                last = -1
            steps += more + 1
            if code == Code.RAY and rays < RAYS:
                rays += 1
                break
            if code != Code.SOLVED:
                return code, steps, turn
        for i in range(s.theta.shape[0]):
            if s.normal[i] == OPEN and s.theta[i] <= BROKEN and normal_fault(s, i) <= BROKEN:
                _separate(p, s, i)
    return Code.CYCLE, steps, rounds


@kernel
def sequence(n, attempt):
    """(n,) the order in which attempt number `attempt` takes the contacts: as they come, then
    from other beginnings (steps of the golden ratio), every other time backwards."""
    start = int(n * ((attempt * 0.6180339887498949) % 1.0))
    out = np.empty(n, np.int64)
    for k in range(n):
        out[k] = (start + (n - 1 - k if attempt % 2 else k)) % n
    return out


@kernel
def warm_sets(p: Cones, s: Sets, theta, phi):
    """Sets and forces of an earlier answer: what presses is clamped, what is inside its disc
    sticks, what is at its edge slips."""
    for i in range(theta.shape[0]):
        presses = theta[i] > BROKEN
        s.theta[i] = theta[i] if presses else 0.0
        s.normal[i] = CLAMPED if presses else SEPARATING
    for u in range(p.mu.shape[0]):
        if p.parent[u] >= 0 and s.normal[p.parent[u]] != CLAMPED:
            continue
        s.phi[u] = phi[u]
        size = np.hypot(phi[u, 0], phi[u, 1])
        if size > BROKEN and size >= radius(p, s, u) * (1.0 - 1e-9):
            _begin_slip(s, u, phi[u, 0], phi[u, 1])
        else:
            s.unit[u] = STICK


@kernel
def solve_driving(p: Cones, fixed, along, start_theta, start_phi, limit, rounds, attempts):
    """(theta, phi, code, steps, rounds): forces that obey the laws, or on RAY a direction.

    fixed (u,) bool: units with dynamic friction, along (u, 2) their directions; start_theta,
    start_phi: an earlier answer, or empty. An attempt that fails is followed by another
    with the contacts in another order.
    """
    n = p.normal.shape[0]
    w = new_work(p)
    steps = 0
    turns = 0
    code = Code.ERROR
    s = new_sets(p)
    for attempt in range(attempts):
        s = new_sets(p)
        for u in range(fixed.shape[0]):
            if fixed[u]:
                s.unit[u] = FIXED
                s.along[u] = along[u]
        if attempt == 0 and n > 0 and start_theta.shape[0] == n:
            warm_sets(p, s, start_theta, start_phi)
        order = sequence(n, attempt)
        code, more, turn = establish(p, s, w, order, attempt == 0, limit, rounds)
        steps += more
        turns += turn
        if code == Code.SOLVED:
            return s.theta, s.phi, np.int64(code), steps, turns
    if code == Code.RAY:
        return w.theta, w.phi, np.int64(code), steps, turns
    return s.theta, s.phi, np.int64(code), steps, turns
