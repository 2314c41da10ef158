"""The memory that steps work in: allocated once per simulator, handed to kernels by address.

The solvers' workspace, the certificate's and the step's own are packed into one list of addresses
(`kernels/packing.py`), the solvers' first, so that their stages find what is theirs. The arrays
live as long as their `Workspace` does, and a `Workspace` is used by one thread at a time.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.gyroscopic import scratch, standalone
from stiction.bridge.mass import skyline_of, tree_starts
from stiction.bridge.rows import Key, Place
from stiction.contact.certificate import grading
from stiction.contact.certificate.laws import ENTRIES, Table
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import DATA, ROWS
from stiction.contact.problem.soft_rows import MOST_SOFT_ROWS
from stiction.contact.solvers.blocks.workspace import Room, SolverWorkspace
from stiction.kernels.packing import pack, packed, unpacker
from stiction.kernels.tree import set_parents

Indices = NDArray[np.int64]


class Count(IntEnum):
    """Entries of `Step.counts`."""

    BLOCKS = 0
    OLD = 1
    """Blocks of the step before, whose impulses are the guess; 0 where there is none."""
    ITERATIONS = 2
    FACTORIZATIONS = 3
    ATTEMPTS = 4
    """Of the interior point, on the island that needed most; 0 if the last step's impulses were
    enough of a start everywhere."""
    DONE = 5
    """Steps taken by this call."""
    NEED_BLOCKS = 6
    NEED_ENTRIES = 7
    PROJECTED = 8
    """1 if overlap was pushed out."""
    DOF = 9
    """Degree of freedom at which the mass is not positive, or -1."""
    ISLANDS = 10
    """That something ran into."""
    HARD = 11
    """Of these, those that the interior point answered."""
    SAME = 12
    """1 if nothing had changed since the step before, whose answer was taken."""
    SEEN = 13
    """A `Seen`."""
    WATCHED = 14
    """1 if a callback or plugin may do what the state does not tell: every step is taken."""
    RESTS = 15
    """1 if the last step left positions and velocities as they were, with no overlap to take
    back: the next one, if nothing else changes, is the same."""
    LEFT_OUT = 16
    """Contacts ahead that the step is solved without (`bridge/ahead.py`)."""
    ROUNDS = 17
    """Solves of this step whose answer was looked at for such contacts."""
    ANSWERED = 18
    """Blocks of `Step.answer`; 0 where the step is solved for the first time."""
    DEADLINE = 19
    """Tick by which the step is to be done."""
    SOLVED_AT = 20
    """Tick at which its solve ended, or was to end."""
    REST = 21
    """Ticks that the last steps took after that."""
    WHIRLS = 22
    """1 if a tree turns fast (`whirling.py`)."""
    LED_ROWS = 23
    """Blocks up to the last one that a mocap body leads (`led.py`)."""
    GRIPPED = 24
    """Contacts that the overlap's problem grips (`finish.py`)."""
    CORRECTED = 25
    """1 if the last step took overlap back, or bent paths, and `Step.origin` tells where from."""


class Seen(IntEnum):
    """What `Step.seen` holds of the last step."""

    NOTHING = 0
    ALL = 1
    """What it began with, and what it wrote into the data at hand."""
    INPUTS = 2
    """What it began with; its data is another one, or was written to since."""


class Figure(IntEnum):
    """Entries of `Step.figure`, of the last step."""

    WORST = 0
    RESIDUAL = 1
    ENERGY = 2
    """Kinetic energy after less that of the free motion [J]."""
    GAP = 3
    """Least distance at a contact or limit, before the step [m]."""
    LIMITS = 4
    """Least margin of joints in this step: solves before have shown what they may pass [m, rad]."""


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
    SAME = 11
    """Steps that had nothing new to solve."""


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
    BUILT = 19
    """What answered its island (`Request.built`)."""
    CORRECTION = 20
    """This and the next two: impulses that took overlap back, along the first rows."""
    INPUTS = 23
    """Digest of its island (`Request.inputs`)."""
    JAMMED = 24
    """Steps in a row that its island's overlap was not taken back whole."""
    GRIPPED = 25
    """Impulse per speed of the tangents that its overlap's problem grips, since the paths of a step
    bend (`bridge/arcs.py`), else 0."""


RECORDS = int(Record.GRIPPED) + 1


class Answer(IntEnum):
    """Columns of `Step.answer`: what the step's next solve needs of this one's blocks."""

    FIRST = 0
    """This and the next two: `Key` of the block, which is the same in all solves of a step."""
    BUILT = 3
    """What answered its island (`Request.built`)."""
    IMPULSE = 4
    """This and the next five: impulses along its rows."""


ANSWERS = int(Answer.IMPULSE) + ROWS


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


@packed
class Step(NamedTuple):
    """What one step needs beside its problem."""

    counts: Indices  # (Count,)
    figure: Array  # (Figure,)
    total: Array  # (Total,)
    ticks: Indices  # (Stage,) of this call
    spent: Indices  # (Stage,) of all calls before it
    key: Indices  # (cap, Key)
    place: Array  # (cap, Place)
    record: Array  # (cap, RECORDS) of the last step
    answer: Array  # (cap, ANSWERS) of this step's last solve, where it is solved anew
    correction: Array  # (cap,) impulses that pushed overlap out in the last step
    jammed: Array  # (cap,) `Record.JAMMED` of the last step
    factor: Array  # of the mass, as its skyline
    yields: Array  # (MOST_SOFT_ROWS, nv) scratch of `contact/problem/soft_rows.py`
    v_plus: Array  # (nv,)
    motion: Array  # (nv,) by which positions move, before overlap is taken back
    still: Array  # (nv,) speeds below which degrees of freedom stand still (`standstill.py`)
    qpos: Array  # (nq,)
    released: Indices  # (nactuator,) a `Release` each (`bridge/servos.py`)
    seen: Array  # state and inputs that the last step began with, and what it wrote
    origin: Array  # (2 nq + nv) where the last step moved from, where to, and with which velocity
    free: Indices  # (n, 2) of `gyroscopic.standalone`
    small: Array  # (6, 3, 3), this and the next four: `gyroscopic.scratch`
    six: Array  # (6, 6)
    rate: Array  # (6, 3)
    x: Array  # (6, 1)
    block: Array  # (21,)
    fast: Indices  # (ntree,), this and the next five: `whirling.py`
    energy: Array  # (ntree,)
    past: Array  # (nbody, 7)
    gravity: Array  # (nbody, 6)
    coriolis: Array  # (2, nv)
    coriolis_speed: Array  # (2, nv)
    reach: Array  # (nbody, 6) velocity of each body in free motion, as cvel
    live: Indices  # (ntree,), this and the next two: scratch of `bridge/ahead.py`
    depth: Array  # (ntree,)
    kick: Array  # (ntree,)
    restitution: Array  # (ngeom,)
    impact: Array  # (cap, ROWS) impulses of the impacts before the step, where contacts bounce
    kept: Array  # (cap, DATA) of the step, during its impacts, and while overlap is taken back


_DONE, _BLOCKS = int(Count.DONE), int(Count.BLOCKS)


class Told(NamedTuple):
    """What a report tells of a step."""

    counts: Indices  # (Count,)
    figure: Array  # (Figure,)
    ticks: Indices  # (Stage,)
    table: Table
    record: Array  # (blocks, RECORDS)


_PARTS = np.cumsum([0, len(Count), len(Figure), len(Stage), ENTRIES, ENTRIES, ENTRIES]).tolist()
_BEFORE_RECORDS = _PARTS[-1]


def read_told(memory: Array) -> Told:
    """The parts of a memory (n,), which is one piece so that it is copied at once."""
    counts, figure, ticks, value, scaled, where = (
        memory[begin:end] for begin, end in pairwise(_PARTS)
    )
    return Told(
        counts.view(np.int64),
        figure,
        ticks.view(np.int64),
        Table(value, scaled, where.view(np.int64)),
        memory[_BEFORE_RECORDS:].reshape(-1, RECORDS),
    )


class Layout(NamedTuple):
    """What a model's mass looks like, which takes a while to find out."""

    first: Indices  # (nv,) this and the next two: `skyline_of`
    row: Indices  # (nv,)
    entries: int
    free: Indices  # (n, 2) of `gyroscopic.standalone`


PER_BODY, PER_TREE = 16, 8
"""Contacts of a body with joints, and neighbours of a tree of bodies after elimination, that there
is room for at first: a heap of boxes has five contacts each, links of a chain that falls in upon
itself six. Room that is not used takes no memory, and to grow takes 1 to 50 ms: that chain, of 50
links, grew six times, and its slowest steps were these."""


def first_room(model: mujoco.MjModel) -> Room:
    """Room that a model of many bodies will need, so that it seldom grows."""
    least, size = Room(), model.nv // max(model.ntree, 1)
    blocks = max(least.blocks, PER_BODY * int(np.count_nonzero(model.body_dofnum)))
    fill = max(least.fill, PER_TREE * model.ntree)
    wide = min(model.nv, 2 * int(model.tree_dofnum.max(initial=0)))  # of two trees at most
    return Room(
        blocks,
        blocks * max(least.entries // least.blocks, 3 * wide),
        2 * blocks,
        blocks,
        fill,
        max(least.fill_entries, fill * size * size),
    )


class Workspace:
    """Arrays for a model, and for so many blocks and entries."""

    def __init__(
        self, model: mujoco.MjModel, room: Room | None = None, layout: Layout | None = None
    ) -> None:
        self.room = first_room(model) if room is None else room
        self.layout = Layout(*skyline_of(model), standalone(model)) if layout is None else layout
        cap, nv, skyline = self.room.blocks, model.nv, self.layout.entries
        self.solver = SolverWorkspace(tree_starts(model), skyline, self.room)
        self.blocks, self.newton = self.solver.blocks, self.solver.newton
        set_parents(self.solver.graph.tree, model.dof_parentid, tree_starts(model))
        self.blocks.first[:], self.blocks.row[:] = self.layout.first, self.layout.row
        self._told = np.zeros(_BEFORE_RECORDS + cap * RECORDS)
        told = read_told(self._told)
        told.table.where[:] = -1
        self.grading = grading.allocate(nv, cap)._replace(table=told.table)
        self.step = Step(
            told.counts,
            told.figure,
            np.zeros(len(Total)),
            told.ticks,
            np.zeros(len(Stage), np.int64),
            np.zeros((cap, len(Key)), np.int64),
            np.zeros((cap, len(Place))),
            told.record,
            np.zeros((cap, ANSWERS)),
            np.zeros(cap),
            np.zeros(cap),
            np.zeros(skyline),
            np.zeros((MOST_SOFT_ROWS, nv)),
            np.zeros(nv),
            np.zeros(nv),
            np.zeros(nv),
            np.zeros(model.nq),
            np.zeros(model.nactuator, np.int64),
            np.zeros(state_size(model)),
            np.zeros(2 * model.nq + model.nv),
            self.layout.free,
            *scratch(),
            np.zeros(model.ntree, np.int64),
            np.zeros(model.ntree),
            np.zeros((model.nbody, 7)),
            np.zeros((model.nbody, 6)),
            np.zeros((2, nv)),
            np.zeros((2, nv)),
            np.zeros((model.nbody, 6)),
            np.zeros(model.ntree, np.int64),
            np.zeros(model.ntree),
            np.zeros(model.ntree),
            np.zeros(model.ngeom),
            np.zeros((cap, ROWS)),
            np.zeros((cap, DATA)),
        )
        self._packed = pack(*self.solver.tuples, self.grading, self.step)
        self.address = int(self._packed.ctypes.data)

    def copy_told(self) -> Array:
        """What a report tells of the last step, for `read_told`. Written for calls of single steps:
        each of them asks for it if somebody has the report before."""
        return self._told[: _BEFORE_RECORDS + RECORDS * self.step.counts.item(_BLOCKS)].copy()

    @property
    def taken(self) -> int:
        """Steps that the last call took."""
        return int(self.step.counts[_DONE])

    def grown(self, model: mujoco.MjModel) -> Workspace:
        """A larger one, for what the step at hand needs, with the guess and the statistics."""
        counts = self.step.counts
        counted = (int(counts[Count.NEED_BLOCKS]), int(counts[Count.NEED_ENTRIES]))
        larger = Workspace(model, self.room.needed(counted, self.solver.graph), self.layout)
        larger.carry_over(self)
        return larger

    def with_room(self, model: mujoco.MjModel, blocks: int) -> Workspace:
        """Another one, for so many blocks or more, with the guess and the statistics."""
        room = self.room if blocks <= self.room.blocks else self.room._replace(blocks=2 * blocks)
        larger = Workspace(model, room)
        larger.carry_over(self)
        return larger

    def carry_over(self, other: Workspace) -> None:
        """Takes the guess and the statistics of a smaller workspace over."""
        old = int(other.step.counts[Count.OLD])
        self.step.counts[:] = other.step.counts
        self.step.total[:] = other.step.total
        self.step.ticks[:] = other.step.ticks
        self.step.spent[:] = other.step.spent
        self.step.seen[:] = other.step.seen
        self.step.origin[:] = other.step.origin
        self.step.record[:old] = other.step.record[:old]
        self.step.restitution[:] = other.step.restitution
        self.step.released[:] = other.step.released


def state_size(model: mujoco.MjModel) -> int:
    """Numbers that a step begins with (state, controls, applied forces, mocap bodies), and those
    that show whether somebody has written over what it left."""
    begins = model.nq + 2 * model.nv + model.na + model.nu + 6 * model.nbody + 7 * model.nmocap
    return begins + 2 * model.nv


_example = Workspace(mujoco.MjModel.from_xml_string("<mujoco/>"))
unpack_step = unpacker(_example.grading, _example.step, after=_example.solver.tuples)
"""(GradingWorkspace, Step) of `Workspace.address`; what the solvers have is unpacked by theirs."""
