"""Brings MuJoCo's fatal errors, and exceptions in its Python callbacks, out of compiled code.

Where MuJoCo cannot go on it calls its log handler with an error and expects it not to return. Its
Python binding has a handler that jumps back (`longjmp`) to before the call and raises there.
Compiled steps call the library past the binding, and without a handler the process would end. So
they do as the binding does:

    @kernel
    def steps(frame, d, ...):
        if caught(frame, d) != 0:        before anything of MuJoCo is called
            return ERROR                 MuJoCo's error; only constants are sure here, and arrays
                                         among the arguments must be in use until the end: Numba
                                         would let go of them twice
        ...
        leave(frame)
        return ...

    guard = Guard()
    code = guard.call(data, steps, guard.frame, data._address, ...)
    if code == ERROR:
        guard.recover(data)
        guard.message                    what MuJoCo said

A kernel that does not leave by itself needs `recover` in any case. The handler belongs to the
thread and is there between `caught` and `leave` only. An exception that
a callback raised comes out of `call` itself. Where the system is not POSIX nothing is caught: the
process ends.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any

import llvmlite.binding
import mujoco
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from stiction.bridge import library
from stiction.bridge.layout import offset

AVAILABLE = os.name == "posix"
"""Whether errors are caught on this system."""

TEXT = 1024
"""Bytes of a message of MuJoCo."""

# A frame, in bytes: where to jump back to (no system needs more), what was there before, how full
# the data's stack was, the text.
_HANDLER, _OUTER, _STACK, _BASE, _MESSAGE = 1024, 1032, 1040, 1048, 1056

_Key: Any = ctypes.c_uint if sys.platform == "linux" else ctypes.c_ulong
"""pthread_key_t"""

# The thread's own memory (a pthread key) holds the frame, or null: the handler is told only the
# message. Levels below an error, such as warnings, go where they would without this handler.
_SOURCE = """
declare ptr @pthread_getspecific({key_type})
declare i32 @pthread_setspecific({key_type}, ptr)
declare ptr @_mjPRIVATE_setTlsLogHandler(ptr)
declare ptr @_mjPRIVATE_getGlobalLogHandler()
declare ptr @memcpy(ptr, ptr, i64)
declare void @_longjmp(ptr, i32)

define void @stiction_escape(ptr %message) {{
  %level = load i32, ptr %message
  %frame = call ptr @pthread_getspecific({key_type} {key})
  %error = icmp sge i32 %level, {error}
  %inside = icmp ne ptr %frame, null
  %escapes = and i1 %error, %inside
  br i1 %escapes, label %back, label %on
back:
  %text = getelementptr i8, ptr %frame, i64 {message}
  %subject = getelementptr i8, ptr %message, i64 {subject}
  call ptr @memcpy(ptr %text, ptr %subject, i64 {length})
  call void @_longjmp(ptr %frame, i32 1)
  unreachable
on:
  %handler = call ptr @_mjPRIVATE_getGlobalLogHandler()
  call void %handler(ptr %message)
  ret void
}}

define void @stiction_enter(ptr %frame) {{
  %handler = getelementptr i8, ptr %frame, i64 {handler}
  %outer = getelementptr i8, ptr %frame, i64 {outer}
  %before = call ptr @_mjPRIVATE_setTlsLogHandler(ptr @stiction_escape)
  store ptr %before, ptr %handler
  %above = call ptr @pthread_getspecific({key_type} {key})
  store ptr %above, ptr %outer
  call i32 @pthread_setspecific({key_type} {key}, ptr %frame)
  ret void
}}

define void @stiction_leave(ptr %frame) {{
  %handler = getelementptr i8, ptr %frame, i64 {handler}
  %outer = getelementptr i8, ptr %frame, i64 {outer}
  %before = load ptr, ptr %handler
  call ptr @_mjPRIVATE_setTlsLogHandler(ptr %before)
  %above = load ptr, ptr %outer
  call i32 @pthread_setspecific({key_type} {key}, ptr %above)
  ret void
}}
"""


def _compile() -> Any:
    """The engine that holds the code above; kernels know `stiction_enter` by its name then."""
    key = _Key()
    if ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None):
        raise OSError("no key for memory of a thread's own (pthread_key_create)")
    source = _SOURCE.format(
        key=key.value,
        key_type=f"i{8 * ctypes.sizeof(_Key)}",
        error=int(mujoco.mjtLogLevel.mjLOG_ERROR),
        subject=offset("mjLogMessage", "subject"),
        length=TEXT,
        handler=_HANDLER,
        outer=_OUTER,
        message=_MESSAGE,
    )
    module = llvmlite.binding.parse_assembly(source)
    machine = llvmlite.binding.Target.from_default_triple().create_target_machine()
    engine = llvmlite.binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    for name in ("stiction_enter", "stiction_leave"):
        llvmlite.binding.add_symbol(name, engine.get_function_address(name))
    return engine


if AVAILABLE:
    library.load()
    _engine = _compile()
    _leave_from_python = ctypes.CFUNCTYPE(None, ctypes.c_size_t)(
        _engine.get_function_address("stiction_leave")
    )


_PSTACK, _PBASE = offset("mjData", "pstack"), offset("mjData", "pbase")
_bytes = ir.IntType(8).as_pointer()
_word = ir.IntType(64)


def _function(builder: Any, name: str, result: Any) -> Any:
    """A C function of one address, declared in the module that is built."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, [_bytes]), name)


def _caught(typingctx: Any, frame: Any, d: Any) -> Any:
    """0 at once; and once more, with another value, where MuJoCo gave up since. d: address of the
    data, or 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not AVAILABLE:
            return ir.IntType(32)(0)
        frame, d = args
        with builder.if_then(builder.icmp_unsigned("!=", d, _word(0))):
            for at, to in ((_PSTACK, _STACK), (_PBASE, _BASE)):
                source = builder.inttoptr(builder.add(d, _word(at)), _word.as_pointer())
                target = builder.inttoptr(builder.add(frame, _word(to)), _word.as_pointer())
                builder.store(builder.load(source), target)
        address = builder.inttoptr(frame, _bytes)
        mark = _function(builder, "_setjmp", ir.IntType(32))
        mark.attributes.add("returns_twice")
        builder.call(_function(builder, "stiction_enter", ir.VoidType()), [address])
        return builder.call(mark, [address])

    return types.int32(types.int64, types.int64), generate


def _leave(typingctx: Any, frame: Any) -> Any:
    """Puts the handler that was there before `caught` back."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if AVAILABLE:
            address = builder.inttoptr(args[0], _bytes)
            builder.call(_function(builder, "stiction_leave", ir.VoidType()), [address])
        return context.get_dummy_value()

    return types.void(types.int64), generate


caught: Any = intrinsic(_caught)
leave: Any = intrinsic(_leave)


class Guard:
    """Calls kernels that call MuJoCo; see the module's head. One thread at a time."""

    def __init__(self) -> None:
        self._memory = np.zeros(_MESSAGE + TEXT, np.uint8)
        self.frame = int(self._memory.ctypes.data)
        """To be handed to the kernel."""

    @property
    def message(self) -> str:
        """MuJoCo's last error."""
        return self._memory[_MESSAGE:].tobytes().split(b"\0", 1)[0].decode(errors="replace")

    def call(self, data: mujoco.MjData | None, kernel: Callable[..., int], *arguments: Any) -> int:
        """`kernel(*arguments)`, which steps `data`, if any."""
        try:
            return kernel(*arguments)
        except SystemError as error:
            raise self.cause(error, data) from None

    def cause(self, error: SystemError, data: mujoco.MjData | None) -> BaseException:
        """What a callback raised while a kernel stepped `data`: a call that returns though an
        exception is set ends by this error, which names the callback's own as its cause."""
        if error.__cause__ is None:
            return error
        self.recover(data)
        return error.__cause__

    def recover(self, data: mujoco.MjData | None) -> None:
        """Does what the kernel could not, since MuJoCo's error ended it."""
        if not AVAILABLE:
            return
        _leave_from_python(self.frame)
        if data is not None:  # what the jump left behind
            for at, kept in ((_PSTACK, _STACK), (_PBASE, _BASE)):
                value = ctypes.c_size_t.from_address(self.frame + kept).value
                ctypes.c_size_t.from_address(data._address + at).value = value
