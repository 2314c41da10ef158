"""The problems of `columns.py` by Lemke's method: what Drumwright compares his algorithm with.

    w = A'A z + c,   0 <= z  _|_  w >= 0     (joints: z free, w = 0; boxes: z bounded)

A holds the rows in coordinates of unit mass as columns, c the free velocities along them. Here the
matrix of the order of all rows is formed, which `pivoting.py` never does.
"""

from __future__ import annotations

import numpy as np

from stiction import lcp
from stiction.contact.problem.arrays import Array, Arrays
from stiction.contact.solvers.drumwright.columns import Answer, arrays_columns
from stiction.contact.solvers.drumwright.pivoting import PIVOTED
from stiction.kernels.linear import undivide
from stiction.status import Code, Status


def solve_columns_by_lemke(cols: Array, free: Array, equal: int, limits: Array) -> Answer:
    """As `columns.solve_columns`; cols (r, m) and free (m,) are left as they are."""
    boxes = cols.shape[1] - len(limits)
    matrix = cols.T @ cols
    if equal or len(limits):
        low, high = np.zeros(len(free)), np.full(len(free), np.inf)
        low[:equal] = -np.inf
        low[boxes:], high[boxes:] = -limits, limits
        found = lcp.solve(matrix, free, "lemke", lo=low, hi=high)
    else:
        found = lcp.solve(matrix, free, "lemke")
    z = found.z if found.status is Status.SOLVED else np.full(len(free), np.nan)
    code = Code.SOLVED if found.status is Status.SOLVED else Code.ERROR
    return Answer(z[:equal], z[equal:boxes], z[boxes:], cols @ z, code, found.pivots, PIVOTED)


def solve_arrays_by_lemke(arrays: Arrays, dt: float) -> tuple[Array, Answer]:
    """As `columns.solve_arrays`, without contacts that stick."""
    slides = np.zeros(len(arrays.normal), np.int8)
    velocity, cols, free, limits, upper, last = arrays_columns(arrays, dt, slides)
    answer = solve_columns_by_lemke(cols, free, len(arrays.joint), limits)
    change = answer.change.copy()
    undivide(upper, last, change)
    return velocity + change, answer
