"""Islands that the compiled solvers have left: what is tried on them, in which order.

    patches     mended where they are wrong (`patches.py`)
    paths       the interior point's, followed through its folds (`interior_point/continuation.py`):
                of heaps here, of other islands they were followed before; and at last, paths that
                are drawn
    stiffening  all rows, step by step (`stiffening/steps.py`), or those of what is nearly right
    sharpening  Newton's method once more, for the last digits

Whoever asks says what passes for an answer, and whether what is at hand would do if nothing better
were found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stiction.contact.certificate.laws import Law
from stiction.contact.solvers.blocks.workspace import Outcome, Setting, SolverWorkspace
from stiction.contact.solvers.interior_point.continuation import LARGE_TURNS
from stiction.contact.solvers.interior_point.iteration import CONTENT, HEAP
from stiction.contact.solvers.islands.attempts import STIFFENABLE
from stiction.contact.solvers.islands.patches import (
    DRAWN_BLOCKS,
    LEAST_DRAWN,
    MENDING_ROUNDS,
    MOST_DRAWN,
    Effort,
    Passes,
    draw_paths,
    mend_island,
)
from stiction.contact.solvers.islands.solve import take_turn
from stiction.contact.solvers.proximal.iteration import EXACT, refine_island, spread_residual
from stiction.contact.solvers.stiffening.curve import stiffen_island
from stiction.contact.solvers.stiffening.steps import stiffen_by_steps

FIRST_ROUNDS = 2
"""Rounds of patches before the path of a heap is followed through its folds: what two rounds do not
mend takes more than that does."""

SHARPENING_PATHS = 1
"""Paths of a heap that are followed, at most, for the last digits of what suffices: each costs as
much as several steps. What one of them has brought so far is sharpened and mended first, however
many came before it."""

FIRST_DRAWN = 4
"""Paths that are drawn on an island before any in its patches, which may take as many in each."""

NEARLY_MENDED = 1e-4
"""Residual up to which paths are drawn in patches, and on heaps: of those that stiffening step by
step leaves farther off none was solved so, and they cost a minute."""

STEPWISE, BRIEF_STEPWISE = 500, 300
"""Factorizations of an island whose rows are stiffened step by step, at most; and of one that may
be left without an answer."""

STIFFENED_HEAP = 600
"""Factorizations of a heap whose rows are stiffened, at most."""

SHARPEN_EPS, SHARPEN_STEPS, SHARPEN_PATIENCE = 1e-7, 12, 8
"""Compliance and iterations of Newton's method on an island that is all but solved: with more
patience than elsewhere, since all that is left to find is cheaper there than anything else."""

Suffices = Callable[[], bool]
"""Whether the iterate at hand would be taken if nothing better were found."""


def persist(
    work: SolverWorkspace, k: int, passes: Passes, suffices: Suffices = lambda: False
) -> None:
    """Mends island k. Of a heap, whose path has not been followed through its folds yet, that comes
    next, and what it finds is mended again. At last paths are drawn. For the last digits of what
    suffices a few paths of a heap are followed, and paths are drawn in its patches alone; none is
    drawn on a heap that nothing came near to, where each costs a second."""
    residual = work.request.outcome[:, Outcome.RESIDUAL]
    if is_mended_first(work, k):
        solved = mend_island(work, k, passes, FIRST_ROUNDS)
        solved = solved or _turn_and_mend(work, k, passes, suffices)
        solved = solved or stiffen_heap(work, k, passes)
    else:
        rounds = FIRST_ROUNDS if suffices() else MENDING_ROUNDS
        solved = mend_island(work, k, passes, rounds, Effort.ALL_PATHS)
        solved = solved or stiffen_and_mend(work, k, passes)
    if solved or work.request.setting[Setting.LAW] != Law.COULOMB or suffices():
        return

    def does(residual: float) -> bool:
        return passes(residual) or suffices()

    if is_mended_first(work, k) and not residual[k] <= NEARLY_MENDED:
        return
    solved = draw_paths(work, k, does, range(FIRST_DRAWN))
    if not solved and residual[k] <= NEARLY_MENDED:
        solved = mend_island(work, k, does, MENDING_ROUNDS, Effort.DRAWN_PATHS)
    if not solved:
        draw_paths(work, k, does, range(FIRST_DRAWN, count_drawn(work, k)))


def mend_briefly(work: SolverWorkspace, k: int, passes: Passes) -> None:
    """Mends island k by patches, and by stiffening its rows step by step, without following any
    path: a tenth of what `persist` may take."""
    if not mend_island(work, k, passes, FIRST_ROUNDS):
        stiffen_and_mend(work, k, passes, BRIEF_STEPWISE)


def _turn_and_mend(work: SolverWorkspace, k: int, passes: Passes, suffices: Suffices) -> bool:
    """Whether a path of a heap solves it, or what patches make of what it finds. After all of
    them its rows are stiffened step by step."""
    residual, tried = work.request.outcome[:, Outcome.RESIDUAL], np.inf
    sharpened = 0
    for number in range(LARGE_TURNS):
        if number > 0 and suffices():
            if sharpened == SHARPENING_PATHS:
                break
            if _sharpen_and_mend(work, k, passes):
                return True
            sharpened += 1
        best = float(residual[k])
        take_turn(work.packed.ctypes.data, k, number, tried)
        tried = best if residual[k] == best else np.inf
        if passes(float(residual[k])):
            return True
        if residual[k] < best and mend_island(work, k, passes, FIRST_ROUNDS):
            return True
    if not suffices():
        return stiffen_and_mend(work, k, passes)
    return sharpened == 0 and _sharpen_and_mend(work, k, passes)


def _sharpen_and_mend(work: SolverWorkspace, k: int, passes: Passes) -> bool:
    """Whether island k, which suffices, passes sharpened, or with what patches make of that."""
    sharpen_island(work, k)
    if passes(float(work.request.outcome[k, Outcome.RESIDUAL])):
        return True
    return mend_island(work, k, passes, FIRST_ROUNDS, Effort.DRAWN_PATHS)


def stiffen_and_mend(work: SolverWorkspace, k: int, passes: Passes, limit: int = STEPWISE) -> bool:
    """Whether island k is solved by stiffening its rows step by step from the iterate at hand, in
    `limit` factorizations, or by what patches make of what that finds."""
    setting, outcome = work.request.setting, work.request.outcome
    if setting[Setting.LAW] != Law.COULOMB or setting[Setting.FACETS]:
        return False
    load, best = float(outcome[k, Outcome.LOAD]), float(outcome[k, Outcome.RESIDUAL])
    address, setting[Setting.FACTORIZATIONS] = work.packed.ctypes.data, 0
    found = stiffen_by_steps(address, k, load, CONTENT, best, limit)
    spread_residual(address, k, load)
    outcome[k, Outcome.RESIDUAL] = found
    outcome[k, Outcome.FACTORIZATIONS] += setting[Setting.FACTORIZATIONS]
    if passes(found):
        return True
    return found < best and mend_island(work, k, passes, FIRST_ROUNDS)


def stiffen_heap(work: SolverWorkspace, k: int, passes: Passes) -> bool:
    """Whether island k is solved by stiffening its rows from the iterate at hand."""
    setting, outcome = work.request.setting, work.request.outcome
    best = float(outcome[k, Outcome.RESIDUAL])
    if setting[Setting.LAW] != Law.COULOMB or setting[Setting.FACETS] or not best <= STIFFENABLE:
        return False
    load, setting[Setting.FACTORIZATIONS] = float(outcome[k, Outcome.LOAD]), 0
    address = work.packed.ctypes.data
    found = stiffen_island(address, k, load, CONTENT, best, STIFFENED_HEAP)
    spread_residual(address, k, load)
    outcome[k, Outcome.RESIDUAL] = found
    outcome[k, Outcome.FACTORIZATIONS] += setting[Setting.FACTORIZATIONS]
    return passes(found)


def count_drawn(work: SolverWorkspace, k: int) -> int:
    """How many paths are drawn on island k."""
    blocks = int(work.graph.members[k + 1] - work.graph.members[k])
    return min(MOST_DRAWN, max(LEAST_DRAWN, DRAWN_BLOCKS // blocks))


def sharpen_island(work: SolverWorkspace, k: int) -> None:
    """Newton's method once more on island k, as far as rounding lets it. The residual is relative
    to the whole island's load; where masses differ, the certificate asks more of light bodies."""
    outcome, address = work.request.outcome, work.packed.ctypes.data
    load, best = float(outcome[k, Outcome.LOAD]), float(outcome[k, Outcome.RESIDUAL])
    outcome[k, Outcome.RESIDUAL] = refine_island(
        address, k, load, 1, SHARPEN_EPS, SHARPEN_STEPS, SHARPEN_PATIENCE, EXACT, best
    )
    spread_residual(address, k, load)


def is_mended_first(work: SolverWorkspace, k: int) -> bool:
    """Whether `solve_blocks` has left island k to patches, before any path that turns."""
    members = work.graph.members
    return bool(work.request.setting[Setting.MENDED] and members[k + 1] - members[k] > HEAP)
