"""Drumwright, Tables II and III: a quadruped walks over a terrain map for ten seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction import lcp, scenes, simulate
from stiction.contact import (
    ContactModel,
    ContactProblem,
    ContactSolution,
    Coulomb,
    DrumwrightShell,
    NoSlip,
    Viscous,
)
from stiction.contact.certificate import LawName
from stiction.contact.solution import Mode
from stiction.errors import StictionError
from stiction.experiments.humanoids import tune
from stiction.experiments.problems import changed
from stiction.experiments.result import (
    COMPILING,
    Cell,
    Line,
    Picture,
    Plot,
    Progress,
    Result,
    Table,
)
from stiction.simulate import Simulator
from stiction.status import Status

Array = NDArray[np.float64]

FRICTION = 100.0
VISCOSITY = 0.1  # N s/m
FALLEN = 0.2  # m, height of the trunk; it walks at 0.3
REACH = 1e-5  # m, gap of a contact that still holds
SAME = 0.05
"""Share of a contact's rows outside the span of another's below which both are one point."""

HIS = {"Drumwright-Shell": 416.284, "no-slip": 301.796, "Lemke": 2936.36, "PPM": 2139.73}
"""Running times [s]."""


class Standing(ContactModel):
    """The no-slip model on feet that walk.

    A foot that stands leaves the ground by some 1e-7 m in a step, since its path is curved, and
    `NoSlip` takes a gap for a contact yet to come, which may slide. Here contacts within REACH
    hold. And a foot that meets two facets of the terrain would be glued to it, as the tangents of
    both span all directions: of contacts in one point only the nearest has tangents.
    """

    law: LawName = "no-slip"  # type: ignore[misc]

    def __init__(self, watch: Callable[[ContactProblem], None] | None = None) -> None:
        self._watch = watch
        self.seconds: list[float] = []
        self.overhead = 0.0
        """Time beside the model's own [s]."""
        self.pivots: list[int] = []
        self.failures = 0

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """The no-slip solution; its tangential impulses include those of held contacts."""
        entered = perf_counter()
        if self._watch is not None:
            self._watch(problem)
        friction = np.where(_first_of_each_point(problem), problem.friction, 0.0)
        held = (friction > 0.0) & (problem.bound < 0.0) & (problem.bound > -REACH / problem.dt)
        friction[held] = 0.0
        rows = problem.tangent[held].reshape(-1, problem.nv)
        now = changed(problem, friction=friction, joint=rows, joint_target=np.zeros(len(rows)))
        began = perf_counter()
        found = NoSlip().solve(now)
        self.seconds.append(perf_counter() - began)
        self.overhead += began - entered
        self.pivots.append(found.pivots)
        self.failures += found.status is not Status.SOLVED
        tangent = found.tangent.copy()
        tangent[held] = found.joint.reshape(-1, 2)
        return replace(found, tangent=tangent, joint=np.zeros(0))


def _first_of_each_point(problem: ContactProblem) -> NDArray[np.bool_]:
    """(nc,) False for a contact in the same point of the same bodies as a nearer one."""
    rows = np.concatenate([problem.normal[:, None], problem.tangent], axis=1)
    kept: list[Array] = []
    first = np.zeros(problem.nc, np.bool_)
    for i in np.argsort(-problem.bound, kind="stable"):
        size = SAME * np.linalg.norm(rows[i])
        if all(np.linalg.norm(rows[i] - (rows[i] @ span) @ span.T) >= size for span in kept):
            kept.append(np.linalg.qr(rows[i].T)[0])
            first[i] = True
    return first


class Timed(ContactModel):
    """Another contact model, its time kept; the simulator takes the Python path for it."""

    def __init__(self, inner: ContactModel) -> None:
        self.inner, self.facets = inner, inner.facets
        self.law = inner.law  # type: ignore[misc]
        self.seconds: list[float] = []
        self.pivots: list[int] = []
        self.failures = 0

    def solve(
        self, problem: ContactProblem, start: ContactSolution | None = None
    ) -> ContactSolution:
        """What the inner model finds."""
        began = perf_counter()
        found = self.inner.solve(problem)
        self.seconds.append(perf_counter() - began)
        self.pivots.append(found.pivots)
        self.failures += found.status is not Status.SOLVED
        return found


class ViscousSolves:
    """Viscous accelerations of the walk's problems, by modified PPM and by Lemke."""

    def __init__(self, every: int) -> None:
        self._every, self._seen = every, 0
        self.ppm: list[float] = []
        self.lemke: list[float] = []
        self.assembly: list[float] = []
        self.apart = 0.0
        """Largest difference of the two accelerations, relative."""

    def __call__(self, problem: ContactProblem) -> None:
        """Solves one problem in `every`."""
        self._seen += 1
        if self._seen % self._every or not problem.nc:
            return
        mass, velocity, force = problem.mass, problem.velocity, problem.force
        normal, tangent = problem.normal, problem.tangent
        model = Viscous(VISCOSITY)
        began = perf_counter()
        acceleration, _, _, _ = model.accelerations(mass, velocity, force, normal, tangent)
        self.ppm.append(perf_counter() - began)
        began = perf_counter()
        rows = tangent.reshape(-1, problem.nv)
        known = force - VISCOSITY * rows.T @ (rows @ velocity)
        both = np.linalg.solve(mass, np.column_stack([normal.T, known]))
        matrix, free = normal @ both[:, :-1], normal @ both[:, -1]
        self.assembly.append(perf_counter() - began)
        began = perf_counter()
        result = lcp.solve(matrix, free, "lemke")
        self.lemke.append(perf_counter() - began)
        other = both[:, -1] + both[:, :-1] @ result.z
        size = float(np.abs(both[:, -1]).max())
        self.apart = max(self.apart, float(np.abs(acceleration - other).max()) / size)


@dataclass
class Walk:
    """Ten seconds, or fewer, of walking."""

    name: str
    steps: int
    distance: float
    """Along x [m]."""
    lowest: float
    """Of the trunk above the ground's mean [m]."""
    contacts: list[int]
    seconds: float
    solve: float
    """Median time of a solve, where it was measured [s]."""
    worst: float
    failures: int
    stopped: str
    times: list[float]
    places: list[float]
    qpos: Array

    @property
    def end(self) -> str:
        """What became of it."""
        if self.stopped:
            return "stopped: no solution"
        return "fell" if self.lowest < FALLEN else "walked"


def walk(
    name: str,
    contact: ContactModel | None,
    seconds: float,
    friction: float,
    progress: Callable[[float], None],
    adjust: Callable[[mujoco.MjModel], None] | None = None,
    stepper: object | None = None,
) -> Walk:
    """Walks for so long by a contact model; None is MuJoCo's own step."""
    model, data, controller = scenes.load("quadruped", friction=friction)
    assert controller is not None
    if adjust is not None:
        adjust(model)
    simulator = None
    if contact is not None:
        more = {} if stepper is None else {"stepper": stepper}
        simulator = Simulator(model, contact, **more)  # type: ignore[arg-type]
    contacts: list[int] = []
    times: list[float] = []
    places: list[float] = []
    lowest, stopped, spent = np.inf, "", 0.0
    steps = round(seconds / model.opt.timestep)
    for step in range(steps):
        if step % max(1, steps // 20) == 0:
            progress(step / steps)
        began = perf_counter()
        controller(model, data)
        if simulator is None:
            mujoco.mj_step(model, data)
            spent += perf_counter() - began
            contacts.append(int(data.ncon))
        else:
            try:
                report = simulator.step(data)
            except StictionError as error:
                stopped = str(error)
                break
            took = perf_counter() - began
            spent += took if took < COMPILING else 0.0
            contacts.append(sum(c.mode != Mode.SEPARATE or c.gap <= 0 for c in report.contacts))
        lowest = min(lowest, float(data.qpos[2]))
        times.append(data.time)
        places.append(float(data.qpos[0]))
        if lowest < FALLEN:
            break
    if isinstance(contact, Standing):
        spent -= contact.overhead
    kept = contact if isinstance(contact, (Standing, Timed)) else None
    return Walk(
        name,
        len(times),
        places[-1] if places else 0.0,
        lowest,
        contacts,
        spent,
        float(np.median(kept.seconds)) if kept and kept.seconds else float("nan"),
        float("nan") if simulator is None else simulator.statistics.worst,
        (kept.failures if kept else 0) + bool(stopped),
        stopped,
        times,
        places,
        data.qpos.copy(),
    )


def run(quick: bool, progress: Progress) -> Result:
    """Walks by no-slip, Drumwright-Shell, viscous friction, the exact cone, and MuJoCo."""
    return measure(1.0 if quick else 10.0, quick, progress)


def measure(seconds: float, quick: bool, progress: Progress) -> Result:
    """As `run`, for so long."""
    viscous = ViscousSolves(10)
    plans: list[tuple[str, ContactModel | None, float, Callable[[mujoco.MjModel], None] | None]] = [
        ("no-slip", Standing(), FRICTION, None),
        ("Drumwright-Shell", Timed(DrumwrightShell(8)), FRICTION, None),
        ("Drumwright-Shell, circle", Timed(DrumwrightShell()), FRICTION, None),
        ("NoSlip as it comes, compiled", NoSlip(), FRICTION, None),
        ("exact cone, compiled", Coulomb(), 0.8, None),
        ("viscous, implicit, compiled", Viscous(VISCOSITY), FRICTION, None),
        ("MuJoCo", None, FRICTION, None),
        ("MuJoCo, tuned", None, FRICTION, tune),
    ]
    walks: list[Walk] = []
    for index, (name, contact, friction, adjust) in enumerate(plans):

        def tell(share: float, index: int = index, name: str = name) -> None:
            progress((index + share) / (len(plans) + 1), name)

        # Its augmented Lagrangian takes 15 ms at mu = 100; a part of the way is enough.
        part = 0.2 if name.endswith("circle") else 1.0
        walks.append(walk(name, contact, part * seconds, friction, tell, adjust))
    # Once more with the viscous solves, which no time above should contain.
    walk("viscous", Standing(viscous), min(seconds, 2.0), FRICTION, lambda share: None)
    events, why = _event_driven(seconds, progress)
    walks += events
    by_name = {w.name: w for w in walks}
    ours = [by_name["no-slip"], by_name["exact cone, compiled"]]
    return Result(
        name="drumwright-quadruped",
        title="Drumwright: a quadruped on a terrain map",
        paper="Drumwright, Rapidly Computable Viscous Friction and No-Slip Rigid Contact Models, "
        "Tables II and III",
        quick=quick,
        tables=(_table(walks), _ratio(by_name), _viscous_table(viscous)),
        plots=(
            Plot(
                "Way of the trunk",
                "s",
                "m",
                tuple(Line(w.name, tuple(w.times), tuple(w.places)) for w in walks),
            ),
        ),
        pictures=(
            Picture(
                "The quadruped under way, no-slip",
                "quadruped",
                tuple(by_name["no-slip"].qpos),
                {"friction": FRICTION},
            ),
        ),
        notes=_notes(by_name, viscous, why),
        counts={
            "solves": sum(w.steps for w in ours),
            "failures": sum(w.failures + (w.end != "walked") for w in ours),
        },
    )


def _event_driven(seconds: float, progress: Progress) -> tuple[list[Walk], str]:
    """Walks as he has them, event by event: viscous friction by Runge-Kutta, no-slip by symplectic
    Euler; or why there are none."""
    stepper = getattr(simulate, "EventDriven", None)
    if stepper is None:
        return [], "The event-driven stepper is not part of this version: its rows are left out."
    walks, why = [], ""
    for name, contact, options in (
        ("viscous, event-driven", Viscous(VISCOSITY), {}),
        ("no-slip, event-driven", NoSlip(), {"integrator": "symplectic"}),
    ):
        progress(0.95, name)
        try:
            made = stepper(**options)
            # In Python, event by event: part of the time is enough.
            walks.append(
                walk(name, contact, 0.3 * seconds, FRICTION, lambda share: None, None, made)
            )
        except (StictionError, TypeError) as error:
            why = f"The row {name} is left out: {error}"
    return walks, why


def _table(walks: list[Walk]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            w.name,
            HIS.get(w.name),
            w.steps,
            w.end,
            w.distance,
            w.lowest,
            f"{min(w.contacts, default=0)}, {np.mean(w.contacts or [0]):.1f}, "
            f"{max(w.contacts, default=0)}",
            1e3 * w.seconds / max(w.steps, 1),
            1e3 * w.solve,
            w.worst,
        )
        for w in walks
    ]
    return Table(
        "Walks: distance, trunk, contacts, times",
        (
            "contact model",
            "his time for 10 s, s",
            "steps of 1 ms",
            "end",
            "distance, m",
            "lowest trunk, m",
            "contacts: least, mean, most",
            "step with control, ms",
            "solve, ms",
            "worst violation",
        ),
        tuple(rows),
        "His contacts: 1, 6 and 30. A contact counts that presses or touches. mu = 100 but for the "
        "exact cone, which has 0.8. Steps include the controller, most of each.",
    )


def _ratio(by_name: dict[str, Walk]) -> Table:
    no_slip, shell = by_name["no-slip"], by_name["Drumwright-Shell"]
    circle = by_name["Drumwright-Shell, circle"]
    return Table(
        "Table II: Drumwright-Shell over no-slip",
        ("", "his", "ours, eight facets", "ours, circle"),
        (
            (
                "whole simulation",
                HIS["Drumwright-Shell"] / HIS["no-slip"],
                (shell.seconds / max(shell.steps, 1)) / (no_slip.seconds / max(no_slip.steps, 1)),
                (circle.seconds / max(circle.steps, 1)) / (no_slip.seconds / max(no_slip.steps, 1)),
            ),
            ("solves alone", None, shell.solve / no_slip.solve, circle.solve / no_slip.solve),
        ),
        "Both go through Python, problem by problem; choosing which contacts hold is not counted.",
    )


def _viscous_table(viscous: ViscousSolves) -> Table:
    ppm = float(np.median(viscous.ppm)) if viscous.ppm else float("nan")
    lemke = float(np.median(viscous.lemke)) if viscous.lemke else float("nan")
    assembly = float(np.median(viscous.assembly)) if viscous.assembly else float("nan")
    return Table(
        "Table III: viscous accelerations of the walk's contacts, Lemke over modified PPM",
        ("", "his, whole simulation", "ours, solves alone"),
        (
            ("Lemke on the assembled LCP / PPM", HIS["Lemke"] / HIS["PPM"], lemke / ppm),
            ("with the assembly / PPM", None, (lemke + assembly) / ppm),
            ("problems", None, len(viscous.ppm)),
            ("largest relative difference of the two", None, viscous.apart),
        ),
        "PPM's time is from the problem's arrays; assembling the LCP is numpy.",
    )


def _notes(by_name: dict[str, Walk], viscous: ViscousSolves, why: str) -> tuple[str, ...]:
    no_slip, shell = by_name["no-slip"], by_name["Drumwright-Shell"]
    ratio = shell.solve / no_slip.solve
    plain, sticky = by_name["NoSlip as it comes, compiled"], by_name["viscous, implicit, compiled"]
    notes = [
        f"No-slip walks {no_slip.distance:.2f} m in {no_slip.times[-1]:.1f} s and "
        + ("stays up." if no_slip.end == "walked" else f"{no_slip.end}."),
        "That no-slip is faster than Drumwright-Shell "
        + ("holds" if ratio > 1.0 else "does not hold")
        + f": solves take {ratio:.1f} times as long by the latter. Of the whole simulation it is "
        "another ratio than his 1.38, since here the controller takes much of a step.",
        "That Lemke is slower than modified PPM on viscous contacts "
        + (
            "holds even without counting the assembly of its matrix."
            if np.median(viscous.lemke or [1.0]) > np.median(viscous.ppm or [0.0])
            else "does not hold for the LCP alone, which has a handful of rows; with the assembly "
            "of its matrix, which PPM does without, it does."
        ),
    ]
    if plain.end != "walked":
        notes.append(
            f"stiction.NoSlip as it comes does not walk: it {plain.end} after {plain.steps} steps. "
            "A standing foot leaves the ground by 1e-7 m in a step, and the model lets a contact "
            "with a gap slide; two facets under one foot glue it. The row named no-slip holds "
            "contacts within 10 um and gives one tangent plane to a point."
        )
    notes.append(
        f"With viscous friction of {VISCOSITY} N s/m alone it {sticky.end} "
        f"({sticky.distance:.2f} m, {sticky.steps} steps): a foot that pushes with 10 N would slip "
        "at 100 m/s. The paper reports running times and rapid movements, not that it walked."
        if sticky.end != "walked"
        else f"With viscous friction of {VISCOSITY} N s/m it walks {sticky.distance:.2f} m."
    )
    for name in ("viscous, event-driven", "no-slip, event-driven"):
        if name in by_name:
            w = by_name[name]
            notes.append(
                f"{name}: {w.end} ({w.steps} steps, {w.distance:.2f} m)."
                + (f" {w.stopped}" if w.stopped else "")
            )
    if why:
        notes.append(why)
    notes.append(
        "Robot, gait and terrain are ours; the paper's model and controller are not published with "
        "it. Runge-Kutta and continuous collision detection take part in his times."
    )
    return tuple(notes)
