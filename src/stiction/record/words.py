"""Numbers as text, in the unit in which they can be read."""

from __future__ import annotations


def speed(value: float) -> str:
    """A speed [m/s]."""
    return f"{length(value)}/s"


def length(value: float) -> str:
    """A length [m]."""
    if abs(value) >= 0.1:
        return f"{value:.3g} m"
    return f"{1e3 * value:.3g} mm" if abs(value) >= 1e-4 else f"{1e6 * value:.2g} um"


def number(value: float) -> str:
    """Three digits, without an exponent where it can be read without."""
    if abs(value) >= 1e7 or 0.0 < abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
