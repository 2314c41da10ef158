"""Blocks of three rows and columns: those of particles, of bodies in the plane, and of contacts in
contact space.

Loops over three are left as they are by the compiler, a number at a time. Here a row is a vector,
or a whole block, its rows one after another: what multiplies a row, and the row that multiplies a
number, are repeated to as many. Products are added in one instruction, rounded once, where the
processor has it (`six.py`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from stiction.kernels.vectors import add, data_of, kind_of, load, place, repeated

_intrinsic: Any = intrinsic  # kernels call without the first argument

BLOCK = 9
"""Numbers of a block."""


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


@_intrinsic
def divide(typingctx: Any, A: Any, a: Any, B: Any, b: Any) -> Any:
    """B := (U L)^-1 B, of blocks of three rows and columns; A has the factors, as `block.py` keeps
    them."""
    index = types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        factors, a, to, b = args
        left = data_of(context, builder, sig.args[0], factors)
        target = data_of(context, builder, sig.args[2], to)

        def entry(i: int, k: int) -> Any:
            at = builder.add(a, ir.Constant(a.type, 3 * i + k))
            return repeated(builder, builder.load(builder.gep(left, [at])), 3)

        starts = [builder.add(b, ir.Constant(b.type, 3 * k)) for k in range(3)]
        rows = [load(builder, target, start, 3) for start in starts]
        for i in (1, 0):
            for k in range(i + 1, 3):
                rows[i] = add(builder, rows[i], builder.fneg(entry(i, k)), rows[k], 3)
        for i in range(3):
            for k in range(i):
                rows[i] = add(builder, rows[i], builder.fneg(entry(i, k)), rows[k], 3)
            rows[i] = builder.fmul(rows[i], entry(i, i))
        for start, row in zip(starts, rows, strict=True):
            builder.store(row, place(builder, target, start, 3), align=8)
        return context.get_dummy_value()

    return types.void(A, index, B, index), generate


def _spread(builder: Any, block: Any, first: int, down: int, across: int) -> Any:
    """The block whose entry (i, j) is entry first + down i + across j of that one."""
    places = [first + down * i + across * j for i in range(3) for j in range(3)]
    mask = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), places)
    return builder.shuffle_vector(block, ir.Constant(kind_of(BLOCK), ir.Undefined), mask)


@_intrinsic
def turn(typingctx: Any, C: Any, c: Any, A: Any, a: Any) -> Any:
    """C := A', of blocks of three rows and columns."""
    index = types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, c, first, a = args
        target = data_of(context, builder, sig.args[0], to)
        block = load(builder, data_of(context, builder, sig.args[2], first), a, BLOCK)
        turned = _spread(builder, block, 0, 1, 3)
        builder.store(turned, place(builder, target, c, BLOCK), align=8)
        return context.get_dummy_value()

    return types.void(C, index, A, index), generate


@_intrinsic
def take_moved(typingctx: Any, out: Any, o: Any, A: Any, a: Any, r: Any, w: Any) -> Any:
    """out[o:o+3] -= A r[w:w+3], of a block of three rows and columns, product by product, each
    rounded twice: as numbers one at a time would be."""
    index = types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, o, first, a, vector, w = args
        block = load(builder, data_of(context, builder, sig.args[2], first), a, BLOCK)
        numbers = data_of(context, builder, sig.args[4], vector)
        pointer = place(builder, data_of(context, builder, sig.args[0], to), o, 3)
        total = builder.load(pointer, align=8)
        none = ir.Constant(kind_of(BLOCK), ir.Undefined)
        for k in range(3):
            mask = ir.Constant(ir.VectorType(ir.IntType(32), 3), [k, 3 + k, 6 + k])
            column = builder.shuffle_vector(block, none, mask)
            factor = builder.load(builder.gep(numbers, [builder.add(w, ir.Constant(w.type, k))]))
            total = builder.fsub(total, builder.fmul(column, repeated(builder, factor, 3)))
        builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return types.void(out, index, A, index, r, index), generate


def _columns(builder: Any, block: Any) -> list[Any]:
    """What multiplies the rows of B in A B: of each column of A a block, whose columns it is."""
    return [_spread(builder, block, k, 3, 0) for k in range(3)]


def _rows(builder: Any, block: Any) -> list[Any]:
    """And of each row of B a block, whose rows it is."""
    return [_spread(builder, block, 3 * k, 0, 1) for k in range(3)]


def _along_column(name: str, moves_left: bool) -> Any:
    """An intrinsic that takes the products of one block with a run of them off those whose places
    are given. moves_left: whether the left factor is the one of the run."""

    def typing(
        typingctx: Any, C: Any, where: Any, row: Any, begin: Any, end: Any, A: Any, a: Any, B: Any,
        b: Any,
    ) -> Any:  # fmt: skip
        index = types.int64

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            to, where, row, begin, end, first, a, second, b = args
            target = data_of(context, builder, sig.args[0], to)
            wheres = data_of(context, builder, sig.args[1], where)
            numbers = data_of(context, builder, sig.args[2], row)
            left = data_of(context, builder, sig.args[5], first)
            right = data_of(context, builder, sig.args[7], second)
            if moves_left:
                fixed = _rows(builder, builder.fneg(load(builder, right, b, BLOCK)))
            else:
                fixed = _columns(builder, builder.fneg(load(builder, left, a, BLOCK)))
            word = begin.type
            with cgutils.for_range_slice(builder, begin, end, ir.Constant(word, 1), intp=word) as (
                y,
                _,
            ):
                far = builder.mul(builder.sub(y, begin), ir.Constant(word, BLOCK))
                if moves_left:
                    block = load(builder, left, builder.add(a, far), BLOCK)
                    terms = zip(_columns(builder, block), fixed, strict=True)
                else:
                    block = load(builder, right, builder.add(b, far), BLOCK)
                    terms = zip(fixed, _rows(builder, block), strict=True)
                at = builder.load(builder.gep(wheres, [builder.load(builder.gep(numbers, [y]))]))
                pointer = place(builder, target, at, BLOCK)
                total = builder.load(pointer, align=8)
                for x, z in terms:
                    total = add(builder, total, x, z, BLOCK)
                builder.store(total, pointer, align=8)
            return context.get_dummy_value()

        return types.void(C, where, row, index, index, A, index, B, index), generate

    typing.__name__ = name
    return _intrinsic(typing)


take_left_products = _along_column("take_left_products", True)
"""C[where[row[y]]] -= A_y B for y from begin to end, A_y being the blocks one after another from
entry a on, B the block at b."""

take_right_products = _along_column("take_right_products", False)
"""C[where[row[y]]] -= A B_y, likewise."""
