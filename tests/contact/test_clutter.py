"""Single steps of piles of bodies."""

import pytest
from clutter import FILES, read_clutter

from stiction.contact import Coulomb

SMALL = [path for path in FILES if path.stem.startswith("box8")]


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_small_piles_are_solved_on_the_exact_cone(path):
    problem, _ = read_clutter(path)
    assert Coulomb().solve(problem).certificate.passed
