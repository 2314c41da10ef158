"""The linear system that the implicit function theorem leaves: velocities, impulses of held rows.

    A dv - G' df = r        A: the mass, and what follows the velocity (curves)
    E dv         = e        E: the held rows; G: E, and what follows their impulses (slopes)

Rows may depend on each other: a box on the ground has twelve for six degrees of freedom. With
A = L L', rows divided by L and by their length, and E = U D V' with what exceeds
`DEPENDENT_DIRECTION` in D,

    V' L'dv = D^-1 U' e                  what is held, by least squares
    L'dv    = L^-1 r + (G L^-T)' df      df: the least impulses that do it

Where the velocity is unique dv does not depend on which impulses are taken (`is_determined`).

Held rows may give way, E dv + C df = e: then E L^-T stands for V', and (E A^-1 G' + C)^+ gives df.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array

DEPENDENT_DIRECTION = 1e-7
"""Singular value of unit rows, over the largest, below which a direction is not held: contacts that
are one and the same differ by what collision detection rounds."""

DEPENDENT_RESPONSE = 1e-13
"""The same of a matrix of rows that give way: what rounding leaves."""


class ModeSystem:
    """The factored system; see the module's head."""

    def __init__(
        self, inertia: Array, held: Array, along: Array, soft: Array | None = None
    ) -> None:
        """inertia A (nv, nv); held E and along G (m, nv), the same array where they are one; soft
        (m,): the diagonal of C, or none."""
        from scipy.linalg.lapack import dtrtri  # takes a while to load, and few ask for it

        # L^-1 itself: SciPy's wrapper of a triangular solve costs more than the products.
        lower = np.linalg.cholesky(inertia)
        self._inverse = dtrtri(lower, lower=1)[0] if len(lower) else lower
        rows = self._divide(held.T).T
        self._length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        self._length[self._length == 0.0] = 1.0
        self._along = self._divide(along.T).T / self._length[:, None]
        self._gives_way = soft is not None and bool(soft.any())
        if soft is not None and self._gives_way:
            self._basis, self._target = rows / self._length[:, None], np.eye(len(rows))
            gives = self._basis @ self._along.T + np.diag(soft / self._length**2)
            # Of its own size each row: one that gives way easily would drown the others.
            size = np.maximum(np.abs(gives).max(axis=1, initial=0.0), np.finfo(float).tiny)
            self._impulse = np.linalg.pinv(gives / size[:, None], rcond=DEPENDENT_RESPONSE) / size
            return
        left, value, right = np.linalg.svd(rows / self._length[:, None], full_matrices=False)
        kept = value > DEPENDENT_DIRECTION * value.max(initial=0.0)
        self._basis = right[kept]  # V' (k, nv)
        self._target = left[:, kept].T / value[kept, None]  # D^-1 U' (k, m)
        self._impulse = self._target.T  # that of D U', where impulses push along what they hold
        if along is not held:
            self._impulse = np.linalg.pinv(self._basis @ self._along.T, rcond=DEPENDENT_DIRECTION)

    def _divide(self, columns: Array) -> Array:
        """L^-1 columns."""
        product: Array = self._inverse @ columns
        return product

    def solve(self, push: Array, speed: Array) -> tuple[Array, Array]:
        """(dv (nv, k), df (m, k)) for r = push (nv, k) and e = speed (m, k)."""
        free = self._divide(push)
        wanted = self._target @ (speed / self._length[:, None]) - self._basis @ free
        scaled = self._impulse @ wanted
        change = free + self._along.T @ scaled
        return self._inverse.T @ change, scaled / self._length[:, None]

    def solve_transposed(self, velocity: Array, impulse: Array) -> tuple[Array, Array]:
        """(push (nv, k), speed (m, k)): what `solve`'s transpose makes of (nv, k) and (m, k)."""
        free = self._divide(velocity)
        scaled = impulse / self._length[:, None] + self._along @ free
        wanted = self._impulse.T @ scaled
        free = free - self._basis.T @ wanted
        return self._inverse.T @ free, (self._target.T @ wanted) / self._length[:, None]

    @property
    def is_determined(self) -> bool:
        """Whether impulses that leave all held rows as they are leave the velocity, too: not so
        where friction follows from loads that nothing determines, as those of four points of a
        plate that slides and turns."""
        if self._gives_way:
            return True
        rest = self._along - (self._along @ self._basis.T) @ (self._impulse.T @ self._along)
        size = np.abs(self._along).max(initial=0.0)
        return bool(np.abs(rest).max(initial=0.0) <= DEPENDENT_DIRECTION * size)

    def spans(self, rows: Array) -> NDArray[np.bool_]:
        """(n,) which of the rows (n, nv) depend on held ones."""
        divided = self._divide(rows.T).T
        rest = divided - (divided @ self._basis.T) @ self._basis
        size, left = (np.sqrt(np.einsum("ij,ij->i", x, x)) for x in (divided, rest))
        found: NDArray[np.bool_] = left <= DEPENDENT_DIRECTION * size
        return found
