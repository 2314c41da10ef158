"""Vectors of numbers in arrays, as the compiler's intermediate code has them: what `panel.py` and
`runs.py` are made of.

Products are added in one instruction, rounded once, where the processor has it (`six.py`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from stiction.kernels.six import FUSED

LANES = 4
"""Numbers of a vector."""


def kind_of(lanes: int) -> Any:
    """The type of so many numbers."""
    return ir.DoubleType() if lanes == 1 else ir.VectorType(ir.DoubleType(), lanes)


def zeros(lanes: int) -> Any:
    """So many zeros."""
    none = ir.DoubleType()(0.0)
    return none if lanes == 1 else ir.Constant(kind_of(lanes), [none] * lanes)


def data_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Pointer to the entries of an array of that Numba type."""
    return context.make_array(kind)(context, builder, array).data


def place(builder: Any, data: Any, at: Any, lanes: int = LANES) -> Any:
    """Pointer to that many numbers, from entry `at` on."""
    return builder.bitcast(builder.gep(data, [at]), kind_of(lanes).as_pointer())


def load(builder: Any, data: Any, at: Any, lanes: int = LANES) -> Any:
    """That many numbers, from entry `at` on."""
    return builder.load(place(builder, data, at, lanes), align=8)


def repeated(builder: Any, value: Any, lanes: int = LANES) -> Any:
    """A number in all places of a vector."""
    if lanes == 1:
        return value
    none = ir.Constant(kind_of(lanes), ir.Undefined)
    single = builder.insert_element(none, value, ir.IntType(32)(0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(single, none, places)


def add(builder: Any, total: Any, factor: Any, row: Any, lanes: int = LANES) -> Any:
    """total + factor row."""
    if not FUSED:
        return builder.fadd(total, builder.fmul(factor, row))
    kind = kind_of(lanes)
    name = "llvm.fma.f64" if lanes == 1 else f"llvm.fma.v{lanes}f64"
    fused = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * 3), name
    )  # fmt: skip
    return builder.call(fused, (factor, row, total))


def total_of(builder: Any, vector: Any) -> Any:
    """The sum of a vector of `LANES`."""
    parts = [builder.extract_element(vector, ir.IntType(32)(k)) for k in range(LANES)]
    return builder.fadd(builder.fadd(parts[0], parts[2]), builder.fadd(parts[1], parts[3]))
