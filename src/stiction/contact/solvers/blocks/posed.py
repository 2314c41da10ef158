"""A workspace for blocks that are given as arrays: connected, with what the solvers start from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem.blocks import Blocks, Head, Kind, inverse_inertias
from stiction.contact.problem.graph import Size, connect_blocks
from stiction.contact.solvers.blocks.free_motion import free_islands
from stiction.contact.solvers.blocks.workspace import (
    Room,
    SolverWorkspace,
    unpack_newton,
    unpack_problem,
)
from stiction.kernels.skyline import factor_skyline, solve_skyline
from stiction.kernels.stage import stage

Indices = NDArray[np.int64]

PAIRS = 4
"""Blocks of the matrix below its diagonal to a node, at first; heaps have fewer."""


@stage("int64(intp, int64)", eager=False, counted=True)
def connect_all(address, count):
    """Connects the blocks of a workspace and finds v_free and the rows' inverse inertias, both of
    the mass alone; 0 if there was too little room."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    if not connect_blocks(b, count, g, s):
        return 0
    factor = s.diagonal  # its blocks hold the mass's skyline, and nothing yet
    for k in range(b.mass.shape[0]):
        factor[k] = b.mass[k]
    factor_skyline(factor, b.row, b.first)
    for j in range(b.push.shape[0]):
        request.v_free[j] = b.push[j]
    solve_skyline(factor, b.row, b.first, request.v_free)
    for j in range(b.push.shape[0]):
        request.v_free[j] += b.velocity[j]
    if g.size[Size.STAR] == 0:  # in contact space the caller knows them
        inverse_inertias(b, count, factor, y.scratch, work.weight)
    return 1


def pose(start: Indices, given: Blocks, star: bool = False) -> SolverWorkspace:
    """A workspace with these blocks, all that they need and no more; start (nodes + 1,): first
    degree of freedom of each node; star: whether they are of a problem in contact space."""
    count, nodes = len(given.head), len(start) - 1
    widest = int(np.diff(start).max(initial=1))
    cap, fill = max(count, 1), PAIRS * nodes + 1
    room = Room(cap, max(len(given.value), 1), 2 * cap, cap, fill, fill * widest**2)
    while True:
        work = SolverWorkspace(start, len(given.mass), room)
        for to, array in zip(work.blocks, given, strict=True):
            to[: len(array)] = array
        work.graph.size[Size.STAR] = star
        if connect_all(work.packed.ctypes.data, count):
            break
        room = room.needed((room.blocks, room.entries), work.graph)
    if (given.head[:, Head.KIND] == Kind.SOFT).any():
        free_islands(work.packed.ctypes.data)
    return work
