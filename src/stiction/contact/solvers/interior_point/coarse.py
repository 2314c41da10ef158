"""The interior point without friction, ended early: overlap of large islands.

Overlap is taken back by a convex problem at position level (`simulate/time_stepping/finish.py`),
of which nobody asks more than that most of the overlap is gone: what is left is there again in the
next step. So the path is left as soon as its residual is a small part of the load, and no Newton's
method finishes it. Of heaps of hundreds of boxes that takes a quarter of the factorizations.

How it fails: where no motion takes all of the overlap back the path has no end, and its residual
says so.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.solvers.blocks.iterate import add_vector, copy_island
from stiction.contact.solvers.blocks.system import imbalance, speeds, unbalanced
from stiction.contact.solvers.blocks.workspace import (
    Setting,
    unpack_interior,
    unpack_newton,
    unpack_problem,
)
from stiction.contact.solvers.interior_point.begin import begin_near
from stiction.contact.solvers.interior_point.iteration import (
    DEEP,
    LEAST_STEP,
    LIMITS,
    NEAR_ATTEMPT,
    TO_BOUNDARY,
    direct,
    factor,
)
from stiction.contact.solvers.interior_point.rows import (
    advance,
    aim,
    find_rest,
    measure_gap,
    scale_cones,
)
from stiction.contact.solvers.interior_point.units import classify
from stiction.contact.solvers.proximal.iteration import refine
from stiction.contact.solvers.proximal.laws import enter_cones, residual_of
from stiction.kernels.clock import ticks
from stiction.kernels.stage import stage

COARSE = 1e-4
"""Residual, over the load, at which overlap is taken to be gone."""

WARM_EPS, WARM_STEPS, WARM_PATIENCE = 1e-7, 15, 2
"""Compliance, iterations at most, and those without half the residual, of Newton's method from the
last step's correction. On heaps of hundreds of boxes it seldom does; it costs a fifth of a path."""


@stage("float64(intp, int64, float64, int64)", eager=False)
def follow_coarsely(address, k, load, warm):
    """Residual of island k without friction, COARSE if it can be: of Newton's method from the
    guess, if that is `warm`, or of a path that is begun near it. Impulses and velocity are in f and
    v of Newton's method. address: of a packed workspace."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    (w,) = unpack_interior(address)
    law, facets, weight = np.int64(Law.FRICTIONLESS), np.int64(0), work.weight
    if warm == 1:
        copy_island(g, s, k, request.guess, request.start, work.f, work.v)
        found = refine(address, k, load, 0, WARM_EPS, WARM_STEPS, WARM_PATIENCE, COARSE, np.inf)
        if found <= COARSE or ticks() > request.setting[Setting.DEADLINE]:
            return found
    classify(b, g, k, law, w, weight)
    copy_island(g, s, k, request.guess, request.start, w.f, w.v)
    speeds(b, g, k, w.v, w.u)
    begin_near(b, g, k, w, weight, DEEP[NEAR_ATTEMPT] * load)
    residual = np.inf
    for turn in range(LIMITS[NEAR_ATTEMPT] + 1):
        unbalanced(b, g, s, k, w.v, w.f, y.left, w.r)
        copy_island(g, s, k, w.f, w.v, work.f, work.v)
        enter_cones(b, g, k, law, facets, work.f)
        residual = residual_of(b, g, k, law, facets, w.u, work.f, weight, load)
        residual = max(residual, imbalance(b, g, s, k, w.r) / load)
        if residual <= COARSE or turn == LIMITS[NEAR_ATTEMPT]:
            break
        gap = measure_gap(b, g, k, w, weight, 0.0)
        find_rest(b, g, k, w, weight, 0.0)
        scale_cones(b, g, k, w, weight)
        if factor(address, k, 0.0, np.int64(1)) == 0.0:
            break
        step = min(1.0, direct(address, k, 0.0, np.int64(0), 1.0))
        ahead = measure_gap(b, g, k, w, weight, step)
        centring = min(1.0, max(1e-2, (ahead / gap) ** 3)) if gap > 0.0 else 0.0
        aim(b, g, k, w, weight, centring * gap)
        step = min(1.0, TO_BOUNDARY * direct(address, k, 0.0, np.int64(0), 1.0))
        if not (step >= LEAST_STEP and step < np.inf):
            break
        if ticks() > request.setting[Setting.DEADLINE]:
            break
        add_vector(g, s, k, step, y.x, w.v)
        advance(b, g, k, w, step)
        speeds(b, g, k, w.v, w.u)
    return residual


part_coarsely = follow_coarsely.external
