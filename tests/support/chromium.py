"""A real browser for the page: Debian's chromium or another one, headless, drawing in software."""

import os
import shutil
import time
from contextlib import contextmanager

import numpy as np

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

SECONDS = 180.0
"""How long anything may take: the first frame compiles shaders in software."""


def executable():
    """Path of the browser, or None. `STICTION_CHROMIUM` names another."""
    named = os.environ.get("STICTION_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def tab(url, width, height):
    """A Playwright page at the address, with a profile of its own, once it draws."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable(), headless=True, args=FLAGS
        )
        try:
            page = browser.new_page(viewport={"width": width, "height": height})
            page.set_default_timeout(1e3 * SECONDS)
            page.goto(url)
            page.wait_for_selector("canvas")
            frames(page, 10)
            yield page
        finally:
            browser.close()


def frames(page, count):
    """Waits until the browser has drawn this many frames."""
    page.evaluate(
        "count => new Promise(done => { const next = () => "
        "count-- > 0 ? requestAnimationFrame(next) : done(); next(); })",
        count,
    )


def until(page, condition, seconds=SECONDS):
    """Waits for the condition, while the browser goes on; whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        page.wait_for_timeout(20)
    return True


def press(page, client, point, held):
    """Presses the mouse on a body at `point()` until it is `held()`; where the mouse is then.

    A browser that is slow may show the body elsewhere: then the mouse missed, and tries again.
    """
    for _ in range(10):
        x, y = pixel(client, point())
        page.mouse.move(x, y)
        frames(page, 3)
        page.mouse.down()
        for k in range(1, 4):  # it counts as a drag once the mouse has moved
            page.mouse.move(x + 4 * k, y - 4 * k)
            frames(page, 1)
        if until(page, held, SECONDS / 10):
            return x + 12, y - 12
        page.mouse.up()
    raise AssertionError("the mouse did not get hold of the body")


def pixel(client, point):
    """Where a point of the world is on the screen, from viser's camera of that visitor."""
    camera = client.camera
    w, x, y, z = camera.wxyz
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    right, down, ahead = turn.T @ (np.asarray(point, float) - camera.position)
    scale = 0.5 * camera.image_height / np.tan(0.5 * camera.fov) / ahead
    return 0.5 * camera.image_width + scale * right, 0.5 * camera.image_height + scale * down
