"""Baraff's driving: one force after the other until its condition holds, sets keep the rest.

Symbols and sets: `sets.py`; a step: `steps.py`. What each step keeps true: all conditions of all
sets. The force that is driven grows until its own condition is met; whatever member of a set meets
its limit on the way changes sets. In 3D (his 5.6) the direction of friction at its edge is frozen;
a round ends with Newton's method on the exact law, which turns it against the slip.

How it can fail: RAY (nothing limits the driven force), SINGULAR, CYCLE (rounds ran out),
PIVOT_LIMIT.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.cones import Cones
from stiction.contact.solvers.baraff.sets import (
    BROKEN,
    CLAMPED,
    FIXED,
    FRICTION,
    HALF,
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
    answer,
    begin_slip,
    new_sets,
    new_work,
    normal_fault,
    radius,
    refresh,
    unit_fault,
    update_forces,
)
from stiction.contact.solvers.baraff.steps import separate, to_edge, travel
from stiction.kernels.compile import kernel, leaf, lean
from stiction.status import Code

LEFT_BROKEN = 1e-9
"""Violation of a condition, of the load, that is left where a round has not made it less: what is
left to rows that almost depend on others, by up to DEPENDENT_CLAMPED, and so are not held."""

RAYS = 3
"""Rays after which the directions are refreshed and the drive begun again."""


DIRECTION_STEPS = 20
"""Newton steps at most; the directions are right after some five, or the sets are wrong."""


@leaf
def step_limit(contacts, units):
    """Steps that one attempt may take; successful ones take some four per contact."""
    return 200 + 50 * (contacts + units)


@lean
def _press(p: Cones, s: Sets, i):
    """Contact i is clamped with a force of its own; its friction has to be established."""
    s.normal[i] = CLAMPED
    for u in range(p.first[i], p.first[i + 1]):
        if s.unit[u] == IDLE:
            s.unit[u] = OPEN


@lean
def drive_normal(p: Cones, s: Sets, w: Work, d, limit):
    """Drives theta_d until its condition holds; returns (code, steps)."""
    s.normal[d] = OPEN
    w.changed[0], w.changed[1] = -1, -1
    for steps in range(limit):
        if s.theta[d] >= -NEGLIGIBLE and abs(s.a[d]) <= NEGLIGIBLE:
            s.theta[d] = max(s.theta[d], 0.0)
            break
        rising = s.theta[d] < -NEGLIGIBLE or s.a[d] < 0.0
        if not rising and s.theta[d] <= NEGLIGIBLE:
            separate(p, s, d)
            return Code.SOLVED, steps
        if not answer(p, s, w, NORMAL, d, 1.0 if rising else -1.0, 0.0):
            return Code.SINGULAR, steps
        own = np.inf
        if s.theta[d] < -NEGLIGIBLE:
            own = -s.theta[d]
        elif rising and w.a[d] > RATE:
            own = -s.a[d] / w.a[d]
        elif not rising:
            own = s.theta[d]
            if w.a[d] < -RATE:
                own = min(own, s.a[d] / -w.a[d])
        before = s.theta[d]
        code, arrived = travel(p, s, w, own)
        if code != Code.SOLVED:
            return code, steps
        if arrived:
            if before < -NEGLIGIBLE:
                s.theta[d] = 0.0  # and on, if a is still negative
            elif not rising and s.theta[d] <= NEGLIGIBLE:
                separate(p, s, d)
                return Code.SOLVED, steps + 1
            else:
                break
    else:
        return Code.PIVOT_LIMIT, limit
    _press(p, s, d)
    return Code.SOLVED, steps + 1


@lean
def _aim(p: Cones, s: Sets, u, g):
    """Fills g (2,) with the direction to drive open friction in; returns whether inward, to the
    edge of its disc, or (False) against the slip; True, True if its condition holds."""
    reach = radius(p, s, u)
    size = np.hypot(s.phi[u, 0], s.phi[u, 1])
    slip = np.hypot(s.slip[u, 0], s.slip[u, 1])
    if size > reach + NEGLIGIBLE:
        g[0] = -s.phi[u, 0] / size
        g[1] = -s.phi[u, 1] / size
        return True, False
    if slip <= BROKEN:
        s.unit[u] = STICK
        return False, True
    if reach <= NEGLIGIBLE:
        begin_slip(s, u, -s.slip[u, 0], -s.slip[u, 1])
        return False, True
    g[0] = -s.slip[u, 0] / slip
    g[1] = -s.slip[u, 1] / slip
    if size >= reach - NEGLIGIBLE and s.phi[u, 0] * g[0] + s.phi[u, 1] * g[1] >= 0.0:
        begin_slip(s, u, s.phi[u, 0], s.phi[u, 1])
        return False, True
    return False, False


@lean
def drive_friction(p: Cones, s: Sets, w: Work, u, limit):
    """Drives phi_u until its condition holds; returns (code, steps).

    First against the slip, until that component is gone or the edge is met; then across it.
    """
    s.unit[u] = OPEN
    g = w.aim
    inward, holds = _aim(p, s, u, g)
    w.changed[0], w.changed[1] = -1, -1
    steps = 0
    while not holds:
        if steps >= limit:
            return Code.PIVOT_LIMIT, steps
        steps += 1
        if not answer(p, s, w, FRICTION, u, g[0], g[1]):
            s.unit[u] = OPEN
            return Code.SINGULAR, steps
        growth = p.mu[u] * w.theta[p.parent[u]] if p.parent[u] >= 0 else 0.0
        reach = radius(p, s, u)
        edge = np.inf
        stop = np.inf
        if inward:
            size = np.hypot(s.phi[u, 0], s.phi[u, 1])
            if 1.0 + growth > RATE:
                edge = (size - reach) / (1.0 + growth)
            edge = min(edge, size)
        else:
            edge = to_edge(s.phi[u, 0], s.phi[u, 1], w.phi[u, 0], w.phi[u, 1], reach, growth)
            toward = g[0] * w.slip[u, 0] + g[1] * w.slip[u, 1]
            if toward > RATE:
                stop = max(-(g[0] * s.slip[u, 0] + g[1] * s.slip[u, 1]), 0.0) / toward
        code, arrived = travel(p, s, w, min(edge, stop))
        if code != Code.SOLVED:
            s.unit[u] = OPEN
            return code, steps
        if not arrived:
            continue
        if inward:
            inward, holds = _aim(p, s, u, g)
        elif edge <= stop:
            if np.hypot(s.phi[u, 0], s.phi[u, 1]) > 0.0:
                begin_slip(s, u, s.phi[u, 0], s.phi[u, 1])
            else:
                begin_slip(s, u, g[0], g[1])
            holds = True
        elif np.hypot(s.slip[u, 0], s.slip[u, 1]) <= BROKEN:
            s.unit[u] = STICK
            holds = True
        else:
            s.along[u, 0], s.along[u, 1] = g[0], g[1]
            s.unit[u] = HALF
            g[0], g[1] = -g[1], g[0]
            if g[0] * s.slip[u, 0] + g[1] * s.slip[u, 1] > 0.0:
                g[0], g[1] = -g[0], -g[1]
    return Code.SOLVED, steps


@lean
def _give_up_broken(p: Cones, s: Sets):
    """Opens whatever does not hold after `refresh`; returns how many conditions fail, and by how
    much at most."""
    broken, worst = 0, 0.0
    for i in range(s.theta.shape[0]):
        if s.normal[i] == CLAMPED:
            fault = max(-s.theta[i], abs(s.a[i]))
            if fault > BROKEN:
                s.normal[i] = OPEN
                for u in range(p.first[i], p.first[i + 1]):
                    if s.unit[u] == STICK:
                        s.unit[u] = OPEN
            else:
                s.theta[i] = max(s.theta[i], 0.0)
        else:
            fault = normal_fault(s, i)
            if fault <= BROKEN and s.theta[i] > BROKEN:  # a drive that a ray ended: its force holds
                _press(p, s, i)
        if fault > BROKEN:
            broken, worst = broken + 1, max(worst, fault)
    for u in range(s.unit.shape[0]):
        size = np.hypot(s.phi[u, 0], s.phi[u, 1])
        slip = np.hypot(s.slip[u, 0], s.slip[u, 1])
        fault = 0.0
        if s.unit[u] == STICK:
            fault = max(size - radius(p, s, u), slip)
        elif s.unit[u] == SLIP and size > NEGLIGIBLE:
            fault = s.along[u, 0] * s.slip[u, 0] + s.along[u, 1] * s.slip[u, 1] + slip
        elif s.unit[u] == OPEN:
            fault = unit_fault(p, s, u)
        if fault > BROKEN:
            s.unit[u] = OPEN
            broken, worst = broken + 1, max(worst, fault)
    return broken, worst


@lean
def _next(p: Cones, s: Sets, order, last, greedy):
    """(kind, index) of what to establish next, or (0, -1): the friction of the contact whose
    normal was last driven, else the worst normal (the first by `order` unless `greedy`), else
    friction by `order`."""
    if last >= 0 and s.normal[last] == CLAMPED:
        for u in range(p.first[last], p.first[last + 1]):
            if s.unit[u] == OPEN:
                return FRICTION, u
    worst, found = BROKEN, -1
    for k in range(order.shape[0]):
        i = order[k]
        if s.normal[i] != CLAMPED:
            fault = normal_fault(s, i)
            if fault > worst * (1.0 + 1e-9):
                worst, found = fault, i
                if not greedy:
                    break
    if found >= 0:
        return NORMAL, found
    for k in range(order.shape[0]):
        for u in range(p.first[order[k]], p.first[order[k] + 1]):
            if s.unit[u] == OPEN and (
                s.normal[order[k]] == CLAMPED or np.hypot(s.phi[u, 0], s.phi[u, 1]) > BROKEN
            ):
                return FRICTION, u
    for u in range(s.unit.shape[0]):
        if s.unit[u] == OPEN and p.parent[u] < 0:
            return FRICTION, u
    return NORMAL, -1


@lean
def establish(p: Cones, s: Sets, w: Work, order, greedy, limit, rounds):
    """Establishes the conditions everywhere, from the sets and forces in `s`.

    Returns (code, steps, rounds used): a round is his algorithm, then `refresh`. On RAY the
    direction is in w.theta, w.phi. With frozen directions a ray is no proof in space, so it
    counts only if it comes back after they were refreshed.
    """
    steps = 0
    rays = 0
    before = np.inf
    update_forces(p, s)
    for turn in range(rounds):
        refresh(p, s, w, DIRECTION_STEPS)
        broken, worst = _give_up_broken(p, s)
        if broken == 0 or before <= worst <= LEFT_BROKEN:
            return Code.SOLVED, steps, turn
        if worst == before and rays == 0:  # the round has changed nothing, and so would all others
            return Code.CYCLE, steps, turn
        before = worst
        last = -1
        while True:
            kind, d = _next(p, s, order, last, greedy)
            if d < 0:
                break
            if steps >= limit:
                return Code.PIVOT_LIMIT, steps, turn
            if kind == NORMAL:
                code, more = drive_normal(p, s, w, d, limit - steps)
                last = d
            else:
                code, more = drive_friction(p, s, w, d, limit - steps)
                last = -1
            steps += more + 1
            if code == Code.RAY and rays < RAYS:
                rays += 1
                break
            if code != Code.SOLVED:
                return code, steps, turn
        for i in range(s.theta.shape[0]):
            if s.normal[i] == OPEN and s.theta[i] <= BROKEN and normal_fault(s, i) <= BROKEN:
                separate(p, s, i)
    return Code.CYCLE, steps, rounds


@kernel
def sequence(n, attempt):
    """(n,) the order in which attempt number `attempt` takes the contacts: as they come, then
    from other beginnings (steps of the golden ratio), every other time backwards."""
    start = int(n * ((attempt * 0.6180339887498949) % 1.0))
    out = np.empty(n, np.int64)
    for k in range(n):
        out[k] = (start + (n - 1 - k if attempt % 2 else k)) % n
    return out


@lean
def warm_sets(p: Cones, s: Sets, theta, phi):
    """Sets and forces of an earlier answer: what presses is clamped, what is inside its disc
    sticks, what is at its edge slips. Dynamic friction stays what it is."""
    for i in range(theta.shape[0]):
        presses = theta[i] > BROKEN
        s.theta[i] = theta[i] if presses else 0.0
        s.normal[i] = CLAMPED if presses else SEPARATING
    for u in range(p.mu.shape[0]):
        if s.unit[u] == FIXED or (p.parent[u] >= 0 and s.normal[p.parent[u]] != CLAMPED):
            continue
        s.phi[u, 0], s.phi[u, 1] = phi[u, 0], phi[u, 1]
        size = np.hypot(phi[u, 0], phi[u, 1])
        if size > BROKEN and size >= radius(p, s, u) * (1.0 - 1e-9):
            begin_slip(s, u, phi[u, 0], phi[u, 1])
        else:
            s.unit[u] = STICK


@kernel
def solve_driving(p: Cones, fixed, along, start_theta, start_phi, limit, rounds, attempts):
    """(theta, phi, code, steps, rounds): forces that obey the laws, or on RAY a direction.

    fixed (u,) bool: units with dynamic friction, along (u, 2) their directions; start_theta,
    start_phi: an earlier answer, or empty. An attempt that fails is followed by another
    with the contacts in another order.
    """
    n = p.normal.shape[0]
    w = new_work(p)
    steps = 0
    turns = 0
    code = Code.ERROR
    s = new_sets(p)
    for attempt in range(attempts):
        if attempt > 0:
            s = new_sets(p)
        for u in range(fixed.shape[0]):
            if fixed[u]:
                s.unit[u] = FIXED
                s.along[u] = along[u]
        if attempt == 0 and n > 0 and start_theta.shape[0] == n:
            warm_sets(p, s, start_theta, start_phi)
        order = sequence(n, attempt)
        code, more, turn = establish(p, s, w, order, attempt == 0, limit, rounds)
        steps += more
        turns += turn
        if code == Code.SOLVED:
            return s.theta, s.phi, np.int64(code), steps, turns
    if code == Code.RAY:
        return w.theta, w.phi, np.int64(code), steps, turns
    return s.theta, s.phi, np.int64(code), steps, turns
