"""Boxes held between two pushers, by any contact model: what Drumwright's Table I is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction import lcp, scenes
from stiction.contact import ContactModel, ContactProblem, ContactSolution, NoSlip
from stiction.contact.certificate.certificate import LawName
from stiction.contact.models.description import Kind, SustainedLaw
from stiction.contact.models.ladder import LadderModel
from stiction.contact.models.model import Impulses
from stiction.errors import StictionError
from stiction.record.comparison import tuned
from stiction.reproduce import fackler_miranda
from stiction.reproduce.problems import Around, Lcp, Repeated
from stiction.reproduce.result import clock
from stiction.simulate import Simulator
from stiction.status import Status

Array = NDArray[np.float64]

STEP, FRICTION, COPIES, FACETS = 0.01, 100.0, 3, 4
DROPPED = 0.01  # m that a box has fallen when it is not held any more
LOOSE = 0.99  # violation up to which an LCP's answer is taken as it comes
FREE = 1e30  # daqp's infinity
EQUALITY = 5  # daqp's code for a constraint that is always active


class NoSlipQp(ContactModel):
    """The no-slip model as a quadratic program in velocities, by daqp's active-set method."""

    law: LawName = "no-slip"  # type: ignore[misc]
    acts_nearby: bool = True  # type: ignore[misc]

    @property
    def sustained(self) -> SustainedLaw:
        """Contacts hold like joints."""
        return SustainedLaw(Kind.HOLD)

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """Impulses from the multipliers."""
        import daqp  # type: ignore[import-not-found]

        touching = (problem.bound >= 0.0) & (problem.friction > 0.0)
        held = 2 * int(touching.sum())
        _, _, flag, info = daqp.solve(*daqp_arguments(problem, touching))
        push = -np.asarray(info["lam"])
        out = np.zeros((problem.nc, 2))
        out[touching] = push[:held].reshape(-1, 2)
        status = Status.SOLVED if flag == 1 else Status.ERROR
        pivots = int(info.get("iterations", 0))
        none = np.zeros(0)
        return Impulses(push[held:], out, none, none, status, pivots, ("daqp",))


def daqp_arguments(problem: ContactProblem, held: NDArray[np.bool_]) -> tuple[NDArray[Any], ...]:
    """What `daqp.solve` takes for the velocity nearest to the free one at which contacts keep their
    bounds, and the tangents of those `held` (nc,) are zero; their rows come first."""
    tangent = problem.tangent[held].reshape(-1, problem.nv)
    rows = np.ascontiguousarray(np.concatenate([tangent, problem.normal]))
    lower = np.concatenate([np.zeros(len(tangent)), problem.bound])
    upper = np.concatenate([np.zeros(len(tangent)), np.full(problem.nc, FREE)])
    sense = np.zeros(len(rows), np.int32)
    sense[: len(tangent)] = EQUALITY
    mass = np.array(problem.mass)
    return mass, -mass @ problem.free_velocity, rows, upper, lower, sense


class Counted(Around):
    """Another model, its pivots and solve times kept: of an LCP without its assembly, of a ladder
    its first rung, without the certificate that is made of the answer."""

    def __init__(self, inner: ContactModel) -> None:
        super().__init__(inner)
        self.pivots: list[int] = []
        self.seconds: list[float] = []

    def solve_island(self, problem: ContactProblem, start: ContactSolution | None) -> Impulses:
        """What the inner model finds."""
        began = clock()
        if isinstance(self.inner, LadderModel):
            next(iter(self.inner.attempts(problem, None)))
            spent = clock() - began
            found = self.inner.solve_island(problem, None)
        else:
            found = self.inner.solve_island(problem, None)
            spent = self.inner.seconds[-1] if isinstance(self.inner, Lcp) else clock() - began
        self.seconds.append(spent)
        self.pivots.append(found.pivots)
        return found


def library_lemke(matrix: Array, free: Array) -> tuple[Array, Status, int]:
    """`stiction.lcp`'s Lemke on the assembled matrix."""
    result = lcp.solve(matrix, free, "lemke")
    return result.z, result.status, result.pivots


def models(seed: int = 0) -> dict[str, Callable[[], ContactModel]]:
    """What is compared, LEMKE's ties drawn by the seed; daqp only where it is installed."""
    found: dict[str, Callable[[], ContactModel]] = {
        "Stewart-Trinkle, LEMKE": lambda: Lcp(FACETS, fackler_miranda.Lemke(seed)),
        "Stewart-Trinkle, our Lemke": lambda: Lcp(FACETS, library_lemke),
        "no-slip, active-set QP": NoSlipQp,
        "no-slip, modified PPM": NoSlip,
    }
    if find_spec("daqp") is None:
        del found["no-slip, active-set QP"]
    return found


def wrapped(model: ContactModel) -> ContactModel:
    """The model with every corner three times, its solves counted."""
    return Repeated(Counted(model), COPIES)


@dataclass
class Held:
    """A simulation of the grasp."""

    steps: int
    """Until the boxes were dropped, a solver failed, or the time was up."""
    end: str
    sink: float
    """How far the lowest box is below its start [m]."""
    worst: float
    pivots: list[int]
    solve: float
    """Median time of a solve [s]."""
    seconds: float
    """Of the whole simulation."""
    qpos: Array


def hold(
    contact: ContactModel | None,
    steps: int,
    *,
    boxes: int = 2,
    timestep: float = STEP,
    friction: float = FRICTION,
    noslip: int | None = None,
) -> Held:
    """Holds the boxes for so many steps; None for the contact model is MuJoCo's own step, tuned
    with so many iterations of noslip unless that is None as well."""
    model, data, _ = scenes.load("grasp", boxes=boxes, friction=friction, timestep=timestep)
    if noslip is not None:
        model = tuned(model, noslip)
    counted = contact.inner if isinstance(contact, Repeated) else None
    simulator = None
    if contact is not None:
        simulator = Simulator(model, contact, tolerance=LOOSE if counted else 1e-6)
    free = [model.jnt_qposadr[j] + 2 for j in range(model.njnt) if model.jnt_type[j] == 0]
    began = clock()
    done, end, worst = 0, "held", 0.0
    chunk = 1 if counted else 50
    while done < steps:
        now = min(chunk, steps - done)
        try:
            if simulator is None:
                mujoco.mj_step(model, data, now)
            else:
                report = simulator.step(data, now)
                worst = max(worst, report.certificate.worst if counted else 0.0)
        except StictionError:
            end = "solver failed"
            break
        done += now
        if -data.qpos[free].min() > DROPPED:
            end = "dropped"
            break
    spent = clock() - began
    if simulator is not None and not counted:
        worst = simulator.statistics.worst
    kept = counted if isinstance(counted, Counted) else None
    return Held(
        done,
        end,
        -float(data.qpos[free].min()),
        worst,
        kept.pivots if kept else [],
        float(np.median(kept.seconds)) if kept and kept.seconds else spent / max(done, 1),
        spent,
        data.qpos.copy(),
    )
