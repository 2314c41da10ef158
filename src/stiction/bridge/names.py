"""What things in a model are called, for messages and reports."""

from __future__ import annotations

import mujoco

from stiction.errors import InvalidInput, is_count, unknown


def name_of(model: mujoco.MjModel, kind: str, index: int) -> str:
    """`geom 'floor'`, or `geom 3` where it has no name; kind as in MJCF ("geom", "body", ...)."""
    name = mujoco.mj_id2name(model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), index)
    return f"{kind} {name!r}" if name else f"{kind} {index}"


def body_of(model: mujoco.MjModel, geom: int) -> str:
    """Name of the body that the geom belongs to; "world" for the world's."""
    return _body(model, int(model.geom_bodyid[geom]))


def _body(model: mujoco.MjModel, body: int) -> str:
    return model.body(body).name or f"body {body}"


def joined_bodies(model: mujoco.MjModel) -> set[frozenset[str]]:
    """Names of bodies, two each, that an equality constraint connects or welds."""
    joined = set()
    for k in range(model.neq):
        if model.eq_type[k] in (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)):
            ends = [int(model.eq_obj1id[k]), int(model.eq_obj2id[k])]
            if model.eq_objtype[k] == int(mujoco.mjtObj.mjOBJ_SITE):
                ends = [int(model.site_bodyid[site]) for site in ends]
            joined.add(frozenset(_body(model, body) for body in ends))
    return joined


def joint_of_dof(model: mujoco.MjModel, dof: int) -> str:
    """The joint that a degree of freedom belongs to, and the body that it moves."""
    joint = int(model.dof_jntid[dof])
    body = int(model.jnt_bodyid[joint])
    return f"{name_of(model, 'joint', joint)} of {name_of(model, 'body', body)}"


def joint_of_position(model: mujoco.MjModel, index: int) -> str:
    """The joint whose coordinates include that entry of qpos."""
    joint = max(j for j in range(model.njnt) if model.jnt_qposadr[j] <= index)
    return name_of(model, "joint", joint)


def keyframe_of(model: mujoco.MjModel, keyframe: int | str) -> int:
    """Number of a keyframe that is given by number or by name; InvalidInput where there is none."""
    if isinstance(keyframe, str):
        names = [model.key(k).name for k in range(model.nkey)]
        if keyframe not in names:
            if not any(names):
                raise InvalidInput("keyframe", f"is {keyframe!r}: the model has none with a name")
            raise InvalidInput("keyframe", f"is {unknown(keyframe, filter(None, names))}")
        return names.index(keyframe)
    if not is_count(keyframe, 0) or keyframe >= model.nkey:
        raise InvalidInput("keyframe", f"is {keyframe!r}: the model has {model.nkey} keyframes")
    return int(keyframe)
