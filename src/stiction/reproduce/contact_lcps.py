"""The contact LCP of Stewart and Trinkle on a problem's own arrays (Lloyd eq. (8)), as the papers
pose it: for experiments, tests and those with an LCP solver of their own.

`contact/solvers/coulomb/polyhedral.py` has the matrix and its symbols; that file takes joints and
box rows in as well, which have no place here. Facets at the angles 2 pi j / d inscribe the circle:
a contact resists with at least cos(pi / d) mu, its full mu only along a facet.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

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
