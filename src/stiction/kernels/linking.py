"""How kernels that call each other are compiled: each to the compiler's intermediate code, and to
machine code once, with whoever Python or C calls.

Numba optimizes every function, generates its machine code, takes the optimized callees into their
callers and does it all again there, at each level; of three hundred functions a dozen are ever
called from outside. Here a callee (`CalleeCompiler`) stops at its intermediate code, and an entry
(`EntryCompiler`) links what it reaches, optimizes it as a whole and generates its machine code.

What an entry links stays its own, and every function has a name of its own in all processes
(`_name_apart`). Numba numbers functions anew in each process, so that code of two processes, loaded
from the cache into a third, could have one name for a function as an entry and for the same
function as a callee: the entry was then given the callee's constants, of which there are none.

This rests on Numba's compiler pipeline, which users may replace, and on its code libraries, which
are its own (numba/core/codegen.py, numba/core/typed_passes.py): `compile.py` checks the version.
"""

from __future__ import annotations

import uuid
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from llvmlite.binding import Linkage
from numba.core import errors, funcdesc, postproc, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import InlineOverloads, NativeLowering, NopythonRewrites
from numba.core.untyped_passes import (
    FindLiterallyCalls,
    InlineClosureLikes,
    InlineInlinables,
    LiteralPropagationSubPipelinePass,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    RewriteDynamicRaises,
    WithLifting,
)

from stiction.kernels.collection import without_collection
from stiction.kernels.lowering import KernelLower, OperatorMemory
from stiction.kernels.notice import clear, count_one


class CalleeLibrary(JITCodeLibrary):
    """Intermediate code of one function; of its callees the declarations only."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Nothing is optimized here either."""
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Nothing is linked here: the entry does it."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True


class EntryLibrary(JITCodeLibrary):
    """Machine code of a function and of all that it calls, with names of its own for those."""

    def add_linking_library(self, library: Any) -> None:
        """The library, and those that callees among them have left to link."""
        super().add_linking_library(library)
        if isinstance(library, CalleeLibrary):
            for beyond in library._linking_libraries:
                if beyond not in self._linking_libraries:
                    self.add_linking_library(beyond)

    def finalize(self) -> None:
        """As Numba's own; the variables that stand here before anything is linked are the entry's,
        and Numba looks for them by name."""
        self._own = {each.name for each in self._final_module.global_variables}
        self._linking_libraries = _callers_first(self._linking_libraries)
        super().finalize()

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """As Numba's own, but of the intermediate code, which is for callers to take in, the names
        alone: an entry has no callers, and to read it was a fifth of a process' start."""
        name, kind, (code, _) = super().serialize_using_object_code()
        module = ir.Module()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage != Linkage.internal:
                named = ir.Function(module, ir.FunctionType(ir.VoidType(), []), function.name)
                ir.IRBuilder(named.append_basic_block()).ret_void()
        return name, kind, (code, llvm.parse_assembly(str(module)).as_bitcode())

    def _optimize_final_module(self) -> None:
        """Optimizes once, and hides what was linked. Numba goes over it twice, first to bring
        reference counts together, of which kernels have few: the code is as fast without."""
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)
        for function in self._final_module.functions:
            if function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        for variable in self._final_module.global_variables:
            if variable.linkage == Linkage.common and variable.name not in self._own:
                variable.linkage = Linkage.internal


def _callers_first(libraries: list[Any]) -> list[Any]:
    """The libraries, each behind all that call it: a function is left out where nothing that was
    linked before it asks for it."""
    order: list[Any] = []
    seen: set[Any] = set()

    def visit(library: Any) -> None:
        if library in seen:
            return
        seen.add(library)
        if isinstance(library, CalleeLibrary):
            for callee in library._linking_libraries:
                visit(callee)
        order.append(library)

    for library in libraries:
        visit(library)
    return order[::-1]


@register_pass(mutates_CFG=True, analysis_only=False)
class CalleeLowering(NativeLowering):
    """To intermediate code, and known to the functions that call it."""

    _name = "stiction_callee_lowering"

    def run_pass(self, state: Any) -> bool:
        """As Numba's own, without wrappers and without machine code."""
        _name_apart(state)
        context, flags = state.targetctx, state.flags
        library = state.library = CalleeLibrary(context.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        description = funcdesc.PythonFunctionDescriptor.from_specialized_function(
            state.func_ir, state.typemap, state.return_type, state.calltypes,
            mangler=context.mangler, inline=flags.forceinline, noalias=flags.noalias,
            abi_tags=[flags.get_mangle_string()],
        )  # fmt: skip
        with context.push_code_library(library):
            lower = KernelLower(
                context, library, description, state.func_ir, metadata=state.metadata
            )
            lower.lower()
        count_one()
        # Numba finds the code by a built-in function of its own, which nobody calls.
        unique: list[Any] = []
        key = unique.append
        context.insert_user_function(key, description, [library])
        state["cr"] = _LowerResult(description, lower.call_helper, cfunc=key, env=lower.env)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class EntryLowering(NativeLowering):
    """To machine code, with everything that is called."""

    _name = "stiction_entry_lowering"

    @property
    def lowering_class(self) -> type[KernelLower]:
        """Numba asks for it."""
        return KernelLower

    def run_pass(self, state: Any) -> bool:
        """As Numba's own, into a library that links callees of callees."""
        _name_apart(state)
        codegen = state.targetctx.codegen()
        state.library = EntryLibrary(codegen, state.func_id.func_qualname)
        state.library.enable_object_caching()
        count_one()
        try:
            return bool(super().run_pass(state))
        finally:
            clear()


def _name_apart(state: Any) -> None:
    """Replaces Numba's count of functions, part of their names, by a number that no other process
    has."""
    identity = state.func_ir.func_id
    identity.unique_id = uuid.uuid4().hex
    identity.unique_name = f"{identity.func_qualname}${identity.unique_id}"


_UNUSED = {
    FindLiterallyCalls, InlineClosureLikes, InlineInlinables, InlineOverloads,
    LiteralPropagationSubPipelinePass, LiteralUnroll, MakeFunctionToJitFunction,
    RewriteDynamicRaises, WithLifting,
}  # fmt: skip
"""Passes for what no kernel has: closures, comprehensions, `with`, `literally`, exceptions."""


@register_pass(mutates_CFG=True, analysis_only=False)
class ArrayRewrites(NopythonRewrites):
    """Joins operations on whole arrays into one loop, where a kernel has any: few do, and to look
    for them by Numba's rules takes longer than most other passes."""

    _name = "stiction_array_rewrites"

    def run_pass(self, state: Any) -> bool:
        """As Numba's own."""
        for expression, signature in state.calltypes.items():
            operation = getattr(expression, "op", None)
            if operation not in ("unary", "binop", "call"):
                continue
            if not isinstance(getattr(signature, "return_type", None), types.Array):
                continue
            if operation == "call":
                called = state.typemap[expression.func.name]
                if isinstance(called, types.Dispatcher):
                    continue
            return bool(super().run_pass(state))
        return False


_INSTEAD = {NopythonRewrites: ArrayRewrites}


class _Lifetimes(PostProcessor):
    """Numba's, but for the variables that each block begins with, which only generators ask for,
    and which it would work out half a dozen times."""

    def run(self, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        """As Numba's own."""
        if self.func_ir.is_generator:
            super().run(emit_dels, extend_lifetimes)
            return
        self.func_ir.blocks = canonicalize_cfg(self.func_ir.blocks)
        self.func_ir.variable_lifetime = VariableLifetime(self.func_ir.blocks)
        self.func_ir.generator_info = None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)


class _Passes(PassManager):
    """Numba's, without a record of when each pass ran on what, and without a look through the whole
    function after each: a tenth of what all passes but the compiler's own took."""

    @global_compiler_lock
    def _runPass(self, index: int, pss: Any, internal_state: Any) -> None:
        pss.analysis = self._analysis
        context: Any = errors  # some of it is made at run time, unseen by type checkers
        module: Any = postproc
        usual, module.PostProcessor = module.PostProcessor, _Lifetimes
        try:
            with context.new_error_context("Pass {name}", name=pss.name()):
                pss.run_initialization(internal_state)
                pss.run_pass(internal_state)
                pss.run_finalizer(internal_state)
        finally:
            module.PostProcessor = usual


class _KernelCompiler(CompilerBase):
    """Numba's pipeline with another way of lowering, and without what kernels do not need."""

    lowering: type[NativeLowering]

    def __init__(self, typingctx: Any, *rest: Any) -> None:
        super().__init__(typingctx, *rest)
        self.state.typingctx = OperatorMemory(typingctx)

    def define_pipelines(self) -> list[Any]:
        """Numba asks for it."""
        given = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager = _Passes(given.pipeline_name)
        manager.passes = [
            (self.lowering if each is NativeLowering else _INSTEAD.get(each, each), text)
            for each, text in given.passes
            if each not in _UNUSED
        ]
        manager.finalize()
        return [manager]

    def _compile_core(self) -> Any:
        with without_collection():
            return super()._compile_core()


class CalleeCompiler(_KernelCompiler):
    """For functions as other functions call them."""

    lowering = CalleeLowering


class EntryCompiler(_KernelCompiler):
    """For functions as Python or C calls them."""

    lowering = EntryLowering
