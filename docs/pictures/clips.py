"""Makes the clips of the README and of docs/gallery.md, and the gallery's page.

    python docs/pictures/clips.py [scene ...]    writes NAME.gif beside itself, and ../gallery.md

Needs the extra `render`, and graphics that MuJoCo can use.
"""

import sys
from pathlib import Path

import mujoco

from stiction import Simulator, scenes
from stiction.record import Camera, Look, compare, record, shoot

HERE = Path(__file__).parent
FPS = 10.0
SMALL = Look(width=300, height=200, titles=False)
WIDE = Look(width=640, height=260, camera=Camera(azimuth=100.0, elevation=-12.0))

SECONDS = {"sliding-cube": 1.6, "bin": 1.2, "wall": 1.2, "rubble": 1.6, "ragdoll": 1.2, "net": 1.2}
"""Of scenes that are over soon [s]; of the others `USUAL`."""
USUAL = 3.0
STILL = ("pinch", "grasp", "stack", "incline", "ladder", "arch")
"""Scenes in which nothing moves, which is the point: a few frames show it."""

HEAD = """\
# Gallery

Every scene that ships, under the exact cone. Contacts that stick are green, those that slide are
magenta; arrows are forces. `python docs/pictures/clips.py` makes the clips and this page;
`stiction render NAME` makes one of your own, and [scenes](scenes.md) tells where each comes from.
"""


def main(*chosen):
    for name in chosen or scenes.names():
        film_of(name).save(HERE / f"{name}.gif")
        print(name, (HERE / f"{name}.gif").stat().st_size // 1000, "kB", flush=True)
    beside().save(HERE / "pinch-beside.gif")
    if not chosen:
        page = HEAD + "".join(entry(name) for name in scenes.names())
        (HERE.parent / "gallery.md").write_text(page, encoding="utf-8")


def film_of(name):
    """A scene by itself, from its start."""
    model, data, controller = scenes.load(name)
    seconds = 0.5 if name in STILL else SECONDS.get(name, USUAL)
    kept = record(
        Simulator(model, on_failure="best"), data, seconds, controller=controller,
        watch=scenes.get(name).watch, samples=int(seconds * FPS), name=name,
    )  # fmt: skip
    return shoot([kept.trajectory], fps=FPS, look=SMALL)


def beside():
    """The pinch under stiction and under MuJoCo as it comes, eight seconds in three."""
    outcomes = compare(load_pinch, ["coulomb", "mujoco"], 8.0, samples=160)
    titles = ["stiction: it holds", "MuJoCo: it creeps"]
    kept = [outcome.trajectory for outcome in outcomes]
    return shoot(kept, titles=titles, fps=FPS, slow=0.4, look=WIDE)


def load_pinch():
    """As `examples/pinch.py` has it: pyramids, impratio 1."""
    model, data, controller = scenes.load("pinch", timestep=0.001)
    model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_PYRAMIDAL, 1.0
    return model, data, controller


def entry(name):
    """What the gallery has of a scene."""
    scene = scenes.get(name)
    return f"\n## {name}\n\n{scene.summary.capitalize()}.\n\n![{name}](pictures/{name}.gif)\n"


if __name__ == "__main__":
    main(*sys.argv[1:])
