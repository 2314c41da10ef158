"""The shipped scenes by name, and how a scene is loaded."""

from __future__ import annotations

import os
from difflib import get_close_matches
from inspect import signature
from os import PathLike
from pathlib import Path

import mujoco

from stiction.errors import InvalidInput, as_path
from stiction.scenes import blocks, chains, grasps, humanoid, mechanisms, piles, quadruped
from stiction.scenes.scene import Loaded, Scene

_FAMILIES = (grasps, blocks, quadruped, humanoid, chains, mechanisms, piles)
_SCENES = {scene.name: scene for family in _FAMILIES for scene in family.SCENES}


def names() -> tuple[str, ...]:
    """Names of the shipped scenes, the simple ones first."""
    return tuple(_SCENES)


def get(name: str) -> Scene:
    """The shipped scene of that name."""
    if not isinstance(name, str):
        raise InvalidInput("scene", f"is {name!r}: the name of a scene")
    if name not in _SCENES:
        near = get_close_matches(name, _SCENES, n=3, cutoff=0.5)
        known = f"did you mean {' or '.join(near)}?" if near else f"one of {', '.join(_SCENES)}"
        raise InvalidInput("scene", f"unknown: {name!r}; {known}")
    return _SCENES[name]


def load(scene: str | PathLike[str], **options: object) -> Loaded:
    """The scene, ready to run: (model, data, controller).

    `scene` is a shipped name, whose `xml` takes the `options`, or the path of an .xml (MJCF)
    or a .urdf, which takes no options.
    """
    path = as_path("scene", scene)
    if path.suffix.lower() in (".xml", ".urdf"):
        return _from_file(path, options)
    shipped = get(os.fspath(scene))
    known = signature(shipped.xml).parameters
    for option in options:
        if option not in known:
            raise InvalidInput(option, f"no option of {shipped.name}; it has {', '.join(known)}")
    try:
        model = mujoco.MjModel.from_xml_string(shipped.xml(**options))
        data = mujoco.MjData(model)
        if shipped.start is not None:
            shipped.start(model, data)
        mujoco.mj_forward(model, data)
    except InvalidInput:
        raise
    except (ValueError, TypeError, ArithmeticError, mujoco.FatalError) as error:
        given = ", ".join(f"{name}={value!r}" for name, value in options.items())
        said = " ".join(str(error).split())
        raise InvalidInput("scene", f"{shipped.name} cannot be with {given}: {said}") from error
    return Loaded(model, data, shipped.control(model) if shipped.control else None)


def _from_file(path: Path, options: dict[str, object]) -> Loaded:
    if options:
        raise InvalidInput("options", f"a file takes no options, got {', '.join(options)}")
    if not path.is_file():
        raise InvalidInput("scene", f"no such file: {path}")
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise InvalidInput("scene", f"MuJoCo cannot read {path}: {error}") from error
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return Loaded(model, data, None)
