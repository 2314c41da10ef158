"""The page's list of scenes: those that ship, and models that a visitor sends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from stiction import scenes
from stiction.view.live import Live
from stiction.view.session import Session
from stiction.view.upload import unpack


class Picker:
    """Opens scenes as live sessions.

    upload  whether visitors may send models; what they send lies in a folder that ends with this
    make    a session of a scene's source (a shipped name or a path) and its name
    """

    def __init__(
        self, *, upload: bool = False, make: Callable[[str, str], Session] | None = None
    ) -> None:
        self.upload = upload
        self._make = make or open_scene
        self._folder = TemporaryDirectory(prefix="stiction-") if upload else None
        self._sent = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Scenes that ship."""
        return scenes.names()

    def open(self, name: str) -> Session:
        """A scene that ships; InvalidInput for another name."""
        scenes.get(name)
        return self._make(name, name)

    def receive(self, name: str, content: bytes) -> Session:
        """A model that was sent, checked first; InvalidInput says what is wrong with it."""
        assert self._folder is not None
        self._sent += 1
        folder = Path(self._folder.name, str(self._sent))
        folder.mkdir()
        return self._make(str(unpack(name, content, folder)), Path(name).stem)

    def close(self) -> None:
        """Removes what was sent."""
        if self._folder is not None:
            self._folder.cleanup()


def open_scene(source: str, name: str) -> Session:
    """The scene under the exact cone, MuJoCo beside it."""
    watch = scenes.get(source).watch if source in scenes.names() else ()
    return Live(lambda: scenes.load(source), name=name, watch=watch)
