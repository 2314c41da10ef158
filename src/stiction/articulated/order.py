"""The order of assembly: which links are put together through which joint, and when.

Links and the joints between them make a forest. It is contracted in rounds, as Miller and Reif
contract trees in parallel: every leaf is joined to its neighbour (rake), then neighbours of two
joints each are joined in pairs (compress). A chain of n links takes log2 n rounds, and a part that
is being put together has at most two links that joints still lead out of. These are its handles,
besides the links that the caller asked for and the ends of loops that are still open. So a join
costs the same wherever it stands, and all of them are linear in the number of links.

Why balanced, though one processor puts the parts together one after another: a handle that the
caller asked for is carried through every join above it, log n of them instead of up to n from tip
to root, and each of those costs the square of the number of handles. Leaves without such a handle
are raked first, so that a torso takes up its arms' handles last.

Joints to the ground come before all others, while their part is a single link. Then come joints
that lock all rotations, slides, one by one outwards: a stretch of n of them turns as one, with n^3
times the inertia of a link, and to find that by halves costs as many digits; one by one costs
none. Where such a stretch branches, it keeps a handle for each branch until that is joined.

An edge between two links that are already in one part closes a loop, as soon as both are. Where a
loop ties two trees together, it joins them instead.

Edges: joint i leads from the parent of link i (-1: the ground) to link i; loops follow.
Parts: part i < n is link i alone; join k makes part n + k out of one or two before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.kernels.compile import kernel, leaf
from stiction.kernels.linear import root

Indices = NDArray[np.int64]

GROUND = -1
CHORD, TREE, TO_GROUND, CLOSED = 0, 1, 2, 3  # kinds of edges; a chord ends as a closed one


class Order(NamedTuple):
    """The joins, and the parts that they make; a part's handles stand in one stretch of `handle`.

    Its matrix is as many blocks (6, 6) as the square of their number, in a pool, from `square` on.
    """

    join: Indices  # (joins, 5) edge; the parts at its ends; their handles there; -1: the ground
    first: Indices  # (parts + 1,) where the handles of a part start
    square: Indices  # (parts + 1,) sum of the squared numbers of handles of the parts before
    handle: Indices  # (total, 3) link; part that the handle comes from; which handle of it
    place: Indices  # (links, 2) last part that has the link for a handle, and which of its handles


@kernel
def order_of_assembly(ends: Indices, locked: Indices, wanted: Indices, everything: int) -> Order:
    """The order for edges `ends` (edges, 2), of which the first n are the links' own joints.

    locked (edges,): 1 for edges that leave no rotation free, otherwise 0.
    wanted (n,): 1 for links that stay handles to the end, otherwise 0. Trees that hold none, and
    that no loop ties to one that does, are left out unless `everything` is 1.
    """
    n = wanted.shape[0]
    kind, component = _kinds_of_edges(ends, n)
    needed = np.zeros(n, np.int64)
    for i in range(n):
        if everything == 1 or wanted[i] == 1:
            needed[root(component, i)] = 1
    for i in range(n):
        needed[i] = needed[root(component, i)]
    sequence = _contraction(ends, kind, locked, wanted, needed)
    return _parts(ends, kind, wanted, sequence)


@kernel
def _kinds_of_edges(ends: Indices, n: int) -> tuple[Indices, Indices]:
    """Kind of each edge, and (n,) a way up from each link to one that stands for its tree."""
    kind = np.empty(ends.shape[0], np.int64)
    component = np.arange(n)
    for e in range(ends.shape[0]):
        if ends[e, 0] == GROUND:
            kind[e] = TO_GROUND
            continue
        a, b = root(component, ends[e, 0]), root(component, ends[e, 1])
        kind[e] = CHORD if a == b else TREE
        component[b] = a
    return kind, component


@leaf
def _merge(cluster: Indices, degree: Indices, holds: Indices, pair: Indices) -> int:
    """Joins the clusters of two links; returns the one that is left."""
    a, b = root(cluster, pair[0]), root(cluster, pair[1])
    cluster[b] = a
    degree[a] += degree[b] - 2
    holds[a] += holds[b]
    return a


@kernel
def _contraction(
    ends: Indices, kind: Indices, locked: Indices, wanted: Indices, needed: Indices
) -> Indices:
    """Edges to the ground, then those of the forest, in the order in which to join them."""
    n, edges = wanted.shape[0], ends.shape[0]
    cluster = np.arange(n)
    degree = np.zeros(n, np.int64)
    holds = wanted.copy()  # wanted links in a cluster
    made = np.zeros(n, np.int64)  # round of a cluster's last join
    sequence, open_edges = np.empty(edges, np.int64), np.empty(edges, np.int64)
    length, count = 0, 0
    for e in range(edges):
        if needed[ends[e, 1]] == 1:
            if kind[e] == TO_GROUND:
                sequence[length] = e
                length += 1
            elif kind[e] == TREE:
                degree[ends[e, 0]] += 1
                degree[ends[e, 1]] += 1
    for e in range(edges):
        if kind[e] == TREE and needed[ends[e, 1]] == 1:
            if locked[e] == 1:
                sequence[length] = e
                length += 1
                _merge(cluster, degree, holds, ends[e])
            else:
                open_edges[count] = e
                count += 1
    turn = 0
    while count > 0:
        turn += 1
        for stage in range(3):  # rake without wanted links, rake, compress
            left = 0
            for t in range(count):
                e = open_edges[t]
                a, b = root(cluster, ends[e, 0]), root(cluster, ends[e, 1])
                # A cluster of this round may take up leaves, but go nowhere itself: that is
                # what keeps the order balanced.
                rest_a, rest_b = made[a] < turn, made[b] < turn
                if stage == 2:
                    go = rest_a and rest_b and degree[a] == 2 and degree[b] == 2
                else:
                    go = rest_a and degree[a] == 1 and (stage == 1 or holds[a] == 0)
                    go = go or (rest_b and degree[b] == 1 and (stage == 1 or holds[b] == 0))
                if go:
                    sequence[length] = e
                    length += 1
                    made[_merge(cluster, degree, holds, ends[e])] = turn
                else:
                    open_edges[left] = e
                    left += 1
            count = left
    return sequence[:length]


@kernel
def _parts(ends: Indices, kind: Indices, wanted: Indices, sequence: Indices) -> Order:
    """The parts that `sequence` makes, chords closed as soon as both their ends are inside.

    Overwrites `kind` of the chords.
    """
    n, edges = wanted.shape[0], ends.shape[0]
    most = n + edges
    pending = np.zeros(n, np.int64)  # edges of a link that no join has used yet
    chords, chord_of = _chords(ends, kind, n)
    for e in range(edges):
        for side in range(2):
            if ends[e, side] != GROUND:
                pending[ends[e, side]] += 1
    join = np.empty((edges, 5), np.int64)
    first, square = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    handle = np.empty((4 * most, 3), np.int64)
    place = np.zeros((n, 2), np.int64)
    for i in range(n):
        handle[i, 0], handle[i, 1], handle[i, 2] = i, GROUND, 0
        first[i + 1] = square[i + 1] = i + 1
        place[i, 0] = i
    queue = np.empty(edges, np.int64)
    part = n
    for e_next in sequence:
        queue[0] = e_next
        waiting, served = 1, 0
        while served < waiting:
            e = queue[served]
            served += 1
            a, b = ends[e, 0], ends[e, 1]
            row = join[part - n]
            row[0], row[1], row[3] = e, GROUND, GROUND
            row[2], row[4] = place[b, 0], place[b, 1]
            pending[b] -= 1
            if a != GROUND:
                row[1], row[3] = place[a, 0], place[a, 1]
                pending[a] -= 1
            count = first[part]
            for side in range(1, 3):
                old = row[side]
                if old == GROUND or (side == 2 and row[1] == old):
                    continue
                if count + first[old + 1] - first[old] > handle.shape[0]:
                    handle = _doubled(handle)
                for h in range(first[old], first[old + 1]):
                    link = handle[h, 0]
                    if pending[link] > 0 or wanted[link] == 1:
                        handle[count, 0], handle[count, 1] = link, old
                        handle[count, 2] = h - first[old]
                        place[link, 0], place[link, 1] = part, count - first[part]
                        count += 1
            first[part + 1] = count
            handles = count - first[part]
            square[part + 1] = square[part] + handles * handles
            if kind[e] == TREE:
                for h in range(first[part], count):
                    link = handle[h, 0]
                    for c in range(chord_of[link], chord_of[link + 1]):
                        chord = chords[c]
                        if kind[chord] == CHORD and place[ends[chord, 1], 0] == part:
                            kind[chord] = CLOSED
                            queue[waiting] = chord
                            waiting += 1
            part += 1
    total = first[part]
    return Order(join[: part - n], first[: part + 1], square[: part + 1], handle[:total], place)


@kernel
def _doubled(handle: Indices) -> Indices:
    """The same rows, with room for as many more."""
    larger = np.empty((2 * handle.shape[0], 3), np.int64)
    for i in range(handle.shape[0]):
        for k in range(3):
            larger[i, k] = handle[i, k]
    return larger


@kernel
def _chords(ends: Indices, kind: Indices, n: int) -> tuple[Indices, Indices]:
    """Chords by their first link, and where those of each link start (n + 1,)."""
    start = np.zeros(n + 1, np.int64)
    for e in range(ends.shape[0]):
        if kind[e] == CHORD:
            start[ends[e, 0] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    chords = np.empty(start[n], np.int64)
    filled = start.copy()
    for e in range(ends.shape[0]):
        if kind[e] == CHORD:
            chords[filled[ends[e, 0]]] = e
            filled[ends[e, 0]] += 1
    return chords, start
