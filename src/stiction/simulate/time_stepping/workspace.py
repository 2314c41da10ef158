"""The memory that steps work in: allocated once per simulator, handed to kernels by address.

A kernel that takes fifty arrays spends microseconds on unpacking them. These are packed into one
array of addresses; inside, `unpack` makes views that no reference count is kept for. The arrays
live as long as their `Workspace` does, and a `Workspace` is used by one thread at a time.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numba.np.numpy_support import carray
from numpy.typing import NDArray

from stiction.bridge.gyroscopic import scratch, standalone
from stiction.bridge.layout import as_pointer
from stiction.bridge.rows import Key, Place
from stiction.contact.certificate import block_grading
from stiction.contact.certificate.block_grading import GradingWorkspace
from stiction.contact.certificate.grading import Table
from stiction.contact.problem import blocks
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import ROWS, Blocks
from stiction.contact.solvers import proximal
from stiction.contact.solvers.proximal import NewtonWorkspace
from stiction.kernels.compile import kernel, leaf

Indices = NDArray[np.int64]


class Count(IntEnum):
    """Entries of `Step.counts`."""

    BLOCKS = 0
    OLD = 1
    """Blocks of the step before, whose impulses are the guess; 0 where there is none."""
    ITERATIONS = 2
    FACTORIZATIONS = 3
    ATTEMPTS = 4
    """Starts from rest that the solve took; 0 if the last step's modes were enough of a start, -1
    if its impulses had to be built upon."""
    DONE = 5
    """Steps taken by this call."""
    NEED_BLOCKS = 6
    NEED_ENTRIES = 7
    PROJECTED = 8
    """1 if overlap was pushed out."""
    DOF = 9
    """Degree of freedom at which the mass is not positive, or -1."""


class Figure(IntEnum):
    """Entries of `Step.figure`, of the last step."""

    WORST = 0
    RESIDUAL = 1
    ENERGY = 2
    """Kinetic energy after less that of the free motion [J]."""
    GAP = 3
    """Least distance at a contact or limit, before the step [m]."""
    LEFT = 4
    """Overlap that could not be pushed out [m]."""


class Total(IntEnum):
    """Entries of `Step.total`, over all steps since the statistics were reset."""

    STEPS = 0
    CONTACTS = 1
    ITERATIONS = 2
    FACTORIZATIONS = 3
    WARM = 4
    PROJECTED = 5
    WORST = 6
    GAP = 7
    ENERGY = 8
    MOST_CONTACTS = 9
    MOST_ITERATIONS = 10


class Record(IntEnum):
    """Columns of `Step.record`: what is kept of a block after its step, all as numbers."""

    FIRST = 0
    """This and the next: `Key` of the block."""
    SECOND = 1
    INDEX = 2
    GAP = 3
    RATIO = 4
    ROLL_RATIO = 5
    X = 6
    """This and the next two: where it is [m]."""
    FORCE = 9
    """This and the next five: impulses along its rows."""
    SLIP = 15
    """This and the next: speeds along rows 1 and 2 [m/s]."""
    MODE = 17
    FRICTION = 18


RECORDS = 19


class Stage(IntEnum):
    """Entries of `Step.ticks`: where a step's time goes."""

    SMOOTH = 0
    """Kinematics, inertia, actuators and passive forces, by MuJoCo."""
    COLLISION = 1
    """Collisions, constraint rows, derivatives and sensors, by MuJoCo."""
    ROWS = 2
    """From MuJoCo's rows to blocks."""
    SOLVE = 3
    CERTIFY = 4
    ADVANCE = 5
    """Forces and sensors written, overlap pushed out, state integrated."""


class Step(NamedTuple):
    """What one step needs beside its problem."""

    counts: Indices  # (Count,)
    figure: Array  # (Figure,)
    total: Array  # (Total,)
    ticks: Indices  # (Stage,)
    key: Indices  # (cap, Key)
    place: Array  # (cap, Place)
    record: Array  # (cap, RECORDS) of the last step
    factor: Array  # (nv, nv) of the mass
    v_free: Array  # (nv,)
    v_plus: Array  # (nv,)
    qpos: Array  # (nq,)
    free: Indices  # (n, 2) of `gyroscopic.standalone`
    small: Array  # (6, 3, 3), this and the next four: `gyroscopic.scratch`
    six: Array  # (6, 6)
    rate: Array  # (6, 3)
    x: Array  # (6,)
    block: Array  # (21,)
    reach: Array  # (nbody, 6) velocity of each body in free motion, as cvel


ARRAYS = 47
"""Of a workspace, in the order in which `unpack` takes them."""


class Workspace:
    """Arrays for a model, and for so many blocks and entries."""

    def __init__(self, model: mujoco.MjModel, cap: int, entries: int) -> None:
        self.cap, self.entries = cap, entries
        nq, nv, nbody, free = model.nq, model.nv, model.nbody, standalone(model)
        self.blocks = blocks.allocate(nv, cap, entries)
        self.newton = proximal.allocate(nv, cap)
        self.grading = block_grading.allocate(nv, cap)
        self.step = Step(
            np.zeros(len(Count), np.int64),
            np.zeros(len(Figure)),
            np.zeros(len(Total)),
            np.zeros(len(Stage), np.int64),
            np.zeros((cap, len(Key)), np.int64),
            np.zeros((cap, len(Place))),
            np.zeros((cap, RECORDS)),
            np.zeros((nv, nv)),
            np.zeros(nv),
            np.zeros(nv),
            np.zeros(nq),
            free,
            *scratch(),
            np.zeros((nbody, 6)),
        )
        arrays: list[NDArray[Any]] = [*self.blocks, *self.newton]
        arrays += [*self.grading.table, *self.grading[1:], *self.step]
        places = [array.__array_interface__["data"][0] for array in arrays]
        assert len(places) == ARRAYS, "`unpack` numbers the arrays"
        self._table = np.array([nq, nv, cap, entries, len(free), nbody, *places], np.int64)
        self.address = int(self._table.ctypes.data)

    def carry_over(self, other: Workspace) -> None:
        """Takes the guess and the statistics of a smaller workspace over."""
        old = int(other.step.counts[Count.OLD])
        self.step.counts[:] = other.step.counts
        self.step.total[:] = other.step.total
        self.step.record[:old] = other.step.record[:old]


@leaf
def _floats(address, shape):
    return carray(as_pointer(address), shape, np.float64)


@leaf
def _ints(address, shape):
    return carray(as_pointer(address), shape, np.int64)


TABLE = 6 + ARRAYS
"""Sizes and addresses that `Workspace.address` points to."""
COUNTS, FIGURES, TOTALS, STAGES = len(Count), len(Figure), len(Total), len(Stage)
KEYS, PLACES = len(Key), len(Place)
ENTRIES = 9
"""Lines of a certificate's table."""


@kernel
def unpack(address):
    """(Blocks, NewtonWorkspace, GradingWorkspace, Step) of `Workspace.address`.

    The address, not the table: a kernel that MuJoCo's errors jump back into (`bridge/guard.py`) may
    not hold what is counted by references.
    """
    a = _ints(address, (TABLE,))
    nq, nv, cap, entries, free, nbody = a[0], a[1], a[2], a[3], a[4], a[5]
    b = Blocks(
        _ints(a[6], (cap, blocks.HEADS)), _floats(a[7], (cap, blocks.DATA)),
        _ints(a[8], (entries,)), _floats(a[9], (entries,)), _floats(a[10], (nv, nv)),
        _ints(a[11], (nv,)), _floats(a[12], (nv,)), _floats(a[13], (nv,)),
    )  # fmt: skip
    newton = NewtonWorkspace(
        _floats(a[14], (cap, ROWS)), _floats(a[15], (cap, ROWS)), _floats(a[16], (cap, ROWS)),
        _floats(a[17], (cap, ROWS)), _floats(a[18], (cap, ROWS)), _floats(a[19], (cap, ROWS)),
        _floats(a[20], (cap, 5)),
        carray(as_pointer(a[21]), (cap, ROWS - 1), np.int8), _floats(a[22], (nv, nv)),
        _ints(a[23], (nv,)), _floats(a[24], (nv,)), _floats(a[25], (nv,)),
        _floats(a[26], (8, nv)),
    )  # fmt: skip
    table = Table(_floats(a[27], (ENTRIES,)), _floats(a[28], (ENTRIES,)), _ints(a[29], (ENTRIES,)))
    grading = GradingWorkspace(
        table, _floats(a[30], (nv,)), _floats(a[31], (nv,)), _floats(a[32], (cap, ROWS)),
        _floats(a[33], (cap, ROWS)), _floats(a[34], (2, nv)),
    )  # fmt: skip
    step = Step(
        _ints(a[35], (COUNTS,)), _floats(a[36], (FIGURES,)), _floats(a[37], (TOTALS,)),
        _ints(a[38], (STAGES,)), _ints(a[39], (cap, KEYS)), _floats(a[40], (cap, PLACES)),
        _floats(a[41], (cap, RECORDS)), _floats(a[42], (nv, nv)), _floats(a[43], (nv,)),
        _floats(a[44], (nv,)), _floats(a[45], (nq,)), _ints(a[46], (free, 2)),
        _floats(a[47], (6, 3, 3)), _floats(a[48], (6, 6)), _floats(a[49], (6, 3)),
        _floats(a[50], (6,)), _floats(a[51], (21,)), _floats(a[52], (nbody, 6)),
    )  # fmt: skip
    return b, newton, grading, step
