"""Makes the pictures of docs/view.md: the page in a real browser, headless.

    python docs/pictures/view.py    writes view-pinch.png and view-block-feeder.png beside itself

Needs the extra `view`, playwright, and chromium on the path (or `STICTION_CHROMIUM`).
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
import chromium
import numpy as np

from stiction import scenes
from stiction.view import Live
from stiction.view.page import Page
from stiction.view.picker import Picker

HERE = Path(__file__).parent
SIZE = (1200, 760)


def main():
    pinch(HERE / "view-pinch.png")
    block_feeder(HERE / "view-block-feeder.png")


def pinch(path):
    """After 30 s: MuJoCo's capsule has crept down, ours is where it was."""
    with (
        Page(live("pinch"), autoplay=False, picker=Picker()) as page,
        chromium.tab(page.url, *SIZE) as tab,
    ):
        tidy(tab)
        page.ask(lambda: page.session.set_speed(4.0))
        play_until(page, tab, lambda: page.session.time > 30.0)
        shoot(page, tab, path)


def block_feeder(path):
    """A block, lifted off the pile by the mouse while the crank turns."""
    with (
        Page(live("block-feeder"), autoplay=False, picker=Picker()) as page,
        chromium.tab(page.url, *SIZE) as tab,
    ):
        tidy(tab)
        session = page.session
        play_until(page, tab, lambda: session.time > 0.3)
        # Paused while the mouse takes hold: a browser that draws in software is slower than blocks.
        pause(page, tab)
        (client,) = page._server.get_clients().values()
        body = session.ours.model.body("block4").id
        front = session.ours.data.xpos[body] + np.array([0.0, -0.04, 0.0])
        x, y = chromium.press(tab, client, lambda: front, lambda: session.springs)
        for k in range(1, 10):
            tab.mouse.move(x + 12 * k, y - 6 * k)
            chromium.frames(tab, 1)
        play_until(page, tab, lambda: session.time > 1.4)
        shoot(page, tab, path)
        tab.mouse.up()


def live(name):
    return Live(lambda: scenes.load(name), name=name, watch=scenes.get(name).watch)


def tidy(tab):
    """Closes the remark that the browser draws in software."""
    closing = tab.locator(".mantine-Notification-closeButton")
    for k in reversed(range(closing.count())):
        closing.nth(k).click()


def play_until(page, tab, condition):
    page.ask(page.session.play)
    until(tab, condition)


def pause(page, tab):
    page.ask(lambda: page.session.play(False))
    until(tab, lambda: not page.session.playing)
    chromium.frames(tab, 5)


def shoot(page, tab, path):
    pause(page, tab)
    tab.screenshot(path=path)
    print(f"wrote {path}")


def until(tab, condition):
    if not chromium.until(tab, condition):
        raise TimeoutError("did not happen in time")


if __name__ == "__main__":
    main()
