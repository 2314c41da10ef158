"""From what a user types to a scene that can be made anew: shipped name, .xml or .urdf."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from stiction.errors import InvalidInput

if TYPE_CHECKING:
    import mujoco

    from stiction.scenes import Controller

FILES = (".xml", ".urdf")

COMMON = ("scene", "model", "robot", "main", "world", "trajectory")
"""Names of files that say nothing about the scene."""

SECONDS = 5.0
"""Length of run of a file, which does not say [s]."""


@dataclass(frozen=True)
class Chosen:
    """A scene with its options, time step and keyframe."""

    name: str
    source: str
    """What was typed."""
    options: dict[str, object]
    dt: float | None
    keyframe: str | None
    watch: tuple[str, ...]
    seconds: float
    xml: str
    """MJCF text of a shipped scene; empty for a file."""

    @property
    def path(self) -> str:
        """Of a file, absolute; empty for a shipped scene."""
        return "" if self.xml else str(Path(self.source).resolve())

    def load(self) -> tuple[mujoco.MjModel, mujoco.MjData, Controller | None]:
        """Model, data at the start, controller; each time anew."""
        import mujoco

        from stiction import scenes
        from stiction.scenes.options import keyframe_number

        model, data, controller = scenes.load(self.source, **self.options)
        if self.dt is not None:
            model.opt.timestep = self.dt
        if self.keyframe is not None:
            mujoco.mj_resetDataKeyframe(model, data, keyframe_number(model, self.keyframe))
            mujoco.mj_forward(model, data)
        return model, data, controller


def choose(
    source: str,
    *,
    settings: tuple[str, ...] = (),
    dt: float | None = None,
    seconds: float | None = None,
    keyframe: str | None = None,
) -> Chosen:
    """The scene that was asked for; InvalidInput names the nearest where it is unknown.

    settings: `option=value` of a shipped scene. dt, seconds: positive [s].
    """
    _positive("--dt", dt)
    _positive("--time", seconds)
    if Path(source).suffix.lower() in FILES:
        _check_file(Path(source))
        if settings:
            raise InvalidInput("--set", f"{source} is a file: only shipped scenes have options")
        name, length = name_of(source), SECONDS
        return Chosen(name, source, {}, dt, keyframe, (), seconds or length, "")
    from stiction import scenes

    if source not in scenes.names() and Path(source).is_dir():
        _check_file(Path(source))
    shipped = scenes.get(source)
    options = parse_settings(settings, inspect.signature(shipped.xml))
    try:
        xml = shipped.xml(**options)
    except (TypeError, ValueError) as error:
        raise InvalidInput("--set", f"{source} does not take {settings}: {error}") from error
    length = seconds or shipped.seconds
    return Chosen(source, source, options, dt, keyframe, shipped.watch, length, xml)


def name_of(source: str) -> str:
    """What is written for it is called so: a shipped scene's name, or a file's without its ending.

    Of a file that is called like many others, that of its folder.
    """
    path = Path(source)
    folder = path.resolve().parent.name
    return folder if path.stem.lower() in COMMON and folder else path.stem


def parse_settings(settings: tuple[str, ...], known: inspect.Signature) -> dict[str, object]:
    """`option=value` as keywords, each of the type of the option's default."""
    from stiction.scenes.options import option_value

    options: dict[str, object] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.replace("-", "_")
        if not equals:
            raise InvalidInput("--set", f"{setting!r} is not of the form option=value")
        if name not in known.parameters:
            near = get_close_matches(name, known.parameters, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known.parameters)}"
            raise InvalidInput("--set", f"the scene has no option {name!r}; {hint}")
        options[name] = option_value(known.parameters[name].default, name, text)
    return options


def _positive(name: str, value: float | None) -> None:
    if value is not None and not 0.0 < value < float("inf"):
        raise InvalidInput(name, f"is {value}: a positive time in seconds")


def _check_file(path: Path) -> None:
    if path.is_file():
        return
    if path.is_dir():
        raise InvalidInput("scene", f"{path} is a directory: name an .xml or .urdf in it")
    there = [p.name for p in path.parent.glob("*") if p.suffix.lower() in FILES]
    near = get_close_matches(path.name, there, n=1, cutoff=0.5)
    hint = f"; did you mean {path.parent / near[0]}?" if near else ""
    raise InvalidInput("scene", f"no such file: {path}{hint}")
