"""Where the fields of MuJoCo's structures lie, and how kernels read them.

Offsets come from the binding's own description of the C structures (`mujoco.introspect`), laid
out by `ctypes` as a compiler would, and are checked against the binding's arrays when a model
is first seen. They are constants in compiled kernels: the kernels' cache is named by MuJoCo's
version too (`kernels/compile.py`).

An address is an integer; a field of a structure is read with `integer`, `number`, `pointer`, an
array behind a pointer with `integers`, `numbers`.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import mujoco
import numpy as np
from mujoco.introspect import ast_nodes, structs
from numba.np.numpy_support import carray

from stiction.errors import StictionError
from stiction.kernels.compile import leaf
from stiction.kernels.packing import as_pointer, integer, number, pointer

__all__ = ["as_pointer", "check_layout", "flags", "integer", "integers", "number", "numbers"]
__all__ += ["offset", "pointer", "size_of", "structure", "table", "words"]

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


@leaf
def numbers(address, n):
    """(n,) the doubles at that address."""
    return carray(as_pointer(address), (n,), np.float64)


@leaf
def table(address, rows, columns):
    """(rows, columns) the doubles at that address."""
    return carray(as_pointer(address), (rows, columns), np.float64)


@leaf
def integers(address, n):
    """(n,) the C ints at that address."""
    return carray(as_pointer(address), (n,), np.int32)


@leaf
def flags(address, n):
    """(n,) the bytes at that address."""
    return carray(as_pointer(address), (n,), np.uint8)


@leaf
def words(address, n):
    """(n,) the 64-bit integers at that address."""
    return carray(as_pointer(address), (n,), np.int64)
