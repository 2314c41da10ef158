"""What integration leaves along rows that hold, taken out of velocities and positions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.models.description import Kind
from stiction.contact.models.frictionless import Frictionless
from stiction.contact.problem.problem import ContactProblem
from stiction.simulate.event_driven.distances import Snapshot
from stiction.simulate.event_driven.events import PART
from stiction.simulate.event_driven.phases import Held, Moved, State
from stiction.simulate.event_driven.snapping import DEPENDENT_SHARE
from stiction.simulate.event_driven.trajectories import Motion

Array = NDArray[np.float64]

PROJECTIONS = 20
"""Displacements to take overlap back; one or two are usual."""

FIRM = 1e3
"""Parting speed, in units of `Motion.rest_speed`, up to which what pressed is still held."""


def project_velocity(motion: Motion, held: Held | None, moved: Moved) -> State:
    """The state with its velocity changed as little as possible, in the metric of the mass, so that
    joints, contacts that press, and what sticks do not move."""
    seen, state = moved.seen, moved.state
    rows = [seen.joint]
    if held is not None and len(held.forces.normal):
        at = moved.place[(held.forces.normal > 0.0) & (moved.place >= 0)]
        at = at[np.abs(moved.speed[at]) < FIRM * motion.rest_speed]
        rows.append(seen.normal[at])
        if motion.law.kind is not Kind.SMOOTH:
            tangent = seen.tangent[at[seen.friction[at] > 0.0]]
            slip = tangent @ state.qvel
            stuck = np.hypot(slip[:, 0], slip[:, 1]) <= 2.0 * motion.rest_speed
            if motion.law.kind is Kind.HOLD:
                stuck[:] = True
            rows.append(tangent[stuck].reshape(-1, len(state.qvel)))
        if motion.law.kind is Kind.DRY and len(seen.spin):
            spin = seen.spin[np.isin(seen.spin_contact, at) & (seen.spin_friction > 0.0)]
            rows.append(spin[np.abs(spin @ state.qvel) <= 2.0 * motion.rest_speed])
    rows.append(seen.dry[np.abs(seen.dry @ state.qvel) <= 2.0 * motion.rest_speed])
    every = np.concatenate(rows)
    off = every @ state.qvel
    if not len(off) or np.abs(off).max() <= 1e-3 * motion.rest_speed:
        return state
    factor = np.linalg.cholesky(seen.mass)
    white = np.linalg.solve(factor, every.T).T
    size = np.linalg.norm(white, axis=1)
    size[size == 0.0] = 1.0
    change = np.linalg.lstsq(white / size[:, None], -off / size, rcond=DEPENDENT_SHARE)[0]
    return state._replace(qvel=state.qvel + np.linalg.solve(factor.T, change))


def largest_error(seen: Snapshot) -> float:
    """Deepest overlap, or largest error of an equality constraint [m, rad]."""
    overlap = -float(seen.gap.min(initial=0.0))
    return max(overlap, float(np.abs(seen.error).max(initial=0.0)))


def project_position(motion: Motion, state: State, seen: Snapshot) -> tuple[State, Snapshot]:
    """The state without overlap or error beyond a part of the tolerance: moved as little as
    possible, in the metric of the mass, and no farther than other contacts allow. Where bodies
    are jammed what is left may be more."""
    for _ in range(PROJECTIONS):
        problem = ContactProblem(
            mass=seen.mass,
            velocity=np.zeros(len(state.qvel)),
            force=np.zeros(len(state.qvel)),
            dt=1.0,
            normal=seen.normal,
            bound=-seen.gap,
            joint=seen.joint,
            joint_target=-seen.error,
        )
        move = Frictionless().solve(problem).velocity
        if not np.isfinite(move).all():
            break
        state = state._replace(qpos=motion.moved(state, move))
        seen = motion.look(state)
        if largest_error(seen) <= PART * motion.tolerance:
            break
    return state, seen
