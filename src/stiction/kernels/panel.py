"""Rows of numbers in vector instructions: what small dense matrices are worked out with.

Left to the compiler, a loop over a row checks first whether arrays overlap and ends with what is
left over, one number at a time; with rows of twenty numbers that is most of its time. Here rows
have a multiple of `LANES` numbers (`padded`), zeros at the end, and arrays do not overlap. All take
arrays of numbers in C's order, of any dimensions, and where in them to begin.

Products are added in one instruction, rounded once, where the processor has it (`six.py`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from stiction.kernels.compile import lean
from stiction.kernels.vectors import (
    LANES,
    add,
    data_of,
    load,
    place,
    repeated,
    total_of,
    zeros,
)

_intrinsic: Any = intrinsic  # kernels call without the first argument

_ROWS = 4
"""Of a product's blocks: with two vectors each, eight sums are under way at once."""


@register_jitable
def padded(n: int) -> int:
    """The least multiple of `LANES` that is not less than n; Python and kernels call it."""
    return -(-n // LANES) * LANES


@_intrinsic
def add_scaled(typingctx: Any, out: Any, o: Any, x: Any, A: Any, a: Any, n: Any) -> Any:
    """out[o:o+n] += x A[a:a+n]; n is a multiple of LANES."""
    number, index = types.float64, types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, o, x, array, a, n = args
        target = data_of(context, builder, sig.args[0], to)
        source = data_of(context, builder, sig.args[3], array)
        factor = repeated(builder, x)
        zero, step = ir.Constant(n.type, 0), ir.Constant(n.type, LANES)
        with cgutils.for_range_slice(builder, zero, n, step, intp=n.type) as (c, _):
            pointer = place(builder, target, builder.add(o, c))
            row = load(builder, source, builder.add(a, c))
            total = add(builder, builder.load(pointer, align=8), factor, row)
            builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return types.void(out, index, number, A, index, index), generate


def _six_factors(context: Any, builder: Any, kind: Any, array: Any, at: Any, scale: Any) -> Any:
    """Vectors of scale A[at + q] each, q from 0 to 5."""
    data = data_of(context, builder, kind, array)
    entries = [builder.gep(data, [builder.add(at, ir.Constant(at.type, q))]) for q in range(6)]
    return [repeated(builder, builder.fmul(scale, builder.load(each))) for each in entries]


@_intrinsic
def add_six_rows(
    typingctx: Any, out: Any, o: Any, scale: Any, X: Any, x: Any, A: Any, a: Any, wide: Any, n: Any
) -> Any:
    """out[o:o+n] += scale times the sum of X[x+q] A[a+q wide:a+q wide+n] over six q; n is a
    multiple of LANES."""
    number, index = types.float64, types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, o, scale, factors, x, array, a, wide, n = args
        target = data_of(context, builder, sig.args[0], to)
        source = data_of(context, builder, sig.args[5], array)
        each = _six_factors(context, builder, sig.args[3], factors, x, scale)
        zero, step = ir.Constant(n.type, 0), ir.Constant(n.type, LANES)
        with cgutils.for_range_slice(builder, zero, n, step, intp=n.type) as (c, _):
            pointer, at = place(builder, target, builder.add(o, c)), builder.add(a, c)
            total = builder.load(pointer, align=8)
            for factor in each:
                total = add(builder, total, factor, load(builder, source, at))
                at = builder.add(at, wide)
            builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return types.void(out, index, number, X, index, A, index, index, index), generate


@_intrinsic
def add_to_six_rows(
    typingctx: Any, out: Any, o: Any, a: Any, wide: Any, scale: Any, X: Any, x: Any, B: Any, b: Any,
    n: Any,
) -> Any:  # fmt: skip
    """out[o+q wide:o+q wide+n] += out[a+q wide:a+q wide+n] + scale X[x+q] B[b:b+n] for six q; n is
    a multiple of LANES."""
    number, index = types.float64, types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, o, a, wide, scale, factors, x, array, b, n = args
        target = data_of(context, builder, sig.args[0], to)
        source = data_of(context, builder, sig.args[7], array)
        each = _six_factors(context, builder, sig.args[5], factors, x, scale)
        zero, step = ir.Constant(n.type, 0), ir.Constant(n.type, LANES)
        with cgutils.for_range_slice(builder, zero, n, step, intp=n.type) as (c, _):
            row, here = load(builder, source, builder.add(b, c)), builder.add(o, c)
            there = builder.add(a, c)
            for factor in each:
                pointer = place(builder, target, here)
                old = builder.fadd(builder.load(pointer, align=8), load(builder, target, there))
                builder.store(add(builder, old, factor, row), pointer, align=8)
                here, there = builder.add(here, wide), builder.add(there, wide)
        return context.get_dummy_value()

    return types.void(out, index, index, index, number, X, index, B, index, index), generate


@_intrinsic
def put_scaled(typingctx: Any, out: Any, o: Any, x: Any, A: Any, a: Any, n: Any) -> Any:
    """out[o:o+n] := x A[a:a+n], which may be the same place; n is a multiple of LANES."""
    number, index = types.float64, types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, o, x, array, a, n = args
        target = data_of(context, builder, sig.args[0], to)
        source = data_of(context, builder, sig.args[3], array)
        factor = repeated(builder, x)
        zero, step = ir.Constant(n.type, 0), ir.Constant(n.type, LANES)
        with cgutils.for_range_slice(builder, zero, n, step, intp=n.type) as (c, _):
            row = load(builder, source, builder.add(a, c))
            pointer = place(builder, target, builder.add(o, c))
            builder.store(builder.fmul(factor, row), pointer, align=8)
        return context.get_dummy_value()

    return types.void(out, index, number, A, index, index), generate


@_intrinsic
def dot(typingctx: Any, A: Any, a: Any, B: Any, b: Any, n: Any) -> Any:
    """A[a:a+n] . B[b:b+n]; n is a multiple of LANES."""
    number, index = types.float64, types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, a, second, b, n = args
        left = data_of(context, builder, sig.args[0], first)
        right = data_of(context, builder, sig.args[2], second)
        total = cgutils.alloca_once_value(builder, zeros(LANES))
        zero, step = ir.Constant(n.type, 0), ir.Constant(n.type, LANES)
        with cgutils.for_range_slice(builder, zero, n, step, intp=n.type) as (c, _):
            x, y = load(builder, left, builder.add(a, c)), load(builder, right, builder.add(b, c))
            builder.store(add(builder, builder.load(total), x, y), total)
        return total_of(builder, builder.load(total))

    return number(A, index, B, index, index), generate


def _block(rows: int, vectors: int) -> Any:
    """An intrinsic for so many rows of a product, so many vectors of each: see `add_product`."""

    def typing(
        typingctx: Any, C: Any, c: Any, wide: Any, A: Any, a: Any, down: Any, across: Any,
        sign: Any, B: Any, b: Any, long: Any, inner: Any,
    ) -> Any:  # fmt: skip
        number, index = types.float64, types.int64

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            to, c, wide, first, a, down, across, sign, second, b, long, inner = args
            target = data_of(context, builder, sig.args[0], to)
            left = data_of(context, builder, sig.args[3], first)
            right = data_of(context, builder, sig.args[8], second)
            sums = [[cgutils.alloca_once_value(builder, zeros(LANES)) for _ in range(vectors)]
                    for _ in range(rows)]  # fmt: skip
            with cgutils.for_range(builder, inner, intp=inner.type) as loop:
                start = builder.add(b, builder.mul(loop.index, long))
                lines = [
                    load(builder, right, builder.add(start, ir.Constant(start.type, LANES * v)))
                    for v in range(vectors)
                ]
                at = builder.add(a, builder.mul(loop.index, across))
                for r in range(rows):
                    entry = builder.load(builder.gep(left, [at]))
                    factor = repeated(builder, entry)
                    for v in range(vectors):
                        old = builder.load(sums[r][v])
                        builder.store(add(builder, old, factor, lines[v]), sums[r][v])
                    at = builder.add(at, down)
            scale = repeated(builder, sign)
            for r in range(rows):
                for v in range(vectors):
                    pointer = place(builder, target, builder.add(c, ir.Constant(c.type, LANES * v)))
                    old = builder.load(pointer, align=8)
                    builder.store(add(builder, old, scale, builder.load(sums[r][v])), pointer,
                                  align=8)  # fmt: skip
                c = builder.add(c, wide)
            return context.get_dummy_value()

        given = (C, index, index, A, index, index, index, number, B, index, index, index)
        return types.void(*given), generate

    typing.__name__ = f"add_block_{rows}_{vectors}"
    return _intrinsic(typing)


_add_four_wide, _add_four = _block(_ROWS, 2), _block(_ROWS, 1)
_add_two_wide, _add_two = _block(2, 2), _block(2, 1)
_add_one_wide, _add_one = _block(1, 2), _block(1, 1)


@lean
def add_product(sign, rows, inner, columns, A, a, down, across, B, C):
    """C[:rows, :columns] += sign X B[:inner, :columns], X[i, j] being entry a + i down + j across
    of A: its rows, or its columns. columns is a multiple of LANES."""
    wide, long = C.shape[1], B.shape[1]
    for i in range(0, rows - 3, 4):
        at = a + i * down
        for c in range(0, columns - 4, 8):
            _add_four_wide(C, i * wide + c, wide, A, at, down, across, sign, B, c, long, inner)
        if columns % 8 != 0:
            c = columns - 4
            _add_four(C, i * wide + c, wide, A, at, down, across, sign, B, c, long, inner)
    if rows % 4 >= 2:
        i = rows - rows % 4
        at = a + i * down
        for c in range(0, columns - 4, 8):
            _add_two_wide(C, i * wide + c, wide, A, at, down, across, sign, B, c, long, inner)
        if columns % 8 != 0:
            c = columns - 4
            _add_two(C, i * wide + c, wide, A, at, down, across, sign, B, c, long, inner)
    if rows % 2 == 1:
        i = rows - 1
        at = a + i * down
        for c in range(0, columns - 4, 8):
            _add_one_wide(C, i * wide + c, wide, A, at, down, across, sign, B, c, long, inner)
        if columns % 8 != 0:
            c = columns - 4
            _add_one(C, i * wide + c, wide, A, at, down, across, sign, B, c, long, inner)


@lean
def clear(rows, out):
    """out[:rows] := 0."""
    for i in range(rows):
        for c in range(out.shape[1]):
            out[i, c] = 0.0
