"""Named tuples of arrays as kernels take them: one address instead of a hundred arrays.

Numba hands an array to a function as nine numbers, a tuple of arrays as that many for each, and
compiles, and moves, all of them at every call. The tuples that `packed` decorates go as one number,
the address of a list of their arrays' addresses and shapes (`pack`); a kernel that reads
`tuple.field` makes the array there and then. No reference count is kept: the arrays must outlive
their use, and tuple and list belong to whoever made them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.core.datamodel import models
from numba.core.pythonapi import NativeValue, unbox
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_getattr_generic, register_model, typeof_impl
from numpy.typing import NDArray

from stiction.kernels.plain_array import PlainArray, make_plain

Addresses = NDArray[np.int64]
C = TypeVar("C", bound=type)

SLOT = 8
"""Bytes of an entry of a packed list."""


def _loader(name: str, result: Any, code: Any) -> Any:
    """An intrinsic that reads one value of that type at an address."""

    def typing(typingctx: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], code.as_pointer())
            value = builder.load(pointer)
            if result == types.int64 and code.width < 64:
                value = builder.sext(value, ir.IntType(64))
            return value

        return result(types.int64), generate

    typing.__name__ = name
    return intrinsic(typing)


number = _loader("number", types.float64, ir.DoubleType())
integer = _loader("integer", types.int64, ir.IntType(32))
pointer = _loader("pointer", types.int64, ir.IntType(64))


def pack(*tuples: Any) -> Addresses:
    """Addresses and shapes of the arrays of named tuples, nested ones included, in order."""
    numbers: list[int] = []
    for value in tuples:
        if isinstance(value, tuple):
            numbers.extend(pack(*value))
        else:
            assert value.flags.c_contiguous, "kernels take rows one after the other"
            numbers += [value.__array_interface__["data"][0], *value.shape]
    return np.array(numbers, np.int64)


def _pack_into(typingctx: Any, entries: Any, value: Any) -> Any:
    """In kernels: entries (n,) of int64 := what `pack` makes of a tuple of arrays in C's order.
    The caller holds the arrays, and reads an entry after the last use of the list."""
    kinds = tuple(value.types)
    if not all(isinstance(kind, types.Array) and kind.layout == "C" for kind in kinds):
        raise errors.TypingError("kernels take rows one after the other")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(8 * SLOT)
        to = context.make_array(signature.args[0])(context, builder, args[0]).data
        parts = []
        for k, kind in enumerate(kinds):
            part = context.make_array(kind)(
                context, builder, builder.extract_value(args[1], k)
            )  # fmt: skip
            parts.append(builder.ptrtoint(part.data, word))
            parts += cgutils.unpack_tuple(builder, part.shape)
        for k, part in enumerate(parts):
            builder.store(part, builder.gep(to, [ir.Constant(word, k)]))
        return context.get_dummy_value()

    return types.void(entries, value), generate


pack_into: Any = intrinsic(_pack_into)


class PackedType(types.Type):
    """The type of a packed named tuple: `fields` are (name, type of its array)."""

    def __init__(self, name: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = fields
        super().__init__(name=f"{name}({', '.join(f'{field}: {kind}' for field, kind in fields)})")

    def find(self, name: str) -> tuple[int, Any]:
        """Slot and type of a field."""
        at = 0
        for field, kind in self.fields:
            if field == name:
                return at, kind
            at += slots_of(kind)
        raise AttributeError(name)


def slots_of(kind: Any) -> int:
    """Entries of a list that an array, or a packed tuple, takes."""
    if isinstance(kind, PackedType):
        return sum(slots_of(each) for _, each in kind.fields)
    return 1 + int(kind.ndim)


def _type_of_part(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return PlainArray(numba.from_dtype(value.dtype), value.ndim)
    return numba.typeof(value)


def packed(kind: C) -> C:
    """Decorates a named tuple of arrays: kernels take it by address."""

    def type_of(value: Any, _: Any) -> PackedType:
        names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
        fields = zip(names, (_type_of_part(part) for part in value), strict=True)
        return PackedType(f"{kind.__module__}.{kind.__qualname__}", tuple(fields))

    typeof_impl.register(kind)(type_of)
    return kind


@register_model(PackedType)
class _PackedModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, ir.IntType(8 * SLOT))


@infer_getattr
class _PackedAttributes(AttributeTemplate):
    key = PackedType

    def generic_resolve(self, typ: Any, attr: str) -> Any:  # type: ignore[override]
        return dict(typ.fields).get(attr)


@lower_getattr_generic(PackedType)
def _read_field(context: Any, builder: Any, typ: Any, value: Any, attr: str) -> Any:
    """The array of a field."""
    slot, kind = typ.find(attr)
    word = ir.IntType(8 * SLOT)
    if isinstance(kind, PackedType):
        return builder.add(value, ir.Constant(word, SLOT * slot))
    entries = builder.inttoptr(value, word.as_pointer())

    def load(k: int) -> Any:
        entry = builder.load(builder.gep(entries, [ir.Constant(word, slot + k)]))
        # Nothing that a kernel writes changes the list: it need not be read twice.
        entry.set_metadata("invariant.load", builder.module.add_metadata([]))
        return entry

    data = builder.inttoptr(load(0), context.get_data_type(kind.dtype).as_pointer())
    return make_plain(context, builder, kind, data, [load(1 + k) for k in range(kind.ndim)])


def _held(value: Any) -> tuple[int, Addresses]:
    """Address of a packed tuple, and the list that must be kept meanwhile."""
    addresses = pack(value)
    return int(addresses.ctypes.data), addresses


@unbox(PackedType)
def _from_python(typ: Any, obj: Any, c: Any) -> NativeValue:
    """Packs the tuple for the time of the call."""
    packer = c.pyapi.unserialize(c.pyapi.serialize_object(_held))
    held = c.pyapi.call_function_objargs(packer, (obj,))
    c.pyapi.decref(packer)
    failed = cgutils.is_null(c.builder, held)
    address = cgutils.alloca_once_value(c.builder, ir.Constant(ir.IntType(8 * SLOT), 0))
    with c.builder.if_then(c.builder.not_(failed)):
        found = c.pyapi.long_as_longlong(c.pyapi.tuple_getitem(held, 0))
        c.builder.store(found, address)

    def release() -> None:
        with c.builder.if_then(c.builder.not_(failed)):
            c.pyapi.decref(held)

    return NativeValue(c.builder.load(address), cleanup=release, is_error=failed)


@intrinsic
def _as_packed(typingctx: Any, address: Any, example: Any) -> Any:
    """The packed tuple at an address; example: its type."""
    kind: Any = example.instance_type

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return kind(types.int64, example), generate


def unpacker(*examples: Any, after: tuple[Any, ...] = ()) -> Callable[..., Any]:
    """A function for kernels: the address of what `pack` made of such tuples, to the tuples.

    examples: tuples of the same types, with arrays of the same dimensions and kinds; after: those
    packed before them, which are passed over.
    """
    names: dict[str, Any] = {"_as_packed": _as_packed}
    at = len(pack(*after))
    parts = []
    for example in examples:
        name = type(example).__name__
        names[name] = numba.typeof(example)
        parts.append(f"_as_packed(address + {SLOT * at}, {name})")
        at += len(pack(example))
    # Written out as source: Numba has no loop over the fields of a tuple of different types.
    source = f"def unpack(address):\n    return ({', '.join(parts)},)\n"
    exec(compile(source, "<unpack>", "exec"), names)
    options: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
    return numba.njit(names["unpack"], **options)
