"""Dantzig's method as Baraff tells it (his section 4): one row after the other is driven.

    a = A f + b,   lo <= f <= hi,   a_i >= 0 at lo, a_i <= 0 at hi, a_i = 0 between

A is symmetric and positive semidefinite; f is z and a is w of the LCP. Rows are `clamped` (a
= 0 is kept by varying f), `separating` (f rests at a bound, a has the right sign, kept), or
not considered yet. The worst row d that is not considered is `driven`: f_d moves until a_d is
zero or f_d meets its bound; meanwhile rows pass between clamped and separating as their f or
their a reaches zero. Each pivot keeps true: every considered row satisfies its conditions.
Free rows (no bounds) are clamped first and stay so.

A[clamped, clamped] is kept as a Cholesky factor, updated in O(k^2). As the Schur complement of
d is the rate at which a_d answers f_d, one forward substitution gives direction, rate and, if
d is clamped later, the factor's new row.

How it can fail: RAY (nothing limits f_d: for a positive semidefinite A this proves that no
solution exists), UNSUITABLE (negative curvature: A is not positive semidefinite),
PIVOT_LIMIT.

Where this departs from Baraff: bounds on both sides; the worst row is driven first, not any;
a row whose Schur complement vanishes is dependent on the clamped ones and never clamped, so
that redundant contacts cannot make the factor singular by rounding.
"""

from __future__ import annotations

import numpy as np

from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.status import Code

LEAST_SCHUR = 1e-12
"""Smallest Schur complement, relative to the diagonal, of an independent row. Rounding
leaves 1e-15 on a dependent one; mass ratios of 10^6 leave 1e-6 on an independent one."""

TOUCH = 1e-12
"""A rate or a violation below this, relative to the scaled problem, is rounding."""

OPEN, CLAMPED, LOW, HIGH = 0, 1, 2, 3


@kernel
def _column(A, clamped, k, d, y):
    """y = L^-1 A[clamped, d] comes after this: here only the gathering."""
    row = A[d]
    for s in range(k):
        y[s] = row[clamped[s]]


@kernel
def _try_clamp(A, L, clamped, k, i, y):
    """Appends row i to the factor if it is independent; returns the new k."""
    _column(A, clamped, k, i, y)
    linear.forward(L, k, y)
    pivot = A[i, i]
    for s in range(k):
        pivot -= y[s] * y[s]
    if not pivot > LEAST_SCHUR * A[i, i]:
        return k
    linear.append(L, k, y, pivot)
    clamped[k] = i
    return k + 1


@kernel
def _unclamp(L, clamped, k, slot):
    """Removes a slot from the factor and the list; returns the new k."""
    linear.delete(L, k, slot)
    for s in range(slot, k - 1):
        clamped[s] = clamped[s + 1]
    return k - 1


@kernel
def _refresh(A, b, f, a):
    """a = A f + b."""
    n = b.shape[0]
    a[:] = b
    for j in range(n):
        if f[j] != 0.0:
            row = A[j]
            for i in range(n):
                a[i] += f[j] * row[i]


@kernel
def _zero_clamped(A, b, L, clamped, k, f, a, y):
    """Moves f on the clamped rows so that a vanishes there, and recomputes a."""
    for s in range(k):
        y[s] = -a[clamped[s]]
    linear.forward(L, k, y)
    linear.backward(L, k, y)
    for s in range(k):
        f[clamped[s]] += y[s]
    _refresh(A, b, f, a)


@kernel
def _begin(A, b, lo, hi, state, L, clamped, f, a, y):
    """First clamped set: the free rows, then those of a warm start, less what it pulls
    beyond its bounds. Fills f, a and state; returns k."""
    n = b.shape[0]
    k = 0
    for i in range(n):
        f[i] = min(max(0.0, lo[i]), hi[i])
        if state[i] == HIGH and np.isfinite(hi[i]):
            f[i] = hi[i]
        elif state[i] != CLAMPED:
            state[i] = OPEN
    for i in range(n):
        if lo[i] == -np.inf and hi[i] == np.inf:
            k = _try_clamp(A, L, clamped, k, i, y)
            state[i] = CLAMPED if k > 0 and clamped[k - 1] == i else OPEN
    free = k
    for i in range(n):
        if state[i] == CLAMPED and not (lo[i] == -np.inf and hi[i] == np.inf):
            k = _try_clamp(A, L, clamped, k, i, y)
            state[i] = CLAMPED if clamped[k - 1] == i else OPEN
    _refresh(A, b, f, a)
    while k > 0:
        _zero_clamped(A, b, L, clamped, k, f, a, y)
        worst = 0.0
        slot = -1
        for s in range(free, k):
            i = clamped[s]
            out = max(lo[i] - f[i], f[i] - hi[i])
            if out > worst:
                worst = out
                slot = s
        if slot < 0:
            break
        i = clamped[slot]
        f[i] = lo[i] if f[i] < lo[i] else hi[i]
        state[i] = OPEN
        k = _unclamp(L, clamped, k, slot)
        _refresh(A, b, f, a)
    return k


@kernel
def _worst_row(lo, hi, state, f, a):
    """The unclamped row whose condition fails most, or -1. Rows that fail alike to rounding
    (duplicates) go by index, whatever the units."""
    worst = 10.0 * TOUCH
    found = -1
    for i in range(f.shape[0]):
        if state[i] != CLAMPED:
            size = abs(a[i])
            if size > worst and ((a[i] < 0.0 and f[i] < hi[i]) or (a[i] > 0.0 and f[i] > lo[i])):
                worst = size * (1.0 + 1e-9)
                found = i
    return found


@kernel
def _longest_step(lo, hi, state, clamped, k, d, sign, rate, y, f, a, da):
    """(step, row): how far the driven row can go and which row ends it, or (inf, -1)."""
    step = np.inf
    own = np.inf
    row = -1
    if rate > LEAST_SCHUR:
        own = abs(a[d]) / rate
        step = own
        row = d
    bound = hi[d] - f[d] if sign > 0.0 else f[d] - lo[d]
    if bound < step:
        step = bound
        row = d
    for s in range(k):
        i = clamped[s]
        if y[s] < -TOUCH and (f[i] - lo[i]) < step * -y[s]:
            step = max(f[i] - lo[i], 0.0) / -y[s]
            row = i
        elif y[s] > TOUCH and (hi[i] - f[i]) < step * y[s]:
            step = max(hi[i] - f[i], 0.0) / y[s]
            row = i
    for i in range(f.shape[0]):
        if state[i] == LOW and da[i] < -TOUCH and a[i] < step * -da[i]:
            step = max(a[i], 0.0) / -da[i]
            row = i
        elif state[i] == HIGH and da[i] > TOUCH and -a[i] < step * da[i]:
            step = max(-a[i], 0.0) / da[i]
            row = i
    # On a tie d ends the drive: a row that is d's opposite, clamped first, would make d
    # dependent with its force already up.
    if row != d and (own - step) * rate <= TOUCH:
        return step, d
    return step, row


@kernel
def dantzig(A, b, lo, hi, state, f, a, ray, limit):
    """Solves in place: f, a (n,) out; `state` (n,) int8 in (CLAMPED, HIGH: warm start) and out.

    A is symmetric with a unit (or zero) diagonal, b of size one. Returns (code, pivots); on
    RAY `ray` (n,) holds the direction in f.
    """
    n = b.shape[0]
    L = np.empty((n, n))
    clamped = np.empty(n, np.int64)
    y = np.empty(n)
    half = np.empty(n)
    da = np.empty(n)
    k = _begin(A, b, lo, hi, state, L, clamped, f, a, y)
    pivots = 0
    polished = False
    while True:
        d = _worst_row(lo, hi, state, f, a)
        if d < 0:
            if polished:
                return Code.SOLVED, pivots
            # What many small steps have added up is rounded off once; a row that this
            # uncovers is driven like any other.
            polished = True
            _refresh(A, b, f, a)
            _zero_clamped(A, b, L, clamped, k, f, a, y)
            continue
        sign = 1.0 if a[d] < 0.0 else -1.0
        state[d] = OPEN
        while True:
            if pivots >= limit:
                return Code.PIVOT_LIMIT, pivots
            pivots += 1
            _column(A, clamped, k, d, half)
            linear.forward(L, k, half)
            rate = A[d, d]
            for s in range(k):
                rate -= half[s] * half[s]
            if rate < -1e-9 * A[d, d]:
                return Code.UNSUITABLE, pivots
            for s in range(k):
                y[s] = -sign * half[s]
            linear.backward(L, k, y)
            row = A[d]
            for i in range(n):
                da[i] = sign * row[i]
            for s in range(k):
                row = A[clamped[s]]
                for i in range(n):
                    da[i] += y[s] * row[i]
            step, row_index = _longest_step(lo, hi, state, clamped, k, d, sign, rate, y, f, a, da)
            if row_index < 0:
                ray[:] = 0.0
                ray[d] = sign
                for s in range(k):
                    ray[clamped[s]] = y[s]
                return Code.RAY, pivots
            f[d] += sign * step
            for s in range(k):
                f[clamped[s]] += step * y[s]
            for i in range(n):
                a[i] += step * da[i]
            if row_index == d:
                if sign > 0.0 and f[d] >= hi[d]:
                    f[d] = hi[d]
                    state[d] = HIGH
                elif sign < 0.0 and f[d] <= lo[d]:
                    f[d] = lo[d]
                    state[d] = LOW
                else:
                    linear.append(L, k, half, rate)
                    clamped[k] = d
                    a[d] = 0.0
                    state[d] = CLAMPED
                    k += 1
                break
            i = row_index
            if state[i] == CLAMPED:
                slot = 0
                while clamped[slot] != i:
                    slot += 1
                if y[slot] < 0.0:
                    f[i] = lo[i]
                    state[i] = LOW
                else:
                    f[i] = hi[i]
                    state[i] = HIGH
                k = _unclamp(L, clamped, k, slot)
            else:
                before = k
                k = _try_clamp(A, L, clamped, k, i, y)
                a[i] = 0.0
                # A dependent row cannot be clamped: it is left out until the next round.
                state[i] = CLAMPED if k > before else OPEN
