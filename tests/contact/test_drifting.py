"""Newton's method where redundant rows contradict each other in the last digits."""

import numpy as np
import pytest

import stiction
from stiction.contact.certificate.laws import Law
from stiction.contact.solvers.blocks.workspace import ENDLESS, Outcome, Setting
from stiction.contact.solvers.islands.arrays import fill
from stiction.contact.solvers.islands.solve import solve_blocks
from stiction.contact.solvers.proximal.drifting import drift_island
from stiction.contact.solvers.proximal.iteration import refine_island

DT, MASS, HALF, HIGH = 1e-3, 1.0, 0.1, 0.05
CORNERS = np.array([[x, y, -HIGH] for x in (-HALF, HALF) for y in (-HALF, HALF)])


def box_on_four_corners(bound, push=(0.0, 0.0)):
    """A box on the floor, pushed sideways by shares of its weight; bound (4,) of its corners."""
    inertia = MASS / 3.0 * (np.array([HALF**2 + HIGH**2] * 2 + [2.0 * HALF**2]))
    rows = [np.concatenate([axis, np.cross(r, axis)]) for r in CORNERS for axis in np.eye(3)]
    by_corner = np.array(rows).reshape(4, 3, 6)
    weight = MASS * 9.81
    return stiction.ContactProblem(
        mass=np.diag([MASS] * 3 + list(inertia)),
        velocity=np.array([0.0, 0.0, np.mean(bound), 0.0, 0.0, 0.0]),
        force=np.array([push[0] * weight, push[1] * weight, -weight, 0.0, 0.0, 0.0]),
        dt=DT,
        normal=by_corner[:, 2],
        tangent=by_corner[:, :2],
        friction=np.full(4, 0.5),
        bound=np.asarray(bound),
    )


def posed(problem):
    """Its workspace, solved, and the load."""
    work, layout = fill(problem)
    work.request.setting[Setting.LAW], work.request.setting[Setting.DEADLINE] = Law.COULOMB, ENDLESS
    solve_blocks(work.packed.ctypes.data, layout.blocks)
    return work, float(work.request.outcome[0, Outcome.LOAD])


@pytest.mark.parametrize("push", [(0.0, 0.0), (0.2, 0.1)])
def test_a_corner_that_lets_go_by_the_last_digits_is_found(push):
    """All four press, and no velocity lets all of them touch: one is too high by 1e-7 of the
    speed that the weight gives in a step."""
    bound = np.array([-1e-3, -1e-3, -1e-3, -1e-3 - 1e-7 * 9.81 * DT])
    work, load = posed(box_on_four_corners(bound, push))
    address, weight = work.packed.ctypes.data, MASS * 9.81 * DT
    shares = np.array([0.25 * weight, -0.25 * push[0] * weight, -0.25 * push[1] * weight])

    work.newton.f[:4, :3] = shares
    work.newton.v[:] = [0.0, 0.0, np.mean(bound), 0.0, 0.0, 0.0]
    held = refine_island(address, 0, load, 1, 1e-5, 2, 2, 1e-12, np.inf)
    assert held > 1e-9  # all four press as they did, and contradict each other
    assert (work.newton.f[:4, 0] > 0.1 * weight).all()
    work.request.setting[Setting.FACTORIZATIONS] = 0
    found = drift_island(address, 0, load, 1e-12, held)
    assert work.request.setting[Setting.FACTORIZATIONS] <= 8
    assert found <= 1e-11
    assert (work.newton.f[:4, 0] == 0.0).any()
    lift = work.newton.u[:4, 0]
    assert lift.min() >= -1e-15


def test_an_iterate_that_cannot_be_bettered_is_kept():
    work, load = posed(box_on_four_corners(np.full(4, -1e-3)))
    f, v = work.newton.f.copy(), work.newton.v.copy()
    assert drift_island(work.packed.ctypes.data, 0, load, 0.0, 0.0) == 0.0
    np.testing.assert_array_equal(work.newton.f, f)
    np.testing.assert_array_equal(work.newton.v, v)
