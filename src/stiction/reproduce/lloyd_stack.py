"""Lloyd, Figures 9 and 10: stacks of one to five blocks, 4 to 32 contacts."""

from __future__ import annotations

from stiction.reproduce.families import STACKS
from stiction.reproduce.lloyd_single import stacks
from stiction.reproduce.result import Progress, Result


def run(quick: bool, progress: Progress) -> Result:
    """Times of the four ways on ten stacks."""
    chosen = STACKS[::3] if quick else STACKS
    return stacks(chosen, 5 if quick else 20, 2 if quick else 5, quick, progress)
