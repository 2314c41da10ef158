"""Reader of the Siconos test collection (friction and LCP problems, text files).

The collection lies beside the repository, in `../shared/data`; tests that need it skip
where it is absent. Format: whitespace-separated numbers.

- Matrix: `storage rows cols`, then for storage 0 `rows cols` and the entries column by
  column; for storage 1 (block sparse) `nblocks nbrow nbcol`, cumulative row ends, cumulative
  column ends, `filled1 filled2`, block-row pointers, block-column indices, then for each
  block its number and its entries column by column.
- Friction: dimension, contacts, W, q, mu, with u = W r + q and each contact's rows being
  normal, tangent(s).
- LCP: n, M, q, then a comment. w = M z + q.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[np.float64]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


class FrictionData(NamedTuple):
    """One friction problem: u = W r + q; dimension d, W (d nc, d nc), q (d nc,), mu (nc,)."""

    dimension: int
    W: Array
    q: Array
    mu: Array


class Tokens:
    """Numbers of a text file, taken in order."""

    def __init__(self, path: Path) -> None:
        self.words = path.read_text(errors="replace").split()
        self.at = 0

    def integers(self, count: int) -> list[int]:
        self.at += count
        return [int(word) for word in self.words[self.at - count : self.at]]

    def reals(self, count: int) -> Array:
        self.at += count
        values = np.array(self.words[self.at - count : self.at], dtype=np.float64)
        if values.size != count:
            raise ValueError(f"file ends early: {count} numbers wanted, {values.size} left")
        return values


def _read_matrix(tokens: Tokens) -> Array:
    storage, rows, cols = tokens.integers(3)
    if storage == 0:
        tokens.integers(2)
        return tokens.reals(rows * cols).reshape((rows, cols), order="F")
    if storage != 1:
        raise ValueError(f"matrix storage {storage} is not read here, only 0 and 1")
    nblocks, nbrow, nbcol = tokens.integers(3)
    row_ends = [0, *tokens.integers(nbrow)]
    col_ends = [0, *tokens.integers(nbcol)]
    filled1, filled2 = tokens.integers(2)
    pointers = tokens.integers(filled1)
    columns = tokens.integers(filled2)
    if filled2 != nblocks:
        raise ValueError(f"{nblocks} blocks announced, {filled2} column indices given")
    matrix = np.zeros((rows, cols))
    for i in range(filled1 - 1):
        for block in range(pointers[i], pointers[i + 1]):
            j = columns[block]
            tokens.integers(1)
            height, width = row_ends[i + 1] - row_ends[i], col_ends[j + 1] - col_ends[j]
            entries = tokens.reals(height * width).reshape((height, width), order="F")
            matrix[row_ends[i] : row_ends[i + 1], col_ends[j] : col_ends[j + 1]] = entries
    return matrix


def read_friction(path: Path) -> FrictionData:
    """The friction problem in `path`."""
    tokens = Tokens(path)
    dimension, contacts = tokens.integers(2)
    W = _read_matrix(tokens)
    q = tokens.reals(dimension * contacts)
    return FrictionData(dimension, W, q, tokens.reals(contacts))


def read_lcp(path: Path) -> tuple[Array, Array]:
    """M (n,n) and q (n,) of the complementarity problem in `path`."""
    tokens = Tokens(path)
    (n,) = tokens.integers(1)
    M = _read_matrix(tokens)
    return M, tokens.reals(n)


def _files(kind: str) -> list[Path]:
    return sorted((DATA / kind).glob("*.dat"))


def _parametrized(kind: str) -> list[object]:
    """`pytest.param` for each file, or one skipped parameter where there are none."""
    files = _files(kind)
    if not files:
        mark = pytest.mark.skip(reason=f"no Siconos data: {DATA.name}/{kind}/*.dat is absent")
        return [pytest.param(None, id="absent", marks=mark)]
    return [pytest.param(path, id=path.name.split(".")[0]) for path in files]


friction_files = pytest.mark.parametrize("path", _parametrized("friction"))
lcp_files = pytest.mark.parametrize("path", _parametrized("lcp"))
