"""Sweeps: combinations, rows, resuming, crashes, files, reports."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import stiction
from stiction import cli
from stiction.sweeps import run as runs
from stiction.sweeps.processes import in_processes
from stiction.sweeps.text import parse_values

LITTLE = {"friction": [0.001, 0.5], "force": [5, 20]}
"""Of the pinch: the first friction cannot hold, whatever the force."""

BALL = """<mujoco><worldbody><geom type='plane' size='1 1 1'/><body name='ball' pos='0 0 .1'>
<freejoint/><geom size='.1' friction='.3'/></body></worldbody>
<keyframe><key name='high' qpos='0 0 .5 1 0 0 0'/></keyframe></mujoco>"""

MORTAL = """
import os, pathlib
from stiction.sweeps.processes import serve

def execute(run):
    mark = pathlib.Path({folder!r}, str(run.seed))
    tries = len(mark.read_text()) if mark.exists() else 0
    mark.write_text("x" * (tries + 1))
    if run.seed == 1 or (run.seed == 2 and tries == 0):
        os.kill(os.getpid(), 9) if os.name == "posix" else os._exit(9)
    return {{**run.settings, "status": "done"}}

serve(execute)
"""
"""A process that dies of seed 1 always, of seed 2 the first time."""


def small(seed):
    return runs.Run(
        scene="pinch", options={}, contact="coulomb", seed=seed, seconds=0.1, noise=0.01,
        drop=0.01, keyframe=None, content="",
    )  # fmt: skip


def test_every_combination_of_values_and_seeds_is_a_row():
    table = stiction.sweep("pinch", LITTLE, seeds=2, time=0.1, workers=0, drop=0.005)
    assert len(table) == table.asked == 8
    assert table.count("done") == 8
    triples = zip(*(table.column(name) for name in ("friction", "force", "seed")), strict=True)
    assert len(set(triples)) == 8
    held = table.column("held").astype(bool)
    np.testing.assert_array_equal(held, table.column("friction") == 0.5)
    assert (table.column("slip")[held] < 1e-6).all()
    assert (table.column("certificate") < 1e-8).all()
    assert (table.column("us_per_step") > 0).all()


def test_seeds_disturb_the_start_and_the_first_does_not():
    starts = [small(seed).load().data.qvel for seed in (0, 1, 1, 2)]
    assert not starts[0].any()
    np.testing.assert_array_equal(starts[1], starts[2])
    assert (starts[1] != starts[3]).all()
    assert 0.0 < np.abs(starts[1]).max() < 0.05


def test_a_scene_that_has_a_seed_is_made_by_it():
    def pile(seed):
        return runs.Run("bin", {"count": 8}, "coulomb", seed, 0.1, 0.01, 0.01, None, "").load()

    assert not pile(3).data.qvel.any()
    assert (pile(3).data.qpos != pile(4).data.qpos).any()


def test_a_sweep_goes_on_where_it_stopped_and_runs_nothing_twice(tmp_path):
    executed = []

    def stop_after_three(done, total, row):
        if row is not None:
            executed.append((row["friction"], row["force"]))
        if len(executed) == 3 and row is not None:
            raise KeyboardInterrupt

    first = stiction.sweep(
        "pinch", LITTLE, time=0.02, workers=0, out=tmp_path, on_progress=stop_after_three
    )
    assert first.interrupted
    assert len(first) == 3
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"key": "cut o')  # by a power failure
    progress = []
    second = stiction.sweep(
        "pinch",
        LITTLE,
        time=0.02,
        workers=0,
        out=tmp_path,
        on_progress=lambda *a: progress.append(a),
    )
    assert progress[0] == (3, 4, None)
    assert len(progress) == 2
    assert not second.interrupted
    assert second.rows[:3] == first.rows
    more = {**LITTLE, "friction": [0.001, 0.5, 0.7]}
    progress.clear()
    stiction.sweep(
        "pinch", more, time=0.02, workers=0, out=tmp_path, on_progress=lambda *a: progress.append(a)
    )
    assert progress[0] == (4, 6, None)
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    keys = [json.loads(line)["key"] for line in lines if line.endswith("}")]
    assert len(keys) == len(set(keys)) == 6


def test_a_run_that_fails_is_a_row_and_can_be_tried_again(tmp_path):
    options = {"boxes": [2, 1000]}  # more than the scene has room for
    table = stiction.sweep("grasp", options, time=0.01, workers=0, out=tmp_path)
    assert list(table.column("status")) == ["done", "failed"]
    assert "must be 1 to" in table.rows[1]["error"]
    assert table.rows[1]["held"] is None
    assert "Runs that ended early" in (tmp_path / "report.html").read_text(encoding="utf-8")
    counts = []
    for retry in (False, True):
        stiction.sweep(
            "grasp", options, time=0.01, workers=0, out=tmp_path, retry=retry,
            on_progress=lambda *a: counts.append(a[0]),
        )  # fmt: skip
    assert counts == [2, 1, 2]


def test_a_process_that_dies_is_replaced_and_its_run_tried_again(tmp_path):
    script = tmp_path / "mortal.py"
    folder = tmp_path / "marks"
    folder.mkdir()
    script.write_text(MORTAL.format(folder=str(folder)))
    asked = [small(seed) for seed in range(5)]
    rows = dict(in_processes(asked, 2, [sys.executable, str(script)]))
    assert sorted(rows) == [0, 1, 2, 3, 4]
    assert [rows[k]["status"] for k in range(5)] == ["done", "crashed", "done", "done", "done"]
    assert "SIGKILL" in rows[1]["error"] or "exit code 9" in rows[1]["error"]
    assert [len((folder / str(k)).read_text()) for k in range(5)] == [1, 2, 2, 1, 1]


def test_processes_give_the_rows_that_this_one_gives():
    alone = stiction.sweep("pinch", {"friction": [0.5]}, seeds=2, time=0.05, workers=0)
    apart = stiction.sweep("pinch", {"friction": [0.5]}, seeds=2, time=0.05, workers=1)
    clocks = {"us_per_step", "elapsed"}
    for one, other in zip(alone.rows, apart.rows, strict=True):
        assert {k: v for k, v in one.items() if k not in clocks} == {
            k: v for k, v in other.items() if k not in clocks
        }


def test_a_file_has_friction_and_a_time_step(tmp_path):
    path = tmp_path / "ball.xml"
    path.write_text(BALL)
    options = {"friction": [0.2, 0.4], "timestep": [0.002]}
    table = stiction.sweep(path, options, time=0.1, keyframe="high", workers=0)
    assert table.count("done") == 2
    assert table.column("sink") == pytest.approx(0.5 * 9.81 * 0.1 * 0.102, rel=1e-3)
    assert list(table.column("held")) == [False, False]
    run = runs.Run(str(path), {"friction": 0.4}, "coulomb", 0, 0.1, 0.0, 0.01, None, "")
    assert (run.load().model.geom_friction[:, 0] == 0.4).all()
    with pytest.raises(stiction.InvalidInput, match="did you mean friction"):
        stiction.sweep(path, {"fricton": [1.0]}, workers=0)


def test_a_file_that_was_edited_is_run_again(tmp_path):
    path = tmp_path / "ball.xml"
    counts = []
    for radius in (".1", ".1", ".09"):
        path.write_text(BALL.replace("<geom size='.1'", f"<geom size='{radius}'"))
        stiction.sweep(
            path, {"friction": [0.2]}, time=0.01, workers=0, out=tmp_path / "out",
            on_progress=lambda done, total, row: counts.append(done) if row is None else None,
        )  # fmt: skip
    assert counts == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("force=5,10,20", ["5", "10", "20"]),
        ("friction=0.1:0.5:5", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("boxes=1:1:1", [1.0]),
        ("contact=coulomb:8,no-slip", ["coulomb:8", "no-slip"]),
    ],
)
def test_values_are_lists_or_a_range_and_a_count(text, values):
    assert parse_values(text) == (text.partition("=")[0], values)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--set friction", "option=values"),
        ("--set friction=1:2", "first:last:count"),
        ("--set friction=1:2:0", "first:last:count"),
        ("--set fricton=1,2", "did you mean friction"),
        ("--set friction=rough", "is a number"),
        ("--set seed=1,2", "`seeds`"),
        ("--set contact=coulom", "did you mean coulomb"),
        ("--set friction=1 --seeds 0", "one or more"),
    ],
)
def test_what_cannot_be_swept_is_told(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", "pinch", *words.split()]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.parquet"))


def test_sweeps_of_two_files_of_a_common_name_do_not_overwrite_each_other(
    tmp_path, monkeypatch, capsys
):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    short = ["--time", "0.02", "--workers", "0"]
    for folder in ("dog", "cat"):
        Path(folder).mkdir()
        Path(folder, "scene.xml").write_text(BALL, encoding="utf-8")
        assert cli.main(["sweep", f"{folder}/scene.xml", *short]) == 0
    assert sorted(path.name for path in Path("stiction-runs").iterdir()) == [
        "cat-sweep", "dog-sweep",
    ]  # fmt: skip
    assert "in the place of" not in capsys.readouterr().out
    there = ["--out", "stiction-runs/cat-sweep"]
    assert cli.main(["sweep", "dog/scene.xml", *short, *there]) == 0
    cat = Path("cat", "scene.xml").resolve()
    assert f"in the place of an earlier sweep of {cat}, whose runs stay" in capsys.readouterr().out
    assert len(Path("stiction-runs/cat-sweep/runs.jsonl").read_text().splitlines()) == 2
    Path("stiction-runs/cat-sweep/results.parquet").write_bytes(b"no table")
    assert cli.main(["sweep", "cat/scene.xml", *short]) == 0
    assert "in the place of an earlier sweep, whose" in capsys.readouterr().out


def test_the_command_writes_a_table_and_a_report(tmp_path, monkeypatch, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    words = "sweep pinch --set friction=0.001,0.5 --set force=5:20:2 contact=coulomb,mujoco"
    tail = ["--time", "0.05", "--workers", "0", "--out", "here"]
    assert cli.main([*words.split(), *tail]) == 0
    told = capsys.readouterr().out
    assert "8 of 8 runs: 8 done" in told
    assert "wrote here/results.parquet" in told.replace("\\", "/")
    table = parquet.read_table("here/results.parquet")
    assert table.num_rows == 8
    assert set(table.column("contact").to_pylist()) == {"coulomb", "mujoco"}
    assert table.column("certificate").null_count == 4  # MuJoCo has none
    assert json.loads(table.schema.metadata[b"stiction"])["scene"] == "pinch"
    page = Path("here/report.html").read_text(encoding="utf-8")
    for heading in ("Held or dropped", "Slip", "Worst certificate", "Cost"):
        assert f"<h2>{heading}</h2>" in page
    assert page.count('"coloraxis":"coloraxis"') == 7  # a certificate is ours alone


def test_without_pyarrow_the_extra_is_named_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(stiction.StictionError, match=r"stiction\[sweep\]"):
        stiction.sweep("pinch", {"friction": [0.5]}, out=tmp_path, workers=0)
    assert not list(tmp_path.iterdir())


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(stiction.StictionError, match=r"stiction\[ray\]"):
        stiction.sweep("pinch", {"friction": [0.5]}, ray="auto")
