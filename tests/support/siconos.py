"""Friction and complementarity problems of Siconos' test collection, from `tests/data/siconos`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[np.float64]

DATA = Path(__file__).parents[1] / "data" / "siconos"
FRICTION_FILES = sorted((DATA / "friction").glob("*.npz"))
LCP_FILES = sorted((DATA / "lcp").glob("*.npz"))


class FrictionData(NamedTuple):
    """One friction problem: u = W r + q; dimension d, W (d nc, d nc), q (d nc,), mu (nc,)."""

    dimension: int
    W: Array
    q: Array
    mu: Array


def read_friction(path: Path) -> FrictionData:
    """The friction problem in `path`."""
    with np.load(path) as found:
        return FrictionData(int(found["dimension"]), found["W"], found["q"], found["mu"])


def read_lcp(path: Path) -> tuple[Array, Array]:
    """M (n,n) and q (n,) of the complementarity problem in `path`."""
    with np.load(path) as found:
        return found["M"], found["q"]


friction_files = pytest.mark.parametrize("path", FRICTION_FILES, ids=lambda path: path.stem)
lcp_files = pytest.mark.parametrize("path", LCP_FILES, ids=lambda path: path.stem)
