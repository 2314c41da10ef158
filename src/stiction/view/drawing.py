"""One side in the browser: bodies by mjviser; contacts, springs and the label by ourselves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any, cast

import numpy as np
import trimesh
import viser
from mjviser import ViserMujocoScene
from numpy.typing import NDArray

from stiction.errors import InvalidInput
from stiction.record import marks
from stiction.record.contacts import Contacts
from stiction.view.below import Below
from stiction.view.session import View
from stiction.view.springs import Spring

Array = NDArray[np.float64]
OnDrag = Callable[[Any, int], None]
"""Called with viser's event and the number of the body."""

POINT, SHAFT, HEAD = 0.012, 0.004, 0.010
"""Radii of contact points, of arrows and of their heads, over the extent of the scene."""

SPRING = (240, 190, 0)
"""Colour of a spring's line."""

CLEAR = 0.7
"""Opacity of bodies that can be seen through."""


@dataclass
class Style:
    """What is drawn."""

    points: bool = True
    forces: bool = True
    cones: bool = True
    clear: bool = True
    """Whether bodies can be seen through."""
    length: float = 1.0
    """Of arrows, over the usual one."""
    groups: tuple[bool, ...] = (True, True, True, False, False, False)
    """Which of MuJoCo's groups of geoms; the last three are hidden in most viewers."""

    def set_length(self, length: float) -> None:
        """Of arrows; positive."""
        if not (isfinite(length) and length > 0.0):
            raise InvalidInput("arrow length", f"is {length}: a positive number")
        self.length = length

    @property
    def looks(self) -> tuple[bool, ...]:
        """What the bodies' meshes depend on."""
        return (self.clear, *self.groups)


class Drawing:
    """Handles of one side, below the frame `root`."""

    def __init__(
        self,
        server: viser.ViserServer,
        root: str,
        view: View,
        offset: Array,
        label_at: Array,
        style: Style,
        *,
        on_drag: OnDrag | None,
        floor: bool = True,
    ) -> None:
        self._on_drag = on_drag
        self._frame = server.scene.add_frame(root, show_axes=False, position=offset)
        self._below = Below(server, root, floor=floor)
        self._below.scene.opacity = CLEAR if style.clear else 1.0
        below = cast(viser.ViserServer, self._below)
        model = copy.copy(view.model)  # mjviser writes into its model's looks
        self._scene = ViserMujocoScene(below, model, num_envs=1)
        self._scene.camera_tracking_enabled = False
        self._label = below.scene.add_label(
            "/label", view.title, position=label_at, anchor="bottom-center", font_screen_scale=1.3
        )
        self._marks = _Marks(below, float(view.model.stat.extent))
        self._looks = (style.clear, *Style.groups)  # mjviser's own groups to begin with
        self._listen()

    def show(self, visible: bool) -> None:
        """Shows or hides the side."""
        if self._frame.visible != visible:
            self._frame.visible = visible

    def draw(self, view: View, springs: Iterable[Spring], style: Style, scale: float) -> None:
        """Shows the view; scale of forces [m/N]."""
        if style.looks != self._looks:
            self._rebuild(style)
        data = view.data
        self._scene.update_from_arrays(
            data.xpos[None].copy(),
            data.xmat.reshape(1, -1, 3, 3).copy(),
            data.mocap_pos[None].copy(),
            data.mocap_quat[None].copy(),
        )
        if self._label.text != view.title:
            self._label.text = view.title
        self._marks.draw(view.contacts, style, scale * style.length)
        self._marks.draw_springs(np.array([(s.held(data), s.target) for s in springs]))

    def _rebuild(self, style: Style) -> None:
        self._looks = style.looks
        self._below.scene.opacity = CLEAR if style.clear else 1.0
        self._scene.geom_groups_visible = list(style.groups)
        self._scene.rebuild_visual_handles()
        self._listen()

    def _listen(self) -> None:
        """Lets bodies be dragged. mjviser draws alike bodies in one batch: the instance tells
        which of them it is."""
        if self._on_drag is None:
            return
        for group in self._scene._mesh_groups:
            if group.mocap_ids is None:
                group.handle.on_drag("left")(self._listener(group.body_ids))

    def _listener(self, bodies: NDArray[np.int32]) -> Callable[[Any], None]:
        on_drag = self._on_drag
        assert on_drag is not None

        def listener(event: Any) -> None:
            instance = event.instance_index or 0
            if 0 <= instance < len(bodies):
                on_drag(event, int(bodies[instance]))

        return listener


class _Marks:
    """Points, arrows, cones and springs: one batch of each."""

    def __init__(self, server: viser.ViserServer, extent: float) -> None:
        none, colour = np.zeros((1, 3)), np.zeros((1, 3), np.uint8)
        ball = _ball()
        cone = marks.unit_cone()
        one = np.array([[1.0, 0.0, 0.0, 0.0]])
        self._radius = POINT * extent
        self._points = server.scene.add_batched_meshes_simple(
            "/contacts/points", *ball, batched_wxyzs=one, batched_positions=none,
            batched_scales=np.zeros((1, 3)), batched_colors=colour, lod="off", cast_shadow=False,
            receive_shadow=False, visible=False,
        )  # fmt: skip
        self._arrows = server.scene.add_arrows(
            "/contacts/forces", np.zeros((1, 2, 3)), colour, shaft_radius=SHAFT * extent,
            head_radius=HEAD * extent, head_length=2.0 * HEAD * extent, visible=False,
        )  # fmt: skip
        self._cones = server.scene.add_batched_meshes_simple(
            "/contacts/cones", *cone, batched_wxyzs=one, batched_positions=none,
            batched_scales=np.zeros((1, 3)), batched_colors=colour, opacity=0.3, side="double",
            lod="off", cast_shadow=False, receive_shadow=False, visible=False,
        )  # fmt: skip
        self._springs = server.scene.add_line_segments(
            "/springs", np.zeros((1, 2, 3)), SPRING, thickness=4.0, thickness_units="screen",
            visible=False,
        )  # fmt: skip

    def draw(self, contacts: Contacts, style: Style, scale: float) -> None:
        """Shows the contacts; scale of forces [m/N]."""
        colour = marks.colours(contacts)
        pressed = contacts.pressed
        if _show(self._points, style.points, len(contacts.mode)):
            # Contacts that bear nothing are smaller: they are there, and do nothing.
            size = np.where(pressed, 1.0, 0.6)[:, None] * np.full(3, self._radius)
            _place(self._points, contacts.position, _upright(len(size)), size, colour)
        if _show(self._arrows, style.forces, int(pressed.sum())):
            self._arrows.points = marks.arrows(contacts, scale)[pressed].astype(np.float32)
            self._arrows.colors = colour[pressed]
        cones = marks.cones(contacts, scale) if style.cones else None
        if _show(self._cones, cones is not None, 0 if cones is None else len(cones.row)):
            assert cones is not None
            _place(self._cones, cones.position, cones.quaternion, cones.size, colour[cones.row])

    def draw_springs(self, lines: Array) -> None:
        """(n, 2, 3) from the grip to the mouse [m]."""
        if _show(self._springs, True, len(lines)):
            self._springs.points = lines.astype(np.float32)


def _show(handle: Any, wanted: bool, count: int) -> bool:
    """Shows the batch if it is wanted and holds anything; whether it does."""
    visible = wanted and count > 0
    if handle.visible != visible:
        handle.visible = visible
    return visible


def _place(handle: Any, position: Array, turn: Array, size: Array, colour: Any) -> None:
    handle.batched_positions = position.astype(np.float32)
    handle.batched_wxyzs = turn.astype(np.float32)
    handle.batched_scales = size.astype(np.float32)
    handle.batched_colors = colour


def _upright(count: int) -> Array:
    return np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))


def _ball() -> tuple[Array, NDArray[np.int64]]:
    """Vertices and triangles of a ball of radius 1."""
    ball = trimesh.creation.icosphere(subdivisions=2, radius=1.0)
    return ball.vertices, ball.faces
