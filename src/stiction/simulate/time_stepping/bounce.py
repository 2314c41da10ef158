"""Impacts that bounce, before a step: Newton's hypothesis, in passes.

Contacts that would close within the step, faster than `Config.bounce`, are hit. In a pass

    a contact that is hit     N v+ >= -e N v-, with its friction
    any other contact         leaves alone: its bodies have not met yet
    limits                    as in the step
    equalities                keep the speed that they have

hold together in one problem without forces, solved and graded as that of a step. Its velocity is
the next pass's: contacts that it made close are hit then. So a row of balls passes an impact on,
the last one flies off and the others stay (Newton's cradle), where one problem for all would part
them in pairs. What is left after PASSES, or is slower, ends without bounce in the step itself.

Without friction a pass gives no energy: where an impulse acts, N (v+ + v-) = (1 - e) N v- <= 0.
With friction at eccentric bodies it may (Kane's example); e is then halved for that pass, in the
end to none, which cannot.
"""

from __future__ import annotations

import numpy as np

from stiction.bridge.layout import number, offset
from stiction.bridge.rows import Key, Place
from stiction.contact.certificate.grading import set_scales
from stiction.contact.problem.blocks import (
    ROWS,
    Blocks,
    Datum,
    Head,
    Kind,
    add_impulses,
    row_velocities,
)
from stiction.contact.solvers.blocks.workspace import Guess, unpack_newton, unpack_problem
from stiction.contact.solvers.islands.solve import solve_all
from stiction.kernels.compile import lean
from stiction.kernels.skyline import solve_skyline
from stiction.kernels.stage import stage
from stiction.simulate.time_stepping.request import ask, grade, solve_until
from stiction.simulate.time_stepping.workspace import Count, Step, unpack_step

_TIMESTEP = offset("mjModel", "opt", "timestep")

PASSES = 40
"""Of one step."""

HALVINGS = 6
"""How often e is halved before it is zero."""

GAIN = 1e-10
"""Rise of the kinetic energy, over what the impulses moved, that is rounding."""

UNHIT_SPEED = 100.0
"""Closing speed, over the fastest, up to which a contact that is not hit leaves alone."""


@lean
def _pose_impacts(b: Blocks, step: Step, fast, dt, u, share):
    """Turns the blocks into the problem of a pass; returns the fastest closing speed of a contact
    that bounces, or zero. fast: `Config.bounce`; u: speeds along rows at b.velocity; share: of
    e."""
    count, data, kept = step.counts[Count.BLOCKS], b.data, step.kept
    fastest, hardest = 0.0, 0.0
    for i in range(count):
        if b.head[i, Head.KIND] == Kind.CONTACT and step.key[i, Key.INDEX] >= 0:
            speed = u[i, 0] + data[i, Datum.BOUND]
            hit = speed < -fast and max(step.place[i, Place.GAP], 0.0) + dt * speed <= 0.0
            e = max(step.restitution[step.key[i, 0]], step.restitution[step.key[i, 1]])
            hardest = max(hardest, -speed)
            if hit and e > 0.0:
                fastest = max(fastest, -speed)
    if fastest == 0.0:
        return 0.0
    for i in range(count):
        speed, kind = u[i, 0] + data[i, Datum.BOUND], b.head[i, Head.KIND]
        if kind == Kind.BOX:
            data[i, Datum.LIMIT] = 0.0
        elif kind != Kind.CONTACT:
            data[i, Datum.BOUND] = speed
        elif step.key[i, Key.INDEX] < 0:
            data[i, Datum.BOUND] = kept[i, Datum.BOUND]
        else:
            hit = speed < -fast and max(step.place[i, Place.GAP], 0.0) + dt * speed <= 0.0
            e = max(step.restitution[step.key[i, 0]], step.restitution[step.key[i, 1]])
            data[i, Datum.DRAG] = 0.0
            data[i, Datum.BOUND] = -UNHIT_SPEED * hardest
            if hit:
                back = -share * e * speed
                data[i, Datum.BOUND] = back if back > 0.0 else kept[i, Datum.BOUND]
    return fastest


@lean
def _energy_gain(b: Blocks, count, f, v, work):
    """(rise of the kinetic energy by the impulses f, from b.velocity to v; its scale); work (nv,)
    is overwritten."""
    for j in range(v.shape[0]):
        work[j] = 0.0
    add_impulses(b, 0, count, f, work)
    gain, size = 0.0, 0.0
    for j in range(v.shape[0]):
        part = 0.5 * work[j] * (v[j] + b.velocity[j])
        gain += part
        size += abs(work[j]) * (abs(v[j]) + abs(b.velocity[j]))
    return gain, size


@stage("void(int64, float64, int64, int64, int64, float64, intp)", eager=False, counted=True)
def take_impacts(m, fast, law, facets, budget, tolerance, address):
    """Takes the posed step's velocity through its impacts; their impulses go to `Step.impact`, and
    the free velocity follows. A pass whose certificate fails is not taken. fast and what follows:
    entries of `Config`."""
    b, _, _, request = unpack_problem(address)
    _, newton = unpack_newton(address)
    grading, step = unpack_step(address)
    count, dt, nv = step.counts[Count.BLOCKS], number(m + _TIMESTEP), b.first.shape[0]
    for i in range(count):
        for r in range(ROWS):
            step.impact[i, r] = 0.0
        for k in range(step.kept.shape[1]):
            step.kept[i, k] = b.data[i, k]
    before = b.velocity.copy()
    push = b.push.copy()
    taken = 0
    while taken < PASSES:
        share, fine = 1.0, False
        for halving in range(HALVINGS + 2):
            row_velocities(b, count, b.velocity, newton.u)
            if _pose_impacts(b, step, fast, dt, newton.u, share) == 0.0:
                break
            for j in range(nv):
                b.push[j] = 0.0
                request.v_free[j] = b.velocity[j]
            latest = solve_until(step, budget)
            ask(request, law, facets, np.int64(Guess.NONE), latest, budget)
            solve_all(address, count)
            set_scales(b, request.v_free, grading)
            fine = grade(address, tolerance) <= tolerance
            gain, size = _energy_gain(b, count, newton.f, newton.v, grading.work[0])
            if not fine or gain <= GAIN * size or share == 0.0:
                break
            share = 0.5 * share if halving < HALVINGS else 0.0
        if not fine:
            break
        for i in range(count):
            for r in range(ROWS):
                step.impact[i, r] += newton.f[i, r]
        b.velocity[:] = newton.v
        taken += 1
    for i in range(count):
        for k in range(step.kept.shape[1]):
            b.data[i, k] = step.kept[i, k]
    b.push[:] = push
    if taken > 0:
        # A soft equality's target is its speed before the step and what its spring adds.
        row_velocities(b, count, b.velocity - before, newton.u)
        for i in range(count):
            if b.head[i, Head.KIND] == Kind.SOFT:
                b.data[i, Datum.BOUND] += newton.u[i, 0] + b.data[i, Datum.BOUND]
    request.v_free[:] = push
    solve_skyline(step.factor, b.row, b.first, request.v_free)
    for j in range(nv):
        request.v_free[j] += b.velocity[j]


bounce = take_impacts.external
