"""What Numba spends most of its time on, done in a shorter way for our kernels: which function an
operator of two numbers is, how an entry of an array is read, and who holds what is in a tuple.

Numba asks each of some twenty templates of an operator, or of `bool` and `max`, whether it takes
two numbers, at each use; the answer is the same in all functions (`OperatorMemory`). It compiles a
kernel that is called with constants for each of them apart; to ours a constant is a number, in
indices of arrays too. An entry of a `PlainArray` is an address and a load (`KernelLower`).

A caller holds what it hands over until the call is over, so that a kernel need not count its own
references to arguments and to what is in them. Numba counts those of a tuple of forty arrays
one by one wherever one of them is read, which was most of the code of kernels that take such.
"""

from __future__ import annotations

import operator
from typing import Any, cast

from numba import types
from numba.core import ir
from numba.core.lowering import Lower
from numba.core.typing.context import Context

from stiction.kernels.plain_array import PlainArray, entry_pointer

_OPERATORS = {each for each in vars(operator).values() if callable(each)}
_OPERATORS |= {abs, bool, max, min, range}
_SIMPLE = (types.Number, types.Boolean, types.Array, types.Literal, types.IntEnumMember)


class OperatorMemory(Context):
    """A typing context of Numba, which stands for `real`, remembers what operators are, and calls
    kernels with numbers where there are constants."""

    __slots__ = ("_real",)

    def __init__(self, real: Any) -> None:
        self.__dict__ = real.__dict__
        self._real = real

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Signature of the function for these arguments."""
        if isinstance(func, str):
            if func.startswith("static_") and isinstance(args[0], PlainArray):
                return None  # as for any other index
        elif getattr(func, "typing_key", func) in _OPERATORS and not kws:
            return self._remembered(func, tuple(args))
        elif isinstance(func, types.Dispatcher):
            args = tuple(map(types.unliteral, args))
        return self._real.resolve_function_type(func, args, kws)

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """Signature of target[index] = value."""
        return self._remembered(operator.setitem, (target, index, value))

    def _remembered(self, func: Any, args: Any) -> Any:
        function: Any = func
        if not isinstance(func, types.Type):
            function = self._real.resolve_value_type(func)
        if isinstance(args[0], PlainArray):  # to which all entries are alike
            args = tuple(map(types.unliteral, args))
        key = function.typing_key, args
        known = _signatures.get(key)
        # Its type is another one when Numba learns of further uses of the operator.
        if known is not None and known[0] is function:
            return known[1]
        found = self._real.resolve_function_type(function, args, {})
        if found is not None and all(map(_is_simple, args)):
            _signatures[key] = function, found
        return found


_signatures: dict[Any, tuple[Any, Any]] = {}


def _is_simple(kind: Any) -> bool:
    """Whether an operator means the same for this type wherever it stands."""
    if isinstance(kind, types.BaseTuple):
        return all(isinstance(each, types.Integer) for each in cast(Any, kind).types)
    return isinstance(kind, _SIMPLE)


class KernelLower(Lower):
    """Numba's way to intermediate code, with a short one for entries of plain arrays, and for what
    the caller holds."""

    _lent: dict[str, tuple[int, ...]]
    """Variables that are arguments, or parts of them, and remain so: the argument's number, and in
    each tuple that of the part."""

    def pre_lower(self) -> None:
        """Before anything else."""
        super().pre_lower()
        self._lent = {} if self._disable_sroa_like_opt else self._find_lent()

    def _find_lent(self) -> dict[str, tuple[int, ...]]:
        assigned: dict[str, Any] = {}
        for block in self.func_ir.blocks.values():
            for inst in block.find_insts(ir.Assign):
                name = inst.target.name
                assigned[name] = None if name in assigned else inst.value
        lent: dict[str, tuple[int, ...]] = {}
        grew = True
        while grew:
            grew = False
            for name, value in assigned.items():
                place = None if name in lent else self._place_of(value, lent)
                if place is not None and self._type_at(place) == self.typeof(name):
                    lent[name], grew = place, True
        return lent

    def _place_of(self, value: Any, lent: dict[str, tuple[int, ...]]) -> tuple[int, ...] | None:
        """Which part of an argument the right side of an assignment is, or None."""
        if isinstance(value, ir.Arg):
            return (value.index,)
        if isinstance(value, ir.Var):
            return lent.get(value.name)
        part = self._part_of(value)
        whole = None if part is None else lent.get(part[0])
        if part is None or whole is None:
            return None
        return whole if part[1] is None else (*whole, part[1])

    def _part_of(self, value: Any) -> tuple[str, int | None] | None:
        """(variable, number) of the part of a tuple that the right side of an assignment is, None
        for the number where it is all of it; or None."""
        operation = getattr(value, "op", None)
        if operation not in ("getattr", "static_getitem", "exhaust_iter"):
            return None
        name = value.value.name
        kind: Any = self.typeof(name)
        if not isinstance(kind, types.BaseTuple):
            return None
        if operation == "exhaust_iter":
            return name, None
        if operation == "static_getitem":
            at = value.index
        else:
            fields = getattr(kind, "fields", ())
            at = fields.index(value.attr) if value.attr in fields else None
        known = type(at) is int and 0 <= at < len(cast(Any, kind))
        return (name, at) if known else None

    def _type_at(self, place: tuple[int, ...]) -> Any:
        kind: Any = self.fndesc.argtypes[place[0]]
        for at in place[1:]:
            kind = kind[at]
        return kind

    def loadvar(self, name: str) -> Any:
        """The value of a variable."""
        place = self._lent.get(name)
        if place is None:
            return super().loadvar(name)
        value = self.fnargs[place[0]]
        for at in place[1:]:
            value = self.builder.extract_value(value, at)
        return value

    def lower_inst(self, inst: Any) -> Any:
        """A statement."""
        if isinstance(inst, ir.Assign) and inst.target.name in self._lent:
            return None
        if isinstance(inst, ir.Del) and inst.value in self._lent:
            return None
        if isinstance(inst, ir.StaticSetItem) and inst.index_var is not None:
            signature = self.fndesc.calltypes[inst]
            if isinstance(signature.args[0], PlainArray):
                return self.lower_setitem(inst.target, inst.index_var, inst.value, signature)
        return super().lower_inst(inst)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """target[index] = value"""
        at = self._entry(target_var, index_var, signature)
        if at is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value, kind = self.loadvar(value_var.name), self.typeof(value_var.name)
        dtype = signature.args[0].dtype
        value = self.context.cast(self.builder, value, kind, dtype)
        return self.context.pack_value(self.builder, dtype, value, at)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """The right side of an assignment."""
        if expr.op in ("getitem", "static_getitem"):
            index = expr.index if expr.op == "getitem" else expr.index_var
            signature = self.fndesc.calltypes.get(expr)
            if index is not None and signature is not None:
                at = self._entry(expr.value, index, signature)
                if at is not None:
                    dtype = signature.args[0].dtype
                    value = self.context.unpack_value(self.builder, dtype, at)
                    return self.context.cast(self.builder, value, dtype, resty)
        return super().lower_expr(resty, expr)

    def _entry(self, array_var: Any, index_var: Any, signature: Any) -> Any:
        """Pointer to an entry of a plain array, or None if it is another thing."""
        kind, index_kind = signature.args[:2]
        if not isinstance(kind, PlainArray) or self.typeof(array_var.name) != kind:
            return None
        index = self.loadvar(index_var.name)
        index = self.context.cast(self.builder, index, self.typeof(index_var.name), index_kind)
        array = self.loadvar(array_var.name)
        return entry_pointer(self.context, self.builder, kind, array, index, index_kind)
