"""The interior point for a problem given by arrays: into blocks, and its impulses back.

Degrees of freedom that the mass couples become a node (`graph.py`), in an order in which nodes
stand together; rows keep the columns that are not zero. So a problem of many bodies is solved by
its own sparsity, whatever order its arrays have. Not for problems without a mass, nor with box
rows that have both a limit of their own and a contact, or more than three to a contact: no
simulator has such, and blocks have no place for them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Blocks, Datum, Head, Kind, allocate
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.problem.scaled import ScaledImpulses, ScaledProblem
from stiction.contact.solvers.attempt import Attempt, Options
from stiction.contact.solvers.interior_point.iteration import SOLVED
from stiction.contact.solvers.islands import solve_blocks
from stiction.contact.solvers.patches import persist
from stiction.contact.solvers.posed import pose
from stiction.contact.solvers.workspace import ENDLESS, Outcome, Setting, SolverWorkspace
from stiction.kernels.skyline import close_skyline, lay_out
from stiction.status import Code

Indices = NDArray[np.int64]

TIED = 3
"""Rows of a contact beyond sliding, at most."""


def takes(problem: ContactProblem) -> bool:
    """Whether blocks have a place for all of the problem's rows."""
    if problem.delassus is not None:
        return False
    tied = problem.box_contact >= 0
    most = np.bincount(problem.box_contact[tied], minlength=1).max()
    return not problem.box_limit[tied].any() and int(most) <= TIED


def solve_interior_point(
    problem: ScaledProblem, start: ScaledImpulses | None, options: Options
) -> Attempt:
    """Coulomb's law by the interior point; ERROR where `takes` says no."""
    posed = problem.problem
    if not takes(posed):
        return Attempt(problem.zeros(), Code.ERROR, 0)
    work, rows = fill(posed)
    settings = work.request.setting
    settings[Setting.LAW], settings[Setting.FACETS] = Law.COULOMB, options.facets
    settings[Setting.WARM], settings[Setting.DEADLINE] = 0, ENDLESS
    settings[Setting.ATTEMPTS] = 1
    solve_blocks(work.packed.ctypes.data, len(rows))
    outcome = work.request.outcome
    for k in np.flatnonzero(outcome[:, Outcome.RESIDUAL] > SOLVED).tolist():
        persist(work, k, 1, lambda residual: residual <= SOLVED)
    solved = outcome[:, Outcome.RESIDUAL].max(initial=0.0) <= SOLVED
    normal, tangent, box = np.zeros(posed.nc), np.zeros((posed.nc, 2)), np.zeros(posed.nb)
    for f, (kind, i, tied) in zip(work.newton.f, rows, strict=False):
        if kind == Kind.CONTACT:
            normal[i], tangent[i] = f[0], f[1:3]
            for r, (at, scale) in enumerate(tied):
                box[at] = f[3 + r] * scale
        elif kind == Kind.BOX:
            box[i] = f[0]
    steps = int(outcome[:, Outcome.FACTORIZATIONS].sum())
    return Attempt(
        problem.scale(normal, tangent, box), Code.SOLVED if solved else Code.ERROR, steps
    )


Row = tuple[int, int, list[tuple[int, float]]]
"""Of a block: its kind, the number of its contact, joint or box row, and of a contact the box rows
that are its rows 3 to 5, with what their impulses are multiplied by."""


def fill(problem: ContactProblem) -> tuple[SolverWorkspace, list[Row]]:
    """A workspace with the problem's blocks, free velocity and inverse inertias, all of it
    connected, and what each block is."""
    a, nv = problem.arrays, problem.nv
    count, node = connected_components(csr_matrix(a.mass != 0.0), directed=False)
    order = np.argsort(node, kind="stable")
    place = np.empty(nv, np.int64)
    place[order] = np.arange(nv)
    start = np.searchsorted(node[order], np.arange(count + 1)).astype(np.int64)
    mass = a.mass[np.ix_(order, order)]
    first = np.array([int(np.flatnonzero(mass[j])[0]) for j in range(nv)], np.int64)
    close_skyline(first)
    row = np.zeros(nv, np.int64)
    skyline = int(lay_out(first, row))
    blocks, rows = _gather(problem)
    columns = [place[np.flatnonzero(np.any(values != 0.0, axis=0))] for values in blocks]
    entries = sum(len(c) * len(values) for c, values in zip(columns, blocks, strict=True))
    b = allocate(nv, len(blocks), entries, skyline)
    b.first[:], b.row[:] = first, row
    for j in range(nv):
        b.mass[row[j] + first[j] : row[j] + j + 1] = mass[j, first[j] : j + 1]
    b.velocity[:], b.push[:] = a.velocity[order], problem.dt * a.force[order]
    _write(problem, b, blocks, columns, order, rows)
    return pose(start, b), rows


def _gather(problem: ContactProblem) -> tuple[list[Array], list[Row]]:
    """The rows (m, nv) of each block, and what it is."""
    a = problem.arrays
    blocks: list[Array] = []
    rows: list[Row] = []
    owned: dict[int, list[int]] = {}
    for at in np.flatnonzero(a.box_contact >= 0).tolist():
        owned.setdefault(int(a.box_contact[at]), []).append(at)
    for i in range(problem.nc):
        tied = owned.get(i, [])
        values = [a.normal[i]]
        scales: list[tuple[int, float]] = []
        if tied or a.tangent[i].any():
            values += [*a.tangent[i]]
        for r, at in enumerate(tied):  # rows 4 and 5 share a coefficient: the second is scaled
            shared = a.box_friction[tied[1]] if r == 2 else a.box_friction[at]
            scale = a.box_friction[at] / shared if shared > 0.0 else 1.0
            values.append(scale * a.box[at])
            scales.append((at, float(scale)))
        blocks.append(np.array(values))
        rows.append((int(Kind.CONTACT), i, scales))
    for i in range(problem.nj):
        blocks.append(a.joint[i : i + 1])
        rows.append((int(Kind.HOLD), i, []))
    for at in np.flatnonzero(a.box_contact < 0).tolist():
        blocks.append(a.box[at : at + 1])
        rows.append((int(Kind.BOX), at, []))
    return blocks, rows


def _write(
    problem: ContactProblem,
    b: Blocks,
    blocks: list[Array],
    columns: list[Indices],
    order: Indices,
    rows: list[Row],
) -> None:
    """Heads, data, columns and values of all blocks."""
    a = problem.arrays
    at = entry = 0
    for k, (values, touched, (kind, i, tied)) in enumerate(zip(blocks, columns, rows, strict=True)):
        touched = np.sort(touched)
        height, width = len(values), len(touched)
        b.head[k, [Head.KIND, Head.ROWS, Head.WIDTH, Head.COLUMN, Head.VALUE]] = (
            kind, height, width, at, entry,
        )  # fmt: skip
        b.column[at : at + width] = touched
        b.value[entry : entry + height * width] = values[:, order[touched]].ravel()
        at, entry = at + width, entry + height * width
        if kind == Kind.CONTACT:
            b.data[k, Datum.BOUND], b.data[k, Datum.SLIDE] = a.bound[i], a.friction[i]
            coefficients = [float(a.box_friction[box]) for box, _ in tied]
            b.data[k, Datum.SPIN] = coefficients[0] if coefficients else 0.0
            b.data[k, Datum.ROLL] = coefficients[1] if len(coefficients) > 1 else 0.0
        elif kind == Kind.HOLD:
            b.data[k, Datum.BOUND] = a.joint_target[i]
        else:
            b.data[k, Datum.LIMIT] = a.box_limit[i]
