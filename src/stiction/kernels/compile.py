"""`kernel`, `leaf`, `lean` and `lean_leaf`, the one way to Numba."""

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from stiction.kernels.cache_directory import cache_directory

F = TypeVar("F", bound=Callable[..., Any])

KNOWN_NUMBA = ((0, 68), (0, 68))
"""First and last version of Numba, both included, whose dispatchers take a cache of ours as their
`_cache` (numba/core/dispatcher.py, numba/core/caching.py) and whose libraries are linked as
`linking.py` does it. With any other, Numba compiles and caches in its own way, and takes longer."""

OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "nogil": True,
    "fastmath": False,
    "no_cfunc_wrapper": True,  # kernels call each other, Python calls through a way of its own
}
"""Of every kernel."""

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


class Kernel:
    """A compiled function: one form that kernels call, and one that Python calls (`linking.py`).
    Either is made when it is first called for: of a thousand kernels a process whose cache is full
    needs a few dozen."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._options = options

    @functools.cached_property
    def _callee(self) -> Any:
        from stiction.kernels.linking import CalleeCompiler

        function: Any = self.__wrapped__  # type: ignore[attr-defined]
        return numba.njit(function, pipeline_class=CalleeCompiler, **self._options)

    @property
    def _numba_type_(self) -> Any:
        return self._callee._numba_type_

    @functools.cached_property
    def entry(self) -> Any:
        """Numba's dispatcher for calls from Python."""
        return entry(self.__wrapped__, self._options)  # type: ignore[attr-defined]

    def __call__(self, *arguments: Any) -> Any:
        """From Python."""
        return self.entry(*arguments)


def compiled(function: F, *, inlined: bool, counted: bool = True) -> F:
    """`function` as the decorators have it."""
    options = OPTIONS | {"forceinline": inlined}
    if not counted:
        options["_nrt"] = False
    if _config.DISABLE_JIT or not _is_known(numba.__version__):
        return cast("F", entry(function, options))
    return cast("F", Kernel(function, options))


def entry(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Numba's dispatcher of a function that Python or C calls, with its cache."""
    if _config.DISABLE_JIT:
        return function
    directory = cache_directory()
    if not _is_known(numba.__version__):
        made: Any = numba.njit(function, **options)
        if directory is not None:
            _use_numbas_cache(made, directory)
        return made
    # What these import, another Numba may lack.
    from stiction.kernels.cache import KernelCache
    from stiction.kernels.linking import EntryCompiler

    made = numba.njit(function, pipeline_class=EntryCompiler, **options)
    if directory is not None:
        made._cache = KernelCache(function, directory)
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
