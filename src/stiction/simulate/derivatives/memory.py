"""The memory that derivatives of steps are worked out in, handed to kernels by address."""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact.derivatives.held_rows import allocate_held
from stiction.contact.derivatives.held_system import allocate_solved
from stiction.contact.derivatives.soft_system import allocate_softened
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import ROWS
from stiction.kernels.packing import pack, packed, unpacker
from stiction.kernels.panel import padded
from stiction.simulate.derivatives.bodies import allocate_motion, read_tree
from stiction.simulate.derivatives.contact_products import allocate_change
from stiction.simulate.derivatives.contacts import Slopes
from stiction.simulate.derivatives.geometry import allocate_geometry
from stiction.simulate.derivatives.loads import allocate_load
from stiction.simulate.derivatives.manifold import quaternion_dofs
from stiction.simulate.derivatives.maps import allocate_maps
from stiction.simulate.derivatives.meetings import allocate_meeting
from stiction.simulate.derivatives.smooth import read_springs
from stiction.simulate.derivatives.spinning import allocate_spin

Indices = NDArray[np.int64]


@packed
class Working(NamedTuple):
    """What is read of a step, and worked out; n blocks, m rows, c columns."""

    f: Array  # (n, ROWS) impulses
    u: Array  # (n, ROWS) speeds less bounds
    pushed: Array  # (n, 3) impulses of the correction
    gripped: Indices  # (n,) 1 where that grips, since the paths of the step bend
    drag: Array  # (n,) of the tangents that it grips
    pressed: Indices  # (n,) 1 where a contact holds its normal
    source: Indices  # (n,) the block whose gap a bound is, or -1
    share: Array  # (n,) of the gap that the correction takes back
    deepest: Indices  # (n,) the block that this share depends on, or -1
    lifted: Indices  # (n, 2) block and row, as in `Held`, of what the correction holds
    along: Array  # (n, 2) their directions, which normals have none of
    normal: Array  # (n, nv) their rows, padded
    bend: Array  # (n, 3, nv) of gripped contacts, what paths part by along the rows, by v+
    used: Indices  # (n, ROWS) 1 for rows whose speeds matter
    needed: Indices  # (n,) 1 where a contact of its pair of geoms matters
    sigma: Array  # (nv,) speeds of the problem
    passed: Array  # (n, ROWS)
    correction: Array  # (nv,) w
    acceleration: Array  # (nv,)
    alone: Indices  # (nv,) 1 for free bodies of their own
    turns: Indices  # (k,) first degree of freedom of each quaternion
    rotation: Array  # (2, 3, 3)
    rate: Array  # (nv, c) of v+; columns are padded
    moved: Array  # (nv, c) of w
    wanted: Array  # (nv, c) speeds of the rows that were taken
    wrench: Array  # (m, 6) of held rows, about a point of their pair
    left: Array  # (m,)
    right: Array  # (nv, c)


class Transition:
    """The memory that a model's derivatives are worked out in, for so many blocks."""

    def __init__(self, model: mujoco.MjModel, free: Indices, blocks: int) -> None:
        m, n, nv, na, nu = model, blocks, model.nv, model.na, model.nu
        self.blocks = blocks
        columns, rows = padded(2 * nv + na + nu), ROWS * n
        alone = np.zeros(nv, np.int64)
        for dof, _ in free:
            alone[dof : dof + 6] = 1
        motions = [allocate_motion(m.nbody, nv) for _ in range(4)]
        held = allocate_held(nv, rows)
        working = Working(
            np.zeros((n, ROWS)), np.zeros((n, ROWS)), np.zeros((n, 3)), np.zeros(n, np.int64),
            np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n),
            np.zeros(n, np.int64), np.zeros((n, 2), np.int64), np.zeros((n, 2)),
            np.zeros((n, padded(nv))), np.zeros((n, 3, nv)), np.zeros((n, ROWS), np.int64),
            np.zeros(n, np.int64), np.zeros(nv), np.zeros((n, ROWS)), np.zeros(nv), np.zeros(nv),
            alone, quaternion_dofs(m),
            np.zeros((2, 3, 3)), np.zeros((nv, columns)), np.zeros((nv, columns)),
            np.zeros((nv, columns)), np.zeros((rows, 6)), np.zeros(rows),
            np.zeros((nv, columns)),
        )  # fmt: skip
        slopes = Slopes(
            np.zeros((nv, nv)), np.zeros((nv, nv)), np.zeros((nv, na)), np.zeros((nv, nu)),
            np.zeros((n, ROWS, nv)), np.zeros((n, nv)), np.zeros((nv, padded(nv))),
            np.zeros((n, 3, nv)),
            np.zeros((na, na)), np.zeros((na, nu)),
        )  # fmt: skip
        self._tuples: Any = (
            (held, working),
            (
                read_tree(m), *motions, allocate_spin(), allocate_meeting(nv), allocate_maps(n),
                allocate_geometry(n), read_springs(m), *(allocate_load(m.nbody) for _ in range(2)),
            ),
            (
                slopes, allocate_solved(nv, rows), allocate_change(nv, n),
                allocate_softened(nv, 2 * nv + na + nu),
            ),
        )  # fmt: skip
        self._packed = pack(*self._tuples)
        self.address = int(self._packed.ctypes.data)

    @property
    def slopes(self) -> Slopes:
        """What was worked out last."""
        found: Slopes = self._tuples[2][0]
        return found


_example = Transition(mujoco.MjModel.from_xml_string("<mujoco/>"), np.zeros((0, 2), np.int64), 1)
_working, _problem, _solution = _example._tuples
unpack_working = unpacker(*_working)
"""(Held, Working) of `Transition.address`."""
unpack_bodies = unpacker(*_problem, after=_working)
"""(Tree, Motion at v+, at the correction and two more, at v or at gradients, Spin, Meeting, Maps,
Geometry, Springs, Load of contacts and of the correction)"""
unpack_solution = unpacker(*_solution, after=(*_working, *_problem))
"""(Slopes, Solved, Change, Softened)"""
