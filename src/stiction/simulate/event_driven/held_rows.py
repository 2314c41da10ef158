"""Rows of the contacts that a phase holds, at a later state of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


@kernel
def held_spins(
    place: Indices, held: Indices, first_contact: Indices, contact: Indices
) -> tuple[Indices, Indices, Indices]:
    """(rows (n,), first (n,), number (n,)) of torsional and rolling friction at held contacts:
    where they are at a state, where they were at the start of the phase, and the number of
    their contact among the held ones that are still there.

    place (nh,): where held contacts are; held (nh,): where they were; contact of each row (ns,).
    """
    size = contact.shape[0]
    rows, first = np.empty(size, np.int64), np.empty(size, np.int64)
    number = np.empty(size, np.int64)
    n, kept = 0, 0
    for i in range(place.shape[0]):
        if place[i] < 0:
            continue
        old = np.searchsorted(first_contact, held[i])
        new = np.searchsorted(contact, place[i])
        while (
            new < size
            and contact[new] == place[i]
            and old < first_contact.shape[0]
            and first_contact[old] == held[i]
        ):
            rows[n], first[n], number[n] = new, old, kept
            n, new, old = n + 1, new + 1, old + 1
        kept += 1
    return rows[:n].copy(), first[:n].copy(), number[:n].copy()


@kernel
def held_rows(
    place: Indices, normal: Array, tangent: Array, friction: Array, qvel: Array, sliding: Mask,
    direction: Array, steady: Mask, least: Array,
) -> tuple[Indices, Array, Array, Array, Mask, Array]:  # fmt: skip
    """(at (n,), normal (n, nv), tangent (n, 2, nv), friction (n,), sliding (n,), direction (n, 2))
    of held contacts at a state; place (nh,): where they are in its rows, or -1.

    sliding, direction (nh, 2): at the start of the phase, kept where `steady` (nh,). A slip that is
    slower than `least` (nh,) along its first direction, or has turned round, tends to that
    direction: else stages of the integrator on either side of a stop would disagree, and it could
    not be located.
    """
    nv = qvel.shape[0]
    n = 0
    for i in range(place.shape[0]):
        n += place[i] >= 0
    at = np.empty(n, np.int64)
    normals, tangents = np.empty((n, nv)), np.empty((n, 2, nv))
    mu, slides, along = np.empty(n), np.empty(n, np.bool_), np.zeros((n, 2))
    k = 0
    for i in range(place.shape[0]):
        j = place[i]
        if j < 0:
            continue
        at[k], mu[k], slides[k] = j, friction[j], sliding[i]
        s0, s1 = 0.0, 0.0
        for a in range(nv):
            normals[k, a] = normal[j, a]
            tangents[k, 0, a], tangents[k, 1, a] = tangent[j, 0, a], tangent[j, 1, a]
            s0 += tangent[j, 0, a] * qvel[a]
            s1 += tangent[j, 1, a] * qvel[a]
        if slides[k] and steady[i]:
            along[k, 0], along[k, 1] = direction[i, 0], direction[i, 1]
        elif slides[k]:
            lack = max(least[i] - s0 * direction[i, 0] - s1 * direction[i, 1], 0.0)
            s0 += lack * direction[i, 0]
            s1 += lack * direction[i, 1]
            size = np.hypot(s0, s1)
            along[k, 0], along[k, 1] = s0 / size, s1 / size
        k += 1
    return at, normals, tangents, mu, slides, along
