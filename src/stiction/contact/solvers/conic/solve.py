"""The exact cone by an interior point: the last rung, for what pivoting does not reach.

The problem, in the unit rows of `cones.py`, block by block (`ConicBlocks`: contacts, box rows):
A_i (3, r) holds a normal and two tangent rows, divided so that the friction cone is
x_0 >= |x_t|. With z = A w + b the velocities and De Saxce's change of variable

    y = z + |z_t| e_0        w = A' x        x, y in the cone,  x . y = 0

is Coulomb's law and the normal one together: a contact opens (x = 0), sticks (y = 0) or slides
(both on the edge, y_t against x_t). A contact without friction has zero tangents. A box row has
x_0 fixed at its limit and y_0 free, which makes y_0 = |z_t| by itself. One whose limit grows with
a contact's impulse (torsional and rolling friction) has no such block, and is refused.

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
3. Proximal steps (`take_proximal_step`), f := P(f - stiffness u(f)), where modes are not clear:
   contacts that agree to 1e-7 only, as measured matrices have them. Each is solved by Newton's
   method with a line search, again in r unknowns.

Velocities of the model (rows rows') are compared with those of the problem's own arrays, and
the difference, which comes of a factor that rounds off a slightly indefinite matrix, is added
to b before Newton's method goes on.

How it fails: the path turns back in tau (the determinant changes sign and steps shrink to
nothing). Then it is entered elsewhere, see `TRIES`; after the last of them the best answer is
returned with ERROR. A problem without a
solution is not recognized as such.

References: De Saxce and Feng, The bipotential method (1998); Acary, Armand, Nguyen and Shpakovych,
Second-order cone programming for frictional contact mechanics using interior point algorithm
(2024); Alart and Curnier (1991). Departures: Newton on |z_t| in every step (an outer fixed point
on it takes 30 to 50 convex programs on 275 contacts, even with Anderson's acceleration); the
system in velocities; compliance; no corrector step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.certificate import certify
from stiction.contact.problem.scaled import ScaledImpulses, ScaledProblem
from stiction.contact.problem.validation import refuse_tied_rows
from stiction.contact.solvers.attempt import Attempt, Options
from stiction.contact.solvers.conic.modes import polish, take_proximal_step
from stiction.contact.solvers.conic.path import ConicBlocks, Path, Try, blocks_of
from stiction.status import Code

Array = NDArray[np.float64]
Answer = tuple[Array, Array, Array, Array]

TRIES = (
    Try(10.0, 0.1, 0.99, 1e-8, 100.0),
    Try(1.0, 0.1, 0.95, 1e-10, 1e3),
    Try(100.0, 0.3, 0.9, 1e-8, 10.0),
    Try(10.0, 0.3, 0.9, 1e-4, 100.0),
    Try(1.0, 0.01, 0.99, 0.0, np.inf),
    Try(1000.0, 0.1, 0.9, 1e-6, 30.0),
)
"""In this order. They differ in where the path is entered and how closely it is followed, and
fail on different problems. Of random bodies the first leaves 1 in 100, all together 1 in 5000;
where mu spans four decades 1 in 150. Pivoting solves those."""

PATH_STEPS = 100
"""Steps along one path. It takes 10 to 50 where it gets through at all."""

LEVELS = (1e-8, 1e-12)
"""tau at which the modes are tried; the path ends with the last. 97 in 100 end with the first."""

CORRECTIONS, CORRECTABLE = 4, 1e-4
"""Times that the model's velocities are corrected (each gains the factor's relative error), and
the certificate below which it is they that are wrong rather than the modes."""

SOFT, STIFF = 10.0, 1e6
"""Stiffness of proximal steps, least and largest. A stiff one needs a start that softer ones have
prepared; the stiffest are for redundant contacts that do not quite agree, whose impulses move at
a constant rate until one of them opens."""

PROXIMAL = 25
"""Proximal steps from the end of a path."""


class Blocked:
    """A problem in blocks, and the way back from their impulses to the problem's own."""

    def __init__(self, scaled: ScaledProblem) -> None:
        problem = scaled.problem
        arrays = problem.arrays
        self.problem, self.cones, self._scaled = problem, scaled.cones, scaled
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
        nc = self.problem.nc
        theta = f[:nc, 0] / self.blocks.steep[:nc]
        return self._scaled.unscale(ScaledImpulses(theta, f[self.rough, 1:]))

    def from_scaled(self, start: ScaledImpulses) -> Array:
        """Impulses f (m, 3) of an earlier answer."""
        theta, phi = start
        f = np.zeros(self.blocks.free.shape)
        f[: len(theta), 0] = theta * self.blocks.steep[: len(theta)]
        f[self.rough, 1:] = phi
        return f

    def corrected(self, f: Array) -> ConicBlocks:
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

    def __init__(self, blocked: Blocked) -> None:
        self.blocked = blocked
        problem = blocked.problem
        self.answer: Answer = blocked.impulses(np.zeros(blocked.blocks.free.shape))
        self.certificate = certify(problem, problem.velocity_from(*self.answer), *self.answer)
        self.last = self.certificate.worst
        self.steps = 0

    @property
    def passed(self) -> bool:
        """Whether it obeys the laws."""
        return self.certificate.passed

    def take(self, f: Array) -> bool:
        """Keeps f (m, 3) if it is better; whether the best answer passes."""
        answer = self.blocked.impulses(f)
        problem = self.blocked.problem
        certificate = certify(problem, problem.velocity_from(*answer), *answer)
        self.last = certificate.worst
        if self.last < self.certificate.worst:
            self.answer, self.certificate = answer, certificate
        return self.certificate.passed

    def improve(self, f: Array) -> bool:
        """Polishes f, correcting the model's velocities; whether an answer passes now."""
        blocks = self.blocked.blocks
        before = np.inf
        for _ in range(CORRECTIONS):
            f, count = polish(blocks, f, self.blocked.weight)
            self.steps += count
            if self.take(f) or not self.last < min(0.5 * before, CORRECTABLE):
                break
            before = self.last
            blocks = self.blocked.corrected(f)
        return self.passed


def solve_by_cones(
    problem: ScaledProblem, start: ScaledImpulses | None, options: Options
) -> Attempt:
    """Impulses under Coulomb's law with the circular cone; SOLVED or ERROR by the certificate.

    start: an earlier answer; it is tried as it is, then Newton's method from its modes.
    """
    best = _find(problem, start)
    normal, tangent, _, box = best.answer
    code = Code.SOLVED if best.passed else Code.ERROR
    return Attempt(problem.scale(normal, tangent, box), code, best.steps)


def _find(problem: ScaledProblem, start: ScaledImpulses | None) -> Best:
    posed = problem.problem
    refuse_tied_rows(posed.box_contact, posed.box_friction, "the conic solver")
    blocked = Blocked(problem)
    best = Best(blocked)
    # Paths that run off overflow before they are given up.
    with np.errstate(over="ignore", invalid="ignore"):
        found = best.passed
        if start is not None and not found:
            f = blocked.from_scaled(start)
            found = best.take(f) or best.improve(f)
        tries = TRIES if blocked.blocks.rows.size else ()
        for how in tries:
            found = found or _follow(blocked, how, best)
    return best


def _follow(blocked: Blocked, how: Try, best: Best) -> bool:
    """Follows one path, trying its modes at each level; whether an answer passes."""
    path = Path(blocked.blocks, how)
    levels = list(LEVELS)
    for _ in range(PATH_STEPS):
        going = path.step()
        best.steps += 1
        if path.tau <= levels[0] or not going:
            levels = [level for level in levels if level < path.tau]
            if best.improve(path.impulses()):
                return True
        if not going or not levels:
            break
    return _approach(blocked, path.impulses(), best)


def _approach(blocked: Blocked, f: Array, best: Best) -> bool:
    """Proximal steps from f, as stiff as they succeed; whether an answer passes."""
    stiffness = SOFT
    for _ in range(PROXIMAL):
        moved, count = take_proximal_step(blocked.blocks, f, stiffness)
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
