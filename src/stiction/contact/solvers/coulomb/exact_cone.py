"""From a problem's arrays to a graded answer in one compiled call: the first rungs of `Coulomb`.

Whitening, scaling, the path, Newton's method, the way back and the certificate run without
returning to Python. What does not pass here is left to the other rungs of `models/coulomb.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.grading import grade_dense
from stiction.contact.certificate.laws import Law, Table
from stiction.contact.certificate.modes import read_dense_modes
from stiction.contact.problem.arrays import Array, Arrays
from stiction.contact.problem.cones import build_cones, from_impulses, to_impulses
from stiction.contact.problem.dense_blocks import from_arrays
from stiction.contact.problem.scales import measure_blocks, weights
from stiction.contact.problem.whitening import momentum_change, whiten
from stiction.contact.solvers.coulomb.lloyd import facet_directions, follow_contact_path
from stiction.contact.solvers.coulomb.newton import newton, velocities
from stiction.kernels.compile import kernel
from stiction.kernels.linear import solve
from stiction.status import Code

SEED = 4
"""Facets from which Newton's method starts: enough for the modes, fewest for the pivots."""

FACET_ROUNDS = 8
"""Rounds at most: the second turns the facets, each later one doubles them too, to 256. In
Lloyd's families one is enough for 99 of 100; random rows with mu of 10 may need a fine polygon."""

STIFFEST = 1e4
"""Largest step of Newton's projections; 1, 1e3 and 1e4 are tried. Where bodies are jammed,
impulses are thousands of times what the load asks for, and a step of one would let them drown
the slip: of random rows on which 1 fails, the others solve three in four."""

NEWTON_STEPS = 60
"""Newton steps per round, over all candidate sets."""

CONVERGED = 1e-11
"""Residual of the scaled laws that is left to the certificate to judge."""


class Outcome(NamedTuple):
    """What one compiled solve returns; arrays as in `ContactSolution`."""

    velocity: Array
    normal: Array
    tangent: Array
    joint: Array
    box: Array
    modes: NDArray[np.int8]
    table: Table
    code: np.int64
    pivots: int
    steps: int
    rounds: int


@kernel
def pivot_limit(contacts, units):
    """Pivots after which a path is given up; it takes one or two per contact and unit."""
    return 100 + 20 * (contacts + units)


@kernel
def solve_exact(p, theta, phi, warm, limit):
    """(code, pivots, steps, rounds): theta (n,), phi (u, 2) of a scaled problem (`Cones`), on
    the exact cone.

    warm: theta and phi come with a guess, and Newton's method is tried from there first;
    rounds = 0 says that it was enough.
    """
    units = p.parent.shape[0]
    turn = np.zeros(units)
    circle = np.int64(0)  # a literal would have `newton` compiled twice
    taken = 0
    pivots = 0
    if warm:
        residual, taken = newton(p, theta, phi, NEWTON_STEPS, turn, circle, 1.0)
        if residual <= CONVERGED:
            return Code.SOLVED, 0, taken, 0
    v = np.empty(p.normal.shape[1])
    nu = np.empty(p.normal.shape[0])
    slip = np.empty((units, 2))
    for attempt in range(FACET_ROUNDS):
        directions = facet_directions(p.flat, SEED << max(0, attempt - 1), turn)
        code, more = follow_contact_path(p, directions, True, limit, theta, phi)
        pivots += more
        if code != Code.SOLVED:
            return code, pivots, taken, attempt + 1
        seed_theta, seed_phi = theta.copy(), phi.copy()
        rho = 1.0
        while rho <= STIFFEST:
            theta[:], phi[:, :] = seed_theta, seed_phi
            residual, steps = newton(p, theta, phi, NEWTON_STEPS, turn, circle, rho)
            taken += steps
            if residual <= CONVERGED:
                return Code.SOLVED, pivots, taken, attempt + 1
            rho *= 1e3 if rho == 1.0 else 10.0
        velocities(p, theta, phi, v, nu, slip)
        for u in range(units):
            turn[u] = np.arctan2(phi[u, 1] - slip[u, 1], phi[u, 0] - slip[u, 0])
    return Code.ERROR, pivots, taken, FACET_ROUNDS


@kernel
def solve_arrays(
    arrays: Arrays, dt, facets, upper, last, v_free, warm, guess
):  # fmt: skip
    """`Outcome` of a problem with mass; upper, last: its factor, v_free: velocity without contacts.

    facets: 0 for the exact cone. warm: guess = (normal, tangent, box) impulses are tried first.
    """
    whitened = whiten(arrays, upper, last, v_free)
    cones, joints = build_cones(whitened, arrays)
    n, units = cones.normal.shape[0], cones.parent.shape[0]
    theta = np.zeros(n)
    phi = np.zeros((units, 2))
    turn = np.zeros(units)
    limit = pivot_limit(n, units)
    if warm:
        theta, phi = from_impulses(cones, guess[0], guess[1], guess[2])
    if facets == 0:
        code, pivots, steps, rounds = solve_exact(cones, theta, phi, warm, limit)
    else:
        code, pivots, steps, rounds = Code.ERROR, 0, 0, 1
        if warm:
            residual, steps = newton(cones, theta, phi, NEWTON_STEPS, turn, facets, 1.0)
            if residual <= CONVERGED:
                code, rounds = Code.SOLVED, 0
        if code != Code.SOLVED:
            directions = facet_directions(cones.flat, facets, turn)
            code, pivots = follow_contact_path(cones, directions, True, limit, theta, phi)
    f_n, f_t, f_j, f_b = to_impulses(whitened, cones, joints, theta, phi)
    velocity = momentum_change(arrays, dt, f_n, f_t, f_j, f_b)
    solve(upper, last, velocity)
    velocity += arrays.velocity
    blocks = from_arrays(arrays, dt)
    scales = measure_blocks(blocks, weights(whitened), v_free)
    table = grade_dense(
        np.int64(Law.COULOMB), facets, blocks, scales, np.empty((0, 0)), velocity,
        f_n, f_t, f_j, f_b,
    )  # fmt: skip
    modes = read_dense_modes(blocks, scales.own, velocity, f_n)
    return Outcome(
        velocity, f_n, f_t, f_j, f_b, modes, table, np.int64(code), pivots, steps, rounds
    )  # fmt: skip
