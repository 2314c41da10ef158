"""Forces of contacts that last, at the acceleration level, by the law of each contact model.

For the contacts that are held (gap and parting speed zero),

    M a = f + N' f_n + T' f_t + J' f_j + B' f_b
    0 <= f_n  _|_  N a + (dN/dt) v >= 0,     J a + (dJ/dt) v = 0

`frictionless`, `viscous`  Drumwright's algorithm, or Lemke's; viscous forces -mu_v T v are known
`no-slip`   T a + (dT/dt) v = 0 at each held contact with friction, as joints. The paper has this
            model at the velocity level only, since infinite friction may slip (Lynch and Mason);
            here slip is what the rows exclude, and impacts have taken it away before
all others  Baraff's algorithm: static friction where a contact does not slide, dynamic friction
            against the slip where it does; where that takes long, contacts that give and grow
            harder (`baraff/hardening.py`)

Dry friction of joints: a known force against a joint that moves, a box |f_b| <= limit where it does
not. Torsional and rolling friction are seen by Baraff's algorithm, and left out by the others.

(dN/dt) v is a difference of N v between positions a little ahead and behind: with it come the
normal's own rotation, the wandering of a contact over curved surfaces and the motion of both
bodies, for all pairs of geoms. Rows of joints, and of tangents held like joints, may depend on each
other; the differences' noise would make them contradict, so that their rates are projected to
what the rows can agree on.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.accelerations import Slip, grade_accelerations
from stiction.contact.certificate.certificate import Certificate, from_table
from stiction.contact.certificate.laws import Law, Table
from stiction.contact.models.description import Kind, SustainedLaw
from stiction.contact.problem import whitening
from stiction.contact.problem.arrays import Arrays, Whitened
from stiction.contact.problem.cones import DEPENDENT, build_cones, to_impulses
from stiction.contact.problem.scales import weights
from stiction.contact.solvers.baraff.solve import all_sliding
from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.simulate.event_driven.driving import drive
from stiction.simulate.event_driven.snapping import snap_tangents
from stiction.simulate.time_stepping.dependent import DEPENDENT_SHARE
from stiction.status import Code

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


COULOMB = int(Law.COULOMB)
NONE = np.zeros(0)
NO_FORCES = (NONE, np.zeros((0, 2)), NONE)

Factored: TypeAlias = tuple[Whitened, Array, Indices, Array]
"""What `whiten` gives."""


class Loads(NamedTuple):
    """A state with nh held contacts, ne joint rows, nb box rows; rates are d(rows)/dt v."""

    mass: Array  # (nv, nv)
    velocity: Array  # (nv,)
    force: Array  # (nv,)
    normal: Array  # (nh, nv)
    normal_rate: Array  # (nh,)
    tangent: Array  # (nh, 2, nv)
    tangent_rate: Array  # (nh, 2)
    friction: Array  # (nh,)
    sliding: Mask  # (nh,)
    direction: Array  # (nh, 2) of the slip, where sliding
    joint: Array  # (ne, nv)
    joint_rate: Array  # (ne,)
    box: Array  # (nb, nv)
    box_limit: Array  # (nb,)
    box_contact: Indices  # (nb,) held contact, or -1
    box_friction: Array  # (nb,)
    turning: Array  # (nb,) sign of the speed along a row that moves, else 0


class Forces(NamedTuple):
    """What holds the contacts [N, N m]."""

    acceleration: Array  # (nv,)
    normal: Array  # (nh,)
    tangent: Array  # (nh, 2)
    joint: Array  # (ne,)
    box: Array  # (nb,)
    steps: int

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """Normal, tangent and box forces: what a solve is started from."""
        return self.normal, self.tangent, self.box


def solve_sustained(
    law: SustainedLaw, loads: Loads, guess: Forces | None = None
) -> tuple[Forces, Arrays] | None:
    """Forces and the arrays of the problem they solve, of which velocities are accelerations;
    None where no finite force was found (Painleve), or rows contradict each other. guess: forces
    of a state nearby, from which Baraff's algorithm starts if it has the same contacts."""
    arrays = _arrays(law, loads)
    found = _drive(loads, arrays, guess) if law.kind is Kind.DRY else _pivot(law, loads, arrays)
    if found is None or not np.isfinite(found.acceleration).all():
        return None
    return found, arrays


def _arrays(law: SustainedLaw, loads: Loads) -> Arrays:
    nv, nh = len(loads.velocity), len(loads.normal)
    if law.kind is Kind.DRY:
        return dry_arrays(loads, coefficients(law.static), coefficients(law.dynamic))
    force, friction = loads.force, loads.friction
    if law.viscosity > 0.0 and nh:
        rows = loads.tangent.reshape(2 * nh, nv)
        force = force - law.viscosity * (rows.T @ (rows @ loads.velocity))
    joint, rate = loads.joint, loads.joint_rate
    if law.kind is Kind.HOLD:
        grip = friction > 0.0
        tangent = snap_tangents(loads.mass, joint, loads.tangent, friction, DEPENDENT_SHARE)
        joint = np.concatenate([joint, tangent[grip].reshape(-1, nv)])
        rate = np.concatenate([rate, loads.tangent_rate[grip].ravel()])
    return Arrays(
        loads.mass, np.zeros(nv), force, loads.normal, loads.tangent, friction, np.zeros(nh),
        -loads.normal_rate, joint, -agree(joint, rate), loads.box, loads.box_limit,
        loads.box_contact, loads.box_friction,
    )  # fmt: skip


def coefficients(given: Array | None) -> Array:
    """(1,) or (nh,) coefficients of friction in the place of the contacts' own, or (0,)."""
    return NONE if given is None else np.atleast_1d(np.asarray(given, np.float64))


@kernel
def agree(joint: Array, rate: Array) -> Array:
    """(ne,) the part of rates that the rows `joint` (ne, nv) can all have at once."""
    ne, nv = joint.shape
    if ne < 2:
        return rate
    columns = joint.T.copy()
    size = np.zeros(nv)
    for k in range(nv):
        size[k] = np.sqrt((columns[k] ** 2).sum())
    least = DEPENDENT * size.max()
    for k in range(nv):
        if size[k] <= least:
            columns[k] = 0.0
    basis, kept = np.zeros((ne, ne)), np.zeros(nv, np.bool_)
    rank = linear.orthonormal_rows(columns, basis, kept, DEPENDENT)
    out = np.zeros(ne)
    for k in range(rank):
        out += (basis[k] * rate).sum() * basis[k]
    return out


@kernel
def dry_arrays(loads: Loads, static: Array, dynamic: Array) -> Arrays:
    """The problem of dry friction; static, dynamic: `coefficients`."""
    nv, nh = loads.velocity.shape[0], loads.normal.shape[0]
    friction = loads.friction.copy()
    for i in range(nh):
        given = dynamic if loads.sliding[i] else static
        if given.shape[0] > 0:
            friction[i] = given[min(i, given.shape[0] - 1)]
    return Arrays(
        loads.mass, np.zeros(nv), loads.force, loads.normal, loads.tangent, friction, np.zeros(nh),
        -loads.normal_rate, loads.joint, -agree(loads.joint, loads.joint_rate), loads.box,
        loads.box_limit, loads.box_contact, loads.box_friction,
    )  # fmt: skip


def _pivot(law: SustainedLaw, loads: Loads, arrays: Arrays) -> Forces | None:
    """By Drumwright's algorithm, or Lemke's."""
    nh, ne = len(loads.normal), len(loads.joint)
    acceleration, answer = law.solve(arrays)
    if answer.code != Code.SOLVED:
        return None
    tangent = np.zeros((nh, 2))
    if law.kind is Kind.HOLD:
        tangent[loads.friction > 0.0] = answer.equal[ne:].reshape(-1, 2)
    elif law.viscosity > 0.0 and nh:
        tangent = -law.viscosity * (loads.tangent @ loads.velocity)
    box = answer.box if len(answer.box) == len(loads.box) else np.zeros(len(loads.box))
    return Forces(acceleration, answer.normal, tangent, answer.equal[:ne], box, answer.pivots)


@kernel
def whiten(arrays: Arrays, drift: Array) -> Factored:
    """(problem with unit mass, factor of the mass (nv, nv), its envelope (nv,), M^-1 f (nv,), not
    numbers where the mass has no factor);
    drift (nh, 2) is added to the free accelerations along tangents."""
    nv = arrays.normal.shape[1]
    upper, last = np.empty((nv, nv)), np.empty(nv, np.int64)
    free = arrays.force.copy()
    if linear.factorize(arrays.mass, upper, last, 0.0) >= 0:  # rounding has eaten the pivot
        upper[:], last[:], free[:] = np.eye(nv), np.arange(nv), np.nan
    linear.solve(upper, last, free)
    white = whitening.whiten(arrays, upper, last, free)
    for i in range(drift.shape[0]):
        white.free_tangent[i, 0] += drift[i, 0]
        white.free_tangent[i, 1] += drift[i, 1]
    return white, upper, last, free


@kernel
def all_finite(v: Array) -> bool:
    """Whether all entries are numbers."""
    finite = True
    for k in range(v.shape[0]):
        finite = finite and np.isfinite(v[k])
    return bool(finite)


@kernel
def drive_loads(
    loads: Loads, arrays: Arrays, guess: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array, Array, Array, bool, int]:
    """(acceleration, normal, tangent, joint and box forces, whether they were found, steps) by
    Baraff's algorithm from a guess of normal, tangent and box forces, or from empty ones."""
    return drive_whitened(loads, arrays, whiten(arrays, loads.tangent_rate), guess)


@kernel
def drive_whitened(
    loads: Loads, arrays: Arrays, whitened: Factored, guess: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array, Array, Array, bool, int]:
    """`drive_loads` of arrays that `whiten` has seen."""
    nh, ne, nb = arrays.normal.shape[0], arrays.joint.shape[0], arrays.box.shape[0]
    acceleration = whitened[3]
    found, finite = all_finite(acceleration), True
    normal, tangent, joint, box = np.zeros(nh), np.zeros((nh, 2)), np.zeros(ne), np.zeros(nb)
    steps = 0
    if found and nh + ne + nb > 0:
        white, upper, last, _ = whitened
        acceleration, normal, tangent, joint, box, code, steps = drive(
            arrays, white, (upper, last), (loads.sliding, loads.direction, loads.turning), guess
        )
        found, finite = code == Code.SOLVED, all_finite(acceleration)
    return acceleration, normal, tangent, joint, box, found and finite, steps


@kernel
def grade_whitened(
    loads: Loads, arrays: Arrays, whitened: Factored, acceleration: Array, f_n: Array, f_t: Array,
    f_j: Array, f_b: Array,
) -> Table:  # fmt: skip
    """The grade of forces of dry friction, of arrays that `whiten` has seen."""
    slip = Slip(loads.tangent_rate, loads.sliding, loads.direction, loads.turning)
    return grade_accelerations(
        COULOMB, arrays, weights(whitened[0]), whitened[3], slip, acceleration, f_n, f_t, f_j, f_b
    )


def _drive(loads: Loads, arrays: Arrays, guess: Forces | None) -> Forces | None:
    """By Baraff's algorithm; where that fails, by `_slide`."""
    *found, solved, steps = drive_loads(loads, arrays, _parts(guess))
    return Forces._make((*found, steps)) if solved else _slide(loads, arrays)


def _parts(guess: Forces | None) -> tuple[Array, Array, Array]:
    return NO_FORCES if guess is None else guess.parts


def _slide(loads: Loads, arrays: Arrays) -> Forces | None:
    """Forces where all that has friction slides, by pivoting: such a problem is an LCP in the
    normal forces alone, of which driving may miss the answer, or find a ray instead."""
    if not loads.sliding[loads.friction > 0.0].all() or len(loads.box):
        return None
    white, upper, last, _ = whiten(arrays, loads.tangent_rate)
    cones, joints = build_cones(white, arrays)
    found = all_sliding(cones, loads.direction)
    if found is None:
        return None
    normal, tangent, joint, box = to_impulses(white, cones, joints, *found)
    acceleration = whitening.momentum_change(arrays, 1.0, normal, tangent, joint, box)
    linear.solve(upper, last, acceleration)
    return Forces(acceleration, normal, tangent, joint, box, 0)


@kernel
def grade_sustained(
    law: int, arrays: Arrays, slip: Slip, acceleration: Array, f_n: Array, f_t: Array, f_j: Array,
    f_b: Array,
) -> Table:  # fmt: skip
    """`grade_accelerations` from the arrays; one call, as `drive`."""
    white, _, _, free = whiten(arrays, np.zeros_like(f_t))
    return grade_accelerations(
        law, arrays, weights(white), free, slip, acceleration, f_n, f_t, f_j, f_b
    )


def certify_sustained(
    law: SustainedLaw, loads: Loads, arrays: Arrays, forces: Forces
) -> Certificate:
    """The certificate of forces that last: velocities are accelerations, impulses forces."""
    tangent, joint = forces.tangent, forces.joint
    if law.kind is not Kind.DRY:  # what is not held like a joint is a known force
        if law.kind is Kind.HOLD:
            joint = np.concatenate([joint, tangent[loads.friction > 0.0].ravel()])
        tangent = np.zeros_like(tangent)
    kind = Law.COULOMB if law.kind is Kind.DRY else Law.FRICTIONLESS
    slip = Slip(loads.tangent_rate, loads.sliding, loads.direction, loads.turning)
    table = grade_sustained(
        int(kind), arrays, slip, forces.acceleration, forces.normal, tangent, joint, forces.box
    )
    return from_table(kind, table)


@kernel
def hold_loads(
    loads: Loads, static: Array, dynamic: Array, guess: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array, Array, Array, bool, int, Table]:
    """`drive_loads` of dry friction, and its grade, in one call."""
    arrays = dry_arrays(loads, static, dynamic)
    whitened = whiten(arrays, loads.tangent_rate)
    acceleration, normal, tangent, joint, box, found, steps = drive_whitened(
        loads, arrays, whitened, guess
    )
    table = grade_whitened(loads, arrays, whitened, acceleration, normal, tangent, joint, box)
    return acceleration, normal, tangent, joint, box, found, steps, table


def hold_sustained(
    law: SustainedLaw, loads: Loads, guess: Forces | None = None
) -> tuple[Forces, Certificate] | None:
    """`solve_sustained` and `certify_sustained`."""
    if law.kind is Kind.DRY:
        *forces, found, steps, table = hold_loads(
            loads, coefficients(law.static), coefficients(law.dynamic), _parts(guess)
        )
        if found:
            return Forces._make((*forces, steps)), from_table(Law.COULOMB, table)
        return hold_otherwise(law, loads)
    solved = solve_sustained(law, loads, guess)
    if solved is None:
        return None
    return solved[0], certify_sustained(law, loads, solved[1], solved[0])


def hold_otherwise(law: SustainedLaw, loads: Loads) -> tuple[Forces, Certificate] | None:
    """Forces of dry friction, and their certificate, where `hold_loads` has found none."""
    arrays = _arrays(law, loads)
    found = _slide(loads, arrays)
    if found is None or not np.isfinite(found.acceleration).all():
        return None
    return found, certify_sustained(law, loads, arrays, found)
