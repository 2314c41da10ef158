"""Edits of a compiled model that MuJoCo's compiler would have refused, named before they are used.

MuJoCo trusts the arrays of a model: a parent that does not exist, a geom of no type or a size that
is not a number ends in memory that belongs to others.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from functools import cache, partial

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import library
from stiction.bridge.names import joint_of_dof, name_of
from stiction.bridge.references import check_indices
from stiction.errors import InvalidInput

_GEOM = mujoco.mjtGeom

TYPES = {
    "geom_type": range(int(_GEOM.mjNGEOMTYPES)),
    "jnt_type": range(len(mujoco.mjtJoint.__members__)),
    "eq_type": range(int(mujoco.mjtEq.mjEQ_TENDON) + 1),  # others are for flexible bodies
    "wrap_type": range(len(mujoco.mjtWrap.__members__)),
    "actuator_trntype": range(len(mujoco.mjtTrn.__members__) - 1),  # but for mjTRN_UNDEFINED
    "actuator_dyntype": range(len(mujoco.mjtDyn.__members__)),
    "actuator_gaintype": range(len(mujoco.mjtGain.__members__)),
    "actuator_biastype": range(len(mujoco.mjtBias.__members__)),
    "sensor_type": range(len(mujoco.mjtSensor.__members__)),
    "geom_condim": (1, 3, 4, 6),
    "pair_dim": (1, 3, 4, 6),
    "body_sameframe": range(len(mujoco.mjtSameFrame.__members__)),
    "geom_sameframe": range(len(mujoco.mjtSameFrame.__members__)),
    "site_sameframe": range(len(mujoco.mjtSameFrame.__members__)),
    "body_simple": (0, 1, 2),
    "sensor_datatype": range(len(mujoco.mjtDataType.__members__)),
    "sensor_needstage": range(len(mujoco.mjtStage.__members__)),
    "site_type": range(int(_GEOM.mjNGEOMTYPES)),
}
"""Fields that choose from a list, and what they may be."""

LENGTHS = {
    int(_GEOM.mjGEOM_SPHERE): 1,
    int(_GEOM.mjGEOM_CAPSULE): 2,
    int(_GEOM.mjGEOM_CYLINDER): 2,
    int(_GEOM.mjGEOM_ELLIPSOID): 3,
    int(_GEOM.mjGEOM_BOX): 3,
}
"""How many of a geom's sizes must be positive, by its type."""

KINDS = {"jnt": "joint", "eq": "equality"}
"""MJCF's names of what fields call otherwise."""

MEASURES = re.compile(
    r"(qpos0|qpos_spring|wrap_prm|hfield_size|hfield_data|mesh_vert"
    r"|(body|jnt|dof|geom|site|tendon|eq|pair|actuator)_(?!user|rgba).*)"
)
"""Fields that a step computes with."""

UNBOUNDED = re.compile(
    r".*(range|springyield|length|lengthspring|margin|gap|solref|solimp|solreffriction|prm|yield)"
)
"""Those among them that may be infinite; none may be NaN."""


def check_edits(model: mujoco.MjModel) -> None:
    """Raises InvalidInput that names the field and the object that cannot be."""
    for name, allowed in TYPES.items():
        if name == "eq_type" and model.nflex:
            continue  # flexible bodies are refused by their own name
        values = getattr(model, name)
        bad = np.flatnonzero(~np.isin(values, allowed))
        if len(bad):
            known = f"{allowed[0]} to {allowed[-1]}" if isinstance(allowed, range) else allowed
            raise _refused(model, name, int(bad[0]), f"is {values[bad[0]]}: {known} are known")
    check_indices(model, partial(_refused, model))
    if not model.nflex:
        _check_references(model)  # trusts addresses itself, and ends the process at other types
    _check_shapes(model)
    for name, values in _measures(model):
        _check_numbers(model, name, values)


@cache
def _measure_names() -> tuple[str, ...]:
    return tuple(name for name in dir(mujoco.MjModel) if MEASURES.fullmatch(name))


def _measures(model: mujoco.MjModel) -> Iterator[tuple[str, NDArray[np.floating]]]:
    """Fields that a step computes with, by name."""
    for name in _measure_names():
        values = getattr(model, name)
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            yield name, values


def _check_references(model: mujoco.MjModel) -> None:
    """MuJoCo's own check of numbers that point to other objects, which it makes of files only."""
    function = library.load().mj_validateReferences
    function.restype, function.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    said = function(model._address)
    if said is None:
        return
    text = said.decode(errors="replace").removeprefix("Invalid model: ").rstrip(".")
    name = next((word for word in re.findall(r"\w+", text) if hasattr(model, word)), None)
    raise InvalidInput(
        f"model.{name}" if name else "model", f"was edited to what no model can have: {text}"
    )


def _check_shapes(model: mujoco.MjModel) -> None:
    """Sizes of geoms are positive, and meshes and height fields exist."""
    for count, kinds in (
        (model.nmesh, (_GEOM.mjGEOM_MESH, _GEOM.mjGEOM_SDF)),
        (model.nhfield, (_GEOM.mjGEOM_HFIELD,)),
    ):
        shaped = np.isin(model.geom_type, [int(kind) for kind in kinds])
        for geom in np.flatnonzero(
            shaped & ((model.geom_dataid < 0) | (model.geom_dataid >= count))
        ):
            found = f"is {model.geom_dataid[geom]}: the model has {count} of that type"
            raise _refused(model, "geom_dataid", int(geom), found)
    need = np.array([LENGTHS.get(int(kind), 0) for kind in model.geom_type], np.int64)
    used = np.arange(3) < need[:, None]
    for geom, column in np.argwhere(used & ~(model.geom_size > 0.0)):
        found = f"is {model.geom_size[geom, column]}: a length is positive"
        raise _refused(model, "geom_size", int(geom), found)
    for geom, column in np.argwhere(~(model.geom_size >= 0.0)):
        found = f"is {model.geom_size[geom, column]}: a length is not negative"
        raise _refused(model, "geom_size", int(geom), found)


def _check_numbers(model: mujoco.MjModel, name: str, values: NDArray[np.floating]) -> None:
    wrong = np.isnan(values) if UNBOUNDED.fullmatch(name) else ~np.isfinite(values)
    bad = np.argwhere(wrong)
    if len(bad):
        at = tuple(int(k) for k in bad[0])
        raise _refused(model, name, at[0], f"is {values[at]}: it must be a finite number")


def _refused(model: mujoco.MjModel, name: str, index: int, reason: str) -> InvalidInput:
    """The error, with the object's name where it has one."""
    prefix = name.split("_")[0]
    kind = KINDS.get(prefix, prefix)
    if prefix == "dof" and name != "dof_jntid":
        reason += f" (at {joint_of_dof(model, index)})"
    elif hasattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"):
        reason += f" (at {name_of(model, kind, index)})"
    return InvalidInput(f"model.{name}", reason, index=index)
