"""The motion between the two ends of a trajectory, interpolated: where events are looked for first.

A state of a Runge-Kutta trajectory takes three solves for contact forces, one on a curve through
its ends none. Positions are the cubic that has the velocities of both ends, in exponential
coordinates (`rotations.py`): with a step h it is off by h^4 / 384 of the fourth derivative at most.
Velocities are the parabola that has the acceleration of the start. What is found on a curve is
where to look on the trajectory, no more (`search.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import library
from stiction.kernels.compile import kernel
from stiction.simulate.event_driven.phases import State
from stiction.simulate.event_driven.rotations import unroll
from stiction.simulate.event_driven.stages import Start

Array = NDArray[np.float64]

# Kernels, typed by Numba and not here.
mj: Any = library


class Curve(NamedTuple):
    """From a start to a state after the time h."""

    start: Start
    h: float
    turn: Array  # (nv,) displacement after h
    rate: Array  # (nv,) its time derivative there
    qvel: Array  # (nv,)
    acceleration: Array  # (nv,) at the start


@kernel
def lay_curve(start: Start, h: float, turn: Array, qvel: Array, rotations: Any) -> Curve:
    """The curve to the displacement `turn` and the velocity `qvel` after h; rotations: `Limits`.
    Where damping is implicit that of the start may be over at once, and the mean is taken."""
    acceleration = start.acceleration
    if start.damping.shape[0] > 0:
        acceleration = (qvel - start.qvel) / h
    return Curve(start, h, turn, unroll(turn, qvel, rotations), qvel, acceleration)


@kernel
def curve_state(m: int, curve: Curve, t: float) -> State:
    """The state after the time t; its activations are those of the start."""
    start, h = curve.start, curve.h
    s = t / h
    qpos, qvel, turn = start.qpos.copy(), start.qvel.copy(), start.qvel.copy()
    for k in range(turn.shape[0]):
        turn[k] = t * (1.0 - s) ** 2 * start.qvel[k]
        turn[k] += s * s * ((3.0 - 2.0 * s) * curve.turn[k] - h * (1.0 - s) * curve.rate[k])
        straight = start.qvel[k] + h * curve.acceleration[k]
        qvel[k] += t * curve.acceleration[k] + s * s * (curve.qvel[k] - straight)
    mj.integrate_pos(m, qpos.ctypes.data, turn.ctypes.data, 1.0)
    return State(qpos, qvel, start.act.copy())
