"""Values of options as they are written: `friction=0.2:1.0:9`, `force=5,10,20`."""

from __future__ import annotations

import numpy as np

from stiction.errors import InvalidInput

DIGITS = 12
"""Of a number between the first and the last: 0.3, not 0.30000000000000004."""


def parse_values(setting: str) -> tuple[str, list[object]]:
    """(option, values) of `option=5,10,20` or `option=first:last:count`.

    Contact models have colons of their own: `contact=coulomb:8,no-slip` is a list."""
    name, equals, text = setting.partition("=")
    name = name.strip().replace("-", "_")
    if not (name and equals and text.strip()):
        raise InvalidInput("--set", f"{setting!r} is not of the form option=values")
    parts = text.split(":")
    if name == "contact" or len(parts) == 1:
        return name, [part.strip() for part in text.split(",")]
    try:
        first, last, count = float(parts[0]), float(parts[1]), int(parts[2])
        if count < 1 or len(parts) > 3:
            raise ValueError
    except (ValueError, IndexError) as error:
        reason = f"{text!r} of {name} is neither 5,10,20 nor first:last:count"
        raise InvalidInput("--set", reason) from error
    return name, [float(f"{value:.{DIGITS}g}") for value in np.linspace(first, last, count)]
