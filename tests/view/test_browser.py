"""The page in a real browser. One tab serves all tests: its first frame takes many seconds."""

import io
import threading
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import pytest

pytest.importorskip("viser", reason="the extra `view` is not installed")
pytest.importorskip("mjviser", reason="the extra `view` is not installed")
pytest.importorskip("playwright", reason="playwright is not installed")

import chromium
from visitor import visitor

from stiction.view import Live
from stiction.view.page import Page
from stiction.view.picker import Picker

pytestmark = [
    pytest.mark.skipif(
        chromium.executable() is None,
        reason=f"no browser: none of {', '.join(chromium.NAMES)} is on the path",
    ),
    pytest.mark.xdist_group("browser"),
]

CRATE = """<mujoco><option timestep=".005" gravity="3 0 -9.4" cone="elliptic"/>
<statistic extent="1" center="0 0 .2"/><visual><global azimuth="90" elevation="-15"/></visual>
<worldbody><light pos="0 0 3"/>
  <geom type="box" size="1 .4 .05" pos="0 0 -.05" rgba=".3 .3 .3 1" friction=".6"/>
  <body name="crate" pos="-.3 0 .15"><freejoint/>
    <geom type="box" size=".15 .15 .15" mass="2" rgba=".2 .4 .8 1" friction=".6"/></body>
</worldbody></mujoco>"""


def load():
    model = mujoco.MjModel.from_xml_string(CRATE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data, None


@dataclass
class Shown:
    page: Page
    tab: Any

    @property
    def session(self):
        return self.page.session

    def picture(self):
        """(height, width, 3) of the scene, without the panel."""
        from PIL import Image

        raw = self.tab.screenshot()
        return np.asarray(Image.open(io.BytesIO(raw)).convert("RGB"), float)[:, :380]

    def until(self, condition):
        assert chromium.until(self.tab, condition), f"not in time; notice: {self.session.notice}"

    def choose(self, model):
        """Chooses a contact model with the mouse."""
        self.tab.get_by_role("combobox", name="Contact model").click()
        self.tab.get_by_role("option", name=model, exact=True).click()


@pytest.fixture(scope="module")
def opened():
    pytest.importorskip("PIL", reason="pillow, which reads the pictures, is not installed")
    session = Live(load, name="crate", beside="nothing", watch=("crate",))
    with Page(session, picker=Picker(upload=True)) as page, chromium.tab(page.url, 720, 420) as tab:
        yield Shown(page, tab)


@pytest.fixture
def shown(opened):
    session, ready = opened.session, threading.Event()
    opened.page.ask(session.reset)
    opened.page.ask(lambda: session.set_contact("coulomb"))
    opened.page.ask(session.play)
    opened.page.ask(ready.set)
    opened.until(lambda: ready.is_set() and session.time > 0.0)
    return opened


def test_the_page_loads_and_is_not_blank(shown):
    assert shown.tab.get_by_text("stiction: crate").is_visible()
    shown.tab.get_by_text("worst certificate").wait_for()

    def blue():
        picture = shown.picture()
        return (picture[..., 2] > picture[..., 0] + 30).mean()

    shown.until(lambda: blue() > 0.005)  # the crate
    picture = shown.picture()
    assert picture.std() > 5.0
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 50


def test_choosing_another_model_changes_the_slip_and_bodies_move(shown):
    session = shown.session
    shown.until(lambda: session.time > 0.3)
    assert session.history.columns()[1].max() < 1e-9  # holds: tan of the slope is 0.32
    before = shown.picture()
    shown.choose("frictionless")
    shown.until(lambda: session.contact == "frictionless")
    shown.until(lambda: session.views()[0].travel > 0.2)
    assert session.history.columns()[1].max() > 0.5
    shown.page.ask(lambda: session.play(False))
    # The browser may be some frames behind.
    shown.until(lambda: (np.abs(shown.picture() - before).max(axis=2) > 30).mean() > 0.005)
    # The next test's dropdown starts from where a visitor left it.
    shown.choose("coulomb")
    shown.until(lambda: session.contact == "coulomb")


def test_dragging_with_the_mouse_moves_the_body(shown):
    session, tab = shown.session, shown.tab
    (client,) = shown.page._server.get_clients().values()
    crate = session.ours.model.body("crate").id
    start = session.ours.data.xpos[crate].copy()
    x, y = chromium.press(tab, client, lambda: start, lambda: session.springs)
    for k in range(1, 6):
        tab.mouse.move(x + 4 * k, y - 20 * k)
        chromium.frames(tab, 1)
    shown.until(lambda: session.ours.data.xpos[crate, 2] > start[2] + 0.05)
    tab.mouse.up()
    shown.until(lambda: not session.springs)
    shown.until(lambda: session.ours.data.xpos[crate, 2] < start[2] + 0.02)  # and it falls


def test_pause_step_and_reset_are_buttons(shown):
    session, tab = shown.session, shown.tab
    tab.get_by_role("button", name="Pause").click()
    shown.until(lambda: not session.playing)
    stopped = session.time
    tab.get_by_role("button", name="Step").click()
    shown.until(lambda: session.time == pytest.approx(stopped + 0.005))
    tab.get_by_role("button", name="Reset").click()
    shown.until(lambda: session.time == 0.0)
    tab.get_by_role("button", name="Play").click()
    shown.until(lambda: session.time > 0.1)


def test_keys_pause_step_and_reset(shown):
    session, tab = shown.session, shown.tab
    tab.evaluate("document.activeElement?.blur()")  # keys in a control of the panel are its own
    tab.keyboard.press("Space")
    shown.until(lambda: not session.playing)
    stopped = session.time
    tab.keyboard.press("ArrowRight")
    shown.until(lambda: session.time == pytest.approx(stopped + 0.005))
    tab.keyboard.press("Backspace")
    shown.until(lambda: session.time == 0.0)
    assert tab.title() == "stiction: crate"
    assert tab.locator("#stiction-loading").count() == 0  # since the panel is there


def test_a_screenshot_comes_as_a_file(shown):
    tab = shown.tab
    tab.get_by_text("Pictures", exact=True).click()
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name="Screenshot").click()
    assert waiting.value.suggested_filename == "crate.png"
    tab.get_by_text("Pictures", exact=True).click()
    assert shown.session.notice == ""


def test_bad_messages_and_other_visitors_do_not_disturb_the_browser(shown):
    with visitor(shown.page) as other:
        shown.until(lambda: shown.page.visitors == 2)
        for junk in (b"\x00\x01", "text"):
            with visitor(shown.page) as bad:
                bad.send(junk)
        assert len(other.recv(timeout=chromium.SECONDS)) > 0
        figures = shown.tab.get_by_text("worst certificate")
        text = figures.inner_text()
        shown.until(lambda: figures.inner_text() != text)
    shown.until(lambda: shown.page.visitors == 1)
    assert shown.session.notice == ""


def test_another_scene_is_chosen_and_a_model_is_sent(shown, tmp_path):
    page, tab = shown.page, shown.tab
    tab.get_by_role("combobox", name="Scene").click()
    tab.get_by_role("option", name="pinch", exact=True).click()
    shown.until(lambda: page.session.name == "pinch" and page.session.time > 0.0)
    tab.get_by_text("stiction: pinch").wait_for()
    path = tmp_path / "crate.xml"
    path.write_text(CRATE, encoding="utf-8")
    with tab.expect_file_chooser() as chooser:
        tab.get_by_role("button", name="Send a model").click()
    chooser.value.set_files(path)
    shown.until(lambda: page.session.name == "crate" and page.session.time > 0.0)
    tab.get_by_text("stiction: crate").wait_for()  # the buttons are made anew with the scene
    path.write_text(CRATE.replace("<worldbody>", "<worldbody><geom type='mesh'/>"), "utf-8")
    with tab.expect_file_chooser() as chooser:
        tab.get_by_role("button", name="Send a model").click()
    chooser.value.set_files(path)
    shown.until(lambda: "does not compile" in page.session.notice)
