"""Islands that the compiled solvers did not answer, in more patient ways.

    patches   mended where they are wrong (`contact/solvers/patches.py`); of heaps, if that is not
              enough, the interior point's path is followed through its folds, and mended again
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

from stiction.contact.certificate.laws import Law
from stiction.contact.models.model import ContactModel
from stiction.contact.problem.block_problem import cut_out, put_solution, to_problem
from stiction.contact.problem.blocks import ROWS
from stiction.contact.problem.graph import Size
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.interior_point.iteration import SMALL_ISLAND, SOLVED
from stiction.contact.solvers.islands import solve_blocks
from stiction.contact.solvers.patches import Island, persist
from stiction.contact.solvers.workspace import Outcome, Setting
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

PATCHES = "patches"
"""The rung of what was mended."""


def unsolved_islands(work: Workspace) -> list[int]:
    """Islands whose residual is too large, the worst first; all where none is."""
    count = int(work.solver.graph.size[Size.ISLANDS])
    residual = work.solver.request.outcome[:count, Outcome.RESIDUAL]
    bad = [int(k) for k in np.argsort(-residual) if residual[k] > SOLVED]
    return bad or list(range(count))


def climb_islands(
    work: Workspace, contact: ContactModel, dt: float, tolerance: float
) -> tuple[float, tuple[str, ...]]:
    """(certificate of the step, rungs): tries every unsolved island, and leaves the better answers
    in the workspace. An island takes the first rung of the ladder that reaches `tolerance`: those
    after it cost a thousand steps."""

    def passes(residual: float) -> bool:
        if residual <= SOLVED or residual > GRADED:
            return residual <= SOLVED
        return bool(grade_step(work.address, RESIDUAL) <= RESIDUAL)

    def climb(rungs: int | None) -> tuple[str, ...]:
        part = cut_out(work.blocks, island.members, island.dofs)
        solution = contact.solve_to(to_problem(part, size, dt), tolerance, rungs)
        impulses = np.zeros((size, ROWS))
        put_solution(part, size, solution, impulses)
        island.put(impulses, solution.velocity[: len(island.dofs)])
        return solution.rungs

    def mend() -> tuple[str, ...]:
        persist(work.solver, k, passes)
        return (PATCHES,)

    worst = float(grade_step(work.address, RESIDUAL))
    answered: tuple[str, ...] = ()
    for k in unsolved_islands(work):
        island = Island(work.solver, k)
        size = len(island.members)
        ways: list[tuple[Callable[[], tuple[str, ...]], float]] = [(mend, RESIDUAL)]
        if size <= SMALL_ISLAND:
            ways.append((partial(climb, None), RESIDUAL))
        elif len(island.dofs) <= NARROW:
            ways.insert(0, (partial(climb, 1), RESIDUAL))
        elif size <= LADDER_BLOCKS:
            ways.append((partial(climb, 1), tolerance))
        for way, enough in ways:
            if worst <= enough:
                continue
            before = island.iterate()
            rungs = way()
            found = float(grade_step(work.address, RESIDUAL))
            if found < worst:
                worst, answered = found, rungs
            else:
                island.put(*before)
    return float(grade_step(work.address, RESIDUAL)), answered


def worst_problem(work: Workspace, dt: float) -> ContactProblem:
    """The island with the largest residual, as a problem of its own."""
    island = Island(work.solver, unsolved_islands(work)[0])
    return to_problem(cut_out(work.blocks, island.members, island.dofs), len(island.members), dt)


def solve_without_friction(work: Workspace) -> float:
    """Solves the step at hand without friction; its certificate, by that law."""
    setting = work.solver.request.setting
    setting[Setting.LAW], setting[Setting.FACETS] = Law.FRICTIONLESS, 0
    setting[Setting.WARM] = 0
    solve_blocks(work.address, int(work.step.counts[Count.BLOCKS]))
    return float(grade_step(work.address, RESIDUAL))
