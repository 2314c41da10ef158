"""`NoSlip`: contacts that touch do not slide at all (Drumwright, section VI).

    min 1/2 |v+ - v_free|^2 in the metric of the mass
    over N v+ >= b,  S v+ = T v+ = 0 where touching,  J v+ = c

Algorithm 2 picks independent rows of J, S and T, Algorithm 1 solves for the normals in what they
leave free (`drumwright.py`). Where tangents alone hold a body (a peg, a corner) nothing is left:
the normals depend on rows that hold already, and none of them is active.

A contact touches where its bound is not negative. One ahead of contact (a gap) has no tangent
rows yet, and one with mu = 0 is frictionless. The model is convex: a touching contact may carry a
tangential impulse without a normal one, so that it can open, yet not slide, where Coulomb's law
lets it slip (Lynch and Mason's example); `Coulomb` with friction=inf reads infinite friction the
other way.

A foot on two facets that are nearly in one plane has tangents that nearly depend on each other, and
impulses along picked ones can grow beyond what rounding leaves of the step. Where that fails the
certificate, the rows of J, S and T are replaced by an orthonormal basis of what they span, without
directions in which they have next to nothing, and the least impulses along them are taken.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stiction.contact.models.frictionless import (
    scatter_tangents,
    solve_whitened,
    start_states,
    to_impulses,
)
from stiction.contact.models.model import ContactModel, Impulses
from stiction.contact.models.solution import ContactSolution
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.drumwright import States
from stiction.kernels.compile import kernel

NEXT_TO_NOTHING = (1e-2, 1e-3, 1e-4, 1e-6, 1e-9)
"""Singular values of unit rows below which a direction is left out, tried in turn: the more is left
out, the smaller the impulses, as long as the certificate passes."""


@kernel
def sticking_contacts(friction: Array, bound: Array) -> States:
    """(nc,) 1 where a contact touches and has friction, else 0."""
    out = np.zeros(friction.shape[0], np.int8)
    for i in range(friction.shape[0]):
        if friction[i] > 0.0 and bound[i] >= 0.0:
            out[i] = 1
    return out


class NoSlip(ContactModel):
    """Drumwright's no-slip model: contacts that touch hold, whatever it takes.

    They hold against sliding: torsional and rolling friction belong to Coulomb's law, and a box
    row has its `box_limit` here, and nothing of `box_friction`.
    """

    law = "no-slip"

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """Velocity and impulses of the problem under this model, certified."""
        found = super().solve(problem, start)
        for least in NEXT_TO_NOTHING:
            if found.certificate.passed:
                break
            other = _Orthonormal(least).solve(problem)
            pivots, rungs = found.pivots + other.pivots, (*found.rungs, *other.rungs)
            better = other.certificate.worst < found.certificate.worst
            found = replace(other if better else found, pivots=pivots, rungs=rungs)
        return found

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of a problem whose rows all hang together."""
        arrays = problem.arrays
        sticking = sticking_contacts(arrays.friction, arrays.bound)
        state = start_states(problem, sticking, start)
        answer = solve_whitened(problem.whitened, sticking, arrays.box_limit, state)
        return to_impulses(problem, answer, scatter_tangents(answer.equal, problem.nj, sticking))


class _Orthonormal(ContactModel):
    """The no-slip model by an orthonormal basis of the rows that must hold."""

    law = "no-slip"

    def __init__(self, least: float) -> None:
        self.least = least

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of a problem whose rows all hang together."""
        arrays, white = problem.arrays, problem.whitened
        held = sticking_contacts(arrays.friction, arrays.bound) != 0
        tangents = white.rows_tangent[held].reshape(2 * int(held.sum()), len(white.momentum))
        rows = np.vstack([white.rows_joint, tangents])
        speed = np.concatenate([white.free_joint, white.free_tangent[held].ravel()])
        size = np.linalg.norm(rows, axis=1)
        size[size == 0.0] = 1.0
        left, value, basis = np.linalg.svd(rows / size[:, None], full_matrices=False)
        kept = value > self.least
        left, value, basis = left[:, kept], value[kept], np.ascontiguousarray(basis[kept])
        posed = white._replace(rows_joint=basis, free_joint=left.T @ (speed / size) / value)
        slides, none = np.zeros(problem.nc, np.int8), np.empty(0, np.int8)
        answer = solve_whitened(posed, slides, arrays.box_limit, none)
        impulse = left @ (answer.equal / value) / size
        tangent = np.zeros((problem.nc, 2))
        tangent[held] = impulse[problem.nj :].reshape(-1, 2)
        found = to_impulses(problem, answer._replace(equal=impulse), tangent)
        return found._replace(rungs=("orthonormal",))
