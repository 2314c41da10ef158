"""Compiled building blocks, and the decorator that compiles them."""

from stiction.kernels.compile import kernel

__all__ = ["kernel"]
