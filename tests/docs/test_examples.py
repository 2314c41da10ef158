"""Every example runs, stays short, and prints what it is there to show."""

import importlib.util
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

# Arguments that keep it short, what it must print, what must be installed.
RUNS = {
    "bouncing_ball": ((), "bounce 2: 0.409600 m, exact 0.409600 m", ()),
    "drop_in": (("0.5",), "stiction slid 0.000000 mm", ()),
    "failure": (("{folder}",), "coulomb certificate FAILED", ()),
    "gallery": (("{folder}/a.png", "0.002", "stack"), "of 1 scenes drawn", ("matplotlib",)),
    "identify_push": (("{folder}/a.png",), "found within 0.01 % of the mass", ("matplotlib",)),
    "lcp_demo": ((), "the first one: solved by", ()),
    "learn_pinch_lift": (
        ("{folder}/a.png", "2"), "judged in MuJoCo: return", ("gymnasium", "matplotlib", "torch"),
    ),
    "own_arrays": ((), "60   Coulomb     20.7600", ()),
    "own_controller": (("0.1",), "worst certificate of 10", ()),
    "pinch": (("{folder}/a.png", "0.2"), "largest violation of any contact law", ("matplotlib",)),
    "pinocchio_contact": (("0.1",), "the floor carries 152.1 N of 152.1 N", ("pinocchio",)),
    "slide_to_goal": (("{folder}/a.png", "6"), "planned by stiction: cost 0.2", ("matplotlib",)),
}  # fmt: skip


def test_every_example_is_run_here():
    assert set(RUNS) == {path.stem for path in EXAMPLES.glob("*.py")}


LONGER = {"learn_pinch_lift": 165, "slide_to_goal": 110}
"""Lines of those that bring an algorithm of their own."""


def test_every_example_has_less_than_a_hundred_lines():
    for path in EXAMPLES.glob("*.py"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines < LONGER.get(path.stem, 100), path.name


@pytest.mark.parametrize("name", RUNS)
def test_an_example_runs_and_shows_what_it_is_for(name, tmp_path, monkeypatch, capsys):
    arguments, shown, packages = RUNS[name]
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"examples/{name}.py needs {package}")
    path = str(EXAMPLES / f"{name}.py")
    given = [argument.format(folder=tmp_path) for argument in arguments]
    monkeypatch.setattr(sys, "argv", [path, *given])
    runpy.run_path(path, run_name="__main__")
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("gallery", "matplotlib", "demo"),
        ("identify_push", "matplotlib", "demo"),
        ("learn_pinch_lift", "torch", "gym,demo,torch"),
        ("pinch", "matplotlib", "demo"),
        ("pinocchio_contact", "pinocchio", "pinocchio"),
        ("slide_to_goal", "matplotlib", "demo"),
    ],
)
def test_an_example_without_its_package_names_the_extra(name, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit, match=rf"pip install 'stiction\[{extra}\]'"):
        runpy.run_path(str(EXAMPLES / f"{name}.py"))
