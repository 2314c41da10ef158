"""The laws of contact by number, as kernels know them, and by name, as users do."""

from __future__ import annotations

from enum import IntEnum


class Law(IntEnum):
    """Tangential laws; `certificate/certificate.py` states them."""

    COULOMB = 0
    FRICTIONLESS = 1
    NO_SLIP = 2
    VISCOUS = 3
    CONVEX = 4


LAWS: dict[str, Law] = {law.name.lower().replace("_", "-"): law for law in Law}
"""By name."""
