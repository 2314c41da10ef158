"""`Surveyor`: states of a model evaluated by MuJoCo's own functions, called from compiled code.

    kinematics  and margins for what can be reached within a step, if asked for
    inertia
    meeting     collisions, contacts replaced where MuJoCo's are not right, constraint rows
    forces      velocities, actuators, applied and passive forces

A session holds the addresses that kernels work with (`Slot`). MuJoCo's errors come back as codes,
and exceptions of callbacks as themselves (`bridge.guard`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import layout, library, margins, validation
from stiction.bridge.geom_types import BOX, CAPSULE, CYLINDER, ELLIPSOID
from stiction.bridge.guard import Guard, caught, leave
from stiction.bridge.joined import exclude_joined
from stiction.bridge.layout import offset
from stiction.errors import StictionError
from stiction.kernels import stage as stages
from stiction.kernels.compile import kernel, leaf
from stiction.kernels.stage import prepare, stage
from stiction.simulate.event_driven.distances import PRECISE, Snapshot, read, read_loads
from stiction.simulate.event_driven.focus import Masks
from stiction.simulate.event_driven.mending import has_suspects, mend
from stiction.simulate.event_driven.stiffness import stiff_damping
from stiction.terrain.meetings import Ground, replace_contacts, unpack_ground
from stiction.terrain.refinement import refine_contacts
from stiction.terrain.upright import collide

Array = NDArray[np.float64]

# Kernels, typed by Numba and not here.
mj: Any = library
call: Any = stages.call
set_margins: Any = margins.set_margins
integer: Any = layout.integer
pointer: Any = layout.pointer
number: Any = layout.number
numbers: Any = layout.numbers
table: Any = layout.table

_NV, _NBODY = (offset("mjModel", name) for name in ("nv", "nbody"))
_QVEL, _CVEL, _WARNING = (offset("mjData", name) for name in ("qvel", "cvel", "warning"))
_COUNT, _WARNING_SIZE = offset("mjWarningStat", "number"), layout.size_of("mjWarningStat")
_CONTACTS_FULL = _WARNING + int(mujoco.mjtWarning.mjWARN_CONTACTFULL) * _WARNING_SIZE + _COUNT
_SINGULAR = _WARNING + int(mujoco.mjtWarning.mjWARN_INERTIA) * _WARNING_SIZE + _COUNT
_ROWS_FULL = _WARNING + int(mujoco.mjtWarning.mjWARN_CNSTRFULL) * _WARNING_SIZE + _COUNT


class Slot(IntEnum):
    """Entries of a session: addresses."""

    FRAME = 0
    """`Guard.frame`."""
    MODEL = 1
    MEET = 2
    """`meet` or `meet_on_ground`."""
    GROUND = 3
    """`Ground.address`, or 0."""
    OPTIONS = 4
    """(4,) tolerance; whether there is something for `mend`, for `refine_contacts`, and whether
    forces depend on velocities."""
    CALLBACKS = 5
    """`library.CALLBACKS`."""
    MASKS = 6
    """`Masks.address`."""


class Outcome(IntEnum):
    """What became of a call."""

    DONE = 0
    ERROR = 1
    """MuJoCo gave up."""
    FULL = 2
    """MuJoCo's arena is full: contacts are missing."""
    DIVERGED = 3
    """Speeds beyond what MuJoCo takes."""
    NO_FORCE = 4
    """Baraff's algorithm found no finite force."""
    NOT_CALM = 5
    """An event is to be looked for (`calm`)."""
    SINGULAR = 6
    """The inertia is not positive definite."""


@leaf
def slot(session: int, which: int) -> int:
    """That entry of the session at that address."""
    return pointer(session + 8 * which)


@kernel
def _refine(m: int, d: int, options: int) -> None:
    """The end of a meeting."""
    if number(options + 8) > 0.0:
        mend(m, d, number(options))
    if number(options + 16) > 0.0:
        refine_contacts(m, d)
    exclude_joined(m, d)
    mj.make_constraint(m, d)


@stage("int64(int64, int64, int64, int64)", eager=False, counted=True)
def meet(m: int, d: int, ground: int, options: int) -> int:
    """Contacts and rows."""
    collide(m, d)
    _refine(m, d, options)
    return 0


@stage("int64(int64, int64, int64, int64)", eager=False, counted=True)
def meet_on_ground(m: int, d: int, ground: int, options: int) -> int:
    """The same where there is a height field: compiled for those who have it."""
    terrain, hulls, level = unpack_ground(ground)
    collide(m, d)
    replace_contacts(m, d, terrain, hulls, level.tolerance[0])
    _refine(m, d, options)
    return 0


@leaf
def _count_full(d: int) -> int:
    return integer(d + _CONTACTS_FULL) + integer(d + _ROWS_FULL)


@kernel
def place(session: int, d: int) -> None:
    """Kinematics, contacts and rows of the data at d."""
    m = slot(session, Slot.MODEL)
    mj.fwd_kinematics(m, d)
    call(slot(session, Slot.MEET), m, d, slot(session, Slot.GROUND), slot(session, Slot.OPTIONS))


@kernel
def widen(m: int, d: int) -> None:
    """Sets margins for what can be reached within a step from the state of the data at d."""
    mj.com_vel(m, d)
    qvel, nbody = numbers(pointer(d + _QVEL), pointer(m + _NV)), pointer(m + _NBODY)
    set_margins(m, d, qvel, qvel, table(pointer(d + _CVEL), nbody, 6), 0.0)


@kernel
def load(m: int, d: int) -> None:
    """Forces of the data at d, whose positions are evaluated."""
    mj.fwd_velocity(m, d)
    mj.fwd_actuation(m, d)
    mj.fwd_acceleration(m, d)


@kernel
def evaluate(session: int, d: int, ahead: bool) -> Any:
    """All of the state of the data at d, up to its smooth forces; ahead: whether to set margins for
    what can be reached from here within a step."""
    m = slot(session, Slot.MODEL)
    full, singular = _count_full(d), integer(d + _SINGULAR)
    mj.fwd_kinematics(m, d)
    if ahead:
        widen(m, d)
    mj.make_mass(m, d)
    mj.factor_mass(m, d)
    call(slot(session, Slot.MEET), m, d, slot(session, Slot.GROUND), slot(session, Slot.OPTIONS))
    if integer(d + _SINGULAR) != singular:
        return np.int64(Outcome.SINGULAR)
    mj.transmission(m, d)
    load(m, d)
    return np.int64(Outcome.DONE if _count_full(d) == full else Outcome.FULL)


@kernel
def damping_at(session: int, d: int, mass: Array, dt: float) -> Array:
    """`stiff_damping` of the data at d, which is evaluated."""
    if number(slot(session, Slot.OPTIONS) + 24) == 0.0:
        return np.zeros((0, 0))
    return stiff_damping(slot(session, Slot.MODEL), d, mass, dt)


@kernel
def survey_all(session: int, d: int, ahead: bool) -> Any:
    """`evaluate`, guarded."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Outcome.ERROR)
    done = evaluate(session, d, ahead)
    leave(slot(session, Slot.FRAME))
    return done


@kernel
def survey_loads(session: int, d: int) -> Any:
    """Margins, inertia and forces of the data at d, guarded; not its contacts and rows."""
    if caught(slot(session, Slot.FRAME), d) != 0:
        return np.int64(Outcome.ERROR)
    m = slot(session, Slot.MODEL)
    mj.fwd_kinematics(m, d)
    widen(m, d)
    mj.make_mass(m, d)
    mj.factor_mass(m, d)
    mj.transmission(m, d)
    load(m, d)
    leave(slot(session, Slot.FRAME))
    return np.int64(Outcome.DONE)


class Surveyor:
    """Evaluates states of a model: its own copy, whose options it sets.

    Rows are dense, cones elliptic (`efc_force` is written in the user's own layout later),
    convex collisions as precise as they get. damped: whether forces depend on velocities.
    """

    def __init__(self, model: mujoco.MjModel, dt: float, tolerance: float, damped: bool) -> None:
        self.model, self.tolerance = model, tolerance
        opt = model.opt
        opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        opt.timestep = dt
        opt.ccd_tolerance = min(opt.ccd_tolerance, PRECISE)
        opt.ccd_iterations = max(opt.ccd_iterations, 200)
        self._ground = Ground(model, tolerance)
        beside = np.isin(model.geom_type, (CAPSULE, CYLINDER)).sum() > 1
        beside |= (model.geom_type == BOX).sum() > 1
        beside |= np.isin(model.geom_type, (CYLINDER, ELLIPSOID)).any()
        self._options = np.array([tolerance, has_suspects(model), beside, damped], np.float64)
        self._guard = Guard()
        prepare()
        self._session = np.zeros(len(Slot), np.int64)
        self._session[Slot.FRAME] = self._guard.frame
        self._session[Slot.MODEL] = model._address
        self._session[Slot.MEET] = (meet_on_ground if self._ground.address else meet).address
        self._session[Slot.GROUND] = self._ground.address
        self._session[Slot.OPTIONS] = self._options.ctypes.data
        self._session[Slot.CALLBACKS] = library.CALLBACKS
        self._masks = Masks(model)
        self._session[Slot.MASKS] = self._masks.address
        self.session = int(self._session.ctypes.data)
        """Address of the session."""

    def survey(
        self, data: mujoco.MjData, qpos: Array, qvel: Array, act: Array, ahead: bool = True
    ) -> Snapshot:
        """The state's snapshot; data is left in that state, evaluated up to its smooth forces.

        ahead: whether to set margins for what can be reached from here within a step.
        """
        self.evaluate(data, qpos, qvel, act, ahead)
        return read(self.model._address, data._address, self.model.nv)

    def evaluate(
        self, data: mujoco.MjData, qpos: Array, qvel: Array, act: Array, ahead: bool = True
    ) -> None:
        """Puts data in that state, evaluated as for `survey`."""
        data.qpos[:] = qpos
        data.qvel[:] = qvel
        data.act[:] = act
        self.call(data, survey_all, self.session, data._address, ahead)

    def survey_forces(
        self, data: mujoco.MjData, seen: Snapshot, qpos: Array, qvel: Array, act: Array
    ) -> Snapshot:
        """The snapshot of a state of which `seen` was taken under other forces: its contacts are
        those. In the data they may be others."""
        data.qpos[:] = qpos
        data.qvel[:] = qvel
        data.act[:] = act
        self.call(data, survey_loads, self.session, data._address)
        mass, force, act_dot = read_loads(self.model._address, data._address, self.model.nv)
        return seen._replace(mass=mass, force=force, act_dot=act_dot)

    def call(self, data: mujoco.MjData, kernel: Any, *arguments: Any) -> int:
        """`kernel(*arguments)`, which works in data; what it stopped for, unless that is an error
        to be raised."""
        try:
            done = self._guard.call(data, kernel, *arguments)
        except BaseException:
            self._masks.restore()
            raise
        if done == Outcome.ERROR:
            self._masks.restore()
            self._guard.recover(data)
            said = " ".join(self._guard.message.split())
            raise StictionError(
                f"MuJoCo gave up at t = {data.time:g} s ({said}); the step was not taken"
            )
        if done == Outcome.SINGULAR:
            dof = int(data.warning.lastinfo[mujoco.mjtWarning.mjWARN_INERTIA])
            raise validation.not_definite(self.model, dof)
        if done == Outcome.FULL:
            raise StictionError(
                f"MuJoCo's arena of {data.narena} bytes is full at t = {data.time:g} s, so that "
                "contacts would be missing; give the model more: <size memory='...'/>. The step "
                "was not taken"
            )
        return done
