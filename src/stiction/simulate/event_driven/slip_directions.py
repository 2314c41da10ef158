"""Directions of dynamic friction that turn faster than a step can follow.

Friction mu f_n against a slip s, on a body whose response at the contact is W, turns the slip at
the rate mu f_n W / |s|: a slip that has just begun, or is about to end, turns within microseconds
toward where the other forces drive it. In each step an explicit method multiplies what is across
that direction, which is rounding at first. So where the rate is too high for the step, contacts
keep one direction throughout it: that of the slip after an implicit step with Coulomb's law,

    M v+ = M v + h (f + N' f_n + T' f_t),   f_t against the slip T v+,

which is a problem of static friction at the acceleration level with M v / h among its forces. The
other contacts, whose slip turns slowly, keep the order of the integrator.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem import whitening
from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.kernels.dense import row_dot, rows_dot
from stiction.simulate.event_driven.sustained import Loads, drive_loads, dry_arrays

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FOLLOWED = 1.0
"""Rate at which a slip turns, times the step, that Runge-Kutta follows: it is stable to 2.7."""


@kernel
def choose_directions(
    loads: Loads, acceleration: Array, force: Array, dynamic: Array, h: float, still: float
) -> tuple[Mask, Array, Mask]:
    """(sliding (nh,), direction (nh, 2), steady (nh,)) of a step of length h from a state with this
    acceleration and these forces (nh,) along normals: contacts that begin to slide do, and
    directions are kept throughout (`steady`) where they turn too fast. dynamic: `coefficients`;
    still: speed that is no slip [m/s]."""
    nh = force.shape[0]
    sliding, direction = loads.sliding.copy(), loads.direction.copy()
    steady = np.zeros(nh, np.bool_)
    across = loads.tangent.reshape(2 * nh, acceleration.shape[0])
    for i in range(nh):
        if sliding[i] or not (force[i] > 0.0 and loads.friction[i] > 0.0):
            continue
        pull0 = row_dot(across, 2 * i, acceleration) + loads.tangent_rate[i, 0]
        pull1 = row_dot(across, 2 * i + 1, acceleration) + loads.tangent_rate[i, 1]
        size = np.hypot(pull0, pull1)
        if size * h > still:
            steady[i] = True
            direction[i, 0], direction[i, 1] = pull0 / size, pull1 / size
    if not (sliding.any() or steady.any()):
        return sliding, direction, steady
    rates = turning_rates(
        loads.mass, loads.normal, loads.tangent, loads.velocity, loads.friction, force, sliding
    )
    turns = False
    for i in range(nh):
        if not steady[i] and h * rates[i] > FOLLOWED:
            steady[i], turns = True, True
        sliding[i] = sliding[i] or steady[i]
    if turns:
        _turn(loads, dynamic, h, still, steady, direction)
    return sliding, direction, steady


@kernel
def _turn(
    loads: Loads, dynamic: Array, h: float, still: float, steady: Mask, direction: Array
) -> None:
    """Turns directions of steady contacts to those after an implicit step. A slip that ends or
    reverses within the step keeps its own: its stop is an event."""
    nv, nh = loads.velocity.shape[0], steady.shape[0]
    force = loads.force.copy()
    for k in range(nv):
        force[k] += row_dot(loads.mass, k, loads.velocity) / h
    ahead = Loads(
        loads.mass, loads.velocity, force, loads.normal, loads.normal_rate, loads.tangent,
        loads.tangent_rate, loads.friction, np.zeros(nh, np.bool_), loads.direction, loads.joint,
        loads.joint_rate, loads.box, loads.box_limit, loads.box_contact, loads.box_friction,
        loads.turning,
    )  # fmt: skip
    none = (np.empty(0), np.empty((0, 2)), np.empty(0))
    acceleration, _, _, _, _, found, _ = drive_loads(
        ahead, dry_arrays(ahead, dynamic, dynamic), none
    )
    if not found:
        return
    across = loads.tangent.reshape(2 * nh, nv)
    for i in range(nh):
        slip0 = h * (row_dot(across, 2 * i, acceleration) + loads.tangent_rate[i, 0])
        slip1 = h * (row_dot(across, 2 * i + 1, acceleration) + loads.tangent_rate[i, 1])
        size, along = np.hypot(slip0, slip1), slip0 * direction[i, 0] + slip1 * direction[i, 1]
        if steady[i] and size > still and along > 0.0:
            direction[i, 0], direction[i, 1] = slip0 / size, slip1 / size


@kernel
def turning_rates(
    mass: Array, normal: Array, tangent: Array, velocity: Array, friction: Array, force: Array,
    sliding: Mask,
) -> Array:  # fmt: skip
    """(nh,) bounds on the rates at which slips turn [1/s]; force (nh,): along normals [N].

    The rates are the eigenvalues of W diag(mu f_n / |slip|); column sums bound them, and with the
    contacts of large sums left out those of the rest bound what is left. Contacts of one body share
    its load in many ways, and stages of the integrator choose differently: each counts with the
    forces of all others, by the cosines between their normals in the metric of the mass.
    """
    nh, nv = normal.shape
    rates = np.zeros(nh)
    if not (sliding.any() and force.any()):
        return rates
    upper, last = np.empty((nv, nv)), np.empty(nv, np.int64)
    if linear.factorize(mass, upper, last, 0.0) >= 0:
        return rates
    normals, rows = normal.copy(), tangent.copy().reshape(2 * nh, nv)
    whitening.whiten_rows(upper, last, normals, velocity)
    slip = whitening.whiten_rows(upper, last, rows, velocity)
    for i in range(nh):
        if not (sliding[i] and friction[i] > 0.0):
            continue
        load = 0.0
        own = np.sqrt(max(rows_dot(normals, i, normals, i, nv), 1e-300))
        for j in range(nh):
            if force[j] > 0.0:
                size = np.sqrt(max(rows_dot(normals, j, normals, j, nv), 1e-300))
                load += force[j] * abs(rows_dot(normals, i, normals, j, nv)) / (own * size)
        most = 0.0
        for side in range(2):
            total = 0.0
            for j in range(2 * nh):
                if sliding[j // 2] and friction[j // 2] > 0.0:
                    total += abs(rows_dot(rows, 2 * i + side, rows, j, nv))
            most = max(most, total)
        speed = max(np.hypot(slip[2 * i], slip[2 * i + 1]), 1e-300)
        rates[i] = most * friction[i] * load / speed
    return rates
