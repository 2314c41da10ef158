"""A point mass in contact, as arrays."""

import numpy as np

from stiction.contact import ContactProblem


def point(normal, velocity, tangent=None, mass=None, **more):
    """A point mass in the plane of `normal`'s columns."""
    normal = np.atleast_2d(np.asarray(normal, dtype=float))
    size = normal.shape[1]
    arguments = {
        "mass": np.eye(size) if mass is None else mass,
        "velocity": velocity,
        "force": np.zeros(size),
        "dt": 0.01,
        "normal": normal,
        "tangent": tangent,
        "friction": None if tangent is None else 0.5,
    }
    return ContactProblem(**{**arguments, **more})
