"""Free velocity and inverse inertias of bodies that a few soft rows hold, from those of the mass.

A soft row has the impulse -d (a v - t), so that it is part of what bodies weigh: M + a' d a. With
y = M^-1 a' / sqrt(1/d + a M^-1 a'), that mass has

    the inverse       M^-1 - y y'
    free velocity     v - y (a v - t) / sqrt(1/d + a M^-1 a')

and each further row the same, from what the rows before it have left. No matrix is factored: a
gripper's two fingers, coupled by one row, hold a part by dozens of contacts, and each of their
rows takes a product with y where it took half a solution.

How it fails: a row that is stiff beside what it moves, a connect far off a body's centre for one,
takes digits from those that come after it, and where it holds a body all but rigidly, what is left
of an inverse inertia is rounding. Both are seen, and the caller factors the mass
(`solvers/blocks/free_motion.py`).
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import Blocks, Datum, Head, drop_immobile, row_dot
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.skyline import solve_skyline

MOST_SOFT_ROWS = 16
"""Rows that are taken so: each costs a product with every row of every contact."""

STIFFEST_ROW = 1e3
"""Impulse per speed of a row, over that of what it moves, up to which it is taken: at 7e4, with
three such rows, the momentum balance was off by more than 1e-8. Of a gripper's equalities it is
some ten."""

LEAST_LEFT = 1e-6
"""Share of an inverse inertia that soft rows leave, below which too few of its digits are right."""


@lean_leaf
def _along(b: Blocks, i, r, x):
    """Speed along row r of block i at x (nv,)."""
    width = b.head[i, Head.WIDTH]
    return row_dot(b, b.head[i, Head.VALUE] + r * width, b.head[i, Head.COLUMN], width, x)


@lean
def _find_yields(b: Blocks, soft, factor, yields, v_free):
    """yields (soft, nv) := y of each soft row, and v_free (nv,) what it leaves of that; whether no
    row is too stiff."""
    nv = v_free.shape[0]
    for j in range(soft):
        y, drag = yields[j], b.data[j, Datum.DRAG]
        for k in range(nv):
            y[k] = 0.0
        if not drag > 0.0:
            continue
        c0, a0 = b.head[j, Head.COLUMN], b.head[j, Head.VALUE]
        for c in range(b.head[j, Head.WIDTH]):
            y[b.column[c0 + c]] = b.value[a0 + c]
        solve_skyline(factor, b.row, b.first, y)
        for before in range(j):
            share = _along(b, j, 0, yields[before])
            if share != 0.0:
                for k in range(nv):
                    y[k] -= share * yields[before, k]
        gives = _along(b, j, 0, y)
        if not drag * gives <= STIFFEST_ROW:
            return False
        root = np.sqrt(1.0 / drag + gives)
        off = (_along(b, j, 0, v_free) - b.data[j, Datum.BOUND]) / (root * root)
        for k in range(nv):
            v_free[k] -= y[k] * off
            y[k] /= root
    return True


@lean
def yield_to(b: Blocks, soft, count, factor, yields, weight, v_free):
    """Corrects v_free (nv,) and weight (count, ROWS), which are those of the mass alone, for the
    first `soft` of count blocks, which are soft rows; whether rounding allows it. factor: of the
    mass (`kernels/skyline.py`); yields: (soft, nv), overwritten."""
    if not _find_yields(b, soft, factor, yields, v_free):
        return False
    for i in range(soft, count):
        touched = False
        for r in range(b.head[i, Head.ROWS]):
            taken = 0.0
            for j in range(soft):
                share = _along(b, i, r, yields[j])
                taken += share * share
            if taken > 0.0:
                touched = True
                left = weight[i, r] - taken
                if not left > LEAST_LEFT * weight[i, r]:
                    return False
                weight[i, r] = left
        if touched:
            drop_immobile(b, i, weight)
    return True
