"""Digests of numbers, by which kernels see that many are what they were."""

from __future__ import annotations

DIGEST_PRIME = 0x100000001B3
"""Of Fowler, Noll and Vo's hash."""
