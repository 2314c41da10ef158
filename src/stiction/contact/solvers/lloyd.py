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
from stiction.kernels.compile import kernel
from stiction.kernels.dense import row_dot
from stiction.status import Code

W, Z, OPEN = 0, 1, 2
"""Which variable of a pair is basic: the velocity, the impulse, or neither."""

PIVOT = 1e-11
"""Smallest entry of a direction, relative to its largest, that may block."""

SLACK = 1e-12
"""How far below zero Harris's rule may push a variable, to choose a larger pivot."""

GOLDEN = 0.6180339887498949


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


@kernel
def _solve_dense(A, B, m):
    """B[:m] := A[:m, :m]^-1 B[:m] for the two columns of B, A overwritten; False if singular."""
    for k in range(m):
        best = k
        for i in range(k + 1, m):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if A[best, k] == 0.0:
            return False
        if best != k:
            for j in range(k, m):
                A[k, j], A[best, j] = A[best, j], A[k, j]
            for c in range(2):
                B[k, c], B[best, c] = B[best, c], B[k, c]
        for i in range(k + 1, m):
            factor = A[i, k] / A[k, k]
            if factor != 0.0:
                for j in range(k + 1, m):
                    A[i, j] -= factor * A[k, j]
                B[i, 0] -= factor * B[k, 0]
                B[i, 1] -= factor * B[k, 1]
    for k in range(m - 1, -1, -1):
        for c in range(2):
            total = B[k, c]
            for j in range(k + 1, m):
                total -= A[k, j] * B[j, c]
            B[k, c] = total / A[k, k]
    return True


@kernel
def _facet(rows, u, directions, j, out, k):
    """out[k] = facet j of unit u as an r-vector: its direction in the unit's plane."""
    a = directions[u, j, 0]
    b = directions[u, j, 1]
    for c in range(out.shape[1]):
        out[k, c] = a * rows[u, 0, c] + b * rows[u, 1, c]


# Rows are named by array and index, not sliced: a slice costs two atomic reference counts.


@kernel
def _dot_unit(rows, u, t, b):
    """rows[u, t] . b"""
    total = 0.0
    for c in range(b.shape[0]):
        total += rows[u, t, c] * b[c]
    return total


@kernel
def _add(out, factor, a, i):
    """out += factor a[i]"""
    for c in range(out.shape[0]):
        out[c] += factor * a[i, c]


@kernel
def _add_row(out, k, factor, a, i):
    """out[k] += factor a[i]"""
    for c in range(out.shape[1]):
        out[k, c] += factor * a[i, c]


@kernel
def _copy_row(out, k, a, i):
    """out[k] = a[i]"""
    for c in range(out.shape[1]):
        out[k, c] = a[i, c]


@kernel
def follow_contact_path(p: Cones, directions, reduced, limit, theta, phi):
    """Fills theta (n,) and phi (u, 2), the normal and friction impulses; returns (code, pivots).

    directions (u, d, 2) are the facets (`facet_directions`).
    """
    normal, free_normal, rows, free = p.normal, p.free_normal, p.rows, p.free
    parent, first, mu, limits, flat = p.parent, p.first, p.mu, p.limit, p.flat
    n, r = normal.shape
    units, facets = directions.shape[0], directions.shape[1]
    theta[:] = 0.0
    phi[:, :] = 0.0
    state_n = np.zeros(n, np.int8)
    state_f = np.zeros((units, facets), np.int8)
    state_c = np.zeros(units, np.int8)
    present = np.empty(units, np.int64)
    is_present = np.zeros(units, np.bool_)
    chosen = np.full(units, -1)  # the eliminated facet of a unit whose lambda is basic
    chosen_row = np.empty((units, r))
    chosen_free = np.empty(units)
    cover_n = np.empty(n)
    cover_s = np.empty(units)
    cover_g = np.empty(units)
    count = 0
    for i in range(n):
        cover_n[i] = 1.0 + ((i + 1) * GOLDEN) % 1.0
    for u in range(units):
        if not reduced or parent[u] < 0 or limits[u] > 0.0:
            present[count] = u
            is_present[u] = True
            count += 1
            cover_s[u] = 1.0 + ((n + 2 * u + 1) * GOLDEN) % 1.0
            cover_g[u] = 1.0 + ((n + 2 * u + 2) * GOLDEN) % 1.0

    # Step 0: z0 enters; the row that is most negative per cover leaves.
    least = -SLACK
    kind, at, facet = -1, -1, -1  # the open pair: kind 0 normal, 1 facet, 2 cone
    for i in range(n):
        if free_normal[i] / cover_n[i] < least:
            least = free_normal[i] / cover_n[i]
            kind, at = 0, i
    for k in range(count):
        u = present[k]
        for j in range(facets if not flat[u] else 2):
            s = directions[u, j, 0] * free[u, 0] + directions[u, j, 1] * free[u, 1]
            if s / cover_s[u] < least:
                least = s / cover_s[u]
                kind, at, facet = 1, u, j
    if kind < 0:
        return Code.SOLVED, 0
    entering_w = False
    if kind == 0:
        state_n[at] = OPEN
    else:
        state_f[at, facet] = OPEN
    z0 = -least
    v = np.zeros(r)

    cap = min(r, n + 2 * units) + 3
    col = np.empty((cap, r))
    row = np.empty((cap, r))
    across = np.empty((r, cap))
    A = np.empty((cap, cap))
    B = np.empty((cap, 2))
    names = np.empty((cap, 3), np.int64)
    v0 = np.empty(r)
    dv = np.empty(r)
    ve = np.empty(r)
    turned = np.empty((r, n))
    for i in range(n):
        for a in range(r):
            turned[a, i] = normal[i, a]
    nu_v = np.empty(n)
    nu_d = np.empty(n)
    value = np.empty(cap + units * (facets + 2) + 1)
    slope = np.empty(cap + units * (facets + 2) + 1)
    who = np.empty((cap + units * (facets + 2) + 1, 4), np.int64)
    theta_v = np.zeros(n)
    theta_d = np.zeros(n)
    sum_v = np.zeros(units)
    sum_d = np.zeros(units)
    pivots = 0
    while True:
        pivots += 1
        if pivots > limit:
            return Code.PIVOT_LIMIT, pivots
        # A contact whose theta is about to enter gets its friction.
        if kind == 0 and not entering_w:
            for u in range(first[at], first[at + 1]):
                if not is_present[u]:
                    present[count] = u
                    is_present[u] = True
                    count += 1
                    slip0 = free[u, 0] + _dot_unit(rows, u, 0, v)
                    slip1 = free[u, 1] + _dot_unit(rows, u, 1, v)
                    slip = np.sqrt(slip0 * slip0 + slip1 * slip1)
                    weight = 1.0 + ((n + 2 * u + 1) * GOLDEN) % 1.0
                    cover_s[u] = weight * max(1.0, 1.5 * slip / max(z0, 1e-15))
                    cover_g[u] = 1.0 + ((n + 2 * u + 2) * GOLDEN) % 1.0
        # Unknowns and rows of the reduced system.
        m = 0
        v0[:] = 0.0
        ve[:] = 0.0  # until the entering variable needs it: the column of z0
        for k in range(count):
            u = present[k]
            chosen[u] = -1
            if state_c[u] == Z:
                for j in range(facets):
                    if state_f[u, j] == Z:
                        chosen[u] = j
                        break
                if chosen[u] < 0:
                    return Code.SINGULAR, pivots
                j = chosen[u]
                _facet(rows, u, directions, j, chosen_row, u)
                chosen_free[u] = directions[u, j, 0] * free[u, 0] + directions[u, j, 1] * free[u, 1]
                _add(v0, limits[u], chosen_row, u)
                _add(ve, cover_g[u], chosen_row, u)
        for i in range(n):
            if state_n[i] == Z:
                if m + 1 >= cap:
                    return Code.SINGULAR, pivots
                _copy_row(row, m, normal, i)
                _copy_row(col, m, normal, i)
                for u in range(first[i], first[i + 1]):
                    if is_present[u] and chosen[u] >= 0:
                        _add_row(col, m, mu[u], chosen_row, u)
                names[m, 0] = 0
                names[m, 1] = i
                B[m, 0] = -free_normal[i]
                A[m, cap - 1] = cover_n[i]
                m += 1
        for k in range(count):
            u = present[k]
            for j in range(facets):
                if state_f[u, j] == Z and j != chosen[u]:
                    if m + 1 >= cap:
                        return Code.SINGULAR, pivots
                    _facet(rows, u, directions, j, row, m)
                    s = directions[u, j, 0] * free[u, 0] + directions[u, j, 1] * free[u, 1]
                    if chosen[u] >= 0:
                        _add_row(row, m, -1.0, chosen_row, u)
                        B[m, 0] = chosen_free[u] - s
                        A[m, cap - 1] = 0.0
                    else:
                        B[m, 0] = -s
                        A[m, cap - 1] = cover_s[u]
                    _copy_row(col, m, row, m)
                    names[m, 0] = 1
                    names[m, 1] = u
                    names[m, 2] = j
                    m += 1
        last = m  # z0 and the open pair's own row
        for a in range(r):
            col[last, a] = ve[a]
        if kind == 0:
            _copy_row(row, last, normal, at)
            B[last, 0] = -free_normal[at]
            A[last, cap - 1] = cover_n[at]
        elif kind == 1:
            _facet(rows, at, directions, facet, row, last)
            B[last, 0] = -(
                directions[at, facet, 0] * free[at, 0] + directions[at, facet, 1] * free[at, 1]
            )
            A[last, cap - 1] = cover_s[at]
            if chosen[at] >= 0:
                _add_row(row, last, -1.0, chosen_row, at)
                B[last, 0] += chosen_free[at]
                A[last, cap - 1] = 0.0
        # Right sides: values (column 0) and direction of the entering variable (column 1).
        ve[:] = 0.0
        if not entering_w:
            if kind == 0:
                _add(ve, 1.0, normal, at)
                for u in range(first[at], first[at + 1]):
                    if is_present[u] and chosen[u] >= 0:
                        _add(ve, mu[u], chosen_row, u)
            elif kind == 1:
                _add(ve, 1.0, row, last)  # the facet's row, less that of the eliminated one
        for c in range(m + 1):
            for a in range(r):
                across[a, c] = col[c, a]
        rows_here = m if kind == 2 else m + 1
        for k in range(rows_here):
            B[k, 0] -= row_dot(row, k, v0)
            B[k, 1] = -row_dot(row, k, ve)
            z_coefficient = A[k, cap - 1]
            for c in range(m + 1):
                A[k, c] = 0.0
            # Along rows of the transposed columns, not as inner products: sums side by side
            # run in vector registers, one sum waits for itself.
            for a in range(r):
                entry = row[k, a]
                if entry != 0.0:
                    for c in range(m + 1):
                        A[k, c] += entry * across[a, c]
            A[k, m] += z_coefficient
        if kind == 2:
            B[m, 0] = -limits[at]
            B[m, 1] = 0.0
            for c in range(m):
                A[m, c] = 0.0
                if names[c, 0] == 0 and names[c, 1] == parent[at]:
                    A[m, c] = mu[at]
                elif names[c, 0] == 1 and names[c, 1] == at:
                    A[m, c] = -1.0
                    if not entering_w:
                        B[c, 1] -= 1.0
            A[m, m] = cover_g[at]
        if entering_w:
            B[m, 1] = 1.0
        if not _solve_dense(A, B, m + 1):
            return Code.SINGULAR, pivots
        # Back to all variables.
        z0 = B[m, 0]
        dz0 = B[m, 1]
        v[:] = v0
        dv[:] = ve
        for c in range(m + 1):
            _add(v, B[c, 0], col, c)
            _add(dv, B[c, 1], col, c)
        seen = 0
        value[0] = z0
        slope[0] = dz0
        who[0, 0] = 3
        seen = 1
        for k in range(count):
            sum_v[present[k]] = 0.0
            sum_d[present[k]] = 0.0
        for c in range(m):
            if names[c, 0] == 0:
                theta_v[names[c, 1]] = B[c, 0]
                theta_d[names[c, 1]] = B[c, 1]
            else:
                sum_v[names[c, 1]] += B[c, 0]
                sum_d[names[c, 1]] += B[c, 1]
            value[seen] = B[c, 0]
            slope[seen] = B[c, 1]
            who[seen, 0] = names[c, 0]
            who[seen, 1] = names[c, 1]
            who[seen, 2] = names[c, 2]
            who[seen, 3] = Z
            seen += 1
        if kind == 0 and not entering_w:
            theta_v[at] = 0.0
            theta_d[at] = 1.0
        if kind == 1 and not entering_w:
            sum_d[at] += 1.0
        for i in range(n):
            nu_v[i] = free_normal[i] + cover_n[i] * z0
            nu_d[i] = cover_n[i] * dz0
        for a in range(r):
            for i in range(n):
                nu_v[i] += v[a] * turned[a, i]
                nu_d[i] += dv[a] * turned[a, i]
        for k in range(count):
            u = present[k]
            room_v = limits[u] + cover_g[u] * z0 - sum_v[u]
            room_d = cover_g[u] * dz0 - sum_d[u]
            if parent[u] >= 0:
                i = parent[u]
                if state_n[i] == Z or (kind == 0 and at == i and not entering_w):
                    room_v += mu[u] * theta_v[i]
                    room_d += mu[u] * theta_d[i]
            lambda_v = 0.0
            lambda_d = 0.0
            if state_c[u] == Z:
                value[seen] = room_v  # the eliminated phi takes what the others leave
                slope[seen] = room_d
                who[seen, 0] = 1
                who[seen, 1] = u
                who[seen, 2] = chosen[u]
                who[seen, 3] = Z
                seen += 1
                lambda_v = -(chosen_free[u] + cover_s[u] * z0 + row_dot(chosen_row, u, v))
                lambda_d = -(cover_s[u] * dz0 + row_dot(chosen_row, u, dv))
                value[seen] = lambda_v
                slope[seen] = lambda_d
                who[seen, 0] = 2
                who[seen, 1] = u
                who[seen, 3] = Z
                seen += 1
            elif state_c[u] == W:
                value[seen] = room_v
                slope[seen] = room_d
                who[seen, 0] = 2
                who[seen, 1] = u
                who[seen, 3] = W
                seen += 1
            elif not entering_w:
                lambda_d = 1.0  # the open pair is this unit's, and lambda enters
            slip0 = free[u, 0] + _dot_unit(rows, u, 0, v)
            slip1 = free[u, 1] + _dot_unit(rows, u, 1, v)
            turn0 = _dot_unit(rows, u, 0, dv)
            turn1 = _dot_unit(rows, u, 1, dv)
            for j in range(facets if not flat[u] else 2):
                if state_f[u, j] == W:
                    a = directions[u, j, 0]
                    b = directions[u, j, 1]
                    value[seen] = a * slip0 + b * slip1 + lambda_v + cover_s[u] * z0
                    slope[seen] = a * turn0 + b * turn1 + lambda_d + cover_s[u] * dz0
                    who[seen, 0] = 1
                    who[seen, 1] = u
                    who[seen, 2] = j
                    who[seen, 3] = W
                    seen += 1
        # Harris's ratio test; z0 (entry 0) wins ties.
        top = 1.0
        for k in range(seen):
            top = max(top, abs(slope[k]))
        floor = -PIVOT * top
        bound = np.inf
        for k in range(seen):
            if slope[k] < floor:
                bound = min(bound, (max(value[k], 0.0) + SLACK) / -slope[k])
        for i in range(n):
            if nu_d[i] < floor and state_n[i] == W:
                bound = min(bound, (max(nu_v[i], 0.0) + SLACK) / -nu_d[i])
        if bound == np.inf:
            return Code.RAY, pivots
        best = -1
        steepest = 0.0
        step = 0.0
        # Ratios are compared as ratios: rounding keeps their order, so that one is always found.
        for k in range(seen):
            if slope[k] < floor and max(value[k], 0.0) / -slope[k] <= bound:
                if k == 0:
                    best = 0
                    step = max(value[0], 0.0) / -slope[0]
                    break
                if slope[k] < steepest:
                    best = k
                    steepest = slope[k]
                    step = max(value[k], 0.0) / -steepest
        parting = -1
        if best != 0:
            for i in range(n):
                blocks = nu_d[i] < min(steepest, floor) and state_n[i] == W
                if blocks and max(nu_v[i], 0.0) / -nu_d[i] <= bound:
                    parting = i
                    steepest = nu_d[i]
                    step = max(nu_v[i], 0.0) / -steepest
        # Exchange.
        if kind == 0:
            state_n[at] = W if entering_w else Z
        elif kind == 1:
            state_f[at, facet] = W if entering_w else Z
        else:
            state_c[at] = W if entering_w else Z
        if best == 0:
            _read_impulses(
                directions, step, value, slope, who, seen, theta, phi,
                kind, at, facet, entering_w,
            )  # fmt: skip
            return Code.SOLVED, pivots
        z0 += step * dz0
        for a in range(r):
            v[a] += step * dv[a]
        if best < 0 and parting < 0:
            return Code.ERROR, pivots  # values that are not numbers
        if parting >= 0:
            kind, at, facet, entering_w = 0, parting, -1, False
        else:
            kind, at, facet = who[best, 0], who[best, 1], who[best, 2]
            entering_w = who[best, 3] == Z
        if kind == 0:
            state_n[at] = OPEN
        elif kind == 1:
            state_f[at, facet] = OPEN
        else:
            state_c[at] = OPEN


@kernel
def _read_impulses(
    directions, step, value, slope, who, seen, theta, phi,
    kind, at, facet, entering_w,
):  # fmt: skip
    """theta and phi after the last step, at which z0 is zero."""
    for k in range(1, seen):
        if who[k, 3] != Z or who[k, 0] == 2:
            continue
        impulse = max(value[k] + step * slope[k], 0.0)
        if who[k, 0] == 0:
            theta[who[k, 1]] = impulse
        else:
            u, j = who[k, 1], who[k, 2]
            phi[u, 0] += impulse * directions[u, j, 0]
            phi[u, 1] += impulse * directions[u, j, 1]
    if not entering_w:
        if kind == 0:
            theta[at] = step
        elif kind == 1:
            phi[at, 0] += step * directions[at, facet, 0]
            phi[at, 1] += step * directions[at, facet, 1]
