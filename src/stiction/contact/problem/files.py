"""Reading .npz files of numbers, whatever happened to them."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.errors import InvalidInput


def read_npz(path: str | PathLike[str], what: str) -> dict[str, NDArray[Any]]:
    """All arrays of the file by name; InvalidInput where it is damaged or no .npz at all.

    what: that it should hold, for the message.
    """
    with Path(path).open("rb") as stream:
        try:
            file = np.load(stream, allow_pickle=False)
            return {name: file[name] for name in file.files}
        except Exception as error:
            # A damaged archive, header or array raises what its bytes happen to lead to: errors of
            # zip, zlib, struct, of memory, of keys, of syntax.
            said = " ".join(str(error).split()) or type(error).__name__
            raise InvalidInput(str(path), f"is no {what}, or damaged: {said}") from error
