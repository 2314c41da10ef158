"""When the next event is: conservative advancement along a trajectory (Mirtich 1996).

A trajectory is a function of the time since its start; within a step it is what the integrator
gives for a shorter step, so that it needs no interpolation. From a state without event, time goes
on by what no gap can close in: gap / bound for the contacts in reach, where the bound of
`closing_bound` is widened by the change of the bodies' speeds over the step. Contacts out of
reach are farther than the margins, which hold more than the distance that bodies travel in a
step; if they get faster than that allows, the advance is cut.

Bounds of bodies that spin close to a surface are pessimistic. Time advances by an eighth of the
step at least: a body that dips into another and is out again within that is not seen, one that
stays is. From the first state with an event its time is located by Newton's method: a state tells
how long its event is overdue, or how far ahead; bisection where that leaves the bracket, or does
not halve it in two steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from stiction.bridge.margins import AHEAD, REST_MARGIN
from stiction.kernels.compile import kernel, lean
from stiction.simulate.event_driven.distances import Snapshot

Array = NDArray[np.float64]

FINEST = 0.125
"""Least advance, in steps."""

SPREAD = 1.25
"""Factor on bounds of closing speed: velocities turn within a step, and MuJoCo's distances of
two boxes are a percent off where they are not near."""

LOCATE = 20
"""Evaluations to locate an event; five are usual. Where stages of the integrator disagree on which
way something slides the state jumps, and there is nothing to locate."""


class EventCheck(NamedTuple):
    """Whether something has happened by a state."""

    overdue: float
    """Time since it has [s], as the state tells; 0 if nothing has."""
    ahead: float
    """Time until the next thing will [s], as the state tells, where nothing has; inf if unknown."""
    acceptable: bool
    """Whether the state is close enough to when it did."""
    culprit: int
    """Contact of the state's snapshot that was first, or -1."""


NOTHING = EventCheck(0.0, np.inf, True, -1)


class Trial(Protocol):
    """A state on the trajectory, with what was seen there."""

    @property
    def elapsed(self) -> float:
        """Time since the trajectory's start [s]."""

    @property
    def seen(self) -> Snapshot:
        """Contacts of the state."""

    @property
    def bound(self) -> Array:
        """(nc,) closing speeds; -inf for contacts that are held."""


T = TypeVar("T", bound=Trial)


def first_event(
    start: Trial,
    path: Callable[[float], T],
    end: T,
    check_event: Callable[[T], EventCheck],
    dt: float,
    radius: Array,
) -> tuple[T, EventCheck]:
    """The first state with an event on the way to `end`, or that; `start` has none.

    radius (ngeom,): of geoms, as in the margins. `search.py` has the same in compiled code.
    """
    duration = end.elapsed
    here: Trial = start
    while True:
        safe = safe_time(here.seen, here.bound, end.seen.reach, dt, radius)
        then = here.elapsed + max(safe, FINEST * dt)
        there = end if then >= duration * (1.0 - 1e-9) else path(then)
        check = check_event(there)
        if check.overdue > 0.0:
            return _locate(path, check_event, here, there, check)
        if there is end:
            return end, check
        here = there


@lean
def safe_time(seen: Snapshot, bound: Array, later: Array, dt: float, radius: Array) -> float:
    """Time [s] from a state in which no gap closes; bound (nc,): its closing speeds; later
    (ngeom,): margins at the end of the trajectory."""
    safe, reach = np.inf, seen.reach
    for g in range(reach.shape[0]):
        fast = (later[g] - REST_MARGIN * radius[g]) / (AHEAD * dt)
        if reach[g] < fast * dt:
            safe = min(safe, reach[g] / fast)
    for i in range(bound.shape[0]):
        if not np.isfinite(bound[i]):
            continue
        extra = abs(bound[i])  # of a limit the speed is its own, along a row that hardly turns
        if seen.number[i] >= 0:
            extra = 0.0
            for side in range(2):
                g = seen.pair[i, side]
                extra += abs(later[g] - reach[g]) / (AHEAD * dt)
        closing = max(bound[i], SPREAD * bound[i]) + extra
        if closing > 0.0:
            safe = min(safe, max(seen.gap[i], 0.0) / closing)
    return safe


@kernel
def next_guess(
    guess: float, low: float, high: float, wide: float, tries: int
) -> tuple[float, float, int]:
    """(guess, wide, tries): where to look next for an event between low and high: at a guess, or
    half way where that lies outside or two tries have not halved the bracket, which was `wide`."""
    if tries == 2:
        if high - low > 0.5 * wide:
            guess = np.nan
        wide, tries = high - low, 0
    if not low < guess < high:
        guess = 0.5 * (low + high)
    return guess, wide, tries + 1


def _locate(
    path: Callable[[float], T],
    check_event: Callable[[T], EventCheck],
    before: Trial,
    after: T,
    check: EventCheck,
) -> tuple[T, EventCheck]:
    """The event's state between one without it and one with it, in that order."""
    guess = after.elapsed - check.overdue
    wide, tries = after.elapsed - before.elapsed, 0
    for _ in range(LOCATE):
        low, high = before.elapsed, after.elapsed
        if check.acceptable or high - low <= 1e-14 * high:
            break
        guess, wide, tries = next_guess(guess, low, high, wide, tries)
        trial = path(guess)
        found = check_event(trial)
        if found.overdue > 0.0:
            after, check = trial, found
            guess = trial.elapsed - found.overdue
        else:
            before = trial
            guess = trial.elapsed + found.ahead
    return after, check
