"""`kernel`, `leaf` and `stage`, the one way to Numba."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from stiction.kernels.cache_directory import cache_directory

F = TypeVar("F", bound=Callable[..., Any])

KNOWN_NUMBA = ((0, 59), (0, 68))
"""First and last version of Numba, both included, whose dispatchers take a cache of ours as their
`_cache` (numba/core/dispatcher.py, numba/core/caching.py). With any other, Numba's own is used."""

_config: Any = numba.config  # its settings are made at run time, unseen by type checkers
_config_lock = threading.Lock()


def kernel(function: F) -> F:
    """`function` compiled for nopython mode, without the GIL, cached; IEEE arithmetic.

    Division by zero gives inf or nan, as in NumPy: raising costs a branch per division.
    """
    return compiled(function, inlined=False)


def leaf(function: F) -> F:
    """A `kernel` of a few lines that its callers take in whole: a call would cost as much."""
    return compiled(function, inlined=True)


def lean(function: F) -> F:
    """A `kernel` that works on the arrays of NamedTuples, allocates nothing and returns numbers
    only, without reference counts (`_nrt`): each array read from a tuple would cost two atomic
    ones, and a pivot or a factorization reads hundreds. The caller holds the arrays all the while.
    """
    return compiled(function, inlined=False, counted=False)


def lean_leaf(function: F) -> F:
    """A `leaf` that is `lean`."""
    return compiled(function, inlined=True, counted=False)


def compiled(function: F, *, inlined: bool, counted: bool = True, entry: bool = False) -> F:
    """`function` as the decorators have it; entry: with an entry point for C."""
    # No entry point for C otherwise: kernels call each other, Python calls through its own.
    options: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": not entry}
    if not counted:
        options["_nrt"] = False
    made: Any = numba.njit(nogil=True, fastmath=False, forceinline=inlined, **options)(function)
    directory = cache_directory()
    if made is function or directory is None:  # NUMBA_DISABLE_JIT gives the function back
        return made
    if _is_known(numba.__version__):
        from stiction.kernels.cache import KernelCache  # what it imports, another Numba may lack

        made._cache = KernelCache(function, directory)
    else:
        _use_numbas_cache(made, directory)
    return made


def _is_known(version: str) -> bool:
    """Whether this Numba takes a `KernelCache`."""
    first, last = KNOWN_NUMBA
    return first <= tuple(int(number) for number in version.split(".")[:2]) <= last


def _use_numbas_cache(made: Any, directory: Path) -> None:
    """Let Numba keep its own cache in `directory`, if it can be written to.

    Numba reads the setting here and never again. Put back at once, it does not disturb the user's
    own functions.
    """
    with _config_lock:
        before = _config.CACHE_DIR
        _config.CACHE_DIR = str(directory)
        try:
            made.enable_caching()
        finally:
            _config.CACHE_DIR = before
