"""The contacts that a phase holds, and their rows at a later state of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel, leaf
from stiction.kernels.dense import row_dot
from stiction.tolerances import RESIDUAL

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


PUSHED = 1e-5
"""Share of the speed that smooth forces give along a row in a step, below which a speed is none.
Forces pass their certificate at a tenth of that."""


@kernel
def speed_of_rest(
    normal: Array, tangent: Array, dry: Array, qvel: Array, smooth: Array, dt: float, most: float
) -> float:
    """Speed that counts as none at a state with these rows [m/s, rad/s]: `most`, or less where that
    would be much of what the smooth acceleration (nv,) gives in a step, or of the speeds there."""
    nc, nv = normal.shape
    across = tangent.reshape(2 * nc, nv)
    fastest = 0.0
    for i in range(nc):
        fastest = max(fastest, _share(normal, i, qvel, smooth, dt))
    for i in range(2 * nc):
        fastest = max(fastest, _share(across, i, qvel, smooth, dt))
    for i in range(dry.shape[0]):
        fastest = max(fastest, _share(dry, i, qvel, smooth, dt))
    return min(fastest, most)


@leaf
def _share(rows: Array, i: int, qvel: Array, smooth: Array, dt: float) -> float:
    """What of the speeds along row i, and of their change in a step, is nothing."""
    gained, size = 0.0, 0.0
    for k in range(qvel.shape[0]):
        gained += rows[i, k] * smooth[k]
        size += abs(rows[i, k] * qvel[k])
    return PUSHED * dt * abs(gained) + RESIDUAL * size


@leaf
def speed_and_slack(normal: Array, i: int, qvel: Array, rest: float) -> tuple[float, float]:
    """(speed along row i, speed that counts as none there): slow ones, and what a solve may leave
    of the bodies' speeds along a row, by its certificate."""
    speed, size = 0.0, 0.0
    for k in range(qvel.shape[0]):
        speed += normal[i, k] * qvel[k]
        size += abs(normal[i, k] * qvel[k])
    return speed, rest + RESIDUAL * size


@kernel
def contact_states(
    normal: Array, tangent: Array, gap: Array, friction: Array, dry: Array, spin: Array,
    spin_contact: Indices, qvel: Array, tolerance: float, rest: float,
) -> tuple[Array, Indices, Indices, Mask, Array, Array, Array, Array]:  # fmt: skip
    """(speed (nc,), touching, held, sliding (nh,), direction (nh, 2), pace (nh,), turning (nf,),
    spinning (ns,)) as a `Phase` has them; rest: speed that counts as none."""
    nc, nv = normal.shape
    speed = np.zeros(nc)
    touching, held = np.empty(nc, np.int64), np.empty(nc, np.int64)
    is_held = np.zeros(nc, np.bool_)
    nt, nh = 0, 0
    for i in range(nc):
        speed[i], slack = speed_and_slack(normal, i, qvel, rest)
        if gap[i] <= tolerance:
            touching[nt] = i
            nt += 1
            if speed[i] <= slack:
                held[nh], is_held[i] = i, True
                nh += 1
    sliding, direction, pace = np.zeros(nh, np.bool_), np.zeros((nh, 2)), np.zeros(nh)
    for i in range(nh):
        slip0, slip1 = 0.0, 0.0
        for k in range(nv):
            slip0 += tangent[held[i], 0, k] * qvel[k]
            slip1 += tangent[held[i], 1, k] * qvel[k]
        pace[i] = np.hypot(slip0, slip1)
        if pace[i] > rest and friction[held[i]] > 0.0:
            sliding[i] = True
            direction[i, 0], direction[i, 1] = slip0 / pace[i], slip1 / pace[i]
    turning, spinning = np.zeros(dry.shape[0]), np.zeros(spin.shape[0])
    for i in range(dry.shape[0]):
        turn = row_dot(dry, i, qvel)
        turning[i] = np.sign(turn) if abs(turn) > rest else 0.0
    for i in range(spin.shape[0]):
        turn = row_dot(spin, i, qvel)
        if is_held[spin_contact[i]] and abs(turn) > rest:
            spinning[i] = np.sign(turn)
    return (
        speed, touching[:nt].copy(), held[:nh].copy(), sliding, direction, pace, turning, spinning,
    )  # fmt: skip


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
