"""Scales of an LCP's equations and unknowns, so that no solver ever sees units.

z = cols * z', w = w' / rows and q = size q' / rows turn (M, q) into (rows M cols, q') with
entries near one; signs and complementarity stay. `rows` and `cols` equilibrate M (Ruiz: each
sweep divides by the square root of the largest entry, which halves the disparity's
exponent, so five sweeps bring 10^6 down to 1.5).

Where M falls into parts that do not meet, such scales are not unique, and q may be of any size
in them. The residual that decides whether a problem counts as solved therefore needs no scales:
it takes each row by its own terms.
"""

from __future__ import annotations

import numpy as np

from stiction.kernels.compile import kernel

SWEEPS = 8
"""Sweeps of equilibration at most: 10^12 of disparity ends within a factor of two."""

EVEN = 3.0
"""Largest entries of all rows and columns within this factor of one are even enough."""

FOUND = 1e-3
"""Share in a row's size of the terms that the answer itself brings. With all of them a large
enough z would make any row small: z = (t, t) leaves w = -1 of M = [[1, -1], [-1, 1]], q = -1.
With none of them rows of q = 0 could not round. At a tolerance of 1e-8, 1e-11 of such terms is
let pass: ten thousand times rounding, and z must be 10^11 times its due to hide a violation."""

DWARFED = 1e12
"""Terms that the answer brings, over the data of their row, beyond which they do not count where
all rows that they are in are dwarfed so: rounding of z = 10^16 would solve what contradicts itself.
A row whose data are rounding themselves shares its terms with others that are not."""


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
def _influence(M, sizes, j, change):
    """How much a change of z_j shows in the row that notices it most, by the rows' `sizes`.
    What no row notices (a column of zeros) counts for as much as can be."""
    top = 0.0
    noticed = False
    for i in range(M.shape[0]):
        entry = abs(M[i, j])
        if entry > 0.0:
            noticed = True
            if not sizes[i] > 0.0:
                return np.inf
            top = max(top, entry * change / sizes[i])
    return top if noticed else np.inf


@kernel
def _count_data(M, q, z, lo, hi, sizes):
    """Leaves in the sizes of rows that are `DWARFED`, with all that share their largest term, what
    is data."""
    n = q.shape[0]
    data, largest, dwarfed = np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for i in range(n):
        found, most = 0.0, 0.0
        data[i] = abs(q[i])
        for j in range(n):
            term = abs(M[i, j] * z[j])
            if z[j] == lo[j] or z[j] == hi[j]:
                data[i] += term
                continue
            found += term
            if term > most:
                most, largest[i] = term, j
        dwarfed[i] = data[i] > 0.0 and found > DWARFED * data[i]
    for i in range(n):
        if not dwarfed[i]:
            continue
        explained = False
        for k in range(n):
            explained |= M[k, largest[i]] != 0.0 and data[k] > 0.0 and not dwarfed[k]
        if not explained:
            sizes[i] = data[i]


@kernel
def natural_residual(M, q, z, w, lo, hi):
    """Fills w = M z + q and returns the largest violation of lo <= z <= hi, w >= 0 at lo,
    w <= 0 at hi, w = 0 between. Not a number anywhere gives infinity.

    Each row is measured by what it adds up: |q_i| and the |M_ij z_j| of z at finite bounds, which
    are data, and of the other |M_ij z_j| the share FOUND. Each z_j is measured by its part in those
    rows. So units of rows and of columns cancel, whatever they are, and no large row hides a
    small one's violation.
    """
    n = q.shape[0]
    weight = np.empty(n)
    used = np.empty(n, np.int64)
    count = 0
    for j in range(n):
        if z[j] != 0.0:
            given = z[j] == lo[j] or z[j] == hi[j]
            weight[count] = abs(z[j]) if given else FOUND * abs(z[j])
            used[count] = j
            count += 1
    sizes = np.empty(n)
    hidden = False
    for i in range(n):
        total = 0.0
        size = 0.0
        row = M[i]
        for k in range(count):
            entry = row[used[k]]
            total += entry * z[used[k]]
            size += abs(entry) * weight[k]
        w[i] = total + q[i]
        sizes[i] = size + abs(q[i])
        hidden |= q[i] != 0.0 and size > FOUND * DWARFED * abs(q[i])
        if not (np.isfinite(w[i]) and np.isfinite(sizes[i]) and np.isfinite(z[i])):
            return np.inf
    if hidden:
        _count_data(M, q, z, lo, hi, sizes)
    worst = 0.0
    for i in range(n):
        out = max(lo[i] - z[i], z[i] - hi[i])
        if out > 0.0:
            worst = max(worst, _influence(M, sizes, i, out))
        room = z[i] - lo[i] if w[i] > 0.0 else hi[i] - z[i]
        if w[i] == 0.0 or not room > 0.0:
            continue
        gap = abs(w[i]) / sizes[i] if sizes[i] > 0.0 else np.inf
        if gap > worst:
            worst = max(worst, min(gap, _influence(M, sizes, i, room)))
    return worst
