"""Newton's method from the last step's impulses: what is tried, and what is given up."""

import numpy as np
import pytest
from clutter import FILES, read_clutter

from stiction.contact.solvers.blocks.workspace import ENDLESS, Guess, Outcome, Setting
from stiction.contact.solvers.islands.arrays import fill
from stiction.contact.solvers.islands.solve import solve_blocks
from stiction.contact.solvers.proximal.iteration import MODES, SOLVED, refine_island


def posed(name):
    """A workspace with the problem of that name, the last step's impulses, and its blocks."""
    problem, guess = read_clutter(next(path for path in FILES if path.stem == name))
    work, layout = fill(problem)
    work.request.setting[Setting.DEADLINE] = ENDLESS
    return work, guess, layout.blocks


def test_modes_that_go_round_are_given_up():
    work, _, blocks = posed("walking_quadruped_4_contacts")
    address, setting, newton = work.packed.ctypes.data, work.request.setting, work.newton
    solve_blocks(address, blocks)
    load = float(work.request.outcome[0, Outcome.LOAD])
    newton.f[:], newton.v[:] = 0.0, work.request.v_free
    setting[Setting.FACTORIZATIONS] = 0
    found = refine_island(address, 0, load, MODES, 1e-7, 60, 60, SOLVED, np.inf)
    assert found > SOLVED
    assert setting[Setting.FACTORIZATIONS] < 30


@pytest.mark.parametrize("name", ["box8_s0066_c0019_hard", "box125_s0041_c0247_easy"])
def test_a_start_that_mostly_fails_after_dear_steps_is_not_tried_in_each(name):
    work, guess, blocks = posed(name)
    request, spent = work.request, {}
    for dear in (5, 7):  # after 7 steps in a row it is
        request.setting[Setting.WARM] = Guess.LAST_STEP
        request.guess[: len(guess), :3], request.start[:] = guess, work.blocks.velocity
        request.built[:], request.inputs[:] = -(dear + 1), 0.0
        solve_blocks(work.packed.ctypes.data, blocks)
        assert request.outcome[:, Outcome.RESIDUAL].max() <= SOLVED
        spent[dear] = request.outcome[:, Outcome.FACTORIZATIONS].sum()
    assert spent[5] < spent[7]
