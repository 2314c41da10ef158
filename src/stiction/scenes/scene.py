"""What a shipped scene is: a model, what drives it, where it starts, what to look at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import mujoco

Controller = Callable[[mujoco.MjModel, mujoco.MjData], None]
"""Called before each step. Reads `time`, `qpos` and `qvel`, writes `ctrl`, nothing else.

What MuJoCo derives from the state (`xpos`, the mass matrix) may be one step old at that
moment, and is for `mj_step`. A controller that needs it computes it in an `MjData` of its own.
"""


class Loaded(NamedTuple):
    """A scene that is ready to run."""

    model: mujoco.MjModel
    data: mujoco.MjData
    """In the scene's initial state."""
    controller: Controller | None
    """To be called before each step; None where there is nothing to call."""


@dataclass(frozen=True)
class Scene:
    """One shipped scene. All of it is in SI units."""

    name: str
    summary: str
    """One line for a list of scenes."""
    xml: Callable[..., str]
    """MJCF text from keyword options, every one of which has a default."""
    control: Callable[[mujoco.MjModel], Controller] | None
    """Makes the controller of one run, or None: controls stay as `start` sets them."""
    start: Callable[[mujoco.MjModel, mujoco.MjData], None] | None
    """Sets the initial state of fresh data, or None: it is the model's own."""
    watch: tuple[str, ...]
    """Bodies whose slip a report should follow. They exist for all options."""
    seconds: float
    """A telling length of run [s]."""


def from_keyframe(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """A `start` that is written in the model: its first keyframe."""
    mujoco.mj_resetDataKeyframe(model, data, 0)
