"""From what a user types to values: options of scenes, keyframes of models."""

from __future__ import annotations

from difflib import get_close_matches

import mujoco

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
    """The keyframe of that name or number."""
    names = [model.key(k).name for k in range(model.nkey)]
    if wanted in names:
        return names.index(wanted)
    if wanted.isdigit() and int(wanted) < model.nkey:
        return int(wanted)
    near = get_close_matches(wanted, filter(None, names), n=1, cutoff=0.5)
    known = ", ".join(name or str(k) for k, name in enumerate(names)) or "none"
    hint = f"did you mean {near[0]}?" if near else f"the model has {known}"
    raise InvalidInput("keyframe", f"unknown: {wanted!r}; {hint}")
