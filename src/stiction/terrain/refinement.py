"""Contacts of pairs of geoms whose place is known better than MuJoCo's collisions have it: round
sides side by side (`cylinders.py`), cylinders that stand and lie on faces (`ends.py`, `sides.py`),
cylinders that lean on boxes (`leaning.py`), an edge across a face (`edges.py`), and what is found
by iterations (`nearest.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.contacts import end_of_pair
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.stage import stage
from stiction.terrain.contacts import (
    CONTACT,
    GAP,
    GEOM,
    MOST_MET,
    NCON,
    NORMAL,
    POINT,
    REACH,
    SIZE,
    WIDTH,
    keep,
    take_contacts,
    write_contact,
)
from stiction.terrain.cylinders import is_round, meet_sides
from stiction.terrain.edges import are_boxes, meet_edges
from stiction.terrain.ends import meet_ends, meets_faces
from stiction.terrain.leaning import is_doubtful, may_lean, meet_leaning
from stiction.terrain.nearest import are_iterated, meet_nearest
from stiction.terrain.sides import meet_along

# Kernels, typed by Numba and not here.
integer: Any = layout.integer
number: Any = layout.number
pointer: Any = layout.pointer
integers: Any = layout.integers
add_contact: Any = library.add_contact


@kernel
def refine_contacts(m: int, d: int) -> None:
    """Replaces contacts of the data at d; see the head. Between `mj_collision` and
    `mj_makeConstraint`."""
    ncon = integer(d + NCON)
    start = pointer(d + CONTACT)
    for k in range(ncon):
        geoms = integers(start + k * SIZE + GEOM, 2)
        if meets_faces(m, geoms[0], geoms[1]) or (is_round(m, geoms[0]) and is_round(m, geoms[1])):
            refine(m, d)
            return
        known = are_boxes(m, geoms[0], geoms[1]) or are_iterated(m, geoms[0], geoms[1])
        if known and is_alone(start, k, ncon):
            refine(m, d)
            return


@leaf
def is_alone(start: int, k: int, ncon: int) -> bool:
    """Whether the contact k of those from `start` on is the only one of its pair."""
    geoms = integers(start + k * SIZE + GEOM, 2)
    alone = True
    for beside in (k - 1, k + 1):
        if 0 <= beside < ncon:
            others = integers(start + beside * SIZE + GEOM, 2)
            alone = alone and (others[0] != geoms[0] or others[1] != geoms[1])
    return alone


@stage("void(int64, int64)", eager=False, counted=True)
def replace_rough(m: int, d: int) -> None:
    """`refine_contacts` where it may be that contacts change."""
    ncon = integer(d + NCON)
    start = pointer(d + CONTACT)
    found = np.empty((MOST_MET, WIDTH))
    for k in range(ncon):
        contact = start + k * SIZE
        geoms = integers(contact + GEOM, 2)
        changes = is_round(m, geoms[0]) and is_round(m, geoms[1])
        if not changes and meets_faces(m, geoms[0], geoms[1]):
            changes = meet_on_face(m, d, contact, found) > 0
            changes = changes or may_lean(m, geoms[0], geoms[1])
        if not changes and is_alone(start, k, ncon):
            changes = are_iterated(m, geoms[0], geoms[1])
            if not changes and are_boxes(m, geoms[0], geoms[1]):
                changes = meet_edges(m, d, contact, found) > 0
        if changes:
            refine_from(m, d, take_contacts(d))
            return


refine = replace_rough.external


@kernel
def refine_from(m: int, d: int, old: NDArray[np.uint8]) -> None:
    """Fills the contacts of the data at d, which has none left, from the old ones."""
    base, end_of_all = old.ctypes.data, old.ctypes.data + old.shape[0]
    found = np.empty((MOST_MET, WIDTH))
    start = base
    while start < end_of_all:
        end = end_of_pair(start, end_of_all)
        count = meet_better(m, d, start, (end - start) // SIZE, found)
        if count == 0:
            keep(m, d, start, end)
        for k in range(count):
            if found[k, GAP] < number(start + REACH):
                point, normal = found[k, POINT : POINT + 3], found[k, NORMAL : NORMAL + 3]
                write_contact(start, found[k, GAP], point, normal)
                add_contact(m, d, start)
        start = end


@kernel
def meet_on_face(m: int, d: int, contact: int, out: NDArray[np.float64]) -> int:
    """Contacts of a cylinder and a face into out; see `meet_better`."""
    count = meet_ends(m, d, contact, out)
    return count if count > 0 else meet_along(m, d, contact, out)


@kernel
def meet_better(m: int, d: int, contact: int, many: int, out: NDArray[np.float64]) -> int:
    """Contacts into out (MOST_MET, WIDTH) that take the place of those that MuJoCo has of the
    pair of geoms whose first is at `contact`, `many` of them; their number, 0 where those stay."""
    geoms = integers(contact + GEOM, 2)
    first, second = geoms[0], geoms[1]
    count, leans = 0, may_lean(m, first, second)
    if is_round(m, first) and is_round(m, second):
        count = meet_sides(m, d, first, second, out)
    if count == 0 and meets_faces(m, first, second):
        count = meet_on_face(m, d, contact, out)
    if count > 0 and not (leans and is_doubtful(m, d, contact, many, out, count)):
        return count
    if leans:
        return meet_leaning(m, d, contact, many, out)
    if many == 1 and are_boxes(m, first, second):
        return meet_edges(m, d, contact, out)
    if many == 1 and are_iterated(m, first, second):
        return meet_nearest(m, d, contact, out)
    return 0
