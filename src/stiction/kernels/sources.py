"""Which sources a kernel can reach, and their hashes.

A kernel holds its callees' machine code and the constants it read, wherever they stand: what is
compiled holds as long as none of them is edited.
"""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numba

PACKAGE = Path(__file__).parents[1]

_DECORATED = re.compile(r"^\s*@(kernel|leaf|lean|lean_leaf|stage)\b", re.MULTILINE)
_IMPORTED = re.compile(r"^\s*from stiction([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


def hash_of_all(package: Path = PACKAGE) -> str:
    """16 hex digits that change with any source that any kernel can reach, with Numba, or with
    MuJoCo, the layout of whose structures kernels hold as constants."""
    sources = _read(package)
    found = [name for name, source in sources.items() if _DECORATED.search(source)]
    return _digest(_reached(sources, found))[:16]


@cache
def hash_reached_from(file: str) -> str:
    """The same of what a kernel in this file can reach, or "" where there is no file (a prompt)."""
    try:
        source = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return _digest({"": source, **_reached(_own_sources(), _names_imported(source))})


def _digest(sources: dict[str, str]) -> str:
    digest = hashlib.sha256(f"{numba.__version__} {version('mujoco')}".encode())
    for name, source in sorted(sources.items()):
        digest.update(f"{name} {len(source)} {source}".encode())
    return digest.hexdigest()


def _reached(sources: dict[str, str], names: Iterable[str]) -> dict[str, str]:
    """Those sources, those that they import from, and so on; by the path within the package. An
    edit anywhere else need not compile everything again."""
    reached: dict[str, str] = {}
    found = list(names)
    while found:
        name = found.pop()
        if name in sources and name not in reached:
            reached[name] = sources[name]
            found += _names_imported(sources[name])
    return reached


def _names_imported(source: str) -> list[str]:
    """Paths within the package, of files that may exist, which the source imports from."""
    found = []
    for module, names in _IMPORTED.findall(source):
        at = module.strip(".").replace(".", "/")
        found += [f"{at}.py", f"{at}/__init__.py"]
        found += [f"{at}/{part}.py".lstrip("/") for part in re.findall(r"\w+", names)]
    return found


def _read(package: Path) -> dict[str, str]:
    return {
        path.relative_to(package).as_posix(): path.read_text(encoding="utf-8")
        for path in package.rglob("*.py")
    }


@cache
def _own_sources() -> dict[str, str]:
    return _read(PACKAGE)
