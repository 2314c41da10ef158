"""Impacts: velocities that jump while positions stay, by the chosen contact model.

All contacts that touch enter one contact problem without forces, so that an impact is felt
throughout a stack. Friction in it is the model's own; a viscous force has no time to act, and
dry friction of joints neither: both are finite. Restitution e by one of two hypotheses:

    Newton    N v+ >= -e N v-   where bodies approach
    Poisson   compression, e = 0, with normal impulses p; then expansion, with e p and friction to
              match, and more where bodies would still approach (Glocker and Pfeiffer)

Newton's may add energy where an impact drives bodies together that were parting in another contact.
Then that contact is let approach by e times its speed as well (Moreau), and is an impact of its
own right after: without friction that loses no energy if e = 1, and gains none. Where friction
acts on eccentric bodies either may still add energy (Kane's example). e is then halved until the
kinetic energy does not rise; e = 0 cannot raise it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import Kind
from stiction.contact.models.model import ContactModel
from stiction.contact.problem.arrays import Arrays
from stiction.contact.problem.problem import ContactProblem, from_arrays
from stiction.simulate.event_driven.distances import Snapshot
from stiction.simulate.event_driven.snapping import snap_tangents
from stiction.simulate.time_stepping.dependent import DEPENDENT_SHARE

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Hypothesis = Literal["newton", "poisson"]

IMPACT_HALVINGS = 12
"""How often e is halved before it is zero."""

EXPANSIONS = 30
"""Solves to find an expansion; one to five are usual."""

MATCHED = 1e-9
"""Relative error of its impulses."""

GAIN = 1e-10
"""Relative rise of the kinetic energy that is rounding of a solve that passed its certificate."""


def tangents_for(model: ContactModel, seen: Snapshot, contacts: Indices) -> Array:
    """(n, 2, nv) tangents of those contacts, as the model takes them."""
    tangent = seen.tangent[contacts]
    if model.sustained.kind is Kind.HOLD:
        return snap_tangents(
            seen.mass, seen.joint, tangent, seen.friction[contacts], DEPENDENT_SHARE
        )
    return tangent


def spins_at(seen: Snapshot, contacts: Indices) -> tuple[Indices, Indices]:
    """(rows, parents): rows of torsional and rolling friction at those contacts, and for each the
    number of its contact among them."""
    number = np.full(seen.nc, -1)
    number[contacts] = np.arange(len(contacts))
    parents = number[seen.spin_contact]
    rows = np.flatnonzero(parents >= 0)
    return rows, parents[rows]


def impact_problem(
    model: ContactModel,
    seen: Snapshot,
    velocity: Array,
    touching: Indices,
    bound: Array | None = None,
) -> ContactProblem:
    """The problem of an impact at the contacts `touching`; bound (nt,) is 0 unless given."""
    nt = len(touching)
    spins, parents = spins_at(seen, touching)
    arrays = Arrays(
        mass=seen.mass,
        velocity=velocity,
        force=np.zeros(len(velocity)),
        normal=seen.normal[touching],
        tangent=tangents_for(model, seen, touching),
        friction=seen.friction[touching],
        viscosity=np.zeros(nt),
        bound=np.zeros(nt) if bound is None else bound,
        joint=seen.joint,
        joint_target=np.zeros(len(seen.joint)),
        box=seen.spin[spins],
        box_limit=np.zeros(len(spins)),
        box_contact=parents,
        box_friction=seen.spin_friction[spins],
    )
    return from_arrays(arrays, 1.0)


def solve_impact(
    model: ContactModel,
    seen: Snapshot,
    velocity: Array,
    touching: Indices,
    slack: Array,
    restitution: float,
    hypothesis: Hypothesis,
) -> ContactSolution:
    """Velocity after the impact and its impulses; slack (nt,): speeds that count as rest [m/s]."""
    plastic = None
    if hypothesis == "poisson" or restitution == 0.0:
        plastic = model.solve(impact_problem(model, seen, velocity, touching))
        if restitution == 0.0:
            return plastic
    kinetic = 0.5 * float(velocity @ seen.mass @ velocity)
    speed = seen.normal[touching] @ velocity
    speed[np.abs(speed) <= slack] = 0.0
    e = restitution
    for attempt in range(IMPACT_HALVINGS):
        if plastic is None:
            bound = -e * (speed if attempt else np.minimum(speed, 0.0))
            solution = model.solve(impact_problem(model, seen, velocity, touching, bound))
        else:
            solution = _give_back(model, seen, touching, plastic, e)
        after = 0.5 * float(solution.velocity @ seen.mass @ solution.velocity)
        if after <= kinetic * (1.0 + GAIN):
            return solution
        e *= 0.5 if attempt or plastic is not None else 1.0
    return plastic or model.solve(impact_problem(model, seen, velocity, touching))


def _give_back(
    model: ContactModel, seen: Snapshot, touching: Indices, first: ContactSolution, e: float
) -> ContactSolution:
    """Poisson's second phase, after compression ended with `first`.

    Contact problems prescribe speeds and not impulses: the speeds at which the normal impulses are
    e p are looked for. They are known at once where friction does not push along the normal.
    """
    wanted = e * first.normal
    rows = seen.normal[touching]
    gain = rows @ np.linalg.solve(seen.mass, rows.T)
    size = float(wanted.max(initial=0.0))
    speed = rows @ first.velocity + gain @ wanted
    for _ in range(EXPANSIONS):
        bound = np.where(wanted > 0.0, np.maximum(speed, 0.0), 0.0)
        second = model.solve(impact_problem(model, seen, first.velocity, touching, bound))
        lack = np.where((wanted > 0.0) & (speed >= 0.0), wanted - second.normal, 0.0)
        if not np.isfinite(lack).all() or np.abs(lack).max(initial=0.0) <= MATCHED * size:
            break
        speed = bound + gain @ lack
    return replace(
        second,
        normal=first.normal + second.normal,
        tangent=first.tangent + second.tangent,
        joint=first.joint + second.joint,
        box=first.box + second.box,
    )
