"""Least kinetic energy over the circular cone: an augmented Lagrangian, Newton's method inside.

Symbols, on the unit rows of `cones.py`; K the product of all friction cones and intervals,
f = (theta, phi) all impulses, u(v) = free + rows v the velocities along all rows:

    minimize 1/2 |v|^2  over v (r,)  subject to  u(v) in K*     (dual of the least energy over K)

The multiplier of that constraint is f, and v = rows' f. One round minimizes

    1/2 |v|^2 + |P_K(f - sigma u(v))|^2 / (2 sigma)

over v, a convex function with a continuous gradient, v - rows' P_K(f - sigma u(v)), by Newton's
method with a line search; then f := P_K(f - sigma u(v)). The Hessian is 1 + sigma rows' D rows
with D between 0 and 1: r x r and never singular, however many contacts repeat each other. That
is why this is the way for the circle: sets of pressing and sliding contacts, which Newton's
method on the optimality conditions needs, are not unique where contacts are redundant.

What a round keeps true: f in K, exactly. What it leaves of u in K* shrinks by about
1 / (sigma lambda), lambda the least eigenvalue of the active rows' Gram matrix.

How it can fail: PIVOT_LIMIT (rounds ran out: impulses grow for ever where bounds contradict
each other).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.problem.cones import Cones
from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.kernels.dense import dot
from stiction.status import Code

SIGMA = 1e2
"""First weight of a violation, against the inverse inertia 1 of every row. Much more, and
Newton's method starts far from its region of quadratic convergence."""

SIGMA_MAX = 1e4
"""Last weight, unless rounds gain too little: rounding of u, 1e-16, times it is that of f."""

SIGMA_END = 1e6
"""Last weight of all: 1e-10 of the impulses is then rounding."""

HOLDS = 1e-11
"""Violation of optimality, of the load, at which no round can gain more."""

MULTIPLIER_ROUNDS = 60
"""Rounds at most; five are usual."""

ROUND_STEPS = 40
"""Newton steps in one round at most; some three are usual, a dozen in the first."""


class State(NamedTuple):
    """Impulses, velocities and what Newton's method needs."""

    theta: np.ndarray  # (n,)
    phi: np.ndarray  # (u, 2)
    next_theta: np.ndarray  # (n,) P_K(f - sigma u)
    next_phi: np.ndarray  # (u, 2)
    v: np.ndarray  # (r,)
    a: np.ndarray  # (n,)
    slip: np.ndarray  # (u, 2)
    gradient: np.ndarray  # (r,)
    step: np.ndarray  # (r,)
    hessian: np.ndarray  # (r, r) upper triangle
    upper: np.ndarray  # (r, r) its factor, and where the rows of that end
    last: np.ndarray  # (r,)
    row: np.ndarray  # (r,)
    trial: np.ndarray  # (r,)


@kernel
def new_state(p: Cones):
    """No impulse."""
    n, r = p.normal.shape
    units = p.mu.shape[0]
    return State(
        np.zeros(n), np.zeros((units, 2)), np.zeros(n), np.zeros((units, 2)), np.zeros(r),
        np.zeros(n), np.zeros((units, 2)), np.zeros(r), np.zeros(r), np.zeros((r, r)),
        np.zeros((r, r)), np.zeros(r, np.int64), np.zeros(r), np.zeros(r),
    )  # fmt: skip


@kernel
def _velocities(p: Cones, v, a, slip):
    for i in range(a.shape[0]):
        a[i] = p.free_normal[i] + dot(p.normal[i], v)
    for u in range(slip.shape[0]):
        slip[u, 0] = p.free[u, 0] + dot(p.rows[u, 0], v)
        slip[u, 1] = p.free[u, 1] + dot(p.rows[u, 1], v)


@kernel
def _project(t, x0, x1, mu):
    """Nearest point to (t, x) of the cone |x| <= mu t."""
    size = np.hypot(x0, x1)
    if size <= mu * t:
        return t, x0, x1
    if mu * size <= -t:
        return 0.0, 0.0, 0.0
    edge = (t + mu * size) / (1.0 + mu * mu)
    return edge, mu * edge * x0 / size, mu * edge * x1 / size


@kernel
def _project_all(p: Cones, s: State, sigma):
    """next := P_K(f - sigma u) at s.a, s.slip; returns its square."""
    total = 0.0
    for i in range(s.a.shape[0]):
        t = s.theta[i] - sigma * s.a[i]
        if p.first[i] == p.first[i + 1]:
            s.next_theta[i] = max(t, 0.0)
        else:
            u = p.first[i]
            s.next_theta[i], s.next_phi[u, 0], s.next_phi[u, 1] = _project(
                t,
                s.phi[u, 0] - sigma * s.slip[u, 0],
                s.phi[u, 1] - sigma * s.slip[u, 1],
                p.mu[u],
            )
        total += s.next_theta[i] * s.next_theta[i]
    for u in range(s.slip.shape[0]):
        if p.parent[u] < 0:
            x = s.phi[u, 0] - sigma * s.slip[u, 0]
            s.next_phi[u, 0] = min(max(x, -p.limit[u]), p.limit[u])
            # The square of what an interval cuts off is not part of the function.
            total += x * x - (x - s.next_phi[u, 0]) ** 2
        else:
            total += s.next_phi[u, 0] ** 2 + s.next_phi[u, 1] ** 2
    return total


@kernel
def _push(p: Cones, theta, phi, out):
    """out := rows' f."""
    out[:] = 0.0
    for i in range(theta.shape[0]):
        if theta[i] != 0.0:
            for k in range(out.shape[0]):
                out[k] += theta[i] * p.normal[i, k]
    for u in range(phi.shape[0]):
        if phi[u, 0] != 0.0 or phi[u, 1] != 0.0:
            for k in range(out.shape[0]):
                out[k] += phi[u, 0] * p.rows[u, 0, k] + phi[u, 1] * p.rows[u, 1, k]


@kernel
def _add_square(matrix, row, weight):
    """matrix += weight row row', upper triangle."""
    for i in range(row.shape[0]):
        scaled = weight * row[i]
        if scaled != 0.0:
            line = matrix[i]
            for j in range(i, row.shape[0]):
                line[j] += scaled * row[j]


@kernel
def _add_unit_square(p: Cones, s: State, i, u, base, y0, y1, weight):
    """H += weight times the square of base n_i + (y0, y1) . t_u."""
    for k in range(s.row.shape[0]):
        s.row[k] = y0 * p.rows[u, 0, k] + y1 * p.rows[u, 1, k]
        if base != 0.0:
            s.row[k] += base * p.normal[i, k]
    _add_square(s.hessian, s.row, weight)


@kernel
def _fill_hessian(p: Cones, s: State, sigma):
    """1 + sigma rows' D rows, D the derivative of the projection at f - sigma u."""
    r = s.v.shape[0]
    s.hessian[:, :] = 0.0
    for k in range(r):
        s.hessian[k, k] = 1.0
    for i in range(s.a.shape[0]):
        if s.next_theta[i] == 0.0:
            continue
        if p.first[i] == p.first[i + 1]:
            _add_square(s.hessian, p.normal[i], sigma)
            continue
        u = p.first[i]
        mu = p.mu[u]
        x0 = s.phi[u, 0] - sigma * s.slip[u, 0]
        x1 = s.phi[u, 1] - sigma * s.slip[u, 1]
        size = np.hypot(x0, x1)
        if size <= mu * (s.theta[i] - sigma * s.a[i]):
            _add_square(s.hessian, p.normal[i], sigma)
            _add_square(s.hessian, p.rows[u, 0], sigma)
            _add_square(s.hessian, p.rows[u, 1], sigma)
        else:
            y0, y1 = x0 / size, x1 / size
            _add_unit_square(p, s, i, u, 1.0, mu * y0, mu * y1, sigma / (1.0 + mu * mu))
            bend = sigma * mu * s.next_theta[i] / size
            _add_unit_square(p, s, i, u, 0.0, -y1, y0, bend)
    for u in range(s.slip.shape[0]):
        if p.parent[u] < 0 and abs(s.next_phi[u, 0]) < p.limit[u]:
            _add_square(s.hessian, p.rows[u, 0], sigma)


@kernel
def _minimize(p: Cones, s: State, sigma):
    """Newton's method on one round's function, from s.v; returns its steps."""
    r = s.v.shape[0]
    _velocities(p, s.v, s.a, s.slip)
    value = 0.5 * dot(s.v, s.v) + _project_all(p, s, sigma) / (2.0 * sigma)
    before = np.inf
    for steps in range(ROUND_STEPS):
        _push(p, s.next_theta, s.next_phi, s.gradient)
        size = 0.0
        for k in range(r):
            s.gradient[k] = s.v[k] - s.gradient[k]
            size = max(size, abs(s.gradient[k]))
        if size <= 1e-15 * sigma or (size >= 0.5 * before and size <= 1e-14 * sigma):
            return steps
        before = size
        _fill_hessian(p, s, sigma)
        linear.factorize(s.hessian, s.upper, s.last, 0.0)
        for k in range(r):
            s.step[k] = -s.gradient[k]
        linear.solve(s.upper, s.last, s.step)
        slope = dot(s.step, s.gradient)
        length = 1.0
        s.trial[:] = s.v
        while True:
            for k in range(r):
                s.v[k] = s.trial[k] + length * s.step[k]
            _velocities(p, s.v, s.a, s.slip)
            new = 0.5 * dot(s.v, s.v) + _project_all(p, s, sigma) / (2.0 * sigma)
            # Below rounding of the values their difference says nothing: the step is taken.
            if new <= value + 1e-4 * length * slope + 1e-14 * abs(value) or length < 1e-6:
                break
            length *= 0.5
        value = new
    return ROUND_STEPS


@kernel
def fault(p: Cones, s: State):
    """Largest violation of optimality by the impulses f in K and s.v = rows' f: what is missing
    to a - mu |slip| >= 0, and how far f is from its projection against u."""
    worst = 0.0
    for i in range(s.a.shape[0]):
        if p.first[i] == p.first[i + 1]:
            worst = max(worst, abs(s.theta[i] - max(s.theta[i] - s.a[i], 0.0)))
            continue
        u = p.first[i]
        t, x0, x1 = _project(
            s.theta[i] - s.a[i], s.phi[u, 0] - s.slip[u, 0], s.phi[u, 1] - s.slip[u, 1], p.mu[u]
        )
        worst = max(worst, abs(s.theta[i] - t))
        worst = max(worst, np.hypot(s.phi[u, 0] - x0, s.phi[u, 1] - x1))
    for u in range(s.slip.shape[0]):
        if p.parent[u] < 0:
            x = min(max(s.phi[u, 0] - s.slip[u, 0], -p.limit[u]), p.limit[u])
            worst = max(worst, abs(s.phi[u, 0] - x))
    return worst if worst == worst else np.inf


@kernel
def solve_circle(p: Cones, theta, phi):
    """(theta, phi, code, steps): least kinetic energy over the circular cone; theta (n,), phi
    (u, 2) in: an earlier answer, or empty."""
    n = p.normal.shape[0]
    s = new_state(p)
    if n > 0 and theta.shape[0] == n:
        s.theta[:] = theta
        s.phi[:] = phi
        _push(p, s.theta, s.phi, s.v)
    sigma = SIGMA
    steps = 0
    best = np.inf
    best_theta = s.theta.copy()
    best_phi = s.phi.copy()
    before = np.inf
    ceiling = np.inf
    stalled = 0
    for _ in range(MULTIPLIER_ROUNDS):
        more = _minimize(p, s, sigma)
        steps += more
        if more == ROUND_STEPS:  # too stiff for Newton's method here: slower, but sure
            ceiling = max(0.1 * sigma, SIGMA)
        s.theta[:] = s.next_theta
        s.phi[:, :] = s.next_phi
        # Judged by what the impulses themselves do.
        _push(p, s.theta, s.phi, s.trial)
        _velocities(p, s.trial, s.a, s.slip)
        now = fault(p, s)
        stalled = 0 if now < 0.5 * best else stalled + 1
        if now < best:
            best = now
            best_theta[:] = s.theta
            best_phi[:, :] = s.phi
        if best <= HOLDS or (stalled >= 3 and best <= 1e-9):
            break
        slow = now > 0.1 * before
        before = now
        sigma = min(min(10.0 * sigma, SIGMA_END if slow else max(sigma, SIGMA_MAX)), ceiling)
    code = Code.SOLVED if best <= 1e-8 else Code.PIVOT_LIMIT
    return best_theta, best_phi, np.int64(code), steps
