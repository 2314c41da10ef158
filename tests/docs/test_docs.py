"""The documentation: its code runs and prints what it says, and it builds without a warning."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONAL = ("pinocchio",)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def missing_packages(code):
    return [
        name
        for name in OPTIONAL
        if re.search(rf"^import {name}\b", code, re.MULTILINE)
        and importlib.util.find_spec(name) is None
    ]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    blocks = [(kind, code, text.count("\n", 0, at)) for kind, code, at in find_blocks(text)]
    absent = missing_packages("".join(code for kind, code, _ in blocks if kind == "python"))
    if absent:
        pytest.skip(f"{name_of(page)} needs {', '.join(absent)}")
    namespace = {"__name__": "__main__"}
    printed = ""
    for kind, code, line in blocks:
        if kind == "python":
            # Line numbers of a traceback are those of the page.
            exec(compile("\n" * (line + 1) + code, page, "exec"), namespace)
            printed = capsys.readouterr().out
        else:
            assert printed == code, f"line {line + 1} of {name_of(page)}"


def find_blocks(text):
    """(python or text, content, place) of each such block; what is `text` was printed by the
    block of Python before it."""
    return [(found[1], found[2], found.start()) for found in BLOCK.finditer(text)]


def test_every_page_of_the_guide_has_code_that_runs():
    for page in PAGES:
        assert any(kind == "python" for kind, *_ in find_blocks(page.read_text(encoding="utf-8")))


WRITTEN = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("[!_]*/**/*.md"), *ROOT.glob("docs/*.md")]
)
NAMED = re.compile(r"`(?:src/stiction/)?([a-z_]+(?:/[a-z_]+)*\.py)`")


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_every_file_that_a_page_names_exists(page):
    files = {path.as_posix() for path in ROOT.glob("[!.]*/**/*.py")}
    for name in NAMED.findall(page.read_text(encoding="utf-8")):
        assert any(path.endswith(f"/{name}") for path in files), f"there is no {name}"


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser", "furo")),
    reason="Sphinx, myst-parser or furo is not installed: the extra `docs`",
)
def test_the_documentation_builds_without_a_warning(tmp_path):
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", tmp_path / "html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "html" / "index.html").is_file()
