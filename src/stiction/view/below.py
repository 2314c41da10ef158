"""A viser server whose scene nodes all lie below one frame, and whose meshes can be made clear.

mjviser's scene names its nodes itself (`/bodies/...`), so that two of them on one server would
overwrite each other. Each gets such a server, and moves with its frame. mjviser writes opacity into
vertices' colours, which browsers draw only if the material says so as well.
"""

from __future__ import annotations

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
            if name.endswith("_trimesh") and self.opacity < 1.0 and moves:
                arguments = (_clear(arguments[0], self.opacity), *arguments[1:])
            if name == "add_grid" and not self._floor:
                options["visible"] = False
            return method(self._root + node, *arguments, **options)

        return add


def _clear(mesh: trimesh.Trimesh, opacity: float) -> trimesh.Trimesh:
    """A copy that can be seen through."""
    mesh = mesh.copy()
    white = [255, 255, 255, round(255 * opacity)]
    if isinstance(mesh.visual, trimesh.visual.TextureVisuals):
        mesh.visual.material.baseColorFactor = white
        mesh.visual.material.alphaMode = "BLEND"
        return mesh
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=white, alphaMode="BLEND")
    painted = trimesh.visual.TextureVisuals(material=material)
    painted.vertex_attributes["color"] = mesh.visual.vertex_colors
    mesh.visual = painted
    return mesh
