"""A step that the compiled solvers did not answer: the contact model's own ladder, and failure.

`Fallback.answer` leaves the answer in the workspace, for the compiled loop to finish the step with.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import mujoco
import numpy as np

from stiction.bridge import validation
from stiction.bridge.names import body_of
from stiction.bridge.rows import Key
from stiction.contact.certificate.certificate import Certificate, from_table
from stiction.contact.certificate.laws import Law, Table
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.description import StepSolver
from stiction.contact.models.frictionless import Frictionless
from stiction.contact.models.model import ContactModel
from stiction.contact.problem.block_problem import put_solution, to_problem
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.blocks.workspace import Setting
from stiction.errors import SolveFailed
from stiction.simulate.report import BEST, BUDGET, FRICTIONLESS
from stiction.simulate.settings import Settings
from stiction.simulate.time_stepping.assembled import Assembled
from stiction.simulate.time_stepping.climb import (
    climb_islands,
    solve_without_friction,
    worst_problem,
)
from stiction.simulate.time_stepping.workspace import Count, Figure, Workspace
from stiction.status import Status

ADVICE = (
    "What may help: a smaller time step; on_failure='best' takes the best attempt and flags it, "
    "on_failure='frictionless' leaves friction out for that step; a larger tolerance= takes what "
    "comes near enough; failures='directory' saves the problem, for `stiction replay`."
)
"""To whom a step failed."""


class Answer(NamedTuple):
    """How a step was answered where the compiled solvers' own answer was not enough."""

    solution: ContactSolution | None = None
    """None: what the workspace held is kept, or islands of it were replaced."""
    flag: str = ""
    """What was done where no answer meets the tolerance."""
    climbed: tuple[str, ...] = ()
    """Rungs of the ladder, where it replaced islands."""

    @property
    def rung(self) -> str:
        """The way that answered; empty for the compiled solver."""
        if self.flag:
            return self.flag
        rungs = self.climbed if self.solution is None else self.solution.rungs
        return rungs[-1] if rungs else ""


COMPILED = Answer()
"""Of a step that the compiled solvers answered."""


class Fallback:
    """Answers steps by the ladder of a simulator's contact model."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        compiled = settings.compiled
        self._by_islands = compiled is not None and compiled.solver is StepSolver.INTERIOR_POINT

    def answer(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        work: Workspace,
        failed: Status | None = None,
    ) -> Answer:
        """Solves the step's problem by the contact model and puts the answer into the workspace.
        Raises SolveFailed where no answer meets the tolerance and the settings want none that does
        not.

        failed: how the model's one way ended, compiled, if it was tried: it is not tried again.
        """
        free = work.solver.request.v_free
        if not np.abs(free).max(initial=0.0) <= mujoco.mjMAXVAL:
            raise validation.diverged(model, data, free)
        if self._by_islands:
            return self._answer_islands(model, data, work)
        return self._answer_whole(model, data, work, failed)

    def answer_part(self, work: Workspace, dt: float) -> bool:
        """Whether a step of the time dt that may as well be shorter (`parts.py`) is answered, at
        little cost; the answer is left in the workspace."""
        contact, tolerance = self._settings.contact, self._settings.tolerance
        worst, _ = climb_islands(work, contact, dt, tolerance, brief=True)
        self._note(work, worst)
        return worst <= tolerance

    def _note(self, work: Workspace, worst: float) -> None:
        """Notes the certificate of what islands were answered with."""
        work.step.figure[Figure.WORST] = worst
        work.step.counts[Count.ATTEMPTS] = max(1, work.step.counts[Count.ATTEMPTS])

    @property
    def divides(self) -> bool:
        """Whether a step without an answer may be taken in parts: where the settings say nothing of
        what else is to be done, or how long it may take."""
        settings = self._settings
        return self._by_islands and settings.budget is None and settings.on_failure == "raise"

    def _answer_whole(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        work: Workspace,
        failed: Status | None,
    ) -> Answer:
        settings, count = self._settings, int(work.step.counts[Count.BLOCKS])
        assembled = None
        if settings.delassus == "assembly":
            assembled = Assembled(model, data, work)
            problem = assembled.problem
        else:
            problem = to_problem(work.blocks, count, model.opt.timestep)

        def solve(contact: ContactModel) -> ContactSolution:
            return contact.solve(problem) if assembled is None else assembled.solve(contact)

        solution, flag = None, ""
        if failed is None:
            solution = solve(settings.contact)
            failed, certificate = solution.status, solution.certificate
            worst = certificate.worst
        else:
            certificate = from_table(Law.COULOMB, copy_table(work))
            worst = float(work.step.figure[Figure.WORST])
        if not worst <= settings.tolerance:
            if settings.on_failure == "best" and np.isfinite(worst):
                flag = BEST
            elif settings.on_failure == "frictionless":
                rungs = () if solution is None else solution.rungs
                solution, flag = replace(solve(Frictionless()), rungs=rungs), FRICTIONLESS
                worst = solution.certificate.worst
            if not (flag == BEST or worst <= settings.tolerance):
                detail = self._describe(model, data, work, problem, certificate)
                raise SolveFailed(problem, failed, detail, ADVICE)
        if solution is None:
            return Answer(None, flag)
        put_solution(work.blocks, count, solution, work.newton.f)
        work.newton.v[:] = solution.velocity[: len(work.newton.v)]
        work.step.figure[Figure.WORST] = solution.certificate.worst
        work.step.counts[Count.ITERATIONS] = solution.pivots
        work.step.counts[Count.ATTEMPTS] = 1
        return Answer(solution, flag)

    def _answer_islands(
        self, model: mujoco.MjModel, data: mujoco.MjData, work: Workspace
    ) -> Answer:
        """The same where the compiled solvers have tried: island by island, beginning with what
        they found. The answer is left in the workspace, graded."""
        settings, dt, flag = self._settings, model.opt.timestep, ""
        worst = float(work.step.figure[Figure.WORST])
        climbed: tuple[str, ...] = ()
        if settings.budget is None:
            best = settings.on_failure == "best"
            worst, climbed = climb_islands(work, settings.contact, dt, settings.tolerance, best)
        elif worst <= settings.tolerance:
            flag = BUDGET
        if not worst <= settings.tolerance:
            if settings.on_failure == "best" and np.isfinite(worst):
                flag = BEST
            elif settings.on_failure == "frictionless":
                worst, flag = solve_without_friction(work), FRICTIONLESS
            if not (flag == BEST or worst <= settings.tolerance):
                problem = worst_problem(work, dt)
                law = Law(int(work.solver.request.setting[Setting.LAW]))
                graded = from_table(law, copy_table(work))
                detail = self._describe(model, data, work, problem, graded)
                raise SolveFailed(problem, Status.ERROR, detail, ADVICE)
        self._note(work, worst)
        return Answer(None, flag, climbed)

    def _describe(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        work: Workspace,
        problem: ContactProblem,
        certificate: Certificate,
    ) -> str:
        """What failed, where, and which file holds it."""
        settings, step = self._settings, work.step
        pairs: Counter[tuple[str, ...]] = Counter()
        for line in step.key[: int(step.counts[Count.BLOCKS])]:
            if line[Key.INDEX] >= 0:
                geoms = (int(line[Key.FIRST]), int(line[Key.SECOND]))
                pairs[tuple(sorted(body_of(model, geom) for geom in geoms))] += 1
        listed = ", ".join(f"{n} of {a} and {b}" for (a, b), n in pairs.most_common(4))
        more = "" if len(pairs) <= 4 else f" and {len(pairs) - 4} other pairs"
        text = (
            f"at t = {data.time:g} s no solver of {settings.contact!r} met the tolerance "
            f"{settings.tolerance:g} (worst {certificate.worst:.1e}, "
            f"{certificate.worst_entry.name.lower()}) on {problem.nc} contacts: "
            f"{listed}{more}. The state is as before the step."
        )
        if settings.failures is not None:
            settings.failures.mkdir(parents=True, exist_ok=True)
            path = settings.failures / f"failed_at_{data.time:.6f}s.npz"
            problem.save(path)
            text += f" The problem is in {path}."
        return text


def copy_table(work: Workspace) -> Table:
    """The table that the compiled grade left."""
    table = work.grading.table
    return Table(table.value.copy(), table.scaled.copy(), table.where.copy())
