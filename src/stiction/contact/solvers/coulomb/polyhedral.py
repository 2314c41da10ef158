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

Bilateral joints and box rows have no place in that form. `assemble` takes the problem with joints
eliminated; there a box row is a unit of two facets, phi, with gamma = limit + mu theta - sum phi,
mu its ratio to the contact's impulse or zero: torsional and rolling friction fit in.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.cones import Cones

Array = NDArray[np.float64]


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
