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
"""

from __future__ import annotations

import numpy as np

from stiction.contact.arrays import Array
from stiction.contact.drumwright import States
from stiction.contact.frictionless import (
    scatter_tangents,
    solve_whitened,
    start_states,
    to_impulses,
)
from stiction.contact.model import ContactModel, Impulses
from stiction.contact.problem import ContactProblem
from stiction.contact.solution import ContactSolution
from stiction.kernels.compile import kernel


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

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of a problem whose rows all hang together."""
        arrays = problem.arrays
        sticking = sticking_contacts(arrays.friction, arrays.bound)
        state = start_states(problem, sticking, start)
        answer = solve_whitened(problem.whitened, sticking, arrays.box_limit, state)
        return to_impulses(problem, answer, scatter_tangents(answer.equal, problem.nj, sticking))
