"""A clock for kernels: a counter of the processor's, with no call behind it.

Its unit is unknown, and its rate measured when somebody asks for times.
"""

from __future__ import annotations

import platform
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from stiction.kernels.compile import kernel

MEASURE = 5e-3
"""Time over which the rate is measured [s]."""

_COUNTER = (
    "llvm.readcyclecounter"
    if platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")
    else "llvm.readsteadycounter"
)


def _ticks(typingctx: Any) -> Any:
    """The counter's value."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [])
        return builder.call(builder.module.declare_intrinsic(_COUNTER, (), kind), [])

    return types.int64(), generate


ticks: Any = intrinsic(_ticks)


@kernel
def _now() -> int:
    return ticks()


@cache
def ticks_per_second() -> float:
    """Rate of the counter, measured once, to a hundredth or so."""
    _now()
    began, first = perf_counter(), _now()
    while perf_counter() - began < MEASURE:
        pass
    return float((_now() - first) / (perf_counter() - began))


def seconds(count: NDArray[np.int64]) -> NDArray[np.float64]:
    """Times that so many ticks take (n,) [s]."""
    return count / ticks_per_second()
