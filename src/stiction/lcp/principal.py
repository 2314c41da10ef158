"""Principal pivoting: one complementary pair is exchanged at a time.

    w = M z + q,   z, w >= 0,   z_i w_i = 0

Each pivot keeps true: the basis is complementary, z = 0 off the active set and w = 0 on it;
what may be wrong is only the sign of basic variables. A pair with a negative basic variable
is exchanged until there is none.

Rule: while the number of negative variables keeps falling, the most negative one goes, as in
Drumwright's Algorithm 1 (Principal Pivoting Method I); after that the one of least index,
which for a P-matrix cannot cycle (Murty 1974). A pair whose pivot vanishes is passed over.

How it can fail: SINGULAR (every negative pair has a vanishing pivot: M is no P-matrix),
CYCLE cannot occur for P-matrices and is caught by the limit otherwise: PIVOT_LIMIT.
"""

from __future__ import annotations

import numpy as np

from stiction.kernels.compile import kernel
from stiction.kernels.pivoting import enter_w, enter_z, grow, refactor, shrink, values
from stiction.lcp.lemke import FEASIBLE, PIVOT, REFRESH, column_size
from stiction.status import Code


@kernel
def _choose(b, passed, least_index):
    """(pair to exchange or -1, number of negative variables)."""
    n = b.q.shape[0]
    worst = -FEASIBLE
    pair = -1
    negative = 0
    for i in range(n):
        s = b.col_slot[i]
        value = b.x[s] if s >= 0 else b.w[i]
        if value < -FEASIBLE:
            negative += 1
            if not passed[i] and (pair < 0 if least_index else value < worst):
                worst = value
                pair = i
    return pair, negative


@kernel
def principal(b, limit):
    """Pivots from the complementary basis b until all is nonnegative; returns (code, pivots)."""
    n = b.q.shape[0]
    out = np.empty(n + 1)
    passed = np.zeros(n, np.bool_)
    fewest = n + 1
    patience = n
    pivots = 0
    while True:
        pair, negative = _choose(b, passed, patience <= 0)
        if negative == 0:
            return Code.SOLVED, pivots
        if pair < 0:
            return Code.SINGULAR, pivots
        if negative < fewest:
            fewest = negative
            patience = max(patience, n)
        else:
            patience -= 1
        if pivots >= limit:
            return Code.PIVOT_LIMIT, pivots
        s = b.col_slot[pair]
        if s >= 0:
            enter_w(b, pair)
            pivot = b.dx[s]
        else:
            enter_z(b, pair)
            pivot = b.dw[pair]
        if not abs(pivot) > PIVOT * max(1.0, column_size(b)):
            passed[pair] = True
            continue
        passed[:] = False
        if s >= 0:
            shrink(b, pair, s)
        else:
            grow(b, pair, pair, out)
        pivots += 1
        if pivots % REFRESH == 0 and not refactor(b):
            return Code.SINGULAR, pivots
        values(b)
