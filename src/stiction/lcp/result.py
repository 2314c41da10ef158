"""What a solve returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stiction.status import Status


@dataclass(frozen=True, slots=True)
class Rung:
    """One attempt of a solve: which method, how it ended, its pivots, its scaled residual."""

    method: str
    status: Status
    pivots: int
    residual: float


@dataclass(frozen=True, slots=True)
class Result:
    """An LCP's answer, graded by the residual recomputed from M and q.

    z, w: (n,), with w = M z + q; where status is not SOLVED, the best that the last rung had.
    active: (n,) bool, where z may differ from its bound, w = 0; takes part in warm starts.
    residual: largest violation of the bounds and of w's signs there, each row relative to its own
        terms (`kernels.scaling.natural_residual`): units of rows and columns do not matter.
    ray: (n+1,) direction in (z, z0) along which Lemke's path is unbounded, if status is RAY
        or INFEASIBLE (the last entry is 0 for `dantzig`).
    dead_ends: counts of the pivot search's (no solution, cycle, error).
    proof: (n,) if status is INFEASIBLE: y with y'(M z + q) < 0 for every z within the bounds,
        although each y_i w_i would have to be at least zero (Farkas). For a plain LCP: y >= 0,
        M'y <= 0, q'y < 0.
    seconds: wall time of the whole call.
    """

    z: NDArray[np.float64]
    w: NDArray[np.float64]
    status: Status
    active: NDArray[np.bool_]
    pivots: int
    residual: float
    rungs: tuple[Rung, ...]
    seconds: float
    ray: NDArray[np.float64] | None = None
    dead_ends: tuple[int, int, int] | None = None
    proof: NDArray[np.float64] | None = None

    @property
    def method(self) -> str:
        """The method of the last rung: the one that answered, if the status is SOLVED."""
        return self.rungs[-1].method
