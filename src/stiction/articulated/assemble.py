"""Assembly: inverse articulated-body inertias of parts, from single links to the whole.

A part with handles h has (Yamane & Nakamura, eq. 9; Featherstone's divide and conquer, 1999)

    acceleration of the handles = Phi (wrenches on them) + phi

A join through an edge from handle a to handle b leaves one unknown, the wrench f on b that it
transmits, with -f on a. With G_h the columns of Phi that a wrench on b and its reaction on a make,
the acceleration of b against a, at the edge, is

    u = Sigma f + sigma + G' (wrenches on handles from outside)      Sigma = X_b G_b - X_a G_a

and the joint's law (links.py) gives f, hence the new part, over the handles that are kept:

    f = f_0 - W G' (wrenches)      W = Q_c (Q_c' Sigma Q_c + K)^-1 Q_c'
    Phi - G W G'                   phi + G f_0

Wrenches that are known beforehand need no handles: they are in phi from the start. The way back
down, to joint accelerations, is in disassemble.py.

How it can fail: rows of a loop may depend on what already holds, as in every planar mechanism.
Then Q_c' Sigma Q_c is singular. Its rows are eliminated largest first, in units of what the two
links would do if they were free, and rows below `DEPENDENT_ROW` of that are left out. Rounding
grows with what a link can do alone against what it can do in the whole. Every second link of a
thousandth of the mass: inertia off by 5e-13, joint accelerations by 6e-11; of a millionth: 3e-10
and 2e-8. A chain of 250 equal links: 2e-13, where J M^-1 J' is off by 2e-10, and 1e-9 both ways.

Departures from the papers: handles are links, not joints, so a link with many joints is one handle.
Velocities do not appear, but for a loop's (links.py). Loops are joins of a part with itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.articulated.links import Joints, Links
from stiction.articulated.order import GROUND, Order
from stiction.articulated.spatial import (
    clear,
    copy,
    product,
    shift_columns,
    shift_rows,
    subtract_product,
    transpose,
    transposed_product,
)
from stiction.kernels.compile import kernel, leaf

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

DEPENDENT_ROW = 1e-9
"""Mobility along a row, relative to that of free links, below which it is taken to hold already
[1]. Across the plane of a chain of parallel hinges rounding leaves 1e-16 for 4 links, 1e-14 for 10,
3e-11 for 100: planar loops of more than two hundred links ask for more digits than there are. Taken
up, a dependent row would divide rounding by itself. Left out wrongly: a row that only a link of a
billionth of the mass can follow."""


class Parts(NamedTuple):
    """What assembly leaves behind for disassembly, in the units of links.py."""

    block: Array  # (square[-1], 6, 6) Phi of all parts, block by block
    bias: Array  # (first[-1], 6) phi of all parts
    coupling: Array  # (first[-1], 6, 6) G' of the handles of parts made by joins
    stiffness: Array  # (joins, 6, 6) W
    wrench: Array  # (joins, 6) f_0
    relative: Array  # (joins, 6, 6) Sigma
    closing: Array  # (joins, 6) sigma


class Work(NamedTuple):
    """Scratch of a join."""

    sides: Array  # (2, 6, 6) mobility of both handles, at the edge
    rows: Array  # (6, 6) Q'
    before: Array  # (6, 6) Sigma in rows of Q'
    held: Array  # (6, 6) the same and K, the rows that hold eliminated
    inverse: Array  # (6, 6) of it the block that is an inverse; zero elsewhere
    spared: Array  # (6, 6) 1 - W Sigma
    slack: Array  # (6, 6) (1 - Sigma W) Sigma: how the two move against each other
    retained: Array  # (6, 6) 1 - W (mobility of one side)
    follow: Array  # (6, 6) mobility of one side, joined
    one: Array  # (6, 6)
    two: Array  # (6, 6)
    pull: Array  # (6,)
    scale: Array  # (6,) mobility of free links along rows of Q'


@kernel
def _couple(block: Array, start: int, width: int, a: int, b: int, arm: Array, out: Array) -> None:
    """out := G' of the handle whose column of blocks begins at `start`, in a part with `width`
    handles: X_b Phi_b of it, less X_a Phi_a. a or b is -1 where that end is in another part."""
    clear(out)
    for side in range(2):
        h, sign = (a, -1.0) if side == 0 else (b, 1.0)
        if h >= 0:
            own, r = block[start + width * h], arm[side]
            for q in range(6):
                w0, w1, w2 = own[0, q], own[1, q], own[2, q]
                out[0, q] += sign * w0
                out[1, q] += sign * w1
                out[2, q] += sign * w2
                out[3, q] += sign * (own[3, q] + w1 * r[2] - w2 * r[1])
                out[4, q] += sign * (own[4, q] + w2 * r[0] - w0 * r[2])
                out[5, q] += sign * (own[5, q] + w0 * r[1] - w1 * r[0])


@leaf
def _ends_in(join: Indices, k: int, part: int) -> tuple[int, int]:
    """Handles of `part` at both ends of join k, -1 where that end is in another part."""
    a = join[k, 3] if join[k, 1] == part else -1
    b = join[k, 4] if join[k, 2] == part else -1
    return a, b


@leaf
def _relative(order: Order, joints: Joints, parts: Parts, k: int, work: Work) -> None:
    """Fills Sigma and sigma of join k, and the two terms of Sigma."""
    sigma, closing = parts.relative[k], parts.closing[k]
    e, arm = order.join[k, 0], joints.arm[order.join[k, 0]]
    for p in range(6):
        closing[p] = joints.gap[e, p]
    for side in range(2):
        part, h = order.join[k, 1 + side], order.join[k, 3 + side]
        own, r = work.sides[side], arm[side]
        if part == GROUND:
            clear(own)
            continue
        sign = 1.0 if side == 1 else -1.0
        width = order.first[part + 1] - order.first[part]
        a, b = _ends_in(order.join, k, part)
        _couple(parts.block, order.square[part] + h, width, a, b, arm, own)
        shift_rows(own, r, 1.0)
        for p in range(6):
            for q in range(6):
                own[p, q] *= sign
        motion = parts.bias[order.first[part] + h]
        for p in range(6):
            closing[p] += sign * motion[p]
        closing[3] += sign * (motion[1] * r[2] - motion[2] * r[1])
        closing[4] += sign * (motion[2] * r[0] - motion[0] * r[2])
        closing[5] += sign * (motion[0] * r[1] - motion[1] * r[0])
    for p in range(6):
        for q in range(6):
            sigma[p, q] = work.sides[0, p, q] + work.sides[1, p, q]


@leaf
def _free_mobility(links: Links, joints: Joints, ends: Indices, e: int, work: Work) -> None:
    """work.scale := mobility along rows of Q', were both links of edge e free; with K."""
    Q, block, half = joints.basis[e], work.one, work.two
    for c in range(6):
        work.scale[c] = joints.give[e, c, c]
    for side in range(2):
        if ends[e, side] != GROUND:
            copy(links.mobility[ends[e, side]], block)
            shift_rows(block, joints.arm[e, side], 1.0)
            shift_columns(block, joints.arm[e, side], 1.0)
            product(block, Q, half)
            for c in range(6):
                for p in range(6):
                    work.scale[c] += Q[p, c] * half[p, c]


@kernel
def _eliminate(matrix: Array, start: int, scale: Array, least: float) -> bool:
    """Eliminates rows c = start to 5 of the symmetric matrix (6, 6), f being those before.

    In place: [[ff, fc], [cf, cc]] := [[ff - fc cc^-1 cf, fc cc^-1], [cc^-1 cf, cc^-1]]. Largest
    pivot first, in units of `scale`; rows that fall to `least` of it are left out, and zero in
    what they should have been multiplied with. Returns whether there were none.
    """
    done, taken = 0, start  # `done` has a bit for each row
    for _ in range(start, 6):
        pivot, best = -1, least
        for i in range(start, 6):
            if done >> i & 1 == 0 and matrix[i, i] > best * scale[i]:
                pivot, best = i, matrix[i, i] / scale[i]
        if pivot < 0:
            break
        done |= 1 << pivot
        taken += 1
        row = matrix[pivot]
        inverse = 1.0 / row[pivot]
        m0, m1, m2, m3, m4, m5 = row[0], row[1], row[2], row[3], row[4], row[5]
        for i in range(6):
            factor = matrix[i, pivot] * inverse
            if i != pivot:
                matrix[i, 0] -= factor * m0
                matrix[i, 1] -= factor * m1
                matrix[i, 2] -= factor * m2
                matrix[i, 3] -= factor * m3
                matrix[i, 4] -= factor * m4
                matrix[i, 5] -= factor * m5
                matrix[i, pivot] = factor
        for i in range(6):
            row[i] *= inverse
        row[pivot] = -inverse
    for i in range(start, 6):
        for j in range(6):
            if done >> i & 1 == 0 or (j >= start and done >> j & 1 == 0):
                matrix[i, j] = matrix[j, i] = 0.0
            elif j >= start:
                matrix[i, j] = -matrix[i, j]
    return taken == 6


@leaf
def _hold(joints: Joints, parts: Parts, k: int, e: int, work: Work, least: float) -> bool:
    """Fills W and f_0 of join k through edge e; returns whether all rows of the edge hold."""
    Q, start, load, pull = joints.basis[e], joints.free[e], joints.load[e], work.pull
    sigma, W, f = parts.relative[k], parts.stiffness[k], parts.wrench[k]
    give, drift, half = joints.give[e], joints.drift[e], work.one
    transpose(Q, work.rows)
    product(sigma, Q, half)
    transposed_product(Q, half, work.before)
    for c in range(6):
        for d in range(6):
            work.held[c, d] = 0.5 * (work.before[c, d] + work.before[d, c]) + give[c, d]
    whole = _eliminate(work.held, start, work.scale, least)
    for c in range(6):
        for d in range(6):
            work.inverse[c, d] = work.held[c, d] if c >= start and d >= start else 0.0
    product(Q, work.inverse, half)
    product(half, work.rows, work.two)
    for p in range(6):
        total = parts.closing[k, p]
        for q in range(6):
            W[p, q] = 0.5 * (work.two[p, q] + work.two[q, p])
            total += sigma[p, q] * load[q]
        pull[p] = total
    for p in range(6):
        total = load[p]
        for q in range(6):
            total += half[p, q] * drift[q] - W[p, q] * pull[q]
        f[p] = total
    return whole


@leaf
def _join(order: Order, joints: Joints, parts: Parts, k: int, new: int, work: Work) -> None:
    """Fills the matrix and the bias of part `new`, that join k makes."""
    arm, W, f = joints.arm[order.join[k, 0]], parts.stiffness[k], parts.wrench[k]
    first, width = order.first[new], order.first[new + 1] - order.first[new]
    pushed = work.one
    for i in range(width):
        part, h = order.handle[first + i, 1], order.handle[first + i, 2]
        G = parts.coupling[first + i]
        old_width = order.first[part + 1] - order.first[part]
        a, b = _ends_in(order.join, k, part)
        _couple(parts.block, order.square[part] + h, old_width, a, b, arm, G)
        for p in range(6):
            total = parts.bias[order.first[part] + h, p]
            for q in range(6):
                total += G[q, p] * f[q]
            parts.bias[first + i, p] = total
        transposed_product(G, W, pushed)
        old = order.square[part] + h * old_width
        for j in range(i + 1):
            block = parts.block[order.square[new] + i * width + j]
            if part == order.handle[first + j, 1]:
                before = parts.block[old + order.handle[first + j, 2]]
                copy(before, block)
            else:
                clear(block)
            subtract_product(pushed, parts.coupling[first + j], block)
            if i != j:
                transpose(block, parts.block[order.square[new] + j * width + i])


@kernel
def _spare(Q: Array, start: int, give: Array, work: Work) -> None:
    """work.spared := 1 - W Sigma and work.slack := (1 - Sigma W) Sigma, without subtractions.

    In rows of Q', with held = [[Psi, L'], [L, N]]: [[1, 0], [-L, N K]] and
    [[Psi, L' K], [K L, K N Sigma_cc]].
    """
    held, spared, slack, one, two = work.held, work.spared, work.slack, work.one, work.two
    product(work.inverse, give, spared)
    product(work.inverse, work.before, two)
    for c in range(start, 6):
        for d in range(start):
            spared[c, d], two[c, d] = -held[c, d], held[c, d]
    product(give, two, slack)
    for c in range(start):
        spared[c, c] = 1.0
        for d in range(6):
            slack[c, d] = held[c, d] if d < start else slack[d, c]
    product(Q, spared, one)
    product(one, work.rows, spared)
    product(Q, slack, one)
    product(one, work.rows, slack)


@kernel
def _follow(W: Array, away: Array, work: Work) -> None:
    """work.retained := spared + W away, and work.follow := mobility of the lighter side, at the
    edge: away - away W away + slack - spared' away - away spared."""
    product(W, away, work.retained)
    for p in range(6):
        for q in range(6):
            work.retained[p, q] += work.spared[p, q]
    product(away, work.retained, work.one)
    transposed_product(work.spared, away, work.two)
    for p in range(6):
        for q in range(6):
            total = work.slack[p, q] - work.one[p, q] - work.two[p, q]
            total += work.slack[q, p] - work.one[q, p] - work.two[q, p]
            work.follow[p, q] = away[p, q] + 0.5 * total


@leaf
def _refine(order: Order, joints: Joints, parts: Parts, k: int, new: int, work: Work) -> None:
    """Writes again the blocks of the edge's own handles with handles of the same part.

    Phi - G W G' there takes what a light link does alone from what it does alone, and the rounding
    is that of its mobility squared. Where the link is the lighter of the two, it follows the other
    one: its acceleration is that of the other, and the slack of the joint. And a wrench on it
    leaves to its own part 1 - W (its mobility) = spared + W (the other's mobility).
    """
    e, first, start = order.join[k, 0], order.first[new], order.square[new]
    width, side = order.first[new + 1] - first, 0
    weight = 0.0
    for p in range(6):
        weight += work.sides[1, p, p] - work.sides[0, p, p]
    side = 1 if weight > 0.0 else 0
    part, h, r = order.join[k, 1 + side], order.join[k, 3 + side], joints.arm[e, side]
    for i in range(width):
        if order.handle[first + i, 1] != part or order.handle[first + i, 2] != h:
            continue
        _spare(joints.basis[e], joints.free[e], joints.give[e], work)
        _follow(parts.stiffness[k], work.sides[1 - side], work)
        for j in range(width):
            if order.handle[first + j, 1] == part:
                block = parts.block[start + j * width + i]
                if i == j:
                    copy(work.follow, block)
                    shift_columns(block, r, -1.0)
                else:
                    transposed_product(parts.coupling[first + j], work.retained, block)
                    if side == 0:
                        for p in range(6):
                            for q in range(6):
                                block[p, q] = -block[p, q]
                shift_rows(block, r, -1.0)
                if i != j:
                    transpose(block, parts.block[start + i * width + j])


@kernel
def assemble(
    links: Links, joints: Joints, ends: Indices, order: Order, wrenches: Array, least: float
) -> Parts:
    """All parts, in the order given, with wrenches (n, 6) on the links in their bias. `least` is
    DEPENDENT_ROW where there are loops; 0 will do where there are none."""
    n, joins, total = links.mobility.shape[0], order.join.shape[0], order.handle.shape[0]
    parts = Parts(
        np.empty((order.square[-1], 6, 6)),
        np.zeros((total, 6)),
        np.empty((total, 6, 6)),
        np.empty((joins, 6, 6)),
        np.empty((joins, 6)),
        np.empty((joins, 6, 6)),
        np.empty((joins, 6)),
    )
    for i in range(n):
        copy(links.mobility[i], parts.block[i])
        for p in range(6):
            for q in range(6):
                parts.bias[i, p] += links.mobility[i, p, q] * wrenches[i, q]
    pool = np.empty((12, 6, 6))
    work = Work(
        pool[:2],
        pool[2],
        pool[3],
        pool[4],
        pool[5],
        pool[6],
        pool[7],
        pool[8],
        pool[9],
        pool[10],
        pool[11],
        np.empty(6),
        np.ones(6),
    )
    for k in range(joins):
        e = order.join[k, 0]
        _relative(order, joints, parts, k, work)
        if least > 0.0:
            _free_mobility(links, joints, ends, e, work)
        whole = _hold(joints, parts, k, e, work, least)
        _join(order, joints, parts, k, n + k, work)
        if whole and order.join[k, 1] != order.join[k, 2]:
            _refine(order, joints, parts, k, n + k, work)
    return parts
