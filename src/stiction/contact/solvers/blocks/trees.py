"""The linear system of an island that is one long tree of joints, in time linear in its size.

A contact of a link with the ground has as many columns as there are degrees of freedom above it,
fifty links some eighty each, and a hundred of them fill the matrix with more products than it takes
to factor it. But all that such a row knows is in its first six columns, which are those of the
floating root: they are the force and the torque that it exerts, and the rest follows by the axes of
the joints (`kernels/tree.py`). So blocks are told apart:

    place >= 0    acts on one link alone; its last degree of freedom
    SINGLE - j    has the one column j: a limit, friction in a hinge
    OTHER         all the rest, as contacts between two links; few

Who poses a problem may give the axes of its trees and need not be trusted: whether the mass and the
rows are what axes make of them is tried with one arbitrary velocity (`mark_tree`). Where they are
not, or a pivot vanishes, or other rows are many, the matrix is factored as a dense one
(`system.py`). The answer is the same but for rounding, and refined by the rows as well.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import ROWS, Blocks, Head
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.blocks.workspace import System
from stiction.kernels import runs, six, tree
from stiction.kernels.block import BODY
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.tree import BORDER, LONG_TREE, Form, Span

SINGLE, OTHER = -2, -1
"""Places of blocks that do not act on one link alone."""

CONSISTENT = 1e-11
"""Difference of two sums, over the length of a row and the square root of its columns, up to which
axes give what rows and mass do."""

GOLDEN = 0.6180339887498949
"""Its multiples, less what is whole of them, are the velocity that this is tried with."""


@lean
def _try_motion(t, base, n, x):
    """x := the trial velocity, and `motion` what it moves."""
    for c in range(base, base + n):
        whole = GOLDEN * (c + 1)
        x[c], above = 0.5 + whole - np.floor(whole), t.parent[c]
        for q in range(BODY):
            t.motion[c, q] = x[c] * t.axis[c, q]
            if above >= base:
                t.motion[c, q] += t.motion[above, q]


@lean
def _read_mass(b: Blocks, t, base, n, x):
    """Whether the mass is that of a tree with such axes, whose momenta and diagonal are read; after
    `_try_motion`."""
    momentum = t.momentum
    for c in range(base, base + n):
        for q in range(BODY):
            high, low = max(c, base + q), min(c, base + q)
            inside = low >= b.first[high]
            momentum[c, q] = b.mass[b.row[high] + low] if inside else 0.0
    for c in range(base, base + n):
        at, above, far = b.row[c], t.parent[c], b.first[c]
        t.mass[c] = b.mass[at + c]
        total = runs.dot(b.mass, at + far, x, far, c - far)
        size = np.sqrt(n * runs.dot(b.mass, at + far, b.mass, at + far, c - far))
        if above >= base:
            total -= six.dot(momentum, BODY * c, t.motion, BODY * above)
        if not abs(total) <= CONSISTENT * size:
            return False
    return True


@lean
def _find_place(b: Blocks, t, i, base, x):
    """Place of block i; after `_try_motion`."""
    rows, width, c0 = b.head[i, Head.ROWS], b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
    first, last = b.column[c0], b.column[c0 + width - 1]
    if width == 1:
        return SINGLE - last
    if width < BODY or b.column[c0 + BODY - 1] != base + BODY - 1:
        return OTHER
    for r in range(rows):
        a0 = b.head[i, Head.VALUE] + r * width
        total = -six.dot(b.value, a0, t.motion, BODY * last)
        if last - first == width - 1:
            total += runs.dot(b.value, a0, x, first, width)
        else:
            for c in range(width):
                total += b.value[a0 + c] * x[b.column[c0 + c]]
        size = np.sqrt(width * runs.dot(b.value, a0, b.value, a0, width))
        if not abs(total) <= CONSISTENT * size:
            return OTHER
    return last


@lean
def mark_tree(b: Blocks, g: Graph, s: BlockMatrix, k, x):
    """Notes whether island k is one long tree whose axes are known, and where its blocks act;
    x (nv,): scratch."""
    t, node = g.tree, s.order[g.positions[k]]
    base = s.start[node]
    n = s.start[node + 1] - base
    t.span[k, Span.FORM], t.span[k, Span.BASE], t.span[k, Span.COUNT] = Form.DENSE, base, n
    if g.positions[k + 1] - g.positions[k] > 1 or n < LONG_TREE or g.size[Size.STAR] == 1:
        return
    if t.axis[base, 0] == 0.0:
        return
    _try_motion(t, base, n, x)
    if not _read_mass(b, t, base, n, x):
        return
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        g.place[i] = _find_place(b, t, i, base, x)
    t.span[k, Span.FORM] = Form.TREE


@lean_leaf
def is_tree(g: Graph, k):
    """Whether island k is marked as one long tree."""
    return g.tree.span[k, Span.FORM] != Form.DENSE


@lean_leaf
def forget_tree(g: Graph, k):
    """Takes island k for one that is no long tree, until it is marked."""
    g.tree.span[k, Span.FORM] = Form.DENSE


@lean
def _add_response(b: Blocks, g: Graph, y: System, i):
    """Adds K of block i, which acts on one link alone."""
    t, E, D = g.tree, y.scratch, y.D
    rows, width, a0 = b.head[i, Head.ROWS], b.head[i, Head.WIDTH], b.head[i, Head.VALUE]
    wide, to = E.shape[1], BODY * BODY * g.place[i]
    if rows == 3:
        for r in range(3):
            d = ROWS * r
            six.put_three(
                E, r * wide, b.value, D[i, d], a0, D[i, d + 1], a0 + width, D[i, d + 2],
                a0 + 2 * width,
            )  # fmt: skip
        six.add_product(t.response, to, b.value, a0, width, E, 0, wide)
        return
    for r in range(rows):
        for q in range(rows):
            d = D[i, ROWS * r + q]
            if d != 0.0:
                for p in range(BODY):
                    x = d * b.value[a0 + r * width + p]
                    six.take_scaled(t.response, to + BODY * p, -x, b.value, a0 + q * width)


@lean
def _acts(y: System, i, rows):
    acts = False
    for r in range(rows):
        acts |= y.D[i, (ROWS + 1) * r] != 0.0
    return acts


@lean
def _gather(b: Blocks, g: Graph, y: System, k, base, n):
    """Responses of all blocks, and the columns of the rows that are left over; whether there is
    room for these."""
    t = g.tree
    for c in range(base, base + n):
        t.diagonal[c] = t.mass[c]
        for q in range(BODY * BODY):
            t.response[c, q] = 0.0
    count = 0
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows, place = b.head[i, Head.ROWS], g.place[i]
        if not _acts(y, i, rows):
            continue
        if place >= 0:
            _add_response(b, g, y, i)
        elif place <= SINGLE:
            entry = b.value[b.head[i, Head.VALUE]]
            t.diagonal[SINGLE - place] += y.D[i, 0] * entry * entry
        elif count + rows > BORDER:
            return False
        else:
            count += rows
    t.rows[0] = count
    if count > 0:
        _enter_columns(b, g, y, k, base, n)
    return True


@lean
def _enter_columns(b: Blocks, g: Graph, y: System, k, base, n):
    """down := the columns of the other rows; notes their response."""
    t, down = g.tree, g.tree.down
    for c in range(n):
        for j in range(down.shape[1]):
            down[c, j] = 0.0
    count = 0
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows, width, c0 = b.head[i, Head.ROWS], b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
        if g.place[i] != OTHER or not _acts(y, i, rows):
            continue
        for r in range(rows):
            a0 = b.head[i, Head.VALUE] + r * width
            for c in range(width):
                down[b.column[c0 + c] - base, count + r] = b.value[a0 + c]
            t.block[count + r, 0], t.block[count + r, 1] = count, rows
            for q in range(rows):
                t.gain[count + r, q] = y.D[i, ROWS * r + q]
        count += rows


@lean
def factor_tree(b: Blocks, g: Graph, y: System, k, symmetric):
    """Factors the matrix of island k with the responses D; the sign of its determinant, or 0 where
    it has to be factored as a dense one."""
    t = g.tree
    base, n = t.span[k, Span.BASE], t.span[k, Span.COUNT]
    if t.span[k, Span.FORM] == Form.DENSE:
        return 0.0
    t.span[k, Span.FORM] = Form.TREE
    if not _gather(b, g, y, k, base, n):
        return 0.0
    sign = tree.eliminate(t, base, n, symmetric)
    if sign != 0.0 and t.rows[0] > 0:
        tree.eliminate_rows(t, base, n, symmetric)
        sign *= tree.factor_core(t, n)
    if sign != 0.0:
        t.span[k, Span.FORM] = Form.FACTORED
    return sign


@lean_leaf
def is_factored(g: Graph, k):
    """Whether the factors at hand of island k are those of `factor_tree`."""
    return g.tree.span[k, Span.FORM] == Form.FACTORED


@lean
def solve_tree(g: Graph, k, r):
    """r := H^-1 r of island k."""
    t = g.tree
    tree.solve(t, t.span[k, Span.BASE], t.span[k, Span.COUNT], r)
