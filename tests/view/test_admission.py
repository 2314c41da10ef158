"""Who is let in to the page, by real requests over the loopback, and what may be said there."""

import http.client
import time

import pytest
from visitor import until, visitor

from stiction import scenes
from stiction.view import Live


@pytest.fixture
def page():
    pytest.importorskip("viser", reason="the extra `view` is not installed")
    pytest.importorskip("mjviser", reason="the extra `view` is not installed")
    from stiction.view.page import Page

    with Page(Live(lambda: scenes.load("pinch"), name="pinch"), autoplay=False) as made:
        yield made


def get(page, path, host="127.0.0.1:{}", **headers):
    """Status, headers and body of an HTTP request."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host.format(page.port))
    for name, value in headers.items():
        connection.putheader(name, value.format(page.port))
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, response.headers, body


def path_of(page):
    return page.url.split(str(page.port), 1)[1]


def open_socket(page, path, **headers):
    import viser
    from websockets.sync.client import connect

    return connect(
        f"ws://127.0.0.1:{page.port}{path}",
        subprotocols=[f"viser-v{viser.__version__}"],
        additional_headers={name: value.format(page.port) for name, value in headers.items()},
        close_timeout=0.5,
        max_size=None,
    )


def cookie_of(page):
    _, headers, _ = get(page, path_of(page))
    return headers["Set-Cookie"].split(";")[0]


def test_the_printed_address_opens_the_page_and_leaves_a_cookie_that_does(page):
    status, headers, body = get(page, path_of(page))
    assert status == 200
    assert b"<html" in body
    given = headers["Set-Cookie"]
    assert "HttpOnly" in given
    assert "SameSite=Strict" in given
    assert headers["Referrer-Policy"] == "no-referrer"
    assert get(page, "/", Cookie=given.split(";")[0])[0] == 200
    assert get(page, "/", Cookie=f"other=1; {given.split(';')[0]}")[0] == 200


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/index.html", {}),
        ("/?token=", {}),
        ("/?token=guess", {}),
        ("/", {"Cookie": "stiction-0=guess"}),
        ("/", {"Cookie": "=;;=,\t"}),
    ],
)
def test_without_the_token_nothing_is_told(page, path, headers):
    status, _, body = get(page, path, **headers)
    assert status == 403
    assert page.session.name.encode() not in body
    assert b"token" in body


@pytest.mark.parametrize(
    "host", ["evil.example:{}", "localhost.evil.example", "10.0.0.1:{}", "", "[::1", "a@evil:{}"]
)
def test_a_host_that_is_not_this_machine_is_refused_even_with_the_token(page, host):
    assert get(page, path_of(page), host=host)[0] == 403


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "localhost:9999", "[::1]:{}"])
def test_this_machine_has_its_usual_names_and_ports_may_be_forwarded(page, host):
    assert get(page, path_of(page), host=host)[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost:{}", "x"]
)
def test_another_origin_is_refused_for_the_page_and_for_the_socket(page, origin):
    from websockets.exceptions import InvalidStatus

    assert get(page, path_of(page), Origin=origin)[0] == 403
    for path, headers in ((path_of(page), {}), ("/", {"Cookie": cookie_of(page)})):
        with (
            pytest.raises(InvalidStatus) as refused,
            open_socket(page, path, Origin=origin, **headers),
        ):
            pass
        assert refused.value.response.status_code == 403
    assert page.visitors == 0


@pytest.mark.parametrize("path", ["/", "/?token=guess"])
def test_a_socket_without_the_token_is_refused(page, path):
    from websockets.exceptions import InvalidStatus

    with pytest.raises(InvalidStatus) as refused, open_socket(page, path):
        pass
    assert refused.value.response.status_code == 403


def test_a_socket_of_the_pages_own_origin_with_the_cookie_is_let_in(page):
    with open_socket(page, "/", Origin="http://127.0.0.1:{}", Cookie=cookie_of(page)) as socket:
        assert socket.recv(timeout=30)


def test_each_page_has_a_token_of_its_own(page):
    from stiction.view.page import Page

    with Page(page.session) as other:
        assert get(other, path_of(page))[0] == 403
        assert get(other, "/", Cookie=cookie_of(page))[0] == 403


def test_a_machine_on_the_network_is_called_by_number_or_by_its_name():
    from stiction.view.admission import Admission

    class Headers(dict):
        def get_all(self, name):
            return [self[name]] if name in self else []

    public = Admission("0.0.0.0")
    path = f"/?token={public.token}"
    assert public.refusal(path, Headers(Host="192.168.1.5:8080")) == ""
    assert public.refusal(path, Headers(Host="rebound.example:8080")) != ""
    assert public.refusal("/", Headers(Host="192.168.1.5:8080")) != ""


def controls(page):
    found = page._server.gui._gui_input_handle_from_uuid.values()
    return {handle.label: handle for handle in found if hasattr(handle, "label")}


def test_values_outside_their_lists_and_ranges_are_dropped(page):
    session, known = page.session, controls(page)
    wrong = [
        ("mu", {"value": 1e300}),
        ("mu", {"value": -0.1}),
        ("mu", {"value": float("nan")}),
        ("mu", {"value": "1"}),
        ("mu", {"value": [1.0]}),
        ("mu", {"value": True}),
        ("mu", {"max": 1e300}),
        ("mu", {"value": 0.3, "max": 5.0}),
        ("mu", {"update_cb": []}),
        ("Contact model", {"value": "viscous:1e300"}),
        ("Contact model", {"value": 3}),
        ("Speed", {"value": "1000"}),
        ("Beside", {"value": "elsewhere"}),
        ("Pull", {"value": 1e9}),
        ("Move", {"value": "Jump"}),
        ("Forces", {"value": "yes"}),
        ("Arrow length", {"value": -1.0}),
    ]
    with visitor(page) as one:
        until(lambda: page.visitors == 1)
        for label, updates in wrong:
            one.say("GuiUpdateMessage", uuid=known[label]._impl.uuid, updates=updates)
        one.say("GuiUpdateMessage", uuid="nothing", updates={"value": 1})
        one.say("GuiUpdateMessage", uuid=known["mu"]._impl.uuid, updates={"value": 0.25})
        until(lambda: session.friction == 0.25)
        one.say("GuiUpdateMessage", uuid=known["Speed"]._impl.uuid, updates={"value": "0.5"})
        until(lambda: session.speed == 0.5)
    assert known["mu"].max < 1e3
    assert session.contact == "coulomb"
    assert session.strength < 100.0
    assert page.style.forces is True
    assert page.style.length == 1.0


def listen(socket):
    while True:
        socket.recv(timeout=30)


def test_a_message_beyond_all_sizes_ends_the_connection_and_nothing_else(page):
    from websockets.exceptions import ConnectionClosed

    with visitor(page) as one:
        until(lambda: page.visitors == 1)
        one.send(b"x" * 1_000_000)
        with pytest.raises(ConnectionClosed):
            listen(one)
    until(lambda: page.visitors == 0)
    with visitor(page):
        until(lambda: page.visitors == 1)


def test_a_body_is_not_pulled_out_of_the_world(page):
    from stiction import InvalidInput

    with pytest.raises(InvalidInput, match="target"):
        page.session.grab(1, 1, [0.0, 0.0, 0.0], [0.0, 0.0, 1e12])
    assert not page.session.springs


def test_a_paused_page_with_nobody_there_uses_no_processor(page):
    time.sleep(1.0)  # what compiles and draws first has ended
    before = time.process_time()
    time.sleep(3.0)
    assert time.process_time() - before < 0.03


def test_a_paused_page_answers_at_once(page):
    time.sleep(0.5)
    began = time.perf_counter()
    done = []
    page.ask(lambda: done.append(time.perf_counter()))
    until(lambda: done)
    assert done[0] - began < 0.2
    page.ask(page.session.play)
    until(lambda: page.session.time > 0.0)
    assert page.session.time < 0.5  # the pause was not made up for
