"""What mocap bodies lead gives way to contact.

A gripper that a mocap body leads into a table would have to move into it, and must not: both are
rigid, and no velocity obeys both. So the speeds c that rows are asked for (`bridge/mocap.py`)
become ones that can be, those of

    min  1/2 x'Mx + 1/2 sum over led rows of K (J x - c)^2    with  N x >= b,  J x = 0 elsewhere

with K so large that the mass hardly counts. The step's own problem then has the answer x in every
row, without friction and from rest: however it moves, contact over x is contact of bodies at rest
whose surfaces move, which always has one. Taking errors back at position level, rows are as soft.
"""

from __future__ import annotations

import numpy as np

from stiction.bridge.rows import Place
from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import (
    Blocks,
    Datum,
    Head,
    Kind,
    inverse_inertias,
    row_velocities,
)
from stiction.contact.problem.graph import Size
from stiction.contact.solvers.blocks.free_motion import free_all
from stiction.contact.solvers.blocks.workspace import Guess, Outcome, unpack_newton, unpack_problem
from stiction.contact.solvers.islands.solve import solve_all
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.stage import stage
from stiction.simulate.time_stepping.request import ask, solve_until
from stiction.simulate.time_stepping.workspace import Count, Step, unpack_step

STIFFNESS = 1e8
"""Impulse per speed of a led row, over that of what it moves: so much nearer is what is asked for
than to stand still. Velocities are off by the inverse of it, which the next step makes up for."""

UNLED = 1e-3
"""Residual of the problem above from which on nothing is led."""


@lean
def has_led_rows(step: Step, count):
    """Whether a mocap body asks any row for a speed; notes up to which block it leads."""
    step.counts[Count.LED_ROWS] = 0
    for i in range(count):
        if step.key[i, 0] >= 0:
            break
        if step.place[i, Place.LED] > 0.0:
            step.counts[Count.LED_ROWS] = i + 1
    return step.counts[Count.LED_ROWS] > 0


@lean_leaf
def loosen(b: Blocks, i, weight):
    """Lets the led row of block i give way."""
    b.head[i, Head.KIND] = Kind.SOFT
    b.data[i, Datum.DRAG] = STIFFNESS / weight[i, 0] if weight[i, 0] > 0.0 else 0.0


@stage("void(intp, int64)", eager=False, counted=True)
def lead_rows(address, budget):
    """Makes the speeds that the led rows of the posed step are asked for possible ones."""
    b, g, _, request = unpack_problem(address)
    system, newton = unpack_newton(address)
    _, step = unpack_step(address)
    count = step.counts[Count.BLOCKS]
    asked = False
    for i in range(step.counts[Count.LED_ROWS]):
        asked = asked or (step.place[i, Place.LED] > 0.0 and b.data[i, Datum.BOUND] != 0.0)
    if not asked:
        return
    velocity, push, free = b.velocity.copy(), b.push.copy(), request.v_free.copy()
    rows, kinds = b.head[:count, Head.ROWS].copy(), b.head[:count, Head.KIND].copy()
    for i in range(count):
        for k in range(step.kept.shape[1]):
            step.kept[i, k] = b.data[i, k]
        b.head[i, Head.ROWS] = 1
        if kinds[i] == Kind.BOX:
            b.data[i, Datum.LIMIT] = 0.0
        elif step.place[i, Place.LED] > 0.0:
            loosen(b, i, newton.weight)
    for j in range(velocity.shape[0]):
        b.velocity[j] = b.push[j] = request.v_free[j] = 0.0
    free_all(address)
    ask(
        request, np.int64(Law.FRICTIONLESS), np.int64(0), np.int64(Guess.NONE),
        solve_until(step, budget), budget,
    )  # fmt: skip
    solve_all(address, count)
    row_velocities(b, count, newton.v, newton.u)
    solved = True
    for k in range(g.size[Size.ISLANDS]):
        solved = solved and request.outcome[k, Outcome.RESIDUAL] <= UNLED
    for i in range(count):
        speed = newton.u[i, 0] + b.data[i, Datum.BOUND]
        for k in range(step.kept.shape[1]):
            b.data[i, k] = step.kept[i, k]
        b.head[i, Head.ROWS], b.head[i, Head.KIND] = rows[i], kinds[i]
        if step.place[i, Place.LED] > 0.0:
            b.data[i, Datum.BOUND] = speed if solved else 0.0
        elif solved and kinds[i] == Kind.CONTACT:
            b.data[i, Datum.BOUND] = min(b.data[i, Datum.BOUND], speed)
    for j in range(velocity.shape[0]):
        b.velocity[j], b.push[j], request.v_free[j] = velocity[j], push[j], free[j]
    inverse_inertias(b, count, step.factor, system.scratch, newton.weight)


lead = lead_rows.external
