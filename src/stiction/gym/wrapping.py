"""`wrap`: an environment that is there already, stepped by stiction."""

from __future__ import annotations

from typing import Any, Unpack

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from stiction.contact.models.model import ContactModel
from stiction.errors import InvalidInput
from stiction.gym.dm_control import wrap_physics
from stiction.gym.stepping import Stepping, checked_seed
from stiction.simulate.settings import Options


def wrap(env: Any, contact: ContactModel | None = None, **options: Unpack[Options]) -> Any:
    """The environment, stepped by stiction; all else is as it was.

    env: a Gymnasium environment whose innermost one is a `MujocoEnv`: then what is returned is a
    `gymnasium.Wrapper`, with `info["certificate"]`, the largest violation of any law of contact in
    the steps since the last action. Or dm_control's `Physics`, or an environment that has one as
    `physics` (its suite, Composer): then it is the same object, and `physics.certificate` tells.
    See `patch_dm_control` where dm_control itself does not load.
    contact, options: as of `Simulator`, except that where no solver meets the tolerance the best
    attempt is taken unless `on_failure` tells otherwise.
    """
    if isinstance(env, gymnasium.Env):
        if not hasattr(env.unwrapped, "_step_mujoco_simulation"):
            raise InvalidInput("env", f"is {env}: its innermost environment is no MujocoEnv")
        return ExactWrapper(env, contact, **options)
    physics = getattr(env, "physics", env)
    if not all(hasattr(physics, name) for name in ("model", "data", "legacy_step", "step")):
        raise InvalidInput("env", f"is {env!r}: neither a MujocoEnv nor dm_control's physics")
    wrap_physics(env, Stepping(contact, **options))
    return env


class ExactWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A `MujocoEnv` that steps by stiction; `gymnasium.make(env.spec)` makes another."""

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        contact: ContactModel | None = None,
        **options: Unpack[Options],
    ) -> None:
        # As they are: a contact model of one's own need not be one that can be copied.
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, contact=contact, **options)
        gymnasium.Wrapper.__init__(self, env)
        self.stepping = Stepping(contact, **options)
        self._take_over()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy, or from a pickle: Gymnasium's environments are made anew for these, and step
        by MuJoCo then."""
        self.__dict__.update(state)
        self._take_over()

    def _take_over(self) -> None:
        """Puts our steps into the place of the environment's own."""
        inner: Any = self.env.unwrapped
        inner._step_mujoco_simulation = self._advance

    def _advance(self, ctrl: NDArray[np.float64], n_frames: int) -> None:
        inner: Any = self.env.unwrapped
        self.stepping.advance(inner.model, inner.data, ctrl, n_frames)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """As the environment's own, with the certificate in `info`."""
        *rest, info = self.env.step(action)
        return *rest, {**info, "certificate": self.stepping.certificate}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """As the environment's own, with the certificate in `info`."""
        seed = checked_seed(seed)
        self.stepping.forget()
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, {**info, "certificate": self.stepping.certificate}
