"""Where compiled kernels are kept.

The directory is named by a hash of every source that a kernel can reach: an edit anywhere in them
starts a new one, which takes over from those beside it what the edit did not touch.

It lies in the first of these that can be written to, or that holds kernels already (a cache made
beforehand, read-only since): `stiction` below NUMBA_CACHE_DIR, STICTION_CACHE_DIR, the user's
cache, the temporary directory. If there is none, kernels are compiled anew in each process.
"""

import logging
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
import platformdirs

from stiction.kernels.sources import hash_of_all

KEPT = 3
"""Caches kept, the current one included: enough to go back and forth between branches."""

IN_USE = 3600.0
"""Age [s] below which a cache is never removed: another process may be writing to it."""

PROBE = 1 << 16
"""Bytes written to see whether a directory takes any: on a full disk an empty file still fits."""

_warned = threading.Event()
_config: Any = numba.config  # its settings are made at run time, unseen by type checkers


@cache
def cache_directory() -> Path | None:
    """Where this process keeps compiled kernels, or None if nowhere."""
    roots = list(_roots())
    for root in roots:
        directory = root / hash_of_all()
        if _is_writable(directory):
            os.utime(directory)  # newest: `_prune` goes by this
            _prune(root)
            return directory
        if _is_populated(directory):
            return directory
    warn_once(
        "no directory for compiled kernels can be written to "
        f"({', '.join(map(str, roots)) or 'none is known'}); each process compiles its own, "
        "which takes minutes: set STICTION_CACHE_DIR"
    )
    return None


def warn_once(text: str) -> None:
    """Say in one line that the cache does not serve; only the first time in a process.

    Logged, not warned: where warnings are errors, a full disk would be one.
    """
    if not _warned.is_set():
        _warned.set()
        logging.getLogger("stiction").warning("stiction: %s", text)


def _roots() -> Iterator[Path]:
    """Candidates for the folder that holds one cache per hash, best first."""
    if _config.CACHE_DIR:
        yield Path(_config.CACHE_DIR).absolute() / "stiction"
    if own := os.environ.get("STICTION_CACHE_DIR"):
        yield Path(os.path.expanduser(own)).absolute()
    yield platformdirs.user_cache_path("stiction", appauthor=False)
    try:
        temporary = Path(tempfile.gettempdir())
    except OSError:  # none that can be written to
        return
    shared = temporary / f"stiction-{os.getuid() if os.name == 'posix' else ''}"
    if _is_private(shared):
        yield shared


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(PROBE))
    except OSError:
        return False
    return True


def _is_populated(directory: Path) -> bool:
    try:
        return any(directory.iterdir())
    except OSError:
        return False


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

    A process whose cache is taken away compiles what it still needs.
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
