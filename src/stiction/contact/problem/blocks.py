"""A contact problem by blocks: rows that share their columns, kept without their zeros.

A simulator's rows touch the few degrees of freedom that move two bodies, and all rows of a
contact touch the same ones. A block is such a set of rows:

    CONTACT   row 0 the normal; rows 1, 2 sliding; row 3 spin; rows 4, 5 rolling (1, 3, 4 or 6
              rows). A joint limit is a CONTACT with one row.
    HOLD      one row that must move at a given speed (a rigid joint)
    BOX       one row with an impulse between two limits (dry friction in a joint)
    SOFT      one row with the impulse -drag (speed - bound) (an equality as soft as a model says)

`head[i]` and `data[i]` are named by the enumerations below. Entry (row r, k-th column) of block i
is value[head[i, VALUE] + r * head[i, WIDTH] + k], in column[head[i, COLUMN] + k]; columns ascend.
The mass is kept as a skyline (`kernels/skyline.py`): entry (j, k), k <= j, is mass[row[j] + k],
from first[j] on. No array has as many rows and columns as there are degrees of freedom.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.arrays import Array
from stiction.kernels import runs, six
from stiction.kernels.block import BODY, SHORT
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.packing import packed

Indices = NDArray[np.int64]

ROWS = 6
"""Rows of a block at most."""

IMMOBILE = 1e-24
"""Inverse inertia of a normal, over that across it, which is the square of rounding: the bodies do
not move along it. Taken for a row that does, a contact across a hinge's own axis would stop the
hinge, or fling whatever hangs on it."""


class Kind(IntEnum):
    """What a block is."""

    CONTACT = 0
    HOLD = 1
    BOX = 2
    SOFT = 3


class Head(IntEnum):
    """Columns of `Blocks.head`."""

    KIND = 0
    ROWS = 1
    WIDTH = 2
    COLUMN = 3
    VALUE = 4
    PARENT = 5
    """BOX: the contact that its limit grows with, where `Datum.SPIN` is positive."""


class Datum(IntEnum):
    """Columns of `Blocks.data`."""

    BOUND = 0
    """CONTACT: least N v+ [m/s]; HOLD, SOFT: the required speed; BOX: zero."""
    SLIDE = 1
    """Friction coefficient of rows 1 and 2."""
    SPIN = 2
    """Friction coefficient of row 3 [m]; BOX: growth of its limit with the normal impulse of the
    contact `Head.PARENT`."""
    ROLL = 3
    """Friction coefficient of rows 4 and 5 [m]."""
    DRAG = 4
    """h mu_v of rows 1 and 2 [N s^2/m], for viscous friction; SOFT: impulse per speed."""
    LIMIT = 5
    """BOX: largest impulse."""
    SURFACE = 6
    """CONTACT, or HOLD of three rows: this and the next two: velocity of the second surface over
    the first while the bodies themselves stand still, along rows 1, 2 [m/s] and 3 [rad/s]
    (conveyors)."""
    SURFACE_2 = 7
    SURFACE_SPIN = 8


HEADS = len(Head)
DATA = len(Datum)


@packed
class Blocks(NamedTuple):
    """The rows of a problem, its mass, and its momentum; nv degrees of freedom, at most `cap`
    blocks."""

    head: Indices  # (cap, HEADS)
    data: Array  # (cap, DATA)
    column: Indices
    value: Array
    mass: Array  # its skyline, lower part
    row: Indices  # (nv,) where the rows of the skyline lie
    first: Indices  # (nv,) first column of each
    velocity: Array  # (nv,) before the step
    push: Array  # (nv,) impulse of the applied forces, h f


@lean_leaf
def from_targets(b: Blocks, i, u):
    """u, speeds of block i along its rows, become speeds less its bound, over moving surfaces."""
    data, rows = b.data, b.head[i, Head.ROWS]
    u[i, 0] -= data[i, Datum.BOUND]
    for r in range(1, min(rows, 4)):
        u[i, r] += data[i, Datum.SURFACE + r - 1]


@lean_leaf
def is_gripped(b: Blocks, i):
    """Whether block i is a contact whose normal is held, and whose tangents give way by its drag,
    as the viscous law has it."""
    return b.head[i, Head.KIND] == Kind.HOLD and b.head[i, Head.ROWS] == 3


@lean_leaf
def are_six(b: Blocks, c):
    """Whether the six columns from entry c on are neighbours, as a free body's are: they ascend."""
    return b.column[c + BODY - 1] - b.column[c] == BODY - 1


@lean_leaf
def row_dot(b: Blocks, a, c, width, x):
    """The product of a row of that many entries, from a on, with columns from c on, and x (nv,)."""
    total, k = 0.0, 0
    while k + BODY <= width and are_six(b, c + k):
        total += six.dot(b.value, a + k, x, b.column[c + k])
        k += BODY
    while k < width:
        total += b.value[a + k] * x[b.column[c + k]]
        k += 1
    return total


@lean
def row_velocities(b: Blocks, count, v, u):
    """u (count, ROWS) := speed along each row less its bound, over moving surfaces."""
    head = b.head
    for i in range(count):
        width, c0 = head[i, Head.WIDTH], head[i, Head.COLUMN]
        for r in range(head[i, Head.ROWS]):
            u[i, r] = row_dot(b, head[i, Head.VALUE] + r * width, c0, width, v)
        from_targets(b, i, u)


@lean
def _add_three_rows(b: Blocks, a, c, width, x, y, z, out):
    """out (nv,) += x, y and z times three rows of a block, the first from a on."""
    k = 0
    while k + BODY <= width and are_six(b, c + k):
        at = a + k
        six.add_three(
            out, b.column[c + k], b.value, x, at, y, at + width, z, at + 2 * width
        )  # fmt: skip
        k += BODY
    while k < width:
        at = a + k
        out[b.column[c + k]] += (
            x * b.value[at] + y * b.value[at + width] + z * b.value[at + 2 * width]
        )
        k += 1


@lean
def add_impulses(b: Blocks, begin, end, f, out):
    """out (nv,) += the impulses f (cap, ROWS) of the blocks from `begin` to `end`."""
    head, column, value = b.head, b.column, b.value
    for i in range(begin, end):
        width, c0, a0 = head[i, Head.WIDTH], head[i, Head.COLUMN], head[i, Head.VALUE]
        rows, single = head[i, Head.ROWS], 0
        if rows >= 3:
            single = 3
            if f[i, 0] != 0.0 or f[i, 1] != 0.0 or f[i, 2] != 0.0:
                _add_three_rows(b, a0, c0, width, f[i, 0], f[i, 1], f[i, 2], out)
        for r in range(single, rows):
            impulse = f[i, r]
            if impulse != 0.0:
                for k in range(width):
                    out[column[c0 + k]] += impulse * value[a0 + r * width + k]


@lean
def _add_inertia(b: Blocks, i, r, begin, end, low, factor, work, weight):
    """weight[i, r] += the part of a M^-1 a' of row r of block i that the columns from `begin` to
    `end` have, which no others are coupled with; low: first degree of freedom that they reach."""
    column, value, row, first = b.column, b.value, b.row, b.first
    c0, a0 = b.head[i, Head.COLUMN], b.head[i, Head.VALUE] + r * b.head[i, Head.WIDTH]
    high = column[c0 + end - 1]
    for j in range(low, high + 1):
        work[0, j] = 0.0
    for k in range(begin, end):
        work[0, column[c0 + k]] = value[a0 + k]
    total = weight[i, r]
    for k in range(high, low - 1, -1):
        y = work[0, k]
        if y != 0.0:
            at = row[k]
            share = y * factor[at + k]
            total += y * share
            runs.take_scaled(work, first[k], share, factor, at + first[k], k - first[k])
    weight[i, r] = total


@lean
def _three_inertias(b: Blocks, low, high, factor, work):
    """a M^-1 a' of the three rows in `work`, which have columns `low` to `high` and are spoiled."""
    row, first, wide = b.row, b.first, work.shape[1]
    total0, total1, total2 = 0.0, 0.0, 0.0
    for k in range(high, low - 1, -1):
        y0, y1, y2 = work[0, k], work[1, k], work[2, k]
        if y0 == 0.0 and y1 == 0.0 and y2 == 0.0:  # of another limb
            continue
        at = row[k]
        share0, share1, share2 = y0 * factor[at + k], y1 * factor[at + k], y2 * factor[at + k]
        total0 += y0 * share0
        total1 += y1 * share1
        total2 += y2 * share2
        far, n = first[k], k - first[k]
        if n > SHORT:
            runs.take_scaled(work, far, share0, factor, at + far, n)
            runs.take_scaled(work, wide + far, share1, factor, at + far, n)
            runs.take_scaled(work, 2 * wide + far, share2, factor, at + far, n)
            continue
        for j in range(far, k):
            entry = factor[at + j]
            work[0, j] -= share0 * entry
            work[1, j] -= share1 * entry
            work[2, j] -= share2 * entry
    return total0, total1, total2


@lean
def _add_three_inertias(b: Blocks, i, begin, end, low, factor, work, weight):
    """The same as `_add_inertia` of rows 0 to 2, side by side."""
    column, value = b.column, b.value
    c0, a0, width = b.head[i, Head.COLUMN], b.head[i, Head.VALUE], b.head[i, Head.WIDTH]
    high = column[c0 + end - 1]
    for j in range(low, high + 1):
        work[0, j] = work[1, j] = work[2, j] = 0.0
    for k in range(begin, end):
        j = column[c0 + k]
        work[0, j] = value[a0 + k]
        work[1, j] = value[a0 + width + k]
        work[2, j] = value[a0 + 2 * width + k]
    total0, total1, total2 = _three_inertias(b, low, high, factor, work)
    weight[i, 0] += total0
    weight[i, 1] += total1
    weight[i, 2] += total2


@lean_leaf
def _reach_of(b: Blocks, i):
    """First degree of freedom that block i reaches, if it is one row of one that is coupled with
    others, such as a joint that is dry or at a limit; else -1."""
    j = b.column[b.head[i, Head.COLUMN]]
    one = b.head[i, Head.ROWS] == 1 and b.head[i, Head.WIDTH] == 1
    return b.first[j] if one and b.first[j] < j else np.int64(-1)


@lean
def _put_three_joints(b: Blocks, i, low, factor, work, weight):
    """weight[i:i + 3, 0] := a M^-1 a' of three blocks that reach `low`, side by side."""
    high = low
    for k in range(3):
        high = max(high, b.column[b.head[i + k, Head.COLUMN]])
    for j in range(low, high + 1):
        work[0, j] = work[1, j] = work[2, j] = 0.0
    for k in range(3):
        work[k, b.column[b.head[i + k, Head.COLUMN]]] = b.value[b.head[i + k, Head.VALUE]]
    weight[i, 0], weight[i + 1, 0], weight[i + 2, 0] = _three_inertias(b, low, high, factor, work)


@lean
def _note_alone(b: Blocks, factor, alone):
    """alone (nv,) := 1 where a row of the factored mass has its diagonal and nothing else, as those
    of a body that turns about its principal axes; else 0."""
    for k in range(b.first.shape[0]):
        at, j = b.row[k], b.first[k]
        while j < k and factor[at + j] == 0.0:
            j += 1
        alone[k] = 1.0 if j == k else 0.0


@lean_leaf
def _are_alone(b: Blocks, i, begin, end, alone):
    """Whether all columns of block i from `begin` to `end` are."""
    found = True
    for c in range(b.head[i, Head.COLUMN] + begin, b.head[i, Head.COLUMN] + end):
        found = found and alone[b.column[c]] == 1.0
    return found


@lean
def _add_lone_inertias(b: Blocks, i, begin, end, factor, weight):
    """The same as `_add_inertia` of all rows, where the columns are alone."""
    c0, a0, width = b.head[i, Head.COLUMN], b.head[i, Head.VALUE], b.head[i, Head.WIDTH]
    for r in range(b.head[i, Head.ROWS]):
        total = weight[i, r]
        for k in range(begin, end):
            j, entry = b.column[c0 + k], b.value[a0 + r * width + k]
            total += entry * entry * factor[b.row[j] + j]
        weight[i, r] = total


@lean_leaf
def drop_immobile(b: Blocks, i, weight):
    """Lets the normal of block i move nothing if that is what it does but for rounding."""
    if b.head[i, Head.ROWS] < 3 or weight[i, 0] > IMMOBILE * max(weight[i, 1], weight[i, 2]):
        return
    weight[i, 0] = 0.0
    for c in range(b.head[i, Head.VALUE], b.head[i, Head.VALUE] + b.head[i, Head.WIDTH]):
        b.value[c] = 0.0


@lean
def inverse_inertias(b: Blocks, count, factor, work, weight):
    """weight (count, ROWS) := a M^-1 a' of each row, from the factored mass, tree by tree, and zero
    for a normal that moves its bodies by no more than rounding; work (4, nv) or more."""
    head, column, first, alone = b.head, b.column, b.first, work[3]
    _note_alone(b, factor, alone)
    known = 0
    for i in range(count):
        if i < known:
            continue
        low = _reach_of(b, i)
        if low >= 0 and i + 3 <= count and low == _reach_of(b, i + 1) == _reach_of(b, i + 2):
            _put_three_joints(b, i, low, factor, work, weight)
            known = i + 3
            continue
        c0, rows = head[i, Head.COLUMN], head[i, Head.ROWS]
        for r in range(rows):
            weight[i, r] = 0.0
        end = head[i, Head.WIDTH]
        while end > 0:  # the last columns that are coupled with each other, and so on
            begin = end - 1
            low = first[column[c0 + begin]]
            while begin > 0 and column[c0 + begin - 1] >= low:
                begin -= 1
                low = min(low, first[column[c0 + begin]])
            single = 0
            if _are_alone(b, i, begin, end, alone):
                _add_lone_inertias(b, i, begin, end, factor, weight)
                single = rows
            elif rows >= 3:
                _add_three_inertias(b, i, begin, end, low, factor, work, weight)
                single = 3
            for r in range(single, rows):
                _add_inertia(b, i, r, begin, end, low, factor, work, weight)
            end = begin
        drop_immobile(b, i, weight)


@lean
def mass_times(b: Blocks, x, out):
    """out (nv,) := M x."""
    mass, first = b.mass, b.first
    for j in range(x.shape[0]):
        at = b.row[j]
        total = mass[at + j] * x[j]
        for k in range(first[j], j):
            total += mass[at + k] * x[k]
            out[k] += mass[at + k] * x[j]
        out[j] = total


def allocate(nv: int, blocks: int, entries: int, skyline: int) -> Blocks:
    """Room for a problem with that many blocks, entries of rows, and entries of its mass."""
    return Blocks(
        np.zeros((blocks, HEADS), np.int64),
        np.zeros((blocks, DATA)),
        np.zeros(entries, np.int64),
        np.zeros(entries),
        np.zeros(skyline),
        np.zeros(nv, np.int64),
        np.zeros(nv, np.int64),
        np.zeros(nv),
        np.zeros(nv),
    )
