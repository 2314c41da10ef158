"""Overlap that is taken back at position level: to the digits that it is wanted to.

Small islands, and what is gripped, by Newton's method with contacts that give a little; large ones
by the interior point's first digits (`interior_point/coarse.py`). What neither takes back is solved
as any problem.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind, is_gripped
from stiction.contact.problem.graph import Graph
from stiction.contact.solvers.blocks.workspace import Guess, Rung, Setting
from stiction.contact.solvers.interior_point.coarse import COARSE, part_coarsely
from stiction.contact.solvers.islands.guess import take_guess
from stiction.contact.solvers.proximal.iteration import MODES, refine
from stiction.kernels.compile import lean, lean_leaf
from stiction.kernels.sparse import BlockMatrix

PARTED = 0.05
"""Residual at which overlap of a small island is taken to be gone: what is left is there again in
the next step, and gone after some. What a gripper that moves holds by four pads overlaps by
nanometres, of which rounding leaves no two contacts the same: which three of sixteen bear the
correction takes up to 140 factorizations to find out, and changes in every step."""

PARTING_EPS, PARTING_STEPS, PARTING_PATIENCE = 1e-3, 10, 1
"""Compliance and iterations, at most and without half the residual, of that correction: with so
much compliance contacts that contradict each other by rounding share it, and those that agree are
held exactly after some iterations with the same factor."""

GRIPPING_EPS = 1e-7
"""Compliance of a correction in which no contact pushes, only what is gripped: it is linear, has no
modes that contradictions could change, and is done in one iteration where few digits are wanted."""


@lean_leaf
def _is_gripped(b: Blocks, g: Graph, k):
    """Whether a contact of island k is gripped."""
    found = False
    for at in range(g.members[k], g.members[k + 1]):
        found = found or is_gripped(b, g.member[at])
    return found


@lean
def _pushes(b: Blocks, g: Graph, k, guess):
    """Whether any contact of island k asks for a correction, or had one in the last step."""
    for at in range(g.members[k], g.members[k + 1]):
        i = g.member[at]
        asks = b.data[i, Datum.BOUND] > 0.0 or guess[i, 0] > 0.0
        if asks and b.head[i, Head.KIND] == Kind.CONTACT:
            return True
    return False


@lean
def part(address, k, load, small, b: Blocks, g: Graph, s: BlockMatrix, work, request):
    """(rung, residual) of the correction of overlap of island k, from the guess: rung NONE if it is
    not taken back so."""
    if small or _is_gripped(b, g, k):
        take_guess(g, s, k, work, request)
        enough = 10.0 ** -request.setting[Setting.DIGITS]
        eps = PARTING_EPS if _pushes(b, g, k, request.guess) else GRIPPING_EPS
        best = refine(address, k, load, MODES, eps, PARTING_STEPS, PARTING_PATIENCE, enough, np.inf)
        if small or best <= PARTED:
            return np.int64(Rung.MODES if best <= PARTED else Rung.NONE), best
    guessed = np.int64(request.setting[Setting.WARM] != Guess.NONE)
    best = part_coarsely(address, k, load, guessed)
    return np.int64(Rung.INTERIOR_POINT if best <= COARSE else Rung.NONE), best
