"""Frames of a film from a process that draws it (`draw.py`), where a graphics backend works."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.errors import StictionError

BACKENDS = {"linux": ("egl", "osmesa", "glfw"), "darwin": ("cgl", "glfw"), "win32": ("wgl", "glfw")}
"""MuJoCo's, by system, in the order in which they are tried."""

SCRIPT = Path(__file__).with_name("draw.py")

_working: list[str] = []
"""The backend that gave a picture, once one did."""
_said: list[str] = []
"""Why none did, once all were tried: a process does not try again."""


class NoGraphics(StictionError, RuntimeError):
    """No graphics backend of MuJoCo's works here."""


def draw_frames(folder: Path, height: int, width: int) -> Iterator[NDArray[np.uint8]]:
    """The frames of the film that the folder holds, (height, width, 3) each.

    Backends are tried in turn until one gives a first frame; raises NoGraphics if none does.
    """
    own = os.environ.get("MUJOCO_GL")
    if not own and _said:
        raise NoGraphics(_said[0])
    said: dict[str, str] = {}
    for backend in [own] if own else _working or BACKENDS.get(sys.platform, ("glfw",)):
        with TemporaryFile() as complaints:
            process = subprocess.Popen(
                [sys.executable, str(SCRIPT), str(folder)],
                env={**os.environ, "MUJOCO_GL": backend},
                stdout=subprocess.PIPE,
                stderr=complaints,
                stdin=subprocess.DEVNULL,
            )
            with process:
                try:
                    first = _read(process, height, width)
                    if first is not None:
                        _working[:] = [backend]
                        yield first
                        while (frame := _read(process, height, width)) is not None:
                            yield frame
                        return
                finally:
                    process.kill()
            complaints.seek(0)
            lines = complaints.read().decode(errors="replace").strip().splitlines()
            errors = [line for line in lines if "Error" in line.split(":")[0]]
            said[backend] = (errors or lines or ["no picture"])[-1]
    listed = "; ".join(f"{backend}: {text}" for backend, text in said.items())
    text = f"no graphics backend works here ({listed}); MUJOCO_GL chooses one"
    if not own:
        _said.append(text)
    raise NoGraphics(text)


def _read(process: subprocess.Popen[Any], height: int, width: int) -> NDArray[np.uint8] | None:
    assert process.stdout is not None
    size = height * width * 3
    content = process.stdout.read(size)
    if len(content) < size:
        return None
    return np.frombuffer(content, np.uint8).reshape(height, width, 3)
