"""Articulated bodies: how links accelerate under forces on them, by assembly and disassembly.

The matrix and the bias of Yamane & Nakamura (2009), eqs. (9) and (10), and the forward dynamics
that belong to them, linear in the number of links. Equations (11) to (16), from links to contact
points, are a Jacobian's: rows of contact points times the six coordinates of their links.
"""

from stiction.articulated.interface import accelerations, inverse_inertia

__all__ = ["accelerations", "inverse_inertia"]


def __dir__() -> list[str]:
    return __all__
