"""A clock for kernels: a counter of the processor's, with no call behind it.

Its unit is unknown; a stage's share of the ticks times the call's duration is its time.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

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
