"""A complementary (or almost complementary) basis of an LCP, kept as one small inverse.

    w = M z + c z0 + q,   z, w, z0 >= 0,   z_i w_i = 0

A basis says which variables may be positive. Let `cols` be the basic z (index n stands for
z0) and `rows` the equations whose w is nonbasic, hence zero. Both have `size` entries, and

    K = [M c][rows, cols],   inverse = K^-1,   x = -inverse q[rows],   w = q + [M c][:, cols] x.

The other basic variables are the w outside `rows`: nothing needs to be stored for them. With
k basic z a pivot costs O(n k + k^2), where a tableau costs O(n^2); contact problems keep k
near n / 5.

What each pivot keeps true: `inverse` is K^-1 up to rounding. How far off it is comes free
with each direction: `dw[rows]` must vanish, and what it shows instead is the residual.
`enter_*` refine once where that residual is visible, and return it, so that the caller can
`refactor` before errors grow.

Lemke's method, its lexicographic variant, the pivot search and principal pivoting all stand
on this core, so that comparing them compares the rules and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.kernels.compile import kernel

SLOPPY = 1e-11
"""Residual of a direction, relative to its largest entry, above which it is refined: far
above rounding (1e-16 k), far below what a solution may show (1e-8)."""

DEAD = 1e-13
"""Smallest pivot, relative to its column, that elimination accepts as nonzero."""


class Basis(NamedTuple):
    """Arrays of one basis; see the module's head. n is the order of the LCP."""

    columns: np.ndarray  # (n+1, n) row j is column j of M; row n is the covering vector
    q: np.ndarray  # (n,)
    inverse: np.ndarray  # (n+1, n+1), the leading size x size block is in use
    cols: np.ndarray  # (n+1,) slot -> index of a basic z (n: z0)
    rows: np.ndarray  # (n+1,) slot -> equation whose w is nonbasic
    col_slot: np.ndarray  # (n+1,) index of z -> slot, or -1
    row_slot: np.ndarray  # (n,) equation -> slot, or -1
    size: np.ndarray  # (1,)
    x: np.ndarray  # (n+1,) values of the basic z, by slot
    w: np.ndarray  # (n,) values of w; zero on rows
    dx: np.ndarray  # (n+1,) change of x per unit of the entering variable
    dw: np.ndarray  # (n,) change of w, likewise
    spare: np.ndarray  # (n+1,)


@kernel
def new_basis(columns, q):
    """The empty basis (z = 0, w = q) of the LCP whose transposed matrix is `columns`."""
    n = q.shape[0]
    return Basis(
        columns,
        q,
        np.empty((n + 1, n + 1)),
        np.empty(n + 1, np.int64),
        np.empty(n + 1, np.int64),
        np.full(n + 1, -1),
        np.full(n, -1),
        np.zeros(1, np.int64),
        np.empty(n + 1),
        q.copy(),
        np.empty(n + 1),
        np.empty(n),
        np.empty(n + 1),
    )


@kernel
def _add_columns(columns, cols, k, x, out):
    """out += columns[cols]' x, over all n rows. Four columns at a time: each pass over `out`
    costs as much as the arithmetic."""
    n = out.shape[0]
    s = 0
    while s + 4 <= k:
        x0, x1, x2, x3 = x[s], x[s + 1], x[s + 2], x[s + 3]
        c0, c1, c2, c3 = cols[s], cols[s + 1], cols[s + 2], cols[s + 3]
        for i in range(n):
            out[i] += (x0 * columns[c0, i] + x1 * columns[c1, i]) + (
                x2 * columns[c2, i] + x3 * columns[c3, i]
            )
        s += 4
    while s < k:
        x0 = x[s]
        c0 = cols[s]
        for i in range(n):
            out[i] += x0 * columns[c0, i]
        s += 1


@kernel
def _apply_inverse(inverse, k, rhs, out, sign):
    """out += sign * inverse rhs, over the slots in use. Four rows side by side: one sum would
    wait for each addition."""
    s = 0
    while s + 4 <= k:
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for t in range(k):
            r = rhs[t]
            t0 += inverse[s, t] * r
            t1 += inverse[s + 1, t] * r
            t2 += inverse[s + 2, t] * r
            t3 += inverse[s + 3, t] * r
        out[s] += sign * t0
        out[s + 1] += sign * t1
        out[s + 2] += sign * t2
        out[s + 3] += sign * t3
        s += 4
    while s < k:
        t0 = 0.0
        for t in range(k):
            t0 += inverse[s, t] * rhs[t]
        out[s] += sign * t0
        s += 1


@kernel
def _direction_error(dx, dw, rows, k, unit, spare):
    """Leaves dw[rows] - e_unit in spare; returns its largest size over that of dx."""
    error = 0.0
    for t in range(k):
        value = dw[rows[t]]
        if t == unit:
            value -= 1.0
        spare[t] = value
        error = max(error, abs(value))
    scale = 1.0
    for s in range(k):
        scale = max(scale, abs(dx[s]))
    return error / scale


@kernel
def _complete_direction(b, start, unit):
    """Completes dx to a direction (dx, dw) of column `start` (none if negative), refined once
    if need be; returns its error."""
    k = b.size[0]
    columns, cols, rows, dx, dw, spare = b.columns, b.cols, b.rows, b.dx, b.dw, b.spare
    error = 0.0
    for sweep in range(2):
        for i in range(dw.shape[0]):
            dw[i] = columns[start, i] if start >= 0 else 0.0
        _add_columns(columns, cols, k, dx, dw)
        error = _direction_error(dx, dw, rows, k, unit, spare)
        if sweep == 1 or error <= SLOPPY:
            break
        _apply_inverse(b.inverse, k, spare, dx, -1.0)
    for t in range(k):
        dw[rows[t]] = 0.0
    return error


@kernel
def enter_z(b, j):
    """Direction (dx, dw) as z_j (n: z0) grows from zero at unit rate; returns its error."""
    k = b.size[0]
    columns, rows, dx, spare = b.columns, b.rows, b.dx, b.spare
    for t in range(k):
        spare[t] = columns[j, rows[t]]
        dx[t] = 0.0
    _apply_inverse(b.inverse, k, spare, dx, -1.0)
    return _complete_direction(b, j, np.int64(-1))  # a literal would have it compiled twice


@kernel
def enter_w(b, i):
    """Direction (dx, dw) as w_i, i in rows, grows from zero at unit rate; returns its error."""
    t = b.row_slot[i]
    inverse, dx = b.inverse, b.dx
    for s in range(b.size[0]):
        dx[s] = inverse[s, t]
    return _complete_direction(b, np.int64(-1), t)


@kernel
def _row_times_inverse(b, i, out):
    """out = [M c][i, cols] inverse, by row slots."""
    k = b.size[0]
    columns, cols, inverse = b.columns, b.cols, b.inverse
    for t in range(k):
        out[t] = 0.0
    for s in range(k):
        entry = columns[cols[s], i]
        if entry != 0.0:
            for t in range(k):
                out[t] += entry * inverse[s, t]


@kernel
def grow(b, j, i, out):
    """z_j enters, w_i leaves, after enter_z(b, j). `out` (n+1,) is overwritten."""
    k = b.size[0]
    _row_times_inverse(b, i, out)
    inverse, dx = b.inverse, b.dx
    pivot = b.dw[i]
    for s in range(k):
        factor = dx[s] / pivot
        if factor != 0.0:
            for t in range(k):
                inverse[s, t] -= factor * out[t]
        inverse[s, k] = factor
    for t in range(k):
        inverse[k, t] = -out[t] / pivot
    inverse[k, k] = 1.0 / pivot
    b.cols[k] = j
    b.col_slot[j] = k
    b.rows[k] = i
    b.row_slot[i] = k
    b.x[k] = 0.0
    b.size[0] = k + 1


@kernel
def replace_col(b, j, s):
    """z_j enters, the z in slot s leaves, after enter_z(b, j)."""
    k = b.size[0]
    inverse, dx = b.inverse, b.dx
    pivot = -dx[s]
    for t in range(k):
        inverse[s, t] /= pivot
    for r in range(k):
        factor = dx[r]
        if r != s and factor != 0.0:
            for t in range(k):
                inverse[r, t] += factor * inverse[s, t]
    b.col_slot[b.cols[s]] = -1
    b.cols[s] = j
    b.col_slot[j] = s


@kernel
def replace_row(b, i, leaving, out):
    """w_i enters, w_leaving leaves, after enter_w(b, i). `out` (n+1,) is overwritten."""
    k = b.size[0]
    t = b.row_slot[i]
    _row_times_inverse(b, leaving, out)
    inverse, dx = b.inverse, b.dx
    pivot = b.dw[leaving]
    for s in range(k):
        factor = dx[s] / pivot
        if factor != 0.0:
            for u in range(k):
                inverse[s, u] -= factor * out[u]
        inverse[s, t] = factor
    b.row_slot[i] = -1
    b.rows[t] = leaving
    b.row_slot[leaving] = t


@kernel
def shrink(b, i, s):
    """w_i enters, the z in slot s leaves, after enter_w(b, i)."""
    k = b.size[0]
    t = b.row_slot[i]
    last = k - 1
    inverse = b.inverse
    pivot = inverse[s, t]
    for r in range(k):
        if r == s:
            continue
        factor = inverse[r, t] / pivot
        if factor != 0.0:
            for u in range(k):
                inverse[r, u] -= factor * inverse[s, u]
        inverse[r, t] = inverse[r, last]
    b.col_slot[b.cols[s]] = -1
    b.row_slot[i] = -1
    if s != last:
        for u in range(k):
            inverse[s, u] = inverse[last, u]
        b.x[s] = b.x[last]
        b.cols[s] = b.cols[last]
        b.col_slot[b.cols[s]] = s
    if t != last:
        b.rows[t] = b.rows[last]
        b.row_slot[b.rows[t]] = t
    b.size[0] = last


@kernel
def values(b):
    """Recomputes x and w of the basis from q, refined once; returns the largest |w| on rows
    before it is set to zero there."""
    k = b.size[0]
    q, rows, x, w, spare = b.q, b.rows, b.x, b.w, b.spare
    for t in range(k):
        spare[t] = q[rows[t]]
        x[t] = 0.0
    worst = 0.0
    for _ in range(2):
        _apply_inverse(b.inverse, k, spare, x, -1.0)
        for i in range(w.shape[0]):
            w[i] = q[i]
        _add_columns(b.columns, b.cols, k, x, w)
        worst = 0.0
        for t in range(k):
            spare[t] = w[rows[t]]
            worst = max(worst, abs(spare[t]))
        if worst <= 1e-15:
            break
    for t in range(k):
        w[rows[t]] = 0.0
    return worst


@kernel
def refactor(b):
    """Rebuilds the inverse from the matrix by elimination with row exchanges (Gauss-Jordan).

    Returns False, with the inverse spoilt, where K is singular to rounding.
    """
    k = b.size[0]
    work = np.zeros((k, 2 * k))
    for s in range(k):
        col = b.columns[b.cols[s]]
        for t in range(k):
            work[t, s] = col[b.rows[t]]
    for t in range(k):
        work[t, k + t] = 1.0
    for s in range(k):
        best = s
        for t in range(s + 1, k):
            if abs(work[t, s]) > abs(work[best, s]):
                best = t
        scale = 0.0
        col = b.columns[b.cols[s]]
        for t in range(k):
            scale = max(scale, abs(col[b.rows[t]]))
        if not abs(work[best, s]) > DEAD * scale:
            return False
        if best != s:
            for u in range(s, 2 * k):
                work[s, u], work[best, u] = work[best, u], work[s, u]
        pivot = work[s, s]
        for u in range(s, 2 * k):
            work[s, u] /= pivot
        for t in range(k):
            factor = work[t, s]
            if t != s and factor != 0.0:
                for u in range(s, 2 * k):
                    work[t, u] -= factor * work[s, u]
    b.inverse[:k, :k] = work[:, k:]
    return True


@kernel
def set_basis(b, active):
    """Makes b the complementary basis of the mask `active` (n,); returns False if singular
    (b is then the empty basis)."""
    b.col_slot[:] = -1
    b.row_slot[:] = -1
    k = 0
    for i in range(active.shape[0]):
        if active[i]:
            b.cols[k] = i
            b.rows[k] = i
            b.col_slot[i] = k
            b.row_slot[i] = k
            k += 1
    b.size[0] = k
    if refactor(b):
        values(b)
        return True
    b.col_slot[:] = -1
    b.row_slot[:] = -1
    b.size[0] = 0
    b.w[:] = b.q
    return False


@kernel
def read_active(b):
    """Mask (n,) of the basic z."""
    n = b.q.shape[0]
    active = np.zeros(n, np.bool_)
    for s in range(b.size[0]):
        if b.cols[s] < n:
            active[b.cols[s]] = True
    return active


@kernel
def variable_hash(variable):
    """A well mixed 64-bit word for one variable; a set hashes to the exclusive or of its
    members' words (splitmix64's finalizer)."""
    h = np.uint64(variable + 1) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))
