"""Pictures of scenes, where a graphics backend works.

MuJoCo chooses its backend once, from an environment variable, and a backend that is missing may
end the process: each try is a process of its own,

    python -m stiction.reproduce.picture    a `Picture` as JSON in, a PNG out
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiction.reproduce.result import Picture

HEIGHT, WIDTH = 420, 720
BACKENDS = ("egl", "osmesa", "glfw")
PATIENCE = 60.0  # s, for one picture
_working: list[str] = []


def render(picture: Picture) -> bytes | None:
    """PNG of the scene in that state, or None where no backend works."""
    return _render(json.dumps(asdict(picture), sort_keys=True))


@cache
def _render(request: str) -> bytes | None:
    own = os.environ.get("MUJOCO_GL")
    for backend in [own] if own else _working or BACKENDS:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "stiction.reproduce.picture"],
                input=request.encode(),
                env={**os.environ, "MUJOCO_GL": backend},
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0 and done.stdout.startswith(b"\x89PNG"):
            _working[:] = [backend]
            return done.stdout
    return None


def png(pixels: NDArray[np.uint8]) -> bytes:
    """An (h, w, 3) image as PNG."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 3 * width + 1), np.uint8)  # the first byte of a line: no filter
    lines[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            chunk(b"IEND", b""),
        ]
    )


def draw(request: dict[str, Any]) -> bytes:
    """PNG of a `Picture` given as a dictionary; raises where there is no graphics."""
    import mujoco

    from stiction import scenes

    model, data, _ = scenes.load(request["scene"], **request["options"])
    data.qpos[:] = request["qpos"]
    mujoco.mj_forward(model, data)
    model.vis.global_.offwidth = max(int(model.vis.global_.offwidth), WIDTH)
    camera = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, camera)
    wanted = request["camera"]
    for name in ("distance", "azimuth", "elevation"):
        if name in wanted:
            setattr(camera, name, wanted[name])
    for index, name in enumerate("xyz"):
        if name in wanted:
            camera.lookat[index] = wanted[name]
    with mujoco.Renderer(model, HEIGHT, WIDTH) as renderer:
        renderer.update_scene(data, camera)
        return png(renderer.render())


if __name__ == "__main__":
    sys.stdout.buffer.write(draw(json.load(sys.stdin)))
