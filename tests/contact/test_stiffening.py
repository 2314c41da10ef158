"""Rows that are stiffened: at once from impulses that are nearly right, step by step from any."""

import numpy as np
import pytest
from clutter import FILES, read_clutter

import stiction
from stiction import scenes
from stiction.contact.certificate.laws import Law
from stiction.contact.problem.graph import Size
from stiction.contact.solvers.blocks.workspace import ENDLESS, Outcome, Setting
from stiction.contact.solvers.islands.arrays import fill
from stiction.contact.solvers.islands.attempts import ENOUGH
from stiction.contact.solvers.islands.solve import solve_blocks
from stiction.contact.solvers.proximal.iteration import spread_residual
from stiction.contact.solvers.stiffening.curve import stiffen_island
from stiction.contact.solvers.stiffening.steps import stiffen_by_steps

HARD = [path for path in FILES if path.stem.startswith("box125") and path.stem.endswith("hard")]

DT, MASS, HALF, HIGH = 1e-3, 1.0, 0.1, 0.05
CORNERS = np.array([[x, y, -HIGH] for x in (-HALF, HALF) for y in (-HALF, HALF)])
WEIGHT = MASS * 9.81


def box_on_four_corners(bound, push, spin=0.0, joint_friction=None):
    """A box on the floor, pushed sideways by shares of its weight; bound (4,) of its corners,
    spin [m]: how they resist turning; joint_friction [N s]: of its motion along x."""
    inertia = MASS / 3.0 * (np.array([HALF**2 + HIGH**2] * 2 + [2.0 * HALF**2]))
    rows = [np.concatenate([axis, np.cross(r, axis)]) for r in CORNERS for axis in np.eye(3)]
    by_corner = np.array(rows).reshape(4, 3, 6)
    boxes = np.zeros((0, 6))
    owner, limit, rough = np.zeros(0, int), np.zeros(0), np.zeros(0)
    if spin > 0.0:
        boxes = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (4, 1))
        owner, limit, rough = np.arange(4), np.zeros(4), np.full(4, spin)
    if joint_friction is not None:
        boxes = np.vstack([boxes, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
        owner = np.append(owner, -1)
        limit, rough = np.append(limit, joint_friction), np.append(rough, 0.0)
    return stiction.ContactProblem(
        mass=np.diag([MASS] * 3 + list(inertia)),
        velocity=np.array([0.0, 0.0, np.mean(bound), 0.0, 0.0, 0.0]),
        force=np.array([push[0] * WEIGHT, push[1] * WEIGHT, -WEIGHT, 0.0, 0.0, 0.5]),
        dt=DT,
        normal=by_corner[:, 2],
        tangent=by_corner[:, :2],
        friction=np.full(4, 0.5),
        bound=np.asarray(bound),
        box=boxes,
        box_limit=limit,
        box_contact=owner,
        box_friction=rough,
    )


def stiffened(problem, start):
    """(residual, factorizations, workspace) of rows stiffened from the impulses start (4, 3), and
    none of other rows."""
    work, layout = fill(problem)
    setting = work.request.setting
    setting[Setting.LAW], setting[Setting.DEADLINE] = Law.COULOMB, ENDLESS
    solve_blocks(work.packed.ctypes.data, layout.blocks)
    work.newton.f[:] = 0.0
    work.newton.f[:4, :3] = start
    pushed = problem.normal.T @ start[:, 0] + np.einsum("crj,cr->j", problem.tangent, start[:, 1:])
    mass = np.diag(problem.mass)
    work.newton.v[:] = problem.velocity + (DT * problem.force + pushed) / mass
    setting[Setting.FACTORIZATIONS] = 0
    load = float(work.request.outcome[0, Outcome.LOAD])
    found = stiffen_island(work.packed.ctypes.data, 0, load, 1e-10, 1.0, 200)
    return found, int(setting[Setting.FACTORIZATIONS]), work


@pytest.mark.parametrize("push", [(0.0, 0.0), (0.2, 0.1), (0.7, 0.1)])
@pytest.mark.parametrize("high", [1e-7, 1e-4, 1e-1])
def test_a_corner_that_is_too_high_by_little_lets_go(push, high):
    bound = np.array([-1e-3, -1e-3, -1e-3, -1e-3 - high * 9.81 * DT])
    problem = box_on_four_corners(bound, push)
    share = 0.25 * WEIGHT * DT
    start = share * np.array([1.0, -min(push[0], 0.4), -min(push[1], 0.2)]) * np.ones((4, 1))
    found, factorizations, work = stiffened(problem, start)
    assert found <= ENOUGH
    assert factorizations <= 120
    assert work.newton.f[:4, 0].min() == pytest.approx(0.0, abs=1e-6 * share)


def test_friction_of_joints_and_of_spin_comes_to_its_limit_or_holds():
    bound = np.array([-1e-3, -1e-3, -1e-3, -1e-3 - 1e-6 * 9.81 * DT])
    start = 0.25 * WEIGHT * DT * np.array([[1.0, 0.0, 0.0]] * 4)
    slides = box_on_four_corners(bound, (0.9, 0.1), spin=1e-3, joint_friction=1e-3)
    holds = box_on_four_corners(bound, (0.3, 0.1), spin=1e-3, joint_friction=1e-3)
    for problem in (slides, holds):
        found, _, work = stiffened(problem, start)
        assert found <= ENOUGH
        velocity = stiction.Coulomb().solve(problem).velocity
        np.testing.assert_allclose(work.newton.v, velocity, atol=1e-7 * 9.81 * DT)


@pytest.mark.parametrize("stiffen", [stiffen_island, stiffen_by_steps])
def test_nothing_is_lost_where_factorizations_run_out(stiffen):
    problem = box_on_four_corners(np.full(4, -1e-3), (0.2, 0.1))
    work, layout = fill(problem)
    setting = work.request.setting
    setting[Setting.LAW], setting[Setting.DEADLINE] = Law.COULOMB, ENDLESS
    solve_blocks(work.packed.ctypes.data, layout.blocks)
    f, v = work.newton.f.copy(), work.newton.v.copy()
    load, best = (float(work.request.outcome[0, c]) for c in (Outcome.LOAD, Outcome.RESIDUAL))
    assert stiffen(work.packed.ctypes.data, 0, load, 0.0, best, 1) <= best
    np.testing.assert_allclose(work.newton.f, f, atol=1e-9 * WEIGHT * DT)
    np.testing.assert_allclose(work.newton.v, v, atol=1e-9)


def at_nothing(problem):
    """A workspace with no impulses and the free velocity, and the load of its largest island."""
    work, layout = fill(problem)
    setting = work.request.setting
    setting[Setting.LAW], setting[Setting.DEADLINE] = Law.COULOMB, ENDLESS
    solve_blocks(work.packed.ctypes.data, layout.blocks)
    k = int(np.diff(work.graph.members[: int(work.graph.size[Size.ISLANDS]) + 1]).argmax())
    work.newton.f[:], work.newton.v[:] = 0.0, work.request.v_free
    setting[Setting.FACTORIZATIONS] = 0
    return work, k, float(work.request.outcome[k, Outcome.LOAD])


@pytest.mark.parametrize("path", HARD, ids=lambda path: path.stem)
def test_a_hard_heap_is_solved_from_nothing_by_stiffening_its_rows_step_by_step(path):
    work, k, load = at_nothing(read_clutter(path)[0])
    found = stiffen_by_steps(work.packed.ctypes.data, k, load, 1e-10, np.inf, 1000)
    assert found <= ENOUGH
    assert work.request.setting[Setting.FACTORIZATIONS] <= 1000
    g, f = work.graph, work.newton.f
    members = g.member[g.members[k] : g.members[k + 1]]
    spread_residual(work.packed.ctypes.data, k, load)
    assert work.system.pull[members, 0].max() <= ENOUGH
    assert (f[members, 0] > 0.0).any()


def test_every_step_of_a_wall_hit_by_a_ball_is_exact_and_none_is_mended():
    model, data, _ = scenes.load("wall", courses=6, bricks=5, friction=0.5)
    sim = stiction.Simulator(model)
    for _ in range(70):
        report = sim.step(data)
        assert report.certificate.worst <= 1e-8
        assert report.rung in ("proximal", "interior point")
    assert np.abs(data.qvel).max() > 1.0
