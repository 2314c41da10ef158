"""MuJoCo's contacts, pair by pair: those of two geoms lie one after the other."""

from __future__ import annotations

from typing import Any

from stiction.bridge import layout
from stiction.bridge.layout import offset, size_of
from stiction.kernels.compile import leaf

# A kernel, typed by Numba and not here.
integers: Any = layout.integers

_SIZE, _GEOM = size_of("mjContact"), offset("mjContact", "geom")


@leaf
def end_of_pair(start: int, end_of_all: int) -> int:
    """Address behind the last contact of the pair of geoms whose first is at `start`."""
    geoms = integers(start + _GEOM, 2)
    end = start + _SIZE
    while end < end_of_all:
        others = integers(end + _GEOM, 2)
        if others[0] != geoms[0] or others[1] != geoms[1]:
            break
        end += _SIZE
    return end
