"""dm_control under MuJoCo 4, and its physics stepped by stiction."""

from __future__ import annotations

import weakref
from typing import Any

import mujoco

from stiction.gym.stepping import Stepping


def patch_dm_control() -> tuple[str, ...]:
    """Lets dm_control load models under this MuJoCo; returns the names that it had to drop.

    dm_control keeps a table of the arrays of `MjModel` and `MjData`, made for the MuJoCo of its
    release, and looks all of them up for `physics.named`. Names that the installed MuJoCo has no
    more end every load with an AttributeError (1.0.50 under MuJoCo 4: `flex_vertedge` and others,
    of deformable bodies). They are taken out of the table; nothing else is touched. Call it before
    the first model is loaded; called again, or where nothing is missing, it does nothing.
    """
    try:
        from dm_control.mujoco.wrapper.mjbindings import sizes
    except ImportError as error:
        raise ImportError("patch_dm_control needs pip install dm_control") from error
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    dropped = []
    for struct, sample in (("mjmodel", model), ("mjdata", mujoco.MjData(model))):
        table = sizes.array_sizes[struct]
        absent = [name for name in table if not hasattr(sample, name)]
        for name in absent:
            del table[name]
        dropped += absent
    return tuple(dropped)


def wrap_physics(env: Any, stepping: Stepping) -> None:
    """Makes an environment's physics (or a physics by itself) step by stiction.

    Composer's environments compile their model anew, in every episode by default: what they make
    then is taken over as well.
    """
    take_over(getattr(env, "physics", env), stepping)
    if hasattr(env, "add_extra_hook"):
        env.add_extra_hook("after_compile", lambda physics, _: take_over(physics, stepping))


def take_over(physics: Any, stepping: Stepping) -> None:
    """Replaces the steps of a physics, and what a reset does beyond its own."""
    reset = physics.__class__.reset
    if not isinstance(physics, weakref.ProxyType):
        physics = weakref.proxy(physics)  # it keeps the functions below, which must not keep it

    def step(nstep: int = 1) -> None:
        with physics.check_invalid_state():
            model, data = physics.model.ptr, physics.data.ptr
            stepping.step(model, data, nstep)
            if physics.legacy_step:  # which leaves positions and velocities evaluated
                stepping.simulator(model).step1(data)
        physics.certificate = stepping.certificate

    def forget_and_reset(*args: Any, **kwargs: Any) -> Any:
        stepping.forget()
        physics.certificate = 0.0
        return reset(physics, *args, **kwargs)

    physics.step, physics.reset = step, forget_and_reset
    physics.certificate = 0.0
