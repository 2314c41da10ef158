"""Steps without events, compiled as a whole.

Most steps of what stands, walks or flies have no event: contacts that are held stick and go on to
stick, and nothing closes. `CalmSteps` takes such a step in one call, by the same kernels as
`trajectories.py` uses piece by piece, or says that it is not calm; then all is as before, and
the engine takes it. Not calm is a step in which

    a contact approaches, overlaps too much, slides or is about to, or a dry joint moves
    no force was found, or it misses its certificate
    integration errs by more than the tolerance
    a gap may close within it, as far as speeds tell

The forces that a step ends with are the guess of the next one's, and rates of rows, which are those
of its state, are kept for it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.guard import caught, leave
from stiction.bridge.layout import offset
from stiction.bridge.margins import AHEAD, SHARE
from stiction.contact.certificate.accelerations import Slip
from stiction.contact.certificate.certificate import Certificate, from_table
from stiction.contact.certificate.laws import Entry, Law, Table
from stiction.contact.problem.modes import choose_mode
from stiction.kernels import linear
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.packing import pack, packed, unpacker
from stiction.simulate.event_driven.distances import closing_bound, match, read
from stiction.simulate.event_driven.drift import FIRM
from stiction.simulate.event_driven.events import PART
from stiction.simulate.event_driven.held_rows import SOLVED, contact_states, held_rows
from stiction.simulate.event_driven.impact_time import SPREAD
from stiction.simulate.event_driven.snapping import NEAR
from stiction.simulate.event_driven.stages import (
    FASTEST,
    Course,
    Limits,
    Start,
    difference,
    follow_stages,
    gather,
)
from stiction.simulate.event_driven.surveyor import Outcome, Slot, evaluate, load, slot, widen
from stiction.simulate.event_driven.sustained import (
    COULOMB,
    drive_loads,
    dry_arrays,
    grade_sustained,
)
from stiction.simulate.event_driven.trajectories import ACCEPT, REST_SHARE, SLOW, Motion
from stiction.simulate.time_stepping.workspace import RECORDS, Record
from stiction.terrain.contacts import SIZE

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

ROOM = 64
"""Contacts, limits, joint and box rows at most, of each."""

# Kernels, typed by Numba and not here.
mj: Any = library
integer: Any = layout.integer
pointer: Any = layout.pointer
integers: Any = layout.integers
numbers: Any = layout.numbers
flags: Any = layout.flags

_QPOS, _QVEL, _ACT, _TIME, _QACC, _CONSTRAINT, _FORCE, _NEFC, _NE, _NF, _CONTACT, _NCON = (
    offset("mjData", name)
    for name in (
        "qpos", "qvel", "act", "time", "qacc", "qfrc_constraint", "efc_force", "nefc", "ne", "nf",
        "contact", "ncon",
    )
)  # fmt: skip
_ENERGY_POS, _ENERGY_VEL, _SUBTREE, _POST = (
    offset("mjData", f"flg_{name}") for name in ("energypos", "energyvel", "subtreevel", "rnepost")
)
_CONE = offset("mjModel", "opt", "cone")
_NA, _NGEOM = offset("mjModel", "na"), offset("mjModel", "ngeom")
_RBOUND = offset("mjModel", "geom_rbound")
_ADDRESS, _DIM, _FRICTION = (
    offset("mjContact", name) for name in ("efc_address", "dim", "friction")
)
_PYRAMIDAL = int(mujoco.mjtCone.mjCONE_PYRAMIDAL)


class Number(IntEnum):
    """Entries of `Work.figures`."""

    DT = 0
    TOLERANCE = 1
    REST = 2
    """Speed that counts as none [m/s]."""
    TIME = 3
    """At the end of the step [s]."""
    OVERLAP = 4
    """Deepest at its start [m, rad]."""


class Count(IntEnum):
    """Entries of `Work.counts`."""

    HELD = 0
    """Contacts held at the end of the last step, whose forces and rates are there; -1: none."""
    BOX = 1
    JOINTS = 2
    RECORDS = 3
    CONTACTS = 4
    """Of the records, those that are no limits."""
    PIVOTS = 5
    CONE = 6
    """The user's."""
    SENSORS = 7
    """1 if there are some to be written."""
    ENERGY = 8
    """1 if energies are."""
    SAME = 9
    """1 if rates may be taken over from the last step: nothing moves but by qpos."""


@packed
class Work(NamedTuple):
    """What calm steps write to."""

    figures: Array  # (Number,)
    counts: Indices  # (Count,)
    qpos: Array  # (nq,) that `rates` belong to
    qvel: Array  # (nv,)
    act: Array  # (na,)
    rates: Array  # (ROOM, 3)
    joint_rate: Array  # (ROOM,)
    normal: Array  # (ROOM,) forces
    tangent: Array  # (ROOM, 2)
    box: Array  # (ROOM,)
    record: Array  # (ROOM, RECORDS)
    value: Array  # (Entry,) certificate of the last forces; `scaled` and `where` too
    scaled: Array
    where: Indices
    rotations: Indices  # `Limits`
    clamped: Indices
    low: Array
    high: Array
    static: Array
    dynamic: Array


def _work(nq: int, nv: int, na: int, limits: Limits, static: Array, dynamic: Array) -> Work:
    return Work(
        np.zeros(len(Number)), np.zeros(len(Count), np.int64), np.zeros(nq), np.zeros(nv),
        np.zeros(na), np.zeros((ROOM, 3)), np.zeros(ROOM), np.zeros(ROOM), np.zeros((ROOM, 2)),
        np.zeros(ROOM), np.zeros((ROOM, RECORDS)), np.zeros(len(Entry)), np.zeros(len(Entry)),
        np.zeros(len(Entry), np.int64), *limits, static, dynamic,
    )  # fmt: skip


_none, _no_index = np.zeros(0), np.zeros(0, np.int64)
_unpack = unpacker(_work(0, 0, 0, Limits(_no_index, _no_index, _none, _none), _none, _none))


@leaf
def _slack(normal: Array, i: int, qvel: Array, rest: float) -> float:
    """Speed along a row that counts as rest."""
    size = 0.0
    for k in range(qvel.shape[0]):
        size += abs(normal[i, k] * qvel[k])
    return rest + SOLVED * size


@kernel
def _is_quiet(normal: Array, gap: Array, error: Array, speed: Array, qvel: Array, w: Work) -> bool:
    """Whether nothing that touches approaches, and no overlap or error is to be taken back."""
    tolerance, rest = w.figures[Number.TOLERANCE], w.figures[Number.REST]
    for i in range(gap.shape[0]):
        if gap[i] < -PART * tolerance:
            return False
        if gap[i] <= tolerance and speed[i] < -_slack(normal, i, qvel, rest):
            return False
    worst = 0.0
    for e in range(error.shape[0]):
        worst = max(worst, abs(error[e]))
    return worst <= PART * tolerance


@kernel
def _same_place(callbacks: int, w: Work, held: int, joints: int, qpos: Array, qvel: Array) -> bool:
    """Whether the rates in the workspace are those of this state."""
    if w.counts[Count.SAME] != 1 or w.counts[Count.HELD] != held:
        return False
    if mj.has_callbacks(callbacks):
        return False
    if w.counts[Count.JOINTS] != joints:
        return False
    same = True
    for k in range(qpos.shape[0]):
        same = same and qpos[k] == w.qpos[k]
    for k in range(qvel.shape[0]):
        same = same and qvel[k] == w.qvel[k]
    return same


@kernel
def _stand(session: int, d: int, probe: int, w: Work, seen: Any, qpos: Array, qvel: Array) -> Any:
    """(whether there are forces that pass, course, loads, acceleration, normal, tangent, joint and
    box forces) of the state of the data at d, of which `seen` was read."""
    rest = w.figures[Number.REST]
    (
        mass, force, _, normal, tangent, gap, friction, _, point, axis, pair, _, _, joint, _, dry,
        limit, spin, spin_contact, resist, _,
    ) = seen  # fmt: skip
    _, _, held, sliding, direction, pace, turning, spinning = contact_states(
        normal, tangent, gap, friction, dry, spin, spin_contact, qvel, w.figures[Number.TOLERANCE],
        rest,
    )  # fmt: skip
    nh, ne = held.shape[0], joint.shape[0]
    course = Course(
        pair[held], point[held], axis[held], held, sliding, direction, np.zeros(nh, np.bool_),
        np.maximum(SLOW * pace, rest), turning, spinning, spin_contact,
    )  # fmt: skip
    rows = held_rows(
        held, normal, tangent, friction, qvel, sliding, direction, course.steady, course.least
    )
    rates, joint_rate = np.zeros((nh, 3)), np.zeros(ne)
    if _same_place(slot(session, Slot.CALLBACKS), w, nh, ne, qpos, qvel):
        rates[:], joint_rate[:] = w.rates[:nh], w.joint_rate[:ne]
    else:
        difference(
            session, probe, qpos, qvel, course.pair, course.point, course.axis, rates, joint_rate
        )
    loads = gather(
        course, mass, force, joint, dry, limit, spin, spin_contact, resist, qvel, held, rows, rates,
        joint_rate, True,
    )  # fmt: skip
    nb = loads.box.shape[0]
    arrays = dry_arrays(loads, w.static.copy(), w.dynamic.copy())
    guess = (np.empty(0), np.empty((0, 2)), np.empty(0))
    if w.counts[Count.HELD] == nh and w.counts[Count.BOX] == nb:
        guess = (w.normal[:nh].copy(), w.tangent[:nh].copy(), w.box[:nb].copy())
    acceleration, f_n, f_t, f_j, f_b, found, steps = drive_loads(loads, arrays, guess)
    fits = nh <= ROOM and ne <= ROOM and nb <= ROOM and normal.shape[0] <= ROOM
    passed = False
    if found and fits:
        slip = Slip(loads.tangent_rate, sliding, rows[5], loads.turning)
        table = grade_sustained(COULOMB, arrays, slip, acceleration, f_n, f_t, f_j, f_b)
        passed = bool(table.scaled.max() <= ACCEPT)
        w.counts[Count.PIVOTS] += steps
        if passed and table.scaled.max() > w.scaled.max():
            w.value[:], w.scaled[:], w.where[:] = table.value, table.scaled, table.where
        w.counts[Count.HELD], w.counts[Count.BOX], w.counts[Count.JOINTS] = nh, nb, ne
        w.qpos[:], w.qvel[:] = qpos, qvel
        w.rates[:nh], w.joint_rate[:ne] = rates, joint_rate
        w.normal[:nh], w.tangent[:nh], w.box[:nb] = f_n, f_t, f_b
    return passed, course, loads, acceleration, f_n, f_t, f_j, f_b


@kernel
def _sticks(
    course: Course, loads: Any, acceleration: Array, f_n: Array, dt: float, rest: float
) -> bool:
    """Whether nothing slides, or will."""
    if course.sliding.any() or (course.turning != 0.0).any() or (course.spinning != 0.0).any():
        return False
    for i in range(f_n.shape[0]):
        if f_n[i] > 0.0 and loads.friction[i] > 0.0:
            pull0 = (loads.tangent[i, 0] * acceleration).sum() + loads.tangent_rate[i, 0]
            pull1 = (loads.tangent[i, 1] * acceleration).sum() + loads.tangent_rate[i, 1]
            if np.hypot(pull0, pull1) * dt > rest:
                return False
    return True


@kernel
def _is_safe(m: int, seen: Any, bound: Array, held: Indices, later: Array, dt: float) -> bool:
    """Whether no gap can close within the step; see `impact_time._safe_time`. bound (nc,): at the
    start; later (ngeom,): margins at its end."""
    gap, pair, index, reach = seen[5], seen[10], seen[11], seen[20]
    radius = numbers(pointer(m + _RBOUND), pointer(m + _NGEOM))
    for g in range(reach.shape[0]):
        if reach[g] < (later[g] - SHARE * radius[g]) / AHEAD:
            return False
    free = np.ones(gap.shape[0], np.bool_)
    for i in held:
        free[i] = False
    for i in range(gap.shape[0]):
        if not free[i]:
            continue
        extra = abs(bound[i])
        if index[i] >= 0:
            extra = 0.0
            for side in range(2):
                g = pair[i, side]
                extra += abs(later[g] - reach[g]) / (AHEAD * dt)
        closing = max(bound[i], SPREAD * bound[i]) + extra
        if closing * dt > max(gap[i], 0.0):
            return False
    return True


@kernel
def _is_accurate(place: Indices, press: Array, gap: Array, speed: Array, w: Work) -> bool:
    """Whether held contacts have not sunk in, nor those that press moved, by more than the
    tolerance; see `Motion.accurate_end`."""
    dt, tolerance = w.figures[Number.DT], w.figures[Number.TOLERANCE]
    for i in range(place.shape[0]):
        j = place[i]
        if j < 0:
            continue
        if min(gap[j], speed[j] * dt) < -tolerance:
            return False
        if press[i] > 0.0 and 0.1 * (abs(gap[j]) + abs(speed[j]) * dt) > tolerance:
            return False
    return True


@kernel
def _nothing_closed(place: Indices, seen: Any, speed: Array, qvel: Array, w: Work) -> bool:
    """Whether contacts that are not held have not met; see `events._closed`."""
    tolerance, rest = w.figures[Number.TOLERANCE], w.figures[Number.REST]
    normal, gap = seen[3], seen[5]
    free = np.ones(gap.shape[0], np.bool_)
    for j in place:
        if j >= 0:
            free[j] = False
    for i in range(gap.shape[0]):
        if free[i]:
            if gap[i] < -tolerance:
                return False
            if gap[i] <= tolerance and speed[i] < -_slack(normal, i, qvel, rest):
                return False
    return True


@kernel
def _project(
    seen: Any, place: Indices, press: Array, speed: Array, qvel: Array, rest: float
) -> bool:
    """Takes out of qvel what integration left along rows that hold, as `drift.project_velocity`;
    whether there was something."""
    mass, normal, tangent, friction, joint, dry = (
        seen[0],
        seen[3],
        seen[4],
        seen[6],
        seen[13],
        seen[15],
    )
    spin, spin_contact, resist = seen[17], seen[18], seen[19]
    nv, nh = qvel.shape[0], place.shape[0]
    rows = np.empty((joint.shape[0] + 3 * nh + spin.shape[0] + dry.shape[0], nv))
    n, most = 0, 0.0
    for e in range(joint.shape[0]):
        rows[n] = joint[e]
        n += 1
    for i in range(nh):
        j = place[i]
        if j < 0 or not press[i] > 0.0 or not abs(speed[j]) < FIRM * rest:
            continue
        rows[n] = normal[j]
        n += 1
        slip0, slip1 = (tangent[j, 0] * qvel).sum(), (tangent[j, 1] * qvel).sum()
        if friction[j] > 0.0 and np.hypot(slip0, slip1) <= 2.0 * rest:
            rows[n], rows[n + 1] = tangent[j, 0], tangent[j, 1]
            n += 2
        for s in range(spin.shape[0]):
            still = abs((spin[s] * qvel).sum()) <= 2.0 * rest
            if spin_contact[s] == j and resist[s] > 0.0 and still:
                rows[n] = spin[s]
                n += 1
    for e in range(dry.shape[0]):
        if abs((dry[e] * qvel).sum()) <= 2.0 * rest:
            rows[n] = dry[e]
            n += 1
    for i in range(n):
        most = max(most, abs((rows[i] * qvel).sum()))
    if most <= 1e-3 * rest:
        return False
    upper, last = np.empty((nv, nv)), np.empty(nv, np.int64)
    if linear.factorize(mass, upper, last, 0.0) >= 0:
        return False
    white, basis, kept = rows[:n].copy(), np.empty((nv, nv)), np.empty(n, np.bool_)
    for i in range(n):
        linear.divide(upper, last, white[i])
    rank = linear.orthonormal_rows(white, basis, kept, NEAR)
    momentum = np.zeros(nv)
    for i in range(nv):
        for k in range(i, nv):
            if k <= last[i]:
                momentum[i] += upper[i, k] * qvel[k]
    linear.project_out(basis, rank, momentum)
    linear.project_out(basis, rank, momentum)
    linear.undivide(upper, last, momentum)
    qvel[:] = momentum
    return True


@kernel
def _note(
    seen: Any, held: Indices, qvel: Array, f_n: Array, f_t: Array, f_b: Array, w: Work
) -> None:
    """Records of all contacts with their forces."""
    tangent, gap, friction, ratio, point = seen[4], seen[5], seen[6], seen[7], seen[8]
    pair, index, dry, spin_contact = seen[10], seen[11], seen[15], seen[18]
    nc = gap.shape[0]
    record = w.record
    w.counts[Count.RECORDS], w.counts[Count.CONTACTS] = nc, 0
    for i in range(nc):
        line = record[i]
        line[:] = 0.0
        line[Record.FIRST], line[Record.SECOND] = pair[i, 0], pair[i, 1]
        line[Record.INDEX], line[Record.GAP], line[Record.RATIO] = index[i], gap[i], ratio[i]
        line[Record.ROLL_RATIO], line[Record.FRICTION] = 1.0, friction[i]
        line[Record.SLIP] = (tangent[i, 0] * qvel).sum()
        line[Record.SLIP + 1] = (tangent[i, 1] * qvel).sum()
        for k in range(3):
            line[Record.X + k] = point[i, k]
        w.counts[Count.CONTACTS] += index[i] >= 0
    at = dry.shape[0]
    for h in range(held.shape[0]):
        line = record[held[h]]
        line[Record.FORCE] = f_n[h]
        line[Record.FORCE + 1], line[Record.FORCE + 2] = f_t[h, 0], f_t[h, 1]
        torque = 3
        for s in range(spin_contact.shape[0]):
            if spin_contact[s] == held[h]:
                line[Record.FORCE + torque] = f_b[at]
                torque, at = torque + 1, at + 1
    for i in range(nc):
        line = record[i]
        line[Record.MODE] = choose_mode(
            line[Record.FORCE], friction[i], line[Record.SLIP], line[Record.SLIP + 1],
            w.figures[Number.REST],
        )  # fmt: skip


@kernel
def _write(m: int, d: int, seen: Any, acceleration: Array, f_j: Array, f_b: Array, w: Work) -> None:
    """Forces, accelerations and sensors into the data at d, as MuJoCo leaves them."""
    mass, force, row = seen[0], seen[1], seen[12]
    nv = acceleration.shape[0]
    numbers(d + _TIME, 1)[0] = w.figures[Number.TIME]
    for flag in (_ENERGY_POS, _ENERGY_VEL, _SUBTREE, _POST):
        flags(d + flag, 1)[0] = 0
    own, cone = integer(m + _CONE), w.counts[Count.CONE]
    pyramidal = cone == _PYRAMIDAL
    if pyramidal and integer(d + _NCON) > 0:
        integers(m + _CONE, 1)[0] = cone  # until sensors have read the forces
        mj.make_constraint(m, d)
    qacc, constraint = numbers(pointer(d + _QACC), nv), numbers(pointer(d + _CONSTRAINT), nv)
    for i in range(nv):
        qacc[i] = acceleration[i]
        constraint[i] = (mass[i] * acceleration).sum() - force[i]
    nefc, ne, nf = integer(d + _NEFC), integer(d + _NE), integer(d + _NF)
    efc = numbers(pointer(d + _FORCE), nefc)
    for e in range(nefc):
        efc[e] = 0.0
    for e in range(ne):
        efc[e] = f_j[e]
    for e in range(nf):
        efc[ne + e] = f_b[e]
    for i in range(w.counts[Count.RECORDS]):
        line = w.record[i]
        if line[Record.FORCE] == 0.0:
            continue
        if line[Record.INDEX] < 0.0:
            efc[row[i]] = line[Record.FORCE]
            continue
        contact = pointer(d + _CONTACT) + np.int64(line[Record.INDEX]) * SIZE
        at, dim = integer(contact + _ADDRESS), integer(contact + _DIM)
        mu = numbers(contact + _FRICTION, 5)
        share = line[Record.FORCE] / max(dim - 1, 1)
        if not pyramidal or dim == 1:
            efc[at] = line[Record.FORCE]
        for r in range(1, dim):
            along = line[Record.FORCE + r] * (line[Record.RATIO] if r == 2 else 1.0)
            if pyramidal:
                along /= mu[r - 1]
                efc[at + 2 * r - 2] = 0.5 * (share + along)
                efc[at + 2 * r - 1] = 0.5 * (share - along)
            else:
                efc[at + r] = along
    if w.counts[Count.SENSORS] == 1:
        mj.sensor_pos(m, d)
        mj.sensor_vel(m, d)
        mj.sensor_acc(m, d)
    integers(m + _CONE, 1)[0] = own
    if w.counts[Count.ENERGY] == 1:
        mj.energy_pos(m, d)
        mj.energy_vel(m, d)


@kernel
def _move(
    session: int, d: int, probe: int, w: Work, course: Course, start: Start, seen: Any, bound: Array
) -> tuple[Any, Array, Array]:
    """(outcome, qpos, qvel) after the step, at which the data at d is evaluated."""
    m, nv = slot(session, Slot.MODEL), start.qvel.shape[0]
    dt, rest = w.figures[Number.DT], w.figures[Number.REST]
    qpos, qvel, act = start.qpos.copy(), start.qvel.copy(), start.act.copy()
    limits = Limits(w.rotations.copy(), w.clamped.copy(), w.low.copy(), w.high.copy())
    done = follow_stages(
        session, d, probe, course, start, limits, w.static.copy(), w.dynamic.copy(), dt, qpos, qvel,
        act,
    )  # fmt: skip
    calm = np.int64(Outcome.DONE)
    if done != calm:
        return done, qpos, qvel
    for k in range(nv):
        if not abs(qvel[k]) <= FASTEST:
            return np.int64(Outcome.NOT_CALM), qpos, qvel
    numbers(pointer(d + _QPOS), qpos.shape[0])[:] = qpos
    numbers(pointer(d + _QVEL), nv)[:] = qvel
    numbers(pointer(d + _ACT), act.shape[0])[:] = act
    done = evaluate(session, d, True)
    if done != calm:
        return done, qpos, qvel
    end = read(m, d, nv)
    speed = np.zeros(end[5].shape[0])
    for i in range(speed.shape[0]):
        speed[i] = (end[3][i] * qvel).sum()
    place = match(course.pair, course.point, course.axis, end[10], end[8], end[9])
    quiet = _is_accurate(place, start.normal, end[5], speed, w)
    quiet = quiet and _is_safe(m, seen, bound, course.held, end[20], dt)
    quiet = quiet and _nothing_closed(place, end, speed, qvel, w)
    if not quiet:
        return np.int64(Outcome.NOT_CALM), qpos, qvel
    if _project(end, place, start.normal, speed, qvel, rest):
        numbers(pointer(d + _QVEL), nv)[:] = qvel
        widen(m, d)
        load(m, d)
    return calm, qpos, qvel


@kernel
def _take(session: int, d: int, probe: int, work: int) -> Any:
    (w,) = _unpack(work)
    m, nq, nv = slot(session, Slot.MODEL), w.qpos.shape[0], w.qvel.shape[0]
    dt, rest, not_calm = w.figures[Number.DT], w.figures[Number.REST], np.int64(Outcome.NOT_CALM)
    w.value[:], w.scaled[:], w.where[:], w.counts[Count.PIVOTS] = 0.0, 0.0, -1, 0
    qpos, qvel = numbers(pointer(d + _QPOS), nq).copy(), numbers(pointer(d + _QVEL), nv).copy()
    act = numbers(pointer(d + _ACT), w.act.shape[0]).copy()
    done = evaluate(session, d, True)
    if done != Outcome.DONE:
        return done
    seen = read(m, d, nv)
    gap = seen[5]
    deepest = 0.0
    for i in range(gap.shape[0]):
        deepest = max(deepest, -gap[i])
    w.figures[Number.OVERLAP] = deepest
    speed = np.zeros(gap.shape[0])
    for i in range(speed.shape[0]):
        speed[i] = (seen[3][i] * qvel).sum()
    if not _is_quiet(seen[3], gap, seen[14], speed, qvel, w):
        return not_calm
    bound = closing_bound(m, d, seen[11], seen[10], seen[8], seen[9], speed)
    passed, course, loads, acceleration, f_n, f_t, f_j, f_b = _stand(
        session, d, probe, w, seen, qpos, qvel
    )
    if not passed or not _sticks(course, loads, acceleration, f_n, dt, rest):
        return not_calm
    fastest, change = 0.0, 0.0
    for k in range(nv):
        fastest, change = max(fastest, abs(qvel[k])), max(change, abs(acceleration[k]))
    if fastest + dt * change > REST_SHARE * rest or (seen[2] != 0.0).any():
        start = Start(qpos, qvel, act, seen[2], acceleration, f_n, f_t, f_b)
        done, qpos, qvel = _move(session, d, probe, w, course, start, seen, bound)
        if done != Outcome.DONE:
            return done
        seen = read(m, d, nv)
        speed = np.zeros(seen[5].shape[0])
        for i in range(speed.shape[0]):
            speed[i] = (seen[3][i] * qvel).sum()
        if not _is_quiet(seen[3], seen[5], seen[14], speed, qvel, w):
            return not_calm
        passed, course, loads, acceleration, f_n, f_t, f_j, f_b = _stand(
            session, d, probe, w, seen, qpos, qvel
        )
        if not passed:
            return not_calm
    _note(seen, course.held, qvel, f_n, f_t, f_b, w)
    _write(m, d, seen, acceleration, f_j, f_b, w)
    return np.int64(Outcome.DONE)


@kernel
def take(session: int, d: int, probe: int, work: int) -> Any:
    """Takes a step of the data at d, or says why not; then the data is not as before. work:
    `Work`."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Outcome.ERROR)
    done = _take(session, d, probe, work)
    leave(slot(session, Slot.FRAME))
    return done


class CalmSteps:
    """The calm steps of a motion."""

    def __init__(self, motion: Motion, cone: int) -> None:
        model = motion.model
        self._motion = motion
        self.work = _work(
            model.nq, model.nv, model.na, motion.limits, motion.static, motion.dynamic
        )
        self._packed = pack(self.work)
        self._address = int(self._packed.ctypes.data)
        number, count = self.work.figures, self.work.counts
        number[Number.DT], number[Number.REST] = motion.dt, motion.rest_speed
        number[Number.TOLERANCE] = motion.tolerance
        count[Count.HELD] = -1
        flags = model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR
        count[Count.SENSORS] = int(bool(model.nsensor) and not flags)
        count[Count.ENERGY] = int(bool(model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_ENERGY))
        count[Count.SAME] = int(model.nmocap == 0 and model.neq == 0)
        count[Count.CONE] = cone

    def take(self, data: mujoco.MjData, time: float) -> bool:
        """Whether the step was calm and is taken; time: at its end [s]."""
        motion = self._motion
        self.work.figures[Number.TIME] = time
        done = motion.survey.call(
            data, take, motion.survey.session, data._address, motion.probe._address, self._address
        )
        return done == Outcome.DONE

    @property
    def overlap(self) -> float:
        """Deepest at the start of the last step [m, rad]."""
        return float(self.work.figures[Number.OVERLAP])

    @property
    def pivots(self) -> int:
        """Of the last step."""
        return int(self.work.counts[Count.PIVOTS])

    @property
    def contacts(self) -> int:
        """Within reach of the last step."""
        return int(self.work.counts[Count.CONTACTS])

    @property
    def certificate(self) -> Certificate:
        """Of the forces at the start or at the end of the last step, whichever is worse."""
        w = self.work
        return from_table(Law.COULOMB, Table(w.value.copy(), w.scaled.copy(), w.where.copy()))

    @property
    def record(self) -> Array:
        """(nc, RECORDS) of the last step."""
        return self.work.record[: self.work.counts[Count.RECORDS]].copy()

    @property
    def memory(self) -> tuple[Array, ...] | None:
        """The forces that the last step ended with, or None."""
        w, (nh, nb) = self.work, self.work.counts[: Count.BOX + 1]
        if nh < 0:
            return None
        return w.normal[:nh].copy(), w.tangent[:nh].copy(), w.box[:nb].copy()

    @memory.setter
    def memory(self, forces: tuple[Array, ...] | None) -> None:
        w = self.work
        w.counts[Count.HELD] = -1
        w.qpos[:] = np.nan  # rates are to be found anew
        if forces is not None:
            normal, tangent, box = forces
            nh, nb = len(normal), len(box)
            w.counts[Count.HELD], w.counts[Count.BOX] = nh, nb
            w.normal[:nh], w.tangent[:nh], w.box[:nb] = normal, tangent, box
