"""Lemke's method as the papers describe it, on a dense tableau: the baseline they compare with.

`stiction.lcp` scales its problems, covers them generically, breaks ties by the size of pivots and
refreshes its factors; none of it is in the textbook, and that is why it does not fail where the
papers' baselines do. This one has nothing of it (Yamane & Nakamura II-A and V-A):

- the covering vector is all ones;
- nothing is refreshed: rounding of all pivots stays in the tableau;
- any entry of the right sign is a pivot, be it rounding (their m'_i < 0);
- plain: the row of least ratio leaves, the first one of an exact tie;
- lexicographic: rows within Delta of the least ratio are a tie; columns of the inverse basis
  decide it with the same threshold; z0, where it is among them, leaves at once; rows in tie to
  the last leave by the least value.

Failures are counted as the paper counts them: `RAY` (its "no solution"), `CYCLE`, `ERROR` (the
norm of w - M z - q is above e_max, in the problem's own units). Whether w and z are negative is
no part of that count.

The tableau is [I | -M | -c | q]: columns 0 to n-1 hold the inverse basis, n to 2n-1 what belongs
to z, 2n to z0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.status import Status

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-12
"""Diagonal of a starting basis that is taken as zero: its row depends on others."""

E_MAX = 1e-3
"""Yamane's bound on the error of a solution, in the units of the problem [m/s, N]."""


def lemke(
    M: Array,  # noqa: N803
    q: Array,
    delta: float | None = None,
    e_max: float = E_MAX,
    limit: int | None = None,
) -> tuple[Array, Status, int]:
    """z (n,), status and pivots; `delta` None is the plain method, else the lexicographic one."""
    n = len(q)
    if not (q < 0.0).any():
        return np.zeros(n), Status.SOLVED, 0
    tableau = tableau_of(M, q)
    basis = np.arange(n)  # w_i is i, z_i is n + i, z0 is 2 n
    row, entering = int(np.argmin(q)), 2 * n
    seen: set[bytes] = set()
    limit = 50 * n if limit is None else limit
    for pivots in range(1, limit + 1):
        leaving = int(basis[row])
        exchange(tableau, row, entering)
        basis[row] = entering
        if leaving == 2 * n:
            return _answer(M, q, tableau, basis, e_max, pivots)
        key = np.sort(basis).tobytes()
        if key in seen:
            return np.zeros(n), Status.CYCLE, pivots
        seen.add(key)
        entering = leaving + n if leaving < n else leaving - n
        row = _blocking(tableau, basis, entering, delta)
        if row < 0:
            return np.zeros(n), Status.RAY, pivots
        if not np.isfinite(tableau[row, entering]):
            return np.zeros(n), Status.ERROR, pivots
    return np.zeros(n), Status.PIVOT_LIMIT, limit


def tableau_of(M: Array, q: Array) -> Array:  # noqa: N803
    """(n, 2 n + 2) at the start, all w basic."""
    n = len(q)
    return np.concatenate([np.eye(n), -M, -np.ones((n, 1)), q[:, None]], axis=1)


def exchange(tableau: Array, row: int, column: int) -> None:
    """One pivot, in place."""
    with np.errstate(all="ignore"):  # a vanishing pivot shows in the answer
        tableau[row] /= tableau[row, column]
        factor = tableau[:, column].copy()
        factor[row] = 0.0
        tableau -= np.outer(factor, tableau[row])


def _blocking(tableau: Array, basis: NDArray[np.intp], entering: int, delta: float | None) -> int:
    """The row that leaves, or -1 where nothing blocks."""
    column = tableau[:, entering]
    rows = np.flatnonzero(column > 0.0)
    if len(rows) == 0:
        return -1
    with np.errstate(all="ignore"):
        ratio = tableau[rows, -1] / column[rows]
        if delta is None:
            return int(rows[np.argmin(ratio)])
        n = len(basis)
        for test in range(n + 1):
            rows_left = ratio <= ratio.min() + delta
            rows = rows[rows_left]
            if len(rows) <= 1:
                break
            auxiliary = rows[basis[rows] == 2 * n]
            if len(auxiliary):
                return int(auxiliary[0])
            ratio = tableau[rows, test] / column[rows] if test < n else ratio[rows_left]
    if len(rows) == 1:
        return int(rows[0])
    return int(rows[np.argmin(ratio)]) if len(rows) else -1


def _answer(
    M: Array,  # noqa: N803
    q: Array,
    tableau: Array,
    basis: NDArray[np.intp],
    e_max: float,
    pivots: int,
) -> tuple[Array, Status, int]:
    n = len(q)
    value = np.zeros(2 * n + 1)
    value[basis] = tableau[:, -1]
    w, z = value[:n], value[n : 2 * n]
    error = float(np.linalg.norm(w - M @ z - q))
    return z, Status.SOLVED if error <= e_max else Status.ERROR, pivots
