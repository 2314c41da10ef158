"""The second-order cone in three dimensions: x_0 >= |(x_1, x_2)|.

Products of the cone's algebra: (a . b) = (a'b, a_0 b_1 + b_0 a_1, a_0 b_2 + b_0 a_2). The scaling
of Nesterov and Todd for a pair (y, x) is W with W x = W^-1 y = lam:

    W = beta (2 s s' - J),   W^2 = beta^2 (2 w w' - J),   J = diag(1, -1, -1)

kept as (s_0, s_1, s_2, beta, w_0, w_1, w_2). All functions take row i of the state, whose columns
are those of `columns.py`.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.solvers.interior_point.columns import LAM, SCALING, X, Y
from stiction.kernels.compile import lean_leaf

TINY = 1e-300


@lean_leaf
def _length(x0, x1, x2):
    """sqrt(x_0^2 - x_1^2 - x_2^2), without cancellation."""
    t = np.sqrt(x1 * x1 + x2 * x2)
    return np.sqrt(max((x0 - t) * (x0 + t), TINY))


@lean_leaf
def scale(state, i):
    """The scaling of the pair (y, x), and lam."""
    x0, x1, x2 = state[i, X], state[i, X + 1], state[i, X + 2]
    y0, y1, y2 = state[i, Y], state[i, Y + 1], state[i, Y + 2]
    a, b = _length(y0, y1, y2), _length(x0, x1, x2)
    a0, a1, a2 = y0 / a, y1 / a, y2 / a
    b0, b1, b2 = x0 / b, x1 / b, x2 / b
    g = 2.0 * np.sqrt(0.5 * (1.0 + a0 * b0 + a1 * b1 + a2 * b2))
    w0, w1, w2 = (a0 + b0) / g, (a1 - b1) / g, (a2 - b2) / g
    beta = np.sqrt(a / b)
    n = np.sqrt(2.0 * (w0 + 1.0))
    s0, s1, s2 = (w0 + 1.0) / n, w1 / n, w2 / n
    state[i, SCALING], state[i, SCALING + 1], state[i, SCALING + 2] = s0, s1, s2
    state[i, SCALING + 3] = beta
    state[i, SCALING + 4], state[i, SCALING + 5], state[i, SCALING + 6] = w0, w1, w2
    along = 2.0 * (s0 * x0 + s1 * x1 + s2 * x2)
    state[i, LAM] = beta * (along * s0 - x0)
    state[i, LAM + 1] = beta * (along * s1 + x1)
    state[i, LAM + 2] = beta * (along * s2 + x2)


@lean_leaf
def apply(state, i, z0, z1, z2):
    """W z."""
    s0, s1, s2, beta = (
        state[i, SCALING],
        state[i, SCALING + 1],
        state[i, SCALING + 2],
        state[i, SCALING + 3],
    )
    along = 2.0 * (s0 * z0 + s1 * z1 + s2 * z2)
    return beta * (along * s0 - z0), beta * (along * s1 + z1), beta * (along * s2 + z2)


@lean_leaf
def unapply(state, i, z0, z1, z2):
    """W^-1 z."""
    s0, s1, s2, beta = (
        state[i, SCALING],
        -state[i, SCALING + 1],
        -state[i, SCALING + 2],
        1.0 / state[i, SCALING + 3],
    )
    along = 2.0 * (s0 * z0 + s1 * z1 + s2 * z2)
    return beta * (along * s0 - z0), beta * (along * s1 + z1), beta * (along * s2 + z2)


@lean_leaf
def unapply_twice(state, i, z0, z1, z2):
    """W^-2 z."""
    w0, w1, w2 = state[i, SCALING + 4], -state[i, SCALING + 5], -state[i, SCALING + 6]
    h = 1.0 / (state[i, SCALING + 3] * state[i, SCALING + 3])
    along = 2.0 * (w0 * z0 + w1 * z1 + w2 * z2)
    return h * (along * w0 - z0), h * (along * w1 + z1), h * (along * w2 + z2)


@lean_leaf
def divide(state, i, z0, z1, z2):
    """The x with lam . x = z."""
    l0, l1, l2 = state[i, LAM], state[i, LAM + 1], state[i, LAM + 2]
    t = np.sqrt(l1 * l1 + l2 * l2)
    x0 = (l0 * z0 - l1 * z1 - l2 * z2) / max((l0 - t) * (l0 + t), TINY)
    return x0, (z1 - x0 * l1) / l0, (z2 - x0 * l2) / l0


@lean_leaf
def shorten(state, i, at, along, step):
    """The shorter one of `step` and the largest a with x + a d in the cone, x from column `at` on
    and d from `along` on."""
    x0, x1, x2 = state[i, at], state[i, at + 1], state[i, at + 2]
    d0, d1, d2 = state[i, along], state[i, along + 1], state[i, along + 2]
    e0, e1, e2 = x0 + step * d0, x1 + step * d1, x2 + step * d2
    if e0 >= 0.0 and e0 * e0 >= e1 * e1 + e2 * e2:  # most are farther from it than the nearest one
        return step
    a = d0 * d0 - d1 * d1 - d2 * d2
    b = x0 * d0 - x1 * d1 - x2 * d2
    t = np.sqrt(x1 * x1 + x2 * x2)
    c = max((x0 - t) * (x0 + t), 0.0)
    inside = b * b - a * c
    if inside >= 0.0:
        root = np.sqrt(inside)
        q = -(b + root) if b >= 0.0 else -(b - root)
        if a != 0.0 and q / a > 0.0:
            step = min(step, q / a)
        if q != 0.0 and c / q > 0.0:
            step = min(step, c / q)
    if d0 < 0.0:
        step = min(step, -x0 / d0)
    return step
