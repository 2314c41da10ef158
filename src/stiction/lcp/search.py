"""Yamane & Nakamura's best-first search over pivots (their Algorithms 1 and 2).

A node is a pivot after its parent's pivots; its basis is almost complementary, as on Lemke's
path. Where Lemke keeps one blocking row, the search keeps every row i whose pivot leaves
q_min(i) > -epsilon, q_min the smallest basic value after it. A pivot costs exp(-q_min), one if
it is free of error; a node is ranked by the cost of its pivots in excess of that, newer nodes
first; the best open node is expanded next; the first one in which z0 leaves is the answer. A
basis is visited once (uniqueness is over the set of basic variables, not the sequence).

What each pivot keeps true: basic values are at least -epsilon per step of the path, and the
equations hold to e_max.

How it can fail, counted as the paper counts: `no solution` (a node without candidates, m' >=
0: a ray), `cycle` (all candidates led to bases already visited), `error` (candidates were
dropped because the equations were violated by more than e_max). NODE_LIMIT bounds the work.

Where this departs from the paper: the paper ranks by the whole cost, in which each pivot counts
about one, so that among near ties it searches breadth first; ranking by the excess takes the
search on a peg with 32 contacts from 8 ms to 1.3 ms, about what Lemke's path takes. epsilon and
e_max are relative to the scaled problem (the paper's 1e-3 are in m/s and N). The candidates are
found by one pass that is equivalent to q_min(i) > -epsilon: t_i <= min_j (x_j + epsilon) / -dx_j.
"""

from __future__ import annotations

import numpy as np

from stiction.kernels.compile import kernel
from stiction.kernels.pivoting import refactor, values, variable_hash
from stiction.lcp.lemke import (
    FEASIBLE,
    PIVOT,
    column_size,
    complement,
    cover_basis,
    direction,
    exchange,
)
from stiction.status import Code

NO_SOLUTION, CYCLE, ERROR = 0, 1, 2
"""Places of the three failure modes in `counts`."""


@kernel
def _before(a, b, cost):
    """Whether node a is expanded before node b."""
    return cost[a] < cost[b] or (cost[a] == cost[b] and a > b)


@kernel
def _push(heap, cost, count, node):
    """Adds a node to the binary heap (`heap` of node numbers, ordered by `cost`)."""
    at = count
    while at > 0:
        above = (at - 1) // 2
        if cost[heap[above]] < cost[node]:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = node


@kernel
def _pop(heap, cost, count):
    """Removes and returns the cheapest node; the heap then has count - 1 entries."""
    top = heap[0]
    node = heap[count - 1]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= count - 1:
            break
        if below + 1 < count - 1 and _before(heap[below + 1], heap[below], cost):
            below += 1
        if _before(node, heap[below], cost):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = node
    return top


@kernel
def _rebuild(b, root, node, parent, entering, leaving):
    """Makes b the basis of `node`: the root's, with the pivots of the node's line applied.

    `root` (2n+1,) marks the basic variables of the root. Returns False if singular.
    """
    n = b.q.shape[0]
    basic = root.copy()
    at = node
    length = 0
    while at > 0:
        length += 1
        at = parent[at]
    line = np.empty(length, np.int64)
    at = node
    for p in range(length - 1, -1, -1):
        line[p] = at
        at = parent[at]
    for p in range(length):
        basic[leaving[line[p]]] = False
        basic[entering[line[p]]] = True
    b.col_slot[:] = -1
    b.row_slot[:] = -1
    cols = 0
    rows = 0
    for j in range(n + 1):
        if basic[j]:
            b.cols[cols] = j
            b.col_slot[j] = cols
            cols += 1
    for i in range(n):
        if not basic[n + 1 + i]:
            b.rows[rows] = i
            b.row_slot[i] = rows
            rows += 1
    b.size[0] = cols
    return refactor(b)


@kernel
def _least_after(b, step, leaving):
    """Smallest basic value after a step of the current direction, the leaving one left out."""
    n = b.q.shape[0]
    least = step
    for s in range(b.size[0]):
        if b.cols[s] != leaving:
            least = min(least, b.x[s] + step * b.dx[s])
    for i in range(n):
        if b.row_slot[i] < 0 and n + 1 + i != leaving:
            least = min(least, b.w[i] + step * b.dw[i])
    return least


@kernel
def _candidates(b, floor, epsilon, found, steps, pivots):
    """Fills the variables that may leave, their steps and pivots; returns how many, or -1 on a
    ray."""
    n = b.q.shape[0]
    limit = np.inf
    for s in range(b.size[0]):
        if b.dx[s] < -floor:
            limit = min(limit, (b.x[s] + epsilon) / -b.dx[s])
    for i in range(n):
        if b.dw[i] < -floor:
            limit = min(limit, (b.w[i] + epsilon) / -b.dw[i])
    if limit == np.inf:
        return -1
    count = 0
    for s in range(b.size[0]):
        if b.dx[s] < -floor and b.x[s] / -b.dx[s] <= limit:
            pivot = np.inf if b.cols[s] == n else -b.dx[s]
            _insert(found, steps, pivots, count, b.cols[s], b.x[s] / -b.dx[s], pivot)
            count += 1
    for i in range(n):
        if b.dw[i] < -floor and b.w[i] / -b.dw[i] <= limit:
            _insert(found, steps, pivots, count, n + 1 + i, b.w[i] / -b.dw[i], -b.dw[i])
            count += 1
    return count


@kernel
def _insert(found, steps, pivots, count, variable, step, pivot):
    """Keeps the candidates in the order of their pivots: the largest, or z0, comes last."""
    at = count
    while at > 0 and pivots[at - 1] > pivot:
        found[at], steps[at], pivots[at] = found[at - 1], steps[at - 1], pivots[at - 1]
        at -= 1
    found[at], steps[at], pivots[at] = variable, step, pivot


@kernel
def search_pivots(b, weights, epsilon, e_max, max_nodes, counts):
    """Searches from the complementary basis b; returns (code, pivots).

    b ends as a complementary basis on SOLVED. `counts` (3,) gathers dead ends by kind.
    """
    n = b.q.shape[0]
    root = np.zeros(2 * n + 1, np.bool_)
    out = np.empty(n + 1)
    open_pair = cover_basis(b, weights)
    if open_pair < 0:
        return Code.SOLVED, 0
    for i in range(n):
        root[i if b.col_slot[i] >= 0 else n + 1 + i] = True

    parent = np.empty(max_nodes + n + 2, np.int64)
    entering = np.empty(max_nodes + n + 2, np.int64)
    leaving = np.empty(max_nodes + n + 2, np.int64)
    step = np.empty(max_nodes + n + 2)
    cost = np.empty(max_nodes + n + 2)
    key = np.empty(max_nodes + n + 2, np.uint64)
    heap = np.empty(max_nodes + n + 2, np.int64)
    found = np.empty(n + 1, np.int64)
    steps = np.empty(n + 1)
    sizes = np.empty(n + 1)

    # Step 0 of Lemke's method is the one child of the root (node 0).
    parent[0], cost[0], key[0] = -1, 0.0, np.uint64(0)
    direction(b, n)
    s = b.col_slot[open_pair]
    parent[1] = 0
    entering[1] = n
    leaving[1] = open_pair if s >= 0 else n + 1 + open_pair
    step[1] = -b.x[s] / b.dx[s] if s >= 0 else -b.w[open_pair] / b.dw[open_pair]
    cost[1] = 0.0
    key[1] = variable_hash(entering[1]) ^ variable_hash(leaving[1])
    heap[0] = 1
    queued = 1
    nodes = 2
    here = 0
    pivots = 0
    while queued > 0:
        node = _pop(heap, cost, queued)
        queued -= 1
        pivots += 1
        if parent[node] == here and pivots % 60 != 0:
            exchange(b, entering[node], leaving[node], step[node], out)
            error = 0.0
        else:
            if not _rebuild(b, root, node, parent, entering, leaving):
                counts[ERROR] += 1
                here = -1
                continue
            error = values(b)
        here = node
        if leaving[node] == n:
            return Code.SOLVED, pivots
        if nodes >= max_nodes:
            return Code.NODE_LIMIT, pivots
        driving = complement(leaving[node], n)
        slope_error = direction(b, driving)
        here_candidates = _candidates(b, PIVOT * column_size(b), epsilon, found, steps, sizes)
        if here_candidates < 0:
            counts[NO_SOLUTION] += 1
            continue
        for c in range(here_candidates):
            if error + abs(steps[c]) * slope_error > e_max:
                counts[ERROR] += 1
                continue
            name = key[node] ^ variable_hash(driving) ^ variable_hash(found[c])
            seen = False
            for other in range(nodes):
                if key[other] == name:
                    seen = True
                    break
            if seen:
                counts[CYCLE] += 1
                continue
            parent[nodes] = node
            entering[nodes] = driving
            leaving[nodes] = found[c]
            step[nodes] = steps[c]
            least = _least_after(b, steps[c], found[c])
            cost[nodes] = cost[node] + (np.exp(-least) - 1.0 if least < -FEASIBLE else 0.0)
            key[nodes] = name
            _push(heap, cost, queued, nodes)
            queued += 1
            nodes += 1
    if counts[ERROR] > 0:
        return Code.ERROR, pivots
    if counts[CYCLE] > 0:
        return Code.CYCLE, pivots
    return Code.RAY, pivots
