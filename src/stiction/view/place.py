"""Where the second side stands, and where a camera must, so that both are in the picture."""

from __future__ import annotations

from dataclasses import dataclass
from math import radians, tan

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

GAP = 0.3
"""Room between the sides over their larger dimension."""

SPACE = 1.25
"""Size of what is shown over that of the sides."""

PANEL = 340
"""Width of the panel, which lies over the picture's right end [pixels]."""

UPRIGHT = 1.3
"""A scene that is wider than this, over its height, has the second side below."""


@dataclass(frozen=True, eq=False)
class Place:
    """All in the world [m]."""

    offset: Array
    """(3,) of the second side."""
    label: Array
    """(3,) of the first side's name."""
    middle: Array
    """(3,) of both sides."""
    size: tuple[float, float, float]
    """Of both sides: width, height, depth, as the camera sees them."""
    forward: Array
    """(3,) direction of view."""
    fov: float
    """Vertical [rad]."""

    def camera(self, width: int = 1280, height: int = 800) -> tuple[Array, Array]:
        """Position and point to look at, for a picture of so many pixels."""
        free = max(width - PANEL, width // 2)
        wide, tall, deep = self.size
        shown = SPACE * max(tall, wide * height / free)  # height of what is seen
        distance = 0.5 * shown / tan(0.5 * self.fov) + 0.5 * deep
        right = np.cross(self.forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        look_at = self.middle + 0.5 * shown * (width - free) / height * right
        return look_at - distance * self.forward, look_at


def arrange(model: mujoco.MjModel, data: mujoco.MjData, two: bool) -> Place:
    """From the model's own view (azimuth, elevation) and the size of what is in it.

    A wide scene without a floor has the second side below; all others have it to the right.
    """
    azimuth, tilt = radians(model.vis.global_.azimuth), radians(model.vis.global_.elevation)
    tilt = min(max(tilt, -1.5), 1.5)  # not straight down, where right is nowhere
    ahead = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
    forward = np.cos(tilt) * ahead + [0.0, 0.0, np.sin(tilt)]
    right = np.array([np.sin(azimuth), -np.cos(azimuth), 0.0])
    low, high = _box(model, data)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    wide, tall, deep = (2.0 * float(np.abs(axis) @ half) for axis in (right, [0, 0, 1], ahead))
    tall_seen = np.cos(tilt) * tall + abs(np.sin(tilt)) * deep
    floor = bool((model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE).any())
    below = not floor and wide > UPRIGHT * tall
    gap = GAP * max(wide, tall)
    offset = np.zeros(3)
    if two:
        offset = (tall + gap) * np.array([0.0, 0.0, -1.0]) if below else (wide + gap) * right
    size = (
        wide + float(offset @ right),
        tall_seen - np.cos(tilt) * float(offset[2]),
        deep,
    )
    label = middle + np.array([0.0, 0.0, half[2] + 0.05 * model.stat.extent])
    return Place(
        offset, label, middle + 0.5 * offset, size, forward, radians(model.vis.global_.fovy)
    )


def _box(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[Array, Array]:
    """Corners of a box around all geoms but planes, within the model's extent of its centre."""
    solid = model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE
    turn = data.geom_xmat[solid].reshape(-1, 3, 3)
    middle = data.geom_xpos[solid] + np.einsum("nij,nj->ni", turn, model.geom_aabb[solid, :3])
    half = np.einsum("nij,nj->ni", np.abs(turn), model.geom_aabb[solid, 3:])
    least, most = model.stat.center - model.stat.extent, model.stat.center + model.stat.extent
    low = np.maximum((middle - half).min(axis=0, initial=np.inf), least)
    high = np.minimum((middle + half).max(axis=0, initial=-np.inf), most)
    empty = low >= high
    return np.where(empty, least, low), np.where(empty, most, high)
