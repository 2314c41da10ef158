"""Contacts ahead that a step does not come to: left out of its problem, until its answer shows
otherwise.

Margins see whatever might meet within the step. In a cloud of bodies that fall together this is
everything within a few radii, though none of it closes. A contact at a distance enters the problem
by what its two sides do along its normal, at their present speed, in free motion, and, if they
belong to a tree that contact acts on, at rest or pushed on: a body that is stopped is run into by
those behind it, and one that is hit runs into those before it. Trees that such a contact acts on
are live, too, and so forth.

This is a guess, and nothing rests on it. A contact without impulse obeys every law if the answer
does not close its gap. `take_in` looks at each that was left out, with the velocity of the answer;
what it would run into is taken in, and the step is solved anew. Contacts of a pair go together:
faces meet by all of their corners.
"""

from __future__ import annotations

from stiction.bridge.bodies import body_of_geom, motion_at
from stiction.bridge.contacts import end_of_pair
from stiction.bridge.layout import (
    integer,
    integers,
    number,
    numbers,
    offset,
    pointer,
    size_of,
    table,
)
from stiction.bridge.margins import AHEAD
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.triples import dot

LEFT_OUT = 8
"""`mjContact.exclude` of a contact that was left out, while its step lasts."""

IN_GAP = 1
"""The same of a contact that MuJoCo sees and has no rows for."""

FEW = 50
"""Contacts of which none is left out: they cost little, and reports tell of what is near."""

ROUNDS = 8
"""Looks at all contacts, each with the live trees that the one before found: what is live farther
away is found by `take_in`."""

OVERLAPS = 2.0
"""Distance that taking overlap back may move a tree, over the deepest overlap that it is in."""

KICKED = 0.3
"""Speed that contact may give a live tree in any direction, over the fastest at which something
runs into it."""

PASSED_ON = 0.5
"""Of what contact gives a tree, that it passes on to those that it touches."""

SINGLE = 6
"""Degrees of freedom of a free body. Larger trees have limits, and joints that pass on impulses:
they are taken for live."""

_SIZE = size_of("mjContact")
_DIST, _POS, _FRAME, _GEOM, _EXCLUDE = (
    offset("mjContact", name) for name in ("dist", "pos", "frame", "geom", "exclude")
)
_TIMESTEP = offset("mjModel", "opt", "timestep")
_NBODY, _NTREE, _TREE, _DOFS = (
    offset("mjModel", name) for name in ("nbody", "ntree", "body_treeid", "tree_dofnum")
)
_NCON, _CONTACT, _CVEL = (offset("mjData", name) for name in ("ncon", "contact", "cvel"))


@leaf
def speed_along(m, d, body, speeds, contact):
    """Speed of a body along a contact's normal, at the contact [m/s]; speeds (nbody, 6) as cvel."""
    _, velocity = motion_at(m, d, body, speeds, numbers(contact + _POS, 3))
    return dot(numbers(contact + _FRAME, 3), velocity)


@leaf
def _mark(start, end, before, after):
    """Gives contacts from `start` to `end` that are marked as `before` another mark."""
    for contact in range(start, end, _SIZE):
        exclude = integers(contact + _EXCLUDE, 1)
        if exclude[0] == before:
            exclude[0] = after


@leaf
def _count_left(start, end):
    """How many contacts from `start` to `end` are left out."""
    count = 0
    for contact in range(start, end, _SIZE):
        count += integer(contact + _EXCLUDE) == LEFT_OUT
    return count


@leaf
def closing_speed(m, d, contact, speeds):
    """How fast the two sides of a contact approach each other [m/s]; speeds (nbody, 6) as cvel."""
    geoms = integers(contact + _GEOM, 2)
    a, b = body_of_geom(m, geoms[0]), body_of_geom(m, geoms[1])
    return speed_along(m, d, a, speeds, contact) - speed_along(m, d, b, speeds, contact)


@leaf
def _approach(m, d, contact, now, free, first_is_live, second_is_live):
    """Fastest at which the two sides of a contact may approach each other [m/s]: each at its
    present speed, in free motion, or at rest if its tree is live."""
    geoms = integers(contact + _GEOM, 2)
    a, b = body_of_geom(m, geoms[0]), body_of_geom(m, geoms[1])
    p_now, p_free = speed_along(m, d, a, now, contact), speed_along(m, d, a, free, contact)
    q_now, q_free = -speed_along(m, d, b, now, contact), -speed_along(m, d, b, free, contact)
    closing = max(p_now + q_now, p_free + q_free)
    if first_is_live or second_is_live:
        p, q = max(p_now, p_free), max(q_now, q_free)
        if first_is_live:
            p = max(p, 0.0)
        if second_is_live:
            q = max(q, 0.0)
        closing = max(closing, p + q)
    return closing


@leaf
def _trees_of(m, contact, tree):
    """The two trees of a contact; -1 for what does not move."""
    geoms = integers(contact + _GEOM, 2)
    return tree[body_of_geom(m, geoms[0])], tree[body_of_geom(m, geoms[1])]


@kernel
def _find_depths(m, d, tree, depth):
    """depth (ntree,) := the deepest overlap that each tree is in [m]."""
    begin = pointer(d + _CONTACT)
    for t in range(depth.shape[0]):
        depth[t] = 0.0
    for contact in range(begin, begin + integer(d + _NCON) * _SIZE, _SIZE):
        if number(contact + _DIST) < 0.0:
            for t in _trees_of(m, contact, tree):
                if t >= 0:
                    depth[t] = max(depth[t], -number(contact + _DIST))


@kernel
def _spread_kicks(m, d, tree, now, free, live, kick):
    """kick (ntree,) := the speed that contacts which are in may give a tree [m/s], at least what
    it was: how fast they close beyond their gaps, and a share of what the other side is given."""
    begin, dt = pointer(d + _CONTACT), number(m + _TIMESTEP)
    for contact in range(begin, begin + integer(d + _NCON) * _SIZE, _SIZE):
        if integer(contact + _EXCLUDE) != 0:
            continue
        a, b = _trees_of(m, contact, tree)
        first, second = a >= 0 and live[a] >= 0, b >= 0 and live[b] >= 0
        fast = _approach(m, d, contact, now, free, first, second)
        fast -= max(number(contact + _DIST), 0.0) / dt
        from_a = max(fast, PASSED_ON * kick[a] + min(fast, 0.0)) if a >= 0 else fast
        from_b = max(fast, PASSED_ON * kick[b] + min(fast, 0.0)) if b >= 0 else fast
        if a >= 0:
            kick[a] = max(kick[a], from_b)
        if b >= 0:
            kick[b] = max(kick[b], from_a)


@kernel
def leave_out(m, d, free, touch, live, depth, kick):
    """Marks contacts that the step does not come to, as far as can be told before it; between
    `mj_collision` and `mj_makeConstraint`. How many there are.

    free (nbody, 6): velocities without contact, as cvel; touch: gap that counts as touching [m];
    live, depth, kick (ntree,): scratch, whether contact acts on a tree (1, else -1), the deepest
    overlap that it is in [m], and the speed that contact may give it [m/s].
    """
    nbody, ncon = pointer(m + _NBODY), integer(d + _NCON)
    if ncon <= FEW:
        return 0
    now = table(pointer(d + _CVEL), nbody, 6)
    tree = integers(pointer(m + _TREE), nbody)
    dofs = integers(pointer(m + _DOFS), pointer(m + _NTREE))
    dt = number(m + _TIMESTEP)
    begin, end_of_all = pointer(d + _CONTACT), pointer(d + _CONTACT) + ncon * _SIZE
    _mark(begin, end_of_all, 0, LEFT_OUT)
    for t in range(live.shape[0]):
        live[t] = 1 if dofs[t] > SINGLE else -1
        kick[t] = 0.0
    _find_depths(m, d, tree, depth)
    left, found = ncon, True
    for turn in range(ROUNDS):
        if not found:
            break
        if turn > 0:
            _spread_kicks(m, d, tree, now, free, live, kick)
        found, left, start = False, 0, begin
        while start < end_of_all:
            end = end_of_pair(start, end_of_all)
            waiting, closes = _count_left(start, end), False
            if waiting > 0:
                a, b = _trees_of(m, start, tree)
                first, second = a >= 0 and live[a] >= 0, b >= 0 and live[b] >= 0
                spare = max(depth[a] if a >= 0 else 0.0, depth[b] if b >= 0 else 0.0)
                spare = touch + OVERLAPS * spare
                kicked = KICKED * ((kick[a] if first else 0.0) + (kick[b] if second else 0.0))
                for contact in range(start, end, _SIZE):
                    beyond = number(contact + _DIST) - spare
                    if not closes and beyond > 0.0:
                        closing = _approach(m, d, contact, now, free, first, second)
                        beyond -= AHEAD * dt * (closing + kicked)
                    closes = closes or beyond <= 0.0
                if closes:
                    _mark(start, end, LEFT_OUT, 0)
                    found = True
                    for t in (a, b):
                        if t >= 0:
                            live[t] = 1
                else:
                    left += waiting
            start = end
    return left


@kernel
def take_in(m, d, speeds):
    """Takes in contacts that were left out and that bodies with speeds (nbody, 6), as cvel, would
    run into within the step; how many."""
    begin = pointer(d + _CONTACT)
    end_of_all, dt = begin + integer(d + _NCON) * _SIZE, number(m + _TIMESTEP)
    taken, start = 0, begin
    while start < end_of_all:
        end, hit = end_of_pair(start, end_of_all), False
        for contact in range(start, end, _SIZE):
            if integer(contact + _EXCLUDE) == LEFT_OUT and not hit:
                hit = dt * closing_speed(m, d, contact, speeds) > number(contact + _DIST)
        if hit:
            taken += _count_left(start, end)
            _mark(start, end, LEFT_OUT, 0)
        start = end
    return taken


@kernel
def take_all_in(d):
    """Takes in all contacts that were left out."""
    begin = pointer(d + _CONTACT)
    _mark(begin, begin + integer(d + _NCON) * _SIZE, LEFT_OUT, 0)


@kernel
def settle_marks(d):
    """Marks what was left out as MuJoCo marks contacts in a gap."""
    begin = pointer(d + _CONTACT)
    _mark(begin, begin + integer(d + _NCON) * _SIZE, LEFT_OUT, IN_GAP)
