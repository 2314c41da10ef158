"""One step of Baraff's driving: how far it may go, and the change of sets where it ends.

The driven force's answer is in `Work` (`sets.py`). A step goes on until the driven force's own
condition is met or a member of a set meets its limit, which then changes sets. A member that
bounces between two sets with a step of zero is given up, and established later (his 5.4).
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.cones import Cones
from stiction.contact.solvers.baraff.sets import (
    BROKEN,
    CLAMPED,
    FIXED,
    FRICTION,
    IDLE,
    NEGLIGIBLE,
    NORMAL,
    OPEN,
    RATE,
    SEPARATING,
    SLIP,
    STICK,
    Sets,
    Work,
    begin_slip,
    radius,
    update_forces,
)
from stiction.kernels.compile import lean
from stiction.status import Code


@lean
def to_edge(f0, f1, d0, d1, reach, growth):
    """Smallest step at which |f + step d| = reach + step growth from inside (his eq. (23)), or
    inf. The root is written without cancellation."""
    a = d0 * d0 + d1 * d1 - growth * growth
    b = f0 * d0 + f1 * d1 - reach * growth
    c = min(f0 * f0 + f1 * f1 - reach * reach, 0.0)
    under = b * b - a * c
    if under < 0.0:
        return np.inf
    if b > 0.0:
        return -c / (b + np.sqrt(under))
    if a > 0.0:
        return (-b + np.sqrt(under)) / a
    return np.inf


@lean
def _longest_step(p: Cones, s: Sets, w: Work):
    """(step, kind, index) of the first member of a set that meets its limit, or (inf, 0, -1)."""
    top = 1.0
    for i in range(w.theta.shape[0]):
        top = max(top, max(abs(w.theta[i]), abs(w.a[i])))
    rate = RATE * top
    step, kind, index = np.inf, NORMAL, -1
    for i in range(w.theta.shape[0]):
        if s.normal[i] == CLAMPED and w.theta[i] < -rate:
            here = max(s.theta[i], 0.0) / -w.theta[i]
        elif s.normal[i] == SEPARATING and w.a[i] < -rate:
            here = max(s.a[i], 0.0) / -w.a[i]
        else:
            continue
        if here < step:
            step, index = here, i
    for u in range(s.unit.shape[0]):
        here = np.inf
        if s.unit[u] == STICK:
            growth = p.mu[u] * w.theta[p.parent[u]] if p.parent[u] >= 0 else 0.0
            if abs(growth) > rate or abs(w.phi[u, 0]) + abs(w.phi[u, 1]) > rate:
                here = to_edge(
                    s.phi[u, 0], s.phi[u, 1], w.phi[u, 0], w.phi[u, 1], radius(p, s, u), growth
                )
        elif s.unit[u] == SLIP:
            toward = s.along[u, 0] * w.slip[u, 0] + s.along[u, 1] * w.slip[u, 1]
            if toward > rate:
                now = s.along[u, 0] * s.slip[u, 0] + s.along[u, 1] * s.slip[u, 1]
                here = max(-now, 0.0) / toward
        if here < step:
            step, kind, index = here, FRICTION, u
    return step, kind, index


@lean
def _advance(p: Cones, s: Sets, w: Work, step):
    """Takes the step; friction at its edge is set there, not integrated."""
    for i in range(s.theta.shape[0]):
        s.theta[i] += step * w.theta[i]
        if s.normal[i] == CLAMPED:
            s.theta[i] = max(s.theta[i], 0.0)
    for u in range(s.phi.shape[0]):
        s.phi[u, 0] += step * w.phi[u, 0]
        s.phi[u, 1] += step * w.phi[u, 1]
    update_forces(p, s)


@lean
def separate(p: Cones, s: Sets, i):
    """Contact i presses no more; friction that was given up elsewhere stays to be driven."""
    s.normal[i] = SEPARATING
    s.theta[i] = 0.0
    for u in range(p.first[i], p.first[i + 1]):
        if s.unit[u] != FIXED and (
            s.unit[u] == SLIP or np.hypot(s.phi[u, 0], s.phi[u, 1]) <= BROKEN
        ):
            s.unit[u] = IDLE
            s.phi[u, 0], s.phi[u, 1] = 0.0, 0.0
        elif s.unit[u] == STICK:
            s.unit[u] = OPEN


@lean
def _clamp(p: Cones, s: Sets, i):
    """Contact i presses from now on; its friction starts at its edge, which is zero."""
    s.normal[i] = CLAMPED
    for u in range(p.first[i], p.first[i + 1]):
        if s.unit[u] == IDLE:
            if np.hypot(s.slip[u, 0], s.slip[u, 1]) > BROKEN:
                begin_slip(s, u, -s.slip[u, 0], -s.slip[u, 1])
            else:
                s.unit[u] = STICK


@lean
def _change_sets(p: Cones, s: Sets, kind, index, bounced):
    """Moves a member that met its limit to its other set; gives it up where it bounced."""
    if kind == NORMAL:
        if s.normal[index] == CLAMPED:
            separate(p, s, index)
            if bounced:
                s.normal[index] = OPEN
        elif bounced:
            s.normal[index] = OPEN
        else:
            _clamp(p, s, index)
        return
    u = index
    if bounced:
        s.unit[u] = OPEN
    elif s.unit[u] == STICK:
        if np.hypot(s.phi[u, 0], s.phi[u, 1]) > NEGLIGIBLE:
            begin_slip(s, u, s.phi[u, 0], s.phi[u, 1])
        else:  # at the cone's tip: the direction is that of the slip to come
            s.unit[u] = OPEN
    else:
        # In a plane slip is now zero. In space what is left of it lies across `along`: the
        # friction has to be established anew, in another direction.
        still = np.hypot(s.slip[u, 0], s.slip[u, 1]) <= BROKEN
        s.unit[u] = STICK if still else OPEN


@lean
def travel(p: Cones, s: Sets, w: Work, own):
    """One step: as far as `own`, or to the first change of sets, which is made.

    A member that is to change again, after a step of zero, has bounced. Returns (code, own
    reached).
    """
    step, kind, index = _longest_step(p, s, w)
    arrived = own <= step
    if arrived:
        step = own
    if step == np.inf:
        return Code.RAY, False
    size = 0.0
    for i in range(s.theta.shape[0]):
        size = max(size, max(abs(w.theta[i]), abs(w.a[i])))
    still = step * max(size, 1.0) <= NEGLIGIBLE
    _advance(p, s, w, step)
    if arrived:
        return Code.SOLVED, True
    bounced = still and w.changed[0] == kind and w.changed[1] == index
    _change_sets(p, s, kind, index, bounced)
    w.changed[0], w.changed[1] = kind, index
    return Code.SOLVED, False
