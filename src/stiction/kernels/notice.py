"""A line on standard error while kernels are compiled: a minute of silence looks like a fault.

On a terminal it counts, and goes when compilation ends; elsewhere it is said once. Nothing is said
of what takes less than a second, nor with STICTION_QUIET set.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

SILENT = 1.0
"""Seconds of compilation before anything is said."""

TEXT = "stiction: compiling for this machine, once; what a first step needs takes up to a minute"

_begun: float | None = None
_count = 0
_told = False


def count_one() -> None:
    """Another function is compiled."""
    global _begun, _count, _told
    now = monotonic()
    _begun = now if _begun is None else _begun
    _count += 1
    if now - _begun < SILENT or os.environ.get("STICTION_QUIET") or sys.stderr is None:
        return
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{TEXT} ({_count} functions)")
        sys.stderr.flush()
    elif not _told:
        sys.stderr.write(f"{TEXT}\n")
    _told = True


def clear() -> None:
    """Compilation has ended, for now."""
    global _begun
    if _told and sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
    _begun = None
