"""Every notebook runs from its first cell to its last, and what it asserts holds."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_holds_no_output(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert any("assert" in text for text in code)
    names = {}
    for text in code:
        exec(compile(text, str(path), "exec"), names)
    assert not any(cell.get("outputs") for cell in cells)


def test_there_are_notebooks_for_the_grasp_for_arrays_and_for_lcps():
    assert {path.stem for path in NOTEBOOKS} == {"first_grasp", "arrays", "lcp"}
