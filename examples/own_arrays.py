"""Contact without a simulator: from arrays to certified impulses, by four models.

    python examples/own_arrays.py

A table of 10 kg on four legs, as six velocities (three of its centre, three angular), pushed
sideways at the height of its top. Four legs are redundant: how they share the load is not unique,
the motion is.
"""

import numpy as np

import stiction

MASS, HEIGHT, HALF = 10.0, 0.7, 0.4
GRAVITY, DT, FRICTION = 9.81, 0.01, 0.4


def cross(r):
    """Matrix of r x."""
    x, y, z = r
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def table(push):
    """The problem of one step, under a horizontal force [N] at the table's centre of mass."""
    feet = [(x, y, -HEIGHT) for x in (-HALF, HALF) for y in (-HALF, HALF)]
    # Velocity of a point: v + w x r, hence [I, -cross(r)] times (v, w).
    rows = np.array([np.hstack([np.eye(3), -cross(foot)]) for foot in feet])
    return stiction.ContactProblem(
        mass=np.diag([MASS] * 3 + [1.5, 1.5, 2.0]),
        velocity=np.zeros(6),
        force=[push, 0.0, -MASS * GRAVITY, 0.0, 0.0, 0.0],
        dt=DT,
        normal=rows[:, 2],
        tangent=rows[:, :2],
        friction=FRICTION,
        viscosity=50.0,
    )


def main():
    models = {
        "Coulomb": stiction.Coulomb(),
        "8 facets": stiction.Coulomb(facets=8),
        "no slip": stiction.NoSlip(),
        "viscous": stiction.Viscous(),
    }
    print(f"friction can hold {FRICTION * MASS * GRAVITY:.1f} N")
    print(f"{'push N':>7} {'model':>9} {'speed mm/s':>11} {'legs carry N':>32} {'worst':>8}")
    for push in (30.0, 60.0):
        problem = table(push)
        for name, model in models.items():
            solution = model.solve(problem)
            legs = " ".join(f"{force:7.2f}" for force in solution.normal / DT)
            print(
                f"{push:7.0f} {name:>9} {1e3 * abs(solution.velocity[0]):11.4f} {legs:>32} "
                f"{solution.certificate.worst:8.0e}"
            )


if __name__ == "__main__":
    main()
