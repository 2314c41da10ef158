"""Kernels that other kernels call through their address: `stage`.

Numba takes the machine code of every callee into its caller and optimizes all of it once more, so
that a loop on top of ten levels of calls has its innermost one compiled ten times. A stage is
compiled once. Its callers know its name and signature alone, as they do of a function in a C
library, and the address is put in when they are loaded: `prepare` must have run by then.
A call costs some nanoseconds more; arguments are numbers only (arrays go by `packing`), and like
a `lean` kernel it allocates nothing unless it is `counted`.

A stage that only some programs need is not `eager`: it is compiled when its `address` is asked for,
and kernels call it by that, with `call`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numba
from llvmlite import ir
from numba import types
from numba.core import sigutils
from numba.extending import intrinsic

from stiction.kernels.compile import OPTIONS, entry

_stages: list[Stage] = []


class Stage:
    """One compiled function, and the `external` name that kernels call it by."""

    def __init__(
        self, function: Callable[..., Any], signature: str, eager: bool, counted: bool
    ) -> None:
        options = OPTIONS | {"no_cfunc_wrapper": False}
        if not counted:
            options["_nrt"] = False
        self._function: Any = entry(function, options)
        self._arguments, result = sigutils.normalize_signature(signature)
        self._symbol = f"{function.__module__}.{function.__name__}".replace(".", "_")
        self.external: Any = types.ExternalFunction(self._symbol, result(*self._arguments))
        self._address = 0
        if eager:
            _stages.append(self)

    def __call__(self, *arguments: Any) -> Any:
        """From Python."""
        prepare()
        return self._function(*arguments)

    @property
    def address(self) -> int:
        """Of its machine code; compiles it, or loads it, with all that it calls."""
        prepare()
        self.prepare()
        return self._address

    def prepare(self) -> None:
        """Compiles it, or loads it, and makes its address known."""
        if self._address:
            return
        self._function.compile(self._arguments)
        found = self._function.overloads[self._arguments]
        address = found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)
        llvmlite.binding.add_symbol(self._symbol, address)
        self._address = int(address)


@intrinsic
def call(typingctx: Any, address: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """What the stage "int64(int64, int64, int64, int64)" at that address returns."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word] * 4)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int64(*([types.int64] * 5)), generate


def stage(
    signature: str, *, eager: bool = True, counted: bool = False
) -> Callable[[Callable[..., Any]], Stage]:
    """Decorates a function of that Numba signature: "float64(intp, int64)"."""

    def decorate(function: Callable[..., Any]) -> Stage:
        return Stage(function, signature, eager, counted)

    return decorate


def prepare() -> None:
    """Makes all eager stages that are imported ready, callees first: that is the order in which
    they were defined. Without it a kernel that calls one would end the process when it is
    loaded."""
    if getattr(numba.config, "DISABLE_JIT", 0):
        return
    for each in _stages:
        each.prepare()
