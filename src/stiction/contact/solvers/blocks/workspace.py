"""The memory that the solvers of a problem by blocks work in, packed for their stages.

Allocated once for so many blocks and entries; `Room.needed` tells what a problem needs beyond it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.contact.problem import blocks, graph
from stiction.contact.problem.arrays import Array
from stiction.contact.problem.blocks import ROWS
from stiction.contact.problem.graph import Graph, Size
from stiction.contact.solvers.interior_point.columns import COLUMNS, PATH_COLUMNS
from stiction.kernels import sparse
from stiction.kernels.packing import pack, packed, unpacker

Indices = NDArray[np.int64]


class Setting(IntEnum):
    """Entries of `Request.setting`."""

    LAW = 0
    """A `Law`."""
    FACETS = 1
    """Of the friction polygon; 0 for the exact cone."""
    WARM = 2
    """A `Guess`, that is tried first."""
    DEADLINE = 3
    """Tick after which no further attempt is begun, and no further iteration of one."""
    MENDED = 4
    """1 if `islands/patches.py` stands behind: then no attempt from nothing is made on a heap where
    what is at hand can be mended, and no path that turns."""
    FACTORIZATIONS = 5
    """Count, written by the solvers."""
    DIGITS = 6
    """Digits of the overlap's correction that are wanted, of which most are enough on islands that
    are not small (`coarse.py`); 0 where all of an answer is."""
    LATEST = 7
    """Tick at which sweeps end that make up for attempts past the deadline."""
    BRIEF = 8
    """1 if of all paths that turn only the first is followed."""


class Guess(IntEnum):
    """What `Request.guess` is."""

    NONE = 0
    """Nothing."""
    LAST_STEP = 1
    """Impulses of the step before, to the velocity that this one begins with."""
    NEAR = 2
    """Impulses and velocity that answer all but a few contacts of this very problem."""
    ALIKE = 3
    """Impulses of a problem like this one; no later one asks whether it was the same."""


ENDLESS = 2**62
"""Deadline that never comes."""


class Outcome(IntEnum):
    """Columns of `Request.outcome`: what came of an island."""

    RESIDUAL = 0
    """Of Alart and Curnier's functions and of the momentum, relative to the load."""
    FACTORIZATIONS = 1
    RUNG = 2
    """A `Rung`."""
    ATTEMPTS = 3
    """Of the interior point; 1 where the guess is near, and its answer."""
    LOAD = 4
    """How hard the free motion runs into it, by energy [sqrt(J)]."""


class Rung(IntEnum):
    """What answered an island."""

    NONE = 0
    """Nothing ran into it."""
    MODES = 1
    """Newton's method from the modes of the last step's impulses."""
    IMPULSES = 2
    """Newton's method from the last step's impulses themselves."""
    INTERIOR_POINT = 3


@packed
class System(NamedTuple):
    """The linear system of an island (`system.py`)."""

    D: Array  # (cap, ROWS * ROWS) response of each block, by rows of ROWS
    change: Array  # (cap, ROWS) A x
    pull: Array  # (cap, ROWS) -D A x
    x: Array  # (nv,) solution
    rhs: Array  # (nv,) right side, kept for refinement
    left: Array  # (nv,) what a solution leaves of it
    scratch: Array  # (ROWS, nv) rows of D A of one block


@packed
class NewtonWorkspace(NamedTuple):
    """Newton's method (`proximal/`), and where answers are."""

    f: Array  # (cap, ROWS) impulses
    g: Array  # (cap, ROWS) impulses that the modes give at the speeds u
    u: Array  # (cap, ROWS) speeds less bounds
    weight: Array  # (cap, ROWS) inverse inertia of each row, of rows 1 and 2 the larger one
    shape: Array  # (cap, 5) of a sliding disc: direction, factor of f_n, stiffness across; and
    # the impulse that a normal would have had if it had not separated
    mode: NDArray[np.int8]  # (cap, ROWS - 1) of the normal, the disc of rows 1, 2, rows 3, 4, 5
    past: NDArray[np.int8]  # (cap, ROWS - 1) modes of the iteration before
    best_f: Array  # (cap, ROWS) impulses of the best iterate
    best_v: Array  # (nv,) and its velocity
    v: Array  # (nv,)


@packed
class InteriorWorkspace(NamedTuple):
    """The interior point (`interior_point/`)."""

    unit: NDArray[np.int8]  # (cap, 3) `Unit` of row 0, of rows 1 and 2 (of a cone NONE), of 3..5
    state: Array  # (cap, COLUMNS) of `interior_point/columns.py`
    f: Array  # (cap, ROWS) impulses
    u: Array  # (cap, ROWS) speeds
    z: Array  # (cap, ROWS) change of f without a change of velocity
    v: Array  # (nv,)
    r: Array  # (nv,) momentum left
    path: Array  # (cap, PATH_COLUMNS) of a path that may turn (`interior_point/continuation.py`)
    tangent_v: Array  # (nv,) velocity along it
    kept_v: Array  # (nv,) velocity that it was at
    r_start: Array  # (nv,) momentum left at its start, taken negative
    best_f: Array  # (cap, ROWS)
    best_v: Array  # (nv,)


@packed
class Request(NamedTuple):
    """What is asked, and what came of it."""

    setting: Indices  # (Setting,)
    v_free: Array  # (nv,)
    guess: Array  # (cap, ROWS) impulses to start from
    start: Array  # (nv,) and the velocity; the caller's of a guess that is NEAR
    built: (
        Array  # (cap,) `Rung` that answered the block's island, of the guess, then of the answer;
    )
    # INTERIOR_POINT and the steps in a row before that it had answered, added; for IMPULSES
    # less the steps in a row before that took many factorizations, less 1
    inputs: (
        Array  # (cap,) digest of the island that the guess answered, then of this one's; 0: none
    )
    outcome: Array  # (nodes, Outcome) by island


class Room(NamedTuple):
    """How much of everything a workspace holds."""

    blocks: int = 32
    entries: int = 2048
    """Of the blocks' rows."""
    pieces: int = 64
    couplings: int = 32
    fill: int = 64
    """Blocks of the matrix below its diagonal."""
    fill_entries: int = 2304

    def needed(self, counted: tuple[int, int], graph: Graph) -> Room:
        """Room for what was counted, twice over where there is too little. Pieces and couplings,
        which are not counted yet where there are too many blocks, grow with these."""
        size = graph.size
        need = (
            *counted,
            *(int(size[k]) for k in (Size.PIECES, Size.COUPLINGS, Size.BLOCKS, Size.ENTRIES)),
        )
        room = Room(*(have if n <= have else 2 * n for have, n in zip(self, need, strict=True)))
        return room._replace(
            pieces=max(room.pieces, 2 * room.blocks), couplings=max(room.couplings, room.blocks)
        )


class SolverWorkspace:
    """For nv degrees of freedom in nodes, with their mass of so many entries."""

    def __init__(self, start: Indices, skyline: int, room: Room) -> None:
        nv, cap = int(start[-1]), room.blocks
        nodes = len(start) - 1
        self.room = room
        self.blocks = blocks.allocate(nv, cap, room.entries, skyline)
        self.graph = graph.allocate(start, cap, room.pieces, room.couplings)
        self.matrix = sparse.allocate(start, room.fill, room.fill_entries)
        self.system = _filled(System, nv, cap, {"D": (cap, ROWS * ROWS), "scratch": (ROWS, nv)})
        self.newton = _filled(
            NewtonWorkspace,
            nv,
            cap,
            {"shape": (cap, 5), "mode": (cap, ROWS - 1), "past": (cap, ROWS - 1)},
        )
        self.interior = _filled(
            InteriorWorkspace,
            nv,
            cap,
            {"unit": (cap, 3), "state": (cap, COLUMNS), "path": (cap, PATH_COLUMNS)},
        )
        self.request = Request(
            np.zeros(len(Setting), np.int64),
            np.zeros(nv),
            np.zeros((cap, ROWS)),
            np.zeros(nv),
            np.zeros(cap),
            np.zeros(cap),
            np.zeros((max(nodes, 1), len(Outcome))),
        )
        self.packed = pack(*self.tuples)

    @property
    def tuples(self) -> tuple[Any, ...]:
        """All arrays, in the order in which stages unpack them."""
        return (
            self.blocks, self.graph, self.matrix, self.request, self.system, self.newton,
            self.interior,
        )  # fmt: skip


def _filled(kind: Any, nv: int, cap: int, shapes: dict[str, tuple[int, ...]]) -> Any:
    """A tuple of zeros: vectors are (nv,), what has a row to each impulse (cap, ROWS)."""
    vectors = {"x", "rhs", "left", "v", "best_v", "r", "tangent_v", "kept_v", "r_start"}
    arrays = []
    for name in kind._fields:
        usual = (nv,) if name in vectors and name not in shapes else (cap, ROWS)
        small = name in ("unit", "mode", "past")
        arrays.append(np.zeros(shapes.get(name, usual), np.int8 if small else np.float64))
    return kind(*arrays)


_example = SolverWorkspace(np.array([0, 1]), 1, Room(1, 1, 1, 1, 1, 1))
unpack_problem = unpacker(*_example.tuples[:4])
"""(Blocks, Graph, BlockMatrix, Request) of a packed workspace."""
unpack_newton = unpacker(*_example.tuples[4:6], after=_example.tuples[:4])
"""(System, NewtonWorkspace)."""
unpack_interior = unpacker(*_example.tuples[6:], after=_example.tuples[:6])
"""(InteriorWorkspace,)."""
SLOTS = len(_example.packed)
"""Numbers of a packed workspace."""
