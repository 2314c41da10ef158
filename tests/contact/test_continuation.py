"""The interior point's path, where it folds."""

import numpy as np
import pytest
from clutter import FILES, read_clutter

import stiction
from stiction.contact.certificate.laws import Law
from stiction.contact.solvers.blocks.workspace import ENDLESS, Outcome, Setting
from stiction.contact.solvers.interior_point.continuation import TURNS, follow_turns
from stiction.contact.solvers.interior_point.iteration import COLD_ATTEMPT, follow_path
from stiction.contact.solvers.islands.arrays import fill
from stiction.contact.solvers.islands.patches import draw_paths
from stiction.contact.solvers.islands.persistence import count_drawn
from stiction.contact.solvers.islands.solve import solve_blocks, take_turn
from stiction.contact.solvers.proximal.iteration import SOLVED

FOLDED = [path for path in FILES if path.stem.startswith("fold")]
DRAWN = [path for path in FILES if path.stem.startswith("drawn")]


def posed(path):
    """(workspace, its largest island, how hard that is loaded), solved; whoever wants to solve it
    otherwise begins anew."""
    problem, _ = read_clutter(path)
    work, layout = fill(problem)
    setting = work.request.setting
    setting[Setting.LAW], setting[Setting.DEADLINE] = Law.COULOMB, ENDLESS
    solve_blocks(work.packed.ctypes.data, layout.blocks)
    k = int(work.request.outcome[:, Outcome.LOAD].argmax())
    return work, k, float(work.request.outcome[k, Outcome.LOAD])


@pytest.mark.parametrize("path", FOLDED, ids=lambda path: path.stem)
def test_a_path_that_folds_is_followed_to_its_end(path):
    work, k, load = posed(path)
    address = work.packed.ctypes.data
    assert follow_path(address, k, load, COLD_ATTEMPT, np.inf) > 1e-6
    found = [follow_turns(address, k, load, number, np.inf, np.inf) for number in range(len(TURNS))]
    assert min(found) <= SOLVED


@pytest.mark.parametrize("path", FOLDED, ids=lambda path: path.stem)
def test_what_a_path_finds_takes_the_place_of_what_the_island_had(path):
    work, k, _ = posed(path)
    work.newton.f[:], work.newton.v[:] = 0.0, work.request.v_free
    outcome, address = work.request.outcome, work.packed.ctypes.data
    outcome[k, Outcome.RESIDUAL] = np.inf
    for number in range(len(TURNS)):
        before = outcome[k, Outcome.RESIDUAL]
        take_turn(address, k, number, np.inf)
        assert outcome[k, Outcome.RESIDUAL] <= before
    assert outcome[k, Outcome.RESIDUAL] <= SOLVED
    assert np.abs(work.newton.f).max() > 0.0


def test_a_path_ends_at_its_deadline():
    work, k, load = posed(FOLDED[0])
    work.request.setting[Setting.DEADLINE] = 0
    work.request.setting[Setting.FACTORIZATIONS] = 0
    assert follow_turns(work.packed.ctypes.data, k, load, 0, np.inf, np.inf) == np.inf
    assert work.request.setting[Setting.FACTORIZATIONS] == 0


@pytest.mark.parametrize("path", [*DRAWN, *FOLDED], ids=lambda path: path.stem)
def test_paths_that_are_drawn_find_an_answer_and_the_same_one_again(path):
    work, k, _ = posed(path)
    outcome, found = work.request.outcome, []
    for _ in range(2):
        work.newton.f[:], work.newton.v[:] = 0.0, work.request.v_free
        outcome[k, Outcome.RESIDUAL] = np.inf
        assert draw_paths(work, k, lambda residual: residual <= SOLVED, range(count_drawn(work, k)))
        assert outcome[k, Outcome.RESIDUAL] <= SOLVED
        found.append(work.newton.f.copy())
    assert np.array_equal(*found)


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.stem)
def test_drops_of_a_million_to_one_that_no_other_path_solves_are_solved(path):
    problem, _ = read_clutter(path)
    found = stiction.Coulomb().solve(problem)
    assert found.status is stiction.Status.SOLVED
    assert found.certificate.worst <= 1e-8
    assert found.rungs[-1] == "interior point"
