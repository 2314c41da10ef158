"""The page: one thread owns the session, draws it sixty times a second, and serves requests.

Visitors' messages arrive in viser's threads. They only put requests into a queue, which the page's
own thread empties between frames, so that neither a bad value nor many visitors can disturb a step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from time import perf_counter
from types import TracebackType
from typing import Any

from stiction.record.marks import Ruler
from stiction.view import server as web
from stiction.view.drawing import Drawing, Style
from stiction.view.live import Live
from stiction.view.pace import Pace
from stiction.view.panel import Chooser, Panel
from stiction.view.picker import Picker
from stiction.view.place import arrange
from stiction.view.session import Session, View

FRAME = 1.0 / 60.0
"""Time between frames [s]."""

SHARE = 0.7
"""Part of a frame that steps may take; the rest is for drawing."""

SERVING = 0.005
"""Time of a frame that requests may take [s]; the others wait for the next."""

FIGURES = 0.1
"""Time between updates of figures and plots [s]."""

PATIENCE = 10.0
"""How long `close` waits for a step or a compilation to end [s]; the process ends it otherwise."""

IDLE = 1.0
"""Longest sleep of a paused page [s]."""

MESHES = 20.0
"""How long a browser may take to show the first picture before the scene plays all the same [s]."""

ANSWER = 16
"""Pixels of that picture's side: a browser sends it once it has drawn all that came before."""

MOST_REQUESTS = 10_000
"""That wait; more are dropped."""


class Page:
    """Listens as soon as it is made, and until `close`.

    host, port  where; port 0 is any free one
    autoplay    plays when the first visitor comes
    picker      what visitors may open in the place of the session; None: nothing
    """

    def __init__(
        self,
        session: Session,
        *,
        host: str = web.LOCAL,
        port: int = 0,
        autoplay: bool = True,
        picker: Picker | None = None,
    ) -> None:
        self.session, self.style, self._picker = session, Style(), picker
        self._requests: Queue[Callable[[], None]] = Queue(MOST_REQUESTS)
        self._closing, self._asked, self._drawn = Event(), Event(), Event()
        self._failure: BaseException | None = None
        self._autoplay, self._dirty = autoplay, True
        label = f"stiction: {session.name}" if session.name else "stiction"
        upload = picker is not None and picker.upload
        self._server = web.start(host, port, label, upload=upload)
        try:
            self._build()
        except BaseException:
            web.stop(self._server)
            raise
        self._thread = Thread(target=self._run, name="stiction-view", daemon=True)
        self._thread.start()

    def _build(self) -> None:
        """Fills the page; visitors may come meanwhile."""
        self._server.check_values(lambda said: self.ask(lambda: self._note(said)))
        self._server.gui.configure_theme(show_logo=False, show_share_button=False)
        self._fill()
        self._server.on_client_connect(self._welcome)
        self._server.on_client_disconnect(self._farewell)

    def _fill(self) -> None:
        """Controls and drawings of the session."""
        views = self.session.views()
        self._extent = float(views[0].model.stat.extent)
        chooser = None if self._picker is None else Chooser(self._picker, self._replace)
        self._panel = Panel(self._server, self.session, self.style, self.ask, chooser)
        self._ruler, self.pace = Ruler(self._extent), Pace()
        self._aim(views, len(views) > 1)
        self._drawings: list[Drawing] = []  # the page's thread makes them: meshes take seconds

    def _replace(self, session: Session) -> None:
        """Shows another session, to all visitors, from where it is seen best."""
        session.play(self.session.playing)
        self.session = session
        self._server.forget_controls()
        self._server.gui.set_panel_label(f"stiction: {session.name}")
        self._fill()
        for client in self._server.get_clients().values():
            self._place_camera(client.camera)

    # --- For others ---------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where a browser on this machine finds the page."""
        return web.url(self._server)

    @property
    def port(self) -> int:
        """That it listens on."""
        return self._server.get_port()

    @property
    def visitors(self) -> int:
        """Browsers that look at it."""
        return len(self._server.get_clients())

    def ask(self, request: Callable[[], None]) -> None:
        """Has the request called by the page's thread, between two frames."""
        with suppress(Full):  # a flood: what is in the queue already will do
            self._requests.put_nowait(request)
        self._asked.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Until the page closes; whether it did. Raises what ended its thread, if anything did."""
        ended = self._closing.wait(timeout)
        if self._failure is not None:
            raise self._failure
        return ended

    def close(self) -> None:
        """Ends the thread and the connections, frees the port. May be called twice."""
        self._closing.set()
        self._asked.set()
        self._thread.join(PATIENCE)
        web.stop(self._server)
        if self._picker is not None:
            self._picker.close()

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- Visitors -----------------------------------------------------------------------

    def _welcome(self, client: Any) -> None:
        camera = client.camera
        self._place_camera(camera)
        note = client.add_notification(
            "Loading", "The scene comes over; it plays when it is there.", loading=True
        )
        while not (self._drawn.wait(IDLE) or self._closing.is_set()):
            pass
        with suppress(Exception):  # a visitor who left, or does not draw: play all the same
            camera.get_render(ANSWER, ANSWER, timeout=MESHES)
        with suppress(Exception):
            note.remove()
        self.ask(self._begin)

    def _place_camera(self, camera: Any) -> None:
        camera.min_orbit_distance = 0.1 * self._extent
        position, look_at = self._place.camera(camera.image_width, camera.image_height)
        camera.position, camera.look_at = position, look_at

    def _begin(self) -> None:
        if self._autoplay:
            self._autoplay = False
            self.session.play()

    def _note(self, said: str) -> None:
        self.session.notice = said

    def _farewell(self, client: Any) -> None:
        if isinstance(self.session, Live):
            live = self.session
            self.ask(lambda: live.release(client.client_id))

    def _listener(self, side: int) -> Callable[[Any, int], None] | None:
        """What takes viser's drags of bodies on a side."""
        if not isinstance(self.session, Live):
            return None
        live = self.session

        def listener(event: Any, body: int) -> None:
            visitor, offset = event.client_id, self._offset(side)
            target = event.end_position - offset
            if event.phase == "start":
                point = event.start_position - offset
                self.ask(lambda: live.grab(visitor, body, point, target))
            elif event.phase == "update":
                self.ask(lambda: live.drag(visitor, target))
            else:
                self.ask(lambda: live.release(visitor))

        return listener

    # --- Drawing ------------------------------------------------------------------------

    def _aim(self, views: tuple[View, ...], two: bool) -> None:
        """Sets where the second side stands, and where the view is reset to."""
        self._place = arrange(views[0].model, views[0].data, two)
        camera = self._server.initial_camera
        camera.position, camera.look_at = self._place.camera()
        camera.fov = self._place.fov
        camera.near, camera.far = 0.02 * self._extent, 200.0 * self._extent

    def _offset(self, side: int) -> Any:
        return side * self._place.offset

    def _drawing(self, side: int, view: View) -> Drawing:
        return Drawing(
            self._server,
            f"/side{side}",
            view,
            self._offset(side),
            self._place.label,
            self.style,
            on_drag=self._listener(side),
            floor=side == 0,
        )

    def _draw(self, elapsed: float) -> tuple[View, ...]:
        views = self.session.views()
        scale = self._ruler.scale([view.contacts for view in views], elapsed)
        for side, view in enumerate(views[len(self._drawings) :], len(self._drawings)):
            self._aim(views, len(views) > 1)
            self._drawings.append(self._drawing(side, view))
        with self._server.atomic():
            for drawing, view in zip(self._drawings, views, strict=False):
                drawing.draw(view, self.session.springs.values(), self.style, scale)
            for side, drawing in enumerate(self._drawings):
                drawing.show(side < len(views))
        self._drawn.set()
        return views

    # --- The thread ---------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._loop()
        except BaseException as error:
            self._failure = error
            self._closing.set()

    def _loop(self) -> None:
        last = figures = drawn = perf_counter()
        due = last + FRAME
        while not self._closing.is_set():
            began = perf_counter()
            self._serve(began + SERVING)
            self.session.advance(began - last, SHARE * FRAME)
            last = began
            if self.session.playing or self._dirty:
                self._dirty = False
                views = self._draw(began - drawn)
                drawn = began
                new = self.pace.frame(self.session.time)
                if began - figures >= FIGURES or new or not self.session.playing:
                    figures = began
                    self._panel.refresh(self.pace, views, self._ruler.peak)
            if self.session.playing or self._dirty:
                due = max(due + FRAME, perf_counter() - FRAME)
                self._closing.wait(max(0.0, due - perf_counter()))
            else:  # nothing changes until somebody asks for it
                self._asked.wait(IDLE)
                last = perf_counter()
                due = last + FRAME

    def _serve(self, deadline: float) -> None:
        """Calls what was asked for, as far as there is time."""
        self._asked.clear()
        while perf_counter() < deadline:
            try:
                request = self._requests.get_nowait()
            except Empty:
                return
            self._dirty = True
            try:
                request()
            except Exception as error:  # whatever a visitor sent, the page goes on
                self.session.notice = str(error) or type(error).__name__
        self._asked.set()  # others wait
