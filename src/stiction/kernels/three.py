"""Blocks of three rows and columns: those of particles, of bodies in the plane, and of contacts in
contact space.

Loops over three are left as they are by the compiler, a number at a time. Here a row is a vector.
Products are added in one instruction, rounded once, where the processor has it (`six.py`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from stiction.kernels.vectors import add, data_of, load, place, repeated

_intrinsic: Any = intrinsic  # kernels call without the first argument


@_intrinsic
def take_product(typingctx: Any, C: Any, c: Any, A: Any, a: Any, B: Any, b: Any) -> Any:
    """C -= A B, of blocks of three rows and columns."""
    index = types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, c, first, a, second, b = args
        target = data_of(context, builder, sig.args[0], to)
        left = data_of(context, builder, sig.args[2], first)
        right = data_of(context, builder, sig.args[4], second)

        def after(at: Any, far: int) -> Any:
            return builder.add(at, ir.Constant(at.type, far))

        rows = [builder.fneg(load(builder, right, after(b, 3 * k), 3)) for k in range(3)]
        for i in range(3):
            pointer = place(builder, target, after(c, 3 * i), 3)
            total = builder.load(pointer, align=8)
            for k in range(3):
                entry = builder.load(builder.gep(left, [after(a, 3 * i + k)]))
                total = add(builder, total, repeated(builder, entry, 3), rows[k], 3)
            builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return types.void(C, index, A, index, B, index), generate
