"""Lloyd's Lemke for frictional contact: structural (his section 5.1) and reduced (5.3).

The LCP (his eq. 8) has for each contact i a pair (theta_i, nu_i) of normal impulse and normal
velocity, and for each friction unit u with d facets the pairs (phi_uj, sigma_uj), one per
facet direction, and (lambda_u, gamma_u):

    nu_i     = n_i . v + c_i
    sigma_uj = d_uj . v + s_uj + lambda_u
    gamma_u  = mu_u theta_parent + limit_u - sum_j phi_uj
    v        = sum n_i theta_i + sum d_uj phi_uj

Lemke's path is followed as in `stiction.lcp.lemke`, with covers for nu, sigma and gamma. The
matrix is never formed: each pivot builds and solves the system of his eqs. (31), (42), (44)
and (47), in the basic theta, all but one of the basic phi of a sliding unit, and z0; it has
at most r + 1 unknowns. One phi of each unit whose lambda is basic is eliminated by gamma = 0,
lambda itself by that phi's sigma = 0. Values and direction are computed anew from the basis at
each pivot, so rounding errors never add up.

`reduced` starts without friction and gives a contact its units when its theta first enters the
basis (appendix D: its cover is chosen so that all stays nonnegative); `structural` has all
units from the start.

Each pivot keeps true: basic variables are nonnegative, all pairs but one are complementary.

How it can fail: RAY (rounding only: the contact LCP is copositive-plus and feasible, unless
bounds contradict each other), PIVOT_LIMIT, SINGULAR.

Where this departs from Lloyd: covers are spread generically, against ties (see
`stiction.lcp.lemke`); a unit stays once it is there (he drops it when theta leaves: with z0 > 0
its phi need not be zero then); box rows are units of two facets, there from the start if they
have a limit of their own; a contact is grown when its theta is about to enter, not after, so that
the last pivot needs no special case; facets may be turned unit by unit.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.cones import Cones
from stiction.contact.solvers.coulomb.lloyd_system import (
    AT,
    CONE,
    FACET,
    FALLING,
    KIND,
    NORMAL,
    OPEN,
    WHICH,
    Path,
    W,
    Z,
    add_unit,
    build,
    dot_unit,
    new_path,
    recover,
)
from stiction.kernels.compile import kernel, lean_leaf
from stiction.status import Code

BLOCKING = 1e-11
"""Smallest entry of a direction, relative to its largest, that may block."""

HARRIS_SLACK = 1e-12
"""How far below zero Harris's rule may push a variable, to choose a larger pivot."""

STOPPED, PARTS = -1, -2
"""What `_blocking` returns where no listed variable leaves: no number, or a nu leaves."""


@kernel
def facet_directions(flat, facets, turn):
    """(u, facets, 2) unit vectors in each unit's plane, evenly spaced from the angle turn[u];
    an interval has its two directions, the rest are zero."""
    units = flat.shape[0]
    out = np.zeros((units, facets, 2))
    even = np.empty((facets, 2))
    for j in range(facets):
        angle = 2.0 * np.pi * j / facets
        even[j, 0] = np.cos(angle)
        even[j, 1] = np.sin(angle)
    for u in range(units):
        if flat[u]:
            out[u, 0, 0] = 1.0
            out[u, 1, 0] = -1.0
            continue
        c, s = 1.0, 0.0
        if turn[u] != 0.0:
            c, s = np.cos(turn[u]), np.sin(turn[u])
        for j in range(facets):
            out[u, j, 0] = c * even[j, 0] - s * even[j, 1]
            out[u, j, 1] = s * even[j, 0] + c * even[j, 1]
    return out


@lean_leaf
def _cover(p: Cones, directions, s: Path):
    """Step 0: z0 enters, the velocity that is most negative per cover leaves. False where none is
    negative, and z = 0 is the answer."""
    normal, free, free_normal, flat = p.normal, p.free, p.free_normal, p.flat
    cover_n, cover_s, z0, pair = s.cover_n, s.cover_s, s.z0, s.pair
    count, present = s.present_count, s.present
    least = -HARRIS_SLACK
    for i in range(normal.shape[0]):
        if free_normal[i] / cover_n[i] < least:
            least = free_normal[i] / cover_n[i]
            pair[KIND], pair[AT] = NORMAL, i
    for k in range(count[0]):
        u = present[k]
        for j in range(2 if flat[u] else directions.shape[1]):
            slip = directions[u, j, 0] * free[u, 0] + directions[u, j, 1] * free[u, 1]
            if slip / cover_s[u] < least:
                least = slip / cover_s[u]
                pair[KIND], pair[AT], pair[WHICH] = FACET, u, j
    pair[FALLING] = 0
    z0[0] = -least
    return pair[KIND] >= 0


@lean_leaf
def _grow(p: Cones, s: Path):
    """Gives the open contact its friction, with covers that keep all nonnegative (appendix D)."""
    first, free, rows = p.first, p.free, p.rows
    pair, is_present, v, z0 = s.pair, s.is_present, s.v, s.z0
    at = pair[AT]
    for u in range(first[at], first[at + 1]):
        if not is_present[u]:
            slip0 = free[u, 0] + dot_unit(rows, u, 0, v)
            slip1 = free[u, 1] + dot_unit(rows, u, 1, v)
            slip = np.sqrt(slip0 * slip0 + slip1 * slip1)
            add_unit(s, u, 1.5 * slip / max(z0[0], 1e-15))


@lean_leaf
def _longest_step(s: Path, seen, floor):
    """The step that pushes no basic variable below -HARRIS_SLACK, or infinity: his first pass."""
    slope, value, state_n, nu = s.slope, s.value, s.state_n, s.nu
    bound = np.inf
    for k in range(seen):
        if slope[k] < floor:
            bound = min(bound, (max(value[k], 0.0) + HARRIS_SLACK) / -slope[k])
    for i in range(state_n.shape[0]):
        if nu[1, i] < floor and state_n[i] == W:
            bound = min(bound, (max(nu[0, i], 0.0) + HARRIS_SLACK) / -nu[1, i])
    return bound


@lean_leaf
def _blocking(s: Path, seen, floor, bound):
    """(best, contact, step): the listed variable that leaves and how far the entering one goes
    until then; best is PARTS where it is the nu of `contact`. Within `bound` z0 (entry 0) wins,
    then the largest pivot."""
    slope, value, state_n, nu = s.slope, s.value, s.state_n, s.nu
    best = STOPPED
    contact = -1
    steepest = 0.0
    step = 0.0
    # Ratios are compared as ratios: rounding keeps their order, so that one is always found.
    for k in range(seen):
        if slope[k] < floor and max(value[k], 0.0) / -slope[k] <= bound:
            if k == 0:
                return 0, -1, max(value[0], 0.0) / -slope[0]
            if slope[k] < steepest:
                best = k
                steepest = slope[k]
                step = max(value[k], 0.0) / -steepest
    for i in range(state_n.shape[0]):
        blocks = nu[1, i] < min(steepest, floor) and state_n[i] == W
        if blocks and max(nu[0, i], 0.0) / -nu[1, i] <= bound:
            best = PARTS
            contact = i
            steepest = nu[1, i]
            step = max(nu[0, i], 0.0) / -steepest
    return best, contact, step


@lean_leaf
def _mark(s: Path, state):
    """Says which variable of the open pair is basic."""
    pair, state_n, state_f, state_c = s.pair, s.state_n, s.state_f, s.state_c
    kind, at = pair[KIND], pair[AT]
    if kind == NORMAL:
        state_n[at] = state
    elif kind == FACET:
        state_f[at, pair[WHICH]] = state
    else:
        state_c[at] = state


@lean_leaf
def _exchange(s: Path, best, contact, step):
    """The entering variable is basic, the leaving one's pair open; z0 and v move along."""
    pair, z0, v, dv, who = s.pair, s.z0, s.v, s.dv, s.who
    _mark(s, W if pair[FALLING] else Z)
    z0[0] += step * z0[1]
    for a in range(v.shape[0]):
        v[a] += step * dv[a]
    if best == PARTS:
        pair[KIND], pair[AT], pair[WHICH], pair[FALLING] = NORMAL, contact, -1, 0
    else:
        for c in range(3):
            pair[c] = who[best, c]
        pair[FALLING] = who[best, 3] == Z
    _mark(s, OPEN)


@lean_leaf
def _read_impulses(directions, s: Path, seen, step, theta, phi):
    """theta and phi after the last step, at which z0 is zero."""
    who, value, slope, pair = s.who, s.value, s.slope, s.pair
    for k in range(1, seen):
        if who[k, 3] != Z or who[k, 0] == CONE:
            continue
        impulse = max(value[k] + step * slope[k], 0.0)
        if who[k, 0] == NORMAL:
            theta[who[k, 1]] = impulse
        else:
            u, j = who[k, 1], who[k, 2]
            phi[u, 0] += impulse * directions[u, j, 0]
            phi[u, 1] += impulse * directions[u, j, 1]
    if not pair[FALLING]:
        at, facet = pair[AT], pair[WHICH]
        if pair[KIND] == NORMAL:
            theta[at] = step
        elif pair[KIND] == FACET:
            phi[at, 0] += step * directions[at, facet, 0]
            phi[at, 1] += step * directions[at, facet, 1]


@kernel
def follow_contact_path(p: Cones, directions, reduced, limit, theta, phi):
    """Fills theta (n,) and phi (u, 2), the normal and friction impulses; returns (code, pivots).

    directions (u, d, 2) are the facets (`facet_directions`).
    """
    theta[:] = 0.0
    phi[:, :] = 0.0
    s = new_path(p, directions.shape[1])
    for u in range(p.parent.shape[0]):
        if not reduced or p.parent[u] < 0 or p.limit[u] > 0.0:
            add_unit(s, u, 0.0)
    if not _cover(p, directions, s):
        return Code.SOLVED, 0
    _mark(s, OPEN)
    pivots = 0
    while True:
        pivots += 1
        if pivots > limit:
            return Code.PIVOT_LIMIT, pivots
        if s.pair[KIND] == NORMAL and not s.pair[FALLING]:
            _grow(p, s)
        m = build(p, directions, s)
        if m < 0:
            return Code.SINGULAR, pivots
        seen = recover(p, directions, s, m)
        top = 1.0
        for k in range(seen):
            top = max(top, abs(s.slope[k]))
        floor = -BLOCKING * top
        bound = _longest_step(s, seen, floor)
        if bound == np.inf:
            return Code.RAY, pivots
        best, contact, step = _blocking(s, seen, floor, bound)
        if best == 0:
            _read_impulses(directions, s, seen, step, theta, phi)
            return Code.SOLVED, pivots
        if best == STOPPED:
            return Code.ERROR, pivots
        _exchange(s, best, contact, step)
