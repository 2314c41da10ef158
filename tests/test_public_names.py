"""What a user sees of the package: its public names and nothing else."""

from importlib import import_module
from types import ModuleType

import pytest

PUBLIC = (
    "stiction", "stiction.articulated", "stiction.contact", "stiction.contact.fclib",
    "stiction.gym", "stiction.lcp", "stiction.record", "stiction.reproduce", "stiction.scenes",
    "stiction.simulate", "stiction.sweeps", "stiction.view",
)  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_a_package_shows_its_public_names_and_no_others(name):
    package = import_module(name)
    shown = {word for word in dir(package) if not word.startswith("_")}
    assert shown == set(package.__all__)
    for word in shown:
        value = getattr(package, word)
        if isinstance(value, ModuleType):
            assert value.__name__ in PUBLIC, f"{name}.{word} is a module that is not public"
        elif hasattr(value, "__module__"):
            assert value.__module__.startswith(("stiction", "collections.abc", "typing")), word
