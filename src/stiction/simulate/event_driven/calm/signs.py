"""Signs that a step may be calm: nothing that touches approaches, or slides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel, leaf, lean
from stiction.kernels.dense import row_dot
from stiction.simulate.event_driven.calm.work import Number, Work
from stiction.simulate.event_driven.events import PART
from stiction.simulate.event_driven.stages import Course
from stiction.tolerances import RESIDUAL

Array = NDArray[np.float64]


@leaf
def _slack(normal: Array, i: int, qvel: Array, rest: float) -> float:
    """Speed along a row that counts as rest."""
    size = 0.0
    for k in range(qvel.shape[0]):
        size += abs(normal[i, k] * qvel[k])
    return rest + RESIDUAL * size


@lean
def is_quiet(normal: Array, gap: Array, error: Array, speed: Array, qvel: Array, w: Work) -> bool:
    """Whether nothing that touches approaches, and no overlap or error is to be taken back."""
    tolerance, rest = w.figures[Number.TOLERANCE], w.figures[Number.REST]
    for i in range(gap.shape[0]):
        if gap[i] < -PART * tolerance:
            return False
        if gap[i] <= tolerance and speed[i] < -_slack(normal, i, qvel, rest):
            return False
    worst = 0.0
    for e in range(error.shape[0]):
        worst = max(worst, abs(error[e]))
    return worst <= PART * tolerance


@kernel
def sticks(
    course: Course, loads: Any, acceleration: Array, f_n: Array, dt: float, rest: float
) -> bool:
    """Whether nothing slides, or will."""
    if course.sliding.any() or (course.turning != 0.0).any() or (course.spinning != 0.0).any():
        return False
    across = loads.tangent.reshape(2 * f_n.shape[0], acceleration.shape[0])
    for i in range(f_n.shape[0]):
        if f_n[i] > 0.0 and loads.friction[i] > 0.0:
            pull0 = row_dot(across, 2 * i, acceleration) + loads.tangent_rate[i, 0]
            pull1 = row_dot(across, 2 * i + 1, acceleration) + loads.tangent_rate[i, 1]
            if np.hypot(pull0, pull1) * dt > rest:
                return False
    return True
