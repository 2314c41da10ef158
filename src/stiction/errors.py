"""What stiction raises. All of it is a `StictionError`; `OverlapWarning` is the one warning.

A solver that stops short raises nothing: it returns its `Status`. Exceptions are for
input that cannot be a problem, and for a simulation that cannot go on.

The arguments stay in `args`, which is what lets an exception cross to another process.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stiction.status import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray


class StictionError(Exception):
    """The base of all exceptions of this package."""


class InvalidInput(StictionError, ValueError):
    """An argument is malformed: `name` of the array, its `shape`, the offending `index`.

    `shape` and `index` are None where they say nothing, as for an unknown method.
    """

    def __init__(
        self,
        name: str,
        reason: str,
        shape: tuple[int, ...] | None = None,
        index: int | tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(name, reason, shape, index)
        self.name = name
        self.reason = reason
        self.shape = shape
        self.index = index

    def __str__(self) -> str:
        where = self.name
        if self.index is not None:
            index = self.index if isinstance(self.index, tuple) else (self.index,)
            where += f"[{', '.join(str(int(i)) for i in index)}]"
        if self.shape is not None:
            where += f" (shape {tuple(self.shape)})"
        return f"{where}: {self.reason}"


class OverlapWarning(UserWarning):
    """A simulation starts with bodies deep within each other."""


class SolveFailed(StictionError, RuntimeError):
    """No solver answered within tolerance; the state is as it was before the step.

    `problem` is the one that failed, whole, so that it can be saved and solved again;
    `status` is how the best attempt ended; `detail` adds what is known beyond that, `advice` what
    may help: by default the status's own.
    """

    def __init__(self, problem: Any, status: Status, detail: str = "", advice: str = "") -> None:
        super().__init__(problem, status, detail, advice)
        self.problem = problem
        self.status = status
        self.detail = detail
        self.advice = advice or status.advice

    def __str__(self) -> str:
        # Not the problem: a matrix in a traceback hides the message.
        return " ".join(filter(None, (f"{self.status}:", self.detail, self.advice)))


def unknown(word: str, known: Iterable[str]) -> str:
    """`unknown: 'coulom'; did you mean coulomb?`, or the list where nothing is near."""
    names = list(known)
    near = get_close_matches(word, names, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"one of {', '.join(names)}"
    return f"unknown: {word!r}; {hint}"


def is_one_of(value: Any, known: Iterable[str]) -> bool:
    """Whether it is a word among those; an array or a list, which `in` would compare, is none."""
    return isinstance(value, str) and value in known


def is_number(value: Any) -> bool:
    """Whether it is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_count(value: Any, least: int) -> bool:
    """Whether it is a whole number, by its value, and no less."""
    return is_number(value) and least <= value < 2**63 and value == int(value)


def as_path(name: str, value: Any) -> Path:
    """`value` as a path; InvalidInput with `name` for what is none."""
    if not isinstance(value, (str, PathLike)) or "\0" in str(value):
        raise InvalidInput(name, f"is {value!r}: a path is text or a pathlib.Path")
    return Path(value)


def real_numbers(name: str, value: Any) -> NDArray[Any]:
    """`value` as an array of real numbers, of whatever shape and precision; InvalidInput with
    `name` for anything else: text, complex numbers, ragged lists, masked entries, objects."""
    import numpy as np  # here, so that `stiction --help` does not wait for it

    if np.ma.is_masked(value):
        raise InvalidInput(name, "has masked entries: every entry must be a number")
    try:
        array = np.asarray(value)
        if array.dtype == object and all(isinstance(entry, Real) for entry in array.flat):
            array = array.astype(np.float64)  # Fraction, mpmath and the like
    except Exception as error:  # an object may raise anything from `__array__`
        raise InvalidInput(name, f"is not a regular array of numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        what = "complex numbers" if array.dtype.kind == "c" else f"{array.dtype}"
        raise InvalidInput(name, f"must hold real numbers, not {what}", array.shape)
    return array
