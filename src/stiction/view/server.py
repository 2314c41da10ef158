"""The web server: viser's, on an address that is checked first, without its banner and tunnel.

viser answers whoever asks, takes messages of 50 MB, and lets a visitor's message write to any
attribute of a control. All that goes through `admission.py` and `Server.allow` first.
"""

from __future__ import annotations

import errno
import logging
import reprlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rich
import viser
import viser.infra
import websockets.asyncio.server
from viser._messages import FileTransferStartUpload, GuiUpdateMessage

from stiction.errors import InvalidInput, StictionError
from stiction.view.admission import MOST_BYTES, Admission
from stiction.view.upload import MOST_SENT

LOCAL = "127.0.0.1"
"""The address that only this machine reaches."""


NOISY = ("websockets", "asyncio")
"""Loggers that tell of every broken connection and message. Python prints them where no handler
is; they have an empty one, so that they speak only to who set up logging."""


PART = 512 * 1024
"""Bytes of a file that viser's page sends in one message."""

Rule = Callable[[Any], bool]
"""Whether a control may have that value."""

_starting = threading.Lock()


class Server(viser.ViserServer):
    """Never opens viser's public tunnel, which any visitor's message could ask for."""

    admission: Admission
    _rules: dict[str, tuple[str, Rule]]
    _upload: str = ""
    """The control by which files may come; empty: none may."""

    def allow(self, handle: Any, rule: Rule) -> None:
        """Takes from visitors, for that control, only values that the rule is true of."""
        self._rules[handle._impl.uuid] = handle.label, rule

    def check_values(self, tell: Callable[[str], None]) -> None:
        """From now on only controls that were allowed to change do, and in their value only.

        tell: is called with a sentence where a value is refused, in the server's thread.
        """
        self._rules = {}
        interface, inner = self.gui._websock_interface, self.gui._handle_gui_updates
        interface.unregister_handler(GuiUpdateMessage, inner)

        async def checked(client: Any, message: Any) -> None:
            if message.uuid not in self._rules or list(message.updates) != ["value"]:
                return
            label, rule = self._rules[message.uuid]
            value = message.updates["value"]
            if rule(value):
                await inner(client, message)
            else:
                tell(f"{label}: is {reprlib.repr(value)}, which is not in its list or range")

        interface.register_handler(GuiUpdateMessage, checked)
        start = self.gui._handle_file_transfer_start
        interface.unregister_handler(FileTransferStartUpload, start)

        def begins(client: Any, message: Any) -> None:
            if message.source_component_uuid != self._upload:
                return
            most = MOST_SENT // PART + 1
            if 0 <= message.size_bytes <= MOST_SENT and 0 <= message.part_count <= most:
                start(client, message)
            else:
                tell(f"a file of {message.size_bytes} bytes was refused: {MOST_SENT} at most")

        interface.register_handler(FileTransferStartUpload, begins)

    def allow_upload(self, handle: Any) -> None:
        """Takes files from visitors by this button, and by no other control."""
        self._upload = handle._impl.uuid

    def forget_controls(self) -> None:
        """Removes all controls and all that is drawn, for another scene."""
        self._rules.clear()
        self._upload = ""
        self.gui.reset()
        self.scene.reset()

    def request_share_url(self, verbose: bool = True) -> str | None:
        """Refused."""
        return None


def start(host: str, port: int, label: str, *, upload: bool = False) -> Server:
    """Listens on `host`, `port` (0: any free one); InvalidInput where that cannot be.

    upload: messages may be as large as a part of a file."""
    _check(host, port)
    for name in NOISY:
        logging.getLogger(name).addHandler(logging.NullHandler())
    admission = Admission(host, label)
    with _silent(), _asking(admission, 2 * PART if upload else MOST_BYTES):
        server = Server(host=host, port=port, label=label, verbose=False)
    server.admission = admission
    if not admission.installed:
        stop(server)
        raise StictionError(
            f"viser {viser.__version__} starts its server in a way that this release of stiction "
            "does not know, and would let in any web site: install viser 1.1"
        )
    if port and server.get_port() != port:  # taken since it was checked: viser goes on to the next
        stop(server)
        raise InvalidInput("--port", _taken(port))
    return server


def stop(server: Server) -> None:
    """Closes all connections, frees the port, ends the threads."""
    with _silent():
        server.stop()


def url(server: Server) -> str:
    """Where a browser on this machine finds the page; it holds the token that lets it in."""
    host = server.get_host()
    shown = LOCAL if host in ("0.0.0.0", "") else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{server.get_port()}/?token={server.admission.token}"


@contextmanager
def _asking(admission: Admission, most: int) -> Iterator[None]:
    """Servers that viser starts meanwhile ask `admission` first. viser has no way to be told."""
    library: Any = websockets.asyncio.server
    with _starting:
        original = library.serve

        def serve(handler: Any, *arguments: Any, **options: Any) -> Any:
            if getattr(handler, "__module__", "").startswith("viser."):
                options["process_request"] = admission.answers(options.get("process_request"))
                options["max_size"] = most
            return original(handler, *arguments, **options)

        library.serve = serve
        try:
            yield
        finally:
            library.serve = original


def _check(host: str, port: int) -> None:
    """viser takes the next port where one is taken, and never returns where none can be had."""
    if not 0 <= port <= 65535:
        raise InvalidInput("--port", f"is {port}: 0 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
    except OSError as error:
        raise InvalidInput("--host", f"{host!r} is no address of this machine: {error}") from error
    with socket.socket(family, kind, protocol) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(address)
            trial.listen()
        except PermissionError as error:
            raise InvalidInput("--port", f"{port} is reserved for the system: {error}") from error
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise InvalidInput("--port", _taken(port)) from error
            raise InvalidInput("--host", f"cannot listen on {host}:{port}: {error}") from error


def _taken(port: int) -> str:
    return f"{port} is in use; choose another, or 0 for any free one"


@contextmanager
def _silent() -> Iterator[None]:
    """viser prints its own banner and farewell by rich's shared console."""
    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
