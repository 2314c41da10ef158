"""Newton's method on the exact law, f = P(f - u), for `solve.py`, in two ways.

P projects normal impulses on f_n >= 0 and tangential ones on the disc of radius mu f_n, or of a
box row's limit (Alart and Curnier 1991); its pieces are the modes.

`polish`  Newton steps of least norm, because redundant contacts leave impulses undetermined. To
          rounding in two or three steps if the modes are right, at the cost of a least-squares
          problem in all pressing rows; it wanders if they are not.
`take_proximal_step`
          f := P(f - stiffness u(f)), by Newton's method with a line search in r
          unknowns. Safe if it is soft, exact if it is stiff; many in a row end in the solution
          also where modes are not clear: contacts that agree to 1e-7 only, as measured
          matrices have them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, lstsq

from stiction.contact.solvers.conic.path import ConicBlocks
from stiction.kernels.compile import kernel

Array = NDArray[np.float64]

POLISH, MODES_PATIENCE = 15, 5
"""Newton steps on the modes in all, and without half the residual."""

EXACT = 1e-13
"""Residual over the blocks' own scales at which Newton's method ends."""

REDUNDANT = 1e-12
"""Singular values below this part of the largest belong to redundant contacts."""

DENSE = 1500
"""Unknowns for which steps of least norm cost seconds; redundant contacts beyond it are left to
proximal steps, whose systems do not grow with them."""

PROXIMAL_NEWTON = 20
"""Newton steps in a proximal one."""

LEAST_SEARCH = 1e-3
"""Least part of a Newton step in its line search."""

ROUNDING = 1e-16
"""Of velocities of size one: a proximal step cannot be solved to less than stiffness times it."""


@kernel
def project(p: ConicBlocks, g: Array, out: Array, slope: Array) -> None:
    """Fills P(g) (m, 3) and its slope (m, 3, 3): the normal part on g_n >= 0, then the tangential
    one on the disc of radius mu times the former, or of the box row's limit."""
    for i in range(g.shape[0]):
        slope[i] = 0.0
        is_box = p.limit[i] >= 0.0
        normal = 0.0 if is_box else max(0.0, g[i, 0])
        radius = p.limit[i] if is_box else p.mu[i] * normal
        length = np.hypot(g[i, 1], g[i, 2])
        if normal > 0.0:
            slope[i, 0, 0] = 1.0
        out[i] = g[i]
        out[i, 0] = normal
        if length <= radius:
            slope[i, 1, 1] = slope[i, 2, 2] = 1.0
        else:
            d1, d2 = g[i, 1] / length, g[i, 2] / length
            out[i, 1], out[i, 2] = radius * d1, radius * d2
            shrink = radius / length
            slope[i, 1, 1] = shrink * d2 * d2
            slope[i, 2, 2] = shrink * d1 * d1
            slope[i, 1, 2] = slope[i, 2, 1] = -shrink * d1 * d2
            if normal > 0.0:
                slope[i, 1, 0] = p.mu[i] * d1
                slope[i, 2, 0] = p.mu[i] * d2


def _step_of_modes(p: ConicBlocks, residual: Array, slope: Array) -> Array | None:
    """Step of least norm (m, 3) to the zero of the linearization (I - S) df + S W df, or None."""
    # Where S is zero the block opens and df is known: only the others need a system.
    known = np.asarray(~slope.any(axis=(1, 2)))
    df = np.where(known[:, None], -residual, 0.0)
    rest = np.flatnonzero(~known)
    if not len(rest):
        return df
    r = p.rows.shape[2]
    if 3 * len(rest) > max(DENSE, 2 * r):
        return None
    push, s = p.push[rest].reshape(-1, r), slope[rest]
    pushed = np.einsum("ijk,ika->ija", s, p.rows[rest]).reshape(-1, r)
    matrix = pushed @ push.T
    for k in range(len(rest)):
        matrix[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] += np.eye(3) - s[k]
    moved = p.push[known].reshape(-1, r).T @ df[known].ravel()
    right = -residual[rest].ravel() - pushed @ moved
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return None
    solution = lstsq(matrix, right, cond=REDUNDANT, lapack_driver="gelsy", check_finite=False)
    df[rest] = solution[0].reshape(-1, 3)
    return df


def polish(p: ConicBlocks, f: Array, weight: Array) -> tuple[Array, int]:
    """The best of some Newton steps from impulses f (m, 3), and their number.

    weight: (m,) one over the velocity scale of each block.
    """
    m, _, r = p.rows.shape
    flat, push = p.rows.reshape(3 * m, r), p.push.reshape(3 * m, r)
    pressed, slope = np.empty((m, 3)), np.empty((m, 3, 3))
    best, found, since = np.inf, f, 0
    for count in range(POLISH + 1):
        u = (flat @ (push.T @ f.ravel())).reshape(m, 3) + p.free
        project(p, f - u, pressed, slope)
        residual = f - pressed
        off = float((np.abs(residual).max(axis=1) * weight).max(initial=0.0))
        if not off < np.inf:
            break
        since = 0 if off < 0.5 * best else since + 1
        if off < best:
            best, found = off, f
        if best < EXACT or since > MODES_PATIENCE or count == POLISH:
            break
        step = _step_of_modes(p, residual, slope)
        if step is None:
            break
        f = f + step
    return found, count


def take_proximal_step(p: ConicBlocks, f: Array, stiffness: float) -> tuple[Array | None, int]:
    """Impulses P(f - stiffness u(w)) with w = A' of them, or None; and the Newton steps taken.

    A proximal step: f is held by a spring, so that redundant contacts do not matter and the
    system has the size r. Its fixed points are the solutions; a line search makes it safe.
    """
    m, _, r = p.rows.shape
    flat, push = p.rows.reshape(3 * m, r), p.push.reshape(3 * m, r)
    pressed, slope = np.empty((m, 3)), np.empty((m, 3, 3))

    def off(w: Array) -> Array:
        u = (flat @ w).reshape(m, 3) + p.free
        project(p, f - stiffness * u, pressed, slope)
        return w - push.T @ pressed.ravel()

    w = push.T @ f.ravel()
    error = off(w)
    for count in range(PROXIMAL_NEWTON):
        size = float(np.linalg.norm(error))
        if size < ROUNDING * (1.0 + stiffness):
            return pressed, count
        pushed = np.einsum("ijk,ika->ija", slope, p.rows).reshape(3 * m, r)
        matrix = stiffness * (push.T @ pushed)
        matrix[np.diag_indices(r)] += 1.0
        try:
            step = np.linalg.solve(matrix, error)
        except LinAlgError:
            return None, count
        length = 1.0
        error = off(w - step)
        while not np.linalg.norm(error) < (1.0 - 1e-4 * length) * size:
            length *= 0.5
            if length < LEAST_SEARCH:
                return None, count
            error = off(w - length * step)
        w = w - length * step
    return None, PROXIMAL_NEWTON
