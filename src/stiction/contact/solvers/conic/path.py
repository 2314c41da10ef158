"""The path of `solve.py`: x, y in the cone with x o y = tau e, as tau falls to nothing.

With the scaling point G of Nesterov and Todd, G^2 x = y, and D = (G^2 + delta)^-1, one step is

    (I + A' D P) dw = A' (x + D (tau x^-1 - y(w))) - w         P = dy / dw
    dx = D (tau x^-1 - y(w) - P dw)                            y + dy = y(w) + P dw + delta dx

for y(w) = z + |z_t| e_0 + delta x and z = A w + b: one system of size r, whatever the number of
contacts, and nothing that redundant ones make singular. A step goes as far as x and y stay
inside the cone, which is what it keeps true. It ends where the system is singular, where steps
shrink to nothing (the path turns), or in rounding, near tau = 1e-12.

No corrector step: with it the path is lost more often where it is not that of a convex program.

`ConicBlocks` are the rows that the path and `modes.py` share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgetrf, dgetrs

from stiction.contact.problem.cones import Cones
from stiction.kernels.compile import kernel

Array = NDArray[np.float64]

STALLED, STUCK = 1e-2, 6
"""A step shorter than STALLED gets nowhere; after STUCK of them in a row the path is given up."""

PATH_END = 1e-8
"""tau below which one short step ends the path: it is rounding, and further ones gather it."""


class Try(NamedTuple):
    """How to follow the path."""

    start: float  # x = y = start e at first, in units of the load
    centering: float  # least sigma: how far tau falls in a step
    reach: float  # part of the way to the cone's edge that a step may go
    compliance: float  # delta
    steepest: float  # mu beyond this counts as this; Newton's method then takes the true one


class ConicBlocks(NamedTuple):
    """The scaled problem block by block: m blocks, r coordinates.

    w = sum over all rows of push f, u = rows w + free. Impulses f are in units in which friction
    is at most f_n: f_n is mu times the normal impulse where mu > 1, and `mu` is at most one.
    """

    rows: Array  # (m, 3, r) unit rows
    push: Array  # (m, 3, r) the same, the normal one divided by mu where mu > 1
    free: Array  # (m, 3)
    mu: Array  # (m,) zero for contacts without friction
    steep: Array  # (m,) mu where it is more than one, otherwise one
    limit: Array  # (m,) of a box row, otherwise -1
    unit: NDArray[np.int64]  # (m,) the unit of `Cones`, or -1


@kernel
def blocks_of(p: Cones) -> ConicBlocks:
    """The blocks of a scaled problem: its contacts, then its box rows."""
    n, r = p.normal.shape
    m = n + p.parent.shape[0] - p.first[n]
    rows, free = np.zeros((m, 3, r)), np.zeros((m, 3))
    mu, steep, limit = np.zeros(m), np.ones(m), np.full(m, -1.0)
    unit = np.full(m, -1)
    for i in range(n):
        rows[i, 0] = p.normal[i]
        free[i, 0] = p.free_normal[i]
        if p.first[i + 1] > p.first[i]:
            unit[i] = p.first[i]
            mu[i] = min(p.mu[unit[i]], 1.0)
            steep[i] = max(p.mu[unit[i]], 1.0)
    for i in range(n, m):
        unit[i] = p.first[n] + i - n
        limit[i] = p.limit[unit[i]]
    push = rows.copy()
    for i in range(m):
        push[i, 0] /= steep[i]
        if unit[i] >= 0:
            rows[i, 1:] = p.rows[unit[i]]
            push[i, 1:] = p.rows[unit[i]]
            free[i, 1:] = p.free[unit[i]]
    return ConicBlocks(rows, push, free, mu, steep, limit, unit)


@kernel
def _inside(x: Array) -> float:
    """x_0^2 - |x_t|^2, positive inside the cone; without cancelling near its edge."""
    t = np.hypot(x[1], x[2])
    return (x[0] - t) * (x[0] + t)


@kernel
def inverse_scaling(x: Array, y: Array, compliance: float, out: Array) -> bool:
    """Fills `out` (3, 3) with (G^2 + compliance)^-1 for the scaling point G, G^2 x = y, by its
    eigenvectors (1, d), (1, -d), d rotated; False if x or y is not inside the cone."""
    det_x, det_y = _inside(x), _inside(y)
    if not (x[0] > 0.0 and y[0] > 0.0 and det_x > 0.0 and det_y > 0.0):
        return False
    root_x, root_y = np.sqrt(det_x), np.sqrt(det_y)
    g0 = y[0] / root_y + x[0] / root_x
    g1 = y[1] / root_y - x[1] / root_x
    g2 = y[2] / root_y - x[2] / root_x
    length = np.hypot(g1, g2)
    d1, d2 = (g1 / length, g2 / length) if length > 0.0 else (1.0, 0.0)
    # g0 - length would cancel; g has the determinant 2 + 2 x.y over the roots.
    det = 2.0 + 2.0 * (x[0] * y[0] + x[1] * y[1] + x[2] * y[2]) / (root_x * root_y)
    spread = (g0 + length) ** 2 / det
    middle = root_y / root_x
    if not (det > 0.0 and 0.0 < middle < np.inf and spread < np.inf):
        return False
    far = 0.5 / (middle * spread + compliance)
    near = 0.5 / (middle / spread + compliance)
    across = 1.0 / (middle + compliance)
    out[0, 0] = far + near
    out[0, 1] = out[1, 0] = (far - near) * d1
    out[0, 2] = out[2, 0] = (far - near) * d2
    out[1, 1] = (far + near) * d1 * d1 + across * d2 * d2
    out[2, 2] = (far + near) * d2 * d2 + across * d1 * d1
    out[1, 2] = out[2, 1] = (far + near - across) * d1 * d2
    return True


@kernel
def linearize(
    p: ConicBlocks,
    size: Array,
    x: Array,
    y: Array,
    w: Array,
    compliance: float,
    scaling: Array,
    inverse: Array,
    value: Array,
    slope: Array,
    product: Array,
) -> bool:
    """One step's data at (x, y, w): the inverse scalings D (m, 3, 3), x^-1 and y(w) (m, 3), the
    slope P of y(w) and the product D P (m, 3, r). False if a block has left the cone.

    The D of a box row is what remains where x_0 does not move; its first row and column stay,
    for y_0."""
    m, _, r = p.rows.shape
    for i in range(m):
        d, z = scaling[i], value[i]
        if not inverse_scaling(x[i], y[i], compliance, d):
            return False
        inside = _inside(x[i])
        for k in range(3):
            inverse[i, k] = (x[i, k] if k == 0 else -x[i, k]) / inside
            z[k] = p.free[i, k]
            for a in range(r):
                z[k] += p.rows[i, k, a] * w[a]
                slope[i, k, a] = size[i, k] * p.rows[i, k, a]
            z[k] *= size[i, k]
        slip = np.hypot(z[1], z[2])
        first = 0
        if p.limit[i] >= 0.0:
            first = 1
            for k in range(1, 3):
                for j in range(1, 3):
                    d[k, j] -= d[k, 0] * d[0, j] / d[0, 0]
        elif slip > 0.0:
            for a in range(r):
                slope[i, 0, a] += (z[1] * slope[i, 1, a] + z[2] * slope[i, 2, a]) / slip
        z[0] += slip
        for k in range(3):
            z[k] += compliance * x[i, k]
            for a in range(r):
                total = 0.0
                for j in range(first, 3):
                    total += d[k, j] * slope[i, j, a]
                product[i, k, a] = total if k >= first else 0.0
    return True


@kernel
def move(
    p: ConicBlocks,
    y: Array,
    scaling: Array,
    inverse: Array,
    value: Array,
    turn: Array,
    tau: float,
    compliance: float,
    dx: Array,
    dy: Array,
) -> None:
    """Fills the steps dx, dy (m, 3) that go with `turn`, P dw (m, 3)."""
    v = np.empty(3)
    for i in range(dx.shape[0]):
        d = scaling[i]
        for k in range(3):
            v[k] = tau * inverse[i, k] - value[i, k] - turn[i, k]
        if p.limit[i] >= 0.0:
            v[0] = -(d[0, 1] * v[1] + d[0, 2] * v[2]) / d[0, 0]
            dx[i, 0] = 0.0
            for k in range(1, 3):
                dx[i, k] = d[k, 1] * v[1] + d[k, 2] * v[2]
        else:
            for k in range(3):
                dx[i, k] = d[k, 0] * v[0] + d[k, 1] * v[1] + d[k, 2] * v[2]
        for k in range(3):
            dy[i, k] = tau * inverse[i, k] - v[k] + compliance * dx[i, k] - y[i, k]


@kernel
def room(x: Array, dx: Array) -> float:
    """Largest step (at most 1e10) that keeps all of x (m, 3) + step dx in the cone."""
    best = 1e10
    for i in range(x.shape[0]):
        a = dx[i, 0] * dx[i, 0] - dx[i, 1] * dx[i, 1] - dx[i, 2] * dx[i, 2]
        b = x[i, 0] * dx[i, 0] - x[i, 1] * dx[i, 1] - x[i, 2] * dx[i, 2]
        c = _inside(x[i])
        root = b * b - a * c
        if root >= 0.0:
            root = np.sqrt(root)
            if b < 0.0:
                best = min(best, c / (root - b))
            elif a < 0.0:
                best = min(best, -(b + root) / a)
        if dx[i, 0] < 0.0:
            best = min(best, -x[i, 0] / dx[i, 0])
    return best


class Path:
    """A walk along the path: the state x, y (m, 3), w (r,), and what a step needs."""

    def __init__(self, blocks: ConicBlocks, how: Try) -> None:
        m, _, r = blocks.rows.shape
        self.blocks, self.how = blocks, how
        is_box = blocks.limit >= 0.0
        steep = np.minimum(blocks.steep, how.steepest)
        self.size = np.ones((m, 3))
        self.size[:, 0] = 1.0 / steep
        self.size[:, 1:] = np.where(blocks.mu > 0.0, blocks.mu, 1.0)[:, None]
        self.flat = (self.size[:, :, None] * blocks.rows).reshape(3 * m, r)
        self.x, self.y = np.zeros((m, 3)), np.zeros((m, 3))
        self.x[:, 0] = np.where(is_box, blocks.limit, how.start)
        self.y[:, 0] = how.start * np.minimum(1.0, how.start / self.x[:, 0])
        self.w = self.flat.T @ self.x.ravel()
        self.stuck = 0
        self.scaling = np.empty((m, 3, 3))
        self.inverse, self.value = np.empty((m, 3)), np.empty((m, 3))
        self.slope, self.product = np.empty((m, 3, r)), np.empty((m, 3, r))

    def impulses(self) -> Array:
        """f (m, 3) of where it is; a box row has no normal one."""
        f = self.x * self.size
        f[:, 0] *= self.blocks.steep
        f[self.blocks.limit >= 0.0, 0] = 0.0
        return f

    @property
    def tau(self) -> float:
        """Mean of x . y."""
        return float(np.einsum("ij,ij->", self.x, self.y)) / len(self.x)

    def step(self) -> bool:
        """One step; False where the path ends, the state being the last good one."""
        how, tau = self.how, self.tau
        if not linearize(
            self.blocks, self.size, self.x, self.y, self.w, how.compliance,
            self.scaling, self.inverse, self.value, self.slope, self.product,
        ):  # fmt: skip
            return False
        r = len(self.w)
        matrix = self.flat.T @ self.product.reshape(-1, r)
        matrix[np.diag_indices(r)] += 1.0
        lu, pivots, info = dgetrf(matrix, overwrite_a=True)
        if info:
            return False
        # Without centering first: how far that gets says how much of it is needed.
        *_, free = self._direction(lu, pivots, 0.0)
        sigma = max((1.0 - free) ** 3, how.centering)
        dw, dx, dy, length = self._direction(lu, pivots, sigma * tau)
        if not np.isfinite(dw).all():
            return False
        length *= how.reach if length < 1.0 else 1.0
        self.w = self.w + length * dw
        self.x, self.y = self.x + length * dx, self.y + length * dy
        self.stuck = self.stuck + 1 if length < STALLED else 0
        # Far down a short step is rounding, which further steps would only gather.
        return self.stuck < (STUCK if tau > PATH_END else 1)

    def _direction(
        self, lu: Array, pivots: NDArray[np.int32], tau: float
    ) -> tuple[Array, Array, Array, float]:
        """The step (dw, dx, dy) toward x o y = tau e, and how much of it fits in the cones."""
        dx, dy = self._moves(np.zeros_like(self.x), tau)
        dw, _ = dgetrs(lu, pivots, self.flat.T @ (self.x + dx).ravel() - self.w)
        turn = self.slope.reshape(-1, len(dw)) @ dw
        dx, dy = self._moves(turn.reshape(dx.shape), tau)
        return dw, dx, dy, min(1.0, room(self.x, dx), room(self.y, dy))

    def _moves(self, turn: Array, tau: float) -> tuple[Array, Array]:
        dx, dy = np.empty_like(self.x), np.empty_like(self.y)
        move(
            self.blocks, self.y, self.scaling, self.inverse, self.value, turn,
            tau, self.how.compliance, dx, dy,
        )  # fmt: skip
        return dx, dy
