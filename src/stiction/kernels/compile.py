"""`kernel` and `leaf`, the one way to Numba, and where its compiled code is kept.

Numba keys a cached function by the function's own file. A kernel holds its callees'
machine code and the constants it read, wherever they stand, so after an edit in another
file Numba alone would go on using the old ones. Here the cache directory is named by a
hash of every source that a kernel can reach: an edit anywhere in them starts a new one.

The directory lies in the first of these that can be written to: `stiction` below
NUMBA_CACHE_DIR, STICTION_CACHE_DIR, the user's cache, the temporary directory. If none
can, kernels are compiled anew in each process.
"""

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).parents[1]

_DECORATED = re.compile(r"^\s*@(kernel|leaf)\b", re.MULTILINE)
_IMPORTED = re.compile(r"^\s*from stiction([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)

KEPT = 3
"""Caches kept, the current one included: enough to go back and forth between branches."""

IN_USE = 3600.0
"""Age [s] below which a cache is never removed: another process may be writing to it."""

# No entry point for C: kernels call each other, and Python calls them through its own.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}

_config: Any = numba.config  # its settings are made at run time, unseen by type checkers
_config_lock = threading.Lock()


def kernel(function: F) -> F:
    """`function` compiled for nopython mode, without the GIL, cached; IEEE arithmetic.

    Division by zero gives inf or nan, as in NumPy: raising costs a branch per division.
    """
    return _compiled(function, inlined=False)


def leaf(function: F) -> F:
    """A `kernel` of a few lines that its callers take in whole: a call would cost as much."""
    return _compiled(function, inlined=True)


def _compiled(function: F, *, inlined: bool) -> F:
    directory = cache_directory()
    # Numba reads the directory while decorating and never again. Put back at once, it
    # does not disturb the user's own functions.
    with _config_lock:
        before = _config.CACHE_DIR
        _config.CACHE_DIR = str(directory or "")
        try:
            compiled: Any = numba.njit(
                cache=directory is not None,
                nogil=True,
                fastmath=False,
                forceinline=inlined,
                **_OPTIONS,
            )(function)
        finally:
            _config.CACHE_DIR = before
    _name_data_apart(compiled)
    return compiled


@cache
def cache_directory() -> Path | None:
    """Where this process keeps compiled kernels (it exists), or None if nowhere."""
    for root in _roots():
        directory = root / source_hash()
        if _is_writable(directory):
            os.utime(directory)  # newest: `_prune` goes by this
            _prune(root)
            return directory
    return None


def source_hash(package: Path = PACKAGE) -> str:
    """16 hex digits that change with any source a kernel can reach, with Numba, or with MuJoCo,
    the layout of whose structures kernels hold as constants."""
    digest = hashlib.sha256(f"{numba.__version__} {version('mujoco')}".encode())
    for name, source in sorted(_reached(package).items()):
        digest.update(f"{name} {len(source)} {source}".encode())
    return digest.hexdigest()[:16]


def _reached(package: Path) -> dict[str, str]:
    """Sources with kernels, and those that they import from, whose constants they may hold; by
    the path within the package. An edit anywhere else need not compile everything again."""
    sources = {
        path.relative_to(package).as_posix(): path.read_text(encoding="utf-8")
        for path in package.rglob("*.py")
    }
    reached: dict[str, str] = {}
    found = [name for name, source in sources.items() if _DECORATED.search(source)]
    while found:
        name = found.pop()
        if name in sources and name not in reached:
            reached[name] = sources[name]
            for module, names in _IMPORTED.findall(sources[name]):
                at = module.strip(".").replace(".", "/")
                found += [f"{at}.py", f"{at}/__init__.py"]
                found += [f"{at}/{part}.py".lstrip("/") for part in re.findall(r"\w+", names)]
    return reached


def _roots() -> Iterator[Path]:
    """Candidates for the folder that holds one cache per hash, best first."""
    home = Path(os.path.expanduser("~"))
    if _config.CACHE_DIR:
        yield Path(_config.CACHE_DIR).absolute() / "stiction"
    if own := os.environ.get("STICTION_CACHE_DIR"):
        yield Path(own).expanduser().absolute()
    if sys.platform == "win32":
        yield Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "stiction"
    elif sys.platform == "darwin":
        yield home / "Library" / "Caches" / "stiction"
    else:
        yield Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "stiction"
    shared = Path(tempfile.gettempdir()) / f"stiction-{os.getuid() if os.name == 'posix' else ''}"
    if _is_private(shared):
        yield shared


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return False
    return True


def _is_private(directory: Path) -> bool:
    """Whether only this user can write there: cached code is executed as it is found."""
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        info = directory.lstat()
    except OSError:
        return False
    if os.name != "posix":
        return True
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o022


def _prune(root: Path) -> None:
    """Remove all but the `KEPT` last used caches from `root`, and nothing else in it.

    A process whose cache is taken away compiles what it still needs: Numba makes the
    directory again, and passes over an index whose data are gone.
    """
    ages = []
    for path in root.iterdir():
        if re.fullmatch("[0-9a-f]{16}", path.name):
            try:
                ages.append((time.time() - path.stat().st_mtime, path))
            except OSError:  # another process removed it first
                continue
    for age, path in sorted(ages)[KEPT:]:
        if age > IN_USE:
            shutil.rmtree(path, ignore_errors=True)


def _name_data_apart(compiled: Any) -> None:
    """Give this process file names of its own for the machine code that it saves.

    Numba numbers them 1, 2, ... per function. Two processes that save different
    signatures at once pick the same number, and the index then leads a third one to code
    for other argument types. With names apart, the loser is compiled once more.
    """
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is not None:  # None without a cache, and where NUMBA_DISABLE_JIT is set
        stem = file._index_name.removesuffix(".nbi")
        file._data_name_pattern = f"{stem}.{uuid.uuid4().hex[:8]}.{{number:d}}.nbc"
