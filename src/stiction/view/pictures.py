"""Pictures and clips that a visitor takes: drawn on this machine, sent to the browser as files."""

from __future__ import annotations

from collections.abc import Callable
from math import atan2, degrees, hypot
from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np

from stiction.errors import StictionError
from stiction.record.contacts import Contacts
from stiction.record.render import Camera, Film, Look
from stiction.record.render.film import Shot
from stiction.view.server import Server
from stiction.view.session import Session, View

FPS = 10.0
"""Frames that are kept of a second on the clock: those that the panel's figures are drawn at."""

LONGEST = 60.0
"""Of a recording on the clock [s]; it ends there by itself."""

SIZE = (960, 600)


class Pictures:
    """Two buttons. What they take is drawn in a thread of its own, while the page goes on."""

    def __init__(
        self, server: Server, session: Session, ask: Callable[[Callable[[], None]], None]
    ) -> None:
        self._session, self._ask = session, ask
        self._frames: list[tuple[float, tuple[_Kept, ...]]] | None = None
        self._began = 0.0
        with server.gui.add_folder("Pictures", expand_by_default=False):
            shot = server.gui.add_button("Screenshot")
            self._record = server.gui.add_button("Record")
        for button in (shot, self._record):
            server.allow(button, lambda value: isinstance(value, bool))
        shot.on_click(lambda event: ask(lambda: self._take(event.client)))
        self._record.on_click(lambda event: ask(lambda: self._toggle(event.client)))

    def sample(self, views: tuple[View, ...]) -> None:
        """Keeps what is shown, if a recording is on."""
        if self._frames is None or not views:
            return
        if perf_counter() - self._began > LONGEST:
            self._session.notice = f"the recording was ended after {LONGEST:g} s"
            self._toggle(self._client)
            return
        self._frames.append((self._session.time, tuple(map(_Kept, views))))

    def _take(self, client: Any) -> None:
        views = self._session.views()
        frames = [(self._session.time, tuple(map(_Kept, views)))]
        self._send(client, frames, f"{self._name}.png")

    def _toggle(self, client: Any) -> None:
        if self._frames is None:
            self._frames, self._client, self._began = [], client, perf_counter()
            self._record.label = "Stop recording"
            return
        frames, self._frames = self._frames, None
        self._record.label = "Record"
        if frames:
            self._send(client, frames, f"{self._name}.mp4")

    @property
    def _name(self) -> str:
        plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in self._session.name)
        return plain or "scene"

    def _send(self, client: Any, frames: list[tuple[float, tuple[_Kept, ...]]], name: str) -> None:
        """Draws the frames from where the visitor looks, and sends the file."""
        sides = len(frames[-1][1])
        same = [(time, kept) for time, kept in frames if len(kept) == sides]
        film = Film(
            np.array([time for time, _ in same]),
            tuple(_shot([kept[side] for _, kept in same]) for side in range(sides)),
            FPS,
            Look(*SIZE, camera=_camera_of(client)),
        )

        def draw() -> None:
            count = "" if len(same) == 1 else f", {len(same)} frames"
            note = client.add_notification("Drawing", f"{name}{count}", loading=True)
            try:
                content = film.picture() if name.endswith(".png") else film.clip()
                client.send_file_download(name, content, save_immediately=True)
            except (StictionError, OSError) as error:
                said = f"{name}: {error}"
                self._ask(lambda: self._tell(said))
            finally:
                note.remove()

        Thread(target=draw, name="stiction-picture", daemon=True).start()

    def _tell(self, said: str) -> None:
        self._session.notice = said


class _Kept:
    """A view, as it was."""

    def __init__(self, view: View) -> None:
        self.title, self.model = view.title, view.model
        self.qpos = view.data.qpos.copy()
        self.mocap_pos, self.mocap_quat = view.data.mocap_pos.copy(), view.data.mocap_quat.copy()
        self.contacts: Contacts = view.contacts


def _shot(kept: list[_Kept]) -> Shot:
    return Shot(
        kept[-1].title,
        kept[-1].model,
        np.stack([one.qpos for one in kept]),
        np.stack([one.mocap_pos for one in kept]),
        np.stack([one.mocap_quat for one in kept]),
        [one.contacts for one in kept],
    )


def _camera_of(client: Any) -> Camera:
    """The visitor's direction of view; the distance is the film's own, which sees what moves."""
    ahead = np.asarray(client.camera.look_at) - np.asarray(client.camera.position)
    return Camera(
        azimuth=degrees(atan2(ahead[1], ahead[0])),
        elevation=degrees(atan2(ahead[2], hypot(ahead[0], ahead[1]))),
    )
