"""What every block is to the interior point."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind, is_gripped
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.workspace import InteriorWorkspace
from stiction.contact.solvers.interior_point.columns import MU
from stiction.kernels.compile import lean, lean_leaf

STEEPEST = 1e6
"""Friction coefficient that stands for an infinite one on the way to the answer."""


class Unit(IntEnum):
    """What a block is to the interior point, and what its further rows are."""

    NONE = 0
    """Nothing acts along it."""
    LINE = 1
    CONE = 2
    INTERVAL = 3
    HELD = 4
    LINEAR = 5


@lean_leaf
def limit_ratio(b: Blocks, i, r):
    """Growth of an interval's limit with the normal impulse."""
    if b.head[i, Head.KIND] == Kind.BOX:
        return 0.0
    return b.data[i, Datum.SPIN] if r == 3 else b.data[i, Datum.ROLL]


@lean_leaf
def acts(b: Blocks, i, r, weight):
    """Whether row r of 3..5 can bear an impulse."""
    return limit_ratio(b, i, r) > 0.0 and weight[i, r] > 0.0


@lean_leaf
def reach_of(b: Blocks, w: InteriorWorkspace, i, r):
    """R of an interval."""
    if b.head[i, Head.KIND] == Kind.BOX:
        return b.data[i, Datum.LIMIT]
    return limit_ratio(b, i, r) * w.f[i, 0]


@lean
def classify(b: Blocks, g: Graph, k, law, w: InteriorWorkspace, weight):
    """Units of island k; whether any interval is tied to a contact, which makes D unsymmetric; and
    1.0 if there is a cone, whose slip makes it unsymmetric too, else 0.0."""
    st = w.state
    tied, cones = False, 0.0
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        kind, rows, data = b.head[i, Head.KIND], b.head[i, Head.ROWS], b.data[i]
        w.unit[i, 0] = w.unit[i, 1] = w.unit[i, 2] = Unit.NONE
        st[i, MU] = min(data[Datum.SLIDE], STEEPEST)
        if weight[i, 0] <= 0.0:
            continue
        if kind == Kind.SOFT:
            w.unit[i, 0] = Unit.LINEAR
        elif kind == Kind.HOLD or (kind == Kind.BOX and data[Datum.LIMIT] == np.inf):
            w.unit[i, 0] = Unit.HELD
            if is_gripped(b, i) and weight[i, 1] > 0.0:
                w.unit[i, 1] = Unit.LINEAR
        elif kind == Kind.BOX:
            if data[Datum.LIMIT] > 0.0:
                w.unit[i, 0] = Unit.INTERVAL
        else:
            w.unit[i, 0] = Unit.LINE
            if rows < 3 or law == Law.FRICTIONLESS or weight[i, 1] <= 0.0:
                continue
            if law == Law.COULOMB:
                if st[i, MU] > 0.0:
                    w.unit[i, 0] = Unit.CONE
                    cones = 1.0
                if rows > 3:
                    w.unit[i, 2] = Unit.INTERVAL
                    tied = True
            elif data[Datum.BOUND] >= 0.0:
                if law == Law.VISCOUS:
                    w.unit[i, 1] = Unit.LINEAR
                elif data[Datum.SLIDE] > 0.0:
                    w.unit[i, 1] = Unit.HELD
    return tied, cones


@lean_leaf
def intervals_of(b: Blocks, w: InteriorWorkspace, i):
    """First and last but one row of block i that is an interval."""
    if w.unit[i, 0] == Unit.INTERVAL:
        return 0, 1
    if w.unit[i, 2] == Unit.INTERVAL:
        return 3, b.head[i, Head.ROWS]
    return 0, 0
