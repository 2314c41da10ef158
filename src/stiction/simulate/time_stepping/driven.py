"""A step's problem by Baraff's method, compiled: what `run` leaves UNSOLVED, solved and graded.

A kernel of its own beside `run`: only those who ask for `Baraff()` wait until it is compiled. How
it can fail: as `Baraff.solve`, which is the same search and is not asked as well; torsional and
rolling friction is left to that, which refuses it.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.grading import GradingWorkspace, grade_blocks
from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import Blocks, add_impulses, row_velocities
from stiction.contact.problem.cones import build_cones, from_impulses, to_impulses
from stiction.contact.solvers.baraff.blocks import (
    factor_folded,
    has_tied_rows,
    label_islands,
    pose_island,
    put_impulses,
    read_impulses,
)
from stiction.contact.solvers.baraff.driving import solve_driving, step_limit
from stiction.contact.solvers.baraff.solve import DRIVING_ROUNDS, ORDERS, WARM_STEPS
from stiction.contact.solvers.blocks.workspace import (
    NewtonWorkspace,
    Outcome,
    unpack_newton,
    unpack_problem,
)
from stiction.kernels.clock import ticks
from stiction.kernels.compile import kernel
from stiction.kernels.skyline import solve_skyline
from stiction.simulate.time_stepping.standstill import stop_rounding
from stiction.simulate.time_stepping.workspace import Count, Figure, Stage, unpack_step
from stiction.status import Code


@kernel
def _grade(b: Blocks, count, newton: NewtonWorkspace, tolerance, grading: GradingWorkspace):
    """Largest violation of any law by newton.v and newton.f."""
    row_velocities(b, count, newton.v, newton.u)
    return grade_blocks(
        b, count, np.int64(Law.COULOMB), np.int64(0), tolerance,
        newton.weight, newton.v, newton.u, newton.f, grading,
    )  # fmt: skip


@kernel
def drive(warm, tolerance, address):
    """Impulses and velocity of the posed step into the workspace, graded; SOLVED where their
    certificate passes, else how an island ended, UNSUITABLE where nothing was tried. warm: the last
    step's impulses are tried first."""
    # All in one body: every level of calls above the solver would have it optimized once more
    # when it is compiled.
    b, g, s, request = unpack_problem(address)
    _, newton = unpack_newton(address)
    grading, step = unpack_step(address)
    counts, figure, count = step.counts, step.figure, step.counts[Count.BLOCKS]
    begun = ticks()
    figure[Figure.WORST] = np.inf
    if has_tied_rows(b, count):
        return np.int64(Code.UNSUITABLE)
    row_velocities(b, count, request.v_free, newton.u)
    dofs, blocks = label_islands(b, count)
    factored = factor_folded(b, count)
    place = np.zeros(dofs.shape[0], np.int64)
    guessed = warm and counts[Count.OLD] > 0
    counts[Count.ITERATIONS] = 0
    counts[Count.ATTEMPTS] = 0 if guessed else 1
    ended = np.int64(Code.ERROR)
    for i in range(count):
        if blocks[i] < 0:
            newton.f[i] = 0.0
    for island in range(dofs.shape[0]):
        members = np.flatnonzero(blocks == island)
        if members.shape[0] == 0:
            continue
        size = 0
        for j in range(island, dofs.shape[0]):
            if dofs[j] == island:
                place[j] = size
                size += 1
        arrays, whitened = pose_island(b, members, factored, newton.u, place, size)
        cones, joints = build_cones(whitened, arrays)
        n, units = cones.normal.shape[0], cones.mu.shape[0]
        theta, phi = np.empty(0), np.empty((0, 2))
        limit, attempts = step_limit(n, units), ORDERS
        if guessed:
            normal, tangent, box = read_impulses(
                b, members, request.guess, n, arrays.box_limit.shape[0]
            )
            theta, phi = from_impulses(cones, normal, tangent, box)
            limit, attempts = WARM_STEPS * n, 1
        fixed, along = np.zeros(units, np.bool_), np.zeros((units, 2))
        while True:
            theta, phi, code, steps, _ = solve_driving(
                cones, fixed, along, theta, phi, limit, DRIVING_ROUNDS, attempts
            )
            counts[Count.ITERATIONS] += steps
            if code == Code.SOLVED or attempts == ORDERS:
                break
            theta, phi = np.empty(0), np.empty((0, 2))
            limit, attempts = step_limit(n, units), ORDERS
            counts[Count.ATTEMPTS] = 1
        if code != Code.SOLVED:
            ended = np.int64(code)
        if code == Code.RAY:  # a direction, not impulses
            theta[:] = 0.0
            phi[:, :] = 0.0
        normal, tangent, joint, box = to_impulses(whitened, cones, joints, theta, phi)
        put_impulses(b, members, normal, tangent, joint, box, newton.f)
    newton.v[:] = 0.0
    add_impulses(b, 0, count, newton.f, newton.v)
    solve_skyline(factored[0], factored[1], factored[2], newton.v)
    for j in range(newton.v.shape[0]):
        newton.v[j] += request.v_free[j]
    request.outcome[:, Outcome.LOAD] = 0.0
    stopped = stop_rounding(b, g, s, request.outcome, grading.own, newton.v, step)
    now = ticks()
    step.ticks[Stage.SOLVE] += now - begun
    figure[Figure.WORST] = _grade(b, count, newton, tolerance, grading)
    if stopped and not figure[Figure.WORST] <= tolerance:
        newton.v[:] = step.v_plus
        figure[Figure.WORST] = _grade(b, count, newton, tolerance, grading)
    step.ticks[Stage.CERTIFY] += ticks() - now
    return np.int64(Code.SOLVED) if figure[Figure.WORST] <= tolerance else ended
