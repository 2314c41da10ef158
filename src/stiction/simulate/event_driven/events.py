"""What ends a phase: a gap that closes, or a slip that comes to rest."""

from __future__ import annotations

import numpy as np

from stiction.contact.models.description import Kind
from stiction.simulate.event_driven.held_rows import held_spins
from stiction.simulate.event_driven.impact_time import NOTHING, EventCheck
from stiction.simulate.event_driven.phases import Moved, Phase
from stiction.simulate.event_driven.trajectories import Motion

PART = 0.5
"""Share of the tolerance at which overlap is taken back, and of the gap at which impacts are looked
for; and of the speed that counts as rest, at which a slip has stopped."""

EARLY = 0.01
"""Share of dt within which a contact that closes started there. Later ones may overlap by no more
than is left as it is: taking it back lifts bodies, which would keep them rocking for ever."""

MIDDLE = 0.5 * (PART - 1.0)
"""Where in the range of speeds that count as rest, from -1 to PART, a stop is looked for."""


def check_event(motion: Motion, phase: Phase, trial: Moved, stops: bool) -> EventCheck:
    """Whether a gap has closed by this state of the phase or, if `stops`, a slip has ended."""
    check = _closed(motion, trial)
    if stops and trial.elapsed > 0.0:
        stop = _stopped(motion, phase, trial)
        check = EventCheck(
            max(check.overdue, stop.overdue),
            min(check.ahead, stop.ahead),
            check.acceptable and stop.acceptable,
            check.culprit,
        )
    return check


def _closed(motion: Motion, trial: Moved) -> EventCheck:
    """Whether a gap has closed: it is within the tolerance, and closing. Looked for
    where it is a part of the tolerance, and found on either side of zero."""
    seen, speed, tolerance = trial.seen, trial.speed, motion.tolerance
    if not seen.nc:
        return NOTHING
    closing = np.isfinite(trial.bound) & (speed < -motion.slack(seen, trial.state.qvel))
    gap = seen.gap
    shut = np.flatnonzero(closing & (gap <= tolerance))
    deep = np.flatnonzero(np.isfinite(trial.bound) & (gap < -tolerance))
    if len(shut):
        late = np.maximum(PART * tolerance - gap[shut], 1e-300) / -speed[shut]
        worst = int(np.argmax(late))
        early = trial.elapsed <= EARLY * motion.dt
        fine = not len(deep) and (early or bool((gap[shut] >= -PART * tolerance).all()))
        return EventCheck(float(late[worst]), np.inf, fine, int(shut[worst]))
    if len(deep):
        return EventCheck(np.inf, np.inf, False, int(deep[0]))
    ahead = (gap[closing] - PART * tolerance) / -speed[closing]
    return NOTHING._replace(ahead=float(ahead.min(initial=np.inf)))


def _stopped(motion: Motion, phase: Phase, trial: Moved) -> EventCheck:
    """Whether what slid has come to rest, or slides backwards. Located between speeds that are
    none, in either direction."""
    was, now = [], []
    if motion.law.kind is Kind.DRY and phase.sliding.any():
        there = np.flatnonzero(phase.sliding & (trial.place >= 0))
        direction = phase.direction[there]
        before = phase.seen.tangent[phase.held[there]] @ phase.state.qvel
        after = trial.seen.tangent[trial.place[there]] @ trial.state.qvel
        was.append((before * direction).sum(axis=1))
        now.append((after * direction).sum(axis=1))
    if len(phase.turning):
        was.append(phase.turning * (phase.seen.dry @ phase.state.qvel))
        now.append(phase.turning * (trial.seen.dry @ trial.state.qvel))
    if motion.law.kind is Kind.DRY and phase.spinning.any():
        rows, first, _ = held_spins(
            trial.place, phase.held, phase.seen.spin_contact, trial.seen.spin_contact
        )
        sign = phase.spinning[first]
        was.append(sign * (phase.seen.spin[first] @ phase.state.qvel))
        now.append(sign * (trial.seen.spin[rows] @ trial.state.qvel))
    if not now:
        return NOTHING
    start, end = np.concatenate(was), np.concatenate(now)
    slows = (start > motion.rest_speed) & (end < start)
    if not slows.any():
        return NOTHING
    start, end = start[slows], end[slows]
    since = (MIDDLE * motion.rest_speed - end) * trial.elapsed / (start - end)
    stopped = end <= PART * motion.rest_speed
    if not stopped.any():
        return NOTHING._replace(ahead=float(-since.max()))
    late = max(float(since[stopped].max()), 1e-300)
    return EventCheck(late, np.inf, bool((end >= -motion.rest_speed).all()), -1)
