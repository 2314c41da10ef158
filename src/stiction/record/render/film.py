"""`Film`: what a clip shows, frame by frame; `shoot` makes one of trajectories."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from stiction.errors import InvalidInput, StictionError, unknown
from stiction.record import marks
from stiction.record.contacts import Contacts, none
from stiction.record.contacts_again import ContactsAgain
from stiction.record.motion import body_id
from stiction.record.render.encode import (
    PICTURE,
    can_encode,
    check_format,
    encode_clip,
    png,
    write_clip,
)
from stiction.record.render.offscreen import NoGraphics, draw_frames
from stiction.record.trajectory import Trajectory

Array = NDArray[np.float64]

FPS = 30.0
LOUDEST = 98.0
"""Percentile of the forces that has the longest arrow: an impact would shrink all others."""


@dataclass(frozen=True)
class Camera:
    """Where from. Without anything: a free camera at the model's own angles that sees what moves,
    and follows what goes far."""

    name: str | int = ""
    """One of the model's cameras, by name or number."""
    follow: str = ""
    """Name of a body to follow."""
    azimuth: float | None = None
    """[deg]."""
    elevation: float | None = None
    """[deg]."""
    distance: float | None = None
    """[m]."""
    lookat: tuple[float, float, float] | None = None
    """[m]."""
    zoom: float = 1.0
    """Larger: nearer."""

    def plan(self, model: mujoco.MjModel) -> dict[str, Any]:
        """As `draw.py` reads it; InvalidInput for a camera or a body that the model has not."""
        body = body_id(model, self.follow) if self.follow in _bodies(model) else -1
        if self.follow and body < 0:
            raise InvalidInput("follow", unknown(self.follow, _bodies(model)))
        if not self.zoom > 0.0:
            raise InvalidInput("zoom", f"is {self.zoom}: a positive number")
        plan = {**asdict(self), "fixed": self._number(model), "body": body}
        del plan["name"], plan["follow"]
        return plan

    def _number(self, model: mujoco.MjModel) -> int:
        names = [model.camera(k).name or str(k) for k in range(model.ncam)]
        wanted = str(self.name)
        if not wanted:
            return -1
        if wanted in names:
            return names.index(wanted)
        if wanted.isdigit() and int(wanted) < model.ncam:
            return int(wanted)
        if not names:
            raise InvalidInput("camera", f"unknown: {wanted!r}; the model has none of its own")
        raise InvalidInput("camera", unknown(wanted, names))


def _bodies(model: mujoco.MjModel) -> list[str]:
    return [model.body(body).name for body in range(1, model.nbody) if model.body(body).name]


@dataclass(frozen=True)
class Look:
    """How it is drawn."""

    width: int = 640
    """[pixels], of all sides together."""
    height: int = 400
    camera: Camera = field(default_factory=Camera)
    contacts: bool = True
    """Whether contacts are drawn: green sticks, magenta slides; arrows are forces."""
    clear: bool = False
    """Whether bodies can be seen through."""
    titles: bool = True
    """Whether titles and the time are written in."""
    groups: tuple[int, ...] = (1, 1, 1, 0, 0, 0)
    """Which of MuJoCo's groups of geoms are drawn."""

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            value = getattr(self, name)
            if not 16 <= value <= 4096 or value % 2:
                raise InvalidInput(name, f"is {value}: an even number of pixels, 16 to 4096")


@dataclass(frozen=True, eq=False)
class Shot:
    """One side of a film: n frames of a scene."""

    title: str
    model: mujoco.MjModel
    qpos: Array
    """(n, nq)."""
    mocap_pos: Array
    """(n, nmocap, 3)."""
    mocap_quat: Array
    """(n, nmocap, 4)."""
    contacts: list[Contacts]
    """Of each frame."""

    def arrays(self) -> dict[str, Any]:
        """As `draw.py` reads them; contacts one after another, frame k from start[k] on."""
        counts = [len(contacts.mode) for contacts in self.contacts]
        forces = [
            np.einsum("ni,nij->nj", contacts.force, contacts.frame) for contacts in self.contacts
        ]
        return {
            "qpos": self.qpos,
            "mocap_pos": self.mocap_pos,
            "mocap_quat": self.mocap_quat,
            "start": np.concatenate([[0], np.cumsum(counts)]).astype(int),
            "position": np.concatenate([contacts.position for contacts in self.contacts]),
            "force": np.concatenate(forces),
            "colour": np.concatenate([marks.colours(contacts) for contacts in self.contacts]),
        }


@dataclass(frozen=True, eq=False)
class Film:
    """Frames of one scene, or of several beside each other. In a notebook it shows itself."""

    time: Array
    """(n,) of the simulation [s]."""
    shots: tuple[Shot, ...]
    fps: float
    """Frames shown in a second."""
    look: Look = field(default_factory=Look)

    def __repr__(self) -> str:
        titles = ", ".join(shot.title for shot in self.shots)
        return f"Film({titles}; {len(self.time)} frames, {len(self.time) / self.fps:.3g} s)"

    def frames(self) -> Iterator[NDArray[np.uint8]]:
        """Draws the frames, (height, width, 3) each; NoGraphics where that cannot be done."""
        look, width = self.look, self.width
        with TemporaryDirectory(prefix="stiction-") as place:
            folder = Path(place)
            arrays: dict[str, Any] = {"time": self.time}
            strongest = 0.0
            for k, shot in enumerate(self.shots):
                own = shot.arrays()
                arrays.update({f"{name}{k}": array for name, array in own.items()})
                sizes = np.linalg.norm(own["force"], axis=1)
                if (sizes > 0.0).any():
                    strongest = max(strongest, float(np.percentile(sizes[sizes > 0.0], LOUDEST)))
                mujoco.mj_saveModel(shot.model, str(folder / f"{k}.mjb"), None)
            np.savez(folder / "film.npz", **arrays)
            plan = {
                "width": width,
                "height": look.height,
                "titles": [shot.title if look.titles else "" for shot in self.shots],
                "clock": look.titles,
                "font": 100 if look.height < 500 else 150,
                "contacts": look.contacts,
                "clear": look.clear,
                "groups": look.groups,
                "force": strongest or 1.0,
                "camera": look.camera.plan(self.shots[0].model),
            }
            (folder / "film.json").write_text(json.dumps(plan), encoding="utf-8")
            yield from draw_frames(folder, look.height, width)

    @property
    def width(self) -> int:
        """Of a frame [pixels], even for every side."""
        sides = len(self.shots)
        return sides * 2 * (self.look.width // (2 * sides))

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes a clip (.mp4, .webm, .gif, .webp) or the picture in its middle (.png)."""
        path = Path(path)
        check_format(path)
        if path.suffix.lower() == PICTURE:
            path.write_bytes(self.picture())
            return path
        return write_clip(path, self.frames(), self.fps, self.look.height, self.width)

    def picture(self, frame: int | None = None) -> bytes:
        """PNG of a frame, by default the one in the middle."""
        number = len(self.time) // 2 if frame is None else range(len(self.time))[frame]
        for k, pixels in enumerate(self.frames()):
            if k == number:
                return png(pixels)
        raise NoGraphics("the drawing process ended early")

    def clip(self) -> bytes:
        """The clip as MP4."""
        check_format(Path("clip.mp4"))
        return encode_clip(list(self.frames()), self.fps)

    def _repr_html_(self) -> str:
        try:
            if not can_encode():
                return f'<img src="{data_url(self.picture(), "image/png")}">'
            source = data_url(self.clip(), "video/mp4")
        except NoGraphics as error:
            return f"<p>{escape(repr(self))}: {escape(str(error))}</p>"
        return f'<video controls loop autoplay muted playsinline src="{source}"></video>'


def data_url(content: bytes, kind: str) -> str:
    """The content within an address, for a page that is one file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def shoot(
    trajectories: Sequence[Trajectory],
    *,
    titles: Sequence[str] | None = None,
    fps: float = FPS,
    slow: float = 1.0,
    most: int | None = None,
    look: Look | None = None,
) -> Film:
    """A film of one trajectory, or of several beside each other, as long as the shortest.

    titles  by default the contact models' names
    slow    how much slower than real time: 4 for slow motion
    most    frames at most; where there are more, fewer are shown in a second
    """
    if not trajectories:
        raise InvalidInput("trajectories", "none is given")
    for name, value in (("fps", fps), ("slow", slow)):
        if not 0.0 < value < np.inf:
            raise InvalidInput(name, f"is {value}: a positive number")
    begin = max(trajectory.time[0] for trajectory in trajectories)
    span = float(min(trajectory.time[-1] for trajectory in trajectories) - begin)
    count = max(1, round(span * slow * fps))
    if most is not None and count > most:
        count, fps = most, fps * most / count
    time = begin + span * np.arange(count + 1) / count
    names = titles or [trajectory.contact for trajectory in trajectories]
    shots = tuple(
        _shot(trajectory, title, time)
        for trajectory, title in zip(trajectories, names, strict=True)
    )
    return Film(time, shots, fps, look or Look())


def _shot(trajectory: Trajectory, title: str, time: Array) -> Shot:
    within = 0.5 * trajectory.timestep
    samples = np.maximum(np.searchsorted(trajectory.time, time + within, "right") - 1, 0)
    try:
        again: ContactsAgain | None = ContactsAgain(trajectory)
    except StictionError:
        again = None
    found: dict[int, Contacts] = {}
    for sample in dict.fromkeys(samples.tolist()):
        found[sample] = none()
        if again is not None:
            with suppress(StictionError):
                found[sample] = again.find(sample)[0]
    return Shot(
        title,
        trajectory.model(),
        trajectory.qpos[samples],
        trajectory.mocap_pos[samples],
        trajectory.mocap_quat[samples],
        [found[sample] for sample in samples.tolist()],
    )
