"""What an event-driven step leaves in MjData and tells in its report."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact.certificate.certificate import Certificate
from stiction.contact.certificate.laws import Entry, Law, Table
from stiction.contact.problem.modes import choose_mode
from stiction.simulate.event_driven.phases import Held, Phase
from stiction.simulate.event_driven.trajectories import Motion
from stiction.simulate.report import Facts
from stiction.simulate.time_stepping.workspace import RECORDS, Figure, Record, Stage

Array = NDArray[np.float64]

PERFECT = Certificate(
    Law.FRICTIONLESS, (0.0,) * len(Entry), (0.0,) * len(Entry), (-1,) * len(Entry), 0.0
)
"""Of a step without contacts, limits or joints: nothing to violate."""


class Acting(NamedTuple):
    """Forces on a state [N, N m], and its acceleration."""

    acceleration: Array  # (nv,)
    contact: Array  # (nc, 6) along normal and tangents, torques about them
    joint: Array  # (ne,)
    dry: Array  # (nf,)


class StepSummary(NamedTuple):
    """What happened within a step."""

    worst: float
    """Largest scaled violation of its certificates."""
    pivots: int
    rungs: tuple[str, ...]
    contacts: int
    energy: float
    overlap: float
    seconds: float


def acting(phase: Phase, held: Held | None) -> Acting:
    """The forces of a phase; none where it has no finite ones."""
    seen = phase.seen
    contact = np.zeros((seen.nc, 6))
    if held is None:
        free = np.linalg.solve(seen.mass, seen.force)
        return Acting(
            np.asarray(free, np.float64),
            contact,
            np.zeros(len(seen.joint)),
            np.zeros(len(seen.dry)),
        )
    forces = held.forces
    contact[phase.held, 0] = forces.normal
    contact[phase.held, 1:3] = forces.tangent
    contact[:, 2] *= seen.ratio
    torques = forces.box[len(seen.dry) :]
    if len(torques):
        spins = np.flatnonzero(np.isin(seen.spin_contact, phase.held))
        at = seen.spin_contact[spins]
        contact[at, 3 + spins - np.searchsorted(seen.spin_contact, at)] = torques
    dry = forces.box[: len(seen.dry)] - phase.turning * seen.dry_limit
    return Acting(forces.acceleration, contact, forces.joint, dry)


def write(motion: Motion, phase: Phase, forces: Acting, cone: int, time: float) -> None:
    """Forces, accelerations and sensors into the data, as MuJoCo leaves them; cone: the user's."""
    model, data, seen = motion.model, motion.data, phase.seen
    data.time = time
    if motion.shown is not seen:
        motion.look(phase.state)
    for name in ("flg_energypos", "flg_energyvel", "flg_subtreevel", "flg_rnepost"):
        setattr(data, name, 0)
    own = model.opt.cone
    pyramidal = cone == mujoco.mjtCone.mjCONE_PYRAMIDAL
    if pyramidal and data.ncon:
        model.opt.cone = cone  # until sensors have read the forces
        mujoco.mj_makeConstraint(model, data)
    data.qacc[:] = forces.acceleration
    data.qfrc_constraint[:] = seen.mass @ forces.acceleration - seen.force
    if data.nefc:
        efc = np.zeros(data.nefc)
        efc[: data.ne] = forces.joint
        efc[data.ne : data.ne + data.nf] = forces.dry
        for i in np.flatnonzero(forces.contact[:, 0] != 0.0):
            index, row = int(seen.number[i]), int(seen.row[i])
            _write_contact(data, efc, index, row, forces.contact[i], pyramidal)
        data.efc_force[:] = efc
    if model.nsensor and not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR:
        mujoco.mj_sensorPos(model, data)
        mujoco.mj_sensorVel(model, data)
        mujoco.mj_sensorAcc(model, data)
    model.opt.cone = own
    if model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_ENERGY:
        mujoco.mj_energyPos(model, data)
        mujoco.mj_energyVel(model, data)


def _write_contact(
    data: mujoco.MjData, efc: Array, index: int, row: int, force: Array, pyramidal: bool
) -> None:
    """The force of one contact, or of a limit (index -1), into efc."""
    if index < 0:
        efc[row] = force[0]
        return
    contact = data.contact[index]
    at, dim = int(contact.efc_address), int(contact.dim)
    if not pyramidal or dim == 1:
        efc[at : at + dim] = force[:dim]
        return
    share = force[0] / (dim - 1)
    for r in range(1, dim):
        along = force[r] / contact.friction[r - 1]
        efc[at + 2 * r - 2] = 0.5 * (share + along)
        efc[at + 2 * r - 1] = 0.5 * (share - along)


def describe(phase: Phase, forces: Acting, rest_speed: float) -> Array:
    """(nc, RECORDS) of all contacts and limits of a phase."""
    seen = phase.seen
    slip = seen.tangent @ phase.state.qvel
    mode = [
        choose_mode(forces.contact[i, 0], seen.friction[i], slip[i, 0], slip[i, 1], rest_speed)
        for i in range(seen.nc)
    ]
    record = np.zeros((seen.nc, RECORDS))
    record[:, Record.FIRST : Record.SECOND + 1] = seen.pair
    record[:, Record.INDEX], record[:, Record.GAP] = seen.number, seen.gap
    record[:, Record.RATIO], record[:, Record.ROLL_RATIO] = seen.ratio, 1.0
    record[:, Record.X : Record.X + 3] = seen.point
    record[:, Record.FORCE : Record.FORCE + 6] = forces.contact
    record[:, Record.FORCE + 2] /= seen.ratio
    record[:, Record.SLIP : Record.SLIP + 2] = slip
    record[:, Record.MODE], record[:, Record.FRICTION] = mode, seen.friction
    return record


def all_solving(seconds: float) -> Array:
    """(Stage,) that time, whose stages are not told apart [s]."""
    spent = np.zeros(len(Stage))
    spent[Stage.SOLVE] = seconds
    return spent


def facts(summary: StepSummary, verdict: Certificate | tuple[Law, Table], record: Array) -> Facts:
    """What a report is worked out from."""
    figure = np.zeros(len(Figure))
    figure[Figure.WORST] = summary.worst
    figure[Figure.ENERGY], figure[Figure.GAP] = summary.energy, -summary.overlap
    return Facts(
        summary.pivots,
        summary.rungs,
        figure,
        verdict,
        all_solving(summary.seconds),
        1.0,  # forces, not impulses
        record,
    )
