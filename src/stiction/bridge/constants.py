"""Constants of a model that MuJoCo derives from its fields, for kernels that move these."""

from __future__ import annotations

from typing import Any

from numba import types

set_const: Any = types.ExternalFunction("mj_setConst", types.void(types.intp, types.intp))
"""Derives them anew; the data is overwritten."""
