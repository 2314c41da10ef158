"""The linear system that Newton's method and the interior point share, island by island.

Near an answer every block's impulse changes linearly with the speeds along its rows,
f = g - D (A x), x the change of the velocity. The momentum balance is then a system in x whose
matrix is of the size of the velocities, however many contacts there are and however they depend
on each other:

    H x = r,   H = M + sum over blocks of A' D A

In contact space (`graph.py`, `Size.STAR`) the velocity is that of the impulses themselves, z, with
the diagonal of W for a mass m, and the momentum balance is m z = m f; rows W give the speeds, and
an impulse acts on its own z alone:

    H = m + m D W

It has the pattern of W, and is never symmetric. Its solutions are those of (W + D^-1), which no
zero of D spoils.

It is kept by blocks of bodies (`kernels/sparse.py`), but for an island that is one long tree of
joints (`trees.py`). H is symmetric where D is; sliding friction makes it unsymmetric. What is
solved for is refined once by the residual from the rows themselves: D may be 1e9 times the mass,
and H has lost those digits.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import ROWS, Blocks, Head, are_six, from_targets
from stiction.contact.problem.graph import Graph, Piece, Size
from stiction.contact.solvers.blocks.iterate import add_vector, copy_vector
from stiction.contact.solvers.blocks.trees import factor_tree, is_factored, solve_tree
from stiction.contact.solvers.blocks.workspace import System
from stiction.kernels import runs, six, sparse
from stiction.kernels.block import BODY, SHORT
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix


@lean_leaf
def _is_run(g: Graph, i):
    """Whether the columns of block i are neighbours, all on one node."""
    return g.pieces[i + 1] - g.pieces[i] == 1 and g.piece[g.pieces[i], Piece.TOGETHER] == 1


@lean
def changes(b: Blocks, g: Graph, k, x, out):
    """out := A x, for the rows of island k."""
    head, column, value = b.head, b.column, b.value
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows, width = head[i, Head.ROWS], head[i, Head.WIDTH]
        c0, a0 = head[i, Head.COLUMN], head[i, Head.VALUE]
        first = 0
        if rows >= 3:
            x0, x1, x2 = 0.0, 0.0, 0.0
            for p in range(g.pieces[i], g.pieces[i + 1]):
                begin, end = g.piece[p, Piece.BEGIN], g.piece[p, Piece.END]
                if g.piece[p, Piece.TOGETHER] == 1 and end - begin == BODY:
                    base, a = column[c0 + begin], a0 + begin
                    x0 += six.dot(value, a, x, base)
                    x1 += six.dot(value, a + width, x, base)
                    x2 += six.dot(value, a + 2 * width, x, base)
                    continue
                if g.piece[p, Piece.TOGETHER] == 1 and end - begin > SHORT:
                    base, a = column[c0 + begin], a0 + begin
                    y0, y1, y2 = runs.dot_three(value, a, width, x, base, end - begin)
                    x0, x1, x2 = x0 + y0, x1 + y1, x2 + y2
                    continue
                # A long tree's root comes first, and mostly a limb of it next.
                while begin + BODY <= end and are_six(b, c0 + begin):
                    base, a = column[c0 + begin], a0 + begin
                    x0 += six.dot(value, a, x, base)
                    x1 += six.dot(value, a + width, x, base)
                    x2 += six.dot(value, a + 2 * width, x, base)
                    begin += BODY
                for c in range(begin, end):
                    y, a = x[column[c0 + c]], a0 + c
                    x0 += value[a] * y
                    x1 += value[a + width] * y
                    x2 += value[a + 2 * width] * y
            out[i, 0], out[i, 1], out[i, 2] = x0, x1, x2
            first, a0 = 3, a0 + 3 * width
        run = width > SHORT and _is_run(g, i)
        for r in range(first, rows):
            total = 0.0
            if run:
                total = runs.dot(value, a0, x, column[c0], width)
            else:
                for c in range(width):
                    total += value[a0 + c] * x[column[c0 + c]]
            out[i, r] = total
            a0 += width


@lean
def speeds(b: Blocks, g: Graph, k, v, u):
    """u := speed along each row of island k at the velocity v, less its bound, over moving
    surfaces."""
    changes(b, g, k, v, u)
    for at in range(g.members[k], g.members[k + 1]):
        from_targets(b, g.member[at], u)


@lean
def push(b: Blocks, g: Graph, k, f, out):
    """out += A' f, of the blocks of island k; m f in contact space."""
    head, column, value = b.head, b.column, b.value
    if g.size[Size.STAR] == 1:
        each = out.shape[0] // g.parent.shape[0]
        for at in range(g.members[k], g.members[k + 1]):
            i = g.member[at]
            for r in range(each):
                j = each * i + r
                out[j] += b.mass[b.row[j] + j] * f[i, r]
        return
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows, width = head[i, Head.ROWS], head[i, Head.WIDTH]
        c0, a0 = head[i, Head.COLUMN], head[i, Head.VALUE]
        first = 0
        if rows >= 3:
            x, y, z = f[i, 0], f[i, 1], f[i, 2]
            if x != 0.0 or y != 0.0 or z != 0.0:
                for p in range(g.pieces[i], g.pieces[i + 1]):
                    begin, end = g.piece[p, Piece.BEGIN], g.piece[p, Piece.END]
                    if g.piece[p, Piece.TOGETHER] == 1 and end - begin == BODY:
                        to, a = column[c0 + begin], a0 + begin
                        six.add_three(out, to, value, x, a, y, a + width, z, a + 2 * width)
                        continue
                    if g.piece[p, Piece.TOGETHER] == 1 and end - begin > SHORT:
                        to, a = column[c0 + begin], a0 + begin
                        runs.add_three(out, to, f, ROWS * i, 1, value, a, width, end - begin)
                        continue
                    while begin + BODY <= end and are_six(b, c0 + begin):
                        to, a = column[c0 + begin], a0 + begin
                        six.add_three(out, to, value, x, a, y, a + width, z, a + 2 * width)
                        begin += BODY
                    for c in range(begin, end):
                        a = a0 + c
                        out[column[c0 + c]] += (
                            x * value[a] + y * value[a + width] + z * value[a + 2 * width]
                        )
            first, a0 = 3, a0 + 3 * width
        run = width > SHORT and _is_run(g, i)
        for r in range(first, rows):
            impulse = f[i, r]
            if impulse != 0.0 and run:
                runs.add_scaled(out, column[c0], impulse, value, a0, width)
            elif impulse != 0.0:
                for c in range(width):
                    out[column[c0 + c]] += impulse * value[a0 + c]
            a0 += width


@lean
def take_mass(b: Blocks, g: Graph, s: BlockMatrix, k, x, out):
    """out -= M x, over the nodes of island k."""
    mass, row, first = b.mass, b.row, b.first
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            at, y, far = row[j], x[j], first[j]
            total = mass[at + j] * y
            if j - far > SHORT:
                total += runs.dot(mass, at + far, x, far, j - far)
                runs.take_scaled(out, far, y, mass, at + far, j - far)
                out[j] -= total
                continue
            for c in range(far, j):
                total += mass[at + c] * x[c]
                out[c] -= mass[at + c] * y
            out[j] -= total


@lean
def unbalanced(b: Blocks, g: Graph, s: BlockMatrix, k, v, f, left, out):
    """out := what the impulses f leave of the momentum balance at the velocity v; left: scratch."""
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            out[j] = b.push[j]
            left[j] = v[j] - b.velocity[j]
    take_mass(b, g, s, k, left, out)
    push(b, g, k, f, out)


@lean
def imbalance(b: Blocks, g: Graph, s: BlockMatrix, k, r):
    """Largest entry of a momentum r (nv,) over the island, by energy: over sqrt(M_jj)."""
    worst = 0.0
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            size = abs(r[j]) / np.sqrt(b.mass[b.row[j] + j])
            if not size <= worst:
                worst = size
    return worst


@lean
def _add_run(b: Blocks, c0, a0, width, rows, left, base, first, begin, run, n, E, wide, T, o):
    """T (.., n) at o, from entry `first` of its rows on, += A' E, over the columns of a piece and a
    run of columns that are neighbours: rows of A from `left`, columns of E (rows, wide) from
    `begin`; base: first degree of freedom of the piece's node."""
    column, value = b.column, b.value
    for k in range(left[Piece.BEGIN], left[Piece.END]):
        to, a = o + n * (column[c0 + k] - base) + first, a0 + k
        single = 0
        if rows >= 3:
            single = 3
            runs.add_three(T, to, value, a, width, E, begin, wide, run)
        for r in range(single, rows):
            x = value[a + r * width]
            if x != 0.0:
                runs.add_scaled(T, to, x, E, r * wide + begin, run)


@lean
def _add_piece(b: Blocks, c0, a0, width, rows, left, right, base, above, n, E, wide, T, o):
    """T (.., n) at o += A' E, over the columns of two pieces: rows of A from `left`, columns of E
    (rows, wide) from `right`; base, above: first degree of freedom of their nodes."""
    column, value = b.column, b.value
    begin, stop = right[Piece.BEGIN], right[Piece.END]
    together = right[Piece.TOGETHER] == 1
    if together and rows == 3 and stop - begin == BODY:
        shift = column[c0 + begin] - above
        k = left[Piece.BEGIN]
        if n == BODY and left[Piece.TOGETHER] == 1 and left[Piece.END] - k == BODY:
            to = o + n * (column[c0 + k] - base) + shift
            six.add_product(T, to, value, a0 + k, width, E, begin, wide)
            return
        e0, e1, e2 = begin, wide + begin, 2 * wide + begin
        for k in range(left[Piece.BEGIN], left[Piece.END]):
            x, y, z = value[a0 + k], value[a0 + width + k], value[a0 + 2 * width + k]
            to = o + n * (column[c0 + k] - base) + shift
            six.add_three(T, to, E, x, e0, y, e1, z, e2)
        return
    while begin < stop:
        end = stop
        if not together:
            end = begin + 1
            while end < stop and column[c0 + end] == column[c0 + end - 1] + 1:
                end += 1
        first = column[c0 + begin] - above
        _add_run(
            b, c0, a0, width, rows, left, base, first, begin, end - begin, n, E, wide, T, o
        )  # fmt: skip
        begin = end


@lean
def _respond(b: Blocks, y: System, i, rows, width, a0):
    """The scratch := D A of block i."""
    value, E, D = b.value, y.scratch, y.D
    if rows == 3 and width % BODY == 0:
        wide = E.shape[1]
        for r in range(3):
            x, d, z = D[i, ROWS * r], D[i, ROWS * r + 1], D[i, ROWS * r + 2]
            for c in range(0, width, BODY):
                a = a0 + c
                six.put_three(E, r * wide + c, value, x, a, d, a + width, z, a + 2 * width)
        return
    for r in range(rows):
        for c in range(width):
            E[r, c] = 0.0
        to, d, single = r * E.shape[1], i * D.shape[1] + ROWS * r, 0
        if rows >= 3:
            single = 3
            runs.add_three(E, to, D, d, 1, value, a0, width, width)
        for q in range(single, rows):
            if D[i, ROWS * r + q] != 0.0:
                runs.add_scaled(E, to, D[i, ROWS * r + q], value, a0 + q * width, width)


@lean
def _add_block(b: Blocks, g: Graph, s: BlockMatrix, y: System, i, symmetric):
    """Adds A' D A of block i to the matrix."""
    head, E = b.head, y.scratch
    rows, width = head[i, Head.ROWS], head[i, Head.WIDTH]
    c0, a0 = head[i, Head.COLUMN], head[i, Head.VALUE]
    wide = E.shape[1]
    _respond(b, y, i, rows, width, a0)
    at = g.couplings[i]
    for p in range(g.pieces[i], g.pieces[i + 1]):
        node = g.piece[p, Piece.NODE]
        base = s.start[node]
        n = s.start[node + 1] - base
        _add_piece(
            b, c0, a0, width, rows, g.piece[p], g.piece[p], base, base, n, E, wide,
            s.diagonal, s.corner[node],
        )  # fmt: skip
        for q in range(g.pieces[i], p):
            other = g.piece[q, Piece.NODE]
            above = s.start[other]
            m = s.start[other + 1] - above
            o = g.coupling[at]
            at += 1
            below = s.position[node] > s.position[other]
            if below or not symmetric:
                _add_piece(
                    b, c0, a0, width, rows, g.piece[p], g.piece[q], base, above, m, E, wide,
                    s.lower if below else s.upper, o,
                )  # fmt: skip
            if not below or not symmetric:
                _add_piece(
                    b, c0, a0, width, rows, g.piece[q], g.piece[p], above, base, n, E, wide,
                    s.upper if below else s.lower, o,
                )  # fmt: skip


@lean
def _add_star(b: Blocks, g: Graph, s: BlockMatrix, y: System, i):
    """Adds m D W of contact i, in contact space, to the rows of its node."""
    head, column, E = b.head, b.column, y.scratch
    rows, width = head[i, Head.ROWS], head[i, Head.WIDTH]
    c0, a0 = head[i, Head.COLUMN], head[i, Head.VALUE]
    _respond(b, y, i, rows, width, a0)
    at, base = g.couplings[i], s.start[i]
    n = s.start[i + 1] - base
    for p in range(g.pieces[i], g.pieces[i + 1]):
        other = g.piece[p, Piece.NODE]
        above = s.start[other]
        m = s.start[other + 1] - above
        to, target = s.corner[i], s.diagonal
        if other != i:
            to = g.coupling[at]
            at += 1
            target = s.lower if s.position[i] > s.position[other] else s.upper
        for c in range(g.piece[p, Piece.BEGIN], g.piece[p, Piece.END]):
            for r in range(n):
                own = b.mass[b.row[base + r] + base + r]
                target[to + m * r + column[c0 + c] - above] += own * E[r, c]


@lean
def fill_mass(b: Blocks, s: BlockMatrix, node, symmetric):
    """The diagonal block of a node := its mass; of a symmetric matrix the lower part only."""
    base, corner = s.start[node], s.corner[node]
    n = s.start[node + 1] - base
    for x in range(corner, corner + n * n):
        s.diagonal[x] = 0.0
    for j in range(n):
        at = b.row[base + j] + base
        for c in range(b.first[base + j] - base, j + 1):
            entry = b.mass[at + c]
            s.diagonal[corner + n * j + c] = entry
            if not symmetric:
                s.diagonal[corner + n * c + j] = entry


@lean
def assemble(b: Blocks, g: Graph, s: BlockMatrix, y: System, k, symmetric):
    """Fills the matrix of island k; of a symmetric one the lower part only. (symmetric is a whole
    number: the constants true and false would be compiled apart.)"""
    low, high = g.positions[k], g.positions[k + 1]
    star = g.size[Size.STAR] == 1
    for p in range(low, high):
        fill_mass(b, s, s.order[p], symmetric)
    if s.column[high] > s.column[low]:
        last = s.column[high] - 1
        # The last block's size is that of its row's and its column's node: zero to where it ends.
        end = s.at[last] + _size_of_last(s, high, last)
        for x in range(s.at[s.column[low]], end):
            s.lower[x] = 0.0
        if not symmetric:
            for x in range(s.at[s.column[low]], end):
                s.upper[x] = 0.0
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        acts = False
        for r in range(b.head[i, Head.ROWS]):
            acts |= y.D[i, (ROWS + 1) * r] != 0.0
        if acts and star:
            _add_star(b, g, s, y, i)
        elif acts:
            _add_block(b, g, s, y, i, symmetric)


@lean
def _size_of_last(s: BlockMatrix, high, last):
    """Entries of the last block of the columns up to `high`."""
    p = high - 1
    while s.column[p] > last:
        p -= 1
    node, other = s.order[p], s.order[s.row[last]]
    return (s.start[node + 1] - s.start[node]) * (s.start[other + 1] - s.start[other])


@lean
def factor_system(b: Blocks, g: Graph, s: BlockMatrix, y: System, k, symmetric):
    """Factors the matrix of island k with the responses D; the sign of its determinant, 0 if it is
    singular, or not positive definite where it is said to be `symmetric`."""
    sign = factor_tree(b, g, y, k, symmetric)
    if sign == 0.0:
        assemble(b, g, s, y, k, symmetric)
        sign = sparse.factor(s, g.positions[k], g.positions[k + 1], symmetric)
    return sign


@lean_leaf
def _divide(g: Graph, s: BlockMatrix, k, r):
    """r := H^-1 r, with the factors at hand."""
    if is_factored(g, k):
        solve_tree(g, k, r)
    else:
        sparse.solve(s, g.positions[k], g.positions[k + 1], r)


@lean
def solve(b: Blocks, g: Graph, s: BlockMatrix, y: System, k, refine):
    """x := H^-1 rhs with the factored matrix, refined once if so asked; and change := A x."""
    copy_vector(g, s, k, y.rhs, y.x)
    _divide(g, s, k, y.x)
    changes(b, g, k, y.x, y.change)
    if not refine:
        return
    copy_vector(g, s, k, y.rhs, y.left)
    take_mass(b, g, s, k, y.x, y.left)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows = b.head[i, Head.ROWS]
        for r in range(rows):
            total = 0.0
            for q in range(rows):
                total -= y.D[i, ROWS * r + q] * y.change[i, q]
            y.pull[i, r] = total
    push(b, g, k, y.pull, y.left)
    _divide(g, s, k, y.left)
    add_vector(g, s, k, 1.0, y.left, y.x)
    changes(b, g, k, y.x, y.change)
