"""The contact LCP of Stewart and Trinkle, assembled (Lloyd eq. (8)).

With n contacts, d friction directions each, and the columns of N and D divided by the
Cholesky factor of the mass, `w = M z + q, 0 <= z _|_ w >= 0` reads

    [ nu    ]   [ N'N   N'D   0 ] [ theta  ]   [ N v - b ]
    [ sigma ] = [ D'N   D'D   E ] [ phi    ] + [ D v     ]
    [ gamma ]   [ mu    -E'   0 ] [ lambda ]   [ 0       ]

theta (n,)    normal impulses [N s];      nu     parting speeds above their bound [m/s]
phi (n d,)    impulses along the facets;  sigma  sliding speeds along them, plus lambda
lambda (n,)   sliding speeds [m/s];       gamma  what the cone has left [N s]

v is the velocity without contact, phi goes contact by contact, E sums a contact's facets.
M is copositive for mu >= 0, so with b <= 0 a solution exists and, in exact arithmetic, Lemke's
method finds one (Stewart and Trinkle, Anitescu and Potra). Facets at the angles 2 pi j / d
inscribe the circle: a contact resists with at least cos(pi / d) mu, its full mu only along a
facet.

Bilateral joints and box rows have no place in this form. `assemble` takes the problem with joints
eliminated; there a box row is a unit of two facets, phi, with gamma = limit + mu theta - sum phi,
mu its ratio to the contact's impulse or zero: torsional and rolling friction fit in.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from stiction.contact.problem.cones import Cones
from stiction.errors import InvalidInput

Array = NDArray[np.float64]


class Contacts(Protocol):
    """What is read here of a contact problem; `stiction.ContactProblem` has it all."""

    @property
    def mass(self) -> Array:
        """(nv, nv) inertia [kg, kg m^2]."""

    @property
    def velocity(self) -> Array:
        """(nv,) before the step [m/s, rad/s]."""

    @property
    def force(self) -> Array:
        """(nv,) applied [N, N m]."""

    @property
    def dt(self) -> float:
        """Length of the step [s]."""

    @property
    def normal(self) -> Array:
        """(nc, nv) parting speed per velocity."""

    @property
    def tangent(self) -> Array:
        """(nc, 2, nv) sliding velocity per velocity."""

    @property
    def friction(self) -> Array:
        """(nc,) mu >= 0, finite."""

    @property
    def bound(self) -> Array:
        """(nc,) least parting speed after the step [m/s]."""


def directions(facets: int) -> Array:
    """(facets, 2) unit vectors in the tangent plane, evenly spaced from the first tangent."""
    if facets < 3:
        raise InvalidInput("facets", f"is {facets}, must be at least 3 to span a plane")
    angle = 2 * np.pi * np.arange(facets) / facets
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def stewart_trinkle(problem: Contacts, facets: int) -> tuple[Array, Array]:
    """M (n, n) and q (n,) of the LCP, n = nc (facets + 2), in the order theta, phi, lambda."""
    spread = directions(facets)
    mu = _finite_friction(problem)
    contacts, size = len(problem.normal), problem.normal.shape[1]
    facet_rows = spread @ problem.tangent  # (nc, facets, nv)
    rows = np.concatenate([problem.normal, facet_rows.reshape(-1, size)])
    gram, drift = _contact_space(problem, rows)
    drift[:contacts] -= problem.bound

    moving = len(rows)
    matrix = np.zeros((moving + contacts, moving + contacts))
    matrix[:moving, :moving] = gram
    sums = np.repeat(np.eye(contacts), facets, axis=0)
    matrix[contacts:moving, moving:] = sums
    matrix[moving:, contacts:moving] = -sums.T
    matrix[moving:, :contacts] = np.diag(mu)
    return matrix, np.concatenate([drift, np.zeros(contacts)])


def frictionless(problem: Contacts) -> tuple[Array, Array]:
    """M (nc, nc) and q (nc,) of the LCP of the normals alone; symmetric, semidefinite."""
    gram, drift = _contact_space(problem, problem.normal)
    return gram, drift - problem.bound


def unpack(z: Array, contacts: int, facets: int) -> tuple[Array, Array]:
    """Normal (nc,) and tangent (nc, 2) impulses [N s] of a solution of `stewart_trinkle`."""
    expected = contacts * (facets + 2)
    if z.shape != (expected,):
        raise InvalidInput("z", f"must be ({expected},)", z.shape)
    along = z[contacts : contacts * (facets + 1)].reshape(contacts, facets)
    return z[:contacts].copy(), along @ directions(facets)


def assemble(p: Cones, spread: Array) -> tuple[Array, Array]:
    """M and q of the LCP of a scaled problem, joints eliminated, facets (u, d, 2) `spread`.

    Order: theta, phi (unit by unit), lambda. A contact may have several units. An interval has two
    facets; the rest of its d are rows of zeros that no velocity makes negative.
    """
    units, facets, _ = spread.shape
    contacts, size = p.normal.shape
    facet_rows = np.einsum("udt,utr->udr", spread, p.rows).reshape(-1, size)
    rows = np.concatenate([p.normal, facet_rows])
    free = np.einsum("udt,ut->ud", spread, p.free).ravel()
    moving = len(rows)
    matrix = np.zeros((moving + units, moving + units))
    matrix[:moving, :moving] = rows @ rows.T
    real = np.abs(spread).max(axis=2).ravel() > 0.0
    owner = np.repeat(np.arange(units), facets)
    matrix[contacts + np.flatnonzero(real), moving + owner[real]] = 1.0
    matrix[moving + owner[real], contacts + np.flatnonzero(real)] = -1.0
    hinged = np.flatnonzero(p.parent >= 0)
    matrix[moving + hinged, p.parent[hinged]] = p.mu[hinged]
    return matrix, np.concatenate([p.free_normal, free, p.limit])


def scaled_impulses(z: Array, contacts: int, spread: Array) -> tuple[Array, Array]:
    """theta (nc,) and phi (u, 2) of a solution of `assemble`."""
    units, facets, _ = spread.shape
    along = z[contacts : contacts + units * facets].reshape(units, facets)
    return z[:contacts].copy(), np.einsum("ud,udt->ut", along, spread)


def _contact_space(problem: Contacts, rows: Array) -> tuple[Array, Array]:
    """Inverse inertia rows M^-1 rows' [1/kg] and the velocity without contact [m/s]."""
    factor = cho_factor(problem.mass, lower=True)
    half = solve_triangular(factor[0], rows.T, lower=True)
    free = problem.velocity + cho_solve(factor, problem.dt * problem.force)
    return half.T @ half, rows @ free


def _finite_friction(problem: Contacts) -> Array:
    mu = np.asarray(problem.friction, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(mu))
    if wrong.size:
        first = int(wrong[0])
        raise InvalidInput("friction", f"is {mu[first]}, facets need a finite one", None, first)
    return mu
