"""Compiled building blocks, and the decorators that compile them."""

from stiction.kernels.compile import kernel, leaf

__all__ = ["kernel", "leaf"]


def __dir__() -> list[str]:
    return __all__
