"""What ends a phase: a gap that closes, or a slip that comes to rest."""

from __future__ import annotations

import numpy as np

from stiction.simulate.impact_time import Verdict
from stiction.simulate.phases import Moved, Phase
from stiction.simulate.sustained import Kind
from stiction.simulate.trajectories import Motion

PART = 0.5
"""Share of the tolerance at which overlap is taken back, and to which impacts are located."""


def judge(motion: Motion, phase: Phase, trial: Moved, stops: bool) -> Verdict:
    """Whether a gap has closed by this state of the phase or, if `stops`, a slip has ended."""
    tolerance = motion.tolerance
    overdue, fine, culprit = 0.0, True, -1
    seen, speed = trial.seen, trial.speed
    if seen.nc:
        loose = np.isfinite(trial.bound)
        slack = motion.slack(seen, trial.state.qvel)
        shut = np.flatnonzero(loose & (seen.gap <= tolerance) & (speed < -slack))
        deep = np.flatnonzero(loose & (seen.gap < -tolerance))
        if len(shut):
            late = np.maximum(PART * tolerance - seen.gap[shut], 1e-300) / -speed[shut]
            worst = int(np.argmax(late))
            overdue, culprit = float(late[worst]), int(shut[worst])
            fine = bool((seen.gap[shut] >= -PART * tolerance).all())
        if len(deep):
            fine = False
            if not len(shut):
                overdue, culprit = np.inf, int(deep[0])
    if stops and trial.elapsed > 0.0:
        since, near = _stopped(motion, phase, trial)
        overdue, fine = max(overdue, since), fine and near
    return Verdict(overdue, fine, culprit)


def _stopped(motion: Motion, phase: Phase, trial: Moved) -> tuple[float, bool]:
    """For how long what slid has slid backwards [s], and whether that is little."""
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
    if not now:
        return 0.0, True
    start, end = np.concatenate(was), np.concatenate(now)
    back = end < -PART * motion.still
    if not back.any():
        return 0.0, True
    late = -end[back] * trial.elapsed / (start[back] - end[back])
    return float(late.max()), bool((end[back] >= -motion.still).all())
