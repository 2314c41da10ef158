"""`diagnose`: why does it slip? The scene is run, and what could let a body slip is looked at.

1. The start: bodies inside each other.
2. The exact cone, with the model's own friction: which contacts slide, with what margin; which
   bodies are carried by too few points; which actuators are at their limit; what overlaps without
   a contact.
3. If some slide, the same without slip: the friction that would hold, mu needed = |f_t| / f_n.
   Both are of the pair as a whole: how redundant contacts share a load is not unique.
4. MuJoCo's own contact: what creeps or sinks there although Coulomb's law holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from stiction.contact.models.no_slip import NoSlip
from stiction.errors import InvalidInput, is_number
from stiction.record.comparison import Load, run_mujoco
from stiction.record.diagnosis import findings as rules
from stiction.record.diagnosis.finding import Finding
from stiction.record.diagnosis.geometry import Passing, find_overlap
from stiction.record.diagnosis.ignored import ignored_parameters
from stiction.record.diagnosis.pairs import Pair, Seen
from stiction.record.diagnosis.support import find_turning
from stiction.record.motion import bodies_to_watch, check_watch
from stiction.record.recording import Progress, Recording, record
from stiction.simulate.report import Report
from stiction.simulate.simulator import Simulator

Tell = Callable[[str, Progress], None]

PASSING_EVERY = 10
"""Samples between two looks for bodies that pass through each other."""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What `diagnose` found."""

    pairs: list[Pair]
    findings: list[Finding]
    """Causes first."""
    recording: Recording
    """The run on the exact cone."""
    mujoco_speed: float
    """`net_speed` under MuJoCo as the model sets it [m/s]."""

    @property
    def net_speed(self) -> float:
        """Of the watched body that went furthest, second half of the run [m/s]."""
        return self.recording.motion.net_speed(self.recording.time)


def diagnose(
    load: Load,
    seconds: float,
    *,
    watch: tuple[str, ...] = (),
    samples: int = 200,
    on_progress: Tell | None = None,
) -> Diagnosis:
    """Runs the scene for `seconds` [s] up to three times; see the module's head."""

    def tell(name: str) -> Callable[[Progress], None] | None:
        return None if on_progress is None else lambda progress: on_progress(name, progress)

    if not callable(load):
        raise InvalidInput("load", f"is {load!r}: a function that gives model, data, controller")
    if not (is_number(seconds) and 0.0 < seconds < np.inf):
        raise InvalidInput("seconds", f"is {seconds!r}: a run takes a positive time [s]")
    model, data, controller = load()
    check_watch(model, watch)
    mujoco.mj_fwdPosition(model, data)
    overlapping = find_overlap(model, data)
    seen, passing = Seen(model), Passing(model, watch or bodies_to_watch(model, set()))
    passing.look(data)

    def look(data: mujoco.MjData, report: Report) -> None:
        seen.look(data, report.contacts)
        if seen.samples % PASSING_EVERY == 0:
            passing.look(data)

    recording = record(
        Simulator(model), data, seconds, controller=controller, watch=watch, samples=samples,
        on_progress=tell("coulomb"), on_sample=look,
    )  # fmt: skip
    watch = recording.trajectory.watch
    pairs = sorted(
        seen.pairs.values(),
        key=lambda pair: (not set(watch) & set(pair.bodies), -max(pair.normal)),
    )
    if any(pair.slides and pair.condim > 1 for pair in pairs):
        _find_needed(load, pairs, seconds, samples, tell("no-slip"))
    soft = Seen(model)
    outcome = run_mujoco(load, "mujoco", seconds, watch, samples, tell("mujoco"), soft.look)
    findings = [*overlapping, *passing.findings()]
    findings += [finding for pair in pairs for finding in rules.of_pair(pair)]
    findings += find_turning(model, seen.holds)
    findings += rules.of_actuators(seen, pairs)
    findings += rules.of_mujoco(seen, soft, recording, outcome, overlapping=bool(overlapping))
    findings += rules.of_run(recording, pairs)
    findings += [
        Finding("ignored", where, text, cause=False)
        for where, text in ignored_parameters(model, seen.geoms)
    ]
    findings.sort(key=lambda finding: not finding.cause)
    return Diagnosis(pairs, findings, recording, outcome.net_speed)


def _find_needed(
    load: Load,
    pairs: list[Pair],
    seconds: float,
    samples: int,
    tell: Callable[[Progress], None] | None,
) -> None:
    """Fills in what would hold the pairs that slide: a run that does not let them."""
    model, data, controller = load()
    held = Seen(model)
    record(
        Simulator(model, NoSlip()), data, seconds, controller=controller, samples=samples,
        on_progress=tell, on_sample=lambda data, report: held.look(data, report.contacts),
    )  # fmt: skip
    for pair in pairs:
        other = held.pairs.get(pair.key)
        if pair.slides and pair.condim > 1 and other is not None:
            normal, tangential = np.array(other.normal), np.array(other.tangential)
            pair.needed_force = float(np.median(tangential))
            with np.errstate(divide="ignore", invalid="ignore"):
                pair.needed = float(np.median(tangential / np.maximum(normal, 0.0)))
