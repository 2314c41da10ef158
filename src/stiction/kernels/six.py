"""Six numbers at a time: what a rigid body's velocities are.

Loops over six are too short for the compiler to turn into vector instructions by itself. These
take arrays of numbers in C's order, of any dimensions, and where in them to begin.

Products of blocks are added in one instruction, rounded once, where the processor has it. Elsewhere
that would be a call for every number. All else is rounded product by product and sum by sum: what
is symmetric then stays so to the last bit, and comes to rest exactly.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_intrinsic: Any = intrinsic  # kernels call without the first argument

SIX = ir.VectorType(ir.DoubleType(), 6)

FUSED = platform.machine() in ("arm64", "aarch64") or binding.get_host_cpu_features().get(
    "fma", False
)
"""Whether the processor multiplies and adds in one instruction."""


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


def _add(builder: Any, total: Any, factor: Any, row: Any, fused: bool = False) -> Any:
    """total + factor row, or without the total if that is None."""
    if total is None:
        return builder.fmul(factor, row)
    if fused:
        kind = ir.FunctionType(SIX, [SIX] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v6f64")
        return builder.call(fused, (factor, row, total))
    return builder.fadd(total, builder.fmul(factor, row))


def _sum_of_three(context: Any, builder: Any, kind: Any, array: Any, terms: Any) -> Any:
    """x A[a:a+6] + y A[b:b+6] + z A[c:c+6]."""
    total = None
    for factor, at in terms:
        row = _load(context, builder, kind, array, at)
        total = _add(builder, total, _repeated(builder, factor), row)
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
        pointer = _pointer(context, builder, sig.args[0], to, o)
        total = _sum_of_three(context, builder, sig.args[2], array, ((x, a), (y, b), (z, c)))
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
        builder.store(total, _pointer(context, builder, sig.args[0], to, o), align=8)
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
        factor = _repeated(builder, builder.fneg(x))
        total = _add(builder, builder.load(pointer, align=8), factor, row)
        builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return types.void(out, index, number, A, index), generate


@_intrinsic
def take_product(typingctx: Any, C: Any, c: Any, A: Any, a: Any, B: Any, b: Any) -> Any:
    """C -= A B, of blocks of six rows and columns."""
    index = types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, c, first, a, second, b = args
        entries = context.make_array(sig.args[2])(context, builder, first).data

        def after(at: Any, k: int) -> Any:
            return builder.add(at, at.type(k))

        rows = [_load(context, builder, sig.args[4], second, after(b, 6 * k)) for k in range(6)]
        for i in range(6):
            pointer = _pointer(context, builder, sig.args[0], to, after(c, 6 * i))
            total = builder.load(pointer, align=8)
            for k in range(6):
                entry = builder.load(builder.gep(entries, [after(a, 6 * i + k)]))
                factor = _repeated(builder, builder.fneg(entry))
                total = _add(builder, total, factor, rows[k], FUSED)
            builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return types.void(C, index, A, index, B, index), generate


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


@_intrinsic
def dot_by_pairs(typingctx: Any, A: Any, a: Any, B: Any, b: Any) -> Any:
    """A[a:a+6] . B[b:b+6], two numbers at a time, products added in one instruction: in half the
    instructions of `dot`, and rounded otherwise."""
    number, index = types.float64, types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, a, second, b = args
        pair = ir.VectorType(ir.DoubleType(), 2)

        def load(kind: Any, array: Any, at: Any, k: int) -> Any:
            data = context.make_array(kind)(context, builder, array).data
            pointer = builder.gep(data, [builder.add(at, at.type(k))])
            return builder.load(builder.bitcast(pointer, pair.as_pointer()), align=8)

        total = None
        for k in (0, 2, 4):
            x, y = load(sig.args[0], first, a, k), load(sig.args[2], second, b, k)
            if total is None or not FUSED:
                product = builder.fmul(x, y)
                total = product if total is None else builder.fadd(total, product)
            else:
                kind = ir.FunctionType(pair, [pair] * 3)
                fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v2f64")
                total = builder.call(fused, (x, y, total))
        parts = [builder.extract_element(total, ir.IntType(32)(k)) for k in range(2)]
        return builder.fadd(parts[0], parts[1])

    return number(A, index, B, index), generate
