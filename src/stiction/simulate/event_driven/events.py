"""What ends a phase: a gap that closes, or a slip that comes to rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel, lean
from stiction.kernels.dense import row_dot
from stiction.simulate.event_driven.held_rows import held_spins, speed_and_slack
from stiction.simulate.event_driven.impact_time import EventCheck
from stiction.simulate.event_driven.phases import Moved, Phase
from stiction.tolerances import RESIDUAL

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

PART = 0.5
"""Share of the tolerance at which overlap is taken back, and of the gap at which impacts are looked
for; and of the speed that counts as rest, at which a slip has stopped."""

EARLY = 0.01
"""Share of dt within which a contact that closes started there. Later ones may overlap by no more
than is left as it is: taking it back lifts bodies, which would keep them rocking for ever."""

MIDDLE = 0.5 * (PART - 1.0)
"""Where in the range of speeds that count as rest, from -1 to PART, a stop is looked for."""


class Marks(NamedTuple):
    """What tells events."""

    dt: float
    tolerance: float
    rest: float
    """Speed that counts as none [m/s]."""
    slides: bool
    """Whether contacts slide and spin against dry friction."""
    stops: bool
    """Whether the end of a slip is an event."""


@kernel
def find_hits(
    normal: Array, gap: Array, qvel: Array, tolerance: float, rest: float
) -> tuple[Array, Array, Indices, Indices]:
    """(speed (nc,), slack (nc,), touching, hits): N v; speeds that count as rest, slow ones or what
    a passed solve leaves; contacts that touch, and those of them that approach."""
    nc = normal.shape[0]
    speed, slack = np.empty(nc), np.empty(nc)
    touching, hits = np.empty(nc, np.int64), np.empty(nc, np.int64)
    nt, nh = 0, 0
    for i in range(nc):
        speed[i], slack[i] = speed_and_slack(normal, i, qvel, rest)
        if gap[i] <= tolerance:
            touching[nt] = i
            nt += 1
            if speed[i] < -slack[i]:
                hits[nh] = i
                nh += 1
    return speed, slack, touching[:nt].copy(), hits[:nh].copy()


@kernel
def check_event(phase: Phase, trial: Moved, marks: Marks) -> EventCheck:
    """Whether a gap has closed by this state of the phase, or a slip has ended."""
    check = _closed(trial, marks)
    if not (marks.stops and trial.elapsed > 0.0):
        return check
    stop = _stopped(phase, trial, marks)
    return EventCheck(
        max(check.overdue, stop.overdue),
        min(check.ahead, stop.ahead),
        check.acceptable and stop.acceptable,
        check.culprit,
    )


@lean
def _closed(trial: Moved, marks: Marks) -> EventCheck:
    """Whether a gap has closed: it is within the tolerance, and closing. Looked for
    where it is a part of the tolerance, and found on either side of zero."""
    seen, qvel, tolerance = trial.seen, trial.state.qvel, marks.tolerance
    early = trial.elapsed <= EARLY * marks.dt
    overdue, ahead, culprit, deep, fine = 0.0, np.inf, -1, -1, True
    for i in range(seen.gap.shape[0]):
        if trial.bound[i] == -np.inf:
            continue
        gap, speed, size = seen.gap[i], trial.speed[i], 0.0
        if gap < -tolerance and deep < 0:
            deep = i
        for k in range(qvel.shape[0]):
            size += abs(seen.normal[i, k] * qvel[k])
        if not speed < -(marks.rest + RESIDUAL * size):
            continue
        if gap <= tolerance:
            fine = fine and (early or gap >= -PART * tolerance)
            late = max(PART * tolerance - gap, 1e-300) / -speed
            if late > overdue:
                overdue, culprit = late, i
        else:
            ahead = min(ahead, (gap - PART * tolerance) / -speed)
    if culprit >= 0:
        return EventCheck(overdue, np.inf, fine and deep < 0, culprit)
    if deep >= 0:
        return EventCheck(np.inf, np.inf, False, deep)
    return EventCheck(0.0, ahead, True, -1)


@kernel
def _stopped(phase: Phase, trial: Moved, marks: Marks) -> EventCheck:
    """Whether what slid has come to rest, or slides backwards. Located between speeds that are
    none, in either direction."""
    if phase.held.shape[0] + phase.turning.shape[0] + phase.spinning.shape[0] == 0:
        return EventCheck(0.0, np.inf, True, -1)
    before, after = _slips(phase, trial, marks.slides)
    late, soon, within, stopped = 0.0, -np.inf, True, False
    for i in range(before.shape[0]):
        start, end = before[i], after[i]
        if not (start > marks.rest and end < start):
            continue
        since = (MIDDLE * marks.rest - end) * trial.elapsed / (start - end)
        soon = max(soon, since)
        within = within and end >= -marks.rest
        if end <= PART * marks.rest:
            stopped = True
            late = max(late, since)
    if stopped:
        return EventCheck(max(late, 1e-300), np.inf, within, -1)
    return EventCheck(0.0, -soon, True, -1)


@kernel
def _slips(phase: Phase, trial: Moved, slides: bool) -> tuple[Array, Array]:
    """(before (n,), after (n,)): speeds, at the start of the phase and at the state, of what slid,
    turned or spun at that start, in the direction that it had."""
    nh, nf, ns = phase.held.shape[0], phase.turning.shape[0], phase.spinning.shape[0]
    before, after = np.zeros(nh + nf + ns), np.zeros(nh + nf + ns)
    was, now, v, u = phase.seen, trial.seen, phase.state.qvel, trial.state.qvel
    across_before = was.tangent.reshape(2 * was.gap.shape[0], v.shape[0])
    across_after = now.tangent.reshape(2 * now.gap.shape[0], u.shape[0])
    n = 0
    for i in range(nh if slides else 0):
        j = trial.place[i]
        if not phase.sliding[i] or j < 0:
            continue
        for t in range(2):
            along = phase.direction[i, t]
            before[n] += along * row_dot(across_before, 2 * phase.held[i] + t, v)
            after[n] += along * row_dot(across_after, 2 * j + t, u)
        n += 1
    for i in range(nf):
        before[n] = phase.turning[i] * row_dot(was.dry, i, v)
        after[n] = phase.turning[i] * row_dot(now.dry, i, u)
        n += 1
    if slides and ns > 0:
        rows, first, _ = held_spins(trial.place, phase.held, was.spin_contact, now.spin_contact)
        for k in range(rows.shape[0]):
            sign = phase.spinning[first[k]]
            before[n] = sign * row_dot(was.spin, first[k], v)
            after[n] = sign * row_dot(now.spin, rows[k], u)
            n += 1
    return before[:n].copy(), after[:n].copy()
