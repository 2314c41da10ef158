"""What a user sees of the package: its public names and nothing else."""

import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import stiction

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


def test_a_name_is_looked_up_once():
    assert stiction.step is vars(stiction)["step"]


def test_a_simulator_does_not_wait_for_what_it_rarely_needs():
    script = (
        "import sys, mujoco, stiction\n"
        "stiction.Simulator(mujoco.MjModel.from_xml_string('<mujoco/>'))\n"
        "print([name for name in ('scipy.optimize', 'plotly', 'rich', 'gymnasium') "
        "if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
