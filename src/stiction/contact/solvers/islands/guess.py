"""What the ways to an answer begin with: the iterate at hand, the guess, or nothing."""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import ROWS
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.iterate import copy_island, copy_vector
from stiction.contact.solvers.blocks.workspace import Guess, NewtonWorkspace, Request, Setting
from stiction.kernels.compile import lean
from stiction.kernels.sparse import BlockMatrix

NEARBY = 0.3
"""Residual of an iterate that what comes next may begin near."""


@lean
def take_nothing(g: Graph, s: BlockMatrix, k, work: NewtonWorkspace, request: Request):
    """No impulses, and the free velocity, on island k."""
    for at in range(g.members[k], g.members[k + 1]):
        for r in range(ROWS):
            work.f[g.member[at], r] = 0.0
    copy_vector(g, s, k, request.v_free, work.v)


@lean
def take_guess(g: Graph, s: BlockMatrix, k, work: NewtonWorkspace, request: Request):
    """The guess of island k, or nothing if there is none."""
    if request.setting[Setting.WARM] != Guess.NONE:
        copy_island(g, s, k, request.guess, request.start, work.f, work.v)
    else:
        take_nothing(g, s, k, work, request)


@lean
def stay_near(best, g: Graph, s: BlockMatrix, k, work: NewtonWorkspace, request: Request):
    """Residual of what island k is begun near: the iterate at hand, of residual `best`, or, if that
    is far off, the guess in its place, whose residual is not known: infinite."""
    if best > NEARBY:
        best = np.inf
        take_guess(g, s, k, work, request)
    return best
