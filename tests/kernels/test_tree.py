"""The matrix of a tree of joints, factored in linear time, beside the dense one."""

import numpy as np
import pytest

from stiction.kernels import tree
from stiction.kernels.tree import AXIS


def _tree(rng, n):
    """A branching tree on a floating root, its dense mass, and which degrees are above which."""
    t = tree.allocate(np.array([0, n]))
    t.axis[:AXIS] = np.eye(AXIS)
    t.axis[AXIS:] = rng.normal(size=(n - AXIS, AXIS))
    parent = np.arange(n) - 1
    parent[20] = 11  # a branch
    tree.set_parents(t, parent, np.array([0, n]))
    above = np.eye(n)
    for c in range(1, n):
        above[c] += above[t.parent[c]]
    mass = np.diag(rng.uniform(0.1, 0.2, n))
    for c in range(n):
        link = rng.normal(size=(AXIS, AXIS))
        jacobian = t.axis.T * above[c]
        mass += jacobian.T @ (link @ link.T) @ jacobian
    t.momentum[:] = mass[:, :AXIS]
    t.diagonal[:] = np.diag(mass)
    return t, mass, above


@pytest.mark.parametrize("symmetric", [0, 1])
def test_solution_of_a_tree_is_that_of_its_dense_matrix(symmetric):
    rng, n = np.random.default_rng(1), 30
    t, dense, above = _tree(rng, n)
    for c in (9, 19, 29):
        response = rng.normal(size=(AXIS, AXIS))
        response = response @ response.T + (0.0 if symmetric else 0.3) * rng.normal(
            size=(AXIS, AXIS)
        )
        t.response[c] = response.ravel()
        jacobian = t.axis.T * above[c]
        dense = dense + jacobian.T @ response @ jacobian
    rows, gain = rng.normal(size=(5, n)), np.zeros((5, 5))
    t.block[:5] = (0, 3), (0, 3), (0, 3), (3, 2), (3, 2)
    for first, size in ((0, 3), (3, 2)):
        block = rng.normal(size=(size, size))
        block = block @ block.T + (0.0 if symmetric else 0.3) * rng.normal(size=(size, size))
        gain[first : first + size, first : first + size] = 50.0 * block
        t.gain[first : first + size, :size] = 50.0 * block
    dense = dense + rows.T @ gain @ rows
    assert tree.eliminate(t, 0, n, symmetric) == 1.0
    t.rows[0] = 5
    t.down[:, :5] = rows.T
    tree.eliminate_rows(t, 0, n, symmetric)
    assert tree.factor_core(t, n) == 1.0
    right = rng.normal(size=n)
    x = right.copy()
    tree.solve(t, 0, n, x)
    np.testing.assert_allclose(x, np.linalg.solve(dense, right), rtol=1e-7, atol=1e-9)
