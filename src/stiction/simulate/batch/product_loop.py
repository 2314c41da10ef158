"""Derivatives of the next steps of many simulations in compiled code: matrices, or products with a
vector each.

Each thread loads a simulation as for a step (`loop.py`), takes the step, puts the state back and
differentiates (`simulate/derivatives/transition.py`). Nothing of the simulation is changed.
"""

from __future__ import annotations

import numpy as np

from stiction.bridge import library as mj
from stiction.bridge.guard import caught, leave
from stiction.bridge.layout import pointer, words
from stiction.kernels.clock import ticks
from stiction.kernels.compile import kernel
from stiction.simulate.batch.loop import (
    CURSORS,
    INTEGRATION,
    Cursor,
    Job,
    Phase,
    begin_next,
    entry,
    take_step,
)
from stiction.simulate.derivatives.transition import ASKS, Ask, answer_request
from stiction.simulate.time_stepping.config import Stop
from stiction.simulate.time_stepping.loop import Slot, slot
from stiction.simulate.time_stepping.workspace import Count, unpack_step


@kernel
def run_products(session, d, job, at, request):
    """Takes simulations and differentiates their next step until there are none; why it stopped, as
    `run_simulations`. In `Phase.SAVE` it stops for the request (`Ask`): MEMORY where that is not
    ready for the simulation, ROOM, UNSOLVED."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Stop.ERROR)
    cursor, ask = words(at, CURSORS), words(request, ASKS)
    stop = np.int64(Stop.DONE)
    while stop == Stop.DONE and ticks() <= cursor[Cursor.DEADLINE]:
        fresh = cursor[Cursor.PHASE] == Phase.NEXT or cursor[Cursor.PHASE] == Phase.LOAD
        stop = begin_next(session, d, job, cursor)
        if stop != Stop.DONE or cursor[Cursor.PHASE] == Phase.END:
            break
        sim = pointer(entry(job, Job.IDS) + 8 * cursor[Cursor.AT])
        if fresh:
            ask[Ask.LAW] = ask[Ask.USUAL]
            if entry(job, Job.OWN) != 0:
                ask[Ask.READY] = 0
        if cursor[Cursor.PHASE] == Phase.STEP:
            stop = take_step(session, d, job, cursor)
            if stop != Stop.DONE or cursor[Cursor.TAKEN] < 1:
                if entry(job, Job.HALT) != 0:
                    cursor[Cursor.PHASE] = Phase.END
                break
            cursor[Cursor.PHASE] = Phase.SAVE
        stop = _differentiate(session, d, job, cursor, sim, request, ask)
        if stop == Stop.DONE:
            cursor[Cursor.PHASE] = Phase.NEXT
    leave(slot(session, Slot.FRAME))
    return stop


@kernel
def _differentiate(session, d, job, cursor, sim, request, ask):
    """Puts the state back and answers the request for the simulation at hand."""
    if ask[Ask.READY] == 0:
        return np.int64(Stop.MEMORY)
    _, step = unpack_step(slot(session, Slot.WORK))
    if ask[Ask.STAGE] == 0 or step.counts[Count.WATCHED] != 0:
        return np.int64(Stop.UNSOLVED)
    state = entry(job, Job.STATE) + 8 * entry(job, Job.WIDTH) * sim
    mj.set_state(slot(session, Slot.MODEL), d, state, np.int32(INTEGRATION))
    for k in range(3):
        address, size = ask[Ask.ROWS + 2 * k], ask[Ask.ROWS + 2 * k + 1]
        ask[Ask.FIRST + k] = address + 8 * size * cursor[Cursor.AT]
    return answer_request(session, d, request)
