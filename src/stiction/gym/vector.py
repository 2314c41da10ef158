"""Many environments at once, stepped by one `Batch` on all processors.

Each has an environment of its own for what is not physics: starts, observations, rewards and ends.
Before these are asked for, the batch takes the steps of all of them; an environment then takes over
what the batch found, where it would step.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from mujoco.batch import MODEL_FIELDS
from numpy.typing import NDArray

from stiction.bridge.changes import Fields, field_names
from stiction.contact.models.model import ContactModel
from stiction.errors import InvalidInput, real_numbers
from stiction.gym.registration import make_exact
from stiction.gym.stepping import Exact, Stepping, checked_options
from stiction.simulate.batch.batch import Batch
from stiction.simulate.options import is_whole
from stiction.simulate.settings import Options

STATE = ("time", "qpos", "qvel", "act", "qacc_warmstart", "qfrc_applied", "xfrc_applied")
"""What an environment hands over to the batch and takes back, beside the controls."""

DERIVED = (
    "xpos", "xquat", "xmat", "xipos", "ximat", "geom_xpos", "geom_xmat", "site_xpos", "site_xmat",
    "cam_xpos", "cam_xmat", "light_xpos", "light_xdir", "subtree_com", "cinert", "cvel",
    "cfrc_ext", "qacc", "qfrc_actuator", "qfrc_constraint", "actuator_force", "ten_length",
    "ten_velocity", "sensordata",
)  # fmt: skip
"""What it takes from the batch: what observations and rewards are made of, and pictures."""


EDITABLE = tuple(
    name
    for name in sorted(MODEL_FIELDS)
    if name.startswith("opt.") or (name in field_names() and not name.startswith("sensor_"))
)
"""Fields of an environment's model whose edits its simulation follows."""


def _field(model: mujoco.MjModel, name: str) -> Any:
    return attrgetter(name)(model)


class FromBatch(Stepping):
    """Steps an environment by taking over what the batch found for it."""

    def __init__(
        self, rows: dict[str, NDArray[Any]], contact: ContactModel | None, options: Options
    ) -> None:
        super().__init__(contact, **options)
        self._rows = rows
        self._data: mujoco.MjData | None = None
        self._state: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._all: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self.fresh = True
        """Whether it was reset since the batch's last steps."""

    def hand_over(self, data: mujoco.MjData) -> None:
        """Gives the batch the state of the environment."""
        self._meet(data)
        self._rows["time"][...] = data.time
        for own, row in self._state:
            row[:] = own

    def advance(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        ctrl: NDArray[np.float64],
        nstep: int,
    ) -> None:
        """Takes over the state and what is derived from it."""
        self._meet(data)
        data.ctrl[:] = ctrl
        data.time = self._rows["time"].item()
        for own, row in self._all:
            own[:] = row

    def _meet(self, data: mujoco.MjData) -> None:
        """Looks the arrays of the data up, once: there are dozens."""
        if data is not self._data:
            self._data = data
            pairs = {name: (getattr(data, name), row) for name, row in self._rows.items()}
            del pairs["time"]
            self._all = list(pairs.values())
            self._state = [pairs[name] for name in STATE if name in pairs]

    def forget(self) -> None:
        """At a reset: what comes next does not depend on what was before."""
        super().forget()
        self.fresh = True


class BatchedEnv(SyncVectorEnv):
    """Environments of one class, stepped by a `Batch`; else as Gymnasium's `SyncVectorEnv`."""

    def __init__(
        self,
        place: str,
        num_envs: int,
        max_episode_steps: int | None,
        nthread: int,
        autoreset_mode: AutoresetMode | str,
        contact: ContactModel | None,
        simulator: Options,
        **kwargs: Any,
    ) -> None:
        def make() -> gymnasium.Env[Any, Any]:
            env = make_exact(place, contact=contact, simulator=simulator, **kwargs)
            limit = max_episode_steps
            return env if limit is None else gymnasium.wrappers.TimeLimit(env, limit)

        super().__init__([make] * num_envs, autoreset_mode=autoreset_mode)
        self._inner: list[Any] = [env.unwrapped for env in self.envs]
        first: Exact = self._inner[0]
        options: Any = {"on_failure": "best", **simulator}
        self.batch = Batch(_felt(self._inner[0]), num_envs, nthread, contact, **options)
        sizes = {name: np.size(getattr(first.data, name)) for name in (*STATE, *DERIVED)}
        self._bound = {name: self.batch.bind(name) for name, size in sizes.items() if size}
        self._bound["sensordata"] = self.batch.bind("sensordata")[:, : first.model.nsensordata]
        self._ctrl = self.batch.bind("ctrl")
        self._own: dict[str, NDArray[Any]] = {}
        self._models = [Fields(env.model) for env in self._inner]
        for k in range(num_envs):
            self._follow(k)
        for k, env in enumerate(self._inner):
            rows = {name: field[k, ...] for name, field in self._bound.items()}
            env.stepping = FromBatch(rows, contact, simulator)

    def step(self, actions: Any) -> Any:
        """Steps all of them; those that ended are reset as `autoreset_mode` says."""
        actions = real_numbers("actions", actions)
        shape = self.action_space.shape
        if actions.shape != shape:
            raise InvalidInput("actions", f"must have shape {shape}", actions.shape)
        next_step = self.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        running = np.flatnonzero(~self._autoreset_envs) if next_step else np.arange(self.num_envs)
        if running.size:
            self._step_physics(running, actions)
        return super().step(actions)

    def _step_physics(self, running: NDArray[np.int_], actions: NDArray[Any]) -> None:
        """Takes the steps that the environments of these numbers are about to ask for."""
        fresh = [k for k in running if self._inner[k].stepping.fresh]
        if fresh:
            self.batch.reset(np.array(fresh, np.int32))  # which drops the last steps' impulses
        for k in fresh:
            self._inner[k].stepping.fresh = False
        for k in running:
            env = self._inner[k]
            if self._models[k].edited:
                self._follow(k)
            env.stepping.hand_over(env.data)
            self._ctrl[k] = env.controls(actions[k])
        self.batch.step(running.astype(np.int32), self._inner[0].frame_skip)
        for k in running:
            self._inner[k].stepping.certificate = float(self.batch.certificate[k])

    def _follow(self, k: int) -> None:
        """Takes edits of an environment's model over to its simulation."""
        model = self._inner[k].model
        for name in EDITABLE:
            value = _field(model, name)
            rows = self._own.get(name)
            if not np.array_equal(
                value, _field(self.batch.model, name) if rows is None else rows[k]
            ):
                if rows is None:
                    rows = self._own[name] = self.batch.expand(name)
                rows[k] = value
        self._models[k].note()


def _felt(env: Any) -> mujoco.MjModel:
    """The environment's model, with a sensor of acceleration: with one the steps compute the forces
    on bodies (`cfrc_ext`), which some environments observe."""
    spec = mujoco.MjSpec.from_file(env.fullpath)
    body = next(body for body in spec.bodies if body.name and body.name != "world")
    spec.add_sensor(
        type=mujoco.mjtSensor.mjSENS_FRAMELINACC,
        objtype=mujoco.mjtObj.mjOBJ_XBODY,
        objname=body.name,
    )
    return spec.compile()


def make_batched(
    place: str,
    num_envs: int,
    max_episode_steps: int | None = None,
    nthread: int = 0,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    contact: ContactModel | None = None,
    simulator: Options | None = None,
    **kwargs: Any,
) -> BatchedEnv:
    """Environments of the class at "module:Class" on `nthread` threads (0: all processors)."""
    for name, value, least in (("num_envs", num_envs, 1), ("nthread", nthread, 0)):
        if not (is_whole(value) and least <= value < 2**31):
            raise InvalidInput(name, f"is {value!r}: a whole number, {least} or more")
    return BatchedEnv(
        place, int(num_envs), max_episode_steps, nthread, autoreset_mode, contact,
        checked_options(simulator), **kwargs,
    )  # fmt: skip
