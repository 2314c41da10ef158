"""A ladder of ways to one answer: climbed until a certificate passes, the best attempt kept.

Each way is a rung, run once and when its turn comes. What passes ends the climb. Where nothing
does, the attempt with the least violation is the answer, whichever rung it came from: a simulator
may take 2e-8 where a later rung only reached 1e-3. Problems of several islands climb island by
island.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from time import perf_counter

from stiction.contact.certificate.certificate import LawName
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.model import ContactModel, Impulses, as_impulses, explain, grade
from stiction.contact.problem.problem import ContactProblem
from stiction.tolerances import RESIDUAL

Attempts = Iterable[Impulses | ContactSolution]
"""What came of each rung, run when asked for; a solution where it is graded already. Each names
its own rung in `rungs`, or those that one compiled call climbed."""


class LadderModel(ContactModel):
    """A contact model with more than one way to solve an island; a subclass defines `attempts`."""

    def attempts(self, problem: ContactProblem, start: ContactSolution | None) -> Attempts:
        """What the rungs find for an island, one after the other."""
        raise NotImplementedError

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses of an island."""
        return as_impulses(self._climb(problem, start, perf_counter()))

    def solve_to(
        self, problem: ContactProblem, enough: float, rungs: int | None = None
    ) -> ContactSolution:
        """As `solve`, but by that many rungs, and no further than to a certificate of `enough`."""
        if problem.is_sparse:
            return self.solve(problem)
        began = perf_counter()
        attempts = islice(self.attempts(problem, None), rungs)
        return climb(problem, attempts, began, law=self.law, facets=self.facets, enough=enough)

    def _solve_whole(
        self, problem: ContactProblem, start: ContactSolution | None, began: float
    ) -> ContactSolution:
        return explain(problem, self.law, self._climb(problem, start, began))

    def _climb(
        self, problem: ContactProblem, start: ContactSolution | None, began: float
    ) -> ContactSolution:
        attempts = self._ordered(problem, start)
        return climb(problem, attempts, began, law=self.law, facets=self.facets)

    def _ordered(self, problem: ContactProblem, start: ContactSolution | None) -> Attempts:
        """The rungs in the order that suits the island, unless a simulator's own have failed."""
        return self.attempts(problem, start)


def climb(
    problem: ContactProblem,
    attempts: Attempts,
    began: float,
    *,
    law: LawName,
    facets: int | None = None,
    enough: float = RESIDUAL,
) -> ContactSolution:
    """The first attempt whose certificate is `enough`, or the best of all; `rungs` ends with its
    own.

    began: when the solve began, by `perf_counter` [s].
    """
    best: ContactSolution | None = None
    tried: list[tuple[str, ...]] = []
    pivots = answered = 0
    for found in attempts:
        solution = found
        if not isinstance(solution, ContactSolution):
            solution = grade(problem, law, solution, began, facets)
        tried.append(solution.rungs)
        pivots += solution.pivots
        if best is None or solution.certificate.worst < best.certificate.worst:
            best, answered = solution, len(tried) - 1
        if best.certificate.worst <= enough:
            break
    assert best is not None, "a ladder has a rung"
    if len(tried) == 1:
        return best
    others = [name for i, names in enumerate(tried) if i != answered for name in names]
    rungs = (*others, *tried[answered])
    return replace(best, pivots=pivots, rungs=rungs, seconds=perf_counter() - began)
