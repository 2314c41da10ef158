"""Contacts between bodies that a rigid equality joins where their geoms overlap.

Links of a chain or of a closed loop are often drawn into each other at the joint. Of two links that
a joint of the model holds, MuJoCo leaves contacts out; of two that an equality holds it does not,
and a rigid contact there contradicts the joint: nothing would move. So, of bodies that a rigid
equality joins, contacts that overlap are left out where they lie at the joint, and everywhere if
they are welded, since such bodies do not move against each other.
"""

from __future__ import annotations

import mujoco

from stiction.bridge.bodies import body_of_geom, smaller_radius
from stiction.bridge.layout import (
    entry,
    flags,
    integer,
    integers,
    number,
    numbers,
    offset,
    pointer,
    size_of,
)
from stiction.bridge.mocap import SITE, WELD, end_of, joins_bodies
from stiction.kernels.compile import kernel, leaf

JOINED_DEPTH = 0.01
"""Overlap from which on it was set up, over the radius of the smaller geom: what rigid contact
leaves is a hundred times less."""

_SIZE = size_of("mjContact")
_DIST, _POS, _GEOM, _EXCLUDE = (
    offset("mjContact", name) for name in ("dist", "pos", "geom", "exclude")
)
_NEQ, _BODY_WELD, _EQ_TYPE, _EQ_OBJECT, _EQ_1, _EQ_DATA = (
    offset("mjModel", name)
    for name in ("neq", "body_weldid", "eq_type", "eq_objtype", "eq_obj1id", "eq_data")
)
_NCON, _CONTACT, _ACTIVE, _XPOS, _XMAT, _SITE_POS = (
    offset("mjData", name) for name in ("ncon", "contact", "eq_active", "xpos", "xmat", "site_xpos")
)
_EQ_SIZE = 8 * int(mujoco.mjNEQDATA)


@leaf
def _is_at_joint(m, d, equality, position, radius):
    """Whether a point is no farther than `radius` from what an equality joins; welds join all."""
    if entry(m + _EQ_TYPE, equality) == WELD:
        return True
    first = entry(m + _EQ_1, equality)
    apart = 0.0
    if entry(m + _EQ_OBJECT, equality) == SITE:
        anchor = numbers(pointer(d + _SITE_POS) + 24 * first, 3)
        for k in range(3):
            apart += (anchor[k] - position[k]) ** 2
    else:
        anchor = numbers(pointer(m + _EQ_DATA) + _EQ_SIZE * equality, 3)
        place = numbers(pointer(d + _XPOS) + 24 * first, 3)
        turn = numbers(pointer(d + _XMAT) + 72 * first, 9)
        for k in range(3):
            at = place[k] - position[k]
            for c in range(3):
                at += turn[3 * k + c] * anchor[c]
            apart += at * at
    return apart <= radius * radius


@kernel
def _are_joined(m, d, geoms, position, radius):
    """Whether an active equality joins the bodies of two geoms at that point."""
    first = entry(m + _BODY_WELD, body_of_geom(m, geoms[0]))
    second = entry(m + _BODY_WELD, body_of_geom(m, geoms[1]))
    neq = pointer(m + _NEQ)
    active = flags(pointer(d + _ACTIVE), neq)
    for k in range(neq):
        if active[k] == 0 or not joins_bodies(m, k):
            continue
        one, other = end_of(m, k, False), end_of(m, k, True)
        same = (one == first and other == second) or (one == second and other == first)
        if same and _is_at_joint(m, d, k, position, radius):
            return True
    return False


@kernel
def exclude_joined(m, d):
    """Excludes those contacts; between `mj_collision` and `mj_makeConstraint`."""
    if pointer(m + _NEQ) == 0:
        return
    contacts = pointer(d + _CONTACT)
    for c in range(integer(d + _NCON)):
        contact = contacts + c * _SIZE
        gap, geoms = number(contact + _DIST), integers(contact + _GEOM, 2)
        if gap >= 0.0 or geoms[0] < 0 or geoms[1] < 0:
            continue
        radius = smaller_radius(m, geoms[0], geoms[1])
        if gap < -JOINED_DEPTH * radius and _are_joined(
            m, d, geoms, numbers(contact + _POS, 3), radius
        ):
            integers(contact + _EXCLUDE, 1)[0] = 1
