"""A random contact problem with rows of every kind."""

import numpy as np

NV, NC, NJ, NB = 6, 3, 2, 2


def arguments(seed=0):
    """A random problem's arrays: 6 dofs, 3 contacts, 2 joint rows, 2 box rows, the first of them
    friction about the last contact."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(NV, NV))
    return {
        "mass": root @ root.T + np.eye(NV),
        "velocity": rng.normal(size=NV),
        "force": rng.normal(size=NV),
        "dt": 0.01,
        "normal": rng.normal(size=(NC, NV)),
        "tangent": rng.normal(size=(NC, 2, NV)),
        "friction": np.array([0.5, 0.0, np.inf]),
        "viscosity": np.array([0.1, 0.0, 2.0]),
        "bound": np.array([0.0, -0.3, 0.1]),
        "joint": rng.normal(size=(NJ, NV)),
        "joint_target": rng.normal(size=NJ),
        "box": rng.normal(size=(NB, NV)),
        "box_limit": np.array([0.2, 0.1]),
        "box_contact": np.array([2, -1]),
        "box_friction": np.array([0.05, 0.0]),
    }


def delassus_of(problem):
    """W (3 nc, 3 nc), contact by contact, from the whitened rows."""
    w = problem.whitened
    rows = np.concatenate([w.rows_normal[:, None], w.rows_tangent], axis=1)
    rows = rows.reshape(3 * problem.nc, -1)
    return rows @ rows.T


def with_entry(array, index, value):
    """A copy of the array with another entry."""
    changed = np.array(array, dtype=float)
    changed[index] = value
    return changed
