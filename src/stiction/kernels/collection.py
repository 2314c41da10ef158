"""Compiling without Python's search for unreachable objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Python's search for unreachable objects goes through all that the compiler has built, again
    and again: a fifth of the time that it took."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        _call_all_old()
        gc.enable()


def _call_all_old() -> None:
    """Puts all objects into the oldest generation, unseen: else they would all be young at once,
    and searched as soon as Python is allowed to."""
    if gc.get_freeze_count() == 0:  # else what somebody has frozen would thaw
        gc.freeze()
        gc.unfreeze()
