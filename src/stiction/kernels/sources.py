"""Which sources a kernel can reach, and their hashes.

A kernel holds its callees' machine code and the constants it read, wherever they stand: what is
compiled holds as long as none of them is edited.
"""

import hashlib
import re
from collections.abc import Iterable
from functools import cache, cached_property
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
    found = [name for name, source in sources.items() if _DECORATED.search(source.text)]
    return _digest(_reached(sources, found))[:16]


@cache
def hash_reached_from(file: str) -> str:
    """The same of what a kernel in this file can reach, or "" where there is no file (a prompt)."""
    try:
        source = Source(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return ""
    return _digest({"": source, **_reached(_own_sources(), source.imported)})


class Source:
    """The text of a file, with what is asked of it for every kernel that reaches it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def digest(self) -> str:
        """Changes with the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def imported(self) -> list[str]:
        """Paths within the package, of files that may exist, which it imports from."""
        found = []
        for module, names in _IMPORTED.findall(self.text):
            at = module.strip(".").replace(".", "/")
            found += [f"{at}.py", f"{at}/__init__.py"]
            found += [f"{at}/{part}.py".lstrip("/") for part in re.findall(r"\w+", names)]
        return found


def _digest(sources: dict[str, Source]) -> str:
    digest = hashlib.sha256(_versions().encode())
    for name, source in sorted(sources.items()):
        digest.update(f"{name} {source.digest} ".encode())
    return digest.hexdigest()


@cache
def _versions() -> str:
    return f"{numba.__version__} {version('mujoco')}"


def _reached(sources: dict[str, Source], names: Iterable[str]) -> dict[str, Source]:
    """Those sources, those that they import from, and so on; by the path within the package. An
    edit anywhere else need not compile everything again."""
    reached: dict[str, Source] = {}
    found = list(names)
    while found:
        name = found.pop()
        if name in sources and name not in reached:
            reached[name] = sources[name]
            found += sources[name].imported
    return reached


def _read(package: Path) -> dict[str, Source]:
    return {
        path.relative_to(package).as_posix(): Source(path.read_text(encoding="utf-8"))
        for path in package.rglob("*.py")
    }


@cache
def _own_sources() -> dict[str, Source]:
    return _read(PACKAGE)
