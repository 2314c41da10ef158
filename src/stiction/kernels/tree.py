"""Factors of the matrix that a tree of bodies and joints gives, in time linear in its size.

The motion that degree of freedom c gives to all that it moves is an axis S_c, six numbers, and what
moves a body is the sum V = sum S_k x_k over the degrees of freedom above it. A tree whose root
floats has six that give any motion at all; with axes by these, S of the root's is the unit matrix,
and the mass M has the entries

    M_ck = m_c . S_k   for k above c,   m_c = (M_c0 .. M_c5)

whatever its bodies weigh. What acts on a body by its own motion alone, as a contact with the ground
does, adds S_c' K S_k to all entries above it, K (6, 6) being its response. So, with A_c the sum of
all K at c and below,

    H_ck = r_c . S_k,  r_c = m_c + A_c' S_c        k above c
    H_kc = S_k . l_c,  l_c = m_c + A_c S_c
    H_cc = M_cc + S_c . A_c S_c

and to eliminate c takes S_j . l_c r_c . S_k / H_cc off all entries above it: a change of A, which
is passed on to what is above. Leaves go first; each degree of freedom takes a few dozen products,
where a dense factorization of 50 links takes two million in all.

Other rows B of the tree, as those of contacts between two of its bodies, with the response D, come
afterwards (Woodbury): H + B' D B has the solution of H, less H^-1 B' (1 + D W)^-1 D B of it, with
W = B H^-1 B'.

Nothing is pivoted but in the last matrix. Of a symmetric positive definite H none is needed; of
others a pivot may vanish: then the caller has to factor the dense one.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.kernels import panel, six
from stiction.kernels.block import divide_vector, factor_block
from stiction.kernels.compile import lean
from stiction.kernels.packing import packed

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

AXIS = 6
"""Numbers of an axis."""

LONG_TREE = 24
"""Degrees of freedom from which on a tree is factored so."""

BORDER = 48
"""Rows of other responses at most: more of them cost as much as the dense matrix."""

GAINS = 6
"""Rows of a block at most."""

SMALL_PIVOT = 1e-11
"""Pivot over the sum of what it is the rest of, up to which it is taken to vanish."""


class Form(IntEnum):
    """Of the matrix of an island."""

    DENSE = 0
    TREE = 1
    """One long tree, whose axes are known."""
    FACTORED = 2
    """One whose factors are those of this file, too."""


class Span(IntEnum):
    """Columns of `TreeMatrix.span`."""

    FORM = 0
    """A `Form`."""
    BASE = 1
    """First degree of freedom of the tree."""
    COUNT = 2
    """How many it has."""


@packed
class TreeMatrix(NamedTuple):
    """nv degrees of freedom; `wide` of them in the largest tree that is long, or none."""

    parent: Indices  # (nv,) degree of freedom above each; -1 at a root
    order: Indices  # (nv,) those of each tree, all after what is above them (`set_parents`)
    axis: Array  # (nv, 6) S, by those of the root; zero where the root does not float
    momentum: Array  # (nv, 6) m
    mass: Array  # (nv,) diagonal of M
    diagonal: Array  # (nv,) the same with the responses of single degrees of freedom
    response: Array  # (nv, 36) K of what acts on each, then A
    left: Array  # (nv, 6) l
    right: Array  # (nv, 6) r, over the pivot
    inverse: Array  # (nv,) of the pivots
    motion: Array  # (nv, 6) V, or what is passed on from below
    span: Indices  # (nodes, Span) of each island
    rows: Indices  # (1,) how many others
    down: Array  # (wide, BORDER) their columns, eliminated by l
    up: Array  # (wide, BORDER) the same by r, over the pivots
    passed: Array  # (6 wide, BORDER) scratch
    weight: Array  # (BORDER, BORDER) W
    gain: Array  # (BORDER, GAINS) of each row those entries of D that are its block's
    block: Indices  # (BORDER, 2) of each row the first row of its block, and how many that has
    core: Array  # (BORDER * BORDER,) factors of 1 + D W, rows one after the other
    pivot: Indices  # (BORDER,)
    pull: Array  # (BORDER,) B H^-1 r of the other rows
    part: Array  # (BORDER,) D times that, then what they take off


def allocate(start: Indices) -> TreeMatrix:
    """For nodes that begin at `start`, the last of which is nv; no tree is known yet."""
    nv, sizes = int(start[-1]), np.diff(start)
    wide = int(sizes.max(initial=0))
    wide = wide if wide >= LONG_TREE else 0
    border = BORDER if wide else 0
    known = nv if wide else 0
    return TreeMatrix(
        parent=np.full(known, -1, np.int64),
        order=np.arange(known),
        axis=np.zeros((known, AXIS)),
        momentum=np.zeros((known, AXIS)),
        mass=np.zeros(known),
        diagonal=np.zeros(known),
        response=np.zeros((known, AXIS * AXIS)),
        left=np.zeros((known, AXIS)),
        right=np.zeros((known, AXIS)),
        inverse=np.zeros(known),
        motion=np.zeros((known, AXIS)),
        span=np.zeros((max(len(sizes), 1), len(Span)), np.int64),
        rows=np.zeros(1, np.int64),
        down=np.zeros((wide, border)),
        up=np.zeros((wide, border)),
        passed=np.zeros((AXIS * wide, border)),
        weight=np.zeros((border, border)),
        gain=np.zeros((border, GAINS)),
        block=np.zeros((border, 2), np.int64),
        core=np.zeros(border * border),
        pivot=np.zeros(border, np.int64),
        pull=np.zeros(border),
        part=np.zeros(border),
    )


def set_parents(t: TreeMatrix, parent: NDArray[np.integer], start: Indices) -> None:
    """Notes the degree of freedom above each, -1 at a root, of trees that begin at `start`.

    Degrees of freedom are taken by their depth: those of several limbs in turn do not wait for
    each other, and a system of a humanoid is solved in three quarters of the time."""
    known = len(t.parent)
    t.parent[:] = parent[:known]
    depth = np.zeros(known, np.int64)
    for c in range(known):
        depth[c] = depth[t.parent[c]] + 1 if t.parent[c] >= 0 else 0
    if known:
        for base, end in pairwise(start):
            t.order[base:end] = base + np.argsort(depth[base:end], kind="stable")


@lean
def eliminate(t: TreeMatrix, base, n, symmetric):
    """Factors H of the n degrees of freedom from `base` on, with its diagonal and the responses at
    hand, which are used up; the sign of its determinant, 0 where a pivot vanishes."""
    axis, A, left, right = t.axis, t.response, t.left, t.right
    sign = 1.0
    for p in range(base + n - 1, base - 1, -1):
        c = t.order[p]
        at, o = AXIS * c, AXIS * AXIS * c
        six.put(left, at, t.momentum, at)
        size = t.diagonal[c]
        pivot = size
        for q in range(AXIS):
            moved = six.dot(A, o + AXIS * q, axis, at)
            left[c, q] += moved
            pivot += axis[c, q] * moved
            size += abs(axis[c, q] * moved)
        if symmetric:
            six.put(right, at, left, at)
        else:
            six.put(right, at, t.momentum, at)
            for q in range(0, AXIS, 3):
                six.add_three(
                    right, at, A, axis[c, q], o + AXIS * q, axis[c, q + 1], o + AXIS * (q + 1),
                    axis[c, q + 2], o + AXIS * (q + 2),
                )  # fmt: skip
        if not abs(pivot) > SMALL_PIVOT * size:
            return 0.0
        if pivot < 0.0:
            if symmetric:
                return 0.0
            sign = -sign
        inverse = 1.0 / pivot
        t.inverse[c] = inverse
        for q in range(AXIS):
            right[c, q] *= inverse
        above = t.parent[c]
        if above >= base:
            to = AXIS * AXIS * above
            for q in range(AXIS):
                six.take_scaled(A, to + AXIS * q, -1.0, A, o + AXIS * q)
                six.take_scaled(A, to + AXIS * q, left[c, q], right, at)
    return sign


@lean
def _descend(t: TreeMatrix, base, n, r):
    """r := L^-1 r, from leaves to the root; not divided by the pivots."""
    passed = t.motion
    for c in range(base, base + n):
        for q in range(AXIS):
            passed[c, q] = 0.0
    for p in range(base + n - 1, base - 1, -1):
        c = t.order[p]
        at, above = AXIS * c, t.parent[c]
        r[c] -= six.dot(t.axis, at, passed, at)
        if above >= base:
            six.take_scaled(passed, AXIS * above, -1.0, passed, at)
            six.take_scaled(passed, AXIS * above, -r[c] * t.inverse[c], t.left, at)


@lean
def _ascend(t: TreeMatrix, base, n, r):
    """r := U^-1 r, from the root to leaves, divided by the pivots first."""
    motion = t.motion
    for p in range(base, base + n):
        c = t.order[p]
        at, above = AXIS * c, t.parent[c]
        r[c] *= t.inverse[c]
        if above >= base:
            r[c] -= six.dot(t.right, at, motion, AXIS * above)
            six.put(motion, at, motion, AXIS * above)
        else:
            for q in range(AXIS):
                motion[c, q] = 0.0
        six.take_scaled(motion, at, -r[c], t.axis, at)


@lean
def _descend_rows(t: TreeMatrix, base, n, passing, over, rows, out):
    """out (n, rows) := L^-1 out, or U'^-1 out; passing: `left`, or `right`; over: whether by the
    pivots already."""
    passed, wide = t.passed, t.passed.shape[1]
    lanes = panel.padded(rows)
    for c in range(AXIS * n):
        for j in range(lanes):
            passed[c, j] = 0.0
    for c in range(n - 1, -1, -1):
        here, above = base + c, t.parent[base + c] - base
        at = AXIS * c * wide
        panel.add_six_rows(out, c * wide, -1.0, t.axis, AXIS * here, passed, at, wide, lanes)
        if above >= 0:
            share = 1.0 if over else t.inverse[here]
            panel.add_to_six_rows(
                passed, AXIS * above * wide, at, wide, share, passing, AXIS * here, out, c * wide,
                lanes,
            )  # fmt: skip


@lean
def eliminate_rows(t: TreeMatrix, base, n, symmetric):
    """Eliminates the other rows, whose columns are in `down`."""
    rows = t.rows[0]
    lanes = panel.padded(rows)
    if not symmetric:
        for c in range(n):
            for j in range(lanes):
                t.up[c, j] = t.down[c, j]
        _descend_rows(t, base, n, t.right, True, rows, t.up)
    _descend_rows(t, base, n, t.left, False, rows, t.down)
    for c in range(n):
        for j in range(lanes):
            t.up[c, j] = t.inverse[base + c] * (t.down[c, j] if symmetric else t.up[c, j])


@lean
def factor_core(t: TreeMatrix, n):
    """Factors 1 + D W of the other rows, eliminated; the sign of its determinant, or 0."""
    rows, wide = t.rows[0], t.down.shape[1]
    panel.clear(rows, t.weight)
    panel.add_product(1.0, rows, n, panel.padded(rows), t.up, 0, 1, wide, t.down, t.weight)
    for i in range(rows):
        first, size = t.block[i, 0], t.block[i, 1]
        for j in range(rows):
            total = 1.0 if i == j else 0.0
            for q in range(size):
                total += t.gain[i, q] * t.weight[first + q, j]
            t.core[rows * i + j] = total
    return factor_block(t.core, 0, rows, t.pivot, 0)


@lean
def _take_rows_off(t: TreeMatrix, base, n, r):
    """What the other rows take off r, which is half of its solution."""
    rows, wide = t.rows[0], t.down.shape[1]
    lanes = panel.padded(rows)
    for j in range(lanes):
        t.pull[j] = 0.0
    for c in range(n):
        panel.add_scaled(t.pull, 0, r[base + c], t.up, c * wide, lanes)
    for j in range(rows):
        first, total = t.block[j, 0], 0.0
        for q in range(t.block[j, 1]):
            total += t.gain[j, q] * t.pull[first + q]
        t.part[j] = total
    divide_vector(t.core, 0, rows, t.pivot, 0, t.part)
    for j in range(rows, lanes):
        t.part[j] = 0.0
    for c in range(n):
        r[base + c] -= panel.dot(t.part, 0, t.down, c * wide, lanes)


@lean
def solve(t: TreeMatrix, base, n, r):
    """r := the solution for the right side r, of the n degrees of freedom from `base` on."""
    _descend(t, base, n, r)
    if t.rows[0] > 0:
        _take_rows_off(t, base, n, r)
    _ascend(t, base, n, r)
