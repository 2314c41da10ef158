"""Bodies that a simulation starts with within each other: a word to the user."""

from __future__ import annotations

import warnings

from stiction.bridge.names import joined_bodies
from stiction.errors import OverlapWarning
from stiction.simulate.report import Report

LISTED = 4
"""Pairs that are named."""

DEPTH = 3
"""Calls from here to the user's own, by way of `Simulator.step`."""


def describe_overlap(report: Report) -> str:
    """The pairs of bodies that overlap deeply and how far, deepest first; empty if none does."""
    pairs: dict[tuple[str, str], float] = {}
    for contact in report.deep_contacts:
        pairs.setdefault(contact.bodies, -contact.gap)
    if not pairs:
        return ""
    named = list(pairs.items())[:LISTED]
    listed = ", ".join(f"{a} and {b} by {1e3 * depth:.3g} mm" for (a, b), depth in named)
    more = f" and {len(pairs) - LISTED} other pairs" if len(pairs) > LISTED else ""
    joined = joined_bodies(report.model)
    held = next((pair for pair in pairs if frozenset(pair) in joined), None)
    hint = (
        "look at the model's initial pose (qpos0, a keyframe)"
        if held is None
        else f"an equality constraint holds {held[0]} and {held[1]} together where their geoms "
        "overlap, and contact drives them apart: <exclude> them in <contact>"
    )
    return (
        f"bodies start within each other: {listed}{more}. They are moved apart as far as that can "
        f"be, and have no friction meanwhile; {hint}"
    )


def warn_of_overlap(report: Report) -> str:
    """Warns of what `describe_overlap` says, which it returns."""
    said = describe_overlap(report)
    if said:
        warnings.warn(said, OverlapWarning, stacklevel=DEPTH)
    return said
