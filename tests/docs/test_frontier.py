"""The benchmark of error against cost runs and is drawn, and the documentation has its numbers."""

import json
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBERS = ROOT / "docs" / "frontier.json"


@pytest.fixture(autouse=True)
def beside_the_benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def run(monkeypatch, path, *arguments):
    monkeypatch.setattr(sys, "argv", [str(path), *map(str, arguments)])
    runpy.run_path(str(path), run_name="__main__")


def test_a_quick_run_finds_who_holds_still_says_who_lost_it_and_is_drawn(
    monkeypatch, tmp_path, capsys
):
    pytest.importorskip("matplotlib")
    numbers, picture = tmp_path / "frontier.json", tmp_path / "frontier.png"
    asked = ("--quick", "--scenes", "pinch", "incline", "--out", numbers)
    run(monkeypatch, ROOT / "benchmarks" / "frontier.py", *asked)
    assert "| pinch | " in capsys.readouterr().out
    found = json.loads(numbers.read_text(encoding="utf-8"))["rows"]
    rows = {(row["scene"], row["method"], row["step"]): row for row in found}
    for step in (2.0, 10.0):
        for scene in ("pinch", "incline"):
            assert rows[scene, "stiction", step]["error"] < 1e-12
            assert rows[scene, "stiction", step]["cost"] > 0.0
        assert rows["pinch", "mujoco", step]["error"] > 1e-4
    assert rows["pinch", "mujoco-C", 10.0]["ended"] == "lost"
    assert rows["pinch", "mujoco-C", 10.0]["error"] is None

    run(monkeypatch, ROOT / "docs" / "pictures" / "frontier.py", numbers, picture)
    assert "2 scenes drawn" in capsys.readouterr().out
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/frontier.md"])
def test_the_table_of_the_documentation_is_that_of_the_numbers(page):
    from frontier import markdown, read

    assert markdown(read(NUMBERS)) in (ROOT / page).read_text(encoding="utf-8")


def test_a_scene_that_is_run_again_leaves_the_numbers_of_others(tmp_path):
    from frontier import keep, read

    path = tmp_path / "frontier.json"
    keep([{"scene": "pinch", "error": 1.0}, {"scene": "arch", "error": 2.0}], path)
    keep([{"scene": "pinch", "error": 3.0}], path)
    assert read(path) == [{"scene": "pinch", "error": 3.0}, {"scene": "arch", "error": 2.0}]


def test_a_peer_that_is_not_installed_is_named_and_left_out(monkeypatch, capsys):
    import frontier_peers

    monkeypatch.setattr(frontier_peers, "missing", lambda: list(frontier_peers.ENGINES))
    asked = ("--quick", "--scenes", "rolling", "--steps", "20", "--methods", "mujoco", "dart")
    run(monkeypatch, ROOT / "benchmarks" / "frontier.py", *asked)
    shown = capsys.readouterr().out
    assert "DART: dartpy is not installed, left out" in shown
    assert "| rolling | " in shown
