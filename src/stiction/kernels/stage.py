"""Kernels that other kernels call through their address: `stage`.

Numba takes the machine code of every callee into its caller and optimizes all of it once more, so
that a loop on top of ten levels of calls has its innermost one compiled ten times. A stage is
compiled once. Its callers know its name and signature alone, as they do of a function in a C
library, and the address is put in when they are loaded: `prepare` must have run by then.
A call costs some nanoseconds more; arguments are numbers only (arrays go by `packing`), and like
a `lean` kernel it allocates nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numba
from numba import types
from numba.core import sigutils

from stiction.kernels.compile import OPTIONS, entry

_stages: list[Stage] = []


class Stage:
    """One compiled function, and the `external` name that kernels call it by."""

    def __init__(self, function: Callable[..., Any], signature: str) -> None:
        self._function: Any = entry(function, OPTIONS | {"_nrt": False, "no_cfunc_wrapper": False})
        self._arguments, result = sigutils.normalize_signature(signature)
        self._symbol = f"{function.__module__}.{function.__name__}".replace(".", "_")
        self.external: Any = types.ExternalFunction(self._symbol, result(*self._arguments))
        self._ready = False
        _stages.append(self)

    def __call__(self, *arguments: Any) -> Any:
        """From Python."""
        prepare()
        return self._function(*arguments)

    def prepare(self) -> None:
        """Compiles it, or loads it, and makes its address known."""
        if self._ready:
            return
        self._function.compile(self._arguments)
        found = self._function.overloads[self._arguments]
        address = found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)
        llvmlite.binding.add_symbol(self._symbol, address)
        self._ready = True


def stage(signature: str) -> Callable[[Callable[..., Any]], Stage]:
    """Decorates a function of that Numba signature: "float64(intp, int64)"."""

    def decorate(function: Callable[..., Any]) -> Stage:
        return Stage(function, signature)

    return decorate


def prepare() -> None:
    """Makes all stages that are imported ready, callees first: that is the order in which they
    were defined. Without it a kernel that calls one would end the process when it is loaded."""
    if getattr(numba.config, "DISABLE_JIT", 0):
        return
    for each in _stages:
        each.prepare()
