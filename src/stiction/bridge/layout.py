"""Where the fields of MuJoCo's structures lie, and how kernels read them.

Offsets come from the binding's own description of the C structures (`mujoco.introspect`), laid
out by `ctypes` as a compiler would, and are checked against the binding's arrays when a model
is first seen. They are constants in compiled kernels: the kernels' cache is named by MuJoCo's
version too (`kernels/compile.py`).

An address is an integer; a field of a structure is read with `integer`, `number`, `pointer`, an
array behind a pointer with `integers`, `numbers`, one of its integers with `entry`.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import mujoco
from mujoco.introspect import ast_nodes, structs
from numba import types

from stiction.errors import StictionError
from stiction.kernels.compile import leaf
from stiction.kernels.packing import integer, number, pointer
from stiction.kernels.plain_array import plain_at, plain_table

__all__ = ["check_layout", "entry", "flags", "integer", "integers", "number", "numbers", "offset"]
__all__ += ["pointer", "size_of", "structure", "table", "words"]

_SCALARS: dict[str, Any] = {
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "char": ctypes.c_char,
    "unsigned char": ctypes.c_ubyte,
    "size_t": ctypes.c_size_t,
    "uintptr_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "int64_t": ctypes.c_int64,
    "mjtNum": ctypes.c_double,
    "mjtByte": ctypes.c_ubyte,
    "mjtBool": ctypes.c_bool,
    "mjtSize": ctypes.c_int64,
}


@cache
def structure(name: str) -> Any:
    """The ctypes structure of that C name."""
    fields = [(field.name, _ctype(field.type)) for field in structs.STRUCTS[name].fields]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def _ctype(node: Any) -> Any:
    if isinstance(node, ast_nodes.PointerType):
        return ctypes.c_void_p
    if isinstance(node, ast_nodes.ArrayType):
        inner = _ctype(node.inner_type)
        for extent in reversed(node.extents):
            inner = inner * extent
        return inner
    if isinstance(node, ast_nodes.ValueType):
        if node.name in _SCALARS:
            return _SCALARS[node.name]
        if node.name in structs.STRUCTS:
            return structure(node.name)
        return ctypes.c_int  # an enumeration
    # A structure without a name of its own.
    fields = [(field.name, _ctype(field.type)) for field in node.fields]
    return type("unnamed", (ctypes.Structure,), {"_fields_": fields})


def offset(name: str, *path: str) -> int:
    """Bytes from the start of the structure to the field: offset("mjModel", "opt", "timestep")."""
    at = 0
    kind = structure(name)
    for field in path:
        at += getattr(kind, field).offset
        kind = dict(kind._fields_)[field]
    return at


def size_of(name: str) -> int:
    """Bytes of the structure."""
    return ctypes.sizeof(structure(name))


def check_layout(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Raises StictionError unless fields from all over both structures are where the binding
    has them: kernels would otherwise write into other memory."""
    for thing, kind, names in (
        (model, "mjModel", ("qpos0", "body_mass", "geom_margin", "pair_margin", "D_colind")),
        (data, "mjData", ("qpos", "qvel", "cvel", "M", "qDeriv", "qfrc_constraint", "cacc")),
    ):
        for name in names:
            array = getattr(thing, name)
            address = thing._address + offset(kind, name)
            found = ctypes.c_void_p.from_address(address).value
            if array.size and found != array.__array_interface__["data"][0]:
                raise StictionError(
                    f"{kind}.{name} is not where MuJoCo {mujoco.__version__}'s own description "
                    "puts it; this release of stiction cannot run with it"
                )
    address = model._address + offset("mjModel", "opt", "timestep")
    if ctypes.c_double.from_address(address).value != model.opt.timestep:
        raise StictionError(f"mjModel.opt of MuJoCo {mujoco.__version__} has another layout")


numbers = plain_at(types.float64)
"""(n,) the doubles at an address: numbers(address, n)."""

table = plain_table(types.float64)
"""(rows, columns) the doubles at an address: table(address, rows, columns)."""

integers = plain_at(types.int32)
"""(n,) the C ints at an address."""

flags = plain_at(types.uint8)
"""(n,) the bytes at an address."""

words = plain_at(types.int64)
"""(n,) the 64-bit integers at an address."""


@leaf
def entry(address, index):
    """Integer of that index in the array whose address is there."""
    return integers(pointer(address) + 4 * index, 1)[0]
