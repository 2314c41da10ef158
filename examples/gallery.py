"""Every scene that ships, in one picture.

    python examples/gallery.py [picture.png] [seconds] [scene ...]

Each is simulated for a little while first. Needs graphics (EGL, OSMesa or a screen) and matplotlib.
"""

import io
import sys

import stiction
from stiction import scenes
from stiction.reproduce.picture import render
from stiction.reproduce.result import Picture

try:
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit("examples/gallery.py needs matplotlib: pip install 'stiction[demo]'")

COLUMNS = 4

LONGER = {"bin": 0.8, "rubble": 1.1, "ragdoll": 0.6}
"""Scenes that take longer to show what they are about [s]."""


def picture_of(name, seconds):
    """PNG of a scene after that time or its own, or None where there are no graphics."""
    seconds = max(seconds, LONGER.get(name, 0.0))
    model, data, controller = scenes.load(name)
    simulator = stiction.Simulator(model)
    while data.time < seconds:
        if controller is not None:
            controller(model, data)
        simulator.step(data)
    return render(Picture(name, name, tuple(data.qpos)))


def main(path="scenes.png", seconds=0.3, *chosen):
    plt.switch_backend("Agg")
    names = chosen or scenes.names()
    rows = -(-len(names) // COLUMNS)
    figure = plt.figure(figsize=(3.0 * COLUMNS, 2.0 * rows), layout="constrained")
    drawn = 0
    for number, name in enumerate(names, 1):
        image = picture_of(name, float(seconds))
        axes = figure.add_subplot(rows, COLUMNS, number)
        axes.axis("off")
        axes.set_title(name)
        if image is not None:
            axes.imshow(plt.imread(io.BytesIO(image)))
            drawn += 1
    figure.savefig(path, dpi=90)
    print(f"{drawn} of {len(names)} scenes drawn: {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
