"""Forces of contacts that give, and grow harder: where Baraff's driving does not get far.

Driving takes one contact after the other, and where many depend on each other what one establishes
the next one breaks. Here all are solved at once, by the method of `solvers/proximal/` on the
problem of driving (`cones.py`), some of whose friction is dynamic. Unknown is v; with a and slip
its velocities along rows, a row that holds has

    f+ = f - a / eps                    so that with f+ = f its a is zero exactly

one that separates has no force, friction at its edge has mu theta + limit along a direction that is
fixed (dynamic friction) or turns against the slip. With f that of the last iteration, v = sum of
rows f+ is linear in v: a matrix as large as the coordinates, however many contacts there are and
whatever depends on what. Not symmetric: friction at its edge follows its normal force. Modes of the
next iteration are those of Alart and Curnier's functions: pressing if theta - a > 0, sticking if
phi - slip is within its disc. The compliance eps begins at that of the rows themselves, where many
modes are wrong and forces only tend to what they will be, and falls tenfold whenever modes stay.

Redundant rows share the load, as springs alike would: begun at no force, each has the least sum of
squares that its modes allow.

What each iteration keeps true: v is the sum of all rows times their forces. How it can fail: modes
go round, since nothing makes the method descend, or there is no finite force. The forces of least
residual are kept. They are near an answer, which driving begun with them finishes and checks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.cones import Cones
from stiction.contact.solvers.baraff.sets import FIXED, IDLE, SLIP, STICK
from stiction.kernels.compile import kernel, lean
from stiction.kernels.dense import row_dot
from stiction.kernels.linear import solve_dense

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FIRST_COMPLIANCE, LEAST_COMPLIANCE, COMPLIANCE_FALL = 1.0, 1e-7, 0.1
"""Compliance of a row over its own at first, at last, and what of it is left where modes stay."""

HARDENED = 1e-11
"""Residual, of the load, with which it is content. Rounding divided by the least compliance, 1e-9,
is left of the velocities that the forces give."""

HARDENING_STEPS = 200
"""Iterations at most; stacks take 10 to 20, dominoes that lie on each other up to 130."""


class Soft(NamedTuple):
    """Where the method stands, its matrix, and the best forces so far."""

    press: Mask  # (n,)
    unit: NDArray[np.int8]  # (u,) STICK, SLIP, FIXED, or IDLE where the contact does not press
    along: Array  # (u, 2) direction of friction at its edge
    across: Array  # (u,) how stiff friction at its edge is against turning
    theta: Array  # (n,)
    phi: Array  # (u, 2)
    v: Array  # (r,)
    a: Array  # (n,)
    slip: Array  # (u, 2)
    matrix: Array  # (r, r)
    column: Array  # (r,)
    best_theta: Array  # (n,)
    best_phi: Array  # (u, 2)


@lean
def _add(K: Array, column: Array, rows: Array, i: int, stiff: float) -> None:
    """K += stiff column rows_i'."""
    for j in range(column.shape[0]):
        if column[j] != 0.0:
            scale = stiff * column[j]
            for k in range(column.shape[0]):
                K[j, k] += scale * rows[i, k]


@lean
def _solve_velocity(p: Cones, s: Soft, eps: float) -> bool:
    """v of these modes, after the forces at hand; False if there is none."""
    n, r = p.normal.shape
    rows = p.rows.reshape((2 * p.mu.shape[0], r))
    K, v, column = s.matrix, s.v, s.column
    for j in range(r):
        v[j] = 0.0
        for k in range(r):
            K[j, k] = 0.0
        K[j, j] = 1.0
    for i in range(n):
        if not s.press[i]:
            continue
        for k in range(r):
            column[k] = p.normal[i, k]
        for u in range(p.first[i], p.first[i + 1]):
            if s.unit[u] != STICK:
                for k in range(r):
                    column[k] += p.mu[u] * (
                        s.along[u, 0] * rows[2 * u, k] + s.along[u, 1] * rows[2 * u + 1, k]
                    )
        _add(K, column, p.normal, i, 1.0 / eps)
        before = s.theta[i] - p.free_normal[i] / eps
        for k in range(r):
            v[k] += before * column[k]
    for u in range(p.mu.shape[0]):
        if s.unit[u] == IDLE:
            continue
        if s.unit[u] == STICK:
            for t in range(1 if p.flat[u] else 2):
                for k in range(r):
                    column[k] = rows[2 * u + t, k]
                _add(K, column, rows, 2 * u + t, 1.0 / eps)
                before = s.phi[u, t] - p.free[u, t] / eps
                for k in range(r):
                    v[k] += before * column[k]
            continue
        for k in range(r):
            v[k] += p.limit[u] * (
                s.along[u, 0] * rows[2 * u, k] + s.along[u, 1] * rows[2 * u + 1, k]
            )
        if s.unit[u] == SLIP and not p.flat[u]:
            across0, across1 = -s.along[u, 1], s.along[u, 0]
            for k in range(r):
                column[k] = across0 * rows[2 * u, k] + across1 * rows[2 * u + 1, k]
            for j in range(r):
                scale = s.across[u] * column[j]
                for k in range(r):
                    K[j, k] += scale * column[k]
            before = s.across[u] * (across0 * p.free[u, 0] + across1 * p.free[u, 1])
            for k in range(r):
                v[k] -= before * column[k]
    return bool(solve_dense(K, v.reshape((-1, 1)), r, 0.0))


@lean
def _follow_forces(p: Cones, s: Soft, eps: float) -> None:
    """a, slip and the forces that follow from v and the modes."""
    n, r = p.normal.shape
    rows = p.rows.reshape((2 * p.mu.shape[0], r))
    for i in range(n):
        s.a[i] = row_dot(p.normal, i, s.v) + p.free_normal[i]
        s.theta[i] = s.theta[i] - s.a[i] / eps if s.press[i] else 0.0
    for u in range(p.mu.shape[0]):
        for t in range(2):
            s.slip[u, t] = row_dot(rows, 2 * u + t, s.v) + p.free[u, t]
        if s.unit[u] == IDLE:
            s.phi[u, 0], s.phi[u, 1] = 0.0, 0.0
        elif s.unit[u] == STICK:
            s.phi[u, 0] -= s.slip[u, 0] / eps
            s.phi[u, 1] = 0.0 if p.flat[u] else s.phi[u, 1] - s.slip[u, 1] / eps
        else:
            edge = p.limit[u] + (p.mu[u] * s.theta[p.parent[u]] if p.parent[u] >= 0 else 0.0)
            s.phi[u, 0], s.phi[u, 1] = edge * s.along[u, 0], edge * s.along[u, 1]
            if s.unit[u] == SLIP and not p.flat[u]:
                turn = s.across[u] * (s.along[u, 1] * s.slip[u, 0] - s.along[u, 0] * s.slip[u, 1])
                s.phi[u, 0] -= turn * s.along[u, 1]
                s.phi[u, 1] += turn * s.along[u, 0]


@lean
def _set_unit(p: Cones, s: Soft, u: int, eps: float) -> tuple[bool, float]:
    """(whether the mode of unit u changed, its residual)."""
    i, was = p.parent[u], s.unit[u]
    presses, reach, edge = True, p.limit[u], p.limit[u]
    if i >= 0:
        presses = s.press[i]
        reach += p.mu[u] * max(s.theta[i], 0.0)
        edge += p.mu[u] * max(s.theta[i] - s.a[i], 0.0)
    if was == FIXED:
        return False, 0.0
    y0, y1 = s.phi[u, 0] - s.slip[u, 0], s.phi[u, 1] - s.slip[u, 1]
    if p.flat[u]:
        y1 = 0.0
    size = np.hypot(y0, y1)
    inside = 1.0 if size <= reach else reach / size
    residual = max(abs(inside * y0 - s.phi[u, 0]), abs(inside * y1 - s.phi[u, 1]))
    if not presses:
        s.unit[u] = IDLE
    elif size <= edge:
        s.unit[u] = STICK
    else:
        s.unit[u] = SLIP
        s.along[u, 0], s.along[u, 1] = y0 / size, y1 / size
        # Across the slip friction turns with it: by reach / |slip|, |slip| = size - edge.
        s.across[u] = edge / (size - edge + edge * eps)
    return s.unit[u] != was, residual


@lean
def _set_modes(p: Cones, s: Soft, eps: float) -> tuple[bool, float]:
    """(whether any mode changed, the largest residual of a law)."""
    changed, worst = False, 0.0
    for i in range(s.theta.shape[0]):
        worst = max(worst, abs(min(s.theta[i], s.a[i])))
        presses = s.theta[i] - s.a[i] > 0.0
        changed |= presses != s.press[i]
        s.press[i] = presses
    for u in range(p.mu.shape[0]):
        other, residual = _set_unit(p, s, u, eps)
        changed |= other
        worst = max(worst, residual)
    return changed, worst


@kernel
def harden(p: Cones, fixed: Mask, along: Array) -> tuple[Array, Array, float, int]:
    """(theta, phi, residual, iterations): forces of the least residual found, from none; fixed and
    along as in `solve_driving`."""
    n, r = p.normal.shape
    units = p.mu.shape[0]
    s = Soft(
        p.free_normal < 0.0, np.full(units, STICK, np.int8), along.copy(), np.zeros(units),
        np.zeros(n), np.zeros((units, 2)), np.zeros(r), np.zeros(n), np.zeros((units, 2)),
        np.empty((r, r)), np.empty(r), np.zeros(n), np.zeros((units, 2)),
    )  # fmt: skip
    for u in range(units):
        if fixed[u]:
            s.unit[u] = FIXED
        elif p.parent[u] >= 0 and not s.press[p.parent[u]]:
            s.unit[u] = IDLE
    return s.best_theta, s.best_phi, *_harden(p, s)


@lean
def _harden(p: Cones, s: Soft) -> tuple[float, int]:
    """(least residual, iterations); its forces are in `s`."""
    eps, best, steps = FIRST_COMPLIANCE, np.inf, 0
    while steps < HARDENING_STEPS and best > HARDENED:
        steps += 1
        if not _solve_velocity(p, s, eps):
            break
        _follow_forces(p, s, eps)
        changed, residual = _set_modes(p, s, eps)
        if not np.isfinite(residual):
            break
        for i in range(s.theta.shape[0]):
            s.theta[i] = max(s.theta[i], 0.0)
        if residual < best:
            best = residual
            for i in range(s.theta.shape[0]):
                s.best_theta[i] = s.theta[i]
            for u in range(s.phi.shape[0]):
                s.best_phi[u, 0], s.best_phi[u, 1] = s.phi[u, 0], s.phi[u, 1]
        if not changed:
            eps = max(COMPLIANCE_FALL * eps, LEAST_COMPLIANCE)
    return best, steps
