"""The interior point for a problem given by arrays: into blocks, and its impulses back.

Degrees of freedom that the mass couples become a node (`problem/sparse_blocks.py`), in an order in
which nodes stand together; rows keep the columns that are not zero. So a problem of many bodies is
solved by its own sparsity, whatever order its arrays have, and whether they are dense or not. Not
for box rows that have, under Coulomb's law, both a limit of their own and a contact, or more than
three to a contact: no simulator has such, and blocks have no place for them.

A problem u = W f + q with a sparse W has no bodies that could be read off it: which contacts W
couples does not tell how its entries come about. Its contacts are the nodes
(`solvers/blocks/system.py`), and what is factorized has the pattern of W by contacts, which is as
wide as that of the bodies where these have few contacts each: granular matter in the plane costs
two to three times what it does with its mass, faces with four points each a good deal more. W may
be singular. Patches do not know such problems. Laws that ask where a contact touches are not solved
so: q takes the place of bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from stiction.contact.certificate.laws import Law
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import Datum, Head, Kind
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.problem.scaled import ScaledImpulses, ScaledProblem
from stiction.contact.problem.sparse_arrays import Matrices
from stiction.contact.problem.sparse_blocks import (
    Nodes,
    Skyline,
    lay_out_blocks,
    skyline_of,
)
from stiction.contact.solvers.attempt import Attempt, Options
from stiction.contact.solvers.blocks.posed import pose
from stiction.contact.solvers.blocks.workspace import (
    ENDLESS,
    Guess,
    Outcome,
    Rung,
    Setting,
    SolverWorkspace,
)
from stiction.contact.solvers.islands.persistence import persist
from stiction.contact.solvers.islands.solve import solve_blocks
from stiction.contact.solvers.proximal.iteration import SOLVED
from stiction.status import Code

Indices = NDArray[np.int64]

TIED = 3
"""Rows of a contact beyond sliding, at most."""


class BlockAnswer(NamedTuple):
    """Impulses that were found by blocks; shapes as in `ContactSolution`."""

    normal: Array
    tangent: Array
    joint: Array
    box: Array
    code: Code
    steps: int
    """Factorizations."""
    unsolved: NDArray[np.bool_]
    """(nc + nj + nb,) contacts, joints, box rows of islands that were left unsolved."""


def takes(problem: ContactProblem, law: Law = Law.COULOMB) -> bool:
    """Whether blocks have a place for all of the problem's rows."""
    if problem.delassus is not None:
        return problem.is_sparse and law in (Law.COULOMB, Law.FRICTIONLESS)
    tied = problem.box_contact >= 0
    if law != Law.COULOMB or not tied.any():
        return True
    most = np.bincount(problem.box_contact[tied], minlength=1).max()
    return not problem.box_limit[tied].any() and int(most) <= TIED


def solve_interior_point(
    problem: ScaledProblem, start: ScaledImpulses | None, options: Options
) -> Attempt:
    """Coulomb's law by the interior point; ERROR where `takes` says no."""
    if not takes(problem.problem):
        return Attempt(problem.zeros(), Code.ERROR, 0)
    found = solve_by_blocks(problem.problem, Law.COULOMB, options.facets)
    return Attempt(problem.scale(found.normal, found.tangent, found.box), found.code, found.steps)


def solve_by_blocks(
    problem: ContactProblem,
    law: Law,
    facets: int,
    guess: tuple[Array, Array, Array, Array] | None = None,
) -> BlockAnswer:
    """The impulses of a problem that blocks have a place for; guess: impulses by kind that are
    tried first."""
    star = problem.delassus is not None
    work, layout = fill_contact_space(problem) if star else fill(problem, law)
    address, settings = work.packed.ctypes.data, work.request.setting
    settings[Setting.LAW], settings[Setting.FACETS] = law, facets
    settings[Setting.WARM], settings[Setting.DEADLINE] = Guess.NONE, ENDLESS
    if guess is not None:
        settings[Setting.WARM] = Guess.LAST_STEP
        layout.put(guess, work.request.guess)
        work.request.built[: layout.blocks] = Rung.INTERIOR_POINT
    solve_blocks(address, layout.blocks)
    outcome = work.request.outcome
    for k in np.flatnonzero(outcome[:, Outcome.RESIDUAL] > SOLVED).tolist():
        if not star:
            persist(work, k, lambda residual: residual <= SOLVED)
    left = np.zeros(layout.blocks, np.bool_)
    for k in np.flatnonzero(~(outcome[:, Outcome.RESIDUAL] <= SOLVED)).tolist():
        left[work.graph.member[work.graph.members[k] : work.graph.members[k + 1]]] = True
    return BlockAnswer(
        *layout.take(work.newton.f),
        Code.ERROR if left.any() else Code.SOLVED,
        int(outcome[:, Outcome.FACTORIZATIONS].sum()),
        left[layout.block],
    )


class Layout(NamedTuple):
    """Which block each row of a problem is in: contacts, joints, box rows without a contact, in
    this order; box rows with one are rows 3 to 5 of its block."""

    contacts: int
    joints: int
    block: Indices  # (nc + nj + nb,) of each contact, joint, box row
    row: Indices  # (nb,) of each box row, in its block
    scale: Array  # (nb,) of each box row: what its impulse in the block is multiplied by

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self.contacts + self.joints + int((self.row == 0).sum())

    def take(self, f: Array) -> tuple[Array, Array, Array, Array]:
        """Impulses by kind, of those by blocks (count, ROWS)."""
        nc, nj = self.contacts, self.joints
        box = f[self.block[nc + nj :], self.row] * self.scale
        return f[:nc, 0].copy(), f[:nc, 1:3].copy(), f[nc : nc + nj, 0].copy(), box

    def put(self, impulses: tuple[Array, Array, Array, Array], f: Array) -> None:
        """f (count, ROWS) := impulses by kind."""
        nc, nj = self.contacts, self.joints
        normal, tangent, joint, box = impulses
        f[:nc, 0], f[:nc, 1:3], f[nc : nc + nj, 0] = normal, tangent, joint
        f[self.block[nc + nj :], self.row] = box / self.scale


def lay_out(problem: ContactProblem, law: Law) -> Layout:
    """Blocks for the rows of the problem."""
    a, nc, nj, nb = problem.arrays, problem.nc, problem.nj, problem.nb
    tied = (a.box_contact >= 0) & (law == Law.COULOMB)
    block, row, scale = np.arange(nc + nj + nb), np.zeros(nb, np.int64), np.ones(nb)
    box = np.flatnonzero(tied)
    owner = a.box_contact[box]
    by_owner = np.argsort(owner, kind="stable")
    sorted_owner = owner[by_owner]
    rank = np.empty(len(box), np.int64)
    rank[by_owner] = np.arange(len(box)) - np.searchsorted(sorted_owner, sorted_owner)
    block[nc + nj + box], row[box] = owner, 3 + rank
    block[nc + nj + np.flatnonzero(~tied)] = nc + nj + np.arange(nb - len(box))
    # Rows 4 and 5 share a coefficient: the second is scaled.
    last = by_owner[rank[by_owner] == TIED - 1]
    for at, before in zip(
        box[last], box[by_owner[np.searchsorted(sorted_owner, owner[last]) + 1]], strict=True
    ):
        if a.box_friction[before] > 0.0:
            scale[at] = a.box_friction[at] / a.box_friction[before]
    return Layout(nc, nj, block, row, scale)


def fill(problem: ContactProblem, law: Law = Law.COULOMB) -> tuple[SolverWorkspace, Layout]:
    """A workspace with the problem's blocks, free velocity and inverse inertias, all of it
    connected, and where each row of the problem is."""
    a, nc, nj, nb = problem.arrays, problem.nc, problem.nj, problem.nb
    layout = lay_out(problem, law)
    if problem.sparse is not None:
        matrices, nodes = problem.sparse.matrices, problem.sparse.nodes
        mass = problem.sparse.mass
    else:
        across = a.tangent.reshape(2 * nc, problem.nv)
        matrices = Matrices(*map(csr_array, (a.mass, a.normal, across, a.joint, a.box)))
        nodes = matrices.find_nodes()
        mass = skyline_of(matrices.mass, nodes)
    # Rows in the order of their blocks: a contact's tangents where it has any, or further rows.
    slides = np.diff(matrices.tangent.indptr).reshape(nc, 2).sum(axis=1) > 0
    boxes = layout.block[nc + nj :]
    slides[boxes[layout.row > 0]] = True
    sliding = np.flatnonzero(slides)
    source = [
        np.arange(nc), nc + 2 * sliding, nc + 2 * sliding + 1, np.arange(3 * nc, 3 * nc + nj + nb),
    ]  # fmt: skip
    block = np.concatenate([np.arange(nc), sliding, sliding, layout.block[nc:]])
    zero, one = np.zeros(nc, np.int64), np.ones(len(sliding), np.int64)
    row = np.concatenate([zero, one, 2 * one, np.zeros(nj, np.int64), layout.row])
    order = np.lexsort((row, block))
    rows = matrices.stacked[np.concatenate(source)[order]]
    if (layout.scale != 1.0).any():
        ones = np.ones(nc + 2 * len(sliding) + nj)
        rows = csr_array(diags_array(np.concatenate([ones, layout.scale])[order]) @ rows)
    height = np.bincount(block, minlength=layout.blocks).astype(np.int64)
    b = lay_out_blocks(rows, height, mass, nodes, a.velocity, problem.dt * a.force)
    b.head[:, Head.KIND] = np.repeat(
        [Kind.CONTACT, Kind.HOLD, Kind.BOX], [nc, nj, layout.blocks - nc - nj]
    )
    b.data[:nc, Datum.BOUND], b.data[:nc, Datum.SLIDE] = a.bound, a.friction
    b.data[:nc, Datum.DRAG] = problem.dt * a.viscosity
    b.data[nc : nc + nj, Datum.BOUND] = a.joint_target
    free = layout.row == 0
    b.data[boxes[free], Datum.LIMIT] = a.box_limit[free]
    for r, datum in ((3, Datum.SPIN), (4, Datum.ROLL)):
        at = layout.row == r
        b.data[boxes[at], datum] = a.box_friction[at]
    return pose(nodes.start, b), layout


def fill_contact_space(problem: ContactProblem) -> tuple[SolverWorkspace, Layout]:
    """The same of a problem u = W f + q with a sparse W: nodes of three impulses each, whose mass
    is the diagonal of W. In the plane the third moves nothing."""
    a, nc, W = problem.arrays, problem.nc, problem.delassus
    place = np.arange(problem.nv)
    place = 3 * (place // problem.dimension) + place % problem.dimension
    free, diagonal = np.zeros(3 * nc), np.zeros(3 * nc)
    free[place], diagonal[place] = a.velocity, W.diagonal()
    entries = W.tocoo()
    row, column = place[entries.coords[0]], place[entries.coords[1]]
    moved = (diagonal.reshape(nc, 3).max(axis=1, initial=0.0) > 0.0)[row // 3]
    rows = csr_array((entries.data[moved], (row[moved], column[moved])), shape=(3 * nc, 3 * nc))
    whole = np.arange(3 * nc)
    nodes = Nodes(whole, whole, np.arange(0, 3 * nc + 1, 3))
    mass = Skyline(np.where(diagonal > 0.0, diagonal, 1.0), np.zeros(3 * nc, np.int64), whole)
    rest = np.zeros(3 * nc)
    b = lay_out_blocks(rows, np.full(nc, 3, np.int64), mass, nodes, rest, rest)
    b.head[:, Head.KIND] = Kind.CONTACT
    b.data[:, Datum.BOUND], b.data[:, Datum.SLIDE] = a.bound - free[::3], a.friction
    b.data[:, Datum.SURFACE], b.data[:, Datum.SURFACE_2] = free[1::3], free[2::3]
    work = pose(nodes.start, b, star=True)
    work.newton.weight[:nc, :3] = diagonal.reshape(nc, 3)
    none = np.zeros(0, np.int64)
    return work, Layout(nc, 0, np.arange(nc), none, none.astype(np.float64))
