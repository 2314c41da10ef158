"""Who may see the page and steer it: whoever has its address with the token, as Jupyter does it.

Any web site that the user has open can have the browser ask this machine for things. Three checks
stand before every request, of pages and of web sockets:

    Host    names this machine, by number or as localhost: a site whose name was made to point here
            (DNS rebinding) is refused
    Origin  where the browser sends one it is the page's own: another site's script is refused
    token   from the printed address, or from the cookie that the first visit left

Values are checked one by one (`panel.py`), and messages have a largest size.
"""

from __future__ import annotations

import gzip
import hmac
import secrets
import socket
from collections.abc import Callable
from html import escape
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs, urlsplit

from stiction.view.status import HERE

MOST_BYTES = 64 * 1024
"""Of a message from a visitor; those of the page's own script are below a thousand."""

HEADERS = {
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
}

LOADING = f"""
<div id="stiction-loading" style="position:fixed;left:50%;top:40%;transform:translate(-50%,-50%);
z-index:99;padding:1em 2em;background:#fff;border-radius:6px;box-shadow:0 0 1em #0003;
font-family:sans-serif;text-align:center"><b>TITLE</b><br/>the scene comes over</div>
<script>
new MutationObserver((changes, watch) => {{
  if (!document.querySelector(".{HERE}")) return;
  document.getElementById("stiction-loading").remove();
  watch.disconnect();
}}).observe(document, {{childList: true, subtree: true}});
</script>
"""
"""Stands on the page until the panel's figures do."""

Answer = Callable[[Any, Any], Any]
"""Of `websockets`: (connection, request) to a response, or None to go on with the handshake."""


class Admission:
    """The checks for a server that listens on `host`."""

    def __init__(self, host: str, title: str = "") -> None:
        self._title = title
        self.token = secrets.token_urlsafe(24)
        self.installed = False
        """Whether a server asks here."""
        self._public = not _is_loopback(host)
        self._names = {"localhost"}
        if self._public:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        # Browsers send cookies to all ports of a host: each server has a name of its own.
        self._cookie = f"stiction-{secrets.token_hex(4)}"

    def refusal(self, path: str, headers: Any) -> str:
        """Why the request is refused; empty if it is not. headers: with `get_all`."""
        hosts = headers.get_all("Host")
        if len(hosts) != 1 or not self._is_here(hosts[0]):
            return "This address is not one of the page's."
        for origin in headers.get_all("Origin"):
            if urlsplit(origin).netloc.lower() != hosts[0].lower():
                return "Another site asked for this page."
        if not (self._matches(_query_token(path)) or self._matches(self._cookie_token(headers))):
            return "Open the whole address that `stiction view` printed: it holds a token."
        return ""

    def answers(self, inner: Answer | None) -> Answer:
        """`inner` behind the checks; the first visit by the whole address gets the cookie."""
        self.installed = True

        def answer(connection: Any, request: Any) -> Any:
            try:
                refused = self.refusal(request.path, request.headers)
            except ValueError:  # a host or an address that does not parse
                refused = "This request is malformed."
            if refused:
                return connection.respond(HTTPStatus.FORBIDDEN, refused + "\n")
            response = None if inner is None else inner(connection, request)
            if response is not None:
                if self._title:
                    _introduce(response, self._title)
                for name, value in HEADERS.items():
                    response.headers[name] = value
                if self._matches(_query_token(request.path)):
                    response.headers["Set-Cookie"] = (
                        f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
                    )
            return response

        return answer

    def _is_here(self, host: str) -> bool:
        name = urlsplit(f"//{host}").hostname or ""
        if name in self._names:
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return self._public or address.is_loopback

    def _matches(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())

    def _cookie_token(self, headers: Any) -> str:
        for line in headers.get_all("Cookie"):
            try:
                jar: SimpleCookie = SimpleCookie(line)
            except CookieError:
                continue
            if self._cookie in jar:
                return jar[self._cookie].value
        return ""


def _introduce(response: Any, title: str) -> None:
    """Names the browser's tab, and tells that the scene is on its way until the panel is there:
    viser's page calls itself Viser, is bare while meshes come, and cannot be told."""
    if not response.headers.get("Content-Type", "").startswith("text/html"):
        return
    packed = response.headers.get("Content-Encoding") == "gzip"
    body = gzip.decompress(response.body) if packed else response.body
    title = escape(title)
    body = body.replace(b"<title>Viser</title>", f"<title>{title}</title>".encode(), 1)
    body = body.replace(b"<body>", b"<body>" + LOADING.replace("TITLE", title).encode(), 1)
    response.body = gzip.compress(body) if packed else body
    del response.headers["Content-Length"]
    response.headers["Content-Length"] = str(len(response.body))


def _query_token(path: str) -> str:
    return parse_qs(urlsplit(path).query).get("token", [""])[0]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
