"""Rows that are stiffened step by step: what is done on heaps that are wrong in many places.

A heap with much friction that lands, or is wedged, has so many ways to be wrong that paths to an
answer turn back and forth for thousands of factorizations, and patches have nothing right around
them. With soft springs in the place of its rows, as in `curve.py`, it has one answer, and Newton's
method finds it. So, from any impulses q on,

    theta = q - s u / w,   f = theta taken into its cone,   M (v - v0) = h f_applied + A' f

is solved for v, the impulses f take the place of q, s grows, and so on. What is left of u falls by
1 / (1 + s l) in every step, l being what a row's speed answers to its impulse, over w: while s is
small all comes near that agrees with the rest, and as it grows what is harder to decide, a few
contacts at a time. Where q does not change any more, Coulomb's law holds, whatever s is. It is the
proximal method of points; for a law that were monotone s could be anything.

Each step is solved by Newton's method, all modes at once, its steps shortened until they leave less
of the momentum. Where none does, the springs are too stiff: nothing near what is known answers
them. Then s falls, and the heap gives way elsewhere.

What each step keeps true: the momentum balance up to ANSWERED, every impulse in its cone. How it
fails: factorizations or time run out, where s goes up and down and no more is decided; the best
iterate is kept, and its residual returned. Of 59 steps of falling bunnies, spheres and boxes that
attempts of the interior point had left, it solves all in 1,000 factorizations, the median being 90
to 200; of 9 of bunnies that have come to lie, wedged, 4 in 2,500. Of a castle of sand, 183 grains
in layers with mu = 1 that land at once, it comes within 1e-3 of an answer: wherever that heap is
nearly right, a dozen of its modes of motion are driven by the friction that should hold them.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import Blocks
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.iterate import copy_island
from stiction.contact.solvers.blocks.system import factor_system, solve, speeds, unbalanced
from stiction.contact.solvers.blocks.workspace import (
    InteriorWorkspace,
    NewtonWorkspace,
    Setting,
    System,
    unpack_interior,
    unpack_newton,
    unpack_problem,
)
from stiction.contact.solvers.interior_point.iteration import FINISH_EPS, KICK
from stiction.contact.solvers.proximal.iteration import LEAST_EPS, refine
from stiction.contact.solvers.proximal.laws import residual_of
from stiction.contact.solvers.stiffening.springs import (
    choose_anew,
    draw_springs,
    find_impulses,
    move,
    respond,
)
from stiction.kernels.clock import ticks
from stiction.kernels.compile import lean
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.stage import stage

SOFTEST, STIFF_ENOUGH = 3.0, 1e7
"""Stiffness over a row's own inertia at the start, and at most: beyond, rounding counts in the
impulses."""

STIFFER, SOFTER = 3.0, 0.3
"""What s is multiplied by after a step that was solved, and after one that was not. With 1.4 and
0.5 it takes as many factorizations, and leaves 2 of 59 heaps after 1,500."""

ANSWERED = 1e-9
"""Momentum over the load, by energy, with which a step is solved."""

NEWTON_STEPS, FIRST_NEWTON_STEPS = 8, 60
"""Factorizations of a step at most, and of the first one, which may have far to go."""

LEAST_SHARE, LEAST_GAIN = 1e-3, 1e-4
"""Share of Newton's step at least, and of it the part by which the momentum that is left has to
fall."""

NEARLY_RIGHT, TRIED_AGAIN = 1e-4, 0.1
"""Residual at which Newton's method on the law itself is tried; and of the one at which it was, if
that did not do."""

LAST_STEPS, LAST_PATIENCE = 12, 3
"""Its iterations at most, and those without half the residual."""


@lean
def _look(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, work: NewtonWorkspace,
    w: InteriorWorkspace, stiff, load,
):  # fmt: skip
    """Modes and impulses at the speeds at hand; what they leave of the momentum, in y.rhs, and its
    size over the load, by energy."""
    choose_anew(b, g, k, work, w, stiff)
    find_impulses(b, g, k, work, w, stiff)
    unbalanced(b, g, s, k, work.v, work.f, y.left, y.rhs)
    total = 0.0
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            total += y.rhs[j] * y.rhs[j] / b.mass[b.row[j] + j]
    return np.sqrt(total) / load


@lean
def _answer_springs(
    b: Blocks, g: Graph, s: BlockMatrix, y: System, k, work: NewtonWorkspace,
    w: InteriorWorkspace, stiff, load, setting, limit,
):  # fmt: skip
    """Whether Newton's method finds the velocity for springs of this stiffness, from the one at
    hand, in `limit` factorizations."""
    speeds(b, g, k, work.v, work.u)
    off = _look(b, g, s, y, k, work, w, stiff, load)
    for _ in range(limit):
        if off <= ANSWERED:
            return True
        slides = respond(b, g, k, work, w, stiff, y.D)
        setting[Setting.FACTORIZATIONS] += 1
        if not off < np.inf or factor_system(b, g, s, y, k, np.int64(not slides)) == 0.0:
            return False
        solve(b, g, s, y, k, np.int64(0))
        share, before = 1.0, off
        move(b, g, s, k, work, y.x, y.change, share)
        off = _look(b, g, s, y, k, work, w, stiff, load)
        while not off < (1.0 - LEAST_GAIN * share) * before:
            if share < LEAST_SHARE:
                return False
            share *= 0.5
            move(b, g, s, k, work, y.x, y.change, -share)
            off = _look(b, g, s, y, k, work, w, stiff, load)
    return off <= ANSWERED


@stage("float64(intp, int64, float64, float64, float64, int64)", eager=False)
def stiffen_by_steps(address, k, load, content, least, limit):
    """Residual of the best iterate, which replaces the impulses f and the velocity v of island k,
    where it begins, if it is better than their residual, `least`. content: residual at which it
    ends; limit: factorizations, after which no step is begun; address: of a packed workspace."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    setting = request.setting
    law, facets = setting[Setting.LAW], setting[Setting.FACETS]
    copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
    copy_island(g, s, k, work.f, work.v, w.f, w.v)
    draw_springs(g, k, w)
    best, stiff, finishable, most = least, SOFTEST, NEARLY_RIGHT, FIRST_NEWTON_STEPS
    last = setting[Setting.FACTORIZATIONS] + limit
    while setting[Setting.FACTORIZATIONS] < last and ticks() <= setting[Setting.DEADLINE]:
        solved = _answer_springs(b, g, s, y, k, work, w, stiff, load, setting, most)
        most = NEWTON_STEPS
        if not solved and stiff > SOFTEST:
            copy_island(g, s, k, w.f, w.v, work.f, work.v)
            stiff = max(SOFTEST, SOFTER * stiff)
            continue
        copy_island(g, s, k, work.f, work.v, w.f, w.v)
        if not solved:  # as far as it came
            continue
        residual = residual_of(b, g, k, law, facets, work.u, work.f, work.weight, load)
        if residual < best:
            best = residual
            copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
        if content < residual <= finishable:
            finishable = TRIED_AGAIN * residual
            eps = max(LEAST_EPS, min(FINISH_EPS, KICK * residual))
            found = refine(address, k, load, 1, eps, LAST_STEPS, LAST_PATIENCE, content, np.inf)
            if found < best:
                best = found
                copy_island(g, s, k, work.f, work.v, w.best_f, w.best_v)
            copy_island(g, s, k, w.f, w.v, work.f, work.v)
        if best <= content:
            break
        stiff = min(STIFF_ENOUGH, STIFFER * stiff)
    copy_island(g, s, k, w.best_f, w.best_v, work.f, work.v)
    return best
