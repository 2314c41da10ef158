"""Contact problems drawn at random."""

import numpy as np

from stiction.contact import ContactProblem


def random_rows(rng):
    """Rows that no geometry gave: jammed bodies, mu to 10, repeated and opposite rows, joints."""
    nv, nc = int(rng.integers(2, 25)), int(rng.integers(1, 30))
    nj, nb = (int(rng.integers(0, 4)), int(rng.integers(0, 3))) if rng.random() < 0.3 else (0, 0)
    size = 10 ** rng.uniform(-1, 1, nv)
    root = rng.normal(size=(nv, nv))
    pick = rng.integers(nc, size=nc) if rng.random() < 0.4 else np.arange(nc)
    sign = np.where(rng.random(nc) < 0.05, -1.0, 1.0)
    return ContactProblem(
        mass=(root @ root.T / nv + 0.1 * np.eye(nv)) * np.sqrt(np.outer(size, size)),
        velocity=rng.normal(size=nv),
        force=10 * rng.normal(size=nv),
        dt=0.01,
        normal=rng.normal(size=(nc, nv))[pick] * sign[:, None],
        tangent=rng.normal(size=(nc, 2, nv))[pick],
        friction=rng.choice([0.0, 0.1, 0.5, 1.0, 3.0, 10.0], nc),
        bound=-np.abs(rng.normal(size=nc)) * (rng.random(nc) < 0.2),
        joint=rng.normal(size=(nj, nv)),
        box=rng.normal(size=(nb, nv)),
        box_limit=10 ** rng.uniform(-4, 1, nb),
    )
