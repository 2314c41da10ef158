"""Proofs that linear constraints contradict each other, by Farkas' lemma.

    A x >= b,   with equality in the rows `equal`;   x has no sign

No x obeys them exactly if some y, nonnegative but on `equal`, has A'y = 0 and b'y > 0: the rows
times y add up to 0 >= b'y. Such a y is found by a linear program, made exact to rounding, and
then checked on the data as they came; only the check counts.

In floating point A'y is not zero but rounding, and a large enough x could live on it. The check
therefore asks how large: an x that obeyed the rows would have to bring terms ESCAPE times those of
b. Each entry of A'y is compared with the sum of its own absolute terms, so units cancel.

`balance` finds the units in which a program or a pivoting method sees such rows: scales that
depend on the problem, not on the units it came in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ESCAPE = 1e12
"""How many times b's terms an x that escapes the proof would have to bring. Rounding leaves
10^16 / n; what is solvable with smaller x is never called infeasible."""

BALANCE_SWEEPS = 200
"""Sweeps of `balance` at most; a matrix without zeros takes two."""

NOTHING = 1e-9
"""Multipliers of the linear program's answer (largest: one) that are taken as zero."""


SINGULAR = 1e-12
"""Singular values, relative to the largest, below which rows are dependent: the proof lies in their
null space, and rounding must not fill it."""


def linear_program(cost: Array, **constraints: Any) -> Any:
    """`scipy.optimize.linprog` by HiGHS. SciPy's optimizers take a fifth of a second to import, and
    few programs get here."""
    from scipy.optimize import linprog

    return linprog(cost, **constraints, method="highs")


def balance(A: Array) -> tuple[Array, Array]:
    """Powers of two (rows, cols) that bring the logarithms of A's entries nearest to zero, in the
    least-squares sense (Curtis & Reid 1972).

    Unlike scales that make largest entries one these are unique, up to one factor for each part of
    A that shares no row or column with the rest: units of rows and columns do not change what
    comes out.
    """
    present = A != 0.0
    size = np.zeros(A.shape)
    np.log2(np.abs(A), out=size, where=present)
    in_row, in_col = np.maximum(present.sum(1), 1), np.maximum(present.sum(0), 1)
    of_rows, of_cols = size.sum(1), size.sum(0)
    rows, cols = np.zeros(A.shape[0]), np.zeros(A.shape[1])
    for _ in range(BALANCE_SWEEPS):
        rows = -(of_rows + present @ cols) / in_row
        before, cols = cols, -(of_cols + rows @ present) / in_col
        if np.abs(cols - before).max(initial=0.0) < 0.01:
            break
    return np.exp2(np.round(rows)), np.exp2(np.round(cols))


def contradicts(A: Array, b: Array, equal: Mask, y: Array) -> bool:
    """Whether y proves that no x has A x >= b, with equality on `equal`; see the module's head."""
    if not np.isfinite(y).all() or (y[~equal] < 0.0).any():
        return False
    gain, terms = float(b @ y), float(np.abs(b) @ np.abs(y))
    left, room = np.abs(A.T @ y), np.abs(A.T) @ np.abs(y)
    return gain > 0.0 and bool((left * (ESCAPE * terms) <= room * gain).all())


def prove(A: Array, b: Array, equal: Mask, guess: Array | None = None) -> Array | None:
    """A y that `contradicts`, or None: the `guess`, made exact, or by a linear program."""
    if guess is not None and contradicts(A, b, equal, guess):
        return guess
    rows, cols = balance(np.column_stack([A, b]))
    even, target = rows[:, None] * A * cols[:-1], rows * b * cols[-1]
    if guess is None:
        program = linear_program(
            -target,
            A_eq=even.T,
            b_eq=np.zeros(even.shape[1]),
            bounds=[(-1.0, 1.0) if e else (0.0, 1.0) for e in equal],
        )
        if program.x is None:
            return None
        guess = program.x * rows
    y = _exact(even, equal, guess / rows) * rows
    return y if contradicts(A, b, equal, y) else None


def _exact(A: Array, equal: Mask, y: Array) -> Array:
    """The y nearest to the given one that has A'y = 0 to rounding, on the rows where that one
    is not zero."""
    y = np.where(equal, y, np.maximum(y, 0.0))
    top = np.abs(y).max(initial=0.0)
    if not (np.isfinite(top) and top > 0.0):
        return np.zeros_like(y)
    y = y / top
    for _ in range(4):
        y[np.abs(y) <= NOTHING] = 0.0
        used = y != 0.0
        y[used] -= np.linalg.lstsq(A[used].T, A.T @ y, rcond=SINGULAR)[0]
        negative = ~equal & (y < 0.0)
        y[negative] = 0.0
    return y


def prove_complementarity(
    M: Array, q: Array, lo: Array, hi: Array, ray: Array | None = None
) -> Array | None:
    """y (n,) that proves that no z in [lo, hi] gives w = M z + q the signs that its infinite bounds
    ask for, or None. With a `ray` (n,), for a plain LCP, only that direction of z is tried as y."""
    signs = np.where(np.isposinf(hi), 1.0, -1.0)
    rows = np.isposinf(hi) | np.isneginf(lo)
    low, high = np.isfinite(lo), np.isfinite(hi)
    unit = np.eye(len(q))
    A = np.vstack([(signs[:, None] * M)[rows], unit[low], -unit[high]])
    b = np.concatenate([-(signs * q)[rows], lo[low], -hi[high]])
    equal = np.zeros(len(b), np.bool_)
    equal[: rows.sum()] = (np.isposinf(hi) & np.isneginf(lo))[rows]
    guess = None
    if ray is not None:
        multipliers = np.maximum(ray, 0.0)
        guess = np.concatenate([multipliers, np.maximum(-(M.T @ multipliers), 0.0)])
    found = prove(A, b, equal, guess)
    if found is None:
        return None
    y = np.zeros(len(q))
    y[rows] = signs[rows] * found[: rows.sum()]
    return y
