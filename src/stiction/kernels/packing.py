"""Arrays handed to kernels by address: named tuples of arrays, packed into one list of numbers.

A kernel that takes a hundred arrays spends microseconds on unpacking them, and a `stage` takes
numbers only. `pack` writes addresses and shapes of all arrays into one array of integers;
the function that `unpacker` makes turns its address into the same named tuples of views, which no
reference count is kept for. The arrays must outlive their use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import carray
from numpy.typing import NDArray

Packed = NDArray[np.int64]


@intrinsic
def as_pointer(typingctx: Any, address: Any) -> Any:
    """The address as a pointer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


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


def pack(*tuples: Any) -> Packed:
    """Addresses and shapes of the arrays of named tuples, nested ones included, in order."""
    numbers: list[int] = []
    for value in tuples:
        if isinstance(value, tuple):
            numbers.extend(pack(*value))
        else:
            assert value.flags.c_contiguous, "kernels take rows one after the other"
            numbers += [value.__array_interface__["data"][0], *value.shape]
    return np.array(numbers, np.int64)


def unpacker(*examples: Any, after: tuple[Any, ...] = ()) -> Callable[..., Any]:
    """A function for kernels: the address of what `pack` made of such tuples, to the tuples.

    examples: tuples of the same types, with arrays of the same dimensions and kinds; after: those
    packed before them, which are passed over.
    """
    names: dict[str, Any] = {"carray": carray, "as_pointer": as_pointer, "pointer": pointer}
    at = len(pack(*after))

    def view(value: Any) -> str:
        nonlocal at
        if isinstance(value, tuple):
            kind = type(value)
            names[kind.__name__] = kind
            return f"{kind.__name__}({', '.join(view(part) for part in value)})"
        slots = [f"pointer(address + {8 * (at + k)})" for k in range(1 + value.ndim)]
        at += 1 + value.ndim
        names[f"kind_{value.dtype}"] = value.dtype.type
        return f"carray(as_pointer({slots[0]}), ({', '.join(slots[1:])},), kind_{value.dtype})"

    # Written out as source: Numba has no loop over the fields of a tuple of different types.
    parts = ", ".join(view(example) for example in examples)
    source = f"def unpack(address):\n    return ({parts},)\n"
    exec(compile(source, "<unpack>", "exec"), names)
    options: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
    return numba.njit(names["unpack"], **options)
