"""MuJoCo's collision of one pair of geoms, as they stand in the data.

`mj_collision` looks for pairs, and calls the function that its table has for their two types.
"""

from __future__ import annotations

import ctypes
from typing import Any

import mujoco
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from stiction.bridge.geom_types import kind_of
from stiction.bridge.layout import pointer, size_of
from stiction.bridge.library import load
from stiction.kernels.compile import kernel

FOUND = size_of("mjPreContact") // 8
"""Numbers of a contact as such a function leaves it: distance, position, normal, first tangent."""

MOST = int(mujoco.mjMAXCONPAIR)
"""Contacts of a pair at most."""

_TYPES = int(mujoco.mjtGeom.mjNGEOMTYPES)

TABLE = ctypes.addressof(ctypes.c_void_p.in_dll(load(), "mjCOLLISIONFUNC"))
"""Address of the table, to be handed to kernels."""


@intrinsic
def _call(
    typingctx: Any, function: Any, m: Any, d: Any, out: Any, a: Any, b: Any, margin: Any
) -> Any:
    """What the `mjfCollision` at that address returns."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, whole = ir.IntType(64), ir.IntType(32)
        kind = ir.FunctionType(whole, [word, word, word, whole, whole, ir.DoubleType()])
        target = builder.inttoptr(args[0], kind.as_pointer())
        geoms = [builder.trunc(each, whole) for each in args[4:6]]
        found = builder.call(target, [*args[1:4], *geoms, args[6]])
        return builder.sext(found, word)

    given = [types.int64] * 6
    return types.int64(*given, types.float64), generate


@kernel
def collide_pair(table, m, d, first, second, margin, out):
    """Contacts of two geoms, in the order that a contact has them, into out (MOST, FOUND); how
    many. table: `TABLE`."""
    function = pointer(table + 8 * (kind_of(m, first) * _TYPES + kind_of(m, second)))
    if function == 0:
        return 0
    for k in range(MOST):  # not all functions have a tangent to give
        for c in range(FOUND - 3, FOUND):
            out[k, c] = 0.0
    return _call(function, m, d, out.ctypes.data, first, second, margin)
