"""Sweeps of Gauss and Seidel: what a step that has no time left ends with."""

import numpy as np
import pytest
from clutter import FILES, read_clutter

from stiction.contact.problem.blocks import Datum
from stiction.contact.problem.graph import Size
from stiction.contact.solvers.blocks.workspace import ENDLESS, Outcome, Setting
from stiction.contact.solvers.islands.arrays import fill
from stiction.contact.solvers.islands.patches import Island
from stiction.contact.solvers.islands.solve import solve_blocks
from stiction.contact.solvers.islands.sweeps import sweep_island

HEAPS = [path for path in FILES if path.stem.startswith(("box27", "box125"))][:4]


def posed(path):
    """A workspace that asks for the heap's answer, and its blocks."""
    problem, _ = read_clutter(path)
    work, layout = fill(problem)
    setting = work.request.setting
    setting[Setting.DEADLINE] = setting[Setting.LATEST] = ENDLESS
    return work, layout.blocks


def momentum_left(work):
    """What impulses and velocity leave of the momentum balance, the largest entry by energy."""
    b, f = work.blocks, work.newton.f
    left, change = b.push.copy(), work.newton.v - b.velocity
    for i, (_, rows, width, column, value, _) in enumerate(b.head):
        values = b.value[value : value + rows * width].reshape(rows, width)
        left[b.column[column : column + width]] += values.T @ f[i, :rows]
    diagonal = np.array([b.mass[row + j] for j, row in enumerate(b.row)])
    for j, (row, first) in enumerate(zip(b.row, b.first, strict=True)):
        left[j] -= b.mass[row + first : row + j + 1] @ change[first : j + 1]
        left[first:j] -= b.mass[row + first : row + j] * change[j]
    return np.abs(left / np.sqrt(diagonal)).max()


@pytest.mark.parametrize("path", HEAPS, ids=lambda path: path.stem)
def test_sweeps_keep_momentum_and_cones_and_come_nearer(path):
    work, blocks = posed(path)
    solve_blocks(work.packed.ctypes.data, blocks)
    k = int(np.diff(work.graph.members[: int(work.graph.size[Size.ISLANDS]) + 1]).argmax())
    members, load = Island(work, k).members, float(work.request.outcome[k, Outcome.LOAD])
    f, mu = work.newton.f, work.blocks.data[members, Datum.SLIDE]
    f[members, 0] *= 0.5  # half of the weight is not borne, and friction leaves its cones
    first = sweep_island(work.packed.ctypes.data, k, load, np.inf)
    assert momentum_left(work) < 1e-9 * load
    assert (f[members, 0] >= 0.0).all()
    assert (np.hypot(f[members, 1], f[members, 2]) <= mu * f[members, 0] * (1 + 1e-12)).all()
    last = first
    for _ in range(20):
        last = sweep_island(work.packed.ctypes.data, k, load, last)
    assert last < 0.5 * first


def test_sweeps_that_come_no_nearer_leave_what_was_there():
    work, blocks = posed(HEAPS[0])
    solve_blocks(work.packed.ctypes.data, blocks)
    f, v = work.newton.f.copy(), work.newton.v.copy()
    load = float(work.request.outcome[0, Outcome.LOAD])
    assert sweep_island(work.packed.ctypes.data, 0, load, 0.0) == 0.0
    assert np.array_equal(work.newton.f, f)
    assert np.array_equal(work.newton.v, v)


def test_an_island_past_its_deadline_is_swept():
    work, blocks = posed(HEAPS[0])
    solve_blocks(work.packed.ctypes.data, blocks)
    load = work.request.outcome[:, Outcome.LOAD].max()
    work.request.setting[Setting.DEADLINE] = 0
    solve_blocks(work.packed.ctypes.data, blocks)
    assert 1e-8 < work.request.outcome[:, Outcome.RESIDUAL].max() < 0.5
    assert momentum_left(work) < 1e-9 * load
