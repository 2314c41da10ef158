"""From (M, q) to a verified z, method by method, in one compiled call each.

A driver scales the problem, runs its method from the given active set, scales back, and
recomputes the residual from M and q as they came. If the method says solved but the residual
of its answer is not yet rounding, it is run again from the basis it ended in, on fresh
factors: pivoting errors do not add up across runs.
"""

from __future__ import annotations

import numpy as np

from stiction.kernels.compile import kernel
from stiction.kernels.pivoting import new_basis, read_active, refactor, set_basis, values
from stiction.kernels.scaling import equilibrate, natural_residual
from stiction.lcp import dantzig as dantzig_method
from stiction.lcp.lemke import follow_path, generic_cover
from stiction.lcp.principal import principal
from stiction.lcp.search import search_pivots
from stiction.status import Code
from stiction.tolerances import RESIDUAL

NOT_FINITE, NOT_SYMMETRIC = -1, -2

RERUNS = 4
"""Runs from the basis that the last one ended in, at most."""

POLISHED = 1e-12
"""Scaled residual at which another run could gain nothing."""

SNAP = 1e-12
"""Distance from a bound, relative to the scaled problem, that may be rounding."""


@kernel
def first_nonfinite(a):
    """Flat index of the first entry that is not finite, or -1."""
    flat = a.ravel()
    n = flat.shape[0]
    # Four sums, so that they run side by side; x * 0 is zero unless x is not finite.
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for i in range(0, n - 3, 4):
        s0 += flat[i] * 0.0
        s1 += flat[i + 1] * 0.0
        s2 += flat[i + 2] * 0.0
        s3 += flat[i + 3] * 0.0
    for i in range(n - n % 4, n):
        s0 += flat[i] * 0.0
    if s0 + s1 + s2 + s3 == 0.0:
        return -1
    for i in range(n):
        if not np.isfinite(flat[i]):
            return i
    return -1


@kernel
def _transpose_scaled(M, rows, cols, out):
    """out[j, i] = rows[i] M[i, j] cols[j], by tiles that fit the nearest cache."""
    n = M.shape[0]
    for top in range(0, n, 8):
        for left in range(0, n, 8):
            for j in range(left, min(left + 8, n)):
                scale = cols[j]
                for i in range(top, min(top + 8, n)):
                    out[j, i] = M[i, j] * (rows[i] * scale)


@kernel
def _prepare(M, q, active, cover, turn):
    """(basis, weights, cols, top): the scaled problem in its first basis, the covering weights
    (n,), and the scales: z = cols x top."""
    n = q.shape[0]
    rows, cols = equilibrate(M)
    top = 0.0
    for i in range(n):
        top = max(top, abs(q[i]) * rows[i])
    if top == 0.0:
        top = 1.0
    columns = np.empty((n + 1, n))
    scaled = np.empty(n)
    for i in range(n):
        scaled[i] = q[i] * rows[i] / top
    _transpose_scaled(M, rows, cols, columns)
    if n > 0 and cover.shape[0] == n:
        weights = cover * rows
        weights /= weights.max()
    else:
        weights = generic_cover(n, turn)
    b = new_basis(columns, scaled)
    if active.shape[0] == n and active.any():
        set_basis(b, active)  # where it is singular, b stays the empty basis
    return b, weights, cols, top


@kernel
def _verify(b):
    """(found, worst): whether the basis has an inverse, and its largest violation, on fresh
    factors where the old ones show errors."""
    worst = values(b)
    if worst > POLISHED:
        if not refactor(b):
            return False, worst
        worst = values(b)
    for s in range(b.size[0]):
        worst = max(worst, -b.x[s])
    for i in range(b.w.shape[0]):
        worst = max(worst, -b.w[i])
    return True, worst


@kernel
def _grade(M, q, z, w, lo, hi, unit):
    """Fills w and returns the residual of z.

    A z_j that ought to be at its bound but is off by rounding can be all that a row of q = 0 is
    made of, and so violate it by all there is. Where the residual does not pass, z within SNAP
    of `unit` (n,) from a bound is put there, if that is better.
    """
    n = q.shape[0]
    residual = natural_residual(M, q, z, w, lo, hi)
    if residual <= RESIDUAL:
        return residual
    snapped = z.copy()
    for j in range(n):
        if abs(z[j] - lo[j]) <= SNAP * unit[j]:
            snapped[j] = lo[j]
        elif abs(hi[j] - z[j]) <= SNAP * unit[j]:
            snapped[j] = hi[j]
    other = np.empty(n)
    better = natural_residual(M, q, snapped, other, lo, hi)
    if better < residual:
        z[:] = snapped
        w[:] = other
        return better
    return residual


@kernel
def _finish(M, q, b, cols, top):
    """(z, w, active, residual): the basis' answer in the problem's own units, graded."""
    n = q.shape[0]
    z = np.zeros(n)
    for s in range(b.size[0]):
        j = b.cols[s]
        if j < n:
            z[j] = max(b.x[s], 0.0) * cols[j] * top
    w = np.empty(n)
    residual = _grade(M, q, z, w, np.zeros(n), np.full(n, np.inf), cols * top)
    return z, w, read_active(b), residual


@kernel
def solve_lemke(M, q, active, cover, turn, lexicographic, tie, limit):
    """Lemke's method on w = M z + q, plain or lexicographic.

    active (n,) bool: first basis, or (0,) for a cold start; cover (n,) or (0,): covering vector,
    in units of w; turn: which generic one otherwise. Returns (z, w, active, code, pivots,
    residual, ray): ray (n+1,) is the direction in (z, z0) on RAY, else empty. The code is
    NOT_FINITE, and the rest means nothing, where M or q is not finite.
    """
    n = q.shape[0]
    if first_nonfinite(M) >= 0 or first_nonfinite(q) >= 0:
        return q, q, active, np.int64(NOT_FINITE), 0, np.inf, q
    b, weights, cols, top = _prepare(M, q, active, cover, turn)
    pivots = 0
    entering = -1
    code = Code.ERROR
    for _ in range(RERUNS):
        code, more, entering = follow_path(b, weights, lexicographic, tie, limit - pivots)
        pivots += more
        if code != Code.SOLVED:
            break
        found, worst = _verify(b)
        if not found:
            code = Code.SINGULAR
        if not found or worst <= POLISHED or more == 0:
            break
    ray = np.empty(0)
    if code == Code.RAY:
        ray = np.zeros(n + 1)
        if entering < n:
            ray[entering] = cols[entering]
        for s in range(b.size[0]):
            j = b.cols[s]
            ray[j] = b.dx[s] * (cols[j] if j < n else 1.0)
    z, w, active, residual = _finish(M, q, b, cols, top)
    return z, w, active, np.int64(code), pivots, residual, ray


@kernel
def solve_search(M, q, active, cover, turn, epsilon, e_max, limit):
    """The pivot search, as `solve_lemke`; returns counts (3,) of dead ends for the ray."""
    b, weights, cols, top = _prepare(M, q, active, cover, turn)
    counts = np.zeros(3, np.int64)
    pivots = 0
    code = Code.ERROR
    for _ in range(RERUNS):
        code, more = search_pivots(b, weights, epsilon, e_max, limit, counts)
        pivots += more
        if code != Code.SOLVED:
            break
        found, worst = _verify(b)
        if not found:
            code = Code.SINGULAR
        if not found or worst <= 10.0 * epsilon or more == 0:
            break
    z, w, active, residual = _finish(M, q, b, cols, top)
    return z, w, active, np.int64(code), pivots, residual, counts


@kernel
def solve_principal(M, q, active, limit):
    """Principal pivoting, as `solve_lemke`; there is no ray."""
    b, _, cols, top = _prepare(M, q, active, np.empty(0), 0)
    code, pivots = principal(b, limit)
    if code == Code.SOLVED and not _verify(b)[0]:
        code = Code.SINGULAR
    z, w, active, residual = _finish(M, q, b, cols, top)
    return z, w, active, np.int64(code), pivots, residual


@kernel
def is_symmetric(M):
    """(-1, -1) if M is symmetric to rounding, else the first pair that is not."""
    n = M.shape[0]
    for i in range(n):
        for j in range(i):
            if M[i, j] == M[j, i]:
                continue
            gap = abs(M[i, j] - M[j, i])
            if gap > 1e-10 * (abs(M[i, j]) + abs(M[j, i])) and gap > 1e-12 * np.sqrt(
                abs(M[i, i] * M[j, j])
            ):
                return i, j
    return -1, -1


@kernel
def solve_dantzig(M, q, lo, hi, state, limit):
    """Runs Dantzig's method on a symmetric M; lo, hi, state may be empty (the plain LCP, cold).

    Returns (z, w, state, code, pivots, residual, ray): state (n,) int8 as in `dantzig`.
    """
    n = q.shape[0]
    scale = np.ones(n)
    for i in range(n):
        if M[i, i] > 0.0:
            scale[i] = 1.0 / np.sqrt(M[i, i])
    if lo.shape[0] != n:
        lo = np.zeros(n)
        hi = np.full(n, np.inf)
    state = state.copy() if state.shape[0] == n else np.zeros(n, np.int8)
    top = 0.0
    for i in range(n):
        top = max(top, abs(q[i]) * scale[i])
        if np.isfinite(lo[i]):
            top = max(top, abs(lo[i]) / scale[i])
        if np.isfinite(hi[i]):
            top = max(top, abs(hi[i]) / scale[i])
    if top == 0.0:
        top = 1.0
    A = np.empty((n, n))
    b = np.empty(n)
    low = np.empty(n)
    high = np.empty(n)
    for i in range(n):
        b[i] = q[i] * (scale[i] / top)
        low[i] = lo[i] / (scale[i] * top)
        high[i] = hi[i] / (scale[i] * top)
        for j in range(n):
            A[i, j] = (0.5 * (M[i, j] + M[j, i])) * (scale[i] * scale[j])
    f = np.empty(n)
    a = np.empty(n)
    ray = np.zeros(n + 1)
    code, pivots = dantzig_method.dantzig(A, b, low, high, state, f, a, ray[:n], limit)
    z = np.empty(n)
    for i in range(n):
        z[i] = min(max(f[i] * scale[i] * top, lo[i]), hi[i])
    if code == Code.RAY:
        for i in range(n):
            ray[i] *= scale[i]
    else:
        ray = np.empty(0)
    w = np.empty(n)
    residual = _grade(M, q, z, w, lo, hi, scale * top)
    return z, w, state, code, pivots, residual, ray


@kernel
def solve_if_symmetric(M, q, limit):
    """`solve_dantzig` on a plain LCP, with the checks that come before it, in one call.

    The code is NOT_FINITE or NOT_SYMMETRIC, and the arrays mean nothing, where it does not
    apply (the latter also for a negative diagonal). One call instead of four: at a dozen rows
    the calls would cost more than the solve.
    """
    n = q.shape[0]
    nothing = np.empty(0)
    state = np.empty(0, np.int8)
    if first_nonfinite(M) >= 0 or first_nonfinite(q) >= 0:
        return nothing, nothing, state == 1, NOT_FINITE, 0, np.inf, nothing
    suitable = is_symmetric(M)[0] < 0
    for i in range(n):
        suitable = suitable and M[i, i] >= 0.0
    if not suitable:
        return nothing, nothing, state == 1, NOT_SYMMETRIC, 0, np.inf, nothing
    z, w, state, code, pivots, residual, ray = solve_dantzig(M, q, nothing, nothing, state, limit)
    return z, w, state == 1, np.int64(code), pivots, residual, ray


@kernel
def enumerate_bases(M, q):
    """(z, active, found, singular): the first nonsingular complementary basis that solves the
    LCP, in the order of binary numbers, and how many bases were singular. For small n only."""
    n = q.shape[0]
    rows, cols = equilibrate(M)
    columns = np.zeros((n + 1, n))
    scaled = q * rows
    top = np.abs(scaled).max()
    if top > 0.0:
        scaled /= top
    _transpose_scaled(M, rows, cols, columns)
    b = new_basis(columns, scaled)
    active = np.zeros(n, np.bool_)
    z = np.zeros(n)
    singular = 0
    for mask in range(1 << n):
        for i in range(n):
            active[i] = (mask >> i) & 1
        if not set_basis(b, active):
            singular += 1
            continue
        least = b.w.min()
        for s in range(b.size[0]):
            least = min(least, b.x[s])
        if least >= -1e-10:
            for s in range(b.size[0]):
                z[b.cols[s]] = max(b.x[s], 0.0) * cols[b.cols[s]] * top
            return z, active, True, singular
    return z, active, False, singular


@kernel
def residual_of(M, q, z, lo, hi):
    """(w, residual) of any z: the measure that decides every status."""
    w = np.empty(q.shape[0])
    return w, natural_residual(M, q, z, w, lo, hi)
