"""Derivatives of a step in one compiled call, where everything about it has a derivative in closed
form or of its own: bodies (`bodies.py`, `spinning.py`), contacts (`geometry.py`, `maps.py`),
springs and actuators (`smooth.py`), the law of contact (`contact/derivatives/held_system.py`).

The step has been taken, and its data still has its kinematics and contacts; the state has been put
back to where it began. What the overlap's problem wrote over the blocks is made anew.

`Want.MATRICES` are J.A and J.B; `Want.FORWARD` and `Want.BACK` are their products with a vector,
for which neither they nor the columns of contacts are made (`products.py`).
"""

from __future__ import annotations

from enum import IntEnum

import mujoco
import numpy as np

from stiction.bridge import library as mj
from stiction.bridge.changes import are_edited
from stiction.bridge.guard import caught, leave
from stiction.bridge.layout import number, numbers, offset, pointer, table, words
from stiction.bridge.servos import Release
from stiction.contact.derivatives.held_rows import Size, fill_mass
from stiction.contact.derivatives.soft_system import gives_way
from stiction.contact.problem.blocks import ROWS
from stiction.contact.solvers.blocks.workspace import unpack_problem
from stiction.kernels.compile import kernel, leaf, lean
from stiction.kernels.panel import clear
from stiction.kernels.stage import call, stage
from stiction.simulate.derivatives.bodies import (
    differentiate_forces,
    differentiate_momentum,
    spread_acceleration,
    spread_velocity,
)
from stiction.simulate.derivatives.contacts import Slopes, differentiate_applied, load_bodies
from stiction.simulate.derivatives.equalities import differentiate_equalities
from stiction.simulate.derivatives.geometry import differentiate_contacts
from stiction.simulate.derivatives.maps import map_contacts
from stiction.simulate.derivatives.matrices import fill_matrices, fill_slopes
from stiction.simulate.derivatives.meetings import grips_any
from stiction.simulate.derivatives.memory import unpack_bodies, unpack_solution, unpack_working
from stiction.simulate.derivatives.products import pull_back, push_forward
from stiction.simulate.derivatives.reading import drop_spanned, mark_needed, mark_used, read_step
from stiction.simulate.derivatives.smooth import differentiate_actuators, differentiate_springs
from stiction.simulate.derivatives.spinning import differentiate_spins
from stiction.simulate.derivatives.step_system import bend_rows, is_corrected
from stiction.simulate.time_stepping.config import Stop, read_config
from stiction.simulate.time_stepping.loop import Slot, begin, begin_as, slot
from stiction.simulate.time_stepping.workspace import Count, Step, unpack_step
from stiction.terrain.meetings import unpack_ground

INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_MOVED = int(
    mujoco.mjtState.mjSTATE_TIME
    | mujoco.mjtState.mjSTATE_QPOS
    | mujoco.mjtState.mjSTATE_QVEL
    | mujoco.mjtState.mjSTATE_ACT
    | mujoco.mjtState.mjSTATE_HISTORY
)
"""What a step changes of it, with which it begins."""
_TIMESTEP, _QVEL = offset("mjModel", "opt", "timestep"), offset("mjData", "qvel")


LEAST_SMOOTHING = 1e-9
"""Less than this takes more digits than there are of a system that rows which hardly give way are
part of (`soft_system.py`)."""


class Want(IntEnum):
    """What is asked for."""

    MATRICES = 0
    FORWARD = 1
    BACK = 2
    SLOPES = 3
    """What comes before the law of contact alone, `Slopes`."""


class Ask(IntEnum):
    """Entries of a request: numbers, and addresses of arrays of doubles."""

    WANT = 0
    """A `Want`."""
    TABLE = 1
    """`narrow_phase.TABLE`"""
    LAW = 2
    """`Law`."""
    FACETS = 3
    SCALES = 4
    """(2,) the size of what moves [m], and how much contacts are smoothed: see `modes.py`."""
    FIRST = 5
    """MATRICES: A (2 nv + na, 2 nv + na). FORWARD: change of the state (2 nv + na,). BACK: gradient
    by the next state (2 nv + na,)."""
    SECOND = 6
    """MATRICES: B (2 nv + na, nu). FORWARD: change of the controls (nu,). BACK: the gradient by the
    state."""
    THIRD = 7
    """FORWARD: the change of the next state. BACK: the gradient by the controls."""
    STAGE = 8
    """`differentiate_step` or `differentiate_step_on_ground`; 0 where another way must be taken."""
    MEMORY = 9
    """`Transition.address`"""
    READY = 10
    """1 if that was made for the model as it is."""
    USUAL = 11
    """`LAW` of steps that no other way answered; this and the rest are for batches."""
    ROWS = 12
    """This and the next five: address of the first simulation's `FIRST`, and how many numbers each
    one's has; the same of `SECOND` and `THIRD`."""
    BEFORE = 18
    """This and the rest are for `run_step`: the workspace with the impulses to begin with."""
    QUIET = 19
    """`Config.as_array` of steps without sensors."""
    SESSION = 20
    """The session without sensors, as many entries as there are in `Slot`."""


ASKS = int(Ask.SESSION) + len(Slot)
"""Entries of a request."""

STOPS = len(Stop)
"""Entries of `Stop`."""


@lean
def _clear(count, used, out: Slopes):
    """Zero everywhere, for so many blocks: none where contacts have no slopes of their own. used
    (n, ROWS): 1 for rows whose speeds matter."""
    nv = out.push_q.shape[0]
    clear(nv, out.push_q)
    clear(nv, out.push_w)
    clear(nv, out.push_a)
    clear(nv, out.push_u)
    clear(count, out.gap)
    for i in range(count):
        clear(3, out.speed_w[i])
    for i in range(count):
        for r in range(ROWS):
            if used[i, r] == 1:
                for k in range(nv):
                    out.speed[i, r, k] = 0.0
    clear(out.act_a.shape[0], out.act_a)
    clear(out.act_u.shape[0], out.act_u)


@lean
def _find_maps(m, d, address, own, summed):
    """Fills the maps of contacts, whose geometry has been found; summed: whether those of contacts
    with the world are added up as loads of bodies."""
    tree, ahead, apart, _, _, _, meeting, maps, geometry, _, load, load_w = unpack_bodies(own)
    _, w = unpack_working(own)
    b, _, _, _ = unpack_problem(address)
    _, step = unpack_step(address)
    count, corrected, dt = step.counts[Count.BLOCKS], is_corrected(w), number(m + _TIMESTEP)
    spread_velocity(d, tree, step.v_plus, ahead)
    if corrected:
        spread_velocity(d, tree, w.correction, apart)
    if grips_any(w.gripped, 0, count):
        for j in range(w.acceleration.shape[0]):
            w.acceleration[j] = 0.0
        spread_acceleration(d, tree, step.v_plus, w.acceleration, ahead)
    map_contacts(
        m, d, tree, b, count, step.key, step.place, w.f, w.pushed, w.gripped, 0.5 * dt, w.used,
        w.needed, geometry, ahead, apart, corrected, meeting, maps,
    )  # fmt: skip
    bend_rows(m, d, tree, count, step.key, step.place, ahead, dt, maps, meeting, w)
    load_bodies(
        m, d, tree, w.alone, count if summed else 0, step.key, step.place, w.needed, -dt,
        corrected, maps, load, load_w,
    )  # fmt: skip


@lean
def _differentiate_smooth(m, d, address, own):
    """Fills `Slopes` but for contacts, of which it adds what bodies bear: see the head of
    `differences.py` for what it holds."""
    tree, ahead, apart, now, _, spin, meeting, _, _, springs, load, load_w = unpack_bodies(own)
    _, w = unpack_working(own)
    out, _, _, _ = unpack_solution(own)
    b, _, _, _ = unpack_problem(address)
    _, step = unpack_step(address)
    nv, dt = w.sigma.shape[0], number(m + _TIMESTEP)
    v = numbers(pointer(d + _QVEL), nv)
    fill_mass(b, out.push_v)
    for j in range(nv):
        w.acceleration[j] = (step.v_plus[j] - v[j]) / dt
    spread_velocity(d, tree, v, now)
    spread_acceleration(d, tree, v, w.acceleration, now)
    differentiate_forces(d, tree, now, load, -dt, out.push_q, out.push_v)
    differentiate_springs(m, d, dt, springs, out)
    differentiate_actuators(d, dt, springs, out)
    differentiate_spins(m, d, dt, tree, b, step.free, v, step.v_plus, spin, out)
    differentiate_applied(m, d, tree, w.alone, dt, meeting, out)
    differentiate_equalities(m, d, tree, b, step, ahead, apart, now, w, meeting, out)
    if is_corrected(w):
        differentiate_momentum(d, tree, apart, now, load_w, -1.0, out.push_w)


@leaf
def _entry(request, which):
    """That entry of the request at that address."""
    return pointer(request + 8 * which)


@kernel
def _differentiate(session, d, ground, request):
    m, address = slot(session, Slot.MODEL), slot(session, Slot.WORK)
    own = _entry(request, Ask.MEMORY)
    config = read_config(slot(session, Slot.CONFIG))
    _, _, _, _, _, _, _, _, geometry, _, _, _ = unpack_bodies(own)
    h, w = unpack_working(own)
    out, _, _, _ = unpack_solution(own)
    _, step = unpack_step(address)
    count, dt, want = step.counts[Count.BLOCKS], number(m + _TIMESTEP), _entry(request, Ask.WANT)
    if count > w.f.shape[0]:
        return np.int64(Stop.ROOM)
    if (config.bounce < np.inf and _bounces(count, step)) or _is_bounded(step):
        return np.int64(Stop.UNSOLVED)
    scales = numbers(_entry(request, Ask.SCALES), 2)
    if 0.0 < scales[1] < LEAST_SMOOTHING:
        return np.int64(Stop.UNSOLVED)
    lifted = read_step(
        m, d, config, _entry(request, Ask.LAW), _entry(request, Ask.FACETS), scales[1], address,
        own,
    )  # fmt: skip
    if lifted < 0:
        return np.int64(Stop.UNSOLVED)
    mark_needed(count, lifted, want == Want.SLOPES, h, step.key, w)
    functions = _entry(request, Ask.TABLE)
    if not differentiate_contacts(
        functions, m, d, ground, count, step.key, step.place, w.needed, scales[0], geometry
    ):
        return np.int64(Stop.UNSOLVED)
    if h.size[Size.SLOPED] == 0 and not gives_way(h):
        h.size[Size.HELD] = drop_spanned(h.size[Size.HELD], h.block, h.direction, step, geometry, w)
    lifted = drop_spanned(lifted, w.lifted, w.along, step, geometry, w)
    mark_used(count, lifted, want == Want.SLOPES, h, w)
    whole = want in (Want.MATRICES, Want.SLOPES)
    _clear(count if whole else 0, w.used, out)
    _find_maps(m, d, address, own, whole)
    _differentiate_smooth(m, d, address, own)
    nv, na, nu = out.push_q.shape[0], out.push_a.shape[1], out.push_u.shape[1]
    n = 2 * nv + na
    first, second = _entry(request, Ask.FIRST), _entry(request, Ask.SECOND)
    third = _entry(request, Ask.THIRD)
    if whole:
        fill_slopes(m, d, address, own)
        found = True
        if want == Want.MATRICES:
            A, B = table(first, n, n), table(second, n, nu)
            found = fill_matrices(dt, lifted, address, own, A, B)
    elif want == Want.FORWARD:
        given, end = numbers(first, n), numbers(third, n)
        found = push_forward(m, d, dt, lifted, address, own, given, numbers(second, nu), end)
    else:
        given, by_state = numbers(first, n), numbers(second, n)
        found = pull_back(m, d, dt, lifted, address, own, given, by_state, numbers(third, nu))
    return np.int64(Stop.DONE if found else Stop.UNSOLVED)


@lean
def _bounces(count, step: Step):
    """Whether any contact bounced within the step."""
    for i in range(count):
        for r in range(ROWS):
            if step.impact[i, r] != 0.0:
                return True
    return False


@lean
def _is_bounded(step: Step):
    """Whether Coriolis forces were not taken as they are (`whirling.py`), or servos released
    (`bridge/servos.py`)."""
    found = False
    for a in range(step.released.shape[0]):
        found = found or step.released[a] == Release.RELEASED
    if step.counts[Count.WHIRLS] == 1:
        for j in range(step.coriolis.shape[1]):
            found = found or step.coriolis[1, j] != 0.0
    return found


@stage("int64(int64, int64, int64, int64)", eager=False, counted=True)
def differentiate_step(session, d, request, _):
    """Does what the request (`Ask`) asks, of the step that the session has taken with the data at
    d, whose state is as it was before; why it stopped: ROOM where there are more blocks than the
    request's memory has room for, UNSOLVED where another way must be taken."""
    return _differentiate(session, d, None, request)


@stage("int64(int64, int64, int64, int64)", eager=False, counted=True)
def differentiate_step_on_ground(session, d, request, _):
    """The same where there is a height field."""
    terrain, hulls, level = unpack_ground(slot(session, Slot.GROUND))
    return _differentiate(session, d, (terrain, hulls, level.tolerance[0]), request)


@leaf
def answer_request(session, d, request):
    """Calls the request's stage."""
    return call(_entry(request, Ask.STAGE), session, d, request, np.int64(0))


@kernel
def run_step(session, d, source, state, request, A, B):
    """Takes the step from the state of the data at `source` with the data at d, and calls the
    request's stage for it, with A and B for its first and second; the state (mjSTATE_INTEGRATION)
    is left at the address `state`, and in d. DONE, or why the stage stopped, less `Stop` entries,
    or why the step did: where it was not taken, or something watches it, it is to be taken as any
    other."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Stop.ERROR)
    ask, model, work = words(request, ASKS), slot(session, Slot.MODEL), slot(session, Slot.WORK)
    ask[Ask.FIRST], ask[Ask.SECOND] = A.ctypes.data, B.ctypes.data
    begin(session, True)
    _, step = unpack_step(work)
    stop = np.int64(Stop.UNSOLVED)
    if are_edited(slot(session, Slot.SOURCE)):
        stop = np.int64(Stop.EDITED)
    elif step.counts[Count.WATCHED] == 0 and begin_as(work, ask[Ask.BEFORE]):
        for k in range(ASKS - Ask.SESSION):
            ask[Ask.SESSION + k] = slot(session, k)
        ask[Ask.SESSION + Slot.CONFIG] = ask[Ask.QUIET]
        quiet = request + 8 * Ask.SESSION
        mj.get_state(model, source, state, np.int32(INTEGRATION))
        mj.set_state(model, d, state, np.int32(INTEGRATION))
        stop = call(slot(session, Slot.STEPS), quiet, d, np.int64(1), np.int64(0))
        if stop == Stop.DONE:
            mj.set_state(model, d, state, np.int32(_MOVED))
            stop = answer_request(session, d, request)
            stop = stop if stop == Stop.DONE else stop - STOPS
    leave(slot(session, Slot.FRAME))
    return stop


@kernel
def run_request(session, d, state, request):
    """Puts the state (mjSTATE_INTEGRATION) at that address into the data, and calls the request's
    stage; comes back where MuJoCo gives up."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Stop.ERROR)
    mj.set_state(slot(session, Slot.MODEL), d, state, np.int32(INTEGRATION))
    stop = answer_request(session, d, request)
    leave(slot(session, Slot.FRAME))
    return stop
