"""Newton's method on Coulomb's exact law: the circular cone, from a nearby answer.

In the scaled problem (`cones.py`; unit rows, so that the step rho of the projections is one at
first), with nu and s the velocities along normals and in friction planes, the laws are the zeros of
Alart and Curnier's functions

    theta_i - (theta_i - nu_i)_+                                    each contact
    phi_u - P_R(phi_u - s_u),  R = mu_u (theta_p - nu_p)_+ + limit_u  each unit, p its parent

P_R the projection on the disc of radius R. Each step solves their linearization at the current
modes: a contact with theta <= nu separates and leaves the system, one inside its disc sticks,
the others slide. Only candidates take part: the contacts that press at the start, and then,
one at a time, the one that an otherwise converged answer violates most. So the systems stay
as small as the number of degrees of freedom asks for, however many contacts there are.

The same holds for a friction polygon (`facets` > 0) in place of the disc: a slipping impulse is
at a corner, or on an edge with the slip across it. There Newton's method is exact in one step
from the right modes, which is what a warm start needs.

Contacts are redundant, hence the linear system is singular as a rule. Its rows are
orthogonalized with pivoting; dependent ones are dropped, and the step is the shortest that
satisfies the others.

What each step keeps true: nothing but the equations of motion (velocities are computed from
impulses). How it can fail: it wanders (no modes hold) and stops without having found a residual
at rounding; the caller then turns its facets and starts again.

Reference: Alart & Curnier 1991; DESIGN: "pivoting finds the modes, Newton finds the circle".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.problem.cones import Cones
from stiction.kernels.compile import kernel
from stiction.kernels.dense import rows_dot

DEPENDENT_ROW = 1e-9
"""Length of an orthogonalized row, relative to its length before, below which it depends on
the rows above it. Mass ratios of 10^6 leave 1e-6."""

EXACT = 1e-13
"""Residual (of impulses and velocities of size one) at which Newton's method ends."""

OUTSIDE = 1e-12
"""Violation at which a contact outside the candidates joins them."""

NEWTON_PATIENCE = 8
"""Steps without half the residual after which the modes are given up."""


@kernel
def velocities(p: Cones, theta, phi, v, nu, slip):
    """Fills v (r,), nu (n,), slip (u, 2) for impulses theta (n,), phi (u, 2)."""
    normal, rows = p.normal, p.rows
    n, r = normal.shape
    v[:] = 0.0
    for i in range(n):
        if theta[i] != 0.0:
            for a in range(r):
                v[a] += theta[i] * normal[i, a]
    for u in range(phi.shape[0]):
        if phi[u, 0] != 0.0 or phi[u, 1] != 0.0:
            for a in range(r):
                v[a] += phi[u, 0] * rows[u, 0, a] + phi[u, 1] * rows[u, 1, a]
    for i in range(n):
        total = p.free_normal[i]
        for a in range(r):
            total += normal[i, a] * v[a]
        nu[i] = total
    for u in range(phi.shape[0]):
        for t in range(2):
            total = p.free[u, t]
            for a in range(r):
                total += rows[u, t, a] * v[a]
            slip[u, t] = total


@kernel
def polygon_edge(y0, y1, turn, facets):
    """First corner (an angle) of the edge whose sector of the plane holds (y0, y1)."""
    width = 2.0 * np.pi / facets
    return turn + width * np.floor((np.arctan2(y1, y0) - turn) / width)


@kernel
def project_polygon(y0, y1, radius, turn, facets):
    """(x0, x1, place): the nearest point of the polygon with corners at `radius`; place is -1
    inside, 0 on an edge, 1 or 2 at the edge's first or second corner."""
    first = polygon_edge(y0, y1, turn, facets)
    half = np.pi / facets
    middle = first + half
    outward = y0 * np.cos(middle) + y1 * np.sin(middle)
    along = -y0 * np.sin(middle) + y1 * np.cos(middle)
    if outward <= radius * np.cos(half):
        return y0, y1, -1
    reach = radius * np.sin(half)
    if along > reach:
        return radius * np.cos(first + 2.0 * half), radius * np.sin(first + 2.0 * half), 2
    if along < -reach:
        return radius * np.cos(first), radius * np.sin(first), 1
    flat = radius * np.cos(half)
    return (
        flat * np.cos(middle) - along * np.sin(middle),
        flat * np.sin(middle) + along * np.cos(middle),
        0,
    )


@kernel
def project(y0, y1, radius, flat, turn, facets):
    """(x0, x1, place): nearest point of the unit's disc, polygon or interval."""
    if facets > 0 and not flat:
        return project_polygon(y0, y1, radius, turn, facets)
    size = np.sqrt(y0 * y0 + y1 * y1)
    if size <= radius:
        return y0, y1, -1
    return y0 * (radius / size), y1 * (radius / size), 0


@kernel
def residual(p: Cones, theta, phi, nu, slip, candidate, turn, facets):
    """Largest entry of the Alart-Curnier functions of the candidates."""
    worst = 0.0
    for i in range(theta.shape[0]):
        if candidate[i]:
            worst = max(worst, abs(min(theta[i], nu[i])))
    for u in range(phi.shape[0]):
        i = p.parent[u]
        radius = p.limit[u]
        if i >= 0 and candidate[i]:
            radius += p.mu[u] * max(theta[i] - nu[i], 0.0)
        elif i >= 0 and radius == 0.0:
            continue
        x0, x1, _ = project(
            phi[u, 0] - slip[u, 0], phi[u, 1] - slip[u, 1], radius, p.flat[u], turn[u], facets
        )
        worst = max(worst, abs(phi[u, 0] - x0))
        worst = max(worst, abs(phi[u, 1] - x1))
    return worst


@kernel
def _slide_rows(p: Cones, u, mu, radius, phi, slip, rho, H, E, F, e):
    """Equations phi = R y/|y| of a sliding unit, y = phi - rho slip: fills rows e, e+1 of H (their
    action through velocities), E (on phi0, phi1, theta_p directly), F (values). mu is zero where
    its contact does not press."""
    i = p.parent[u]
    y0 = phi[u, 0] - rho * slip[u, 0]
    y1 = phi[u, 1] - rho * slip[u, 1]
    size = np.sqrt(y0 * y0 + y1 * y1)
    y0 /= size
    y1 /= size
    c = 0.0 if p.flat[u] else radius / size
    # Projector off the sliding direction, times c.
    p00 = c * (1.0 - y0 * y0)
    p01 = -c * y0 * y1
    p11 = c * (1.0 - y1 * y1)
    rows, normal = p.rows, p.normal
    for a in range(rows.shape[2]):
        H[e, a] = rho * (p00 * rows[u, 0, a] + p01 * rows[u, 1, a])
        if mu > 0.0:
            H[e, a] += rho * mu * y0 * normal[i, a]
    E[e, 0] = 1.0 - p00
    E[e, 1] = -p01
    E[e, 2] = -mu * y0
    F[e] = phi[u, 0] - radius * y0
    if p.flat[u]:
        return
    for a in range(rows.shape[2]):
        H[e + 1, a] = rho * (p01 * rows[u, 0, a] + p11 * rows[u, 1, a])
        if mu > 0.0:
            H[e + 1, a] += rho * mu * y1 * normal[i, a]
    E[e + 1, 0] = -p01
    E[e + 1, 1] = 1.0 - p11
    E[e + 1, 2] = -mu * y1
    F[e + 1] = phi[u, 1] - radius * y1


@kernel
def _polygon_rows(p: Cones, u, mu, radius, place, y0, y1, phi, slip, turn, facets, H, E, F, e):
    """Equations of a unit that slips on its polygon; fills as `_slide_rows` does."""
    i = p.parent[u]
    rows, normal = p.rows, p.normal
    half = np.pi / facets
    first = polygon_edge(y0, y1, turn, facets)
    if place == 0:  # the slip has no part along the edge; the impulse is on the edge's line
        a0, a1 = -np.sin(first + half), np.cos(first + half)
        b0, b1 = a1, -a0
        for a in range(rows.shape[2]):
            H[e, a] = a0 * rows[u, 0, a] + a1 * rows[u, 1, a]
            H[e + 1, a] = mu * np.cos(half) * normal[i, a] if mu > 0.0 else 0.0
        E[e, 0] = E[e, 1] = E[e, 2] = 0.0
        F[e] = a0 * slip[u, 0] + a1 * slip[u, 1]
        E[e + 1, 0] = b0
        E[e + 1, 1] = b1
        E[e + 1, 2] = -mu * np.cos(half)
        F[e + 1] = b0 * phi[u, 0] + b1 * phi[u, 1] - radius * np.cos(half)
        return
    corner = first if place == 1 else first + 2.0 * half
    for t in range(2):
        d = np.cos(corner) if t == 0 else np.sin(corner)
        for a in range(rows.shape[2]):
            H[e + t, a] = mu * d * normal[i, a] if mu > 0.0 else 0.0
        E[e + t, 0] = 1.0 if t == 0 else 0.0
        E[e + t, 1] = 1.0 if t == 1 else 0.0
        E[e + t, 2] = -mu * d
        F[e + t] = phi[u, t] - radius * d


@kernel
def shortest_step(J, F, m, step, length, order):
    """step (m,) := the shortest solution of J step = -F over the independent rows of J.

    J (m, m) is overwritten by its orthogonalized rows, F by the solution's coordinates. Pivoted
    modified Gram-Schmidt: with the rows that stay orthonormal, J = L Q, only L's columns in use
    are needed, and forward substitution runs along with the orthogonalization. length (m, 2)
    holds squares, of rows as they came and of what is left of them.
    """
    for i in range(m):
        order[i] = i
        length[i, 0] = rows_dot(J, i, J, i, m)
        length[i, 1] = length[i, 0]
    step[:m] = 0.0
    for k in range(m):
        best = -1
        largest = 0.0
        for j in range(k, m):
            i = order[j]
            if (
                length[i, 1] > DEPENDENT_ROW * DEPENDENT_ROW * length[i, 0]
                and length[i, 1] > largest
            ):
                largest = length[i, 1]
                best = j
        if best < 0:
            return k
        order[k], order[best] = order[best], order[k]
        i = order[k]
        scale = 1.0 / np.sqrt(largest)
        for a in range(m):
            J[i, a] *= scale
        value = -F[i] * scale
        for a in range(m):
            step[a] += value * J[i, a]
        for j in range(k + 1, m):
            other = order[j]
            along = rows_dot(J, other, J, i, m)
            if along != 0.0:
                for a in range(m):
                    J[other, a] -= along * J[i, a]
                F[other] += along * value
                # What is left of a row by subtraction is wrong once little is left.
                left = length[other, 1] - along * along
                if left < 1e-4 * length[other, 1]:
                    left = rows_dot(J, other, J, other, m)
                length[other, 1] = left
    return m


@kernel
def _linearize(p: Cones, theta, phi, nu, slip, candidate, turn, facets, rho, names, H, E, F):
    """Names the unknowns of the pressed contacts, and of units with a limit of their own (kind,
    index, component), and fills their equations; returns how many."""
    m = 0
    normal, rows = p.normal, p.rows
    r = normal.shape[1]
    for i in range(theta.shape[0]):
        if candidate[i] and theta[i] > rho * nu[i]:
            names[m, 0] = 0
            names[m, 1] = i
            for a in range(r):
                H[m, a] = normal[i, a]
            F[m] = nu[i]
            E[m, 0] = E[m, 1] = E[m, 2] = 0.0
            m += 1
    for u in range(phi.shape[0]):
        i = p.parent[u]
        mu = 0.0
        radius = p.limit[u]
        if i >= 0:
            if candidate[i] and theta[i] > rho * nu[i]:
                mu = p.mu[u]
                radius += mu * (theta[i] - rho * nu[i])
            elif radius == 0.0:
                continue
        y0 = phi[u, 0] - rho * slip[u, 0]
        y1 = phi[u, 1] - rho * slip[u, 1]
        count = 1 if p.flat[u] else 2
        _, _, place = project(y0, y1, radius, p.flat[u], turn[u], facets)
        if place < 0:
            for t in range(count):
                for a in range(r):
                    H[m + t, a] = rows[u, t, a]
                F[m + t] = slip[u, t]
                E[m + t, 0] = E[m + t, 1] = E[m + t, 2] = 0.0
        elif facets > 0 and not p.flat[u]:
            _polygon_rows(
                p, u, mu, radius, place, y0, y1, phi, slip, turn[u], facets, H, E, F, m
            )  # fmt: skip
        else:
            _slide_rows(p, u, mu, radius, phi, slip, rho, H, E, F, m)
        for t in range(count):
            names[m, 0] = 1
            names[m, 1] = u
            names[m, 2] = t
            m += 1
    return m


@kernel
def _jacobian(p: Cones, names, m, H, E, J):
    """J (m, m): each equation's action on each unknown, through velocities and directly."""
    normal = p.normal
    r = normal.shape[1]
    across = p.rows.reshape(2 * p.rows.shape[0], r)
    parent = p.parent
    for e in range(m):
        # Which unknowns the equation touches directly: those of its unit, and its parent's.
        unit = names[e, 1] if names[e, 0] == 1 else -1
        above = parent[unit] if unit >= 0 else -1
        for k in range(m):
            at = names[k, 1]
            if names[k, 0] == 0:
                J[e, k] = rows_dot(H, e, normal, at, r)
                if at == above:
                    J[e, k] += E[e, 2]
            else:
                t = names[k, 2]
                J[e, k] = rows_dot(H, e, across, 2 * at + t, r)
                if at == unit:
                    J[e, k] += E[e, t]


class Workspace(NamedTuple):
    """Arrays of the linear systems, for at most `cap` unknowns."""

    J: np.ndarray
    H: np.ndarray
    E: np.ndarray
    F: np.ndarray
    names: np.ndarray
    step: np.ndarray
    length: np.ndarray
    order: np.ndarray


@kernel
def _workspace(cap, r):
    return Workspace(
        np.empty((cap, cap)),
        np.empty((cap, r)),
        np.empty((cap, 3)),
        np.empty(cap),
        np.empty((cap, 3), np.int64),
        np.empty(cap),
        np.empty((cap, 2)),
        np.empty(cap, np.int64),
    )


@kernel
def _unknowns(p: Cones, candidate):
    """Upper bound on the unknowns of a step."""
    count = 0
    for i in range(candidate.shape[0]):
        count += 1 if candidate[i] else 0
    for u in range(p.parent.shape[0]):
        i = p.parent[u]
        if i < 0 or candidate[i] or p.limit[u] > 0.0:
            count += 1 if p.flat[u] else 2
    return count


@kernel
def _take_step(p: Cones, theta, phi, nu, slip, candidate, turn, facets, rho, ws):
    """One Newton step on the candidates, in place."""
    m = _linearize(
        p, theta, phi, nu, slip, candidate, turn, facets, rho, ws.names, ws.H, ws.E, ws.F
    )  # fmt: skip
    _jacobian(p, ws.names, m, ws.H, ws.E, ws.J)
    shortest_step(ws.J, ws.F, m, ws.step, ws.length, ws.order)
    for i in range(theta.shape[0]):
        if candidate[i] and not theta[i] > rho * nu[i]:
            theta[i] = 0.0
            for u in range(p.first[i], p.first[i + 1]):
                if p.limit[u] == 0.0:
                    phi[u, 0] = 0.0
                    phi[u, 1] = 0.0
    names, step = ws.names, ws.step
    for k in range(m):
        if names[k, 0] == 0:
            theta[names[k, 1]] += step[k]
        else:
            phi[names[k, 1], names[k, 2]] += step[k]


@kernel
def newton(p: Cones, theta, phi, steps, turn, facets, rho):
    """Moves theta (n,), phi (u, 2) to a zero of the laws; returns (residual, steps taken).

    facets: 0 for discs, else corners of the polygons, the first at the angle turn[u]. rho: the
    step of the projections (of polygons: 1). The residual is that of all contacts, with rho 1.
    theta and phi come out nonnegative and in their discs, at the best point of the last
    candidate set.
    """
    n, r = p.normal.shape
    units = phi.shape[0]
    v = np.empty(r)
    nu = np.empty(n)
    slip = np.empty((units, 2))
    candidate = theta > 0.0
    best_theta = theta.copy()
    best_phi = phi.copy()
    ws = _workspace(0, r)
    taken = 0
    while True:
        velocities(p, theta, phi, v, nu, slip)
        best = residual(p, theta, phi, nu, slip, candidate, turn, facets)
        best_theta[:] = theta
        best_phi[:, :] = phi
        stale = 0
        need = _unknowns(p, candidate)
        if need > ws.F.shape[0]:
            ws = _workspace(need + 6, r)
        while best > EXACT and taken < steps and stale < NEWTON_PATIENCE:
            _take_step(p, theta, phi, nu, slip, candidate, turn, facets, rho, ws)
            velocities(p, theta, phi, v, nu, slip)
            now = residual(p, theta, phi, nu, slip, candidate, turn, facets)
            taken += 1
            if now < best:
                stale = stale if now > 0.5 * best else 0
                best = now
                best_theta[:] = theta
                best_phi[:, :] = phi
            else:
                stale += 1
        theta[:] = best_theta
        phi[:, :] = best_phi
        velocities(p, theta, phi, v, nu, slip)
        worst = -OUTSIDE
        joins = -1
        for i in range(n):
            if not candidate[i] and nu[i] < worst:
                worst = nu[i]
                joins = i
        if joins < 0 or best > OUTSIDE or taken >= steps:
            break
        candidate[joins] = True
    for i in range(n):
        theta[i] = max(theta[i], 0.0)
    for u in range(units):
        radius = p.limit[u]
        if p.parent[u] >= 0:
            radius += p.mu[u] * theta[p.parent[u]]
        x0, x1, _ = project(phi[u, 0], phi[u, 1], radius, p.flat[u], turn[u], facets)
        phi[u, 0] = x0
        phi[u, 1] = x1
    return max(best, -worst if joins >= 0 else 0.0), taken
