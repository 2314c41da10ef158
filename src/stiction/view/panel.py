"""The controls of the page. What a visitor does becomes a request to the thread of the physics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import viser

from stiction.contact.models.registry import forms
from stiction.errors import InvalidInput
from stiction.simulate.options import is_number
from stiction.view.drawing import Style
from stiction.view.live import BESIDE, NOTHING, Live
from stiction.view.pace import Pace
from stiction.view.picker import Picker
from stiction.view.pictures import Pictures
from stiction.view.plots import Plots
from stiction.view.replay import Replay
from stiction.view.robot import Robot
from stiction.view.server import Rule, Server
from stiction.view.session import SPEEDS, Session, View
from stiction.view.sides import STEPPERS
from stiction.view.status import status, waiting

Ask = Callable[[Callable[[], None]], None]
"""Hands a request to the thread that owns the session."""


FREE = "free"
"""The camera that the mouse turns."""


class Chooser(NamedTuple):
    """What visitors may open, and what shows it."""

    picker: Picker
    show: Callable[[Session], None]


class Panel:
    """Built once, for all visitors: viser shows every change of a control to all of them."""

    def __init__(
        self,
        server: Server,
        session: Session,
        style: Style,
        ask: Ask,
        chooser: Chooser | None = None,
    ) -> None:
        self._server, self._session, self._ask = server, session, ask
        self._gui = gui = server.gui
        self._status = gui.add_html(waiting(f"loading {session.name}"))
        self._robot: Robot | None = None
        if chooser is not None:
            self._add_scenes(chooser)
        self._play = gui.add_button("Play", icon=viser.Icon.PLAYER_PLAY)
        self._play.on_click(lambda _: ask(lambda: session.play(not session.playing)))
        server.allow(self._play, _is_flag)
        moves = gui.add_button_group("Move", ("Step", "Reset"))
        server.allow(moves, _one_of(("Step", "Reset")))
        moves.on_click(lambda event: self._move(event.target.value))
        self._control(
            gui.add_dropdown("Speed", [f"{speed:g}" for speed in SPEEDS], initial_value="1"),
            lambda value: session.set_speed(_number("speed", value)),
            lambda: f"{session.speed:g}",
        )
        if isinstance(session, Live):
            self._add_live(session)
        if isinstance(session, Replay):
            self._add_replay(session)
        self._plots = Plots(gui, beside=self._has_beside())
        self._pictures = Pictures(server, session, ask)
        with gui.add_folder("Show", expand_by_default=False):
            self._add_cameras()
            self._add_style(style)
            self._add_groups(style)
        self._add_keys()

    def _has_beside(self) -> bool:
        return isinstance(self._session, Live) and self._session.beside != NOTHING

    def _add_scenes(self, chooser: Chooser) -> None:
        """A list of scenes, and a button to send one's own."""
        name, picker = self._session.name, chooser.picker
        names = tuple(dict.fromkeys((name, *picker.names)))
        choice = self._gui.add_dropdown("Scene", names, initial_value=name)
        self._server.allow(choice, _one_of(picker.names))

        @choice.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                wanted = choice.value
                self._ask(lambda: self._open(lambda: picker.open(wanted), wanted, chooser))

        if not picker.upload:
            return
        button = self._gui.add_upload_button(
            "Send a model", mime_type=".xml,.zip", hint="an MJCF, or a .zip of one with its assets"
        )
        self._server.allow_upload(button)

        @button.on_upload
        def _(event: Any) -> None:
            name, content = event.target.value.name, event.target.value.content
            self._ask(lambda: self._open(lambda: picker.receive(name, content), name, chooser))

    def _open(self, make: Callable[[], Session], name: str, chooser: Chooser) -> None:
        self._status.content = waiting(f"loading {name}; the first time may compile for minutes")
        chooser.show(make())

    def _add_keys(self) -> None:
        """Space, right arrow, backspace; also in the palette of commands."""
        session = self._session
        for label, key, request in (
            ("Play or pause", "space", lambda: session.play(not session.playing)),
            ("Step", "arrowright", session.step),
            ("Reset", "backspace", session.reset),
        ):
            command = self._gui.add_command(label, hotkey=key)
            command.on_trigger(_asker(self._ask, request))

    def _add_cameras(self) -> None:
        """A list of the model's cameras, from which the visitor who chooses looks."""
        model = self._session.views()[0].model
        names = [model.camera(k).name or f"camera {k}" for k in range(model.ncam)]
        if not names:
            return
        choice = self._gui.add_dropdown("Camera", (FREE, *names), initial_value=FREE)
        self._server.allow(choice, _one_of((FREE, *names)))

        @choice.on_update
        def _(event: Any) -> None:
            if event.client is not None and choice.value != FREE:
                camera, client = names.index(choice.value), event.client
                self._ask(lambda: _look_from(client, self._session.views()[0], camera))

    def _add_live(self, live: Live) -> None:
        gui = self._gui
        names = list(dict.fromkeys((live.contact, *forms())))
        self._control(
            gui.add_dropdown("Contact model", names, initial_value=live.contact),
            lambda name: self._switch(live.set_contact, name),
            lambda: live.contact,
        )
        self._control(
            gui.add_dropdown("Stepper", STEPPERS, initial_value=live.stepper),
            lambda name: self._switch(live.set_stepper, name),
            lambda: live.stepper,
        )
        if len(live.keyframes) > 1:
            self._control(
                gui.add_dropdown("Start", live.keyframes, initial_value=live.keyframe),
                live.set_keyframe,
                lambda: live.keyframe,
            )
        own = live.ours.own_friction
        now = own if live.friction is None else live.friction
        mu = gui.add_slider("mu", min=0.0, max=max(2.0, own, now), step=0.01, initial_value=now)
        self._control(
            mu, live.set_friction, lambda: own if live.friction is None else live.friction
        )
        back = gui.add_button("mu of the model", hint="Every geom has its own mu again.")
        self._server.allow(back, _is_flag)

        @back.on_click
        def _(_: Any) -> None:
            self._ask(lambda: live.set_friction(None))
            mu.value = own

        self._control(
            gui.add_dropdown("Beside", BESIDE, initial_value=live.beside),
            live.set_beside,
            lambda: live.beside,
        )
        pull = gui.add_slider("Pull", min=0.1, max=20.0, step=0.1, initial_value=live.strength)
        self._control(pull, live.set_strength, lambda: live.strength)
        gui.add_markdown(
            "*Drag a body to pull it; drag beside it to turn the view. Space plays and pauses, the "
            "right arrow steps, backspace resets.*"
        )
        self._robot = Robot(gui, live, self._control)

    def _switch(self, put: Callable[[str], None], name: str) -> None:
        self._status.content = waiting(f"preparing {name}; the first time compiles for minutes")
        put(name)

    def _add_replay(self, replay: Replay) -> None:
        first, last = replay.span
        step = max((last - first) / 1000.0, 1e-6)
        self._slider = self._gui.add_slider(
            "Time", min=first, max=max(last, first + step), step=step, initial_value=first
        )
        self._control(self._slider, replay.seek, lambda: replay.time)

    def _add_style(self, style: Style) -> None:
        gui = self._gui
        for label, name in (
            ("Contact points", "points"),
            ("Forces", "forces"),
            ("Friction cones", "cones"),
            ("See through bodies", "clear"),
        ):
            box = gui.add_checkbox(label, initial_value=getattr(style, name))
            self._control(box, _setter(style, name), _getter(style, name))
        length = gui.add_slider("Arrow length", min=0.1, max=5.0, step=0.1, initial_value=1.0)
        self._control(length, style.set_length, _getter(style, "length"))

    def _add_groups(self, style: Style) -> None:
        """A box for each of MuJoCo's groups that holds a geom, if there are two or more."""
        groups = sorted({int(group) for group in self._session.views()[0].model.geom_group})
        if len(groups) < 2:
            return
        for group in groups:
            box = self._gui.add_checkbox(f"Geom group {group}", initial_value=style.groups[group])
            self._control(box, _group_setter(style, group), _group_getter(style, group))

    def _control(self, handle: Any, put: Callable[[Any], None], get: Callable[[], Any]) -> None:
        """A control that sets something; if that is refused, the control goes back to what is.
        What its list or range does not hold does not come this far."""
        self._server.allow(handle, _rule_of(handle))

        def change(value: Any) -> None:
            try:
                put(value)
            except InvalidInput:
                handle.value = get()
                raise

        @handle.on_update
        def _(event: Any) -> None:
            if event.client is not None:  # not our own correction of it
                value = handle.value
                self._ask(lambda: change(value))

    def _move(self, where: str) -> None:
        if where == "Step":
            self._ask(self._session.step)
        elif where == "Reset":
            self._ask(self._session.reset)

    def refresh(self, pace: Pace, views: tuple[View, ...], newtons: float) -> None:
        """Brings figures and plots up to date; `newtons` is the force of the longest arrow."""
        session = self._session
        self._status.content = status(session, pace, views, newtons)
        playing = session.playing
        icon = viser.Icon.PLAYER_PAUSE if playing else viser.Icon.PLAYER_PLAY
        if self._play.label != ("Pause" if playing else "Play"):
            self._play.label, self._play.icon = ("Pause" if playing else "Play"), icon
        if isinstance(session, Replay) and abs(self._slider.value - session.time) > 1e-9:
            self._slider.value = session.time
        self._plots.refresh(session.history, beside=self._has_beside())
        if self._robot is not None:
            self._robot.refresh()
        self._pictures.sample(views)


def _asker(ask: Ask, request: Callable[[], None]) -> Callable[[Any], None]:
    return lambda _: ask(request)


def _look_from(client: Any, view: View, camera: int) -> None:
    """Sets the visitor's camera where the model's is now, on our side."""
    place, turn = view.data.cam_xpos[camera], view.data.cam_xmat[camera].reshape(3, 3)
    client.camera.up_direction = turn[:, 1].copy()
    client.camera.position = place.copy()
    client.camera.look_at = place - float(view.model.stat.extent) * turn[:, 2]
    client.camera.fov = float(np.radians(view.model.cam_fovy[camera]))


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _one_of(values: Iterable[str]) -> Rule:
    allowed = frozenset(values)
    return lambda value: isinstance(value, str) and value in allowed


def _rule_of(handle: Any) -> Rule:
    """By the kind of control: a list, a range, or a box to tick. As it is now: visitors' messages
    cannot change it."""
    if isinstance(handle, viser.GuiDropdownHandle):
        return _one_of(handle.options)
    if isinstance(handle, viser.GuiSliderHandle):
        least, most = float(handle.min), float(handle.max)
        return lambda value: is_number(value) and least <= value <= most
    return _is_flag


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InvalidInput(name, f"is {text!r}: a number") from error


def _setter(style: Style, name: str) -> Callable[[Any], None]:
    return lambda value: setattr(style, name, value)


def _group_setter(style: Style, group: int) -> Callable[[Any], None]:
    def put(value: bool) -> None:
        style.groups = (*style.groups[:group], value, *style.groups[group + 1 :])

    return put


def _group_getter(style: Style, group: int) -> Callable[[], Any]:
    return lambda: style.groups[group]


def _getter(style: Style, name: str) -> Callable[[], Any]:
    return lambda: getattr(style, name)
