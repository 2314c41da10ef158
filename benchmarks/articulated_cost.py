"""Which way to the inverse inertia of some bodies costs less: assembly, or the factor of M.

The other way takes the bodies' Jacobians (6k, nv), divides them by MuJoCo's sparse factor of the
mass matrix (mj_solveM2) and multiplies the result with itself. MuJoCo has that factor ready after
mj_fwdPosition, for its own use; where it is not, its price counts as well.

Measured on one core: for robots of 13 to 56 links the factor is 4 to 14 times cheaper, and so it is
for trees of any size that spread out. Long chains are for assembly: from about 950 links on with
two bodies, 350 with eight, 90 with 32; from 250, 200 and 85 if the factor has to be made.

Each cost is a sum of terms with a time each, fitted by `benchmarks/articulated_scaling.py` to what
it measures. Only ratios matter here, and they change less between machines than the times do: both
ways are small dense loops on one core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.articulated.interface import handle_bodies
from stiction.articulated.links import STATIC, number_links
from stiction.articulated.order import order_of_assembly

Array = NDArray[np.float64]

ASSEMBLY = (8.7, 2.0, 0.068)
"""Time [us] of a call, of a link, of a block of a part's matrix."""

FACTORIZED = (3.4, 1.1, 2.4e-3, 6.3e-4, 2.3e-5)
"""Time [us] of a call, of a body, of an entry of J, of a row of J times an entry of M that it
meets, of an entry of J times a row of J."""

FACTORIZATION = (0.38, 9.4e-5)
"""Time [us] of mj_factorM: of a call, and of the square of a row's entries in M."""


class Work(NamedTuple):
    """What is to be done for some bodies: how often each of the times above is spent."""

    assembly: Array
    factorized: Array
    factorization: Array


def work(model: mujoco.MjModel, bodies: Sequence[int | str]) -> Work:
    """The counts for `bodies`, as `inverse_inertia` takes them, without loops."""
    handles = handle_bodies(model, bodies)
    link, parent = number_links(model.body_parentid, model.body_weldid, model.body_dofnum)
    links = len(parent)
    wanted = np.zeros(links, np.int64)
    wanted[link[handles[link[handles] != STATIC]]] = 1
    ends = np.column_stack([parent, np.arange(links)])
    order = order_of_assembly(ends, np.zeros(links, np.int64), wanted, 0)
    rows, nv = 6 * len(handles), model.nv
    path = _entries_of_path(model)  # of the factor, that a row of J meets: the rest is skipped
    return Work(
        np.array([1.0, len(order.join), order.square[-1]]),
        np.array([1.0, len(handles), rows * nv, 6 * path[handles].sum(), rows * rows * nv]),
        np.array([1.0, np.square(model.M_rownnz, dtype=float).sum()]),
    )


def _entries_of_path(model: mujoco.MjModel) -> Array:
    """(nbody,) entries of M in the rows of the degrees of freedom that move a body."""
    entries = np.zeros(model.nbody)
    for body in range(1, model.nbody):
        first, count = model.body_dofadr[body], model.body_dofnum[body]
        own = model.M_rownnz[first : first + count].sum() if count else 0
        entries[body] = entries[model.body_parentid[body]] + own
    return entries
