"""All contacts of one pair of geoms, as a step has them: MuJoCo's, with those in their places that
are known better, and those on height fields by the features that meet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge.narrow_phase import FOUND, collide_pair
from stiction.bridge.narrow_phase import MOST as MOST_FOUND
from stiction.kernels.compile import kernel
from stiction.terrain import contacts, features, meetings
from stiction.terrain.refinement import meet_better

Array = NDArray[np.float64]

# Kernels, typed by Numba and not here.
numbers: Any = contacts.numbers
integers: Any = contacts.integers

MEETING = 11
"""Numbers of a contact: gap, point, normal, first tangent, and 1 where that follows from the normal
and is not given here."""


@kernel
def _lay_out(raw, out):
    """out (MEETING,) := a contact as a collision function leaves it."""
    for c in range(7):
        out[c] = raw[c]
    size = raw[7] ** 2 + raw[8] ** 2 + raw[9] ** 2
    out[10] = 1.0 if size < 0.25 else 0.0
    if size < 0.25:
        return
    along = raw[4] * raw[7] + raw[5] * raw[8] + raw[6] * raw[9]
    for c in range(3):
        out[7 + c] = raw[7 + c] - along * raw[4 + c]
    size = np.sqrt(out[7] ** 2 + out[8] ** 2 + out[9] ** 2)
    for c in range(3):
        out[7 + c] /= size


@kernel
def _meet_field(d, ground, first, second, margin, room, out):
    """Contacts of a geom with a height field into out; how many."""
    terrain, hulls, tolerance = ground
    field = meetings.field_of(terrain, terrain.field[first])
    count = meetings.survey_features(
        d, field, terrain, hulls, first, second, margin, tolerance, np.empty((3, 3)), room
    )
    place, turn = contacts.frame_of(d, first)
    count = min(count, room.shape[0])
    for k in range(count):
        out[k, 0] = room[k, 0]
        for c in range(3):
            out[k, 1 + c] = place[c]
            out[k, 4 + c] = 0.0
            for a in range(3):
                out[k, 1 + c] += turn[c, a] * room[k, 1 + a]
                out[k, 4 + c] += turn[c, a] * room[k, 4 + a]
        out[k, MEETING - 1] = 1.0
    return count


@kernel
def meet_pair(table, m, d, ground, first, second, margin, raw, contact, found, room, out):
    """Contacts of two geoms into out (MOST, MEETING); how many.

    table, raw: see `collide_pair`; ground: `Ground.features`; contact: bytes of an mjContact to
    work in, found (MOST_MET, WIDTH) of `contacts.py` and room (MOST, WIDTH) of `features.py`
    likewise."""
    if ground is not None:
        terrain = ground[0]
        if terrain.field[first] >= 0 and terrain.shape[second] >= 0:
            return _meet_field(d, ground, first, second, margin, room, out)
    count = collide_pair(table, m, d, first, second, margin, raw)
    if count == 0:
        return 0
    address = contact.ctypes.data
    integers(address + contacts.GEOM, 2)[0] = first
    integers(address + contacts.GEOM, 2)[1] = second
    numbers(address + contacts.DIST, 1)[0] = raw[0, 0]
    for c in range(3):
        numbers(address + contacts.POS, 3)[c] = raw[0, 1 + c]
        numbers(address + contacts.FRAME, 3)[c] = raw[0, 4 + c]
    better = meet_better(m, d, address, count, found)
    for k in range(better):
        for c in range(contacts.WIDTH):
            out[k, c] = found[k, c]
        out[k, MEETING - 1] = 1.0
    if better > 0:
        return better
    for k in range(count):
        _lay_out(raw[k], out[k])
    return count


def allocate() -> tuple[Array, NDArray[np.uint8], Array, Array, Array]:
    """(raw, contact, found, room, out) for `meet_pair`."""
    return (
        np.zeros((MOST_FOUND, FOUND)),
        np.zeros(contacts.SIZE, np.uint8),
        np.zeros((contacts.MOST_MET, contacts.WIDTH)),
        np.zeros((MOST_FOUND, features.WIDTH)),
        np.zeros((MOST_FOUND, MEETING)),
    )
