"""What integration leaves along rows that hold, taken out of velocities and positions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.models.description import Kind
from stiction.contact.models.frictionless import Frictionless
from stiction.contact.problem.problem import ContactProblem
from stiction.kernels import linear
from stiction.kernels.compile import kernel
from stiction.kernels.dense import row_dot
from stiction.simulate.event_driven.distances import Snapshot, copy_row
from stiction.simulate.event_driven.events import PART
from stiction.simulate.event_driven.phases import Grip, Held, Moved, State
from stiction.simulate.event_driven.sustained import agree
from stiction.simulate.event_driven.trajectories import Motion
from stiction.simulate.time_stepping.dependent import DEPENDENT_SHARE

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

NONE = np.zeros(0)

PROJECTIONS = 20
"""Displacements to take overlap back; one or two are usual."""

FIRM = 1e3
"""Parting speed, in units of `Motion.rest_speed`, up to which what pressed is still held."""


def grip_of(motion: Motion, held: Held | None) -> Grip:
    """The grip of contacts that are held by these forces; None: of none."""
    rest = motion.rest_speed
    press = NONE if held is None else held.forces.normal
    slip = {Kind.SMOOTH: -1.0, Kind.HOLD: np.inf, Kind.DRY: 2.0 * rest}[motion.law.kind]
    return Grip(press, FIRM * rest, np.full(len(press), slip))


def project_velocity(motion: Motion, grip: Grip, moved: Moved) -> State:
    """The state with its velocity changed as little as possible, in the metric of the mass, so that
    joints, contacts that press, and what sticks do not move."""
    rest = motion.rest_speed
    qvel = moved.state.qvel.copy()
    spin = 2.0 * rest if motion.law.kind is Kind.DRY else -1.0
    place = moved.place[: len(grip.press)]
    changed = project(moved.seen, place, grip, moved.speed, qvel, rest, spin)
    return moved.state._replace(qvel=qvel) if changed else moved.state


@kernel
def project(
    seen: Snapshot, place: Indices, grip: Grip, speed: Array, qvel: Array, rest: float,
    spin: float,
) -> bool:  # fmt: skip
    """Takes out of qvel what integration left along rows that hold: joints, contacts that press,
    what sticks or spins by no more than `spin` there, and dry joints that do not move; whether
    there was something. place, grip (nh,): where held contacts are, and what they did; speed (nc,):
    N v; rest: speed that counts as none."""
    nv, nh, ns = qvel.shape[0], place.shape[0], seen.spin.shape[0]
    rows = np.empty((seen.joint.shape[0] + 3 * nh + ns + seen.dry.shape[0], nv))
    n, most = 0, 0.0
    across = seen.tangent.reshape(2 * seen.gap.shape[0], nv)
    for e in range(seen.joint.shape[0]):
        copy_row(seen.joint, e, rows, n)
        n += 1
    for i in range(nh):
        j = place[i]
        if j < 0 or not grip.press[i] > 0.0 or not abs(speed[j]) < grip.firm:
            continue
        copy_row(seen.normal, j, rows, n)
        n += 1
        slip0, slip1 = row_dot(across, 2 * j, qvel), row_dot(across, 2 * j + 1, qvel)
        if seen.friction[j] > 0.0 and np.hypot(slip0, slip1) <= grip.slip[i]:
            copy_row(across, 2 * j, rows, n)
            copy_row(across, 2 * j + 1, rows, n + 1)
            n += 2
        for s in range(ns):
            still = abs(row_dot(seen.spin, s, qvel)) <= spin
            if seen.spin_contact[s] == j and seen.spin_friction[s] > 0.0 and still:
                copy_row(seen.spin, s, rows, n)
                n += 1
    for e in range(seen.dry.shape[0]):
        if abs(row_dot(seen.dry, e, qvel)) <= 2.0 * rest:
            copy_row(seen.dry, e, rows, n)
            n += 1
    for i in range(n):
        most = max(most, abs(row_dot(rows, i, qvel)))
    if most <= 1e-3 * rest:
        return False
    upper, last = np.empty((nv, nv)), np.empty(nv, np.int64)
    if linear.factorize(seen.mass, upper, last, 0.0) >= 0:
        return False
    white, basis, kept = rows[:n].copy(), np.empty((nv, nv)), np.empty(n, np.bool_)
    for i in range(n):
        linear.divide(upper, last, white[i])
    rank = linear.orthonormal_rows(white, basis, kept, DEPENDENT_SHARE)
    momentum = np.zeros(nv)
    for i in range(nv):
        for k in range(i, nv):
            if k <= last[i]:
                momentum[i] += upper[i, k] * qvel[k]
    linear.project_out(basis, rank, momentum)
    linear.project_out(basis, rank, momentum)
    linear.undivide(upper, last, momentum)
    qvel[:] = momentum
    return True


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
            joint_target=-agree(seen.joint, seen.error),
        )
        move = Frictionless().solve(problem).velocity
        if not np.isfinite(move).all():
            break
        state = state._replace(qpos=motion.moved(state, move))
        seen = motion.look(state)
        if largest_error(seen) <= PART * motion.tolerance:
            break
    return state, seen
