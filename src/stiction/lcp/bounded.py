"""Mixed and bounded problems as standard ones: lo <= z <= hi, free where both are infinite.

Free rows have w = 0 and are eliminated (Drumwright, eqs. 9 and 10): z_f = -M_ff^+ (q_f + M_fb
z_b). The pseudo-inverse serves redundant bilateral constraints; where the system is not
consistent, the residual of the answer shows it. A bound is moved to zero: z = lo + x, or z =
hi - x where only hi is finite. A second bound u = hi - lo brings one more pair (y, u - x),
y the multiplier that pushes back at hi:

    [w_x]   [ M  I ] [x]   [q]
    [w_y] = [-I  0 ] [y] + [u]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

REDUNDANT = 1e-12
"""Singular values of the equilibrated free block below this, relative to the largest, are
taken as redundant constraints."""


@dataclass(frozen=True)
class Standard:
    """A standard LCP (M, q) and the way back to the z of the bounded one."""

    M: Array
    q: Array
    base: Array
    sign: Array
    bounded: NDArray[np.intp]
    boxed: NDArray[np.intp]
    free: NDArray[np.intp]
    eliminate: Array
    constant: Array

    def recover(self, x: Array) -> Array:
        """The bounded problem's z (n,) for a solution x of the standard one."""
        z = self.base.copy()
        z[self.bounded] += self.sign * x[: len(self.bounded)]
        z[self.free] = self.constant - self.eliminate @ z[self.bounded]
        return z

    def start(self, active: NDArray[np.bool_], upper: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Active set of the standard problem for one of the bounded problem."""
        inner = active | (upper & np.isin(np.arange(len(active)), self.bounded[self.boxed]))
        return np.concatenate([inner[self.bounded], upper[self.bounded[self.boxed]]])


def to_standard(M: Array, q: Array, lo: Array, hi: Array) -> Standard:
    """The standard LCP that is equivalent to w = M z + q with lo <= z <= hi."""
    free = np.flatnonzero(np.isneginf(lo) & np.isposinf(hi))
    bounded = np.setdiff1d(np.arange(len(q)), free)
    base = np.where(np.isfinite(lo), lo, np.where(np.isfinite(hi), hi, 0.0))
    sign = np.where(np.isfinite(lo[bounded]), 1.0, -1.0)
    inner, offset = M[np.ix_(bounded, bounded)], q[bounded]
    eliminate, constant = np.zeros((len(free), len(bounded))), np.zeros(len(free))
    if len(free):
        inverse = _pseudo_inverse(M[np.ix_(free, free)])
        eliminate = inverse @ M[np.ix_(free, bounded)]
        constant = -(inverse @ q[free])
        inner = inner - M[np.ix_(bounded, free)] @ eliminate
        offset = offset + M[np.ix_(bounded, free)] @ constant
    offset = offset + inner @ base[bounded]
    inner = sign[:, None] * inner * sign
    boxed = np.flatnonzero(np.isfinite(lo[bounded]) & np.isfinite(hi[bounded]))
    if len(boxed):
        select = np.zeros((len(bounded), len(boxed)))
        select[boxed, np.arange(len(boxed))] = 1.0
        inner = np.block([[inner, select], [-select.T, np.zeros((len(boxed),) * 2)]])
        room = (hi - lo)[bounded[boxed]]
    else:
        room = np.zeros(0)
    return Standard(
        M=np.ascontiguousarray(inner),
        q=np.concatenate([sign * offset, room]),
        base=base,
        sign=sign,
        bounded=bounded,
        boxed=boxed,
        free=free,
        eliminate=eliminate,
        constant=constant,
    )


def _pseudo_inverse(A: Array) -> Array:
    """Pseudo-inverse of A, computed on an equilibrated copy so that units do not decide what
    counts as dependent."""
    rows = np.abs(A).max(axis=1)
    rows = 1.0 / np.sqrt(np.where(rows > 0.0, rows, 1.0))
    cols = np.abs(A).max(axis=0)
    cols = 1.0 / np.sqrt(np.where(cols > 0.0, cols, 1.0))
    return np.asarray(
        cols[:, None] * np.linalg.pinv(rows[:, None] * A * cols, rcond=REDUNDANT) * rows
    )
