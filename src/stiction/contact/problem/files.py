"""Reading .npz files of numbers, whatever happened to them; sparse arrays in them by their parts.

A sparse array `mass` is there as `mass.data`, `mass.indices`, `mass.indptr` and `mass.shape`, those
of its compressed rows.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

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
            if "allow_pickle" in said:  # NumPy's advice for whatever has another beginning
                said = "not a .npz file of numbers"
            raise InvalidInput(str(path), f"is no {what}, or damaged: {said}") from error


PARTS = ("data", "indices", "indptr", "shape")


def pack_sparse(content: dict[str, Any]) -> dict[str, Any]:
    """The same, sparse arrays taken into their parts."""
    packed: dict[str, Any] = {}
    for name, value in content.items():
        if issparse(value):
            packed |= {f"{name}.{part}": getattr(value, part) for part in PARTS}
        else:
            packed[name] = value
    return packed


def unpack_sparse(content: dict[str, Any], path: str) -> dict[str, Any]:
    """The way back; InvalidInput with the file and the array where parts contradict each other."""
    names = dict.fromkeys(name.rpartition(".")[0] for name in content if "." in name)
    whole = {name: value for name, value in content.items() if "." not in name}
    for name in names:
        try:
            data, indices, indptr, shape = (content[f"{name}.{part}"] for part in PARTS)
            rows, columns = (int(size) for size in shape)
            made = csr_array((data, indices, indptr), shape=(rows, columns))
            made.check_format(full_check=True)
        except Exception as error:  # as for what is read: damage shows in many ways
            said = " ".join(str(error).split()) or type(error).__name__
            raise InvalidInput(f"{path}:{name}", f"is no sparse array: {said}") from error
        whole[name] = made
    return whole
