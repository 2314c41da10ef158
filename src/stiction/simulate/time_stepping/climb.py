"""Islands that the compiled solvers did not answer, in more patient ways.

    sharpen   Newton's method once more, where no more than the last digits are missing
    patches   mended where they are wrong; of heaps, if that is not enough, the interior point's
              path is followed through its folds, and mended again
              (`contact/solvers/islands/persistence.py`)
    ladder    the contact model's own, as a problem of arrays by itself: its matrices are dense.
              After patches of small islands all of it; its first rung of those up to
              LADDER_BLOCKS, if the step would fail without it, since pivoting may take seconds
              there; and before patches where there are few degrees of freedom, since pivots are no
              more than these

The ladder of small islands has an interior point in it, which is another search than the step's:
from nothing, and mended. With solvers that did not follow paths through folds yet, of 926 small
islands that 1.3 million steps of robots, ragdolls and boxes on others of a ten-thousandth to a
ten-millionth of their mass left, the ladder's first rung solved 735, the interior point 182 of the
other 191, 101 of them it alone.

What is found replaces what was there only where the certificate of the whole step is the better
for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from stiction.contact.certificate.laws import Entry, Law
from stiction.contact.models.model import ContactModel
from stiction.contact.problem.block_problem import cut_out, put_solution, to_problem
from stiction.contact.problem.blocks import ROWS, Head, Kind
from stiction.contact.problem.graph import Size
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.blocks.workspace import ENDLESS, Guess, Outcome, Setting
from stiction.contact.solvers.interior_point.iteration import SMALL_ISLAND
from stiction.contact.solvers.islands.attempts import STIFFENABLE
from stiction.contact.solvers.islands.patches import Island
from stiction.contact.solvers.islands.persistence import mend_briefly, persist, sharpen_island
from stiction.contact.solvers.islands.solve import solve_blocks
from stiction.contact.solvers.proximal.iteration import EXACT, SOLVED
from stiction.simulate.time_stepping.request import grade_step
from stiction.simulate.time_stepping.workspace import Count, Workspace
from stiction.tolerances import RESIDUAL

LADDER_BLOCKS = 100
"""Blocks of an island that the ladder is asked about at all."""

NARROW = 64
"""Degrees of freedom of an island that the ladder's first rung is asked about first, however many
blocks it has: of robots whose links touch in hundreds of points it solves most in milliseconds."""

GRADED = 1e-7
"""Residual from which on the certificate is asked whether an island is solved: rounding may leave
more of it on a heap than SOLVED, and pass."""

Way = Callable[[], tuple[str, ...]]
"""One way to answer an island, which leaves its answer in the workspace; its rungs."""

PATCHES = "patches"
"""The rung of what was mended."""


def unsolved_islands(work: Workspace) -> list[int]:
    """Islands whose residual is too large, the worst first; where none is, the one in which the
    certificate that was graded last finds the worst."""
    residual = work.solver.request.outcome[: count_islands(work), Outcome.RESIDUAL]
    bad = [int(k) for k in np.argsort(-residual) if residual[k] > SOLVED]
    return bad or [worst_island(work)]


def worst_island(work: Workspace) -> int:
    """The island in which the certificate that was graded last finds the worst violation."""
    table, head = work.grading.table, work.blocks.head[: work.step.counts[Count.BLOCKS]]
    g, s, last = work.solver.graph, work.solver.matrix, count_islands(work) + 1
    entry = int(np.argmax(table.scaled))
    where, kind = int(table.where[entry]), head[:, Head.KIND]
    if entry == Entry.DYNAMICS:
        node = int(np.searchsorted(s.start, where, side="right")) - 1
        return int(np.searchsorted(g.positions[:last], s.position[node], side="right")) - 1
    # Rows are counted by kind; rows 3 to 5 of a contact are box rows (`grading.py`).
    rows = (kind == Kind.CONTACT).astype(np.int64)
    if entry == Entry.JOINT:
        rows = (kind == Kind.HOLD).astype(np.int64)
    elif entry in (Entry.BOX_LIMIT, Entry.BOX_FRICTION):
        rows = np.where(rows, np.maximum(head[:, Head.ROWS] - 3, 0), kind == Kind.BOX)
    block = int(np.searchsorted(np.cumsum(rows), where, side="right"))
    at = int(np.flatnonzero(g.member[: len(head)] == block)[0])
    return int(np.searchsorted(g.members[:last], at, side="right")) - 1


def count_islands(work: Workspace) -> int:
    """Of the step at hand."""
    return int(work.solver.graph.size[Size.ISLANDS])


def climb_islands(
    work: Workspace,
    contact: ContactModel,
    dt: float,
    tolerance: float,
    every: bool = False,
    brief: bool = False,
) -> tuple[float, tuple[str, ...]]:
    """(certificate of the step, rungs): tries every unsolved island, and leaves the better answers
    in the workspace. An island takes the first rung of the ladder that reaches `tolerance`: those
    after it cost a thousand steps. every: whether the others are tried where one has no answer, and
    the step will fail; brief: whether patches follow no paths, since a shorter step comes next."""

    outcome = work.solver.request.outcome
    worst = float(grade_step(work.address, RESIDUAL))
    answered: tuple[str, ...] = ()

    def passes(residual: float) -> bool:
        if residual <= SOLVED and len(unsolved) > 1:  # the certificate is of all of them
            return True
        return residual <= GRADED and bool(grade_step(work.address, RESIDUAL) <= RESIDUAL)

    def suffices() -> bool:
        return bool(grade_step(work.address, RESIDUAL) <= tolerance)

    def climb(rungs: int | None) -> tuple[str, ...]:
        part = cut_out(work.blocks, island.members, island.dofs)
        solution = contact.solve_to(to_problem(part, size, dt), tolerance, rungs)
        impulses = np.zeros((size, ROWS))
        put_solution(part, size, solution, impulses)
        island.put(impulses, solution.velocity[: len(island.dofs)])
        return solution.rungs

    def sharpen() -> tuple[str, ...]:
        sharpen_island(work.solver, k)
        return ()

    def mend() -> tuple[str, ...]:
        if brief:
            mend_briefly(work.solver, k, passes)
        else:
            persist(work.solver, k, passes, suffices)
        return (PATCHES,)

    def attempt(way: Way) -> None:
        nonlocal worst, answered
        before, residual = island.iterate(), outcome[k, Outcome.RESIDUAL]
        rungs = way()
        found = float(grade_step(work.address, RESIDUAL))
        if found < worst:
            worst, answered = found, rungs
        else:
            island.put(*before)
            outcome[k, Outcome.RESIDUAL] = residual

    for k in np.flatnonzero(outcome[: count_islands(work), Outcome.RESIDUAL] <= GRADED).tolist():
        if worst > RESIDUAL and outcome[k, Outcome.RESIDUAL] > EXACT:
            island = Island(work.solver, k)
            attempt(sharpen)
    unsolved = unsolved_islands(work)
    for k in unsolved:
        island = Island(work.solver, k)
        size = len(island.members)
        ways: list[tuple[Way, float]] = [(mend, RESIDUAL)]
        if size <= SMALL_ISLAND:
            ways.append((partial(climb, None), RESIDUAL))
        elif len(island.dofs) <= NARROW:
            ways.insert(0, (partial(climb, 1), RESIDUAL))
        elif size <= LADDER_BLOCKS:
            ways.append((partial(climb, 1), tolerance))
        for way, enough in ways:
            if not worst <= enough:
                attempt(way)
        if outcome[k, Outcome.RESIDUAL] > STIFFENABLE and not every:
            break
    return float(grade_step(work.address, RESIDUAL)), answered


def worst_problem(work: Workspace, dt: float) -> ContactProblem:
    """The island with the largest residual, as a problem of its own."""
    island = Island(work.solver, unsolved_islands(work)[0])
    return to_problem(cut_out(work.blocks, island.members, island.dofs), len(island.members), dt)


def solve_without_friction(work: Workspace) -> float:
    """Solves the step at hand without friction; its certificate, by that law."""
    setting = work.solver.request.setting
    setting[Setting.LAW], setting[Setting.FACETS] = Law.FRICTIONLESS, 0
    setting[Setting.WARM], setting[Setting.DEADLINE] = Guess.NONE, ENDLESS
    solve_blocks(work.address, int(work.step.counts[Count.BLOCKS]))
    return float(grade_step(work.address, RESIDUAL))
