"""The page and its command, without a browser: a connection stands for it (`visitor.py`)."""

import gzip
import os
import signal
import socket
import threading
import time
import urllib.request

import pytest
import terminal
from visitor import until, visitor

from stiction import cli, scenes
from stiction.errors import InvalidInput
from stiction.record import record
from stiction.simulate import Simulator
from stiction.view import Live


@pytest.fixture
def page(monkeypatch):
    pytest.importorskip("viser", reason="the extra `view` is not installed")
    pytest.importorskip("mjviser", reason="the extra `view` is not installed")
    from stiction.view import page as module

    monkeypatch.setattr(module, "MESHES", 0.1)  # these visitors draw nothing
    with module.Page(Live(lambda: scenes.load("pinch"), watch=("capsule",))) as page:
        until(page._drawn.is_set)
        yield page


def test_visitors_see_the_panel_while_meshes_are_made(monkeypatch):
    pytest.importorskip("mjviser", reason="the extra `view` is not installed")
    from stiction.view import page as module

    made, go_on, drawing = threading.Event(), threading.Event(), module.Drawing

    def slow(*arguments, **options):
        made.set()
        go_on.wait(60.0)
        return drawing(*arguments, **options)

    monkeypatch.setattr(module, "Drawing", slow)
    monkeypatch.setattr(module, "MESHES", 0.1)
    with module.Page(Live(lambda: scenes.load("pinch"), watch=("capsule",))) as page:
        assert made.wait(60.0)
        with visitor(page) as one:
            while b"Contact model" not in unpacked(one.recv(timeout=60.0)):
                pass
            assert not page.session.playing
            go_on.set()
            until(lambda: page.session.time > 0.1)


def unpacked(message):
    """viser's messages: sizes before and after compression, and what was compressed."""
    zstandard = pytest.importorskip("zstandard")
    whole, packed = (int.from_bytes(message[k : k + 8], "little") for k in (0, 8))
    part = message[16 : 16 + packed]
    return zstandard.ZstdDecompressor().decompress(part, max_output_size=whole)


def test_the_page_itself_tells_that_the_scene_is_on_its_way(page):
    with urllib.request.urlopen(page.url) as answer:
        packed, body = answer.headers["Content-Encoding"] == "gzip", answer.read()
    assert b"the scene comes over" in (gzip.decompress(body) if packed else body)


def test_the_page_plays_when_the_first_visitor_comes_and_sends_frames(page):
    time.sleep(0.1)
    assert page.session.time == 0.0
    with visitor(page) as one:
        until(lambda: page.session.time > 0.1)
        until(lambda: page.pace.frames > 0.0)
        assert sum(len(one.recv(timeout=10)) for _ in range(20)) > 0
    until(lambda: page.visitors == 0)


def test_visitors_steer_by_requests_and_a_bad_one_is_told(page):
    session = page.session
    with visitor(page) as one, visitor(page):
        until(lambda: page.visitors == 2 and session.playing)
        mu = next(h for h in handles(page) if h.label == "mu")
        one.say("GuiUpdateMessage", uuid=mu._impl.uuid, updates={"value": 0.3})
        until(lambda: session.friction == 0.3)
        one.say("GuiUpdateMessage", uuid=mu._impl.uuid, updates={"value": -5.0})
        until(lambda: "mu: is -5" in session.notice)
        assert session.friction == 0.3
        until(lambda: mu.value == 0.3)
        model = next(h for h in handles(page) if h.label == "Contact model")
        one.say("GuiUpdateMessage", uuid=model._impl.uuid, updates={"value": "rubbish"})
        until(lambda: "rubbish" in session.notice)
        one.say("GuiUpdateMessage", uuid=model._impl.uuid, updates={"value": "frictionless"})
        until(lambda: session.contact == "frictionless")
        before = session.time
        until(lambda: session.time > before + 0.1)


def handles(page):
    return [h for h in page._server.gui._gui_input_handle_from_uuid.values() if hasattr(h, "label")]


def test_a_drag_pulls_the_body_under_the_mouse_until_the_visitor_leaves(page):
    session = page.session
    group = next(
        g for g in page._drawings[0]._scene._mesh_groups
        if 3 in g.body_ids  # the capsule
    )  # fmt: skip
    with visitor(page) as one:
        until(lambda: session.playing)
        drag = {
            "name": group.handle.name, "instance_index": 0, "start_position": [0.0, 0.0, 0.0],
            "start_screen_pos": [0.5, 0.5], "end_screen_pos": [0.5, 0.5], "button": "left",
            "modifier": None,
        }  # fmt: skip
        one.say("SceneNodeDragMessage", phase="start", end_position=[0.0, 0.0, 0.0], **drag)
        until(lambda: session.springs)
        one.say("SceneNodeDragMessage", phase="update", end_position=[0.0, 0.0, 0.5], **drag)
        until(lambda: session.ours.data.xpos[3, 2] > 0.01)  # 170 N against 17 N of friction
        assert next(iter(session.springs.values())).body == 3
    until(lambda: not session.springs)


def test_malformed_messages_do_not_disturb_the_others(page, capfd):
    import msgspec

    with visitor(page):
        until(lambda: page.visitors == 1)
        for junk in (b"\xff\x00junk", "text", msgspec.msgpack.encode({"type": "NoSuchMessage"})):
            with visitor(page) as bad:
                until(lambda: page.visitors == 2)
                bad.send(junk)
                until(lambda: page.visitors == 1)
        before = page.session.time
        until(lambda: page.session.time > before + 0.1)
    capfd.readouterr()  # viser's log of the junk


def test_a_request_that_fails_does_not_end_the_page(page):
    page.ask(lambda: {}["absent"])
    until(lambda: "absent" in page.session.notice)
    done = threading.Event()
    page.ask(done.set)
    assert done.wait(30)


def test_only_this_machine_is_listened_to(page):
    socket.create_connection(("127.0.0.1", page.port), timeout=5).close()
    with pytest.raises(OSError):  # noqa: PT011
        socket.create_connection(("127.0.0.2", page.port), timeout=1)
    assert page._server.request_share_url() is None


def test_a_closed_page_frees_its_port_and_its_threads(page):
    with visitor(page):
        until(lambda: page.visitors == 1)
        port = page.port
        page.close()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))
    assert not [t for t in threading.enumerate() if t.name == "stiction-view"]
    assert not page._server._websock_server._server_thread.is_alive()
    page.close()


def test_what_ends_the_thread_is_raised_to_who_waits(page, monkeypatch):
    monkeypatch.setattr(page.session, "advance", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        page.wait(30)


def test_a_port_in_use_and_an_address_that_is_none_are_named(page):
    from stiction.view.page import Page

    with pytest.raises(InvalidInput, match="in use"):
        Page(page.session, port=page.port)
    with pytest.raises(InvalidInput, match="--host"):
        Page(page.session, host="192.0.2.1")
    with pytest.raises(InvalidInput, match="--port"):
        Page(page.session, port=70000)


def test_the_command_names_what_is_not_installed(monkeypatch, capsys):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "mjviser" else found(name)
    )
    assert cli.main(["view", "pinch"]) == 2
    assert "pip install 'stiction[view]'" in capsys.readouterr().err


def test_the_command_refuses_what_cannot_be(tmp_path, capsys):
    pytest.importorskip("mjviser", reason="the extra `view` is not installed")
    (tmp_path / "not.npz").write_bytes(b"nothing")
    model, data, _ = scenes.load("pinch")
    recorded = record(Simulator(model), data, 0.01, xml=scenes.get("pinch").xml()).trajectory
    trajectory = recorded.save(tmp_path / "trajectory.npz")
    for words, said in (
        ("view pnch", "did you mean pinch"),
        ("view pinch --mu -1", "zero or more"),
        ("view pinch --contact coulom", "did you mean coulomb"),
        ("view pinch --port 70000", "65535"),
        (f"view {tmp_path / 'not.npz'}", "is no trajectory"),
        (f"view {trajectory} --mu 1", "as it was recorded"),
    ):
        assert cli.main(words.split()) == 2, words
        assert said in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to a child process on Windows")
def test_ctrl_c_closes_the_page_without_a_word_of_python():
    pytest.importorskip("mjviser", reason="the extra `view` is not installed")
    process = terminal.start("view", "pinch", "--port", "0")
    line = process.stdout.readline()
    port = int(line.split("http://127.0.0.1:")[1].split("/")[0])
    socket.create_connection(("127.0.0.1", port), timeout=60).close()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert out.split() == ["closed"]
    assert "Traceback" not in err
    with pytest.raises(OSError):  # noqa: PT011
        socket.create_connection(("127.0.0.1", port), timeout=1)
