"""`Task`: what our own environments share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import mujoco
import numpy as np
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.spaces import Box
from gymnasium.utils import EzPickle
from numpy.typing import NDArray

from stiction.contact.problem.validation import real
from stiction.errors import InvalidInput
from stiction.gym.stepping import Exact, checked_seed

Array = NDArray[np.float64]


class Task(Exact, MujocoEnv, EzPickle):
    """A `MujocoEnv` with actions in [-1, 1], stepped by stiction.

    What a class of it sets and defines is below.
    """

    model_file: ClassVar[str]
    """In `assets`."""
    frames: ClassVar[int]
    """Steps of the simulation for each action."""
    actions: ClassVar[int]
    observations: ClassVar[int]
    camera: ClassVar[dict[str, Any]]
    asks: ClassVar[dict[str, tuple[tuple[int, ...], float]]]
    """Shape, and least value, of what `reset(options=...)` may set."""

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium's own form)
        "render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"]
    }

    def __init__(self, **kwargs: Any) -> None:
        EzPickle.__init__(self, **kwargs)
        self.asked: dict[str, Any] = {}
        """What the last reset's `options` set of the start, in the place of what is drawn."""
        super().__init__(
            model_path=str(Path(__file__).parent / "assets" / self.model_file),
            frame_skip=self.frames,
            observation_space=Box(-np.inf, np.inf, (self.observations,), np.float64),
            default_camera_config=self.camera,
            **kwargs,
        )
        self.metadata = {**self.metadata, "render_fps": round(1.0 / self.dt)}

    def _set_action_space(self) -> Box:
        self.action_space = Box(-1.0, 1.0, (self.actions,), np.float32)
        return self.action_space

    def controls(self, action: NDArray[Any]) -> Array:
        """(nu,) the controls that an action stands for, those beyond its bounds as at them."""
        given = real("action", action, (self.actions,))
        return self.drive(np.clip(given, -1.0, 1.0))

    def drive(self, action: Array) -> Array:
        """(nu,) the controls that an action within its bounds stands for."""
        raise NotImplementedError

    def observe(self) -> Array:
        """(observations,) what is seen of the state."""
        raise NotImplementedError

    def score(self) -> tuple[float, bool, dict[str, Any]]:
        """(reward, terminated, info) of the state that an action led to."""
        raise NotImplementedError

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """A new start; see the class for the `options`."""
        asked = self._checked({} if options is None else options)
        seed = checked_seed(seed)
        self.asked = asked
        return super().reset(seed=seed, options=options)

    def _checked(self, options: Any) -> dict[str, Any]:
        """What a reset is asked for; InvalidInput names what it cannot set."""
        if not isinstance(options, Mapping):
            raise InvalidInput("options", f"is {options!r}: values by name")
        asked = {}
        for name, value in options.items():
            if name not in self.asks:
                known = ", ".join(self.asks)
                raise InvalidInput("options", f"has {name!r}: a reset sets {known}")
            shape, least = self.asks[name]
            asked[name] = real(f"options[{name!r}]", value, shape)
            if not (asked[name] >= least).all():
                raise InvalidInput(f"options[{name!r}]", f"is {value!r}: {least:g} or more")
        return asked

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes the action; see the class for what comes of it."""
        self.do_simulation(self.controls(action), self.frame_skip)
        mujoco.mj_kinematics(self.model, self.data)  # of the new state, not the one before
        reward, terminated, info = self.score()
        if self.render_mode == "human":
            self.render()
        info["certificate"] = self.stepping.certificate
        return self.observe(), reward, terminated, False, info
