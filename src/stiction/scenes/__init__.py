"""The scenes that ship with the package, by name, with what drives them.

    model, data, controller = scenes.load("grasp", boxes=4)
    model, data, controller = scenes.load("robot.urdf")

`names` lists them, `get` gives one as a `Scene`. Most of them stand in the papers: see the
head of each family's file.
"""

from stiction.scenes.catalogue import get, load, names
from stiction.scenes.scene import Controller, Loaded, Scene

__all__ = ["Controller", "Loaded", "Scene", "get", "load", "names"]


def __dir__() -> list[str]:
    return __all__
