"""`Work`: what calm steps are told, what they keep for the next one, and what they leave."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.laws import Entry
from stiction.kernels.packing import packed, unpacker
from stiction.simulate.event_driven.stages import Limits
from stiction.simulate.time_stepping.workspace import RECORDS

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

ROOM = 64
"""Contacts, limits, joint and box rows at most, of each."""


class Number(IntEnum):
    """Entries of `Work.figures`."""

    DT = 0
    TOLERANCE = 1
    REST = 2
    """Speed that counts as none [m/s]."""
    TIME = 3
    """At the end of the step [s]."""
    OVERLAP = 4
    """Deepest at its start [m, rad]."""
    MOST_REST = 5
    """Largest that `REST` may be [m/s]."""


class Count(IntEnum):
    """Entries of `Work.counts`."""

    HELD = 0
    """Contacts held at the end of the last step, whose forces and rates are there; -1: none."""
    BOX = 1
    JOINTS = 2
    RECORDS = 3
    CONTACTS = 4
    """Of the records, those that are no limits."""
    PIVOTS = 5
    CONE = 6
    """The user's."""
    SENSORS = 7
    """1 if there are some to be written."""
    ENERGY = 8
    """1 if energies are."""
    SAME = 9
    """1 if rates may be taken over from the last step: nothing moves but by qpos."""


@packed
class Work(NamedTuple):
    """What calm steps write to."""

    figures: Array  # (Number,)
    counts: Indices  # (Count,)
    qpos: Array  # (nq,) that `rates` belong to
    qvel: Array  # (nv,)
    act: Array  # (na,)
    rates: Array  # (ROOM, 3)
    joint_rate: Array  # (ROOM,)
    normal: Array  # (ROOM,) forces
    tangent: Array  # (ROOM, 2)
    box: Array  # (ROOM,)
    record: Array  # (ROOM, RECORDS)
    value: Array  # (Entry,) certificate of the last forces; `scaled` and `where` too
    scaled: Array
    where: Indices
    rotations: Indices  # `Limits`
    clamped: Indices
    low: Array
    high: Array
    static: Array
    dynamic: Array


def allocate_work(nq: int, nv: int, na: int, limits: Limits, static: Array, dynamic: Array) -> Work:
    """Room for the steps of a model of that size."""
    return Work(
        np.zeros(len(Number)), np.zeros(len(Count), np.int64), np.zeros(nq), np.zeros(nv),
        np.zeros(na), np.zeros((ROOM, 3)), np.zeros(ROOM), np.zeros(ROOM), np.zeros((ROOM, 2)),
        np.zeros(ROOM), np.zeros((ROOM, RECORDS)), np.zeros(len(Entry)), np.zeros(len(Entry)),
        np.zeros(len(Entry), np.int64), *limits, static, dynamic,
    )  # fmt: skip


_none, _no_index = np.zeros(0), np.zeros(0, np.int64)
unpack_work = unpacker(
    allocate_work(0, 0, 0, Limits(_no_index, _no_index, _none, _none), _none, _none)
)
