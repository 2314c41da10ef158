"""LEMKE of Fackler and Miranda, by its rules: the program that Drumwright's grasp was solved with.

How it departs from the textbook: z0 covers the negative rows alone; a row may leave if the others
stay above -ZERO (a Harris test, in the problem's own units), z0 before all others; of these the
first one leaves, or, where m of them have the largest pivot in common, one of the first m by
chance; each direction is solved for anew, while the basic values are carried on from pivot to
pivot. An answer is checked and the matrix regularized as the published experiment does it: while
a component of z or w is below -ACCEPTED the problem is solved with M + eps I, eps from 1e-16 on,
doubled up to 1e-6; then the last answer is taken as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.status import Status

Array = NDArray[np.float64]

ZERO, PIVOT, MOST_PIVOTS = 1e-5, 1e-8, 1000
ACCEPTED, LEAST_SHIFT, MOST_SHIFT = 1e-4, 1e-16, 1e-6


class Lemke:
    """Solves LCPs one after another; `seed` is of the draws among ties."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, M: Array, q: Array) -> tuple[Array, Status, int]:  # noqa: N803
        """z (n,), status and pivots of all tries; ERROR where the last answer is not accepted."""
        z, pivots = self.pivot(M, q)
        shift = LEAST_SHIFT
        while not _accepted(M, q, z) and shift < MOST_SHIFT:
            z, more = self.pivot(M + shift * np.eye(len(q)), q)
            pivots += more
            shift *= 2.0
        return z, Status.SOLVED if _accepted(M, q, z) else Status.ERROR, pivots

    def pivot(self, M: Array, q: Array) -> tuple[Array, int]:  # noqa: N803
        """z (n,) as the pivots leave it, complementary or not, and how many they were."""
        n = len(q)
        if (q >= 0.0).all():
            return np.zeros(n), 0
        basis = np.arange(n, 2 * n)  # z_i is i, w_i is n + i, z0 is 2 n
        columns, value = -np.eye(n), q.copy()
        negative = (q < 0.0).astype(float)
        row = int(np.argmin(q))
        entering, column = 2 * n, -columns @ negative
        value += -q[row] * negative
        value[row] = -q[row]
        pivots = 0
        while pivots < MOST_PIVOTS:
            leaving = int(basis[row])
            basis[row], columns[:, row] = entering, column
            pivots += 1
            if leaving == 2 * n:
                break
            entering = leaving + n if leaving < n else leaving - n
            column = M[:, entering].copy() if entering < n else np.zeros(n)
            if entering >= n:
                column[entering - n] = -1.0
            try:
                direction = np.linalg.solve(columns, column).astype(np.float64, copy=False)
            except np.linalg.LinAlgError:
                break
            row = self._leaving(direction, value, basis)
            if row < 0:
                break
            step = value[row] / direction[row]
            value -= step * direction
            value[row] = step
        out = np.zeros(2 * n + 1)
        out[basis] = value
        return out[:n], pivots

    def _leaving(self, direction: Array, value: Array, basis: NDArray[np.intp]) -> int:
        """The row that leaves, or -1 on a ray."""
        rows = np.flatnonzero(direction > PIVOT)
        if not len(rows):
            return -1
        ratio = value[rows] / direction[rows]
        rows = rows[ratio <= ((value[rows] + ZERO) / direction[rows]).min()]
        if not len(rows):  # values are no numbers any more
            return -1
        auxiliary = rows[basis[rows] == 2 * len(basis)]
        if len(auxiliary):
            return int(auxiliary[0])
        largest = int((direction[rows] == direction[rows].max()).sum())
        return int(rows[self._random.integers(largest)])


def _accepted(M: Array, q: Array, z: Array) -> bool:  # noqa: N803
    return bool(np.isfinite(z).all() and min(z.min(), (M @ z + q).min()) > -ACCEPTED)
