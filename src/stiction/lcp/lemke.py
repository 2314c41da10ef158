"""Lemke's method, plain and lexicographic.

    w = M z + c z0 + q,   z, w, z0 >= 0,   z_i w_i = 0

The covering vector c > 0 and a large z0 make every w positive; z0 is then driven to zero
along a path on which each pair stays complementary but one. Each pivot keeps true: all basic
variables are nonnegative, the basis is complementary except for the pair of the last leaving
variable, and z0 is basic. The complement of what left enters next. The path ends when z0
leaves (a solution) or when nothing blocks (a ray).

References: Lloyd, section 4; Cottle, Pang & Stone, section 4.4 and 4.9 (lexicographic);
Yamane & Nakamura, section II and V-A (the threshold Delta).

How it can fail: RAY (for copositive-plus M this proves that there is no solution, otherwise
it proves nothing), CYCLE (a basis came back), PIVOT_LIMIT (2^n pivots on Murty's example),
ERROR (the residual did not pass).

Where this departs from the textbook:
- The default c is not all ones but spread over [1, 2] by an irrational rotation. Every
  positive c is a covering vector; a generic one has no ties along the path except where the
  data of the answer itself are degenerate. With all ones, symmetric contact problems tie
  at nearly every pivot.
- The plain method breaks ties by Harris's rule: among the rows that block within the
  feasibility tolerance, z0 if it is there, else the largest pivot.
- The lexicographic one compares rows of the inverse basis within `tie`; z0 wins any tie. If
  rows tie to the last column the largest pivot leaves (Yamane: the smallest ratio).
- A warm start pivots to the given basis first and covers what is infeasible there, which is
  Lemke's method on a principal transform of the problem.
"""

from __future__ import annotations

import numpy as np

from stiction.kernels.compile import kernel
from stiction.kernels.pivoting import (
    SLOPPY,
    enter_w,
    enter_z,
    grow,
    refactor,
    replace_col,
    replace_row,
    shrink,
    values,
    variable_hash,
)
from stiction.status import Code

FEASIBLE = 1e-11
"""How far below zero a basic variable may be, relative to the scaled q (largest entry 1).
Harris's rule spends it to choose among pivots; ten times less and ties become noise."""

PIVOT = 1e-10
"""Smallest pivot relative to its column. Smaller ones are rounding of dependent rows."""

REFRESH = 60
"""Pivots between rebuilds of the inverse, where its error has not asked for one before."""

GOLDEN = 0.6180339887498949


@kernel
def generic_cover(n, turn):
    """A covering vector (n,) in [1, 2], spread so that no two path steps tie; `turn` (an
    integer) gives other ones."""
    cover = np.empty(n)
    for i in range(n):
        cover[i] = 1.0 + ((i + 1) * GOLDEN * (1 + turn)) % 1.0
    return cover


@kernel
def cover_basis(b, weights):
    """Sets the covering vector so that in the current complementary basis each basic variable
    grows with z0 at its weight (n,), and lets z0 in for the one that is most negative.

    Returns the index of the pair that is left open, or -1 where the basis is feasible.
    """
    n = b.q.shape[0]
    cover = b.columns[n]
    cover[:] = weights
    for s in range(b.size[0]):
        cover[b.rows[s]] = 0.0
    for s in range(b.size[0]):
        j = b.cols[s]
        col = b.columns[j]
        for i in range(n):
            cover[i] -= weights[j] * col[i]
    worst = -FEASIBLE
    open_pair = -1
    for i in range(n):
        s = b.col_slot[i]
        value = (b.x[s] if s >= 0 else b.w[i]) / weights[i]
        if value < worst:
            worst = value
            open_pair = i
    return open_pair


@kernel
def advance(b, size):
    """Moves all basic variables by `size` of the direction."""
    x, dx, w, dw = b.x, b.dx, b.w, b.dw
    for s in range(b.size[0]):
        x[s] += size * dx[s]
    for i in range(w.shape[0]):
        w[i] += size * dw[i]


@kernel
def exchange(b, entering, leaving, size, out):
    """Pivots: `entering` and `leaving` number variables as z_j = j, z0 = n, w_i = n + 1 + i.

    The direction of `entering` must be current; basic values move along it by `size`.
    `out` (n+1,) is overwritten.
    """
    n = b.q.shape[0]
    advance(b, size)
    if entering <= n:
        if leaving <= n:
            s = b.col_slot[leaving]
            replace_col(b, entering, s)
        else:
            grow(b, entering, leaving - n - 1, out)
            b.w[leaving - n - 1] = 0.0
            s = b.col_slot[entering]
        b.x[s] = size
    else:
        i = entering - n - 1
        if leaving <= n:
            shrink(b, i, b.col_slot[leaving])
        else:
            replace_row(b, i, leaving - n - 1, out)
            b.w[leaving - n - 1] = 0.0
        b.w[i] = size


@kernel
def direction(b, variable):
    """Direction of an entering variable, numbered as in `exchange`; returns its error."""
    n = b.q.shape[0]
    if variable <= n:
        return enter_z(b, variable)
    return enter_w(b, variable - n - 1)


@kernel
def complement(variable, n):
    """The other variable of a pair, numbered as in `exchange`."""
    return variable + n + 1 if variable < n else variable - n - 1


@kernel
def column_size(b):
    """Size of the current direction: its largest dx, or one. As entries of M are at most about
    one, dw is of that size too, and need not be looked through."""
    dx = b.dx
    top = 1.0
    for s in range(b.size[0]):
        top = max(top, abs(dx[s]))
    return top


@kernel
def _first_block(x, dx, count, floor, slack):
    """Longest step that pushes none of x below -slack."""
    limit = np.inf
    for s in range(count):
        if dx[s] < -floor:
            limit = min(limit, (max(x[s], 0.0) + slack) / -dx[s])
    return limit


@kernel
def blocking_row(b, floor, slack):
    """(variable, step): what first reaches zero along the direction, or (-1, inf) on a ray.

    Harris's two passes: `slack` bounds how far below zero a variable may be pushed; among
    those within it z0 wins, then the largest pivot. Entries above -floor do not count.
    """
    x, dx, w, dw, cols = b.x, b.dx, b.w, b.dw, b.cols
    n = w.shape[0]
    k = b.size[0]
    limit = min(_first_block(x, dx, k, floor, slack), _first_block(w, dw, n, floor, slack))
    best = -1
    size = 0.0
    step = np.inf
    # Ratios are compared as ratios: rounding keeps their order, so that one is always found.
    for s in range(k):
        if dx[s] < -floor and max(x[s], 0.0) / -dx[s] <= limit:
            if cols[s] == n:
                return n, max(x[s], 0.0) / -dx[s]
            if -dx[s] > size:
                size = -dx[s]
                best = cols[s]
                step = max(x[s], 0.0) / size
    for i in range(n):
        if dw[i] < -floor and -dw[i] > size and max(w[i], 0.0) / -dw[i] <= limit:
            size = -dw[i]
            best = n + 1 + i
            step = max(w[i], 0.0) / size
    return best, step


@kernel
def _inverse_basis_row(b, variable, out):
    """Row of the inverse basis matrix, columns by equation, of a basic variable."""
    n = b.q.shape[0]
    out[:n] = 0.0
    k = b.size[0]
    if variable <= n:
        s = b.col_slot[variable]
        for t in range(k):
            out[b.rows[t]] = -b.inverse[s, t]
        return
    i = variable - n - 1
    out[i] = 1.0
    for s in range(k):
        entry = b.columns[b.cols[s], i]
        if entry != 0.0:
            for t in range(k):
                out[b.rows[t]] -= entry * b.inverse[s, t]


@kernel
def lexicographic_row(b, floor, tie):
    """(variable, step) by the lexicographic ratio test; rows within `tie` of the smallest
    ratio are compared by the columns of the inverse basis, one after the other."""
    n = b.q.shape[0]
    k = b.size[0]
    least = np.inf
    for s in range(k):
        if b.dx[s] < -floor:
            least = min(least, b.x[s] / -b.dx[s])
    for i in range(n):
        if b.dw[i] < -floor:
            least = min(least, b.w[i] / -b.dw[i])
    tied = np.empty(n + 1, np.int64)
    pivots = np.empty(n + 1)
    count = 0
    for s in range(k):
        if b.dx[s] < -floor and b.x[s] / -b.dx[s] <= least + tie:
            if b.cols[s] == n:
                return n, max(b.x[s], 0.0) / -b.dx[s]
            tied[count] = b.cols[s]
            pivots[count] = -b.dx[s]
            count += 1
    for i in range(n):
        if b.dw[i] < -floor and b.w[i] / -b.dw[i] <= least + tie:
            tied[count] = n + 1 + i
            pivots[count] = -b.dw[i]
            count += 1
    if count == 0:
        return -1, np.inf
    if count > 1:
        table = np.empty((count, n))
        for r in range(count):
            _inverse_basis_row(b, tied[r], table[r])
            table[r] /= pivots[r]
        alive = np.ones(count, np.bool_)
        left = count
        for j in range(n):
            least_entry = np.inf
            for r in range(count):
                if alive[r]:
                    least_entry = min(least_entry, table[r, j])
            for r in range(count):
                if alive[r] and table[r, j] > least_entry + tie:
                    alive[r] = False
                    left -= 1
            if left == 1:
                break
        best = -1
        for r in range(count):
            if alive[r] and (best < 0 or pivots[r] > pivots[best]):
                best = r
    else:
        best = 0
    return tied[best], max(least, 0.0)


@kernel
def follow_path(b, weights, lexicographic, tie, limit):
    """Lemke's path from the complementary basis b; returns (code, pivots, entering).

    b ends as a complementary basis on SOLVED, else where the path stopped; on RAY the
    direction of the entering variable is left in dx and dw. `weights` (n,) > 0 cover
    the basic variables.
    """
    n = b.q.shape[0]
    out = np.empty(n + 1)
    open_pair = cover_basis(b, weights)
    if open_pair < 0:
        return Code.SOLVED, 0, -1
    seen = np.empty(limit + 1, np.uint64)
    key = np.uint64(0)
    leaving = open_pair if b.col_slot[open_pair] >= 0 else n + 1 + open_pair
    entering = n
    direction(b, entering)
    s = b.col_slot[open_pair]
    step = -b.x[s] / b.dx[s] if s >= 0 else -b.w[open_pair] / b.dw[open_pair]
    pivots = 0
    fresh = 0
    while True:
        exchange(b, entering, leaving, step, out)
        pivots += 1
        fresh += 1
        if leaving == n:
            return Code.SOLVED, pivots, entering
        key ^= variable_hash(entering) ^ variable_hash(leaving)
        for p in range(pivots - 1):
            if seen[p] == key:
                return Code.CYCLE, pivots, entering
        if pivots > limit:
            return Code.PIVOT_LIMIT, pivots, entering
        seen[pivots - 1] = key
        if fresh >= REFRESH:
            fresh = 0
            if not refactor(b):
                return Code.SINGULAR, pivots, entering
            values(b)
        entering = complement(leaving, n)
        error = direction(b, entering)
        if error > SLOPPY and fresh > 0:
            fresh = 0
            if not refactor(b):
                return Code.SINGULAR, pivots, entering
            values(b)
            direction(b, entering)
        floor = PIVOT * column_size(b)
        if lexicographic:
            leaving, step = lexicographic_row(b, floor, tie)
        else:
            leaving, step = blocking_row(b, floor, FEASIBLE)
        if leaving < 0:
            return Code.RAY, pivots, entering
