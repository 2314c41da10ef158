"""Rotations in exponential coordinates, in which Runge-Kutta methods keep their order.

MuJoCo's angular velocities of balls and free bodies are in the body's own frame, and qpos after a
displacement u (nv,) is q exp(u). Along q exp(u(t)) the coordinates change by

    u' = w + u x w / 2 + u x (u x w) / 12 + O(u^4)

Adding up w of different stages, in different frames, without the cross products is of second order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel

Array = NDArray[np.float64]


@kernel
def unroll(turn: Array, rate: Array, first: NDArray[np.int64]) -> Array:
    """(nv,) time derivative of coordinates `turn` (nv,) for velocities `rate` (nv,); rotations are
    the three entries from each of `first` on."""
    out = rate.copy()
    for i in first:
        a, b, c = turn[i], turn[i + 1], turn[i + 2]
        x, y, z = rate[i], rate[i + 1], rate[i + 2]
        p, q, r = b * z - c * y, c * x - a * z, a * y - b * x
        out[i] += 0.5 * p + (b * r - c * q) / 12.0
        out[i + 1] += 0.5 * q + (c * p - a * r) / 12.0
        out[i + 2] += 0.5 * r + (a * q - b * p) / 12.0
    return out
