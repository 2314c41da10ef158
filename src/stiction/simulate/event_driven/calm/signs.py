"""Signs that a step is calm: nothing approaches, slides, closes or errs by too much."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout
from stiction.bridge.layout import offset
from stiction.bridge.margins import AHEAD, REST_MARGIN
from stiction.kernels.compile import kernel, leaf
from stiction.simulate.event_driven.calm.work import Number, Work
from stiction.simulate.event_driven.distances import Snapshot
from stiction.simulate.event_driven.events import PART
from stiction.simulate.event_driven.impact_time import SPREAD
from stiction.simulate.event_driven.stages import Course
from stiction.tolerances import RESIDUAL

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# Kernels, typed by Numba and not here.
pointer: Any = layout.pointer
numbers: Any = layout.numbers

_NGEOM, _RBOUND = offset("mjModel", "ngeom"), offset("mjModel", "geom_rbound")


@leaf
def _slack(normal: Array, i: int, qvel: Array, rest: float) -> float:
    """Speed along a row that counts as rest."""
    size = 0.0
    for k in range(qvel.shape[0]):
        size += abs(normal[i, k] * qvel[k])
    return rest + RESIDUAL * size


@kernel
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
    for i in range(f_n.shape[0]):
        if f_n[i] > 0.0 and loads.friction[i] > 0.0:
            pull0 = (loads.tangent[i, 0] * acceleration).sum() + loads.tangent_rate[i, 0]
            pull1 = (loads.tangent[i, 1] * acceleration).sum() + loads.tangent_rate[i, 1]
            if np.hypot(pull0, pull1) * dt > rest:
                return False
    return True


@kernel
def is_safe(m: int, seen: Snapshot, bound: Array, held: Indices, later: Array, dt: float) -> bool:
    """Whether no gap can close within the step; see `impact_time._safe_time`. bound (nc,): at the
    start; later (ngeom,): margins at its end."""
    gap, pair, index, reach = seen.gap, seen.pair, seen.number, seen.reach
    radius = numbers(pointer(m + _RBOUND), pointer(m + _NGEOM))
    for g in range(reach.shape[0]):
        if reach[g] < (later[g] - REST_MARGIN * radius[g]) / AHEAD:
            return False
    free = np.ones(gap.shape[0], np.bool_)
    for i in held:
        free[i] = False
    for i in range(gap.shape[0]):
        if not free[i]:
            continue
        extra = abs(bound[i])
        if index[i] >= 0:
            extra = 0.0
            for side in range(2):
                g = pair[i, side]
                extra += abs(later[g] - reach[g]) / (AHEAD * dt)
        closing = max(bound[i], SPREAD * bound[i]) + extra
        if closing * dt > max(gap[i], 0.0):
            return False
    return True


@kernel
def is_accurate(place: Indices, press: Array, gap: Array, speed: Array, w: Work) -> bool:
    """Whether held contacts have not sunk in, nor those that press moved, by more than the
    tolerance; see `Motion.accurate_end`."""
    dt, tolerance = w.figures[Number.DT], w.figures[Number.TOLERANCE]
    for i in range(place.shape[0]):
        j = place[i]
        if j < 0:
            continue
        if min(gap[j], speed[j] * dt) < -tolerance:
            return False
        if press[i] > 0.0 and 0.1 * (abs(gap[j]) + abs(speed[j]) * dt) > tolerance:
            return False
    return True


@kernel
def nothing_closed(place: Indices, seen: Snapshot, speed: Array, qvel: Array, w: Work) -> bool:
    """Whether contacts that are not held have not met; see `events._closed`."""
    tolerance, rest = w.figures[Number.TOLERANCE], w.figures[Number.REST]
    normal, gap = seen.normal, seen.gap
    free = np.ones(gap.shape[0], np.bool_)
    for j in place:
        if j >= 0:
            free[j] = False
    for i in range(gap.shape[0]):
        if free[i]:
            if gap[i] < -tolerance:
                return False
            if gap[i] <= tolerance and speed[i] < -_slack(normal, i, qvel, rest):
                return False
    return True
