"""Six numbers at a time: what a rigid body's velocities are.

Loops over six are too short for the compiler to turn into vector instructions by itself. These
take arrays of numbers in C's order, of any dimensions, and where in them to begin.

Products of blocks are added in one instruction, rounded once, where the processor has it. Elsewhere
that would be a call for every number. All else is rounded product by product and sum by sum: what
is symmetric then stays so to the last bit, and comes to rest exactly.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
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
def put(typingctx: Any, out: Any, o: Any, A: Any, a: Any) -> Any:
    """out[o:o+6] := A[a:a+6]."""
    index = types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, o, array, a = args
        row = _load(context, builder, sig.args[2], array, a)
        builder.store(row, _pointer(context, builder, sig.args[0], to, o), align=8)
        return context.get_dummy_value()

    return types.void(out, index, A, index), generate


@_intrinsic
def add_product(
    typingctx: Any, C: Any, c: Any, A: Any, a: Any, width: Any, B: Any, b: Any, wide: Any
) -> Any:
    """C += A' B, of a block of six rows and columns, and of three rows, `width` and `wide` apart;
    each sum as in `add_three`."""
    index = types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, c, first, a, width, second, b, wide = args
        starts, rows = [a], [_load(context, builder, sig.args[5], second, b)]
        for _ in range(2):
            starts.append(builder.add(starts[-1], width))
            b = builder.add(b, wide)
            rows.append(_load(context, builder, sig.args[5], second, b))
        for i in range(6):
            pointer = _pointer(context, builder, sig.args[0], to, _after(builder, c, 6 * i))
            total = None
            for start, row in zip(starts, rows, strict=True):
                entry = _entry(context, builder, sig.args[2], first, start, i)
                total = _add(builder, total, _repeated(builder, entry), row)
            builder.store(builder.fadd(builder.load(pointer, align=8), total), pointer, align=8)
        return context.get_dummy_value()

    return types.void(C, index, A, index, index, B, index, index), generate


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


def _entry(context: Any, builder: Any, kind: Any, array: Any, at: Any, k: int) -> Any:
    """One number of an array: the k-th from entry `at` on."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.load(builder.gep(data, [_after(builder, at, k)]))


def _after(builder: Any, at: Any, k: int) -> Any:
    """k entries on."""
    return builder.add(at, at.type(k))


@_intrinsic
def take_product(typingctx: Any, C: Any, c: Any, A: Any, a: Any, B: Any, b: Any) -> Any:
    """C -= A B, of blocks of six rows and columns."""
    index = types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, c, first, a, second, b = args
        # Rows are taken negative, not entries: these are read and repeated in one instruction then.
        rows = [
            builder.fneg(_load(context, builder, sig.args[4], second, _after(builder, b, 6 * k)))
            for k in range(6)
        ]
        for i in range(6):
            pointer = _pointer(context, builder, sig.args[0], to, _after(builder, c, 6 * i))
            total = builder.load(pointer, align=8)
            for k in range(6):
                entry = _entry(context, builder, sig.args[2], first, a, 6 * i + k)
                total = _add(builder, total, _repeated(builder, entry), rows[k], FUSED)
            builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return types.void(C, index, A, index, B, index), generate


def _divided(builder: Any, rows: list[Any], entry: Callable[[int, int], Any]) -> list[Any]:
    """(U L)^-1 times six rows, or numbers; entry: of the factors, as `block.py` keeps them: U above
    the diagonal, with ones on it, L below, the inverses of its pivots between."""
    found = list(rows)
    for i in range(4, -1, -1):
        for k in range(i + 1, 6):
            found[i] = builder.fsub(found[i], builder.fmul(entry(i, k), found[k]))
    for i in range(6):
        for k in range(i):
            found[i] = builder.fsub(found[i], builder.fmul(entry(i, k), found[k]))
        found[i] = builder.fmul(found[i], entry(i, i))
    return found


@_intrinsic
def divide(typingctx: Any, A: Any, a: Any, B: Any, b: Any) -> Any:
    """B := (U L)^-1 B, of blocks of six rows and columns; A has the factors."""
    index = types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        factors, a, to, b = args
        pointers = [
            _pointer(context, builder, sig.args[2], to, _after(builder, b, 6 * k)) for k in range(6)
        ]
        rows = [builder.load(pointer, align=8) for pointer in pointers]

        def entry(i: int, k: int) -> Any:
            number = _entry(context, builder, sig.args[0], factors, a, 6 * i + k)
            return _repeated(builder, number)

        for pointer, row in zip(pointers, _divided(builder, rows, entry), strict=True):
            builder.store(row, pointer, align=8)
        return context.get_dummy_value()

    return types.void(A, index, B, index), generate


@_intrinsic
def divide_vector(typingctx: Any, A: Any, a: Any, r: Any, w: Any) -> Any:
    """r[w:w+6] := (U L)^-1 r[w:w+6], with the factors of `divide`."""
    index = types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        factors, a, vector, w = args
        data = context.make_array(sig.args[2])(context, builder, vector).data
        pointers = [builder.gep(data, [_after(builder, w, k)]) for k in range(6)]
        parts = [builder.load(pointer) for pointer in pointers]

        def entry(i: int, k: int) -> Any:
            return _entry(context, builder, sig.args[0], factors, a, 6 * i + k)

        for pointer, part in zip(pointers, _divided(builder, parts, entry), strict=True):
            builder.store(part, pointer)
        return context.get_dummy_value()

    return types.void(A, index, r, index), generate


@_intrinsic
def take_moved(typingctx: Any, out: Any, o: Any, A: Any, a: Any, r: Any, w: Any) -> Any:
    """out[o:o+6] -= A r[w:w+6], of a block of six rows and columns, each sum as in `dot`."""
    index = types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, o, block, a, vector, w = args
        factor = _load(context, builder, sig.args[4], vector, w)
        pointer = _pointer(context, builder, sig.args[0], to, o)
        total = builder.load(pointer, align=8)
        moved = ir.Constant(SIX, ir.Undefined)
        for i in range(6):
            row = _load(context, builder, sig.args[2], block, _after(builder, a, 6 * i))
            found = _sum_of_six(builder, builder.fmul(row, factor))
            moved = builder.insert_element(moved, found, ir.IntType(32)(i))
        builder.store(builder.fsub(total, moved), pointer, align=8)
        return context.get_dummy_value()

    return types.void(out, index, A, index, r, index), generate


def _sum_of_six(builder: Any, product: Any) -> Any:
    """Of the entries of a vector, the first three and the last three first."""
    parts = [builder.extract_element(product, ir.IntType(32)(k)) for k in range(6)]
    left = builder.fadd(builder.fadd(parts[0], parts[1]), parts[2])
    right = builder.fadd(builder.fadd(parts[3], parts[4]), parts[5])
    return builder.fadd(left, right)


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
        return _sum_of_six(builder, product)

    return number(A, index, B, index), generate


@_intrinsic
def dot_of_sizes(typingctx: Any, A: Any, a: Any, B: Any, b: Any) -> Any:
    """|A[a:a+6]| . B[b:b+6], entry by entry without its sign."""
    number, index = types.float64, types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, a, second, b = args
        kind = ir.FunctionType(SIX, [SIX])
        size = cgutils.get_or_insert_function(builder.module, kind, "llvm.fabs.v6f64")
        product = builder.fmul(
            builder.call(size, (_load(context, builder, sig.args[0], first, a),)),
            _load(context, builder, sig.args[2], second, b),
        )
        return _sum_of_six(builder, product)

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
