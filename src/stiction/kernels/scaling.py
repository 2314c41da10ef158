"""Scales of an LCP's equations and unknowns, so that no solver ever sees units.

z = cols * z', w = w' / rows and q = size q' / rows turn (M, q) into (rows M cols, q') with
entries near one; signs and complementarity stay. `rows` and `cols` equilibrate M (Ruiz: each
sweep divides by the square root of the largest entry, which halves the disparity's
exponent, so five sweeps bring 10^6 down to 1.5). The same scales define the residual that
decides whether a problem counts as solved.
"""

from __future__ import annotations

import numpy as np

from stiction.kernels.compile import kernel

SWEEPS = 8
"""Sweeps of equilibration at most: 10^12 of disparity ends within a factor of two."""

EVEN = 3.0
"""Largest entries of all rows and columns within this factor of one are even enough."""


@kernel
def equilibrate(M):
    """Scales (rows, cols) (n,), (n,), positive, that bring M's entries near one."""
    n = M.shape[0]
    rows = np.ones(n)
    cols = np.ones(n)
    tall = np.empty(n)
    wide = np.empty(n)
    scaled = np.empty(n)
    # Sizes are not negative, so they compare as their bit patterns do: the largest of integers
    # is found in vector registers, that of floats is not.
    bits = scaled.view(np.int64)
    top = np.zeros(1)
    top_bits = top.view(np.int64)
    for _ in range(SWEEPS):
        wide[:] = 0.0
        for i in range(n):
            scale = rows[i]
            row = M[i]
            for j in range(n):
                size = abs(row[j]) * (scale * cols[j])
                scaled[j] = size
                wide[j] = max(wide[j], size)
            best = np.int64(0)
            for j in range(n):
                best = max(best, bits[j])
            top_bits[0] = best
            tall[i] = top[0]
        uneven = 1.0
        for i in range(n):
            if tall[i] > 0.0:
                uneven = max(uneven, max(tall[i], 1.0 / tall[i]))
            if wide[i] > 0.0:
                uneven = max(uneven, max(wide[i], 1.0 / wide[i]))
        if uneven < EVEN:
            break
        for i in range(n):
            if tall[i] > 0.0:
                rows[i] /= np.sqrt(tall[i])
            if wide[i] > 0.0:
                cols[i] /= np.sqrt(wide[i])
    return rows, cols


@kernel
def natural_residual(M, q, z, w, lo, hi, rows, cols):
    """Fills w = M z + q and returns the largest violation of lo <= z <= hi, w >= 0 at lo,
    w <= 0 at hi, w = 0 between; z is measured by `cols`, w by `rows`, both relative to the
    larger of q and the bounds in those units. Not a number anywhere gives infinity.
    """
    n = q.shape[0]
    top = 0.0
    for i in range(n):
        top = max(top, abs(q[i]) * rows[i])
        if np.isfinite(lo[i]):
            top = max(top, abs(lo[i]) / cols[i])
        if np.isfinite(hi[i]):
            top = max(top, abs(hi[i]) / cols[i])
    worst = 0.0
    used = np.empty(n, np.int64)
    count = 0
    for j in range(n):
        if z[j] != 0.0:
            used[count] = j
            count += 1
    for i in range(n):
        total = 0.0
        row = M[i]
        for k in range(count):
            total += row[used[k]] * z[used[k]]
        total += q[i]
        w[i] = total
        below = (lo[i] - z[i]) / cols[i]
        above = (z[i] - hi[i]) / cols[i]
        slack = total * rows[i]
        # The natural map z - clip(z - w, lo, hi), entry by entry, in scaled units.
        gap = max(below, min(slack, -below)) if slack > 0.0 else max(above, min(-slack, -above))
        gap = max(gap, max(below, above))
        if not (np.isfinite(total) and np.isfinite(z[i])):
            return np.inf
        worst = max(worst, gap)
    if worst == 0.0:
        return 0.0
    if top == 0.0:
        return np.inf
    return worst / top
