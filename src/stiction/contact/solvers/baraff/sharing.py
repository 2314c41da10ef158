"""Forces that hold all that touches, shared among contacts: where Baraff's driving begins.

Contacts whose rows depend on each other can share a load in many ways, and with friction the ways
differ in what they hold: a bar between two pads, each touching it in two points, does not turn if
both points press, and turns about one of them if that one bears all. Both obey every law, and
their accelerations differ: Coulomb's law does not choose. Driving one contact after the other gives
all to the first. Here the load is shared first: a minimum of

    |rows' f|^2 / 2 + f . free        over forces f within their cones

has no acceleration along any row where such forces exist, and the method of gradients, begun at no
force, tends to one near the least in size. Accelerated by Nesterov's momentum, begun again where it
leads uphill. Symbols: `cones.py`. Where no forces hold everything, or something slides, it says so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.cones import Cones
from stiction.kernels.compile import kernel, lean
from stiction.kernels.dense import row_dot

Array = NDArray[np.float64]

SHARE_STEPS = 100
"""Steps at most: enough for what a few bodies share; of more driving starts without a guess."""

LEFT_UNHELD = 1e-2
"""Acceleration that may be left, of the load: Newton's method takes it out where the sets are
right."""


@lean
def _project(p: Cones, theta: Array, phi: Array) -> None:
    """The nearest forces within each contact's cone; those of intervals within their limits."""
    for i in range(theta.shape[0]):
        first = p.first[i]
        if first < p.first[i + 1] and not p.flat[first]:
            mu, size = p.mu[first], np.hypot(phi[first, 0], phi[first, 1])
            if size > mu * theta[i]:
                pressed = max(theta[i] + mu * size, 0.0) / (1.0 + mu * mu)
                theta[i] = pressed
                for k in range(2):
                    phi[first, k] = mu * pressed * phi[first, k] / size
        theta[i] = max(theta[i], 0.0)
    for u in range(phi.shape[0]):
        if p.flat[u]:
            bears = theta[p.parent[u]] if p.parent[u] >= 0 else 0.0
            most = p.limit[u] + p.mu[u] * bears
            phi[u, 0] = min(max(phi[u, 0], -most), most)


@lean
def _slope(p: Cones, theta: Array, phi: Array, v: Array, by_theta: Array, by_phi: Array) -> float:
    """Accelerations along all rows into by_theta and by_phi; the largest. Overwrites v (r,)."""
    n, r = p.normal.shape
    units = phi.shape[0]
    rows = p.rows.reshape((2 * units, r))
    for k in range(r):
        v[k] = 0.0
    for i in range(n):
        for k in range(r):
            v[k] += theta[i] * p.normal[i, k]
    for u in range(units):
        for k in range(r):
            v[k] += phi[u, 0] * rows[2 * u, k] + phi[u, 1] * rows[2 * u + 1, k]
    most = 0.0
    for i in range(n):
        by_theta[i] = p.free_normal[i] + row_dot(p.normal, i, v)
        most = max(most, abs(by_theta[i]))
    for u in range(units):
        for k in range(2):
            by_phi[u, k] = p.free[u, k] + row_dot(rows, 2 * u + k, v)
            most = max(most, abs(by_phi[u, k]))
    return most


@kernel
def share_load(p: Cones, fixed: NDArray[np.bool_]) -> tuple[Array, Array, bool]:
    """(theta, phi, whether they hold all rows): forces of which each contact bears its share; fixed
    (u,): units with dynamic friction."""
    n, r = p.normal.shape
    units = p.mu.shape[0]
    theta, phi = np.zeros(n), np.zeros((units, 2))
    if fixed.any() or n < 2:
        return theta, phi, False
    ahead, ahead_phi = np.zeros(n), np.zeros((units, 2))
    before, before_phi = np.zeros(n), np.zeros((units, 2))
    by_theta, by_phi, v = np.zeros(n), np.zeros((units, 2)), np.zeros(r)
    holds = _descend(p, theta, phi, ahead, ahead_phi, before, before_phi, by_theta, by_phi, v)
    if holds:
        return ahead, ahead_phi, True
    return theta, phi, False


@lean
def _descend(
    p: Cones, theta: Array, phi: Array, ahead: Array, ahead_phi: Array, before: Array,
    before_phi: Array, by_theta: Array, by_phi: Array, v: Array,
) -> bool:  # fmt: skip
    """Whether forces that hold all rows were found: then they are in `ahead`, else the last ones in
    theta and phi. These start as zeros; all other arrays are work."""
    n, units = theta.shape[0], phi.shape[0]
    step, momentum = 1.0 / (n + 2.0 * units), 1.0  # over the trace: rows have length one at most
    for _ in range(SHARE_STEPS):
        if _slope(p, ahead, ahead_phi, v, by_theta, by_phi) <= LEFT_UNHELD:
            return True
        for i in range(n):
            before[i], theta[i] = theta[i], ahead[i] - step * by_theta[i]
        for u in range(units):
            for k in range(2):
                before_phi[u, k], phi[u, k] = phi[u, k], ahead_phi[u, k] - step * by_phi[u, k]
        _project(p, theta, phi)
        rise = 0.0
        for i in range(n):
            rise += by_theta[i] * (theta[i] - before[i])
        for u in range(units):
            for k in range(2):
                rise += by_phi[u, k] * (phi[u, k] - before_phi[u, k])
        if rise > 0.0:
            momentum = 1.0
        then = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        share = (momentum - 1.0) / then
        momentum = then
        for i in range(n):
            ahead[i] = theta[i] + share * (theta[i] - before[i])
        for u in range(units):
            for k in range(2):
                ahead_phi[u, k] = phi[u, k] + share * (phi[u, k] - before_phi[u, k])
        _project(p, ahead, ahead_phi)
    return False
