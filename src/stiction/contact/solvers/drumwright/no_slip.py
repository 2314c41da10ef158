"""Contacts that touch and hold (Drumwright, section VI), and what to do where their rows nearly
depend on each other.

Algorithm 2 picks independent rows of J, S and T, Algorithm 1 solves for the normals in what they
leave free (`pivoting.py`). Where tangents alone hold a body (a peg, a corner) nothing is left: the
normals depend on rows that hold already, and none of them is active.

A foot on two facets that are nearly in one plane has tangents that nearly depend on each other, and
impulses along picked ones can grow beyond what rounding leaves of the step. `solve_orthonormal`
puts an orthonormal basis of what the rows of J, S and T span in their place, without directions in
which they have next to nothing, and takes the least impulses along them.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.problem.arrays import Array, Whitened
from stiction.contact.solvers.drumwright.active_set import States
from stiction.contact.solvers.drumwright.columns import Answer, scatter_tangents, solve_whitened
from stiction.kernels.compile import kernel


@kernel
def sticking_contacts(friction: Array, bound: Array) -> States:
    """(nc,) 1 where a contact touches and has friction, else 0."""
    out = np.zeros(friction.shape[0], np.int8)
    for i in range(friction.shape[0]):
        if friction[i] > 0.0 and bound[i] >= 0.0:
            out[i] = 1
    return out


def solve_no_slip(
    p: Whitened, sticking: States, limits: Array, state: States
) -> tuple[Answer, Array]:
    """Impulses of a whitened problem whose contacts in `sticking` hold, and those along tangents
    (nc, 2)."""
    answer = solve_whitened(p, sticking, limits, state)
    return answer, scatter_tangents(answer.equal, len(p.rows_joint), sticking)


def solve_orthonormal(
    p: Whitened, sticking: States, limits: Array, least: float
) -> tuple[Answer, Array]:
    """The same by an orthonormal basis of the rows that must hold; singular values of unit rows
    below `least` are left out."""
    held, joints = sticking != 0, len(p.rows_joint)
    tangents = p.rows_tangent[held].reshape(2 * int(held.sum()), len(p.momentum))
    rows = np.vstack([p.rows_joint, tangents])
    speed = np.concatenate([p.free_joint, p.free_tangent[held].ravel()])
    size = np.linalg.norm(rows, axis=1)
    size[size == 0.0] = 1.0
    left, value, basis = np.linalg.svd(rows / size[:, None], full_matrices=False)
    kept = value > least
    left, value, basis = left[:, kept], value[kept], np.ascontiguousarray(basis[kept])
    posed = p._replace(rows_joint=basis, free_joint=left.T @ (speed / size) / value)
    slides, none = np.zeros(len(sticking), np.int8), np.empty(0, np.int8)
    answer = solve_whitened(posed, slides, limits, none)
    impulse = left @ (answer.equal / value) / size
    tangent = np.zeros((len(sticking), 2))
    tangent[held] = impulse[joints:].reshape(-1, 2)
    return answer._replace(equal=impulse), tangent
