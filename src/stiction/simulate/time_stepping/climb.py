"""Islands that the compiled solvers did not answer, handed to the contact model's own ladder.

Each as a problem of arrays by itself, however many there are beside it, if it is small: the
ladder's matrices are dense. What it finds replaces what was there only where the certificate of
the whole step is the better for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.laws import Law
from stiction.contact.models.model import ContactModel
from stiction.contact.problem.block_problem import cut_out, put_solution, to_problem
from stiction.contact.problem.blocks import ROWS
from stiction.contact.problem.graph import Size
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.interior_point.iteration import SOLVED
from stiction.contact.solvers.islands import solve_blocks
from stiction.contact.solvers.workspace import Outcome, Setting
from stiction.simulate.time_stepping.request import grade_step
from stiction.simulate.time_stepping.workspace import Count, Workspace
from stiction.tolerances import RESIDUAL

Indices = NDArray[np.int64]

SMALL = 48
"""Blocks of an island that the whole ladder is asked about; beyond, its first rung alone, and only
if the step would fail without it: pivoting may take seconds there."""

LARGE = 100
"""Blocks of an island that the ladder is asked about at all."""


def unsolved_islands(work: Workspace) -> list[int]:
    """Islands whose residual is too large, the worst first; all where none is."""
    count = int(work.solver.graph.size[Size.ISLANDS])
    residual = work.solver.request.outcome[:count, Outcome.RESIDUAL]
    bad = [int(k) for k in np.argsort(-residual) if residual[k] > SOLVED]
    return bad or list(range(count))


def island_parts(work: Workspace, k: int) -> tuple[Indices, Indices]:
    """Blocks and degrees of freedom of island k, ascending."""
    graph, matrix = work.solver.graph, work.solver.matrix
    members = np.sort(graph.member[graph.members[k] : graph.members[k + 1]])
    nodes = np.sort(matrix.order[graph.positions[k] : graph.positions[k + 1]])
    spans = [np.arange(matrix.start[node], matrix.start[node + 1]) for node in nodes]
    return members, np.concatenate(spans) if spans else np.zeros(0, np.int64)


def climb_islands(
    work: Workspace, contact: ContactModel, dt: float, tolerance: float
) -> tuple[float, tuple[str, ...]]:
    """(certificate of the step, rungs): tries every small unsolved island, and leaves the better
    answers in the workspace. An island takes the first rung that reaches `tolerance`: those after
    it cost a thousand steps."""
    b, f, v = work.blocks, work.newton.f, work.newton.v
    worst = float(grade_step(work.address, RESIDUAL))
    answered: tuple[str, ...] = ()
    for k in unsolved_islands(work):
        members, dofs = island_parts(work, k)
        small = len(members) <= SMALL
        if len(members) > LARGE or worst <= (RESIDUAL if small else tolerance):
            continue
        part = cut_out(b, members, dofs)
        problem = to_problem(part, len(members), dt)
        solution = contact.solve_to(problem, tolerance, None if small else 1)
        before = f[members].copy(), v[dofs].copy()
        impulses = np.zeros((len(members), ROWS))
        put_solution(part, len(members), solution, impulses)
        f[members], v[dofs] = impulses, solution.velocity[: len(dofs)]
        found = float(grade_step(work.address, RESIDUAL))
        if found < worst:
            worst, answered = found, solution.rungs
        else:
            f[members], v[dofs] = before
    return float(grade_step(work.address, RESIDUAL)), answered


def worst_problem(work: Workspace, dt: float) -> ContactProblem:
    """The island with the largest residual, as a problem of its own."""
    members, dofs = island_parts(work, unsolved_islands(work)[0])
    return to_problem(cut_out(work.blocks, members, dofs), len(members), dt)


def solve_without_friction(work: Workspace) -> float:
    """Solves the step at hand without friction; its certificate, by that law."""
    setting = work.solver.request.setting
    setting[Setting.LAW], setting[Setting.FACETS] = Law.FRICTIONLESS, 0
    setting[Setting.WARM] = 0
    solve_blocks(work.address, int(work.step.counts[Count.BLOCKS]))
    return float(grade_step(work.address, RESIDUAL))
