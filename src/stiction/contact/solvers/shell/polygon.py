"""Least kinetic energy over a cone of facets, by Drumwright's rows.

Symbols, on the unit rows of `cones.py`:

    minimize 1/2 |v - v_free|^2   over v (r,)   subject to, at every contact i,
    a_i + mu e . slip_i >= 0 for all facets e,   a_i = n_i . v + free_i,   slip_i = t_i . v + free_i

which is the dual of the least kinetic energy over the cone (`drumwright_shell.py`). Each facet of a
contact is a row g = n + mu e . t, whose multiplier is an impulse along g: a normal impulse with
friction along e. Dry friction of a joint is a row with an impulse between -limit and limit. That is
the problem of `drumwright/pivoting.py`, and is solved there.

The normal itself is a row as well. The facets imply it; but where mu is endless they are all but
parallel to the tangents, and normal impulses come out of them by cancellation only.

How it can fail: INFEASIBLE (bounds that contradict each other, with a proof), PIVOT_LIMIT.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.cones import Cones
from stiction.contact.solvers.drumwright.pivoting import solve_rows
from stiction.kernels.compile import kernel


@kernel
def _facets(facets):
    """(facets + 1, 2) directions of friction: none, and the corners of the polygon."""
    directions = np.zeros((facets + 1, 2))
    for j in range(facets):
        angle = 2.0 * np.pi * j / facets
        directions[j + 1, 0], directions[j + 1, 1] = np.cos(angle), np.sin(angle)
    return directions


@kernel
def _fill_contact(p: Cones, i, at, directions, cols, c, length):
    """Puts the rows of contact i into the columns from `at` on, divided by their lengths; returns
    where the next go."""
    rough = p.first[i + 1] > p.first[i]
    u = p.first[i]
    for j in range(directions.shape[0] if rough else 1):
        f0, f1 = (p.mu[u] * directions[j, 0], p.mu[u] * directions[j, 1]) if rough else (0.0, 0.0)
        size = 0.0
        for k in range(cols.shape[0]):
            value = p.normal[i, k]
            if j > 0:
                value += f0 * p.rows[u, 0, k] + f1 * p.rows[u, 1, k]
            cols[k, at] = value
            size += value * value
        length[at] = np.sqrt(size) if size > 0.0 else 1.0
        for k in range(cols.shape[0]):
            cols[k, at] /= length[at]
        c[at] = p.free_normal[i]
        if j > 0:
            c[at] += f0 * p.free[u, 0] + f1 * p.free[u, 1]
        c[at] /= length[at]
        at += 1
    return at


@kernel
def solve_polygon(p: Cones, facets):
    """(theta, phi, code, steps): least kinetic energy over the cone of `facets` sides."""
    n, r = p.normal.shape
    units = p.mu.shape[0]
    directions = _facets(facets)
    total, boxes = 0, 0
    for i in range(n):
        total += facets + 1 if p.first[i + 1] > p.first[i] else 1
    for u in range(units):
        boxes += p.parent[u] < 0
    cols, c, length = np.empty((r, total + boxes)), np.empty(total + boxes), np.empty(total)
    at = 0
    for i in range(n):
        at = _fill_contact(p, i, at, directions, cols, c, length)
    for u in range(units - boxes, units):  # those without a contact come last
        c[at] = p.free[u, 0]
        for k in range(r):
            cols[k, at] = p.rows[u, 0, k]
        at += 1
    z, change = np.empty(total + boxes), np.empty(r)
    code, steps, _ = solve_rows(
        cols, c, 0, p.limit[units - boxes :], np.zeros(0, np.int8), z, change
    )  # fmt: skip
    theta, phi = np.zeros(n), np.zeros((units, 2))
    at = 0
    for i in range(n):
        u = p.first[i]
        for j in range(facets + 1 if p.first[i + 1] > u else 1):
            along = z[at] / length[at]
            theta[i] += along
            if j > 0:
                phi[u, 0] += p.mu[u] * along * directions[j, 0]
                phi[u, 1] += p.mu[u] * along * directions[j, 1]
            at += 1
    for u in range(units - boxes, units):
        phi[u, 0] = z[at]
        at += 1
    return theta, phi, np.int64(code), steps
