"""MuJoCo's contacts taken out and put back, pair by pair, by those who know better where some are.

Contacts of a pair lie one after the other. Who replaces them takes all out (`take_contacts`) and
walks over the copy: `end_of_pair`, then `keep` or `write_contact` and `add_contact`. The copy must
be an argument of the function that walks: only an argument is certain to outlive the use of its
address.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.layout import offset, size_of
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.triples import Vector, cross, dot, moved, scaled

Array = NDArray[np.float64]

# Kernels, typed by Numba and not here.
integer: Any = layout.integer
pointer: Any = layout.pointer
table: Any = layout.table
integers: Any = layout.integers
numbers: Any = layout.numbers
flags: Any = layout.flags
add_contact: Any = library.add_contact

SIZE = size_of("mjContact")
"""Bytes of a contact."""

DIST, POS, FRAME, GEOM, REACH = (
    offset("mjContact", name) for name in ("dist", "pos", "frame", "geom", "includemargin")
)
GAP, POINT, NORMAL, WIDTH = 0, 1, 4, 7
"""Columns of a contact that was found: distance, point (3), normal from the first geom to the
second (3)."""

MOST_MET = 20
"""Contacts of a pair that take the place of MuJoCo's, at most."""

NCON, CONTACT = (offset("mjData", name) for name in ("ncon", "contact"))
_XPOS, _XMAT = (offset("mjData", name) for name in ("geom_xpos", "geom_xmat"))


@kernel
def take_contacts(d: int) -> NDArray[np.uint8]:
    """A copy of all contacts of the data at d, which is left without."""
    old: NDArray[np.uint8] = flags(pointer(d + CONTACT), integer(d + NCON) * SIZE).copy()
    integers(d + NCON, 1)[0] = 0
    return old


@kernel
def keep(m: int, d: int, start: int, end: int) -> None:
    """Puts the contacts from `start` to `end` into the data as they are."""
    for contact in range(start, end, SIZE):
        add_contact(m, d, contact)


@kernel
def write_contact(contact: int, gap: float, point: Vector, normal: Vector) -> None:
    """A contact that was found into the structure of MuJoCo's; point, normal: in the world. The
    tangents are chosen as MuJoCo does."""
    numbers(contact + DIST, 1)[0] = gap
    pos, frame = numbers(contact + POS, 3), numbers(contact + FRAME, 9)
    other = (0.0, 1.0, 0.0) if abs(normal[1]) < 0.5 else (0.0, 0.0, 1.0)
    first = moved(other, -dot(normal, other), normal)
    first = scaled(1.0 / np.sqrt(dot(first, first)), first)
    second = cross(normal, first)
    for k in range(3):
        pos[k], frame[k] = point[k], normal[k]
        frame[3 + k], frame[6 + k] = first[k], second[k]


@leaf
def frame_of(d: int, geom: int) -> tuple[Array, Array]:
    """(position (3,), axes as columns (3, 3)) of a geom."""
    place = numbers(pointer(d + _XPOS) + 24 * geom, 3)
    turn = table(pointer(d + _XMAT) + 72 * geom, 3, 3)
    return place, turn
