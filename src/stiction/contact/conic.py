"""The exact cone by an interior point: the last rung, for what pivoting does not reach.

The problem, in the unit rows of `cones.py`, block by block (contacts, then box rows; `Blocks`):
A_i (3, r) holds a normal and two tangent rows, divided so that the friction cone is
x_0 >= |x_t|. With z = A w + b the velocities and De Saxce's change of variable

    y = z + |z_t| e_0        w = A' x        x, y in the cone,  x . y = 0

is Coulomb's law and the normal one together: a contact opens (x = 0), sticks (y = 0) or slides
(both on the edge, y_t against x_t). A contact without friction has zero tangents. A box row has
x_0 fixed at its limit and y_0 free, which makes y_0 = |z_t| by itself.

Three methods, each from where the last one stopped:

1. The path x o y = tau e (Jordan product) as tau falls, by Newton's method on all of it, |z_t|
   included. With the scaling point G of Nesterov and Todd, G^2 x = y, and D = (G^2 + delta)^-1,

       (I + A' D P) dw = A' (x + D (tau x^-1 - y(w))) - w         P = dy / dw
       dx = D (tau x^-1 - y(w) - P dw)                            y + dy = y(w) + P dw + delta dx

   is one system of size r, however many contacts there are and however redundant. delta is a
   compliance, y(w) = z + |z_t| e_0 + delta x: contacts that jam have impulses without a bound,
   along which the path would run off. P makes the matrix unsymmetric: this is no convex
   program. The path ends near tau = 1e-12 of the load squared, where rounding stops it.
2. The modes (`polish`): Newton's method on the functions of Alart and Curnier, f = P(f - u), whose
   pieces are the modes, with steps of least norm because redundant contacts leave impulses
   undetermined. To rounding in two or three steps if the modes are right.
3. Proximal steps (`settle`), f := P(f - stiffness u(f)), where modes are not clear: contacts that
   agree to 1e-7 only, as measured matrices have them. Each is solved by Newton's method with
   a line search, again in r unknowns.

Velocities of the model (rows rows') are compared with those of the problem's own arrays, and
the difference, which comes of a factor that rounds off a slightly indefinite matrix, is added
to b before Newton's method goes on.

How it fails: the path turns back in tau (the determinant changes sign and steps shrink to
nothing; one in fifty of random problems with mu up to 10). Then it is entered elsewhere, see
`TRIES`; after the last of them the best answer is returned with ERROR. A problem without a
solution is not recognized as such.

References: De Saxce and Feng, The bipotential method (1998); Acary, Armand, Nguyen and Shpakovych,
Second-order cone programming for frictional contact mechanics using interior point algorithm
(2024); Alart and Curnier (1991). Departures: Newton on |z_t| in every step (an outer fixed point
on it, with Clarabel inside, takes up to 60 convex programs and 40 times as long on 275
contacts); the system in velocities; compliance; no corrector step (with it the path is lost
more often, where it is not that of a convex program).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, lstsq
from scipy.linalg.lapack import dgetrf, dgetrs

from stiction.contact.certificate import certify
from stiction.contact.cones import Cones, build_cones, from_impulses, to_impulses
from stiction.contact.problem import ContactProblem
from stiction.contact.solution import ContactSolution
from stiction.kernels.compile import kernel
from stiction.status import Status

Array = NDArray[np.float64]
Answer = tuple[Array, Array, Array, Array]


class Try(NamedTuple):
    """How to follow the path."""

    start: float  # x = y = start e at first, in units of the load
    centering: float  # least sigma: how far tau falls in a step
    reach: float  # part of the way to the cone's edge that a step may go
    compliance: float  # delta
    steepest: float  # mu beyond this counts as this; Newton's method then takes the true one


TRIES = (
    Try(10.0, 0.1, 0.99, 1e-8, 100.0),
    Try(1.0, 0.1, 0.95, 1e-10, 1e3),
    Try(100.0, 0.3, 0.9, 1e-8, 10.0),
    Try(10.0, 0.3, 0.9, 1e-4, 100.0),
    Try(1.0, 0.01, 0.99, 0.0, np.inf),
    Try(1000.0, 0.1, 0.9, 1e-6, 30.0),
)
"""In this order. They differ in where the path is entered and how closely it is followed, and
fail on different problems."""

LEVELS = (1e-8, 1e-12)
"""tau at which the modes are tried; the path ends with the last. At the first, two in three of
all problems are done."""

STEPS = 100
"""Steps along one path. It takes 10 to 50 where it gets through at all."""

SMALL, STUCK = 1e-2, 6
"""A step shorter than SMALL gets nowhere; after STUCK of them in a row the path is given up."""

POLISH, PATIENCE = 15, 5
"""Newton steps on the modes in all, and without half the residual."""

EXACT = 1e-13
"""Residual over the blocks' own scales at which Newton's method ends."""

RANK = 1e-12
"""Singular values below this part of the largest belong to redundant contacts."""

DENSE = 1500
"""Unknowns for which steps of least norm cost seconds; redundant contacts beyond it are left to
proximal steps, whose systems do not grow with them."""

ROUNDS, NEAR = 4, 1e-4
"""Times that the model's velocities are corrected (each gains the factor's relative error), and
the certificate below which it is they that are wrong rather than the modes."""

SOFT, STIFF = 10.0, 1e6
"""Stiffness of proximal steps, least and largest. A stiff one needs a start that softer ones have
prepared; the stiffest are for redundant contacts that do not quite agree, whose impulses move at
a constant rate until one of them opens."""

PROXIMAL, SETTLE = 25, 20
"""Proximal steps from the end of a path, and Newton steps in each."""

SHORT = 1e-3
"""Least part of a Newton step in its line search."""

ROUNDING = 1e-16
"""Of velocities of size one: a proximal step cannot be solved to less than stiffness times it."""


class Blocks(NamedTuple):
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
def blocks_of(p: Cones):
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
    return Blocks(rows, push, free, mu, steep, limit, unit)


# --- The path: x, y in the cone, x o y = tau e ------------------------------------------


@kernel
def _inside(x):
    """x_0^2 - |x_t|^2, positive inside the cone; without cancelling near its edge."""
    t = np.hypot(x[1], x[2])
    return (x[0] - t) * (x[0] + t)


@kernel
def inverse_scaling(x, y, compliance, out):
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
def linearize(p: Blocks, size, x, y, w, compliance, scaling, inverse, value, slope, product):
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
def move(p: Blocks, y, scaling, inverse, value, turn, tau, compliance, dx, dy):
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
def room(x, dx):
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

    def __init__(self, blocks: Blocks, how: Try) -> None:
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
        self.stuck = self.stuck + 1 if length < SMALL else 0
        # Far down a short step is rounding, which further steps would only gather.
        return self.stuck < (STUCK if tau > LEVELS[0] else 1)

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


# --- Newton's method on the modes: f = P(f - u) -------------------------------------------


@kernel
def project(p: Blocks, g, out, slope):
    """Fills P(g) (m, 3) and its slope (m, 3, 3): the normal part on g_n >= 0, then the tangential
    one on the disc of radius mu times the former, or of the box row's limit."""
    for i in range(g.shape[0]):
        slope[i] = 0.0
        is_box = p.limit[i] >= 0.0
        normal = 0.0 if is_box else max(0.0, g[i, 0])
        radius = p.limit[i] if is_box else p.mu[i] * normal
        length = np.hypot(g[i, 1], g[i, 2])
        if normal > 0.0:
            slope[i, 0, 0] = 1.0
        out[i] = g[i]
        out[i, 0] = normal
        if length <= radius:
            slope[i, 1, 1] = slope[i, 2, 2] = 1.0
        else:
            d1, d2 = g[i, 1] / length, g[i, 2] / length
            out[i, 1], out[i, 2] = radius * d1, radius * d2
            shrink = radius / length
            slope[i, 1, 1] = shrink * d2 * d2
            slope[i, 2, 2] = shrink * d1 * d1
            slope[i, 1, 2] = slope[i, 2, 1] = -shrink * d1 * d2
            if normal > 0.0:
                slope[i, 1, 0] = p.mu[i] * d1
                slope[i, 2, 0] = p.mu[i] * d2


def settle(p: Blocks, f: Array, stiffness: float) -> tuple[Array | None, int]:
    """Impulses P(f - stiffness u(w)) with w = A' of them, or None; and the Newton steps taken.

    A proximal step: f is held by a spring, so that redundant contacts do not matter and the
    system has the size r. Its fixed points are the solutions; a line search makes it safe.
    """
    m, _, r = p.rows.shape
    flat, push = p.rows.reshape(3 * m, r), p.push.reshape(3 * m, r)
    pressed, slope = np.empty((m, 3)), np.empty((m, 3, 3))

    def off(w: Array) -> Array:
        u = (flat @ w).reshape(m, 3) + p.free
        project(p, f - stiffness * u, pressed, slope)
        return w - push.T @ pressed.ravel()

    w = push.T @ f.ravel()
    error = off(w)
    for count in range(SETTLE):
        size = float(np.linalg.norm(error))
        if size < ROUNDING * (1.0 + stiffness):
            return pressed, count
        pushed = np.einsum("ijk,ika->ija", slope, p.rows).reshape(3 * m, r)
        matrix = stiffness * (push.T @ pushed)
        matrix[np.diag_indices(r)] += 1.0
        try:
            step = np.linalg.solve(matrix, error)
        except LinAlgError:
            return None, count
        length = 1.0
        error = off(w - step)
        while not np.linalg.norm(error) < (1.0 - 1e-4 * length) * size:
            length *= 0.5
            if length < SHORT:
                return None, count
            error = off(w - length * step)
        w = w - length * step
    return None, SETTLE


def _step_of_modes(p: Blocks, residual: Array, slope: Array) -> Array | None:
    """Step of least norm (m, 3) to the zero of the linearization (I - S) df + S W df, or None."""
    # Where S is zero the block opens and df is known: only the others need a system.
    known = ~slope.any(axis=(1, 2))
    df = np.where(known[:, None], -residual, 0.0)
    rest = np.flatnonzero(~known)
    if not len(rest):
        return df
    r = p.rows.shape[2]
    if 3 * len(rest) > max(DENSE, 2 * r):
        return None
    push, s = p.push[rest].reshape(-1, r), slope[rest]
    pushed = np.einsum("ijk,ika->ija", s, p.rows[rest]).reshape(-1, r)
    matrix = pushed @ push.T
    for k in range(len(rest)):
        matrix[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] += np.eye(3) - s[k]
    moved = p.push[known].reshape(-1, r).T @ df[known].ravel()
    right = -residual[rest].ravel() - pushed @ moved
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return None
    solution = lstsq(matrix, right, cond=RANK, lapack_driver="gelsy", check_finite=False)
    df[rest] = solution[0].reshape(-1, 3)
    return df


def polish(p: Blocks, f: Array, weight: Array) -> tuple[Array, int]:
    """The best of some Newton steps from impulses f (m, 3), and their number.

    weight: (m,) one over the velocity scale of each block.
    """
    m, _, r = p.rows.shape
    flat, push = p.rows.reshape(3 * m, r), p.push.reshape(3 * m, r)
    pressed, slope = np.empty((m, 3)), np.empty((m, 3, 3))
    best, found, since = np.inf, f, 0
    for count in range(POLISH + 1):
        u = (flat @ (push.T @ f.ravel())).reshape(m, 3) + p.free
        project(p, f - u, pressed, slope)
        residual = f - pressed
        off = float((np.abs(residual).max(axis=1) * weight).max(initial=0.0))
        if not off < np.inf:
            break
        since = 0 if off < 0.5 * best else since + 1
        if off < best:
            best, found = off, f
        if best < EXACT or since > PATIENCE or count == POLISH:
            break
        step = _step_of_modes(p, residual, slope)
        if step is None:
            break
        f = f + step
    return found, count


# --- From a problem to its impulses -------------------------------------------------------


class Scaled:
    """A problem in blocks, and the way back from their impulses to the problem's own."""

    def __init__(self, problem: ContactProblem) -> None:
        arrays = problem.arrays
        self.problem = problem
        self.cones, self.joints = build_cones(problem.whitened, arrays.friction, arrays.box_limit)
        self.blocks = blocks_of(self.cones)
        self.boxes = np.flatnonzero(arrays.box_limit > 0.0)
        self.rough = self.blocks.unit >= 0
        length = np.ones((len(self.rough), 2))
        length[: problem.nc, 0] = self.cones.length_normal
        length[self.rough, 1] = self.cones.length[self.blocks.unit[self.rough]]
        self.length = length[:, [0, 1, 1]]
        scale = np.concatenate([problem.scales.contact, problem.scales.box[self.boxes]])
        scale = scale / (length.max(axis=1) * self.cones.load)
        self.weight = np.divide(1.0, scale, out=np.ones(len(scale)), where=scale > 0.0)

    def impulses(self, f: Array) -> Answer:
        """Normal (nc,), tangent (nc, 2), joint (nj,) and box (nb,) impulses [N s] for f (m, 3)."""
        p, phi = self.problem, f[self.rough, 1:]
        theta = f[: p.nc, 0] / self.blocks.steep[: p.nc]
        return to_impulses(p.whitened, self.cones, self.joints, p.arrays.box_limit, theta, phi)

    def blocked(self, start: ContactSolution) -> Array:
        """Impulses f (m, 3) of an earlier solution."""
        theta, phi = from_impulses(
            self.cones, self.problem.arrays.box_limit, start.normal, start.tangent, start.box
        )
        f = np.zeros(self.blocks.free.shape)
        f[: len(theta), 0] = theta * self.blocks.steep[: len(theta)]
        f[self.rough, 1:] = phi
        return f

    def corrected(self, f: Array) -> Blocks:
        """Blocks whose velocities agree with the problem's own arrays at the impulses f."""
        p, nc, b = self.problem, self.problem.nc, self.blocks
        row = p.contact_velocity(p.velocity_from(*self.impulses(f)))
        own = np.zeros(b.free.shape)
        own[:nc, 0], own[:nc, 1:] = row.normal - p.bound, row.tangent
        own[nc:, 1] = row.box[self.boxes]
        own /= self.length * self.cones.load
        r = b.rows.shape[2]
        flat, push = b.rows.reshape(-1, r), b.push.reshape(-1, r)
        free = own - (flat @ (push.T @ f.ravel())).reshape(own.shape)
        return b._replace(free=np.where(b.rows.any(axis=2), free, b.free))


class Best:
    """The best answer so far, by its certificate."""

    def __init__(self, scaled: Scaled) -> None:
        self.scaled = scaled
        problem = scaled.problem
        self.answer: Answer = scaled.impulses(np.zeros(scaled.blocks.free.shape))
        self.certificate = certify(problem, problem.velocity_from(*self.answer), *self.answer)
        self.last = self.certificate.worst
        self.steps = 0

    @property
    def passed(self) -> bool:
        """Whether it obeys the laws."""
        return self.certificate.passed

    def take(self, f: Array) -> bool:
        """Keeps f (m, 3) if it is better; whether the best answer passes."""
        answer = self.scaled.impulses(f)
        problem = self.scaled.problem
        certificate = certify(problem, problem.velocity_from(*answer), *answer)
        self.last = certificate.worst
        if self.last < self.certificate.worst:
            self.answer, self.certificate = answer, certificate
        return self.certificate.passed

    def improve(self, f: Array) -> bool:
        """Polishes f, correcting the model's velocities; whether an answer passes now."""
        blocks = self.scaled.blocks
        before = np.inf
        for _ in range(ROUNDS):
            f, count = polish(blocks, f, self.scaled.weight)
            self.steps += count
            if self.take(f) or not self.last < min(0.5 * before, NEAR):
                break
            before = self.last
            blocks = self.scaled.corrected(f)
        return self.passed


def solve_conic(
    problem: ContactProblem, start: ContactSolution | None = None
) -> tuple[Array, Array, Array, Array, int, Status]:
    """Impulses (normal, tangent, joint, box) of a problem under Coulomb's law with the circular
    cone, the steps taken, and SOLVED or ERROR by the certificate.

    start: an earlier solution, from whose modes Newton's method is tried before anything else.
    """
    scaled = Scaled(problem)
    best = Best(scaled)
    # Paths that run off overflow before they are given up.
    with np.errstate(over="ignore", invalid="ignore"):
        found = best.passed or (start is not None and best.improve(scaled.blocked(start)))
        tries = TRIES if scaled.blocks.rows.size else ()
        for how in tries:
            found = found or _follow(scaled, how, best)
    return *best.answer, best.steps, Status.SOLVED if best.passed else Status.ERROR


def _follow(scaled: Scaled, how: Try, best: Best) -> bool:
    """Follows one path, trying its modes at each level; whether an answer passes."""
    path = Path(scaled.blocks, how)
    levels = list(LEVELS)
    for _ in range(STEPS):
        going = path.step()
        best.steps += 1
        if path.tau <= levels[0] or not going:
            levels = [level for level in levels if level < path.tau]
            if best.improve(path.impulses()):
                return True
        if not going or not levels:
            break
    return _approach(scaled, path.impulses(), best)


def _approach(scaled: Scaled, f: Array, best: Best) -> bool:
    """Proximal steps from f, as stiff as they succeed; whether an answer passes."""
    stiffness = SOFT
    for _ in range(PROXIMAL):
        moved, count = settle(scaled.blocks, f, stiffness)
        best.steps += count
        if moved is None:
            stiffness *= 0.1
            if stiffness < 0.1 * SOFT:
                return False
            continue
        f = moved
        if best.take(f):
            return True
        stiffness = min(10.0 * stiffness, STIFF)
    return best.improve(f)

