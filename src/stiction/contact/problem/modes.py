"""What a contact does during a step: `Mode`, and the one rule by which it is told.

Reports, certificates and derivatives ask it; they differ in how fast a contact that sticks may seem
to slide, which they say where they ask.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from stiction.kernels.compile import lean_leaf


class Mode(IntEnum):
    """What a contact does during the step."""

    SEPARATE = 0
    """No impulse."""
    STICK = 1
    """Pressed, and not sliding; also any pressed contact without friction."""
    SLIDE = 2
    """Pressed, sliding, friction at the edge of its cone."""


@lean_leaf
def choose_mode(normal, friction, slip_0, slip_1, still):
    """`Mode`, as a number, of a contact with that normal impulse and slip; `still`: largest slip of
    one that sticks."""
    if not normal > 0.0:
        return np.int64(Mode.SEPARATE)
    if friction > 0.0 and slip_0 * slip_0 + slip_1 * slip_1 > still * still:
        return np.int64(Mode.SLIDE)
    return np.int64(Mode.STICK)
