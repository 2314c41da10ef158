"""Damping that is too fast for explicit steps, and how it is taken implicitly.

Damped joints and servos of velocity whose bodies are light come to their speed within a part of the
step: M dv/dt = f(q, v) with rates of M^-1 B, B = -df/dv, many times 1 / dt. An explicit method
multiplies what is left of that in each step. So where the largest rate times the step is more than
Runge-Kutta's method bears, a phase keeps B, and its steps solve

    (M + h B) a = f + N' f_n + T' f_t + J' f_j + B' f_b,    v+ = v + h a,    q+ = q + h v+

which is Euler's method, linearly implicit, with the laws of contact as they are. Three results, by
one, two and three of these steps, are extrapolated to the third order (Deuflhard 1983); that is
so for any matrix B, and stable however large it is. Where damping is slower B is not kept, and all
is as it was: of order four.

Springs stay explicit: a servo of position whose damping is implicit is stable, like
MuJoCo's implicitfast, up to a frequency of 2 / h.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.layout import offset
from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.kernels.dense import row_dot

Array = NDArray[np.float64]

EXPLICIT = 2.0
"""Rate of damping, times the step, up to which it is explicit: Runge-Kutta's method is stable to
2.7, and less where a spring acts besides."""

POWERS = 20
"""Products at most by which the largest rate is estimated, from below."""

SETTLED = 0.03
"""Relative growth of that estimate by a product, below which it is taken."""

WEIGHTS = (0.5, -4.0, 4.5)
"""Of the results of one, two and three steps that are extrapolated (Aitken and Neville)."""

# Kernels, typed by Numba and not here.
mj: Any = library
integers: Any = layout.integers
numbers: Any = layout.numbers
pointer: Any = layout.pointer

_D_NNZ, _D_ADR, _D_COL = (offset("mjModel", f"D_{k}") for k in ("rownnz", "rowadr", "colind"))
_DERIV = offset("mjData", "qDeriv")


@kernel
def _read_damping(m: int, d: int, nv: int) -> Array:
    """(nv, nv) -df/dv of the smooth forces of the data at d, which is evaluated; symmetric part."""
    mj.smooth_derivatives(m, d, 0)
    count, start = integers(pointer(m + _D_NNZ), nv), integers(pointer(m + _D_ADR), nv)
    total = start[nv - 1] + count[nv - 1]
    column, value = integers(pointer(m + _D_COL), total), numbers(pointer(d + _DERIV), total)
    damping = np.zeros((nv, nv))
    for j in range(nv):
        for k in range(start[j], start[j] + count[j]):
            damping[j, column[k]] -= 0.5 * value[k]
            damping[column[k], j] -= 0.5 * value[k]
    return damping


@kernel
def _is_faster(mass: Array, damping: Array, rate: float) -> bool:
    """Whether the largest eigenvalue of M^-1 B exceeds a rate [1/s], by powers of it: their
    quotients grow toward it."""
    nv = mass.shape[0]
    upper, last = np.empty((nv, nv)), np.empty(nv, np.int64)
    if linear.factorize(mass, upper, last, 0.0) >= 0:
        return False
    v, momentum, image, found = np.zeros(nv), np.zeros(nv), np.zeros(nv), 0.0
    for k in range(nv):  # the fastest joints by themselves, of which the fastest mode is made
        momentum[k] = max(damping[k, k], 0.0)
        v[k] = momentum[k]
    for _ in range(POWERS):
        linear.solve(upper, last, v)
        worked, moved = 0.0, 0.0
        for k in range(nv):
            image[k] = row_dot(damping, k, v)
            worked += v[k] * image[k]
            moved += v[k] * momentum[k]
        if not moved > 0.0 or not worked > (1.0 + SETTLED) * found * moved:
            return False
        found = worked / moved
        if found > rate:
            return True
        size = np.abs(image).max()
        for k in range(nv):
            momentum[k] = image[k] / size
            v[k] = momentum[k]
    return False


@kernel
def stiff_damping(m: int, d: int, mass: Array, dt: float) -> Array:
    """(nv, nv) B of the data at d, which is evaluated, if it is too fast for explicit steps of
    length dt, else (0, 0)."""
    nv, none = mass.shape[0], np.zeros((0, 0))
    if nv == 0:
        return none
    damping = _read_damping(m, d, nv)
    if not _is_faster(mass, damping, EXPLICIT / dt):
        return none
    upper, last = np.empty((nv, nv)), np.empty(nv, np.int64)
    if linear.factorize(mass + dt * damping, upper, last, 0.0) >= 0:  # it drives more than it damps
        return none
    return damping
