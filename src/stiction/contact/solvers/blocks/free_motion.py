"""How the bodies of islands with soft rows move without contact: these rows are part of what bodies
weigh. For few of them `problem/soft_rows.py` takes one after the other."""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import ROWS, Blocks, Datum, Head, Kind, drop_immobile
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.blocks.iterate import copy_vector
from stiction.contact.solvers.blocks.system import assemble, push, solve, speeds
from stiction.contact.solvers.blocks.trees import forget_tree
from stiction.contact.solvers.blocks.workspace import (
    Request,
    System,
    unpack_newton,
    unpack_problem,
)
from stiction.kernels import sparse
from stiction.kernels.compile import lean
from stiction.kernels.sparse import BlockMatrix
from stiction.kernels.stage import stage


@lean
def _free_island(b: Blocks, g: Graph, s: BlockMatrix, y: System, k, request: Request, weight):
    """Free velocity and inverse inertias of an island with soft rows, which are part of what its
    bodies weigh: a body that a stiff row holds gives way to nothing."""
    forget_tree(g, k)
    touched = False
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        for c in range(ROWS * ROWS):
            y.D[i, c] = 0.0
        for r in range(ROWS):
            y.change[i, r] = 0.0
        if b.head[i, Head.KIND] == Kind.SOFT:
            touched = True
            y.D[i, 0] = b.data[i, Datum.DRAG]
    if not touched:
        return
    low, high = g.positions[k], g.positions[k + 1]
    assemble(b, g, s, y, k, np.int64(1))
    if sparse.factor(s, low, high, np.int64(1)) == 0.0:
        return
    speeds(b, g, k, b.velocity, y.change)
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        y.change[i, 0] *= -y.D[i, 0]
        for r in range(1, ROWS):
            y.change[i, r] = 0.0
    copy_vector(g, s, k, b.push, y.rhs)
    push(b, g, k, y.change, y.rhs)
    solve(b, g, s, y, k, np.int64(1))
    for p in range(low, high):
        node = s.order[p]
        for j in range(s.start[node], s.start[node + 1]):
            request.v_free[j] = b.velocity[j] + y.x[j]
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        if b.head[i, Head.KIND] == Kind.SOFT:  # exact, whatever they weigh
            continue
        width, c0 = b.head[i, Head.WIDTH], b.head[i, Head.COLUMN]
        for r in range(b.head[i, Head.ROWS]):
            a0 = b.head[i, Head.VALUE] + r * width
            for p in range(low, high):
                node = s.order[p]
                for j in range(s.start[node], s.start[node + 1]):
                    y.x[j] = 0.0
            for c in range(width):
                y.x[b.column[c0 + c]] = b.value[a0 + c]
            weight[i, r] = sparse.inverse_form(s, low, high, y.x)
        drop_immobile(b, i, weight)


@stage("void(intp)", eager=False)
def free_islands(address):
    """Corrects free velocity and inverse inertias of a packed workspace, which are those of the
    mass alone, for soft rows."""
    b, g, s, request = unpack_problem(address)
    y, work = unpack_newton(address)
    for k in range(g.size[Size.ISLANDS]):
        _free_island(b, g, s, y, k, request, work.weight)


free_all = free_islands.external
