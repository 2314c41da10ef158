"""The web server: viser's, on an address that is checked first, without its banner and tunnel."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import rich
import viser

from stiction.errors import InvalidInput

LOCAL = "127.0.0.1"
"""The address that only this machine reaches."""


NOISY = ("websockets", "asyncio")
"""Loggers that tell of every broken connection and message. Python prints them where no handler
is; they have an empty one, so that they speak only to who set up logging."""


class Server(viser.ViserServer):
    """Never opens viser's public tunnel, which any visitor's message could ask for."""

    def request_share_url(self, verbose: bool = True) -> str | None:
        """Refused."""
        return None


def start(host: str, port: int, label: str) -> Server:
    """Listens on `host`, `port` (0: any free one); InvalidInput where that cannot be."""
    _check(host, port)
    for name in NOISY:
        logging.getLogger(name).addHandler(logging.NullHandler())
    with _silent():
        server = Server(host=host, port=port, label=label, verbose=False)
    if port and server.get_port() != port:  # taken since it was checked: viser goes on to the next
        stop(server)
        raise InvalidInput("--port", _taken(port))
    return server


def stop(server: Server) -> None:
    """Closes all connections, frees the port, ends the threads."""
    with _silent():
        server.stop()


def url(server: Server) -> str:
    """Where a browser on this machine finds the page."""
    host = server.get_host()
    shown = LOCAL if host in ("0.0.0.0", "") else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{server.get_port()}"


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
