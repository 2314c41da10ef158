"""Islands that rest, and are to the bit what they were in the last step: they have their answer
already. A digest of all that it depends on tells."""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import Blocks, Head
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.blocks.iterate import copy_island
from stiction.contact.solvers.blocks.workspace import Guess, Request, Setting
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.digest import DIGEST_PRIME
from stiction.kernels.sparse import BlockMatrix


@lean_leaf
def _mix(digest, x):
    """The digest with the bits of a number in it."""
    return (digest ^ np.float64(x).view(np.int64)) * np.int64(DIGEST_PRIME) + (digest >> 29)


@lean_leaf
def _mix_all(digest, numbers, begin, end):
    """The digest with the bits of numbers[begin:end] in it, four at a time: each product would wait
    for the one before."""
    a, b, c, d = digest, digest + 1, digest + 2, digest + 3
    k = begin
    while k + 4 <= end:
        a, b = _mix(a, numbers[k]), _mix(b, numbers[k + 1])
        c, d = _mix(c, numbers[k + 2]), _mix(d, numbers[k + 3])
        k += 4
    while k < end:
        a = _mix(a, numbers[k])
        k += 1
    prime = np.int64(DIGEST_PRIME)
    return (((a * prime) ^ b) * prime ^ c) * prime ^ d


@lean
def _digest_at_rest(b: Blocks, g: Graph, s: BlockMatrix, k):
    """Digest of all that the answer of island k depends on, or 0 if anything in it moves."""
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            if b.velocity[j] != 0.0:
                return 0.0
    digest = np.int64(1)
    for p in range(g.positions[k], g.positions[k + 1]):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            digest = _mix(digest, np.float64(j))
            digest = _mix(digest, b.push[j])
            digest = _mix_all(digest, b.mass, b.row[j] + b.first[j], b.row[j] + j + 1)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        rows, width = b.head[i, Head.ROWS], b.head[i, Head.WIDTH]
        digest = _mix(digest, np.float64(b.head[i, Head.KIND]))
        for c in range(b.data.shape[1]):
            digest = _mix(digest, b.data[i, c])
        for c in range(b.head[i, Head.COLUMN], b.head[i, Head.COLUMN] + width):
            digest = _mix(digest, np.float64(b.column[c]))
        first = b.head[i, Head.VALUE]
        digest = _mix_all(digest, b.value, first, first + rows * width)
    return np.float64(digest >> 12)  # as many bits as a number holds exactly


@lean
def recall(b: Blocks, g: Graph, s: BlockMatrix, k, request: Request, work):
    """Whether island k is to the bit what the guess answered, which then is the answer: at rest
    before that step and after it (`forget_moving`)."""
    digest = _digest_at_rest(b, g, s, k)
    same = digest != 0.0 and request.setting[Setting.WARM] != Guess.NONE
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        same = same and request.inputs[i] == digest
        request.inputs[i] = digest
    if same:
        copy_island(g, s, k, request.guess, request.start, work.f, work.v)
    return same


@lean
def forget_moving(g: Graph, s: BlockMatrix, v, inputs):
    """Drops the digests of islands that the velocity v (nv,) sets in motion: who puts them back to
    where they were asks for that motion again, and it is not kept."""
    for k in range(g.size[Size.ISLANDS]):
        rests = True
        for p in range(g.positions[k], g.positions[k + 1]):
            node = s.order[p]
            for j in range(s.start[node], s.start[node + 1]):
                rests = rests and v[j] == 0.0
        if not rests:
            for at in range(g.members[k], g.members[k + 1]):
                inputs[g.member[at]] = 0.0
