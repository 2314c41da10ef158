"""Arrays as C has them: an index counts from the front, never from the end.

NumPy's a[-1] is the last entry, so that Numba compares every index of unknown sign with zero and
adds the length where it is below. Loops over contacts and bodies index by what other arrays hold,
and this was a third of what they did. The arrays of packed tuples (`packing.py`) go without.
"""

from __future__ import annotations

import operator
from typing import Any, cast

from numba import types
from numba.core.datamodel import models
from numba.extending import lower_builtin, register_model
from numba.np.arrayobj import getitem_array_tuple, getitem_arraynd_intp, setitem_array


class PlainArray(types.Array):
    """The type of an array in C's order whose indices are not negative."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        super().__init__(dtype, ndim, "C")
        self.name = f"plain {self.name}"

    @property
    def key(self) -> Any:
        """What tells types apart."""
        return ("plain", *super().key)


register_model(PlainArray)(models.ArrayModel)


def _unsigned(kind: Any) -> Any:
    """The type of an index, as one that Numba takes as it is."""
    if isinstance(kind, types.Integer):
        return types.uintp
    if isinstance(kind, types.BaseTuple):
        return types.Tuple([_unsigned(each) for each in cast(Any, kind).types])
    return kind


def _with_plain_index(sig: Any, args: Any, context: Any, builder: Any) -> tuple[Any, list[Any]]:
    """Signature and arguments with the index, which is the second, cast."""
    kinds, values = list(sig.args), list(args)
    kinds[1] = _unsigned(kinds[1])
    if kinds[1] != sig.args[1]:
        values[1] = context.cast(builder, values[1], sig.args[1], kinds[1])
    return sig.replace(args=tuple(kinds)), values


@lower_builtin(operator.getitem, PlainArray, types.Integer)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return getitem_arraynd_intp(context, builder, *_with_plain_index(sig, args, context, builder))


@lower_builtin(operator.getitem, PlainArray, types.BaseTuple)
def _get_by_tuple(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return getitem_array_tuple(context, builder, *_with_plain_index(sig, args, context, builder))


@lower_builtin(operator.setitem, PlainArray, types.Any, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return setitem_array(context, builder, *_with_plain_index(sig, args, context, builder))
