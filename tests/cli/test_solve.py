"""`stiction solve`."""

from pathlib import Path

import numpy as np
import pytest

from stiction import cli
from stiction.contact import ContactProblem, fclib


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def block(**rows):
    return ContactProblem(
        mass=np.eye(3), velocity=np.zeros(3), force=[4.0, 0.0, -9.81], dt=0.01,
        normal=[[0, 0, 1]], tangent=[[[1, 0, 0], [0, 1, 0]]], friction=0.3, **rows,
    )  # fmt: skip


def table(text):
    """Lines of the table below its head, each split into columns."""
    return [line.split() for line in text.splitlines()[1:]]


def test_contact_problems_and_lcps_share_a_table(tmp_path, capsys):
    block().save("block.npz")
    fclib.write("block.hdf5", block())
    np.savez("pair.npz", M=[[2.0, 1.0], [1.0, 2.0]], q=[-5.0, -6.0])
    assert cli.main(["solve", "block.npz", "block.hdf5", "pair.npz"]) == 0
    out = capsys.readouterr().out
    head = out.splitlines()[0]
    assert " ".join(head.split()) == "file contacts solver status worst time ms"
    first, second, third = table(out)
    assert first[:5] == ["block.npz", "1", "coulomb,", "reduced", "solved"]
    assert second[:5] == ["block.hdf5", "1", "coulomb,", "reduced", "solved"]
    assert third[:5] == ["pair.npz", "n", "=", "2", "auto,"]
    for line in (first, second, third):
        assert float(line[-2]) <= 1e-8
        assert float(line[-1]) > 0.0


def test_solvers_are_named_and_each_has_a_line(capsys):
    block().save("block.npz")
    np.savez("pair.npz", M=[[2.0, 1.0], [1.0, 2.0]], q=[-5.0, -6.0])
    words = "solve block.npz pair.npz --solver conic search interior-point lagrangian lemke"
    assert cli.main(words.split()) == 0
    lines = table(capsys.readouterr().out)
    found = [(line[0], word) for line in lines for word in line if word.isalpha() and word != "n"]
    assert ("block.npz", "conic") in found
    assert ("block.npz", "interior") in found
    assert ("block.npz", "lagrangian") in found
    assert ("block.npz", "lemke") not in found
    assert [line[4] for line in lines if line[0] == "pair.npz"] == ["search", "lemke"]
    assert all("solved" in line for line in lines)


def test_facets_are_of_the_ladder_and_of_solvers_that_know_them(capsys):
    block().save("block.npz")
    assert cli.main(["solve", "block.npz", "--facets", "8"]) == 0
    assert "coulomb:8, reduced" in capsys.readouterr().out
    assert cli.main(["solve", "block.npz", "--facets", "8", "--solver", "polygon", "standard"]) == 0
    assert [line[2] for line in table(capsys.readouterr().out)] == ["polygon", "standard"]


def test_nothing_is_cut_where_lines_are_longer_than_the_terminal(capsys):
    name = "a_problem_with_a_rather_long_name_" * 4 + ".npz"
    block().save(name)
    assert cli.main(["solve", name]) == 0
    out = capsys.readouterr().out
    assert name in out
    assert len(table(out)) == 1
    assert "\N{HORIZONTAL ELLIPSIS}" not in out


def test_a_bounded_lcp_keeps_its_bounds(capsys):
    np.savez("bounded.npz", M=np.eye(2), q=[-5.0, 5.0], lo=[0.0, -1.0], hi=[1.0, 1.0])
    assert cli.main(["solve", "bounded.npz"]) == 0
    assert "solved" in capsys.readouterr().out


def test_a_problem_without_a_solution_is_shown_and_fails(capsys):
    np.savez("none.npz", M=[[0.0, 0.0], [0.0, 1.0]], q=[-1.0, 0.0])
    assert cli.main(["solve", "none.npz"]) == 1
    assert "infeasible" in capsys.readouterr().out


def test_files_that_cannot_be_read_are_told_in_a_line_and_the_others_solved(tmp_path, capsys):
    block().save("block.npz")
    (tmp_path / "damaged.npz").write_bytes(b"nothing")
    (tmp_path / "damaged.h5").write_bytes(b"nothing")
    np.savez("other.npz", x=1.0)
    np.savez("oblong.npz", M=np.ones((2, 3)), q=[1.0, 2.0])
    np.savez("heavy.npz", **{**np.load("block.npz"), "mass": -np.eye(3)})
    bad = ["absent.npz", "absent.h5", "damaged.npz", "damaged.h5", "other.npz", "oblong.npz"]
    bad += ["heavy.npz"]
    assert cli.main(["solve", *bad, "block.npz"]) == 1
    said = capsys.readouterr()
    assert len(table(said.out)) == 1
    complaints = said.err.splitlines()
    assert len(complaints) == len(bad)
    for name, line in zip(bad, complaints, strict=True):
        assert line.startswith("stiction: ")
        assert name in line


def test_a_solver_for_another_kind_of_problem_is_told(capsys):
    block().save("block.npz")
    assert cli.main(["solve", "block.npz", "--solver", "lemke"]) == 1
    assert "block.npz: --solver: none of lemke is for such a problem" in capsys.readouterr().err


def test_a_solver_that_refuses_a_problem_does_not_keep_the_others_from_it(capsys):
    spin = ContactProblem(
        mass=np.eye(4), velocity=[0, 0, 0, 1.0], force=[4.0, 0.0, -9.81, 0.0], dt=0.01,
        normal=[[0, 0, 1, 0]], tangent=[[[1, 0, 0, 0], [0, 1, 0, 0]]], friction=0.3,
        box=[[0, 0, 0, 1]], box_contact=0, box_friction=0.01,
    )  # fmt: skip
    spin.save("spin.npz")
    assert cli.main(["solve", "spin.npz", "--solver", "conic", "search"]) == 1
    said = capsys.readouterr()
    assert "spin.npz: box_contact" in said.err
    assert [line[2:4] for line in table(said.out)] == [["search", "solved"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("solve", "none is named"),
        ("solve block.npz --solver conik", "did you mean conic"),
        ("solve block.npz --solver polygon", "needs facets"),
        ("solve block.npz --solver conic --facets 8", "leave facets out"),
        ("solve block.npz --facets 2", "3 or more"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(words, said, capsys):
    assert cli.main(words.split()) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def damaged():
    """Files by name that hold no problem, each in its own way."""
    block().save("whole.npz")
    fclib.write("whole.hdf5", block())
    for name in ("whole.npz", "whole.hdf5"):
        content = Path(name).read_bytes()
        stem, end = name.split(".")
        for part in (0.0, 0.1, 0.5, 0.9, 0.999):
            yield f"{stem}_{part}.{end}", content[: int(part * len(content))]
        rng = np.random.default_rng(5)
        for seed in range(8):
            changed = np.frombuffer(content, np.uint8).copy()
            at = rng.integers(len(changed), size=40)
            changed[at] = rng.integers(256, size=40)
            yield f"{stem}_changed_{seed}.{end}", changed.tobytes()
        yield f"binary.{end}", np.random.default_rng(1).bytes(3000)
        yield f"text.{end}", b"nothing of the kind\n"


def test_damaged_files_are_a_line_each_without_a_traceback(capfd):
    for name, content in damaged():
        Path(name).write_bytes(content)
        code = cli.main(["solve", name])
        told = capfd.readouterr()
        assert "Traceback" not in told.out + told.err, name
        if code != 0:
            assert told.err.startswith("stiction: "), (name, told.err)
            assert told.err.count("\n") == 1, (name, told.err)
            assert name in told.err
