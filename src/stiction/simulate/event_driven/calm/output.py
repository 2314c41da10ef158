"""What a calm step leaves: records of its contacts, and forces in MuJoCo's own arrays."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library
from stiction.bridge.layout import offset
from stiction.contact.problem.modes import choose_mode
from stiction.kernels.compile import kernel
from stiction.kernels.dense import row_dot
from stiction.simulate.event_driven.calm.work import Count, Number, Work
from stiction.simulate.event_driven.distances import Snapshot
from stiction.simulate.time_stepping.workspace import Record
from stiction.terrain.contacts import SIZE

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# Kernels, typed by Numba and not here.
mj: Any = library
integer: Any = layout.integer
pointer: Any = layout.pointer
integers: Any = layout.integers
numbers: Any = layout.numbers
flags: Any = layout.flags

_TIME, _QACC, _CONSTRAINT, _FORCE, _NEFC, _NE, _NF, _CONTACT, _NCON = (
    offset("mjData", name)
    for name in (
        "time", "qacc", "qfrc_constraint", "efc_force", "nefc", "ne", "nf", "contact", "ncon",
    )
)  # fmt: skip
_ENERGY_POS, _ENERGY_VEL, _SUBTREE, _POST = (
    offset("mjData", f"flg_{name}") for name in ("energypos", "energyvel", "subtreevel", "rnepost")
)
_CONE = offset("mjModel", "opt", "cone")
_ADDRESS, _DIM, _FRICTION = (
    offset("mjContact", name) for name in ("efc_address", "dim", "friction")
)
_PYRAMIDAL = int(mujoco.mjtCone.mjCONE_PYRAMIDAL)


@kernel
def note_contacts(
    seen: Snapshot, held: Indices, qvel: Array, f_n: Array, f_t: Array, f_b: Array, w: Work
) -> None:
    """Records of all contacts with their forces."""
    tangent, gap, friction, ratio, point = (
        seen.tangent,
        seen.gap,
        seen.friction,
        seen.ratio,
        seen.point,
    )
    pair, index, dry, spin_contact = seen.pair, seen.number, seen.dry, seen.spin_contact
    nc = gap.shape[0]
    record, across = w.record, tangent.reshape(2 * nc, qvel.shape[0])
    w.counts[Count.RECORDS], w.counts[Count.CONTACTS] = nc, 0
    for i in range(nc):
        line = record[i]
        for k in range(line.shape[0]):
            line[k] = 0.0
        line[Record.FIRST], line[Record.SECOND] = pair[i, 0], pair[i, 1]
        line[Record.INDEX], line[Record.GAP], line[Record.RATIO] = index[i], gap[i], ratio[i]
        line[Record.ROLL_RATIO], line[Record.FRICTION] = 1.0, friction[i]
        line[Record.SLIP] = row_dot(across, 2 * i, qvel)
        line[Record.SLIP + 1] = row_dot(across, 2 * i + 1, qvel)
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
def write_forces(
    m: int, d: int, seen: Snapshot, acceleration: Array, f_j: Array, f_b: Array, w: Work
) -> None:
    """Forces, accelerations and sensors into the data at d, as MuJoCo leaves them."""
    mass, force, row = seen.mass, seen.force, seen.row
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
        constraint[i] = row_dot(mass, i, acceleration) - force[i]
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
