"""Baraff's contact forces with friction (SIGGRAPH 1994, sections 5 and 6).

Sustained contact, at the acceleration level. With a_n = N a + (dN/dt) v and a_t likewise:

    M a = f + N' f_n + T' f_t + J' f_j
    0 <= f_n  _|_  a_n >= 0                             his (15)
    static   |f_t| <= mu_s f_n, against a_t, equal where a_t != 0      (16), (21)
    dynamic   f_t = -mu_d f_n T v / |T v|               (24)
    J a + (dJ/dt) v = 0

Contacts are taken one after the other; each force is driven until its condition holds, and all
conditions met before are kept (`sets.py` and `driving.py` have the sets and the steps). Bilateral
constraints are clamped for ever: their rows' span is projected out of all others beforehand,
which is the same elimination.

Where no finite force exists (Painleve: dynamic friction can make A indefinite) the driven
force grows without bound. That is a result: Status.RAY, with the direction of an impulse.

`solve_by_driving` is his "first-order world", where force and velocity are related and friction is
static only: the same conditions on impulses and v+. That is the contact problem of all other
models here, Coulomb's law, and it always has a solution.

How it can fail: RAY (see above; for static friction a ray can only come of frozen directions),
CYCLE (rounds ran out), PIVOT_LIMIT, SINGULAR (held rows that the answering forces cannot keep).
Neither he nor we can prove that static friction ends; the residual, recomputed from the arrays,
decides whether an answer is called solved.

Where this departs from the paper:
- 3D: while friction is at its edge its direction is frozen, as in his 5.6, which leaves the
  direction of friction open to half a turn. When all conditions hold, Newton's method turns the
  directions against the slip; conditions that this breaks are established again. x and y are
  chosen against the slip and across it, not by the frame.
- Where slip turns square to frozen friction in 3D, the friction is given up and established
  later, since it cannot stick while it slips across.
- Friction that was given up goes on from where it is, not from zero: inward to its edge if it
  is beyond, else against the slip.
- The worst normal is driven first. An attempt that fails is followed by others, the contacts
  in another order.
- A ray is no proof that no solution exists. Where all contacts slide, the problem is an LCP in
  the normal forces alone, as in his earlier paper, and `stiction.lcp` is asked as well.
- A dependent row is never held: the others hold it. (His remark that none is met is about
  exact arithmetic.)
- The matrix of the held rows, at most nv, is built and factorized at each step: its columns
  change with the sets, and fresh values do not collect rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiction import lcp
from stiction.contact.certificate.accelerations import Slip, grade_accelerations
from stiction.contact.certificate.laws import Law
from stiction.contact.problem.cones import Cones, build_cones, to_impulses
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.problem.scaled import ScaledImpulses, ScaledProblem
from stiction.contact.solvers.attempt import Attempt, Options
from stiction.contact.solvers.baraff import driving
from stiction.errors import InvalidInput
from stiction.status import Code, Status
from stiction.tolerances import RESIDUAL

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SLIDING = 1e-9
"""Tangential speed, relative to the speeds it is the difference of, above which friction is
dynamic. Rounding leaves 1e-16; what a simulation calls still is its own choice: give the
mask."""

NOTHING = ScaledImpulses(np.empty(0), np.empty((0, 2)))
"""No earlier answer."""

DRIVING_ROUNDS = 30
"""Rounds of driving and refreshing in one attempt; the median is one or two."""

ORDERS = 6
"""Orders of contacts tried. Of 5200 problems of the papers' families the first solved 5172, two
5193, six 5198."""

WARM_STEPS = 4
"""Steps per contact that a start from the impulses of an earlier problem may take, as many as one
from nothing takes; where they are no start it would go on for a hundred times that."""


class Impulse(NamedTuple):
    """Direction of an impulse, its largest normal part 1 [N s per N s]."""

    normal: Array  # (nc,)
    tangent: Array  # (nc, 2)
    joint: Array  # (nj,)


@dataclass(frozen=True, eq=False, slots=True)
class BaraffResult:
    """Accelerations and forces of sustained contact: NaN where a ray ended the method; with any
    other status than SOLVED, where it stopped."""

    acceleration: Array
    """(nv,) [m/s^2, rad/s^2]."""
    normal_force: Array
    """(nc,) [N]."""
    friction_force: Array
    """(nc, 2) [N]."""
    joint_force: Array
    """(nj,) [N, N m]."""
    sliding: Mask
    """(nc,) where friction was taken as dynamic."""
    status: Status
    """SOLVED; RAY: no finite force, see `impulse`; else how the method stopped short."""
    impulse: Impulse | None
    """Of RAY: an impulse along it takes the contact out of its impasse."""
    pivots: int
    """Steps taken."""
    rounds: int
    """Rounds of driving and refreshing."""
    residual: float
    """Largest scaled violation of a condition, from the arrays given; inf without a solution."""


def solve_by_driving(
    problem: ScaledProblem, start: ScaledImpulses | None, options: Options
) -> Attempt:
    """Impulses under Coulomb's law on the circular cone, all friction static."""
    cones = problem.cones
    units = len(cones.mu)
    theta, phi, code, steps, _ = driving.solve_driving(
        cones,
        np.zeros(units, np.bool_),
        np.zeros((units, 2)),
        *(NOTHING if start is None else start),
        driving.step_limit(len(cones.normal), units),
        DRIVING_ROUNDS,
        ORDERS,
    )
    found = ScaledImpulses(theta, phi)
    if code == Code.RAY:  # a direction, not impulses
        found = problem.zeros()
    return Attempt(found, Code(code), int(steps))


def slip_directions(tangents: Array, velocity: Array, mask: ArrayLike | None) -> tuple[Array, Mask]:
    """(nc, 2) direction of the tangential velocity, zero at rest, and (nc,) where it slides."""
    slip = tangents @ velocity
    size = np.hypot(slip[:, 0], slip[:, 1])
    around = (np.abs(tangents) @ np.abs(velocity)).sum(axis=1)
    moves = size > SLIDING * around
    if mask is not None:
        given = np.asarray(mask, dtype=np.bool_)
        if given.shape != moves.shape:
            raise InvalidInput("sliding", f"must have shape {moves.shape}", given.shape)
        still = np.flatnonzero(given & (size == 0.0))
        if still.size:
            reason = "slides, but its tangential velocity is zero: friction has no direction"
            raise InvalidInput("sliding", reason, None, int(still[0]))
        moves = given
    return np.divide(slip, size[:, None], out=np.zeros_like(slip), where=size[:, None] > 0), moves


def solve_accelerations(
    problem: ContactProblem, drift: Array, slides: Mask, direction: Array
) -> BaraffResult:
    """The result for a problem whose velocities are accelerations; drift (nc, 2) is added to
    the tangential ones."""
    whitened = problem.whitened._replace(free_tangent=problem.whitened.free_tangent + drift)
    cones, joints = build_cones(whitened, problem.arrays)
    theta, phi, code, steps, rounds = driving.solve_driving(
        cones,
        np.ascontiguousarray(slides[cones.parent]),
        np.ascontiguousarray(-direction[cones.parent]),
        *NOTHING,
        driving.step_limit(problem.nc, len(cones.mu)),
        DRIVING_ROUNDS,
        ORDERS,
    )
    if code == Code.RAY and slides[cones.parent].all():
        other = all_sliding(cones, direction)
        if other is not None:
            code, (theta, phi) = Code.SOLVED, other
    ray = code == Code.RAY
    # Without dynamic friction a solution exists: a ray came of frozen directions, and says nothing.
    status = Status.from_code(code) if slides.any() or not ray else Status.ERROR
    if ray:  # a direction moves no joint: only the contacts' part of their forces is due
        joints = (*joints[:3], np.zeros_like(joints[3]))
    normal, tangent, joint, _ = to_impulses(whitened, cones, joints, theta, phi)
    if ray:
        top = max(np.abs(normal).max(initial=0.0), np.finfo(float).tiny)
        return BaraffResult(
            np.full(problem.nv, np.nan), np.full_like(normal, np.nan),
            np.full_like(tangent, np.nan), np.full_like(joint, np.nan), slides, status,
            Impulse(normal / top, tangent / top, joint / top) if slides.any() else None,
            steps, rounds, np.inf,
        )  # fmt: skip
    acceleration = problem.velocity_from(normal, tangent, joint)
    result = BaraffResult(
        acceleration, normal, tangent, joint, slides, status, None, steps, rounds, 0.0
    )
    residual = _residual(problem, drift, direction, result)
    if residual <= RESIDUAL:
        status = Status.SOLVED
    elif status is Status.SOLVED:
        status = Status.ERROR
    return replace(result, status=status, residual=residual)


def all_sliding(cones: Cones, direction: Array) -> tuple[Array, Array] | None:
    """Forces of contacts that all slide: an LCP in the normal forces alone, not symmetric."""
    along = -cones.mu[:, None] * direction[cones.parent]  # (u, 2)
    columns = cones.normal.copy()
    columns[cones.parent] += (along[:, :, None] * cones.rows).sum(axis=1)
    found = lcp.solve(cones.normal @ columns.T, cones.free_normal)
    if found.status is not Status.SOLVED:
        return None
    return found.z, along * found.z[cones.parent, None]


def _residual(
    problem: ContactProblem, drift: Array, direction: Array, result: BaraffResult
) -> float:
    """Largest scaled violation of a condition by the accelerations and forces of `result`."""
    slip = Slip(drift, result.sliding, direction, np.zeros(problem.nb))
    table = grade_accelerations(
        int(Law.COULOMB), problem.arrays, problem.scales.weight, problem.kernel_free, slip,
        result.acceleration, result.normal_force, result.friction_force, result.joint_force,
        np.zeros(problem.nb),
    )  # fmt: skip
    return float(table.scaled.max())
