"""Frames per second of the live page, MuJoCo beside, while a body is pulled:

    python benchmarks/view_frames.py pinch block-feeder jack stack

A connection that takes every frame stands for the browser, so that the figures are the page's own
and not those of a graphics card. It runs in the same process, and takes its share of it.
"""

from __future__ import annotations

import argparse
import sys
import threading
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from visitor import until, visitor

from stiction import scenes
from stiction.view import Live
from stiction.view.page import Page

SECONDS = 5.0


def measure(name):
    """Contacts, frames/s, simulated over real time; means over SECONDS."""
    watch = scenes.get(name).watch
    session = Live(lambda: scenes.load(name), name=name, watch=watch)
    with Page(session) as page, visitor(page) as one:
        done = threading.Event()
        taker = threading.Thread(target=take, args=(one, done))
        taker.start()
        until(lambda: session.time > 0.1, 300.0)  # whatever is compiled is compiled by now
        body = session.ours.model.body(watch[0]).id
        point = session.ours.data.xpos[body].copy()
        target = point + 0.1 * session.ours.model.stat.extent * np.array([0.0, 0.0, 1.0])
        page.ask(lambda: session.grab(1, body, point, target))
        page.wait(1.0)
        figures = []
        for _ in range(round(SECONDS / 0.5)):
            page.wait(0.5)
            figures.append((page.pace.frames, page.pace.speed))
        contacts = len(session.views()[0].contacts.mode)
        done.set()
        taker.join()
    return contacts, *np.mean(figures, axis=0)


def take(connection, done):
    while not done.is_set():
        connection.recv(timeout=60)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = ["pinch", "block-feeder", "jack", "stack"]
    parser.add_argument("scene", nargs="*", default=usual)
    print(f"{'scene':<14}{'contacts':>9}{'frames/s':>10}{'x real time':>13}")
    for name in parser.parse_args().scene:
        contacts, frames, speed = measure(name)
        print(f"{name:<14}{contacts:>9}{frames:>10.0f}{speed:>13.2f}", flush=True)


if __name__ == "__main__":
    main()
