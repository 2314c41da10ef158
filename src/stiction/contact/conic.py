"""The exact cone by an interior point: the last rung, for what pivoting does not reach.

The problem, in the unit rows of `cones.py`: m blocks (n contacts, then the box rows), each with
a normal row and two tangent rows A_i (3, r), already divided so that the friction cone is
x_0 >= |x_t| (`Blocks`). With z = A w + b the velocities and De Saxce's change of variable

    y = z + |z_t| e_0        w = A' x        x, y in the cone,  x . y = 0

is Coulomb's law together with the normal one: a contact opens (x = 0), sticks (y = 0) or slides
(both on the edge, y_t against x_t). A contact without friction has zero tangents. A box row has
x_0 fixed at its limit and y_0 free, which makes y_0 = |z_t| by itself.

The iteration follows the path x o y = tau e (Jordan product) as tau falls to zero, by Newton's
method on all of it, |z_t| included, in the scaling of Nesterov and Todd. With D = G^-2 for the
scaling point G (G^2 x = y), one step solves one system of size r,

    (I + A' D P) dw = A' (x + D (sigma tau x^-1 - y(w))) - w,      P = d y / d w
    dx = D (sigma tau x^-1 - y(w) - P dw),                         y + dy = y(w) + P dw,

however many contacts there are and however redundant: D never needs to be inverted. P makes the
matrix unsymmetric: the problem is no convex program, and there the path may turn back in tau.

Contacts that jam have impulses without a bound, along which the path would run off. A compliance
delta, y = z + |z_t| e_0 + delta x, keeps them finite, and (G^2 + delta)^-1 in place of D.

What the path leaves, compliance included, Newton's method removes: on the functions of Alart
and Curnier f = P(f - u), whose pieces are the modes, with steps of least norm because redundant
contacts leave impulses undetermined. Then velocities of the model (rows rows') are compared
with those of the problem's own arrays, and the difference, which comes of a factor that rounds
off a slightly indefinite matrix, is added to b and Newton's method goes on.

How it fails: the path turns (the determinant changes sign, steps shrink to nothing; one in fifty
of random problems with mu to 10). Then another start and centering is tried, from `TRIES`; at the
end the best answer is returned with ERROR. What has no solution is not recognized as such.

References: De Saxce and Feng, The bipotential method (1998). Acary, Armand, Nguyen and Shpakovych,
Second-order cone programming for frictional contact mechanics using interior point algorithm
(2024). Alart and Curnier (1991). Departures: Newton on |z_t| at each step instead of an outer
fixed point (which needs 2 to 4 times the steps, or stalls); the system in velocities; compliance;
no corrector step (it fails more often on the problems that are not convex).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, lstsq

from stiction.contact.certificate import Certificate, certify
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


TRIES = (
    Try(10.0, 0.1, 0.99, 1e-8),
    Try(1.0, 0.1, 0.95, 1e-10),
    Try(100.0, 0.3, 0.9, 1e-8),
    Try(10.0, 0.3, 0.9, 1e-4),
    Try(1.0, 0.01, 0.99, 0.0),
    Try(1000.0, 0.1, 0.9, 1e-6),
)
"""In this order. They differ in where the path is entered and how closely it is followed, and
fail on different problems."""

LEVELS = (1e-8, 1e-12, 1e-16)
"""tau at which Newton's method on the modes is tried. Later, modes are clearer and impulses that
have no bound larger."""

STEPS = 100
"""Steps along one path. It takes 10 to 30 where it gets through at all."""

SMALL = 1e-2
"""A step this short gets nowhere; after `STUCK` of them in a row the path is given up."""

STUCK = 6

POLISH = 15
"""Newton steps on the modes. Two or three if they are right, some more while they change."""

EXACT = 1e-13
"""Residual over the blocks' own scales at which Newton's method ends."""

PATIENCE = 5
"""Newton steps without half the residual after which the modes are given up."""

NEAR = 1e-4
"""Certificate below which an answer is right but for the model's velocities."""

RANK = 1e-12
"""Singular values below this part of the largest belong to redundant contacts."""

ROUNDS = 4
"""Times that the model's velocities are corrected; each gains the factor's relative error."""


class Blocks(NamedTuple):
    """The scaled problem block by block: m blocks, r coordinates.

    Impulses f and velocities u = rows w + free are those of unit rows; the path runs in
    x = f / size and y = size u, where size_t = mu size_n makes the cone x_0 >= |x_t|, the larger
    of the two sizes being one.
    """

    rows: Array  # (m, 3, r)
    free: Array  # (m, 3)
    mu: Array  # (m,) zero for contacts without friction
    limit: Array  # (m,) of a box row, otherwise -1
    size: Array  # (m, 3)
    unit: NDArray[np.int64]  # (m,) the unit of `Cones`, or -1


@kernel
def blocks_of(p: Cones):
    """The blocks of a scaled problem: its contacts, then its box rows."""
    n, r = p.normal.shape
    units = p.parent.shape[0]
    m = n + units - p.first[n]
    rows, free = np.zeros((m, 3, r)), np.zeros((m, 3))
    mu, limit, size = np.zeros(m), np.full(m, -1.0), np.ones((m, 3))
    unit = np.full(m, -1)
    for i in range(n):
        rows[i, 0] = p.normal[i]
        free[i, 0] = p.free_normal[i]
        if p.first[i + 1] > p.first[i]:
            unit[i] = p.first[i]
            mu[i] = p.mu[unit[i]]
            size[i, 0] = min(1.0, 1.0 / mu[i])
            size[i, 1:] = min(1.0, mu[i])
    for i in range(n, m):
        unit[i] = p.first[n] + i - n
        limit[i] = p.limit[unit[i]]
    for i in range(m):
        if unit[i] >= 0:
            rows[i, 1:] = p.rows[unit[i]]
            free[i, 1:] = p.free[unit[i]]
    return Blocks(rows, free, mu, limit, size, unit)


# --- The path: x, y in the cone, x o y = tau e ------------------------------------------


@kernel
def _inside(x):
    """x_0^2 - |x_t|^2, positive inside the cone; without cancelling near its edge."""
    t = np.hypot(x[1], x[2])
    return (x[0] - t) * (x[0] + t)


@kernel
def _inverse_scaling(x, y, compliance, out):
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
def _linearize(p: Blocks, x, y, w, tau, compliance, scaling, target, slope, product):
    """One step's data at (x, y, w): the inverse scalings (m, 3, 3), `target` sigma tau x^-1 - y(w)
    (m, 3; tau comes with its sigma), the slope P (m, 3, r) and the product of scaling and slope.
    False if a block has left the cone."""
    m, _, r = p.rows.shape
    z = np.empty(3)
    for i in range(m):
        if not _inverse_scaling(x[i], y[i], compliance, scaling[i]):
            return False
        d = scaling[i]
        is_box = p.limit[i] >= 0.0
        if is_box:  # x_0 does not move: what y_0 does for it is eliminated
            for k in range(1, 3):
                for j in range(1, 3):
                    d[k, j] -= d[k, 0] * d[0, j] / d[0, 0]
        for k in range(3):
            z[k] = p.free[i, k]
            for a in range(r):
                z[k] += p.rows[i, k, a] * w[a]
            z[k] *= p.size[i, k]
        slip = np.hypot(z[1], z[2])
        det = _inside(x[i])
        target[i, 0] = tau * x[i, 0] / det - z[0] - slip - compliance * x[i, 0]
        for k in range(1, 3):
            target[i, k] = -tau * x[i, k] / det - z[k] - compliance * x[i, k]
        for k in range(3):
            for a in range(r):
                slope[i, k, a] = p.size[i, k] * p.rows[i, k, a]
        if slip > 0.0 and not is_box:
            for a in range(r):
                slope[i, 0, a] += (z[1] * slope[i, 1, a] + z[2] * slope[i, 2, a]) / slip
        for k in range(3):
            for a in range(r):
                product[i, k, a] = (
                    d[k, 0] * slope[i, 0, a] + d[k, 1] * slope[i, 1, a] + d[k, 2] * slope[i, 2, a]
                    if not is_box
                    else (d[k, 1] * slope[i, 1, a] + d[k, 2] * slope[i, 2, a] if k > 0 else 0.0)
                )
    return True


@kernel
def _moves(p: Blocks, x, y, scaling, target, turn, tau, compliance, dx, dy):
    """Fills the steps dx, dy (m, 3) that go with `turn`, P dw (m, 3)."""
    m = p.rows.shape[0]
    v = np.empty(3)
    for i in range(m):
        d = scaling[i]
        for k in range(3):
            v[k] = target[i, k] - turn[i, k]
        det = _inside(x[i])
        if p.limit[i] >= 0.0:
            v[0] = -(d[0, 1] * v[1] + d[0, 2] * v[2]) / d[0, 0]
            dx[i, 0] = 0.0
            for k in range(1, 3):
                dx[i, k] = d[k, 1] * v[1] + d[k, 2] * v[2]
        else:
            for k in range(3):
                dx[i, k] = d[k, 0] * v[0] + d[k, 1] * v[1] + d[k, 2] * v[2]
        for k in range(3):
            inverse = x[i, k] / det if k == 0 else -x[i, k] / det
            dy[i, k] = tau * inverse - v[k] + compliance * dx[i, k] - y[i, k]


@kernel
def _room(x, dx):
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
        self.flat = (blocks.size[:, :, None] * blocks.rows).reshape(3 * m, r)
        self.x, self.y = np.zeros((m, 3)), np.zeros((m, 3))
        is_box = blocks.limit >= 0.0
        self.x[:, 0] = np.where(is_box, blocks.limit, how.start)
        self.y[:, 0] = how.start * np.minimum(1.0, how.start / self.x[:, 0])
        self.w = self.flat.T @ self.x.ravel()
        self.sigma = how.centering
        self.stuck = 0
        self.scaling, self.target = np.empty((m, 3, 3)), np.empty((m, 3))
        self.slope, self.product = np.empty((m, 3, r)), np.empty((m, 3, r))

    @property
    def tau(self) -> float:
        """Mean of x . y."""
        return float(np.einsum("ij,ij->", self.x, self.y)) / len(self.x)

    def step(self) -> bool:
        """One step; False where the path ends, the state being the last good one."""
        x, y, how, tau = self.x, self.y, self.how, self.sigma * self.tau
        delta = how.compliance
        if not _linearize(
            self.blocks, x, y, self.w, tau, delta,
            self.scaling, self.target, self.slope, self.product,
        ):  # fmt: skip
            return False
        r = len(self.w)
        pull = np.einsum("ijk,ik->ij", self.scaling, self.target)
        is_box = self.blocks.limit >= 0.0
        if is_box.any():
            pull[is_box, 0] = 0.0
            pull[is_box, 1:] = np.einsum(
                "ijk,ik->ij", self.scaling[is_box, 1:, 1:], self.target[is_box, 1:]
            )
        matrix = self.flat.T @ self.product.reshape(-1, r)
        matrix[np.diag_indices(r)] += 1.0
        try:
            dw = np.linalg.solve(matrix, self.flat.T @ (x + pull).ravel() - self.w)
        except LinAlgError:
            return False
        if not np.isfinite(dw).all():
            return False
        turn = (self.slope.reshape(-1, r) @ dw).reshape(x.shape)
        dx, dy = np.empty_like(x), np.empty_like(y)
        _moves(self.blocks, x, y, self.scaling, self.target, turn, tau, delta, dx, dy)
        length = min(1.0, how.reach * min(_room(x, dx), _room(y, dy)))
        self.w, self.x, self.y = self.w + length * dw, x + length * dx, y + length * dy
        # A short step says that the iterate is off centre: go back to the path before down it.
        self.sigma = min(max((1.0 - length) ** 2, how.centering), 0.9)
        self.stuck = self.stuck + 1 if length < SMALL else 0
        return self.stuck < STUCK


# --- Newton's method on the modes: f = P(f - u) -------------------------------------------


@kernel
def _modes(p: Blocks, f, u, residual, slope):
    """Fills f - P(f - u) (m, 3) and the slope of P (m, 3, 3). P: the normal part on f_n >= 0, then
    the tangential one on the disc of radius mu times the former, or of the box row's limit."""
    for i in range(f.shape[0]):
        slope[i] = 0.0
        is_box = p.limit[i] >= 0.0
        normal = 0.0 if is_box else max(0.0, f[i, 0] - u[i, 0])
        radius = p.limit[i] if is_box else p.mu[i] * normal
        t1, t2 = f[i, 1] - u[i, 1], f[i, 2] - u[i, 2]
        length = np.hypot(t1, t2)
        if normal > 0.0:
            slope[i, 0, 0] = 1.0
        if length <= radius:
            slope[i, 1, 1] = slope[i, 2, 2] = 1.0
        else:
            d1, d2 = t1 / length, t2 / length
            t1, t2 = radius * d1, radius * d2
            shrink = radius / length
            slope[i, 1, 1] = shrink * d2 * d2
            slope[i, 2, 2] = shrink * d1 * d1
            slope[i, 1, 2] = slope[i, 2, 1] = -shrink * d1 * d2
            if normal > 0.0:
                slope[i, 1, 0] = p.mu[i] * d1
                slope[i, 2, 0] = p.mu[i] * d2
        residual[i, 0] = f[i, 0] - normal
        residual[i, 1] = f[i, 1] - t1
        residual[i, 2] = f[i, 2] - t2


def _step_of_modes(p: Blocks, residual: Array, slope: Array) -> Array:
    """Step of least norm (m, 3) to the zero of the linearization (I - S) df + S W df."""
    # Where S is zero the block opens and df is known: only the others need a system.
    known = ~slope.any(axis=(1, 2))
    df = np.where(known[:, None], -residual, 0.0)
    rest = np.flatnonzero(~known)
    if not len(rest):
        return df
    r = p.rows.shape[2]
    rows, s = p.rows[rest].reshape(-1, r), slope[rest]
    pushed = np.einsum("ijk,ika->ija", s, p.rows[rest]).reshape(-1, r)
    matrix = pushed @ rows.T
    for k in range(len(rest)):
        matrix[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] += np.eye(3) - s[k]
    moved = p.rows[known].reshape(-1, r).T @ df[known].ravel()
    right = -residual[rest].ravel() - pushed @ moved
    df[rest] = lstsq(matrix, right, cond=RANK, lapack_driver="gelsy")[0].reshape(-1, 3)
    return df


def polish(p: Blocks, f: Array, weight: Array) -> tuple[Array, int]:
    """The best of some Newton steps from impulses f (m, 3), and their number.

    weight: (m,) one over the velocity scale of each block.
    """
    m, _, r = p.rows.shape
    flat = p.rows.reshape(3 * m, r)
    residual, slope = np.empty((m, 3)), np.empty((m, 3, 3))
    best, found, since = np.inf, f, 0
    for count in range(POLISH + 1):
        u = (flat @ (flat.T @ f.ravel())).reshape(m, 3) + p.free
        _modes(p, f, u, residual, slope)
        off = float((np.abs(residual).max(axis=1) * weight).max(initial=0.0))
        if not off < np.inf:
            break
        since = 0 if off < 0.5 * best else since + 1
        if off < best:
            best, found = off, f
        if best < EXACT or since > PATIENCE or count == POLISH:
            break
        try:
            f = f + _step_of_modes(p, residual, slope)
        except (LinAlgError, ValueError):  # ValueError: not finite
            break
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
        theta = f[: p.nc, 0].copy()
        return to_impulses(p.whitened, self.cones, self.joints, p.arrays.box_limit, theta, phi)

    def blocked(self, start: ContactSolution) -> Array:
        """Impulses f (m, 3) of an earlier solution."""
        theta, phi = from_impulses(
            self.cones, self.problem.arrays.box_limit, start.normal, start.tangent, start.box
        )
        f = np.zeros(self.blocks.free.shape)
        f[: len(theta), 0] = theta
        f[self.rough, 1:] = phi
        return f

    def corrected(self, f: Array, answer: Answer) -> Blocks:
        """Blocks whose velocities agree with the problem's own arrays at the impulses f."""
        p, nc, b = self.problem, self.problem.nc, self.blocks
        row = p.contact_velocity(p.velocity_from(*answer))
        own = np.zeros(b.free.shape)
        own[:nc, 0], own[:nc, 1:] = row.normal - p.bound, row.tangent
        own[nc:, 1] = row.box[self.boxes]
        own /= self.length * self.cones.load
        flat = b.rows.reshape(-1, b.rows.shape[2])
        free = own - (flat @ (flat.T @ f.ravel())).reshape(own.shape)
        return b._replace(free=np.where(b.rows.any(axis=2), free, b.free))


class Best:
    """The best answer so far, by its certificate."""

    def __init__(self, scaled: Scaled) -> None:
        self.scaled = scaled
        self.answer: Answer = scaled.impulses(np.zeros(scaled.blocks.free.shape))
        self.certificate = self._grade(self.answer)
        self.steps = 0

    def _grade(self, answer: Answer) -> Certificate:
        return certify(self.scaled.problem, self.scaled.problem.velocity_from(*answer), *answer)

    @property
    def passed(self) -> bool:
        """Whether it obeys the laws."""
        return self.certificate.passed

    def improve(self, f: Array) -> bool:
        """Polishes f, correcting the model's velocities; whether an answer passes now."""
        blocks = self.scaled.blocks
        before = np.inf
        for _ in range(ROUNDS):
            f, count = polish(blocks, f, self.scaled.weight)
            self.steps += count
            answer = self.scaled.impulses(f)
            certificate = self._grade(answer)
            if certificate.worst < self.certificate.worst:
                self.answer, self.certificate = answer, certificate
            if self.passed or not certificate.worst < min(0.5 * before, NEAR):
                break
            before = certificate.worst
            blocks = self.scaled.corrected(f, answer)
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
    found = best.passed or (start is not None and best.improve(scaled.blocked(start)))
    for how in TRIES:
        if found:
            break
        found = _follow(scaled, how, best)
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
            if best.improve(_pressing(scaled.blocks, path.x)):
                return True
        if not going or not levels:
            break
    return False


def _pressing(p: Blocks, x: Array) -> Array:
    """Impulses f (m, 3) at a point of the path; a box row has no normal one."""
    f = x * p.size
    f[p.limit >= 0.0, 0] = 0.0
    return f
