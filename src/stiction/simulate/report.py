"""What a step tells: its contacts, its certificate, its cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.bridge.names import body_of, name_of
from stiction.bridge.rows import DEEP
from stiction.contact.certificate.certificate import Certificate, from_table
from stiction.contact.certificate.laws import Law, Table
from stiction.contact.problem.modes import Mode
from stiction.simulate.notebook import report_html
from stiction.simulate.time_stepping.workspace import Figure, Record, Stage, Total

Array = NDArray[np.float64]

FRICTIONLESS = "without friction"
"""The rung of a step that went on without friction."""

BUDGET = "budget"
"""Flag of a step whose time ran out, and whose best attempt met the tolerance."""

BEST = "best attempt"
"""The rung of a step that went on with an answer beyond the tolerance."""

PARTS = "parts"
"""The rung of a step that was taken as several shorter ones (`time_stepping/parts.py`)."""


@dataclass(frozen=True, slots=True)
class Contact:
    """One contact of the last step. Forces act on the second geom, in the contact's frame."""

    index: int
    """Its number in `data.contact`."""
    geoms: tuple[str, str]
    bodies: tuple[str, str]
    mode: Mode
    """STICK, SLIDE, or SEPARATE where it bears no force."""
    force: Array
    """(3,) along normal, tangent 1, tangent 2 [N]."""
    torque: Array
    """(3,) of torsional and rolling friction about the same axes [N m]; zero below condim 4."""
    gap: float
    """Distance before the step [m]; negative where the geoms overlapped."""
    friction: Array
    """(2,) coefficients of sliding friction along tangents 1 and 2."""
    slip: Array
    """(2,) sliding velocity after the step [m/s]."""
    position: Array
    """(3,) in the world [m]."""

    @property
    def margin(self) -> float:
        """How much more friction the contact could bear, mu f_n - |f_t| [N]; in units of the
        first coefficient where the two differ."""
        if self.friction[0] == 0.0:
            return 0.0
        second = self.force[2] * (self.friction[0] / self.friction[1])
        return float(self.friction[0] * self.force[0] - np.hypot(self.force[1], second))


class Facts(NamedTuple):
    """What a report is worked out from."""

    pivots: int
    rungs: tuple[str, ...]
    figure: Array  # (Figure,)
    verdict: Certificate | tuple[Law, Table]
    spent: Array  # (Stage,) [s]
    dt: float  # that forces follow from impulses by [s]
    record: Array  # (blocks, RECORDS)


class Report:
    """The last of the steps that a call took. What it holds is worked out when asked for."""

    def __init__(
        self,
        model: mujoco.MjModel,
        time: float,
        gather: Callable[..., Facts],
        arguments: tuple[Any, ...] = (),
        copy: Callable[[], tuple[Any, ...]] | None = None,
    ) -> None:
        """copy: what of gather's arguments lies in memory that the next step writes to."""
        self.model = model
        """That was stepped."""
        self.time = time
        """Of the simulation, after the step [s]."""
        self._gather, self._arguments, self._copy = gather, arguments, copy

    @cached_property
    def _facts(self) -> Facts:
        self.keep()
        return self._gather(*self._arguments)

    def keep(self) -> None:
        """Takes what it needs from the memory that the next step writes to."""
        if self._copy is not None:
            self._arguments, self._copy = (*self._arguments, *self._copy()), None

    def __getstate__(self) -> dict[str, Any]:
        """Of a copy or a pickle: what is worked out from here on needs no simulator."""
        _ = self._facts
        return {**self.__dict__, "_gather": None, "_arguments": ()}

    @property
    def pivots(self) -> int:
        """Iterations of Newton's method; pivots where a pivoting solver answered."""
        return self._facts.pivots

    @property
    def rungs(self) -> tuple[str, ...]:
        """Names of the ways tried, in order, but for the one that answered, which is the last."""
        return self._facts.rungs

    def __repr__(self) -> str:
        pressed = sum(contact.mode != Mode.SEPARATE for contact in self.contacts)
        return (
            f"Report(time={self.time:g}, contacts={pressed}, worst={self.certificate.worst:.1e}, "
            f"rung={self.rung!r})"
        )

    def _repr_html_(self) -> str:
        return report_html(self)

    @property
    def rung(self) -> str:
        """The way that answered."""
        return self.rungs[-1]

    @property
    def frictionless(self) -> bool:
        """Whether friction was left out because no solver answered (`on_failure`)."""
        return self.rung == FRICTIONLESS

    @property
    def missed(self) -> bool:
        """Whether the step misses the tolerance: no solver met it, and the best attempt was taken
        (`on_failure`)."""
        return self.rung == BEST

    @property
    def energy(self) -> float:
        """What contact did to the kinetic energy, against the motion without it [J]; never
        positive but for rounding."""
        return float(self._facts.figure[Figure.ENERGY])

    @property
    def overlap(self) -> float:
        """Deepest overlap of a contact or limit before the step [m, rad]; zero if none."""
        return max(0.0, -float(self._facts.figure[Figure.GAP]))

    @cached_property
    def deep_contacts(self) -> tuple[Contact, ...]:
        """Contacts whose geoms overlapped by more than a tenth of the smaller one's radius before
        the step, deepest first: they have no friction. A model was set up so."""
        radius = self.model.geom_rbound
        deep = []
        for line in self._facts.record:
            if line[Record.INDEX] >= 0 and line[Record.GAP] < 0.0:
                sizes = radius[[int(line[Record.FIRST]), int(line[Record.SECOND])]]
                if -line[Record.GAP] > DEEP * sizes[sizes > 0.0].min(initial=np.inf):
                    deep.append(self._contact(line))
        return tuple(sorted(deep, key=lambda contact: contact.gap))

    @cached_property
    def certificate(self) -> Certificate:
        """Largest violation of every law; upper bounds: see `grade_blocks`."""
        verdict = self._facts.verdict
        return verdict if isinstance(verdict, Certificate) else from_table(*verdict)

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Time of the call by stage [s]."""
        return by_stage(self._facts.spent)

    @cached_property
    def contacts(self) -> tuple[Contact, ...]:
        """Contacts within reach of the step, those at a distance included."""
        return tuple(self._contact(line) for line in self._facts.record if line[Record.INDEX] >= 0)

    def _contact(self, line: Array) -> Contact:
        geoms = (int(line[Record.FIRST]), int(line[Record.SECOND]))
        ratio = line[Record.RATIO] or 1.0  # of condim 1 there is none
        force = line[Record.FORCE : Record.FORCE + 6] / self._facts.dt
        force[2] *= ratio
        force[5] *= line[Record.ROLL_RATIO]
        return Contact(
            int(line[Record.INDEX]),
            (name_of(self.model, "geom", geoms[0]), name_of(self.model, "geom", geoms[1])),
            (body_of(self.model, geoms[0]), body_of(self.model, geoms[1])),
            Mode(int(line[Record.MODE])),
            force[:3],
            force[3:],
            float(line[Record.GAP]),
            line[Record.FRICTION] * np.array([1.0, ratio]),
            line[Record.SLIP : Record.SLIP + 2] / np.array([1.0, ratio]),
            line[Record.X : Record.X + 3].copy(),
        )


def by_stage(spent: Array) -> dict[str, float]:
    """Times (Stage,) by the names of stages."""
    return {stage.name.lower(): float(spent[stage]) for stage in Stage}


@dataclass(frozen=True, slots=True)
class Statistics:
    """Over all steps since the simulator was made, or since `Simulator.reset_statistics`."""

    steps: int
    worst: float
    """Largest violation in any certificate."""
    contacts: float
    """Mean number of contacts, limits and dry joints within reach."""
    most_contacts: int
    pivots: float
    """Mean per step."""
    most_pivots: int
    warm: float
    """Share of steps for which the last step's impulses were enough of a start."""
    rungs: dict[str, int]
    """How many steps each way answered."""
    pushed_out: int
    """Steps that took overlap back."""
    overlap: float
    """Deepest overlap met [m, rad]."""
    energy: float
    """Most kinetic energy that contact added in a step [J]; rounding."""
    seconds: dict[str, float]
    """Time by stage [s]."""


def summarize(total: Array, rungs: Counter[str], ways: tuple[str, ...], spent: Array) -> Statistics:
    """Statistics of totals (Total,).

    rungs: steps by the way that answered, but for those of the compiled solver.
    ways: the compiled solver's own rungs, first and last; none where steps are not compiled.
    spent: (Stage,) time of all calls [s].
    """
    steps = int(total[Total.STEPS])
    each = 1.0 / max(steps, 1)
    warm = int(total[Total.WARM])
    counted: Counter[str] = Counter()
    if ways:
        counted[ways[0]] += warm
        counted[ways[-1]] += steps - warm - rungs.total()
    counted += rungs  # which drops what answered no step
    return Statistics(
        steps,
        float(total[Total.WORST]),
        float(total[Total.CONTACTS]) * each,
        int(total[Total.MOST_CONTACTS]),
        float(total[Total.ITERATIONS]) * each,
        int(total[Total.MOST_ITERATIONS]),
        warm * each,
        dict(counted),
        int(total[Total.PROJECTED]),
        max(0.0, -float(total[Total.GAP])),
        float(total[Total.ENERGY]),
        by_stage(spent),
    )
