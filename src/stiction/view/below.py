"""A viser server whose scene nodes all lie below one frame, and whose meshes can be made clear.

mjviser's scene names its nodes itself (`/bodies/...`), so that two of them on one server would
overwrite each other. Each gets such a server, and moves with its frame. mjviser writes opacity into
vertices' colours, which browsers draw only if the material says so as well. Textures go over as
JPEG: as PNG those of a robot took ten seconds to pack, and as long to arrive.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import trimesh
import viser

FIXED = "/fixed_bodies"
"""Where mjviser puts what does not move: ground and walls are never made clear, they would be lost
on a white page."""


class Below:
    """Stands for `server`, but adds what is added to its scene below `root`."""

    def __init__(self, server: viser.ViserServer, root: str, *, floor: bool = True) -> None:
        """`floor` False: infinite planes are not drawn, as where another side's floor is."""
        self._server = server
        self.scene = _SceneBelow(server.scene, root, floor)

    def atomic(self) -> AbstractContextManager[None]:
        """Nothing is held back, so that the panel is there while meshes are made; whoever changes
        what visitors see holds the server itself back."""
        return nullcontext()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)


class _SceneBelow:
    def __init__(self, scene: viser.SceneApi, root: str, floor: bool) -> None:
        self._scene, self._root, self._floor = scene, root, floor
        self.opacity = 1.0
        """Of meshes of what moves, that are added from now on."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._scene, name)
        if not name.startswith("add_"):
            return method

        def add(node: str, *arguments: Any, **options: Any) -> Any:
            moves = not node.startswith(FIXED)
            if name.endswith("_trimesh"):
                opacity = self.opacity if moves else 1.0
                arguments = (_painted(arguments[0], opacity), *arguments[1:])
            if name == "add_grid" and not self._floor:
                options["visible"] = False
            return method(self._root + node, *arguments, **options)

        return add


def _painted(mesh: trimesh.Trimesh, opacity: float) -> trimesh.Trimesh:
    """A copy whose texture is packed tightly, and which can be seen through."""
    textured = isinstance(mesh.visual, trimesh.visual.TextureVisuals)
    if opacity == 1.0 and not textured:
        return mesh
    mesh = mesh.copy()
    white = [255, 255, 255, round(255 * opacity)]
    if textured:
        material = mesh.visual.material
        material.baseColorTexture = _packed(material.baseColorTexture)
        if opacity < 1.0:
            material.baseColorFactor, material.alphaMode = white, "BLEND"
        return mesh
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=white, alphaMode="BLEND")
    painted = trimesh.visual.TextureVisuals(material=material)
    painted.vertex_attributes["color"] = mesh.visual.vertex_colors
    mesh.visual = painted
    return mesh


def _packed(image: Any) -> Any:
    """The texture as one that is sent as JPEG, unless it can be seen through."""
    if image is None:
        return None
    if "A" in image.getbands() and image.getchannel("A").getextrema()[0] < 255:
        return image
    image = image.convert("RGB")
    image.format = "JPEG"  # as which trimesh writes it
    return image
