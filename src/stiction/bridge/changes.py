"""Edits of a model that was taken over, noticed by comparing the memory of its fields.

`Fields` holds a copy of all that a step reads of a model, but for meshes and height fields, whose
memory may be large. MuJoCo keeps the fields of a model in one block of memory, so that a few ranges
cover them, and comparing these costs a microsecond in 100 kB, or in 50 kB where they are not in the
processor's caches. Of large models what no step reads is left out.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from operator import attrgetter

import mujoco
import numpy as np
from mujoco.introspect import ast_nodes, structs
from numba import types

from stiction.bridge.layout import offset, size_of
from stiction.kernels.compile import kernel
from stiction.kernels.packing import pointer

_compare_memory = types.ExternalFunction("memcmp", types.intc(types.intp, types.intp, types.uintp))
_SIZE = size_of("mjModel")
_BUFFER = offset("mjModel", "buffer")
_OPT = (offset("mjModel", "opt"), size_of("mjOption"))
_STATISTIC = (offset("mjModel", "stat"), size_of("mjStatistic"))
_CAMERA, _RANGEFINDER = int(mujoco.mjtObj.mjOBJ_CAMERA), int(mujoco.mjtSensor.mjSENS_RANGEFINDER)
_flags = [
    offset("mjModel", field.name)
    for field in structs.STRUCTS["mjModel"].fields
    if field.name.startswith("flg_")
]
_FLAGS = (min(_flags), max(_flags) + 1 - min(_flags))

READ = re.compile(
    r"qpos0|qpos_spring|hfield_size"
    r"|(body|jnt|dof|tree|geom|site|pair|exclude|eq|tendon|wrap|actuator|sensor)_.*"
)
"""Fields that every step may read: users' own as well, which callbacks find in the model that they
are given."""

SEEN_ONLY = re.compile(r".*_(rgba|matid)|(?!actuator_).*_group")
"""Those among them that are for the eye. Groups of actuators are not: options switch them off."""

OF_CAMERAS = re.compile(r"cam_.*")
"""Those that steps with a sensor of a camera read."""

OF_RAYS = re.compile(r"geom_(rgba|matid)|mat_rgba")
"""Those that steps with a rangefinder read: its rays pass through what cannot be seen."""

UNREAD = re.compile(r"(geom|pair|jnt|dof|tendon)_sol\w+|(geom|pair)_gap")
"""Those that MuJoCo's own solver reads: contacts, limits and dry friction are rigid here. Left out
where they are larger than WORTHWHILE, and copied when anything else is edited."""

WORTHWHILE = 2048
"""Bytes of a field up to which comparing it takes no longer than to begin another range."""

ONLY_IF = {
    "geom_fluid": ("opt.density", "opt.viscosity"),
    "geom_surfacevel": ("flg_surfacevel",),
}
"""Fields that steps read only if one of these numbers of the model, which always are compared, is
not zero. Together they are a third of what a geom takes."""

DERIVED = ("bvh_aabb",)
"""Fields that `mj_setConst` derives from those: copied with them, not compared."""

ONE_RANGE = 64
"""Bytes between two fields up to which they are one range: MuJoCo aligns them."""


@cache
def field_names(cameras: bool = True, rays: bool = True) -> tuple[str, ...]:
    """Fields of a model that are compared. cameras, rays: whether sensors look by them."""

    def is_read(name: str) -> bool:
        always = READ.fullmatch(name) and not SEEN_ONLY.fullmatch(name)
        seen = (cameras and OF_CAMERAS.fullmatch(name)) or (rays and OF_RAYS.fullmatch(name))
        return bool(always or seen)

    return tuple(
        field.name
        for field in structs.STRUCTS["mjModel"].fields
        if isinstance(field.type, ast_nodes.PointerType) and is_read(field.name)
    )


def _looks_by(model: mujoco.MjModel) -> tuple[bool, bool]:
    """Whether the model has sensors of cameras, and rangefinders."""
    ends = np.concatenate([model.sensor_objtype, model.sensor_reftype])
    return bool((ends == _CAMERA).any()), bool((model.sensor_type == _RANGEFINDER).any())


class Fields:
    """What a step reads of `model`, as it was when this was made or last taken over."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model  # whose memory is read
        names = field_names(*_looks_by(model))
        unread = tuple(name for name in names if _is_left_out(model, name))
        asked = tuple(name for name in ONLY_IF if getattr(model, name).nbytes > WORTHWHILE)
        read = tuple(name for name in names if name not in (*unread, *asked))
        found = [(model._address + at, size) for at, size in (_OPT, _FLAGS, _STATISTIC)]
        found += _ranges(model, read)
        self._asked = {name: len(found) + k for k, name in enumerate(asked)}
        found += [_ranges(model, (name,))[0] for name in asked]
        self._copies = [np.zeros(length, np.uint8) for _, length in found]
        self._ranges = found
        table = [len(found)]
        for (start, length), copied in zip(found, self._copies, strict=True):
            table += [start, length, int(copied.ctypes.data)]
        self._table = np.array(table, np.int64)
        self.address = int(self._table.ctypes.data)
        """To be handed to `are_edited`."""
        self._copied = _ranges(model, (*unread, *DERIVED))
        self.note()

    @property
    def edited(self) -> bool:
        """Whether the model has been written to since."""
        return bool(are_edited(self.address))

    @property
    def options_only(self) -> bool:
        """Whether nothing but the model's options has."""
        return not any(
            ctypes.string_at(start, length) != copied.tobytes()
            for (start, length), copied in zip(self._ranges[1:], self._copies[1:], strict=True)
        )

    def note(self) -> None:
        """Notes the model as it is."""
        for (start, length), copied in zip(self._ranges, self._copies, strict=True):
            ctypes.memmove(copied.ctypes.data, start, length)
        for name, k in self._asked.items():
            counts = any(attrgetter(number)(self._model) for number in ONLY_IF[name])
            self._table[3 * k + 2] = self._ranges[k][1] if counts else 0

    def write_to(self, other: mujoco.MjModel) -> None:
        """Writes the fields of the model to a copy of it, but for its options."""
        inside = other._address - self._model._address
        beyond = _buffer(other) - _buffer(self._model)
        for start, length in [*self._ranges[1:], *self._copied]:
            within = 0 <= start - self._model._address < _SIZE
            ctypes.memmove(start + (inside if within else beyond), start, length)


def _is_left_out(model: mujoco.MjModel, name: str) -> bool:
    """Whether edits of that field are not looked for."""
    return bool(UNREAD.fullmatch(name)) and getattr(model, name).nbytes > WORTHWHILE


def _buffer(model: mujoco.MjModel) -> int:
    """Where the block of a model's fields begins."""
    return int(ctypes.c_void_p.from_address(model._address + _BUFFER).value or 0)


def _ranges(model: mujoco.MjModel, names: tuple[str, ...]) -> list[tuple[int, int]]:
    """(address, bytes) of the memory that holds the fields, neighbours joined."""
    arrays = [getattr(model, name) for name in names]
    spans = sorted((a.__array_interface__["data"][0], a.nbytes) for a in arrays if a.size)
    joined: list[tuple[int, int]] = []
    for start, length in spans:
        if joined and start - sum(joined[-1]) < ONE_RANGE:
            joined[-1] = (joined[-1][0], start + length - joined[-1][0])
        else:
            joined.append((start, length))
    return joined


@kernel
def are_edited(table):
    """Whether the model of the `Fields` at that address has been written to since."""
    for k in range(pointer(table)):
        at = table + 24 * k
        if _compare_memory(pointer(at + 8), pointer(at + 24), pointer(at + 16)) != 0:
            return True
    return False
