"""`inverse_inertia` and `accelerations`: arguments checked, MuJoCo's arrays handed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiction.articulated.compiled import Loops, articulate
from stiction.articulated.links import Bodies
from stiction.errors import InvalidInput

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

CONNECT, WELD = int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)
SITE = int(mujoco.mjtObj.mjOBJ_SITE)


def inverse_inertia(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    bodies: Sequence[int | str],
    *,
    loops: bool = True,
) -> tuple[Array, Array]:
    """Inverse articulated-body inertia (6k, 6k) of k bodies, and their bias acceleration (6k,).

    acceleration = inertia @ wrench + bias. Six entries per body, in the order of `bodies`, all at
    the body's centre of mass (data.xipos) and in world axes: a wrench is (torque, force) [N m, N];
    an acceleration is that of the angular velocity and that of the centre of mass [rad/s^2,
    m/s^2], true ones: a body at rest on a table has 0, a falling one (0, 0, -9.81). So inertia is
    J M^-1 J', for J the rows jacr, then jacp, of mj_jacBodyCom. mj_objectAcceleration of a
    mjOBJ_BODY has the same order and point, but gravity subtracted.

    bodies: numbers or names, each once, not the world. A body without joints is rigidly part of
    what it is attached to; one that is fixed to the world, or a mocap body, has zeros.
    The bias is what the bodies do without these wrenches: under gravity, Coriolis forces,
    actuators, springs, damping, and applied forces; that is, under all of data.qfrc_smooth.
    Contact, joint limits, dry friction, and equality constraints that couple joints or tendons
    are left out.

    loops: whether active equality constraints, `connect` and `weld`, hold exactly: accelerations
    of the two points (and rotations) are equal, without MuJoCo's softness and without a correction
    of drift. Redundant ones are allowed. False leaves these out too.

    `data` must be as mj_forward leaves it, or mj_fwdPosition, mj_fwdVelocity, mj_fwdActuation and
    mj_fwdAcceleration in turn. It is only read.
    """
    _check_types(model, data)
    handles = handle_bodies(model, bodies)
    arrays, pairs = body_arrays(model, data), loop_arrays(model, data, wanted=loops)
    none = np.zeros((len(handles), 6))
    inertia, bias, _, singular = articulate(arrays, pairs, handles, none, 0)
    _require_regular(model, singular)
    return inertia, bias


def accelerations(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    bodies: Sequence[int | str] = (),
    wrenches: ArrayLike | None = None,
    *,
    loops: bool = True,
) -> Array:
    """Joint accelerations (nv,), with `wrenches` on `bodies` added to all of data.qfrc_smooth.

    Without loops and wrenches this is data.qacc_smooth. wrenches (k, 6), or (6k,), are (torque,
    force) at the bodies' centres of mass in world axes [N m, N]; None means none. The rest is as
    in `inverse_inertia`.
    """
    _check_types(model, data)
    handles = handle_bodies(model, bodies)
    count = len(handles)
    given = np.zeros((count, 6)) if wrenches is None else _wrenches(wrenches, count)
    arrays, pairs = body_arrays(model, data), loop_arrays(model, data, wanted=loops)
    _, _, qacc, singular = articulate(arrays, pairs, handles, given, 1)
    _require_regular(model, singular)
    return qacc


def _check_types(model: Any, data: Any) -> None:
    for name, value, kind in (("model", model, mujoco.MjModel), ("data", data, mujoco.MjData)):
        if not isinstance(value, kind):
            raise InvalidInput(name, f"is a {type(value).__name__}, not a mujoco.{kind.__name__}")


def handle_bodies(model: mujoco.MjModel, bodies: Sequence[int | str]) -> Indices:
    """Body numbers (k,) of what a user gave, checked."""
    if isinstance(bodies, str) or not np.iterable(bodies):
        raise InvalidInput("bodies", f"is {bodies!r}: give a sequence of body numbers or names")
    chosen = list(bodies)
    handles = np.empty(len(chosen), np.int64)
    seen: dict[int, int] = {}
    for i, body in enumerate(chosen):
        handles[i] = number = _body_number(model, body, i)
        if number == 0:
            raise InvalidInput("bodies", "is the world, which no force moves", index=i)
        if number in seen:
            reason = f"is body {body!r} again, after bodies[{seen[number]}]: give each body once"
            raise InvalidInput("bodies", reason, index=i)
        seen[number] = i
    return handles


def _body_number(model: mujoco.MjModel, body: Any, index: int) -> int:
    if isinstance(body, str):
        number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body)
        if number < 0:
            names = ", ".join(repr(model.body(i).name) for i in range(1, min(model.nbody, 9)))
            reason = f"is {body!r}: the model has no such body; it has {names}"
            raise InvalidInput("bodies", reason + (", ..." if model.nbody > 9 else ""), index=index)
        return int(number)
    if isinstance(body, bool | np.bool_) or not isinstance(body, int | np.integer):
        raise InvalidInput("bodies", f"is {body!r}: give a body's number or name", index=index)
    if not 0 <= body < model.nbody:
        reason = f"is {body}: the model has bodies 1 to {model.nbody - 1}"
        raise InvalidInput("bodies", reason, index=index)
    return int(body)


def _wrenches(value: ArrayLike, count: int) -> Array:
    """`value` as (count, 6)."""
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InvalidInput("wrenches", f"must hold real numbers ({error})") from error
    if array.shape not in ((count, 6), (6 * count,)):
        reason = f"must have shape ({count}, 6): a torque and a force for each of `bodies`"
        raise InvalidInput("wrenches", reason, array.shape)
    if not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidInput("wrenches", "must be finite", array.shape, index)
    return array.reshape(count, 6)


def body_arrays(model: mujoco.MjModel, data: mujoco.MjData) -> Bodies:
    """MuJoCo's arrays, not copied."""
    if model.ntendon and model.tendon_armature.any():
        tendon = int(np.flatnonzero(model.tendon_armature)[0])
        reason = "is not zero: it couples joints, and links would not assemble one by one"
        raise InvalidInput("model.tendon_armature", reason, index=tendon)
    sizes = (len(data.qvel), len(data.xipos)), (model.nv, model.nbody)
    # What went through a pickle or a file has no signature.
    signed = bool(data.signature and model.signature)
    if sizes[0] != sizes[1] or (signed and data.signature != model.signature):
        reason = "belongs to another model: (nv, nbody) are {} in it and {} in the model"
        raise InvalidInput("data", reason.format(*sizes))
    return Bodies(
        model.body_parentid,
        model.body_rootid,
        model.body_weldid,
        model.body_dofadr,
        model.body_dofnum,
        model.body_mass,
        model.body_inertia,
        model.dof_armature,
        data.xipos,
        data.ximat,
        data.subtree_com,
        data.cdof,
        data.cdof_dot,
        data.cvel,
        data.qvel,
        data.qfrc_smooth,
    )


def loop_arrays(model: mujoco.MjModel, data: mujoco.MjData, *, wanted: bool) -> Loops:
    """Active `connect` and `weld` constraints, at the points where MuJoCo has them."""
    held = data.eq_active & np.isin(model.eq_type, (CONNECT, WELD)) & wanted
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_EQUALITY:
        held = held & False
    active = np.flatnonzero(held)
    body, point = np.empty((len(active), 2), np.int64), np.empty((len(active), 2, 3))
    free = np.zeros(len(active), np.int64)
    for row, equality in enumerate(active):
        kind = model.eq_type[equality]
        free[row] = 3 if kind == CONNECT else 0
        for side, number in enumerate((model.eq_obj1id[equality], model.eq_obj2id[equality])):
            if model.eq_objtype[equality] == SITE:
                body[row, side] = model.site_bodyid[number]
                point[row, side] = data.site_xpos[number]
                continue
            # The anchor in each body's axes; a weld has that of its second body first.
            place = 3 * side if kind == CONNECT else 3 * (1 - side)
            anchor = model.eq_data[equality, place : place + 3]
            body[row, side] = number
            point[row, side] = data.xpos[number] + data.xmat[number].reshape(3, 3) @ anchor
    return Loops(body, point, free)


def _require_regular(model: mujoco.MjModel, body: int) -> None:
    if body >= 0:
        name = model.body(body).name or body
        reason = (
            f"puts the joint axes of body {name!r} in line with each other: without armature its "
            "mass matrix is singular"
        )
        raise InvalidInput("data.qpos", reason)
