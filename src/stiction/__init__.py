"""Exact rigid-body contact, with a certificate for every answer.

`stiction.lcp` solves linear complementarity problems and knows no physics.
Parts are imported when first used, so that `import stiction` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stiction import lcp as lcp

__version__ = "0.1.0.dev0"

_PARTS = ("lcp",)

if not TYPE_CHECKING:  # a type checker should still find a misspelt name

    def __getattr__(name: str) -> Any:
        if name in _PARTS:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
