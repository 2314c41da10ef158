"""Contact problems of piles of bodies, from `tests/data/clutter`."""

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import block_diag

from stiction.contact import ContactProblem

FILES = sorted((Path(__file__).parents[1] / "data" / "clutter").glob("*.npz"))
clutter_files = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def read_clutter(path):
    """The problem in `path`, and the last step's impulses (nc, 3), or None where unknown."""
    with np.load(path) as found:
        if "format" in found:  # as `ContactProblem.save` wrote it
            problem = ContactProblem.load(path)
            return problem.dense() if problem.is_sparse else problem, None
        arrays = dict(found)
    contacts, nv = len(arrays["bound"]), len(arrays["velocity"])
    rows = np.zeros((contacts, 3, nv))
    for contact, columns in enumerate(arrays["cols"]):
        known = columns >= 0
        rows[contact][:, columns[known]] = arrays["vals"][contact][:, known]
    dt = float(arrays["dt"])
    problem = ContactProblem(
        mass=block_diag(*arrays["M"]),
        velocity=arrays["velocity"],
        force=arrays["push"] / dt,
        dt=dt,
        normal=rows[:, 0],
        tangent=rows[:, 1:],
        friction=arrays["mu"],
        bound=arrays["bound"],
    )
    return problem, arrays["guess"]
