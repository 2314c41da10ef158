"""The ids that importing `stiction.gym` registers.

Gymnasium's own MuJoCo environments are `stiction/` and their name; their spaces, rewards and ends
are Gymnasium's.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import gymnasium
from gymnasium.envs.registration import registry

from stiction.gym.stepping import Exact

NAMESPACE = "stiction"

THEIRS = (
    "Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5", "HumanoidStandup-v5",
    "InvertedDoublePendulum-v5", "InvertedPendulum-v5", "Pusher-v5", "Reacher-v5", "Swimmer-v5",
    "Walker2d-v5",
)  # fmt: skip
"""Gymnasium's, stepped by stiction."""

OURS = {
    "PinchLift-v0": ("stiction.gym.pinch_lift:PinchLift", 200),
    "PushT-v0": ("stiction.gym.push_t:PushT", 300),
}
"""Where they are, and how many steps an episode has."""


def ids() -> tuple[str, ...]:
    """All ids that are registered."""
    return tuple(f"{NAMESPACE}/{name}" for name in (*OURS, *THEIRS))


def register_all() -> None:
    """Registers them with Gymnasium; those that are registered already stay as they are."""
    for name, (place, steps) in OURS.items():
        _register(name, max_episode_steps=steps, kwargs={"place": place})
    for name in THEIRS:
        spec = registry.get(name)
        if spec is not None:  # a later Gymnasium may have it no more
            _register(
                name,
                max_episode_steps=spec.max_episode_steps,
                reward_threshold=spec.reward_threshold,
                kwargs={**spec.kwargs, "place": spec.entry_point},
            )


def _register(name: str, **settings: Any) -> None:
    if f"{NAMESPACE}/{name}" not in registry:
        gymnasium.register(
            id=f"{NAMESPACE}/{name}",
            entry_point="stiction.gym.registration:make_exact",
            vector_entry_point="stiction.gym.vector:make_batched",
            **settings,
        )


_classes: dict[str, type] = {}


def exact_class(place: str) -> type:
    """The class at "module:Class", stepped by stiction; one and the same each time."""
    if place not in _classes:
        module, _, name = place.partition(":")
        theirs: type = getattr(import_module(module), name)
        if issubclass(theirs, Exact):
            return theirs
        made = type(f"Exact{name}", (Exact, theirs), {"__doc__": theirs.__doc__})
        made.__module__, made.__qualname__ = __name__, made.__name__
        globals()[made.__name__] = made  # where pickle finds it
        _classes[place] = made
    return _classes[place]


def make_exact(place: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """An environment of the class at that place, stepped by stiction."""
    made: gymnasium.Env[Any, Any] = exact_class(place)(**kwargs)
    return made
