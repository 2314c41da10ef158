"""Checks what users pass to `solve`, once, and puts it in one form."""

from __future__ import annotations

from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiction.errors import InvalidInput, real_numbers
from stiction.lcp import drivers
from stiction.lcp.result import Result

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Bounds = tuple[Array, Array]

NONE = np.empty(0)
"""Stands for an option that was not given, in kernels' signatures."""

MOST_PIVOTS = 10_000_000
"""Limits on pivots beyond this are taken as this: a path keeps a word for each pivot."""


def as_floats(name: str, value: ArrayLike, ndim: int) -> Array:
    """value as a C-ordered float array of ndim dimensions; shares memory where it can."""
    if type(value) is np.ndarray and value.dtype == np.float64 and value.flags.c_contiguous:
        array = value
    else:
        array = np.asarray(real_numbers(name, value), dtype=np.float64, order="C")
    if array.ndim != ndim:
        wanted = "a square matrix (n, n)" if ndim == 2 else "a vector (n,)"
        raise InvalidInput(name, f"must be {wanted}", array.shape)
    return array


def as_number(name: str, value: float) -> float:
    """An option that is one number, not negative."""
    if type(value) is float and value >= 0.0:  # what it is in most calls, which last microseconds
        return value
    array = as_floats(name, value, 0) if np.ndim(value) == 0 else None
    if array is None or not array >= 0.0:
        raise InvalidInput(name, f"is {value!r}, must be a number of at least zero")
    return float(array)


def as_count(name: str, value: int) -> int:
    """An option that counts."""
    try:
        count = index(value)
    except TypeError:
        raise InvalidInput(name, f"is {value!r}, must be a whole number") from None
    if count < 0:
        raise InvalidInput(name, f"is {count}, must not be negative")
    return min(count, MOST_PIVOTS)


def require_finite(name: str, array: Array) -> None:
    """Raises InvalidInput with the index of the first entry that is not finite."""
    bad = drivers.first_nonfinite(array)
    if bad >= 0:
        index = tuple(int(i) for i in np.unravel_index(bad, array.shape))
        raise InvalidInput(name, f"is {array[index]}, must be finite", array.shape, index)


def as_bounds(lo: ArrayLike | None, hi: ArrayLike | None, free: ArrayLike | None, n: int) -> Bounds:
    """Lower and upper bounds (n,), (n,), with free rows opened."""
    filled = []
    for name, value, default in (("lo", lo, 0.0), ("hi", hi, np.inf)):
        given = real_numbers(name, default if value is None else value)
        bound = np.array(given, dtype=np.float64)
        if bound.shape not in ((), (n,)):
            raise InvalidInput(name, f"must be ({n},) or a scalar", bound.shape)
        bound = np.broadcast_to(bound, (n,)).copy()
        if np.isnan(bound).any():
            raise InvalidInput(name, "is nan", bound.shape, int(np.isnan(bound).argmax()))
        filled.append(bound)
    low, high = filled
    if free is not None:
        rows = as_mask("free", free, n)
        low[rows], high[rows] = -np.inf, np.inf
    wrong = (low > high) | np.isposinf(low) | np.isneginf(high)
    if wrong.any():
        i = int(wrong.argmax())
        raise InvalidInput("lo", f"{low[i]:g} with hi = {high[i]:g}: no z lies between", None, i)
    return low, high


def as_mask(name: str, rows: ArrayLike, n: int) -> Mask:
    """A boolean mask (n,) from a mask or from indices."""
    given = real_numbers(name, rows)
    if given.dtype == np.bool_:
        if given.shape != (n,):
            raise InvalidInput(name, f"a mask must be ({n},)", given.shape)
        return given
    if given.size and not np.issubdtype(given.dtype, np.integer):
        raise InvalidInput(name, f"is of {given.dtype}: give indices or a boolean mask")
    indices = given.astype(np.intp).ravel()
    outside = (indices < 0) | (indices >= n)
    if outside.any():
        raise InvalidInput(name, f"names row {indices[outside][0]}; rows are 0 to {n - 1}")
    mask = np.zeros(n, np.bool_)
    mask[indices] = True
    return mask


def as_start(start: ArrayLike | Result, bounds: Bounds | None, n: int) -> tuple[Mask, Mask]:
    """Active rows, and rows at their upper bound, of a warm start."""
    if not isinstance(start, Result):
        return as_mask("start", start, n), np.zeros(n, np.bool_)
    if len(start.z) != n:
        raise InvalidInput("start", f"is the result of a problem of order {len(start.z)}, not {n}")
    upper = np.zeros(n, np.bool_) if bounds is None else ~start.active & (start.z >= bounds[1])
    return start.active, upper


def as_cover(cover: ArrayLike | None, n: int) -> Array:
    """The covering vector (n,), or (0,) for the default."""
    if cover is None:
        return NONE
    vector = as_floats("cover", cover, 1)
    require_finite("cover", vector)
    if vector.shape != (n,) or (vector <= 0.0).any():
        raise InvalidInput("cover", f"must have {n} entries, all positive", vector.shape)
    return vector
