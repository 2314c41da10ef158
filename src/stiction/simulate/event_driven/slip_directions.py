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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.models.description import SustainedLaw
from stiction.contact.problem import whitening
from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.simulate.event_driven.sustained import Forces, Loads, solve_sustained

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FOLLOWED = 1.0
"""Rate at which a slip turns, times the step, that Runge-Kutta follows: it is stable to 2.7."""


class Slips(NamedTuple):
    """How held contacts slide in a step."""

    sliding: Mask  # (nh,)
    direction: Array  # (nh, 2)
    steady: Mask  # (nh,) whether the direction is kept throughout the step


def choose_directions(
    law: SustainedLaw, loads: Loads, forces: Forces, h: float, still: float
) -> Slips:
    """The slips of a step of length h from a state with these forces: contacts that begin to slide
    do, and directions are kept where they turn too fast. still: speed that is no slip [m/s]."""
    pull = loads.tangent @ forces.acceleration + loads.tangent_rate
    size = np.hypot(pull[:, 0], pull[:, 1])
    rubs = (forces.normal > 0.0) & (loads.friction > 0.0)
    starts = ~loads.sliding & rubs & (size * h > still)
    if not (loads.sliding.any() or starts.any()):
        return Slips(loads.sliding, loads.direction, starts)
    rates = turning_rates(
        loads.mass, loads.normal, loads.tangent, loads.velocity, loads.friction, forces.normal,
        loads.sliding,
    )  # fmt: skip
    steady = starts | (h * rates > FOLLOWED)
    direction = loads.direction.copy()
    direction[starts] = pull[starts] / size[starts, None]
    if (steady & loads.sliding).any():
        _turn(law, loads, h, still, steady, direction)
    return Slips(loads.sliding | starts, direction, steady)


def _turn(
    law: SustainedLaw, loads: Loads, h: float, still: float, steady: Mask, direction: Array
) -> None:
    """Turns directions of steady contacts to those after an implicit step. A slip that ends or
    reverses within the step keeps its own: its stop is an event."""
    ahead = solve_sustained(
        law._replace(static=law.dynamic),
        loads._replace(
            force=loads.force + loads.mass @ loads.velocity / h,
            sliding=np.zeros(len(loads.normal), np.bool_),
        ),
    )
    if ahead is None:
        return
    slip = h * (loads.tangent @ ahead[0].acceleration + loads.tangent_rate)
    size = np.hypot(slip[:, 0], slip[:, 1])
    turned = steady & (size > still) & ((slip * direction).sum(axis=1) > 0.0)
    direction[turned] = slip[turned] / size[turned, None]


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
        own = np.sqrt(max((normals[i] ** 2).sum(), 1e-300))
        for j in range(nh):
            if force[j] > 0.0:
                size = np.sqrt(max((normals[j] ** 2).sum(), 1e-300))
                load += force[j] * abs((normals[i] * normals[j]).sum()) / (own * size)
        most = 0.0
        for side in range(2):
            total = 0.0
            for j in range(2 * nh):
                if sliding[j // 2] and friction[j // 2] > 0.0:
                    total += abs((rows[2 * i + side] * rows[j]).sum())
            most = max(most, total)
        speed = max(np.hypot(slip[2 * i], slip[2 * i + 1]), 1e-300)
        rates[i] = most * friction[i] * load / speed
    return rates
