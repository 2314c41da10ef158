"""From what a user types to values: options of scenes, keyframes of models."""

from __future__ import annotations

import mujoco

from stiction.bridge.names import keyframe_of
from stiction.errors import InvalidInput

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def option_value(default: object, name: str, value: object) -> bool | int | float | str:
    """`value`, text or a number, as the type of the option's default; without one, as a float."""
    if isinstance(default, bool):
        if str(value).lower() not in _WORDS:
            raise InvalidInput(name, f"is yes or no, not {value!r}")
        return _WORDS[str(value).lower()]
    if isinstance(default, str):
        return str(value)
    try:
        number = float(str(value))
    except ValueError as error:
        raise InvalidInput(name, f"is {_kind(default)}, not {value!r}") from error
    if not isinstance(default, int):
        return number
    if not number.is_integer():
        raise InvalidInput(name, f"is {_kind(default)}, not {value!r}")
    return int(number)


def _kind(default: object) -> str:
    return "a whole number" if isinstance(default, int) else "a number"


def keyframe_number(model: mujoco.MjModel, wanted: str) -> int:
    """Number of the keyframe that a user wrote by name or by number."""
    return keyframe_of(model, int(wanted) if wanted.isdigit() else wanted)
