"""How time passes: `TimeStepping`."""

from __future__ import annotations

from dataclasses import dataclass

from stiction.errors import InvalidInput
from stiction.simulate.options import is_flag


@dataclass(frozen=True)
class TimeStepping:
    """Semi-implicit steps of the model's own length, one solve each at the velocity level.

    push_out: whether overlap is taken back at position level. Off, bodies that start inside each
    other stay so, and curved paths may add up to overlap.
    """

    push_out: bool = True

    def __post_init__(self) -> None:
        if not is_flag(self.push_out):
            raise InvalidInput("push_out", f"is {self.push_out!r}: True or False")
