"""Draws a film: a process of its own, started by `offscreen.py` as a file, not as a module.

    python draw.py FOLDER    reads FOLDER/film.json, film.npz and the models; writes raw frames,
                             (height, width, 3) bytes each, to standard output

MuJoCo chooses its graphics once, from an environment variable, and one that is missing may end the
process: that is why it is not the caller's. Nothing of stiction is imported: it starts at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

FIT = 0.85
"""Share of the picture that what moves takes."""
STRAYS = 1.0
"""Percentage of corners at either end that the picture need not hold: of what flies off."""
LOOKS = 40
"""Frames that the camera is fitted to."""
SURROUNDINGS = 1.5
"""Size of fixed things over that of what moves up to which they belong into the picture."""
SHINES = 0.45
"""Weight of a contact's mark that a body hides."""
FOLLOWS = 2.5
"""Travel over size from which the camera follows."""
POINT, SHAFT = 0.05, 0.022
"""Radii of contact points and of arrows over the radius of the view."""
LONGEST_ARROW = 1.0
"""Length of the longest arrow over the radius of the view."""
STATES = ("qpos", "mocap_pos", "mocap_quat")
SKY = np.array([[199, 217, 237], [246, 249, 252]], float)
"""Top and bottom of the picture where a model has no sky of its own."""


class Side:
    """One of the scenes that stand beside each other."""

    def __init__(self, folder: Path, film: Any, index: int, plan: dict[str, Any]) -> None:
        self.index, self.film, self.plan = index, film, plan
        self.model = mujoco.MjModel.from_binary_path(str(folder / f"{index}.mjb"))
        self.data = mujoco.MjData(self.model)
        self.width = plan["width"] // len(plan["titles"])
        self.model.vis.global_.offwidth = max(self.width, self.model.vis.global_.offwidth)
        self.model.vis.global_.offheight = max(plan["height"], self.model.vis.global_.offheight)
        self.model.vis.map.alpha = 0.45
        self.model.vis.quality.shadowsize = min(2048, self.model.vis.quality.shadowsize)
        self.model.vis.map.shadowclip = 4.0 * self.model.vis.map.shadowclip
        self.scene = mujoco.MjvScene(self.model, maxgeom=20000)
        self.option = mujoco.MjvOption()
        self.option.flags[mujoco.mjtVisFlag.mjVIS_TRANSPARENT] = plan["clear"]
        self.option.geomgroup[:] = plan["groups"]
        self.context: Any = None

    @property
    def frames(self) -> int:
        """How many."""
        return len(self.film[f"qpos{self.index}"])

    def put(self, frame: int) -> None:
        """Brings the data to that frame, as far as drawing needs it."""
        for name in STATES:
            getattr(self.data, name)[:] = self.film[f"{name}{self.index}"][frame]
        for stage in (
            mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_camlight, mujoco.mj_flex,
            mujoco.mj_tendon,
        ):  # fmt: skip
            stage(self.model, self.data)

    def draw(self, frame: int, camera: View) -> np.ndarray:
        """(height, width, 3) of the frame."""
        self.put(frame)
        mujoco.mjv_updateScene(
            self.model, self.data, self.option, None, camera.at(frame),
            mujoco.mjtCatBit.mjCAT_ALL, self.scene,
        )  # fmt: skip
        pixels, depth = self._render()
        if not self._has_sky():
            share = np.linspace(0.0, 1.0, len(pixels))[:, None]  # rows run from the bottom
            sky = (SKY[1] + share * (SKY[0] - SKY[1])).astype(np.uint8)
            empty = depth >= 1.0
            pixels[empty] = np.broadcast_to(sky[:, None], pixels.shape)[empty]
        if self.plan["contacts"]:
            self._draw_marks(frame, camera, pixels, depth)
        self._label(frame, pixels)
        return pixels[::-1]

    def _render(self) -> tuple[np.ndarray, np.ndarray]:
        """Colours and depths (1 where there is nothing), from the bottom row up."""
        place = mujoco.MjrRect(0, 0, self.width, self.plan["height"])
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.context)
        mujoco.mjr_render(place, self.scene, self.context)
        pixels = np.zeros((self.plan["height"], self.width, 3), np.uint8)
        depth = np.zeros(pixels.shape[:2], np.float32)
        mujoco.mjr_readPixels(pixels, depth, place, self.context)
        return pixels, depth

    def _draw_marks(self, frame: int, camera: View, pixels: np.ndarray, depth: np.ndarray) -> None:
        """Draws the contacts in a second pass: those inside or behind a body shine through."""
        self.scene.ngeom = 0
        self._mark(frame, camera)
        if not self.scene.ngeom:
            return
        flags = self.scene.flags
        before = flags.copy()
        flags[mujoco.mjtRndFlag.mjRND_SKYBOX] = flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        marks, nearness = self._render()
        flags[:] = before
        drawn, hidden = nearness < 1.0, nearness > depth
        weight = np.where(drawn, np.where(hidden, SHINES, 1.0), 0.0)[..., None]
        pixels[:] = ((1.0 - weight) * pixels + weight * marks).astype(np.uint8)

    def _has_sky(self) -> bool:
        return bool((self.model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX).any())

    def _label(self, frame: int, pixels: np.ndarray) -> None:
        """Writes title and time into the top left corner."""
        title = self.plan["titles"][self.index]
        time = f"{self.film['time'][frame]:.2f} s" if self.plan["clock"] else ""
        if not title and not time:
            return
        place = mujoco.MjrRect(0, 0, self.width, self.plan["height"])
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.context)
        mujoco.mjr_drawPixels(pixels.ravel(), None, place, self.context)
        text = "   ".join(filter(None, (title, time)))
        high, wide = self.context.charHeight + 8, 18
        wide += sum(int(self.context.charWidth[min(ord(letter), 126)]) for letter in text)
        corner = mujoco.MjrRect(6, self.plan["height"] - high - 6, wide, high)
        mujoco.mjr_label(
            corner, mujoco.mjtFont.mjFONT_NORMAL, text, 0.12, 0.14, 0.17, 0.75, 1.0, 1.0, 1.0,
            self.context,
        )  # fmt: skip
        mujoco.mjr_readPixels(pixels, None, place, self.context)

    def _mark(self, frame: int, camera: View) -> None:
        """Adds points and arrows of the contacts."""
        first, last = self.film[f"start{self.index}"][frame : frame + 2]
        place = self.film[f"position{self.index}"][first:last]
        force = self.film[f"force{self.index}"][first:last]
        colour = self.film[f"colour{self.index}"][first:last] / 255.0
        radius = camera.radius
        for k in range(len(place)):
            rgba = np.append(colour[k], 1.0).astype(np.float32)
            loaded = bool(np.any(force[k]))
            size = POINT * radius * (1.0 if loaded else 0.6)
            self._add(mujoco.mjtGeom.mjGEOM_SPHERE, np.full(3, size), place[k], rgba)
            if loaded:
                longest = (
                    LONGEST_ARROW
                    * radius
                    / max(self.plan["force"], float(np.linalg.norm(force[k])))
                )
                tip = place[k] + longest * force[k]
                geom = self._add(mujoco.mjtGeom.mjGEOM_ARROW, np.zeros(3), np.zeros(3), rgba)
                if geom is not None:
                    mujoco.mjv_connector(
                        geom, mujoco.mjtGeom.mjGEOM_ARROW, SHAFT * radius, place[k], tip
                    )

    def _add(self, kind: Any, size: Any, place: Any, rgba: Any) -> Any:
        if self.scene.ngeom >= self.scene.maxgeom:
            return None
        geom = self.scene.geoms[self.scene.ngeom]
        mujoco.mjv_initGeom(geom, kind, size, place, np.eye(3).ravel(), rgba)
        geom.emission = 0.5
        self.scene.ngeom += 1
        return geom


class View:
    """The camera over the film: one of the model's own, or a free one that sees what moves."""

    def __init__(self, side: Side, plan: dict[str, Any]) -> None:
        wanted, model = plan["camera"], side.model
        self.camera = mujoco.MjvCamera()
        mujoco.mjv_defaultFreeCamera(model, self.camera)
        self.radius = 0.5 * float(model.stat.extent)
        """Of what the picture shows [m]."""
        self.path: np.ndarray | None = None
        if wanted["fixed"] >= 0:
            self.camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
            self.camera.fixedcamid = wanted["fixed"]
            return
        for name in ("azimuth", "elevation"):
            if wanted[name] is not None:
                setattr(self.camera, name, wanted[name])
        self._fit(side, wanted["body"], side.width / plan["height"])
        if wanted["lookat"] is not None:
            self.camera.lookat[:], self.path = wanted["lookat"], None
        self.camera.distance /= wanted["zoom"]
        if wanted["distance"] is not None:
            self.camera.distance = wanted["distance"]
        self.radius = 0.5 * self.camera.distance * np.tan(0.5 * _fovy(model))

    def at(self, frame: int) -> mujoco.MjvCamera:
        """The camera at that frame."""
        if self.path is not None:
            self.camera.lookat[:] = self.path[frame]
        return self.camera

    def _fit(self, side: Side, body: int, aspect: float) -> None:
        """Sets centre and distance to what moves, and a path where it travels or is followed."""
        moving, fixed = _shapes(side.model, body)
        if not len(moving):
            return
        every = max(1, side.frames // LOOKS)
        looked = np.arange(0, side.frames, every)
        clouds = np.stack(
            [_corners(side, int(frame), moving) for frame in looked]
        )  # (frames, n, 3)
        centres = 0.5 * (clouds.min(axis=1) + clouds.max(axis=1))
        sizes = 0.5 * np.linalg.norm(np.ptp(clouds, axis=1), axis=1)
        travel = float(np.linalg.norm(np.ptp(centres, axis=0)))
        if body >= 0 or travel > FOLLOWS * float(np.median(sizes)):
            frames = np.arange(side.frames)
            path = [np.interp(frames, looked, centres[:, k]) for k in range(3)]
            self.path = _smooth(np.stack(path, axis=1))
            points = (clouds - centres[:, None]).reshape(-1, 3)
        else:
            points = clouds.reshape(-1, 3)
            near = _neighbours(side, fixed, points)
            points = np.concatenate([points, *(_corners(side, 0, near),) * len(looked)])
        self._frame(points, _fovy(side.model), aspect)

    def _frame(self, points: np.ndarray, fovy: float, aspect: float) -> None:
        """Puts the camera so that the points fill the picture, strays left out."""
        azimuth, elevation = np.radians([self.camera.azimuth, self.camera.elevation])
        forward = np.array(
            [
                np.cos(elevation) * np.cos(azimuth),
                np.cos(elevation) * np.sin(azimuth),
                np.sin(elevation),
            ]
        )
        right = np.array([np.sin(azimuth), -np.cos(azimuth), 0.0])
        axes = np.stack([right, np.cross(right, forward), forward])
        seen = points @ axes.T
        low, high = np.percentile(seen, [STRAYS, 100.0 - STRAYS], axis=0)
        centre, half = 0.5 * (low + high), 0.5 * (high - low)
        tangent = np.tan(0.5 * fovy) * FIT * np.array([aspect, 1.0])
        self.camera.distance = float((half[:2] / tangent).max() + half[2]) or 1.0
        if self.path is None:
            self.camera.lookat[:] = centre @ axes


def _fovy(model: mujoco.MjModel) -> float:
    """Height of the free camera's picture [rad]."""
    return float(np.radians(model.vis.global_.fovy))


def _corners(side: Side, frame: int, geoms: np.ndarray) -> np.ndarray:
    """(8 n, 3) corners of the geoms' boxes at that frame [m]."""
    side.put(frame)
    box = side.model.geom_aabb[geoms]
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, 8).T
    local = box[:, None, :3] + signs * box[:, None, 3:]
    turn = side.data.geom_xmat[geoms].reshape(-1, 3, 3)
    corners = side.data.geom_xpos[geoms][:, None] + np.einsum("gij,gkj->gki", turn, local)
    return corners.reshape(-1, 3)


def _shapes(model: mujoco.MjModel, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Geoms that move (or those of the body's tree), and those that do not; no ground."""
    ground = (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD)
    solid = ~np.isin(model.geom_type, ground)
    owner = model.geom_bodyid
    moves = (model.body_weldid[owner] != 0) | (model.body_mocapid[owner] >= 0)
    if body >= 0:
        moves = model.body_rootid[owner] == model.body_rootid[body]
    return np.flatnonzero(moves & solid), np.flatnonzero(~moves & solid)


def _neighbours(side: Side, fixed: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Fixed geoms that reach into the box of the points and are not larger than it."""
    low, high = points.min(axis=0), points.max(axis=0)
    reach = side.model.geom_rbound[fixed, None]
    place = side.data.geom_xpos[fixed]
    inside = ((place + reach > low) & (place - reach < high)).all(axis=1)
    return fixed[inside & (reach[:, 0] < SURROUNDINGS * 0.5 * np.linalg.norm(high - low))]


def _smooth(path: np.ndarray, most: int = 15) -> np.ndarray:
    """Running mean: the camera does not shake with what it follows; ends go on as they went."""
    width = min(most, 2 * (len(path) // 6) + 1)
    around = ((width // 2, width // 2), (0, 0))
    padded = np.pad(path, around, mode="reflect", reflect_type="odd")
    window = np.ones(width) / width
    return np.stack([np.convolve(padded[:, k], window, "valid") for k in range(3)], axis=1)


def main(folder: Path) -> None:
    """Draws all frames."""
    plan = json.loads((folder / "film.json").read_text(encoding="utf-8"))
    with np.load(folder / "film.npz") as file:
        film = dict(file)
    sides = [Side(folder, film, k, plan) for k in range(len(plan["titles"]))]
    view = View(sides[0], plan)
    graphics = mujoco.GLContext(sides[0].width, plan["height"])
    graphics.make_current()
    scale = mujoco.mjtFontScale(plan["font"])
    for side in sides:
        side.context = mujoco.MjrContext(side.model, scale)
    for frame in range(sides[0].frames):
        pictures = [side.draw(frame, view) for side in sides]
        sys.stdout.buffer.write(np.concatenate(pictures, axis=1).tobytes())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
