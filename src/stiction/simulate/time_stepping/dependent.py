"""Rows of a rigid equality that its bodies cannot move along but by rounding.

A loop in a plane cannot move across it. Its joint has a row across all the same, whose entries are
rounding, or, of a model that is written with so many decimals, what the axes are out of parallel;
and the error across, which nothing can take back, is of that kind, too. Solved for, such a row
needs impulses so large that what floats is thrown about by forces between its own links, and holds
still what ought to turn.

All rows R of a constraint, with errors p, are looked at together, since the plane may lie askew in
the world. In units in which the longest row is one, with w the left singular vectors whose singular
values are below `DEPENDENT_SHARE`,

    R := R - w w'R        p := p - w w'p

so that they do not contradict each other, and as many rows as there are w, which follow from the
others now, become zero: left in, they would differ from what follows by rounding. Rows that mocap
bodies lead give way, and are left as they are (`led.py`).
"""

from __future__ import annotations

import mujoco
import numpy as np

from stiction.bridge.layout import integers, numbers, offset, pointer
from stiction.bridge.rows import Key, Place
from stiction.contact.problem.blocks import Blocks, Head, Kind
from stiction.contact.solvers.blocks.workspace import unpack_problem
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.stage import stage
from stiction.simulate.time_stepping.workspace import Step, unpack_step

DEPENDENT_SHARE = 1e-4
"""Share of a row that lies outside the span of others, up to which it is dependent: a
hundred times what a tolerance of 1e-7 m is to a body of 0.1 m."""

MOST_TOGETHER = 12
"""Rows that are looked at together at most: two welds between the same bodies."""

JACOBI_SWEEPS = 12
"""Of Jacobi's method, which takes five or six."""

AMONG_EQUALS = 1e-3
"""Share by which an entry is larger than another one that comes first, so that rounding does not
choose among equal ones."""

WELD = int(mujoco.mjtEq.mjEQ_WELD)
CONNECT = int(mujoco.mjtEq.mjEQ_CONNECT)
POINT_ROWS = 3
"""Rows of a constraint's translation; of a weld those of its rotation follow, in other units."""

_NV, _NEQ, _EQ_TYPE, _MOBILITY = (
    offset("mjModel", name) for name in ("nv", "neq", "eq_type", "dof_invweight0")
)


@lean_leaf
def _is_alike(b: Blocks, i, k):
    """Whether blocks i and k have the same columns."""
    head = b.head
    alike = head[i, Head.WIDTH] == head[k, Head.WIDTH]
    for c in range(head[i, Head.WIDTH] if alike else 0):
        alike = alike and b.column[head[i, Head.COLUMN] + c] == b.column[head[k, Head.COLUMN] + c]
    return alike


@lean
def _end_of_alike(b: Blocks, step: Step, begin, count):
    """Number of the first block after `begin` that has other columns than it has, or asks for
    something else than rest."""
    end = begin
    while end < count and end - begin < MOST_TOGETHER:
        if b.head[end, Head.KIND] != Kind.HOLD or step.place[end, Place.LED] != 0.0:
            break
        if not _is_alike(b, begin, end):
            break
        end += 1
    return end


@lean_leaf
def _unit_of(step: Step, i, kinds):
    """Rows with the same number are measured alike; kinds (neq,): types of equalities."""
    which, row = step.key[i, Key.SECOND] // 8, step.key[i, Key.SECOND] % 8
    kind = kinds[which]
    if kind == WELD:
        return -1 if row < POINT_ROWS else -2
    return -1 if kind == CONNECT else which


@lean
def _measure(b: Blocks, step: Step, begin, end, kinds, mobility, own, length):
    """length (n,) := of each row, that of the longest one which is measured alike, where moving
    along each degree of freedom counts by its inertia; own (n,) is overwritten."""
    for i in range(begin, end):
        c0, a0, total = b.head[i, Head.COLUMN], b.head[i, Head.VALUE], 0.0
        for k in range(b.head[i, Head.WIDTH]):
            x = b.value[a0 + k]
            total += x * mobility[b.column[c0 + k]] * x
        own[i - begin] = np.sqrt(total)
    for i in range(begin, end):
        length[i - begin] = 0.0
        for k in range(begin, end):
            if _unit_of(step, i, kinds) == _unit_of(step, k, kinds):
                length[i - begin] = max(length[i - begin], own[k - begin])


@lean
def _multiply(b: Blocks, begin, end, mobility, length, gram):
    """gram (n, n) := products of the rows over their lengths."""
    c0 = b.head[begin, Head.COLUMN]
    for i in range(end - begin):
        for k in range(end - begin):
            gram[i, k] = 0.0
            if not (length[i] > 0.0 and length[k] > 0.0):
                continue
            a, c = b.head[begin + i, Head.VALUE], b.head[begin + k, Head.VALUE]
            for j in range(b.head[begin, Head.WIDTH]):
                gram[i, k] += b.value[a + j] * mobility[b.column[c0 + j]] * b.value[c + j]
            gram[i, k] /= length[i] * length[k]


@lean
def _turn_to_axes(gram, axes, n):
    """Jacobi's method: gram (n, n), symmetric, becomes diagonal; the columns of axes (n, n) are
    its eigenvectors."""
    for i in range(n):
        for k in range(n):
            axes[i, k] = 1.0 if i == k else 0.0
    for _ in range(JACOBI_SWEEPS):
        turned = False
        for p in range(n):
            for q in range(p + 1, n):
                if not abs(gram[p, q]) > 1e-17 * np.sqrt(abs(gram[p, p] * gram[q, q])):
                    continue
                turned = True
                half = 0.5 * (gram[q, q] - gram[p, p]) / gram[p, q]
                t = 1.0 / (abs(half) + np.sqrt(1.0 + half * half))
                t = -t if half < 0.0 else t
                cosine = 1.0 / np.sqrt(1.0 + t * t)
                sine = t * cosine
                for k in range(n):
                    x, y = gram[k, p], gram[k, q]
                    gram[k, p], gram[k, q] = cosine * x - sine * y, sine * x + cosine * y
                for k in range(n):
                    x, y = gram[p, k], gram[q, k]
                    gram[p, k], gram[q, k] = cosine * x - sine * y, sine * x + cosine * y
                    x, y = axes[k, p], axes[k, q]
                    axes[k, p], axes[k, q] = cosine * x - sine * y, sine * x + cosine * y
        if not turned:
            return


@lean
def _take_out(b: Blocks, step: Step, begin, end, w, length):
    """Takes the combination w (n,) out of the rows, which have those lengths, and of their
    errors."""
    for k in range(b.head[begin, Head.WIDTH]):
        along = 0.0
        for i in range(begin, end):
            if length[i - begin] > 0.0:
                along += w[i - begin] * b.value[b.head[i, Head.VALUE] + k] / length[i - begin]
        for i in range(begin, end):
            b.value[b.head[i, Head.VALUE] + k] -= length[i - begin] * w[i - begin] * along
    along = 0.0
    for i in range(begin, end):
        if length[i - begin] > 0.0:
            along += w[i - begin] * step.place[i, Place.GAP] / length[i - begin]
    for i in range(begin, end):
        step.place[i, Place.GAP] -= length[i - begin] * w[i - begin] * along


@lean
def _leave_out(b: Blocks, step: Step, begin, n, many, null):
    """Makes zero those of the n rows from `begin` on that follow from the others: one for each of
    the first `many` columns of null (n, n), which the elimination of the largest entries takes."""
    for done in range(many):
        row, column = 0, done
        for i in range(n):
            for q in range(done, many):
                if abs(null[i, q]) > abs(null[row, column]) * (1.0 + AMONG_EQUALS):
                    row, column = i, q
        for i in range(n):
            null[i, done], null[i, column] = null[i, column], null[i, done]
        for q in range(done + 1, many):
            share = null[row, q] / null[row, done]
            for i in range(n):
                null[i, q] -= share * null[i, done]
            null[row, q] = 0.0
        a = b.head[begin + row, Head.VALUE]
        for k in range(b.head[begin, Head.WIDTH]):
            b.value[a + k] = 0.0
        step.place[begin + row, Place.GAP] = 0.0


@stage("void(intp, intp, int64)", eager=False, counted=True)
def settle_dependent(m, address, count):
    """Takes out of the first `count` blocks, of a step with rigid equalities, what their bodies
    cannot do."""
    b, _, _, _ = unpack_problem(address)
    _, step = unpack_step(address)
    kinds = integers(pointer(m + _EQ_TYPE), pointer(m + _NEQ))
    mobility = numbers(pointer(m + _MOBILITY), pointer(m + _NV))
    own, length = np.empty(MOST_TOGETHER), np.empty(MOST_TOGETHER)
    gram, axes = np.empty((MOST_TOGETHER, MOST_TOGETHER)), np.empty((MOST_TOGETHER, MOST_TOGETHER))
    begin = 0
    while begin < count and b.head[begin, Head.KIND] == Kind.HOLD:
        end = max(_end_of_alike(b, step, begin, count), begin + 1)
        n, many = end - begin, 0
        if n > 1:
            _measure(b, step, begin, end, kinds, mobility, own, length)
            _multiply(b, begin, end, mobility, length, gram)
            _turn_to_axes(gram, axes, n)
            for q in range(n):
                if gram[q, q] < DEPENDENT_SHARE * DEPENDENT_SHARE:
                    for i in range(n):
                        own[i] = axes[i, many] = axes[i, q]
                    _take_out(b, step, begin, end, own, length)
                    many += 1
            _leave_out(b, step, begin, n, many, axes)
        begin = end


settle = settle_dependent.external
