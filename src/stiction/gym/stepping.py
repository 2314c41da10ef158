"""What all environments share: a simulator in the place of `mj_step`, and the certificate."""

from __future__ import annotations

from typing import Any, Unpack, cast

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.contact.models.model import ContactModel
from stiction.errors import InvalidInput
from stiction.simulate.options import is_whole
from stiction.simulate.settings import Options, check_settings
from stiction.simulate.simulator import Simulator


class Stepping:
    """Steps data by a simulator of its model.

    Learning goes on for days: where no solver meets the tolerance the best attempt is taken, and
    the certificate says how far it is off, unless `on_failure` tells otherwise.
    """

    def __init__(self, contact: ContactModel | None = None, **options: Unpack[Options]) -> None:
        self._contact, self._options = contact, {"on_failure": "best", **options}
        check_settings(contact, **cast(Options, self._options))  # now, not at the first step
        self._simulator: Simulator | None = None
        self.certificate = 0.0
        """Largest violation of any law of contact in the last call's steps."""

    def simulator(self, model: mujoco.MjModel) -> Simulator:
        """The simulator of that model: another one if the model is."""
        if self._simulator is None or self._simulator.model is not model:
            options: Any = self._options
            self._simulator = Simulator(model, self._contact, **options)
        return self._simulator

    def step(self, model: mujoco.MjModel, data: mujoco.MjData, nstep: int) -> None:
        """Takes the steps, in the place of `mj_step`."""
        simulator = self.simulator(model)
        simulator.reset_statistics()
        simulator.step(data, nstep)
        self.certificate = float(simulator.statistics.worst)

    def advance(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        ctrl: NDArray[np.float64],
        nstep: int,
    ) -> None:
        """What `MujocoEnv._step_mujoco_simulation` does, by stiction."""
        data.ctrl[:] = ctrl
        self.step(model, data, nstep)
        mujoco.mj_rnePostConstraint(model, data)

    def forget(self) -> None:
        """At a reset: what comes next does not depend on what was before."""
        self.certificate = 0.0
        if self._simulator is not None:
            self._simulator.forget()


def checked_options(simulator: Any) -> Options:
    """Options of `Simulator`, by name; InvalidInput for what are none."""
    given = {} if simulator is None else simulator
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise InvalidInput("simulator", f"is {simulator!r}: options of Simulator by their names")
    unknown = sorted(set(given) - set(Options.__annotations__))
    if unknown:
        known = ", ".join(Options.__annotations__)
        raise InvalidInput("simulator", f"has {unknown[0]!r}: options are {known}")
    return cast(Options, given)


def checked_seed(seed: Any) -> int | None:
    """A seed as Gymnasium takes it; InvalidInput for what is none."""
    if seed is None:
        return None
    if not (is_whole(seed) and seed >= 0):
        raise InvalidInput("seed", f"is {seed!r}: a whole number, 0 or more, or None")
    return int(seed)


class Exact:
    """Put before a `MujocoEnv` in a class's bases, makes it step by stiction.

    contact, simulator: the contact model, and options of `Simulator`.
    `info["certificate"]` is the largest violation of any law of contact since the last step.
    """

    model: mujoco.MjModel
    data: mujoco.MjData

    def __init__(
        self,
        *args: Any,
        contact: ContactModel | None = None,
        simulator: Options | None = None,
        **kwargs: Any,
    ) -> None:
        self.stepping = Stepping(contact, **checked_options(simulator))
        super().__init__(*args, **kwargs)
        if hasattr(self, "_ezpickle_kwargs"):  # copies are made of what the environment notes here
            self._ezpickle_kwargs |= {"contact": contact, "simulator": simulator}

    def _step_mujoco_simulation(self, ctrl: NDArray[np.float64], n_frames: int) -> None:
        self.stepping.advance(self.model, self.data, ctrl, n_frames)

    def controls(self, action: NDArray[Any]) -> NDArray[Any]:
        """(nu,) the controls that an action stands for."""
        return action

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """As the environment's own, with the certificate in `info`."""
        *rest, info = super().step(action)  # type: ignore[misc]
        return *rest, {**info, "certificate": self.stepping.certificate}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """As the environment's own, with the certificate in `info`."""
        seed = checked_seed(seed)
        self.stepping.forget()
        observation, info = super().reset(seed=seed, options=options)  # type: ignore[misc]
        return observation, {**info, "certificate": self.stepping.certificate}
