"""`ScaledProblem`: what contact solvers take, and the way back from what they find.

In coordinates of unit mass, rows of unit length, joints projected out, loads of order one
(`cones.py`). Solvers find theta (n,), the normal impulses, and phi (u, 2), those of the friction
units; both without units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stiction.contact.problem.arrays import Array
from stiction.contact.problem.cones import Cones, build_cones, from_impulses, to_impulses
from stiction.contact.problem.problem import ContactProblem


class ScaledImpulses(NamedTuple):
    """Impulses of a scaled problem."""

    theta: Array  # (n,) normal
    phi: Array  # (u, 2) of friction units: contacts with friction, box rows with a limit


class ScaledProblem:
    """A contact problem in the form that solvers take."""

    def __init__(self, problem: ContactProblem) -> None:
        self.problem = problem
        self.cones: Cones
        self.cones, self._joints = build_cones(problem.whitened, problem.arrays)

    def zeros(self) -> ScaledImpulses:
        """No impulse."""
        return ScaledImpulses(np.zeros(len(self.cones.normal)), np.zeros((len(self.cones.mu), 2)))

    def scale(self, normal: Array, tangent: Array, box: Array) -> ScaledImpulses:
        """Impulses [N s] of normals (nc,), tangents (nc, 2) and boxes (nb,), within their cones."""
        return ScaledImpulses(*from_impulses(self.cones, normal, tangent, box))

    def unscale(self, impulses: ScaledImpulses) -> tuple[Array, Array, Array, Array]:
        """(normal (nc,), tangent (nc, 2), joint (nj,), box (nb,)) impulses [N s]."""
        found: tuple[Array, Array, Array, Array] = to_impulses(
            self.problem.whitened, self.cones, self._joints, *impulses
        )
        return found
