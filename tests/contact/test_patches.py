"""Islands that are right but for a few contacts, mended there."""

import numpy as np
import pytest
from clutter import FILES, read_clutter

from stiction.contact.problem.blocks import Datum
from stiction.contact.solvers.blocks.workspace import ENDLESS, Guess, Outcome, Rung, Setting
from stiction.contact.solvers.interior_point.continuation import LARGE_TURNS
from stiction.contact.solvers.islands import patches, persistence
from stiction.contact.solvers.islands.arrays import fill
from stiction.contact.solvers.islands.patches import (
    LARGEST_PATCH,
    LEAST_DRAWN,
    SMALL_PATCH,
    Effort,
    Island,
    mend_island,
)
from stiction.contact.solvers.islands.persistence import SHARPENING_PATHS, persist, sharpen_island
from stiction.contact.solvers.islands.solve import solve_blocks, take_turn
from stiction.contact.solvers.islands.warm import STARTS
from stiction.contact.solvers.proximal.iteration import SOLVED, spread_residual

HEAPS = [path for path in FILES if path.stem.startswith(("box27", "box125"))]


def solved_heap(path):
    """A workspace with the heap's answer, and its largest island."""
    problem, _ = read_clutter(path)
    work, layout = fill(problem)
    setting = work.request.setting
    setting[Setting.DEADLINE] = ENDLESS
    solve_blocks(work.packed.ctypes.data, layout.blocks)
    sizes = np.diff(work.graph.members[: int(work.graph.size[0]) + 1])
    k = int(sizes.argmax())
    assert work.request.outcome[k, Outcome.RESIDUAL] <= SOLVED
    return work, k


def momentum_left(work, island):
    """What impulses and velocity leave of the momentum balance, the largest entry by energy."""
    b, f, v = work.blocks, work.newton.f, work.newton.v
    left = b.push.copy()
    for i in island.members:
        _, rows, width, column, value, _ = b.head[i]
        values = b.value[value : value + rows * width].reshape(rows, width)
        left[b.column[column : column + width]] += values.T @ f[i, :rows]
    change = v - b.velocity
    diagonal = np.array([b.mass[row + j] for j, row in enumerate(b.row)])
    for j, (row, first) in enumerate(zip(b.row, b.first, strict=True)):
        left[j] -= b.mass[row + first : row + j + 1] @ change[first : j + 1]
        left[first:j] -= b.mass[row + first : row + j] * change[j]
    return np.abs(left[island.dofs] / np.sqrt(diagonal[island.dofs])).max()


def spoil(work, k, share=0.01):
    """Changes the friction of the contact with the largest load by a share of the island's load,
    and the velocity of its bodies with it, so that the momentum balance holds. The island,
    and its load."""
    island, load = Island(work, k), work.request.outcome[k, Outcome.LOAD]
    f, b = work.newton.f, work.blocks
    loaded = island.members[f[island.members, 0].argmax()]
    f[loaded, 1] -= np.copysign(share * load / np.sqrt(work.newton.weight[loaded, 1]), f[loaded, 1])
    push = b.push.copy()
    for i in island.members:
        _, rows, width, column, value, _ = b.head[i]
        values = b.value[value : value + rows * width].reshape(rows, width)
        push[b.column[column : column + width]] += values.T @ f[i, :rows]
    mass = np.zeros((len(b.row), len(b.row)))
    for j, (row, first) in enumerate(zip(b.row, b.first, strict=True)):
        mass[j, first : j + 1] = mass[first : j + 1, j] = b.mass[row + first : row + j + 1]
    work.newton.v[island.dofs] = (b.velocity + np.linalg.solve(mass, push))[island.dofs]
    address = work.packed.ctypes.data
    spread_residual(address, k, load)
    work.request.outcome[k, Outcome.RESIDUAL] = work.system.pull[island.members, 0].max()
    return island, load


@pytest.mark.parametrize("path", HEAPS, ids=lambda path: path.stem)
def test_a_heap_that_is_wrong_in_one_place_is_mended_there(path):
    work, k = solved_heap(path)
    island, load = spoil(work, k)
    assert work.request.outcome[k, Outcome.RESIDUAL] > 1e-4
    assert mend_island(work, k, lambda residual: residual <= SOLVED)
    spread_residual(work.packed.ctypes.data, k, load)
    assert work.system.pull[island.members, 0].max() <= SOLVED
    assert momentum_left(work, island) <= 1e-8 * load


LARGE = [path for path in HEAPS if path.stem.startswith("box125")]


@pytest.mark.parametrize("path", LARGE, ids=lambda path: path.stem)
def test_rows_drift_in_a_patch_before_they_do_on_the_whole_heap(path, monkeypatch):
    """The corner that bears most is to part by a millionth of the speed of the load, and
    the others of its face bear what it bore."""
    work, k = solved_heap(path)
    island, load = Island(work, k), work.request.outcome[k, Outcome.LOAD]
    loaded = island.members[work.newton.f[island.members, 0].argmax()]
    work.blocks.data[loaded, Datum.BOUND] += 1e-6 * load * np.sqrt(work.newton.weight[loaded, 0])
    spread_residual(work.packed.ctypes.data, k, load)
    before = work.request.outcome[k, Outcome.RESIDUAL] = work.system.pull[island.members, 0].max()
    assert before > 1e-7

    drift_island, drifting = patches.drift_island, []

    def note(address, *arguments):
        drifting.append(address)
        return drift_island(address, *arguments)

    monkeypatch.setattr(patches, "drift_island", note)
    monkeypatch.setattr(Island, "solve_patch", lambda *_: None)
    monkeypatch.setattr(patches, "REJOIN_STEPS", 1)
    mend_island(work, k, lambda residual: residual <= SOLVED, 2)
    assert work.request.outcome[k, Outcome.RESIDUAL] <= SOLVED
    assert momentum_left(work, island) <= 1e-8 * load
    assert drifting
    assert work.packed.ctypes.data not in drifting


@pytest.mark.parametrize("path", HEAPS[::4], ids=lambda path: path.stem)
def test_a_patch_that_is_not_solved_otherwise_is_by_paths_that_are_drawn(path, monkeypatch):
    work, k = solved_heap(path)
    island, load = spoil(work, k)

    pose, posed = patches.pose, []

    def note(*arguments):
        posed.append(pose(*arguments))
        return posed[-1]

    def fail(address, count):
        """As if all attempts had failed."""
        solve_blocks(address, count)
        patch, residual = posed[-1], posed[-1].request.outcome[:, Outcome.RESIDUAL]
        patch.newton.f[:], patch.newton.v[:] = 0.0, patch.request.v_free
        residual[residual > 0.0] = np.inf

    monkeypatch.setattr(patches, "pose", note)
    monkeypatch.setattr(patches, "solve_blocks", fail)
    nodes = island.find_nodes(work.system.pull[island.members, 0], 1)
    inside = island.touches @ nodes == island.degree
    left = []
    for effort in (Effort.ALL_PATHS, Effort.DRAWN_PATHS):
        island.solve_patch(nodes, effort)
        spread_residual(work.packed.ctypes.data, k, load)
        left.append(work.system.pull[island.members[inside], 0].max())
    assert left[0] > 1e-4
    assert left[1] <= SOLVED


@pytest.mark.parametrize("path", HEAPS[::4], ids=lambda path: path.stem)
def test_a_path_that_begins_near_what_is_all_but_right_is_shorter(path):
    spent = []
    for number in (0, 1):  # near, and from nothing
        work, k = solved_heap(path)
        spoil(work, k)
        before = work.request.outcome[k, Outcome.FACTORIZATIONS]
        take_turn(work.packed.ctypes.data, k, number, np.inf)
        assert work.request.outcome[k, Outcome.RESIDUAL] <= SOLVED
        spent.append(work.request.outcome[k, Outcome.FACTORIZATIONS] - before)
    assert spent[0] < 0.8 * spent[1]


def test_no_path_begins_near_what_is_far_off():
    work, k = solved_heap(HEAPS[0])
    before = work.request.outcome[k, Outcome.FACTORIZATIONS]
    work.request.outcome[k, Outcome.RESIDUAL] = 1.0
    take_turn(work.packed.ctypes.data, k, 0, np.inf)
    assert work.request.outcome[k, Outcome.FACTORIZATIONS] == before


@pytest.mark.parametrize("share", [SMALL_PATCH, LARGEST_PATCH, 1.0])
def test_the_larger_a_patch_the_less_is_done_about_it(share, monkeypatch):
    work, k = solved_heap(HEAPS[0])
    island, _ = spoil(work, k)
    nodes = np.zeros(island.touches.shape[1], np.bool_)
    nodes[np.flatnonzero(island.touches.sum(axis=0))[: int(share * island.nodes)]] = True
    monkeypatch.setattr(Island, "find_nodes", lambda *_: nodes)
    pose, posed = patches.pose, []

    def note(*arguments):
        posed.append(pose(*arguments))
        return posed[-1]

    monkeypatch.setattr(patches, "pose", note)
    mend_island(work, k, lambda residual: False, 1)
    brief = {int(patch.request.setting[Setting.BRIEF]) for patch in posed}
    assert brief == {SMALL_PATCH: {0}, LARGEST_PATCH: {1}, 1.0: set()}[share]


EASY = [path for path in HEAPS if path.stem.endswith("easy")]


@pytest.mark.parametrize("path", EASY, ids=lambda path: path.stem)
def test_a_heap_that_lacks_the_last_digits_is_sharpened_to_rounding(path):
    work, k = solved_heap(path)
    island, load = spoil(work, k, 1e-9)
    assert work.request.outcome[k, Outcome.RESIDUAL] > 5e-10
    sharpen_island(work, k)
    assert work.request.outcome[k, Outcome.RESIDUAL] <= 1e-11
    spread_residual(work.packed.ctypes.data, k, load)
    assert work.system.pull[island.members, 0].max() <= 1e-11
    assert momentum_left(work, island) <= 1e-11 * load


@pytest.mark.parametrize("path", EASY, ids=lambda path: path.stem)
def test_a_pile_that_the_interior_point_answered_is_tried_from_its_impulses_in_every_step(path):
    work, k = solved_heap(path)
    request, count = work.request, len(work.newton.f)
    request.setting[Setting.WARM] = Guess.LAST_STEP
    request.guess[:count] = work.newton.f
    request.built[:count] = Rung.INTERIOR_POINT + 2  # the third step in a row
    solve_blocks(work.packed.ctypes.data, count)
    assert request.outcome[k, Outcome.RUNG] == Rung.IMPULSES
    assert request.outcome[k, Outcome.RESIDUAL] <= SOLVED


@pytest.mark.parametrize("path", HEAPS, ids=lambda path: path.stem)
def test_a_heap_whose_answer_is_the_guess_costs_half_or_what_one_start_may_take(path):
    work, k = solved_heap(path)
    request, count = work.request, len(work.newton.f)
    before = request.outcome[k, Outcome.FACTORIZATIONS]
    request.setting[Setting.WARM] = Guess.NEAR
    request.guess[:count], request.start[:] = work.newton.f, work.newton.v
    solve_blocks(work.packed.ctypes.data, count)
    assert request.outcome[k, Outcome.RESIDUAL] <= SOLVED
    assert request.outcome[k, Outcome.FACTORIZATIONS] <= max(0.5 * before, STARTS[0].limit + 1)
    assert request.outcome[k, Outcome.RUNG] == Rung.INTERIOR_POINT
    np.testing.assert_allclose(
        work.newton.v, request.start, atol=1e-6 * np.abs(request.start).max()
    )


def test_a_patch_has_the_neighbours_of_what_is_wrong_and_no_others():
    work, k = solved_heap(HEAPS[0])
    island = Island(work, k)
    residual = np.zeros(len(island.members))
    residual[3] = 1.0
    touches = island.touches.toarray() > 0
    one = touches[touches[:, touches[3]].any(axis=1)].any(axis=0)
    assert island.find_nodes(residual, 0).tolist() == touches[3].tolist()
    assert island.find_nodes(residual, 1).tolist() == one.tolist()


def test_what_is_wrong_everywhere_is_not_mended():
    work, k = solved_heap(HEAPS[0])
    before = work.newton.f.copy()
    work.request.outcome[k, Outcome.RESIDUAL] = 1.0
    assert not mend_island(work, k, lambda residual: residual <= SOLVED)
    assert (work.newton.f == before).all()


def test_a_heap_that_no_path_solves_is_stiffened_step_by_step(monkeypatch):
    work, k = solved_heap(max(HEAPS, key=lambda path: path.stat().st_size))
    island = Island(work, k)
    work.newton.f[island.members] = 0.0
    work.newton.v[island.dofs] = work.request.v_free[island.dofs]
    work.request.outcome[k, Outcome.RESIDUAL], work.request.setting[Setting.MENDED] = 1.0, 1
    followed = []
    for module in (patches, persistence):
        monkeypatch.setattr(
            module, "take_turn", lambda _, k, number, tried: followed.append(number)
        )
    persist(work, k, lambda residual: residual <= SOLVED)
    assert work.request.outcome[k, Outcome.RESIDUAL] <= SOLVED
    assert momentum_left(work, island) <= 1e-8 * work.request.outcome[k, Outcome.LOAD]
    assert followed == list(range(LARGE_TURNS))


@pytest.mark.parametrize(
    ("suffices", "paths"), [(True, 1 + SHARPENING_PATHS), (False, LARGE_TURNS + LEAST_DRAWN)]
)
def test_for_the_last_digits_of_what_suffices_no_path_is_drawn(suffices, paths, monkeypatch):
    problem, _ = read_clutter(max(HEAPS, key=lambda path: path.stat().st_size))
    work, _ = fill(problem)
    k = int(np.diff(work.graph.members[: int(work.graph.size[0]) + 1]).argmax())
    work.request.setting[Setting.MENDED] = 1
    taken = []
    monkeypatch.setattr(persistence, "mend_island", lambda *_, **__: False)
    for module in (patches, persistence):
        monkeypatch.setattr(module, "take_turn", lambda _, k, number, tried: taken.append(number))
    persist(work, k, lambda residual: False, lambda: suffices)
    assert len(taken) == paths


@pytest.mark.parametrize("number", [1, 3, LARGE_TURNS])
def test_what_suffices_is_sharpened_after_whichever_path_has_brought_it(number, monkeypatch):
    problem, _ = read_clutter(min(HEAPS, key=lambda path: path.stat().st_size))
    work, _ = fill(problem)
    work.request.setting[Setting.MENDED] = 1
    taken, sharpened = [], []
    monkeypatch.setattr(persistence, "is_mended_first", lambda *_: True)
    monkeypatch.setattr(persistence, "mend_island", lambda *_, **__: False)
    monkeypatch.setattr(persistence, "stiffen_heap", lambda *_: False)
    monkeypatch.setattr(persistence, "sharpen_island", lambda *_: sharpened.append(len(taken)))
    monkeypatch.setattr(persistence, "take_turn", lambda _, k, number, tried: taken.append(number))
    persist(work, 0, lambda residual: False, lambda: len(taken) >= number)
    assert sharpened == [number]


def test_no_path_is_drawn_on_a_heap_that_nothing_came_near_to(monkeypatch):
    work, k = solved_heap(max(HEAPS, key=lambda path: path.stat().st_size))
    work.request.outcome[k, Outcome.RESIDUAL], work.request.setting[Setting.MENDED] = 0.05, 1
    taken = []
    monkeypatch.setattr(persistence, "mend_island", lambda *_, **__: False)
    monkeypatch.setattr(persistence, "stiffen_and_mend", lambda *_: False)
    for module in (patches, persistence):
        monkeypatch.setattr(module, "take_turn", lambda _, k, number, tried: taken.append(number))
    persist(work, k, lambda residual: False)
    assert taken == list(range(LARGE_TURNS))
