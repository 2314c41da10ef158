"""Whether the rows that every contact law has contradict each other.

    N v >= b,   J v = c,   and under the no-slip law  T v = 0 where contacts touch and have friction

Impulses can do nothing about that, so it decides for every law here. The proof (Farkas' lemma) is
checked on the problem's own arrays; where none is found, nothing is said.
"""

from __future__ import annotations

import numpy as np

from stiction.contact.certificate.certificate import LawName
from stiction.contact.problem.problem import ContactProblem
from stiction.lcp import farkas


def is_contradictory(problem: ContactProblem, law: LawName) -> bool:
    """Whether it is proved that no velocity obeys the rows of `problem` that `law` asks for. No
    proof is looked for in a large problem with sparse arrays."""
    if problem.is_sparse:
        if not problem.is_small:
            return False
        problem = problem.dense()
    arrays = problem.arrays
    held = np.zeros(problem.nc, np.bool_)
    if law == "no-slip":
        held = (arrays.friction > 0.0) & (arrays.bound >= 0.0)
    if problem.delassus is None:
        normal, tangent, joint = arrays.normal, arrays.tangent[held], arrays.joint
        least, still, target = arrays.bound, np.zeros(2 * int(held.sum())), arrays.joint_target
    else:  # velocities that a contact-space matrix can answer with
        white = problem.whitened
        normal, tangent, joint = white.rows_normal, white.rows_tangent[held], white.rows_joint
        least, target = -white.free_normal, -white.free_joint
        still = -white.free_tangent[held].ravel()
    rows = np.vstack([normal, joint, tangent.reshape(len(still), normal.shape[1])])
    values = np.concatenate([least, target, still])
    if not len(values):
        return False
    return farkas.prove(rows, values, np.arange(len(values)) >= len(normal)) is not None
