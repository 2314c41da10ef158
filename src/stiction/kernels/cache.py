"""Compiled kernels on disk, one file for each function and signature.

What Numba's own cache lacks: two processes may save at once (Numba's index then leads a third one
to code for other argument types), and a file that is damaged, unreadable or cannot be written never
stops a program: the kernel is compiled, and one line says why. A file is a digest and the pickled
code; code that does not match its digest is never run.
"""

import hashlib
import os
import pickle
import re
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from stiction.kernels.cache_directory import warn_once
from stiction.kernels.sources import hash_reached_from

DIGEST = hashlib.sha256().digest_size
"""Bytes at a file's head."""

NAMED = 100
"""Characters of a function's name in the name of its file; file systems allow 255 in all."""


class KernelCache:
    """What a dispatcher of Numba asks for compiled code, and gives it to, for one function."""

    def __init__(self, function: Callable[..., Any], directory: Path) -> None:
        code = function.__code__
        name = re.sub(r"[^\w.]", "", f"{function.__module__}.{function.__qualname__}")
        self._directory, self._name, self._enabled = directory, name[-NAMED:], True
        # The code's constants are not in its bytes, but in its file or in one that it imports.
        sources = hash_reached_from(code.co_filename)
        self._identity = hashlib.sha256(
            f"{name} {code.co_firstlineno} {sys.version} {sources}".encode()
            + code.co_code
            + (dumps([cell.cell_contents for cell in function.__closure__])
               if function.__closure__ else b"")
        )  # fmt: skip

    @property
    def cache_path(self) -> str:
        """The directory of all kernels."""
        return str(self._directory)

    def enable(self) -> None:
        """Load and save from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Neither load nor save from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Remove what is saved of this function, signatures of earlier versions too."""
        for path in self._directory.glob(f"{self._name}-*.nbc"):
            path.unlink(missing_ok=True)

    def holds(self, sig: Any, codegen: Any) -> bool:
        """Whether the compiled function for this signature is there, or beside it."""
        path = self._path(sig, codegen)
        beside = path.parent.parent.glob(f"*/{path.name}")
        return self._enabled and (path.exists() or next(beside, None) is not None)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for this signature, or None if it has to be compiled."""
        target_context.refresh()  # its registries must be complete before code is linked
        if not self._enabled:
            return None
        path = self._path(sig, target_context.codegen())
        try:
            stored = self._read(path)
            if hashlib.sha256(stored[DIGEST:]).digest() != stored[:DIGEST]:
                raise ValueError("it is damaged")
            signature, reduced = pickle.loads(stored[DIGEST:])
            # Types that print alike share a file; they need not be equal.
            return CompileResult._rebuild(target_context, *reduced) if signature == sig else None
        except FileNotFoundError:
            return None
        except Exception as error:  # of any kind: a cache may not stop what works without it
            warn_once(f"compiled kernels in {self._directory} are not used ({_reason(error)})")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the compiled function `data`, unless it holds addresses of this process."""
        if not self._enabled or data.library.has_dynamic_globals or data.lifted:
            return
        path = self._path(sig, data.codegen)
        payload = dumps((sig, data._reduce()))
        self._write(path, hashlib.sha256(payload).digest() + payload)

    def _read(self, path: Path) -> bytes:
        """The file, or, if this cache lacks it, the same one of a cache beside it, taken over:
        most edits leave most kernels as they were."""
        if not path.exists():
            for other in path.parent.parent.glob(f"*/{path.name}"):
                stored = other.read_bytes()
                self._write(path, stored)
                return stored
        return path.read_bytes()

    def _write(self, path: Path, stored: bytes) -> None:
        """Whole, or not at all."""
        unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(stored)
            os.replace(unfinished, path)
        except OSError as error:
            warn_once(
                f"compiled kernels cannot be saved in {self._directory} ({_reason(error)}); "
                "this process compiles what it lacks"
            )
            try:
                unfinished.unlink(missing_ok=True)
            except OSError:
                return

    def _path(self, sig: Any, codegen: Any) -> Path:
        """The file of this signature on this processor."""
        key = self._identity.copy()
        key.update(f"{sig} {codegen.magic_tuple()}".encode())
        return self._directory / f"{self._name}-{key.hexdigest()[:16]}.nbc"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
