"""The ladder: the best attempt is kept, no rung runs twice, islands climb apart."""

from time import perf_counter

import numpy as np
import pytest

from stiction.contact import ContactProblem, Coulomb, LadderModel
from stiction.contact.models import coulomb
from stiction.contact.models.ladder import climb
from stiction.contact.models.model import Impulses
from stiction.status import Status


def particles(count, normal, tangent):
    """They fall and slide."""
    return ContactProblem(
        mass=np.eye(3 * count),
        velocity=np.tile([1.0, 0.5, 0.0], count),
        force=np.tile([0.0, 0.0, -9.81], count),
        dt=0.01,
        normal=normal,
        tangent=tangent,
        friction=0.5,
    )


def sliding_blocks(count=1):
    """Particles that slide on a floor, each an island of its own."""
    normal, tangent = np.zeros((count, 3 * count)), np.zeros((count, 2, 3 * count))
    for i in range(count):
        normal[i, 3 * i + 2] = tangent[i, 0, 3 * i] = tangent[i, 1, 3 * i + 1] = 1.0
    return particles(count, normal, tangent)


def missing_by(error, rung, pivots=1):
    """What a rung would find whose impulses are off by `error`, relative."""
    exact = Coulomb().solve(sliding_blocks())
    normal, tangent = exact.normal * (1.0 + error), exact.tangent * (1.0 + error)
    return Impulses(normal, tangent, exact.joint, exact.box, Status.ERROR, pivots, (rung,))


class Injected(LadderModel):
    """Coulomb's law by rungs that are given."""

    law = "coulomb"

    def __init__(self, *found):
        self.found, self.asked = found, []

    def attempts(self, problem, start):
        for attempt in self.found:
            self.asked.append(attempt.rungs[0])
            yield attempt


def test_an_early_rung_that_comes_nearer_is_not_lost_to_a_later_one():
    near, far = missing_by(2e-7, "near"), missing_by(0.1, "far")
    model = Injected(missing_by(1e-2, "first"), near, far)
    solution = model.solve(sliding_blocks())
    assert model.asked == ["first", "near", "far"]
    assert 1e-8 < solution.certificate.worst < 1e-7
    assert climb(sliding_blocks(), [far], perf_counter(), law="coulomb").certificate.worst > 1e-4
    assert np.array_equal(solution.normal, near.normal)
    assert solution.rungs == ("first", "far", "near")
    assert solution.pivots == 3
    assert solution.status is Status.ERROR


def test_the_first_rung_that_passes_ends_the_climb():
    model = Injected(missing_by(1e-2, "first"), missing_by(0.0, "exact"), missing_by(0.0, "last"))
    solution = model.solve(sliding_blocks())
    assert model.asked == ["first", "exact"]
    assert solution.rungs == ("first", "exact")
    assert solution.status is Status.SOLVED


def test_every_island_keeps_its_own_best_attempt():
    class OnePassesFirst(LadderModel):
        law = "coulomb"

        def attempts(self, problem, start):
            yield missing_by(0.0 if problem.velocity[1] > 0.0 else 2e-7, "first")
            yield missing_by(0.1, "second")

    problem = sliding_blocks(2)
    solution = OnePassesFirst().solve(problem)
    assert solution.certificate.passed
    assert solution.rungs == ("first",)


@pytest.fixture
def spoiled(monkeypatch):
    """Counts calls by name; the compiled rungs' answer never passes."""
    calls = []
    compiled = coulomb.solve_arrays

    def solve_arrays(*arguments):
        calls.append("compiled")
        outcome = compiled(*arguments)
        outcome.table.scaled[:] = 1e-3
        return outcome

    def counted(name, solver):
        def solve(*arguments):
            calls.append(name)
            return solver(*arguments)

        return solve

    monkeypatch.setattr(coulomb, "solve_arrays", solve_arrays)
    table = {name: counted(name, solver) for name, solver in coulomb.TABLE.items()}
    monkeypatch.setattr(coulomb, "TABLE", table)
    return calls


@pytest.mark.parametrize("facets", [None, 8])
def test_a_compiled_rung_that_failed_is_not_run_again(spoiled, facets):
    problem = sliding_blocks()
    start = Coulomb(facets).solve(problem)
    spoiled.clear()
    solution = Coulomb(facets).solve(problem, start)
    assert solution.status is Status.SOLVED
    follows = "interior point" if facets is None else "structural"
    assert spoiled == ["compiled", follows]
    assert solution.rungs == ("warm start", follows)


def test_islands_climb_one_by_one_the_compiled_rung_first(spoiled):
    problem = sliding_blocks(3)
    assert problem.island_count == 3
    solution = Coulomb().solve(problem)
    assert spoiled == ["compiled", "interior point"] * 3
    assert solution.status is Status.SOLVED
    assert solution.rungs == ("reduced", "interior point")


def column(count):
    """Particles on top of each other, one island, the lowest of them on a floor."""
    normal, tangent = np.zeros((count, 3 * count)), np.zeros((count, 2, 3 * count))
    for i in range(count):
        for particle, sign in ((i, 1.0), (i - 1, -1.0)):
            if particle >= 0:
                at = 3 * particle
                normal[i, at + 2] = tangent[i, 0, at] = tangent[i, 1, at + 1] = sign
    return particles(count, normal, tangent)


def test_of_many_bodies_in_an_island_the_sparse_way_comes_first_and_once(spoiled):
    few, many = Coulomb().solve(column(8)), Coulomb().solve(column(coulomb.MANY + 1))
    assert few.rungs == ("reduced", "interior point")
    assert many.rungs == ("interior point",)
    assert spoiled == ["compiled", "interior point", "interior point"]
    assert many.status is Status.SOLVED


def test_many_contacts_of_one_body_are_left_to_pivoting():
    count = 2 * coulomb.MANY
    problem = ContactProblem(
        mass=np.eye(3),
        velocity=[1.0, 0.5, 0.0],
        force=[0.0, 0.0, -9.81],
        dt=0.01,
        normal=np.tile([0.0, 0.0, 1.0], (count, 1)),
        tangent=np.tile([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], (count, 1, 1)),
        friction=0.5,
    )
    assert Coulomb().solve(problem).rungs == ("reduced",)
