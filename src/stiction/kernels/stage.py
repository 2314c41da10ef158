"""Kernels that other kernels call through their address: `stage`.

Numba takes the machine code of every callee into its caller and optimizes all of it once more, so
that a loop on top of ten levels of calls has its innermost one compiled ten times. A stage is
compiled once. Its callers know its name and signature alone, as they do of a function in a C
library, and the address is put in when they are loaded: `prepare` must have run by then.
A call costs some nanoseconds more; arguments are numbers only (arrays go by `packing`), and like
a `lean` kernel it allocates nothing unless it is `counted`.

A stage that only some programs need is not `eager`: it is compiled when it is first called, or when
its `address` is asked for. Kernels call it as any other (`_late`), or by its address, with `call`.
Once it is on disk, `load` takes it from there, so that no step of a run has to wait for it.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import threading
import traceback
from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils, sigutils
from numba.extending import intrinsic

from stiction.kernels.collection import without_collection
from stiction.kernels.compile import OPTIONS, entry

SAY_AGAIN = 0.1
"""Time after which a Ctrl-C that had to wait is said again [s]: the call back into compiled code is
left by then, on a busy machine too."""

_stages: list[Stage] = []
_late_stages: list[Stage] = []


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
        self._address = 0
        if eager:
            _stages.append(self)
            self.external: Any = types.ExternalFunction(self._symbol, result(*self._arguments))
        else:
            _late_stages.append(self)
            self._finder = ctypes.CFUNCTYPE(ctypes.c_int64)(self._find)
            finder = f"{self._symbol}_address"
            address = ctypes.cast(self._finder, ctypes.c_void_p).value
            llvmlite.binding.add_symbol(finder, address)
            self.external = _late(finder, self._arguments, result)

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

    def load(self) -> None:
        """Makes it ready if its machine code is on disk."""
        holds = getattr(getattr(self._function, "_cache", None), "holds", None)
        if not self._address and holds is not None:
            context = self._function.targetctx
            if holds(self._arguments, context.codegen()):
                self.address  # noqa: B018  (loaded when it is asked for)

    def _find(self) -> int:
        """`address` for compiled code, into which no exception may go: what cannot be compiled
        ends the process, and Ctrl-C waits until it is."""
        interrupted = False
        while True:
            try:
                address = self.address
                break
            except KeyboardInterrupt:
                interrupted = True
            except BaseException:
                traceback.print_exc()
                os.abort()
        if interrupted:
            threading.Timer(SAY_AGAIN, _interrupt).start()
        return address

    def prepare(self) -> None:
        """Compiles it, or loads it, and makes its address known."""
        if self._address:
            return
        self._function.compile(self._arguments)
        found = self._function.overloads[self._arguments]
        address = found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)
        llvmlite.binding.add_symbol(self._symbol, address)
        self._address = int(address)


def _interrupt() -> None:
    """Ctrl-C for the main thread, also where it sleeps."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _late(finder: str, arguments: Any, result: Any) -> Any:
    """An intrinsic that calls a stage, whose address the C function of that name finds out the
    first time."""

    def typing(typingctx: Any, *given: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word, module = ir.IntType(64), builder.module
            cell = ir.GlobalVariable(module, word, module.get_unique_name(f".{finder}"))
            cell.linkage, cell.initializer = "internal", word(0)
            known = builder.load(cell)
            before = builder.basic_block
            with builder.if_then(builder.icmp_unsigned("==", known, word(0)), likely=False):
                kind = ir.FunctionType(word, [])
                find = cgutils.get_or_insert_function(module, kind, finder)
                found = builder.call(find, [])
                builder.store(found, cell)
                asked = builder.basic_block
            address = builder.phi(word)
            address.add_incoming(known, before)
            address.add_incoming(found, asked)
            values = [context.get_value_type(each) for each in arguments]
            returned = ir.VoidType() if result == types.void else context.get_value_type(result)
            target = ir.FunctionType(returned, values).as_pointer()
            answer = builder.call(builder.inttoptr(address, target), args)
            return context.get_dummy_value() if result == types.void else answer

        return result(*arguments), generate

    # Numba goes by the number of parameters.
    names = ", ".join(f"a{k}" for k in range(len(arguments)))
    scope: dict[str, Any] = {"typing": typing}
    exec(f"def {finder}(typingctx, {names}):\n    return typing(typingctx, {names})", scope)
    return intrinsic(scope[finder])


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
    with without_collection():
        for each in _stages:
            each.prepare()


def prepare_late() -> None:
    """Makes all other stages that are imported ready too: nothing is left to compile in a run."""
    for each in _late_stages:
        if not getattr(numba.config, "DISABLE_JIT", 0):
            each.address  # noqa: B018  (compiled when it is asked for)
