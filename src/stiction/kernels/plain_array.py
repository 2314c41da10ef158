"""Arrays as C has them: an index counts from the front, never from the end.

NumPy's a[-1] is the last entry, so that Numba compares every index of unknown sign with zero and
adds the length where it is below. Loops over contacts and bodies index by what other arrays hold,
and this was a third of what they did. The arrays of packed tuples (`packing.py`) and those that lie
in MuJoCo's memory (`plain_at`) go without, and without reference counts: they outlive their use.

An entry is read and written by few instructions (`entry_pointer`), which `lowering.py` puts in:
Numba's own way through copies of the array on the stack costs ten times as many, and compiling
is slow by their number.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.extending import intrinsic, lower_builtin, lower_getattr, register_model
from numba.np.arrayobj import getitem_array_tuple, getitem_arraynd_intp, setitem_array

_WORD = ir.IntType(64)


class PlainArray(types.Array):
    """The type of an array in C's order whose indices are not negative."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        super().__init__(dtype, ndim, "C")
        self.name = f"plain {self.name}"

    @property
    def key(self) -> Any:
        """What tells types apart."""
        return ("plain", *super().key)


@register_model(PlainArray)
class _PlainModel(models.ArrayModel):
    """As Numba's arrays, but nothing in it is counted."""

    def traverse(self, builder: Any) -> list[Any]:
        """Of what is counted: nothing."""
        return []

    def inner_models(self) -> list[Any]:
        """Of what is counted: nothing."""
        return []


@cache
def _size_of(context: Any, dtype: Any) -> int:
    """Bytes of an entry; LLVM takes its time to tell."""
    return int(context.get_abi_sizeof(context.get_data_type(dtype)))


def make_plain(context: Any, builder: Any, kind: PlainArray, data: Any, shape: list[Any]) -> Any:
    """The array of that type and shape at the pointer `data`."""
    itemsize = ir.Constant(_WORD, _size_of(context, kind.dtype))
    strides = [itemsize]
    for size in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], size, flags=["nsw"]))
    nitems = shape[0]
    for size in shape[1:]:
        nitems = builder.mul(nitems, size, flags=["nsw"])
    model = context.data_model_manager[kind]
    value = ir.Constant(context.get_value_type(kind), None)
    for field, part in (("nitems", nitems), ("itemsize", itemsize), ("data", data)):
        value = builder.insert_value(value, part, model.get_field_position(field))
    for field, parts in (("shape", shape), ("strides", strides)):
        for k, part in enumerate(parts):
            value = builder.insert_value(value, part, [model.get_field_position(field), k])
    return value


def entry_pointer(
    context: Any, builder: Any, kind: PlainArray, array: Any, index: Any, index_kind: Any
) -> Any:
    """Pointer to the entry that an index names, or None if it names more than one."""
    if isinstance(index_kind, types.BaseTuple):
        kinds = list(cast(Any, index_kind).types)
        parts = [builder.extract_value(index, k) for k in range(len(kinds))]
    else:
        kinds, parts = [index_kind], [index]
    if len(kinds) != kind.ndim or not all(isinstance(each, types.Integer) for each in kinds):
        return None
    model = context.data_model_manager[kind]
    at = None
    for k, (part, part_kind) in enumerate(zip(parts, kinds, strict=True)):
        number = context.cast(builder, part, part_kind, types.intp)
        if at is None:
            at = number
        else:
            size = builder.extract_value(array, [model.get_field_position("shape"), k])
            at = builder.add(builder.mul(at, size, flags=["nsw"]), number, flags=["nsw"])
    return builder.gep(builder.extract_value(array, model.get_field_position("data")), [at])


def plain_at(dtype: Any) -> Any:
    """An intrinsic: (address, n) to the array (n,) of that type there."""
    kind = PlainArray(dtype, 1)

    def plain_numbers(typingctx: Any, address: Any, n: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.get_data_type(dtype).as_pointer()
            return make_plain(context, builder, kind, builder.inttoptr(args[0], data), [args[1]])

        return kind(types.intp, types.intp), generate

    return intrinsic(plain_numbers)


def plain_table(dtype: Any) -> Any:
    """An intrinsic: (address, rows, columns) to the array of that shape and type there."""
    kind = PlainArray(dtype, 2)

    def plain_rows(typingctx: Any, address: Any, rows: Any, columns: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.get_data_type(dtype).as_pointer()
            return make_plain(
                context, builder, kind, builder.inttoptr(args[0], data), list(args[1:])
            )

        return kind(types.intp, types.intp, types.intp), generate

    return intrinsic(plain_rows)


@lower_getattr(PlainArray, "shape")
def _shape(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    model = context.data_model_manager[kind]
    return builder.extract_value(value, model.get_field_position("shape"))


def _unsigned(kind: Any) -> Any:
    """The type of an index, as one that Numba takes as it is."""
    if isinstance(kind, types.Integer):
        return types.uintp
    if isinstance(kind, types.BaseTuple):
        return types.Tuple([_unsigned(each) for each in cast(Any, kind).types])
    return kind


def _with_plain_index(sig: Any, args: Any, context: Any, builder: Any) -> tuple[Any, list[Any]]:
    """Signature and arguments with the index, which is the second, cast."""
    kinds, values = list(sig.args), list(args)
    kinds[1] = _unsigned(kinds[1])
    if kinds[1] != sig.args[1]:
        values[1] = context.cast(builder, values[1], sig.args[1], kinds[1])
    return sig.replace(args=tuple(kinds)), values


# Where an index names more than one entry, and in Numba's own functions.


@lower_builtin(operator.getitem, PlainArray, types.Integer)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return getitem_arraynd_intp(context, builder, *_with_plain_index(sig, args, context, builder))


@lower_builtin(operator.getitem, PlainArray, types.BaseTuple)
def _get_by_tuple(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return getitem_array_tuple(context, builder, *_with_plain_index(sig, args, context, builder))


@lower_builtin(operator.setitem, PlainArray, types.Any, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return setitem_array(context, builder, *_with_plain_index(sig, args, context, builder))
