"""`stiction render`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from stiction.cli.arguments import Contact, Dt, Equality, Keyframe, Settings, Time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stiction.record import Trajectory
    from stiction.record.render import Film

Angle = Annotated[
    float | None, tyro.conf.arg(metavar="DEG", help_behavior_hint="(default: the model's own)")
]


def command(
    scene: Annotated[
        str,
        tyro.conf.arg(
            metavar="SCENE|TRAJECTORY",
            help="a shipped name (`stiction scenes`), an .xml, a .urdf, or `run`'s trajectory.npz",
        ),
    ],
    /,
    *,
    out: Annotated[
        Path | None,
        tyro.conf.arg(
            metavar="FILE",
            help=".mp4, .webm, .gif, .webp; .png: the picture in the middle",
            help_behavior_hint="(default: the scene's name, .mp4)",
        ),
    ] = None,
    contact: Contact = "coulomb",
    beside: Annotated[
        Literal["nothing", "mujoco", "mujoco-A", "mujoco-C"],
        tyro.conf.arg(help="MuJoCo's own contact beside it, as for `compare`"),
    ] = "nothing",
    time: Time = None,
    dt: Dt = None,
    equality: Equality = "soft",
    keyframe: Keyframe = None,
    settings: Settings = (),
    slow: Annotated[float, tyro.conf.arg(help="slow motion: times slower than real time")] = 1.0,
    fps: Annotated[float, tyro.conf.arg(help="frames in a second")] = 30.0,
    size: Annotated[
        tuple[int, int], tyro.conf.arg(metavar="W H", help="pixels, of all sides together")
    ] = (640, 400),
    camera: Annotated[
        str,
        tyro.conf.arg(
            metavar="NAME",
            help="a camera of the model, by name or number",
            help_behavior_hint="(default: one that sees what moves)",
        ),
    ] = "",
    follow: Annotated[str, tyro.conf.arg(metavar="BODY", help="keep this body in the middle")] = "",
    azimuth: Angle = None,
    elevation: Angle = None,
    zoom: Annotated[float, tyro.conf.arg(help="larger: nearer")] = 1.0,
    contacts: Annotated[
        bool, tyro.conf.arg(help="contacts coloured by mode, with arrows of force")
    ] = True,
    clear: Annotated[bool, tyro.conf.arg(help="bodies that can be seen through")] = False,
    titles: Annotated[bool, tyro.conf.arg(help="contact model and time, written in")] = True,
) -> int:
    """Film a scene or a trajectory, without a screen; needs the extra `render` for clips."""
    from stiction.cli import DONE
    from stiction.cli.folder import check_folder
    from stiction.cli.progress import share_bar
    from stiction.cli.scene import name_of
    from stiction.record.page import title_of
    from stiction.record.render.encode import PICTURE, check_format, write_clip
    from stiction.record.render.film import Camera, Look, shoot

    path = out or Path(f"{name_of(scene)}.mp4")
    check_format(path)
    check_folder(path.parent)
    view = Camera(camera, follow, azimuth, elevation, zoom=zoom)
    look = Look(*size, view, contacts, clear, titles)
    if scene.endswith(".npz"):
        trajectories = [_load(scene, beside, time, dt, keyframe, settings)]
    else:
        names = [contact] if beside == "nothing" else [contact, beside]
        trajectories = _simulate(scene, names, time, dt, equality, keyframe, settings, slow * fps)
    film = shoot(
        trajectories,
        titles=[title_of(trajectory.contact) for trajectory in trajectories],
        fps=fps,
        slow=slow,
        look=look,
    )
    replaced = " in the place of an earlier one" if path.exists() else ""
    if path.suffix.lower() == PICTURE:
        film.save(path)
    else:
        with share_bar() as tell:
            write_clip(path, _told(film, tell), film.fps, look.height, film.width)
    print(f"wrote {path} ({path.stat().st_size / 1e6:.2g} MB){replaced}")
    return DONE


def _told(film: Film, tell: Callable[[float, str], None]) -> Iterator[NDArray[np.uint8]]:
    """The film's frames, each told of."""
    total = len(film.time)
    for k, frame in enumerate(film.frames()):
        tell(k / total, f"frame {k + 1} of {total}")
        yield frame


def _simulate(
    scene: str,
    names: list[str],
    time: float | None,
    dt: float | None,
    equality: Equality,
    keyframe: str | None,
    settings: tuple[str, ...],
    rate: float,
) -> list[Trajectory]:
    """Runs the scene under each of the names; `rate`: samples in a second of the simulation."""
    from math import ceil

    from stiction.cli.progress import progress_bar
    from stiction.cli.scene import choose
    from stiction.record.comparison import check_names, compare

    chosen = choose(scene, settings=settings, dt=dt, seconds=time, keyframe=keyframe)
    with progress_bar() as tell:
        outcomes = compare(
            chosen.load,
            check_names(names),
            chosen.seconds,
            watch=chosen.watch,
            equality=equality,
            samples=max(1, ceil(rate * chosen.seconds)),
            on_progress=tell,
        )
    for outcome in outcomes:
        if outcome.failure:
            print(f"{outcome.name} ended at {outcome.time[-1]:.4g} s: {outcome.failure}")
    return [outcome.trajectory for outcome in outcomes]


def _load(
    path: str,
    beside: str,
    time: float | None,
    dt: float | None,
    keyframe: str | None,
    settings: tuple[str, ...],
) -> Trajectory:
    from stiction.errors import InvalidInput
    from stiction.record import Trajectory

    if beside != "nothing" or any(v is not None for v in (time, dt, keyframe)) or settings:
        raise InvalidInput(path, "a trajectory is shown as it was recorded, and by itself")
    return Trajectory.load(path)
