"""Six numbers at a time: what a rigid body's velocities are.

Loops over six are too short for the compiler to turn into vector instructions by itself. These
take arrays of numbers in C's order, of any dimensions, and where in them to begin.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_intrinsic: Any = intrinsic  # kernels call without the first argument

SIX = ir.VectorType(ir.DoubleType(), 6)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """To six numbers of an array, from entry `at` on."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), SIX.as_pointer())


def _load(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    return builder.load(_pointer(context, builder, kind, array, at), align=8)


def _repeated(builder: Any, value: Any) -> Any:
    """A number six times."""
    single = builder.insert_element(ir.Constant(SIX, ir.Undefined), value, ir.IntType(32)(0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), 6), [0] * 6)
    return builder.shuffle_vector(single, ir.Constant(SIX, ir.Undefined), places)


def _sum_of_three(context: Any, builder: Any, kind: Any, array: Any, terms: Any) -> Any:
    """x A[a:a+6] + y A[b:b+6] + z A[c:c+6]."""
    total = None
    for factor, at in terms:
        row = _load(context, builder, kind, array, at)
        product = builder.fmul(_repeated(builder, factor), row)
        total = product if total is None else builder.fadd(total, product)
    return total


@_intrinsic
def add_three(
    typingctx: Any, out: Any, o: Any, A: Any, x: Any, a: Any, y: Any, b: Any, z: Any, c: Any
) -> Any:
    """out[o:o+6] += x A[a:a+6] + y A[b:b+6] + z A[c:c+6]."""
    number, index = types.float64, types.int64
    signature = types.void(out, index, A, number, index, number, index, number, index)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, o, array, x, a, y, b, z, c = args
        total = _sum_of_three(context, builder, sig.args[2], array, ((x, a), (y, b), (z, c)))
        pointer = _pointer(context, builder, sig.args[0], to, o)
        builder.store(builder.fadd(builder.load(pointer, align=8), total), pointer, align=8)
        return context.get_dummy_value()

    return signature, generate


@_intrinsic
def put_three(
    typingctx: Any, out: Any, o: Any, A: Any, x: Any, a: Any, y: Any, b: Any, z: Any, c: Any
) -> Any:
    """out[o:o+6] := x A[a:a+6] + y A[b:b+6] + z A[c:c+6]."""
    number, index = types.float64, types.int64
    signature = types.void(out, index, A, number, index, number, index, number, index)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, o, array, x, a, y, b, z, c = args
        total = _sum_of_three(context, builder, sig.args[2], array, ((x, a), (y, b), (z, c)))
        pointer = _pointer(context, builder, sig.args[0], to, o)
        builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return signature, generate


@_intrinsic
def take_scaled(typingctx: Any, out: Any, o: Any, x: Any, A: Any, a: Any) -> Any:
    """out[o:o+6] -= x A[a:a+6]."""
    number, index = types.float64, types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, o, x, array, a = args
        row = _load(context, builder, sig.args[3], array, a)
        pointer = _pointer(context, builder, sig.args[0], to, o)
        scaled = builder.fmul(_repeated(builder, x), row)
        builder.store(builder.fsub(builder.load(pointer, align=8), scaled), pointer, align=8)
        return context.get_dummy_value()

    return types.void(out, index, number, A, index), generate


@_intrinsic
def dot(typingctx: Any, A: Any, a: Any, B: Any, b: Any) -> Any:
    """A[a:a+6] . B[b:b+6]."""
    number, index = types.float64, types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, a, second, b = args
        product = builder.fmul(
            _load(context, builder, sig.args[0], first, a),
            _load(context, builder, sig.args[2], second, b),
        )
        parts = [builder.extract_element(product, ir.IntType(32)(k)) for k in range(6)]
        left = builder.fadd(builder.fadd(parts[0], parts[1]), parts[2])
        right = builder.fadd(builder.fadd(parts[3], parts[4]), parts[5])
        return builder.fadd(left, right)

    return number(A, index, B, index), generate
