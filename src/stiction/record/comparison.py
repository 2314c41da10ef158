"""`compare`: one scene under several contact models, MuJoCo's own among them, by one measure.

MuJoCo stands in three times: as the model sets it; and tuned so that as little slips and sinks as
it allows, A = elliptic cone, impratio 100, solref "2dt 1", solimp ".99 .9999 1e-4", and C = A with
20 iterations of noslip.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from time import perf_counter
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact.models.registry import entries, parse_contact
from stiction.errors import InvalidInput, unknown
from stiction.record.contact_series import ContactSeries
from stiction.record.contacts import mujoco_contacts
from stiction.record.motion import Motion, middle_of, motion
from stiction.record.recording import Controller, Progress, median_step, record
from stiction.record.trajectory import States, Trajectory
from stiction.simulate.notebook import html_table
from stiction.simulate.report import Contact
from stiction.simulate.settings import Equality
from stiction.simulate.simulator import Simulator

Array = NDArray[np.float64]
Load = Callable[[], tuple[mujoco.MjModel, mujoco.MjData, Controller | None]]
"""Makes the scene anew: model, data at the start, controller."""

NOSLIP = {"mujoco": None, "mujoco-A": 0, "mujoco-C": 20}
"""MuJoCo's ways: iterations of noslip in the tuned ones, None for the model's own options."""

USUAL = ("coulomb", "no-slip", *NOSLIP)
"""What is compared unless told otherwise."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of the scene under one contact model."""

    name: str
    trajectory: Trajectory
    motion: Motion
    contacts: ContactSeries
    """MuJoCo's in the same form: sliding is there what is faster than 1 um/s."""
    penetration: Array
    """(n,) deepest overlap at a contact [m]; ours over all steps since the last sample, joint
    limits included [m, rad]."""
    us_per_step: float
    """Median; controllers are not counted."""
    worst: float | None
    """Largest certificate; None for MuJoCo, which has none."""
    failure: str
    """What ended the run early, or empty."""
    interrupted: bool = False

    @property
    def time(self) -> Array:
        """(n,) [s]."""
        return self.trajectory.time

    @property
    def net_speed(self) -> float:
        """Of the watched body that went furthest, over the second half [m/s]: `Motion`."""
        return self.motion.net_speed(self.time)

    @property
    def slip(self) -> float:
        """Mean over the second half of the fastest slip at a loaded contact [m/s]."""
        return float(self.contacts.fastest_slip(len(self.time))[middle_of(self.time) :].mean())

    @property
    def sink(self) -> float:
        """How far below its start a watched body ends [m]."""
        return self.motion.sink()


class Comparison(list[Outcome]):
    """Outcomes of one scene; in a notebook, their table."""

    def _repr_html_(self) -> str:
        from stiction.record.page import COLUMNS, row

        return html_table(COLUMNS, [row(outcome) for outcome in self])


def tuned(model: mujoco.MjModel, noslip: int) -> mujoco.MjModel:
    """A copy with contact made as stiff and as rough as MuJoCo allows; see the module's head."""
    model = copy.copy(model)
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.impratio = 100.0
    model.opt.noslip_iterations = noslip
    soft = (2.0 * model.opt.timestep, 1.0)
    hard = (0.99, 0.9999, 1e-4, 0.5, 2.0)
    model.geom_solref[:], model.geom_solimp[:] = soft, hard
    if model.npair:
        model.pair_solref[:], model.pair_solimp[:] = soft, hard
    return model


def compare(
    load: Load,
    names: Sequence[str],
    seconds: float,
    *,
    watch: tuple[str, ...] = (),
    equality: Equality = "soft",
    samples: int = 100,
    on_progress: Callable[[str, Progress], None] | None = None,
) -> Comparison:
    """Runs the scene once for each name, contact models' or MuJoCo's, in turn.

    Without `watch`, what the first of our own runs finds in contact is watched in all. Ctrl-C
    ends the run at hand and leaves out the rest.
    """
    if not callable(load):
        raise InvalidInput("load", f"is {load!r}: a function that gives model, data, controller")
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidInput("names", f"is {names!r}: a list of contact models' names")
    if not (on_progress is None or callable(on_progress)):
        raise InvalidInput("on_progress", f"is {on_progress!r}: a function, or None")
    check_names(names)
    ordered = sorted(names, key=lambda name: name in NOSLIP)  # ours first: they find the bodies
    outcomes: dict[str, Outcome] = {}
    for name in ordered:
        tell = None if on_progress is None else _named(on_progress, name)
        if name in NOSLIP:
            outcome = run_mujoco(load, name, seconds, watch, samples, tell)
        else:
            outcome = _run_ours(load, name, seconds, watch, equality, samples, tell)
            watch = watch or outcome.motion.bodies
        outcomes[name] = outcome
        if outcome.interrupted:
            break
    return Comparison(outcomes[name] for name in names if name in outcomes)


def _named(tell: Callable[[str, Progress], None], name: str) -> Callable[[Progress], None]:
    return lambda progress: tell(name, progress)


def _run_ours(
    load: Load,
    name: str,
    seconds: float,
    watch: tuple[str, ...],
    equality: Equality,
    samples: int,
    tell: Callable[[Progress], None] | None,
) -> Outcome:
    model, data, controller = load()
    simulator = Simulator(model, parse_contact(name), equality=equality)
    kept = record(
        simulator,
        data,
        seconds,
        controller=controller,
        watch=watch,
        samples=samples,
        on_progress=tell,
    )
    return Outcome(
        name,
        kept.trajectory,
        kept.motion,
        kept.contacts,
        kept.overlap,
        median_step(kept.clock, kept.taken),
        float(kept.worst.max()),
        kept.failure,
        kept.interrupted,
    )


def run_mujoco(
    load: Load,
    name: str,
    seconds: float,
    watch: tuple[str, ...],
    samples: int,
    tell: Callable[[Progress], None] | None = None,
    on_sample: Callable[[mujoco.MjData, tuple[Contact, ...]], None] | None = None,
) -> Outcome:
    """Runs the scene under MuJoCo in one of its ways; `on_sample` sees each sample's contacts."""
    model, data, controller = load()
    noslip = NOSLIP[name]
    if noslip is not None:
        model = tuned(model, noslip)
    total = max(1, round(seconds / model.opt.timestep))
    every = ceil(total / samples)
    most = ceil(total / every) + 1
    states = States(model, most)
    depth, clock, taken = np.zeros(most), np.zeros(most), np.zeros(most)
    contacts = ContactSeries()
    states.add(data)
    done, failure, interrupted, began = 1, "", False, perf_counter()
    with quiet() as warnings:
        try:
            for k in range(1, most):
                steps = min(every, total - (k - 1) * every)
                clock[k], taken[k] = _step_mujoco(model, data, controller, steps), steps
                if warnings:
                    failure = f"MuJoCo warned at t = {data.time:g} s: {warnings[0]}"
                    break
                depth[k] = max(0.0, -float(data.contact.dist.min(initial=0.0)))
                met = mujoco_contacts(model, data)
                contacts.add(k, met)
                states.add(data)
                if on_sample is not None:
                    on_sample(data, met)
                done = k + 1
                if tell is not None:
                    now = min(k * every, total) * model.opt.timestep
                    tell(Progress(now, seconds, perf_counter() - began, 0.0))
        except KeyboardInterrupt:
            interrupted = True
    contacts.trim(done)
    trajectory = Trajectory(
        **states.arrays(done), timestep=model.opt.timestep, contact=name, watch=watch
    )
    trajectory.bind(model)
    return Outcome(
        name,
        trajectory,
        motion(trajectory, watch),
        contacts,
        depth[:done],
        median_step(clock[:done], taken[:done]),
        None,
        failure,
        interrupted,
    )


def _step_mujoco(
    model: mujoco.MjModel, data: mujoco.MjData, controller: Controller | None, steps: int
) -> float:
    """Takes the steps; the time that they took, without the controller [s]."""
    if controller is None:
        began = perf_counter()
        mujoco.mj_step(model, data, steps)
        return perf_counter() - began
    spent = 0.0
    for _ in range(steps):
        controller(model, data)
        began = perf_counter()
        mujoco.mj_step(model, data)
        spent += perf_counter() - began
    return spent


@contextmanager
def quiet() -> Iterator[list[str]]:
    """Collects MuJoCo's warnings, which it would write to a file in the working directory."""
    said: list[str] = []
    before: Any = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: said.append(str(text)))
    try:
        yield said
    finally:
        mujoco.set_mju_user_warning(before)


def check_names(names: Sequence[str]) -> list[str]:
    """The names as `compare` takes them; InvalidInput at one that stands for no contact model and
    none of MuJoCo's ways."""
    ways = {name.lower(): name for name in NOSLIP}
    known = (*entries(), *NOSLIP)
    checked = []
    for given in names:
        if not isinstance(given, str):
            raise InvalidInput("contact", f"is {given!r}: a name")
        name = given.strip()
        if name.lower() not in ways and name.lower().partition(":")[0] not in known:
            raise InvalidInput("contact", unknown(name, known))
        checked.append(ways.get(name.lower(), name))
        if checked[-1] not in NOSLIP:
            parse_contact(name)
    return list(dict.fromkeys(checked))
