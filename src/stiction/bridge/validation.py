"""Models and states that cannot be stepped, refused by name before anything changes.

MuJoCo compiles negative and NaN friction, negative time steps and NaN masses; it resets a state
with NaN silently, and drops contacts from a full arena with a warning.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.edits import check_edits
from stiction.bridge.names import joint_of_dof, joint_of_position, name_of
from stiction.errors import InvalidInput, StictionError

Array = NDArray[np.float64]


def check_model(model: mujoco.MjModel) -> None:
    """Raises InvalidInput that names what in the model cannot be simulated."""
    if not isinstance(model, mujoco.MjModel):
        raise InvalidInput("model", f"is a {type(model).__name__}, not a mujoco.MjModel")
    check_options(model)
    _check_supported(model)  # first: what is refused is not looked at for edits
    check_edits(model)
    for kind, values in (("geom", model.geom_friction), ("pair", model.pair_friction)):
        _not_negative(model, kind, "friction", values)
    for values, kind in ((model.body_mass, "body"), (model.body_inertia, "body")):
        _not_negative(model, kind, "mass and inertia", values)
    for dof, loss in enumerate(model.dof_frictionloss):
        if not (np.isfinite(loss) and loss >= 0.0):
            reason = f"is {loss} at {joint_of_dof(model, dof)}: dry friction is finite and >= 0"
            raise InvalidInput("model.dof_frictionloss", reason, index=dof)
    _not_negative(model, "tendon", "frictionloss", model.tendon_frictionloss)


def check_options(model: mujoco.MjModel) -> None:
    """The same of the model's options alone, which may change from step to step."""
    step = model.opt.timestep
    if not (np.isfinite(step) and step > 0.0):
        raise InvalidInput("model.opt.timestep", f"is {step}: a step takes a positive time [s]")
    for name in ("gravity", "wind", "magnetic", "density", "viscosity"):
        _finite(f"model.opt.{name}", getattr(model.opt, name))


def _check_supported(model: mujoco.MjModel) -> None:
    if model.nflex:
        raise InvalidInput(
            "model", f"has {name_of(model, 'flex', 0)}: flexible bodies are not rigid; remove them"
        )
    if model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_IPC:
        raise InvalidInput("model.opt", "enables ipc, which is for flexible bodies: disable it")
    if model.nhistory:
        raise InvalidInput(
            "model", "has actuators or sensors with delays (history): these are not supported"
        )


def check_still_surfaces(model: mujoco.MjModel, who: str) -> None:
    """Raises InvalidInput if a surface moves (conveyors), of which `who` knows nothing."""
    if model.flg_surfacevel:
        moving = np.flatnonzero(model.geom_surfacevel.any(axis=1))
        what = name_of(model, "geom", int(moving[0])) if len(moving) else "a contact"
        reason = f"is set on {what}: {who} has no moving surfaces; TimeStepping() has"
        raise InvalidInput("model.geom_surfacevel", reason)


def _finite(name: str, values: Array) -> None:
    bad = np.flatnonzero(~np.isfinite(np.asarray(values)))
    if len(bad):
        value = np.asarray(values).flat[bad[0]]
        raise InvalidInput(name, f"is {value}: it must be finite", index=int(bad[0]))


def _not_negative(model: mujoco.MjModel, kind: str, what: str, values: Array) -> None:
    if not len(values):
        return
    table = np.asarray(values).reshape(len(values), -1)
    bad = np.argwhere(~(np.isfinite(table) & (table >= 0.0)))
    if len(bad):
        row, column = (int(k) for k in bad[0])
        raise InvalidInput(
            f"{what} of {name_of(model, kind, row)}",
            f"is {table[row, column]}: it must be finite and not negative",
            index=column if table.shape[1] > 1 else None,
        )


def check_data(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Raises InvalidInput unless the data was made for the model, or for a copy of it."""
    if not isinstance(data, mujoco.MjData):
        raise InvalidInput("data", f"is a {type(data).__name__}, not a mujoco.MjData")
    have = (data.qpos.size, data.qvel.size, data.ctrl.size, data.xpos.shape[0])
    need = (model.nq, model.nv, model.nu, model.nbody)
    if have != need:
        raise InvalidInput(
            "data", f"has (nq, nv, nu, nbody) = {have}, the simulator's model has {need}"
        )
    if data.signature and model.signature:
        fits = data.signature == model.signature
    else:  # what went through a pickle or a file has none
        fits = data.nbuffer == mujoco.MjData(model).nbuffer
    if not fits:  # other sizes differ: memory would be overwritten
        raise InvalidInput(
            "data",
            "belongs to another model, though of as many joints and bodies: "
            "make it by mujoco.MjData(model)",
        )


def not_finite(model: mujoco.MjModel, data: mujoco.MjData) -> InvalidInput:
    """The error that names the first entry in the state or the inputs that is not a number."""
    if not np.isfinite(data.time):
        return InvalidInput("data.time", f"is {data.time}; the step was not taken")
    for name in ("qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos"):
        values = getattr(data, name)
        bad = np.argwhere(~np.isfinite(values))
        if not len(bad):
            continue
        index = tuple(int(k) for k in bad[0])
        where = {
            "qpos": lambda i: joint_of_position(model, i),
            "qvel": lambda i: joint_of_dof(model, i),
            "qfrc_applied": lambda i: joint_of_dof(model, i),
            "xfrc_applied": lambda i: name_of(model, "body", i),
            "ctrl": lambda i: name_of(model, "actuator", i),
        }.get(name, lambda i: f"entry {i}")(index[0])
        return InvalidInput(
            f"data.{name}", f"is {values[index]} at {where}; the step was not taken", index=index
        )
    return InvalidInput("data.mocap_quat", "is not finite; the step was not taken")


def not_definite(model: mujoco.MjModel, dof: int) -> InvalidInput:
    """The error that names the joint at which the inertia is not positive definite."""
    return InvalidInput(
        "mass",
        f"is not positive definite at {joint_of_dof(model, dof)}: look for a massless body "
        "or an actuator whose force grows with speed; the step was not taken",
    )


def diverged(model: mujoco.MjModel, data: mujoco.MjData, speed: Array) -> StictionError:
    """The error that names the joint of the largest speed (nv,) that a step would leave, or the
    actuator whose activation would not be a number."""
    size = np.where(np.isfinite(speed), np.abs(speed), np.inf)
    limit = mujoco.mjMAXVAL
    if size.max(initial=0.0) > limit:
        dof = int(np.argmax(size))
        what = f"{joint_of_dof(model, dof)} would move at {speed[dof]:.1e}, beyond {limit:g}"
    else:
        act = int(np.argmin(np.isfinite(data.act_dot)))
        owner = int(np.searchsorted(model.actuator_actadr, act, side="right")) - 1
        what = f"the activation of {name_of(model, 'actuator', max(owner, 0))} would not be finite"
    return StictionError(
        f"the simulation diverges at t = {data.time:g} s: {what}. Look for a force, a gain or a "
        "time step that is too large; the step was not taken"
    )
