"""`Simulator`: where `mujoco.mj_step(model, data)` stood, contact that sticks.

A call runs compiled steps (`loop.py`) until they are done or one cannot be taken. `Baraff`'s are
solved by a kernel of its own in between (`driven.py`). A step whose certificate the compiled
solver did not pass is handed to the contact model's own ladder of solvers, with the same problem
as arrays, and finished with what that finds.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge import validation
from stiction.bridge.guard import Guard
from stiction.bridge.library import has_callbacks
from stiction.bridge.names import body_of, joint_of_dof
from stiction.bridge.own_model import OwnModel
from stiction.bridge.rows import DEEP, Key
from stiction.contact.certificate.certificate import Certificate, from_table
from stiction.contact.certificate.laws import Law, Table
from stiction.contact.certificate.solution import ContactSolution
from stiction.contact.models.coulomb import Coulomb
from stiction.contact.models.description import Kind, StepSolver
from stiction.contact.models.frictionless import Frictionless
from stiction.contact.models.model import ContactModel
from stiction.contact.problem.block_problem import put_solution, to_problem
from stiction.contact.problem.problem import ContactProblem
from stiction.contact.solvers.interior_point.iteration import ATTEMPTS
from stiction.contact.solvers.workspace import Setting
from stiction.errors import InvalidInput, SolveFailed, StictionError
from stiction.kernels.clock import ticks_per_second
from stiction.kernels.stage import prepare
from stiction.simulate.derivatives.differentiator import Differentiator
from stiction.simulate.derivatives.step_derivatives import StepDerivatives
from stiction.simulate.event_driven.distances import PRECISE
from stiction.simulate.event_driven.engine import EventDriven, EventEngine
from stiction.simulate.options import is_flag, is_number, is_whole
from stiction.simulate.overlap import warn_of_overlap
from stiction.simulate.report import BEST, BUDGET, FRICTIONLESS, Report, Statistics, by_stage
from stiction.simulate.steppers import TimeStepping
from stiction.simulate.time_stepping.assembled import Assembled
from stiction.simulate.time_stepping.climb import (
    climb_islands,
    solve_without_friction,
    worst_problem,
)
from stiction.simulate.time_stepping.config import Config, Stop
from stiction.simulate.time_stepping.driven import drive
from stiction.simulate.time_stepping.loop import run
from stiction.simulate.time_stepping.restitution import bounce_speed, check_restitution
from stiction.simulate.time_stepping.workspace import Count, Figure, Stage, Total, Workspace
from stiction.status import Status
from stiction.terrain.meetings import Ground
from stiction.tolerances import RESIDUAL

Array = NDArray[np.float64]
Delassus = Literal["factorized", "assembly"]
Equality = Literal["soft", "rigid"]
OnFailure = Literal["raise", "frictionless", "best"]

WARM = "warm start"
"""The rung of a step for which the last step's impulses were enough of a start."""

ADVICE = (
    "What may help: a smaller time step; on_failure='best' takes the best attempt and flags it, "
    "on_failure='frictionless' leaves friction out for that step; a larger tolerance= takes what "
    "comes near enough; failures='directory' saves the problem, for `stiction replay`."
)
"""To whom a step failed."""

SLACK = 1e-8
"""Gap or overlap that counts as touching, over the size of what moves: below it lies what rounding
and the collision routines leave."""

LEVEL = 1e-7
"""Difference of two gaps to a height field that counts as zero, over the size of what moves."""

SHALLOW = 0.05
"""Overlap that one step pushes out whole, over the size of what moves."""

CHUNK = 0.05
"""Time that compiled steps take before they look for signals, such as Ctrl-C [s]."""

GROWTH = 8
"""Most that the next chunk has more steps than the last: its own may take longer."""

MOST_STEPS = 2**63 - 1
"""Of one call."""


class Simulator:
    """Steps a MuJoCo model with exact contact.

    model       its options are followed as they change; after other edits call `refresh`. It is
                never written to.
    contact     `Coulomb()` (default; mu from the model), `Coulomb(facets=d)`, `NoSlip()`,
                `Viscous(...)`, `Frictionless()`, `Baraff()`, or any other contact model
    stepper     `TimeStepping()` (default), or `EventDriven(...)`: events between smooth motion, for
                which equality constraints are rigid, and `data` is left evaluated after the step
    equality    "soft": equality constraints are as soft as the model says; "rigid": exact
    delassus    how a step's problem comes to contact space: "factorized", by the factor of the
                mass matrix; "assembly", by the links' inverse articulated-body inertias, in every
                step, which is slower wherever a step was measured
                (benchmarks/delassus_routes.py). Compiled steps solve for velocities and need
                neither
    on_failure  where no solver meets the tolerance: "raise" `SolveFailed`; go on "frictionless" for
                that step; or take the "best" attempt of all. Either is flagged in the report, whose
                certificate says how far the step is off
    warm_start  whether the last step's impulses are tried first; the answer is the same, but for
                `Baraff()` where redundant contacts leave several
    tolerance   certificate that a step must pass once every solver has been tried; the compiled
                solver's answer is taken if it passes 1e-8
    budget      time that the solve of a step may take before no further attempt is begun [s]; then
                the best so far is taken if it passes `tolerance`, flagged in the report, else
                `on_failure` decides. None: bounded by the attempts' own limits
    failures    directory into which the problem of a failed solve is saved
    restitution e in [0, 1], Newton's, of all contacts that close faster than free fall makes them
                in two steps; or (ngeom,) one for each geom, of which a contact has the larger

    One simulator serves one thread at a time; make one for each.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        contact: ContactModel | None = None,
        *,
        stepper: TimeStepping | EventDriven | None = None,
        equality: Equality = "soft",
        delassus: Delassus = "factorized",
        on_failure: OnFailure = "raise",
        warm_start: bool = True,
        tolerance: float = 1e-6,
        budget: float | None = None,
        failures: str | Path | None = None,
        restitution: float | Array = 0.0,
    ) -> None:
        self.contact = Coulomb() if contact is None else contact
        self.stepper: TimeStepping | EventDriven = TimeStepping() if stepper is None else stepper
        if not isinstance(self.contact, ContactModel):
            raise InvalidInput("contact", f"is {contact!r}: a contact model such as Coulomb()")
        if not isinstance(self.stepper, (TimeStepping, EventDriven)):
            raise InvalidInput("stepper", f"is {stepper!r}: TimeStepping() or EventDriven()")
        if equality not in ("soft", "rigid"):
            raise InvalidInput("equality", f"is {equality!r}: 'soft' or 'rigid'")
        if delassus not in ("factorized", "assembly"):
            raise InvalidInput("delassus", f"is {delassus!r}: 'factorized' or 'assembly'")
        if delassus == "assembly" and isinstance(self.stepper, EventDriven):
            raise InvalidInput(
                "delassus", "is 'assembly', which TimeStepping() can do; EventDriven() factorizes"
            )
        if on_failure not in ("raise", "frictionless", "best"):
            reason = f"is {on_failure!r}: 'raise', 'frictionless' or 'best'"
            raise InvalidInput("on_failure", reason)
        self.contact.check_simulated()
        if not (is_number(tolerance) and 0.0 < tolerance < 1.0):
            raise InvalidInput("tolerance", f"is {tolerance!r}: a number between 0 and 1")
        if not is_flag(warm_start):
            raise InvalidInput("warm_start", f"is {warm_start!r}: True or False")
        if failures is not None and not isinstance(failures, (str, os.PathLike)):
            raise InvalidInput("failures", f"is {failures!r}: a directory, or None")
        self.equality, self.on_failure, self.delassus = equality, on_failure, delassus
        if budget is not None and not (is_number(budget) and budget > 0.0):
            raise InvalidInput("budget", f"is {budget!r}: seconds, more than none, or None")
        self.budget = None if budget is None else float(budget)
        self.warm_start, self.tolerance = bool(warm_start), float(tolerance)
        self.failures = None if failures is None else Path(failures)
        self._lock, self._stepping, self._stale = threading.RLock(), False, False
        self._guard, self._chunk = Guard(), 1
        self.start_overlap = ""
        """Which bodies the last new data started with deep within each other; empty for none."""
        _all.add(self)
        self._known: Callable[[], mujoco.MjData | None] = lambda: None
        self._differentiator: Differentiator | None = None
        self._own = OwnModel(model)
        self.restitution = check_restitution(model, restitution)
        if self.restitution.any() and not self._bounces:
            raise InvalidInput(
                "restitution",
                "is for TimeStepping() and contact models whose steps are compiled, such as "
                "Coulomb(); EventDriven() has a restitution of its own",
            )
        if delassus == "assembly":
            validation.check_still_surfaces(model, "delassus='assembly'")
        self._survey_ground()
        self._work = Workspace(model)
        prepare()
        self._elapsed, self._ticks = 0.0, np.zeros(len(Stage), np.int64)
        self._rungs: Counter[str] = Counter()
        self._configure()
        self._engine: EventEngine | None = None
        if isinstance(self.stepper, EventDriven):
            self._engine = EventEngine(model, self.contact, self.stepper)
            return
        # No step: what is not compiled yet is, here and not in the first step's time.
        self._run(None, 0, False)
        if self._compiled is not None and self._compiled.solver is StepSolver.DRIVING:
            drive(False, RESIDUAL, self._work.address)

    @property
    def model(self) -> mujoco.MjModel:
        """The user's model."""
        return self._own.source

    def __repr__(self) -> str:
        return f"Simulator(nv={self.model.nv}, contact={self.contact!r}, stepper={self.stepper!r})"

    def refresh(self) -> None:
        """Takes over what was changed in the model since the simulator was made.

        A callback may call it within a step: from mjcb_control it holds for that very step
        (`EventDriven`: for the next), from others when the compiled steps that run have ended.
        """
        with self._lock:
            if self._stepping:
                validation.check_model(self.model)
                self._stale = True
                return
            self._adopt()

    def _adopt(self) -> None:
        self._stale = False
        self._differentiator = None
        self._own.refresh()
        self._survey_ground()
        self._configure()
        if self._engine is not None:
            self._engine.refresh()

    def _survey_ground(self) -> None:
        """What steps need of height fields; `EventDriven` looks for itself."""
        self._ground = None
        if isinstance(self.stepper, TimeStepping):
            self._ground = Ground(self._own.model, LEVEL * self._own.size).features

    @property
    def _bounces(self) -> bool:
        """Whether steps can have impacts that bounce."""
        compiled = None if self.delassus == "assembly" else self.contact.compiled
        in_loop = compiled is not None and compiled.solver is StepSolver.INTERIOR_POINT
        return in_loop and isinstance(self.stepper, TimeStepping)

    def _configure(self) -> None:
        own, opt = self._own.model, self._own.model.opt
        compiled = None if self.delassus == "assembly" else self.contact.compiled
        self._compiled = compiled
        in_loop = compiled is not None and compiled.solver is StepSolver.INTERIOR_POINT
        size, pushed_out = self._own.size, getattr(self.stepper, "push_out", True)
        if self._ground is not None:
            opt.ccd_tolerance = min(opt.ccd_tolerance, PRECISE)
        near = SLACK * size
        if self.contact.acts_nearby:
            # A foot that stands leaves the ground a little in each step, since its path is curved.
            # What would fall back in a step touches.
            near = max(near, 0.5 * float(np.linalg.norm(opt.gravity)) * opt.timestep**2)
        self._config = Config(
            np.int64(compiled.law if compiled is not None and in_loop else -1),
            np.int64(0 if compiled is None else compiled.facets),
            self.equality == "rigid",
            self._own.has_derivatives,
            self._own.has_adhesion,
            bool(own.nsensor) and not opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR,
            bool(opt.enableflags & mujoco.mjtEnableBit.mjENBL_ENERGY),
            self.warm_start,
            self.contact.sustained.viscosity,
            RESIDUAL,
            SLACK * size,
            near,
            self.contact.sustained.kind is Kind.HOLD,
            SLACK * size if pushed_out else np.inf,
            SHALLOW * size,
            DEEP if pushed_out else np.inf,
            np.int64(len(ATTEMPTS)),
            np.int64(0 if self.budget is None else max(1, self.budget * ticks_per_second())),
            bounce_speed(opt) if self.restitution.any() else np.inf,
        )
        self._work.step.restitution[:] = self.restitution
        self._work.step.counts[Count.SEEN] = 0

    def __call__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """One step with `mj_step`'s signature; model must be the simulator's own."""
        if model is not self.model:
            raise InvalidInput("model", "is not the one that this simulator was made for")
        self.step(data)

    def step(self, data: mujoco.MjData, nstep: int = 1) -> Report:
        """Takes `nstep` steps; returns the report of the last one.

        If a step cannot be taken the state is as it was before that step, and an exception says
        why: `InvalidInput` for a state, input or model that is not valid, `SolveFailed` where no
        solver answered within tolerance.
        """
        if not (is_whole(nstep) and 1 <= nstep <= MOST_STEPS):
            raise InvalidInput("nstep", f"is {nstep!r}: a whole number of steps, 1 to 2**63 - 1")
        new = data is None or data is not self._known()
        if new:
            validation.check_data(self._own.model, data)
            self._known = weakref.ref(data)
        with self._lock:
            if self._stepping:
                raise StictionError("step was called by a callback of this simulator's own step")
            self._stepping = True
            try:
                if new:  # by itself, to see how its bodies lie
                    report = self._take_all(data, 1)
                    self.start_overlap = warn_of_overlap(report)
                    if nstep == 1:
                        return report
                return self._take_all(data, int(nstep) - new)
            finally:
                self._stepping = False

    def _take_all(self, data: mujoco.MjData, nstep: int) -> Report:
        """Steps by the stepper, the user's control before each."""
        if self._stale:
            self._adopt()
        if self._engine is not None:
            return self._by_events(self._engine, data, nstep)
        if self._own.follow():
            self._configure()
        if mujoco.get_mjcb_control() is None:
            return self._take(data, nstep)
        for _ in range(nstep):
            self._control(data)
            report = self._take(data, 1)
        return report

    def _by_events(self, engine: EventEngine, data: mujoco.MjData, nstep: int) -> Report:
        """Steps of the event-driven stepper, counted like the others."""
        total = self._work.step.total
        for _ in range(nstep):
            if self._stale:
                self._adopt()
            began = perf_counter()
            report = engine.step(data)
            self._elapsed += perf_counter() - began
            self._ticks[Stage.SOLVE] += 1  # all of it: its stages are not timed apart
            self._rungs[report.rung] += 1
            total[Total.STEPS] += 1
            total[Total.CONTACTS] += len(report.contacts)
            total[Total.ITERATIONS] += report.pivots
            total[Total.WORST] = max(total[Total.WORST], report.certificate.worst)
            total[Total.GAP] = min(total[Total.GAP], -report.overlap)
            total[Total.ENERGY] = max(total[Total.ENERGY], report.energy)
            total[Total.MOST_CONTACTS] = max(total[Total.MOST_CONTACTS], len(report.contacts))
            total[Total.MOST_ITERATIONS] = max(total[Total.MOST_ITERATIONS], report.pivots)
        return report

    def _control(self, data: mujoco.MjData) -> None:
        """Lets the user's control callback see the state, as `mj_step` does."""
        mujoco.mj_fwdPosition(self.model, data)
        mujoco.mj_fwdVelocity(self.model, data)
        mujoco.get_mjcb_control()(self.model, data)

    def _run(self, data: mujoco.MjData | None, nstep: int, solved: bool) -> tuple[Stop, int, float]:
        """Compiled steps, at most as many as take `CHUNK`: why they ended, how many were taken,
        and the time that it took [s]. Without data, none."""
        work = self._work
        work.step.counts[Count.DONE] = 0
        work.step.counts[Count.WATCHED] = self._own.model.nplugin > 0 or has_callbacks()
        began = perf_counter()
        address = 0 if data is None else data._address
        stop = self._guard.call(
            data, run, self._guard.frame, self._own.address, address, min(nstep, self._chunk),
            solved, self._config, self._ground, work.address,
        )  # fmt: skip
        spent, taken = perf_counter() - began, int(work.step.counts[Count.DONE])
        if taken:
            fit = int(taken * CHUNK / max(spent, 1e-9))
            self._chunk = max(1, min(fit, GROWTH * self._chunk))
        return Stop(stop), taken, spent

    def _take(self, data: mujoco.MjData, nstep: int) -> Report:
        left, solved, flag = nstep, False, ""
        solution: ContactSolution | None = None
        self._climbed: tuple[str, ...] = ()
        elapsed = 0.0
        self._work.step.ticks.fill(0)
        while True:
            if self._stale:
                self._adopt()
            stop, taken, spent = self._run(data, left, solved)
            work = self._work
            elapsed += spent
            if taken and flag:
                self._rungs[flag] += 1
            elif taken and solution is not None:
                self._rungs[solution.rungs[-1]] += 1
            elif taken and self._climbed:
                self._rungs[self._climbed[-1]] += 1
            left -= taken
            if left == 0:
                self._elapsed += elapsed
                self._ticks += work.step.ticks
                last = (solution, flag) if taken == 1 else (None, "")
                return self._report(data, *last, elapsed)
            solved, solution, flag = stop == Stop.UNSOLVED, None, ""
            self._climbed = ()
            if solved:
                began = perf_counter()
                driven = self._compiled is not None and self._compiled.solver is StepSolver.DRIVING
                driven = driven and drive(self.warm_start, RESIDUAL, work.address)
                elapsed += perf_counter() - began
                if not driven:
                    solution, flag = self._climb(data)
            elif stop != Stop.DONE:
                self._resolve(stop, data)

    def _resolve(self, stop: Stop, data: mujoco.MjData) -> None:
        """Makes room and returns, or raises what stopped the step."""
        model, count = self._own.model, self._work.step.counts
        if stop == Stop.ROOM:
            self._work = self._work.grown(model)
            return
        if stop == Stop.NOT_FINITE:
            raise validation.not_finite(model, data)
        if stop == Stop.DIVERGED:
            raise validation.diverged(model, data, self._work.newton.v)
        if stop == Stop.ERROR:
            said = " ".join(self._guard.message.split())
            raise StictionError(
                f"MuJoCo gave up at t = {data.time:g} s ({said}); the step was not taken"
            )
        if stop == Stop.ARENA:
            raise StictionError(
                f"MuJoCo's arena of {data.narena} bytes is full at t = {data.time:g} s, so that "
                "contacts would be missing; give the model more: <size memory='...'/>. The step "
                "was not taken"
            )
        dof = int(count[Count.DOF])
        raise InvalidInput(
            "mass",
            f"is not positive definite at {joint_of_dof(model, dof)}: look for a massless body "
            "or an actuator whose force grows with speed; the step was not taken",
        )

    def _climb(self, data: mujoco.MjData) -> tuple[ContactSolution | None, str]:
        """(solution, flag): solves the step's problem by the contact model's ladder and puts the
        answer into the workspace; None keeps the compiled solver's. The flag names what was done
        where no answer meets the tolerance. Raises SolveFailed where nothing could be."""
        work, free = self._work, self._work.solver.request.v_free
        if not np.abs(free).max(initial=0.0) <= mujoco.mjMAXVAL:
            raise validation.diverged(self._own.model, data, free)
        if self._compiled is not None and self._compiled.solver is StepSolver.INTERIOR_POINT:
            return self._climb_islands(data)
        count = int(work.step.counts[Count.BLOCKS])
        assembled = None
        if self.delassus == "assembly":
            assembled = Assembled(self._own.model, data, work)
            problem = assembled.problem
        else:
            problem = to_problem(work.blocks, count, self._own.model.opt.timestep)

        def solve(contact: ContactModel) -> ContactSolution:
            return contact.solve(problem) if assembled is None else assembled.solve(contact)

        solution, flag = solve(self.contact), ""
        worst = solution.certificate.worst
        own = np.inf if self._compiled is None else float(work.step.figure[Figure.WORST])
        if not min(worst, own) <= self.tolerance:
            failed = solution
            if self.on_failure == "best" and np.isfinite(min(worst, own)):
                flag = BEST
            elif self.on_failure == "frictionless":
                solution = replace(solve(Frictionless()), rungs=failed.rungs)
                flag, own = FRICTIONLESS, np.inf
            if not (flag == BEST or solution.certificate.worst <= self.tolerance):
                detail = self._describe(data, problem, failed.certificate)
                raise SolveFailed(problem, failed.status, detail, ADVICE)
        if not worst <= self.tolerance and own < worst:
            return None, flag
        put_solution(work.blocks, count, solution, work.newton.f)
        work.newton.v[:] = solution.velocity[: len(work.newton.v)]
        work.step.figure[Figure.WORST] = solution.certificate.worst
        work.step.counts[Count.ITERATIONS] = solution.pivots
        work.step.counts[Count.ATTEMPTS] = 1
        return solution, flag

    def _climb_islands(self, data: mujoco.MjData) -> tuple[None, str]:
        """The same where the compiled solvers have tried: island by island, beginning with what
        they found. The answer is left in the workspace, graded."""
        work, dt, flag = self._work, self._own.model.opt.timestep, ""
        worst = float(work.step.figure[Figure.WORST])
        if self.budget is None:
            worst, self._climbed = climb_islands(work, self.contact, dt)
        elif worst <= self.tolerance:
            flag = BUDGET
        if not worst <= self.tolerance:
            if self.on_failure == "best" and np.isfinite(worst):
                flag = BEST
            elif self.on_failure == "frictionless":
                worst, flag = solve_without_friction(work), FRICTIONLESS
            if not (flag == BEST or worst <= self.tolerance):
                problem = worst_problem(work, dt)
                detail = self._describe(data, problem, self._table())
                raise SolveFailed(problem, Status.ERROR, detail, ADVICE)
        work.step.figure[Figure.WORST] = worst
        work.step.counts[Count.ATTEMPTS] = max(1, work.step.counts[Count.ATTEMPTS])
        return None, flag

    def _table(self) -> Certificate:
        """The certificate that the compiled grade left."""
        table = self._work.grading.table
        copied = Table(table.value.copy(), table.scaled.copy(), table.where.copy())
        return from_table(Law(int(self._work.solver.request.setting[Setting.LAW])), copied)

    def _describe(
        self, data: mujoco.MjData, problem: ContactProblem, certificate: Certificate
    ) -> str:
        """What failed, where, and which file holds it."""
        model, step = self._own.model, self._work.step
        pairs: Counter[tuple[str, ...]] = Counter()
        for line in step.key[: int(step.counts[Count.BLOCKS])]:
            if line[Key.INDEX] >= 0:
                geoms = (int(line[Key.FIRST]), int(line[Key.SECOND]))
                pairs[tuple(sorted(body_of(model, geom) for geom in geoms))] += 1
        listed = ", ".join(f"{n} of {a} and {b}" for (a, b), n in pairs.most_common(4))
        more = "" if len(pairs) <= 4 else f" and {len(pairs) - 4} other pairs"
        text = (
            f"at t = {data.time:g} s no solver of {self.contact!r} met the tolerance "
            f"{self.tolerance:g} (worst {certificate.worst:.1e}, "
            f"{certificate.worst_entry.name.lower()}) on {problem.nc} contacts: "
            f"{listed}{more}. The state is as before the step."
        )
        if self.failures is not None:
            self.failures.mkdir(parents=True, exist_ok=True)
            path = self.failures / f"failed_at_{data.time:.6f}s.npz"
            problem.save(path)
            text += f" The problem is in {path}."
        return text

    def _report(
        self, data: mujoco.MjData, solution: ContactSolution | None, flag: str, elapsed: float
    ) -> Report:
        work, step = self._work, self._work.step
        own = () if self._compiled is None else (str(self._compiled.solver),)
        if solution is not None:
            rungs = (*own, *solution.rungs)
            verdict: Certificate | tuple[Law, Table] = solution.certificate
        else:
            rungs = (WARM,) if step.counts[Count.ATTEMPTS] <= 0 else (WARM, *own, *self._climbed)
            table = work.grading.table
            copied = Table(table.value.copy(), table.scaled.copy(), table.where.copy())
            assert self._compiled is not None, "other answers come as solutions"
            law = Law.FRICTIONLESS if flag == FRICTIONLESS else self._compiled.law
            verdict = (law, copied)
        return Report(
            self.model,
            data.time,
            int(step.counts[Count.ITERATIONS]),
            (*rungs, flag) if flag else rungs,
            step.figure.copy(),
            verdict,
            elapsed,
            step.ticks.copy(),
            self._own.model.opt.timestep,
            step.record[: step.counts[Count.BLOCKS]].copy(),
        )

    def derivatives(self, data: mujoco.MjData) -> StepDerivatives:
        """Derivatives of the step that `step(data)` would take, at its modes; data is left as it
        is. Of time steps only."""
        if self._engine is not None:
            raise InvalidInput("stepper", "is EventDriven(): derivatives are those of a time step")
        validation.check_data(self._own.model, data)
        with self._lock:
            if self._differentiator is None:
                self._differentiator = Differentiator(self._twin())
            return self._differentiator.differentiate(data, self._work)

    def _twin(self) -> Simulator:
        """Another simulator with the same settings."""
        return Simulator(
            self.model,
            self.contact,
            stepper=self.stepper,
            equality=self.equality,
            delassus=self.delassus,
            on_failure=self.on_failure,
            tolerance=self.tolerance,
            budget=self.budget,
            restitution=self.restitution,
        )

    def _begin_from(self, other: Workspace) -> None:
        """Takes over the impulses that another simulator of the model would begin with."""
        if self._work.room != other.room:
            self._work = Workspace(self._own.model, other.room)
        self._work.carry_over(other)
        self._work.step.counts[Count.SEEN] = 0

    @property
    def statistics(self) -> Statistics:
        """Figures over all steps since the last reset."""
        total = self._work.step.total
        steps = int(total[Total.STEPS])
        each = 1.0 / max(steps, 1)
        warm = int(total[Total.WARM])
        rungs = Counter({WARM: warm, **self._rungs})
        if self._compiled is not None and steps > rungs.total():
            rungs[str(self._compiled.solver)] += steps - rungs.total()
        return Statistics(
            steps,
            float(total[Total.WORST]),
            float(total[Total.CONTACTS]) * each,
            int(total[Total.MOST_CONTACTS]),
            float(total[Total.ITERATIONS]) * each,
            int(total[Total.MOST_ITERATIONS]),
            warm * each,
            dict(rungs),
            int(total[Total.PROJECTED]),
            max(0.0, -float(total[Total.GAP])),
            float(total[Total.ENERGY]),
            by_stage(self._elapsed, self._ticks),
        )

    def reset_statistics(self) -> None:
        """Starts the statistics anew."""
        self._work.step.total[:] = 0.0
        self._elapsed = 0.0
        self._ticks.fill(0)
        self._rungs.clear()

    def forget(self) -> None:
        """Drops the last step's impulses, so that the next step starts from none."""
        self._work.step.counts[Count.OLD] = 0
        self._work.step.counts[Count.SEEN] = 0


_all: weakref.WeakSet[Simulator] = weakref.WeakSet()
_shared: dict[int, Simulator] = {}
_shared_lock = threading.Lock()

SHARED = 8
"""Simulators that `step` keeps, the last used ones."""


def step(model: mujoco.MjModel, data: mujoco.MjData, nstep: int = 1) -> Report:
    """`Simulator(model).step(data, nstep)`, with a simulator kept for each model."""
    with _shared_lock:
        simulator = _shared.pop(id(model), None)
        if simulator is None or simulator.model is not model:
            simulator = Simulator(model)
        _shared[id(model)] = simulator
        while len(_shared) > SHARED:
            del _shared[next(iter(_shared))]
    return simulator.step(data, nstep)


def _renew_locks() -> None:
    """In a forked process: the threads that held locks are not in it."""
    global _shared_lock
    _shared_lock = threading.Lock()
    for simulator in _all:
        simulator._lock = threading.RLock()
        if simulator._stepping:
            simulator._stepping = False
            simulator.forget()  # a step was under way, and its impulses are half written


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
