"""Steps of many simulations in compiled code, one after the other, as many threads as call it.

Each thread has a model, a data and a workspace of its own and takes the next simulation that is
due. It loads the simulation (its state, what the last step left as a guess, fields of the model
that are its own), takes its steps, and saves what is kept of them. Nothing of a simulation remains
with the thread, so that results depend neither on the thread nor on what it did before.

`run_simulations` returns to Python where a simulation needs it, with the simulation in the
thread's `Cursor`; called again it goes on from there. A simulation that failed is left as it was:
`Cursor.PHASE` is set to NEXT.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import mujoco
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from stiction.bridge import library as mj
from stiction.bridge.guard import caught, leave
from stiction.bridge.layout import flags, numbers, offset, pointer, size_of, words
from stiction.kernels.clock import ticks
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.stage import call
from stiction.simulate.time_stepping.config import Stop
from stiction.simulate.time_stepping.loop import Slot, begin, slot
from stiction.simulate.time_stepping.workspace import RECORDS, Count, Seen, Total, unpack_step

INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
VELOCITY = int(mujoco.mjtStage.mjSTAGE_VEL)
WARNINGS = int(mujoco.mjtWarning.mjNWARNING) * size_of("mjWarningStat")
"""Bytes of a data's counters of warnings."""

_WARNING = offset("mjData", "warning")
_OPT, _OPT_SIZE = offset("mjModel", "opt"), size_of("mjOption")
_DATA_FLAGS = tuple(
    offset("mjData", f"flg_{name}") for name in ("energypos", "energyvel", "subtreevel", "rnepost")
)

LOOK_EVERY = 32
"""Steps of a simulation between two looks at whether the call is to end."""

_copy = types.ExternalFunction("memcpy", types.intp(types.intp, types.intp, types.uintp))
_compare = types.ExternalFunction("memcmp", types.intc(types.intp, types.intp, types.uintp))


class Job(IntEnum):
    """Entries of a job, which all threads of a call share: numbers, and addresses of arrays."""

    NEXT = 0
    """Position in `IDS` of the simulation that is due."""
    HALT = 1
    """1 if the call is to end before its time."""
    COUNT = 2
    """Simulations of the call."""
    IDS = 3
    """(COUNT,) their numbers."""
    STEPS = 4
    STAGE = 5
    """`mjtStage` that the new state is evaluated to."""
    STATE = 6
    """(nsim, WIDTH) mjSTATE_INTEGRATION."""
    WIDTH = 7
    WARNING = 8
    """(nsim,) `WARNINGS`."""
    MEMORY = 9
    """(nsim, MEMORIES) of `Memory`."""
    RESULT = 10
    """(nsim, RESULTS) of `Result`."""
    OWN = 11
    """(nsim, OWNS) of `Own`; 0 where all simulations have the thread's model."""
    FIELDS = 12
    """(FIELD_COUNT, 4): offset of a field in mjModel, address of its rows, bytes of a row, address
    of the rows that were checked. Options are among `Own.OPTIONS`: their offset is -1."""
    FIELD_COUNT = 13
    OUTPUTS = 14
    """(OUTPUT_COUNT, 4): offset of a field in mjData, whether a pointer stands there, address of
    the rows that it goes to, bytes of a row."""
    OUTPUT_COUNT = 15
    CONTROL = 16
    """(COUNT, STEPS, CONTROL_WIDTH) inputs before each step, or 0."""
    CONTROL_WIDTH = 17
    CONTROL_SPEC = 18
    TRACES = 19
    """(TRACE_COUNT, 4): as OUTPUTS, with a row for each step of each simulation of the call; where
    the second entry is 2 the first one is an mjtState."""
    TRACE_COUNT = 20
    CONTROLLER = 21
    """Address of the address of mjcb_control."""
    SEEN = 22
    """(nsim, its size) of `Step.seen`."""
    ORIGIN = 23
    """The same of `Step.origin`."""


class Memory(IntEnum):
    """What a simulation's next step begins with."""

    ADDRESS = 0
    """(ROOM, RECORDS) of `Step.record`."""
    ROOM = 1
    USED = 2
    RESTS = 3
    """1 if the last step moved nothing, and what it began with is in `Job.SEEN`."""
    CORRECTED = 4
    """1 if it corrected positions, and where it moved from is in `Job.ORIGIN`."""


class Result(IntEnum):
    """What came of a simulation's last call."""

    WORST = 0
    """Largest certificate of its steps."""
    PIVOTS = 1
    """Of all its steps."""
    STEPS = 2
    WARM = 3
    """Steps for which the last one's impulses were enough of a start."""
    RUNG = 4
    """0, or the number that Python gave the way that answered."""
    CONTACTS = 5
    """Of the last step."""


class Own(IntEnum):
    """What is a simulation's own because fields of its model are."""

    READY = 0
    """1 if the entries below are those of the fields as they are."""
    MODEL = 1
    """A model of its own, or 0."""
    CONFIG = 2
    OPTIONS = 3
    GROUND = 4


class Cursor(IntEnum):
    """Where a thread is."""

    PHASE = 0
    """A `Phase`."""
    AT = 1
    """Position in `Job.IDS`."""
    TAKEN = 2
    """Steps of the simulation that were taken."""
    SOLVED = 3
    """1 if the next step is only to be finished."""
    RUNG = 4
    """`Result.RUNG` of the steps so far."""
    DEADLINE = 5
    """Tick after which the thread looks for signals."""


class Phase(IntEnum):
    """What a thread does next."""

    NEXT = 0
    LOAD = 1
    STEP = 2
    SAVE = 3
    END = 4


MEMORIES, RESULTS, OWNS = len(Memory), len(Result), len(Own)
CURSORS, SLOTS = len(Cursor), len(Slot)


def _take_next(typingctx: Any, address: Any) -> Any:
    """The integer there, which grows by one: no two threads get the same."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        return builder.atomic_rmw(
            "add", builder.inttoptr(args[0], word.as_pointer()), word(1), "monotonic"
        )

    return types.int64(types.int64), generate


take_next: Any = intrinsic(_take_next)


@kernel
def now():
    """Ticks."""
    return ticks()


def _call_back(typingctx: Any, address: Any, m: Any, d: Any) -> Any:
    """Calls the C function there with a model and a data."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [word, word])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


call_back: Any = intrinsic(_call_back)


@leaf
def entry(job, which):
    """That entry of the job at that address."""
    return pointer(job + 8 * which)


@leaf
def _place(table, k, d):
    """(address in the data, bytes, address of the rows) of line k of a table of outputs."""
    line = table + 32 * k
    at = d + pointer(line)
    if pointer(line + 8) == 1:
        at = pointer(at)
    return at, pointer(line + 24), pointer(line + 16)


@kernel
def _load_fields(session, job, sim):
    """Puts the simulation's own fields into the thread's model, or its own model in the place of
    that; whether they are those that were checked."""
    at = entry(job, Job.OWN)
    if at == 0:
        return True
    own = words(at + 8 * OWNS * sim, OWNS)
    if own[Own.READY] == 0:
        return False
    count, table = entry(job, Job.FIELD_COUNT), entry(job, Job.FIELDS)
    for k in range(count):
        line = table + 32 * k
        size = pointer(line + 16)
        if _compare(pointer(line + 8) + size * sim, pointer(line + 24) + size * sim, size) != 0:
            return False
    mine = words(session, SLOTS)
    if own[Own.MODEL] != 0:
        mine[Slot.MODEL] = own[Own.MODEL]
    m = mine[Slot.MODEL]
    for k in range(count):
        line = table + 32 * k
        size = pointer(line + 16)
        if pointer(line) >= 0:
            _copy(pointer(m + pointer(line)), pointer(line + 24) + size * sim, size)
    _copy(m + _OPT, own[Own.OPTIONS], np.uint64(_OPT_SIZE))
    mine[Slot.CONFIG], mine[Slot.GROUND] = own[Own.CONFIG], own[Own.GROUND]
    return True


@leaf
def _row(rows, like, sim):
    """(address of the simulation's row of arrays of that size, its bytes)."""
    size = 8 * like.shape[0]
    return rows + size * sim, np.uint64(size)


@kernel
def _load(session, d, job, sim):
    """Puts state and guess of the simulation into the thread's data and workspace."""
    m = slot(session, Slot.MODEL)
    width = entry(job, Job.WIDTH)
    mj.set_state(m, d, entry(job, Job.STATE) + 8 * width * sim, np.int32(INTEGRATION))
    _copy(d + _WARNING, entry(job, Job.WARNING) + WARNINGS * sim, np.uint64(WARNINGS))
    _, step = unpack_step(slot(session, Slot.WORK))
    memory = words(entry(job, Job.MEMORY) + 8 * MEMORIES * sim, MEMORIES)
    used = memory[Memory.USED]
    if used > step.record.shape[0]:
        step.counts[Count.NEED_BLOCKS] = used
        return False
    _copy(step.record.ctypes.data, memory[Memory.ADDRESS], np.uint64(8 * RECORDS * used))
    step.counts[Count.OLD], step.counts[Count.SEEN] = used, Seen.NOTHING
    if memory[Memory.RESTS] == 1:
        kept, size = _row(entry(job, Job.SEEN), step.seen, sim)
        _copy(step.seen.ctypes.data, kept, size)
        step.counts[Count.SEEN], step.counts[Count.RESTS] = Seen.INPUTS, 1
    step.counts[Count.CORRECTED] = memory[Memory.CORRECTED]
    if memory[Memory.CORRECTED] == 1:
        kept, size = _row(entry(job, Job.ORIGIN), step.origin, sim)
        _copy(step.origin.ctypes.data, kept, size)
    for k in range(step.total.shape[0]):
        step.total[k] = 0.0
    return True


@kernel
def _save(session, d, job, sim, rung):
    """Keeps the new state, the guess for the next call, the outputs and what came of it; whether
    there was room for the guess."""
    m = slot(session, Slot.MODEL)
    _, step = unpack_step(slot(session, Slot.WORK))
    memory = words(entry(job, Job.MEMORY) + 8 * MEMORIES * sim, MEMORIES)
    used = step.counts[Count.OLD]
    if used > memory[Memory.ROOM]:
        return False
    _copy(memory[Memory.ADDRESS], step.record.ctypes.data, np.uint64(8 * RECORDS * used))
    memory[Memory.USED] = used
    memory[Memory.RESTS] = step.counts[Count.RESTS]
    if step.counts[Count.RESTS] == 1:
        kept, size = _row(entry(job, Job.SEEN), step.seen, sim)
        _copy(kept, step.seen.ctypes.data, size)
    memory[Memory.CORRECTED] = step.counts[Count.CORRECTED]
    if step.counts[Count.CORRECTED] == 1:
        kept, size = _row(entry(job, Job.ORIGIN), step.origin, sim)
        _copy(kept, step.origin.ctypes.data, size)
    width = entry(job, Job.WIDTH)
    mj.get_state(m, d, entry(job, Job.STATE) + 8 * width * sim, np.int32(INTEGRATION))
    _copy(entry(job, Job.WARNING) + WARNINGS * sim, d + _WARNING, np.uint64(WARNINGS))
    for k in range(entry(job, Job.OUTPUT_COUNT)):
        at, size, rows = _place(entry(job, Job.OUTPUTS), k, d)
        _copy(rows + size * sim, at, size)
    result = numbers(entry(job, Job.RESULT) + 8 * RESULTS * sim, RESULTS)
    result[Result.WORST] = step.total[Total.WORST]
    result[Result.PIVOTS] = step.total[Total.ITERATIONS]
    result[Result.STEPS] = step.total[Total.STEPS]
    result[Result.WARM] = step.total[Total.WARM]
    result[Result.RUNG] = rung
    result[Result.CONTACTS] = step.counts[Count.BLOCKS]
    return True


@kernel
def trace_step(m, d, job, at, taken):
    """Writes what is to be recorded of the step that was taken."""
    row = at * entry(job, Job.STEPS) + taken
    for k in range(entry(job, Job.TRACE_COUNT)):
        line = entry(job, Job.TRACES) + 32 * k
        if pointer(line + 8) == 2:
            to = pointer(line + 16) + pointer(line + 24) * row
            mj.get_state(m, d, to, np.int32(pointer(line)))
        else:
            source, size, rows = _place(entry(job, Job.TRACES), k, d)
            _copy(rows + size * row, source, size)


@kernel
def _evaluate(m, d, stage, sensors):
    """Kinematics, velocities and their sensors of the state as it is; contacts and forces remain
    those of the last step."""
    for flag in _DATA_FLAGS:
        flags(d + flag, 1)[0] = 0
    mj.fwd_kinematics(m, d)
    mj.transmission(m, d)
    if sensors:
        mj.sensor_pos(m, d)
    if stage >= VELOCITY:
        mj.fwd_velocity(m, d)
        if sensors:
            mj.sensor_vel(m, d)


@kernel
def take_step(session, d, job, cursor):
    """Takes steps of the loaded simulation until they are done; why it stopped. DONE with steps
    left if the call is to end, or the thread is to look for signals."""
    m, nstep = slot(session, Slot.MODEL), entry(job, Job.STEPS)
    _, step = unpack_step(slot(session, Slot.WORK))
    controller = pointer(entry(job, Job.CONTROLLER))
    single = controller != 0 or entry(job, Job.CONTROL) != 0 or entry(job, Job.TRACE_COUNT) > 0
    while cursor[Cursor.TAKEN] < nstep:
        taken = cursor[Cursor.TAKEN]
        if entry(job, Job.CONTROL) != 0 and cursor[Cursor.SOLVED] == 0:
            row = cursor[Cursor.AT] * nstep + taken
            to = entry(job, Job.CONTROL) + 8 * entry(job, Job.CONTROL_WIDTH) * row
            mj.set_state(m, d, to, np.int32(entry(job, Job.CONTROL_SPEC)))
        if controller != 0 and cursor[Cursor.SOLVED] == 0:
            mj.fwd_position(m, d)
            mj.fwd_velocity(m, d)
            call_back(controller, m, d)
        begin(session, False)
        many = np.int64(1) if single else min(nstep - taken, np.int64(LOOK_EVERY))
        stop = call(slot(session, Slot.STEPS), session, d, many, cursor[Cursor.SOLVED])
        done = step.counts[Count.DONE]
        if done > 0:
            cursor[Cursor.SOLVED] = 0
            cursor[Cursor.TAKEN] = taken + done
            if single:
                trace_step(m, d, job, cursor[Cursor.AT], taken)
        if stop != Stop.DONE:
            return stop
        if entry(job, Job.HALT) != 0 or ticks() > cursor[Cursor.DEADLINE]:
            break
    return np.int64(Stop.DONE)


@kernel
def begin_next(session, d, job, cursor):
    """Takes the next simulation that is due and loads it, unless one is at hand: `Phase.STEP`, or
    the end where there is none. Why it could not be loaded: EDITED, ROOM."""
    if cursor[Cursor.PHASE] == Phase.NEXT:
        cursor[Cursor.AT] = take_next(job + 8 * Job.NEXT)
        due = cursor[Cursor.AT] < entry(job, Job.COUNT) and entry(job, Job.HALT) == 0
        cursor[Cursor.PHASE] = Phase.LOAD if due else Phase.END
        cursor[Cursor.TAKEN] = cursor[Cursor.SOLVED] = cursor[Cursor.RUNG] = 0
    if cursor[Cursor.PHASE] == Phase.LOAD:
        sim = pointer(entry(job, Job.IDS) + 8 * cursor[Cursor.AT])
        if not _load_fields(session, job, sim):
            return np.int64(Stop.EDITED)
        if not _load(session, d, job, sim):
            return np.int64(Stop.ROOM)
        cursor[Cursor.PHASE] = Phase.STEP
    return np.int64(Stop.DONE)


@kernel
def run_simulations(session, d, job, at):
    """Takes simulations and steps them until there are none; returns why it stopped, DONE also
    where it is time to look for signals (`Phase.END` tells). at: address of the `Cursor`."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Stop.ERROR)
    cursor = words(at, CURSORS)
    stop = np.int64(Stop.DONE)
    while stop == Stop.DONE and ticks() <= cursor[Cursor.DEADLINE]:
        stop = begin_next(session, d, job, cursor)
        if stop != Stop.DONE or cursor[Cursor.PHASE] == Phase.END:
            break
        sim = pointer(entry(job, Job.IDS) + 8 * cursor[Cursor.AT])
        if cursor[Cursor.PHASE] == Phase.STEP:
            stop = take_step(session, d, job, cursor)
            if stop != Stop.DONE or cursor[Cursor.TAKEN] < entry(job, Job.STEPS):
                if entry(job, Job.HALT) != 0:
                    cursor[Cursor.PHASE] = Phase.END
                break
            if entry(job, Job.STAGE) > 0:
                sensors = numbers(slot(session, Slot.CONFIG), 6)[5] != 0.0
                _evaluate(slot(session, Slot.MODEL), d, entry(job, Job.STAGE), sensors)
            cursor[Cursor.PHASE] = Phase.SAVE
        if not _save(session, d, job, sim, cursor[Cursor.RUNG]):
            stop = np.int64(Stop.MEMORY)
            break
        cursor[Cursor.PHASE] = Phase.NEXT
    leave(slot(session, Slot.FRAME))
    return stop
