"""Runs of numbers of any length in vector instructions: what blocks of whole trees, of nine rows or
of ninety, are factored with.

The compiler leaves such loops as they are: it cannot know that rows of one array do not overlap.
Here they do not. All take arrays of numbers in C's order, of any dimensions, and where in them to
begin; four numbers at a time, then what is left, two and one. Runs that are known to be whole
vectors are in `panel.py`, those of six numbers in `six.py`.

Products are taken off in one instruction, rounded once, where the processor has it, and added
rounded one by one (`six.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

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


def _along(builder: Any, n: Any, body: Callable[[Any, int], None]) -> None:
    """Generates body(first, lanes) for all numbers of a run of n: vectors, then two and one."""
    word = n.type
    vectors = builder.and_(n, ir.Constant(word, -LANES))
    zero, step = ir.Constant(word, 0), ir.Constant(word, LANES)
    with cgutils.for_range_slice(builder, zero, vectors, step, intp=word) as (c, _):
        body(c, LANES)
    for lanes in (2, 1):
        with builder.if_then(builder.icmp_signed("!=", builder.and_(n, word(lanes)), word(0))):
            body(builder.and_(n, ir.Constant(word, -2 * lanes)), lanes)


def _change(
    builder: Any, target: Any, o: Any, n: Any, source: Any, lines: Any, combine: Any
) -> None:
    """Changes a run of n, from entry o on, by `lines` of the source: pairs of a factor and where a
    row begins. combine(builder, old, terms, lanes): what becomes of it, terms being pairs of a
    factor and a row."""

    def change(c: Any, lanes: int) -> None:
        pointer = place(builder, target, builder.add(o, c), lanes)
        terms = [
            (
                repeated(builder, factor, lanes),
                load(builder, source, builder.add(begin, c), lanes),
            )
            for factor, begin in lines
        ]
        old = builder.load(pointer, align=8)
        builder.store(combine(builder, old, terms, lanes), pointer, align=8)

    _along(builder, n, change)


def _take(builder: Any, old: Any, terms: Any, lanes: int) -> Any:
    for factor, row in terms:
        old = add(builder, old, builder.fneg(factor), row, lanes)
    return old


def _add_rounded(builder: Any, old: Any, terms: Any, lanes: int) -> Any:
    """Rounded product by product: see `six.py`."""
    total = None
    for factor, row in terms:
        product = builder.fmul(factor, row)
        total = product if total is None else builder.fadd(total, product)
    return builder.fadd(old, total)


def _with_rows(rows: int, name: str, combine: Callable[..., Any]) -> Any:
    """An intrinsic for a run and so many rows."""

    def typing(
        typingctx: Any, out: Any, o: Any, A: Any, a: Any, across: Any, B: Any, b: Any, down: Any,
        n: Any,
    ) -> Any:  # fmt: skip
        index = types.int64

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            to, o, factors, a, across, array, b, down, n = args
            left = data_of(context, builder, sig.args[2], factors)
            lines = []
            for _ in range(rows):
                lines.append((load(builder, left, a, 1), b))
                a, b = builder.add(a, across), builder.add(b, down)
            target = data_of(context, builder, sig.args[0], to)
            source = data_of(context, builder, sig.args[5], array)
            _change(builder, target, o, n, source, lines, combine)
            return context.get_dummy_value()

        return types.void(out, index, A, index, index, B, index, index, index), generate

    typing.__name__ = name
    return _intrinsic(typing)


def _with_row(name: str, combine: Callable[..., Any]) -> Any:
    """An intrinsic for a run and a multiple of a row."""

    def typing(typingctx: Any, out: Any, o: Any, x: Any, B: Any, b: Any, n: Any) -> Any:
        number, index = types.float64, types.int64

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            to, o, x, array, b, n = args
            target = data_of(context, builder, sig.args[0], to)
            source = data_of(context, builder, sig.args[3], array)
            _change(builder, target, o, n, source, [(x, b)], combine)
            return context.get_dummy_value()

        return types.void(out, index, number, B, index, index), generate

    typing.__name__ = name
    return _intrinsic(typing)


take_four = _with_rows(4, "take_four", _take)
"""out[o:o+n] -= the sum over four rows k of A[a + k across] B[b + k down:.. + n]."""

add_three = _with_rows(3, "add_three", _add_rounded)
"""out[o:o+n] += the sum over three rows."""

take_scaled = _with_row("take_scaled", _take)
"""out[o:o+n] -= x B[b:b+n]."""

add_scaled = _with_row("add_scaled", _add_rounded)
"""out[o:o+n] += x B[b:b+n]."""


class _Sums:
    """Of the products of a run, by the lanes that they are taken in."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._sums = {k: cgutils.alloca_once_value(builder, zeros(k)) for k in (LANES, 2, 1)}

    def add(self, x: Any, y: Any, lanes: int) -> None:
        """Adds x y."""
        at, builder = self._sums[lanes], self._builder
        builder.store(add(builder, builder.load(at), x, y, lanes), at)

    def total(self) -> Any:
        """All together."""
        builder = self._builder
        two = builder.load(self._sums[2])
        rest = [builder.extract_element(two, ir.IntType(32)(k)) for k in range(2)]
        total = total_of(builder, builder.load(self._sums[LANES]))
        tail = builder.fadd(builder.fadd(rest[0], rest[1]), builder.load(self._sums[1]))
        return builder.fadd(total, tail)


@_intrinsic
def dot(typingctx: Any, A: Any, a: Any, B: Any, b: Any, n: Any) -> Any:
    """A[a:a+n] . B[b:b+n]."""
    number, index = types.float64, types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, a, second, b, n = args
        left = data_of(context, builder, sig.args[0], first)
        right = data_of(context, builder, sig.args[2], second)
        sums = _Sums(builder)

        def multiply(c: Any, lanes: int) -> None:
            x = load(builder, left, builder.add(a, c), lanes)
            sums.add(x, load(builder, right, builder.add(b, c), lanes), lanes)

        _along(builder, n, multiply)
        return sums.total()

    return number(A, index, B, index, index), generate


@_intrinsic
def dot_three(typingctx: Any, A: Any, a: Any, width: Any, B: Any, b: Any, n: Any) -> Any:
    """A[a:a+n] . B[b:b+n], and the same of the two rows of A that begin `width` and twice that
    later: three sums side by side, since each addition of one waits for the last."""
    number, index = types.float64, types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, a, width, second, b, n = args
        left = data_of(context, builder, sig.args[0], first)
        right = data_of(context, builder, sig.args[3], second)
        rows = [a, builder.add(a, width), builder.add(builder.add(a, width), width)]
        sums = [_Sums(builder) for _ in rows]

        def multiply(c: Any, lanes: int) -> None:
            y = load(builder, right, builder.add(b, c), lanes)
            for row, total in zip(rows, sums, strict=True):
                total.add(load(builder, left, builder.add(row, c), lanes), y, lanes)

        _along(builder, n, multiply)
        return context.make_tuple(builder, sig.return_type, [each.total() for each in sums])

    return types.UniTuple(number, 3)(A, index, index, B, index, index), generate
