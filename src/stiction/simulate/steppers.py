"""How time passes: `TimeStepping`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TimeStepping:
    """Semi-implicit steps of the model's own length, one solve each at the velocity level.

    push_out: whether overlap is taken back at position level. Off, bodies that start inside each
    other stay so, and curved paths may add up to overlap.
    """

    push_out: bool = True
