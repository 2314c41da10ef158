"""The linear system of Lloyd's method at one pivot: its state, its rows, and the way back.

`Path` holds where Lemke's path on a contact problem stands; see `lloyd.py` for the problem and the
symbols. `build` writes the system of Lloyd's eqs. (31), (42), (44) and (47), in the basic theta,
all but one of the basic phi of a sliding unit, and z0, with two right sides: the basic variables'
values, and their direction as the entering one grows. `recover` reads off all basic variables.

Each stage names the arrays that it works on first: read from the tuple where they are used, they
would cost more than the arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.problem.cones import Cones
from stiction.kernels.compile import leaf, lean_leaf
from stiction.kernels.dense import row_dot
from stiction.kernels.linear import solve_dense

W, Z, OPEN = 0, 1, 2
"""Which variable of a pair is basic: the velocity, the impulse, or neither."""

NORMAL, FACET, CONE, ARTIFICIAL = 0, 1, 2, 3
"""Kinds of pairs: (theta, nu), (phi, sigma), (lambda, gamma); and z0, which has no partner."""

KIND, AT, WHICH, FALLING = 0, 1, 2, 3
"""Entries of `Path.pair`: the open pair's kind, its contact or unit, its facet, and whether its
velocity enters (the impulse has left) and not its impulse."""

GOLDEN = 0.6180339887498949


class Path(NamedTuple):
    """Where the path stands: n contacts, u units of d facets, r coordinates, m unknowns at most."""

    state_n: np.ndarray  # (n,) which of (theta, nu) is basic
    state_f: np.ndarray  # (u, d) which of (phi, sigma)
    state_c: np.ndarray  # (u,) which of (lambda, gamma)
    pair: np.ndarray  # (4,) the open pair, see KIND
    present: np.ndarray  # (u,) units that are there, in the order they came
    present_count: np.ndarray  # (1,) how many
    is_present: np.ndarray  # (u,)
    cover_n: np.ndarray  # (n,) covers of nu
    cover_s: np.ndarray  # (u,) of sigma
    cover_g: np.ndarray  # (u,) of gamma
    chosen: np.ndarray  # (u,) the eliminated facet of a unit whose lambda is basic, or -1
    chosen_row: np.ndarray  # (u, r)
    chosen_free: np.ndarray  # (u,)
    col: np.ndarray  # (m, r) columns of the unknowns; the last is z0's
    row: np.ndarray  # (m, r) rows; the last is the open pair's
    across: np.ndarray  # (r, m) `col` transposed
    names: np.ndarray  # (m, 3) kind, contact or unit, facet of each unknown
    matrix: np.ndarray  # (m, m); its last column holds covers while it is built
    right: np.ndarray  # (m, 2) values, direction; then the solution
    v0: np.ndarray  # (r,) what limits of sliding units bring to v
    ve: np.ndarray  # (r,) what the entering variable brings to dv
    v: np.ndarray  # (r,)
    dv: np.ndarray  # (r,) change of v per unit of the entering variable
    z0: np.ndarray  # (2,) value, direction
    turned: np.ndarray  # (r, n) normals transposed
    nu: np.ndarray  # (2, n) value, direction
    theta: np.ndarray  # (2, n)
    total: np.ndarray  # (2, u) sums of phi over each unit
    value: np.ndarray  # (k,) of each basic variable but nu; z0 is the first
    slope: np.ndarray  # (k,) its direction
    who: np.ndarray  # (k, 4) its kind, contact or unit, facet, and W or Z


@leaf
def new_path(p: Cones, facets):
    """A path at z = 0 without units; the normals' covers are set."""
    n, r = p.normal.shape
    units = p.parent.shape[0]
    cap = min(r, n + 2 * units) + 3
    most = cap + units * (facets + 2) + 1
    cover_n = np.empty(n)
    for i in range(n):
        cover_n[i] = 1.0 + ((i + 1) * GOLDEN) % 1.0
    turned = np.empty((r, n))
    for i in range(n):
        for a in range(r):
            turned[a, i] = p.normal[i, a]
    return Path(
        np.zeros(n, np.int8),
        np.zeros((units, facets), np.int8),
        np.zeros(units, np.int8),
        np.full(4, -1),
        np.empty(units, np.int64),
        np.zeros(1, np.int64),
        np.zeros(units, np.bool_),
        cover_n,
        np.empty(units),
        np.empty(units),
        np.full(units, -1),
        np.empty((units, r)),
        np.empty(units),
        np.empty((cap, r)),
        np.empty((cap, r)),
        np.empty((r, cap)),
        np.empty((cap, 3), np.int64),
        np.empty((cap, cap)),
        np.empty((cap, 2)),
        np.empty(r),
        np.empty(r),
        np.zeros(r),
        np.empty(r),
        np.zeros(2),
        turned,
        np.empty((2, n)),
        np.zeros((2, n)),
        np.zeros((2, units)),
        np.empty(most),
        np.empty(most),
        np.empty((most, 4), np.int64),
    )


@lean_leaf
def add_unit(s: Path, u, slip):
    """Gives friction unit u to the problem; its cover of sigma bears at least `slip` per z0."""
    state_n, present, count, is_present = s.state_n, s.present, s.present_count, s.is_present
    cover_s, cover_g = s.cover_s, s.cover_g
    n = state_n.shape[0]
    present[count[0]] = u
    is_present[u] = True
    count[0] += 1
    cover_s[u] = (1.0 + ((n + 2 * u + 1) * GOLDEN) % 1.0) * max(1.0, slip)
    cover_g[u] = 1.0 + ((n + 2 * u + 2) * GOLDEN) % 1.0


@lean_leaf
def facet_row(rows, u, directions, j, out, k):
    """out[k] = facet j of unit u as an r-vector: its direction in the unit's plane."""
    a = directions[u, j, 0]
    b = directions[u, j, 1]
    for c in range(out.shape[1]):
        out[k, c] = a * rows[u, 0, c] + b * rows[u, 1, c]


# Rows are named by array and index, not sliced: a slice costs two atomic reference counts.


@lean_leaf
def dot_unit(rows, u, t, b):
    """rows[u, t] . b"""
    total = 0.0
    for c in range(b.shape[0]):
        total += rows[u, t, c] * b[c]
    return total


@lean_leaf
def _add(out, factor, a, i):
    """out += factor a[i]"""
    for c in range(out.shape[0]):
        out[c] += factor * a[i, c]


@lean_leaf
def _add_row(out, k, factor, a, i):
    """out[k] += factor a[i]"""
    for c in range(out.shape[1]):
        out[k, c] += factor * a[i, c]


@lean_leaf
def _copy_row(out, k, a, i):
    """out[k] = a[i]"""
    for c in range(out.shape[1]):
        out[k, c] = a[i, c]


@lean_leaf
def _eliminate(p: Cones, directions, s: Path):
    """Chooses the phi that each unit with a basic lambda gives up, and starts v0 and z0's column
    (in ve) with what that brings; False where such a unit has no basic phi."""
    rows, free, limit = p.rows, p.free, p.limit
    v0, ve, count, present, chosen = s.v0, s.ve, s.present_count, s.present, s.chosen
    state_c, state_f, chosen_row = s.state_c, s.state_f, s.chosen_row
    chosen_free, cover_g = s.chosen_free, s.cover_g
    v0[:] = 0.0
    ve[:] = 0.0
    for k in range(count[0]):
        u = present[k]
        chosen[u] = -1
        if state_c[u] == Z:
            for j in range(directions.shape[1]):
                if state_f[u, j] == Z:
                    chosen[u] = j
                    break
            if chosen[u] < 0:
                return False
            j = chosen[u]
            facet_row(rows, u, directions, j, chosen_row, u)
            chosen_free[u] = directions[u, j, 0] * free[u, 0] + directions[u, j, 1] * free[u, 1]
            _add(v0, limit[u], chosen_row, u)
            _add(ve, cover_g[u], chosen_row, u)
    return True


@lean_leaf
def _facet_equation(
    rows, free, directions, u, j, chosen, chosen_row, chosen_free, cover_s, row, right, matrix, m
):
    """Row m: sigma = 0 of facet j of unit u, less that of the unit's eliminated facet."""
    cap = matrix.shape[0]
    facet_row(rows, u, directions, j, row, m)
    slip = directions[u, j, 0] * free[u, 0] + directions[u, j, 1] * free[u, 1]
    if chosen[u] >= 0:
        _add_row(row, m, -1.0, chosen_row, u)
        right[m, 0] = chosen_free[u] - slip
        matrix[m, cap - 1] = 0.0
    else:
        right[m, 0] = -slip
        matrix[m, cap - 1] = cover_s[u]


@lean_leaf
def _basic_rows(p: Cones, directions, s: Path):
    """Rows and columns of the basic theta and phi; returns how many, or -1 if they do not fit."""
    normal, first, mu, free_normal, free = p.normal, p.first, p.mu, p.free_normal, p.free
    rows = p.rows
    col, state_n, row, is_present, chosen = s.col, s.state_n, s.row, s.is_present, s.chosen
    chosen_row, names, right, matrix = s.chosen_row, s.names, s.right, s.matrix
    cover_n, count, present, state_f = s.cover_n, s.present_count, s.present, s.state_f
    chosen_free, cover_s = s.chosen_free, s.cover_s
    cap = col.shape[0]
    m = 0
    for i in range(normal.shape[0]):
        if state_n[i] == Z:
            if m + 1 >= cap:
                return -1
            _copy_row(row, m, normal, i)
            _copy_row(col, m, normal, i)
            for u in range(first[i], first[i + 1]):
                if is_present[u] and chosen[u] >= 0:
                    _add_row(col, m, mu[u], chosen_row, u)
            names[m, 0] = NORMAL
            names[m, 1] = i
            right[m, 0] = -free_normal[i]
            matrix[m, cap - 1] = cover_n[i]
            m += 1
    for k in range(count[0]):
        u = present[k]
        for j in range(directions.shape[1]):
            if state_f[u, j] == Z and j != chosen[u]:
                if m + 1 >= cap:
                    return -1
                _facet_equation(
                    rows, free, directions, u, j, chosen, chosen_row, chosen_free,
                    cover_s, row, right, matrix, m,
                )  # fmt: skip
                _copy_row(col, m, row, m)
                names[m, 0] = FACET
                names[m, 1] = u
                names[m, 2] = j
                m += 1
    return m


@lean_leaf
def _open_row(p: Cones, directions, s: Path, m):
    """z0's column and the open pair's row, at m, and in ve what the entering variable brings."""
    normal, free_normal, free, first, mu = p.normal, p.free_normal, p.free, p.first, p.mu
    rows = p.rows
    pair, ve, col, row, right, matrix = s.pair, s.ve, s.col, s.row, s.right, s.matrix
    cover_n, is_present, chosen, chosen_row = s.cover_n, s.is_present, s.chosen, s.chosen_row
    chosen_free, cover_s = s.chosen_free, s.cover_s
    kind, at = pair[KIND], pair[AT]
    for a in range(ve.shape[0]):
        col[m, a] = ve[a]
    ve[:] = 0.0
    if kind == NORMAL:
        _copy_row(row, m, normal, at)
        right[m, 0] = -free_normal[at]
        matrix[m, col.shape[0] - 1] = cover_n[at]
        if not pair[FALLING]:
            _add(ve, 1.0, normal, at)
            for u in range(first[at], first[at + 1]):
                if is_present[u] and chosen[u] >= 0:
                    _add(ve, mu[u], chosen_row, u)
    elif kind == FACET:
        _facet_equation(
            rows, free, directions, at, pair[WHICH], chosen, chosen_row, chosen_free,
            cover_s, row, right, matrix, m,
        )  # fmt: skip
        if not pair[FALLING]:
            _add(ve, 1.0, row, m)


@lean_leaf
def _multiply(s: Path, m, count):
    """The first `count` rows of the matrix and right sides, from rows and columns."""
    across, col, right, row, v0, ve, matrix = s.across, s.col, s.right, s.row, s.v0, s.ve, s.matrix
    r, cap = across.shape
    for c in range(m + 1):
        for a in range(r):
            across[a, c] = col[c, a]
    for k in range(count):
        right[k, 0] -= row_dot(row, k, v0)
        right[k, 1] = -row_dot(row, k, ve)
        z_coefficient = matrix[k, cap - 1]
        for c in range(m + 1):
            matrix[k, c] = 0.0
        # Along rows of the transposed columns, not as inner products: sums side by side
        # run in vector registers, one sum waits for itself.
        for a in range(r):
            entry = row[k, a]
            if entry != 0.0:
                for c in range(m + 1):
                    matrix[k, c] += entry * across[a, c]
        matrix[k, m] += z_coefficient


@lean_leaf
def build(p: Cones, directions, s: Path):
    """Builds and solves the basis' system; returns its unknowns less z0, or -1 if singular."""
    limit, parent, mu = p.limit, p.parent, p.mu
    pair, right, matrix, names, cover_g = s.pair, s.right, s.matrix, s.names, s.cover_g
    if not _eliminate(p, directions, s):
        return -1
    m = _basic_rows(p, directions, s)
    if m < 0:
        return -1
    _open_row(p, directions, s, m)
    kind, at = pair[KIND], pair[AT]
    _multiply(s, m, m if kind == CONE else m + 1)
    if kind == CONE:
        right[m, 0] = -limit[at]
        right[m, 1] = 0.0
        for c in range(m):
            matrix[m, c] = 0.0
            if names[c, 0] == NORMAL and names[c, 1] == parent[at]:
                matrix[m, c] = mu[at]
            elif names[c, 0] == FACET and names[c, 1] == at:
                matrix[m, c] = -1.0
                if not pair[FALLING]:
                    right[c, 1] -= 1.0
        matrix[m, m] = cover_g[at]
    if pair[FALLING]:
        right[m, 1] = 1.0
    return m if solve_dense(matrix, right, m + 1, 0.0) else -1


@lean_leaf
def _note(value, slope, who, seen, value_here, slope_here, kind, at, facet, side):
    """Lists a basic variable; returns the next free place."""
    value[seen] = value_here
    slope[seen] = slope_here
    who[seen, 0] = kind
    who[seen, 1] = at
    who[seen, 2] = facet
    who[seen, 3] = side
    return seen + 1


@lean_leaf
def recover(p: Cones, directions, s: Path, m):
    """Values and directions of all basic variables from the solution of m unknowns and z0: nu in
    its own array, the others listed; returns how many are listed."""
    normal, free_normal = p.normal, p.free_normal
    z0, right, v, v0, dv, ve, col, value = s.z0, s.right, s.v, s.v0, s.dv, s.ve, s.col, s.value
    slope, who, count, total, present = s.slope, s.who, s.present_count, s.total, s.present
    names, theta, pair, nu, cover_n = s.names, s.theta, s.pair, s.nu, s.cover_n
    turned = s.turned
    z0[0], z0[1] = right[m, 0], right[m, 1]
    for a in range(v.shape[0]):
        v[a] = v0[a]
        dv[a] = ve[a]
    for c in range(m + 1):
        _add(v, right[c, 0], col, c)
        _add(dv, right[c, 1], col, c)
    seen = _note(value, slope, who, 0, z0[0], z0[1], ARTIFICIAL, 0, 0, Z)
    for k in range(count[0]):
        total[0, present[k]] = 0.0
        total[1, present[k]] = 0.0
    for c in range(m):
        kind, at = names[c, 0], names[c, 1]
        if kind == NORMAL:
            theta[0, at] = right[c, 0]
            theta[1, at] = right[c, 1]
        else:
            total[0, at] += right[c, 0]
            total[1, at] += right[c, 1]
        seen = _note(value, slope, who, seen, right[c, 0], right[c, 1], kind, at, names[c, 2], Z)
    at = pair[AT]
    if pair[KIND] == NORMAL and not pair[FALLING]:
        theta[0, at] = 0.0
        theta[1, at] = 1.0
    if pair[KIND] == FACET and not pair[FALLING]:
        total[1, at] += 1.0
    n = normal.shape[0]
    for i in range(n):
        nu[0, i] = free_normal[i] + cover_n[i] * z0[0]
        nu[1, i] = cover_n[i] * z0[1]
    for a in range(v.shape[0]):
        for i in range(n):
            nu[0, i] += v[a] * turned[a, i]
            nu[1, i] += dv[a] * turned[a, i]
    return _recover_units(p, directions, s, seen)


@lean_leaf
def _recover_units(p: Cones, directions, s: Path, seen):
    """Lists the basic variables of the units that the system does not hold: the eliminated phi and
    lambda, or gamma, and each basic sigma; returns how many variables are listed in all."""
    limit, parent, mu, free, rows, flat = p.limit, p.parent, p.mu, p.free, p.rows, p.flat
    pair, z0, count, present, cover_g = s.pair, s.z0, s.present_count, s.present, s.cover_g
    total, state_n, theta, state_c, v = s.total, s.state_n, s.theta, s.state_c, s.v
    value, slope, who, chosen, chosen_free = s.value, s.slope, s.who, s.chosen, s.chosen_free
    cover_s, chosen_row, dv, state_f = s.cover_s, s.chosen_row, s.dv, s.state_f
    entering = not pair[FALLING]
    at_z0, dz0 = z0[0], z0[1]
    for k in range(count[0]):
        u = present[k]
        room_v = limit[u] + cover_g[u] * at_z0 - total[0, u]
        room_d = cover_g[u] * dz0 - total[1, u]
        if parent[u] >= 0:
            i = parent[u]
            if state_n[i] == Z or (pair[KIND] == NORMAL and pair[AT] == i and entering):
                room_v += mu[u] * theta[0, i]
                room_d += mu[u] * theta[1, i]
        lambda_v = 0.0
        lambda_d = 0.0
        if state_c[u] == Z:
            # The eliminated phi takes what the others leave.
            seen = _note(value, slope, who, seen, room_v, room_d, FACET, u, chosen[u], Z)
            lambda_v = -(chosen_free[u] + cover_s[u] * at_z0 + row_dot(chosen_row, u, v))
            lambda_d = -(cover_s[u] * dz0 + row_dot(chosen_row, u, dv))
            seen = _note(value, slope, who, seen, lambda_v, lambda_d, CONE, u, 0, Z)
        elif state_c[u] == W:
            seen = _note(value, slope, who, seen, room_v, room_d, CONE, u, 0, W)
        elif entering:
            lambda_d = 1.0  # the open pair is this unit's, and lambda enters
        slip0 = free[u, 0] + dot_unit(rows, u, 0, v)
        slip1 = free[u, 1] + dot_unit(rows, u, 1, v)
        turn0 = dot_unit(rows, u, 0, dv)
        turn1 = dot_unit(rows, u, 1, dv)
        for j in range(2 if flat[u] else directions.shape[1]):
            if state_f[u, j] == W:
                a = directions[u, j, 0]
                b = directions[u, j, 1]
                sigma = a * slip0 + b * slip1 + lambda_v + cover_s[u] * at_z0
                change = a * turn0 + b * turn1 + lambda_d + cover_s[u] * dz0
                seen = _note(value, slope, who, seen, sigma, change, FACET, u, j, W)
    return seen
