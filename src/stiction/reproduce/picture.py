"""Pictures of scenes, where a graphics backend works."""

from __future__ import annotations

import mujoco
import numpy as np

from stiction import scenes
from stiction.record.contacts import none
from stiction.record.render.film import Camera, Film, Look, Shot
from stiction.record.render.offscreen import NoGraphics
from stiction.reproduce.result import Picture

HEIGHT, WIDTH = 420, 720


def render(picture: Picture) -> bytes | None:
    """PNG of the scene in that state, or None where no backend works."""
    model, data, _ = scenes.load(picture.scene, **picture.options)
    data.qpos[:] = picture.qpos
    shot = Shot(
        picture.title, model, data.qpos[None], data.mocap_pos[None], data.mocap_quat[None], [none()]
    )
    look = Look(WIDTH, HEIGHT, _camera(model, picture.camera), False, titles=False)
    try:
        return Film(np.zeros(1), (shot,), 1.0, look).picture()
    except NoGraphics:
        return None


def _camera(model: mujoco.MjModel, wanted: dict[str, float]) -> Camera:
    """The scene's own free camera, but for what is wanted."""
    own = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, own)
    x, y, z = (float(wanted.get(name, own.lookat[k])) for k, name in enumerate("xyz"))
    return Camera(
        azimuth=wanted.get("azimuth", own.azimuth),
        elevation=wanted.get("elevation", own.elevation),
        distance=wanted.get("distance", own.distance),
        lookat=(x, y, z),
    )
