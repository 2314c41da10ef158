"""What a step asks of the solvers, and the certificate of what they answer."""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.grading import grade_blocks
from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import row_velocities
from stiction.contact.solvers.blocks.workspace import (
    ENDLESS,
    Request,
    Setting,
    unpack_newton,
    unpack_problem,
)
from stiction.kernels.compile import kernel
from stiction.kernels.stage import stage
from stiction.simulate.time_stepping.workspace import Count, Step, unpack_step

SWEPT_SHARE = 0.15
"""Of a budget, that sweeps have where the attempts before them ran out of time."""


REST_FALL = 4
"""Part by which the time falls that is kept free for what comes after a solve, with a step that
needed less: steps that run out of time need more of it than others, and come together."""


@stage("float64(intp, float64)")
def grade_step(address, tolerance):
    """Largest violation of any law by the impulses and the velocity of the posed step; the table
    of all is left in the workspace."""
    b, _, _, request = unpack_problem(address)
    _, newton = unpack_newton(address)
    grading, step = unpack_step(address)
    count = step.counts[Count.BLOCKS]
    row_velocities(b, count, newton.v, newton.u)
    return grade_blocks(
        b, count, request.setting[Setting.LAW], request.setting[Setting.FACETS], tolerance,
        newton.weight, newton.v, newton.u, newton.f, grading,
    )  # fmt: skip


grade = grade_step.external


@kernel
def keep_free(step: Step, now, budget):
    """Keeps in mind how long a step, which ends now, took after the end of its solve, or after the
    tick at which that was to end."""
    counts = step.counts
    fallen = counts[Count.REST] - counts[Count.REST] // REST_FALL
    counts[Count.REST] = min(max(now - counts[Count.SOLVED_AT], fallen), budget)


@kernel
def solve_until(step: Step, budget):
    """Tick at which the solve of a step is to end: what came after it in the last steps is kept
    free, at most two thirds of the budget."""
    latest = step.counts[Count.DEADLINE]
    if latest < ENDLESS:
        latest -= min(step.counts[Count.REST], 2 * budget // 3)
    return latest


@kernel
def ask(request: Request, law, facets, warm, latest, budget):
    """Settings of a solve that is to end at the tick `latest`, or ENDLESS. Under a budget nothing
    is mended, and no ladder climbed."""
    setting = request.setting
    setting[Setting.LAW], setting[Setting.FACETS] = law, facets
    setting[Setting.WARM] = warm
    setting[Setting.DIGITS] = 0
    setting[Setting.MENDED] = np.int64(latest == ENDLESS and law != Law.FRICTIONLESS)
    setting[Setting.LATEST] = setting[Setting.DEADLINE] = latest
    if latest < ENDLESS:
        setting[Setting.DEADLINE] -= np.int64(SWEPT_SHARE * budget)
