"""One run of a sweep: what is to be run, and the row of the table that comes of it."""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import mujoco
import numpy as np

from stiction import __version__, scenes
from stiction.errors import InvalidInput
from stiction.record.comparison import Outcome, compare
from stiction.record.motion import bodies_to_watch, middle_of
from stiction.scenes.options import keyframe_number

Value = bool | int | float | str
Row = dict[str, Any]
"""Options, contact model and seed of a run, and `OUTCOMES`; None where there is no answer."""

DONE, FAILED, CRASHED = "done", "failed", "crashed"
"""How a run ends: to its end; by an error that was raised; with the process that it ran in."""

OUTCOMES = {
    "status": str, "error": str, "simulated": float, "slip": float, "moved": float, "sink": float,
    "held": bool, "certificate": float, "overlap": float, "us_per_step": float, "elapsed": float,
}  # fmt: skip
"""Columns that every run has, after its options: documented in `Sweep`."""

FILE_OPTIONS = ("friction", "timestep")
"""What can be set in a model that is a file, as a shipped scene has its own options."""

SAMPLES = 100
"""Of a run, from which slip and motion are taken."""


@dataclass(frozen=True)
class Run:
    """What is to be run. All of it can be written as JSON."""

    scene: str
    """A shipped name, or the path of a file."""
    options: dict[str, Value]
    contact: str
    seed: int
    seconds: float
    noise: float
    """Standard deviation of the velocities that a seed adds to the start [m/s, rad/s]."""
    drop: float
    """How far a body may sink and still be held [m]."""
    keyframe: str | None
    content: str
    """Digest of the model in a file; empty for a shipped scene."""

    @property
    def key(self) -> str:
        """The same for runs that give the same row, whatever sweep they belong to."""
        text = json.dumps({**asdict(self), "version": __version__}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    @property
    def settings(self) -> Row:
        """The columns that tell this run from others."""
        return {**self.options, "contact": self.contact, "seed": self.seed}

    def load(self) -> scenes.Loaded:
        """Model, data at the start, controller.

        A scene with an option `seed` is made by it. Any other starts as it is with seed 0, and
        with velocities disturbed at random with the others.
        """
        file = is_file(self.scene)
        options = {} if file else dict(self.options)
        own_seed = not file and "seed" in inspect.signature(scenes.get(self.scene).xml).parameters
        if own_seed:
            options["seed"] = self.seed
        model, data, controller = scenes.load(self.scene, **options)
        if file:
            _set(model, self.options)
        if self.keyframe is not None:
            mujoco.mj_resetDataKeyframe(model, data, keyframe_number(model, self.keyframe))
        if self.seed and not own_seed:
            random = np.random.default_rng(self.seed)
            data.qvel += self.noise * random.standard_normal(model.nv)
        mujoco.mj_forward(model, data)
        return scenes.Loaded(model, data, controller)


def is_file(scene: str) -> bool:
    """Whether it is a path, and not the name of a shipped scene."""
    return Path(scene).suffix.lower() in (".xml", ".urdf")


def digest(model: mujoco.MjModel) -> str:
    """The same for models that are the same, files that they include considered."""
    buffer = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return hashlib.sha256(buffer.tobytes()).hexdigest()[:24]


def _set(model: mujoco.MjModel, options: dict[str, Value]) -> None:
    for name, value in options.items():
        if name == "timestep":
            model.opt.timestep = value
        elif name == "friction":
            model.geom_friction[:, 0] = value
            model.pair_friction[:, :2] = value
        else:
            raise InvalidInput(name, f"a file has the options {', '.join(FILE_OPTIONS)}")


def execute(run: Run) -> Row:
    """Runs it; the row. An error is a row as well."""
    began = perf_counter()
    row: Row = {**run.settings, **dict.fromkeys(OUTCOMES), "status": FAILED, "error": ""}
    try:
        model = run.load().model
        shipped = () if is_file(run.scene) else scenes.get(run.scene).watch
        watch = shipped or bodies_to_watch(model, set())
        outcome = compare(run.load, [run.contact], run.seconds, watch=watch, samples=SAMPLES)[0]
        row.update(_outcomes(outcome, run.drop))
    except Exception as error:  # whatever it is, the other runs go on
        row["error"] = f"{type(error).__name__}: {error}"
    row["elapsed"] = perf_counter() - began
    return row


def crashed(run: Run, why: str) -> Row:
    """The row of a run whose process ended before it did."""
    return {**run.settings, **dict.fromkeys(OUTCOMES), "status": CRASHED, "error": why}


def _outcomes(outcome: Outcome, drop: float) -> Row:
    watched = bool(outcome.motion.bodies)
    touching = outcome.contacts.column("sample") >= middle_of(outcome.time)
    moved = np.linalg.norm(outcome.motion.displacement, axis=2)
    return {
        "status": FAILED if outcome.failure else DONE,
        "error": outcome.failure,
        "simulated": float(outcome.time[-1] - outcome.time[0]),
        "slip": outcome.slip if touching.any() else None,
        "moved": float(moved.max()) if watched else None,
        "sink": outcome.sink if watched else None,
        "held": bool(outcome.sink <= drop) if watched and not outcome.failure else None,
        "certificate": outcome.worst,
        "overlap": float(outcome.penetration.max(initial=0.0)),
        "us_per_step": outcome.us_per_step,
    }
