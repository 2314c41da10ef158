"""Bodies of geoms, and the motions of points on them.

MuJoCo tells a body's motion, as `cvel` and `cdof` do, about the centre of mass of its whole tree.
"""

from __future__ import annotations

from stiction.bridge.layout import entry, numbers, offset, pointer
from stiction.kernels.compile import leaf
from stiction.kernels.triples import minus, three_of, velocity_at

_GEOM_BODY, _ROOT = offset("mjModel", "geom_bodyid"), offset("mjModel", "body_rootid")
_RBOUND, _COM = offset("mjModel", "geom_rbound"), offset("mjData", "subtree_com")


@leaf
def body_of_geom(m, geom):
    """Number of its body."""
    return entry(m + _GEOM_BODY, geom)


@leaf
def smaller_radius(m, first, second):
    """Radius of the smaller of two geoms [m]; a plane has none."""
    rbound = pointer(m + _RBOUND)
    small, large = numbers(rbound + 8 * first, 1)[0], numbers(rbound + 8 * second, 1)[0]
    if small <= 0.0 or (large > 0.0 and large < small):
        small = large
    return small


@leaf
def centre_of_tree(m, d, body):
    """Centre of mass of the whole tree that a body is of, as three numbers [m]."""
    com = numbers(pointer(d + _COM) + 24 * entry(m + _ROOT, body), 3)
    return com[0], com[1], com[2]


@leaf
def motion_at(m, d, body, speeds, at):
    """(angular velocity, velocity of the point at (3,)) of a body [rad/s, m/s]; speeds (nbody, 6)
    as cvel."""
    w, v = three_of(speeds, body, 0), three_of(speeds, body, 3)
    return w, velocity_at(v, w, minus(at, centre_of_tree(m, d, body)))
