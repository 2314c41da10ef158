"""What a contact does during a step, as it is read off an answer."""

from __future__ import annotations

from enum import IntEnum

STILL = 1e-9
"""Slip relative to the problem's own speeds below which a pressed contact sticks."""


class Mode(IntEnum):
    """What a contact does during the step."""

    SEPARATE = 0
    """No impulse."""
    STICK = 1
    """Pressed, and not sliding; also any pressed contact without friction."""
    SLIDE = 2
    """Pressed, sliding, friction at the edge of its cone."""
